/* SPDX-License-Identifier: MIT */
/* consumer: a user's program, built against the installed package in C and in C++: the library is
 * the headers' own, and one operation lives from its start to the end of its runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errand.h>
#include <errand/executor.h>

static void
must(errand_status status, const char *what)
{
    if (status != ERRAND_OK) {
        fprintf(stderr, "%s: %s\n", what, errand_status_text(status));
        exit(1);
    }
}

static int32_t
double_it(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    *(int *)state *= 2;
    return 0;
}

static void
on_completion(void *arg, errand_completion *completion)
{
    *(errand_outcome *)arg = completion->outcome;
}

static void
live_once(void)
{
    errand_job_type doubling;
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_runtime *runtime;
    errand_executor *pool;
    errand_lease *lease;
    errand_report report;
    errand_outcome outcome = ERRAND_FAILED;
    int number = 21;

    memset(&doubling, 0, sizeof doubling);
    doubling.struct_size = sizeof doubling;
    doubling.name = "double_it";
    doubling.run = double_it;
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &doubling;
    spec.state = &number;
    must(errand_runtime_create(NULL, &runtime), "create");
    must(errand_blocking_create(NULL, &pool), "pool");
    must(errand_attach(runtime, pool, 0, &lease), "attach");
    must(errand_start(lease, &spec, NULL, NULL), "start");
    for (size_t heard = 0; heard == 0;) {
        must(errand_park(runtime, UINT64_MAX), "park");
        must(errand_drain(runtime, 1, on_completion, &outcome, &heard), "drain");
    }
    must(errand_runtime_shutdown(&runtime, errand_deadline_in(1000000000),
                                 ERRAND_SHUTDOWN_QUIET, &report),
         "shutdown");
    errand_executor_abandon(&pool);
    if (outcome != ERRAND_COMPLETED || number != 42 || !report.clean) {
        fprintf(stderr, "not as it should be: outcome %d, %d\n", (int)outcome, number);
        exit(1);
    }
}

int
main(void)
{
    char expected[64];

    snprintf(expected, sizeof expected, "%d.%d.%d", ERRAND_VERSION_MAJOR,
             ERRAND_VERSION_MINOR, ERRAND_VERSION_PATCH);
    if (strcmp(errand_version(), expected) != 0) {
        fprintf(stderr, "headers are %s, the library is %s\n", expected,
                errand_version());
        return 1;
    }
    live_once();
    return 0;
}
