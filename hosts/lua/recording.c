/* SPDX-License-Identifier: MIT */
/* recording: errand.run(f, {record = path, replay = path}).
 *
 * Design notes.  What a log is of, is the function's code without its names and lines, with that of
 * all functions inside it.  Functions of other chunks and what its upvalues hold are not in it: a
 * run that differs for them is found where it leaves the log. */
#include "lua_host.h"
#include <errno.h>
#include <string.h>

#define HASH_BEGIN UINT64_C(14695981039346656037)

static int
hash_piece(lua_State *L, const void *bytes, size_t size, void *arg)
{
    const unsigned char *in = bytes;
    uint64_t hash = *(uint64_t *)arg;
    (void)L;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ in[i]) * UINT64_C(1099511628211);
    *(uint64_t *)arg = hash;
    return 0;
}

/* Of the function at the top of the stack. */
static uint64_t
build_of(lua_State *L, char *text, size_t size)
{
    lua_Debug ar;
    uint64_t build = HASH_BEGIN;
    hash_piece(L, errand_version(), strlen(errand_version()), &build);
    if (lua_type(L, -1) == LUA_TFUNCTION && !lua_iscfunction(L, -1))
        lua_dump(L, hash_piece, &build, 1);
    snprintf(text, size, "a function");
    lua_pushvalue(L, -1);
    if (lua_type(L, -1) != LUA_TFUNCTION)
        lua_pop(L, 1);
    else if (lua_getinfo(L, ">S", &ar))
        snprintf(text, size, "the function at %s:%d", ar.short_src, ar.linedefined);
    return build;
}

static void
say(errand__lua_recording *self, const char *what, const char *path, errand_status status,
    const char *text)
{
    snprintf(self->text, sizeof self->text, "%s: %.120s: %s", what, path,
             text[0] != '\0'           ? text
             : status == ERRAND_ENOMEM ? "memory ran out"
                                       : strerror(errno));
}

bool
errand_lua_replay_lacks_results(const errand_replay *replay, const char *path)
{
    errand_log *log = NULL;
    errand_log_step step;
    bool lacks = false;

    if (errand_replay_header_of(replay)->payloads == ERRAND_RECORD_PAYLOADS ||
        errand_log_open(path, &log, NULL, 0) != ERRAND_OK)
        return false;
    while (!lacks && errand_log_next(log, &step))
        lacks = step.completion != NULL &&
                step.completion->payload == ERRAND_LOG_PAYLOAD_DIGEST;
    errand_log_close(&log);
    return lacks;
}

static bool
begin_recording(errand__lua_recording *self, uint64_t build, const char *text)
{
    errand_recorder_config config = {
        .struct_size = sizeof config,
        .payloads = self->payloads ? ERRAND_RECORD_PAYLOADS : ERRAND_RECORD_DIGESTS,
        .path = self->record,
        .build = build,
        .build_text = text,
    };
    if (self->record == NULL)
        return true;
    errand_status status = errand_recorder_open(&config, &self->recorder);
    if (status != ERRAND_OK)
        say(self, "record", self->record, status, "");
    return status == ERRAND_OK;
}

bool
errand__lua_recording_init(errand__lua_recording *self, lua_State *L,
                           errand_lua_options *options)
{
    char name[LUA_IDSIZE + 40], text[320] = "";
    uint64_t build;
    self->recorder = NULL;
    self->replay = NULL;
    if (self->record == NULL && self->replayed == NULL)
        return true;
    build = build_of(L, name, sizeof name);
    if (self->replayed != NULL) {
        errand_replay_config config = {
            .struct_size = sizeof config,
            .path = self->replayed,
            .build = build,
            .build_text = name,
        };
        errand_status status =
            errand_replay_open(&config, &self->replay, text, sizeof text);
        if (status == ERRAND_OK &&
            errand_lua_replay_lacks_results(self->replay, self->replayed)) {
            status = errand_replay_close(&self->replay);
            say(self, "replay", self->replayed, ERRAND_EREPRODUCE,
                "it was recorded without record_payloads, so it has no results to give: "
                "record it again with them");
            return false;
        }
        if (status != ERRAND_OK) {
            say(self, "replay", self->replayed, status, text);
            return false;
        }
    }
    if (!begin_recording(self, build, name)) {
        errand_status status = errand_replay_close(&self->replay);
        (void)status; /* it had no runtime */
        return false;
    }
    options->held_recorder = self->recorder;
    options->held_replay = self->replay;
    return true;
}

bool
errand__lua_recording_fini(errand__lua_recording *self)
{
    errand_status status = errand_replay_close(&self->replay);
    if (self->recorder == NULL)
        return status == ERRAND_OK;
    status = errand_recorder_close(&self->recorder);
    if (status != ERRAND_OK)
        say(self, "record", self->record, status, "");
    return status == ERRAND_OK;
}
