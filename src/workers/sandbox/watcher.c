/* SPDX-License-Identifier: MIT */
/* Design notes: the thread that looks for answers where no owner does.
 *
 * - An owner that waits by its wake descriptor does not sleep on answers; and while jobs are queued
 *   behind busy workers, whoever is done first is to be given the next one, whatever its owner does
 *   meanwhile.  Then this thread sleeps on the answers of all that are out.  It also waits for new
 *   workers to be ready, which spares the monitor its ticks.
 * - Most often an owner is quick enough itself.  So while jobs are queued this thread only looks
 *   every now and then, whom nobody need wake; an answer that lies there at two looks in a row
 *   makes it sleep on all answers, until it comes too late for some of them.
 * - It is made when it is first needed.  With nothing to watch it sleeps on its bell alone.
 * - Where the kernel cannot wait for several words at once, it naps instead. */
#include "workers/sandbox/sandbox.h"

#define NAP_NS UINT64_C(200000)
#define NAPS   10                 /* without anything queued, before it sleeps */
#define MISSES 4                  /* wakes in a row by answers that their owners took */
#define ASK_NS UINT64_C(10000000) /* who does not do what it was told is told again */

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

void
errand__watcher_mind(errand__sandbox *pool)
{
    unsigned state = atomic_load_explicit(&pool->watching, memory_order_seq_cst);

    if (state == 3) /* there is none: the monitor looks */
        errand__sandbox_monitor_kick(pool);
    else if (atomic_load_explicit(&pool->lookout, memory_order_seq_cst) ==
             ERRAND__LOOKOUT_NONE) /* Pairs: sandbox-bell */
        errand__watcher_wake(pool);
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
    bool more; /* than there is room for */
    /* Somebody waits for its owner, or a new worker for the monitor: both were told. */
    bool told;
} watched;

typedef struct minding { /* the queue */
    unsigned lookout, naps, misses;
    uint32_t done;
} minding;

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
gather(errand__sandbox *pool, bool all, watched *out)
{
    out->count = 1;
    out->more = out->told = false;
    for (uint32_t i = 0; i < pool->slot_count; i++) {
        errand__sandbox_slot *slot = &pool->slots[i];
        unsigned phase = errand__slot_phase_of(slot);
        bool starting = phase == ERRAND__SLOT_STARTING;

        if (!starting && (phase != ERRAND__SLOT_BUSY || !is_watched(slot, all)))
            continue;
        if (!starting && atomic_load_explicit(&slot->asks, memory_order_relaxed) != 0) {
            out->told = true;
            ring_owner(slot);
            continue;
        }
        if (starting &&
            atomic_load_explicit(&slot->response->ready, memory_order_relaxed) != 0) {
            out->told = true; /* it is ready, or failed */
            errand__sandbox_monitor_kick(pool);
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
sleep_on(errand__sandbox *pool, watched *seen, unsigned bell, bool naps)
{
    uint64_t length = naps ? NAP_NS : seen->told ? ASK_NS : UINT64_MAX;
    int woken = -1;

    seen->words[0] = (errand__futex_word){&pool->bell, bell, false};
    if (seen->count == 1) {
        errand__futex_wait(&pool->bell, bell, length);
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
                                        length < ERRAND__WATCH_NS ? length
                                                                  : ERRAND__WATCH_NS);
    for (unsigned i = 1; i < seen->count; i++)
        if (seen->slots[i] != NULL)
            errand__sleepers_leave(&seen->slots[i]->request->host_sleeps);
    if (woken > 0 && seen->slots[woken] != NULL)
        atomic_fetch_add_explicit(&seen->slots[woken]->wakes, 1, memory_order_relaxed);
}

/* True: it was quicker than an owner. */
static bool
look_around(errand__sandbox *pool, const watched *seen)
{
    bool found = false;

    for (unsigned i = 1; i < seen->count; i++)
        if (seen->slots[i] != NULL)
            found |= errand__slot_look(seen->slots[i], &pool->watcher_hand);
    return found;
}

/* True: an answer lay there at two naps in a row, and was taken. */
static bool
look_again(errand__sandbox *pool)
{
    bool found = false;

    for (uint32_t i = 0; i < pool->slot_count; i++) {
        errand__sandbox_slot *slot = &pool->slots[i];
        unsigned quiet, now;

        if (errand__slot_phase_of(slot) != ERRAND__SLOT_BUSY)
            continue;
        quiet = atomic_load_explicit(&slot->quiet, memory_order_relaxed);
        now = atomic_load_explicit(errand__wire_futex(slot->response),
                                   memory_order_relaxed);
        if (now != quiet && now == slot->noticed)
            found |= errand__slot_look(slot, &pool->watcher_hand);
        slot->noticed = now == quiet ? 0 : now;
    }
    return found;
}

/* Where nobody was done since the last nap, idle workers are not in the way. */
static void
note_stall(errand__sandbox *pool, minding *self)
{
    errand__lock_acquire(&pool->lock);
    pool->stalled = pool->done == self->done;
    self->done = pool->done;
    errand__lock_release(&pool->lock);
}

/* Decides how to mind the queue until the next wake. */
static void
mind(errand__sandbox *pool, minding *self, bool found)
{
    bool queued = atomic_load_explicit(&pool->waiting, memory_order_seq_cst) != 0;
    unsigned before = self->lookout;

    self->misses = found ? 0 : self->misses + 1;
    self->naps = queued ? 0 : self->naps + 1;
    if (self->naps > NAPS)
        self->lookout = ERRAND__LOOKOUT_NONE;
    else if (queued && found)
        self->lookout = ERRAND__LOOKOUT_ALL;
    else if (before == ERRAND__LOOKOUT_NONE ? queued : self->misses > MISSES)
        self->lookout = ERRAND__LOOKOUT_NAPS;
    if (self->lookout == before)
        return;
    atomic_store_explicit(&pool->lookout, self->lookout,
                          memory_order_seq_cst); /* Pairs: sandbox-bell */
    if (self->lookout == ERRAND__LOOKOUT_NONE &&
        atomic_load_explicit(&pool->waiting, memory_order_seq_cst) != 0)
        mind(pool, self, found);
}

static void *
run_watcher(void *arg)
{
    errand__sandbox *pool = arg;
    watched seen;
    minding queue = {.lookout = ERRAND__LOOKOUT_NONE, .naps = NAPS};
    bool found = false;

    errand__sandbox_monitor_enter(pool);
    pthread_setname_np(pthread_self(), "errand-watcher");
    for (;;) {
        unsigned bell = atomic_load_explicit(
            &pool->bell, memory_order_seq_cst); /* Pairs: sandbox-bell */

        if (atomic_load_explicit(&pool->unwatched,
                                 memory_order_acquire)) /* Pairs: sandbox-closing */
            return NULL;
        errand__sandbox_pump(pool, &pool->watcher_hand);
        mind(pool, &queue, found);
        gather(pool, queue.lookout == ERRAND__LOOKOUT_ALL, &seen);
        sleep_on(pool, &seen, bell, queue.lookout == ERRAND__LOOKOUT_NAPS);
        found = look_around(pool, &seen);
        if (queue.lookout == ERRAND__LOOKOUT_NAPS) {
            found = look_again(pool);
            note_stall(pool, &queue);
        }
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
    for (uint32_t i = 0; i < pool->slot_count; i++)
        if (errand__slot_phase_of(&pool->slots[i]) == ERRAND__SLOT_BUSY) {
            pool->tick = true;
            errand__slot_look(&pool->slots[i], &pool->monitor_hand);
        }
}
