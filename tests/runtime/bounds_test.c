/* SPDX-License-Identifier: MIT */
/* Goal: nothing that a hook, a job or a clock does makes a call go on for ever, or moves a bound.
 * Method: hooks that take longer than the time to their next call (they move the test clock),
 * jobs that report work for ever, and waits that only a deadline can end. */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include "actor.h"

/* ---- reaping -------------------------------------------------------------------------------- */

typedef struct slow {
    test_world *in;
    int reaps, dropped;
} slow;

static errand_hook_answer
pending(void *data, char *text, size_t size)
{
    (void)data;
    (void)text;
    (void)size;
    return ERRAND_HOOK_PENDING;
}

static errand_hook_answer
reap_slowly(void *data, char *text, size_t size)
{
    slow *self = data;

    (void)text;
    (void)size;
    assert_true(++self->reaps < 100); /* else it never ends */
    assert_int_equal(errand_testing_clock(self->in->runtime, 2000 * MS), ERRAND_OK);
    return ERRAND_HOOK_PENDING;
}

static void
drop_slow(void *data)
{
    ((slow *)data)->dropped++;
}

static const errand_hook_type slow_hook = {.struct_size = sizeof slow_hook,
                                           .cancel = pending,
                                           .reap = reap_slowly,
                                           .drop = drop_slow};

