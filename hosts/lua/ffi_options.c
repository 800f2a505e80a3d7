/* SPDX-License-Identifier: MIT */
/* ffi_options: errand.ffi.open(name, {isolation=, promise=, ...}).
 *
 * Design notes.  A field that nobody knows is an error: a slip of the pen must not run foreign
 * code with less confinement than meant.  Fields of the sandbox without isolation = "process"
 * are refused for the same reason. */
#include "ffi.h"
#include <stdio.h>
#include <string.h>

typedef errand_status words_parse(const char *text, uint32_t *out_bits, char *out_text,
                                  size_t size);

/* The value on top is words between blanks, commas or bars. */
static uint32_t
read_words(lua_State *L, const char *field, words_parse *parse)
{
    char why[256];
    uint32_t bits = 0;

    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "ffi.open: %s must be a string of words, not %s", field,
                   luaL_typename(L, -1));
    if (parse(lua_tostring(L, -1), &bits, why, sizeof why) != ERRAND_OK)
        luaL_error(L, "ffi.open: %s: %s", field, why);
    return bits;
}

static uint64_t
read_seconds(lua_State *L, const char *field)
{
    lua_Number seconds = lua_tonumber(L, -1);

    if (lua_type(L, -1) != LUA_TNUMBER || !(seconds > 0) || seconds >= 9e9)
        luaL_error(L, "ffi.open: %s must be a number of seconds above 0", field);
    return (uint64_t)(seconds * 1e9 + 0.5);
}

static uint64_t
read_count(lua_State *L, const char *field, lua_Integer most)
{
    lua_Integer number = lua_tointeger(L, -1);

    if (!lua_isinteger(L, -1) || number < 1 || number > most)
        luaL_error(L, "ffi.open: %s must be an integer from 1 to %I", field, most);
    return (uint64_t)number;
}

/* paths = {["/etc"] = "r", ["/tmp/out"] = "rw"}, kept in the table at `kept`. */
static void
read_paths(lua_State *L, int kept, errand_sandbox_policy *policy)
{
    int paths = lua_gettop(L);
    size_t count = 0;

    luaL_argcheck(L, lua_istable(L, paths), 2, "paths must be a table of path = rights");
    for (lua_pushnil(L); lua_next(L, paths) != 0; lua_pop(L, 1))
        count++;
    errand_sandbox_path *all = lua_newuserdatauv(L, (count + 1) * sizeof *all, 0);
    lua_setfield(L, kept, "path_array");
    count = 0;
    for (lua_pushnil(L); lua_next(L, paths) != 0; lua_pop(L, 1)) {
        const char *rights = lua_tostring(L, -1);

        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING ||
            rights[strspn(rights, "rwx")] != '\0' || rights[0] == '\0')
            luaL_error(L,
                       "ffi.open: paths must be {[path] = rights}, rights of r, w and x");
        all[count].path = lua_tostring(L, -2); /* kept with the table of options */
        all[count].rights = (strchr(rights, 'r') != NULL ? ERRAND_PATH_READ : 0) |
                            (strchr(rights, 'w') != NULL ? ERRAND_PATH_WRITE : 0) |
                            (strchr(rights, 'x') != NULL ? ERRAND_PATH_EXECUTE : 0);
        lua_pushvalue(L, -2);
        lua_rawseti(L, kept, (lua_Integer)++count);
    }
    policy->paths = all;
    policy->path_count = count;
}

static void
read_ports(lua_State *L, int kept, errand_sandbox_policy *policy)
{
    int ports = lua_gettop(L);

    luaL_argcheck(L, lua_istable(L, ports), 2, "tcp_ports must be a list of numbers");
    size_t count = lua_rawlen(L, ports);
    uint16_t *all = lua_newuserdatauv(L, (count + 1) * sizeof *all, 0);
    lua_setfield(L, kept, "port_array");
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, ports, (lua_Integer)i + 1);
        all[i] = (uint16_t)read_count(L, "each of tcp_ports", 65535);
        lua_pop(L, 1);
    }
    policy->tcp_ports = all;
    policy->port_count = count;
}

/* The fields that a sandbox alone has; the value is on top.  False: there is no such field. */
static bool
read_sandbox(lua_State *L, const char *field, int kept, errand__lua_isolation *out)
{
    static const lua_Integer gib = 1 << 30;
    errand_sandbox_policy *policy = &out->policy;

    if (strcmp(field, "promise") == 0)
        policy->promises = read_words(L, field, errand_promises_parse);
    else if (strcmp(field, "want") == 0)
        policy->want_layers = read_words(L, field, errand_layers_parse);
    else if (strcmp(field, "require") == 0)
        policy->require_layers = read_words(L, field, errand_layers_parse);
    else if (strcmp(field, "paths") == 0)
        read_paths(L, kept, policy);
    else if (strcmp(field, "tcp_ports") == 0)
        read_ports(L, kept, policy);
    else if (strcmp(field, "memory") == 0)
        policy->memory_bytes = read_count(L, field, gib * 1024);
    else if (strcmp(field, "stack") == 0)
        policy->stack_bytes = read_count(L, field, gib);
    else if (strcmp(field, "input_max") == 0)
        policy->in_bytes = read_count(L, field, gib);
    else if (strcmp(field, "output_max") == 0)
        policy->out_bytes = read_count(L, field, gib);
    else if (strcmp(field, "file_max") == 0)
        policy->file_bytes = read_count(L, field, gib * 1024);
    else if (strcmp(field, "cpu") == 0)
        policy->cpu_seconds = (uint32_t)read_count(L, field, 1000000);
    else if (strcmp(field, "descriptors") == 0)
        policy->descriptors = (uint32_t)read_count(L, field, 65536);
    else if (strcmp(field, "reuse") == 0)
        policy->reuse = (uint32_t)read_count(L, field, 1 << 30);
    else if (strcmp(field, "crash_limit") == 0)
        out->sandbox.crash_limit = (uint32_t)read_count(L, field, 1 << 30);
    else if (strcmp(field, "limit") == 0)
        policy->deadline_ns = read_seconds(L, field);
    else if (strcmp(field, "grace") == 0)
        policy->grace_ns = read_seconds(L, field);
    else if (strcmp(field, "workers") == 0)
        out->sandbox.workers_max = (uint32_t)read_count(L, field, 256);
    else if (strcmp(field, "worker_path") == 0)
        out->sandbox.worker_path = luaL_checkstring(L, -1);
    else if (strcmp(field, "report_denied") == 0)
        policy->on_deny = lua_toboolean(L, -1) ? ERRAND_DENY_REPORT : ERRAND_DENY_KILL;
    else
        return false;
    return true;
}

