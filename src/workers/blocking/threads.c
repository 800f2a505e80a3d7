/* SPDX-License-Identifier: MIT */
/* threads: how they start, end, are refused, lost and replaced.
 *
 * Design notes.
 * - Threads are detached and count as users of the pool; nobody joins them, so nobody waits
 *   for a body that does not end (O59).
 * - A pool below its maximum keeps one thread that is not busy: the worker that takes the last
 *   idle one's place makes the next, because a submit may not (O26).
 * - A thread that ends inside a body (pthread_exit) is met in a destructor of thread-specific
 *   data: the stack is gone, the worker is not.  It settles the job and replaces itself. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include "errand/testing.h"
#include "workers/blocking/blocking.h"

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t worker_key;
static bool key_made;

static void ended_inside(void *arg);

static errand__worker *refuse_locked(errand__pool *pool, errand__worker *worker)
    ERRAND_REQUIRES(pool->lock);

static void
make_key(void)
{
    key_made = pthread_key_create(&worker_key, ended_inside) == 0;
}

/* ---- starting ---------------------------------------------------------------------------------- */

#if ERRAND_TESTING
void
errand_testing_idle_clock(errand_executor *executor, uint64_t ns)
{
    errand__pool *pool = errand__pool_of(executor);

    errand__lock_acquire(&pool->lock);
    pool->clock_offset += ns;
    errand__lock_release(&pool->lock);
    errand__pool_wake_all(pool);
}
#endif

int
errand__pool_thread(const errand__pool *pool, void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_once(&key_once, make_key);
    if (!key_made)
        return EAGAIN;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return error;
    error = pthread_attr_setstacksize(&attributes, pool->config.stack_size);
    if (error == 0 && errand__pool_catches(pool))
        error = pthread_attr_setguardsize(&attributes, ERRAND__GUARD_SIZE);
    if (error == 0)
        error = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (error == 0)
        error = errand__thread_create(&thread, &attributes, run, arg);
    pthread_attr_destroy(&attributes);
    return error;
}

/* An index without a thread; NULL: none, or the pool is as large as it may be. */
static errand__worker **
free_place_locked(errand__pool *pool)
{
    uint32_t living = atomic_load_explicit(&pool->living, memory_order_relaxed);

    if (pool->closing || living >= pool->config.workers_max)
        return NULL;
    for (uint32_t i = 0; i < pool->worker_room; i++)
        if (pool->workers[i] == NULL || !pool->workers[i]->alive)
            return &pool->workers[i];
    return NULL;
}

static void
free_block(errand__worker *worker)
{
    if (worker == NULL)
        return;
    errand__fault_destroy(worker->fault);
    errand__mem_unmap(worker, sizeof *worker);
}

static errand__worker *
make_block(errand__pool *pool)
{
    errand__worker *fresh = errand__mem_map(sizeof *fresh);

    if (fresh == NULL || !errand__pool_catches(pool))
        return fresh;
    fresh->fault = errand__fault_create();
    if (fresh->fault != NULL)
        return fresh;
    free_block(fresh);
    return NULL;
}

/* A worker counts as seeking from here on: nobody need be roused while it starts.  NULL: there
 * are as many as may be, or *out_error. */
static errand__worker *
prepare_worker(errand__pool *pool, int *out_error)
{
    errand__worker *fresh = NULL, *worker = NULL;
    errand__worker **place;

    errand__lock_acquire(&pool->lock);
    place = free_place_locked(pool);
    if (place != NULL && *place == NULL) {
        errand__lock_release(&pool->lock);
        fresh = make_block(pool);
        errand__lock_acquire(&pool->lock);
        place = free_place_locked(pool);
        if (place != NULL && *place == NULL && fresh != NULL) {
            *place = fresh;
            fresh->index = (uint32_t)(place - pool->workers);
            fresh->pool = pool;
            fresh = NULL;
        }
    }
    *out_error = place != NULL && *place == NULL ? ENOMEM : 0;
    if (place != NULL && *place != NULL) {
        worker = *place;
        worker->alive = worker->seeking = true;
        worker->lost = worker->proven = false;
        atomic_store_explicit(&worker->leave, false, memory_order_relaxed);
        atomic_fetch_add_explicit(&pool->living, 1, memory_order_relaxed);
        errand__seekers_change_locked(pool, 1);
        errand__pool_publish_locked(pool);
    }
    errand__lock_release(&pool->lock);
    free_block(fresh);
    return worker;
}

static void
note_lost_locked(errand__pool *pool)
{
    if (atomic_load_explicit(&pool->living, memory_order_relaxed) == 0 &&
        pool->lost_since == 0)
        pool->lost_since = errand__clock_now();
}

static errand__worker *
refuse_locked(errand__pool *pool, errand__worker *worker)
{
    pool->refused++;
    pool->retry_ns = errand__clock_coarse() + ERRAND__RETRY_NS;
    if (worker != NULL) {
        worker->alive = false;
        errand__worker_unseek_locked(pool, worker);
        atomic_fetch_sub_explicit(&pool->living, 1, memory_order_relaxed);
    }
    note_lost_locked(pool);
    /* Somebody may have counted on it. */
    return errand__pool_has_work_locked(pool) ? errand__worker_rouse_locked(pool) : NULL;
}

