/* SPDX-License-Identifier: MIT */
/* Goal (S16): no worker outlives its host, whoever both are and whatever the worker does against it; and a host
 * that gave up its user can still end its workers.
 * Method: hosts in child processes, killed at any moment of their lives.  This process is the one that
 * orphans are given to, so none can hide: soon after the host's death it has no child. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "group.h"
#include "pool.h"

#define MS UINT64_C(1000000)

/* How a host came by its rights. */
typedef enum host_kind {
    KIND_AS_IS,       /* root, where this is root's */
    KIND_NOBODY,      /* never root */
    KIND_DROPS,       /* becomes another user when its pool is made */
    KIND_DROPS_LATER, /* when jobs are running */
    KIND_NO_KILL      /* root that may not signal other users' processes */
} host_kind;

static const char *const states[] = {"job_catches_faults",      "job_loops_deaf",
                                     "job_loops_without_files", "job_sleeps",
                                     "job_cuts_its_lifeline",   "job_answers_and_hangs"};
enum { STATES = sizeof states / sizeof states[0], OTHER_USER = 1 };

typedef struct host {
    host_kind kind;
    int told;  /* a pipe: its jobs run */
    bool warm; /* its workers are forked from a template */
} host;

static bool
give_up_kill(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];

    if (syscall(SYS_capget, &head, sets) != 0)
        return false;
    sets[0].effective &= ~(1u << CAP_KILL);
    sets[0].permitted &= ~(1u << CAP_KILL);
    sets[0].inheritable &= ~(1u << CAP_KILL);
    return syscall(SYS_capset, &head, sets) == 0;
}

static bool
make_host(hostile_pool *pool, host_kind kind, uint32_t reuse)
{
    errand_sandbox_config config;
    errand_sandbox_policy policy;
    char text[256];

    if (kind == KIND_NO_KILL && !give_up_kill())
        return false;
    const errand_sandbox_path path = {"/usr/share", ERRAND_PATH_READ};

    hostile_config(&config, &policy);
    config.workers_min = 2;
    config.workers_max = STATES + 2;
    policy.reuse = reuse;
    if (reuse == 0) { /* more calls, more ways to cut it */
        policy.promises = ERRAND_PROMISE_RPATH | ERRAND_PROMISE_THREAD;
        policy.paths = &path;
        policy.path_count = 1;
    }
    if (!hostile_begin(pool, &config, ERRAND_TEST_JOBS, text, sizeof text)) {
        fprintf(stderr, "no sandbox: %s\n", text);
        return false;
    }
    return kind != KIND_DROPS || hostile_become(OTHER_USER);
}

static bool
start(hostile_pool *pool, const char *function, uint64_t deadline_ns)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    if (errand_spec_plugin(&spec, pool->object, function, NULL, 0) != ERRAND_OK)
        return false;
    spec.deadline_ns = deadline_ns;
    return errand_start(pool->lease, &spec, NULL, NULL) == ERRAND_OK;
}

/* A host that goes on until it is killed. */
static int
be_host(void *arg)
{
    const host *self = arg;
    hostile_pool pool;

    if (!make_host(&pool, self->kind, 0))
        return 90;
    if (self->warm && !hostile_warm(&pool))
        return 94;
    for (int i = 0; i < STATES; i++)
        if (!start(&pool, states[i], 0))
            return 91;
    if (self->kind == KIND_DROPS_LATER && !hostile_become(OTHER_USER))
        return 92;
    if (write(self->told, "x", 1) != 1)
        return 93;
    for (;;) /* others end meanwhile, too */
        (void)hostile_run(&pool, "job_ok", NULL, 0, 0);
}

/* All its children are gone soon, which a busy machine makes long; else what is left is killed. */
static bool
is_alone_soon(void)
{
    uint64_t until = hostile_now() + 20000 * MS;
    pid_t pid;

    do {
        pid = waitpid(-1, NULL, WNOHANG);
        if (pid == 0)
            usleep(500);
    } while (pid >= 0 && hostile_now() < until);
    if (pid < 0)
        return true;
    printf("[  WRONG   ] workers have outlived their host\n");
    fflush(stdout);
    while (waitpid(-1, NULL, WNOHANG) >= 0) {
        FILE *list = fopen("/proc/thread-self/children", "r");
        int child;

        while (list != NULL && fscanf(list, "%d", &child) == 1)
            kill(child, SIGKILL);
        if (list != NULL)
            fclose(list);
        usleep(1000);
    }
    return false;
}

