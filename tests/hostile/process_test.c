/* SPDX-License-Identifier: MIT */
/* Goal: the library's threads take no signal of the host's and cannot be cancelled, and the process is
 * afterwards what it was before (O60, O62).
 * Method: signals, threads' masks in /proc, and a copy of everything that belongs to the process,
 * around a life that uses every executor and ready-made operations with children. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "errand/async.h"
#include "errand/executor.h"
#include "errand/operations.h"
#include "errand/testing.h"
#include "gate.h"
#include "group.h"

static test_gate gate;

typedef struct life {
    errand_runtime *runtime;
    errand_executor *blocking, *async;
    errand_lease *blocking_lease, *async_lease;
    size_t heard;
} life;

static void
life_begin(life *self)
{
    errand_blocking_config config = {
        .struct_size = sizeof config, .workers_min = 2, .workers_max = 2};

    *self = (life){.heard = 0};
    assert_int_equal(errand_runtime_create(NULL, &self->runtime), ERRAND_OK);
    assert_int_equal(errand_blocking_create(&config, &self->blocking), ERRAND_OK);
    assert_int_equal(errand_async_create(NULL, &self->async), ERRAND_OK);
    assert_int_equal(
        errand_attach(self->runtime, self->blocking, 0, &self->blocking_lease),
        ERRAND_OK);
    assert_int_equal(errand_attach(self->runtime, self->async, 0, &self->async_lease),
                     ERRAND_OK);
}

static void
life_start(life *self, const errand_job_type *type, void *state)
{
    bool is_async = type->poll != NULL;
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class =
        is_async ? ERRAND_INTERRUPTIBLE_ASYNC : ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = type;
    spec.state = state;
    assert_int_equal(errand_start(is_async ? self->async_lease : self->blocking_lease,
                                  &spec, NULL, NULL),
                     ERRAND_OK);
}

static void
hear(void *arg, errand_completion *completion)
{
    assert_int_equal(completion->outcome, ERRAND_COMPLETED);
    ((life *)arg)->heard++;
}

static void
life_await(life *self, size_t heard)
{
    while (self->heard < heard) {
        assert_int_equal(errand_park(self->runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(self->runtime, SIZE_MAX, hear, self, NULL),
                         ERRAND_OK);
    }
}

static void
life_end(life *self)
{
    assert_int_equal(errand_runtime_shutdown(&self->runtime,
                                             errand_deadline_in(UINT64_C(5000000000)),
                                             ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
    errand_executor_abandon(&self->blocking);
    errand_executor_abandon(&self->async);
}

/* ---- signals --------------------------------------------------------------------------------------------- */

typedef struct thread_view { /* a library thread, seen from its body */
    pthread_t thread;
    sigset_t blocked;
    int cancel_state;
    bool survived;
} thread_view;

static int32_t
look_around(errand_job *job, void *state, errand_payload *out_payload)
{
    thread_view *self = state;

    (void)job;
    (void)out_payload;
    self->thread = pthread_self();
    pthread_sigmask(SIG_SETMASK, NULL, &self->blocked);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &self->cancel_state);
    pthread_setcancelstate(self->cancel_state, NULL);
    gate_wait(&gate); /* here it is cancelled and signalled */
    pthread_testcancel();
    self->survived = true;
    return 0;
}
static const errand_job_type blocking_view = {
    .struct_size = sizeof(errand_job_type), .name = "look", .run = look_around};
static const errand_job_type async_view = {
    .struct_size = sizeof(errand_job_type), .name = "look", .poll = look_around};

static void
check_mask(const sigset_t *blocked)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

    for (int number = 1; number <= SIGRTMAX; number++) {
        bool is_own = false;

        if (number == SIGKILL || number == SIGSTOP || (number >= 32 && number < SIGRTMIN))
            continue; /* nobody can block these */
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
            is_own = is_own || own[i] == number;
        assert_int_equal(sigismember(blocked, number), !is_own);
    }
}

static void
library_threads_take_no_signal_and_no_cancel(void **state)
{
    /* O60 */
    thread_view views[3];
    sigset_t ours, before, pending;
    life self;

    (void)state;
    memset(views, 0, sizeof views);
    gate_init(&gate, "look around");
    sigemptyset(&ours);
    sigaddset(&ours, SIGUSR1);
    sigaddset(&ours, SIGTERM);
    life_begin(&self); /* nothing is blocked here: theirs is their own */
    life_start(&self, &blocking_view, &views[0]);
    life_start(&self, &blocking_view, &views[1]);
    life_start(&self, &async_view, &views[2]);
    for (int i = 0; i < 3; i++)
        gate_await_arrival(&gate);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &ours, &before), 0);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    for (int i = 0; i < 3; i++) {
        check_mask(&views[i].blocked);
        assert_int_equal(views[i].cancel_state, PTHREAD_CANCEL_DISABLE);
        assert_int_equal(pthread_cancel(views[i].thread), 0);
    }
    sigpending(&pending); /* nobody took them */
    assert_int_equal(sigismember(&pending, SIGUSR1), 1);
    assert_int_equal(sigismember(&pending, SIGTERM), 1);
    gate_open_many(&gate, 3);
    life_await(&self, 3);
    for (int i = 0; i < 3; i++)
        assert_true(views[i].survived);
    int number;
    for (int i = 0; i < 2; i++)
        assert_int_equal(sigwait(&ours, &number), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    life_end(&self);
    gate_fini(&gate);
}

