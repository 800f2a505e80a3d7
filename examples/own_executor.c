/* SPDX-License-Identifier: MIT */
/* own_executor: an executor of one's own: a single thread that takes the newest job first.
 *
 *     cc own_executor.c $(pkg-config --cflags --libs errand) -pthread && ./a.out
 *
 * The library asks five things of an executor.  This one keeps a stack per lease; what it owes is
 * one sentence: every dispatch that came through submit is run or dropped exactly once.  Names,
 * cancel, panics and completions are the library's. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <errand.h>
#include <errand/executor.h>

#define ROOM 64

static void
must(errand_status status)
{
    if (status != ERRAND_OK) {
        fprintf(stderr, "%s\n", errand_status_text(status));
        exit(1);
    }
}

/* ---- the executor --------------------------------------------------------------------------- */

typedef struct stack_lease {
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t thread;
    errand_dispatch stack[ROOM]; /* guarded by lock, with the three below */
    size_t count;
    bool paused, ended;
} stack_lease;

static void *
work(void *arg)
{
    stack_lease *lease = arg;
    pthread_mutex_lock(&lease->lock);
    for (;;) {
        while (!lease->ended && (lease->paused || lease->count == 0))
            pthread_cond_wait(&lease->news, &lease->lock);
        if (lease->ended)
            break;
        errand_dispatch newest = lease->stack[--lease->count];
        pthread_mutex_unlock(&lease->lock);
        errand_dispatch_run(newest); /* false: it was cancelled first; nothing is owed */
        pthread_mutex_lock(&lease->lock);
    }
    pthread_mutex_unlock(&lease->lock);
    return NULL;
}

static errand_status
stack_attach(void *data, uint64_t runtime_id, uint32_t owed_max, void **out_lease)
{
    stack_lease **shown = data;
    (void)runtime_id;
    (void)owed_max;
    stack_lease *lease = calloc(1, sizeof *lease);
    if (lease == NULL)
        return ERRAND_ENOMEM;
    pthread_mutex_init(&lease->lock, NULL);
    pthread_cond_init(&lease->news, NULL);
    lease->paused = true; /* main lets it go when all jobs are there */
    if (pthread_create(&lease->thread, NULL, work, lease) != 0) {
        free(lease);
        return ERRAND_ENOTHREAD;
    }
    *out_lease = *shown = lease;
    return ERRAND_OK;
}

/* The only place to refuse: submit cannot. */
static errand_status
stack_reserve(void *arg, uint32_t count)
{
    stack_lease *lease = arg;
    pthread_mutex_lock(&lease->lock);
    bool room = count <= ROOM - lease->count;
    pthread_mutex_unlock(&lease->lock);
    return room ? ERRAND_OK : ERRAND_EFULL;
}

static void
stack_submit(void *arg, errand_dispatch dispatch)
{
    stack_lease *lease = arg;
    pthread_mutex_lock(&lease->lock);
    lease->stack[lease->count++] = dispatch;
    pthread_cond_signal(&lease->news);
    pthread_mutex_unlock(&lease->lock);
}

/* A job that is running is waited for; one that could hang would need the deadline. */
static void
stack_detach(void *arg, uint64_t deadline_ns)
{
    stack_lease *lease = arg;
    (void)deadline_ns;
    pthread_mutex_lock(&lease->lock);
    lease->ended = true;
    pthread_cond_signal(&lease->news);
    pthread_mutex_unlock(&lease->lock);
    pthread_join(lease->thread, NULL);
    while (lease->count > 0)
        errand_dispatch_drop(lease->stack[--lease->count]);
    pthread_cond_destroy(&lease->news);
    pthread_mutex_destroy(&lease->lock);
    free(lease);
}

static void
stack_destroy(void *data)
{
    (void)data; /* a variable of main's */
}

static const errand_executor_type stack_type = {
    .struct_size = sizeof stack_type,
    .name = "newest first",
    .attach = stack_attach,
    .reserve = stack_reserve,
    .submit = stack_submit,
    .detach = stack_detach,
    .destroy = stack_destroy,
};

/* ---- a host that uses it ------------------------------------------------------------------------ */

static int32_t
say_number(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    printf("job %d runs\n", *(const int *)state);
    if (*(const int *)state == 2)
        errand_panic("job 2 panics, and only job 2");
    return 0;
}

static const errand_job_type saying = {
    .struct_size = sizeof saying, .name = "say_number", .run = say_number};

static void
on_completion(void *arg, errand_completion *completion)
{
    (void)arg;
    printf("completion: %s%s\n",
           completion->outcome == ERRAND_COMPLETED ? "completed" : "panicked: ",
           completion->outcome == ERRAND_COMPLETED ? "" : completion->message);
}

int
main(void)
{
    static const int numbers[4] = {1, 2, 3, 4};
    stack_lease *shown = NULL;
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    must(errand_runtime_create(NULL, &runtime));
    must(errand_executor_create(&stack_type, &shown, &executor));
    must(errand_attach(runtime, executor, ROOM, &lease));
    for (int i = 0; i < 4; i++) {
        errand_spec spec = ERRAND_SPEC_INIT;
        spec.kind = 1;
        spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
        spec.quarantine_ns = 1000000000;
        spec.held_job = &saying;
        spec.state = (void *)(uintptr_t)&numbers[i];
        must(errand_start(lease, &spec, NULL, NULL));
    }
    pthread_mutex_lock(&shown->lock);
    shown->paused = false;
    pthread_cond_signal(&shown->news);
    pthread_mutex_unlock(&shown->lock);

    for (size_t heard = 0, count = 0; heard < 4; heard += count) {
        must(errand_park(runtime, UINT64_MAX));
        must(errand_drain(runtime, 16, on_completion, NULL, &count));
    }
    must(errand_runtime_shutdown(&runtime, errand_deadline_in(1000000000),
                                 ERRAND_SHUTDOWN_QUIET, NULL));
    errand_executor_abandon(&executor);
    return 0;
}