static void
cancel_inside(errand_job *job, world_job *self)
{
    errand_identity identity = errand_job_identity(job);

    assert_int_equal(
        errand_cancel(self->world->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
        ERRAND_OK);
}

static void
leave_entry(test_world *world, world_job *job, slow *data)
{
    errand_spec spec = world_spec(job);

    *job = (world_job){.world = world, .inside = cancel_inside};
    *data = (slow){.in = world};
    spec.held_hook = &slow_hook;
    spec.hook_data = data;
    assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
    assert_int_equal(errand_testing_clock(world->runtime, 10000 * MS), ERRAND_OK);
}

static void
a_shutdown_asks_a_slow_reap_hook_once(void **state)
{
    /* O73 */
    test_world *world = *state;
    world_job jobs[2];
    slow data[2];

    leave_entry(world, &jobs[0], &data[0]);
    leave_entry(world, &jobs[1], &data[1]);
    world_end(world);
    assert_int_equal(data[0].reaps, 1);
    assert_int_equal(data[1].reaps, 1);
    assert_int_equal(world->report.entries, 2);
    assert_int_equal(data[0].dropped + data[1].dropped, 2);
}

static void
a_turn_without_limits_asks_a_slow_reap_hook_once(void **state)
{
    /* O41, O69 */
    const errand_budget unlimited = {.struct_size = sizeof unlimited};
    test_world *world = *state;
    world_job jobs[2];
    slow data[2];
    errand_turn turn;

    leave_entry(world, &jobs[0], &data[0]);
    leave_entry(world, &jobs[1], &data[1]);
    assert_int_equal(errand_drive(world->runtime, &unlimited, &turn), ERRAND_OK);
    assert_int_equal(turn.cleanups, 2);
    world_end(world); /* while the hooks' data lives */
}

/* ---- bounds of what nothing can stop ---------------------------------------------------------- */

static void
work_on(errand_job *job, world_job *self)
{
    test_world *world = self->world;

    assert_int_equal(errand_job_work(job, 10), ERRAND_OK);
    for (int i = 0; i < 20; i++) { /* a tenth of the grace each time */
        assert_int_equal(errand_job_work(job, 1), ERRAND_EBOUND);
        world_drain(world, 10);
        assert_int_equal(errand_testing_clock(world->runtime, 100 * MS), ERRAND_OK);
    }
}

static void
work_beyond_all_numbers(errand_job *job, world_job *self)
{
    assert_int_equal(errand_job_work(job, UINT64_MAX), ERRAND_EBOUND);
    for (int i = 0; i < 3; i++)
        assert_int_equal(errand_job_work(job, 1), ERRAND_EBOUND);
    world_drain(self->world, 10);
    assert_int_equal(errand_testing_clock(self->world->runtime, 1001 * MS), ERRAND_OK);
    world_drain(self->world, 10);
}

static void
cancel_then_pass_the_deadline(errand_job *job, world_job *self)
{
    cancel_inside(job, self);
    assert_int_equal(errand_testing_clock(self->world->runtime, 11 * MS), ERRAND_OK);
    world_drain(self->world, 10);
}

static void
is_held(test_world *world, void (*inside)(errand_job *, world_job *), errand_spec with,
        errand_code code)
{
    world_job job = {.world = world, .inside = inside};
    errand_spec spec = world_spec(&job);

    spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
    spec.quarantine_ns = with.quarantine_ns;
    spec.deadline_ns = with.deadline_ns;
    spec.work_max = with.work_max;
    spec.held_work_unit = with.held_work_unit;
    assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    world_step(world, 1);
    world_drain(world, 10);
    assert_int_equal(world->news_count, 1);
    assert_int_equal(world_last(world)->code, code);
    assert_int_equal(world_last(world)->flags & ERRAND_HELD, ERRAND_HELD);
    world_check(world);
}

static void
a_job_that_goes_on_reporting_does_not_move_its_grace(void **state)
{
    /* O14 */
    is_held(*state, work_on, (errand_spec){.work_max = 10, .held_work_unit = "rows"},
            ERRAND_CODE_BOUND);
}

static void
counted_work_does_not_go_round(void **state)
{
    /* O14 */
    is_held(*state, work_beyond_all_numbers,
            (errand_spec){.work_max = 10, .held_work_unit = "rows"}, ERRAND_CODE_BOUND);
}

static void
a_cancel_does_not_put_off_a_deadline(void **state)
{
    /* O14, O45 */
    is_held(*state, cancel_then_pass_the_deadline,
            (errand_spec){.deadline_ns = 10 * MS, .quarantine_ns = 5000 * MS},
            ERRAND_CODE_DEADLINE);
}

/* ---- waits ------------------------------------------------------------------------------------- */

static void
waiting_for_room_ends_at_an_operations_deadline(void **state)
{
    /* O45, O50 */
    test_world *world = *state;
    world_job job = {.world = world};
    errand_spec spec = world_spec(&job);

    world_end(world);
    world_begin(world, &world->config, 1);
    spec.deadline_ns = 10 * MS;
    assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    assert_int_equal(errand_testing_clock(world->runtime, 10 * MS), ERRAND_OK);
    assert_int_equal(errand_lease_wait_room(world->lease, NEVER), ERRAND_OK);
    assert_int_equal(world_drain(world, 1), 1);
    assert_int_equal(world_last(world)->code, ERRAND_CODE_DEADLINE);
    assert_int_equal(errand_lease_wait_room(world->lease, NEVER), ERRAND_OK);
}

static void
a_run_that_only_a_test_clock_could_end_is_a_stall(void **state)
{
    test_world *world = *state;
    actor sleeper = {.step = step_sleep, .number = 10 * MS};

    actor_spawn(world, NULL, "sleeper", &sleeper);
    assert_int_equal(errand_run(world->runtime, &sleeper.id, NEVER), ERRAND_EDEADLOCK);
    assert_int_equal(errand_testing_clock(world->runtime, 10 * MS), ERRAND_OK);
    assert_int_equal(errand_run(world->runtime, &sleeper.id, NEVER), ERRAND_OK);
    assert_int_equal(actor_end(&sleeper), ERRAND_END_DONE);
}

/* ---- the descriptor ------------------------------------------------------------------------------ */

static bool
readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    return poll(&one, 1, 0) == 1;
}

