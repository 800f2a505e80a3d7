/* SPDX-License-Identifier: MIT */
/* report: what people read about a run: completions as they come, and why it ended.
 *
 * Design notes.  Subjects are kept in the run's table by operation number, set in a protected
 * call, because a wait is registered by then and nothing may raise.  Details say the same for
 * the same seed: sizes, hashes and statuses, no times and no numbers of processes. */
#include "lua_host.h"
#include "errand/files.h"
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

static void
write_count(char *out, size_t size, const char *what, uint64_t count)
{
    snprintf(out, size, "%llu %s%s", (unsigned long long)count, what,
             count == 1 ? "" : "s");
}

/* One short line about a payload, the same in every run of a seed. */
static void
write_detail(const errand_payload *payload, char *out, size_t size)
{
    const errand_payload_type *type = payload->held_type;
    const void *data = payload->data;
    out[0] = '\0';
    if (type == &errand_file_bytes_type) {
        write_count(out, size, "byte", ((const errand_file_bytes *)data)->size);
    } else if (type == &errand_file_written_type) {
        write_count(out, size, "byte", ((const errand_file_written *)data)->written);
    } else if (type == &errand_file_place_type) {
        snprintf(out, size, "at %llu",
                 (unsigned long long)((const errand_file_place *)data)->offset);
    } else if (type == &errand_dir_list_type) {
        size_t count = ((const errand_dir_list *)data)->count;
        snprintf(out, size, "%zu %s", count, count == 1 ? "entry" : "entries");
    } else if (type == &errand_file_stat_type) {
        snprintf(out, size, "%s",
                 errand_file_kind_name(((const errand_file_stat *)data)->kind));
    } else if (type == &errand_hash_type) {
        const errand_hash *hash = data;
        int length = snprintf(out, size, "%016llx, ", (unsigned long long)hash->value);
        write_count(out + length, size - (size_t)length, "byte", hash->size);
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

/* Stored times are rounded; what people read is not later than the moment when they read it. */
static uint64_t
time_of(errand__lua_run *run, const errand_completion *completion)
{
    uint64_t end = completion->t_end_ns, now = errand_runtime_now(run->runtime);
    if (now != 0 && end > now)
        end = now;
    uint64_t ns = end > run->start_ns ? end - run->start_ns : 0;
    if (ns > run->last_ns)
        run->last_ns = ns;
    return ns;
}

void
errand__lua_report_completion(void *arg, struct errand_completion *completion)
{
    errand__lua_run *run = arg;
    char detail[96];
    errand_lua_event event = {
        .name = completion->operation != NULL ? completion->operation : "",
        .subject = "",
        .outcome = errand_outcome_name(completion->outcome),
        .detail = detail,
        .late = (completion->flags & ERRAND_LATE) != 0,
        .time_ns = time_of(run, completion),
        .closing = run->closing,
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

/* Replaces the plain table on top by what is in it for people, and how to have it shown. */
static void
table_to_text(lua_State *L)
{
    static const char *const fields[] = {"code", "message", "msg", "error", "reason"};
    int table = lua_gettop(L);
    bool found = false;
    lua_pushliteral(L, "(error object is a table value");
    for (size_t i = 0; i <= sizeof fields / sizeof fields[0]; i++) {
        const char *name = i > 0 ? fields[i - 1] : "1";
        lua_pushstring(L, name);
        int type =
            i > 0 ? lua_rawget(L, table) : (lua_pop(L, 1), lua_rawgeti(L, table, 1));
        if (type == LUA_TSTRING || type == LUA_TNUMBER) {
            lua_pushfstring(L, "%s %s = %s", found ? "," : ":", i > 0 ? name : "[1]",
                            lua_tostring(L, -1));
            lua_remove(L, -2);
            lua_concat(L, 2);
            found = true;
        } else {
            lua_pop(L, 1);
        }
    }
    lua_pushliteral(L, "; a metatable with __tostring says how to show it)");
    lua_concat(L, 2);
    lua_remove(L, table);
}

/* Replaces the value on top by text for people; its own __tostring may be broken, or endless. */
static void
top_to_text(lua_State *L, errand__lua_run *run)
{
    if (lua_type(L, -1) == LUA_TSTRING)
        return;
    bool speaks = luaL_getmetafield(L, -1, "__tostring") != LUA_TNIL;
    if (speaks)
        lua_pop(L, 1);
    if (!speaks && lua_istable(L, -1)) {
        table_to_text(L);
        return;
    }
    if (!speaks && !lua_isnumber(L, -1)) {
        lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, -1));
        lua_remove(L, -2);
        return;
    }
    const char *kind = luaL_typename(L, -1);
    if (!errand__lua_watch_text(L, run))
        lua_pushfstring(L, "(error object is a %s value with a broken __tostring)", kind);
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
        top_to_text(L, task->run);
    } else {
        lua_pushliteral(L, "(no error object)");
    }
    if (task->traced) {
        lua_pushvalue(task->co, -2);
        lua_xmove(task->co, L, 1);
    } else {
        errand__lua_task_push(L, task);
    }
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

/* Pushes "task 3 (its function is at script.lua:7)", or "the root task". */
static void
push_name(lua_State *L, const errand__lua_task *task)
{
    lua_Debug ar;
    if (task == task->run->root) {
        lua_pushliteral(L, "the root task");
        return;
    }
    lua_pushfstring(L, "task %I", (LUAI_UACINT)task->id.task);
    int outermost = -1;
    for (int level = 0; lua_getstack(task->co, level, &ar); level++) {
        if (lua_getinfo(task->co, "S", &ar) && ar.linedefined > 0)
            outermost = level;
    }
    if (outermost >= 0 && lua_getstack(task->co, outermost, &ar) &&
        lua_getinfo(task->co, "S", &ar)) {
        lua_pushfstring(L, " (its function is at %s:%d)", ar.short_src, ar.linedefined);
        lua_concat(L, 2);
    }
}

/* Pushes " for task 2", or "": an await has its task in the first slot of its frame. */
static void
push_target(lua_State *L, const errand__lua_task *task)
{
    lua_Debug ar;
    if (task->operation != NULL && strcmp(task->operation, "await") == 0 &&
        lua_checkstack(task->co, 1) && lua_getstack(task->co, 0, &ar) &&
        lua_getlocal(task->co, &ar, 1) != NULL) {
        const errand__lua_task *target = luaL_testudata(task->co, -1, ERRAND__LUA_TASK);
        lua_pop(task->co, 1);
        if (target != NULL) {
            lua_pushfstring(L, " for task %I", (LUAI_UACINT)target->id.task);
            return;
        }
    }
    lua_pushliteral(L, "");
}

/* Adds "  the root task waits in await for task 2 at script.lua:12" to the text at the top. */
static void
add_waiting(lua_State *L, const errand__lua_task *task)
{
    lua_Debug ar;
    lua_pushliteral(L, "\n  ");
    push_name(L, task);
    lua_pushfstring(L, " waits in %s",
                    task->operation != NULL ? task->operation : "nothing");
    push_target(L, task);
    lua_concat(L, 4);
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

void
errand__lua_report_external(lua_State *L, errand__lua_run *run)
{
    char text[1024];
    errand_stall_text(run->runtime, text, sizeof text);
    text[strcspn(text, "\n")] = '\0'; /* the lines behind it list what waits */
    lua_pushstring(L, text);
}
