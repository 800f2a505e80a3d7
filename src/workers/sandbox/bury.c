/* SPDX-License-Identifier: MIT */
/* Design notes: what the monitor does with one worker.
 *
 * - At a deadline, or when a cancel's grace is over, the answer is looked at once more; only then is
 *   the operation ended and the worker killed.  The operation's completion does not wait for the
 *   worker's death; its place does.
 * - A worker that has died is looked at once more, too: an answer that it published before counts.
 *   Then the system's word for its end decides what its operation says.
 * - A start that a library ended is made again at once: the second time without it.
 * - What somebody else has in hand is come back to.
 * - A kill may be refused (the host has given up the right, and the worker its lifeline): it is tried again,
 *   later and later, because the host may get that right back, and the worker has its place until it
 *   ends. */
#include <string.h>
#include "workers/sandbox/sandbox.h"

#define AGAIN_MIN UINT64_C(10000000) /* more than most need to end */
#define AGAIN_MAX UINT64_C(100000000)

static void
count(errand__sandbox *pool, uint64_t *counter)
{
    errand__lock_acquire(&pool->lock);
    ++*counter;
    errand__lock_release(&pool->lock);
}

/* The slot is the monitor's and its worker's end is known: it is free. */
void
errand__sandbox_monitor_bury(errand__sandbox_slot *slot)
{
    errand__slot_clear(slot);
    slot->pid = -1;
    slot->fd = -1;
    slot->ticket = 0;
    errand__slot_move(slot, ERRAND__SLOT_EMPTY);
}

static void
reap(errand__sandbox_slot *slot, errand__worker_end *out_end)
{
    errand__launcher *launcher = &slot->pool->launcher;

    memset(out_end, 0, sizeof *out_end);
    out_end->wait_status = -1;
    launcher->reap(launcher->arg, slot->pid, slot->fd, out_end);
}

static void
kill_worker(errand__sandbox_slot *slot, uint64_t now)
{
    errand__launcher *launcher = &slot->pool->launcher;

    if (!slot->died && (!slot->killed || now >= slot->again_ns)) {
        launcher->kill(launcher->arg, slot->pid, slot->fd);
        errand__slot_cut(slot); /* needs no right to signal it */
        slot->pace_ns = slot->killed ? slot->pace_ns * 2 : AGAIN_MIN;
        if (slot->pace_ns > AGAIN_MAX)
            slot->pace_ns = AGAIN_MAX;
        slot->again_ns = now + slot->pace_ns;
    }
    slot->killed = true;
}

/* ---- phases ---------------------------------------------------------------------------------------- */

/* Is what the worker says it achieved enough?  It says so before any job, under the host's own
 * program; whoever lies here has replaced that program. */
static bool
is_confined(const errand__sandbox_slot *slot)
{
    uint32_t needed = slot->pool->policy.values.require_layers;

    return (slot->layers & needed) == needed;
}

static void
become_ready(errand__sandbox_slot *slot, uint64_t now)
{
    errand__sandbox *pool = slot->pool;

    slot->layers = slot->response->layers;
    slot->landlock_abi = slot->response->landlock_abi;
    if (!is_confined(slot)) {
        errand__text_format(slot->response->setup_text, ERRAND__WIRE_TEXT,
                            "a required layer is missing: layers %x",
                            (unsigned)slot->layers);
        slot->intent = ERRAND__INTENT_START;
        kill_worker(slot, now);
        return;
    }
    pool->backoff_ns = pool->retry_ns = 0;
    pool->was_ready = true;
    errand__entries_opened(pool, slot->entry_count);
    errand__lock_acquire(&pool->lock);
    pool->start_status = ERRAND_OK;
    pool->counts.layers = slot->layers;
    pool->counts.landlock_abi = slot->landlock_abi;
    pool->counts.degraded = pool->policy.values.want_layers & ~slot->layers;
    if (slot->reserve) {
        errand__slot_move(slot, ERRAND__SLOT_RESERVE);
    } else {
        errand__list_append(&pool->idle, &slot->idle);
        errand__slot_move(slot, ERRAND__SLOT_IDLE);
    }
    errand__lock_release(&pool->lock);
    errand__sandbox_monitor_tell(pool);
}

static void
tend_starting(errand__sandbox_slot *slot, uint64_t now, bool closing)
{
    uint32_t ready = atomic_load_explicit(&slot->response->ready,
                                          memory_order_acquire); /* Pairs: wire-ready */
    errand__sandbox *pool = slot->pool;
    errand__worker_end end;
    char text[ERRAND__SANDBOX_TEXT], why[ERRAND__SANDBOX_WHY];

    if (slot->ticket != 0) /* the template's affair */
        return;
    if (slot->died) {
        reap(slot, &end);
        errand_status status = errand__verdict_start(slot, &end, text, sizeof text);
        errand__verdict_why(slot, &end, why, sizeof why);
        uint32_t loading =
            atomic_load_explicit(&slot->response->loading, memory_order_relaxed);
        errand__sandbox_monitor_bury(slot);
        if (closing)
            return;
        if (pool->was_ready && loading != 0 && loading <= slot->entry_count &&
            errand__entry_blame(pool, loading - 1, why))
            errand__sandbox_monitor_start_blamed(pool, text);
        else
            errand__sandbox_monitor_start_failed(pool, status, text, now);
        return;
    }
    if (closing || slot->killed) {
        kill_worker(slot, now);
    } else if (now - slot->started_ns > ERRAND__READY_NS) {
        slot->intent = ERRAND__INTENT_START;
        kill_worker(slot, now);
    } else if (ready == 1) {
        become_ready(slot, now);
    }
}

