/* SPDX-License-Identifier: MIT */
/* Goal: whatever a worker writes, its operation ends once with a fitting code, and the next one is
 * served.  Method: simulated workers that answer rightly and in each wrong way (numbers: the
 * hostile list of the specification, section 7). */
#include "pool_rig.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* After whatever came before, a worker serves. */
static void
check_serves(rig *self)
{
    const rig_news *news = rig_run(self, SIM_PATTERN, 10);

    assert_int_equal(news->outcome, ERRAND_COMPLETED);
    assert_int_equal(news->size, 10);
}

static void
results_of_all_sizes_are_byte_exact(void **state) /* S4, C-F4 */
{
    rig *self = *state;
    static const uint64_t sizes[] = {0,        1, 65535, 65536, 1 << 20, (1 << 20) + 1,
                                     100 << 20};

    self->policy.out_bytes = 100 << 20;
    rig_begin(self);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const rig_news *news = rig_run(self, SIM_PATTERN, sizes[i]);

        assert_int_equal(news->outcome, ERRAND_COMPLETED);
        assert_int_equal(news->size, sizes[i]);
        assert_true(news->sum != UINT64_MAX);
    }
}

static void
requests_reach_the_worker_as_written(void **state)
{
    rig *self = *state;
    unsigned char bytes[1000];
    uint64_t sum = 0;

    rig_begin(self);
    for (int i = 0; i < 1000; i++)
        sum += bytes[i] = (unsigned char)(i * 7);
    for (int i = 0; i < 200; i++) {
        errand_spec spec = rig_spec(self, SIM_ECHO, 0, bytes, sizeof bytes);

        rig_start_spec(self, 0, &spec);
    }
    rig_await(self, 200); /* most of them were queued */
    for (int i = 0; i < 200; i++) {
        assert_int_equal(self->news[i].outcome, ERRAND_COMPLETED);
        assert_int_equal(self->news[i].size, sizeof bytes);
        assert_int_equal(self->news[i].sum, sum);
    }
    assert_int_equal(self->dropped, 200);
}

static void
an_error_of_the_job_comes_with_code_errno_and_text(void **state)
{
    rig *self = *state;
    const rig_news *news;

    rig_begin(self);
    news = rig_run(self, SIM_FAIL, 5);
    assert_int_equal(news->outcome, ERRAND_FAILED);
    assert_int_equal(news->code, ERRAND_CODE_JOB);
    assert_int_equal(news->job_code, 5);
    assert_int_equal(news->sys_errno, 12);
    assert_string_equal(news->message, "sim failed");
    assert_int_equal(news->more_status, ERRAND_OK);
    assert_int_equal(news->more.wait_status, -1);
    assert_true(news->more.pid > 0);
    check_serves(self);
    assert_int_equal(rig_snapshot(self).started, 1);
}

static void
check_breach(rig *self, sim_act act, uint64_t number)
{
    const rig_news *news = rig_run(self, act, number);

    assert_int_equal(news->outcome, ERRAND_CRASHED);
    assert_int_equal(news->code, ERRAND_CODE_PROTOCOL);
    check_serves(self);
}

static void
answers_outside_the_protocol_end_the_worker(void **state) /* S2, S5, 39-43, 46, 76 */
{
    rig *self = *state;
    errand_sandbox_snapshot snapshot;

    self->config.crash_limit = 1000;
    rig_begin(self);
    check_breach(self, SIM_LENGTH, UINT32_MAX);
    check_breach(self, SIM_LENGTH, (1 << 20) + 1);
    check_breach(self, SIM_STATUS, 0);
    check_breach(self, SIM_STATUS, 99);
    check_breach(self, SIM_SEQUENCE, 1);
    check_breach(self, SIM_SEQUENCE, (1 << 24) - 3); /* stale */
    check_breach(self, SIM_STORM, 0);
    check_breach(self, SIM_STUTTER, 0);
    check_breach(self, SIM_EMPTY_PIECES, 0);
    check_breach(self, SIM_BIG_ERROR, 0);
    check_breach(self, SIM_FAIL, 0);
    check_breach(self, SIM_LARGE, 1);
    snapshot = rig_snapshot(self);
    assert_int_equal(snapshot.protocol_breaches, 12);
}

