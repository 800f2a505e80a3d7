/* SPDX-License-Identifier: MIT */
/* deadline: an operation that has to end in time, and one that nobody wants any more.
 *
 *     cc deadline.c $(pkg-config --cflags --libs errand) && ./a.out */
#define _POSIX_C_SOURCE 200809L /* nanosleep, with -std=c17 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <errand.h>
#include <errand/executor.h>

static void
must(errand_status status)
{
    if (status != ERRAND_OK) {
        fprintf(stderr, "%s\n", errand_status_text(status));
        exit(1);
    }
}

/* Would never end by itself; asks between short steps whether it should. */
static int32_t
search(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)state;
    (void)out_payload;
    while (!errand_job_cancelled(job))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    errand_job_message(job, "asked to end, and nothing was found");
    return 1;
}

static const errand_job_type searching = {
    .struct_size = sizeof searching, .name = "search", .run = search};

static void
on_completion(void *arg, errand_completion *completion)
{
    (void)arg;
    printf("%s: %s%s\n", completion->operation,
           completion->code == ERRAND_CODE_DEADLINE ? "DEADLINE: " : "cancelled: ",
           completion->message);
}

static void
await(errand_runtime *runtime)
{
    for (size_t heard = 0; heard == 0;) {
        must(errand_park(runtime, UINT64_MAX));
        must(errand_drain(runtime, 16, on_completion, NULL, &heard));
    }
}

int
main(void)
{
    errand_runtime *runtime;
    errand_executor *pool;
    errand_lease *lease;
    errand_identity identity;
    must(errand_runtime_create(NULL, &runtime));
    must(errand_blocking_create(NULL, &pool));
    must(errand_attach(runtime, pool, 0, &lease));

    errand_spec spec = ERRAND_SPEC_INIT;
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING; /* the body looks at its token */
    spec.held_job = &searching;
    spec.deadline_ns = 50000000; /* a length, from submit */
    must(errand_start(lease, &spec, NULL, NULL));
    await(runtime);

    spec.deadline_ns = 0; /* none: this one ends by a cancel */
    must(errand_start(lease, &spec, NULL, &identity));
    must(errand_cancel(runtime, &identity, ERRAND_REASON_EXPLICIT, NULL));
    await(runtime); /* also then there is exactly one completion */

    must(errand_runtime_shutdown(&runtime, errand_deadline_in(1000000000),
                                 ERRAND_SHUTDOWN_QUIET, NULL));
    errand_executor_abandon(&pool);
    return 0;
}
