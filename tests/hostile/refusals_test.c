/* SPDX-License-Identifier: MIT */
/* Goal: each refusal that is not of the general kind (see misuse_test.c) is answered as documented,
 * and what was refused is good afterwards (O10, O80).
 * Method: one call after the other on a stage that is used up and closed at the end. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include "errand/waits.h"
#include "stage.h"

static void
resume(void *own_data, errand_runtime *runtime, const errand_news *news)
{
    (void)own_data;
    (void)runtime;
    (void)news;
}
static const errand_continuation continuation = {.resume = resume};

static int
set_up(void **state)
{
    static stage self;

    stage_open(&self);
    *state = &self;
    return 0;
}

static int
use_and_tear_down(void **state)
{
    stage *self = *state;

    stage_use(self);
    stage_close(self);
    assert_int_equal(self->jobs[4].dropped, 0);
    return 0;
}

static int
tear_down(void **state)
{
    stage_close(*state);
    return 0;
}

static bool
told(stage *self, errand_status status, const char *function)
{
    bool was = stage_told(self, status, function);

    stage_forget_misuse(self);
    return was;
}

/* ---- another runtime's ------------------------------------------------------------------------------ */

static void
what_belongs_to_another_runtime_is_foreign(void **state)
{
    /* O8 */
    stage *self = *state;
    errand_runtime *other;
    errand_executor *executor;
    errand_lease *lease;
    errand_binding binding;

    assert_int_equal(errand_runtime_create(NULL, &other), ERRAND_OK);
    assert_int_equal(errand_manual_create(NULL, &executor), ERRAND_OK);
    assert_int_equal(errand_attach(other, executor, 0, &lease), ERRAND_OK);
    assert_int_equal(errand_bind(other, &self->issued, &self->tokens.prepared, &binding),
                     ERRAND_EFOREIGN);
    assert_true(told(self, ERRAND_EFOREIGN, "errand_bind"));
    assert_int_equal(errand_retire(other, &self->issued), ERRAND_EFOREIGN);
    assert_true(told(self, ERRAND_EFOREIGN, "errand_retire"));
    assert_int_equal(errand_submit(lease, &self->tokens.submission), ERRAND_EFOREIGN);
    assert_true(told(self, ERRAND_EFOREIGN, "errand_submit"));
    assert_int_equal(errand_cancel(other, &self->queued, ERRAND_REASON_EXPLICIT, NULL),
                     ERRAND_EFOREIGN);
    assert_true(told(self, ERRAND_EFOREIGN, "errand_cancel"));
    assert_int_equal(errand_task_state_read(other, &self->task, NULL, NULL),
                     ERRAND_EFOREIGN);
    assert_true(told(self, ERRAND_EFOREIGN, "errand_task_state_read"));
    assert_int_equal(errand_task_cancel(other, &self->task, ERRAND_REASON_EXPLICIT),
                     ERRAND_EFOREIGN);
    assert_true(told(self, ERRAND_EFOREIGN, "errand_task_cancel"));
    assert_int_equal(errand_task_abort(other, &self->task), ERRAND_EFOREIGN);
    assert_true(told(self, ERRAND_EFOREIGN, "errand_task_abort"));
    assert_int_equal(errand_task_wake(other, &self->task), ERRAND_EFOREIGN);
    assert_true(told(self, ERRAND_EFOREIGN, "errand_task_wake"));
    assert_int_equal(errand_cancel_later(other, &self->queued), ERRAND_EUNKNOWN);
    assert_int_equal(errand_reap_ready(other, &self->queued), ERRAND_EUNKNOWN);
    assert_int_equal(errand_runtime_shutdown(&other, 0, ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    errand_executor_abandon(&executor);
}

/* ---- used already --------------------------------------------------------------------------------------- */

static void
a_copy_of_a_token_that_was_used_is_spent(void **state)
{
    stage *self = *state;
    stage_tokens copies = self->tokens;
    errand_submission submission;
    errand_binding binding;
    errand_wait wait;

    stage_use(self);
    stage_forget_misuse(self);
    assert_int_equal(
        errand_bind(copies.runtime, &self->fresh, &copies.prepared, &binding),
        ERRAND_ESPENT);
    assert_true(told(self, ERRAND_ESPENT, "errand_bind"));
    assert_int_equal(errand_split(&copies.binding, &wait, &submission), ERRAND_ESPENT);
    assert_true(told(self, ERRAND_ESPENT, "errand_split"));
    assert_int_equal(errand_await(&copies.wait, &continuation), ERRAND_ESPENT);
    assert_true(told(self, ERRAND_ESPENT, "errand_await"));
    assert_int_equal(errand_submit(copies.lease, &copies.submission), ERRAND_ESPENT);
    assert_true(told(self, ERRAND_ESPENT, "errand_submit"));
    assert_int_equal(errand_abandon_later(&copies.submission), ERRAND_ESPENT);
    assert_true(told(self, ERRAND_ESPENT, "errand_abandon_later"));
    assert_int_equal(errand_retire(copies.runtime, &self->issued), ERRAND_ESPENT);
    assert_true(told(self, ERRAND_ESPENT, "errand_retire"));
    /* Abandoning copies is silent, and takes nothing from those that now live there. */
    errand_prepared_abandon(&copies.prepared);
    errand_binding_abandon(&copies.binding);
    errand_wait_abandon(&copies.wait);
    errand_submission_abandon(&copies.submission);
    assert_int_equal(self->misuses, 0);
    assert_int_equal(errand_cancel_later(copies.runtime, &self->queued), ERRAND_EUNKNOWN);
    assert_int_equal(errand_reap_ready(copies.runtime, &self->queued), ERRAND_EUNKNOWN);
    assert_int_equal(errand_post_cancel(self->inbox, &self->queued), ERRAND_EGONE);
}

static void
a_zeroed_token_is_spent(void **state)
{
    stage *self = *state;
    errand_prepared prepared = {NULL, 0};
    errand_binding binding = {NULL, 0};
    errand_submission submission = {NULL, 0};
    errand_wait wait = {NULL, 0};

    assert_int_equal(
        errand_bind(self->tokens.runtime, &self->issued, &prepared, &binding),
        ERRAND_ESPENT);
    assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_ESPENT);
    assert_int_equal(errand_await(&wait, &continuation), ERRAND_ESPENT);
    assert_int_equal(errand_submit(self->tokens.lease, &submission), ERRAND_ESPENT);
    assert_int_equal(errand_abandon_later(&submission), ERRAND_ESPENT);
    assert_int_equal(self->misuses, 5);
    errand_prepared_abandon(&prepared);
    errand_binding_abandon(&binding);
    errand_wait_abandon(&wait);
    errand_submission_abandon(&submission);
    assert_int_equal(self->misuses, 5);
}

static void
a_lease_that_was_shut_is_closed_and_its_copies_are_spent(void **state)
{
    stage *self = *state;
    errand_lease *lease = self->tokens.lease, *copy = lease;
    errand_snapshot snapshot;

    stage_use(self);
    assert_int_equal(errand_lease_shutdown(&lease, errand_deadline_in(1000000), NULL),
                     ERRAND_OK);
    assert_null(lease);
    assert_int_equal(errand_lease_shutdown(&copy, 0, NULL), ERRAND_ESPENT);
    assert_true(told(self, ERRAND_ESPENT, "errand_lease_shutdown"));
    assert_int_equal(errand_start(copy, &self->spec, NULL, NULL), ERRAND_ECLOSED);
    assert_true(told(self, ERRAND_ECLOSED, "errand_start"));
    assert_int_equal(errand_lease_wait_room(copy, 0), ERRAND_ECLOSED);
    assert_true(told(self, ERRAND_ECLOSED, "errand_lease_wait_room"));
    assert_int_equal(errand_lease_snapshot(copy, &snapshot), ERRAND_OK);
    assert_int_equal(snapshot.accepted, 3);
}

/* ---- cancelled before ---------------------------------------------------------------------------------------- */

static void
what_was_cancelled_before_its_submit_is_ecancelled(void **state)
{
    /* O35 */
    stage *self = *state;
    errand_runtime *runtime = self->tokens.runtime;
    errand_cancel_answer answer;
    errand_submission submission;
    errand_wait wait;

    errand_prepared prepared = self->tokens.prepared;
    errand_binding binding;
    assert_int_equal(errand_bind(runtime, &self->issued, &prepared, &binding), ERRAND_OK);
    assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
    assert_int_equal(
        errand_cancel(runtime, &self->issued, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_NOT_SUBMITTED);
    assert_int_equal(errand_await(&wait, &continuation), ERRAND_ECANCELLED);
    assert_int_equal(errand_submit(self->tokens.lease, &submission), ERRAND_ECANCELLED);
    assert_non_null(submission.held_record);
    errand_wait_abandon(&wait);
    errand_submission_abandon(&submission);
    assert_int_equal(self->misuses, 0);
}

/* ---- bounds ----------------------------------------------------------------------------------------------------- */

static void
attaching_twice_is_a_duplicate(void **state)
{
    /* O47 */
    stage *self = *state;
    errand_lease *lease;

    assert_int_equal(errand_attach(self->tokens.runtime, self->executor, 0, &lease),
                     ERRAND_EDUPLICATE);
    assert_true(told(self, ERRAND_EDUPLICATE, "errand_attach"));
    assert_int_equal(errand_attach(self->tokens.runtime, self->spare, 1u << 24, &lease),
                     ERRAND_EINVAL);
    assert_true(told(self, ERRAND_EINVAL, "errand_attach"));
}

static void
no_more_names_than_operations_max_is_efull(void **state)
{
    stage *self = *state;
    errand_identity identities[64];
    size_t count = 0;

    while (count < 64 &&
           errand_issue(self->tokens.runtime, 1, NULL, &identities[count]) == ERRAND_OK)
        count++;
    assert_int_equal(count, 64 - 5); /* the stage has five */
    assert_int_equal(errand_issue(self->tokens.runtime, 1, NULL, &identities[0]),
                     ERRAND_EFULL);
    assert_int_equal(errand_start(self->tokens.lease, &self->spec, NULL, NULL),
                     ERRAND_EFULL);
    assert_int_equal(self->misuses, 0); /* it is no misuse */
    while (count-- > 0)
        assert_int_equal(errand_retire(self->tokens.runtime, &identities[count]),
                         ERRAND_OK);
}

static void
counters_at_their_end_are_exhausted(void **state)
{
    /* O5 */
    stage *self = *state;
    errand_identity identity;

    assert_int_equal(errand_testing_counters(self->tokens.runtime, 0, 0, UINT64_MAX),
                     ERRAND_OK);
    assert_int_equal(errand_issue(self->tokens.runtime, 1, NULL, &identity), ERRAND_OK);
    assert_int_equal(errand_issue(self->tokens.runtime, 1, NULL, &identity),
                     ERRAND_EEXHAUSTED);
    assert_int_equal(errand_start(self->tokens.lease, &self->spec, NULL, NULL),
                     ERRAND_EEXHAUSTED);
}

static void
a_timeout_while_there_is_no_room_is_etimeout(void **state)
{
    /* O50 */
    stage *self = *state;
    errand_lease *lease;

    assert_int_equal(errand_attach(self->tokens.runtime, self->spare, 1, &lease),
                     ERRAND_OK);
    errand_spec spec = self->spec;
    self->jobs[5].stage = self;
    spec.state = &self->jobs[5];
    assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
    assert_int_equal(errand_start(lease, &self->spec, NULL, NULL), ERRAND_EFULL);
    assert_int_equal(errand_lease_wait_room(lease, 0), ERRAND_ETIMEOUT);
}

static void
a_command_that_is_posted_is_busy(void **state)
{
    stage *self = *state;

    assert_int_equal(errand_post(self->inbox, &self->command), ERRAND_OK);
    assert_int_equal(errand_post(self->inbox, &self->command), ERRAND_EBUSY);
    assert_true(told(self, ERRAND_EBUSY, "errand_post"));
    assert_int_equal(errand_post(self->inbox, (void *)&(errand_command){.fn = NULL}),
                     ERRAND_EINVAL);
    assert_true(told(self, ERRAND_EINVAL, "errand_post"));
}

static void
no_descriptor_left_is_esystem(void **state)
{
    stage *self = *state;
    struct rlimit before, none;
    int fd;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(errand_runtime_wake_fd(self->tokens.runtime, &fd), ERRAND_ESYSTEM);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(errand_runtime_wake_fd(self->tokens.runtime, &fd), ERRAND_OK);
    assert_true(fd > 2); /* O62 */
}

static void
no_thread_is_enothread_and_the_submission_is_still_there(void **state)
{
    /* O55, O10 */
    stage *self = *state;
    errand_blocking_config config = {.struct_size = sizeof config, .workers_max = 1};
    errand_executor *pool, *async;
    errand_lease *lease;

    errand_testing_refuse_threads(UINT32_MAX);
    assert_int_equal(errand_async_create(NULL, &async), ERRAND_ENOTHREAD);
    assert_int_equal(errand_blocking_create(&config, &pool), ERRAND_OK);
    assert_int_equal(errand_attach(self->tokens.runtime, pool, 0, &lease), ERRAND_OK);
    assert_int_equal(errand_submit(lease, &self->tokens.submission), ERRAND_ENOTHREAD);
    errand_testing_refuse_threads(0);
    errand_executor_abandon(&pool);
}

static void
what_a_kind_of_executor_or_clock_cannot_do_is_unsupported(void **state)
{
    stage *self = *state;
    errand_runtime *runtime;
    errand_executor *async;
    uint8_t lane;
    size_t count;

    assert_int_equal(errand_async_create(NULL, &async), ERRAND_OK);
    assert_int_equal(errand_lane_define(async, "lane", 1, &lane), ERRAND_EUNSUPPORTED);
    assert_int_equal(errand_manual_step(async, 1, &count), ERRAND_EUNSUPPORTED);
    errand_executor_abandon(&async);
    assert_int_equal(errand_lane_define(self->spare, "", 1, &lane), ERRAND_EINVAL);
    assert_int_equal(errand_lane_define(self->spare, "lane", 0, &lane), ERRAND_EINVAL);
    assert_int_equal(errand_runtime_create(NULL, &runtime), ERRAND_OK);
    assert_int_equal(errand_testing_clock(runtime, 1), ERRAND_EUNSUPPORTED);
    assert_int_equal(errand_order_latency(runtime, 1, 1), ERRAND_EUNSUPPORTED);
    assert_int_equal(errand_runtime_shutdown(&runtime, 0, 0, NULL), ERRAND_EINVAL);
    assert_int_equal(errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    assert_int_equal(errand_testing_clock(self->tokens.runtime, UINT64_MAX), ERRAND_OK);
    assert_int_equal(errand_testing_clock(self->tokens.runtime, 1), ERRAND_EINVAL);
}

static void
a_seeded_runtime_that_refuses_foreign_input_is_ereproduce(void **state)
{
    /* O65 */
    stage *self = *state;
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ERRAND_ORDER_INLINE,
                                    .flags = ERRAND_RUNTIME_REFUSE_FOREIGN};
    errand_runtime *runtime;
    errand_inbox *inbox;

    assert_int_equal(errand_runtime_create(&config, &runtime), ERRAND_OK);
    assert_int_equal(errand_inbox_open(runtime, &inbox), ERRAND_OK);
    assert_int_equal(errand_post(inbox, &self->command), ERRAND_EREPRODUCE);
    assert_int_equal(errand_post_cancel(inbox, &self->queued), ERRAND_EREPRODUCE);
    assert_true(errand_reproducible(runtime, NULL, 0));
    errand_inbox_abandon(&inbox);
    assert_int_equal(errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    assert_int_equal(self->misuses, 0);
}

static void
keep_message(void *arg, errand_completion *completion)
{
    snprintf(arg, 256, "%s", completion->message);
}

/* O80: what waits on a reactor says so on every other executor, at its submit or at its end. */
static void
a_timer_on_another_executor_names_the_reactor(void **state)
{
    stage *self = *state;
    char message[256] = "";
    errand_executor *pool, *async;
    errand_runtime *runtime;
    errand_lease *lease;
    errand_spec spec;
    size_t count = 0;

    assert_int_equal(errand_runtime_create(NULL, &runtime), ERRAND_OK);
    assert_int_equal(errand_blocking_create(NULL, &pool), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, pool, 0, &lease), ERRAND_OK);
    assert_int_equal(errand_spec_timer(&spec, 1), ERRAND_OK);
    assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_EUNSUPPORTED);
    assert_non_null(strstr(self->text, "errand_reactor_create"));
    stage_forget_misuse(self);
    assert_int_equal(errand_async_create(NULL, &async), ERRAND_OK);
    assert_int_equal(errand_attach(runtime, async, 0, &lease), ERRAND_OK);
    assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
    while (count == 0) {
        assert_int_equal(errand_park(runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(runtime, 1, keep_message, message, &count),
                         ERRAND_OK);
    }
    assert_non_null(strstr(message, "errand_reactor_create"));
    assert_int_equal(
        errand_runtime_shutdown(&runtime, UINT64_MAX, ERRAND_SHUTDOWN_QUIET, NULL),
        ERRAND_OK);
    errand_executor_abandon(&pool);
    errand_executor_abandon(&async);
    stage_forget_misuse(self); /* of errand_io_start, which the operation tried */
}

/* O80: also where a helper of the library found it. */
static void
a_config_that_cannot_be_is_told_by_the_name_of_the_call(void **state)
{
    stage *self = *state;
    errand_runtime_config config = {.struct_size = sizeof config, .order = 77};
    errand_runtime *runtime;

    assert_int_equal(errand_runtime_create(&config, &runtime), ERRAND_EINVAL);
    assert_string_equal(self->text, "errand_runtime_create: config->order is unknown");
    assert_true(told(self, ERRAND_EINVAL, "errand_runtime_create"));
}

#define USED(test)   cmocka_unit_test_setup_teardown(test, set_up, use_and_tear_down)
#define CLOSED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        USED(what_belongs_to_another_runtime_is_foreign),
        USED(a_timer_on_another_executor_names_the_reactor),
        USED(a_config_that_cannot_be_is_told_by_the_name_of_the_call),
        CLOSED(a_copy_of_a_token_that_was_used_is_spent),
        USED(a_zeroed_token_is_spent),
        CLOSED(a_lease_that_was_shut_is_closed_and_its_copies_are_spent),
        CLOSED(what_was_cancelled_before_its_submit_is_ecancelled),
        USED(attaching_twice_is_a_duplicate),
        USED(no_more_names_than_operations_max_is_efull),
        CLOSED(counters_at_their_end_are_exhausted),
        CLOSED(a_timeout_while_there_is_no_room_is_etimeout),
        CLOSED(a_command_that_is_posted_is_busy),
        USED(no_descriptor_left_is_esystem),
        USED(no_thread_is_enothread_and_the_submission_is_still_there),
        CLOSED(what_a_kind_of_executor_or_clock_cannot_do_is_unsupported),
        CLOSED(a_seeded_runtime_that_refuses_foreign_input_is_ereproduce),
    };

    return test_group("hostile/refusals", tests, NULL, NULL);
}
