/* SPDX-License-Identifier: MIT */
/* gate: two counting semaphores and a limit on every wait.
 *
 * Design notes: sem_timedwait and not sem_clockwait, which the thread sanitizer does not know
 * and then sees races that are none.  A stepped wall clock can only make the limit wrong. */
#include "gate.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "group.h"
#include "watchdog.h"

/* limit: seconds that a wait may last; 0 = half of what the watchdog gives a test.
 * Writers: the test thread.  Readers: all.  Order: relaxed.  Pairs: none.
 * Why: a plain number, nothing is published with it. */
static atomic_uint limit;

static void
wait_limited(test_gate *gate, sem_t *semaphore, const char *what)
{
    unsigned seconds = atomic_load_explicit(&limit, memory_order_relaxed);
    struct timespec until;

    if (seconds == 0)
        seconds = (watchdog_seconds() + 1) / 2;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    while (sem_timedwait(semaphore, &until) != 0) {
        if (errno == EINTR)
            continue;
        fprintf(stderr, "[  HUNG    ] %s: gate \"%s\" %s within %u s\n", test_name(),
                gate->name, what, seconds);
        abort();
    }
}

void
gate_init(test_gate *gate, const char *name)
{
    gate->name = name;
    if (sem_init(&gate->arrived, 0, 0) != 0 || sem_init(&gate->opened, 0, 0) != 0)
        abort();
}

void
gate_fini(test_gate *gate)
{
    sem_destroy(&gate->arrived);
    sem_destroy(&gate->opened);
}

void
gate_wait(test_gate *gate)
{
    sem_post(&gate->arrived);
    wait_limited(gate, &gate->opened, "was not opened");
}

void
gate_await_arrival(test_gate *gate)
{
    wait_limited(gate, &gate->arrived, "was not reached");
}

void
gate_open(test_gate *gate)
{
    sem_post(&gate->opened);
}

void
gate_open_many(test_gate *gate, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        gate_open(gate);
}

void
gate_seconds(unsigned seconds)
{
    atomic_store_explicit(&limit, seconds, memory_order_relaxed);
}
