/* SPDX-License-Identifier: MIT */
/* Design notes: what is created, attached, detached and freed.
 *
 * - A lease's end ends what its jobs still have out: each is looked at once more, then settled, and
 *   its worker killed, so that nothing of the lease runs afterwards.
 * - The last reference may be given up by one of the pool's own threads, when it settles the last
 *   job of a lease that is gone; then nobody waits for the monitor, which frees the pool itself.  So a
 *   lease's end waits until they have let go of it, for a second at most: whoever gives up the last
 *   lease and the executor then finds no worker left (S15). */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "workers/sandbox/sandbox.h"

#define RESPONSE_MOST ((size_t)1 << 20) /* larger results come in pieces */
#define REPLY_SIZE    ((size_t)1 << 16)
#define SETUP_MOST    ((size_t)16 << 20) /* addresses, not memory */
#define SECOND        UINT64_C(1000000000)

static const errand__executor_ops sandbox_ops;

/* ---- leases ----------------------------------------------------------------------------------------- */

static uint32_t
sandbox_cells(errand_executor *executor)
{
    (void)executor;
    return ERRAND__CELL_WATCHER;
}

static errand_status
sandbox_attach(errand_executor *executor, errand_lease *lease)
{
    errand__sandbox *pool = errand__sandbox_of(executor);
    errand__sandbox_place *place = errand__mem_map(sizeof *place);

    if (place == NULL)
        return ERRAND_ENOMEM;
    place->pool = pool;
    place->lease = lease;
    place->mapped = lease->block->record_count * sizeof *place->jobs;
    place->jobs = errand__mem_map(place->mapped);
    for (int rank = 0; rank < ERRAND__SANDBOX_RANKS; rank++)
        errand__list_init(&place->queues[rank]);
    errand__hands_init(&place->hands);
    if (place->jobs == NULL || !errand__ages_init(&place->ages, lease)) {
        errand__place_fini(place);
        return ERRAND_ENOMEM;
    }
    place->hands.owners = true;
    place->hands.epoch = lease->epoch;
    place->hand = (errand__sandbox_hand){&place->hands, place, ERRAND__CELL_OWNER};
    lease->impl = place;
    errand__lock_acquire(&pool->lock);
    errand__list_append(&pool->places, &place->attached);
    errand__lock_release(&pool->lock);
    errand__outcome_enter(place);
    return ERRAND_OK;
}

static errand_status
sandbox_reserve(errand_lease *lease, uint32_t count)
{
    (void)lease;
    (void)count;
    return ERRAND_OK;
}

/* Ends a job that is out.  False: somebody else has it in hand. */
static bool
end_job(errand__sandbox_slot *slot, errand__sandbox_place *place)
{
    errand__slot_intent intent = ERRAND__INTENT_CLOSE;

    if (!errand__slot_take(slot))
        return false;
    if (slot->lease != place->lease) {
        errand__slot_put_back(slot, &place->hand);
        return true;
    }
    if (errand__slot_look_once(slot, &place->hand))
        intent = slot->intent;
    else
        errand__slot_fail(slot, &place->hand, intent, NULL);
    errand__slot_release(slot, intent);
    return true;
}

static void
sandbox_detach(errand_lease *lease, uint64_t deadline_ns)
{
    errand__sandbox_place *place = lease->impl;
    errand__sandbox *pool = place->pool;
    uint64_t least = errand__clock_now() + SECOND;

    if (deadline_ns < least)
        deadline_ns = least; /* what is in a hand is there for a moment only */
    errand__place_empty(place);
    for (uint32_t i = 0; i < pool->workers_max; i++)
        while (
            (atomic_load_explicit(&place->busy[i / 64], memory_order_acquire) >> i % 64 &
             1) != 0 && /* Pairs: place-busy */
            !end_job(&pool->slots[i], place) &&
            errand__clock_now() < deadline_ns)
            sched_yield();
    errand__lock_acquire(&pool->lock);
    errand__list_unlink(&place->attached);
    place->gone = true;
    errand__lock_release(&pool->lock);
    errand__outcome_leave(place);
    if (atomic_load_explicit(&pool->waiting, memory_order_seq_cst) != 0)
        errand__sandbox_monitor_kick(pool); /* others' jobs, for the workers of these */
    /* A thread of the pool that has just ended a job lets go of the lease a moment later.  If it were
     * the last, nobody would wait for the workers' ends. */
    while (!errand__lease_is_alone(lease) && errand__clock_now() < deadline_ns)
        sched_yield();
}

