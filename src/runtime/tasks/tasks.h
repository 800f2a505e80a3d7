/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_TASKS_H
#define ERRAND_RUNTIME_TASKS_H
/* tasks: the part of runtime.h, which includes it, that is this folder's: what tasks ask for. */
#include "runtime/runtime.h"

extern const errand__outside errand__tasks_outside; /* tasks.c */

/* Goes on with cancels and ends that a longjmp cut short. */
void errand__tasks_resume_work(errand_runtime *runtime);
/* The record of a name, ended and held ones too: OK, EINVAL, EFOREIGN or EUNKNOWN. */
errand_status errand__task_named(errand_runtime *runtime, const errand_task_id *id,
                                 const char *function, errand_task **out_task);
/* OK, EINVAL or ECLOSED, misuse reported. */
errand_status errand__task_spec_check(const errand_runtime *runtime,
                                      const errand_task_spec *spec, const char *function);
/* Is this the running task, in its function?  OK or a status, misuse reported. */
errand_status errand__task_enter_own(const errand_task *task, const char *function,
                                     errand_runtime **out_runtime);
/* May this task wait now?  The first thing that every wait of a task asks. */
errand_status errand__task_enter_wait(const errand_task *task, const char *function,
                                      errand_runtime **out_runtime);
/* Visit function of a task's resume. */
void errand__task_resume_visit(errand__ready *ready, void *context);
/* Cancels or aborts every task below the roots, in key order; used by shutdown and interrupt. */
void errand__tasks_cancel_all(errand_runtime *runtime, errand_reason reason);
void errand__tasks_abort_all(errand_runtime *runtime);
size_t errand__tasks_live(const errand_runtime *runtime);
void errand__tasks_fini(errand_runtime *runtime);
bool errand__tasks_trace(errand_runtime *runtime, errand_visitor *visitor);
#endif