static void
a_scribbling_worker_gets_a_safe_verdict(void **state) /* S2, 44 */
{
    rig *self = *state;

    self->config.crash_limit = 1000;
    rig_begin(self);
    for (int i = 0; i < 20; i++) {
        const rig_news *news = rig_run(self, SIM_SCRIBBLE, 0);

        assert_true(news->code == ERRAND_CODE_PROTOCOL || news->code == ERRAND_CODE_JOB ||
                    news->code == ERRAND_CODE_OUTPUT ||
                    news->outcome == ERRAND_COMPLETED);
    }
    check_serves(self);
}

static void
bytes_that_change_after_the_answer_change_no_result(void **state) /* S3, 50 */
{
    rig *self = *state;

    self->config.crash_limit = 1000;
    rig_begin(self);
    for (int i = 0; i < 10; i++) {
        const rig_news *news = rig_run(self, SIM_FLIP, 0);

        assert_true(news->outcome == ERRAND_COMPLETED ||
                    news->code == ERRAND_CODE_PROTOCOL);
        if (news->outcome == ERRAND_COMPLETED)
            assert_int_equal(news->size, 64);
    }
    check_serves(self);
}

/* Runs one whose read_response takes what it can. */
static const rig_news *
run_taking(rig *self, uint64_t bytes)
{
    errand_spec spec = rig_spec(self, SIM_PATTERN, bytes, NULL, 0);
    const rig_news *news;

    rig_make_taking(&spec);
    self->taken = 0;
    rig_start_spec(self, 1, &spec);
    rig_await(self, self->count + 1);
    news = &self->news[self->count - 1];
    assert_int_equal(news->outcome, ERRAND_COMPLETED);
    assert_int_equal(news->size, bytes);
    assert_int_not_equal(news->sum, UINT64_MAX);
    return news;
}

/* S3: also when it is not copied again it is nobody's but its reader's. */
static void
a_large_response_that_is_taken_stays_until_it_is_dropped(void **state)
{
    rig *self = *state;
    errand_payload first;
    const unsigned char *bytes;

    rig_begin(self);
    run_taking(self, 300000);
    assert_int_equal(self->taken, 1);
    first = self->held;
    bytes = self->held_bytes;
    run_taking(self, 300001);
    assert_int_equal(self->taken, 1);
    assert_ptr_not_equal(self->held_bytes, bytes);
    errand_payload_drop(&self->held);
    rig_run(self, SIM_PATTERN, 5000000); /* nobody takes it: its room goes */
    run_taking(self, 400000);
    assert_int_equal(self->taken, 1);
    errand_payload_drop(&self->held);
    run_taking(self, 5000000);
    assert_int_equal(self->taken, 1);
    errand_payload_drop(&self->held);
    run_taking(self, 130000);
    assert_int_equal(self->taken, 0);
    check_serves(self);
    for (size_t i = 0; i < 300000; i++)
        assert_int_equal(bytes[i], sim_byte(i));
    errand_payload_drop(&first);
    assert_int_equal(rig_snapshot(self).started, 1);
}

static void
a_second_answer_is_nobodys(void **state) /* S2, 49 */
{
    rig *self = *state;

    self->config.crash_limit = 1000;
    rig_begin(self);
    for (int i = 0; i < 50; i++) {
        const rig_news *news = rig_run(self, SIM_TWICE, 0);

        assert_true(news->outcome == ERRAND_COMPLETED ||
                    news->code == ERRAND_CODE_PROTOCOL);
        assert_int_equal(news->size, news->outcome == ERRAND_COMPLETED);
    }
    check_serves(self);
}

static void
an_answer_before_its_question_gives_no_result(void **state) /* S2, 42 */
{
    rig *self = *state;
    const struct timespec pause = {0, 100000};

    rig_begin(self);
    assert_int_equal(rig_run(self, SIM_AHEAD, 0)->outcome, ERRAND_COMPLETED);
    atomic_store_explicit(&self->sim.ahead, 1, memory_order_release);
    while (atomic_load_explicit(&self->sim.ahead, memory_order_acquire) != 2)
        nanosleep(&pause, NULL);
    check_serves(self);
    assert_int_equal(rig_snapshot(self).protocol_breaches, 1);
}

