/* SPDX-License-Identifier: MIT */
/* Goal: each public call, made where or with what it must not be, answers its documented status in
 * every build, has the misuse hook called with a text that names the call, and loses nothing (O80).
 * Method: tables of all calls (calls_*.c) against all ways of misusing them: NULLs, another thread, a
 * released runtime, a forked child, inside a handler, inside a body, inside the runtime's shutdown. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "stage.h"

/* ---- one probe ---------------------------------------------------------------------------------- */

typedef struct probe {
    const public_call *call;
    int broken;
    int expected;
    errand_status answer;
    bool done;
} probe;

static probe the_probe; /* one at a time */

static bool
is_misuse(errand_status status)
{
    switch (status) {
    case ERRAND_EINVAL:
    case ERRAND_ETHREAD:
    case ERRAND_EFOREIGN:
    case ERRAND_ESPENT:
    case ERRAND_EKIND:
    case ERRAND_ECLOSED:
    case ERRAND_EDUPLICATE:
    case ERRAND_EBUSY:
    case ERRAND_EFORKED:
    case ERRAND_EDEADLOCK:
    case ERRAND_EMISUSE:
        return true;
    default:
        return false;
    }
}

/* Whose name the hook hears. */
static const char *
told_as(const public_call *call)
{
    if (strcmp(call->name, "errand_ffi_callback_create") == 0 &&
        the_probe.answer != ERRAND_EINVAL)
        return "errand_inbox_open"; /* which it opens for its callers */
    return strcmp(call->name, "errand_audit_operations") == 0 ||
                   strcmp(call->name, "errand_operations_codecs") == 0 ||
                   strcmp(call->name, "errand_ffi_codecs") == 0
               ? "errand_audit_payload" /* which it calls for each of its types */
               : call->name;
}

/* Makes the call; false, with a line that says why, if it is not answered as it should be. */
static bool
make_call(stage *self)
{
    const public_call *call = the_probe.call;
    const char *problem = NULL;

    the_probe.done = true;
    stage_forget_misuse(self);
    the_probe.answer = call->call(self, the_probe.broken);
    if (the_probe.expected == ANSWER_REFUSAL
            ? the_probe.answer == ERRAND_OK
            : the_probe.expected != ANSWER_ANY &&
                  (int)the_probe.answer != the_probe.expected)
        problem = "answers another status than documented";
    else if (is_misuse(the_probe.answer) &&
             !stage_told(self, the_probe.answer, told_as(call)))
        problem = "does not tell the misuse hook once, by name";
    else if (!is_misuse(the_probe.answer) && self->misuses != 0)
        problem = "tells the misuse hook of no misuse";
    if (problem == NULL)
        return true;
    fprintf(stderr, "%s (NULL %d) %s: %s, expected %d; hook %d times: %s\n", call->name,
            the_probe.broken, problem, errand_status_name(the_probe.answer),
            the_probe.expected, self->misuses, self->text);
    return false;
}

static int failures;

static void
probe_here(stage *self)
{
    stage_tokens before = self->tokens;

    failures += !make_call(self);
    if (the_probe.answer != ERRAND_OK &&
        memcmp(&before, &self->tokens, sizeof before) != 0) {
        fprintf(stderr, "%s changed what it was given\n", the_probe.call->name);
        failures++;
    }
}

static void
probe_set(const public_call *call, int broken, int expected)
{
    the_probe = (probe){.call = call, .broken = broken, .expected = expected};
}

