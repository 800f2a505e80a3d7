/* SPDX-License-Identifier: MIT */
/* Design notes: who is resumed.
 *
 * A wait is a resume object tied to a record.  It ends once: by its completion, by a cancel, or
 * by being forgotten.  An ended one stands in the scheduler's ready list with what it is to be
 * told; everything it needs (the completion, its payload, the message) moved into it, so the
 * record goes its own way: the wait and the operation end separately (O36). */
#include "runtime/runtime.h"

errand__resume *
errand__resume_take(errand_runtime *runtime)
{
    errand__resume *resume = runtime->resumes_free;

    if (resume == NULL)
        return errand__mem_alloc(runtime->allocator, sizeof *resume);
    runtime->resumes_free = resume->next_free;
    /* All but the completion, which is most of it and counts for nothing until it is filled. */
    resume->ready = (errand__ready){.visit = NULL};
    resume->waiting = (errand__link){NULL, NULL};
    resume->record = NULL;
    resume->continuation = (errand_continuation){.resume = NULL};
    resume->task = NULL;
    resume->reason = ERRAND_REASON_NONE;
    resume->completed = resume->decoding = false;
    resume->completion.payload = (errand_payload){.data = NULL};
    resume->verdict = (errand_verdict){.value = NULL};
    resume->failure = NULL;
    return resume;
}

void
errand__resume_give(errand_runtime *runtime, errand__resume *resume)
{
    resume->next_free = runtime->resumes_free;
    runtime->resumes_free = resume;
}

void
errand__wait_begin(errand_runtime *runtime, errand__record *record,
                   errand__resume *resume)
{
    resume->record = record;
    resume->wait_id = record->wait_id;
    resume->generation = record->generation;
    resume->ready.task = resume->task;
    resume->ready.visit =
        resume->task != NULL ? errand__task_resume_visit : errand__resume_visit;
    record->resume = resume;
    record->wait_state = ERRAND__WAIT_ACTIVE;
    errand__list_append(&runtime->waits, &resume->waiting);
    runtime->wait_count++;
}

/* The record and the wait let go of each other. */
static void
untie(errand_runtime *runtime, errand__resume *resume)
{
    if (resume->record == NULL)
        return;
    resume->record->resume = NULL;
    resume->record->wait_state = ERRAND__WAIT_ENDED;
    resume->record = NULL;
    errand__list_unlink(&resume->waiting);
    runtime->wait_count--;
}

/* A continuation's choices hang on its operation's key; one that was never submitted has none, and
 * goes by its wait. */
static void
ready_up(errand_runtime *runtime, errand__resume *resume)
{
    const errand__record *record = resume->record;

    if (record != NULL && resume->task == NULL)
        resume->ready.key = errand__seeded(runtime) && record->extra->key != 0
                                ? record->extra->key
                                : record->wait_id;
    untie(runtime, resume);
    errand__ready_append(&runtime->scheduler, &resume->ready);
}

void
errand__wait_complete(errand_runtime *runtime, errand__resume *resume)
{
    resume->completed = true;
    ready_up(runtime, resume);
}

void
errand__wait_end(errand_runtime *runtime, errand__resume *resume, errand_reason reason)
{
    resume->reason = reason;
    ready_up(runtime, resume);
}

static void
drop_value(void *arg)
{
    errand_verdict *verdict = arg;

    verdict->drop(verdict->value);
}

static void
drop_continuation(void *arg)
{
    errand_continuation *continuation = arg;
    void (*drop)(void *data) = continuation->drop;

    continuation->drop = NULL;
    continuation->trace = NULL;
    drop(continuation->data);
}

void
errand__resume_clear(errand_runtime *runtime, errand__resume *resume)
{
    errand_verdict verdict = resume->verdict;
    char text[64];

    resume->verdict = (errand_verdict){.value = NULL};
    if (verdict.drop != NULL && verdict.value != NULL)
        errand__leak_count(runtime,
                           errand__contained(drop_value, &verdict, text, sizeof text));
    if (resume->completion.payload.data != NULL)
        errand__leak_count(runtime, errand__payload_drop(&resume->completion.payload));
    if (resume->failure != NULL)
        errand__failure_give(runtime->block, resume->failure);
    resume->failure = NULL;
}

/* May be left by longjmp, and is then called again for the rest. */
void
errand__wait_forget(errand_runtime *runtime, errand__resume *resume)
{
    char text[64];

    if (resume->record != NULL)
        errand__leak_count(runtime, errand__record_drop_decoder(resume->record));
    errand__resume_clear(runtime, resume);
    if (resume->task == NULL && resume->continuation.drop != NULL)
        errand__leak_count(runtime,
                           errand__contained(drop_continuation, &resume->continuation,
                                             text, sizeof text));
    untie(runtime, resume);
    errand__list_unlink(&resume->ready.link);
    errand__resume_give(runtime, resume);
}

static bool
is_completion_of(const errand__resume *resume, const errand_identity *identity)
{
    const errand_identity *its = &resume->completion.identity;

    return resume->completed && resume->reason == ERRAND_REASON_NONE &&
           its->wait == identity->wait && its->generation == identity->generation &&
           its->operation == identity->operation && its->kind == identity->kind;
}

bool
errand__wait_recall(errand_runtime *runtime, const errand_identity *identity,
                    errand_reason reason)
{
    errand__link *heads[2] = {&runtime->scheduler.ready, &runtime->scheduler.pass};

    for (int i = 0; i < 2; i++)
        for (errand__link *link = heads[i]->next; link != heads[i]; link = link->next) {
            errand__ready *ready = ERRAND__CONTAINER(link, errand__ready, link);
            errand__resume *resume = ERRAND__CONTAINER(ready, errand__resume, ready);

            if (ready->visit != errand__resume_visit ||
                !is_completion_of(resume, identity))
                continue;
            resume->reason = reason;
            resume->completed = false;
            errand__resume_clear(runtime, resume);
            return true;
        }
    return false;
}

/* The host's function may never come back (longjmp), so nothing is left to do after it but to
 * clear and give back, which an unwind does instead (errand__visit_finish). */
void
errand__resume_visit(errand__ready *ready, void *context)
{
    errand_runtime *runtime = context;
    errand__resume *resume = ERRAND__CONTAINER(ready, errand__resume, ready);
    errand_news news = {.reason = resume->reason, .verdict = resume->verdict};

    if (resume->completed)
        news.completion = &resume->completion;
    resume->verdict = (errand_verdict){.value = NULL}; /* the continuation's now */
    runtime->visiting = resume;
    errand__lock_none_held();
    resume->continuation.resume(resume->continuation.data, runtime, &news);
    errand__visit_finish(runtime);
}

void
errand__visit_finish(errand_runtime *runtime)
{
    errand__resume *resume = runtime->visiting;

    if (resume == NULL)
        return;
    if (((uintptr_t)resume->verdict.drop | (uintptr_t)resume->completion.payload.data |
         (uintptr_t)resume->failure) != 0)
        errand__resume_clear(runtime, resume); /* may be left, and is then called again */
    runtime->visiting = NULL;
    errand__resume_give(runtime, resume);
}
