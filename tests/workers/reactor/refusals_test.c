/* SPDX-License-Identifier: MIT */
/* Goal: what a reactor refuses, it refuses by the status that the header names, and changes nothing;
 * and where the kernel refuses io_uring, it says why and goes on.
 * Method: limits, refused threads and allocations; a filter on the system call in a child. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/stat.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "rig.h"
#include "workers/reactor/reactor.h"

static void
creating_a_reactor_is_refused_by_name(void **state)
{
    (void)state;
    errand_reactor_config config = {.struct_size = sizeof config, .threads = 2};
    errand_reactor_config wrong = config;
    errand_executor *executor = NULL;
    struct rlimit before, none;

    wrong.struct_size--;
    assert_int_equal(errand_reactor_create(&wrong, &executor), ERRAND_EINVAL);
    wrong = config;
    wrong.threads = 65;
    assert_int_equal(errand_reactor_create(&wrong, &executor), ERRAND_EINVAL);
    wrong = config;
    wrong.name = "twelve bytes";
    assert_int_equal(errand_reactor_create(&wrong, &executor), ERRAND_EINVAL);
    errand_testing_refuse_threads(1);
    assert_int_equal(errand_reactor_create(&config, &executor), ERRAND_ENOTHREAD);
    errand_testing_refuse_threads(0);
    for (uint64_t n = 1; n < 6; n++) {
        errand_status status;

        errand_testing_fail_allocation(n);
        status = errand_reactor_create(&config, &executor);
        errand_testing_fail_allocation(0);
        if (status != ERRAND_OK)
            assert_int_equal(status, ERRAND_ENOMEM); /* of errand_reactor_create */
        else
            errand_executor_abandon(&executor);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    config.backend = ERRAND_REACTOR_EPOLL;
    assert_int_equal(errand_reactor_create(&config, &executor), ERRAND_ESYSTEM);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_null(executor);
}

static void
attaching_without_descriptors_or_memory_changes_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < RIG_CONFIGS; i++) {
        scene world;
        errand_lease *lease;
        struct rlimit before, none;

        scene_begin(&world);
        if (!rig_create(&rig_configs[i], 0, &world.executor))
            continue;
        assert_int_equal(errand_runtime_create(NULL, &world.runtimes[0]), ERRAND_OK);
        for (uint64_t n = 1;; n++) {
            errand_status status;

            errand_testing_fail_allocation(n);
            status = errand_attach(world.runtimes[0], world.executor, 0, &lease);
            errand_testing_fail_allocation(0);
            if (status == ERRAND_OK)
                break;
            assert_true(status == ERRAND_ENOMEM || status == ERRAND_ESYSTEM);
        }
        world.leases[0] = lease;
        assert_int_equal(errand_runtime_create(NULL, &world.runtimes[1]), ERRAND_OK);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        none = (struct rlimit){0, before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        if (rig_configs[i].threads == 0)
            assert_int_equal(errand_attach(world.runtimes[1], world.executor, 0, &lease),
                             ERRAND_ESYSTEM);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        scene_close(&world);
    }
}

/* ---- inside a job ---------------------------------------------------------------------------------- */

static int32_t
poll_misuse(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_io *io = state;
    errand_io wrong = {.kind = ERRAND_IO_KINDS}, nothing = {.kind = ERRAND_IO_CALL};
    int32_t ring[2];
    errand_io empty = {.kind = ERRAND_IO_ACCEPT_MANY, .buffer = ring, .length = 2};

    (void)out_payload;
    if (io->done)
        return 0;
    if (errand_io_start(job, &wrong) != ERRAND_EINVAL ||
        errand_io_start(job, NULL) != ERRAND_EINVAL)
        return 1;
    if (errand_io_start(job, io) != ERRAND_OK)
        return 2;
    if (errand_io_start(job, io) != ERRAND_EMISUSE)
        return 3;
    if (errand_io_start(NULL, &empty) != ERRAND_EUNSUPPORTED)
        return 4;
    if (errand_io_start(job, &nothing) != ERRAND_EINVAL)
        return 7;
    if (errand_io_consume(job, &empty, 1) != ERRAND_EINVAL ||
        errand_io_consume(job, io, 0) != ERRAND_EINVAL)
        return 5;
    if (errand_io_consume(NULL, &empty, 0) != ERRAND_EUNSUPPORTED)
        return 6;
    return ERRAND_PENDING;
}
static const errand_job_type misuse_job = {
    .struct_size = sizeof(errand_job_type), .name = "misuse", .poll = poll_misuse};

