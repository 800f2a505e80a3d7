/* SPDX-License-Identifier: MIT */
/* Design notes: how a pool is made.
 *
 * - What can be wrong of a config is refused before anything is started; then the monitor starts the first
 *   workers, and create waits until one is ready or a start has failed.
 * - All slots have their addresses from the start; memory comes with the workers. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include "workers/sandbox/sandbox.h"

#define RESPONSE_MOST ((size_t)1 << 20) /* larger results come in pieces */
#define REPLY_SIZE    ((size_t)1 << 16)
#define SETUP_MOST    ((size_t)16 << 20) /* addresses, not memory */
#define SECOND        UINT64_C(1000000000)

/* Of the figures beside the policy.  NULL = nothing is wrong. */
static const char *
check_config(const errand_sandbox_config *config)
{
    uint32_t least = config->workers_min != 0 ? config->workers_min : 1;
    uint32_t most = config->workers_max != 0 ? config->workers_max : least;

    if (least > most || most > ERRAND__SANDBOX_MOST)
        return "a sandbox needs workers_min <= workers_max <= 256";
    if ((config->flags & ~(uint32_t)ERRAND_SANDBOX_NO_TEMPLATE) != 0)
        return "config->flags has unknown bits";
    if (config->crash_limit > 65536)
        return "crash_limit: must be at most 65536; 0 is the default, 8";
    return NULL;
}

static void
take_config(errand__sandbox *pool, const errand_sandbox_config *config)
{
    pool->processors = errand__cpus_allowed();
    pool->workers_min = config->workers_min != 0 ? config->workers_min : 1;
    pool->workers_max = config->workers_max;
    if (pool->workers_max == 0) {
        pool->workers_max = pool->processors < ERRAND__SANDBOX_MOST
                                ? pool->processors
                                : ERRAND__SANDBOX_MOST;
        if (pool->workers_max < pool->workers_min)
            pool->workers_max = pool->workers_min;
    }
    errand__template_init(&pool->template,
                          !pool->launcher.templates ||
                              (config->flags & ERRAND_SANDBOX_NO_TEMPLATE) != 0);
    pool->slot_count = pool->workers_max;
    if (!pool->template.off && pool->slot_count < ERRAND__SANDBOX_MOST)
        pool->slot_count++;
    pool->crash_limit = config->crash_limit != 0 ? config->crash_limit : 8;
    pool->crash_window_ns =
        config->crash_window_ns != 0 ? config->crash_window_ns : SECOND;
    pool->breaker_ns = config->breaker_ns != 0 ? config->breaker_ns : SECOND;
}

/* Addresses for all slots; memory comes with the workers. */
static bool
make_slots(errand__sandbox *pool)
{
    const errand_sandbox_policy *policy = &pool->policy.values;

    pool->body_size = errand__whole_pages(policy->in_bytes);
    pool->reply_size = (policy->promises & ERRAND_PROMISE_CALLBACK) != 0
                           ? REPLY_SIZE
                           : ERRAND__WIRE_PAGE;
    pool->response_size = errand__whole_pages(policy->out_bytes);
    if (pool->response_size > RESPONSE_MOST)
        pool->response_size = RESPONSE_MOST;
    pool->request_room = errand__whole_pages(sizeof(errand__wire_request)) + SETUP_MOST +
                         pool->body_size + pool->reply_size;
    pool->response_room =
        errand__whole_pages(sizeof(errand__wire_response)) + pool->response_size;
    pool->slots = errand__mem_map(pool->slot_count * sizeof *pool->slots);
    pool->addresses =
        mmap(NULL, pool->slot_count * (pool->request_room + pool->response_room),
             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pool->addresses == MAP_FAILED)
        pool->addresses = NULL;
    pool->crashes = errand__mem_alloc(NULL, pool->crash_limit * sizeof *pool->crashes);
    if (pool->slots == NULL || pool->addresses == NULL || pool->crashes == NULL)
        return false;
    for (uint32_t i = 0; i < pool->slot_count; i++) {
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
    wrong = check_config(config);
    if (wrong != NULL) {
        errand__text_format(out_text, size, "%s", wrong);
        return errand__misuse(ERRAND_EINVAL, "errand_sandbox_create", wrong);
    }
    take_config(pool, config);
    status = errand__policy_open_paths(&pool->policy, pool->path_fds, out_text, size);
    if (status != ERRAND_OK)
        return status;
    pool->path_count = (uint32_t)pool->policy.values.path_count;
    if (pool->policy.values.shared_in_bytes != 0)
        status = errand__region_create(
            errand__whole_pages(pool->policy.values.shared_in_bytes), &pool->region,
            out_text, size);
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

        errand__sandbox_count(pool, &now);
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
    errand__executor_init(&pool->base, &errand__sandbox_ops);
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

errand_status
errand_sandbox_check(const errand_sandbox_config *config, char *out_text, size_t size)
{
    const char *wrong;
    char none[1];
    errand_status status;

    ERRAND_REQUIRE_ARG(config != NULL && (out_text != NULL || size == 0), ERRAND_EINVAL,
                       "a config, and room for a text, are needed");
    ERRAND_REQUIRE_ARG(config->struct_size == sizeof *config, ERRAND_EINVAL,
                       "struct_size must be sizeof(errand_sandbox_config)");
    if (size == 0) {
        out_text = none;
        size = sizeof none;
    }
    status = errand__policy_check(config->policy, out_text, size);
    if (status != ERRAND_OK)
        return status;
    wrong = check_config(config);
    if (wrong == NULL)
        return ERRAND_OK;
    errand__text_format(out_text, size, "%s", wrong);
    return ERRAND_EINVAL;
}