/* Closes the stage.  A call that was refused left everything as it was. */
static void
probe_end(stage *self, bool use)
{
    const char *name = the_probe.call->name;
    bool takes = strcmp(name, "errand_prepare") == 0 ||
                 strcmp(name, "errand_start") == 0 ||
                 strcmp(name, "errand_job_follow") == 0 ||
                 strcmp(name, "errand_task_await") == 0 ||
                 strcmp(name, "errand_spawn_work") == 0 ||
                 strcmp(name, "errand_context_spawn_work") == 0;
    bool refused = the_probe.answer != ERRAND_OK;

    self->in_handler = self->in_task = NULL;
    if (strcmp(name, "errand_runtime_release") == 0 && the_probe.done && !refused)
        assert_int_equal(errand_runtime_adopt(self->tokens.runtime), ERRAND_OK);
    if (refused && use)
        stage_use(self);
    stage_close(self);
    assert_true(the_probe.done);
    refused = the_probe.answer != ERRAND_OK;
    if (self->jobs[4].dropped != (takes && !refused)) {
        fprintf(stderr, "%s: the job it %s was dropped %d times\n", name,
                refused ? "refused" : "took", self->jobs[4].dropped);
        failures++;
    }
}

typedef void probe_fn(const public_call *call);

static void
for_all(probe_fn *fn)
{
    failures = 0;
    for (size_t i = 0; i < runtime_call_count; i++)
        fn(&runtime_calls[i]);
    for (size_t i = 0; i < other_call_count; i++)
        fn(&other_calls[i]);
    for (size_t i = 0; i < record_call_count; i++)
        fn(&record_calls[i]);
    for (size_t i = 0; i < tree_call_count; i++)
        fn(&tree_calls[i]);
    for (size_t i = 0; i < choice_call_count; i++)
        fn(&choice_calls[i]);
    assert_int_equal(failures, 0);
}

/* ---- NULLs, and where nothing is wrong ------------------------------------------------------------- */

static void
break_one_by_one(const public_call *call)
{
    stage self;

    for (int broken = 1; broken <= call->nulls; broken++) {
        stage_open(&self);
        probe_set(call, broken, ERRAND_EINVAL);
        probe_here(&self);
        probe_end(&self, true);
    }
}

static void
a_pointer_that_must_not_be_null_is_einval(void **state)
{
    (void)state;
    for_all(break_one_by_one);
}

static void
call_plainly(const public_call *call)
{
    stage self;
    bool odd = strcmp(call->name, "errand_runtime_adopt") == 0 ||
               strcmp(call->name, "errand_runtime_unwound") == 0;

    if (strcmp(call->name, "errand_runtime_shutdown") == 0 ||
        strcmp(call->name, "errand_lease_shutdown") == 0)
        return; /* they end what the stage is made of */
    stage_open(&self);
    probe_set(call, 0, odd ? ERRAND_EMISUSE : ERRAND_OK);
    probe_here(&self);
    probe_end(&self, true);
}

static void
the_same_calls_are_accepted_where_they_belong(void **state)
{
    (void)state;
    for_all(call_plainly);
}

/* ---- threads ------------------------------------------------------------------------------------------- */

static void *
probe_in_thread(void *arg)
{
    probe_here(arg);
    return NULL;
}

static void
call_on_another_thread(const public_call *call)
{
    stage self;
    pthread_t thread;

    stage_open(&self);
    probe_set(call, 0, call->thread);
    assert_int_equal(pthread_create(&thread, NULL, probe_in_thread, &self), 0);
    pthread_join(thread, NULL);
    probe_end(&self, true);
}

static void
another_thread_is_ethread_unless_any_may_call(void **state)
{
    (void)state;
    for_all(call_on_another_thread);
}

static void
call_after_release(const public_call *call)
{
    stage self;

    if (call->thread != ERRAND_ETHREAD)
        return;
    stage_open(&self);
    assert_int_equal(errand_runtime_release(self.tokens.runtime), ERRAND_OK);
    probe_set(call, 0, ERRAND_ETHREAD);
    probe_here(&self);
    assert_int_equal(errand_runtime_adopt(self.tokens.runtime), ERRAND_OK);
    probe_end(&self, true);
}

static void
a_released_runtime_answers_ethread_and_loses_nothing(void **state)
{
    /* O9 */
    (void)state;
    for_all(call_after_release);
}

/* ---- forks ---------------------------------------------------------------------------------------------- */

static stage forked;

