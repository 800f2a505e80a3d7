/* SPDX-License-Identifier: MIT */
/* Design notes: the thread that looks for answers where no owner does.
 *
 * - An owner that waits by its wake descriptor does not sleep on answers; and while jobs are queued
 *   behind busy workers, whoever is done first is to be given the next one, whatever its owner does
 *   meanwhile.  Then this thread sleeps on the answers of all that are out.  It also waits for new
 *   workers to be ready, which spares the monitor its ticks.
 * - It is made when it is first needed.  With nothing to watch it sleeps on its bell alone.
 * - Where the kernel cannot wait for several words at once, it naps instead. */
#include "workers/sandbox/sandbox.h"

#define NAP_NS UINT64_C(200000)
#define ASK_NS UINT64_C(10000000) /* an owner that does not answer is rung again */

void
errand__watcher_wake(errand__sandbox *pool)
{
    unsigned none = 0;

    atomic_fetch_add_explicit(&pool->bell, 1,
                              memory_order_seq_cst); /* Pairs: sandbox-bell */
    if (atomic_load_explicit(&pool->watching, memory_order_seq_cst) == 2)
        errand__futex_wake(&pool->bell, 1);
    else if (atomic_compare_exchange_strong_explicit(
                 &pool->watching, &none, 1, memory_order_seq_cst, memory_order_seq_cst))
        errand__sandbox_monitor_kick(pool);
}

/* Does somebody count on this thread for the slot's job? */
static bool
is_watched(errand__sandbox_slot *slot, bool all)
{
    bool watched = all || atomic_load_explicit(&slot->foreign, memory_order_relaxed) != 0;

    if (!watched) {
        errand__lock_acquire(&slot->pool->lock);
        if (slot->lease != NULL)
            watched = atomic_load_explicit(
                          &((errand__sandbox_place *)slot->lease->impl)->watched,
                          memory_order_seq_cst) != 0; /* Pairs: sandbox-bell */
        errand__lock_release(&slot->pool->lock);
    }
    return watched;
}

typedef struct watched {
    errand__futex_word words[ERRAND__FUTEX_MANY];
    errand__sandbox_slot *slots[ERRAND__FUTEX_MANY]; /* from 1 on; NULL: it is starting */
    unsigned count;
    bool more;   /* than there is room for */
    bool asking; /* somebody waits for its owner */
} watched;

/* The owner may have begun to wait just before it was rung: again. */
static void
ring_owner(errand__sandbox_slot *slot)
{
    errand__lock_acquire(&slot->pool->lock);
    if (slot->lease != NULL)
        errand__inbox_ring(slot->lease->block);
    errand__lock_release(&slot->pool->lock);
}

static void
gather(errand__sandbox *pool, watched *out)
{
    bool all = atomic_load_explicit(&pool->waiting, memory_order_seq_cst) != 0;

    out->count = 1;
    out->more = out->asking = false;
    for (uint32_t i = 0; i < pool->workers_max; i++) {
        errand__sandbox_slot *slot = &pool->slots[i];
        unsigned phase = errand__slot_phase_of(slot);
        bool starting = phase == ERRAND__SLOT_STARTING;

        if (!starting && (phase != ERRAND__SLOT_BUSY || !is_watched(slot, all)))
            continue;
        if (!starting && atomic_load_explicit(&slot->asks, memory_order_relaxed) != 0) {
            out->asking = true;
            ring_owner(slot);
            continue;
        }
        if (out->count == ERRAND__FUTEX_MANY) {
            out->more = true;
            return;
        }
        out->slots[out->count] = starting ? NULL : slot;
        out->words[out->count++] = (errand__futex_word){
            .word =
                starting ? &slot->response->ready : errand__wire_futex(slot->response),
            .expected =
                starting ? 0 : atomic_load_explicit(&slot->quiet, memory_order_relaxed),
            .shared = true,
        };
    }
}

static bool
is_news(const watched *seen)
{
    for (unsigned i = 1; i < seen->count; i++)
        if (atomic_load_explicit(seen->words[i].word, memory_order_seq_cst) !=
            seen->words[i].expected)
            return true;
    return false;
}

static void
sleep_on(errand__sandbox *pool, watched *seen, unsigned bell)
{
    int woken = -1;

    seen->words[0] = (errand__futex_word){&pool->bell, bell, false};
    if (seen->count == 1) {
        errand__futex_wait(&pool->bell, bell, seen->asking ? ASK_NS : UINT64_MAX);
        return;
    }
    for (unsigned i = 1; i < seen->count; i++)
        if (seen->slots[i] != NULL)
            atomic_fetch_add_explicit(&seen->slots[i]->request->host_sleeps, 1,
                                      memory_order_seq_cst);
    if (is_news(seen))
        woken = -1;
    else if (!errand__futex_has_many() || seen->more)
        errand__futex_wait(&pool->bell, bell, NAP_NS);
    else
        woken = errand__futex_wait_many(seen->words, seen->count,
                                        seen->asking ? ASK_NS : ERRAND__WATCH_NS);
    for (unsigned i = 1; i < seen->count; i++)
        if (seen->slots[i] != NULL)
            errand__sleepers_leave(&seen->slots[i]->request->host_sleeps);
    if (woken > 0 && seen->slots[woken] != NULL)
        atomic_fetch_add_explicit(&seen->slots[woken]->wakes, 1, memory_order_relaxed);
}

static void
look_around(errand__sandbox *pool, const watched *seen)
{
    for (unsigned i = 1; i < seen->count; i++) {
        if (seen->slots[i] != NULL)
            errand__slot_look(seen->slots[i], &pool->watcher_hand);
        else if (atomic_load_explicit(seen->words[i].word, memory_order_relaxed) != 0)
            errand__sandbox_monitor_kick(pool); /* it is ready, or failed */
    }
}

static void *
run_watcher(void *arg)
{
    errand__sandbox *pool = arg;
    watched seen;

    errand__sandbox_monitor_enter(pool);
    pthread_setname_np(pthread_self(), "errand-watcher");
    for (;;) {
        unsigned bell = atomic_load_explicit(
            &pool->bell, memory_order_seq_cst); /* Pairs: sandbox-bell */

        if (atomic_load_explicit(&pool->unwatched,
                                 memory_order_acquire)) /* Pairs: sandbox-closing */
            return NULL;
        errand__sandbox_pump(pool, &pool->watcher_hand);
        gather(pool, &seen);
        sleep_on(pool, &seen, bell);
        look_around(pool, &seen);
    }
}

void
errand__watcher_start(errand__sandbox *pool)
{
    bool made = errand__thread_create(&pool->watcher, NULL, run_watcher, pool) == 0;

    atomic_store_explicit(&pool->watching, made ? 2 : 3,
                          memory_order_seq_cst); /* Pairs: sandbox-bell */
}

void
errand__watcher_stop(errand__sandbox *pool)
{
    if (atomic_load_explicit(&pool->watching, memory_order_seq_cst) != 2)
        return;
    atomic_store_explicit(&pool->unwatched, true,
                          memory_order_release); /* Pairs: sandbox-closing */
    errand__watcher_wake(pool);
    pthread_join(pool->watcher, NULL);
}

void
errand__watcher_tend(errand__sandbox *pool)
{
    if (atomic_load_explicit(&pool->watching, memory_order_seq_cst) != 3)
        return;
    for (uint32_t i = 0; i < pool->workers_max; i++)
        if (errand__slot_phase_of(&pool->slots[i]) == ERRAND__SLOT_BUSY) {
            pool->tick = true;
            errand__slot_look(&pool->slots[i], &pool->monitor_hand);
        }
}
