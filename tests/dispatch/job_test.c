/* SPDX-License-Identifier: MIT */
/* Goal: what a body knows of its operation and what it can say about its end (O16, O25, O26, O27,
 * O30).
 * Method: one body per claim, stepped by hand; the handler copies what it was told. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include "errand/async.h"
#include "errand/order.h"
#include "world.h"

/* ---- what it runs for ----------------------------------------------------------------------- */

typedef struct seen { /* by a body */
    char name[64];
    uint64_t trace_id;
    errand_identity identity;
} seen;

static void
look(errand_job *job, world_job *self)
{
    seen *found = self->arg;

    strncpy(found->name, errand_job_name(job), sizeof found->name - 1);
    found->trace_id = errand_job_trace_id(job);
    found->identity = errand_job_identity(job);
}

static void
each_body_and_completion_shows_its_own_name_and_trace_number(void **state)
{
    /* O16, C-N3: on one worker, over the same slots; each of them is named once and once not. */
    static const char *const names[] = {"first", "second", "third"};
    const errand_runtime_config plain = {.struct_size = sizeof plain};
    test_world *world = *state;

    world_end(world); /* a test clock would give each operation a line for its times */
    world_begin(world, &plain, 0);
    for (int round = 0; round < 3; round++) {
        world_job jobs[3];
        seen found[3] = {{.trace_id = 77}};
        errand_identity identities[3];

        world->news_count = 0;
        for (int i = 0; i < 3; i++) {
            errand_spec spec;

            jobs[i] = (world_job){.inside = look, .arg = &found[i]};
            spec = world_spec(&jobs[i]);
            if (i != round) {
                spec.held_name = names[i];
                spec.trace_id = (uint64_t)(100 + i);
            }
            assert_int_equal(errand_start(world->lease, &spec, NULL, &identities[i]),
                             ERRAND_OK);
        }
        world_step(world, 10);
        assert_int_equal(world_drain(world, 10), 3);
        for (int i = 0; i < 3; i++) {
            assert_string_equal(found[i].name, i == round ? "world job" : names[i]);
            assert_true(found[i].trace_id == (i == round ? 0 : (uint64_t)(100 + i)));
            assert_true(world->news[i].trace_id == found[i].trace_id);
            assert_string_equal(world->news[i].operation, found[i].name);
            assert_memory_equal(&found[i].identity, &identities[i], sizeof identities[i]);
        }
    }
}

static void
note_label(void *arg, const errand_step *step)
{
    char *labels = arg;

    if (step->label != NULL) {
        strcat(labels, step->label);
        strcat(labels, " ");
    }
}

static void
traces_show_an_operations_name(void **state)
{
    /* O16 */
    test_world *world = *state;
    world_job jobs[2] = {{.answer = 0}};
    errand_spec spec = world_spec(&jobs[0]);
    char labels[256] = "";

    assert_int_equal(errand_trace(world->runtime, note_label, labels), ERRAND_OK);
    spec.held_name = "fetch";
    assert_int_equal(errand_start(world->lease, &spec, NULL, NULL), ERRAND_OK);
    world_start(world, &jobs[1]);
    world_step(world, 10);
    world_drain(world, 10);
    assert_int_equal(errand_trace(world->runtime, NULL, NULL), ERRAND_OK);
    assert_string_equal(labels, "fetch world job fetch world job ");
}

typedef struct reader { /* another thread of a job */
    errand_job *job;
    bool cancelled;
} reader;

static void *
read_token(void *arg)
{
    reader *self = arg;

    self->cancelled = errand_job_cancelled(self->job);
    return NULL;
}

static bool
read_elsewhere(errand_job *job)
{
    reader self = {.job = job};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, read_token, &self), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return self.cancelled;
}

static void
read_before_and_after(errand_job *job, world_job *self)
{
    errand_identity identity = errand_job_identity(job);

    assert_false(read_elsewhere(job));
    assert_int_equal(
        errand_cancel(self->world->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
        ERRAND_OK);
    assert_true(read_elsewhere(job));
}

static void
any_thread_of_a_job_can_read_its_cancel_token(void **state)
{
    /* O16 */
    test_world *world = *state;
    world_job job = {.inside = read_before_and_after}, next = {.inside = look};
    seen found;

    next.arg = &found;
    world_start(world, &job);
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 1);
    world_start(world, &next); /* the same slot: its token is its own */
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 1);
    assert_false((world_last(world)->flags & ERRAND_CANCEL_REQUESTED) != 0);
}

