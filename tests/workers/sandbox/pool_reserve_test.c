/* SPDX-License-Identifier: MIT */
/* Goal: a worker in reserve is given no job, takes the place of the next one that ends, and is
 * exchanged when it would not do (S30).
 * Method: real pools whose worker is ended; the process that answers next was there before. */
#include "probe_rig.h"
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int
reserve_setup(void **state)
{
    probe_setup(state);
    return 0;
}

static int32_t
pid_of_next(rig *self)
{
    const rig_news *news = probe(self, "guard", 0);

    if (news->outcome != ERRAND_COMPLETED)
        fail_msg("an honest job: %s: %s", errand_code_name(news->code), news->message);
    return news->more.pid;
}

static void
await_rest(rig *self) /* the watchdog ends it */
{
    const struct timespec moment = {0, 200000};

    for (;;) {
        errand_sandbox_snapshot now = rig_snapshot(self);

        if (now.reserve == 1 && now.busy + now.starting + now.dying == 0)
            return;
        nanosleep(&moment, NULL);
    }
}

/* A pool that has lost a worker, and has its reserve. */
static void
begin(rig *self)
{
    rig_begin(self);
    assert_int_equal(probe(self, "_exit", 3)->code, ERRAND_CODE_EXITED);
    pid_of_next(self);
    await_rest(self);
}

/* The children of this process, but for one; answers how many. */
static int
other_children(int32_t but, int32_t *out, int room)
{
    FILE *list = popen("cat /proc/$PPID/task/*/children", "r");
    int count = 0, child;

    assert_non_null(list);
    while (count < room && fscanf(list, "%d", &child) == 1)
        if (child != but)
            out[count++] = child;
    pclose(list);
    return count;
}

static bool
was_there(int32_t pid, const int32_t *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i] == pid)
            return true;
    return false;
}

/* Ends the worker that answers; the one after it must have been there: answers it. */
static int32_t
end_and_see(rig *self)
{
    int32_t others[16], first = pid_of_next(self), next;

    await_rest(self);
    int count = other_children(first, others, 16);
    errand_sandbox_snapshot before = rig_snapshot(self);
    assert_int_equal(before.ready, 1);
    assert_int_equal(probe(self, "_exit", 3)->more.pid, first);
    next = pid_of_next(self);
    assert_true(next != first);
    assert_true(was_there(next, others, count));
    return next;
}

static void
the_reserve_takes_the_place_of_one_that_ends(void **state) /* S30 */
{
    rig *self = *state;

    begin(self);
    for (int i = 0; i < 10; i++)
        end_and_see(self);
    await_rest(self);
    assert_int_equal(rig_snapshot(self).crashed, 11);
    assert_int_equal(rig_snapshot(self).refused_starts, 0);
}

static void
the_reserve_is_given_no_job(void **state) /* S30 */
{
    rig *self = *state;
    errand_spec spec;

    begin(self);
    for (int i = 0; i < 2; i++) {
        spec = probe_spec(self, "sleep", 60);
        spec.deadline_ns = UINT64_C(50000000);
        rig_start_spec(self, (uintptr_t)i, &spec);
    }
    errand_sandbox_snapshot now = rig_snapshot(self);
    assert_int_equal(now.busy, 1);
    assert_int_equal(now.reserve, 1);
    errand_snapshot all;
    assert_int_equal(errand_runtime_snapshot(self->runtime, &all), ERRAND_OK);
    assert_int_equal(all.queued, 1);
    rig_await(self, self->count + 2);
}

static void
a_reserve_that_ends_is_replaced(void **state) /* S30 */
{
    rig *self = *state;
    int32_t others[16], first;

    begin(self);
    first = pid_of_next(self);
    await_rest(self);
    errand_sandbox_snapshot before = rig_snapshot(self);
    int count = other_children(first, others, 16);
    for (int i = 0; i < count; i++) { /* the reserve, and the template */
        char path[64], word[32] = "";

        snprintf(path, sizeof path, "/proc/%d/cmdline", (int)others[i]);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        size_t size = fread(word, 1, sizeof word - 1, file);
        fclose(file);
        if (size > 0 && strcmp(word + strlen(word) + 1, ERRAND__WIRE_TEMPLATE) != 0)
            kill(others[i], SIGKILL);
    }
    while (rig_snapshot(self).started == before.started) /* the watchdog ends it */
        sched_yield();
    await_rest(self);
    assert_int_equal(rig_snapshot(self).crashed, before.crashed + 1);
    assert_int_equal(pid_of_next(self), first);
    end_and_see(self);
}