static void
misuse_body(scene *world, const rig_config *config)
{
    errand_io io = {.kind = ERRAND_IO_NOTHING};

    (void)config;
    errand_misuse_hook(NULL, NULL);
    scene_poll(world, 0, &misuse_job, &io);
    scene_await(world, 0, 1);
    assert_int_equal(world->seen[0].outcomes[ERRAND_COMPLETED], 1);
}

static void
requests_that_are_misuse_are_refused_and_leave_nothing_under_way(void **state)
{
    (void)state;
    rig_each(misuse_body);
}

static int32_t
poll_elsewhere(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)out_payload;
    if (errand_job_helpers(job) != NULL)
        return 2;
    return errand_io_start(job, state) == ERRAND_EUNSUPPORTED ? 0 : 1;
}
static const errand_job_type elsewhere_job = {
    .struct_size = sizeof(errand_job_type), .name = "elsewhere", .poll = poll_elsewhere};

static int32_t
run_blocking(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 0;
}
static const errand_job_type blocking_job = {
    .struct_size = sizeof(errand_job_type), .name = "blocking", .run = run_blocking};

static void
only_a_reactor_carries_requests_and_it_runs_no_blocking_job(void **state)
{
    (void)state;
    scene world;
    errand_executor *executor;
    errand_io io = {.kind = ERRAND_IO_NOTHING};
    errand_spec spec = ERRAND_SPEC_INIT;

    errand_misuse_hook(NULL, NULL);
    scene_begin(&world);
    assert_int_equal(errand_async_create(NULL, &executor), ERRAND_OK);
    scene_open(&world, executor, 1, NULL, 0);
    assert_null(errand_reactor_backend(executor));
    scene_poll(&world, 0, &elsewhere_job, &io);
    scene_await(&world, 0, 1);
    assert_int_equal(world.seen[0].outcomes[ERRAND_COMPLETED], 1);
    scene_close(&world);
    assert_true(rig_open(&world, &rig_configs[1], 1, 0));
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &blocking_job;
    assert_int_equal(errand_start(world.leases[0], &spec, NULL, NULL),
                     ERRAND_EUNSUPPORTED);
    scene_close(&world);
}

/* ---- a kernel that refuses ----------------------------------------------------------------------------- */

static bool
refuse(unsigned call)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = 4, .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

static int
child_without(unsigned call)
{
    errand_reactor_config config = {.struct_size = sizeof config};
    errand_executor *executor;
    scene world;
    struct statx found;

    if (!refuse(call))
        return 77;
    config.backend = ERRAND_REACTOR_URING;
    if (errand_reactor_create(&config, &executor) != ERRAND_EUNSUPPORTED)
        return 1;
    if (errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP)
        return 2;
    config.backend = ERRAND_REACTOR_ANY;
    if (errand_reactor_create(&config, &executor) != ERRAND_OK)
        return 3;
    if (strncmp(errand_reactor_backend(executor), "epoll (io_uring: ", 17) != 0 ||
        strcmp(errand_reactor_backend(NULL), errand_reactor_backend(executor)) != 0)
        return 4;
    scene_begin(&world);
    scene_open(&world, executor, 1, NULL, 0);
    if (rig_do(&world, (errand_io){.kind = ERRAND_IO_STAT,
                                   .fd = AT_FDCWD,
                                   .path = "/nowhere",
                                   .out_stat = &found}) >= 0)
        return 5;
    return 0;
}

static void
epoll_takes_over_where_a_filter_refuses_io_uring_and_says_so(void **state)
{
    (void)state;
    const unsigned calls[] = {SYS_io_uring_setup, SYS_io_uring_enter,
                              SYS_io_uring_register};
    int status;

    if (test_under("tsan"))
        test_skip("a forked child may not start threads there");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0)
            _exit(child_without(calls[i]));
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            test_skip("no system call filter can be set here");
        assert_int_equal(status, 0);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating_a_reactor_is_refused_by_name),
        cmocka_unit_test(attaching_without_descriptors_or_memory_changes_nothing),
        cmocka_unit_test(
            requests_that_are_misuse_are_refused_and_leave_nothing_under_way),
        cmocka_unit_test(only_a_reactor_carries_requests_and_it_runs_no_blocking_job),
        cmocka_unit_test(epoll_takes_over_where_a_filter_refuses_io_uring_and_says_so),
    };
    return test_group("workers/reactor/refusals", tests, NULL, NULL);
}