static void
sandbox_forget(errand_lease *lease)
{
    errand__sandbox_place *place = lease->impl;

    if (!place->gone)
        sandbox_detach(lease, 0);
    errand__place_fini(place);
}

/* ---- figures ------------------------------------------------------------------------------------------ */

static void
count_slots(const errand__sandbox *pool, errand_sandbox_snapshot *out)
{
    for (uint32_t i = 0; i < pool->workers_max; i++)
        switch (errand__slot_phase_of(&pool->slots[i])) {
        case ERRAND__SLOT_STARTING:
            out->starting++;
            break;
        case ERRAND__SLOT_IDLE:
            out->ready++;
            break;
        case ERRAND__SLOT_BUSY:
        case ERRAND__SLOT_HELD:
            out->busy++;
            break;
        case ERRAND__SLOT_DYING:
            out->dying++;
            break;
        default:
            break;
        }
}

errand_status
errand_sandbox_snapshot_read(errand_executor *executor,
                             errand_sandbox_snapshot *out_snapshot)
{
    errand__sandbox *pool;

    ERRAND_REQUIRE_ARG(executor != NULL && out_snapshot != NULL, ERRAND_EINVAL,
                       "an executor and a place for its snapshot are needed");
    ERRAND_REQUIRE_ARG(out_snapshot->struct_size == sizeof *out_snapshot, ERRAND_EINVAL,
                       "struct_size must be sizeof(errand_sandbox_snapshot)");
    ERRAND_REQUIRE_ARG(executor->ops == &sandbox_ops, ERRAND_EINVAL,
                       "the executor is no sandbox");
    ERRAND_REQUIRE_ARG(executor->fork_epoch == errand__fork_epoch(), ERRAND_EFORKED,
                       "the executor belongs to the parent process");
    if (errand__virtual_inside())
        return errand__virtual_refuse(__func__);
    pool = errand__sandbox_of(executor);
    errand__lock_acquire(&pool->lock);
    *out_snapshot = pool->counts;
    errand__lock_release(&pool->lock);
    out_snapshot->struct_size = sizeof *out_snapshot;
    count_slots(pool, out_snapshot);
    return ERRAND_OK;
}

static void
sandbox_snapshot(errand_executor *executor, const errand_lease *only,
                 errand_executor_snapshot *out_snapshot)
{
    errand__sandbox *pool = errand__sandbox_of(executor);
    errand_sandbox_snapshot now = {.struct_size = 0};
    errand_snapshot sums = {.accepted = 0};

    count_slots(pool, &now);
    errand__lock_acquire(&pool->lock);
    for (errand__link *link = pool->places.next; link != &pool->places;
         link = link->next) {
        const errand__sandbox_place *place =
            ERRAND__CONTAINER(link, errand__sandbox_place, attached);

        if (only != NULL && place->lease != only)
            continue;
        errand__lease_account(place->lease, &sums);
        errand__ages_read(&place->ages, place->lease->block, out_snapshot);
    }
    out_snapshot->threads_started = pool->counts.started;
    out_snapshot->threads_retired = pool->counts.recycled;
    out_snapshot->threads_replaced = pool->counts.crashed + pool->counts.killed;
    errand__lock_release(&pool->lock);
    out_snapshot->queued = sums.queued;
    out_snapshot->running = sums.running;
    out_snapshot->workers = now.ready + now.busy + now.starting;
    out_snapshot->idle = now.ready;
    out_snapshot->written_off = now.dying;
}

