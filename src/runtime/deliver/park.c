/* SPDX-License-Identifier: MIT */
/* Design notes: waiting.
 *
 * Parking looks at everything that is buffered anywhere, then sleeps on the inbox, where a put
 * cannot be missed (inbox.c).  It never sleeps past the runtime's own next deadline.  A job may
 * not wait for an errand: on a worker every wait answers EDEADLOCK (O54). */
#include "runtime/runtime.h"

/* Is there anything that a drain or drive would do now? */
static bool
buffered(const errand_runtime *runtime)
{
    return errand__replay_arrival(runtime) || runtime->pending != 0 ||
           !errand__inbox_empty(runtime->block) || runtime->hand_live ||
           runtime->later != 0 || !errand__list_empty(&runtime->scheduler.ready) ||
           !errand__list_empty(&runtime->scheduler.pass) ||
           atomic_load_explicit(&runtime->block->interrupted, memory_order_acquire) !=
               0; /* Pairs: interrupted */
}

uint64_t
errand__next_deadline(const errand_runtime *runtime)
{
    uint64_t next = errand__heap_next(&runtime->deadlines);
    uint64_t timer = errand__timers_next(&runtime->scheduler);
    uint64_t reap =
        runtime->cleanup_count == 0 ? UINT64_MAX : errand__cleanup_next(runtime);

    if (timer < next)
        next = timer;
    return reap < next ? reap : next;
}

/* Sleeps on the inbox, after the executors were asked: is every processor needed, so that a spin
 * would be in the way?  And when does one that has lost its workers want to be asked again
 * (O55)?  True if that was the reason to wake. */
bool
errand__sleep_at_most(errand_runtime *runtime, uint64_t length_ns)
{
    uint32_t count = atomic_load_explicit(&runtime->lease_count, memory_order_relaxed);
    uint64_t length = length_ns;
    errand__watch watched, *watch = errand__answers_watch(runtime, &watched);

    if (watch != NULL && length > ERRAND__WATCH_NS)
        length = ERRAND__WATCH_NS;
    runtime->block->crowded = false;
    for (uint32_t i = 0; i < count; i++) {
        errand_lease *lease = runtime->leases[i];
        const errand__executor_ops *ops = lease->executor->ops;

        if (lease->closed)
            continue;
        if (ops->crowded != NULL && ops->crowded(lease))
            runtime->block->crowded = true;
        uint64_t again = ops->tend != NULL ? ops->tend(lease) : UINT64_MAX;
        if (again < length)
            length = again;
    }
    if (errand__leases_sleep(runtime, length))
        return true; /* for what may have come: look again */
    errand__inbox_park(runtime->block, length, watch);
    if (runtime->collectors != 0)
        errand__collect_leases(runtime);
    return length < length_ns;
}

errand_status
errand_park(errand_runtime *runtime, uint64_t deadline_ns)
{
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(!errand__on_worker(), ERRAND_EDEADLOCK,
                       "a job may not park a runtime");
    if (runtime->draining || runtime->driving)
        return errand__misuse(ERRAND_EBUSY, __func__, "a drain or drive is in progress");
    if (runtime->external)
        return runtime->external_status;
    errand__park(runtime, deadline_ns);
    return ERRAND_OK;
}

void
errand__park(errand_runtime *runtime, uint64_t deadline_ns)
{
    uint64_t now, until;

    if (errand__paced(runtime))
        errand__collect(runtime); /* what is not due stays aside */
    else if (runtime->collectors != 0)
        errand__collect_leases(runtime);
    if (buffered(runtime))
        return;
    if (errand__seeded(runtime)) {
        errand__order_advance(runtime, deadline_ns);
        return;
    }
    until = errand__next_deadline(runtime);
    if (deadline_ns < until)
        until = deadline_ns;
    now = until == UINT64_MAX ? 0 : errand__runtime_time(runtime);
    if (until <= now)
        return;
    if ((runtime->config.flags & ERRAND_RUNTIME_TEST_CLOCK) != 0 && until != UINT64_MAX)
        return; /* that clock moves only by hand */
    while (
        errand__sleep_at_most(runtime, until == UINT64_MAX ? UINT64_MAX : until - now) &&
        !buffered(runtime)) {
        now = errand__runtime_time(runtime);
        if (until <= now) {
            if (runtime->collectors != 0) /* what a lease left for its next wait */
                errand__collect_leases(runtime);
            break;
        }
    }
    errand__fd_news(runtime);
}

