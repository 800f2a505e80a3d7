/* SPDX-License-Identifier: MIT */
/* run_root: a whole run, from its root's spawn to a runtime without tasks.
 *
 * Design notes.  What failed is written down before anything is cleaned up, because the cleanup
 * takes away what there is to tell: who waits, and for what.  Then every task is aborted and has
 * dropped what it owned, and only then the caller hears of it (D40). */
#include "runtime/runtime.h"

/* Keeps the text of the stall; without memory there is none, and the status says enough. */
static void
keep_stall(errand_runtime *runtime)
{
    size_t size = errand_stall_text(runtime, NULL, 0) + 1;

    runtime->stall = errand__mem_alloc(runtime->allocator, size);
    if (runtime->stall == NULL)
        return;
    runtime->stall_size = size;
    errand_stall_text(runtime, runtime->stall, size);
}

void
errand__stall_forget(errand_runtime *runtime)
{
    errand__mem_free(runtime->allocator, runtime->stall, runtime->stall_size);
    runtime->stall = NULL;
    runtime->stall_size = 0;
}

static size_t
count_waiting(const errand_runtime *runtime)
{
    const errand__link *head = &runtime->scheduler.waiting, *link;
    size_t count = 0;

    for (link = head->next; link != head; link = link->next)
        count++;
    return count;
}

static void
abort_rest(errand_runtime *runtime)
{
    bool calling = errand__calls_begin(runtime);

    errand__tasks_abort_all(runtime);
    errand__calls_end(runtime, calling);
}

static void
report_end(errand_runtime *runtime, const errand_task_id *id, errand_run_report *report)
{
    const errand_task *root = errand__task_find(&runtime->scheduler, id);

    if (root == NULL)
        return;
    report->end = (errand_task_end)root->end;
    if (report->end == ERRAND_END_FAILED)
        errand__cause_read(root, &report->failure);
}

errand_status
errand_run_root(errand_runtime *runtime, const errand_task_spec *root,
                uint64_t deadline_ns, errand_run_report *out_report)
{
    errand_run_report report = {.stall = ""};
    errand_task_id id;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_report != NULL, ERRAND_EINVAL, "out_report is NULL");
    ERRAND_REQUIRE_ARG(!errand__on_worker(), ERRAND_EDEADLOCK,
                       "a job may not run a runtime");
    if (runtime->draining || runtime->driving)
        return errand__misuse(
            ERRAND_EBUSY, __func__,
            "a drain or drive is in progress, or was left and not unwound");
    status = errand__task_spec_check(runtime, root, __func__);
    if (status == ERRAND_OK)
        status = errand_spawn(runtime, NULL, root, &id);
    if (status == ERRAND_OK)
        status = errand_task_hold(runtime, &id);
    if (status != ERRAND_OK)
        return status;
    errand__stall_forget(runtime);
    status = errand_run(runtime, &id, deadline_ns);
    if (status != ERRAND_OK) {
        report.waiting = count_waiting(runtime);
        keep_stall(runtime);
        report.stall = runtime->stall == NULL ? "" : runtime->stall;
    }
    abort_rest(runtime);
    report_end(runtime, &id, &report);
    errand_task_let(runtime, &id);
    report.time_ns = errand__runtime_read(runtime);
    report.digest = errand_digest(runtime);
    *out_report = report;
    return status;
}
