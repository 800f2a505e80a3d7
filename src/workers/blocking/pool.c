/* SPDX-License-Identifier: MIT */
/* pool: what is created, attached, detached and freed.
 *
 * Design notes.
 * - The pool's block is counted by the executor and by each thread: when the last reference to
 *   the executor goes, no lease is left, so its threads have nothing to do and leave one by
 *   one; the last user frees the block.
 * - A lease's place lives as long as the lease, because a worker that holds the lease may look
 *   at its queues; detaching only takes them out of every list. */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include "workers/blocking/blocking.h"

#define WORKERS_MOST 1024
#define STACK_USUAL  ((size_t)1 << 20)
#define IDLE_USUAL   UINT64_C(10000000000)
#define NAME_MOST    11
#define CPU_MOST     65536

static uint32_t
pool_cells(errand_executor *executor)
{
    const errand__pool *pool = errand__pool_of(executor);

    return pool->worker_room + errand__pool_catches(pool); /* the last: the monitor's */
}

static errand_status
pool_attach(errand_executor *executor, errand_lease *lease)
{
    errand__pool *pool = errand__pool_of(executor);
    errand__place *place = errand__mem_map(sizeof *place);

    if (place == NULL)
        return ERRAND_ENOMEM;
    place->pool = pool;
    place->lease = lease;
    lease->impl = place;
    errand__lock_acquire(&pool->lock);
    pool->lanes_fixed = true;
    errand__list_append(&pool->places, &place->attached);
    errand__lock_release(&pool->lock);
    return ERRAND_OK;
}

static void
pool_detach(errand_lease *lease, uint64_t deadline_ns)
{
    errand__place *place = errand__place_of(lease);
    errand__pool *pool = place->pool;

    (void)deadline_ns; /* bodies that run hold the lease; nobody is waited for */
    errand__lock_acquire(&pool->lock);
    errand__place_close_locked(pool, place);
    errand__list_unlink(&place->attached);
    errand__lock_release(&pool->lock);
}

static void
pool_forget(errand_lease *lease)
{
    errand__place *place = errand__place_of(lease);

    if (!place->gone)
        pool_detach(lease, 0);
    for (int lane = 0; lane < ERRAND_LANES; lane++) {
        errand__queue *queue = place->queues[lane];
        for (int rank = 0; queue != NULL && rank < ERRAND__RANKS; rank++)
            errand__ring_unmap(&queue->rings[rank]);
        if (queue != NULL)
            errand__mem_unmap(queue, sizeof *queue);
    }
    errand__soft_unmap(place);
    errand__mem_unmap(place, sizeof *place);
}

static errand_status
pool_lane_define(errand_executor *executor, const char *name, uint32_t limit,
                 uint8_t *out_lane)
{
    errand__pool *pool = errand__pool_of(executor);
    errand_status status = ERRAND_EFULL;

    errand__lock_acquire(&pool->lock);
    if (pool->lanes_fixed)
        status = ERRAND_EBUSY;
    for (uint8_t i = ERRAND_LANE_FIRST_OWN; i < ERRAND_LANES && status == ERRAND_EFULL;
         i++) {
        errand__lane *lane = &pool->lanes[i];
        if (lane->limit != 0)
            continue;
        lane->limit = limit;
        errand__text_format(lane->name, sizeof lane->name, "%s", name);
        *out_lane = i;
        status = ERRAND_OK;
    }
    errand__lock_release(&pool->lock);
    return status;
}

static bool
pool_crowded(const errand_lease *lease)
{
    const errand__pool *pool = errand__place_of(lease)->pool;
    uint32_t sleepers = (uint32_t)atomic_load_explicit(&pool->idle, memory_order_relaxed);

    return atomic_load_explicit(&pool->living, memory_order_relaxed) >=
           sleepers + pool->processors;
}

static void
pool_destroy(errand_executor *executor)
{
    errand__pool *pool = errand__pool_of(executor);

    errand__lock_acquire(&pool->lock);
    ERRAND_ASSERT(errand__list_empty(&pool->places));
    pool->closing = true;
    atomic_fetch_add_explicit(&pool->news, 1,
                              memory_order_release); /* Pairs: pool-news */
    errand__lock_release(&pool->lock);
    errand__pool_wake_all(pool);
    errand__kicker_stop(pool);
    errand__monitor_stop(pool);
    errand__pool_let(pool);
}