void
errand__park_news(errand_runtime *runtime)
{
    if (runtime->collectors != 0)
        errand__collect_leases(runtime);
    if (!buffered(runtime))
        (void)errand__sleep_at_most(runtime, UINT64_MAX);
}

void
errand__fd_news(errand_runtime *runtime)
{
    if (runtime->fd_wanted && !runtime->draining && !runtime->driving &&
        buffered(runtime))
        errand__inbox_signal(runtime->block);
}

void
errand__fd_update(errand_runtime *runtime)
{
    if (buffered(runtime))
        errand__inbox_signal(runtime->block);
    else {
        errand__inbox_arm(runtime->block);
        if (!errand__leases_rest(runtime))
            errand__inbox_signal(runtime->block);
    }
}

errand_status
errand_runtime_wake_fd(errand_runtime *runtime, int *out_fd)
{
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_fd != NULL, ERRAND_EINVAL, "out_fd is NULL");
    status = errand__inbox_open_fd(runtime->block);
    if (status != ERRAND_OK)
        return status;
    if (!runtime->fd_wanted) {
        runtime->fd_wanted = true;
        if (runtime->collectors != 0) /* others put from now on */
            errand__collect_leases(runtime);
        errand__fd_update(runtime);
    }
    return errand__leases_descriptor(runtime, out_fd);
}

/* A replay: how the wait ended in the log. */
static errand_status
replay_wait(errand_runtime *runtime)
{
    const errand_log_step *next = errand__replay_peek(runtime);

    if (next != NULL && next->step.kind == ERRAND_STEP_TURN &&
        next->step.detail == ERRAND_TURN_STEP_WAIT)
        return errand__replay_status_of(next->step.value);
    errand__replay_leave(runtime, "the run came to a wait for a lease's room");
    return runtime->external_status;
}

static errand_status
wait_room(errand_runtime *runtime, errand_lease *lease, uint64_t deadline_ns)
{
    for (;;) {
        const errand__heap_entry *first = errand__heap_first(&runtime->deadlines);
        uint64_t now, until = deadline_ns;

        if (lease->closed)
            return errand__misuse(ERRAND_ECLOSED, "errand_lease_wait_room",
                                  "the lease was shut");
        if (runtime->external)
            return runtime->external_status;
        if (errand__replay_arrival(runtime))
            return replay_wait(runtime);
        if (errand__paced(runtime))
            errand__collect(runtime);
        else if (runtime->collectors != 0)
            errand__collect_leases(runtime);
        if (lease->owed < lease->owed_max || buffered(runtime)) {
            errand__fd_news(runtime);
            return ERRAND_OK;
        }
        now = errand__runtime_time(runtime);
        if (deadline_ns <= now)
            return ERRAND_ETIMEOUT;
        if (first != NULL && first->major < until)
            until = first->major;
        if (until <= now)
            return ERRAND_OK; /* a drain has a deadline to fire, and that makes room */
        if (errand__seeded(runtime)) {
            errand__order_advance(runtime, deadline_ns);
            return ERRAND_OK; /* something is due now, or the deadline passed */
        }
        errand__flush_all(runtime); /* inside a handler */
        errand__sleep_at_most(runtime, until == UINT64_MAX ? UINT64_MAX : until - now);
    }
}

errand_status
errand_lease_wait_room(errand_lease *lease, uint64_t deadline_ns)
{
    errand_runtime *runtime;
    errand_status status;

    ERRAND_REQUIRE_ARG(lease != NULL, ERRAND_EINVAL, "the lease is NULL");
    runtime = lease->runtime;
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(!errand__on_worker(), ERRAND_EDEADLOCK,
                       "a job may not wait for a lease's room");
    status = wait_room(runtime, lease, deadline_ns);
    errand__input_turn(runtime, ERRAND_TURN_STEP_WAIT, 0, (uint64_t)status);
    return status;
}
