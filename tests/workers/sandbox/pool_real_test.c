/* SPDX-License-Identifier: MIT */
/* Goal: a pool of real worker processes: what jobs do there, each end with its own code, and no
 * process, descriptor or zombie left behind, whatever the host does with its children.  Method: the
 * plug-ins of these tests, called through a runtime. */
#include "probe_rig.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static int
real_setup(void **state)
{
    rig *self;
    const errand_entry own[] = {
        {test_reachable(ERRAND_TEST_PLUGIN), "echo", NULL},
        {test_reachable(ERRAND_TEST_PLUGIN), "grows", NULL},
        {test_reachable(ERRAND_TEST_PLUGIN), "waits", NULL},
        {test_reachable(ERRAND_TEST_HOSTILE), "probe", NULL},
    };
    static errand_entry entries[sizeof own / sizeof own[0]];

    memcpy(entries, own, sizeof own);
    rig_setup(state);
    self = *state;
    self->policy.entries = entries;
    self->policy.entry_count = sizeof entries / sizeof entries[0];
    self->worker_path = test_reachable(ERRAND_TEST_WORKER);
    self->config.crash_limit = 1000;
    return 0;
}

static int
real_teardown(void **state)
{
    int result = rig_teardown(state);

    assert_int_equal(waitpid(-1, NULL, WNOHANG),
                     -1); /* no child is left, not as a zombie */
    assert_int_equal(errno, ECHILD);
    return result;
}

static const rig_news *
run_plugin(rig *self, const char *symbol, const void *bytes, size_t size)
{
    errand_spec spec =
        rig_plugin_spec(self, test_reachable(ERRAND_TEST_PLUGIN), symbol, bytes, size);

    return await_one(self, &spec);
}

/* In a folder that is searched by its owner alone. */
static void
a_library_that_roots_worker_may_not_open_says_who_it_is(void **state)
{
    rig *self = *state;
    char folder[] = "/tmp/errand-test-XXXXXX", path[64];

    if (geteuid() != 0)
        test_skip("only root's workers are another user");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/plugin.so", folder);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    assert_true(file >= 0);
    close(file);
    rig_begin(self);
    errand_spec spec = rig_plugin_spec(self, path, "echo", "", 0);
    const rig_news *news = await_one(self, &spec);
    unlink(path);
    rmdir(folder);
    assert_int_equal(news->outcome, ERRAND_FAILED);
    assert_non_null(strstr(news->message, "user 65534: let everybody read the file"));
}

static void
results_of_all_sizes_come_from_a_process(void **state) /* S4, C-F4 */
{
    rig *self = *state;
    static const uint64_t sizes[] = {0, 1, 65535, 65536, 1 << 20, 100 << 20};

    self->policy.out_bytes = 100 << 20;
    rig_begin(self);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const rig_news *news = run_plugin(self, "grows", &sizes[i], sizeof sizes[i]);
        uint64_t sum = 0;

        for (uint64_t at = 0; at < sizes[i]; at++)
            sum += at % 251;
        assert_int_equal(news->outcome, ERRAND_COMPLETED);
        assert_int_equal(news->size, sizes[i]);
        assert_int_equal(news->sum, sum);
    }
    assert_int_equal(rig_snapshot(self).started, 1);
}

static void
a_result_above_out_bytes_is_the_jobs_own_failure(void **state)
{
    rig *self = *state;
    uint64_t size = 70000;
    const rig_news *news;

    self->policy.out_bytes = 65536;
    rig_begin(self);
    news = run_plugin(self, "grows", &size, sizeof size);
    assert_int_equal(news->code, ERRAND_CODE_JOB);
    assert_int_equal(news->job_code, EFBIG);
}

static void
what_a_plugin_says_of_its_failure_is_told(void **state)
{
    rig *self = *state;
    const rig_news *news;

    rig_begin(self);
    news = run_plugin(self, "nobody", "", 0);
    assert_int_equal(news->code, ERRAND_CODE_JOB);
    news = run_plugin(self, "refuses", "", 0); /* answers a negative code */
    assert_int_equal(news->outcome, ERRAND_FAILED);
    assert_int_equal(news->code, ERRAND_CODE_JOB);
}

