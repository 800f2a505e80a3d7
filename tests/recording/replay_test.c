/* SPDX-License-Identifier: MIT */
/* Goal: a replay does what its log has, in every order, without a job; the first event that the log
 * has not ends the run, and the text names it.
 * Method: one program is run twice, recorded and replayed.  Its jobs count themselves and answer
 * something else each time that they run, so that a result can only have come from the log; it says
 * all that it sees.  A second program differs from the first in one event. */
#include "replay_rig.h"

static const errand_order orders[] = {ERRAND_ORDER_ARRIVAL, ERRAND_ORDER_INLINE,
                                      ERRAND_ORDER_PACED};

static void
a_replay_runs_no_job_and_the_program_sees_the_same(void **state)
{
    /* I17. */
    replay_rig *rig = *state;

    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        rig_record(rig, orders[i], ERRAND_RECORD_PAYLOADS);
        assert_int_equal(rig_actors(rig), ERRAND_OK);
        rig_recorded(rig);
        assert_int_equal(rig->ran, 2 * RIG_ACTORS);
        rig_replay(rig);
        assert_int_equal(rig_actors(rig), ERRAND_OK);
        rig_replayed(rig);
        assert_int_equal(rig->ran, 0);
        assert_string_equal(rig->said, rig->recorded);
        assert_int_equal(rig->digest, rig->recorded_digest);
    }
}

static void
expect_left(replay_rig *rig, const char *logged, const char *came)
{
    char text[1200];

    assert_int_equal(errand_replay_status(rig->replay, text, sizeof text),
                     ERRAND_EREPRODUCE);
    if (strstr(text, logged) == NULL || strstr(text, came) == NULL)
        fail_msg("'%s' and '%s' are not both in: %s", logged, came, text);
}

static void
expect_submit_refused(replay_rig *rig)
{
    world_job job = {.world = rig->in};
    errand_identity identity;
    errand_submission submission = world_submission(rig->in, &job, &identity);

    assert_int_equal(errand_submit(rig->in->lease, &submission), ERRAND_EREPRODUCE);
    errand_submission_abandon(&submission);
    assert_int_equal(job.ran, 0);
    assert_int_equal(job.dropped, 1);
}

static void
the_first_event_that_differs_ends_the_run_and_is_named(void **state)
{
    replay_rig *rig = *state;
    char text[1200];
    errand_turn turn;

    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        rig_record(rig, orders[i], ERRAND_RECORD_PAYLOADS);
        assert_int_equal(rig_actors(rig), ERRAND_OK);
        rig_recorded(rig);
        rig->variant = RIG_OTHER;
        rig_replay(rig);
        assert_int_equal(rig_actors(rig), ERRAND_EREPRODUCE);
        assert_int_equal(errand_drive(rig->in->runtime, NULL, &turn), ERRAND_EREPRODUCE);
        assert_int_equal(errand_park(rig->in->runtime, 0), ERRAND_EREPRODUCE);
        assert_int_equal(rig_start(rig, "late"), ERRAND_EREPRODUCE);
        expect_submit_refused(rig);
        errand_stall_text(rig->in->runtime, text, sizeof text);
        assert_non_null(strstr(text, "left the log"));
        rig_replayed(rig);
        assert_int_equal(rig->ran, 0);
        expect_left(rig, "submission of operation '?' by task 'root/second'",
                    "came to submission of operation 'other' by task 'root/second'");
        rig->variant = RIG_SAME;
    }
}

static void
an_event_that_does_not_come_is_named(void **state)
{
    replay_rig *rig = *state;

    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        rig_record(rig, orders[i], ERRAND_RECORD_PAYLOADS);
        assert_int_equal(rig_actors(rig), ERRAND_OK);
        rig_recorded(rig);
        rig->variant = RIG_LEAVES_OUT;
        rig_replay(rig);
        assert_int_equal(rig_actors(rig), ERRAND_EREPRODUCE);
        rig_replayed(rig);
        expect_left(rig, "submission of operation '?' by task 'second'",
                    "came to the end of task 'second'");
        rig->variant = RIG_SAME;
    }
}

/* ---- logs that will not do ------------------------------------------------------------------- */

static void
expect_refused(replay_rig *rig, uint64_t build, uint64_t config, const char *what,
               const char *theirs, const char *ours)
{
    errand_replay_config wanted = rig_config(rig);
    errand_replay *replay = NULL;
    char text[400];

    wanted.build = build;
    wanted.config = config;
    wanted.build_text = "my build";
    wanted.config_text = "my arguments";
    assert_int_equal(errand_replay_open(&wanted, &replay, text, sizeof text),
                     ERRAND_EREPRODUCE);
    assert_null(replay);
    if (strstr(text, what) == NULL || strstr(text, theirs) == NULL ||
        strstr(text, ours) == NULL)
        fail_msg("not all of '%s', '%s' and '%s' in: %s", what, theirs, ours, text);
}

