/* SPDX-License-Identifier: MIT */
/* work_task: tasks whose body is a worker's job.
 *
 * Design notes.  Such a task is an ordinary one whose function starts the job, waits for it and ends
 * as it did; so its place in the tree, its handle, its cancel and its failure are those of every
 * task, in every order (D69, D75).  What the job owns is the task's until it is submitted, at the
 * task's first turn, and the operation's from then on.
 *
 * Dedicated work has an executor of the runtime's own, made when the first asks for it: a pool whose
 * threads are as many as there is work, so that none waits for another. */
#include "runtime/runtime.h"

#define DEDICATED_MAX 1024

typedef struct work_state {
    errand_spec spec;
    errand_lease *lease;
    bool submitted; /* spec's objects are the operation's */
    void (*on_done)(void *arg, errand_completion *completion);
    void *arg;
    errand_runtime *runtime;
} work_state;

static void ERRAND_PRINTF(3, 4)
    write_cause(errand_task *task, int32_t code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)errand__cause_write(task, code, format, arguments);
    va_end(arguments);
}

static errand_task_answer
begin(errand_task *task, work_state *self)
{
    errand_status status =
        errand_task_await(task, self->lease, &self->spec, UINT64_MAX, NULL);

    if (status == ERRAND_OK) {
        self->submitted = true;
        return ERRAND_TASK_WAIT;
    }
    if (status != ERRAND_ECANCELLED)
        write_cause(task, 0, "'%s' could not be started: %s", task->label,
                    errand_status_text(status));
    return ERRAND_TASK_FAILED;
}

static errand_task_answer
end(errand_task *task, const work_state *self, errand_completion *completion)
{
    if (completion->outcome == ERRAND_CANCELLED) { /* by its name: nobody failed */
        errand__task_end(task, ERRAND_END_CANCELLED);
        return ERRAND_TASK_DONE;
    }
    if (completion->outcome != ERRAND_COMPLETED)
        write_cause(task,
                    completion->code == ERRAND_CODE_JOB ? completion->job_code
                                                        : -(int32_t)completion->code,
                    "%s", completion->message);
    if (self->on_done != NULL)
        self->on_done(self->arg, completion);
    return completion->outcome == ERRAND_COMPLETED ? ERRAND_TASK_DONE
                                                   : ERRAND_TASK_FAILED;
}

static errand_task_answer
step(errand_task *task, void *state, const errand_task_news *news)
{
    switch (news->why) {
    case ERRAND_WHY_START:
        return begin(task, state);
    case ERRAND_WHY_COMPLETION:
        return end(task, state, news->completion);
    default:
        return ERRAND_TASK_DONE; /* cancelled: the operation ends for itself */
    }
}

static void
drop(void *state)
{
    work_state *self = state;
    errand_runtime *runtime = self->runtime;
    errand_spec spec = self->spec;
    bool submitted = self->submitted;

    errand__mem_free(runtime->allocator, self, sizeof *self);
    if (!submitted)
        errand__leak_count(runtime, errand__spec_drop(&spec));
}

static errand_status
dedicated_lease(errand_runtime *runtime, errand_lease **out_lease)
{
    const errand_blocking_config config = {
        .struct_size = sizeof config, .workers_max = DEDICATED_MAX, .name = "errand-own"};
    errand_executor *executor;
    errand_status status = ERRAND_OK;

    if (runtime->dedicated == NULL) {
        status = errand_blocking_create(&config, &executor);
        if (status != ERRAND_OK)
            return status;
        status = errand_attach(runtime, executor, DEDICATED_MAX, &runtime->dedicated);
        errand_executor_abandon(&executor);
    }
    *out_lease = runtime->dedicated;
    return status;
}

static errand_status
check(const errand_runtime *runtime, const errand_work *given, const char *function)
{
    const char *text;
    bool own;

    if (given == NULL || given->struct_size != sizeof *given ||
        (given->flags & ~(uint32_t)ERRAND_WORK_DEDICATED) != 0 || given->spec == NULL)
        return errand__misuse(
            ERRAND_EINVAL, function,
            "struct_size must be sizeof(errand_work), flags known, spec there");
    own = (given->flags & ERRAND_WORK_DEDICATED) != 0;
    if (own != (given->lease == NULL))
        return errand__misuse(ERRAND_EINVAL, function,
                              "work needs a lease or ERRAND_WORK_DEDICATED, not both");
    if (!own && given->lease->runtime != runtime)
        return errand__misuse(ERRAND_EFOREIGN, function,
                              "the lease is another runtime's");
    if (errand__spec_check(given->spec, &text) != ERRAND_OK)
        return errand__misuse(ERRAND_EINVAL, function, text);
    if (own && given->spec->resource_class == ERRAND_INTERRUPTIBLE_ASYNC)
        return errand__misuse(ERRAND_EUNSUPPORTED, function,
                              "a thread of its own runs a blocking body only");
    if (runtime->closing)
        return errand__misuse(ERRAND_ECLOSED, function, "the runtime is being shut down");
    return ERRAND_OK;
}

/* Exactly one of parent (NULL = a root) and take_context. */
static errand_status
spawn(errand_runtime *runtime, const errand_task_id *parent, errand_context *take_context,
      const errand_work *given, const char *function, errand_task_id *out_id,
      errand_handle *out_handle)
{
    errand_status status = check(runtime, given, function);
    errand_lease *lease = status == ERRAND_OK ? given->lease : NULL;
    errand_task_spec spec = {.struct_size = sizeof spec};
    work_state *self;

    if (status == ERRAND_OK && lease == NULL)
        status = dedicated_lease(runtime, &lease);
    if (status != ERRAND_OK)
        return status;
    self = errand__mem_alloc(runtime->allocator, sizeof *self);
    if (self == NULL)
        return ERRAND_ENOMEM;
    *self = (work_state){.spec = *given->spec,
                         .lease = lease,
                         .on_done = given->held_on_done,
                         .arg = given->held_arg,
                         .runtime = runtime};
    spec.label = given->label;
    spec.fn = step;
    spec.state = self;
    spec.held_drop = drop;
    status = take_context == NULL
                 ? errand_spawn(runtime, parent, &spec, out_id)
                 : errand_context_spawn(runtime, take_context, &spec, out_handle);
    if (status != ERRAND_OK)
        errand__mem_free(runtime->allocator, self, sizeof *self);
    return status;
}

errand_status
errand_spawn_work(errand_runtime *runtime, const errand_task_id *parent,
                  const errand_work *work, errand_task_id *out_id)
{
    ERRAND__ENTER(runtime);
    return spawn(runtime, parent, NULL, work, __func__, out_id, NULL);
}

errand_status
errand_context_spawn_work(errand_runtime *runtime, errand_context *take_context,
                          const errand_work *work, errand_handle *out_handle)
{
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(take_context != NULL, ERRAND_EINVAL, "take_context is NULL");
    return spawn(runtime, NULL, take_context, work, __func__, NULL, out_handle);
}