static void
more_pieces_than_out_bytes_are_no_result(void **state) /* S4 */
{
    rig *self = *state;
    const rig_news *news;

    self->policy.out_bytes = 100000;
    rig_begin(self);
    news = rig_run(self, SIM_PIECES, 0);
    assert_int_equal(news->outcome, ERRAND_CRASHED);
    assert_int_equal(news->code, ERRAND_CODE_OUTPUT);
    assert_int_equal(news->size, 0);
    check_serves(self);
}

/* Is a block of that size given to whoever frees one next? */
static bool
memory_is_kept(void)
{
    void *block = malloc(ERRAND__KEEP_LEAST), *kept = NULL;
    bool given = errand__keep_give(block, ERRAND__KEEP_LEAST);

    if (given)
        kept = errand__keep_take(ERRAND__KEEP_LEAST);
    free(given ? kept : block);
    return given;
}

static void
memory_of_large_jobs_is_kept_until_there_was_none_for_two_seconds(void **state) /* S29 */
{
    rig *self = *state;
    const struct timespec pause = {0, 5000000};
    static unsigned char bytes[ERRAND__KEEP_LEAST];
    uint64_t began;
    errand_spec spec;
    bool kept;

    if (ERRAND_SANITIZED)
        test_skip("nothing is kept under sanitizers");
    rig_begin(self);
    assert_int_equal(rig_run(self, SIM_PATTERN, 1000)->size, 1000);
    assert_false(memory_is_kept());
    began = errand__clock_now();
    assert_int_equal(rig_run(self, SIM_PATTERN, ERRAND__KEEP_LEAST)->size,
                     ERRAND__KEEP_LEAST);
    kept = memory_is_kept();
    assert_true(kept || errand__clock_now() - began > UINT64_C(1500000000));
    while (memory_is_kept())
        nanosleep(&pause, NULL); /* the watchdog ends a test that waits for ever */
    assert_true(errand__clock_now() - began > UINT64_C(1500000000));
    spec = rig_spec(self, SIM_ECHO, 0, bytes, sizeof bytes);
    rig_start_spec(self, 7, &spec);
    assert_true(memory_is_kept());
    rig_await(self, self->count + 1);
    rig_end(self);
    assert_false(memory_is_kept());
}

/* A worker that keeps to out_bytes is no crashed one. */
static void
a_result_that_would_be_too_large_is_told_and_its_worker_goes_on(void **state) /* S4 */
{
    rig *self = *state;
    const rig_news *news;

    self->policy.out_bytes = 100000;
    rig_begin(self);
    news = rig_run(self, SIM_LARGE, 0);
    assert_int_equal(news->outcome, ERRAND_FAILED);
    assert_int_equal(news->code, ERRAND_CODE_OUTPUT);
    assert_non_null(strstr(news->message, "out_bytes of the policy, 100000"));
    assert_int_equal(news->size, 0);
    check_serves(self);
    assert_int_equal(rig_snapshot(self).started, 1);
    assert_int_equal(rig_snapshot(self).crashed, 0);
}

static void
a_job_that_dies_between_pieces_gives_no_bytes(void **state) /* S4, C-F4 */
{
    rig *self = *state;
    const rig_news *news;

    rig_begin(self);
    news = rig_run(self, SIM_PIECE_DIE, 0);
    assert_int_equal(news->outcome, ERRAND_CRASHED);
    assert_int_equal(news->code, ERRAND_CODE_CRASHED);
    assert_int_equal(news->signal_number, SIGBUS);
    assert_int_equal(news->size, 0);
    check_serves(self);
}

static void
an_answer_without_a_wake_is_found_within_a_bound(void **state) /* S6, 45, 79 */
{
    rig *self = *state;
    uint64_t start = errand__clock_now();

    rig_begin(self);
    for (int i = 0; i < 5; i++)
        assert_int_equal(rig_run(self, SIM_NO_WAKE, 5000)->outcome, ERRAND_COMPLETED);
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(rig_run(self, SIM_DONE_DIE_QUIET, 0)->outcome, ERRAND_COMPLETED);
        rig_await_started(self, i + 2);
    }
    assert_true(errand__clock_now() - start < UINT64_C(15000000000));
    check_serves(self);
}

