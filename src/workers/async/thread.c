/* SPDX-License-Identifier: MIT */
/* Design notes: the thread that polls.
 *
 * What was pushed into the port is sorted into a queue per lease, and leases with woken jobs take
 * turns.  A turn is at most 16 bodies or 20 us, whichever is first, so a lease that keeps
 * thousands woken holds up another's by one turn (O51).  The thread sleeps when no queue has
 * anything; a pending job costs nothing until it is woken.
 *
 * A body that ends its thread (pthread_exit) is settled as PANICKED by a cleanup handler, on the
 * dying thread, which then starts another, or, where none can be made, goes on itself inside the
 * handler: the executor is never without a thread. */
#include "errand/async.h"
#include "workers/async/async.h"

#define TURN_BODIES 16
#define TURN_US     20

/* own: the executor whose thread this is; no other thread looks at it. */
static _Thread_local errand__async *own;

static void *run_thread(void *arg);

bool
errand__async_is_own_thread(const errand__async *executor)
{
    return own == executor;
}

errand_status
errand__async_start(errand__async *executor)
{
    return errand__thread_create(&executor->thread, NULL, run_thread, executor) == 0
               ? ERRAND_OK
               : ERRAND_ENOTHREAD;
}

/* ---- queues ------------------------------------------------------------------------------- */

/* One lease's turn.  It is held meanwhile: its last job may end here. */
static void
take_turn(errand__async *executor, errand__async_lease *mine)
{
    errand_lease *lease = mine->roster.lease;
    errand__hands *hands = &executor->poller.hands;
    uint64_t limit = TURN_US * errand__cycles_per_us(), start = errand__cycles();
    unsigned bodies = 0;

    errand__hands_clock(hands);
    while (mine->woken.first != NULL && bodies < TURN_BODIES &&
           errand__cycles() - start < limit) {
        errand_waker *waker = errand__woken_take(&mine->woken);

        if (errand__waker_pop(waker))
            bodies += errand__poller_run(&executor->poller, waker, &lease->cells[1]);
    }
}

/* Closes a turn, also one that a panic ended. */
static void
end_turn(errand__async *executor)
{
    errand__async_lease *mine =
        ERRAND__CONTAINER(executor->turns.next, errand__async_lease, woken.turn);
    errand_lease *lease = mine->roster.lease;

    errand__hands_ring(&executor->poller.hands, lease->block);
    errand__spans_hands(&executor->spans, &executor->poller.hands);
    errand__woken_end_turn(&executor->turns, &mine->woken);
    errand__lease_let(lease);
}

/* Sleeps until there is news; false: there will be none. */
static bool
await_news(errand__async *executor)
{
    unsigned bell = errand__port_bell(executor->port); /* Pairs: port-bell */

    if (atomic_load_explicit(&executor->stopping, memory_order_acquire))
        return false;
    errand__port_sleep(executor->port, bell, UINT64_MAX);
    return true;
}

static void
serve(errand__async *executor)
{
    errand__poller *poller = &executor->poller;

    if (ERRAND__CATCH(&poller->hands.frame)) {
        errand__poller_panicked(poller, poller->hands.frame.message);
        end_turn(executor);
    }
    for (;;) {
        errand__woken_sort(&executor->turns, executor->port);
        if (errand__list_empty(&executor->turns)) {
            if (!await_news(executor))
                break;
            continue;
        }
        errand__lease_hold(
            ERRAND__CONTAINER(executor->turns.next, errand__async_lease, woken.turn)
                ->roster.lease);
        take_turn(executor, ERRAND__CONTAINER(executor->turns.next, errand__async_lease,
                                              woken.turn));
        end_turn(executor);
    }
    errand__frame_leave(&poller->hands.frame);
}

/* ---- the thread's life ---------------------------------------------------------------------- */

static void
finish(errand__async *executor)
{
    bool orphan = executor->orphan;

    errand__poller_fini(&executor->poller);
    own = NULL;
    if (!orphan)
        return;
    pthread_detach(pthread_self());
    errand__async_free(executor);
}

/* A body ended the thread. */
static void
ended_inside(void *arg)
{
    errand__async *executor = arg;

    errand__frame_unwind(&executor->poller.hands.frame);
    errand__executor_hold(&executor->base);
    errand__poller_panicked(&executor->poller, "the body ended its thread");
    end_turn(executor);
    errand__count(&executor->replaced);
    errand__frame_leave(&executor->poller.hands.frame);
    errand__poller_fini(&executor->poller);
    own = NULL;
    if (errand__async_start(executor) == ERRAND_OK) {
        pthread_detach(pthread_self());
        errand__executor_let(&executor->base);
        return;
    }
    own = executor;
    errand__poller_init(&executor->poller, &executor->spans);
    errand__executor_let(&executor->base);
    serve(executor);
    finish(executor);
}

static void *
run_thread(void *arg)
{
    errand__async *executor = arg;

    own = executor;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setname_np(pthread_self(), executor->name);
    errand__poller_init(&executor->poller, &executor->spans);
    pthread_cleanup_push(ended_inside, executor);
    serve(executor);
    pthread_cleanup_pop(0);
    finish(executor);
    return NULL;
}
