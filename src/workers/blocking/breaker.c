/* SPDX-License-Identifier: MIT */
/* breaker: what goes wrong with bodies is counted here, and says when submit refuses.
 *
 * Design notes.
 * - One word says whether anything is to be refused; a submit that finds it zero, which is the rule,
 *   asks no further.  Else it looks with the lock, where the clock can close the breaker again.
 * - The breaker's moments are those of the pool's idle clock, which tests can move.
 * - Panics are counted with the lock: they cost far more than that anyway. */
#include <signal.h>
#include <string.h>
#include "workers/blocking/blocking.h"

#define SECOND        UINT64_C(1000000000)
#define EVENTS_CAUGHT 64 /* what opens the breaker of a pool that catches faults */

static void note_event_locked(errand__pool *pool) ERRAND_REQUIRES(pool->lock);

const char *
errand__trouble_complete(const errand__pool *pool, const errand_faults_config *given,
                         errand_faults_config *out)
{
    static const errand_faults_config defaults = {.struct_size = sizeof defaults};

    if (given == NULL)
        given = &defaults;
    if (given->struct_size < offsetof(errand_faults_config, breaker_window_ns) ||
        given->struct_size > sizeof *out)
        return "struct_size is not that of a configuration this library knows";
    memset(out, 0, sizeof *out);
    memcpy(out, given, given->struct_size);
    if ((out->flags & ~(uint32_t)ERRAND_FAULTS_GO_ON) != 0)
        return "a flag is not known";
    if (out->abandoned_max == 0)
        out->abandoned_max = ERRAND__SPARE_CELLS;
    if (out->abandoned_max > ERRAND__SPARE_CELLS)
        return "abandoned_max is at most 64";
    if (out->breaker_events == 0)
        out->breaker_events = errand__pool_catches(pool) ? EVENTS_CAUGHT : UINT32_MAX;
    if (out->breaker_events > ERRAND__BREAKER_MOST && out->breaker_events != UINT32_MAX)
        return "breaker_events is at most 256, or UINT32_MAX";
    if (out->breaker_window_ns == 0)
        out->breaker_window_ns = SECOND;
    if (out->breaker_open_ns == 0)
        out->breaker_open_ns = SECOND;
    return NULL;
}

/* ---- refusing -------------------------------------------------------------------------------- */

void
errand__trouble_refresh_locked(errand__pool *pool)
{
    errand__trouble *trouble = &pool->trouble;
    errand_status status = ERRAND_OK;

    if (trouble->open_until != 0 &&
        errand__pool_clock_locked(pool) >= trouble->open_until) {
        trouble->open_until = trouble->event_count = 0;
        trouble->counts.flags &= ~(uint32_t)ERRAND_FAULTS_BREAKER_OPEN;
    }
    if ((trouble->counts.flags & ERRAND_FAULTS_REFUSING) != 0)
        status = ERRAND_ETAINTED;
    else if (pool->lost_count >= trouble->config.abandoned_max)
        status = ERRAND_EFULL;
    else if (trouble->open_until != 0)
        status = ERRAND_EBREAKER;
    atomic_store_explicit(&pool->refusal, status, memory_order_relaxed);
}

errand_status
errand__trouble_refusal(errand__pool *pool)
{
    errand_status status;

    errand__lock_acquire(&pool->lock);
    errand__trouble_refresh_locked(pool);
    status = (errand_status)atomic_load_explicit(&pool->refusal, memory_order_relaxed);
    errand__lock_release(&pool->lock);
    return status;
}

/* One fault or panic more; opens the breaker if there were too many within its window. */
static void
note_event_locked(errand__pool *pool)
{
    errand__trouble *trouble = &pool->trouble;
    uint64_t events = trouble->config.breaker_events, now;

    if (events > ERRAND__BREAKER_MOST || trouble->open_until != 0)
        return;
    now = errand__pool_clock_locked(pool);
    trouble->events[trouble->event_count++ % events] = now;
    /* The oldest of the last so many, where the next one will stand. */
    if (trouble->event_count >= events &&
        now - trouble->events[trouble->event_count % events] <
            trouble->config.breaker_window_ns) {
        trouble->open_until = now + trouble->config.breaker_open_ns;
        trouble->counts.flags |= ERRAND_FAULTS_BREAKER_OPEN;
        trouble->counts.breaker_opened++;
    }
}

/* Before its completion is put, so that who hears of that can read of this.  The clock is ours, not the
 * body's: no trap for hidden input may take it for that. */
void
errand__trouble_panic(errand__worker *worker)
{
    errand__pool *pool = worker->pool;
    errand_job *job = worker->hands.job;
    bool impure;

    if (job == NULL)
        return;
    impure = job->impure;
    job->impure = true;
    errand__lock_acquire(&pool->lock);
    pool->trouble.counts.panics++;
    note_event_locked(pool);
    errand__trouble_refresh_locked(pool);
    errand__lock_release(&pool->lock);
    job->impure = impure;
}