/* Texts of the library name fields and values of C; a script has other words for them. */
static void
reword(const char *const (*words)[2], const char *text, char *out, size_t size)
{
    size_t used = 0;
    while (*text != '\0' && used + 1 < size) {
        const char *const(*word)[2] = words;
        while ((*word)[0] != NULL && strncmp(text, (*word)[0], strlen((*word)[0])) != 0)
            word++;
        if ((*word)[0] == NULL) {
            out[used++] = *text++;
            continue;
        }
        int length = snprintf(out + used, size - used, "%s", (*word)[1]);
        used += (size_t)length < size - used ? (size_t)length : size - used - 1;
        text += strlen((*word)[0]);
    }
    out[used] = '\0';
}

void
errand__lua_ffi_reword(const char *text, char *out, size_t size)
{
    static const char *const words[][2] = {
        {"memory_bytes", "memory"},
        {"stack_bytes", "stack"},
        {"shared_in_bytes", "shared_in_bytes"},
        {"in_bytes", "input_max"},
        {"out_bytes", "output_max"},
        {"file_bytes", "file_max"},
        {"cpu_seconds", "cpu"},
        {"want_layers", "want"},
        {"require_layers", "require"},
        {"on_deny", "report_denied"},
        {"ERRAND_PROMISE_RPATH", "promise = 'rpath'"},
        {"ERRAND_PROMISE_WPATH", "promise = 'wpath'"},
        {"ERRAND_PROMISE_INET", "promise = 'inet'"},
        {"ERRAND_PROMISE_THREAD", "promise = 'thread'"},
        {"ERRAND_PROMISE_CALLBACK", "promise = 'callback'"},
        {"ERRAND_PATH_READ", "the right r"},
        {"ERRAND_PATH_WRITE", "the right w"},
        {"NET_NS", "net_ns"},
        {NULL, NULL}};
    reword(words, text, out, size);
}

void
errand__lua_ffi_options(lua_State *L, int index, int keeper,
                        errand__lua_isolation *out_isolation)
{
    const char *first = NULL; /* of the sandbox's fields */

    memset(out_isolation, 0, sizeof *out_isolation);
    out_isolation->policy.struct_size = sizeof(errand_sandbox_policy);
    out_isolation->sandbox.struct_size = sizeof(errand_sandbox_config);
    if (lua_isnoneornil(L, index))
        return;
    luaL_checktype(L, index, LUA_TTABLE);
    lua_newtable(L);
    int kept = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_settop(L, kept + 1)) {
        if (lua_type(L, kept + 1) != LUA_TSTRING)
            luaL_error(L, "ffi.open: options have names");
        const char *field = lua_tostring(L, kept + 1);

        if (strcmp(field, "isolation") == 0) {
            const char *word = lua_tostring(L, -1);
            out_isolation->process = word != NULL && strcmp(word, "process") == 0;
            if (word == NULL || (!out_isolation->process && strcmp(word, "thread") != 0))
                luaL_error(L, "ffi.open: isolation must be 'thread' or 'process'");
        } else if (strcmp(field, "deadline") == 0) {
            out_isolation->deadline_ns = read_seconds(L, field);
        } else if (read_sandbox(L, field, kept, out_isolation)) {
            first = field;
        } else {
            luaL_error(
                L,
                "ffi.open: no option is called '%s': use isolation, deadline and, "
                "with isolation = 'process', promise, paths, tcp_ports, want, "
                "require, memory, stack, input_max, output_max, file_max, cpu, "
                "descriptors, reuse, crash_limit, grace, limit, workers, worker_path, "
                "report_denied",
                field);
        }
        if (lua_type(L, -1) == LUA_TSTRING) {
            lua_pushvalue(L, -1);
            lua_setfield(L, kept, field); /* worker_path is pointed to */
        }
    }
    if (first != NULL && !out_isolation->process)
        luaL_error(L,
                   "ffi.open: %s is for isolation = 'process': a thread cannot confine",
                   first);
    lua_pushvalue(L, kept);
    lua_setiuservalue(L, keeper, 1);
    lua_settop(L, kept - 1);
}
