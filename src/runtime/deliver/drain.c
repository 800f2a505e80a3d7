/* SPDX-License-Identifier: MIT */
/* Design notes: news.
 *
 * They are taken from the inbox as one chain and kept in `pending`; each delivery (deliver.c)
 * takes one from its front.  A drain collects once, at its start, so it is bounded by what was
 * there then (O68). */
#include "runtime/runtime.h"

void
errand__collect_some(errand_runtime *runtime)
{
    uintptr_t last, first = errand__inbox_take(runtime->block, &last);

    if (first == 0)
        return;
    runtime->news_ns = 0;
    runtime->clock_left = 0;
    if (errand__paced(runtime)) {
        first = errand__paced_sift(runtime, first, &last);
        if (first == 0)
            return;
    } else if (errand__seeded(runtime)) {
        first = errand__asked_sift(runtime, first, &last);
        if (first == 0)
            return;
    }
    if (!errand__paced(runtime) && runtime->registrar.domain_count != 0)
        errand__domains_note(runtime, first);
    if (runtime->pending == 0)
        runtime->pending = first;
    else
        *errand__node_next(runtime->pending_last) = first;
    runtime->pending_last = last;
}

static uintptr_t
pending_pop(errand_runtime *runtime)
{
    uintptr_t link = runtime->pending;

    if (link == 0)
        return 0;
    runtime->pending = *errand__node_next(link);
    if (runtime->pending != 0) { /* a record's other two lines */
        const char *next = errand__node_pointer(runtime->pending);

        errand__prefetch_own(next + ERRAND_LINE);
        errand__prefetch_own(next + 2 * ERRAND_LINE);
    }
    return link;
}

errand__item
errand__deliver_next(errand_runtime *runtime, errand_completion_fn *fn, void *arg)
{
    uintptr_t link = pending_pop(runtime);
    void *object = errand__node_pointer(link);

    if (link == 0)
        return ERRAND__ITEM_NONE;
    switch (errand__node_tag(link)) {
    case ERRAND__NODE_COMPLETION:
        if (((errand__record *)object)->phase == ERRAND__PHASE_HELD) {
            errand__held_finish(runtime, object);
            return ERRAND__ITEM_COMMAND;
        }
        errand__deliver(runtime, object, fn, arg);
        return ERRAND__ITEM_COMPLETION;
    case ERRAND__NODE_POSTED:
        errand__posted_run(runtime, object);
        return ERRAND__ITEM_COMMAND;
    default:
        errand__command_run(runtime, object);
        return ERRAND__ITEM_COMMAND;
    }
}

/* ---- the public face ------------------------------------------------------------------------------- */

errand_payload
errand_completion_take(errand_completion *completion)
{
    errand_payload payload = {.data = NULL};

    if (completion == NULL) {
        (void)errand__misuse(ERRAND_EINVAL, __func__, "the completion is NULL");
    } else {
        payload = completion->payload;
        completion->payload = (errand_payload){.data = NULL};
    }
    return payload;
}

errand_status
errand_completion_read(errand_completion *completion, const errand_payload_type *type,
                       void **out_data, size_t *out_size)
{
    static _Thread_local char text[256];

    ERRAND_REQUIRE_ARG(completion != NULL && type != NULL && out_data != NULL,
                       ERRAND_EINVAL, "completion, type and out_data are needed");
    if (completion->payload.held_type != type) {
        const errand_payload_type *has = completion->payload.held_type;

        if (has != NULL || completion->payload.data != NULL)
            errand__text_format(
                text, sizeof text, "operation '%s': its payload is '%s', not '%s'",
                completion->operation, has == NULL ? "untyped" : has->name, type->name);
        else
            errand__text_format(
                text, sizeof text, "operation '%s': there is no '%s': %s",
                completion->operation, type->name,
                completion->outcome == ERRAND_COMPLETED
                    ? "its payload was taken before, or the job gave none"
                    : "it did not complete, and only that gives a payload");
        completion->message = text;
        return ERRAND_EDECODE;
    }
    *out_data = completion->payload.data;
    if (out_size != NULL)
        *out_size = completion->payload.size;
    return ERRAND_OK;
}

/* Begins a drain: what an unwind left is finished, deadlines fire, the chain is collected. */
static void
drain_begin(errand_runtime *runtime)
{
    runtime->frame = errand__frame_innermost();
    runtime->draining = true;
    runtime->frame = errand__frame_innermost();
    errand__hand_finish(runtime);
    if (errand__replay_arrival(runtime))
        return;
    errand__put_off_run(runtime);
    if (runtime->deadlines.count != 0)
        errand__deadlines_fire(runtime, runtime->deadlines.count);
    errand__collect(runtime);
}

static size_t
drain_replay(errand_runtime *runtime, size_t budget, errand_completion_fn *fn, void *arg)
{
    const errand_budget limits = {
        .struct_size = sizeof limits,
        .completions = budget < UINT32_MAX ? (uint32_t)budget : 0,
    };
    errand__turn turn;

    if (budget == 0)
        return 0;
    errand__turn_init(&turn, &limits);
    turn.unlimited = false;
    turn.items = UINT32_MAX;
    runtime->turn = &turn;
    errand__turn_replay(runtime, &turn, fn, arg);
    runtime->turn = NULL;
    return turn.done.completions;
}

errand_status
errand_drain(errand_runtime *runtime, size_t budget, errand_completion_fn *fn, void *arg,
             size_t *out_count)
{
    size_t count = 0;
    errand__item item;

    ERRAND__ENTER(runtime);
    if (runtime->draining || runtime->driving)
        return errand__misuse(
            ERRAND_EBUSY, __func__,
            "a drain or drive is in progress, or was left and not unwound");
    if (runtime->external)
        return runtime->external_status;
    drain_begin(runtime);
    if (errand__replay_arrival(runtime))
        count = drain_replay(runtime, budget, fn, arg);
    while (!errand__replay_arrival(runtime) && count < budget &&
           (item = errand__deliver_next(runtime, fn, arg)) != ERRAND__ITEM_NONE)
        count += item == ERRAND__ITEM_COMPLETION;
    if (errand__seeded(runtime))
        while (count < budget &&
               errand__due_next(runtime, runtime->scheduler.now, fn, arg))
            count++;
    errand__flush_many(runtime);
    if (runtime->fd_wanted)
        errand__fd_update(runtime);
    runtime->draining = false;
    errand__input_turn(runtime, ERRAND_TURN_STEP_END, 0, 0);
    if (runtime->external && runtime->external_status == ERRAND_EREPRODUCE)
        return ERRAND_EREPRODUCE;
    if (out_count != NULL)
        *out_count = count;
    return ERRAND_OK;
}
