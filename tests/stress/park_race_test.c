/* SPDX-License-Identifier: MIT */
/* Goal: a put that races the look "is anything there?" always wakes the host, whether it parks or
 * polls its descriptor, and neither costs more system calls than promised (O66, O67).
 * Method: another thread puts one command per round at the moment when the owner looks; whoever
 * was first is held up longer in the next round.  A lost wake hangs and the watchdog says so. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include "calls.h"
#include "runtime/runtime.h"
#include "stress.h"

/* ---- one thread that puts when it is told to ------------------------------------------------- */

typedef struct putter {
    errand_runtime *runtime;
    errand_inbox *inbox;
    errand_command command;
    pthread_t thread;
    uint64_t delay;
    atomic_uint go, put; /* rounds asked for, and done */
    atomic_bool stop;
    unsigned heard;
    race race;
} putter;

static void
heard(errand_runtime *runtime, void *arg)
{
    putter *self = arg;

    (void)runtime;
    self->heard++;
}

static void *
put_when_told(void *arg)
{
    putter *self = arg;
    unsigned round = 0, spins = 0;

    while (!atomic_load_explicit(&self->stop, memory_order_acquire)) {
        if (atomic_load_explicit(&self->go, memory_order_acquire) == round) {
            if (++spins % 256 == 0)
                sched_yield();
            continue;
        }
        round++;
        race_delay(self->delay);
        if (errand_post(self->inbox, &self->command) != ERRAND_OK)
            abort();
        atomic_store_explicit(&self->put, round, memory_order_release);
    }
    return NULL;
}

static void
putter_open(putter *self, const char *first, const char *second)
{
    errand_runtime_config config = {.struct_size = sizeof config, .operations_max = 64};

    *self = (putter){.race = {.first_name = first, .second_name = second, .random = 1}};
    self->command.fn = heard;
    self->command.arg = self;
    assert_int_equal(errand_runtime_create(&config, &self->runtime), ERRAND_OK);
    assert_int_equal(errand_inbox_open(self->runtime, &self->inbox), ERRAND_OK);
    assert_int_equal(pthread_create(&self->thread, NULL, put_when_told, self), 0);
}

static void
putter_close(putter *self)
{
    atomic_store_explicit(&self->stop, true, memory_order_release);
    pthread_join(self->thread, NULL);
    errand_inbox_abandon(&self->inbox);
    assert_int_equal(errand_runtime_shutdown(&self->runtime, errand_deadline_in(1000000),
                                             ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
}

static void
tell(putter *self, unsigned round)
{
    self->delay = race_first_delay(&self->race);
    atomic_store_explicit(&self->go, round, memory_order_release);
    race_delay(race_second_delay(&self->race));
}

static void
put_that_races_a_park_always_wakes(void **state)
{
    static putter self;
    uint64_t rounds = stress_rounds(1000000);
    size_t drained;

    (void)state;
    putter_open(&self, "put before the look", "slept");
    for (unsigned round = 1; round <= rounds; round++) {
        unsigned long before = call_count(&call_sleeps);

        /* No spinning, which would hide the race; every other round without the short sleep that
         * looks again by itself. */
        self.runtime->block->cpus = 1;
        if (round % 2 == 0)
            self.runtime->block->last_traffic = 0;
        tell(&self, round);
        while (self.heard < round) {
            assert_int_equal(errand_park(self.runtime, UINT64_MAX), ERRAND_OK);
            assert_int_equal(errand_drain(self.runtime, 1, NULL, NULL, &drained),
                             ERRAND_OK);
        }
        race_won(&self.race, call_count(&call_sleeps) == before);
        stress_await(&self.put, round);
    }
    assert_int_equal(self.heard, rounds);
    putter_close(&self);
    race_check(&self.race);
}

/* One write by the put that finds it empty, one read by the drain that empties it. */
static void
put_that_races_the_arming_keeps_the_descriptor_readable(void **state)
{
    static putter self;
    uint64_t rounds = stress_rounds(1000000);
    struct pollfd polled = {.events = POLLIN};
    size_t drained;

    (void)state;
    putter_open(&self, "put before the look", "polled");
    assert_int_equal(errand_runtime_wake_fd(self.runtime, &polled.fd), ERRAND_OK);
    calls_reset();
    for (unsigned round = 1; round <= rounds; round++) {
        int ready;

        tell(&self, round);
        /* The drain arms; the put comes before, during or after. */
        assert_int_equal(errand_drain(self.runtime, 1, NULL, NULL, &drained), ERRAND_OK);
        race_won(&self.race, self.heard == round);
        while (self.heard < round) {
            ready = poll(&polled, 1, 20000);
            assert_int_equal(ready, 1);
            assert_int_equal(errand_drain(self.runtime, 1, NULL, NULL, &drained),
                             ERRAND_OK);
        }
        stress_await(&self.put, round);
        /* A drain that is faster than the put's own write reads in vain and once more. */
        assert_true(call_count(&call_writes) <= round + call_count(&call_unanswered));
        assert_true(call_count(&call_reads) <= round + 2 * call_count(&call_unanswered));
        assert_true(call_count(&call_unanswered) <= round);
    }
    assert_int_equal(errand_drain(self.runtime, 1, NULL, NULL, &drained), ERRAND_OK);
    assert_int_equal(poll(&polled, 1, 0), 0); /* empty: not readable any more */
    assert_int_equal(self.heard, rounds);
    putter_close(&self);
    race_check(&self.race);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_that_races_a_park_always_wakes),
        cmocka_unit_test(put_that_races_the_arming_keeps_the_descriptor_readable),
    };

    return test_group("stress/park_race", tests, NULL, NULL);
}
