/* SPDX-License-Identifier: MIT */
/* Goal: one operation's life, step by step, with every refusal on the way.
 * Method: the manual executor; the law is checked after each step (world_check). */
#include <string.h>
#include "world.h"

static void
an_accepted_operation_is_drained_exactly_once(void **state)
{
    /* O1, O20 */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_identity identity = world_start(world, &job);

    assert_int_equal(world_drain(world, 10), 0);
    assert_int_equal(world_step(world, 10), 1);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(world_drain(world, 10), 0);
    assert_int_equal(job.ran, 1);
    assert_int_equal(job.dropped, 1);
    assert_int_equal(world_last(world)->outcome, ERRAND_COMPLETED);
    assert_memory_equal(&world_last(world)->identity, &identity, sizeof identity);
    assert_ptr_equal(world_last(world)->wait, &job);
}

static void
the_five_steps_make_the_same_operation_as_start(void **state)
{
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_identity identity;
    errand_submission submission = world_submission(world, &job, &identity);

    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    assert_null(submission.held_record);
    world_step(world, 1);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(job.ran, 1);
    assert_int_equal(job.dropped, 1);
}

static void
second_submit_of_a_copy_is_refused_as_spent(void **state)
{
    /* O80, C-A2 */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_identity identity;
    errand_submission submission = world_submission(world, &job, &identity),
                      copy = submission;
    errand_snapshot snapshot;

    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    assert_int_equal(errand_submit(world->lease, &copy), ERRAND_ESPENT);
    assert_int_equal(errand_runtime_snapshot(world->runtime, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.accepted, 1);
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(errand_submit(world->lease, &copy), ERRAND_ESPENT);
    assert_int_equal(job.ran, 1);
}

static void
a_copy_of_an_old_submission_is_not_taken_for_the_next_in_its_slot(void **state)
{
    /* O80 */
    test_world *world = *state;
    world_job first = {.answer = 0}, next = {.answer = 0};
    errand_identity identity;
    errand_submission submission = world_submission(world, &first, &identity),
                      copy = submission;

    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 1);
    submission = world_submission(world, &next, &identity);
    assert_ptr_equal(submission.held_record, copy.held_record);
    assert_int_equal(errand_submit(world->lease, &copy), ERRAND_ESPENT);
    assert_int_equal(world_step(world, 10), 0);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(next.ran, 1);
}

static void
second_bind_is_refused_as_spent_whatever_copy_is_used(void **state)
{
    /* O8, O10 */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_spec spec = world_spec(&job);
    errand_prepared first, second;
    errand_binding binding, other;
    errand_identity identity, copy;

    assert_int_equal(errand_prepare(world->runtime, &spec, &first), ERRAND_OK);
    assert_int_equal(errand_prepare(world->runtime, &spec, &second), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &identity), ERRAND_OK);
    copy = identity;
    assert_int_equal(errand_bind(world->runtime, &identity, &first, &binding), ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, &copy, &second, &other), ERRAND_ESPENT);
    assert_int_equal(errand_prepared_kind(&second), 1); /* still valid */
    assert_int_equal(errand_prepared_kind(&first), 0);
    errand_prepared_abandon(&second);
    assert_int_equal(job.dropped, 1);
    errand_binding_abandon(&binding);
    assert_int_equal(job.dropped, 2);
    assert_int_equal(job.ran, 0);
}

/* One that needs nothing beside its record is given up at each stage; one slot serves all. */
static void
what_is_given_up_before_its_submit_leaves_its_place(void **state)
{
    /* O11, O7 */
    test_world *world = *state;
    world_job jobs[8] = {{.answer = 0}};
    errand_identity identity;
    errand_turn turn;

    world_end(world);
    world->config.operations_max = 1;
    world->config.flags = 0; /* exact times would be kept beside the record */
    world_begin(world, &world->config, 0);
    for (int i = 0; i < 8; i++) {
        errand_spec spec = world_spec(&jobs[i]);
        errand_prepared prepared;
        errand_binding binding;
        errand_submission submission;

        if (i % 4 == 0) {
            assert_int_equal(errand_issue(world->runtime, 1, NULL, &identity), ERRAND_OK);
            assert_int_equal(errand_retire(world->runtime, &identity), ERRAND_OK);
        }
        if (i % 4 == 1) {
            assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
            assert_int_equal(errand_issue(world->runtime, 1, NULL, &identity), ERRAND_OK);
            assert_int_equal(errand_bind(world->runtime, &identity, &prepared, &binding),
                             ERRAND_OK);
            errand_binding_abandon(&binding);
        }
        if (i % 4 >= 2)
            submission = world_submission(world, &jobs[i], &identity);
        if (i % 4 == 2)
            errand_submission_abandon(&submission);
        if (i % 4 == 3) {
            assert_int_equal(errand_abandon_later(&submission), ERRAND_OK);
            assert_int_equal(errand_drive(world->runtime, NULL, &turn), ERRAND_OK);
        }
        assert_int_equal(jobs[i].dropped, i % 4 != 0);
    }
    world_end(world);
    for (int i = 0; i < 8; i++)
        assert_int_equal(jobs[i].dropped, i % 4 != 0);
}

