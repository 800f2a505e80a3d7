/* SPDX-License-Identifier: MIT */
/* Goal: what a test does while a loop stands still is done before anything of the loop's.
 * Method: see halt.h. */
#include <stdlib.h>
#include <string.h>
#include "errand/async.h"
#include "halt.h"

static int32_t
halt_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    gate_wait(&((halt *)state)->gate);
    return 0;
}

static void
halt_drop(void *state)
{
    gate_fini(&((halt *)state)->gate);
}

static const errand_job_type halt_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "halt",
    .poll = halt_poll,
    .drop = halt_drop,
};

halt *
halt_begin(net_rig *rig)
{
    const char *backend = getenv("ERRAND_NET_BACKEND");
    halt *made = calloc(1, sizeof *made);
    errand_spec spec = ERRAND_SPEC_INIT;

    assert_non_null(made);
    made->threaded = backend == NULL || strcmp(backend, "here") != 0;
    if (!made->threaded)
        return made;
    gate_init(&made->gate, "halt");
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    spec.held_job = &halt_job;
    spec.state = made;
    net_start(rig, &spec, &made->result);
    gate_await_arrival(&made->gate);
    return made;
}

void
halt_end(net_rig *rig, halt *halted)
{
    if (halted->threaded) {
        gate_open(&halted->gate);
        net_await(rig, &halted->result);
    }
    free(halted);
}