static bool
is_confined(int pid)
{
    char path[64], line[128];
    int mode = 0;

    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *status = fopen(path, "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        (void)sscanf(line, "Seccomp: %d", &mode);
    if (status != NULL)
        fclose(status);
    return mode == 2;
}

/* A template runs nothing foreign and is not confined.  What it has just forked is in its group. */
static bool
is_template(int pid)
{
    char path[64], line[64] = "";

    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *words = fopen(path, "r");
    size_t size = words == NULL ? 0 : fread(line, 1, sizeof line - 1, words);
    if (words != NULL)
        fclose(words);
    return size != 0 && strcmp(line + strlen(line) + 1, "template") == 0 &&
           getpgid(pid) == pid;
}

/* Has it said that it ends with a pipe (O_ASYNC)?  Before that it has run nothing. */
static bool
follows_its_host(int pid)
{
    char path[300], line[128];
    bool found = false;

    snprintf(path, sizeof path, "/proc/%d/fdinfo", pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        unsigned flags = 0;

        snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", pid, entry->d_name);
        FILE *info = fopen(path, "r");
        while (info != NULL && fgets(line, sizeof line, info) != NULL)
            (void)sscanf(line, "flags: %o", &flags);
        if (info != NULL)
            fclose(info);
        found = found || (flags & O_ASYNC) != 0;
    }
    if (folder != NULL)
        closedir(folder);
    return found;
}

/* Stops the workers of that host, and its template: those that are stopped before they are confined (the
 * template: before it follows its host) have run nothing yet and hear of the host's end when they go on. */
static void
stop_workers(pid_t parent)
{
    char command[64];
    bool found = false; /* it is older than what it forks */
    int child;

    snprintf(command, sizeof command, "cat /proc/%d/task/*/children", (int)parent);
    FILE *list = popen(command, "r");
    while (list != NULL && fscanf(list, "%d", &child) == 1) {
        bool template = !found && is_template(child);

        found = found || template;
        if (template ? follows_its_host(child) : is_confined(child))
            kill(child, SIGSTOP);
    }
    if (list != NULL)
        pclose(list);
}

static void
kill_hosts(host_kind kind, uint64_t rounds)
{
    unsigned seed = (unsigned)kind * 7919u + 1;

    if ((kind != KIND_AS_IS) && geteuid() != 0)
        test_skip("only root can become another user");
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    hostile_reach();
    for (uint64_t round = 0; round < rounds; round++) {
        int told[2];
        char byte;
        uint64_t nap = (uint64_t)rand_r(&seed) % 20000;
        host self = {kind, 0, round / 4 % 2 == 0};

        assert_int_equal(pipe(told), 0);
        self.told = told[1];
        fflush(NULL);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            close(told[0]);
            if (kind == KIND_NOBODY && !hostile_become(65534))
                _exit(95);
            int answer = be_host(&self);

            fprintf(stderr, "[  WRONG   ] the host ended: %d\n", answer);
            _exit(answer);
        }
        close(told[1]);
        if (round % 4 != 0)
            assert_int_equal(read(told[0], &byte, 1), 1); /* all states are there */
        usleep((unsigned)nap);
        if (round % 4 == 3)
            stop_workers(pid);
        assert_int_equal(kill(pid, SIGKILL), 0);
        close(told[0]);
        assert_true(is_alone_soon());
    }
}

static void
no_worker_outlives_a_killed_host(void **state)
{
    (void)state;
    kill_hosts(KIND_AS_IS, test_scaled(200));
}

static void
no_worker_outlives_a_host_that_is_nobody(void **state)
{
    (void)state;
    kill_hosts(KIND_NOBODY, test_scaled(200));
}

static void
no_worker_outlives_a_host_that_gave_up_its_user(void **state)
{
    (void)state;
    kill_hosts(KIND_DROPS, test_scaled(100));
    kill_hosts(KIND_DROPS_LATER, test_scaled(100));
}

static void
no_worker_outlives_a_host_that_may_not_signal_it(void **state)
{
    /* S16 */
    (void)state;
    kill_hosts(KIND_NO_KILL, test_scaled(100));
}

/* ---- a host that lives, without the right to kill -------------------------------------------------------------- */

static int
end_jobs(void *arg)
{
    const host_kind *kind = arg;
    hostile_pool pool;

    if (!make_host(&pool, *kind, 1))
        return 90;
    for (int i = 0; i < STATES; i++) {
        int ends = hostile_run(&pool, states[i], NULL, 0, 100 * MS);

        if (ends != ENDS_DEADLINE && ends != ENDS_OK) {
            printf("[  WRONG   ] %s: %s\n", states[i], hostile_ends_text(ends));
            return 1;
        }
        if (hostile_run(&pool, "job_ok", NULL, 0, 0) != ENDS_OK)
            return 2;
    }
    uint64_t began = hostile_now();
    if (!hostile_end(&pool))
        return 3;
    return hostile_now() - began > 2000 * MS ? 4 : waitpid(-1, NULL, WNOHANG) != -1;
}

static void
a_host_without_rights_still_ends_its_workers(void **state)
{
    static host_kind kinds[] = {KIND_AS_IS, KIND_DROPS, KIND_NO_KILL};

    (void)state;
    if (geteuid() != 0)
        test_skip("only root can become another user");
    for (int i = 0; i < 3; i++) {
        print_message("[   KIND   ] %d\n", (int)kinds[i]);
        assert_int_equal(hostile_in_child(false, end_jobs, &kinds[i]), 0);
        assert_true(is_alone_soon());
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_worker_outlives_a_killed_host),
        cmocka_unit_test(no_worker_outlives_a_host_that_is_nobody),
        cmocka_unit_test(no_worker_outlives_a_host_that_gave_up_its_user),
        cmocka_unit_test(no_worker_outlives_a_host_that_may_not_signal_it),
        cmocka_unit_test(a_host_without_rights_still_ends_its_workers),
    };

    return test_group("hostile/sandbox/orphans", tests, NULL, NULL);
}
