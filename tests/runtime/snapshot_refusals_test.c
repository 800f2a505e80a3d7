/* SPDX-License-Identifier: MIT */
/* Goal: where a fork would not copy all of a run, or the two would share something, it is refused
 * with the reason, and nothing has changed.
 * Method: one world for each thing that is in the way; a fork of this file's that can fail. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "actor.h"
#include "errand/record.h"
#include "errand/snapshot.h"
#include "forks.h"
#include "gate.h"

static void
assert_refused(errand_runtime *runtime, const char *why)
{
    char text[160] = "";
    int64_t child = -1;

    assert_int_equal(errand_snapshot_fork(runtime, text, sizeof text, &child),
                     ERRAND_EUNSUPPORTED);
    assert_int_equal(child, -1);
    assert_non_null(strstr(text, why));
}

/* O61 */
static void
other_orders_are_refused(void **state)
{
    test_world *in = *state;
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ERRAND_ORDER_PACED};

    world_end(in);
    world_begin(in, &config, 0);
    assert_refused(in->runtime, "inline order");
    world_end(in);
    config.order = ERRAND_ORDER_ARRIVAL;
    world_begin(in, &config, 0);
    assert_refused(in->runtime, "inline order");
    assert_int_equal(errand_snapshot_branch(in->runtime, 1), ERRAND_EUNSUPPORTED);
    assert_int_equal(in->last_misuse, ERRAND_EUNSUPPORTED);
}

/* O61 */
static void
an_executor_with_threads_is_refused(void **state)
{
    test_world *in = *state;

    world_pool(in, 1);
    assert_refused(in->runtime, "executor has threads of its own");
}

static void *
stand_by(void *arg)
{
    gate_wait(arg);
    return NULL;
}

/* O61 */
static void
another_thread_is_refused_as_long_as_it_is_there(void **state)
{
    test_world *in = *state;
    pthread_t thread;
    test_gate gate;
    int64_t child = -1;

    need_one_thread();
    gate_init(&gate, "another thread");
    assert_int_equal(pthread_create(&thread, NULL, stand_by, &gate), 0);
    assert_refused(in->runtime, "another thread");
    gate_open(&gate);
    pthread_join(thread, NULL);
    gate_fini(&gate);
    while (errand_snapshot_fork(in->runtime, NULL, 0, &child) == ERRAND_EUNSUPPORTED)
        continue; /* the system takes it off its list a little later */
    if (child == 0)
        _exit(0);
    await_child(child);
}

static void
a_log_and_a_wake_descriptor_are_refused(void **state)
{
    test_world *in = *state;
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ERRAND_ORDER_INLINE};
    errand_recorder_config log = {.struct_size = sizeof log, .path = "/dev/null"};
    int fd;

    world_end(in);
    assert_int_equal(errand_recorder_open(&log, &config.held_recorder), ERRAND_OK);
    world_begin(in, &config, 0);
    assert_refused(in->runtime, "log");
    world_end(in);
    assert_int_equal(errand_recorder_close(&config.held_recorder), ERRAND_OK);
    world_begin(in, &config, 0);
    assert_int_equal(errand_runtime_wake_fd(in->runtime, &fd), ERRAND_OK);
    assert_refused(in->runtime, "wake descriptor");
}

static void
a_replay_is_refused_and_sent_no_other_way(void **state)
{
    test_world *in = *state;
    char path[] = "snapshot_test.XXXXXX";
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ERRAND_ORDER_INLINE};
    errand_recorder_config log = {.struct_size = sizeof log, .path = path};
    errand_replay_config again = {.struct_size = sizeof again, .path = path};
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    world_end(in);
    assert_int_equal(errand_recorder_open(&log, &config.held_recorder), ERRAND_OK);
    world_begin(in, &config, 0);
    world_end(in);
    assert_int_equal(errand_recorder_close(&config.held_recorder), ERRAND_OK);
    config = (errand_runtime_config){.struct_size = sizeof config,
                                     .order = ERRAND_ORDER_REPLAY};
    assert_int_equal(errand_replay_open(&again, &config.held_replay, NULL, 0), ERRAND_OK);
    world_begin(in, &config, 0);
    assert_refused(in->runtime, "log");
    assert_int_equal(errand_snapshot_branch(in->runtime, 1), ERRAND_EUNSUPPORTED);
    world_end(in);
    assert_int_equal(errand_replay_close(&config.held_replay), ERRAND_OK);
    in->bytes = errand_testing_live_bytes();
    unlink(path);
}

static void
fork_inside(errand_job *job, world_job *self)
{
    int64_t child = -1;

    (void)job;
    assert_int_equal(errand_snapshot_fork(self->world->runtime, NULL, 0, &child),
                     ERRAND_EBUSY);
    assert_int_equal(child, -1);
}

static void
a_job_cannot_be_forked_in_its_middle(void **state)
{
    test_world *in = *state;
    world_job job = {.world = in, .inside = fork_inside};

    world_start(in, &job);
    drive_all(in);
    assert_int_equal(job.ran, 1);
}

/* Stands before the C library's. */
static bool no_process;

pid_t
fork(void)
{
    pid_t (*real)(void) = (pid_t(*)(void))(uintptr_t)dlsym(RTLD_NEXT, "fork");

    if (no_process) {
        errno = EAGAIN;
        return -1;
    }
    return real();
}

static void
a_system_without_processes_changes_nothing(void **state)
{
    test_world *in = *state;
    char text[160] = "";
    int64_t child = -1;

    need_one_thread();
    no_process = true;
    assert_int_equal(errand_snapshot_fork(in->runtime, text, sizeof text, &child),
                     ERRAND_ESYSTEM);
    no_process = false;
    assert_int_equal(child, -1);
    assert_non_null(strstr(text, "refuses"));
    assert_int_equal(errand_snapshot_fork(in->runtime, text, 1, NULL), ERRAND_EINVAL);
    assert_int_equal(errand_snapshot_fork(in->runtime, NULL, 1, &child), ERRAND_EINVAL);
}

#define INLINE_TEST(fn) cmocka_unit_test_setup_teardown(fn, actors_setup, world_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        INLINE_TEST(other_orders_are_refused),
        INLINE_TEST(an_executor_with_threads_is_refused),
        INLINE_TEST(another_thread_is_refused_as_long_as_it_is_there),
        INLINE_TEST(a_log_and_a_wake_descriptor_are_refused),
        INLINE_TEST(a_replay_is_refused_and_sent_no_other_way),
        INLINE_TEST(a_job_cannot_be_forked_in_its_middle),
        INLINE_TEST(a_system_without_processes_changes_nothing),
    };

    return test_group("runtime/snapshot_refusals", tests, NULL, NULL);
}
