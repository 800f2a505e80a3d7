/* SPDX-License-Identifier: MIT */
/* replay_result: an operation ends as the log has it.
 *
 * Design notes.  No executor ever had it, so it is queued until here, unless a cancel or a deadline
 * of the replay settled it, as one did in the log.  What it brings is made before anything changes:
 * a result that cannot be made leaves the log with the operation untouched, and the shutdown counts
 * it as cancelled.  Bytes of a log are not trusted: a codec's decode looks at them, as everybody
 * does who reads a log. */
#include <string.h>
#include "runtime/replay/replay.h"

static const errand__digesters *
codec_of(const errand_runtime *runtime, const char *name)
{
    const errand__digesters *known = runtime->digesters;

    while (known != NULL &&
           (known->codec == NULL || strcmp(known->codec_name, name) != 0))
        known = known->next;
    return known;
}

/* Makes the payload of the log's next step; false: it cannot be, and the run has left the log. */
static bool
make_payload(errand_runtime *runtime, const errand_log_completion *image)
{
    errand_replay *replay = runtime->config.held_replay;
    const errand__digesters *known;
    char text[224];
    errand_status status;

    replay->payload = (errand_payload){.data = NULL};
    if (image->payload == ERRAND_LOG_PAYLOAD_NONE)
        return true;
    if (image->payload != ERRAND_LOG_PAYLOAD_BYTES) {
        errand__text_format(text, sizeof text,
                            "the log has no bytes of its result, a '%.60s': record with "
                            "payloads, and register a codec for its type",
                            image->payload_type);
        errand__replay_leave(runtime, text);
        return false;
    }
    known = codec_of(runtime, image->payload_type);
    status = known == NULL
                 ? ERRAND_EUNKNOWN
                 : known->codec->decode(image->bytes, image->size, &replay->payload);
    if (status == ERRAND_OK && replay->payload.held_type == known->type)
        return true;
    if (status == ERRAND_OK)
        errand__leak_count(runtime, errand__payload_drop(&replay->payload));
    errand__text_format(text, sizeof text, "its result is a '%.60s', %s",
                        image->payload_type,
                        known == NULL ? "for which no codec is registered here"
                        : status == ERRAND_ENOMEM ? "for which memory ran out"
                                                  : "whose bytes its codec cannot read");
    errand__replay_leave(runtime, text);
    return false;
}

/* The end of a run that follows no log any more: nobody will ever run it. */
static bool
settle_unheard(errand_runtime *runtime, errand__record *record)
{
    errand_lease *lease = runtime->leases[record->lease];

    if (!runtime->closing)
        return false;
    (void)errand__settle_queued(runtime->block, record, (uint32_t)record->generation,
                                ERRAND_CANCELLED, ERRAND_CODE_CANCELLED, &lease->cells[0],
                                &errand__owner_putter);
    return errand__pending_take(runtime, record);
}

bool
errand__replay_settle(errand_runtime *runtime, errand__record *record)
{
    errand_replay *replay = runtime->config.held_replay;
    errand_lease *lease = runtime->leases[record->lease];
    const errand_log_step *next = errand__replay_peek(runtime);
    char text[160];

    if (!replay->live)
        return settle_unheard(runtime, record);
    if (next == NULL || next->step.kind != ERRAND_STEP_COMPLETION ||
        next->completion == NULL ||
        next->step.key != errand__record_key(runtime, record)) {
        errand__text_format(text, sizeof text,
                            "the run came to the completion of operation '%.80s'",
                            errand__record_name(record));
        errand__replay_leave(runtime, text);
        return false;
    }
    if (next->completion->outcome < ERRAND_COMPLETED ||
        next->completion->outcome > ERRAND_CRASHED ||
        (unsigned)next->completion->code >= ERRAND_CODES) {
        errand__replay_leave(runtime, "there is no such outcome");
        return false;
    }
    if (!make_payload(runtime, next->completion))
        return false;
    (void)errand__settle_queued(runtime->block, record, (uint32_t)record->generation,
                                next->completion->outcome, next->completion->code,
                                &lease->cells[0], &errand__owner_putter);
    if (!errand__pending_take(runtime,
                              record)) { /* it was told already: not the same run */
        errand__leak_count(runtime, errand__payload_drop(&replay->payload));
        errand__replay_leave(runtime, "in this run it was told before");
        return false;
    }
    replay->settled = record;
    return true;
}

/* Message and system call live as long as a failure of the pool does. */
static void
fill_texts(errand_runtime *runtime, const errand_log_completion *image,
           errand_completion *completion)
{
    errand__failure *failure;

    completion->message =
        image->code == ERRAND_CODE_NONE ? "" : errand_code_text(image->code);
    completion->system_call = NULL;
    if (image->system_call[0] == '\0' &&
        (image->message[0] == '\0' || strcmp(image->message, completion->message) == 0))
        return;
    failure = runtime->hand_failure;
    if (failure == NULL)
        failure = errand__failure_take(runtime->block);
    if (failure == NULL) {
        completion->flags |= ERRAND_MESSAGE_LOST;
        return;
    }
    runtime->hand_failure = failure;
    errand__text_format(failure->text, sizeof failure->text, "%s", image->message);
    errand__text_format(failure->system_call, sizeof failure->system_call, "%s",
                        image->system_call);
    failure->sys_errno = image->sys_errno;
    failure->signal_number = image->signal_number;
    completion->message = failure->text;
    if (failure->system_call[0] != '\0')
        completion->system_call = failure->system_call;
}

void
errand__replay_fill(errand_runtime *runtime, const errand__record *record,
                    errand_completion *completion)
{
    errand_replay *replay = runtime->config.held_replay;
    const errand_log_step *next = errand__replay_peek(runtime);
    const errand_log_completion *image;

    if (next == NULL || next->completion == NULL || replay->settled != record)
        return;
    image = next->completion;
    completion->outcome = image->outcome;
    completion->code = image->code;
    completion->flags |= image->flags & (ERRAND_HELD | ERRAND_MESSAGE_LOST);
    completion->payload = replay->payload;
    replay->payload = (errand_payload){.data = NULL};
    completion->job_code = image->job_code;
    completion->sys_errno = image->sys_errno;
    completion->signal_number = image->signal_number;
    runtime->hand_rest = true;
    fill_texts(runtime, image, completion);
    if (runtime->config.times == ERRAND_TIMES_NONE)
        return;
    completion->t_submit_ns = image->t_submit_ns;
    completion->t_start_ns = image->t_start_ns;
    completion->t_end_ns = image->t_end_ns;
}

bool
errand__replay_digest(const errand_runtime *runtime, uint64_t *out_digest,
                      uint64_t *out_size)
{
    errand_replay *replay = runtime->config.held_replay;
    const errand_log_step *next;

    if (replay == NULL || replay->settled == NULL || replay->settled != runtime->hand)
        return false;
    replay->settled = NULL;
    next = errand__replay_peek(runtime);
    if (next == NULL || next->completion == NULL)
        return false;
    *out_digest = next->completion->payload_digest;
    *out_size = next->completion->payload_size;
    return true;
}

bool
errand__replay_back(const errand_runtime *runtime, const errand__record *record)
{
    const errand_log_step *next = errand__replay_peek(runtime);

    return !errand__replay_live(runtime) ||
           (next != NULL && next->step.kind == ERRAND_STEP_TURN &&
            next->step.detail == ERRAND_TURN_STEP_BACK &&
            next->step.key == errand__record_key(runtime, record));
}
