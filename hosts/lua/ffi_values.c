/* SPDX-License-Identifier: MIT */
/* ffi_values: Lua values as arguments of foreign functions, and back.
 *
 * Design notes.  The parameter's type decides, not the Lua value: "12" for an integer is refused,
 * 12 for a float is not.  Ranges are the library's business (errand_spec_call), so that each host
 * says the same.  Addresses are integers in Lua: they are names of something inside the process
 * that ran the call, and good for nothing but the next call.  An unsigned number above 2^63 - 1
 * is the negative integer of the same bits, as everywhere in Lua. */
#include "ffi.h"
#include <string.h>

static const char *
kind_text(errand_ffi_kind kind)
{
    switch (kind) {
    case ERRAND_FFI_BOOL:
        return "a boolean";
    case ERRAND_FFI_F32:
    case ERRAND_FFI_F64:
        return "a number";
    case ERRAND_FFI_POINTER:
        return "an address (an integer) or nil";
    case ERRAND_FFI_STRING:
    case ERRAND_FFI_BYTES:
        return "a string or nil";
    case ERRAND_FFI_OUT:
        return "a number of bytes, a buffer or nil";
    case ERRAND_FFI_INOUT:
        return "a string, a buffer or nil";
    case ERRAND_FFI_STRUCT:
    case ERRAND_FFI_ARRAY:
        return "a table of values";
    case ERRAND_FFI_CALLBACK:
        return "a function or nil";
    default:
        return "an integer";
    }
}

/* Above 2^53 none has one; infinities and NaN have none either. */
static bool
has_fraction(lua_Number value)
{
    return value > -0x1p53 && value < 0x1p53 && (lua_Number)(int64_t)value != value;
}

static bool
takes_numbers(errand_ffi_kind kind)
{
    switch (kind) {
    case ERRAND_FFI_BOOL:
    case ERRAND_FFI_STRING:
    case ERRAND_FFI_BYTES:
    case ERRAND_FFI_INOUT:
    case ERRAND_FFI_STRUCT:
    case ERRAND_FFI_ARRAY:
    case ERRAND_FFI_CALLBACK:
        return false;
    default:
        return true;
    }
}

static int
refuse(lua_State *L, int index, errand_ffi_kind kind, const char *operation, int number)
{
    const char *wanted = kind_text(kind), *given = luaL_typename(L, index);

    /* Another number was meant: its kind alone would not tell why this one does not do. */
    if (lua_type(L, index) == LUA_TNUMBER && takes_numbers(kind)) {
        if (has_fraction(lua_tonumber(L, index)) && kind != ERRAND_FFI_POINTER &&
            kind != ERRAND_FFI_OUT)
            wanted = "a number without a fraction";
        given = luaL_tolstring(L, index, NULL);
    }
    if (number == 0)
        return luaL_error(L, "%s: %s is wanted as its result, not %s", operation, wanted,
                          given);
    return luaL_error(L, "%s: argument %d: %s is wanted, not %s", operation, number,
                      wanted, given);
}

/* Fields of a structure, elements of an array: a Lua list. */
static void
read_items(lua_State *L, int index, const errand_ffi_type *type, const char *operation,
           int number, errand_ffi_value *out_value)
{
    size_t count = lua_rawlen(L, index);

    if (count != type->count)
        luaL_error(L, "%s: argument %d: %d values are wanted, the table has %d",
                   operation, number, (int)type->count, (int)count);
    luaL_checkstack(L, 8, operation);
    errand_ffi_value *items = lua_newuserdatauv(L, (count + 1) * sizeof *items, 0);
    for (size_t i = 0; i < count; i++) {
        const errand_ffi_type *item =
            type->kind == ERRAND_FFI_STRUCT ? &type->items[i] : type->items;

        lua_rawgeti(L, index, (lua_Integer)i + 1);
        errand__lua_ffi_argument(L, lua_gettop(L), item, operation, number, &items[i]);
    }
    *out_value = type->kind == ERRAND_FFI_STRUCT ? errand_ffi_struct(items, count)
                                                 : errand_ffi_array(items, count);
}

static bool
read_number(lua_State *L, int index, const errand_ffi_type *type,
            errand_ffi_value *out_value)
{
    bool is_float = type->kind == ERRAND_FFI_F32 || type->kind == ERRAND_FFI_F64;
    int exact = 0;
    lua_Integer integer = lua_tointegerx(L, index, &exact);

    if (lua_type(L, index) != LUA_TNUMBER || (!is_float && !exact))
        return false;
    if (is_float)
        *out_value = errand_ffi_f64(lua_tonumber(L, index));
    else if (type->kind == ERRAND_FFI_U64 || type->kind == ERRAND_FFI_POINTER)
        *out_value = errand_ffi_u((uint64_t)integer);
    else
        *out_value = errand_ffi_i(integer);
    if (type->kind == ERRAND_FFI_POINTER)
        *out_value = errand_ffi_pointer((const void *)(uintptr_t)integer);
    return true;
}