static void
another_kind_is_refused_with_both_kinds_readable(void **state)
{
    /* O8 */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_spec spec = world_spec(&job);
    errand_prepared prepared;
    errand_binding binding;
    errand_identity identity;

    assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 77, NULL, &identity), ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, &identity, &prepared, &binding),
                     ERRAND_EKIND);
    assert_non_null(strstr(world->misuse_text, "77"));
    assert_non_null(strstr(world->misuse_text, "kind 1"));
    assert_int_equal(errand_retire(world->runtime, &identity), ERRAND_OK);
    assert_int_equal(errand_retire(world->runtime, &identity), ERRAND_ESPENT);
    errand_prepared_abandon(&prepared);
    assert_int_equal(job.dropped, 1);
}

static void
a_refused_submit_leaves_the_submission_valid(void **state)
{
    /* O10, O50, C-H4 */
    test_world *world = *state;
    world_job jobs[3] = {{.answer = 0}};
    errand_submission submissions[3];
    errand_identity identity;
    size_t accepted = 9;

    world_end(world);
    world_begin(world, &world->config, 2);
    for (int i = 0; i < 3; i++)
        submissions[i] = world_submission(world, &jobs[i], &identity);
    /* O2 */
    assert_int_equal(errand_submit_many(world->lease, submissions, 3, &accepted),
                     ERRAND_EFULL);
    assert_int_equal(accepted, 2);
    assert_null(submissions[0].held_record);
    assert_non_null(submissions[2].held_record);
    world_step(world, 10);
    assert_int_equal(errand_submit(world->lease, &submissions[2]), ERRAND_EFULL);
    assert_int_equal(world_drain(world, 1), 1);
    assert_int_equal(errand_submit(world->lease, &submissions[2]), ERRAND_OK);
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 2);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(jobs[i].ran, 1);
        assert_int_equal(jobs[i].dropped, 1);
    }
}

