/* SPDX-License-Identifier: MIT */
/* Design notes: how the consumer waits.
 *
 * First it looks a little longer, if that paid lately and a processor is free for whoever it waits
 * for; then it dozes (see inbox.c); then it sleeps.  Where jobs are out in other processes it also
 * looks at, and sleeps on, the words that those write: no third thread has to pass their answers
 * on.  Whoever writes such a word wakes its sleepers only if there are some, so the consumer says
 * so before it looks a last time. */
#include "core/pause.h"
#include "inbox/inbox.h"

#define DOZE_NS       UINT64_C(4000000)
#define SPIN_FIRST_US 20
#define SPIN_LEAST_US 1
#define RECENT_US     2000

_Static_assert((int)ERRAND__WATCH_MAX < (int)ERRAND__FUTEX_MANY, "the bell is one more");

/* Has a watched word changed? */
static bool
is_news(const errand__watch *watch)
{
    for (unsigned i = 0; watch != NULL && i < watch->count; i++)
        if (atomic_load_explicit(watch->words[i].word, memory_order_seq_cst) !=
            watch->words[i].expected)
            return true;
    return false;
}

/* Spins while that is likely to pay; true if something came. */
static bool
spin(errand__block *block, const errand__watch *watch)
{
    uint64_t per_us = errand__cycles_per_us();
    uint64_t start = errand__cycles();
    uint64_t limit = block->spin_cycles;

    if (block->cpus == 0) {
        block->cpus = errand__cpus_allowed();
        block->spin_cycles = limit = SPIN_FIRST_US * per_us;
    }
    if (block->cpus < 2 || block->crowded || (watch != NULL && !watch->spins))
        return false;
    if (start - block->last_traffic > RECENT_US * per_us)
        limit = SPIN_LEAST_US * per_us;
    do {
        for (int i = 0; i < 8; i++) {
            if (!errand__inbox_empty(block) || is_news(watch)) {
                block->last_traffic = errand__cycles();
                block->spin_cycles = SPIN_FIRST_US * per_us;
                return true;
            }
            errand__cpu_relax();
        }
    } while (errand__cycles() - start < limit);
    if (block->spin_cycles > SPIN_LEAST_US * per_us)
        block->spin_cycles /= 2;
    return false;
}

void
errand__sleepers_leave(atomic_uint *sleepers)
{
    unsigned count = atomic_load_explicit(sleepers, memory_order_relaxed);

    /* The file behind it may be a new one: then it is 0 already. */
    while (count != 0 &&
           !atomic_compare_exchange_weak_explicit(
               sleepers, &count, count - 1, memory_order_seq_cst, memory_order_relaxed)) {
    }
}

/* Sleeps on the bell and on what is watched.  False only when the timeout passed. */
static bool
sleep_watching(errand__block *block, unsigned bell, errand__watch *watch,
               uint64_t timeout_ns)
{
    errand__futex_word words[ERRAND__FUTEX_MANY];
    uint64_t until = errand__clock_now() + timeout_ns;
    int woken = -1;

    words[0] = (errand__futex_word){&block->bell, bell, false};
    for (unsigned i = 0; i < watch->count; i++) {
        const errand__watched *watched = &watch->words[i];

        words[i + 1] = (errand__futex_word){watched->word, watched->expected, true};
        atomic_fetch_add_explicit(watched->sleepers, 1, memory_order_seq_cst);
    }
    if (!is_news(watch))
        woken = errand__futex_wait_many(words, watch->count + 1, timeout_ns);
    for (unsigned i = 0; i < watch->count; i++)
        errand__sleepers_leave(watch->words[i].sleepers);
    if (woken > 0)
        atomic_fetch_add_explicit(watch->words[woken - 1].wakes, 1, memory_order_relaxed);
    return woken >= 0 || is_news(watch) || errand__clock_now() < until;
}

/* Says what the consumer does and sleeps.  True when it has to look again for news; false when
 * the timeout passed with nothing there. */
static bool
sleep_as(errand__block *block, uintptr_t state, errand__watch *watch, uint64_t timeout_ns)
{
    unsigned bell =
        atomic_load_explicit(&block->bell, memory_order_acquire); /* Pairs: bell */
    uintptr_t was = atomic_load_explicit(&block->head, memory_order_acquire);
    bool in_time;

    ERRAND__PAUSE("park");
    if (was > ERRAND__INBOX_SPECIAL || was == ERRAND__INBOX_CLOSED ||
        atomic_load_explicit(&block->interrupted, memory_order_acquire) != 0 ||
        !atomic_compare_exchange_strong_explicit(
            &block->head, &was, state, memory_order_acq_rel, memory_order_acquire))
        return true;
    if (watch != NULL)
        in_time = sleep_watching(block, bell, watch, timeout_ns);
    else
        in_time = errand__futex_wait(&block->bell, bell, timeout_ns);
    if (atomic_load_explicit(&block->bell, memory_order_acquire) != bell)
        in_time = true;
    if (!atomic_compare_exchange_strong_explicit(
            &block->head, &state, was, memory_order_acq_rel, memory_order_acquire) &&
        was == ERRAND__INBOX_ARMED)
        block->fd_armed = false; /* a bell was rung for it instead of a write */
    return in_time || !errand__inbox_empty(block);
}

void
errand__inbox_park(errand__block *block, uint64_t timeout_ns, errand__watch *watch)
{
    bool recent;

    if (watch != NULL && timeout_ns > ERRAND__WATCH_NS)
        timeout_ns = ERRAND__WATCH_NS;
    if (!errand__inbox_empty(block)) {
        block->last_traffic = errand__cycles();
        return;
    }
    if (timeout_ns == 0 || spin(block, watch))
        return;
    recent = errand__cycles() - block->last_traffic < RECENT_US * errand__cycles_per_us();
    if (recent && timeout_ns > DOZE_NS) {
        if (sleep_as(block, ERRAND__INBOX_DOZING, watch, DOZE_NS)) {
            block->last_traffic = errand__cycles();
            return;
        }
        if (timeout_ns != UINT64_MAX)
            timeout_ns -= DOZE_NS;
    }
    if (sleep_as(block, ERRAND__INBOX_PARKED, watch, timeout_ns))
        block->last_traffic = errand__cycles();
}