static void
pool_free(errand__pool *pool)
{
    for (uint32_t i = 0; i < pool->worker_room; i++)
        if (pool->workers[i] != NULL) {
            errand__fault_destroy(pool->workers[i]->fault);
            errand__mem_unmap(pool->workers[i], sizeof *pool->workers[i]);
        }
    if (pool->workers != NULL)
        errand__mem_unmap(pool->workers, pool->worker_room * sizeof *pool->workers);
    errand__mem_free(NULL, pool->affinity, pool->affinity_size);
    errand__mem_unmap(pool, sizeof *pool);
}

void
errand__pool_let(errand__pool *pool)
{
    /* Pairs: pool-users */
    if (atomic_fetch_sub_explicit(&pool->users, 1, memory_order_acq_rel) == 1)
        pool_free(pool);
}

const errand__executor_ops errand__pool_ops = {
    .name = "blocking",
    .cells = pool_cells,
    .attach = pool_attach,
    .ready = errand__pool_ready,
    .reserve = errand__pool_reserve,
    .submit = errand__pool_submit,
    .flush = errand__pool_flush,
    .stale = errand__pool_stale,
    .rescue = errand__pool_rescue,
    .write_off = errand__pool_write_off,
    .nudge = errand__pool_nudge,
    .detach = pool_detach,
    .snapshot = errand__pool_snapshot,
    .destroy = pool_destroy,
    .forget = pool_forget,
    .lane_define = pool_lane_define,
    .tend = errand__pool_tend,
    .crowded = pool_crowded,
};

/* ---- creation ----------------------------------------------------------------------------------- */

/* Fills the defaults in; a text says what is wrong, NULL if nothing is. */
static const char *
complete_config(const errand_blocking_config *given, errand_blocking_config *out)
{
    static const errand_blocking_config defaults = {.struct_size = sizeof defaults};

    if (given == NULL)
        given = &defaults;
    if (given->struct_size < offsetof(errand_blocking_config, idle_ns) ||
        given->struct_size > sizeof *out)
        return "struct_size is not that of a configuration this library knows";
    memset(out, 0, sizeof *out);
    memcpy(out, given, given->struct_size);
    if ((out->flags & ~(uint32_t)ERRAND_BLOCKING_CATCH_FAULTS) != 0)
        return "a flag is not known";
    if (out->workers_min == 0)
        out->workers_min = 1;
    if (out->workers_max == 0) {
        unsigned processors = errand__cpus_allowed();
        out->workers_max = processors > 4 ? processors : 4;
        if (out->workers_max > WORKERS_MOST)
            out->workers_max = WORKERS_MOST;
        if (out->workers_max < out->workers_min)
            out->workers_max = out->workers_min;
    }
    if (out->workers_max > WORKERS_MOST || out->workers_min > out->workers_max)
        return "the pool needs workers_min <= workers_max <= 1024";
    if (out->quarantined_limit == 0)
        out->quarantined_limit = out->workers_max > 1 ? out->workers_max / 2 : 1;
    if (out->idle_ns == 0)
        out->idle_ns = IDLE_USUAL;
    if (out->stack_size == 0)
        out->stack_size = STACK_USUAL;
    if (out->stack_size < (size_t)PTHREAD_STACK_MIN)
        return "the stack is smaller than the system allows";
    if (out->name == NULL)
        out->name = "errand";
    if (strlen(out->name) > NAME_MOST)
        return "the name has more than 11 bytes";
    if ((out->cpus == NULL) != (out->cpu_count == 0))
        return "cpus and cpu_count belong together";
    for (size_t i = 0; i < out->cpu_count; i++)
        if (out->cpus[i] >= CPU_MOST)
            return "a processor's number is too large";
    if (out->interrupt_signal != 0 && !errand__kicker_may_use(out->interrupt_signal))
        return "interrupt_signal is no signal that can be used for that";
    return NULL;
}