/* ---- what belongs to the process ---------------------------------------------------------------------------- */

typedef struct process {
    void (*handlers[65])(int);
    int flags[65];
    bool blocked[65];
    mode_t mask_of_files;
    char folder[4096], locale[256];
    char **environment;
    size_t variables;
    struct rlimit limits[RLIM_NLIMITS];
    int niceness, descriptors;
} process;

extern char **environ;

/* How many are open; each above the first few has to be closed on exec. */
static int
count_descriptors(int *out_inherited)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    int count = 0;

    *out_inherited = 0;
    while ((entry = readdir(folder)) != NULL) {
        int fd = atoi(entry->d_name);

        if (entry->d_name[0] == '.' || fd == dirfd(folder))
            continue;
        count++;
        *out_inherited += (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
    }
    closedir(folder);
    return count;
}

static void
process_read(process *self)
{
    struct sigaction action;
    sigset_t mask;
    int inherited;

    memset(self, 0, sizeof *self);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number <= 64; number++) {
        if (sigaction(number, NULL, &action) != 0)
            continue;
        self->handlers[number] = action.sa_handler;
        self->flags[number] = action.sa_flags;
        self->blocked[number] = sigismember(&mask, number) == 1;
    }
    self->mask_of_files = umask(0);
    umask(self->mask_of_files);
    assert_non_null(getcwd(self->folder, sizeof self->folder));
    snprintf(self->locale, sizeof self->locale, "%s", setlocale(LC_ALL, NULL));
    self->environment = environ;
    while (environ[self->variables] != NULL)
        self->variables++;
    for (int i = 0; i < RLIM_NLIMITS; i++)
        (void)getrlimit((__rlimit_resource_t)i, &self->limits[i]);
    self->niceness = getpriority(PRIO_PROCESS, 0);
    self->descriptors = count_descriptors(&inherited);
}

static void
use_everything(life *self)
{
    const char *const argv[] = {"true", NULL};
    errand_command_config command = {.struct_size = sizeof command, .argv = argv};
    size_t expected = 0;
    errand_spec specs[5];

    assert_int_equal(errand_spec_read_file(&specs[0], "/proc/self/comm", 0), ERRAND_OK);
    assert_int_equal(errand_spec_list_dir(&specs[1], "/", 0), ERRAND_OK);
    assert_int_equal(errand_spec_command(&specs[2], &command), ERRAND_OK);
    assert_int_equal(errand_spec_resolve(&specs[3], "127.0.0.1", "80", 0), ERRAND_OK);
    assert_int_equal(errand_spec_sleep(&specs[4], 1000000), ERRAND_OK);
    for (int i = 0; i < 5; i++, expected++)
        assert_int_equal(errand_start(self->blocking_lease, &specs[i], NULL, NULL),
                         ERRAND_OK);
    life_await(self, expected);
}

static void
process_is_afterwards_what_it_was_before(void **state)
{
    /* O62 */
    static process before, after;
    int fd, inherited_before, inherited, open_before, status = -1;
    life self;

    (void)state;
    signal(SIGUSR2, SIG_IGN);
    process_read(&before);
    open_before = count_descriptors(&inherited_before);
    pid_t child = fork(); /* a child that the library did not make */
    if (child == 0)
        _exit(7);
    assert_true(child > 0);
    life_begin(&self);
    assert_int_equal(errand_runtime_wake_fd(self.runtime, &fd), ERRAND_OK);
    use_everything(&self);
    assert_true(count_descriptors(&inherited) > open_before);
    assert_int_equal(inherited, inherited_before); /* all of ours are close-on-exec */
    life_end(&self);
    while (count_descriptors(&inherited) > open_before) /* a thread closes the last */
        usleep(1000);
    process_read(&after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(waitpid(child, &status, 0), child); /* nobody waited for it */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    signal(SIGUSR2, SIG_DFL);
}

static void
descriptors_keep_clear_of_the_standard_ones(void **state)
{
    /* O62 */
    int saved[3], fd, low = 0;
    errand_runtime *runtime;
    errand_executor *async;
    errand_status status;

    (void)state;
    fflush(NULL);
    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    status = errand_runtime_create(NULL, &runtime);
    if (status == ERRAND_OK)
        status = errand_runtime_wake_fd(runtime, &fd);
    if (status == ERRAND_OK)
        status = errand_async_create(NULL, &async);
    for (int i = 0; i < 3; i++)
        low += fcntl(i, F_GETFD) >= 0;
    for (int i = 0; i < 3; i++) {
        dup2(saved[i], i);
        close(saved[i]);
    }
    assert_int_equal(status, ERRAND_OK);
    assert_int_equal(low, 0);
    assert_true(fd > 2);
    errand_executor_abandon(&async);
    assert_int_equal(errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL),
                     ERRAND_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_threads_take_no_signal_and_no_cancel),
        cmocka_unit_test(process_is_afterwards_what_it_was_before),
        cmocka_unit_test(descriptors_keep_clear_of_the_standard_ones),
    };

    return test_group("hostile/process", tests, NULL, NULL);
}
