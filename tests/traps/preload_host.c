/* SPDX-License-Identifier: MIT */
/* preload_host: a host of the shared library that knows nothing of traps; one job, which reads a
 * clock, in the order that is named.  It prints how the job ended and its message. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "errand/executor.h"

static int32_t
look_at_the_clock(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    *(time_t *)state = time(NULL);
    return 0;
}

static const errand_job_type look = {
    .struct_size = sizeof look, .name = "look", .run = look_at_the_clock};

static void
tell(void *arg, errand_completion *completion)
{
    (void)arg;
    printf("%s %s\n",
           completion->outcome == ERRAND_COMPLETED  ? "completed"
           : completion->outcome == ERRAND_PANICKED ? "panicked"
                                                    : "other",
           completion->outcome == ERRAND_COMPLETED ? "" : completion->message);
}

int
main(int argc, char **argv)
{
    errand_runtime_config config = {.struct_size = sizeof config, .seed = 1};
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    time_t now = 0;
    size_t count = 0;
    errand_spec spec = ERRAND_SPEC_INIT;

    if (argc > 1 && strcmp(argv[1], "paced") == 0)
        config.order = ERRAND_ORDER_PACED;
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &look;
    spec.state = &now;
    if (errand_runtime_create(&config, &runtime) != ERRAND_OK ||
        errand_blocking_create(NULL, &executor) != ERRAND_OK ||
        errand_attach(runtime, executor, 0, &lease) != ERRAND_OK ||
        errand_start(lease, &spec, NULL, NULL) != ERRAND_OK)
        return 1;
    while (count == 0)
        if (errand_park(runtime, UINT64_MAX) != ERRAND_OK ||
            errand_drain(runtime, 1, tell, NULL, &count) != ERRAND_OK)
            return 1;
    if (errand_runtime_shutdown(&runtime, errand_deadline_in(1000000000),
                                ERRAND_SHUTDOWN_QUIET, NULL) != ERRAND_OK)
        return 1;
    errand_executor_abandon(&executor);
    return 0;
}
