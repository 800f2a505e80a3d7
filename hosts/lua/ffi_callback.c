/* SPDX-License-Identifier: MIT */
/* ffi_callback: Lua functions that foreign code calls.
 *
 * Design notes.  A callback lives until its run has ended: foreign code may keep its address, and
 * the run's table of tasks is the one thing that outlives every call.  It is found again by
 * (signature, function), so that a loop which passes the same function makes one.
 *
 * What the function raises cannot pass through foreign frames.  It is kept by the number of the
 * operation that it was called for, whose await raises it; until that has ended foreign code gets
 * default values, and no function is entered for it any more.  Where no operation is known the
 * warning function of the state gets it. */
#include "ffi.h"
#include <string.h>

typedef struct callback {
    errand__lua_run *run;
    errand_ffi_callback *callback;
} callback;

static const char callbacks_key, raised_key;

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

/* Pushes the table of what was raised, or nil. */
static int
push_raised(lua_State *L, const errand__lua_run *run)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, run);
    int type = lua_rawgetp(L, -1, &raised_key);
    lua_remove(L, -2);
    return type;
}

/* Runs inside lua_pcall: the run, the operation's number, the error. */
static int
keep_raised(lua_State *L)
{
    const errand__lua_run *run = lua_touserdata(L, 1);

    luaL_checkstack(L, 8, "callback");
    if (push_raised(L, run) == LUA_TNIL) {
        lua_newtable(L);
        lua_rawgetp(L, LUA_REGISTRYINDEX, run);
        lua_pushvalue(L, -2);
        lua_rawsetp(L, -2, &raised_key);
        lua_pop(L, 1);
    }
    lua_pushvalue(L, 2);
    lua_createtable(L, 1, 0); /* the error may be nil */
    lua_pushvalue(L, 3);
    lua_rawseti(L, -2, 1);
    lua_rawset(L, -3);
    return 0;
}

void
errand__lua_ffi_raised(lua_State *L, errand__lua_run *run,
                       const errand_identity *identity)
{
    luaL_checkstack(L, 8, "ffi");
    if (push_raised(L, run) == LUA_TTABLE) {
        lua_Integer key = (lua_Integer)identity->operation;

        if (lua_rawgeti(L, -1, key) == LUA_TTABLE) {
            lua_pushnil(L);
            lua_rawseti(L, -3, key);
            lua_rawgeti(L, -1, 1);
            lua_error(L);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static bool
has_raised(lua_State *L, const errand__lua_run *run, const errand_identity *identity)
{
    int top = lua_gettop(L);
    bool found = push_raised(L, run) == LUA_TTABLE &&
                 lua_rawgeti(L, -1, (lua_Integer)identity->operation) == LUA_TTABLE;

    lua_settop(L, top);
    return found;
}

/* What the function on top of the stack answered, into *result; raises. */
static void
read_result(lua_State *L, const char *name, errand_ffi_value *result)
{
    static const int8_t bits[] = {
        [ERRAND_FFI_I8] = 7,   [ERRAND_FFI_U8] = 8,   [ERRAND_FFI_I16] = 15,
        [ERRAND_FFI_U16] = 16, [ERRAND_FFI_I32] = 31, [ERRAND_FFI_U32] = 32,
    };
    const errand_ffi_type type = {.kind = result->kind};
    const size_t known = sizeof bits / sizeof bits[0];
    errand_ffi_value value;

    errand__lua_ffi_argument(L, lua_gettop(L), &type, name, 0, &value);
    if ((size_t)type.kind < known && bits[type.kind] != 0) {
        bool is_signed = bits[type.kind] % 8 != 0;
        int64_t most = (INT64_C(1) << bits[type.kind]) - 1;
        int64_t least = is_signed ? -most - 1 : 0;

        if (value.as.i < least || value.as.i > most)
            luaL_error(L, "%s: its result must be from %I to %I, not %I", name,
                       (LUAI_UACINT)least, (LUAI_UACINT)most, (LUAI_UACINT)value.as.i);
    }
    if (result->kind == ERRAND_FFI_F32)
        result->as.f32 = (float)value.as.f64;
    else
        result->as = value.as;
}

/* Runs inside lua_pcall: the callback, its arguments, their number, the result. */
static int
callback_enter(lua_State *L)
{
    callback *own = lua_touserdata(L, 1);
    const errand_ffi_value *arguments = lua_touserdata(L, 2);
    int count = (int)lua_tointeger(L, 3);
    errand_ffi_value *result = lua_touserdata(L, 4);
    lua_Debug ar;

    luaL_checkstack(L, count + 8, "callback");
    lua_rawgetp(L, LUA_REGISTRYINDEX, own);
    lua_pushvalue(L, 5);
    lua_getinfo(L, ">S", &ar);
    for (int i = 0; i < count; i++)
        errand__lua_ffi_push(L, &arguments[i]);
    lua_call(L, count, 1);
    if (result->kind != ERRAND_FFI_VOID) {
        lua_pushfstring(L, "%s:%d: callback", ar.short_src, ar.linedefined);
        lua_insert(L, 5);
        read_result(L, lua_tostring(L, 5), result);
    }
    return 0;
}

static void
warn_of(lua_State *L)
{
    const char *text = lua_tostring(L, -1);

    lua_warning(L, "errand: a callback raised, and its default value was returned: ", 1);
    lua_warning(L, text != NULL ? text : "(an error that is no string)", 0);
}

static void
callback_called(void *arg, const errand_ffi_value *arguments, uint32_t count,
                errand_ffi_value *out_result)
{
    callback *own = arg;
    errand__lua_run *run = own->run;
    lua_State *L = run->L;
    errand_identity asker = errand_ffi_callback_asker(own->callback);

    if (run->quiet || !lua_checkstack(L, 12) || has_raised(L, run, &asker))
        return; /* the default value */
    int top = lua_gettop(L);
    lua_pushcfunction(L, callback_enter);
    lua_pushlightuserdata(L, own);
    lua_pushlightuserdata(L, (void *)(uintptr_t)arguments);
    lua_pushinteger(L, (lua_Integer)count);
    lua_pushlightuserdata(L, out_result);
    if (lua_pcall(L, 4, 0, 0) != LUA_OK) {
        lua_pushcfunction(L, keep_raised);
        lua_pushlightuserdata(L, run);
        lua_pushinteger(L, (lua_Integer)asker.operation);
        lua_pushvalue(L, top + 1);
        if (asker.runtime == 0 || lua_pcall(L, 3, 0, 0) != LUA_OK) {
            lua_settop(L, top + 1);
            warn_of(L);
        }
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
        luaL_error(L, "%s: argument %d: a function or nil is wanted, not %s", operation,
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
