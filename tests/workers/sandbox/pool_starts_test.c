/* SPDX-License-Identifier: MIT */
/* Goal: a start that fails at any of its steps leaves no process, descriptor or memory, is told in
 * words, and the pool goes on as soon as it can; so do programs that end at once, are of another
 * version or were replaced, whoever takes the host's children.  Method: real workers; system calls of
 * the monitor's are answered by this file, and the n-th of them fails. */
#include "probe_rig.h"
#include "descriptors.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the n-th call fails ------------------------------------------------------------------------- */

/* left: calls until one fails, 0 = none will.  which: the name of the one that did.  stays: all
 * that follow fail, too, so that no second try gets through before the creator has looked.
 * Writers: the test, the monitor.  Readers: both.  Order: acq_rel.  Pairs: none.
 * Why: a test arms it while the monitor runs. */
static atomic_int left;
static atomic_bool stays;
static _Atomic(const char *) which;
static const char *const watched[] = {"memfd_create", "fallocate", "fcntl",
                                      "pipe2",        "clone",     "epoll_ctl"};

static bool
fails(const char *name)
{
    char thread[16] = "";

    prctl(PR_GET_NAME, thread, 0, 0, 0);
    if (strcmp(thread, "errand-monitor") != 0)
        return false;
    if (atomic_load_explicit(&stays, memory_order_acquire) &&
        atomic_load_explicit(&which, memory_order_acquire) != NULL)
        return true;
    if (atomic_load_explicit(&left, memory_order_acquire) <= 0 ||
        atomic_fetch_sub_explicit(&left, 1, memory_order_acq_rel) != 1)
        return false;
    atomic_store_explicit(&which, name, memory_order_release);
    return true;
}

#define FAIL_WITH(name, error)                                                           \
    do {                                                                                 \
        if (fails(name)) {                                                               \
            errno = error;                                                               \
            return -1;                                                                   \
        }                                                                                \
    } while (0)

int
memfd_create(const char *name, unsigned flags)
{
    FAIL_WITH("memfd_create", EMFILE);
    return (int)syscall(SYS_memfd_create, name, flags);
}

int
fallocate(int fd, int mode, off_t offset, off_t size)
{
    FAIL_WITH("fallocate", ENOSPC);
    return (int)syscall(SYS_fallocate, fd, mode, offset, size);
}

