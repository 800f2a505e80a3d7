/* SPDX-License-Identifier: MIT */
/* io_http: errand.http.get, post, put and request.
 *
 * Design notes.  The library's operation follows redirects where no name has to be looked up for them;
 * here all are followed, each as a request of its own, so that a name is looked up like every
 * other, by the quarantined operation.  What must not leave with them is taken out on the way:
 * credentials when the origin changes, everything when https would become http.
 * A body that comes in pieces is io_upload.c's. */
#include "io_request.h"
#include <string.h>
#include <strings.h>

enum { REDIRECTS = 10 };

static uint64_t
limit_of(const errand__lua_request *self, const errand__lua_run *run)
{
    uint64_t now = errand_runtime_now(run->runtime);
    if (self->until == 0)
        return 0;
    return self->until > now ? self->until - now : 1;
}

static const char *
method_of(const errand__lua_request *self)
{
    return self->method[0] == '\0' ? NULL : self->method;
}

/* ---- redirects ------------------------------------------------------------------------------------- */

static int
follow(lua_State *L, errand__lua_request *self, const errand_http_response *response)
{
    char host[sizeof self->host];
    uint16_t port;
    const char *to = response->location;
    bool secure = strncasecmp(to, "https:", 6) == 0;
    if (++self->redirects > self->redirects_max)
        errand__lua_error_raise(
            L, "redirects", self->name,
            "it was sent elsewhere more than %d times, last to '%.200s'",
            (int)self->redirects_max, to);
    if ((self->secure && !secure) ||
        errand_http_origin(to, host, sizeof host, &port) != ERRAND_OK)
        errand__lua_error_raise(L, "redirects", self->name,
                                "it was sent where it may not go: '%.200s'", to);
    if (secure != self->secure || port != self->port || strcasecmp(host, self->host) != 0)
        errand__lua_request_forget(L);
    if (!errand_http_repeats(method_of(self), self->flags, response->status)) {
        self->flags &= ~(uint32_t)ERRAND_HTTP_POST;
        self->method[0] = '\0';
    }
    if (self->pieces && (self->flags & ERRAND_HTTP_POST) != 0)
        errand__lua_error_raise(
            L, "redirects", self->name,
            "it was sent to '%.200s', and a body in pieces is sent once: send it there",
            to);
    lua_pushstring(L, to);
    lua_replace(L, REQUEST_URL);
    return errand__lua_request_go(L, errand__lua_io_task(L, self->name));
}

/* ---- the steps --------------------------------------------------------------------------------------- */

int
errand__lua_request_answered(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    errand__lua_request *self = lua_touserdata(L, REQUEST_KEPT);
    errand_completion *completion = errand__lua_io_completion(L, self->name);
    const errand_http_response *response =
        errand__lua_io_payload(L, completion, &errand_http_response_type, self->name);
    if (response->location != NULL && self->redirects_max > 0)
        return follow(L, self, response);
    return errand__lua_request_push(L, self, response);
}

errand_http_config
errand__lua_request_config(lua_State *L, const errand__lua_run *run,
                           const errand_addresses *addresses)
{
    const errand__lua_request *self = lua_touserdata(L, REQUEST_KEPT);
    return (errand_http_config){
        .struct_size = sizeof(errand_http_config),
        .flags = self->flags,
        .url = lua_tostring(L, REQUEST_URL),
        .headers = lua_touserdata(L, REQUEST_HEADERS),
        .addresses = addresses,
        .limit_ns = limit_of(self, run),
        .connect_limit_ns = self->connect_ns,
        .body_max = (size_t)self->body_max,
        .ca_file = lua_tostring(L, REQUEST_AUTHORITIES),
        .method = method_of(self),
    };
}

static bool
endpoint_of(const errand__lua_request *self, errand_endpoint *out_endpoint)
{
    char text[sizeof self->host + 8];
    snprintf(text, sizeof text, strchr(self->host, ':') != NULL ? "[%s]:%u" : "%s:%u",
             self->host, self->port);
    return errand_endpoint_parse(text, out_endpoint) == ERRAND_OK;
}

/* A server of this run, in a seeded order. */
static void
refuse_own(lua_State *L, const errand__lua_request *self, const errand__lua_run *run,
           const errand_addresses *addresses)
{
    errand_endpoint to;
    if (addresses == NULL && endpoint_of(self, &to))
        errand__lua_listener_refuse(L, run, &to, self->name);
    for (size_t i = 0; addresses != NULL && i < addresses->count; i++) {
        to = errand_endpoint_of(&addresses->addresses[i]);
        to.port = self->port;
        errand__lua_listener_refuse(L, run, &to, self->name);
    }
}

