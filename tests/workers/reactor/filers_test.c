/* SPDX-License-Identifier: MIT */
/* Goal: what a back end cannot wait for is done, whichever threads and descriptors the system refuses
 * and whenever those that are there end, and a close never leaves its descriptor.
 * Method: refused threads, refused descriptors, and gates at the pause points of filers. */
#include <string.h>
#include <sys/resource.h>
#include "rig.h"
#include "workers/reactor/reactor.h"

/* A file of 10 bytes without a name; neither back end can change its size without a filer. */
static int
file_here(void)
{
    const char *base = getenv("TMPDIR");
    char path[256];
    int fd;

    snprintf(path, sizeof path, "%s/errand-filers-XXXXXX", base != NULL ? base : "/tmp");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ftruncate(fd, 10), 0);
    return fd;
}

static errand_io
resize(int fd, int64_t size)
{
    return (errand_io){.kind = ERRAND_IO_TRUNCATE, .fd = fd, .offset = size};
}

static int64_t
size_of(int fd)
{
    return lseek(fd, 0, SEEK_END);
}

/* ---- no thread at all -------------------------------------------------------------------------- */

static void
refused_body(scene *world, const rig_config *config)
{
    const errand__filers *filers = errand__reactor_of(world->executor)->filers;
    int fd = file_here(), ends[2];
    unsigned left;

    (void)config;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    errand_testing_refuse_threads(UINT32_MAX);
    assert_int_equal(rig_do(world, resize(fd, 5)), 0);
    assert_int_equal(size_of(fd), 5);
    /* Nobody reads that pipe: its signal is not for the host's thread (O62). */
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_SPLICE,
                                               .fd = fd,
                                               .offset = 0,
                                               .to_fd = ends[1],
                                               .to_offset = -1,
                                               .length = 5}),
                     -EPIPE);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_CLOSE, .fd = fd}), 0);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    left = atomic_load_explicit(&filers->threads, memory_order_relaxed);
    assert_int_equal(left, 0);
    errand_testing_refuse_threads(0);
    close(ends[1]);
}

/* L3: a close that nobody does would leave the descriptor. */
static void
where_no_thread_can_be_made_the_loop_does_it_itself(void **state)
{
    (void)state;
    rig_each(refused_body);
}

