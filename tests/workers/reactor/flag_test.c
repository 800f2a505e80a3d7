/* SPDX-License-Identifier: MIT */
/* Goal: what the kernel says of work that it put off keeps no loop awake for nothing.
 * Method: a job raises the flag itself, when nothing is put off. */
#include "rig.h"
#include "workers/reactor/reactor.h"
#if ERRAND_HAS_URING
#include "workers/reactor/uring.h"
#endif

#if ERRAND_HAS_URING

/* Says that the kernel has put work off, as it does a moment too late where it is done already. */
static int32_t
flag_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    errand__loop *loop = errand__loop_current();
    errand__uring *ring = loop->state;

    (void)job;
    (void)state;
    (void)out_payload;
    atomic_fetch_or_explicit((_Atomic(unsigned) *)ring->ring.sq.kflags, IORING_SQ_TASKRUN,
                             memory_order_seq_cst); /* as the kernel does */
    return 0;
}
static const errand_job_type flag_job = {
    .struct_size = sizeof(errand_job_type), .name = "flag", .poll = flag_poll};

static void
flag_body(scene *world, const rig_config *config)
{
    errand__loop_lease *mine = world->leases[0]->impl;
    errand__loop *loop = mine->loop;

    if (config->backend != ERRAND_REACTOR_URING)
        return;
    scene_poll(world, 0, &flag_job, NULL);
    scene_await(world, 0, 1);
    if (config->threads == 0) {
        scene_drain(world, 0);
        assert_false(errand__loop_busy(loop));
    }
    while (config->threads != 0 &&
           !atomic_load_explicit(&loop->asleep, memory_order_relaxed))
        sched_yield();
    /* And nothing that comes then is missed. */
    assert_int_equal(
        rig_do(world,
               (errand_io){.kind = ERRAND_IO_OPEN, .fd = AT_FDCWD, .path = "/nowhere"}),
        -ENOENT);
}
#endif

static void
a_flag_of_the_kernels_without_work_keeps_no_loop_awake(void **state)
{
    (void)state; /* O67 */
#if ERRAND_HAS_URING
    rig_each(flag_body);
#else
    test_skip("built without io_uring");
#endif
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flag_of_the_kernels_without_work_keeps_no_loop_awake),
    };
    return test_group("workers/reactor/flag", tests, NULL, NULL);
}