static void
a_reserve_that_lacks_a_function_is_exchanged(void **state) /* S30 */
{
    rig *self = *state;
    errand_spec spec;

    begin(self);
    for (int i = 0; i < 3; i++) {
        static const char *const symbols[] = {"plugin_echo", "plugin_upper",
                                              "plugin_none"};

        spec =
            rig_plugin_spec(self, test_reachable(ERRAND_TEST_PLUGIN), symbols[i], "x", 1);
        (void)await_one(self, &spec);
        end_and_see(self);
    }
}

static void
the_breaker_holds_the_reserve_back(void **state) /* S14, S30 */
{
    rig *self = *state;

    self->config.crash_limit = 3;
    self->config.crash_window_ns = UINT64_C(3600000000000);
    self->config.breaker_ns = UINT64_C(3600000000000);
    begin(self);
    end_and_see(self);
    await_rest(self);
    errand_sandbox_snapshot before = rig_snapshot(self);
    assert_int_equal(probe(self, "_exit", 3)->code, ERRAND_CODE_EXITED);
    assert_int_equal(probe(self, "guard", 0)->code, ERRAND_CODE_SPAWN);
    assert_true(rig_snapshot(self).breaker_open);
    assert_int_equal(rig_snapshot(self).reserve, 1);
    assert_int_equal(rig_snapshot(self).started, before.started);
}

static void
a_pool_without_a_template_has_no_reserve(void **state) /* S30 */
{
    rig *self = *state;

    self->config.flags = ERRAND_SANDBOX_NO_TEMPLATE;
    rig_begin(self);
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(probe(self, "_exit", 3)->code, ERRAND_CODE_EXITED);
        pid_of_next(self);
        assert_int_equal(rig_snapshot(self).started, i + 1);
        assert_int_equal(rig_snapshot(self).reserve, 0);
    }
}

/* ---- a host that gives root up ------------------------------------------------------------------- */

static void
give_up_root(rig *self)
{
    self->policy.want_layers =
        ERRAND_LAYER_NO_NEW_PRIVS | ERRAND_LAYER_SECCOMP | ERRAND_LAYER_RLIMITS;
    begin(self);
    assert_int_equal(process_user(pid_of_next(self)), 0);
    await_rest(self);
    assert_int_equal(setgroups(0, NULL), 0);
    assert_int_equal(setresgid(1, 1, 1), 0);
    assert_int_equal(setresuid(1, 1, 1), 0);
    assert_int_equal(probe(self, "_exit", 3)->code, ERRAND_CODE_EXITED);
    assert_int_equal(process_user(pid_of_next(self)), 1);
    rig_end(self);
}

static void
a_reserve_of_root_serves_no_host_that_is_another(void **state) /* S30 */
{
    rig *self = *state;
    int status;

    if (geteuid() != 0)
        test_skip("only root can become another user");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        give_up_root(self);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int
group_setup(void **state)
{
    (void)state;
    (void)test_reachable(ERRAND_TEST_WORKER);
    (void)test_reachable(ERRAND_TEST_HOSTILE);
    (void)test_reachable(ERRAND_TEST_PLUGIN);
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int
main(void)
{
#define WITH_RESERVE(test)                                                               \
    cmocka_unit_test_setup_teardown(test, reserve_setup, rig_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_RESERVE(the_reserve_takes_the_place_of_one_that_ends),
        WITH_RESERVE(the_reserve_is_given_no_job),
        WITH_RESERVE(a_reserve_that_ends_is_replaced),
        WITH_RESERVE(a_reserve_that_lacks_a_function_is_exchanged),
        WITH_RESERVE(the_breaker_holds_the_reserve_back),
        WITH_RESERVE(a_pool_without_a_template_has_no_reserve),
        WITH_RESERVE(a_reserve_of_root_serves_no_host_that_is_another),
    };
#undef WITH_RESERVE
    return cmocka_run_group_tests_name("workers/sandbox/reserve", tests, group_setup,
                                       NULL);
}
