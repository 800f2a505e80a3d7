/* SPDX-License-Identifier: MIT */
/* Design notes: what a body may ask of its job.
 *
 * Everything here touches the errand_job and the constant fields of the record; nothing is put
 * into the record before the body's end (see hands.c).  Messages take a block of the runtime's
 * pool at their first use, so a job that succeeds never touches it. */
#include <string.h>
#include "errand/portable.h"
#include "dispatch/hands.h"

typedef struct errand__block_link { /* async: before each block of errand_job_alloc */
    struct errand__block_link *next;
    size_t size;
} errand__block_link;

/* For functions that answer no status; false: the job is NULL. */
static inline bool
job_given(const errand_job *job, const char *function)
{
    if (__builtin_expect(job != NULL, 1))
        return true;
    (void)errand__misuse(ERRAND_EINVAL, function, "the job is NULL");
    return false;
}

bool
errand_job_cancelled(const errand_job *job)
{
    if (!job_given(job, __func__))
        return false;
    return (atomic_load_explicit(&job->record->control, memory_order_acquire) &
            ERRAND__FLAG_CANCEL) != 0;
}

const char *
errand_job_name(const errand_job *job)
{
    if (!job_given(job, __func__))
        return "";
    return errand__record_name(job->record);
}

uint64_t
errand_job_trace_id(const errand_job *job)
{
    if (!job_given(job, __func__))
        return 0;
    const errand__extra *extra = job->record->extra;

    return extra != NULL && extra->labelled ? errand__record_label(job->record)->trace_id
                                            : 0;
}

errand_identity
errand_job_identity(const errand_job *job)
{
    if (!job_given(job, __func__))
        return (errand_identity){.runtime = 0};
    return errand__record_identity(job->hands->block->runtime_id, job->record);
}

uint64_t
errand_job_epoch(const errand_job *job)
{
    if (!job_given(job, __func__))
        return 0;
    return job->hands->epoch;
}

static errand__failure *
failure_of(errand_job *job)
{
    if (job->failure == NULL) {
        job->failure = errand__failure_take(job->hands->block);
        if (job->failure == NULL && !job->message_lost) {
            job->message_lost = true;
            atomic_fetch_add_explicit(&job->hands->block->messages_lost, 1,
                                      memory_order_relaxed);
        }
    }
    return job->failure;
}

