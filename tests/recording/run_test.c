/* SPDX-License-Identifier: MIT */
/* Goal: the log of a run has every step of its audit, completions with what they brought, in every
 * order, and recording changes nothing of the run.
 * Method: runs of the manual executor with a recorder, compared with what their trace heard. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "errand/order.h"
#include "errand/record.h"
#include "world.h"

enum { HEARD = 256 };

typedef struct recorded {
    test_world *in;
    char path[64];
    errand_recorder_config config;
    errand_recorder *recorder;
    errand_step heard[HEARD];
    char labels[HEARD][64];
    size_t count;
    uint64_t digest;
} recorded;

static recorded the_run;

static void
hear(void *arg, const errand_step *step)
{
    recorded *run = arg;

    if (run->count == HEARD)
        return;
    run->heard[run->count] = *step;
    strcpy(run->labels[run->count++], step->label == NULL ? "" : step->label);
}

/* ---- a payload type with a codec: its name, and a pointer that must not get in ---------------------- */

typedef struct box {
    const void *address;
    char text[16];
} box;

static void
drop_box(void *data, size_t size)
{
    (void)size;
    free(data);
}

static const errand_payload_type box_type = {"box", drop_box};

static bool
encode_box(const void *data, size_t size, errand_sink *sink)
{
    const box *self = data;

    errand_sink_word(sink, size);
    errand_sink_put(sink, self->text, strlen(self->text));
    return self->text[0] != '!';
}

static errand_status
decode_box(const void *bytes, size_t size, errand_payload *out_payload)
{
    (void)bytes;
    (void)size;
    (void)out_payload;
    return ERRAND_EDECODE;
}

static const errand_payload_codec box_codec = {sizeof box_codec, encode_box, decode_box};

static int32_t
fill_box(errand_job *job, void *state, errand_payload *out_payload)
{
    static const char places[7];
    static atomic_uint turn;
    unsigned at = atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
    box *made = malloc(sizeof *made);

    if (made == NULL)
        return 1;
    *made = (box){.address = &places[at % sizeof places]}; /* not the one before */
    strncpy(made->text, state, sizeof made->text - 1);
    if (made->text[0] == '?') {
        free(made);
        errand_job_fail(job, 2, 0, "open", "no %s", "such thing");
        return 7;
    }
    *out_payload = (errand_payload){&box_type, made, sizeof *made};
    return 0;
}

static const errand_job_type box_job = {
    .struct_size = sizeof box_job,
    .name = "fill a box",
    .run = fill_box,
};

static void
start_box(recorded *run, const char *text)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 9;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &box_job;
    spec.state = (void *)(uintptr_t)text;
    assert_int_equal(errand_start(run->in->lease, &spec, NULL, NULL), ERRAND_OK);
}

/* ---- runs --------------------------------------------------------------------------------------------- */

static errand_task_answer
draw_and_end(errand_task *task, void *state, const errand_task_news *news)
{
    recorded *run = state;

    (void)news;
    (void)errand_task_random(task);
    assert_int_equal(errand_audit_note(run->in->runtime, "a note", "secret", 6),
                     ERRAND_OK);
    return ERRAND_TASK_DONE;
}

static void
begin(void **state, errand_order order, errand_record_payloads payloads)
{
    recorded *run = &the_run;
    errand_runtime_config config = {
        .struct_size = sizeof config, .order = order, .seed = 3};
    int fd;

    *run = (recorded){.in = *state, .path = "/tmp/errand-log-XXXXXX"};
    world_end(run->in);
    fd = mkstemp(run->path);
    assert_true(fd >= 0);
    close(fd);
    run->config = (errand_recorder_config){
        .struct_size = sizeof run->config,
        .payloads = payloads,
        .path = run->path,
        .build = 1,
        .build_text = "test",
    };
    assert_int_equal(errand_recorder_open(&run->config, &run->recorder), ERRAND_OK);
    config.held_recorder = run->recorder;
    world_begin(run->in, &config, 0);
    assert_int_equal(errand_trace(run->in->runtime, hear, run), ERRAND_OK);
    assert_int_equal(
        errand_record_codec(run->in->runtime, &box_type, "box of text", &box_codec),
        ERRAND_OK);
}

