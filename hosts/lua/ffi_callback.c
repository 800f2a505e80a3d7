/* SPDX-License-Identifier: MIT */
/* ffi_callback: Lua functions that foreign code calls.
 *
 * Design notes.  A callback lives until its run has ended: foreign code may keep its address, and
 * the run's table of tasks is the one thing that outlives every call.  It is found again by
 * (signature, function), so that a loop which passes the same function makes one.  What the
 * function raises cannot pass through foreign frames: it is kept, the foreign code gets the
 * default value, and the error is printed by the warning function of the state. */
#include "ffi.h"
#include <string.h>

typedef struct callback {
    errand__lua_run *run;
    errand_ffi_callback *callback;
} callback;

static const char callbacks_key;

/* In the run's finaliser of the table: destroyed with it.  One that is busy stays: its code may
 * still be called. */
static int
callback_collect(lua_State *L)
{
    callback *own = lua_touserdata(L, 1);

    if (own->callback != NULL) {
        errand_status status = errand_ffi_callback_destroy(&own->callback);
        (void)
            status; /* EBUSY: the call that has it outlived the run, and enters nobody */
    }
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, own);
    return 0;
}

/* Runs inside lua_pcall: the callback, its arguments, their number, the result. */
static int
callback_enter(lua_State *L)
{
    callback *own = lua_touserdata(L, 1);
    const errand_ffi_value *arguments = lua_touserdata(L, 2);
    int count = (int)lua_tointeger(L, 3);
    errand_ffi_value *result = lua_touserdata(L, 4);

    luaL_checkstack(L, count + 8, "callback");
    lua_rawgetp(L, LUA_REGISTRYINDEX, own);
    for (int i = 0; i < count; i++)
        errand__lua_ffi_push(L, &arguments[i]);
    lua_call(L, count, 1);
    if (result->kind != ERRAND_FFI_VOID) {
        errand_ffi_type type = {.kind = result->kind};
        errand_ffi_value value;

        errand__lua_ffi_argument(L, lua_gettop(L), &type, "callback", 0, &value);
        if (result->kind >= ERRAND_FFI_U8 && value.kind == ERRAND_FFI_I64)
            value.as.u = (uint64_t)value.as.i;
        if (result->kind == ERRAND_FFI_F32)
            result->as.f32 = (float)value.as.f64;
        else
            result->as = value.as;
    }
    return 0;
}

static void
callback_called(void *arg, const errand_ffi_value *arguments, uint32_t count,
                errand_ffi_value *out_result)
{
    callback *own = arg;
    errand__lua_run *run = own->run;
    lua_State *L = run->L;

    if (run->quiet || !lua_checkstack(L, 8))
        return; /* the default value */
    int top = lua_gettop(L);
    lua_pushcfunction(L, callback_enter);
    lua_pushlightuserdata(L, own);
    lua_pushlightuserdata(L, (void *)(uintptr_t)arguments);
    lua_pushinteger(L, (lua_Integer)count);
    lua_pushlightuserdata(L, out_result);
    if (lua_pcall(L, 4, 0, 0) != LUA_OK) {
        const char *text = lua_tostring(L, -1);

        lua_warning(L,
                    "errand: a callback raised, and its default value was returned: ", 1);
        lua_warning(L, text != NULL ? text : "(an error that is no string)", 0);
    }
    lua_settop(L, top);
}

/* Writes a type as errand/ffi.h wants it. */
static void
add_type(luaL_Buffer *text, const errand_ffi_type *type)
{
    static const char *const words[] = {
        [ERRAND_FFI_VOID] = "void",       [ERRAND_FFI_BOOL] = "bool",
        [ERRAND_FFI_I8] = "i8",           [ERRAND_FFI_U8] = "u8",
        [ERRAND_FFI_I16] = "i16",         [ERRAND_FFI_U16] = "u16",
        [ERRAND_FFI_I32] = "i32",         [ERRAND_FFI_U32] = "u32",
        [ERRAND_FFI_I64] = "i64",         [ERRAND_FFI_U64] = "u64",
        [ERRAND_FFI_F32] = "f32",         [ERRAND_FFI_F64] = "f64",
        [ERRAND_FFI_POINTER] = "pointer", [ERRAND_FFI_STRING] = "string",
    };
    size_t known = sizeof words / sizeof words[0];

    luaL_addstring(text, (size_t)type->kind < known && words[type->kind] != NULL
                             ? words[type->kind]
                             : "pointer");
}

static void
push_signature(lua_State *L, const errand_ffi_type *type)
{
    luaL_Buffer text;

    luaL_buffinit(L, &text);
    add_type(&text, &type->items[0]);
    luaL_addchar(&text, '(');
    for (uint32_t i = 1; i <= type->count; i++) {
        if (i > 1)
            luaL_addstring(&text, ", ");
        add_type(&text, &type->items[i]);
    }
    luaL_addchar(&text, ')');
    luaL_pushresult(&text);
}

errand_ffi_callback *
errand__lua_ffi_callback(lua_State *L, int index, const errand_ffi_type *type,
                         const char *operation, int number)
{
    errand__lua_run *run = errand__lua_run_need(L, operation);
    errand_ffi_error error = {0};

    if (!lua_isfunction(L, index))
        errand__lua_error_raise(L, "inval", operation,
                                "argument %d: a function or nil is wanted, not %s",
                                number, luaL_typename(L, index));
    luaL_checkstack(L, 10, operation);
    lua_rawgetp(L, LUA_REGISTRYINDEX, run);
    if (lua_rawgetp(L, -1, &callbacks_key) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, -3, &callbacks_key);
    }
    push_signature(L, type);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -5);
    }
    lua_pushvalue(L, index);
    lua_rawget(L, -2);
    callback *own = lua_touserdata(L, -1);
    if (own == NULL) {
        lua_pop(L, 1);
        own = lua_newuserdatauv(L, sizeof *own, 0);
        *own = (callback){run, NULL};
        errand_ffi_callback_config config = {
            .struct_size = sizeof config,
            .signature = lua_tostring(L, -3),
            .handler = callback_called,
            .held_arg = own,
        };
        errand_status status =
            errand_ffi_callback_create(run->runtime, &config, &own->callback, &error);
        if (status != ERRAND_OK)
            errand__lua_error_raise(L, "inval", operation, "argument %d: %s", number,
                                    error.text[0] != '\0' ? error.text
                                                          : errand_status_text(status));
        lua_createtable(L, 0, 1);
        lua_pushcfunction(L, callback_collect);
        lua_setfield(L, -2, "__gc");
        lua_setmetatable(L, -2);
        lua_pushvalue(L, index);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4); /* function -> userdata */
        lua_pushvalue(L, index);
        lua_rawsetp(L, LUA_REGISTRYINDEX, own); /* and back, for the call */
    }
    errand_ffi_callback *found = own->callback;
    lua_pop(L, 5);
    return found;
}
