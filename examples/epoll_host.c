/* SPDX-License-Identifier: MIT */
/* epoll_host: a runtime inside an event loop that somebody else owns.
 *
 *     cc epoll_host.c $(pkg-config --cflags --libs errand) && ./a.out
 *
 * The loop has a timer of its own and one descriptor of the runtime's, which is readable while
 * something is buffered.  The loop polls it, never reads it, and calls errand_drive when it is
 * ready.  Nothing else is needed; neither side knows the other. */
#define _POSIX_C_SOURCE 200809L /* nanosleep, with -std=c17 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <errand.h>
#include <errand/executor.h>
#include <errand/task.h>

#define JOBS 8

static void
must(errand_status status)
{
    if (status != ERRAND_OK) {
        fprintf(stderr, "%s\n", errand_status_text(status));
        exit(1);
    }
}

static void
must_system(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

/* ---- the work ------------------------------------------------------------------------------ */

/* Sleeps, as a call that blocks would. */
static int32_t
wait_a_little(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    struct timespec time = {0, *(const long *)state};
    nanosleep(&time, NULL);
    return 0;
}

static const errand_job_type waiting = {
    .struct_size = sizeof waiting, .name = "wait_a_little", .run = wait_a_little};

static void
on_completion(void *arg, errand_completion *completion)
{
    int *heard = arg;
    ++*heard;
    printf("%s ended: %d of %d\n", completion->operation, *heard, JOBS);
}

/* ---- the foreign loop ------------------------------------------------------------------------ */

static void
watch(int loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    must_system(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

static int
start_timer(void)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    must_system(timer, "timerfd_create");
    struct itimerspec each = {.it_interval.tv_nsec = 5000000,
                              .it_value.tv_nsec = 5000000};
    must_system(timerfd_settime(timer, 0, &each, NULL), "timerfd_settime");
    return timer;
}

/* Everything that the runtime has to do now, in bounded turns. */
static void
drive(errand_runtime *runtime)
{
    errand_turn turn;
    do
        must(errand_drive(runtime, NULL, &turn));
    while (turn.kind == ERRAND_TURN_PROGRESS);
}

int
main(void)
{
    static const long times[JOBS] = {40000000, 10000000, 30000000, 20000000,
                                     5000000,  15000000, 35000000, 25000000};
    int heard = 0, ticks = 0, wake;
    errand_runtime *runtime;
    errand_executor *pool;
    errand_lease *lease;
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .on_completion = on_completion,
                                    .held_on_completion_arg = &heard};
    must(errand_runtime_create(&config, &runtime));
    must(errand_blocking_create(NULL, &pool));
    must(errand_attach(runtime, pool, 0, &lease));
    must(errand_runtime_wake_fd(runtime, &wake));

    for (int i = 0; i < JOBS; i++) {
        errand_spec spec = ERRAND_SPEC_INIT;
        spec.kind = 1;
        spec.resource_class = ERRAND_QUARANTINED_BLOCKING; /* nanosleep knows no token */
        spec.quarantine_ns = 1000000000; /* beyond it, it is written off */
        spec.held_job = &waiting;
        spec.state = (void *)(uintptr_t)&times[i];
        must(errand_start(lease, &spec, NULL, NULL));
    }

    int loop = epoll_create1(EPOLL_CLOEXEC), timer = start_timer();
    must_system(loop, "epoll_create1");
    watch(loop, timer);
    watch(loop, wake);
    while (heard < JOBS) {
        struct epoll_event events[4];
        int count = epoll_wait(loop, events, 4, -1);
        for (int i = 0; i < count; i++) {
            uint64_t expired;
            if (events[i].data.fd == wake)
                drive(runtime);
            else if (read(timer, &expired, sizeof expired) == (ssize_t)sizeof expired)
                ticks += (int)expired;
        }
    }
    printf("%d completions, and the loop's own timer ticked %s\n", heard,
           ticks > 0 ? "meanwhile" : "never");

    close(timer);
    close(loop);
    must(errand_runtime_shutdown(&runtime, errand_deadline_in(1000000000),
                                 ERRAND_SHUTDOWN_QUIET, NULL));
    errand_executor_abandon(&pool);
    return 0;
}