void
errand__trouble_fault_locked(errand__pool *pool, const errand_fault *fault)
{
    errand__trouble *trouble = &pool->trouble;
    errand_faults *counts = &trouble->counts;

    trouble->kept[counts->caught++ % ERRAND__FAULTS_KEPT] = *fault;
    counts->last = *fault;
    counts->segv += fault->signal_number == SIGSEGV;
    counts->bus += fault->signal_number == SIGBUS;
    counts->fpe += fault->signal_number == SIGFPE;
    counts->ill += fault->signal_number == SIGILL;
    counts->abrt += fault->signal_number == SIGABRT;
    counts->flags |= ERRAND_FAULTS_TAINTED;
    if (fault->verdict == ERRAND_FAULT_SUSPECT) {
        counts->suspect++;
        counts->flags |= ERRAND_FAULTS_RESTART_ADVISED;
        if ((trouble->config.flags & ERRAND_FAULTS_GO_ON) == 0)
            counts->flags |= ERRAND_FAULTS_REFUSING;
    }
    note_event_locked(pool);
    errand__trouble_refresh_locked(pool);
}

/* ---- calls of the host ------------------------------------------------------------------------ */

static errand_status
check_pool(const errand_executor *executor, const char *function)
{
    if (executor->fork_epoch != errand__fork_epoch())
        return errand__misuse(ERRAND_EFORKED, function,
                              "the executor belongs to the parent process");
    if (executor->ops != &errand__pool_ops)
        return errand__misuse(ERRAND_EUNSUPPORTED, function,
                              "the executor is not a blocking pool");
    return ERRAND_OK;
}

errand_status
errand_faults_set(errand_executor *executor, const errand_faults_config *config)
{
    errand_faults_config complete;
    errand__pool *pool;

    ERRAND_REQUIRE_ARG(executor != NULL && config != NULL, ERRAND_EINVAL,
                       "an executor and a configuration are needed");
    errand_status status = check_pool(executor, __func__);
    if (status != ERRAND_OK)
        return status;
    pool = errand__pool_of(executor);
    const char *wrong = errand__trouble_complete(pool, config, &complete);
    if (wrong != NULL)
        return errand__misuse(ERRAND_EINVAL, __func__, wrong);
    errand__lock_acquire(&pool->lock);
    if (pool->lanes_fixed)
        status = ERRAND_EBUSY;
    else
        pool->trouble.config = complete;
    errand__lock_release(&pool->lock);
    return status == ERRAND_OK ? status
                               : errand__misuse(status, __func__, "the pool has a lease");
}

errand_status
errand_faults_read(errand_executor *executor, errand_faults *out_faults)
{
    ERRAND_REQUIRE_ARG(executor != NULL && out_faults != NULL, ERRAND_EINVAL,
                       "an executor and a place for its faults are needed");
    errand_status status = check_pool(executor, __func__);
    if (status != ERRAND_OK)
        return status;
    errand__pool *pool = errand__pool_of(executor);
    errand__lock_acquire(&pool->lock);
    errand__trouble_refresh_locked(pool);
    *out_faults = pool->trouble.counts;
    out_faults->abandoned = pool->lost_count;
    errand__lock_release(&pool->lock);
    if (errand__pool_catches(pool))
        out_faults->flags |= ERRAND_FAULTS_CATCHING;
    return ERRAND_OK;
}

static bool
same_operation(const errand_identity *a, const errand_identity *b)
{
    return a->runtime == b->runtime && a->wait == b->wait &&
           a->generation == b->generation && a->operation == b->operation &&
           a->kind == b->kind;
}

errand_status
errand_faults_find(errand_executor *executor, const errand_identity *identity,
                   errand_fault *out_fault)
{
    ERRAND_REQUIRE_ARG(executor != NULL && identity != NULL && out_fault != NULL,
                       ERRAND_EINVAL, "an executor, an identity and a place are needed");
    errand_status status = check_pool(executor, __func__);
    if (status != ERRAND_OK)
        return status;
    errand__pool *pool = errand__pool_of(executor);
    const errand__trouble *trouble = &pool->trouble;
    status = ERRAND_EUNKNOWN;
    errand__lock_acquire(&pool->lock);
    for (uint64_t i = 0; i < ERRAND__FAULTS_KEPT && i < trouble->counts.caught; i++)
        if (same_operation(&trouble->kept[i].identity, identity)) {
            *out_fault = trouble->kept[i];
            status = ERRAND_OK;
        }
    errand__lock_release(&pool->lock);
    return status;
}