errand_status
errand_sandbox_buffer(errand_executor *executor, size_t size,
                      errand_ffi_buffer **out_buffer)
{
    errand__region *region;

    ERRAND_REQUIRE_ARG(executor != NULL && out_buffer != NULL && size > 0, ERRAND_EINVAL,
                       "an executor, out_buffer and a size above 0 are needed");
    ERRAND_REQUIRE_ARG(executor->ops == &sandbox_ops, ERRAND_EINVAL,
                       "the executor is no sandbox");
    ERRAND_REQUIRE_ARG(executor->fork_epoch == errand__fork_epoch(), ERRAND_EFORKED,
                       "the executor belongs to the parent process");
    region = errand__sandbox_of(executor)->region;
    ERRAND_REQUIRE_ARG(region != NULL, ERRAND_EUNSUPPORTED,
                       "the policy has no shared_in_bytes");
    return errand__region_buffer(region, size, out_buffer);
}

/* ---- the end --------------------------------------------------------------------------------------------- */

void
errand__sandbox_free(errand__sandbox *pool)
{
    for (uint32_t i = 0; pool->slots != NULL && i < pool->workers_max; i++)
        errand__mem_free(NULL, pool->slots[i].gathered.bytes,
                         pool->slots[i].gathered.room);
    if (pool->addresses != NULL)
        munmap(pool->addresses,
               pool->workers_max * (pool->request_room + pool->response_room));
    if (pool->slots != NULL)
        errand__mem_unmap(pool->slots, pool->workers_max * sizeof *pool->slots);
    for (uint32_t i = 0; i < pool->path_count; i++)
        close(pool->path_fds[i]);
    if (pool->kick_fd >= 0)
        close(pool->kick_fd);
    if (pool->poll_fd >= 0)
        close(pool->poll_fd);
    if (pool->launcher.destroy != NULL)
        pool->launcher.destroy(pool->launcher.arg);
    errand__hands_fini(&pool->monitor_hands);
    errand__hands_fini(&pool->watcher_hands);
    errand__entries_fini(pool);
    errand__policy_destroy(&pool->policy);
    errand__region_let(pool->region);
    errand__groups_fini(&pool->groups);
    errand__mem_free(NULL, pool->crashes, pool->crash_limit * sizeof *pool->crashes);
    errand__sandbox_keep_end(pool);
    errand__mem_unmap(pool, sizeof *pool);
}

static void
sandbox_destroy(errand_executor *executor)
{
    errand__sandbox *pool = errand__sandbox_of(executor);
    bool here = errand__sandbox_monitor_is_here(pool);

    pool->orphan = here;
    atomic_store_explicit(&pool->closing, true,
                          memory_order_release); /* Pairs: sandbox-closing */
    errand__sandbox_monitor_kick(pool);
    if (here)
        return;
    pthread_join(pool->monitor, NULL);
    errand__sandbox_free(pool);
}

static const errand__executor_ops sandbox_ops = {
    .name = "sandbox",
    .ready_each = true,
    .cells = sandbox_cells,
    .attach = sandbox_attach,
    .ready = errand__sandbox_ready,
    .reserve = sandbox_reserve,
    .submit = errand__sandbox_submit,
    .stale = errand__sandbox_stale,
    .write_off = errand__sandbox_write_off,
    .nudge = errand__sandbox_nudge,
    .detach = sandbox_detach,
    .snapshot = sandbox_snapshot,
    .destroy = sandbox_destroy,
    .forget = sandbox_forget,
    .collect = errand__sandbox_collect,
    .watch = errand__sandbox_watch,
};

/* ---- creation ------------------------------------------------------------------------------------------- */

static size_t
whole_pages(uint64_t size)
{
    return (size_t)((size + ERRAND__WIRE_PAGE - 1) / ERRAND__WIRE_PAGE *
                    ERRAND__WIRE_PAGE);
}

