/* SPDX-License-Identifier: MIT */
/* io_stream_options: what a script may set on a stream, by name; connect takes the same names.
 *
 * Design notes.  connect looks at all values before it begins, and sets them once it is connected. */
#include "io.h"

const char *const errand__lua_stream_options[] = {
    "receive_timeout", "send_timeout", "nodelay", "keepalive",
    "receive_buffer",  "send_buffer",  "linger",  NULL};

typedef struct setting {
    const char *name;
    errand_stream_option option;
    char kind; /* s: seconds as ns; n: a number; b: truth */
} setting;
static const setting settings[] = {
    {"receive_timeout", ERRAND_STREAM_RECEIVE_LIMIT, 's'},
    {"send_timeout", ERRAND_STREAM_SEND_LIMIT, 's'},
    {"nodelay", ERRAND_STREAM_NODELAY, 'b'},
    {"keepalive", ERRAND_STREAM_KEEPALIVE, 'n'},
    {"receive_buffer", ERRAND_STREAM_RECEIVE_BUFFER, 'n'},
    {"send_buffer", ERRAND_STREAM_SEND_BUFFER, 'n'},
    {"linger", ERRAND_STREAM_LINGER, 'b'},
};

/* Its value in the table of options; a limit that is false is none. */
static uint64_t
value_of(lua_State *L, int index, const setting *one, const char *operation)
{
    lua_getfield(L, index, one->name);
    bool off = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (off)
        return 0;
    if (one->kind == 's')
        return errand__lua_io_seconds(L, index, one->name, operation);
    if (one->kind == 'b')
        return errand__lua_io_flag(L, index, one->name);
    return errand__lua_io_number(L, index, one->name, operation, 1 << 30);
}

void
errand__lua_stream_check(lua_State *L, int index, const char *operation)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        value_of(L, index, &settings[i], operation);
}

void
errand__lua_stream_settings(lua_State *L, int index, int object, const char *operation)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        bool given = lua_getfield(L, index, settings[i].name) != LUA_TNIL;
        lua_pop(L, 1);
        if (!given)
            continue;
        uint64_t value = value_of(L, index, &settings[i], operation);
        errand_status status =
            errand__lua_stream_put(L, object, settings[i].option, value);
        if (status != ERRAND_OK)
            errand__lua_error_raise(L, status == ERRAND_EINVAL ? "inval" : "system",
                                    operation, "%s cannot be set so on this stream",
                                    settings[i].name);
    }
}