static void
check_crash(rig *self, const char *name, int64_t number, errand_code code, int detail)
{
    const rig_news *news = probe(self, name, number);

    if (news->outcome != ERRAND_CRASHED || news->code != code)
        fail_msg("%s: outcome %d, code %s: %s", name, (int)news->outcome,
                 errand_code_name(news->code), news->message);
    if (code == ERRAND_CODE_EXITED)
        assert_int_equal(news->job_code, detail);
    else if (detail != 0)
        assert_int_equal(news->signal_number, detail);
    assert_int_equal(news->more_status, ERRAND_OK);
    assert_true(news->more.pid > 0);
    assert_true(news->more.wait_status >= 0);
    assert_true(news->more.layers != 0);
}

static void
each_end_of_a_process_has_its_code(void **state) /* S10, C-L11, C-F6, C-F9 */
{
    rig *self = *state;
    const rig_news *news;
    errand_spec spec;

    self->policy.cpu_seconds = 1;
    rig_begin(self);
    check_crash(self, "exit", 7, ERRAND_CODE_EXITED, 7);
    check_crash(self, "_exit", 124, ERRAND_CODE_EXITED, 124);
    check_crash(self, "_exit", 137, ERRAND_CODE_EXITED, 137);
    check_crash(self, "_exit", 90, ERRAND_CODE_EXITED, 90);
    check_crash(self, "abort", 0, ERRAND_CODE_CRASHED, SIGABRT);
    check_crash(self, "double free", 0, ERRAND_CODE_CRASHED, SIGABRT);
    check_crash(self, "write null", 0, ERRAND_CODE_CRASHED, SIGSEGV);
    check_crash(self, "divide", 0, ERRAND_CODE_CRASHED, SIGFPE);
    check_crash(self, "illegal", 0, ERRAND_CODE_CRASHED, SIGILL);
    check_crash(self, "stack bomb", 0, ERRAND_CODE_CRASHED, SIGSEGV);
    assert_non_null(strstr(self->news[self->count - 1].message, "stack_bytes is 8"));
    check_crash(self, "call", SYS_ptrace, ERRAND_CODE_POLICY, SIGSYS);
    check_crash(self, "burn", 0, ERRAND_CODE_CPU, SIGXCPU);
    check_crash(self, "burn", 1, ERRAND_CODE_CPU, SIGKILL); /* ignores SIGXCPU */
    spec = probe_spec(self, "sleep", 60);
    spec.deadline_ns = 20 * MS;
    news = await_one(self, &spec);
    assert_int_equal(news->outcome, ERRAND_FAILED);
    assert_int_equal(news->code, ERRAND_CODE_DEADLINE);
    assert_int_equal(probe(self, "ordinary", 0)->outcome, ERRAND_COMPLETED);
}

/* By a null pointer that is used, by abort (as a C++ bad_alloc does), by exit. */
static void
who_ends_for_want_of_memory_is_told_so(void **state)
{
    rig *self = *state;
    static const int64_t ends[] = {0, 1, 2, 10, 11, 12};
    const rig_news *news;

    self->policy.memory_bytes = UINT64_C(128) << 20;
    self->config.crash_limit = 64;
    rig_begin(self);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        news = probe(self, "out of memory", ends[i]);
        assert_int_equal(news->outcome, ERRAND_CRASHED);
        assert_int_equal(news->code,
                         ends[i] % 10 == 2 ? ERRAND_CODE_EXITED : ERRAND_CODE_CRASHED);
        if (!news->more.memory_hint)
            fail_msg("end %d: no hint: %s", (int)ends[i], news->message);
        assert_non_null(strstr(news->message, "memory_bytes is 134217728"));
    }
    static const char *const others[] = {"abort", "write null", "divide", "_exit"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        news = probe(self, others[i], i < 3 ? 0 : 7);
        assert_int_equal(news->outcome, ERRAND_CRASHED);
        assert_false(news->more.memory_hint);
        assert_null(strstr(news->message, "memory"));
    }
}

static void
a_worker_that_somebody_kills_was_killed(void **state)
{
    rig *self = *state;
    errand_spec spec;
    int32_t pid;

    rig_begin(self);
    pid = probe(self, "ordinary", 0)->more.pid;
    spec = probe_spec(self, "sleep", 60);
    rig_start_spec(self, 0, &spec);
    kill(pid, SIGKILL);
    rig_await(self, 2);
    assert_int_equal(self->news[1].outcome, ERRAND_CRASHED);
    assert_int_equal(self->news[1].code, ERRAND_CODE_KILLED);
    assert_int_equal(self->news[1].more.pid, pid);
    assert_true(self->news[1].more.retry_hint);
}

