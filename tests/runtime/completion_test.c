/* SPDX-License-Identifier: MIT */
/* Goal: completions say how their operation ended and when, and accounts count it (O20, O24, O27,
 * O28, O29).
 * Method: one operation of each end; real clocks are read around and inside the body. */
#include <time.h>
#include "counted.h"

static errand_snapshot
snapshot_of(test_world *world)
{
    errand_snapshot snapshot;

    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    return snapshot;
}

/* ---- how ----------------------------------------------------------------------------------------- */

static void
start_with_deadline(test_world *world, world_job *job, uint64_t deadline_ns)
{
    errand_spec spec = world_spec(job);

    job->world = world;
    spec.deadline_ns = deadline_ns;
    assert_int_equal(errand_start(world->lease, &spec, job, NULL), ERRAND_OK);
}

static void
check_counts(const errand_snapshot *of)
{
    static const unsigned expected[ERRAND_CODES] = {[ERRAND_CODE_CANCELLED] = 2,
                                                    [ERRAND_CODE_DEADLINE] = 1,
                                                    [ERRAND_CODE_PANIC] = 2,
                                                    [ERRAND_CODE_JOB] = 3};

    assert_int_equal(of->completed, 4);
    assert_int_equal(of->failed, 4);
    assert_int_equal(of->cancelled, 2);
    assert_int_equal(of->panicked, 2);
    assert_int_equal(of->crashed, 0);
    for (int i = 0; i < ERRAND_CODES; i++)
        assert_int_equal(of->codes[i], expected[i]);
}