int
fcntl(int fd, int command, ...)
{
    va_list list;
    long argument;

    va_start(list, command);
    argument = va_arg(list, long);
    va_end(list);
    FAIL_WITH("fcntl", command == F_ADD_SEALS ? EPERM : EMFILE);
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

int
pipe2(int ends[2], int flags)
{
    FAIL_WITH("pipe2", EMFILE);
    return (int)syscall(SYS_pipe2, ends, flags);
}

int
epoll_ctl(int poll_fd, int operation, int fd, struct epoll_event *event)
{
    if (operation == EPOLL_CTL_ADD)
        FAIL_WITH("epoll_ctl", ENOSPC);
    return (int)syscall(SYS_epoll_ctl, poll_fd, operation, fd, event);
}

int __clone(int (*body)(void *), void *stack, int flags, void *arg, ...);

int
__clone(int (*body)(void *), void *stack, int flags, void *arg, ...)
{
    static int (*next)(int (*)(void *), void *, int, void *, ...);
    va_list list;
    int *fd;

    va_start(list, arg);
    fd = va_arg(list, int *);
    va_end(list);
    FAIL_WITH("clone", EAGAIN);
    if (next == NULL) {
        void *address = dlsym(RTLD_NEXT, "__clone");

        memcpy(&next, &address, sizeof next);
    }
    return next(body, stack, flags, arg, fd);
}

/* ---- starts ------------------------------------------------------------------------------------------ */

static int
starts_setup(void **state)
{
    rig *self;

    probe_setup(state);
    self = *state;
    self->config.flags =
        ERRAND_SANDBOX_NO_TEMPLATE; /* pool_template_test is about those */
    return 0;
}

static void
no_child_is_left(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static int
starts_teardown(void **state)
{
    int result = rig_teardown(state);

    atomic_store_explicit(&left, 0, memory_order_release);
    no_child_is_left();
    return result;
}

static errand_status
create(rig *self)
{
    self->text[0] = '\0';
    return errand_sandbox_create(&self->config, &self->executor, self->text,
                                 sizeof self->text);
}

/* The descriptors that are open, after the executor's own thread has let go of them. */
static void
check_descriptors(const rig *self)
{
    while (test_count_descriptors() != self->descriptors) /* the watchdog ends it */
        sched_yield();
}

static void
a_pool_whose_first_start_fails_leaves_nothing(void **state) /* S28, C-L10 */
{
    rig *self = *state;
    unsigned steps = 0, seen = 0;

    for (int n = 1;; n++) {
        atomic_store_explicit(&which, NULL, memory_order_release);
        atomic_store_explicit(&left, n, memory_order_release);
        atomic_store_explicit(&stays, true, memory_order_release);
        errand_status status = create(self);
        const char *name = atomic_load_explicit(&which, memory_order_acquire);

        atomic_store_explicit(&left, 0, memory_order_release);
        atomic_store_explicit(&stays, false, memory_order_release);
        if (name == NULL) {
            assert_int_equal(status, ERRAND_OK);
            errand_executor_abandon(&self->executor);
            break;
        }
        if (status != ERRAND_ESYSTEM)
            fail_msg("%s, the %d-th: %s", name, n, errand_status_name(status));
        assert_null(self->executor);
        assert_non_null(strstr(self->text, "could not be started"));
        check_descriptors(self);
        no_child_is_left();
        steps++;
        for (unsigned i = 0; i < 6; i++)
            seen |= strcmp(watched[i], name) == 0 ? 1u << i : 0;
    }
    self->config.worker_path =
        "/nowhere/errand-worker"; /* its process ends before it is one */
    assert_int_equal(create(self), ERRAND_ESYSTEM);
    no_child_is_left();
    check_descriptors(self);
    assert_int_equal(seen, 63);
    assert_true(steps >= 10); /* two files, a pipe, sources, the process, the poll */
}

static void
a_pool_whose_next_start_fails_recovers(void **state) /* S28, C-L10 */
{
    rig *self = *state;
    const char *name = "";
    int descriptors = 0;

    rig_begin(self);
    for (int n = 1; name != NULL; n++) {
        const rig_news *news = probe(self, "memory checked", 1);

        assert_int_equal(news->outcome, ERRAND_COMPLETED);
        rig_await_ready(self, 1);
        if (descriptors == 0)
            descriptors = test_count_descriptors();
        assert_int_equal(test_count_descriptors(), descriptors);
        atomic_store_explicit(&which, NULL, memory_order_release);
        atomic_store_explicit(&left, n, memory_order_release);
        assert_int_equal(probe(self, "_exit", 3)->code, ERRAND_CODE_EXITED);
        rig_await_ready(self, 1);
        name = atomic_load_explicit(&which, memory_order_acquire);
        atomic_store_explicit(&left, 0, memory_order_release);
    }
    assert_true(rig_snapshot(self).refused_starts >= 10);
}

/* ---- programs --------------------------------------------------------------------------------------- */

static void
write_program(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

static void
copy_program(const char *path, const char *from, const char *old, const char *new)
{
    FILE *source = fopen(from, "re"), *target = fopen(path, "we");
    size_t size, length = strlen(old);
    unsigned replaced = 0;
    char *bytes;

    assert_non_null(source);
    assert_non_null(target);
    assert_int_equal(fseek(source, 0, SEEK_END), 0);
    size = (size_t)ftell(source);
    rewind(source);
    bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, size, source), size);
    for (size_t i = 0; i + length < size; i++)
        if (memcmp(bytes + i, old, length + 1) == 0) {
            memcpy(bytes + i, new, length);
            replaced++;
        }
    assert_true(replaced > 0);
    assert_int_equal(fwrite(bytes, 1, size, target), size);
    free(bytes);
    fclose(source);
    fclose(target);
    assert_int_equal(chmod(path, 0755), 0);
}

static void
a_worker_of_another_version_is_refused_in_words(void **state) /* S28, 88 */
{
    rig *self = *state;
    char folder[] = "/tmp/errand-starts-XXXXXX", path[64], other[16];

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(path, sizeof path, "%s/errand-worker", folder);
    snprintf(other, sizeof other, "%s", errand_version());
    other[0] = other[0] == '9' ? '8' : '9';
    copy_program(path, test_reachable(ERRAND_TEST_WORKER), errand_version(), other);
    self->config.worker_path = path;
    assert_int_equal(create(self), ERRAND_ESYSTEM);
    assert_non_null(strstr(self->text, "install both from one build"));
    assert_non_null(strstr(self->text, other));
    unlink(path);
    rmdir(folder);
}

static void
a_program_that_is_replaced_ends_in_words_and_comes_back(void **state) /* S28, 88 */
{
    rig *self = *state;
    char folder[] = "/tmp/errand-starts-XXXXXX", path[64];
    const rig_news *news;

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(path, sizeof path, "%s/errand-worker", folder);
    assert_int_equal(symlink(test_reachable(ERRAND_TEST_WORKER), path), 0);
    self->worker_path = path;
    rig_begin(self);
    assert_int_equal(probe(self, "memory checked", 1)->outcome, ERRAND_COMPLETED);
    assert_int_equal(unlink(path), 0);
    write_program(path, "#!/bin/sh\nexit 3\n");
    assert_int_equal(probe(self, "_exit", 3)->code, ERRAND_CODE_EXITED);
    news = probe(self, "memory checked", 1);
    assert_int_equal(news->code, ERRAND_CODE_SPAWN);
    assert_non_null(strstr(news->message, "exited with status 3 before it was ready"));
    assert_int_equal(unlink(path), 0);
    news = probe(self, "memory checked", 1);
    assert_int_equal(news->code, ERRAND_CODE_SPAWN);
    assert_int_equal(symlink(test_reachable(ERRAND_TEST_WORKER), path), 0);
    rig_await_ready(self, 1);
    assert_int_equal(probe(self, "memory checked", 1)->outcome, ERRAND_COMPLETED);
    unlink(path);
    rmdir(folder);
}

/* ---- thieves ------------------------------------------------------------------------------------------ */

static void *
steal(void *arg)
{
    while (!atomic_load_explicit((atomic_bool *)arg, memory_order_acquire))
        (void)waitpid(-1, NULL, WNOHANG);
    return NULL;
}

static void
a_worker_that_dies_at_once_is_nobody_elses_child(void **state) /* S11, C-G6 */
{
    rig *self = *state;
    atomic_bool over;
    pthread_t thief;
    pid_t bystander = fork();

    if (bystander == 0) {
        pause();
        _exit(0);
    }
    atomic_init(&over, false);
    assert_int_equal(pthread_create(&thief, NULL, steal, &over), 0);
    self->config.worker_path = "/bin/true";
    for (int i = 0; i < 50; i++) {
        assert_int_equal(create(self), ERRAND_ESYSTEM);
        /* Its end is told, or that somebody took it; it never looks as if it had no pidfd. */
        assert_non_null(strstr(self->text, "before it was ready"));
    }
    self->config.worker_path = "/nowhere/errand-worker";
    for (int i = 0; i < 50; i++) {
        assert_int_equal(create(self), ERRAND_ESYSTEM);
        assert_non_null(strstr(self->text, "No such file"));
    }
    assert_int_equal(kill(bystander, 0), 0);
    kill(bystander, SIGKILL);
    while (kill(bystander, 0) == 0)
        sched_yield(); /* the thief takes it */
    atomic_store_explicit(&over, true, memory_order_release);
    pthread_join(thief, NULL);
}

int
main(void)
{
#define WITH_STARTS(test)                                                                \
    cmocka_unit_test_setup_teardown(test, starts_setup, starts_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_STARTS(a_pool_whose_first_start_fails_leaves_nothing),
        WITH_STARTS(a_pool_whose_next_start_fails_recovers),
        WITH_STARTS(a_worker_of_another_version_is_refused_in_words),
        WITH_STARTS(a_program_that_is_replaced_ends_in_words_and_comes_back),
        WITH_STARTS(a_worker_that_dies_at_once_is_nobody_elses_child),
    };
    return test_group("workers/sandbox/pool_starts", tests, NULL, NULL);
}