static int
ask(lua_State *L, errand__lua_task *task, const errand_addresses *addresses)
{
    errand__lua_request *self = lua_touserdata(L, REQUEST_KEPT);
    errand_lease *lease = errand__lua_io_lease(L, task->run, self->name);
    errand_spec spec = ERRAND_SPEC_INIT;
    refuse_own(L, self, task->run, addresses);
    if (self->pieces && (self->flags & ERRAND_HTTP_POST) != 0)
        return errand__lua_upload_begin(L, task, addresses);
    errand_http_config config = errand__lua_request_config(L, task->run, addresses);
    if ((self->flags & ERRAND_HTTP_POST) != 0)
        config.body = lua_tolstring(L, REQUEST_BODY, &config.body_size);
    errand__lua_io_filled(L, errand_spec_http(&spec, &config), self->name);
    return errand__lua_io_await(L, task, lease, &spec, REQUEST_URL, self->name,
                                errand__lua_request_answered, 0);
}

static int
resolved(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    errand__lua_request *self = lua_touserdata(L, REQUEST_KEPT);
    errand_completion *completion = errand__lua_io_completion(L, self->name);
    const errand_addresses *found =
        errand__lua_io_payload(L, completion, &errand_addresses_type, self->name);
    if (found->count == 0)
        errand__lua_error_raise(L, "not_found", self->name, "'%s' has no address",
                                self->host);
    return ask(L, errand__lua_io_task(L, self->name), found);
}

int
errand__lua_request_go(lua_State *L, errand__lua_task *task)
{
    errand__lua_request *self = lua_touserdata(L, REQUEST_KEPT);
    const char *url = lua_tostring(L, REQUEST_URL);
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_endpoint literal;
    errand_status status =
        errand_http_origin(url, self->host, sizeof self->host, &self->port);
    if (status == ERRAND_EUNSUPPORTED)
        errand__lua_error_raise(L, "unsupported", self->name,
                                "libcurl could not be loaded: install libcurl4, or "
                                "see that a descriptor and memory are left");
    if (status == ERRAND_EINVAL)
        errand__lua_error_raise(L, "inval", self->name,
                                "'%.200s' is no address of the web: write "
                                "'http://host/path' or 'https://host/path'",
                                url);
    errand__lua_io_filled(L, status, self->name);
    self->secure = strncasecmp(url, "https:", 6) == 0;
    if (endpoint_of(self, &literal))
        return ask(L, task, NULL);
    errand__lua_io_filled(
        L, errand_spec_resolve(&spec, self->host, NULL, limit_of(self, task->run)),
        self->name);
    return errand__lua_io_await(L, task, task->run->lease, &spec, REQUEST_URL, self->name,
                                resolved, 0);
}

/* ---- the verbs ------------------------------------------------------------------------------------------ */

static void
read_options(lua_State *L, errand__lua_request *self, const errand__lua_run *run)
{
    const char *name = self->name;
    uint64_t ns = errand__lua_io_seconds(L, REQUEST_OPTIONS, "timeout", name);
    self->limit_ns = ns;
    if (ns != 0)
        self->until = errand_runtime_now(run->runtime) + ns;
    self->sized = lua_getfield(L, REQUEST_OPTIONS, "size") != LUA_TNIL;
    lua_pop(L, 1);
    self->size = errand__lua_io_number(L, REQUEST_OPTIONS, "size", name, INT64_MAX);
    self->connect_ns =
        errand__lua_io_seconds(L, REQUEST_OPTIONS, "connect_timeout", name);
    self->body_max = errand__lua_io_number(L, REQUEST_OPTIONS, "max", name, INT64_MAX);
    if (lua_getfield(L, REQUEST_OPTIONS, "redirects") != LUA_TNIL)
        self->redirects_max =
            errand__lua_io_number(L, REQUEST_OPTIONS, "redirects", name, 100);
    lua_pop(L, 1);
    if (errand__lua_io_flag(L, REQUEST_OPTIONS, "stream"))
        self->flags |= ERRAND_HTTP_STREAM;
    if (errand__lua_io_flag(L, REQUEST_OPTIONS, "unchecked"))
        self->flags |= ERRAND_HTTP_UNCHECKED;
    if (errand__lua_io_text(L, REQUEST_OPTIONS, "ca_file", name) == NULL)
        lua_settop(L, REQUEST_KEPT);
}

