/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_LUA_FFI_H
#define ERRAND_LUA_FFI_H
/* ffi: what the files about foreign calls share. */
#include "lua_host.h"
#include "errand/ffi.h"
#include "errand/sandbox.h"

#define ERRAND__LUA_LIBRARY  "errand.library"
#define ERRAND__LUA_FUNCTION "errand.function"
#define ERRAND__LUA_BUFFER   "errand.buffer"

/* What errand.ffi.open was asked for. */
typedef struct errand__lua_isolation {
    bool process;
    errand_sandbox_policy policy;
    errand_sandbox_config sandbox;
    uint64_t
        deadline_ns; /* of each call; 0 = none in threads, the policy's in processes */
} errand__lua_isolation;

/* ---- ffi_options.c ---------------------------------------------------------------------- */
/* Reads the table at index, or nothing; raises.  What it points to is kept by the user value of
 * the userdata at `keeper`, a table. */
void errand__lua_ffi_options(lua_State *L, int index, int keeper,
                             errand__lua_isolation *out_isolation);

/* What the library says of a policy, in the words of those options. */
void errand__lua_ffi_reword(const char *text, char *out, size_t size);

/* ---- ffi_values.c ------------------------------------------------------------------------ */
/* Argument at index for a parameter; what it needs is pushed, and has to stay until the spec is
 * made.  number counts arguments for messages, 0 = what a callback answers; raises. */
void errand__lua_ffi_argument(lua_State *L, int index, const errand_ffi_type *type,
                              const char *operation, int number,
                              errand_ffi_value *out_value);
/* Pushes one value: what a call gave back, or what a callback is given. */
void errand__lua_ffi_push(lua_State *L, const errand_ffi_value *value);

/* ---- ffi.c, ffi_buffer.c ------------------------------------------------------------------ */
/* Makes the metatable of a userdata, which is its own index. */
void errand__lua_ffi_type(lua_State *L, const char *name, const luaL_Reg *methods);
int errand__lua_ffi_buffer(lua_State *L); /* errand.ffi.buffer */
extern const luaL_Reg errand__lua_ffi_buffer_methods[];

/* ---- ffi_callback.c ----------------------------------------------------------------------- */
/* The callback of a Lua function for a parameter; made at first use, kept until the run ends.
 * Raises. */
errand_ffi_callback *errand__lua_ffi_callback(lua_State *L, int index,
                                              const errand_ffi_type *type,
                                              const char *operation, int number);
/* Raises what a Lua function raised that this call had foreign code call, if one did. */
void errand__lua_ffi_raised(lua_State *L, errand__lua_run *run,
                            const errand_identity *identity);
#endif