/* NULL = nothing is wrong. */
static const char *
take_config(errand__sandbox *pool, const errand_sandbox_config *config)
{
    unsigned processors = errand__cpus_allowed();

    pool->processors = processors;
    pool->workers_min = config->workers_min != 0 ? config->workers_min : 1;
    pool->workers_max = config->workers_max;
    if (pool->workers_max == 0)
        pool->workers_max =
            processors > pool->workers_min ? processors : pool->workers_min;
    if (pool->workers_max > ERRAND__SANDBOX_MOST || pool->workers_min > pool->workers_max)
        return "a sandbox needs workers_min <= workers_max <= 256";
    if ((config->flags & ~(uint32_t)ERRAND_SANDBOX_NO_TEMPLATE) != 0)
        return "config->flags has unknown bits";
    errand__template_init(&pool->template,
                          !pool->launcher.templates ||
                              (config->flags & ERRAND_SANDBOX_NO_TEMPLATE) != 0);
    pool->crash_limit = config->crash_limit != 0 ? config->crash_limit : 8;
    if (pool->crash_limit > 65536)
        return "crash_limit is more than 65536";
    pool->crash_window_ns =
        config->crash_window_ns != 0 ? config->crash_window_ns : SECOND;
    pool->breaker_ns = config->breaker_ns != 0 ? config->breaker_ns : SECOND;
    return NULL;
}

/* Addresses for all slots; memory comes with the workers. */
static bool
make_slots(errand__sandbox *pool)
{
    const errand_sandbox_policy *policy = &pool->policy.values;

    pool->body_size = whole_pages(policy->in_bytes);
    pool->reply_size = (policy->promises & ERRAND_PROMISE_CALLBACK) != 0
                           ? REPLY_SIZE
                           : ERRAND__WIRE_PAGE;
    pool->response_size = whole_pages(policy->out_bytes);
    if (pool->response_size > RESPONSE_MOST)
        pool->response_size = RESPONSE_MOST;
    pool->request_room = whole_pages(sizeof(errand__wire_request)) + SETUP_MOST +
                         pool->body_size + pool->reply_size;
    pool->response_room =
        whole_pages(sizeof(errand__wire_response)) + pool->response_size;
    pool->slots = errand__mem_map(pool->workers_max * sizeof *pool->slots);
    pool->addresses =
        mmap(NULL, pool->workers_max * (pool->request_room + pool->response_room),
             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pool->addresses == MAP_FAILED)
        pool->addresses = NULL;
    pool->crashes = errand__mem_alloc(NULL, pool->crash_limit * sizeof *pool->crashes);
    if (pool->slots == NULL || pool->addresses == NULL || pool->crashes == NULL)
        return false;
    for (uint32_t i = 0; i < pool->workers_max; i++) {
        errand__sandbox_slot *slot = &pool->slots[i];
        char *at = pool->addresses + i * (pool->request_room + pool->response_room);

        slot->pool = pool;
        slot->index = i;
        slot->request = (errand__wire_request *)(void *)at;
        slot->response = (errand__wire_response *)(void *)(at + pool->request_room);
        slot->fd = slot->lifeline = slot->group.folder = -1;
        atomic_store_explicit(&slot->deadline_ns, UINT64_MAX, memory_order_relaxed);
        atomic_store_explicit(&slot->kill_ns, UINT64_MAX, memory_order_relaxed);
    }
    return true;
}

static errand_status
fill_pool(errand__sandbox *pool, const errand_sandbox_config *config, char *out_text,
          size_t size)
{
    const char *wrong;
    errand_status status =
        errand__policy_create(config->policy, &pool->policy, out_text, size);

    if (status != ERRAND_OK)
        return status == ERRAND_EINVAL
                   ? errand__misuse(status, "errand_sandbox_create", "see out_text")
                   : status;
    wrong = take_config(pool, config);
    if (wrong != NULL) {
        errand__text_format(out_text, size, "%s", wrong);
        return errand__misuse(ERRAND_EINVAL, "errand_sandbox_create", wrong);
    }
    status = errand__policy_open_paths(&pool->policy, pool->path_fds, out_text, size);
    if (status != ERRAND_OK)
        return status;
    pool->path_count = (uint32_t)pool->policy.values.path_count;
    if (pool->policy.values.shared_in_bytes != 0)
        status = errand__region_create(whole_pages(pool->policy.values.shared_in_bytes),
                                       &pool->region, out_text, size);
    if (status != ERRAND_OK)
        return status;
    errand__groups_init(&pool->groups,
                        (pool->policy.values.want_layers & ERRAND_LAYER_CGROUP) != 0);
    errand__entries_init(pool);
    if (!make_slots(pool))
        return ERRAND_ENOMEM;
    pool->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    pool->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pool->poll_fd < 0 || pool->kick_fd < 0) {
        errand__text_format(out_text, size, "no descriptor is to be had: %s",
                            strerror(errno));
        return ERRAND_ESYSTEM;
    }
    return ERRAND_OK;
}

