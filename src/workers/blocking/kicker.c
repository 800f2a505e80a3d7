/* SPDX-License-Identifier: MIT */
/* kicker: the interrupt signal of a pool that was asked for one (O60).
 *
 * Design notes.
 * - A handler belongs to the process, so it is put in place only where the host has none, once
 *   for all pools that ask for the same signal, and taken away with the last of them, unless the
 *   host replaced it meanwhile.  No body of a pool runs when the pool ends: bodies hold leases.
 * - The handler does nothing and has no SA_RESTART: a blocking call then answers EINTR.
 * - The first signal of a cancel is sent by the canceller; a thread of the pool, which sleeps
 *   as long as nobody was asked to end, sends it again (see dispatch/interrupt.c). */
#include <signal.h>
#include <stdio.h>
#include "workers/blocking/blocking.h"

/* Guarded by handlers_lock. */
static errand__lock handlers_lock;
static uint32_t handlers_users[65]; /* by signal: pools that asked for it */

static void
interrupted(int signal_number)
{
    (void)signal_number; /* that it was called is what ends the blocking call */
}

bool
errand__kicker_may_use(int signal_number)
{
    static const int never[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE,
                                SIGILL,  SIGTRAP, SIGSYS,  SIGABRT};

    if (signal_number < 1 || signal_number > SIGRTMAX || signal_number > 64 ||
        (signal_number > 31 && signal_number < SIGRTMIN))
        return false;
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (never[i] == signal_number)
            return false;
    return true;
}

static bool
is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == interrupted;
}

static bool
is_free(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_DFL;
}

/* False: the host has a handler of its own, or ignores the signal. */
static bool
handler_take(int signal_number)
{
    struct sigaction own = {.sa_handler = interrupted}, before = {.sa_handler = SIG_DFL};
    bool taken;

    sigemptyset(&own.sa_mask);
    errand__lock_acquire(&handlers_lock);
    taken = sigaction(signal_number, NULL, &before) == 0 &&
            (handlers_users[signal_number] > 0 ? is_ours(&before) : is_free(&before));
    if (taken && handlers_users[signal_number] == 0)
        taken = sigaction(signal_number, &own, NULL) == 0;
    handlers_users[signal_number] += taken;
    errand__lock_release(&handlers_lock);
    return taken;
}

static void
handler_give(int signal_number)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, now;

    sigemptyset(&usual.sa_mask);
    errand__lock_acquire(&handlers_lock);
    if (--handlers_users[signal_number] == 0 &&
        sigaction(signal_number, NULL, &now) == 0 && is_ours(&now))
        sigaction(signal_number, &usual, NULL);
    errand__lock_release(&handlers_lock);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void
ring(void *arg)
{
    errand__pool *pool = arg;

    atomic_fetch_add_explicit(&pool->kicks, 1,
                              memory_order_release); /* Pairs: pool-kicks */
    errand__futex_wake(&pool->kicks, 1);
}

void
errand__worker_interruptible(errand__worker *worker)
{
    errand__pool *pool = worker->pool;

    worker->hands.interrupt = NULL;
    if (pool->config.interrupt_signal == 0)
        return;
    errand__interrupt_init(&worker->interrupt, pool->config.interrupt_signal, ring, pool);
    worker->hands.interrupt = &worker->interrupt;
}

/* Sends what is due; answers when the next is, UINT64_MAX = nobody was asked to end.  Blocks of
 * workers stay until the pool ends; places are used from the first on. */
static uint64_t
kick_all(errand__pool *pool, uint64_t now, bool *out_closing)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t i = 0; i < pool->worker_room; i++) {
        errand__lock_acquire(&pool->lock);
        errand__worker *worker = pool->workers[i];
        *out_closing = pool->closing;
        errand__lock_release(&pool->lock);
        if (worker == NULL)
            break;
        uint64_t due = errand__interrupt_again(&worker->interrupt, now);
        next = due < next ? due : next;
    }
    return next;
}

static void *
kicker_main(void *arg)
{
    errand__pool *pool = arg;
    bool closing = false;
    char name[16];

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    snprintf(name, sizeof name, "%.9s/kick", pool->name);
    pthread_setname_np(pthread_self(), name);
    while (!closing) {
        /* Pairs: pool-kicks */
        unsigned kicks = atomic_load_explicit(&pool->kicks, memory_order_acquire);
        uint64_t now = errand__clock_now();
        uint64_t next = kick_all(pool, now, &closing);

        if (!closing)
            errand__futex_wait(&pool->kicks, kicks,
                               next == UINT64_MAX ? UINT64_MAX : next - now);
    }
    errand__pool_let(pool);
    return NULL;
}

errand_status
errand__kicker_start(errand__pool *pool)
{
    int signal_number = pool->config.interrupt_signal;

    if (signal_number == 0)
        return ERRAND_OK;
    if (!handler_take(signal_number))
        return errand__misuse(
            ERRAND_EBUSY, "errand_blocking_create",
            "the process has a handler for interrupt_signal, or ignores "
            "it; choose another signal");
    atomic_fetch_add_explicit(&pool->users, 1, memory_order_relaxed);
    if (errand__pool_thread(pool, kicker_main, pool) == 0)
        return ERRAND_OK;
    atomic_fetch_sub_explicit(&pool->users, 1, memory_order_relaxed);
    handler_give(signal_number);
    return ERRAND_ENOTHREAD;
}

void
errand__kicker_stop(errand__pool *pool)
{
    if (pool->config.interrupt_signal == 0)
        return;
    handler_give(pool->config.interrupt_signal);
    ring(pool);
}

void
errand__pool_nudge(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__pool *pool = errand__place_of(lease)->pool;
    errand__worker *worker;
    /* By nothing: see the heads of waiters.  Pairs: pool-waiters */
    bool waits = atomic_fetch_add_explicit(&pool->waiters, 0, memory_order_acq_rel) != 0;
    bool signals = pool->config.interrupt_signal != 0 && errand__interrupt_wanted(record);

    if (!waits && !signals)
        return;
    errand__lock_acquire(&pool->lock);
    worker = errand__worker_find_locked(pool, lease,
                                        errand__entry_make(generation, record->slot));
    errand__lock_release(&pool->lock);
    if (worker == NULL)
        return;
    if (waits)
        errand__ringer_ring(&worker->ringer, record, generation);
    if (signals && errand__interrupt_ask(&worker->interrupt, record, generation))
        ring(pool);
}
