/* SPDX-License-Identifier: MIT */
/* handle: verbs that act on task handles without waiting: spawn, cancel, status, self.
 *
 * Design notes.  A new task is a child of the running one, so it ends with it; the library
 * aborts what is left.  cancel keeps the script's own words for the reason in the task. */
#include "lua_host.h"
#include <string.h>

static int
verb_spawn(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_need(L, "spawn");
    errand__lua_tree_options(L, 1, "spawn");
    errand__lua_wait_callable(L, 1);
    if (run->current == NULL)
        errand__lua_error_raise(L, "misuse", "spawn",
                                "no task is running here: a task that was ended, or a "
                                "finaliser between two tasks, cannot start another");
    errand__lua_task_spawn(L, run, &run->current->id, lua_gettop(L) - 1, "spawn");
    return 1;
}

/* Cut at the end of a UTF-8 character. */
static void
keep_reason(errand__lua_task *task, const char *text)
{
    size_t length = strlen(text), room = sizeof task->reason_text - 1;
    if (length > room) {
        length = room;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
            length--;
    }
    memcpy(task->reason_text, text, length);
    task->reason_text[length] = '\0';
}

static int
verb_cancel(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_need(L, "cancel");
    errand__lua_task *task = errand__lua_task_check(L, 1);
    const char *text = luaL_optstring(L, 2, NULL);
    if (errand__lua_task_ended(task)) {
        lua_pushboolean(L, false);
        return 1;
    }
    bool first = task->reason == ERRAND_REASON_NONE;
    if (text != NULL && first)
        keep_reason(task, text);
    errand_status status =
        errand_task_cancel(run->runtime, &task->id, ERRAND_REASON_EXPLICIT);
    if (status == ERRAND_OK && first && !errand__lua_task_ended(task))
        task->reason = ERRAND_REASON_EXPLICIT;
    if (status != ERRAND_OK && status != ERRAND_EUNKNOWN)
        errand__lua_error_status(L, status, "cancel");
    lua_pushboolean(L, status == ERRAND_OK);
    return 1;
}

static int
verb_status(lua_State *L)
{
    errand__lua_run_need(L, "status");
    const errand__lua_task *task = errand__lua_task_check(L, 1);
    errand__lua_phase phase = task->phase;
    if (phase == ERRAND__LUA_RUNNING && task != task->run->current)
        phase = ERRAND__LUA_WAITING; /* for those below it that were cancelled, too */
    lua_pushstring(L, errand__lua_task_phase_name(phase));
    return 1;
}

static int
verb_self(lua_State *L)
{
    errand__lua_run *run = errand__lua_run_need(L, "self");
    if (run->current == NULL)
        lua_pushnil(L);
    else
        errand__lua_task_push(L, run->current);
    return 1;
}

const luaL_Reg errand__lua_handle_verbs[] = {
    {"spawn", verb_spawn},
    {"cancel", verb_cancel},
    {"status", verb_status},
    {"self", verb_self},
    {NULL, NULL},
};
