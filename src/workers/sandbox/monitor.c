/* SPDX-License-Identifier: MIT */
/* Design notes: the thread that starts (refill, template), kills and buries (bury) workers.
 *
 * - The kernel ends a worker when the thread that started it ends, so there is one such thread for
 *   the pool's life, and it starts all of them.
 * - It sleeps on the workers' descriptors and its own, until the next deadline of a job that is
 *   out.  A job whose deadline comes later than that wakes nobody; so an idle pool sleeps, and a
 *   busy one wakes it about once per deadline.
 * - Starts that fail are tried again later and later; crashes and failed starts that come too fast
 *   stop all starts for a while.  What is queued then, with no worker alive, ends. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "core/pause.h"
#include "workers/sandbox/sandbox.h"

#define TICK_MS 1
#define EVENTS  64
#define KICK    UINT32_MAX /* an event's number; those below: template.h */
/* More than a host needs for its side of such a job, also on a busy machine: blocks that go between two
 * jobs make the next one slower still. */
#define KEEP_NS     UINT64_C(2000000000)
#define BACKOFF_MIN UINT64_C(10000000)
#define BACKOFF_MAX UINT64_C(1000000000)

static _Thread_local const errand__sandbox *own;

bool
errand__sandbox_monitor_is_here(const errand__sandbox *pool)
{
    return own == pool;
}

void
errand__sandbox_monitor_enter(const errand__sandbox *pool)
{
    own = pool;
}

void
errand__sandbox_monitor_kick(errand__sandbox *pool)
{
    const uint64_t one = 1;
    int saved = errno;
    ssize_t written;

    do
        written = write(pool->kick_fd, &one, sizeof one);
    while (written < 0 && errno == EINTR);
    errno = saved;
}

void
errand__sandbox_monitor_heed(errand__sandbox *pool, uint64_t moment)
{
    if (moment <
        atomic_load_explicit(&pool->plan, memory_order_seq_cst)) /* Pairs: sandbox-plan */
        errand__sandbox_monitor_kick(pool);
}

/* ---- large blocks ------------------------------------------------------------------------------------- */

void
errand__sandbox_monitor_keep(errand__sandbox *pool, size_t size, uint64_t now)
{
    if (size < ERRAND__KEEP_LEAST)
        return;
    atomic_store_explicit(&pool->large_ns, now, memory_order_seq_cst);
    if (atomic_load_explicit(&pool->keeps, memory_order_seq_cst) != 0)
        return;
    errand__keep_open(); /* before the monitor can shut it */
    if (atomic_exchange_explicit(&pool->keeps, 1, memory_order_seq_cst) != 0) {
        errand__keep_shut();
        return;
    }
    errand__sandbox_monitor_heed(pool, now + KEEP_NS);
}

void
errand__sandbox_keep_end(errand__sandbox *pool)
{
    if (atomic_exchange_explicit(&pool->keeps, 0, memory_order_seq_cst) != 0)
        errand__keep_shut();
}

/* UINT64_MAX = it is not open. */
static uint64_t
keep_until(errand__sandbox *pool)
{
    return atomic_load_explicit(&pool->keeps, memory_order_seq_cst) == 0
               ? UINT64_MAX
               : atomic_load_explicit(&pool->large_ns, memory_order_seq_cst) + KEEP_NS;
}

/* ---- the breaker ------------------------------------------------------------------------------------- */

void
errand__sandbox_monitor_crash(errand__sandbox *pool, uint64_t now)
{
    uint64_t first; /* of as many as open it; 0: there were not so many yet */

    pool->crashes[pool->crash_at] = now;
    pool->crash_at = (pool->crash_at + 1) % pool->crash_limit;
    first = pool->crashes[pool->crash_at];
    if (first != 0 && now - first < pool->crash_window_ns) {
        pool->open_until_ns = now + pool->breaker_ns;
        memset(pool->crashes, 0, pool->crash_limit * sizeof *pool->crashes);
    }
}

void
errand__sandbox_monitor_start_failed(errand__sandbox *pool, errand_status status,
                                     const char *text, uint64_t now)
{
    errand__lock_acquire(&pool->lock);
    pool->counts.refused_starts++;
    pool->start_status = status;
    errand__text_format(pool->counts.text, sizeof pool->counts.text, "%s", text);
    errand__lock_release(&pool->lock);
    errand__sandbox_monitor_crash(pool, now);
    pool->backoff_ns = pool->backoff_ns == 0 ? BACKOFF_MIN : pool->backoff_ns * 2;
    if (pool->backoff_ns > BACKOFF_MAX)
        pool->backoff_ns = BACKOFF_MAX;
    pool->retry_ns = now + pool->backoff_ns;
    errand__sandbox_monitor_tell(pool);
}

void
errand__sandbox_monitor_start_blamed(errand__sandbox *pool, const char *text)
{
    errand__lock_acquire(&pool->lock);
    pool->counts.refused_starts++;
    errand__text_format(pool->counts.text, sizeof pool->counts.text, "%s", text);
    errand__lock_release(&pool->lock);
}

void
errand__sandbox_monitor_tell(errand__sandbox *pool)
{
    atomic_fetch_add_explicit(&pool->news, 1,
                              memory_order_seq_cst); /* Pairs: sandbox-bell */
    errand__futex_wake(&pool->news, INT32_MAX);
}

