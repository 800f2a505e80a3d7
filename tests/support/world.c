/* SPDX-License-Identifier: MIT */
/* Design notes: see world.h.  The handler copies what it sees, because a completion is valid
 * only inside it. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "world.h"

static void
count_payload_drop(void *data, size_t size)
{
    world_job *job = data;

    assert_int_equal(size, sizeof *job);
    job->payload_dropped++;
}

const errand_payload_type world_payload_type = {"world job", count_payload_drop};

static int32_t
run(errand_job *job, void *state, errand_payload *out_payload)
{
    world_job *self = state;

    self->ran++;
    if (self->give_payload)
        *out_payload = (errand_payload){&world_payload_type, self, sizeof *self};
    if (self->inside != NULL)
        self->inside(job, self);
    if (self->panic != NULL)
        errand_panic("%s", self->panic);
    return self->answer;
}

static void
drop(void *state)
{
    ((world_job *)state)->dropped++;
}

const errand_job_type world_job_type = {.struct_size = sizeof(errand_job_type),
                                        .name = "world job",
                                        .run = run,
                                        .drop = drop};

static void
misused(void *arg, errand_status status, const char *text)
{
    test_world *world = arg;

    world->misuses++;
    world->last_misuse = status;
    snprintf(world->misuse_text, sizeof world->misuse_text, "%s", text);
}

void
world_begin(test_world *world, const errand_runtime_config *config, uint32_t owed_max)
{
    errand_manual_config manual = {.struct_size = sizeof manual};

    world->config = *config;
    world->ended = false;
    errand_misuse_hook(misused, world);
    assert_int_equal(errand_runtime_create(config, &world->runtime), ERRAND_OK);
    assert_int_equal(errand_manual_create(&manual, &world->executor), ERRAND_OK);
    assert_int_equal(
        errand_attach(world->runtime, world->executor, owed_max, &world->lease),
        ERRAND_OK);
}

static int
setup(void **state, const errand_runtime_config *config)
{
    test_world *made = calloc(1, sizeof *made);

    if (made == NULL)
        return -1;
    made->bytes = errand_testing_live_bytes();
    world_begin(made, config, 0);
    *state = made;
    return 0;
}

int
world_setup(void **state)
{
    /* A test clock's times are exact, which keeps something beside each record; in one configuration
     * there are none, so that records are tested that stand alone, as most of a host's do. */
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .flags = ERRAND_RUNTIME_TEST_CLOCK,
                                    .times = test_under("release") ? ERRAND_TIMES_NONE
                                                                   : ERRAND_TIMES_EXACT};

    return setup(state, &config);
}

int
world_setup_inline(void **state)
{
    return world_setup_seeded(state, ERRAND_ORDER_INLINE);
}

int
world_setup_seeded(void **state, errand_order order)
{
    errand_runtime_config config = {
        .struct_size = sizeof config, .order = order, .seed = 7};

    return setup(state, &config);
}

void
world_pool(test_world *world, uint32_t workers)
{
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = workers, .workers_max = workers};

    world->threads = true;
    assert_int_equal(errand_blocking_create(&config, &world->pool), ERRAND_OK);
    assert_int_equal(errand_attach(world->runtime, world->pool, 0, &world->lease),
                     ERRAND_OK);
}

void
world_await(test_world *world, size_t news_count)
{
    while (world->news_count < news_count)
        if (world_drain(world, SIZE_MAX) == 0)
            assert_int_equal(errand_park(world->runtime, UINT64_MAX), ERRAND_OK);
}

void
world_end(test_world *world)
{
    if (world->ended)
        return;
    world->ended = true;
    assert_int_equal(errand_runtime_shutdown(&world->runtime,
                                             errand_deadline_in(5000000000),
                                             ERRAND_SHUTDOWN_QUIET, &world->report),
                     ERRAND_OK);
    assert_null(world->runtime);
    errand_executor_abandon(&world->executor);
    errand_executor_abandon(&world->pool);
}

int
world_teardown(void **state)
{
    test_world *world = *state;

    world_end(world);
    errand_misuse_hook(NULL, NULL);
    while (world->threads && errand_testing_live_bytes() != world->bytes)
        sched_yield(); /* its threads end by themselves; the watchdog counts */
    assert_int_equal(errand_testing_live_bytes(), world->bytes);
    free(world);
    return 0;
}

void
world_check(test_world *world)
{
    errand_snapshot of[2];

    assert_int_equal(errand_runtime_snapshot(world->runtime, &of[0]), ERRAND_OK);
    assert_int_equal(errand_lease_snapshot(world->lease, &of[1]), ERRAND_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(of[i].accepted, of[i].queued + of[i].running + of[i].undrained +
                                             of[i].drained + of[i].undeliverable);
    assert_int_equal(of[0].drained, of[0].resumed + of[0].late + of[0].reaped);
}

errand_spec
world_spec(world_job *job)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &world_job_type;
    spec.state = job;
    return spec;
}

errand_identity
world_start(test_world *world, world_job *job)
{
    errand_spec spec = world_spec(job);
    errand_identity identity;

    job->world = world;
    assert_int_equal(errand_start(world->lease, &spec, job, &identity), ERRAND_OK);
    world_check(world);
    return identity;
}

errand_submission
world_submission(test_world *world, world_job *job, errand_identity *out_identity)
{
    errand_spec spec = world_spec(job);
    errand_prepared prepared;
    errand_binding binding;
    errand_submission submission;
    errand_wait wait;

    job->world = world;
    assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 1, job, out_identity), ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, out_identity, &prepared, &binding),
                     ERRAND_OK);
    assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
    errand_wait_abandon(&wait);
    return submission;
}

size_t
world_step(test_world *world, size_t budget)
{
    size_t count = 0;

    assert_int_equal(errand_manual_step(world->executor, budget, &count), ERRAND_OK);
    world_check(world);
    return count;
}

void
world_handler(void *arg, errand_completion *completion)
{
    test_world *world = arg;
    world_news *news = &world->news[world->news_count % WORLD_NEWS];

    world->news_count++;
    *news = (world_news){.identity = completion->identity,
                         .outcome = completion->outcome,
                         .code = completion->code,
                         .flags = completion->flags,
                         .job_code = completion->job_code,
                         .wait = completion->wait,
                         .t_submit = completion->t_submit_ns,
                         .t_start = completion->t_start_ns,
                         .t_end = completion->t_end_ns,
                         .trace_id = completion->trace_id,
                         .payload_size = completion->payload.size};
    snprintf(news->message, sizeof news->message, "%s", completion->message);
    snprintf(news->operation, sizeof news->operation, "%s", completion->operation);
}

size_t
world_drain(test_world *world, size_t budget)
{
    size_t count = 0;

    assert_int_equal(errand_drain(world->runtime, budget, world_handler, world, &count),
                     ERRAND_OK);
    world_check(world);
    return count;
}

const world_news *
world_last(const test_world *world)
{
    assert_true(world->news_count > 0);
    return &world->news[(world->news_count - 1) % WORLD_NEWS];
}