static void
a_log_of_another_build_or_configuration_is_refused(void **state)
{
    /* I18. */
    replay_rig *rig = *state;

    rig_record(rig, ERRAND_ORDER_INLINE, ERRAND_RECORD_PAYLOADS);
    assert_int_equal(rig_actors(rig), ERRAND_OK);
    rig_recorded(rig);
    expect_refused(rig, RIG_BUILD + 1, RIG_CONFIG, "its build is another", "the rig",
                   "my build");
    expect_refused(rig, RIG_BUILD, RIG_CONFIG + 1, "its configuration is another",
                   "no arguments", "my arguments");
}

static void
without_the_bytes_of_a_result_the_replay_ends_there(void **state)
{
    replay_rig *rig = *state;

    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        rig_record(rig, orders[i], ERRAND_RECORD_DIGESTS);
        assert_int_equal(rig_actors(rig), ERRAND_OK);
        rig_recorded(rig);
        rig_replay(rig);
        assert_int_equal(rig_actors(rig), ERRAND_EREPRODUCE);
        rig_replayed(rig);
        expect_left(rig, "completion of operation 'hello', completed",
                    "no bytes of its result, a 'box of text'");
    }
}

static void
a_torn_log_is_followed_up_to_the_tear(void **state)
{
    replay_rig *rig = *state;

    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        rig_record(rig, orders[i], ERRAND_RECORD_PAYLOADS);
        rig->sync = true; /* a block ends behind each thing that is said */
        assert_int_equal(rig_actors(rig), ERRAND_OK);
        rig_recorded(rig);
        rig_tear(rig);
        rig_replay(rig);
        assert_int_equal(rig_actors(rig), ERRAND_EREPRODUCE);
        rig_replayed(rig);
        assert_int_equal(rig->ran, 0);
        assert_true(strlen(rig->said) > 0);
        assert_memory_equal(rig->said, rig->recorded, strlen(rig->said));
        expect_left(rig, "the log ends here, without the run's end", "cut");
    }
}

static void
bytes_that_no_codec_reads_end_the_replay(void **state)
{
    replay_rig *rig = *state;

    for (int codec = 0; codec < 2; codec++) {
        rig_record(rig, ERRAND_ORDER_INLINE, ERRAND_RECORD_PAYLOADS);
        assert_int_equal(rig_actors(rig), ERRAND_OK);
        rig_recorded(rig);
        rig->no_codec = codec == 0;
        rig->bad_codec = codec == 1;
        rig_replay(rig);
        assert_int_equal(rig_actors(rig), ERRAND_EREPRODUCE);
        rig_replayed(rig);
        expect_left(rig, "completion of operation 'hello'",
                    codec == 0 ? "no codec is registered" : "its codec cannot read");
        rig->no_codec = rig->bad_codec = false;
    }
}

static bool
redact(void *arg, const char *operation, void *bytes, size_t size)
{
    (void)arg;
    (void)operation;
    memset(bytes, 'x', size);
    return true;
}

static void
a_redacted_result_is_replayed_as_it_stands_in_the_log(void **state)
{
    replay_rig *rig = *state;

    for (size_t i = 0; i < 2; i++) {
        rig->redact = redact;
        rig_record(rig, orders[i], ERRAND_RECORD_PAYLOADS);
        assert_int_equal(rig_actors(rig), ERRAND_OK);
        rig_recorded(rig);
        rig_replay(rig);
        assert_int_equal(rig_actors(rig), ERRAND_OK);
        rig_replayed(rig);
        assert_non_null(strstr(rig->said, "xxxx"));
        assert_int_equal(rig->digest, rig->recorded_digest);
    }
}

/* ---- with jobs ------------------------------------------------------------------------------- */

static void
jobs_that_run_again_are_compared_with_the_log(void **state)
{
    replay_rig *rig = *state;
    errand_replay_config config;
    errand_replay *replay = NULL;
    char text[200];

    rig->run_jobs = true;
    for (size_t i = 1; i < sizeof orders / sizeof orders[0]; i++) {
        rig->same_results = true;
        rig_record(rig, orders[i], ERRAND_RECORD_DIGESTS);
        assert_int_equal(rig_actors(rig), ERRAND_OK);
        rig_recorded(rig);
        rig_replay(rig);
        assert_int_equal(rig_actors(rig), ERRAND_OK);
        rig_replayed(rig);
        assert_int_equal(rig->ran, 2 * RIG_ACTORS);
        assert_string_equal(rig->said, rig->recorded);
        rig->same_results = false; /* one job answers something else */
        rig_replay(rig);
        assert_int_equal(rig_actors(rig), ERRAND_EREPRODUCE);
        rig_replayed(rig);
        expect_left(rig, "completion of operation 'hello', completed",
                    "came to completion of operation 'hello', completed");
    }
    rig_record(rig, ERRAND_ORDER_ARRIVAL, ERRAND_RECORD_DIGESTS);
    rig_recorded(rig);
    config = rig_config(rig);
    assert_int_equal(errand_replay_open(&config, &replay, text, sizeof text),
                     ERRAND_EUNSUPPORTED);
}

/* ---- misuse ----------------------------------------------------------------------------------- */