static void
a_denied_call_is_named_where_the_policy_asks_for_it(void **state)
{
    rig *self = *state;
    const rig_news *news;

    self->policy.on_deny = ERRAND_DENY_REPORT;
    rig_begin(self);
    news = probe(self, "call", SYS_ptrace);
    assert_int_equal(news->outcome, ERRAND_CRASHED);
    assert_int_equal(news->code, ERRAND_CODE_POLICY);
    assert_int_equal(news->more.denied_call, SYS_ptrace);
    assert_string_equal(news->system_call, "ptrace");
}

/* The second call of the same job is not listed again; the next job begins anew; and nothing that
 * the C library does around a call is changed: it blocks all signals around clone. */
static void
refused_calls_are_listed_where_the_policy_asks_for_it(void **state)
{
    rig *self = *state;
    const rig_news *news;

    self->policy.on_deny = ERRAND_DENY_REPORT;
    self->policy.reuse = 0;
    rig_begin(self);
    news = probe(self, "call", SYS_prlimit64);
    assert_int_equal(news->outcome, ERRAND_COMPLETED);
    assert_int_equal(news->more.refused_count, 1);
    assert_int_equal(news->more.refused[0].call, SYS_prlimit64);
    assert_int_equal(news->more.refused[0].error, EPERM);
    news = probe(self, "call", SYS_socket);
    assert_int_equal(news->more.refused_count, 1);
    assert_int_equal(news->more.refused[0].call, SYS_socket);
    assert_int_equal(news->more.refused[0].error, EACCES);
    news = probe(self, "call", SYS_getpid);
    assert_int_equal(news->outcome, ERRAND_COMPLETED);
    assert_int_equal(news->more.refused_count, 0);
}

static void
a_cancelled_plugin_may_end_by_itself(void **state)
{
    rig *self = *state;
    errand_spec spec;
    errand_identity identity;

    self->policy.grace_ns = 5000 * MS;
    rig_begin(self);
    run_plugin(self, "echo", "x", 1);
    spec = rig_plugin_spec(self, test_reachable(ERRAND_TEST_PLUGIN), "waits", "", 0);
    identity = rig_start_spec(self, 0, &spec);
    assert_int_equal(
        errand_cancel(self->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL), ERRAND_OK);
    rig_await(self, 2);
    assert_int_equal(self->news[1].outcome, ERRAND_COMPLETED);
    assert_int_equal(self->news[1].size, 3);
}

static void
a_worker_has_no_signal_blocked_or_ignored(void **state) /* C-G3 */
{
    rig *self = *state;
    hostile_response response;

    signal(SIGUSR1, SIG_IGN);
    rig_begin(self);
    signal(SIGUSR1, SIG_DFL);
    assert_int_equal(probe(self, "signals", 0)->outcome, ERRAND_COMPLETED);
    memcpy(&response, self->first, sizeof self->first);
    assert_int_equal(response.result, 0);
}

static void
a_program_that_is_none_is_refused_by_create(void **state) /* 88 */
{
    rig *self = *state;

    self->config.policy = &self->policy;
    self->config.worker_path = "/nowhere/errand-worker";
    assert_int_equal(errand_sandbox_create(&self->config, &self->executor, self->text,
                                           sizeof self->text),
                     ERRAND_ESYSTEM);
    assert_non_null(strstr(self->text, "No such file"));
    self->config.worker_path = "/bin/true";
    assert_int_equal(errand_sandbox_create(&self->config, &self->executor, self->text,
                                           sizeof self->text),
                     ERRAND_ESYSTEM);
    assert_non_null(strstr(self->text, "exited with status 0 before it was ready"));
    self->config.worker_path = "/bin/sleep"; /* of "serve" seconds */
    assert_int_equal(errand_sandbox_create(&self->config, &self->executor, self->text,
                                           sizeof self->text),
                     ERRAND_ESYSTEM);
    assert_null(self->executor);
}

/* Exits while something else takes children's statuses; answers how it was told. */
static void
check_stolen(const rig_news *news)
{
    assert_int_equal(news->outcome, ERRAND_CRASHED);
    assert_true(news->code == ERRAND_CODE_EXITED ||
                news->code == ERRAND_CODE_WORKER_LOST);
    if (news->code == ERRAND_CODE_EXITED)
        assert_int_equal(news->job_code, 7);
}