void
errand_job_message(errand_job *job, const char *format, ...)
{
    errand__failure *failure = job_given(job, __func__) ? failure_of(job) : NULL;
    va_list arguments;

    if (failure == NULL)
        return;
    va_start(arguments, format);
    errand__text_vformat(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
}

void
errand_job_fail(errand_job *job, int32_t sys_errno, int32_t signal_number,
                const char *system_call, const char *format, ...)
{
    errand__failure *failure;
    va_list arguments;

    if (!job_given(job, __func__))
        return;
    failure = failure_of(job);
    job->sys_errno = sys_errno;
    if (failure == NULL)
        return;
    failure->sys_errno = sys_errno;
    failure->signal_number = signal_number;
    errand__text_format(failure->system_call, sizeof failure->system_call, "%s",
                        system_call != NULL ? system_call : "");
    va_start(arguments, format);
    errand__text_vformat(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
}

errand_status
errand_job_work(errand_job *job, uint64_t amount)
{
    errand__extra *extra;
    uint64_t done, sum;

    ERRAND_REQUIRE_ARG(job != NULL, ERRAND_EINVAL, "the job is NULL");
    extra = errand__record_whole(job->record);
    if (extra == NULL || extra->work_max == 0)
        return ERRAND_OK;
    done = atomic_load_explicit(&extra->work_done, memory_order_relaxed);
    do
        sum = amount > UINT64_MAX - done ? UINT64_MAX : done + amount; /* never round */
    while (!atomic_compare_exchange_weak_explicit(
        &extra->work_done, &done, sum, memory_order_relaxed, memory_order_relaxed));
    if (sum <= extra->work_max)
        return ERRAND_OK;
    if (job->hands->block->virtual_time) /* no grace there: real time decides nothing */
        return ERRAND_EBOUND;
    errand__post_record(job->hands->block, job->record, job->generation,
                        0); /* start the grace */
    return ERRAND_EBOUND;
}

errand_status
errand_job_defer(errand_job *job, void (*fn)(void *), void *arg)
{
    errand__defer *defer;

    ERRAND_REQUIRE_ARG(job != NULL && fn != NULL, ERRAND_EINVAL, "job and fn are needed");
    defer = errand__mem_alloc(NULL, sizeof *defer);
    if (defer == NULL)
        return ERRAND_ENOMEM;
    *defer = (errand__defer){job->defers, fn, arg};
    job->defers = defer;
    return ERRAND_OK;
}

/* library[1] of a command: as of errand_post, but marked with the job's record. */
errand_status
errand_job_post(errand_job *job, errand_command *node)
{
    ERRAND_REQUIRE_ARG(job != NULL && node != NULL && node->fn != NULL, ERRAND_EINVAL,
                       "job, node and node->fn are needed");
    ERRAND_REQUIRE_ARG(((uintptr_t)node & ERRAND__NODE_TAGS) == 0, ERRAND_EINVAL,
                       "node must be aligned to 8 bytes");
    ERRAND_REQUIRE_ARG(node->library[1] == NULL, ERRAND_EBUSY, "node is posted already");
    node->library[1] = (char *)job->record + ERRAND__COMMAND_OF_JOB;
    if (errand__inbox_put(job->hands->block, node, ERRAND__NODE_COMMAND, NULL))
        return ERRAND_OK;
    node->library[1] = NULL;
    return ERRAND_EGONE;
}

void *
errand_job_alloc(errand_job *job, size_t size)
{
    errand__hands *hands;
    void *block;

    if (!job_given(job, __func__))
        return NULL;
    hands = job->hands;
    if (job->is_async) {
        errand__block_link *link;

        if (size > SIZE_MAX - sizeof *link)
            return NULL;
        link = errand__mem_alloc_used(sizeof *link + size);
        if (link == NULL)
            return NULL;
        link->next = job->blocks;
        link->size = sizeof *link + size;
        job->blocks = link;
        return link + 1;
    }
    if (hands->memory_max != 0 && size > hands->memory_max - hands->arena_bytes)
        return NULL;
    hands->allocating = true;
    if (hands->arena == NULL)
        hands->arena = errand__arena_create();
    block = hands->arena != NULL ? errand__arena_alloc(hands->arena, size) : NULL;
    if (block != NULL) {
        hands->arena_blocks++;
        hands->arena_bytes += size;
    }
    hands->allocating = false;
    return block;
}

void
errand__job_blocks_free(errand_job *job)
{
    while (job->blocks != NULL) {
        errand__block_link *link = job->blocks;

        job->blocks = link->next;
        errand__mem_free(NULL, link, link->size);
    }
}

static void
free_memory(void *data, size_t size)
{
    errand__mem_free(NULL, data, size);
}

static const errand_payload_type memory_type = {.name = "memory", .drop = free_memory};

void *
errand_payload_alloc(errand_job *job, size_t size, errand_payload *out_payload)
{
    void *data;

    if (!job_given(job, __func__))
        return NULL;
    if (out_payload == NULL) {
        (void)errand__misuse(ERRAND_EINVAL, __func__, "out_payload is NULL");
        return NULL;
    }
    data = errand__mem_alloc_used(size > 0 ? size : 1);
    if (data != NULL)
        *out_payload = (errand_payload){&memory_type, data, size > 0 ? size : 1};
    return data;
}

bool
errand_portable_take(errand_job *job, errand_payload *out_held)
{
    errand__gathered *gathered;

    if (!job_given(job, __func__))
        return false;
    if (out_held == NULL) {
        (void)errand__misuse(ERRAND_EINVAL, __func__, "out_held is NULL");
        return false;
    }
    gathered = job->hands != NULL ? job->hands->gathered : NULL;
    if (gathered == NULL || gathered->bytes == NULL ||
        gathered->used < ERRAND__KEEP_LEAST || gathered->room / 2 > gathered->used)
        return false;
    *out_held = (errand_payload){&memory_type, gathered->bytes, gathered->room};
    gathered->wished = gathered->room;
    gathered->bytes = NULL;
    gathered->room = 0;
    return true;
}

void
errand_payload_drop(errand_payload *payload)
{
    errand_payload dropped;

    if (payload == NULL)
        return;
    dropped = *payload;
    *payload = (errand_payload){.data = NULL};
    if (dropped.held_type != NULL && dropped.held_type->drop != NULL &&
        dropped.data != NULL)
        dropped.held_type->drop(dropped.data, dropped.size);
}

errand_status
errand_job_follow(errand_job *job, const errand_spec *spec, void *wait)
{
    errand__follow *follow;
    const char *text;

    ERRAND_REQUIRE_ARG(job != NULL && spec != NULL, ERRAND_EINVAL,
                       "job and spec are needed");
    if (errand__spec_check(spec, &text) != ERRAND_OK)
        return errand__misuse(ERRAND_EINVAL, __func__, text);
    follow = errand__mem_alloc(NULL, sizeof *follow);
    if (follow == NULL)
        return ERRAND_ENOMEM;
    follow->spec = *spec;
    follow->wait = wait;
    follow->next = job->follows;
    job->follows = (uintptr_t)follow | ERRAND__DETAILS_FOLLOW;
    return ERRAND_OK;
}

uintptr_t
errand__details_join(uintptr_t follows, errand__failure *failure)
{
    uintptr_t *last = &follows;

    while ((*last & ERRAND__DETAILS_FOLLOW) != 0)
        last = &((errand__follow *)(*last & ~ERRAND__DETAILS_FOLLOW))->next;
    *last = (uintptr_t)failure;
    return follows;
}

errand__failure *
errand__details_failure(uintptr_t details)
{
    while ((details & ERRAND__DETAILS_FOLLOW) != 0)
        details = ((errand__follow *)(details & ~ERRAND__DETAILS_FOLLOW))->next;
    return (errand__failure *)details;
}

ERRAND_APART unsigned
errand__details_drop(errand__block *block, uintptr_t details)
{
    unsigned panics = 0;

    while ((details & ERRAND__DETAILS_FOLLOW) != 0) {
        errand__follow *follow = (errand__follow *)(details & ~ERRAND__DETAILS_FOLLOW);

        details = follow->next;
        panics += errand__spec_drop(&follow->spec);
        errand__mem_free(NULL, follow, sizeof *follow);
    }
    if (details != 0)
        errand__failure_give(block, (errand__failure *)details);
    return panics;
}
