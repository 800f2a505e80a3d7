/* SPDX-License-Identifier: MIT */
/* monitor: who looks after workers that a fault tore out of their body.
 *
 * Design notes.
 * - Such a thread may hold any lock of the host's.  It takes its alternate stack away, says where it
 *   was, rings and ends; it allocates nothing and calls nothing of the host's.  Everything else is
 *   done here: the verdict, the accounts, the completion, the host's hook, another thread.
 * - In this order: first whatever cannot block is done for all that were reported, so that every
 *   completion is put although the allocator may be locked for ever.  A new thread needs memory and
 *   comes last; if that hangs, the process is in the state that its host was told of.
 * - A torn thread's block is used again when it has gone: its last step is a store to torn, after
 *   which it only makes a system call with an address. */
#include <signal.h>
#include <stdio.h>
#include "workers/blocking/blocking.h"

#define GONE_LOOK_NS UINT64_C(1000000)

typedef struct taint_call {
    const errand__pool *pool;
    const errand_fault *fault;
} taint_call;

static void
ring(errand__pool *pool)
{
    atomic_fetch_add_explicit(&pool->reports, 1,
                              memory_order_release); /* Pairs: pool-reports */
    errand__futex_wake(&pool->reports, 1);
}

void
errand__worker_torn(errand__worker *worker)
{
    errand__pool *pool = worker->pool;

    errand__worker_forget_key();
    if (worker->hands.interrupt != NULL)
        errand__interrupt_close(worker->hands.interrupt);
    errand__fault_leave(worker->fault);
    /* Pairs: worker-torn (both stores) */
    atomic_store_explicit(&worker->torn, ERRAND__WORKER_TORN, memory_order_release);
    ring(pool);
    atomic_store_explicit(&worker->torn, ERRAND__WORKER_GONE, memory_order_release);
    errand__futex_wake(&worker->torn, 1);
}

/* ---- one that was torn ------------------------------------------------------------------------ */

static void
call_taint(void *arg)
{
    const taint_call *call = arg;
    const errand_faults_config *config = &call->pool->trouble.config;

    config->held_on_taint(config->held_arg, call->fault);
}

/* Nothing here can block: who hears of the completion can read of the fault.  True: the worker is to
 * be replaced. */
static bool
settle(errand__pool *pool, errand__worker *worker, errand_fault *fault)
{
    errand__hands *hands = &worker->hands;
    const errand_job *job = hands->job;

    errand__fault_read(worker->fault, job != NULL ? (uintptr_t)job->record->job->run : 0,
                       job != NULL && hands->allocating, fault);
    if (job != NULL)
        fault->identity =
            errand__record_identity(job->hands->block->runtime_id, job->record);
    errand__lock_acquire(&pool->lock);
    errand__trouble_fault_locked(pool, fault);
    errand__lock_release(&pool->lock);
    errand__hands_crashed(hands, fault);
    errand__worker_account(worker);
    errand__group_account(worker);
    errand__lock_acquire(&pool->lock);
    pool->trouble.counts.memory_given_up += hands->memory_lost;
    pool->trouble.counts.cleanups_given_up += hands->cleanups_lost;
    errand__lock_release(&pool->lock);
    return errand__worker_retire(worker);
}

static void
tell(const errand__pool *pool, const errand_fault *fault)
{
    taint_call call = {pool, fault};
    char text[64];

    if (pool->trouble.config.held_on_taint != NULL)
        (void)errand__contained(call_taint, &call, text, sizeof text);
}

static void
await_gone(errand__worker *worker)
{
    /* Pairs: worker-torn */
    while (atomic_load_explicit(&worker->torn, memory_order_acquire) !=
           ERRAND__WORKER_GONE)
        errand__futex_wait(&worker->torn, ERRAND__WORKER_TORN, GONE_LOOK_NS);
}

