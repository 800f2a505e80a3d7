/* SPDX-License-Identifier: MIT */
/* Design notes: running picks on the calling thread.
 *
 * There are two pairs of hands.  Those of the executor serve errand_manual_step, whose thread may
 * change from call to call; those of a lease serve its owner, in seeded orders and at its end.
 * So a runtime in a seeded order never waits for a step on another thread.
 *
 * No lock is held while a body runs: a body that is stepped on its owner's thread may submit,
 * cancel (also itself) and read snapshots.  Waiting calls answer EDEADLOCK there, as on any
 * worker, because a frame with a running job is what makes a thread a worker.
 *
 * A body must not end its thread here: pthread_exit would end the thread of the one who
 * steps, and neither its operation nor the step would ever end. */
#include "workers/manual/manual.h"

#define STEP_BODIES                                                                      \
    64 /* of a seeded lease at once, so that the owner looks up in between */

/* A call that steps.  In memory, so that a panic finds it as it was. */
typedef struct step {
    errand__manual *executor;
    errand__manual_lease *only; /* NULL = all that are not seeded */
    bool woken_only;
    errand__poller *poller;
    uint32_t cell;
    size_t budget, count;
    errand__manual_pick pick; /* what runs */
} step;

static void
end_pick(step *self, bool entered)
{
    errand_lease *lease = self->pick.lease;

    self->count += entered;
    errand__hands_ring(&self->poller->hands, lease->block);
    self->pick.lease = NULL;
    if (self->only == NULL) {
        errand__spans_hands(&self->executor->spans, &self->poller->hands);
        atomic_store_explicit(&self->executor->busy, false, memory_order_relaxed);
    } else {
        errand__hands_tell(&self->poller->hands, lease->block);
    }
    errand__lease_let(lease);
}

static void
count_spans(const step *self)
{
    const errand__hands *hands = &self->poller->hands;
    uint64_t waited = hands->base_cycles - self->pick.since;
    uint64_t end = hands->now_ns, start = hands->own.t_start;

    if (self->poller->spans == NULL)
        return;
    errand__spans_count(self->poller->spans->wait,
                        (uint64_t)((double)waited * hands->ns_per_cycle));
    errand__spans_count(self->poller->spans->run, end > start ? end - start : 0);
}

/* False: nothing is left to run. */
static bool
run_next(step *self)
{
    errand__hands *hands = &self->poller->hands;
    errand__manual_pick *pick = &self->pick;
    errand__cell *cell;
    bool entered;

    if (!errand__manual_pick_next(self->executor, self->only, self->woken_only, pick))
        return false;
    errand__hands_clock(hands);
    if (self->only == NULL)
        atomic_store_explicit(&self->executor->busy, true, memory_order_relaxed);
    hands->epoch = pick->lease->epoch;
    cell = &pick->lease->cells[self->cell];
    if (pick->waker != NULL) {
        entered = errand__poller_run(self->poller, pick->waker, cell);
    } else {
        errand__manual_lease *mine = pick->lease->impl;

        errand__ages_began(&mine->roster.ages, pick->record, pick->generation,
                           errand__cycles());
        entered = errand__hands_execute(hands, pick->lease->block, pick->record,
                                        pick->generation, cell);
        if (entered)
            count_spans(self);
    }
    end_pick(self, entered);
    return true;
}

static void
end_panicked(step *self)
{
    errand__poller_panicked(self->poller, self->poller->hands.frame.message);
    if (self->pick.waker == NULL)
        count_spans(self);
    end_pick(self, true);
}

static void
run_all(step *self)
{
    if (ERRAND__CATCH(&self->poller->hands.frame))
        end_panicked(self);
    while (self->count < self->budget && run_next(self)) {
    }
    errand__frame_leave(&self->poller->hands.frame);
}

errand_status
errand_manual_step(errand_executor *executor, size_t budget, size_t *out_count)
{
    errand__manual *self;
    step stepped = {.budget = budget, .cell = 1};

    ERRAND_REQUIRE_ARG(executor != NULL && out_count != NULL, ERRAND_EINVAL,
                       "executor and out_count are needed");
    ERRAND_REQUIRE_ARG(executor->fork_epoch == errand__fork_epoch(), ERRAND_EFORKED,
                       "the executor belongs to the parent process");
    ERRAND_REQUIRE_ARG(executor->ops->step == errand__manual_step_lease,
                       ERRAND_EUNSUPPORTED, "only the manual executor is stepped");
    self = errand__manual_of(executor);
    ERRAND_REQUIRE_ARG(
        !atomic_exchange_explicit(&self->stepping, true, memory_order_acquire),
        ERRAND_EBUSY, "a step of this executor is in progress");
    stepped.executor = self;
    stepped.poller = &self->poller;
    errand__executor_hold(executor); /* a body may end the last lease and abandon it */
    run_all(&stepped);
    *out_count = stepped.count;
    atomic_store_explicit(&self->stepping, false,
                          memory_order_release); /* Pairs: manual-stepping */
    errand__executor_let(executor);
    return ERRAND_OK;
}

void
errand__manual_poll_once(errand__manual_lease *lease)
{
    errand__manual *executor = errand__manual_of(lease->roster.lease->executor);
    step stepped = {.executor = executor,
                    .only = lease,
                    .woken_only = true,
                    .poller = &lease->own,
                    .budget = errand__roster_busy(&lease->roster)};

    if (atomic_exchange_explicit(&executor->stepping, true, memory_order_acquire))
        return; /* another thread polls just now */
    run_all(&stepped);
    atomic_store_explicit(&executor->stepping, false,
                          memory_order_release); /* Pairs: manual-stepping */
}

void
errand__manual_step_lease(errand_lease *lease)
{
    errand__manual_lease *mine = lease->impl;
    step stepped = {.executor = errand__manual_of(lease->executor),
                    .only = mine,
                    .poller = &mine->own,
                    .budget = STEP_BODIES};

    if (lease->is_virtual)
        run_all(&stepped);
    else
        errand__manual_poll_once(mine);
}
