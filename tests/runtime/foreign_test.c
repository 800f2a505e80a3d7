/* SPDX-License-Identifier: MIT */
/* Goal: interrupts and posts that come at any moment are neither lost nor done twice (O44).
 * Method: a signal handler; threads that run against the owner, on two slots. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include "counted.h"
#include "errand/task.h"

static errand_inbox *signalled;

static void
on_signal(int number)
{
    (void)number;
    errand_interrupt(signalled);
}

static errand_task_answer
park_until_stopped(errand_task *task, void *state, const errand_task_news *news)
{
    errand_reason *reason = state;

    if (news->why == ERRAND_WHY_START) {
        assert_int_equal(errand_task_park(task, UINT64_MAX), ERRAND_OK);
        return ERRAND_TASK_WAIT;
    }
    *reason = news->reason;
    return ERRAND_TASK_DONE;
}

static void
an_interrupt_in_a_signal_handler_stops_the_roots(void **state)
{
    /* O44 */
    test_world *world = *state;
    errand_reason reasons[2] = {0, 0};
    struct sigaction action = {.sa_handler = on_signal}, before;
    errand_turn turn;

    assert_int_equal(errand_inbox_open(world->runtime, &signalled), ERRAND_OK);
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    for (int i = 0; i < 2; i++) {
        errand_task_spec spec = {
            .struct_size = sizeof spec, .fn = park_until_stopped, .state = &reasons[i]};

        assert_int_equal(errand_spawn(world->runtime, NULL, &spec, NULL), ERRAND_OK);
    }
    counted_drive(world);
    assert_int_equal(errand_drive(world->runtime, NULL, &turn), ERRAND_OK);
    assert_int_equal(turn.kind, ERRAND_TURN_IDLE);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK); /* at once */
    counted_drive(world);
    assert_int_equal(reasons[0], ERRAND_REASON_HOST_STOP);
    assert_int_equal(reasons[1], ERRAND_REASON_HOST_STOP);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    errand_inbox_abandon(&signalled);
}

static void *
interrupt_now(void *arg)
{
    errand_interrupt(arg);
    return NULL;
}

static void
an_interrupt_wakes_a_parked_runtime(void **state)
{
    /* O44: before or while it parks; a lost one hangs. */
    test_world *world = *state;
    errand_inbox *inbox;

    assert_int_equal(errand_inbox_open(world->runtime, &inbox), ERRAND_OK);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, interrupt_now, inbox), 0);
        assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(errand_drive(world->runtime, NULL, NULL), ERRAND_OK);
    }
    errand_inbox_abandon(&inbox);
}

/* ---- many at once ----------------------------------------------------------------------------------- */

enum { POSTERS = 3 };

typedef struct crowd {
    errand_inbox *inbox;
    errand_identity targets[2]; /* of even and odd rounds */
    /* round: which target is out; UINT32_MAX = no more.  Writers: the owner.  Readers: posters.
     * Order: release, acquire.  Pairs: crowd-round (this file).  Why: the identity is written
     * before, and not before all have looked at the one of two rounds ago. */
    atomic_uint round;
    atomic_uint looked, other;
} crowd;

static void *
post_to_each(void *arg)
{
    crowd *self = arg;
    unsigned done = 0, round;

    for (;;) {
        errand_status status;

        round = atomic_load_explicit(&self->round, memory_order_acquire);
        if (round == UINT32_MAX)
            return NULL;
        if (round == done) { /* Pairs: crowd-round */
            sched_yield();
            continue;
        }
        done = round;
        status = errand_post_cancel(self->inbox, &self->targets[round % 2]);
        if (status != ERRAND_OK && status != ERRAND_EGONE)
            atomic_fetch_add_explicit(&self->other, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&self->looked, 1, memory_order_release);
    }
}

static void
posts_of_many_threads_end_each_operation_once(void **state)
{
    /* O44, O17: two slots, so that posts meet records that are settled, recycled and used again. */
    test_world *world = *state;
    unsigned rounds = (unsigned)test_scaled(10000);
    crowd self = {.inbox = NULL};
    pthread_t threads[POSTERS];
    counted works[2];

    world->config.operations_max = 2;
    world_end(world);
    world_begin(world, &world->config, 0);
    assert_int_equal(errand_inbox_open(world->runtime, &self.inbox), ERRAND_OK);
    for (int i = 0; i < POSTERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_to_each, &self), 0);
    for (unsigned round = 1; round <= rounds; round++) {
        counted *work = &works[round % 2];

        *work = (counted){.no_hook = true};
        counted_submit(world, work);
        self.targets[round % 2] = work->identity;
        atomic_store_explicit(&self.round, round, memory_order_release);
        while (work->count[AT_RESUME] == 0) {
            world_step(world, round % 3 == 0);
            counted_drive(world);
            sched_yield(); /* else posters wait for the end of its slice */
        }
        while (atomic_load_explicit(&self.looked, memory_order_acquire) <
               POSTERS * round) {
            counted_drive(world); /* Pairs: crowd-round */
            sched_yield();
        }
        world_step(world, 1);
        counted_drive(world);
        counted_check_ended(work);
    }
    atomic_store_explicit(&self.round, UINT32_MAX, memory_order_release);
    for (int i = 0; i < POSTERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load_explicit(&self.other, memory_order_relaxed), 0);
    errand_inbox_abandon(&self.inbox);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(an_interrupt_in_a_signal_handler_stops_the_roots),
        WITH_WORLD(an_interrupt_wakes_a_parked_runtime),
        WITH_WORLD(posts_of_many_threads_end_each_operation_once),
    };
    return test_group("runtime/foreign", tests, NULL, NULL);
}
