/* SPDX-License-Identifier: MIT */
/* Goal: what happens around a host is not taken for an attack of its jobs, and nothing that a host does to
 * its pool makes a job wait for ever.
 * Method: a host that is signalled all the time, one whose program is gone, one that has no descriptors
 * left, one that reaps whatever dies, one that forks. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "group.h"
#include "pool.h"
#include "reach.h"

#define MS UINT64_C(1000000)
#define CHECK(truth)                                                                     \
    do {                                                                                 \
        if (!(truth)) {                                                                  \
            printf("[  WRONG   ] line %d: %s (%s, %s)\n", __LINE__, #truth,              \
                   hostile_ends_text(pool.ends), pool.message);                          \
            return 1;                                                                    \
        }                                                                                \
    } while (0)

static bool
begin(hostile_pool *pool, const char *worker, uint32_t workers, uint32_t reuse)
{
    errand_sandbox_config config;
    errand_sandbox_policy policy;
    char text[256];

    hostile_config(&config, &policy);
    config.workers_max = workers;
    if (reuse == 0)
        config.crash_limit = 0; /* as by default */
    policy.reuse = reuse;
    if (worker != NULL) { /* which comes and goes: a template would need it once */
        config.worker_path = worker;
        config.flags = ERRAND_SANDBOX_NO_TEMPLATE;
    }
    if (hostile_begin(pool, &config, ERRAND_TEST_JOBS, text, sizeof text))
        return true;
    printf("no sandbox: %s\n", text);
    return false;
}

static void
nothing(int number)
{
    (void)number;
}

/* Thousands of interrupted sleeps while one job takes its time. */
static int
be_signalled(void *arg)
{
    const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = nothing};
    const int ms = 2000;
    hostile_pool pool;

    (void)arg;
    CHECK(begin(&pool, NULL, 1, 0));
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    CHECK(hostile_run(&pool, "job_takes_its_time", &ms, sizeof ms, 0) == ENDS_OK);
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(hostile_end(&pool));
    return 0;
}

static void
a_host_that_is_signalled_all_the_time_is_not_taken_for_an_attack(void **state)
{
    (void)state;
    assert_int_equal(hostile_in_child(false, be_signalled, NULL), 0);
}

static int
lose_the_program(void *arg)
{
    char path[] = "/tmp/errand-hostile-worker-XXXXXX";
    hostile_pool pool;
    uint64_t began;
    int fd = mkstemp(path);

    (void)arg;
    close(fd);
    pool.ends = 0;
    CHECK(test_copy_file(ERRAND_TEST_WORKER, path));
    for (uint32_t workers = 1; workers <= 2; workers++) {
        CHECK(test_copy_file(ERRAND_TEST_WORKER, path));
        CHECK(begin(&pool, path, workers, 0));
        CHECK(hostile_run(&pool, "job_ok", NULL, 0, 0) == ENDS_OK);
        CHECK(unlink(path) == 0);
        began =
            hostile_now(); /* a function that no living worker knows, without a deadline */
        CHECK(hostile_run(&pool, "job_survives_a_fault", NULL, 0, 0) == ENDS_SPAWN);
        CHECK(hostile_now() - began < 30000 * MS);
        CHECK(test_copy_file(ERRAND_TEST_WORKER, path));
        for (int i = 0; i < 600 && pool.ends != ENDS_OK; i++, usleep(50000))
            (void)hostile_run(&pool, "job_survives_a_fault", NULL, 0, 0);
        CHECK(pool.ends == ENDS_OK);
        CHECK(hostile_run(&pool, "job_ok", NULL, 0, 0) == ENDS_OK);
        CHECK(hostile_end(&pool));
    }
    unlink(path);
    return 0;
}

static void
a_job_that_no_worker_can_be_started_for_fails_and_the_next_works(void **state)
{
    (void)state;
    assert_int_equal(hostile_in_child(false, lose_the_program, NULL), 0);
}