/* ---- what it says ----------------------------------------------------------------------------- */

static void
codes_of_the_library_cannot_be_forged(void **state)
{
    /* O25: by no number, and the misuse is named in the message and counted as a plain failure. */
    static const int32_t numbers[] = {-1, -2, -16, INT32_MIN + 1, INT32_MIN};
    test_world *world = *state;
    errand_snapshot snapshot;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        world_job job = {.answer = numbers[i], .give_payload = true};

        world_start(world, &job);
        world_step(world, 1);
        assert_int_equal(world_drain(world, 1), 1);
        assert_int_equal(world_last(world)->outcome, ERRAND_FAILED);
        assert_int_equal(world_last(world)->code, ERRAND_CODE_JOB);
        assert_int_equal(world_last(world)->payload_size, 0);
        assert_non_null(strstr(world_last(world)->message, "negative"));
        assert_int_equal(job.payload_dropped, 1);
    }
    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.codes[ERRAND_CODE_JOB], 5);
    assert_int_equal(snapshot.failed, 5);
}

static void
a_code_of_its_own_arrives_as_it_was_answered(void **state)
{
    /* O25 */
    static const int32_t numbers[] = {1, 2, 16, 77777, INT32_MAX};
    test_world *world = *state;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        world_job job = {.answer = numbers[i]};

        world_start(world, &job);
        world_step(world, 1);
        assert_int_equal(world_drain(world, 1), 1);
        assert_int_equal(world_last(world)->code, ERRAND_CODE_JOB);
        assert_int_equal(world_last(world)->job_code, numbers[i]);
        assert_string_equal(world_last(world)->message,
                            errand_code_text(ERRAND_CODE_JOB));
    }
}

static void
say_everything(errand_job *job, world_job *self)
{
    (void)self;
    errand_job_fail(job, ENOENT, SIGPIPE, "openat", "no file %d", 7);
}

static void
check_failure(void *arg, errand_completion *completion)
{
    test_world *world = arg;

    world_handler(world, completion);
    if (completion->outcome == ERRAND_COMPLETED) {
        assert_int_equal(completion->sys_errno, 0);
        assert_int_equal(completion->signal_number, 0);
        assert_int_equal(completion->job_code, 0);
        assert_null(completion->system_call);
        assert_string_equal(completion->message, "");
        return;
    }
    assert_int_equal(completion->sys_errno, ENOENT);
    assert_int_equal(completion->signal_number, SIGPIPE);
    assert_string_equal(completion->system_call, "openat");
    assert_string_equal(completion->message, "no file 7");
    assert_string_equal(completion->operation, "world job");
    assert_int_equal(completion->job_code, 9);
}

static void
a_failure_arrives_with_errno_and_signal_and_system_call(void **state)
{
    /* O27: and nothing of it stays for the next completion. */
    test_world *world = *state;
    world_job jobs[3] = {{.answer = 9, .inside = say_everything},
                         {.answer = 0, .inside = say_everything},
                         {.answer = 0}};
    size_t count;

    for (int i = 0; i < 3; i++)
        world_start(world, &jobs[i]);
    world_step(world, 10);
    assert_int_equal(errand_drain(world->runtime, 10, check_failure, world, &count),
                     ERRAND_OK);
    assert_int_equal(count, 3);
}

/* ---- messages ------------------------------------------------------------------------------------ */

static void
say_number(errand_job *job, world_job *self)
{
    errand_job_message(job, "message %d", (int)self->answer);
}

