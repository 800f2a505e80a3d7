/* SPDX-License-Identifier: MIT */
/* Goal: a lease that is shut before the kernel has given everything back leaves nobody waiting.
 * Method: a job that, asked to end, waits for a moment with a request of its own. */
#include "rig.h"

/* A job that needs a moment to clean up once it is asked to end. */
typedef struct slow_end {
    errand_io recv, rest;
    char byte;
    bool begun, resting;
    atomic_int drops;
} slow_end;

static int32_t
slow_end_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    slow_end *self = state;

    (void)out_payload;
    if (!self->begun) {
        self->begun = true;
        return errand_io_start(job, &self->recv) == ERRAND_OK ? ERRAND_PENDING : 99;
    }
    if (!self->recv.done)
        return ERRAND_PENDING;
    if (!self->resting) {
        self->resting = true;
        self->rest = (errand_io){.kind = ERRAND_IO_TIMEOUT,
                                 .until_ns = errand_deadline_in(UINT64_C(30000000))};
        return errand_io_start(job, &self->rest) == ERRAND_OK ? ERRAND_PENDING : 99;
    }
    return self->rest.done ? 7 : ERRAND_PENDING;
}
static void
slow_end_drop(void *state)
{
    atomic_fetch_add_explicit(&((slow_end *)state)->drops, 1, memory_order_release);
}
static const errand_job_type slow_end_job = {.struct_size = sizeof(errand_job_type),
                                             .name = "slow end",
                                             .poll = slow_end_poll,
                                             .drop = slow_end_drop};

static void
lease_no_time_body(scene *world, const rig_config *config)
{
    slow_end state = {.drops = 0};
    int ends[2];
    errand_report report;

    (void)config;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    state.recv = (errand_io){
        .kind = ERRAND_IO_RECV, .fd = ends[0], .buffer = &state.byte, .length = 1};
    scene_poll(world, 0, &slow_end_job, &state);
    scene_drain(world, 0);
    assert_int_equal(errand_lease_shutdown(&world->leases[0], 0, &report), ERRAND_OK);
    scene_await(world, 0, 1); /* in a park, too, where the thread is the runtime's own */
    assert_int_equal(state.drops, 1);
    assert_true(state.recv.done || !state.begun);
    assert_true(state.rest.done || !state.resting);
    report = scene_end(world, 0, errand_deadline_in(UINT64_C(5000000000)));
    assert_true(report.clean);
    close(ends[0]);
    close(ends[1]);
}

static void
what_a_lease_shut_without_time_had_under_way_is_told_by_later_drains(void **state)
{
    (void)state; /* C-D3 */
    rig_each(lease_no_time_body);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            what_a_lease_shut_without_time_had_under_way_is_told_by_later_drains),
    };
    return test_group("workers/reactor/lease", tests, NULL, NULL);
}
