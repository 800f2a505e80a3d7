/* SPDX-License-Identifier: MIT */
/* io_reach: errand.connect, errand.listen, errand.udp: from an address to an object.
 *
 * Design notes.  An address that is no number is looked up first, by the same quarantined operation
 * as errand.resolve, on the run's pool; then its addresses are tried in their order, until one
 * works.  What a call knows meanwhile is a userdata at index KEPT of its stack: nothing leaks,
 * however the task ends. */
#include "io.h"
#include <string.h>

enum { ADDRESSES_MAX = 16, ADDRESS = 1, OPTIONS = 2, KEPT = 3 };

typedef struct reach reach;
typedef struct goal {
    const char *name;
    const char *const *options;
    void (*read)(lua_State *L, reach *self); /* the options; they are a table */
    errand_status (*spec)(reach *self, const errand_endpoint *at, errand_spec *spec);
    int (*push)(lua_State *L, errand_completion *completion);
    bool tries_all;
} goal;
struct reach {
    const goal *goal;
    errand_endpoint addresses[ADDRESSES_MAX];
    size_t count, next;
    uint64_t limit_ns, until; /* of all together, on the run's clock; 0 = none */
    errand_endpoint other;    /* local of a stream, to of a datagram */
    errand_listen_config listen;
};

static int attempt(lua_State *L, errand__lua_task *task);

/* ---- the steps ----------------------------------------------------------------------------- */

static int
attempted(lua_State *L, int status, lua_KContext context)
{
    reach *self = lua_touserdata(L, KEPT);
    const errand_task_news *news = errand__lua_wait_news(L, self->goal->name);
    (void)status;
    (void)context;
    if (news->completion->outcome == ERRAND_COMPLETED)
        return self->goal->push(L, news->completion);
    if (!self->goal->tries_all || self->next >= self->count ||
        news->completion->outcome != ERRAND_FAILED)
        errand__lua_error_completion(L, news->completion, self->goal->name);
    return attempt(L, errand__lua_io_task(L, self->goal->name));
}

static int
attempt(lua_State *L, errand__lua_task *task)
{
    reach *self = lua_touserdata(L, KEPT);
    errand_lease *lease = errand__lua_io_lease(L, task->run, self->goal->name);
    errand_spec spec = ERRAND_SPEC_INIT;
    if (self->until != 0) {
        uint64_t now = errand_runtime_now(task->run->runtime);
        self->limit_ns = self->until > now ? self->until - now : 1;
    }
    const errand_endpoint *to = &self->addresses[self->next++];
    if (self->goal->tries_all)
        errand__lua_listener_refuse(L, task->run, to, self->goal->name);
    errand__lua_io_filled(L, self->goal->spec(self, to, &spec), self->goal->name);
    return errand__lua_io_await(L, task, lease, &spec, ADDRESS, self->goal->name,
                                attempted, 0);
}

static int
resolved(lua_State *L, int status, lua_KContext context)
{
    reach *self = lua_touserdata(L, KEPT);
    const char *name = self->goal->name;
    errand_completion *completion = errand__lua_io_completion(L, name);
    (void)status;
    (void)context;
    const errand_addresses *found =
        errand__lua_io_payload(L, completion, &errand_addresses_type, name);
    for (size_t i = 0; i < found->count && self->count < ADDRESSES_MAX; i++)
        self->addresses[self->count++] = errand_endpoint_of(&found->addresses[i]);
    if (self->count == 0)
        errand__lua_error_raise(L, "not_found", name, "'%.200s' has no address",
                                lua_tostring(L, ADDRESS));
    return attempt(L, errand__lua_io_task(L, name));
}

/* "host:service". */
static int
resolve(lua_State *L, errand__lua_task *task, const char *text)
{
    reach *self = lua_touserdata(L, KEPT);
    const char *colon = strrchr(text, ':');
    errand_spec spec = ERRAND_SPEC_INIT;
    if (colon == NULL || colon == text || colon[1] == '\0' ||
        memchr(text, ':', (size_t)(colon - text)) != NULL ||
        strncmp(text, "unix:", 5) == 0)
        errand__lua_error_raise(L, "inval", self->goal->name,
                                "'%.100s' is no address: write 'host:port', "
                                "'127.0.0.1:80', '[::1]:80' or 'unix:/path'; "
                                "ports end at 65535",
                                text);
    const char *host = lua_pushlstring(L, text, (size_t)(colon - text));
    errand__lua_io_filled(L, errand_spec_resolve(&spec, host, colon + 1, self->limit_ns),
                          self->goal->name);
    return errand__lua_io_await(L, task, task->run->lease, &spec, ADDRESS,
                                self->goal->name, resolved, 0);
}

