/* SPDX-License-Identifier: MIT */
/* Goal: workers that are forked from a template are the host's children and confined as started ones are,
 * and whatever becomes of the template no start fails, and nothing is left of it (S16, S28).
 * Method: real pools whose worker is ended again and again; the template is killed, stopped, or
 * is a program that does something else.  Orphans come to this process, so none can hide. */
#include "probe_rig.h"
#include "descriptors.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int
template_setup(void **state)
{
    probe_setup(state);
    return 0;
}

static int
template_teardown(void **state)
{
    int result = rig_teardown(state);

    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    return result;
}

/* Ends the worker and has the next one do something; answers its process. */
static int32_t
next_worker(rig *self)
{
    const rig_news *news = probe(self, "_exit", 3);

    assert_int_equal(news->code, ERRAND_CODE_EXITED);
    news = probe(self, "guard", 0);
    if (news->outcome != ERRAND_COMPLETED)
        fail_msg("an honest job: %s: %s", errand_code_name(news->code), news->message);
    return news->more.pid;
}

/* Until one was forked; answers it. */
static int32_t
next_forked(rig *self)
{
    uint64_t before = rig_snapshot(self).forked;

    for (;;) { /* the watchdog ends it */
        uint64_t now;
        int32_t pid = next_worker(self);

        now = rig_snapshot(self).forked;
        if (now > before && now != 0)
            return pid;
        before = now;
    }
}

/* The template among this process's children, or 0. */
static pid_t
find_template(void)
{
    FILE *list = popen("cat /proc/$PPID/task/*/children", "r");
    pid_t child, found = 0;

    assert_non_null(list);
    while (fscanf(list, "%d", &child) == 1) {
        char path[64], line[64] = "";
        FILE *file;

        snprintf(path, sizeof path, "/proc/%d/cmdline", (int)child);
        file = fopen(path, "re");
        if (file == NULL)
            continue;
        if (fread(line, 1, sizeof line - 1, file) > 0 &&
            strcmp(line + strlen(line) + 1, ERRAND__WIRE_TEMPLATE) == 0)
            found = child;
        fclose(file);
    }
    pclose(list);
    return found;
}

static pid_t
await_template(void)
{
    struct timespec moment = {0, 1000000};
    pid_t pid;

    while ((pid = find_template()) == 0) /* the watchdog ends it */
        nanosleep(&moment, NULL);
    return pid;
}

/* ---- what a forked worker is ------------------------------------------------------------------------- */

/* What the kernel says of a worker, but for what no two processes have in common. */
static void
describe(int32_t pid, char *out, size_t size)
{
    static const char *const files[] = {"status", "limits", "cgroup"};
    static const char *const kept[] = {
        "Name",   "Umask",   "Uid",         "Gid",     "Groups",      "Sig",
        "Shd",    "Cap",     "NoNewPrivs",  "Seccomp", "Speculation", "Cpus_allowed",
        "Mems_a", "Threads", "CoreDumping", "FDSize_"};
    size_t used = 0;
    char path[64], line[256];

    out[0] = '\0';
    for (size_t i = 0; i < 3; i++) {
        FILE *file;

        snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, files[i]);
        file = fopen(path, "re");
        assert_non_null(file);
        while (fgets(line, sizeof line, file) != NULL) {
            bool keep = i == 1;

            for (size_t k = 0; i == 0 && k < sizeof kept / sizeof kept[0]; k++)
                keep = keep || strncmp(line, kept[k], strlen(kept[k])) == 0;
            if (keep && strncmp(line, "SigQ", 4) != 0)
                used += (size_t)snprintf(out + used, size - used, "%s", line);
            assert_true(used < size);
        }
        fclose(file);
    }
    for (int fd = 0; geteuid() == 0 && fd < 64; fd++) {
        char target[128];
        ssize_t length;

        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        length = readlink(path, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = '\0';
        if (length >= 0 && strchr(target, ':') != NULL)
            strchr(target, ':')[1] = '\0'; /* a pipe has a number */
        if (length >= 0)
            used += (size_t)snprintf(out + used, size - used, "%d %s\n", fd, target);
    }
}

typedef struct seen {
    uint32_t layers, landlock_abi;
    char text[16384];
} seen;

static void
see_worker(rig *self, bool forked, seen *out)
{
    self->config.flags = forked ? 0 : ERRAND_SANDBOX_NO_TEMPLATE;
    rig_begin(self);
    int32_t pid = forked ? next_forked(self) : next_worker(self);
    const rig_news *news = probe(self, "guard", 0);

    assert_int_equal(news->more.pid, pid);
    out->layers = news->more.layers;
    out->landlock_abi = news->more.landlock_abi;
    describe(pid, out->text, sizeof out->text);
    assert_int_equal(getpgid(pid), pid);
    assert_int_equal(rig_snapshot(self).forked != 0, forked);
    rig_end(self);
}

