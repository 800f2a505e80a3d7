/* SPDX-License-Identifier: MIT */
/* drive: a run from the root's start to its end: stalls, deadlines, interrupts.
 *
 * Design notes.  The stock interpreter's handler of Ctrl-C does one thing: it sets a hook on the
 * main thread, which raises "interrupted!" at the next instruction there.  In a run there is none
 * until the run has ended.  So, where no stop switch was given, the run looks for that hook: when
 * a task is resumed, and in arrival order, if SIGINT has a handler at all, every LOOK_NS while it
 * sleeps.  Then it cancels the roots as a stop switch does, and leaves the hook to do its work
 * when the run has ended.  Nothing of the process is changed for this. */
#include "lua_host.h"
#include <signal.h>

#define LOOK_NS 100000000U

void
errand__lua_interpreter_find(lua_State *L, errand__lua_run *run)
{
    struct sigaction action;
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    run->main = lua_tothread(L, -1);
    lua_pop(L, 1);
    run->interpreter_looks = run->options.held_stop == NULL &&
                             run->options.order == ERRAND_ORDER_ARRIVAL &&
                             sigaction(SIGINT, NULL, &action) == 0 &&
                             action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

bool
errand__lua_interpreter_asked(const errand__lua_run *run)
{
    enum { EVERYTHING = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT };
    return run->options.held_stop == NULL && lua_gethook(run->main) != NULL &&
           lua_gethookmask(run->main) == EVERYTHING && lua_gethookcount(run->main) == 1;
}

void
errand__lua_interpreter_look(errand__lua_run *run)
{
    if (run->interpreter_stopped || !errand__lua_interpreter_asked(run))
        return;
    run->interpreter_stopped = true;
    errand_status status = errand_cancel_roots(run->runtime, ERRAND_REASON_HOST_STOP);
    (void)status; /* already cancelled: the first reason stands */
}

/* A shield that stands (by default no longer than the grace), and the grace for the rest. */
static uint64_t
cleanup_end(const errand__lua_run *run)
{
    uint64_t now = errand_runtime_now(run->runtime), grace = run->options.grace_ns;
    return grace < (UINT64_MAX - now) / 2 ? now + 2 * grace : UINT64_MAX;
}

/* errand_run, with looks at the interpreter's hook in between where it may be set. */
static errand_status
drive_until(errand__lua_run *run, const errand_task_id *root, uint64_t deadline)
{
    for (;;) {
        uint64_t until = deadline, now = errand_runtime_now(run->runtime);
        if (run->interpreter_looks && !run->interpreter_stopped &&
            deadline > now + LOOK_NS)
            until = now + LOOK_NS;
        errand_status status = errand_run(run->runtime, root, until);
        if (status != ERRAND_ETIMEOUT || until == deadline)
            return status;
        errand__lua_interpreter_look(run);
    }
}

/* Drives until the root has ended.  A stall or a passed deadline is named, and the root cancelled,
 * so that its cleanup runs; what is left after cleanup_end is aborted. */
static errand_lua_kind
drive(lua_State *L, errand__lua_run *run)
{
    errand_task_id root = run->root->id;
    errand_lua_kind kind = ERRAND_LUA_OK;
    int top = lua_gettop(L);
    uint64_t limit = run->options.deadline_ns;
    uint64_t deadline = limit == 0 || limit > UINT64_MAX - run->start_ns
                            ? UINT64_MAX
                            : run->start_ns + limit;
    for (int tries = 0; tries < 4; tries++) {
        errand_status status = drive_until(run, &root, deadline);
        if (status == ERRAND_EEXTERNAL || status == ERRAND_EREPRODUCE) {
            lua_settop(L, top);
            errand__lua_report_external(L, run);
            return status == ERRAND_EEXTERNAL ? ERRAND_LUA_EXTERNAL : ERRAND_LUA_DEPARTED;
        }
        if (status != ERRAND_EDEADLOCK && status != ERRAND_ETIMEOUT)
            break;
        if (kind == ERRAND_LUA_OK) {
            kind = status == ERRAND_ETIMEOUT ? ERRAND_LUA_DEADLINE : ERRAND_LUA_STALL;
            if (kind == ERRAND_LUA_STALL)
                errand__lua_report_stall(L, run);
        }
        errand_reason reason = kind == ERRAND_LUA_DEADLINE ? ERRAND_REASON_TIMEOUT
                                                           : ERRAND_REASON_RESOURCE_LOST;
        status = tries == 0 ? errand_cancel_roots(run->runtime, reason)
                            : errand_task_abort(run->runtime, &root);
        (void)status; /* it is ending already */
        deadline = cleanup_end(run);
    }
    return kind;
}

static errand_lua_kind
kind_of_end(const errand__lua_run *run, errand_lua_kind kind)
{
    if (kind != ERRAND_LUA_OK)
        return kind;
    errand__lua_phase phase = run->root->phase;
    if (run->first != NULL)
        return ERRAND_LUA_SCRIPT_ERROR; /* it ended the root, or was about to */
    if (phase == ERRAND__LUA_DONE)
        return run->unheard == NULL ? ERRAND_LUA_OK : ERRAND_LUA_SCRIPT_ERROR;
    if (phase == ERRAND__LUA_FAILED)
        return ERRAND_LUA_SCRIPT_ERROR;
    if (run->root->reason == ERRAND_REASON_HOST_STOP)
        return ERRAND_LUA_STOPPED;
    return run->root->reason == ERRAND_REASON_TIMEOUT ? ERRAND_LUA_DEADLINE
                                                      : ERRAND_LUA_SCRIPT_ERROR;
}

errand_lua_kind
errand__lua_drive(lua_State *L, errand__lua_run *run)
{
    return kind_of_end(run, drive(L, run));
}