static int
run_out_of_descriptors(void *arg)
{
    struct rlimit few, before;
    hostile_pool pool;
    int right = 0;

    (void)arg;
    CHECK(begin(&pool, NULL, 1, 1));
    CHECK(hostile_run(&pool, "job_ok", NULL, 0, 0) == ENDS_OK);
    CHECK(hostile_settle(&pool));
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &few);
    while (hostile_run(&pool, "job_ok", NULL, 0, 0) == ENDS_OK)
        right++;
    CHECK(right == 1 || right == 2); /* those that are there: the reserve may be */
    CHECK(pool.ends == ENDS_SPAWN);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < 600 && pool.ends != ENDS_OK; i++, usleep(50000))
        (void)hostile_run(&pool, "job_ok", NULL, 0, 0);
    CHECK(pool.ends == ENDS_OK);
    CHECK(hostile_end(&pool));
    return 0;
}

static void
a_host_without_descriptors_hears_of_it_and_goes_on(void **state)
{
    (void)state;
    assert_int_equal(hostile_in_child(false, run_out_of_descriptors, NULL), 0);
}

static void
reap_all(int number)
{
    int before = errno;

    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    errno = before;
}

static int
reap_everything(void *arg)
{
    struct sigaction action = {.sa_handler = reap_all};
    hostile_pool pool;

    (void)arg;
    sigaction(SIGCHLD, &action, NULL);
    CHECK(begin(&pool, NULL, 2, 1));
    for (int i = 0; i < 30; i++) {
        const int seven = 7;

        CHECK((hostile_run(&pool, "job_writes_null", NULL, 0, 0) &
               (ENDS_CRASHED | ENDS_LOST)) != 0);
        CHECK((hostile_run(&pool, "job_exit_now", &seven, sizeof seven, 0) &
               (ENDS_EXITED | ENDS_LOST)) != 0);
        CHECK(hostile_run(&pool, "job_ok", NULL, 0, 0) == ENDS_OK);
        if (i == 15)
            signal(SIGCHLD, SIG_IGN);
    }
    CHECK(hostile_end(&pool));
    return 0;
}

static void
a_host_that_reaps_whatever_dies_loses_no_job(void **state)
{
    (void)state;
    assert_int_equal(hostile_in_child(false, reap_everything, NULL), 0);
}

/* A copy of the host is no host: its end ends no worker, and it keeps none alive. */
static int
fork_while_it_runs(void *arg)
{
    hostile_pool pool;
    int status;

    (void)arg;
    CHECK(begin(&pool, NULL, 2, 0));
    CHECK(hostile_run(&pool, "job_ok", NULL, 0, 0) == ENDS_OK);
    for (int i = 0; i < 20; i++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            errand_sandbox_snapshot now = {.struct_size = sizeof now};

            _exit(errand_sandbox_snapshot_read(pool.executor, &now) == ERRAND_EFORKED
                      ? 0
                      : 1);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        CHECK(hostile_run(&pool, "job_ok", NULL, 0, 0) == ENDS_OK);
    }
    fflush(NULL);
    pid_t stays = fork();
    if (stays == 0)
        for (;;)
            pause();
    CHECK(hostile_run(&pool, "job_loops_deaf", NULL, 0, 50 * MS) == ENDS_DEADLINE);
    CHECK(hostile_end(&pool));
    kill(stays, SIGKILL);
    waitpid(stays, NULL, 0);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1);
    return 0;
}

static void
a_forked_copy_of_a_host_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(hostile_in_child(false, fork_while_it_runs, NULL), 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_host_that_is_signalled_all_the_time_is_not_taken_for_an_attack),
        cmocka_unit_test(
            a_job_that_no_worker_can_be_started_for_fails_and_the_next_works),
        cmocka_unit_test(a_host_without_descriptors_hears_of_it_and_goes_on),
        cmocka_unit_test(a_host_that_reaps_whatever_dies_loses_no_job),
        cmocka_unit_test(a_forked_copy_of_a_host_changes_nothing),
    };

    return test_group("hostile/sandbox/hosts", tests, NULL, NULL);
}