static void
init_hands(errand__sandbox *pool)
{
    errand__list_init(&pool->idle);
    errand__list_init(&pool->turns);
    errand__list_init(&pool->places);
    errand__hands_init(&pool->monitor_hands);
    errand__hands_init(&pool->watcher_hands);
    pool->monitor_hand =
        (errand__sandbox_hand){&pool->monitor_hands, NULL, ERRAND__CELL_MONITOR};
    pool->watcher_hand =
        (errand__sandbox_hand){&pool->watcher_hands, NULL, ERRAND__CELL_WATCHER};
}

/* Until a worker is ready, or a start has failed. */
static errand_status
await_first(errand__sandbox *pool, char *out_text, size_t size)
{
    for (;;) {
        unsigned news = atomic_load_explicit(&pool->news, memory_order_acquire);
        errand_sandbox_snapshot now = {.struct_size = 0};
        errand_status status;

        count_slots(pool, &now);
        errand__lock_acquire(&pool->lock); /* Pairs: sandbox-bell */
        status = pool->start_status;
        if (status != ERRAND_OK)
            errand__text_format(out_text, size, "%s", pool->counts.text);
        errand__lock_release(&pool->lock);
        if (now.ready != 0 || status != ERRAND_OK)
            return now.ready != 0 ? ERRAND_OK : status;
        errand__futex_wait(&pool->news, news, UINT64_MAX);
    }
}

errand_status
errand__sandbox_make(const errand_sandbox_config *config, errand__launcher *launcher,
                     errand_executor **out_executor, char *out_text, size_t size)
{
    errand__sandbox *pool = errand__mem_map(sizeof *pool);
    errand_status status;

    if (pool == NULL) {
        if (launcher->destroy != NULL)
            launcher->destroy(launcher->arg);
        return ERRAND_ENOMEM;
    }
    pool->launcher = *launcher;
    pool->poll_fd = pool->kick_fd = pool->groups.place = -1;
    init_hands(pool);
    errand__executor_init(&pool->base, &sandbox_ops);
    status = fill_pool(pool, config, out_text, size);
    if (status == ERRAND_OK)
        status = errand__sandbox_monitor_start(pool);
    if (status != ERRAND_OK) {
        errand__sandbox_free(pool);
        return status;
    }
    status = await_first(pool, out_text, size);
    if (status != ERRAND_OK) {
        errand__executor_let(&pool->base);
        return status;
    }
    *out_executor = &pool->base;
    return ERRAND_OK;
}

errand_status
errand_sandbox_create(const errand_sandbox_config *config, errand_executor **out_executor,
                      char *out_text, size_t size)
{
    static const errand_sandbox_config defaults = {.struct_size = sizeof defaults};
    errand__launcher launcher;
    char path[PATH_MAX], where[384];
    char none[1];
    bool found = true;
    errand_status status;

    ERRAND_REQUIRE_ARG(out_executor != NULL && (out_text != NULL || size == 0),
                       ERRAND_EINVAL, "out_executor, and room for a text, are needed");
    if (size == 0) {
        out_text = none;
        size = sizeof none;
    }
    if (config == NULL)
        config = &defaults;
    ERRAND_REQUIRE_ARG(config->struct_size == sizeof *config, ERRAND_EINVAL,
                       "struct_size must be sizeof(errand_sandbox_config)");
    if (config->worker_path != NULL)
        errand__text_format(path, sizeof path, "%s", config->worker_path);
    else
        found = errand__worker_find(path, sizeof path, where, sizeof where);
    if (!errand__launcher_make(path, &launcher))
        return ERRAND_ENOMEM;
    status = errand__sandbox_make(config, &launcher, out_executor, out_text, size);
    if (status == ERRAND_ESYSTEM && !found)
        errand__text_format(out_text, size,
                            "the program errand-worker was not found: %s; install it, or "
                            "name it by worker_path",
                            where);
    return status;
}
