/* SPDX-License-Identifier: MIT */
/* Design notes: what happened, as one number and as a call per step.
 *
 * A step is 64 bytes, each field written out low byte first, so that neither padding nor the
 * machine's byte order gets in; the label goes in as a hash of its own, so ("a", "bc") and
 * ("ab", "c") differ (D42).  The digest of the steps before is the key of the next hash, so it
 * also tells their order.  What was chosen since the step before goes in as one folded word: runs
 * whose choices differ have different digests, also where nothing else shows it yet (D45).  It is
 * kept in seeded orders, and where a recorder listens; in arrival
 * order it would say nothing, so nobody is told it there.
 *
 * A step of a task's run has a hash of what was ready beside it: of two runs that differ it tells
 * whether the same set was ready and another task was chosen, or whether somebody was woken that
 * was not in the other.
 *
 * An event is read word by word: it was written so just before, and a wider read, as a copy of the
 * whole is, would wait until those words are out of the store buffer. */
#include <string.h>
#include "scheduler/audit.h"

void
errand__audit_event(errand__scheduler *scheduler, const errand_step *event,
                    uint64_t label_hash)
{
    errand__audit *audit = &scheduler->audit;
    unsigned char bytes[ERRAND__AUDIT_BYTES];
    errand__step_frame frame;
    errand_step step;

    if (!errand__audit_listens(audit))
        return;
    frame = errand__step_take(scheduler);
    if (audit->seeded || audit->record != NULL) {
        errand__step_write(bytes, &frame, event, label_hash);
        audit->mix = errand__mix_step(audit->mix, bytes);
    }
    if (audit->trace == NULL && audit->record == NULL && audit->replay == NULL)
        return;
    step = *event;
    step.step = frame.step;
    step.time_ns = frame.time_ns;
    step.chosen = frame.chosen;
    if (audit->replay != NULL)
        audit->replay(audit->replay_arg, &step);
    if (audit->record != NULL)
        audit->record(audit->record_arg, &step, bytes, label_hash);
    if (audit->trace != NULL)
        audit->trace(audit->trace_arg, &step);
}

void
errand__audit_tell(errand__scheduler *scheduler, uint64_t what, uint64_t key,
                   uint64_t value, uint64_t context, const char *label,
                   uint64_t label_hash)
{
    errand__audit_event(scheduler,
                        &(errand_step){
                            .kind = (errand_step_kind)(what >> 32),
                            .detail = (uint32_t)what,
                            .key = key,
                            .value = value,
                            .context = context,
                            .label = label,
                        },
                        label_hash);
}

void
errand__audit_step(errand__scheduler *scheduler, errand_step_kind kind, uint32_t detail,
                   uint64_t key, uint64_t value, const char *label)
{
    const errand_step step = {
        .kind = kind,
        .detail = detail,
        .key = key,
        .value = value,
        .label = label,
    };

    if (errand__audit_listens(&scheduler->audit))
        errand__audit_event(scheduler, &step, errand__label_hash(label));
}

/* By its bytes, not its address: what lies there now need not be what lay there before. */
uint64_t
errand__label_recall(errand__scheduler *scheduler, const char *label)
{
    errand__label_known *known =
        &scheduler->labels[(uintptr_t)label / 16 % ERRAND__LABELS_KNOWN];
    size_t size;

    if (known->text[0] != '\0' && strcmp(label, known->text) == 0)
        return known->hash;
    size = strlen(label);
    if (size == 0 || size >= sizeof known->text)
        return errand__label_hash(label);
    memcpy(known->text, label, size + 1);
    return known->hash = errand__label_hash(label);
}

const char *
errand_step_name(errand_step_kind kind)
{
    static const char *const names[] = {
        [ERRAND_STEP_SUBMIT] = "submit",   [ERRAND_STEP_COMPLETION] = "completion",
        [ERRAND_STEP_TASK] = "task",       [ERRAND_STEP_SPAWN] = "spawn",
        [ERRAND_STEP_END] = "end",         [ERRAND_STEP_TIMER] = "timer",
        [ERRAND_STEP_CANCEL] = "cancel",   [ERRAND_STEP_DRAW] = "draw",
        [ERRAND_STEP_COMMAND] = "command", [ERRAND_STEP_NOTE] = "note",
        [ERRAND_STEP_TIME] = "time",       [ERRAND_STEP_STOP] = "stop",
        [ERRAND_STEP_STOPPED] = "stopped", [ERRAND_STEP_REFUSED] = "refused",
        [ERRAND_STEP_FOUND] = "found",     [ERRAND_STEP_HOOK] = "hook",
        [ERRAND_STEP_TURN] = "turn",
    };
    size_t number = (size_t)kind;

    if (number >= sizeof names / sizeof names[0] || names[number] == NULL)
        return "unknown";
    return names[number];
}

uint64_t
errand__audit_digest(const errand__audit *audit)
{
    unsigned char bytes[8];

    if (audit->chosen == 0)
        return audit->mix;
    errand__word_write(bytes, audit->chosen);
    return errand__mix_bytes(audit->mix, bytes, sizeof bytes);
}