static int
verb_reach(lua_State *L)
{
    const goal *wanted = lua_touserdata(L, lua_upvalueindex(1));
    errand__lua_task *task = errand__lua_io_task(L, wanted->name);
    lua_settop(L, 2);
    const char *text = errand__lua_work_name(L, ADDRESS, wanted->name, "address",
                                             "write 'host:port' or 'unix:/path'");
    bool given = errand__lua_io_options(L, OPTIONS, wanted->name, wanted->options);
    reach *self = lua_newuserdatauv(L, sizeof *self, 0);
    memset(self, 0, sizeof *self);
    self->goal = wanted;
    self->listen.struct_size = sizeof self->listen;
    if (given)
        wanted->read(L, self);
    lua_settop(L, KEPT);
    if (self->limit_ns != 0)
        self->until = errand_runtime_now(task->run->runtime) + self->limit_ns;
    if (errand_endpoint_parse(text, &self->addresses[0]) != ERRAND_OK)
        return resolve(L, task, text);
    self->count = 1;
    return attempt(L, task);
}

/* ---- connect ---------------------------------------------------------------------------------- */

static const char *const connect_options[] = {
    "timeout",   "local",          "receive_timeout", "send_timeout", "nodelay",
    "keepalive", "receive_buffer", "send_buffer",     "linger",       NULL};

static void
read_connect(lua_State *L, reach *self)
{
    self->limit_ns = errand__lua_io_seconds(L, OPTIONS, "timeout", "connect");
    const char *local = errand__lua_io_text(L, OPTIONS, "local", "connect");
    if (local != NULL)
        self->other = errand__lua_io_endpoint(L, local, "local", "connect");
    errand__lua_stream_check(L, OPTIONS, "connect");
}

static errand_status
spec_connect(reach *self, const errand_endpoint *at, errand_spec *spec)
{
    errand_connect_config config = {
        .struct_size = sizeof config,
        .local = self->other.family != 0 ? &self->other : NULL,
        .limit_ns = self->limit_ns,
    };
    return errand_spec_connect(spec, at, &config);
}

static int
push_connect(lua_State *L, errand_completion *completion)
{
    errand_stream *stream =
        errand__lua_io_payload(L, completion, &errand_stream_type, "connect");
    errand__lua_stream_push(L, stream);
    if (lua_istable(L, OPTIONS))
        errand__lua_stream_settings(L, OPTIONS, lua_gettop(L), "connect");
    return 1;
}

/* ---- listen -------------------------------------------------------------------------------------- */

static const char *const listen_options[] = {"backlog", "shared", "mode", NULL};

static void
read_listen(lua_State *L, reach *self)
{
    self->listen.backlog =
        (uint32_t)errand__lua_io_number(L, OPTIONS, "backlog", "listen", 1 << 20);
    self->listen.mode =
        (uint32_t)errand__lua_io_number(L, OPTIONS, "mode", "listen", 0777);
    if (errand__lua_io_flag(L, OPTIONS, "shared"))
        self->listen.flags = ERRAND_LISTEN_SHARED;
}

static errand_status
spec_listen(reach *self, const errand_endpoint *at, errand_spec *spec)
{
    return errand_spec_listen(spec, at, &self->listen);
}

static int
push_listen(lua_State *L, errand_completion *completion)
{
    errand__lua_listener_push(
        L, errand__lua_io_payload(L, completion, &errand_listener_type, "listen"));
    return 1;
}

/* ---- udp ------------------------------------------------------------------------------------------ */

static const char *const udp_options[] = {"to", NULL};

static void
read_udp(lua_State *L, reach *self)
{
    const char *to = errand__lua_io_text(L, OPTIONS, "to", "udp");
    if (to != NULL)
        self->other = errand__lua_io_endpoint(L, to, "to", "udp");
}

static errand_status
spec_udp(reach *self, const errand_endpoint *at, errand_spec *spec)
{
    return errand_spec_datagram(spec, at, self->other.family != 0 ? &self->other : NULL);
}

static int
push_udp(lua_State *L, errand_completion *completion)
{
    errand__lua_datagram_push(
        L, errand__lua_io_payload(L, completion, &errand_datagram_type, "udp"));
    return 1;
}

void
errand__lua_reach_open(lua_State *L)
{
    static const goal goals[] = {
        {"connect", connect_options, read_connect, spec_connect, push_connect, true},
        {"listen", listen_options, read_listen, spec_listen, push_listen, false},
        {"udp", udp_options, read_udp, spec_udp, push_udp, false},
    };
    for (size_t i = 0; i < sizeof goals / sizeof goals[0]; i++) {
        lua_pushlightuserdata(L, (void *)(uintptr_t)&goals[i]);
        lua_pushcclosure(L, verb_reach, 1);
        lua_setfield(L, -2, goals[i].name);
    }
}