static void
do_some_work(recorded *run)
{
    errand_task_spec spec = {
        .struct_size = sizeof spec, .label = "worker", .fn = draw_and_end, .state = run};
    errand_task_id id;
    errand_turn turn;

    start_box(run, "hello");
    start_box(run, "?");
    start_box(run, "!");
    assert_int_equal(errand_spawn(run->in->runtime, NULL, &spec, &id), ERRAND_OK);
    do {
        world_step(run->in, 10);
        assert_int_equal(errand_drive(run->in->runtime, NULL, &turn), ERRAND_OK);
    } while (turn.kind == ERRAND_TURN_PROGRESS);
    run->digest = errand_digest(run->in->runtime);
}

/* Ends the run; its log, to be closed. */
static errand_log *
end(recorded *run)
{
    errand_log *log = NULL;

    world_end(run->in);
    assert_int_equal(errand_recorder_close(&run->recorder), ERRAND_OK);
    assert_int_equal(errand_log_open(run->path, &log, NULL, 0), ERRAND_OK);
    unlink(run->path);
    return log;
}

static void
expect_what_the_trace_heard(recorded *run, errand_log *log)
{
    errand_log_step step;
    errand_log_end the_end;
    unsigned completions = 0;

    for (size_t i = 0; i < run->count; i++) {
        const errand_step *heard = &run->heard[i];

        assert_true(errand_log_next(log, &step));
        assert_int_equal(step.step.step, heard->step);
        assert_int_equal(step.step.time_ns, heard->time_ns);
        assert_int_equal(step.step.kind, heard->kind);
        assert_int_equal(step.step.detail, heard->detail);
        assert_int_equal(step.step.key, heard->key);
        assert_int_equal(step.step.value, heard->value);
        assert_int_equal(step.step.context, heard->context);
        assert_string_equal(step.step.label == NULL ? "" : step.step.label,
                            run->labels[i]);
        completions += step.completion != NULL;
    }
    assert_int_equal(completions, 3);
    assert_false(errand_log_next(log, &step));
    assert_int_equal(errand_log_end_read(log, &the_end), ERRAND_OK);
    assert_int_equal(the_end.state, ERRAND_LOG_ENDED);
    assert_int_equal(the_end.steps, run->count);
    assert_true(the_end.clean);
}

static void
the_log_has_every_step_that_the_trace_heard(void **state)
{
    errand_log *log;

    for (int order = 0; order < 2; order++) {
        begin(state, order == 0 ? ERRAND_ORDER_ARRIVAL : ERRAND_ORDER_INLINE,
              ERRAND_RECORD_DIGESTS);
        do_some_work(&the_run);
        log = end(&the_run);
        expect_what_the_trace_heard(&the_run, log);
        errand_log_close(&log);
    }
}

static uint64_t
digest_without_recorder(recorded *run)
{
    errand_runtime_config config = {
        .struct_size = sizeof config, .order = ERRAND_ORDER_INLINE, .seed = 3};

    world_end(run->in);
    world_begin(run->in, &config, 0);
    assert_int_equal(
        errand_record_codec(run->in->runtime, &box_type, "box of text", &box_codec),
        ERRAND_OK);
    do_some_work(run);
    return run->digest;
}

static void
recording_changes_no_digest(void **state)
{
    /* D46: nor does reading it, which errand_digest did before the end. */
    uint64_t digests[2];
    errand_log *log;
    errand_log_end the_end;

    for (int full = 0; full < 2; full++) {
        begin(state, ERRAND_ORDER_INLINE,
              full == 0 ? ERRAND_RECORD_DIGESTS : ERRAND_RECORD_PAYLOADS);
        do_some_work(&the_run);
        digests[full] = the_run.digest;
        assert_int_equal(errand_digest(the_run.in->runtime), digests[full]);
        log = end(&the_run);
        assert_int_equal(errand_log_end_read(log, &the_end), ERRAND_OK);
        assert_int_equal(the_end.digest, digests[full]);
        errand_log_close(&log);
    }
    assert_int_equal(digests[0], digests[1]);
    assert_int_equal(digest_without_recorder(&the_run), digests[0]);
}