static void
call_in_child(const public_call *call)
{
    probe_set(call, 0, call->child);
    failures += !make_call(&forked);
    for (int broken = 1; broken <= call->nulls && call->child == ERRAND_EFORKED;
         broken++) {
        probe_set(call, broken, ANSWER_REFUSAL);
        failures += !make_call(&forked);
    }
}

static int
child_failures(void)
{
    forked.child = true;
    failures = 0;
    for (size_t i = 0; i < runtime_call_count; i++)
        call_in_child(&runtime_calls[i]);
    for (size_t i = 0; i < other_call_count; i++)
        call_in_child(&other_calls[i]);
    for (size_t i = 0; i < record_call_count; i++)
        call_in_child(&record_calls[i]);
    for (size_t i = 0; i < tree_call_count; i++)
        call_in_child(&tree_calls[i]);
    for (size_t i = 0; i < choice_call_count; i++)
        call_in_child(&choice_calls[i]);
    errand_interrupt(forked.inbox);
    return failures;
}

static void
a_forked_child_is_answered_eforked_by_every_call(void **state)
{
    /* O61, C-E1 */
    int status = -1;

    (void)state;
    stage_open(&forked);
    pid_t child = fork();
    if (child == 0) /* a sanitizer would warn falsely at exit */
        _exit(child_failures() == 0 ? 0 : 1);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    stage_use(&forked);
    stage_close(&forked);
}

/* ---- re-entrance ------------------------------------------------------------------------------------------ */

static void
call_in_handler(const public_call *call)
{
    stage self;
    size_t count;

    stage_open(&self);
    probe_set(call, 0, call->handler);
    assert_int_equal(errand_manual_step(self.executor, 1, &count), ERRAND_OK);
    self.in_handler = probe_here;
    errand_turn turn;
    assert_int_equal(errand_drive(self.tokens.runtime, NULL, &turn), ERRAND_OK);
    assert_true(self.heard >= 1);
    probe_end(&self, false);
}

static void
inside_a_handler_turns_are_ebusy_and_the_rest_works(void **state)
{
    /* O33, O68 */
    (void)state;
    for_all(call_in_handler);
}

static void
probe_in_body(stage *self, errand_job *job)
{
    self->job = job;
    probe_here(self);
    self->job = NULL;
}

static void
call_in_body(const public_call *call)
{
    stage self;
    size_t count;

    stage_open(&self);
    probe_set(call, 0, call->body);
    self.jobs[3].inside = probe_in_body;
    assert_int_equal(errand_manual_step(self.executor, 1, &count), ERRAND_OK);
    assert_int_equal(count, 1);
    probe_end(&self, false);
}

static void
inside_a_body_waits_are_edeadlock_and_the_rest_works(void **state)
{
    /* O54 */
    (void)state;
    for_all(call_in_body);
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

static void
call_in_shutdown(const public_call *call)
{
    /* Queued, prepared, bound, submission: dropped early and late in the shutdown. */
    static const int jobs[] = {3, 0, 1, 2};
    stage self;

    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        stage_open(&self);
        probe_set(call, 0, call->shutdown);
        self.jobs[jobs[i]].at_drop = probe_here;
        probe_end(&self, false);
    }
}

static void
inside_the_shutdown_nothing_new_is_admitted_and_nothing_lost(void **state)
{
    (void)state;
    for_all(call_in_shutdown);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pointer_that_must_not_be_null_is_einval),
        cmocka_unit_test(the_same_calls_are_accepted_where_they_belong),
        cmocka_unit_test(another_thread_is_ethread_unless_any_may_call),
        cmocka_unit_test(a_released_runtime_answers_ethread_and_loses_nothing),
        cmocka_unit_test(a_forked_child_is_answered_eforked_by_every_call),
        cmocka_unit_test(inside_a_handler_turns_are_ebusy_and_the_rest_works),
        cmocka_unit_test(inside_a_body_waits_are_edeadlock_and_the_rest_works),
        cmocka_unit_test(inside_the_shutdown_nothing_new_is_admitted_and_nothing_lost),
    };

    return test_group("hostile/misuse", tests, NULL, NULL);
}
