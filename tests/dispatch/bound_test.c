/* SPDX-License-Identifier: MIT */
/* Goal: a quarantined body that does more than it declared is told, and given a short grace (O14).
 * Method: the body is stepped on the owner's thread and moves the test clock itself. */
#include <string.h>
#include "world.h"

#define GRACE UINT64_C(1000000000) /* the default */

static errand_spec
work_spec(world_job *job)
{
    errand_spec spec = world_spec(job);

    spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
    spec.work_max = 10;
    spec.held_work_unit = "rows";
    return spec;
}

static void
start(test_world *world, world_job *job)
{
    errand_spec spec = work_spec(job);

    job->world = world;
    assert_int_equal(errand_start(world->lease, &spec, job, NULL), ERRAND_OK);
}

static void
pass(test_world *world, uint64_t ns)
{
    size_t count;

    assert_int_equal(errand_testing_clock(world->runtime, ns), ERRAND_OK);
    assert_int_equal(errand_drain(world->runtime, 10, world_handler, world, &count),
                     ERRAND_OK);
}

static void
stay_within(errand_job *job, world_job *self)
{
    (void)self;
    assert_int_equal(errand_job_work(job, 4), ERRAND_OK);
    assert_int_equal(errand_job_work(job, 0), ERRAND_OK);
    assert_int_equal(errand_job_work(job, 6), ERRAND_OK); /* exactly what it declared */
    assert_false(errand_job_cancelled(job));
    pass(self->world, 100 * GRACE);
    assert_int_equal(self->world->news_count, 0);
}

static void
work_within_its_bound_is_left_alone(void **state)
{
    /* O14 */
    test_world *world = *state;
    world_job job = {.inside = stay_within};

    start(world, &job);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
    assert_int_equal(world_last(world)->outcome, ERRAND_COMPLETED);
}

static void
go_beyond_and_return(errand_job *job, world_job *self)
{
    assert_int_equal(errand_job_work(job, 10), ERRAND_OK);
    assert_int_equal(errand_job_work(job, 1), ERRAND_EBOUND);
    pass(self->world, 0);
    assert_true(errand_job_cancelled(job)); /* for bodies that watch their token */
    pass(self->world, GRACE - 1);
    assert_int_equal(self->world->news_count, 0);
}

static void
a_body_that_returns_within_the_grace_ends_by_itself(void **state)
{
    /* O14 */
    test_world *world = *state;
    world_job job = {.inside = go_beyond_and_return};

    start(world, &job);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
    assert_int_equal(world_last(world)->outcome, ERRAND_COMPLETED);
    assert_int_equal(job.dropped, 1);
}

static void
check_bound_settled(world_job *self)
{
    const world_news *news;

    assert_int_equal(self->world->news_count, 1);
    news = world_last(self->world);
    assert_int_equal(news->outcome, ERRAND_FAILED);
    assert_int_equal(news->code, ERRAND_CODE_BOUND);
    assert_true((news->flags & ERRAND_HELD) != 0);
    assert_int_equal(self->dropped, 0); /* its body still runs (O45) */
}

static void
go_beyond_and_stay(errand_job *job, world_job *self)
{
    assert_int_equal(errand_job_work(job, 11), ERRAND_EBOUND);
    pass(self->world, 0);
    pass(self->world, GRACE - 1);
    assert_int_equal(self->world->news_count, 0);
    pass(self->world, 1);
    check_bound_settled(self);
}

static void
a_body_that_stays_beyond_the_grace_is_settled_as_bound(void **state)
{
    /* O14, O45 */
    test_world *world = *state;
    world_job job = {.inside = go_beyond_and_stay};
    errand_snapshot snapshot;

    start(world, &job);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 0);
    assert_int_equal(job.dropped, 1);
    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.codes[ERRAND_CODE_BOUND], 1);
    assert_int_equal(snapshot.returned_late, 1);
    assert_int_equal(snapshot.held, 0);
}

static void
go_beyond_again_and_again(errand_job *job, world_job *self)
{
    for (int i = 0; i < 4; i++) { /* each time before the grace is over */
        assert_int_equal(errand_job_work(job, 11), ERRAND_EBOUND);
        pass(self->world, 0);
        pass(self->world, GRACE / 3);
    }
    check_bound_settled(self);
}

static void
reporting_on_and_on_does_not_prolong_the_grace(void **state)
{
    /* O14 */
    test_world *world = *state;
    world_job job = {.inside = go_beyond_again_and_again};

    start(world, &job);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 0);
    assert_int_equal(job.dropped, 1);
}

static void
report_a_huge_amount(errand_job *job, world_job *self)
{
    (void)self;
    assert_int_equal(errand_job_work(job, 9), ERRAND_OK);
    assert_int_equal(errand_job_work(job, UINT64_MAX), ERRAND_EBOUND); /* not 8 */
}

static void
an_amount_that_goes_round_is_beyond_the_bound(void **state)
{
    /* O14 */
    test_world *world = *state;
    world_job job = {.inside = report_a_huge_amount};

    start(world, &job);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
}

static void
report_without_a_bound(errand_job *job, world_job *self)
{
    assert_int_equal(errand_job_work(job, UINT64_MAX), ERRAND_OK);
    assert_int_equal(errand_job_work(job, UINT64_MAX), ERRAND_OK);
    pass(self->world, 100 * GRACE);
    assert_false(errand_job_cancelled(job));
}

static void
work_without_a_bound_is_not_counted(void **state)
{
    /* O14 */
    test_world *world = *state;
    world_job job = {.inside = report_without_a_bound};

    world_start(world, &job);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(work_within_its_bound_is_left_alone),
        WITH_WORLD(a_body_that_returns_within_the_grace_ends_by_itself),
        WITH_WORLD(a_body_that_stays_beyond_the_grace_is_settled_as_bound),
        WITH_WORLD(reporting_on_and_on_does_not_prolong_the_grace),
        WITH_WORLD(an_amount_that_goes_round_is_beyond_the_bound),
        WITH_WORLD(work_without_a_bound_is_not_counted),
    };
    return test_group("dispatch/bound", tests, NULL, NULL);
}
