/* SPDX-License-Identifier: MIT */
/* Goal: a host's own executor may call the library back from its functions, but not end the
 * runtime under the submit that called it (O33, O64).
 * Method: reserve and submit try to drain and to shut down; the operation then ends as always. */
#include "world.h"

typedef struct caller {
    errand_runtime *runtime;
    errand_status drained, ended;
    errand_dispatch taken;
} caller;

static void
call_back(caller *self)
{
    errand_runtime *runtime = self->runtime;
    size_t count;

    self->drained = errand_drain(runtime, 1, NULL, NULL, &count);
    self->ended = errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL);
}

static errand_status
attach_caller(void *data, uint64_t runtime_id, uint32_t owed_max, void **out_lease)
{
    (void)runtime_id;
    (void)owed_max;
    *out_lease = data;
    return ERRAND_OK;
}

static errand_status
reserve_calls(void *lease, uint32_t count)
{
    (void)count;
    call_back(lease);
    return ((caller *)lease)->ended == ERRAND_EBUSY ? ERRAND_OK : ERRAND_ENOTHREAD;
}

static void
submit_calls(void *lease, errand_dispatch dispatch)
{
    ((caller *)lease)->taken = dispatch;
    ((caller *)lease)->ended = ERRAND_OK;
    call_back(lease);
}

static void
nothing(void *data)
{
    (void)data;
}

static void
drop_rest(void *lease, uint64_t deadline_ns)
{
    (void)deadline_ns;
    errand_dispatch_drop(((caller *)lease)->taken);
}

static void
a_runtime_cannot_be_ended_inside_a_hosts_executor(void **state)
{
    static const errand_executor_type type = {.struct_size = sizeof type,
                                              .name = "caller",
                                              .attach = attach_caller,
                                              .reserve = reserve_calls,
                                              .submit = submit_calls,
                                              .detach = drop_rest,
                                              .destroy = nothing};
    test_world *world = *state;
    static caller self; /* its detach comes with the teardown */
    static world_job job;
    errand_spec spec = world_spec(&job);
    errand_executor *executor;
    errand_lease *lease;

    self = (caller){.runtime = world->runtime};
    job.world = world;
    assert_int_equal(errand_executor_create(&type, &self, &executor), ERRAND_OK);
    assert_int_equal(errand_attach(world->runtime, executor, 0, &lease), ERRAND_OK);
    errand_executor_abandon(&executor);
    assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
    assert_int_equal(self.drained, ERRAND_EBUSY);
    assert_int_equal(self.ended, ERRAND_EBUSY);
    assert_true(errand_dispatch_run(self.taken));
    assert_int_equal(world_drain(world, 10), 1);
    assert_int_equal(job.ran, 1);
    assert_int_equal(job.dropped, 1);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_runtime_cannot_be_ended_inside_a_hosts_executor,
                                        world_setup, world_teardown),
    };
    return test_group("workers/custom_calls", tests, NULL, NULL);
}
