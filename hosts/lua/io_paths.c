/* SPDX-License-Identifier: MIT */
/* io_paths: verbs that change names: rename, remove_file, remove_dir, make_dir, copy_file.
 *
 * Design notes.  They go to the run's reactor.  Each takes a table of options last, with a domain,
 * as the verbs on the pool do. */
#include "io.h"

/* The options at index, if there are any: everything up to NULL is known besides domain. */
static bool
read_options(lua_State *L, int index, const char *operation, const char *const *names,
             errand__lua_work_option *out_option)
{
    *out_option = (errand__lua_work_option){.domain = 0};
    lua_settop(L, index);
    if (!errand__lua_io_options(L, index, operation, names))
        return false;
    errand__lua_work_options(L, index, operation, out_option);
    return true;
}

static const char *const domain_only[] = {"domain", NULL};

static const char *
path_of(lua_State *L, int index, const char *operation)
{
    return errand__lua_work_name(L, index, operation, "path",
                                 "give one, such as 'notes.txt'");
}

static void
fill_rename(lua_State *L, errand_spec *spec)
{
    static const char *const names[] = {"domain", "replace", NULL};
    errand__lua_work_option option;
    const char *from = path_of(L, 1, "rename"), *to = path_of(L, 2, "rename");
    bool replace = true;
    if (read_options(L, 3, "rename", names, &option)) {
        replace = lua_getfield(L, 3, "replace") == LUA_TNIL || lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    errand__lua_io_filled(L, errand_spec_rename(spec, from, to, replace), "rename");
    spec->domain = option.domain;
}

static void
fill_remove(lua_State *L, errand_spec *spec, const char *operation, bool directory)
{
    errand__lua_work_option option;
    const char *path = path_of(L, 1, operation);
    read_options(L, 2, operation, domain_only, &option);
    errand__lua_io_filled(L, errand_spec_unlink(spec, path, directory), operation);
    spec->domain = option.domain;
}

static void
fill_remove_file(lua_State *L, errand_spec *spec)
{
    fill_remove(L, spec, "remove_file", false);
}

static void
fill_remove_dir(lua_State *L, errand_spec *spec)
{
    fill_remove(L, spec, "remove_dir", true);
}

static void
fill_make_dir(lua_State *L, errand_spec *spec)
{
    static const char *const names[] = {"domain", "permissions", NULL};
    errand__lua_work_option option;
    const char *path = path_of(L, 1, "make_dir");
    uint32_t permissions = 0;
    if (read_options(L, 2, "make_dir", names, &option))
        permissions =
            (uint32_t)errand__lua_io_number(L, 2, "permissions", "make_dir", 07777);
    errand__lua_io_filled(L, errand_spec_mkdir(spec, path, permissions), "make_dir");
    spec->domain = option.domain;
}

static void
fill_copy(lua_State *L, errand_spec *spec)
{
    errand__lua_work_option option;
    const char *from = path_of(L, 1, "copy_file"), *to = path_of(L, 2, "copy_file");
    read_options(L, 3, "copy_file", domain_only, &option);
    errand__lua_io_filled(L, errand_spec_copy(spec, from, to), "copy_file");
    spec->domain = option.domain;
}

static int
push_copy(lua_State *L, errand_completion *completion)
{
    const errand_file_written *done =
        errand__lua_io_payload(L, completion, &errand_file_written_type, "copy_file");
    lua_pushinteger(L, (lua_Integer)done->written);
    return 1;
}

void
errand__lua_paths_open(lua_State *L)
{
    static const errand__lua_io_verb verbs[] = {
        {"rename", fill_rename, NULL, NULL},
        {"remove_file", fill_remove_file, NULL, NULL},
        {"remove_dir", fill_remove_dir, NULL, NULL},
        {"make_dir", fill_make_dir, NULL, NULL},
        {"copy_file", fill_copy, push_copy, NULL},
        {NULL, NULL, NULL, NULL},
    };
    errand__lua_io_verbs(L, verbs);
}