static void
a_message_without_a_block_is_replaced_and_counted(void **state)
{
    /* O26 */
    test_world *world = *state;
    world_job jobs[5];
    errand_snapshot snapshot;

    world->config.messages = 2;
    world_end(world);
    world_begin(world, &world->config, 0);
    for (int round = 0; round < 2; round++) { /* the blocks come back with the drain */
        world->news_count = 0;
        for (int i = 0; i < 5; i++) {
            jobs[i] = (world_job){.answer = i + 1, .inside = say_number};
            world_start(world, &jobs[i]);
        }
        world_step(world, 10);
        assert_int_equal(world_drain(world, 10), 5);
        assert_string_equal(world->news[0].message, "message 1");
        assert_string_equal(world->news[1].message, "message 2");
        for (int i = 0; i < 5; i++) {
            assert_int_equal(world->news[i].job_code, i + 1);
            assert_true(((world->news[i].flags & ERRAND_MESSAGE_LOST) != 0) == (i > 1));
            if (i > 1)
                assert_string_equal(world->news[i].message,
                                    errand_code_text(ERRAND_CODE_JOB));
        }
        assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
        assert_int_equal(snapshot.messages_lost, 3 * (round + 1));
    }
}

static void
say_too_much(errand_job *job, world_job *self)
{
    char text[600];

    text[0] = 'x'; /* so that the cut would fall into a character */
    for (int i = 0; i < 299; i++)
        memcpy(&text[1 + 2 * i], self->arg, 2);
    text[599] = '\0';
    errand_job_message(job, "%s", text);
}

static void
a_long_message_is_cut_after_a_whole_character_and_marked(void **state)
{
    /* O26 */
    test_world *world = *state;
    char letter[] = "\xc3\xa9"; /* two bytes */
    world_job job = {.answer = 1, .inside = say_too_much, .arg = letter};
    const char *message;
    size_t length;

    world_start(world, &job);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 1), 1);
    message = world_last(world)->message;
    length = strlen(message);
    assert_in_range(length, 250, 255);
    assert_string_equal(message + length - 3, "...");
    assert_int_equal((length - 3) % 2, 1);
    assert_memory_equal(message + length - 5, letter, 2);
    assert_false((world_last(world)->flags & ERRAND_MESSAGE_LOST) != 0);
}

/* ---- reading a payload ---------------------------------------------------------------------------- */

static const errand_payload_type other_type = {.name = "a table"};

static void
read_as_both(void *arg, errand_completion *completion)
{
    test_world *world = arg;
    void *data = world;
    size_t size = 77;

    world_handler(world, completion);
    assert_int_equal(errand_completion_read(completion, &other_type, &data, &size),
                     ERRAND_EDECODE);
    assert_ptr_equal(data, world); /* nothing was written */
    assert_int_equal(size, 77);
    assert_non_null(strstr(completion->message, "'count rows'"));
    assert_non_null(strstr(completion->message, "'a table'"));
    if (completion->payload.held_type == NULL) {
        assert_non_null(strstr(completion->message, "gave none"));
        return;
    }
    assert_non_null(strstr(completion->message, "'world job'"));
    assert_int_equal(
        errand_completion_read(completion, &world_payload_type, &data, &size), ERRAND_OK);
    assert_ptr_equal(data, completion->wait);
    assert_int_equal(size, sizeof(world_job));
}

static void
a_payload_read_as_another_type_names_the_operation_and_both_types(void **state)
{
    /* O30 */
    test_world *world = *state;
    world_job jobs[2] = {{.give_payload = true}, {.answer = 0}};
    size_t count;

    for (int i = 0; i < 2; i++) {
        errand_spec spec = world_spec(&jobs[i]);

        spec.held_name = "count rows";
        assert_int_equal(errand_start(world->lease, &spec, &jobs[i], NULL), ERRAND_OK);
    }
    world_step(world, 10);
    assert_int_equal(errand_drain(world->runtime, 10, read_as_both, world, &count),
                     ERRAND_OK);
    assert_int_equal(count, 2);
    assert_int_equal(jobs[0].payload_dropped, 1);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(each_body_and_completion_shows_its_own_name_and_trace_number),
        WITH_WORLD(traces_show_an_operations_name),
        WITH_WORLD(any_thread_of_a_job_can_read_its_cancel_token),
        WITH_WORLD(codes_of_the_library_cannot_be_forged),
        WITH_WORLD(a_code_of_its_own_arrives_as_it_was_answered),
        WITH_WORLD(a_failure_arrives_with_errno_and_signal_and_system_call),
        WITH_WORLD(a_message_without_a_block_is_replaced_and_counted),
        WITH_WORLD(a_long_message_is_cut_after_a_whole_character_and_marked),
        WITH_WORLD(a_payload_read_as_another_type_names_the_operation_and_both_types),
    };
    return test_group("dispatch/job", tests, NULL, NULL);
}
