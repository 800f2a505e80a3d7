/* SPDX-License-Identifier: MIT */
/* files: the verbs for files and for names of hosts.
 *
 * Design notes.  Each is one errand_spec_* and one payload type.  What they return is a plain
 * value or a fresh table; docs/lua.md has the fields. */
#include "lua_host.h"

static void *
read_payload(lua_State *L, errand_completion *completion, const errand_payload_type *type,
             const char *operation)
{
    void *data = NULL;
    size_t size = 0;
    if (errand_completion_read(completion, type, &data, &size) != ERRAND_OK)
        errand__lua_error_raise(L, "decode", operation, "%s", completion->message);
    return data;
}

static const char *
check_path(lua_State *L, const char *operation)
{
    return errand__lua_work_name(L, 1, operation, "path",
                                 "give one, such as 'notes.txt', or '.' for the "
                                 "current folder");
}

static void
fill_read(lua_State *L, errand_spec *spec, void *arg)
{
    (void)arg;
    const char *path = check_path(L, "read_file");
    lua_Integer max = luaL_optinteger(L, 2, 0);
    luaL_argcheck(L, max >= 0, 2, "a size must not be negative");
    errand__lua_work_filled(L, errand_spec_read_file(spec, path, (size_t)max),
                            "read_file");
}

static int
push_bytes(lua_State *L, errand_completion *completion, void *arg)
{
    (void)arg;
    errand_file_bytes *file =
        read_payload(L, completion, &errand_file_bytes_type, "read_file");
    lua_pushlstring(L, (const char *)file->bytes, file->size);
    return 1;
}

static void
fill_write(lua_State *L, errand_spec *spec, void *arg)
{
    (void)arg;
    size_t size;
    const char *path = check_path(L, "write_file");
    const char *bytes = luaL_checklstring(L, 2, &size);
    errand_status status = errand_spec_write_file(spec, path, bytes, size, 0);
    errand__lua_work_filled(L, status, "write_file");
    lua_settop(L, 1);
}

static void
fill_append(lua_State *L, errand_spec *spec, void *arg)
{
    (void)arg;
    size_t size;
    const char *path = check_path(L, "append_file");
    const char *bytes = luaL_checklstring(L, 2, &size);
    errand_status status = errand_spec_append_file(spec, path, bytes, size, 0);
    errand__lua_work_filled(L, status, "append_file");
    lua_settop(L, 1);
}

static int
push_written(lua_State *L, errand_completion *completion, void *arg)
{
    (void)arg;
    errand_file_written *file =
        read_payload(L, completion, &errand_file_written_type, "write_file");
    lua_pushinteger(L, (lua_Integer)file->written);
    return 1;
}

static void
fill_list(lua_State *L, errand_spec *spec, void *arg)
{
    (void)arg;
    const char *path = check_path(L, "list_dir");
    errand__lua_work_filled(L, errand_spec_list_dir(spec, path, 0), "list_dir");
}

static int
push_list(lua_State *L, errand_completion *completion, void *arg)
{
    (void)arg;
    errand_dir_list *list =
        read_payload(L, completion, &errand_dir_list_type, "list_dir");
    lua_createtable(L, (int)list->count, 0);
    for (size_t i = 0; i < list->count; i++) {
        lua_createtable(L, 0, 2);
        lua_pushstring(L, list->entries[i].name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, errand_file_kind_name(list->entries[i].kind));
        lua_setfield(L, -2, "kind");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static void
fill_stat(lua_State *L, errand_spec *spec, void *arg)
{
    (void)arg;
    const char *path = check_path(L, "stat");
    bool follow = lua_isnoneornil(L, 2) || lua_toboolean(L, 2);
    errand__lua_work_filled(L, errand_spec_stat_file(spec, path, follow), "stat");
}

int
errand__lua_push_stat(lua_State *L, const errand_file_stat *file)
{
    lua_createtable(L, 0, 4);
    lua_pushstring(L, errand_file_kind_name(file->kind));
    lua_setfield(L, -2, "kind");
    lua_pushinteger(L, (lua_Integer)file->size);
    lua_setfield(L, -2, "size");
    lua_pushinteger(L, file->mode);
    lua_setfield(L, -2, "mode");
    lua_pushnumber(L, (lua_Number)file->mtime_ns / 1e9);
    lua_setfield(L, -2, "mtime");
    return 1;
}

static int
push_stat(lua_State *L, errand_completion *completion, void *arg)
{
    (void)arg;
    return errand__lua_push_stat(
        L, read_payload(L, completion, &errand_file_stat_type, "stat"));
}

static void
fill_hash(lua_State *L, errand_spec *spec, void *arg)
{
    (void)arg;
    const char *path = check_path(L, "hash_file");
    errand__lua_work_filled(L, errand_spec_hash_file(spec, path), "hash_file");
}

static int
push_hash(lua_State *L, errand_completion *completion, void *arg)
{
    (void)arg;
    errand_hash *hash = read_payload(L, completion, &errand_hash_type, "hash_file");
    char digits[17];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash->value);
    lua_pushstring(L, digits);
    lua_pushinteger(L, (lua_Integer)hash->size);
    return 2;
}

static void
fill_resolve(lua_State *L, errand_spec *spec, void *arg)
{
    (void)arg;
    const char *host =
        errand__lua_work_name(L, 1, "resolve", "host", "give a name or an address");
    const char *service = NULL;
    if (!lua_isnoneornil(L, 2))
        service = errand__lua_work_name(L, 2, "resolve", "service",
                                        "give a name, a port, or nothing");
    errand_status status = errand_spec_resolve(spec, host, service, 0);
    errand__lua_work_filled(L, status, "resolve");
    lua_settop(L, 1);
}

static int
push_addresses(lua_State *L, errand_completion *completion, void *arg)
{
    (void)arg;
    errand_addresses *list =
        read_payload(L, completion, &errand_addresses_type, "resolve");
    lua_createtable(L, (int)list->count, 0);
    for (size_t i = 0; i < list->count; i++) {
        const errand_address *address = &list->addresses[i];
        lua_createtable(L, 0, 3);
        lua_pushstring(L, address->text);
        lua_setfield(L, -2, "address");
        lua_pushinteger(L, address->family);
        lua_setfield(L, -2, "family");
        if (address->port != 0) {
            lua_pushinteger(L, address->port);
            lua_setfield(L, -2, "port");
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

#define JOB(verb, fill_fn, push_fn)                                                      \
    {                                                                                    \
        .struct_size = sizeof(errand_lua_job), .name = (verb), .fill = (fill_fn),        \
        .push = (push_fn)                                                                \
    }

const errand_lua_job errand__lua_files_jobs[] = {
    JOB("read_file", fill_read, push_bytes),
    JOB("write_file", fill_write, push_written),
    JOB("append_file", fill_append, push_written),
    JOB("list_dir", fill_list, push_list),
    JOB("stat", fill_stat, push_stat),
    JOB("hash_file", fill_hash, push_hash),
    JOB("resolve", fill_resolve, push_addresses),
    JOB(NULL, NULL, NULL),
};