/* Memory that the function reads or fills. */
static bool
read_memory(lua_State *L, int index, const errand_ffi_type *type, const char *operation,
            int number, errand_ffi_value *out_value)
{
    errand_ffi_buffer **buffer = luaL_testudata(L, index, ERRAND__LUA_BUFFER);
    size_t size = 0;

    if (buffer != NULL && *buffer != NULL && type->kind != ERRAND_FFI_STRING) {
        *out_value = errand_ffi_buffer_value(*buffer);
        return true;
    }
    if (type->kind == ERRAND_FFI_OUT) {
        if (!lua_isinteger(L, index) || lua_tointeger(L, index) < 0)
            return false;
        *out_value = errand_ffi_out((size_t)lua_tointeger(L, index));
        return true;
    }
    if (lua_type(L, index) != LUA_TSTRING)
        return false;
    const char *bytes = lua_tolstring(L, index, &size);
    if (type->kind == ERRAND_FFI_STRING && strlen(bytes) != size)
        errand__lua_error_raise(L, "inval", operation,
                                "argument %d: a string ends at its first zero byte, and "
                                "this one goes on: describe it as bytes",
                                number);
    if (type->kind == ERRAND_FFI_STRING)
        *out_value = errand_ffi_string(bytes);
    else if (type->kind == ERRAND_FFI_BYTES)
        *out_value = errand_ffi_bytes(bytes, size);
    else
        *out_value = errand_ffi_inout(bytes, size);
    return true;
}

void
errand__lua_ffi_argument(lua_State *L, int index, const errand_ffi_type *type,
                         const char *operation, int number, errand_ffi_value *out_value)
{
    bool good;

    switch (type->kind) {
    case ERRAND_FFI_BOOL:
        good = lua_isboolean(L, index);
        *out_value = errand_ffi_bool(lua_toboolean(L, index));
        break;
    case ERRAND_FFI_STRUCT:
    case ERRAND_FFI_ARRAY:
        good = lua_istable(L, index);
        if (good)
            read_items(L, index, type, operation, number, out_value);
        break;
    case ERRAND_FFI_POINTER:
    case ERRAND_FFI_STRING:
    case ERRAND_FFI_BYTES:
    case ERRAND_FFI_OUT:
    case ERRAND_FFI_INOUT:
    case ERRAND_FFI_CALLBACK:
        good = true;
        if (lua_isnil(L, index))
            *out_value = errand_ffi_pointer(NULL);
        else if (type->kind == ERRAND_FFI_POINTER)
            good = read_number(L, index, type, out_value);
        else if (type->kind == ERRAND_FFI_CALLBACK)
            *out_value = errand_ffi_callback_value(
                errand__lua_ffi_callback(L, index, type, operation, number));
        else
            good = read_memory(L, index, type, operation, number, out_value);
        break;
    default:
        good = read_number(L, index, type, out_value);
        break;
    }
    if (!good)
        refuse(L, index, type->kind, operation, number);
}

void
errand__lua_ffi_push(lua_State *L, const errand_ffi_value *value)
{
    luaL_checkstack(L, 4, "ffi");
    switch (value->kind) {
    case ERRAND_FFI_BOOL:
        lua_pushboolean(L, value->as.u != 0);
        break;
    case ERRAND_FFI_I8:
    case ERRAND_FFI_I16:
    case ERRAND_FFI_I32:
    case ERRAND_FFI_I64:
        lua_pushinteger(L, value->as.i);
        break;
    case ERRAND_FFI_U8:
    case ERRAND_FFI_U16:
    case ERRAND_FFI_U32:
    case ERRAND_FFI_U64:
        lua_pushinteger(L, (lua_Integer)value->as.u);
        break;
    case ERRAND_FFI_F32:
        lua_pushnumber(L, (lua_Number)value->as.f32);
        break;
    case ERRAND_FFI_F64:
        lua_pushnumber(L, value->as.f64);
        break;
    case ERRAND_FFI_STRING:
        lua_pushstring(L, value->as.string); /* NULL: nil */
        break;
    case ERRAND_FFI_POINTER:
        if (value->as.pointer == NULL)
            lua_pushnil(L);
        else
            lua_pushinteger(L, (lua_Integer)(uintptr_t)value->as.pointer);
        break;
    case ERRAND_FFI_STRUCT:
    case ERRAND_FFI_ARRAY:
        lua_createtable(L, (int)value->size, 0);
        for (size_t i = 0; i < value->size; i++) {
            errand__lua_ffi_push(L, &value->as.items[i]);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        break;
    default:
        lua_pushnil(L);
        break;
    }
}