/* ---- sleep ------------------------------------------------------------------------------------------------ */

/* When something is to be done at the latest. */
static uint64_t
next_moment(errand__sandbox *pool)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t i = 0; i < pool->slot_count; i++) {
        errand__sandbox_slot *slot = &pool->slots[i];
        unsigned phase = atomic_load_explicit(&slot->phase, memory_order_seq_cst);
        uint64_t moment = UINT64_MAX, kill;

        if (phase == ERRAND__SLOT_BUSY || phase == ERRAND__SLOT_HELD) {
            moment = atomic_load_explicit(&slot->deadline_ns,
                                          memory_order_seq_cst); /* Pairs: sandbox-plan */
            kill = atomic_load_explicit(&slot->kill_ns, memory_order_seq_cst);
            moment = kill < moment ? kill : moment;
            if (phase == ERRAND__SLOT_HELD && moment != UINT64_MAX)
                moment =
                    moment > errand__clock_now() ? moment : errand__clock_now() + 1000000;
        } else if (phase == ERRAND__SLOT_STARTING || phase == ERRAND__SLOT_DYING) {
            if (slot->killed)
                moment = slot->again_ns;
            else if (phase == ERRAND__SLOT_STARTING)
                moment = errand__clock_now() + 1000000;
        }
        if (moment < next)
            next = moment;
    }
    if (errand__template_moment(pool) < next)
        next = errand__template_moment(pool);
    if (keep_until(pool) < next)
        next = keep_until(pool);
    if (pool->wants) {
        uint64_t moment =
            pool->open_until_ns > pool->retry_ns ? pool->open_until_ns : pool->retry_ns;
        next = moment < next ? moment : next;
    }
    return next;
}

static int
sleep_for(errand__sandbox *pool)
{
    uint64_t next = next_moment(pool), again, now;

    atomic_store_explicit(&pool->plan, next,
                          memory_order_seq_cst); /* Pairs: sandbox-plan */
    again = next_moment(pool);
    next = again < next ? again : next;
    if (pool->tick)
        return TICK_MS;
    if (next == UINT64_MAX)
        return -1;
    now = errand__clock_now();
    if (next <= now)
        return 0;
    if (next - now > UINT64_C(3600000000000))
        return 3600000;
    return (int)((next - now + 999999) / 1000000);
}

static void
hear(errand__sandbox *pool, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(pool->poll_fd, events, EVENTS, timeout_ms);
    uint64_t kicks;

    for (int i = 0; i < count; i++) {
        errand__sandbox_slot *slot;

        if (events[i].data.u32 == KICK) {
            (void)!read(pool->kick_fd, &kicks, sizeof kicks);
            continue;
        }
        if (errand__template_hear(pool, events[i].data.u32))
            continue;
        slot = &pool->slots[events[i].data.u32];
        slot->died = true;
        (void)epoll_ctl(pool->poll_fd, EPOLL_CTL_DEL, slot->fd, NULL);
    }
}

static bool
all_gone(const errand__sandbox *pool)
{
    for (uint32_t i = 0; i < pool->slot_count; i++)
        if (errand__slot_phase_of(&pool->slots[i]) != ERRAND__SLOT_EMPTY)
            return false;
    return pool->template.phase == ERRAND__TEMPLATE_NONE;
}

static void *
run_monitor(void *arg)
{
    errand__sandbox *pool = arg;

    own = pool;
    pthread_setname_np(pthread_self(), "errand-monitor");
    for (;;) {
        bool closing = atomic_load_explicit(
            &pool->closing, memory_order_acquire); /* Pairs: sandbox-closing */
        uint64_t now = errand__clock_now();

        pool->tick = false;
        for (uint32_t i = 0; i < pool->slot_count; i++)
            errand__sandbox_monitor_tend(&pool->slots[i], now);
        if (!closing) { /* first what somebody may wait for */
            errand__sandbox_step_in(pool, now);
            errand__sandbox_pump(pool, &pool->monitor_hand);
        }
        for (uint32_t i = 0; i < pool->slot_count; i++)
            errand__sandbox_monitor_end(&pool->slots[i], now);
        errand__template_tend(pool, now, closing);
        if (keep_until(pool) <= now)
            errand__sandbox_keep_end(pool);
        if (closing && all_gone(pool))
            break;
        if (!closing) {
            errand__sandbox_refill(pool, now);
            errand__template_consider(pool, now);
            if (atomic_load_explicit(&pool->watching, memory_order_seq_cst) == 1)
                errand__watcher_start(pool);
            errand__watcher_tend(pool);
        } else {
            pool->wants = false;
        }
        ERRAND__PAUSE("monitor-sleep");
        hear(pool, sleep_for(pool));
    }
    errand__watcher_stop(pool);
    own = NULL;
    if (pool->orphan) {
        pthread_detach(pthread_self());
        errand__sandbox_free(pool);
    }
    return NULL;
}

bool
errand__sandbox_listen(const errand__sandbox *pool, int fd, uint32_t number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

    return epoll_ctl(pool->poll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

errand_status
errand__sandbox_monitor_start(errand__sandbox *pool)
{
    if (!errand__sandbox_listen(pool, pool->kick_fd, KICK))
        return ERRAND_ESYSTEM;
    return errand__thread_create(&pool->monitor, NULL, run_monitor, pool) == 0
               ? ERRAND_OK
               : ERRAND_ENOTHREAD;
}
