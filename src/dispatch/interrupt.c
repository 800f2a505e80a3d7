/* SPDX-License-Identifier: MIT */
/* Design notes: a signal for the body of a cancelled blocking job (O60).
 *
 * - A signal ends a blocking call only if it arrives during the call; one that arrives a moment
 *   before does nothing.  So it is sent again, at a distance that doubles, until the body is back.
 * - Whoever sends holds the lock and sees the body's record there.  close takes the record away
 *   with the lock, so nobody sends once close has it; then it blocks the signal.  What was sent
 *   before may still be pending: it stays so until the next open lets it in, before the next body
 *   is entered.  So no other body, and no wait of the library, is ever interrupted by it.
 * - The canceller sets the token first and asks then; open shows the record first and looks at the
 *   token then, both with the lock: one of the two sees the other, and the body is signalled. */
#include <signal.h>
#include "core/pause.h"
#include "dispatch/hands.h"

#define DISTANCE_FIRST UINT64_C(1000000)
#define DISTANCE_MOST  UINT64_C(1000000000)

void
errand__interrupt_init(errand__interrupt *interrupt, int signal_number,
                       void (*ring)(void *arg), void *arg)
{
    errand__lock_acquire(&interrupt->lock); /* it may have been a former thread's */
    interrupt->signal_number = signal_number;
    interrupt->thread = pthread_self();
    interrupt->ring = ring;
    interrupt->arg = arg;
    errand__lock_release(&interrupt->lock);
}

static void
change_mask(const errand__interrupt *interrupt, int how)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, interrupt->signal_number);
    pthread_sigmask(how, &set, NULL);
}

static void
ask_locked(errand__interrupt *interrupt, uint64_t now)
{
    interrupt->asked = true;
    interrupt->distance_ns = DISTANCE_FIRST;
    interrupt->due_ns = now + DISTANCE_FIRST;
}

bool
errand__interrupt_wanted(const errand__record *record)
{
    return record->resource_class == ERRAND_INTERRUPTIBLE_BLOCKING &&
           (record->extra == NULL || !record->extra->no_signal);
}

void
errand__interrupt_open(errand__interrupt *interrupt, errand__record *record,
                       uint32_t generation)
{
    bool asked;

    if (!errand__interrupt_wanted(record))
        return;
    ERRAND__PAUSE("interrupt-open");
    errand__lock_acquire(&interrupt->lock);
    interrupt->record = record;
    interrupt->generation = generation;
    asked = (atomic_load_explicit(&record->control, memory_order_relaxed) &
             ERRAND__FLAG_CANCEL) != 0;
    if (asked)
        ask_locked(interrupt, errand__clock_now());
    errand__lock_release(&interrupt->lock);
    if (asked)
        interrupt->ring(interrupt->arg);
    change_mask(interrupt, SIG_UNBLOCK);
}

void
errand__interrupt_close(errand__interrupt *interrupt)
{
    if (interrupt->record == NULL) /* written by this thread alone */
        return;
    errand__lock_acquire(&interrupt->lock);
    interrupt->record = NULL;
    interrupt->asked = false;
    errand__lock_release(&interrupt->lock);
    change_mask(interrupt, SIG_BLOCK);
}

bool
errand__interrupt_ask(errand__interrupt *interrupt, const errand__record *record,
                      uint32_t generation)
{
    bool fresh;

    errand__lock_acquire(&interrupt->lock);
    fresh = interrupt->record == record && interrupt->generation == generation &&
            !interrupt->asked;
    if (fresh) {
        ask_locked(interrupt, errand__clock_now());
        pthread_kill(interrupt->thread, interrupt->signal_number);
    }
    errand__lock_release(&interrupt->lock);
    return fresh;
}

uint64_t
errand__interrupt_again(errand__interrupt *interrupt, uint64_t now)
{
    uint64_t due = UINT64_MAX;

    errand__lock_acquire(&interrupt->lock);
    if (interrupt->record != NULL && interrupt->asked) {
        if (interrupt->due_ns <= now) {
            pthread_kill(interrupt->thread, interrupt->signal_number);
            interrupt->distance_ns = interrupt->distance_ns < DISTANCE_MOST / 2
                                         ? interrupt->distance_ns * 2
                                         : DISTANCE_MOST;
            interrupt->due_ns = now + interrupt->distance_ns;
        }
        due = interrupt->due_ns;
    }
    errand__lock_release(&interrupt->lock);
    return due;
}