static void
accounts_count_each_end_and_each_code_by_itself(void **state)
{
    /* O24: in the runtime's, in the lease's and in the closing report. */
    test_world *world = *state;
    world_job jobs[12];
    errand_snapshot lease;

    for (int i = 0; i < 12; i++) {
        jobs[i] = (world_job){.answer = i >= 4 && i < 7 ? 9 : 0,
                              .panic = i >= 7 && i < 9 ? "counted" : NULL};
        if (i == 9)
            start_with_deadline(world, &jobs[i], 5);
        else if (i < 9)
            world_start(world, &jobs[i]);
    }
    world_step(world, 9);
    for (int i = 10; i < 12; i++) {
        errand_identity identity = world_start(world, &jobs[i]);

        assert_int_equal(
            errand_cancel(world->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
            ERRAND_OK);
    }
    assert_int_equal(errand_testing_clock(world->runtime, 5), ERRAND_OK);
    assert_int_equal(world_drain(world, 20), 12);
    lease = snapshot_of(world);
    check_counts(&lease);
    assert_int_equal(errand_lease_snapshot(world->lease, &lease), ERRAND_OK);
    check_counts(&lease);
    assert_int_equal(lease.accepted, 12);
    assert_int_equal(lease.drained, 12);
    world_end(world);
    check_counts(&world->report.accounts);
    assert_int_equal(world->report.accounts.drained, 12); /* delivered; inbox closed: */
    assert_int_equal(world->report.accounts.undeliverable, 0);
}

static void
check_message(void *arg, errand_completion *completion)
{
    world_handler(arg, completion);
    assert_non_null(completion->message);
    if (completion->outcome == ERRAND_COMPLETED) {
        assert_int_equal(completion->code, ERRAND_CODE_NONE);
        assert_string_equal(completion->message, "");
    } else {
        assert_int_not_equal(completion->code, ERRAND_CODE_NONE);
        assert_null(completion->payload.data); /* never half a result */
        assert_string_equal(completion->message, errand_code_text(completion->code));
    }
    assert_string_equal(completion->operation, "world job");
}

static void
a_failure_without_a_text_has_its_codes_sentence(void **state)
{
    /* O27, O29: none of its own, so the table's. */
    test_world *world = *state;
    world_job jobs[4] = {{.give_payload = true},
                         {.answer = 3, .give_payload = true},
                         {.answer = 0},
                         {.answer = 0}};
    errand_identity last;
    size_t count;

    world_start(world, &jobs[0]);
    world_start(world, &jobs[1]);
    world_step(world, 2);
    start_with_deadline(world, &jobs[2], 5);
    last = world_start(world, &jobs[3]);
    assert_int_equal(errand_cancel(world->runtime, &last, ERRAND_REASON_OWNER, NULL),
                     ERRAND_OK);
    assert_int_equal(errand_testing_clock(world->runtime, 5), ERRAND_OK);
    assert_int_equal(errand_drain(world->runtime, 10, check_message, world, &count),
                     ERRAND_OK);
    assert_int_equal(count, 4);
    /* O29: nothing is tried again. */
    for (int i = 0; i < 10; i++) {
        world_step(world, 10);
        assert_int_equal(errand_testing_clock(world->runtime, 1000000000), ERRAND_OK);
        assert_int_equal(world_drain(world, 10), 0);
    }
    assert_int_equal(jobs[0].ran + jobs[1].ran, 2);
    assert_int_equal(jobs[2].ran + jobs[3].ran, 0);
}

/* ---- when ----------------------------------------------------------------------------------------- */

static uint64_t
monotonic(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

typedef struct timed {
    uint64_t before, begin, end, after; /* the submit, the body, the step */
} timed;

static void
take_three_milliseconds(errand_job *job, world_job *self)
{
    timed *times = self->arg;

    (void)job;
    times->begin = monotonic();
    while ((times->end = monotonic()) - times->begin < 3000000)
        continue;
}

static void
begin_with_times(test_world *world, errand_times times)
{
    errand_runtime_config config = {.struct_size = sizeof config, .times = times};

    world_end(world);
    world_begin(world, &config, 0);
}

static world_news
run_timed(test_world *world, timed *times)
{
    world_job job = {.inside = take_three_milliseconds, .arg = times};

    times->before = monotonic();
    world_start(world, &job);
    world_step(world, 1);
    times->after = monotonic();
    assert_int_equal(world_drain(world, 1), 1);
    return *world_last(world);
}

/* a <= b, but for an error. */
static void
check_before(uint64_t a, uint64_t b, uint64_t error)
{
    assert_true(a <= b + error);
}

static void
check_times(const world_news *news, const timed *times, uint64_t error)
{
    check_before(times->before, news->t_submit, 1000000); /* read once a millisecond */
    check_before(news->t_submit, news->t_start, 0);
    check_before(news->t_submit, times->begin, 1000000);
    check_before(news->t_start, times->begin, error);
    check_before(times->end, news->t_end, error);
    check_before(news->t_start, news->t_end, 0);
    check_before(news->t_end, times->after, error);
    check_before(3000000, news->t_end - news->t_start, 2 * error);
}

static void
exact_times_are_read_at_the_body(void **state)
{
    /* O28 */
    test_world *world = *state;

    begin_with_times(world, ERRAND_TIMES_EXACT);
    for (int i = 0; i < 5; i++) {
        timed times;
        world_news news = run_timed(world, &times);

        check_times(&news, &times, 0);
    }
}

static void
coarse_times_are_off_by_a_millisecond_at_most(void **state)
{
    /* O28: and 1/10^5, of which there is next to nothing here. */
    test_world *world = *state;

    begin_with_times(world, ERRAND_TIMES_COARSE);
    for (int i = 0; i < 5; i++) {
        timed times;
        world_news news = run_timed(world, &times);

        check_times(&news, &times, 1000000 + 50000);
    }
}

static void
times_that_are_left_out_are_zero(void **state)
{
    /* O28 */
    test_world *world = *state;
    timed times;
    world_news news;

    begin_with_times(world, ERRAND_TIMES_NONE);
    news = run_timed(world, &times);
    assert_int_equal(news.t_submit + news.t_start + news.t_end, 0);
}

static void
an_operation_that_never_ran_has_times_in_order_too(void **state)
{
    /* O28, C-N2: cancelled in the queue; on the runtime's own clock. */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_identity identity;
    const world_news *news;

    world_end(world);
    world->config.times = ERRAND_TIMES_EXACT;
    world_begin(world, &world->config, 0);
    assert_int_equal(errand_testing_clock(world->runtime, 1000), ERRAND_OK);
    identity = world_start(world, &job);
    assert_int_equal(errand_testing_clock(world->runtime, 50), ERRAND_OK);
    assert_int_equal(
        errand_cancel(world->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
        ERRAND_OK);
    assert_int_equal(world_drain(world, 1), 1);
    news = world_last(world);
    assert_int_equal(news->t_submit, 1000);
    assert_int_equal(news->t_start, 1050);
    assert_int_equal(news->t_end, 1050);
}

static void
times_of_a_test_clock_are_its_own(void **state)
{
    /* O28: a body that ran has no times of another clock. */
    test_world *world = *state;
    world_job job = {.answer = 0};
    const world_news *news;

    world_end(world);
    world->config.times = ERRAND_TIMES_EXACT;
    world_begin(world, &world->config, 0);
    assert_int_equal(errand_testing_clock(world->runtime, 1000), ERRAND_OK);
    world_start(world, &job);
    world_step(world, 1);
    assert_int_equal(errand_testing_clock(world->runtime, 7), ERRAND_OK);
    assert_int_equal(world_drain(world, 1), 1);
    news = world_last(world);
    assert_int_equal(news->t_submit, 1000);
    assert_int_equal(news->t_start, 1000);
    assert_int_equal(news->t_end, 1000);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(accounts_count_each_end_and_each_code_by_itself),
        WITH_WORLD(a_failure_without_a_text_has_its_codes_sentence),
        WITH_WORLD(exact_times_are_read_at_the_body),
        WITH_WORLD(coarse_times_are_off_by_a_millisecond_at_most),
        WITH_WORLD(times_that_are_left_out_are_zero),
        WITH_WORLD(an_operation_that_never_ran_has_times_in_order_too),
        WITH_WORLD(times_of_a_test_clock_are_its_own),
    };
    return test_group("runtime/completion", tests, NULL, NULL);
}