static void
a_host_that_ignores_sigchld_hears_of_ends(void **state) /* S11 */
{
    rig *self = *state;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;

    sigaction(SIGCHLD, &ignore, &before);
    rig_begin(self);
    for (int i = 0; i < 20; i++)
        check_stolen(probe(self, "_exit", 7));
    rig_end(self);
    sigaction(SIGCHLD, &before, NULL);
}

static void *
steal(void *arg)
{
    while (!atomic_load_explicit((atomic_bool *)arg, memory_order_acquire))
        (void)waitpid(-1, NULL, WNOHANG);
    return NULL;
}

static void
a_thief_of_statuses_changes_no_end(void **state) /* S11 */
{
    rig *self = *state;
    atomic_bool over;
    pthread_t thief;

    rig_begin(self);
    probe(self, "ordinary", 0);
    atomic_init(&over, false);
    assert_int_equal(pthread_create(&thief, NULL, steal, &over), 0);
    for (int i = 0; i < 20; i++)
        check_stolen(probe(self, "_exit", 7));
    atomic_store_explicit(&over, true, memory_order_release);
    pthread_join(thief, NULL);
}

static void
on_alarm(int number)
{
    (void)number;
}

static void
a_storm_of_signals_changes_no_count(void **state) /* C-G7 */
{
    rig *self = *state;
    struct sigaction action = {.sa_handler = on_alarm}, before;
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    size_t jobs = (size_t)test_scaled(10000);

    self->config.workers_max = 2;
    rig_begin(self);
    sigaction(SIGVTALRM, &action, &before);
    setitimer(ITIMER_VIRTUAL, &often, NULL);
    while (self->count < jobs) {
        size_t until = self->count + 100;

        for (int i = 0; i < 100; i++) {
            errand_spec spec = rig_plugin_spec(self, test_reachable(ERRAND_TEST_PLUGIN),
                                               "echo", "abc", 3);

            rig_start_spec(self, 0, &spec);
        }
        rig_await(self, until);
    }
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    sigaction(SIGVTALRM, &before, NULL);
    assert_int_equal(self->dropped, self->count);
    for (size_t i = 0; i < self->count && i < RIG_NEWS; i++) {
        assert_int_equal(self->news[i].outcome, ERRAND_COMPLETED);
        assert_int_equal(self->news[i].size, 3);
    }
}

static void
a_worker_is_replaced_after_its_number_of_jobs(void **state)
{
    rig *self = *state;

    self->policy.reuse = 1;
    rig_begin(self);
    for (int i = 0; i < 10; i++)
        assert_int_equal(run_plugin(self, "echo", "abc", 3)->size, 3);
    for (int i = 1; i < 10; i++)
        assert_true(self->news[i].more.pid != self->news[i - 1].more.pid);
}

static void
a_warm_pool_makes_no_process_between_jobs(void **state) /* S13 */
{
    rig *self = *state;
    uint64_t started;

    rig_begin(self);
    run_plugin(self, "echo", "abc", 3);
    started = rig_snapshot(self).started;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(run_plugin(self, "echo", "abc", 3)->size, 3);
    assert_int_equal(rig_snapshot(self).started, started);
}

/* A process of its own that makes a pool, says the worker's id, and waits. */
static void
be_host(rig *self, int out)
{
    int32_t pid;

    rig_begin(self);
    pid = probe(self, "ordinary", 0)->more.pid;
    errand_spec spec = probe_spec(self, "burn deaf", 0);
    rig_start_spec(self, 0, &spec);
    if (write(out, &pid, sizeof pid) != sizeof pid)
        abort();
    for (;;)
        pause();
}

/* Has that process ended?  Whoever inherits it may reap it late. */
static bool
is_over(int32_t pid)
{
    char path[64], line[256] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return true;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    const char *state = strrchr(line, ')');
    return state == NULL || state[2] == 'Z' || state[2] == 'X';
}

static void
no_worker_outlives_a_host_that_is_killed(void **state) /* S16, C-G6 */
{
    rig *self = *state;

    for (int i = 0; i < 5; i++) {
        struct timespec moment = {0, 1000000};
        int ends[2], waited = 0;
        int32_t worker;
        pid_t host;

        assert_int_equal(pipe(ends), 0);
        host = fork();
        if (host == 0) {
            alarm(30);
            be_host(self, ends[1]);
        }
        close(ends[1]);
        assert_int_equal(read(ends[0], &worker, sizeof worker), sizeof worker);
        close(ends[0]);
        kill(host, SIGKILL);
        assert_int_equal(waitpid(host, NULL, 0), host);
        while (!is_over(worker) && waited++ < 20000)
            nanosleep(&moment, NULL);
        assert_true(waited < 20000);
    }
}