/* False: refused, or as many as may be live already. */
bool
errand__pool_spawn(errand__pool *pool, bool replacement)
{
    errand__worker *roused = NULL;
    int error;
    errand__worker *worker = prepare_worker(pool, &error);

    if (worker == NULL && error == 0)
        return false;
    if (worker != NULL) {
        atomic_fetch_add_explicit(&pool->users, 1, memory_order_relaxed);
        error = errand__pool_thread(pool, errand__worker_main, worker);
    }
    errand__lock_acquire(&pool->lock);
    if (error == 0) {
        pool->started++;
        pool->replaced += replacement;
        uint32_t living = atomic_load_explicit(&pool->living, memory_order_relaxed);
        pool->refused = pool->refused == 0 || living >= pool->config.workers_min
                            ? 0
                            : pool->config.workers_min - living;
        pool->lost_since = 0;
    } else {
        roused = refuse_locked(pool, worker);
    }
    errand__lock_release(&pool->lock);
    errand__worker_wake(roused);
    if (error != 0 && worker != NULL)
        errand__pool_let(pool);
    return error == 0;
}

static void
call_hook(void *arg)
{
    errand__worker *worker = arg;
    errand_blocking_config *config = &worker->pool->config;
    void (*hook)(void *, uint32_t) =
        worker->ending ? config->held_on_stop : config->held_on_start;

    if (hook != NULL)
        hook(config->held_arg, worker->index);
}

void
errand__worker_enter(errand__worker *worker)
{
    errand__pool *pool = worker->pool;
    char name[16], text[64];

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    errand__hands_init(&worker->hands);
    errand__worker_interruptible(worker);
    errand__ringer_init(&worker->ringer, &pool->waiters);
    worker->hands.ringer = &worker->ringer;
    if (worker->fault != NULL && errand__fault_enter(worker->fault))
        worker->hands.fault = worker->fault;
    pthread_setspecific(worker_key, worker);
    snprintf(name, sizeof name, "%s/%u", pool->name, worker->index % 1000);
    pthread_setname_np(pthread_self(), name);
    if (pool->config.nice != 0)
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + pool->config.nice);
    if (pool->affinity != NULL)
        sched_setaffinity(0, pool->affinity_size, (const void *)pool->affinity);
    worker->cpus = errand__cpus_allowed();
    worker->seek_skips = worker->seek_backoff = 0;
    worker->wanted = worker->explore_in = worker->explore_every = 1;
    worker->ending = false;
    errand__contained(call_hook, worker, text, sizeof text);
}

/* ---- ending --------------------------------------------------------------------------------------- */

void
errand__worker_leave(errand__worker *worker)
{
    errand__pool *pool = worker->pool;
    char text[64];

    worker->ending = true;
    errand__contained(call_hook, worker, text, sizeof text);
    if (worker->hands.fault != NULL)
        errand__fault_leave(worker->hands.fault);
    errand__ringer_fini(&worker->ringer);
    errand__hands_fini(&worker->hands);
    pthread_setspecific(worker_key, NULL);
    errand__lock_acquire(&pool->lock);
    errand__worker_unseek_locked(pool, worker);
    pool->lost_count -= worker->lost;
    worker->lost = worker->alive = false;
    errand__trouble_refresh_locked(pool);
    errand__lock_release(&pool->lock);
    errand__pool_let(pool);
}

void
errand__worker_forget_key(void)
{
    pthread_setspecific(worker_key, NULL);
}

bool
errand__worker_retire(errand__worker *worker)
{
    errand__pool *pool = worker->pool;
    bool replace;

    errand__lock_acquire(&pool->lock);
    atomic_store_explicit(&worker->bell, 0, memory_order_relaxed);
    if (worker->group.active)
        errand__group_end_locked(pool, worker);
    errand__worker_unseek_locked(pool, worker);
    replace = !worker->lost && !pool->closing;
    if (!worker->lost)
        atomic_fetch_sub_explicit(&pool->living, 1, memory_order_relaxed);
    note_lost_locked(pool);
    errand__lock_release(&pool->lock);
    errand__worker_let_held(worker);
    return replace;
}

/* A body called pthread_exit: its stack is gone, and so is what ran above it. */
static void
ended_inside(void *arg)
{
    errand__worker *worker = arg;
    errand__pool *pool = worker->pool;

    errand__frame_unwind(&worker->hands.frame);
    if (worker->hands.job != NULL) {
        errand__trouble_panic(worker);
        errand__hands_panicked(&worker->hands, "thread exit: the body ended its thread; "
                                               "return from it instead");
        errand__worker_account(worker);
        errand__group_account(worker);
    }
    errand__frame_leave(&worker->hands.frame);
    bool replace = errand__worker_retire(worker);
    if (replace && worker->proven && !errand__pool_spawn(pool, true))
        errand__pool_stand_in(pool, &worker->bell, 1 + worker->index);
    errand__worker_leave(worker);
}

errand__worker *
errand__worker_find_locked(errand__pool *pool, const errand_lease *lease, uint64_t entry)
{
    for (uint32_t i = 0; i < pool->worker_room; i++) {
        errand__worker *worker = pool->workers[i];
        if (worker == NULL || !worker->group.active || worker->group.lease != lease)
            continue;
        /* Pairs: worker-progress */
        uint64_t progress = atomic_load_explicit(&worker->progress, memory_order_acquire);
        if (worker->group.entries[progress & 0xff] == entry)
            return worker;
    }
    return NULL;
}

bool
errand__pool_write_off(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__pool *pool = errand__place_of(lease)->pool;

    errand__lock_acquire(&pool->lock);
    errand__worker *found = errand__worker_find_locked(
        pool, lease, errand__entry_make(generation, record->slot));
    if (found != NULL) {
        errand__group_steal_locked(pool, found);
        errand__group_leave_locked(pool, found);
        found->lost = true;
        atomic_store_explicit(&found->leave, true, memory_order_relaxed);
        pool->lost_count++;
        errand__trouble_refresh_locked(pool);
        atomic_fetch_sub_explicit(&pool->living, 1, memory_order_relaxed);
        note_lost_locked(pool);
    }
    errand__lock_release(&pool->lock);
    if (found != NULL)
        errand__pool_spawn(pool, true);
    return found != NULL;
}