static void
compare(rig *self)
{
    static seen started, forked;

    see_worker(self, false, &started);
    see_worker(self, true, &forked);
    assert_int_equal(started.layers, forked.layers);
    assert_int_equal(started.landlock_abi, forked.landlock_abi);
    assert_string_equal(started.text, forked.text);
    assert_non_null(strstr(started.text, "Seccomp:\t2"));
}

static void
a_forked_worker_is_confined_as_a_started_one(void **state)
{
    rig *self = *state;
    const errand_sandbox_path path = {"/usr/share", ERRAND_PATH_READ};

    compare(self);
    self->policy.promises = ERRAND_PROMISE_RPATH | ERRAND_PROMISE_THREAD;
    self->policy.paths = &path;
    self->policy.path_count = 1;
    self->policy.shared_in_bytes = 1 << 20;
    self->policy.want_layers = 0xff | ERRAND_LAYER_CGROUP;
    self->policy.cpu_seconds = 7;
    compare(self);
}

static void
forked_workers_have_stack_guards_of_their_own(void **state)
{
    rig *self = *state;
    int64_t guards[4];

    rig_begin(self);
    for (int i = 0; i < 4; i++) {
        hostile_response response;

        next_forked(self);
        assert_int_equal(probe(self, "guard", 0)->outcome, ERRAND_COMPLETED);
        memcpy(&response, self->first, sizeof self->first);
        guards[i] = response.result;
        assert_int_equal(guards[i] & 0xff, 0);
        for (int k = 0; k < i && guards[i] != 0; k++)
            assert_true(guards[i] != guards[k]);
    }
#if defined(__x86_64__) && defined(__LP64__)
    assert_true(guards[0] != 0);
#endif
}

static void
forked_workers_end_as_others_do(void **state) /* S10, S11 */
{
    rig *self = *state;

    rig_begin(self);
    for (int i = 0; i < 5; i++) {
        next_forked(self);
        assert_int_equal(probe(self, "abort", 0)->signal_number, SIGABRT);
        next_forked(self);
        assert_int_equal(probe(self, "fork", 0)->outcome, ERRAND_COMPLETED);
    }
    next_forked(self);
    assert_int_equal(probe(self, "double free", 0)->signal_number, SIGABRT);
    next_forked(self);
    assert_int_equal(probe(self, "stack bomb", 0)->signal_number, SIGSEGV);
}

/* ---- what becomes of the template ---------------------------------------------------------------------- */

static void
a_pool_that_loses_no_worker_has_no_template(void **state)
{
    rig *self = *state;

    rig_begin(self);
    for (int i = 0; i < 20; i++)
        assert_int_equal(probe(self, "guard", 0)->outcome, ERRAND_COMPLETED);
    assert_int_equal(find_template(), 0);
    self->config.flags = ERRAND_SANDBOX_NO_TEMPLATE;
    rig_end(self);
    rig_begin(self);
    for (int i = 0; i < 5; i++)
        next_worker(self);
    assert_int_equal(find_template(), 0);
    assert_int_equal(rig_snapshot(self).forked, 0);
}

static void
a_template_that_is_killed_or_stopped_fails_no_start(void **state) /* S28 */
{
    rig *self = *state;
    static const int signals[] = {SIGKILL, SIGSTOP, SIGTERM};

    rig_begin(self);
    for (int i = 0; i < 3; i++) { /* the pauses add up to 0.7 s */
        next_forked(self);
        assert_int_equal(kill(await_template(), signals[i]), 0);
        next_worker(self);
        next_worker(self);
    }
    next_forked(self); /* one comes back */
    assert_int_equal(rig_snapshot(self).refused_starts, 0);
}

static void
deadlines_do_not_wait_for_a_template_that_hangs(void **state) /* S8 */
{
    rig *self = *state;
    errand_spec spec;

    self->config.workers_min = self->config.workers_max = 2;
    rig_begin(self);
    rig_await_ready(self, 2);
    next_forked(self);
    rig_await_ready(self, 2);
    assert_int_equal(kill(await_template(), SIGSTOP), 0);
    spec = probe_spec(self, "_exit", 3); /* its place waits for the template */
    rig_start_spec(self, 0, &spec);
    rig_await(self, self->count + 1);
    spec = probe_spec(self, "sleep", 60);
    spec.deadline_ns = UINT64_C(10000000);
    uint64_t began = errand__clock_now();
    assert_int_equal(await_one(self, &spec)->code, ERRAND_CODE_DEADLINE);
    assert_true(errand__clock_now() - began < UINT64_C(5000000000));
    assert_int_equal(probe(self, "guard", 0)->outcome, ERRAND_COMPLETED);
}

static void
a_pool_that_ends_takes_a_stopped_template_along(void **state) /* S15 */
{
    rig *self = *state;

    rig_begin(self);
    next_forked(self);
    assert_int_equal(kill(await_template(), SIGSTOP), 0);
    assert_int_equal(probe(self, "_exit", 3)->code, ERRAND_CODE_EXITED);
}

