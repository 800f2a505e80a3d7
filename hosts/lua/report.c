/* SPDX-License-Identifier: MIT */
/* report: what people read about a run: completions as they come, and why it ended.
 *
 * Design notes.  Subjects are kept in the run's table by operation number, set in a protected
 * call, because a wait is registered by then and nothing may raise.  Details say the same for
 * the same seed: sizes, hashes and statuses, no times and no numbers of processes. */
#include "lua_host.h"
#include <string.h>

/* ---- completions ------------------------------------------------------------------------------ */

static int
set_subject(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, lua_touserdata(L, 1));
    lua_pushvalue(L, 3);
    lua_rawseti(L, -2, lua_tointeger(L, 2));
    return 0;
}

void
errand__lua_report_subject(lua_State *L, errand__lua_run *run,
                           const errand_identity *identity)
{
    if (lua_type(L, -1) != LUA_TSTRING)
        return;
    lua_pushcfunction(L, set_subject);
    lua_pushlightuserdata(L, run);
    lua_pushinteger(L, (lua_Integer)identity->operation);
    lua_pushvalue(L, -4);
    if (lua_pcall(L, 3, 0, 0) != LUA_OK)
        lua_pop(L, 1); /* no memory: it is reported without a subject */
}

/* One short line about a payload, the same in every run of a seed. */
static void
write_detail(const errand_payload *payload, char *out, size_t size)
{
    const errand_payload_type *type = payload->held_type;
    const void *data = payload->data;
    out[0] = '\0';
    if (type == &errand_file_bytes_type) {
        snprintf(out, size, "%zu bytes", ((const errand_file_bytes *)data)->size);
    } else if (type == &errand_file_written_type) {
        const errand_file_written *file = data;
        snprintf(out, size, "%llu bytes", (unsigned long long)file->written);
    } else if (type == &errand_dir_list_type) {
        snprintf(out, size, "%zu entries", ((const errand_dir_list *)data)->count);
    } else if (type == &errand_file_stat_type) {
        snprintf(out, size, "%s",
                 errand_file_kind_name(((const errand_file_stat *)data)->kind));
    } else if (type == &errand_hash_type) {
        const errand_hash *hash = data;
        snprintf(out, size, "%016llx, %llu bytes", (unsigned long long)hash->value,
                 (unsigned long long)hash->size);
    } else if (type == &errand_addresses_type) {
        const errand_addresses *list = data;
        snprintf(out, size, "%s%s", list->count > 0 ? list->addresses[0].text : "none",
                 list->count > 1 ? ", ..." : "");
    } else if (type == &errand_command_result_type) {
        const errand_command_result *result = data;
        bool signalled = result->signal_number != 0;
        snprintf(out, size, "%s %d", signalled ? "signal" : "status",
                 (int)(signalled ? result->signal_number : result->exit_status));
    }
}

static const char *
outcome_word(errand_outcome outcome)
{
    static const char *const words[] = {"unknown",   "completed", "failed",
                                        "cancelled", "panicked",  "crashed"};
    return words[outcome >= 1 && outcome <= 5 ? outcome : 0];
}

void
errand__lua_report_completion(void *arg, struct errand_completion *completion)
{
    errand__lua_run *run = arg;
    char detail[96];
    errand_lua_event event = {
        .name = completion->operation != NULL ? completion->operation : "",
        .subject = "",
        .outcome = outcome_word(completion->outcome),
        .detail = detail,
        .late = (completion->flags & ERRAND_LATE) != 0,
        .completion = completion,
    };
    write_detail(&completion->payload, detail, sizeof detail);
    if (completion->outcome != ERRAND_COMPLETED && completion->message != NULL)
        event.detail = completion->message;
    lua_State *L = run->L;
    lua_Integer operation = (lua_Integer)completion->identity.operation;
    bool named = false;
    if (!run->quiet) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, run);
        named = lua_rawgeti(L, -1, operation) == LUA_TSTRING;
        if (named)
            event.subject = lua_tostring(L, -1);
    }
    run->options.on_completion(run->options.held_on_completion_arg, &event);
    if (named) {
        lua_pushnil(L);
        lua_rawseti(L, -3, operation);
    }
    if (!run->quiet)
        lua_pop(L, 2);
}