/* The first three values are there; method "" = as flags say. */
static int
begin(lua_State *L, const char *name, const char *method, uint32_t flags)
{
    static const char *const options[] = {"headers",   "timeout",   "connect_timeout",
                                          "redirects", "max",       "stream",
                                          "ca_file",   "unchecked", "url",
                                          "body",      "size",      "method",
                                          NULL};
    errand__lua_task *task = errand__lua_io_task(L, name);
    errand__lua_work_name(L, REQUEST_URL, name, "url", "write 'http://host/path'");
    errand__lua_request *self = lua_newuserdatauv(L, sizeof *self, 0);
    memset(self, 0, sizeof *self);
    self->name = name;
    self->flags = flags;
    strcpy(self->method, method);
    self->redirects_max = REDIRECTS;
    bool given = errand__lua_io_options(L, REQUEST_OPTIONS, name, options);
    if (given)
        read_options(L, self, task->run);
    lua_settop(L, REQUEST_AUTHORITIES);
    if (given)
        lua_getfield(L, REQUEST_OPTIONS, "headers");
    else
        lua_pushnil(L);
    errand__lua_request_headers(L, name);
    if ((flags & ERRAND_HTTP_POST) == 0)
        return errand__lua_request_go(L, task);
    errand__lua_upload_check(L, self);
    return self->pieces ? errand__lua_upload_measure(L, task)
                        : errand__lua_request_go(L, task);
}

/* Of a table of everything: url and body go to their places. */
static void
spread(lua_State *L)
{
    lua_settop(L, 1);
    lua_getfield(L, 1, "url");
    lua_getfield(L, 1, "body");
    lua_rotate(L, 1, 2);
}

/* A table of everything, or url, body and a table of options. */
static void
sort_arguments(lua_State *L, const char *name, bool posts)
{
    if (lua_istable(L, 1)) {
        spread(L);
    } else {
        lua_settop(L, posts ? 3 : 2);
        if (!posts) {
            lua_pushnil(L);
            lua_insert(L, REQUEST_BODY);
        }
        for (int i = 0; i < 2 && lua_istable(L, REQUEST_OPTIONS); i++) {
            if (lua_getfield(L, REQUEST_OPTIONS, i == 0 ? "url" : "body") != LUA_TNIL)
                luaL_error(L, "%s: url and body stand before the table, or in it", name);
            lua_pop(L, 1);
        }
    }
    if (lua_istable(L, REQUEST_OPTIONS) &&
        lua_getfield(L, REQUEST_OPTIONS, "method") != LUA_TNIL)
        luaL_error(L, "%s: it has its method: use http.request{method=, url=, ...}",
                   name);
    lua_settop(L, REQUEST_OPTIONS);
    if (posts && lua_isnil(L, REQUEST_BODY))
        luaL_error(L, "%s: the body is missing: give a string, a function or a file",
                   name);
    if (!posts && !lua_isnil(L, REQUEST_BODY))
        luaL_error(L,
                   "%s: a get has no body: http.request{method=, url=, body=} may "
                   "have one",
                   name);
}

static int
verb_get(lua_State *L)
{
    sort_arguments(L, "http.get", false);
    return begin(L, "http.get", "", 0);
}

static int
verb_post(lua_State *L)
{
    sort_arguments(L, "http.post", true);
    return begin(L, "http.post", "", ERRAND_HTTP_POST);
}

static int
verb_put(lua_State *L)
{
    sort_arguments(L, "http.put", true);
    return begin(L, "http.put", "PUT", ERRAND_HTTP_POST);
}

/* Those of which a server wants to know that there is no body. */
static bool
wants_body(const char *method)
{
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
           strcmp(method, "PATCH") == 0;
}

static int
verb_request(lua_State *L)
{
    static const char name[] = "http.request";
    char method[ERRAND_HTTP_METHOD_ROOM];
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    const char *given = errand__lua_io_text(L, 1, "method", name);
    if (given == NULL)
        luaL_error(L, "%s: the method is missing: give one, such as method = 'DELETE'",
                   name);
    if (!errand_http_is_method(given))
        errand__lua_error_raise(L, "inval", name,
                                "'%.40s' is no method: write it in capitals, as 'DELETE'",
                                given);
    strcpy(method, given);
    spread(L);
    if (lua_isnil(L, REQUEST_BODY) && wants_body(method)) {
        lua_pushliteral(L, "");
        lua_replace(L, REQUEST_BODY);
    }
    bool body = !lua_isnil(L, REQUEST_BODY);
    if (body && strcmp(method, "HEAD") == 0)
        luaL_error(L, "%s: a HEAD has no body", name);
    return begin(L, name, method, body ? ERRAND_HTTP_POST : 0);
}

void
errand__lua_http_open(lua_State *L)
{
    static const luaL_Reg verbs[] = {{"get", verb_get},
                                     {"post", verb_post},
                                     {"put", verb_put},
                                     {"request", verb_request},
                                     {NULL, NULL}};
    errand__lua_upload_open(L);
    luaL_newlib(L, verbs);
    lua_setfield(L, -2, "http");
}