/* ---- programs that are none ------------------------------------------------------------------------------ */

typedef struct liar {
    char folder[32], path[64], real[64], count[64];
} liar;

static void
make_liar(liar *self, const char *mode)
{
    strcpy(self->folder, "/tmp/errand-liar-XXXXXX");
    assert_non_null(mkdtemp(self->folder));
    assert_int_equal(chmod(self->folder, 0755), 0);
    snprintf(self->path, sizeof self->path, "%s/%s", self->folder, mode);
    snprintf(self->real, sizeof self->real, "%s/real", self->folder);
    snprintf(self->count, sizeof self->count, "%s/count", self->folder);
    assert_true(test_copy_file(ERRAND_TEST_LIAR, self->path));
    assert_int_equal(symlink(test_reachable(ERRAND_TEST_WORKER), self->real), 0);
    int file = open(self->count, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    close(file);
}

static void
remove_liar(const liar *self)
{
    unlink(self->path);
    unlink(self->real);
    unlink(self->count);
    assert_int_equal(rmdir(self->folder), 0);
}

static void
a_template_that_talks_nonsense_fails_no_start(void **state) /* S28 */
{
    static const char *const modes[] = {"ends",    "greets", "leaves", "short",  "long",
                                        "refuses", "bare",   "null",   "itself", "host",
                                        "strays",  "ticket", "own",    "another"};
    rig *self = *state;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        liar made;

        print_message("[   MODE   ] %s\n", modes[i]);
        make_liar(&made, modes[i]);
        self->worker_path = made.path;
        rig_begin(self);
        for (int k = 0; k < 8; k++) /* the first start without, a later one by it */
            next_worker(self);
        assert_int_equal(rig_snapshot(self).forked, 0);
        assert_int_equal(rig_snapshot(self).refused_starts, 0);
        rig_end(self);
        remove_liar(&made);
        assert_int_equal(test_count_descriptors(), self->descriptors);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
}

static void
a_template_that_fails_is_tried_later_and_later(void **state)
{
    rig *self = *state;
    struct stat status;
    uint64_t began, allowed = 2;
    liar made;

    make_liar(&made, "refuses");
    self->worker_path = made.path;
    rig_begin(self);
    began = errand__clock_now();
    for (int i = 0; i < 40; i++)
        next_worker(self);
    /* 0.1 s, 0.2 s, 0.4 s ... between one and the next. */
    for (uint64_t pause = 100, sum = 0; sum < (errand__clock_now() - began) / 1000000;
         sum += pause, pause *= 2)
        allowed++;
    rig_end(self);
    assert_int_equal(stat(made.count, &status), 0);
    assert_in_range(status.st_size, 1, allowed);
    remove_liar(&made);
}

/* ---- who asks ---------------------------------------------------------------------------------------------- */

/* A host that was root when its template was started, whose workers are whoever it is. */
static void
give_up_root(rig *self)
{
    self->policy.want_layers =
        ERRAND_LAYER_NO_NEW_PRIVS | ERRAND_LAYER_SECCOMP | ERRAND_LAYER_RLIMITS;
    rig_begin(self);
    assert_int_equal(process_user(next_forked(self)), 0);
    assert_int_equal(setgroups(0, NULL), 0);
    assert_int_equal(setresgid(1, 1, 1), 0);
    assert_int_equal(setresuid(1, 1, 1), 0);
    next_worker(self); /* that one was there before */
    assert_int_equal(process_user(next_worker(self)), 1);
    assert_int_equal(process_user(next_forked(self)), 1);
    rig_end(self);
}

static void
a_host_that_is_no_longer_root_gets_no_worker_that_is(void **state)
{
    rig *self = *state;
    int status;

    if (geteuid() != 0)
        test_skip("only root can become another user");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        give_up_root(self);
        _exit(waitpid(-1, NULL, WNOHANG) == -1 ? 0 : 9);
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
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int
main(void)
{
#define WITH_TEMPLATE(test)                                                              \
    cmocka_unit_test_setup_teardown(test, template_setup, template_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_TEMPLATE(a_forked_worker_is_confined_as_a_started_one),
        WITH_TEMPLATE(forked_workers_have_stack_guards_of_their_own),
        WITH_TEMPLATE(forked_workers_end_as_others_do),
        WITH_TEMPLATE(a_pool_that_loses_no_worker_has_no_template),
        WITH_TEMPLATE(a_template_that_is_killed_or_stopped_fails_no_start),
        WITH_TEMPLATE(deadlines_do_not_wait_for_a_template_that_hangs),
        WITH_TEMPLATE(a_pool_that_ends_takes_a_stopped_template_along),
        WITH_TEMPLATE(a_template_that_talks_nonsense_fails_no_start),
        WITH_TEMPLATE(a_template_that_fails_is_tried_later_and_later),
        WITH_TEMPLATE(a_host_that_is_no_longer_root_gets_no_worker_that_is),
    };
    return test_group("workers/sandbox/pool_template", tests, group_setup, NULL);
}