static void
a_replay_serves_one_runtime_and_outlives_it(void **state)
{
    replay_rig *rig = *state;
    errand_runtime_config config = {.struct_size = sizeof config};
    errand_runtime *runtime = NULL;

    rig_record(rig, ERRAND_ORDER_INLINE, ERRAND_RECORD_PAYLOADS);
    assert_int_equal(rig_actors(rig), ERRAND_OK);
    rig_recorded(rig);
    rig_replay(rig);
    config.held_replay = rig->replay; /* without the order, and a second one */
    assert_int_equal(errand_runtime_create(&config, &runtime), ERRAND_EINVAL);
    config.order = ERRAND_ORDER_REPLAY;
    assert_int_equal(errand_runtime_create(&config, &runtime), ERRAND_EINVAL);
    config.held_replay = NULL;
    assert_int_equal(errand_runtime_create(&config, &runtime), ERRAND_EINVAL);
    assert_int_equal(errand_replay_close(&rig->replay), ERRAND_EBUSY);
    assert_int_equal(rig_actors(rig), ERRAND_OK);
    rig_replayed(rig);
    assert_int_equal(errand_replay_close(&rig->replay), ERRAND_OK);
    assert_null(rig->replay);
    assert_int_equal(errand_replay_close(&rig->replay), ERRAND_OK);
}

static void
what_cannot_be_opened_says_why(void **state)
{
    replay_rig *rig = *state;
    errand_replay_config config;
    errand_replay *replay = NULL;
    char text[200] = "";

    rig_record(rig, ERRAND_ORDER_INLINE, ERRAND_RECORD_PAYLOADS);
    rig_recorded(rig);
    config = rig_config(rig);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        (void)errand_testing_fail_allocation(nth);
        assert_int_equal(errand_replay_open(&config, &replay, text, sizeof text),
                         ERRAND_ENOMEM);
        (void)errand_testing_fail_allocation(0);
    }
    config.path = "/nowhere/at/all";
    assert_int_equal(errand_replay_open(&config, &replay, text, sizeof text),
                     ERRAND_ESYSTEM);
    assert_non_null(strstr(text, "No such file"));
    config.path = "/dev/null";
    assert_int_equal(errand_replay_open(&config, &replay, text, sizeof text),
                     ERRAND_EINVAL);
    assert_null(replay);
}

static void
choices_that_are_not_the_seeds_are_given_again(void **state)
{
    replay_rig *rig = *state;
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ERRAND_ORDER_REPLAY};
    errand_runtime *runtime = NULL;
    errand_replay_config wanted;

    assert_int_equal(errand_tape_create(&rig->tape), ERRAND_OK); /* an empty one */
    rig_record(rig, ERRAND_ORDER_INLINE, ERRAND_RECORD_PAYLOADS);
    assert_int_equal(rig_actors(rig), ERRAND_OK);
    rig_recorded(rig);
    wanted = rig_config(rig);
    assert_int_equal(errand_replay_open(&wanted, &rig->replay, NULL, 0), ERRAND_OK);
    config.held_replay = rig->replay;
    assert_int_equal(errand_runtime_create(&config, &runtime), ERRAND_EREPRODUCE);
    rig_replay(rig);
    assert_int_equal(rig_actors(rig), ERRAND_OK);
    rig_replayed(rig);
    assert_int_equal(rig->digest, rig->recorded_digest);
    errand_tape_abandon(&rig->tape);
}

static void
policy_and_seed_are_the_logs(void **state)
{
    replay_rig *rig = *state;

    rig->policy = "pct:4:200";
    rig->seed = 77;
    rig_record(rig, ERRAND_ORDER_INLINE, ERRAND_RECORD_PAYLOADS);
    assert_int_equal(rig_actors(rig), ERRAND_OK);
    rig_recorded(rig);
    rig->policy = NULL;
    rig->seed = 1;
    rig_replay(rig);
    assert_int_equal(errand_replay_header_of(rig->replay)->seed, 77);
    assert_int_equal(rig_actors(rig), ERRAND_OK);
    rig_replayed(rig);
    assert_int_equal(rig->digest, rig->recorded_digest);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, rig_setup, rig_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(a_replay_runs_no_job_and_the_program_sees_the_same),
        TEST(the_first_event_that_differs_ends_the_run_and_is_named),
        TEST(an_event_that_does_not_come_is_named),
        TEST(a_log_of_another_build_or_configuration_is_refused),
        TEST(without_the_bytes_of_a_result_the_replay_ends_there),
        TEST(a_torn_log_is_followed_up_to_the_tear),
        TEST(bytes_that_no_codec_reads_end_the_replay),
        TEST(a_redacted_result_is_replayed_as_it_stands_in_the_log),
        TEST(jobs_that_run_again_are_compared_with_the_log),
        TEST(a_replay_serves_one_runtime_and_outlives_it),
        TEST(what_cannot_be_opened_says_why),
        TEST(choices_that_are_not_the_seeds_are_given_again),
        TEST(policy_and_seed_are_the_logs),
    };

    return test_group("recording/replay", tests, NULL, NULL);
}