/* ---- what completions brought --------------------------------------------------------------------------- */

static const errand_log_completion *
next_completion(errand_log *log, errand_log_step *step)
{
    do {
        assert_true(errand_log_next(log, step));
    } while (step->completion == NULL);
    return step->completion;
}

static void
find_box(errand_log *log, errand_log_step *step, errand_outcome outcome,
         errand_log_payload payload)
{
    assert_int_equal(errand_log_seek(log, 0), ERRAND_OK);
    do {
        (void)next_completion(log, step);
    } while (step->completion->outcome != outcome ||
             step->completion->payload != payload);
}

static void
payloads_are_kept_as_their_codec_wrote_them(void **state)
{
    const unsigned char bytes[] = {sizeof(box), 0,   0,   0,   0,   0,  0,
                                   0,           'h', 'e', 'l', 'l', 'o'};
    errand_log_step step;
    errand_log *log;

    begin(state, ERRAND_ORDER_INLINE, ERRAND_RECORD_PAYLOADS);
    do_some_work(&the_run);
    log = end(&the_run);
    find_box(log, &step, ERRAND_COMPLETED, ERRAND_LOG_PAYLOAD_BYTES);
    assert_string_equal(step.completion->payload_type, "box of text");
    assert_int_equal(step.completion->payload_size, sizeof(box));
    assert_int_equal(step.completion->size, sizeof bytes);
    assert_memory_equal(step.completion->bytes, bytes, sizeof bytes);
    assert_int_not_equal(step.completion->payload_digest, 0);
    find_box(log, &step, ERRAND_COMPLETED, ERRAND_LOG_PAYLOAD_UNKNOWN); /* "!" */
    find_box(log, &step, ERRAND_FAILED, ERRAND_LOG_PAYLOAD_NONE);
    assert_int_equal(step.completion->code, ERRAND_CODE_JOB);
    assert_int_equal(step.completion->job_code, 7);
    assert_int_equal(step.completion->sys_errno, 2);
    assert_string_equal(step.completion->system_call, "open");
    assert_non_null(strstr(step.completion->message, "no such thing"));
    errand_log_close(&log);
}

static unsigned contains(const char *path, const char *text);

static void
by_default_only_digests_are_written(void **state)
{
    errand_log_step step;
    errand_log *log;

    begin(state, ERRAND_ORDER_INLINE, ERRAND_RECORD_DIGESTS);
    do_some_work(&the_run);
    assert_int_equal(errand_recorder_sync(the_run.recorder), ERRAND_OK);
    assert_int_equal(contains(the_run.path, "hello"), 0);
    assert_int_equal(contains(the_run.path, "secret"), 0);
    assert_int_equal(contains(the_run.path, "fill a box"), 1);
    log = end(&the_run);
    find_box(log, &step, ERRAND_COMPLETED, ERRAND_LOG_PAYLOAD_DIGEST);
    assert_int_not_equal(step.completion->payload_digest, 0);
    errand_log_close(&log);
}

/* How often a text stands in the file. */
static unsigned
contains(const char *path, const char *text)
{
    static char bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    unsigned count = 0;
    size_t size;
    char *at = bytes;

    assert_non_null(file);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    while ((at = memmem(at, size - (size_t)(at - bytes), text, strlen(text))) != NULL) {
        count++;
        at++;
    }
    return count;
}

static bool
redact(void *arg, const char *operation, void *bytes, size_t size)
{
    int *calls = arg;

    ++*calls;
    if (strcmp(operation, "a note") == 0)
        return false;
    memset(bytes, 'x', size);
    return true;
}

