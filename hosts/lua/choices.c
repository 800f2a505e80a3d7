/* SPDX-License-Identifier: MIT */
/* choices: errand.choose and errand.workload, and the policy and tapes of errand.run's options.
 *
 * Design notes.  A tape is read when the options are known to be good and nothing can raise any
 * more until the run has ended; then it is written, given back, and only then may anything raise. */
#include "lua_host.h"
#include <errno.h>
#include <string.h>

enum { WORKLOAD_MAX = 1 << 24 };

/* ---- verbs ------------------------------------------------------------------------------------ */

static int
verb_choose(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_need(L, "choose");
    lua_Integer n = luaL_checkinteger(L, 1);
    if (run->visit == NULL)
        errand__lua_error_raise(L, "misuse", "choose", "no task is running here");
    luaL_argcheck(L, n >= 1, 1, "there must be 1 to choose from at least");
    lua_pushinteger(L, (lua_Integer)errand_task_choose(run->visit, (uint64_t)n) + 1);
    return 1;
}

/* A list, or 1 .. n: those of its items that stay in this run. */
static int
verb_workload(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_need(L, "workload");
    bool listed = lua_type(L, 1) == LUA_TTABLE;
    lua_Integer count = listed ? luaL_len(L, 1) : luaL_checkinteger(L, 1);
    const char *name = luaL_optstring(L, 2, "workload");
    lua_Integer kept = 0;
    luaL_argcheck(L, count >= 0, 1, "a list, or how many items there are, expected");
    luaL_argcheck(L, count <= WORKLOAD_MAX, 1, "a workload has at most 2^24 items");
    lua_newtable(L);
    for (lua_Integer i = 1; i <= count; i++) {
        if (!errand_workload_keeps(run->runtime, name, (uint64_t)i - 1))
            continue;
        if (listed)
            lua_geti(L, 1, i);
        else
            lua_pushinteger(L, i);
        lua_seti(L, -2, ++kept);
    }
    return 1;
}

const luaL_Reg errand__lua_choice_verbs[] = {
    {"choose", verb_choose},
    {"workload", verb_workload},
    {NULL, NULL},
};

/* ---- a run's ------------------------------------------------------------------------------------ */

static bool
read_policy(errand__lua_choices *choices, const char *policy, uint64_t seed)
{
    char text[sizeof choices->text - 16];
    if (policy == NULL ||
        errand_choices_parse(&choices->all, policy, seed, text, sizeof text) == ERRAND_OK)
        return true;
    snprintf(choices->text, sizeof choices->text, "policy: %s", text);
    return false;
}

static bool
read_tape(errand__lua_choices *choices, const char *path)
{
    char text[200] = "memory ran out";
    if (path == NULL)
        return true;
    if (errand_tape_read(path, &choices->all.held_tape, text, sizeof text) == ERRAND_OK) {
        choices->all.provider = ERRAND_PROVIDER_TAPE;
        return true;
    }
    snprintf(choices->text, sizeof choices->text, "tape: %.160s: %s", path, text);
    return false;
}

bool
errand__lua_choices_init(errand__lua_choices *choices, const char *policy,
                         const char *tape, const char *save, uint64_t seed)
{
    memset(choices, 0, sizeof *choices);
    choices->all.struct_size = sizeof choices->all;
    choices->save = save;
    if (read_policy(choices, policy, seed) && read_tape(choices, tape) &&
        (save == NULL || errand_tape_create(&choices->all.held_record) == ERRAND_OK))
        return true;
    if (choices->text[0] == '\0')
        snprintf(choices->text, sizeof choices->text, "memory ran out");
    errand_tape_abandon(&choices->all.held_tape);
    return false;
}

bool
errand__lua_choices_fini(errand__lua_choices *choices)
{
    errand_status status = ERRAND_OK;
    if (choices->save != NULL) {
        errno = 0;
        status = errand_tape_write(choices->all.held_record, choices->save);
        snprintf(choices->text, sizeof choices->text, "save_tape: %.160s: %s",
                 choices->save,
                 strerror(status == ERRAND_ENOMEM ? ENOMEM
                          : errno != 0            ? errno
                                                  : EIO));
    }
    errand_tape_abandon(&choices->all.held_tape);
    errand_tape_abandon(&choices->all.held_record);
    return status == ERRAND_OK;
}