static void
tend_idle(errand__sandbox_slot *slot, uint64_t now, bool closing)
{
    errand__sandbox *pool = slot->pool;
    bool taken = false;

    if (!slot->died && !closing)
        return;
    errand__lock_acquire(&pool->lock);
    if (errand__slot_phase_of(slot) == ERRAND__SLOT_IDLE) {
        errand__list_unlink(&slot->idle);
        errand__slot_move(slot, ERRAND__SLOT_DYING);
        taken = true;
        if (slot->died)
            pool->counts.crashed++;
    }
    errand__lock_release(&pool->lock);
    if (!taken) {
        pool->tick = true;
    } else if (slot->died) {
        slot->intent = ERRAND__INTENT_NONE;
        errand__sandbox_monitor_crash(pool, now);
    } else {
        slot->intent = ERRAND__INTENT_CLOSE;
    }
}

static void
tend_reserve(errand__sandbox_slot *slot, uint64_t now, bool closing)
{
    errand__sandbox *pool = slot->pool;

    if (!slot->died && !closing)
        return;
    slot->intent = slot->died ? ERRAND__INTENT_NONE : ERRAND__INTENT_CLOSE;
    errand__slot_move(slot, ERRAND__SLOT_DYING);
    if (slot->died) {
        count(pool, &pool->counts.crashed);
        errand__sandbox_monitor_crash(pool, now);
    }
}

/* Its worker has died, or its time is over; the slot is in hand. */
static void
end_job(errand__sandbox_slot *slot, errand__slot_intent intent, uint64_t now)
{
    errand__sandbox *pool = slot->pool;
    const errand__sandbox_hand *hand = &pool->monitor_hand;
    errand__worker_end end;

    if (errand__slot_look_once(slot, hand)) {
        /* It counts; a dead worker's place is not given to another job. */
        intent = slot->intent;
        if (intent == ERRAND__INTENT_NONE && slot->died) {
            intent = ERRAND__INTENT_RECYCLE;
            count(pool, &pool->counts.recycled);
        }
    } else if (slot->died) {
        reap(slot, &end);
        slot->fd = -1;
        intent = ERRAND__INTENT_RECYCLE;
        count(pool, &pool->counts.crashed);
        errand__sandbox_monitor_crash(pool, now);
        errand__slot_fail(slot, hand, ERRAND__INTENT_NONE, &end);
    } else {
        errand__slot_fail(slot, hand, intent, NULL);
    }
    errand__slot_release(slot, intent);
}

static void
tend_busy(errand__sandbox_slot *slot, uint64_t now)
{
    uint64_t deadline = atomic_load_explicit(&slot->deadline_ns, memory_order_seq_cst);
    uint64_t kill = atomic_load_explicit(&slot->kill_ns, memory_order_seq_cst);

    if (!slot->died && now < deadline && now < kill)
        return;
    if (!errand__slot_take(slot)) {
        slot->pool->tick = true;
        return;
    }
    /* Another job may be there by now. */
    deadline = atomic_load_explicit(&slot->deadline_ns, memory_order_relaxed);
    kill = atomic_load_explicit(&slot->kill_ns, memory_order_relaxed);
    if (slot->died || now >= deadline) {
        end_job(slot, ERRAND__INTENT_DEADLINE, now);
    } else if (now >= kill) {
        errand__lock_acquire(&slot->pool->lock);
        errand__slot_intent intent = slot->kill_intent;
        errand__lock_release(&slot->pool->lock);
        end_job(slot, intent, now);
    } else {
        errand__slot_put_back(slot, &slot->pool->monitor_hand);
    }
}

void
errand__sandbox_monitor_end(errand__sandbox_slot *slot, uint64_t now)
{
    errand__sandbox *pool = slot->pool;
    errand__worker_end end;

    if (errand__slot_phase_of(slot) != ERRAND__SLOT_DYING)
        return;
    if (!slot->died) {
        if (!slot->killed) {
            errand__lock_acquire(&pool->lock);
            if (slot->intent == ERRAND__INTENT_RECYCLE)
                pool->counts.recycled++;
            else
                pool->counts.killed++;
            if (slot->intent == ERRAND__INTENT_PROTOCOL)
                pool->counts.protocol_breaches++;
            errand__lock_release(&pool->lock);
            if (slot->intent == ERRAND__INTENT_PROTOCOL)
                errand__sandbox_monitor_crash(pool, now);
        }
        kill_worker(slot, now);
        return;
    }
    if (slot->fd >= 0)
        reap(slot, &end);
    errand__sandbox_monitor_bury(slot);
    pool->template.wanted = true; /* others will end, too */
}

void
errand__sandbox_monitor_tend(errand__sandbox_slot *slot, uint64_t now)
{
    bool closing = atomic_load_explicit(&slot->pool->closing, memory_order_relaxed);

    switch (errand__slot_phase_of(slot)) {
    case ERRAND__SLOT_STARTING:
        tend_starting(slot, now, closing);
        break;
    case ERRAND__SLOT_IDLE:
        tend_idle(slot, now, closing);
        break;
    case ERRAND__SLOT_BUSY:
        tend_busy(slot, now);
        break;
    case ERRAND__SLOT_HELD:
        if (slot->died || closing)
            slot->pool->tick = true;
        break;
    case ERRAND__SLOT_RESERVE:
        tend_reserve(slot, now, closing);
        break;
    default:
        break;
    }
}