static void
redaction_sees_bytes_before_they_are_written(void **state)
{
    errand_runtime_config config = {
        .struct_size = sizeof config, .order = ERRAND_ORDER_INLINE, .seed = 3};
    errand_log_step step;
    errand_log *log;
    uint64_t digest;
    int calls = 0;

    begin(state, ERRAND_ORDER_INLINE, ERRAND_RECORD_PAYLOADS);
    do_some_work(&the_run);
    log = end(&the_run);
    find_box(log, &step, ERRAND_COMPLETED, ERRAND_LOG_PAYLOAD_BYTES);
    digest = step.completion->payload_digest;
    errand_log_close(&log);
    the_run.config.redact = redact;
    the_run.config.held_redact_arg = &calls;
    assert_int_equal(errand_recorder_open(&the_run.config, &the_run.recorder), ERRAND_OK);
    config.held_recorder = the_run.recorder;
    world_begin(the_run.in, &config, 0);
    assert_int_equal(
        errand_record_codec(the_run.in->runtime, &box_type, "box of text", &box_codec),
        ERRAND_OK);
    do_some_work(&the_run);
    assert_int_equal(errand_recorder_sync(the_run.recorder), ERRAND_OK);
    assert_int_equal(contains(the_run.path, "hello"), 0);
    assert_int_equal(contains(the_run.path, "secret"), 0);
    assert_int_equal(calls, 2);
    log = end(&the_run);
    find_box(log, &step, ERRAND_COMPLETED, ERRAND_LOG_PAYLOAD_BYTES);
    assert_int_equal(*(const char *)step.completion->bytes, 'x');
    assert_int_equal(step.completion->payload_digest, digest);
    errand_log_close(&log);
}

static void
addresses_of_a_payload_do_not_enter_the_digest(void **state)
{
    /* D151: equal boxes lie elsewhere in each run. */
    uint64_t digests[2];
    errand_log *log;

    for (int run = 0; run < 2; run++) {
        begin(state, ERRAND_ORDER_INLINE, ERRAND_RECORD_PAYLOADS);
        do_some_work(&the_run);
        digests[run] = the_run.digest;
        log = end(&the_run);
        errand_log_close(&log);
    }
    assert_int_equal(digests[0], digests[1]);
}

/* ---- calls ------------------------------------------------------------------------------------------------ */

static void *
sync_elsewhere(void *arg)
{
    return (void *)(uintptr_t)errand_recorder_sync(arg);
}

static void
a_recorder_belongs_to_its_runtimes_thread_while_that_lives(void **state)
{
    errand_runtime_config config = {.struct_size = sizeof config};
    errand_runtime *second = NULL;
    pthread_t thread;
    void *answer;
    errand_log *log;

    begin(state, ERRAND_ORDER_INLINE, ERRAND_RECORD_DIGESTS);
    assert_int_equal(pthread_create(&thread, NULL, sync_elsewhere, the_run.recorder), 0);
    pthread_join(thread, &answer);
    assert_int_equal((errand_status)(uintptr_t)answer,
                     ERRAND_ETHREAD); /* recorder_sync */
    assert_int_equal(errand_recorder_close(&the_run.recorder), ERRAND_EBUSY);
    config.held_recorder = the_run.recorder;
    assert_int_equal(errand_runtime_create(&config, &second), ERRAND_EINVAL);
    log = end(&the_run);
    errand_log_close(&log);
}

static void
without_memory_a_codec_is_not_taken(void **state)
{
    static const errand_payload_type other = {"other", NULL};
    errand_payload_codec half = {.struct_size = sizeof half, .encode = encode_box};
    test_world *in = *state;

    (void)errand_testing_fail_allocation(1);
    assert_int_equal(errand_record_codec(in->runtime, &other, "other", &box_codec),
                     ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(0);
    assert_int_equal(errand_record_codec(in->runtime, &other, "other", &half),
                     ERRAND_EINVAL);
    assert_int_equal(errand_record_codec(in->runtime, &other, "other", &box_codec),
                     ERRAND_OK);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_setup_teardown(name, world_setup_inline, world_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(the_log_has_every_step_that_the_trace_heard),
        TEST(recording_changes_no_digest),
        TEST(payloads_are_kept_as_their_codec_wrote_them),
        TEST(by_default_only_digests_are_written),
        TEST(redaction_sees_bytes_before_they_are_written),
        TEST(addresses_of_a_payload_do_not_enter_the_digest),
        TEST(a_recorder_belongs_to_its_runtimes_thread_while_that_lives),
        TEST(without_memory_a_codec_is_not_taken),
    };
    return test_group("recording/run", tests, NULL, NULL);
}