/* ---- ends ----------------------------------------------------------------------------------------- */

static int
call_tostring(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    return 1;
}

/* Replaces the value on top by text for people; its own __tostring may be broken. */
static void
top_to_text(lua_State *L)
{
    if (lua_type(L, -1) == LUA_TSTRING)
        return;
    bool speaks = luaL_getmetafield(L, -1, "__tostring") != LUA_TNIL;
    if (speaks)
        lua_pop(L, 1);
    if (!speaks && !lua_isnumber(L, -1)) {
        lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, -1));
        lua_remove(L, -2);
        return;
    }
    const char *kind = luaL_typename(L, -1);
    lua_pushcfunction(L, call_tostring);
    lua_insert(L, -2);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
        lua_pushfstring(L, "(error object is a %s value with a broken __tostring)", kind);
        lua_remove(L, -2);
    }
}

void
errand__lua_report_failure(lua_State *L, errand__lua_task *task, bool nobody)
{
    int base = lua_gettop(L);
    if (nobody)
        lua_pushfstring(
            L, "task %I failed and nobody awaited it: ", (LUAI_UACINT)task->id.task);
    else
        lua_pushliteral(L, "");
    if (lua_checkstack(task->co, 1) && lua_gettop(task->co) > 0) {
        lua_pushvalue(task->co, -1);
        lua_xmove(task->co, L, 1);
        top_to_text(L);
    } else {
        lua_pushliteral(L, "(no error object)");
    }
    errand__lua_task_push(L, task);
    if (lua_isuserdata(L, -1)) {
        lua_getiuservalue(L, -1, ERRAND__LUA_VALUE_TRACEBACK);
        lua_remove(L, -2);
    }
    if (lua_type(L, -1) == LUA_TSTRING) {
        lua_pushliteral(L, "\n");
        lua_insert(L, -2);
    } else {
        lua_pop(L, 1);
    }
    lua_concat(L, lua_gettop(L) - base);
}

/* Pushes "  task 3 waits in await at script.lua:12" onto the text at the top. */
static void
add_waiting(lua_State *L, const errand__lua_task *task)
{
    lua_Debug ar;
    lua_pushfstring(L, "\n  task %I waits in %s", (LUAI_UACINT)task->id.task,
                    task->operation != NULL ? task->operation : "nothing");
    for (int level = 0; lua_getstack(task->co, level, &ar); level++) {
        if (lua_getinfo(task->co, "Sl", &ar) && ar.currentline > 0) {
            lua_pushfstring(L, " at %s:%d", ar.short_src, ar.currentline);
            lua_concat(L, 2);
            break;
        }
    }
    lua_concat(L, 2);
}

/* The waiting task with the smallest number above `after`, or NULL. */
static errand__lua_task *
next_waiting(lua_State *L, int table, uint64_t after)
{
    errand__lua_task *found = NULL;
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        errand__lua_task *task = luaL_testudata(L, -1, ERRAND__LUA_TASK);
        if (task != NULL && task->phase == ERRAND__LUA_WAITING && task->id.task > after &&
            (found == NULL || task->id.task < found->id.task))
            found = task;
    }
    return found;
}

void
errand__lua_report_stall(lua_State *L, errand__lua_run *run)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, run);
    int table = lua_gettop(L);
    uint64_t after = 0;
    lua_pushliteral(L, "every task waits, and nothing that they wait for can come:");
    for (int i = 0; i < 20; i++) {
        errand__lua_task *task = next_waiting(L, table, after);
        if (task == NULL)
            break;
        add_waiting(L, task);
        after = task->id.task;
    }
    if (next_waiting(L, table, after) != NULL) {
        lua_pushliteral(L, "\n  ...");
        lua_concat(L, 2);
    }
    lua_remove(L, table);
}
