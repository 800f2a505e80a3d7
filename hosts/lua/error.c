/* SPDX-License-Identifier: MIT */
/* error: what scripts catch.
 *
 * Design notes.  An error is a table with code, message and operation, so that scripts can
 * decide by code; __tostring gives "file:line: operation: message" for people.  The position is
 * that of the nearest Lua function, because the verb may have been called through pcall.
 * Codes are words in lower case; docs/lua.md lists them. */
#include "lua_host.h"
#include "errand/ffi.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>

/* "file:line: " of the nearest Lua function below this one, or "". */
static void
push_position(lua_State *L)
{
    lua_Debug ar;
    for (int level = 1; level < 16 && lua_getstack(L, level, &ar); level++) {
        if (lua_getinfo(L, "Sl", &ar) && ar.currentline > 0) {
            lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
            return;
        }
    }
    lua_pushliteral(L, "");
}

/* Turns the message on top into an error table. */
static void
wrap_message(lua_State *L, const char *code, const char *operation)
{
    lua_createtable(L, 0, 8);
    lua_insert(L, -2);
    lua_setfield(L, -2, "message");
    lua_pushstring(L, code);
    lua_setfield(L, -2, "code");
    lua_pushstring(L, operation);
    lua_setfield(L, -2, "operation");
    push_position(L);
    lua_setfield(L, -2, "position");
    luaL_setmetatable(L, ERRAND__LUA_ERROR);
}

/* Words of the library ("WORKER_LOST") as codes ("worker_lost"). */
static void
push_word(lua_State *L, const char *name)
{
    char word[40];
    size_t length = 0;
    for (; name[length] != '\0' && length < sizeof word - 1; length++)
        word[length] = (char)tolower((unsigned char)name[length]);
    lua_pushlstring(L, word, length);
}

void
errand__lua_error_push(lua_State *L, const char *code, const char *operation,
                       const char *format, ...)
{
    char text[512];
    va_list arguments;
    luaL_checkstack(L, 8, operation);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    lua_pushstring(L, text);
    wrap_message(L, code, operation);
}

void
errand__lua_error_raise(lua_State *L, const char *code, const char *operation,
                        const char *format, ...)
{
    char text[512];
    va_list arguments;
    luaL_checkstack(L, 8, operation);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    lua_pushstring(L, text);
    wrap_message(L, code, operation);
    lua_error(L);
    __builtin_unreachable();
}

/* Into the error at the top. */
static void
push_errno(lua_State *L, int error)
{
    const char *name = strerrorname_np(error);

    lua_pushinteger(L, error);
    lua_setfield(L, -2, "errno");
    lua_pushstring(L, name != NULL ? name : "unknown");
    lua_setfield(L, -2, "errno_name");
}

void
errand__lua_error_status(lua_State *L, errand_status status, const char *operation)
{
    const char *name = errand_status_name(status);
    int error = errno; /* of ESYSTEM */
    luaL_checkstack(L, 8, operation);
    /* The statuses of refusals all begin with an E, which is no part of the word. */
    push_word(L, status == ERRAND_ENOMEM ? "memory" : name + (name[0] == 'E'));
    if (status == ERRAND_ESYSTEM)
        lua_pushfstring(L, "the operating system refused: %s", strerrordesc_np(error));
    else
        lua_pushstring(L, errand_status_text(status));
    wrap_message(L, lua_tostring(L, -2), operation);
    if (status == ERRAND_ESYSTEM)
        push_errno(L, error);
    lua_error(L);
    __builtin_unreachable();
}

void
errand__lua_error_cancelled(lua_State *L, errand__lua_task *task, errand_reason reason,
                            const char *operation)
{
    luaL_checkstack(L, 8, operation);
    if (task != NULL && task->heard_ns == 0)
        task->heard_ns = errand__lua_watch_now();
    if (task != NULL && task->reason_text[0] != '\0')
        lua_pushfstring(L, "cancelled: %s", task->reason_text);
    else
        lua_pushfstring(L, "cancelled (%s)", errand_reason_name(reason));
    wrap_message(L, "cancelled", operation);
    push_word(L, errand_reason_name(reason));
    lua_setfield(L, -2, "reason");
    lua_error(L);
    __builtin_unreachable();
}

/* Pushes the code of a completion that is no success. */
static void
push_code(lua_State *L, const errand_completion *completion)
{
    uint32_t own = completion->identity.kind & 0xFF000000U;
    if (completion->code == ERRAND_CODE_JOB &&
        completion->identity.kind == ERRAND_KIND_CALL)
        push_word(L, errand_ffi_code_name(completion->job_code));
    else if (completion->code == ERRAND_CODE_JOB &&
             own == (ERRAND_KIND_NOTHING & 0xFF000000U))
        push_word(L, errand_operation_code_name(completion->job_code));
    else if (completion->code != ERRAND_CODE_NONE)
        push_word(L, errand_code_name(completion->code));
    else
        lua_pushliteral(L, "failed");
}

void
errand__lua_error_completion(lua_State *L, const errand_completion *completion,
                             const char *operation)
{
    luaL_checkstack(L, 8, operation);
    push_code(L, completion);
    lua_pushstring(L, completion->message != NULL ? completion->message : "");
    wrap_message(L, lua_tostring(L, -2), operation);
    if (completion->code == ERRAND_CODE_JOB) {
        lua_pushinteger(L, completion->job_code);
        lua_setfield(L, -2, "job_code");
    }
    if (completion->sys_errno != 0)
        push_errno(L, completion->sys_errno);
    if (completion->system_call != NULL) {
        lua_pushstring(L, completion->system_call);
        lua_setfield(L, -2, "system_call");
    }
    if (completion->signal_number != 0) {
        lua_pushinteger(L, completion->signal_number);
        lua_setfield(L, -2, "signal");
    }
    lua_error(L);
    __builtin_unreachable();
}

static int
error_tostring(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_getfield(L, 1, "position");
    lua_getfield(L, 1, "operation");
    lua_getfield(L, 1, "message");
    const char *position = lua_tostring(L, 2);
    const char *operation = lua_tostring(L, 3);
    const char *message = lua_tostring(L, 4);
    lua_pushfstring(L, "%s%s%s%s", position != NULL ? position : "",
                    operation != NULL ? operation : "", operation != NULL ? ": " : "",
                    message != NULL ? message : "(no message)");
    return 1;
}

void
errand__lua_error_open(lua_State *L)
{
    static const luaL_Reg methods[] = {{"__tostring", error_tostring}, {NULL, NULL}};
    luaL_newmetatable(L, ERRAND__LUA_ERROR);
    luaL_setfuncs(L, methods, 0);
    lua_pop(L, 1);
}