/* L3 */
static void
a_close_is_done_by_a_loop_that_has_no_back_end(void **state)
{
    (void)state;
    for (int i = 0; i < RIG_CONFIGS; i++) {
        scene world;
        struct rlimit before, none;
        int fd = file_here();

        if (rig_configs[i].threads != 0 || !rig_open(&world, &rig_configs[i], 1, 0)) {
            close(fd);
            continue;
        }
        assert_int_equal(errand_runtime_release(world.runtimes[0]), ERRAND_OK);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        none = (struct rlimit){0, before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        assert_int_equal(errand_runtime_adopt(world.runtimes[0]), ERRAND_OK);
        assert_int_equal(rig_do(&world, (errand_io){.kind = ERRAND_IO_CLOSE, .fd = fd}),
                         0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(fcntl(fd, F_GETFD), -1);
        scene_close(&world);
    }
}

/* O1: the loop has what it needs for filers from its start. */
static void
a_size_is_changed_where_no_descriptor_is_left(void **state)
{
    (void)state;
    for (int i = 0; i < RIG_CONFIGS; i++) {
        scene world;
        struct rlimit before, none;
        int fd = file_here();

        if (!rig_open(&world, &rig_configs[i], 1, 0)) {
            close(fd);
            continue;
        }
        assert_int_equal(rig_do(&world, (errand_io){.kind = ERRAND_IO_NOTHING}), 0);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        none = (struct rlimit){0, before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        assert_int_equal(rig_do(&world, resize(fd, 5)), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(size_of(fd), 5);
        close(fd);
        scene_close(&world);
    }
}

/* ---- threads that come and go -------------------------------------------------------------------- */

/* Stops the first so many threads at a place. */
typedef struct held_place {
    const char *place;
    int limit;
    atomic_int seen;
    test_gate gate;
} held_place;

static void
hold(void *arg, const char *place)
{
    held_place *self = arg;

    if (strcmp(place, self->place) == 0 &&
        atomic_fetch_add_explicit(&self->seen, 1, memory_order_relaxed) < self->limit)
        gate_wait(&self->gate);
}

static bool
open_with_helpers(scene *world, uint32_t backend, uint32_t loops, uint32_t helpers)
{
    errand_reactor_config wanted = {.struct_size = sizeof wanted,
                                    .threads = loops,
                                    .backend = backend,
                                    .helpers = helpers};
    errand_executor *executor;
    errand_status status;

    scene_begin(world);
    status = errand_reactor_create(&wanted, &executor);
    if (status == ERRAND_EUNSUPPORTED && backend == ERRAND_REACTOR_URING)
        return false;
    assert_int_equal(status, ERRAND_OK);
    scene_open(world, executor, (int)loops, NULL, 0);
    return true;
}

static const uint32_t backends[] = {ERRAND_REACTOR_URING, ERRAND_REACTOR_EPOLL};

/* O1 */
static void
a_request_behind_the_back_of_the_last_filer_is_done(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        held_place leaver = {.place = "filer-ends", .limit = 1};
        scene world;
        int fd = file_here();

        if (!open_with_helpers(&world, backends[i], 1, 1)) {
            close(fd);
            continue;
        }
        gate_init(&leaver.gate, "a filer that ends");
        errand_testing_pause(hold, &leaver);
        errand__reactor_of(world.executor)->filers->idle_ns = 1;
        assert_int_equal(rig_do(&world, resize(fd, 5)), 0);
        gate_await_arrival(&leaver.gate); /* it does not look at the queue again */
        assert_int_equal(rig_do(&world, resize(fd, 7)), 0);
        assert_int_equal(size_of(fd), 7);
        gate_open(&leaver.gate);
        scene_close(&world);
        errand_testing_pause(NULL, NULL);
        gate_fini(&leaver.gate);
        close(fd);
    }
}

/* O1: each of the two counts on the other's filer, and neither gets one. */
static void
requests_of_two_loops_that_are_both_refused_a_thread_are_done(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        held_place maker = {.place = "filer-wanted", .limit = 2};
        int fds[2] = {file_here(), file_here()};
        rig_script scripts[2] = {{.steps = {resize(fds[0], 5)}, .count = 1},
                                 {.steps = {resize(fds[1], 7)}, .count = 1}};
        scene world;

        if (!open_with_helpers(&world, backends[i], 2, 2)) {
            close(fds[0]);
            close(fds[1]);
            continue;
        }
        gate_init(&maker.gate, "a filer to be made");
        errand_testing_pause(hold, &maker);
        errand_testing_refuse_threads(UINT32_MAX);
        for (int at = 0; at < 2; at++)
            scene_poll(&world, at, &rig_script_job, &scripts[at]);
        for (int at = 0; at < 2; at++)
            gate_await_arrival(&maker.gate);
        gate_open_many(&maker.gate, 2);
        for (int at = 0; at < 2; at++) {
            scene_await(&world, at, 1);
            assert_int_equal(world.seen[at].outcomes[ERRAND_COMPLETED], 1);
        }
        assert_int_equal(size_of(fds[0]), 5);
        assert_int_equal(size_of(fds[1]), 7);
        errand_testing_refuse_threads(0);
        scene_close(&world);
        errand_testing_pause(NULL, NULL);
        gate_fini(&maker.gate);
        close(fds[0]);
        close(fds[1]);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_no_thread_can_be_made_the_loop_does_it_itself),
        cmocka_unit_test(a_close_is_done_by_a_loop_that_has_no_back_end),
        cmocka_unit_test(a_size_is_changed_where_no_descriptor_is_left),
        cmocka_unit_test(a_request_behind_the_back_of_the_last_filer_is_done),
        cmocka_unit_test(requests_of_two_loops_that_are_both_refused_a_thread_are_done),
    };
    return test_group("workers/reactor/filers", tests, NULL, NULL);
}