static void
a_crash_after_the_answer_changes_no_result(void **state) /* S7, 80 */
{
    rig *self = *state;

    self->config.crash_limit = 1000;
    rig_begin(self);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(rig_run(self, SIM_DONE_DIE, 0)->outcome, ERRAND_COMPLETED);
        rig_await_started(self, (uint64_t)i + 2);
    }
    check_serves(self);
}

static void
nothing_of_a_job_is_there_for_the_next(void **state) /* S12, 77 */
{
    rig *self = *state;

    rig_begin(self);
    for (int i = 0; i < 10; i++) {
        unsigned char secret[3000];
        errand_spec spec;

        memset(secret, 0xa5, sizeof secret);
        spec = rig_spec(self, SIM_ECHO, 0, secret, sizeof secret);
        rig_start_spec(self, 0, &spec);
        rig_await(self, self->count + 1);
        assert_int_equal(rig_run(self, SIM_PATTERN, 3 << 20)->outcome, ERRAND_COMPLETED);
        assert_int_equal(rig_run(self, SIM_PEEK, 0)->sum, 0);
    }
    assert_int_equal(rig_snapshot(self).started, 1);
}

static void
a_panic_in_read_response_is_one_panic(void **state)
{
    rig *self = *state;
    errand_spec spec;

    rig_begin(self);
    spec = rig_spec(self, SIM_PATTERN, 10, NULL, 0);
    rig_make_unreadable(&spec);
    rig_start_spec(self, 0, &spec);
    rig_await(self, 1);
    assert_int_equal(self->news[0].outcome, ERRAND_PANICKED);
    assert_string_equal(self->news[0].message, "the response is unreadable");
    check_serves(self);
}

static void
a_question_is_answered_by_the_host(void **state)
{
    rig *self = *state;
    unsigned char bytes[] = {1, 2, 3};
    errand_spec spec;

    rig_begin(self);
    for (int i = 0; i < 100; i++) {
        spec = rig_spec(self, SIM_ASK, 0, bytes, sizeof bytes);
        rig_start_spec(self, 0, &spec);
        rig_await(self, self->count + 1);
        assert_int_equal(self->news[i].outcome, ERRAND_COMPLETED);
        assert_int_equal(self->news[i].sum, 9);
    }
    spec = rig_spec(self, SIM_ASK, 0, NULL, 0); /* refused */
    rig_start_spec(self, 0, &spec);
    rig_await(self, self->count + 1);
    assert_int_equal(self->news[100].code, ERRAND_CODE_PROTOCOL);
    check_serves(self);
}

int
main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_RIG(results_of_all_sizes_are_byte_exact),
        WITH_RIG(requests_reach_the_worker_as_written),
        WITH_RIG(an_error_of_the_job_comes_with_code_errno_and_text),
        WITH_RIG(answers_outside_the_protocol_end_the_worker),
        WITH_RIG(a_scribbling_worker_gets_a_safe_verdict),
        WITH_RIG(bytes_that_change_after_the_answer_change_no_result),
        WITH_RIG(a_large_response_that_is_taken_stays_until_it_is_dropped),
        WITH_RIG(a_second_answer_is_nobodys),
        WITH_RIG(an_answer_before_its_question_gives_no_result),
        WITH_RIG(more_pieces_than_out_bytes_are_no_result),
        WITH_RIG(memory_of_large_jobs_is_kept_until_there_was_none_for_two_seconds),
        WITH_RIG(a_result_that_would_be_too_large_is_told_and_its_worker_goes_on),
        WITH_RIG(a_job_that_dies_between_pieces_gives_no_bytes),
        WITH_RIG(an_answer_without_a_wake_is_found_within_a_bound),
        WITH_RIG(a_crash_after_the_answer_changes_no_result),
        WITH_RIG(nothing_of_a_job_is_there_for_the_next),
        WITH_RIG(a_panic_in_read_response_is_one_panic),
        WITH_RIG(a_question_is_answered_by_the_host),
    };
    return test_group("workers/sandbox/pool_answers", tests, NULL, NULL);
}