/* Its block is free again; another thread takes its place. */
static void
replace(errand__pool *pool, errand__worker *worker, bool wanted)
{
    await_gone(worker);
    errand__ringer_fini(&worker->ringer);
    errand__hands_fini(&worker->hands);
    atomic_store_explicit(&worker->torn, ERRAND__WORKER_WHOLE, memory_order_relaxed);
    errand__lock_acquire(&pool->lock);
    pool->lost_count -= worker->lost;
    worker->lost = worker->alive = false;
    errand__trouble_refresh_locked(pool);
    errand__lock_release(&pool->lock);
    if (wanted && !errand__pool_spawn(pool, true))
        errand__pool_stand_in(pool, &pool->monitor_bell, 1 + pool->worker_room);
    errand__pool_let(pool); /* that thread's */
}

static errand__worker *
worker_at(errand__pool *pool, uint32_t index)
{
    errand__worker *worker;

    errand__lock_acquire(&pool->lock);
    worker = pool->workers[index];
    errand__lock_release(&pool->lock);
    return worker;
}

static bool
is_torn(errand__worker *worker)
{
    /* Pairs: worker-torn */
    return worker != NULL && atomic_load_explicit(&worker->torn, memory_order_acquire) !=
                                 ERRAND__WORKER_WHOLE;
}

#define BIT(i) (UINT64_C(1) << (i) % 64)

/* Two rounds: see the notes. */
static void
look_round(errand__pool *pool)
{
    uint64_t settled[(1024 + ERRAND__SPARE_CELLS) / 64] = {0};
    uint64_t wanted[(1024 + ERRAND__SPARE_CELLS) / 64] = {0};
    errand_fault fault;

    for (uint32_t i = 0; i < pool->worker_room; i++) {
        errand__worker *worker = worker_at(pool, i);

        if (!is_torn(worker))
            continue;
        settled[i / 64] |= BIT(i);
        wanted[i / 64] |= settle(pool, worker, &fault) ? BIT(i) : 0;
        tell(pool, &fault);
    }
    for (uint32_t i = 0; i < pool->worker_room; i++)
        if ((settled[i / 64] & BIT(i)) != 0)
            replace(pool, worker_at(pool, i), (wanted[i / 64] & BIT(i)) != 0);
}

/* ---- the thread --------------------------------------------------------------------------------- */

static bool
is_closing(errand__pool *pool)
{
    bool closing;

    errand__lock_acquire(&pool->lock);
    closing = pool->closing;
    errand__lock_release(&pool->lock);
    return closing;
}

static void *
monitor_main(void *arg)
{
    errand__pool *pool = arg;
    char name[16];

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    snprintf(name, sizeof name, "%.9s/look", pool->name);
    pthread_setname_np(pthread_self(), name);
    for (;;) {
        /* Pairs: pool-reports */
        unsigned reports = atomic_load_explicit(&pool->reports, memory_order_acquire);
        /* Before the look: bodies hold their leases, so after it none can be torn. */
        bool closing = is_closing(pool);

        look_round(pool);
        if (closing)
            break;
        errand__futex_wait(&pool->reports, reports, UINT64_MAX);
    }
    errand__pool_let(pool);
    return NULL;
}

errand_status
errand__monitor_start(errand__pool *pool)
{
    if (!errand__pool_catches(pool))
        return ERRAND_OK;
    if (!errand__fault_possible() || !errand__fault_handlers_take())
        return errand__misuse(ERRAND_EUNSUPPORTED, "errand_blocking_create",
                              "faults cannot be caught under a sanitizer or valgrind, "
                              "which have handlers of their own");
    atomic_fetch_add_explicit(&pool->users, 1, memory_order_relaxed);
    if (errand__pool_thread(pool, monitor_main, pool) == 0)
        return ERRAND_OK;
    atomic_fetch_sub_explicit(&pool->users, 1, memory_order_relaxed);
    errand__fault_handlers_give();
    return ERRAND_ENOTHREAD;
}

void
errand__monitor_stop(errand__pool *pool)
{
    if (!errand__pool_catches(pool))
        return;
    errand__fault_handlers_give();
    ring(pool);
}