static void
a_queued_operation_that_is_cancelled_is_settled_at_once(void **state)
{
    /* O22, O35, C-A1, C-B2 */
    test_world *world = *state;
    world_job job = {.answer = 0};
    errand_identity identity = world_start(world, &job);
    errand_cancel_answer answer;

    assert_int_equal(
        errand_cancel(world->runtime, &identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_CANCELLED);
    assert_int_equal(
        errand_cancel(world->runtime, &identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_ALREADY);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(world_last(world)->outcome, ERRAND_CANCELLED);
    assert_int_equal(world_last(world)->code, ERRAND_CODE_CANCELLED);
    assert_int_equal(world_step(world, 10), 0);
    assert_int_equal(world_drain(world, 10), 0);
    assert_int_equal(job.ran, 0);
    assert_int_equal(job.dropped, 1);
    assert_int_equal(
        errand_cancel(world->runtime, &identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_UNKNOWN);
}

static void
cancel_self(errand_job *job, world_job *self)
{
    errand_identity identity = errand_job_identity(job);
    errand_cancel_answer *answer = self->arg;

    assert_false(errand_job_cancelled(job));
    assert_int_equal(
        errand_cancel(self->world->runtime, &identity, ERRAND_REASON_EXPLICIT, answer),
        ERRAND_OK);
    assert_true(errand_job_cancelled(job));
}

static void
a_running_operation_that_is_cancelled_ends_by_its_own_completion(void **state)
{
    /* O35, O36, C-B1 */
    test_world *world = *state;
    errand_cancel_answer answer = 0;
    world_job job = {.inside = cancel_self, .arg = &answer};

    world_start(world, &job);
    world_step(world, 1);
    assert_int_equal(answer, ERRAND_CANCEL_RUNNING);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(world_last(world)->outcome, ERRAND_COMPLETED);
    assert_true((world_last(world)->flags & ERRAND_CANCEL_REQUESTED) != 0);
    assert_true((world_last(world)->flags & ERRAND_LATE) != 0);
}

static void
a_settled_operation_that_is_cancelled_keeps_its_result(void **state)
{
    /* O35, C-B2 */
    test_world *world = *state;
    world_job job = {.give_payload = true};
    errand_identity identity = world_start(world, &job);
    errand_cancel_answer answer;

    world_step(world, 1);
    assert_int_equal(
        errand_cancel(world->runtime, &identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_SETTLED);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(world_last(world)->outcome, ERRAND_COMPLETED);
    assert_int_equal(job.payload_dropped, 1); /* C-H1: before the drain returned */
    assert_int_equal(job.dropped, 1);
}

static void
a_panic_is_one_completion_with_its_message(void **state)
{
    /* O20, O74, C-F1 */
    test_world *world = *state;
    world_job job = {.panic = "out of cheese", .give_payload = true},
              next = {.answer = 0};

    world_start(world, &job);
    world_start(world, &next);
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 2);
    assert_int_equal(world->news[0].outcome, ERRAND_PANICKED);
    assert_int_equal(world->news[0].code, ERRAND_CODE_PANIC);
    assert_string_equal(world->news[0].message, "out of cheese");
    assert_int_equal(world->news[0].payload_size, 0);
    assert_int_equal(job.payload_dropped, 1);
    assert_int_equal(job.dropped, 1);
    assert_int_equal(world->news[1].outcome, ERRAND_COMPLETED);
}

static void
a_job_cannot_forge_a_code_of_the_library(void **state)
{
    /* O25 */
    test_world *world = *state;
    world_job forged = {.answer = -3}, own = {.answer = 3};

    world_start(world, &forged);
    world_start(world, &own);
    world_step(world, 10);
    world_drain(world, 10);
    assert_int_equal(world->news[0].outcome, ERRAND_FAILED);
    assert_int_equal(world->news[0].code, ERRAND_CODE_JOB);
    assert_non_null(strstr(world->news[0].message, "library"));
    assert_int_equal(world->news[1].job_code, 3);
}

static void
drain_again(void *arg, errand_completion *completion)
{
    test_world *world = arg;
    size_t count = 77;

    (void)completion;
    assert_int_equal(errand_drain(world->runtime, 1, NULL, NULL, &count), ERRAND_EBUSY);
    assert_int_equal(count, 77);
}

static void
a_drain_inside_a_handler_is_busy_and_loses_nothing(void **state)
{
    /* O68, C-I5 */
    test_world *world = *state;
    world_job jobs[2] = {{.answer = 0}};
    size_t count;

    world_start(world, &jobs[0]);
    world_start(world, &jobs[1]);
    world_step(world, 10);
    assert_int_equal(errand_drain(world->runtime, 1, drain_again, world, &count),
                     ERRAND_OK);
    assert_int_equal(count, 1);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(jobs[0].dropped + jobs[1].dropped, 2);
}

static jmp_buf out_of_handler;

static void
leave(void *arg, errand_completion *completion)
{
    world_handler(arg, completion);
    longjmp(out_of_handler, 1);
}

static void
a_handler_that_is_left_by_longjmp_has_delivered_its_item(void **state)
{
    /* O34 */
    test_world *world = *state;
    world_job jobs[2] = {{.answer = 0}};
    size_t count;

    world_start(world, &jobs[0]);
    world_start(world, &jobs[1]);
    world_step(world, 10);
    if (setjmp(out_of_handler) == 0)
        assert_int_equal(errand_drain(world->runtime, 10, leave, world, &count), 77);
    assert_int_equal(world->news_count, 1);
    assert_int_equal(jobs[0].dropped, 0);
    assert_int_equal(errand_drain(world->runtime, 10, NULL, NULL, &count), ERRAND_EBUSY);
    assert_int_equal(errand_runtime_unwound(world->runtime), ERRAND_OK);
    assert_int_equal(errand_runtime_unwound(world->runtime), ERRAND_EMISUSE);
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(jobs[0].dropped, 1);
    assert_int_equal(jobs[1].dropped, 1);
    assert_ptr_equal(world_last(world)->wait, &jobs[1]);
}

static void
shutdown_counts_every_operation(void **state)
{
    /* O3, O73, C-B8 */
    test_world *world = *state;
    world_job jobs[50] = {{.answer = 0}};

    for (int i = 0; i < 50; i++)
        world_start(world, &jobs[i]);
    world_step(world, 10);
    world_end(world);
    assert_int_equal(world->report.accounts.accepted, 50);
    assert_int_equal(world->report.accounts.drained + world->report.undeliverable, 50);
    assert_int_equal(world->report.accounts.cancelled, 40);
    assert_true(world->report.clean);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(jobs[i].ran, i < 10);
        assert_int_equal(jobs[i].dropped, 1);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(an_accepted_operation_is_drained_exactly_once),
        WITH_WORLD(the_five_steps_make_the_same_operation_as_start),
        WITH_WORLD(second_submit_of_a_copy_is_refused_as_spent),
        WITH_WORLD(a_copy_of_an_old_submission_is_not_taken_for_the_next_in_its_slot),
        WITH_WORLD(second_bind_is_refused_as_spent_whatever_copy_is_used),
        WITH_WORLD(what_is_given_up_before_its_submit_leaves_its_place),
        WITH_WORLD(another_kind_is_refused_with_both_kinds_readable),
        WITH_WORLD(a_refused_submit_leaves_the_submission_valid),
        WITH_WORLD(a_queued_operation_that_is_cancelled_is_settled_at_once),
        WITH_WORLD(a_running_operation_that_is_cancelled_ends_by_its_own_completion),
        WITH_WORLD(a_settled_operation_that_is_cancelled_keeps_its_result),
        WITH_WORLD(a_panic_is_one_completion_with_its_message),
        WITH_WORLD(a_job_cannot_forge_a_code_of_the_library),
        WITH_WORLD(a_drain_inside_a_handler_is_busy_and_loses_nothing),
        WITH_WORLD(a_handler_that_is_left_by_longjmp_has_delivered_its_item),
        WITH_WORLD(shutdown_counts_every_operation),
    };
    return test_group("runtime/life", tests, NULL, NULL);
}