static void
the_descriptor_tells_of_what_a_call_readied(void **state)
{
    /* O67 */
    test_world *world = *state;
    actor parked = {.step = step_park};
    int fd = -1;

    assert_int_equal(errand_runtime_wake_fd(world->runtime, &fd), ERRAND_OK);
    drive_all(world);
    assert_false(readable(fd));
    actor_spawn(world, NULL, "parked", &parked);
    assert_true(readable(fd));
    drive_all(world);
    assert_false(readable(fd));
    assert_int_equal(errand_task_wake(world->runtime, &parked.id), ERRAND_OK);
    assert_true(readable(fd));
    drive_all(world);
    assert_false(readable(fd));
}

static void
post_nothing(errand_runtime *runtime, void *arg)
{
    (void)runtime;
    (void)arg;
}

static errand_inbox *inbox_of_poster;
static errand_command command = {.fn = post_nothing};

static void *
post_from_afar(void *arg)
{
    (void)arg;
    assert_int_equal(errand_post(inbox_of_poster, &command), ERRAND_OK);
    return NULL;
}

static void
post_at_park(void *arg, const char *place)
{
    pthread_t *thread = arg;

    if (strcmp(place, "park") != 0 || *thread != 0)
        return;
    assert_int_equal(pthread_create(thread, NULL, post_from_afar, NULL), 0);
}

static void
the_descriptor_tells_of_what_ended_a_park(void **state)
{
    /* O66, O67 */
    test_world *world = *state;
    pthread_t thread = 0;
    int fd = -1;

    assert_int_equal(errand_inbox_open(world->runtime, &inbox_of_poster), ERRAND_OK);
    assert_int_equal(errand_runtime_wake_fd(world->runtime, &fd), ERRAND_OK);
    for (int i = 0; i < 50; i++) {
        thread = 0;
        errand_testing_pause(post_at_park, &thread);
        assert_int_equal(errand_park(world->runtime, NEVER), ERRAND_OK);
        errand_testing_pause(NULL, NULL);
        if (thread != 0)
            pthread_join(thread, NULL);
        else
            post_from_afar(NULL);
        assert_true(readable(fd));
        drive_all(world);
        assert_false(readable(fd));
    }
    errand_interrupt(inbox_of_poster);
    assert_int_equal(errand_park(world->runtime, NEVER), ERRAND_OK);
    assert_true(readable(fd));
    errand_inbox_abandon(&inbox_of_poster);
}

static void
interrupt_at_arming(void *arg, const char *place)
{
    int *left = arg;

    if (strcmp(place, "arm") != 0 || *left == 0)
        return;
    --*left;
    errand_interrupt(inbox_of_poster);
}

static void
the_descriptor_tells_of_an_interrupt_beside_its_arming(void **state)
{
    /* O44, O67 */
    test_world *world = *state;
    int fd = -1, left = 1;

    assert_int_equal(errand_inbox_open(world->runtime, &inbox_of_poster), ERRAND_OK);
    errand_testing_pause(interrupt_at_arming, &left);
    assert_int_equal(errand_runtime_wake_fd(world->runtime, &fd), ERRAND_OK);
    errand_testing_pause(NULL, NULL);
    assert_int_equal(left, 0);
    assert_true(readable(fd));
    drive_all(world);
    assert_false(readable(fd));
    errand_inbox_abandon(&inbox_of_poster);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)
        T(a_shutdown_asks_a_slow_reap_hook_once),
        T(a_turn_without_limits_asks_a_slow_reap_hook_once),
        T(a_job_that_goes_on_reporting_does_not_move_its_grace),
        T(counted_work_does_not_go_round),
        T(a_cancel_does_not_put_off_a_deadline),
        T(waiting_for_room_ends_at_an_operations_deadline),
        T(a_run_that_only_a_test_clock_could_end_is_a_stall),
        T(the_descriptor_tells_of_what_a_call_readied),
        T(the_descriptor_tells_of_what_ended_a_park),
        T(the_descriptor_tells_of_an_interrupt_beside_its_arming),
#undef T
    };

    return test_group("runtime/bounds", tests, NULL, NULL);
}