static bool
copy_affinity(errand__pool *pool)
{
    const errand_blocking_config *config = &pool->config;
    const size_t bits = 8 * sizeof(unsigned long);
    uint32_t last = 0;

    if (config->cpu_count == 0)
        return true;
    for (size_t i = 0; i < config->cpu_count; i++)
        last = config->cpus[i] > last ? config->cpus[i] : last;
    pool->affinity_size = (last / bits + 1) * sizeof(unsigned long);
    pool->affinity = errand__mem_alloc(NULL, pool->affinity_size);
    if (pool->affinity == NULL)
        return false;
    for (size_t i = 0; i < config->cpu_count; i++)
        pool->affinity[config->cpus[i] / bits] |= 1UL << config->cpus[i] % bits;
    return true;
}

static void
init_times(errand__pool *pool)
{
    pool->per_us = errand__cycles_per_us();
    pool->quick_cycles = 10 * pool->per_us;
    pool->group_cycles = 20 * pool->per_us;
    pool->gather_cycles = pool->per_us / 2 + 1;
    pool->soon_cycles = 50 * pool->per_us;
    pool->late_cycles = 400 * pool->per_us;
    pool->processors = errand__cpus_allowed();
}

static void
init_lists(errand__pool *pool)
{
    errand__list_init(&pool->active);
    errand__list_init(&pool->places);
    errand__list_init(&pool->sleepers);
    for (int i = 0; i < ERRAND_LANES; i++)
        errand__list_init(&pool->lanes[i].waiting);
    pool->lanes[ERRAND_LANE_MAIN].limit = UINT32_MAX;
    pool->lanes[ERRAND_LANE_QUARANTINED].limit = pool->config.quarantined_limit;
}

/* The threads that a pool may have besides its workers.  Frees the pool where one cannot be made. */
static errand_status
start_helpers(errand__pool *pool)
{
    errand_status status = errand__monitor_start(pool);

    if (status == ERRAND_OK) {
        status = errand__kicker_start(pool);
        if (status == ERRAND_OK)
            return ERRAND_OK;
        errand__lock_acquire(&pool->lock);
        pool->closing = true;
        errand__lock_release(&pool->lock);
        errand__monitor_stop(pool);
    }
    errand__pool_let(pool);
    return status;
}

errand_status
errand_blocking_create(const errand_blocking_config *config,
                       errand_executor **out_executor)
{
    errand_blocking_config complete;

    ERRAND_REQUIRE_ARG(out_executor != NULL, ERRAND_EINVAL, "out_executor is NULL");
    const char *wrong = complete_config(config, &complete);
    if (wrong != NULL)
        return errand__misuse(ERRAND_EINVAL, __func__, wrong);
    errand__pool *pool = errand__mem_map(sizeof *pool);
    if (pool == NULL)
        return ERRAND_ENOMEM;
    errand__executor_init(&pool->base, &errand__pool_ops);
    atomic_store_explicit(&pool->users, 1, memory_order_relaxed);
    pool->config = complete;
    errand__text_format(pool->name, sizeof pool->name, "%s", complete.name);
    pool->worker_room = complete.workers_max + ERRAND__SPARE_CELLS;
    /* Mapped, because a leak checker does not look into the pool's own mapping, and a process
     * may end while the last threads do. */
    pool->workers = errand__mem_map(pool->worker_room * sizeof *pool->workers);
    if (pool->workers == NULL || !copy_affinity(pool)) {
        pool->worker_room = pool->workers != NULL ? pool->worker_room : 0;
        pool_free(pool);
        return ERRAND_ENOMEM;
    }
    pool->config.cpus = NULL;
    pool->config.name = pool->name;
    init_times(pool);
    init_lists(pool);
    (void)errand__trouble_complete(pool, NULL, &pool->trouble.config);
    errand_status status = start_helpers(pool);
    if (status != ERRAND_OK)
        return status;
    for (uint32_t i = 0; i < complete.workers_min; i++)
        errand__pool_spawn(pool, false);
    *out_executor = &pool->base;
    return ERRAND_OK;
}
