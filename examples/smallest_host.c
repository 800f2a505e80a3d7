/* SPDX-License-Identifier: MIT */
/* smallest_host: one operation, from a job to its completion.
 *     cc smallest_host.c $(pkg-config --cflags --libs errand) && ./a.out
 * A host is whoever owns a runtime: here main.  Its job runs on a worker thread; the completion
 * comes back to this thread, exactly once. */
#include <stdio.h>
#include <stdlib.h>
#include <errand/executor.h> /* and errand.h */

static void
must(errand_status status)
{
    if (status == ERRAND_OK)
        return;
    fprintf(stderr, "%s\n", errand_status_text(status));
    exit(1);
}

/* Hears of every call that this program makes wrongly: install it first of all. */
static void
on_misuse(void *arg, errand_status status, const char *text)
{
    fprintf(stderr, "%s: %s: %s\n", (char *)arg, errand_status_name(status), text);
}

/* The body: runs on a worker, and touches nothing but its state. */
static int32_t
add_up(errand_job *job, void *state, errand_payload *out_payload)
{
    uint64_t *sum = errand_payload_alloc(job, sizeof *sum, out_payload);
    if (sum == NULL)
        return 1; /* a code of our own: the completion says that we failed */
    for (uint64_t n = 1; n <= *(const uint64_t *)state && !errand_job_cancelled(job); n++)
        *sum += n;
    return 0;
}

/* One static description per kind of work.  No drop: the state below is main's own. */
static const errand_job_type adding = {
    .struct_size = sizeof adding, .name = "add_up", .run = add_up};

/* The news: on main's thread, inside errand_drain. */
static void
on_completion(void *arg, errand_completion *completion)
{
    (void)arg;
    if (completion->outcome == ERRAND_COMPLETED)
        printf("%s: %llu\n", completion->operation,
               (unsigned long long)*(uint64_t *)completion->payload.data);
    else
        printf("%s: %s\n", completion->operation, completion->message);
}

int
main(void)
{
    errand_runtime *runtime;
    errand_executor *pool;
    errand_lease *lease;
    errand_misuse_hook(on_misuse, "misuse");
    must(errand_runtime_create(NULL, &runtime));   /* this thread's side */
    must(errand_blocking_create(NULL, &pool));     /* worker threads */
    must(errand_attach(runtime, pool, 0, &lease)); /* our place among them */

    errand_spec spec = ERRAND_SPEC_INIT;
    spec.kind = 1; /* our own number for this kind of work */
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING; /* its body looks at its token */
    spec.held_job = &adding;                             /* held_: kept, not copied */
    spec.state = &(uint64_t){1000000};
    must(errand_start(lease, &spec, NULL, NULL)); /* OK: exactly one completion is owed */
    for (size_t heard = 0; heard == 0;) {
        must(errand_park(runtime, UINT64_MAX)); /* sleep until something is there */
        must(errand_drain(runtime, 16, on_completion, NULL, &heard));
    }
    must(errand_runtime_shutdown(&runtime, errand_deadline_in(1000000000),
                                 ERRAND_SHUTDOWN_QUIET, NULL));
    errand_executor_abandon(&pool); /* its threads end */
    return 0;
}