static void
a_forked_host_has_nothing_to_do_with_it(void **state) /* S16 */
{
    rig *self = *state;
    pid_t child;
    int status;

    rig_begin(self);
    run_plugin(self, "echo", "abc", 3);
    child = fork();
    if (child == 0) {
        errand_sandbox_snapshot snapshot = {.struct_size = sizeof snapshot};
        bool fine =
            errand_sandbox_snapshot_read(self->executor, &snapshot) == ERRAND_EFORKED;

        errand_executor_abandon(&self->executor);
        _exit(fine ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(run_plugin(self, "echo", "abc", 3)->size, 3);
}

static void
a_layer_that_is_not_to_be_had_starts_nothing(void **state)
{
    rig *self = *state;
    pid_t child;
    int status;

    self->config.policy = &self->policy;
    self->config.worker_path = self->worker_path;
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) { /* and what it starts: no landlock on this machine */
        inside_refusal refusal = {"landlock_create_ruleset", EOPNOTSUPP, 0, 0};
        bool fine;

        inside_refuse_call(&refusal);
        self->policy.require_layers = ERRAND_LAYER_LANDLOCK;
        fine = errand_sandbox_create(&self->config, &self->executor, self->text,
                                     sizeof self->text) == ERRAND_EUNSUPPORTED &&
               self->executor == NULL && strstr(self->text, "landlock") != NULL;
        self->policy.require_layers = ERRAND_LAYER_SECCOMP;
        fine = fine && errand_sandbox_create(&self->config, &self->executor, self->text,
                                             sizeof self->text) == ERRAND_OK;
        fine = fine && rig_snapshot(self).degraded == ERRAND_LAYER_LANDLOCK;
        errand_executor_abandon(&self->executor);
        _exit(fine ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void
layers_that_nobody_knows_are_refused(void **state)
{
    rig *self = *state;

    self->policy.require_layers =
        256; /* once meant for a namespace that no worker makes */
    self->config.policy = &self->policy;
    assert_int_equal(errand_sandbox_create(&self->config, &self->executor, self->text,
                                           sizeof self->text),
                     ERRAND_EINVAL);
    assert_non_null(strstr(self->text, "require_layers: 0x100"));
}

int
main(void)
{
#define WITH_REAL(test) cmocka_unit_test_setup_teardown(test, real_setup, real_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_REAL(a_layer_that_is_not_to_be_had_starts_nothing),
        WITH_REAL(layers_that_nobody_knows_are_refused),
        WITH_REAL(a_library_that_roots_worker_may_not_open_says_who_it_is),
        WITH_REAL(results_of_all_sizes_come_from_a_process),
        WITH_REAL(a_result_above_out_bytes_is_the_jobs_own_failure),
        WITH_REAL(what_a_plugin_says_of_its_failure_is_told),
        WITH_REAL(each_end_of_a_process_has_its_code),
        WITH_REAL(a_worker_that_somebody_kills_was_killed),
        WITH_REAL(who_ends_for_want_of_memory_is_told_so),
        WITH_REAL(a_denied_call_is_named_where_the_policy_asks_for_it),
        WITH_REAL(refused_calls_are_listed_where_the_policy_asks_for_it),
        WITH_REAL(a_cancelled_plugin_may_end_by_itself),
        WITH_REAL(a_worker_has_no_signal_blocked_or_ignored),
        WITH_REAL(a_program_that_is_none_is_refused_by_create),
        WITH_REAL(a_host_that_ignores_sigchld_hears_of_ends),
        WITH_REAL(a_thief_of_statuses_changes_no_end),
        WITH_REAL(a_storm_of_signals_changes_no_count),
        WITH_REAL(a_worker_is_replaced_after_its_number_of_jobs),
        WITH_REAL(a_warm_pool_makes_no_process_between_jobs),
        WITH_REAL(no_worker_outlives_a_host_that_is_killed),
        WITH_REAL(a_forked_host_has_nothing_to_do_with_it),
    };
    return test_group("workers/sandbox/pool_real", tests, NULL, NULL);
}
