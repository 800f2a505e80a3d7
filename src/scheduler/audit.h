/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_AUDIT_H
#define ERRAND_AUDIT_H
/* audit: how a step is written and folded, for those who do it for every operation. */
#include "core/mix.h"
#include "scheduler/scheduler.h"

/* Takes a step's number, and what was chosen since the one before. */
typedef struct errand__step_frame {
    uint64_t step, time_ns, chosen;
} errand__step_frame;
static inline errand__step_frame
errand__step_take(errand__scheduler *scheduler)
{
    errand__audit *audit = &scheduler->audit;
    errand__step_frame frame = {++audit->steps, scheduler->now, audit->chosen};

    audit->chosen = 0;
    return frame;
}

static inline void
errand__step_write(unsigned char *bytes, const errand__step_frame *frame,
                   const errand_step *event, uint64_t label_hash)
{
    errand__word_write(bytes, frame->step);
    errand__word_write(bytes + 8, frame->time_ns);
    errand__word_write(bytes + 16, (uint64_t)event->kind << 32 | event->detail);
    errand__word_write(bytes + 24, event->key);
    errand__word_write(bytes + 32, event->value);
    errand__word_write(bytes + 40, label_hash);
    errand__word_write(bytes + 48, frame->chosen);
    errand__word_write(bytes + 56, event->context);
}

/* errand__audit_event, with the step's parts by value: so that nothing of a caller's has to be in
 * memory for it, which would cost that a guard of its stack, too.  what: kind << 32 | detail. */
void errand__audit_tell(errand__scheduler *scheduler, uint64_t what, uint64_t key,
                        uint64_t value, uint64_t context, const char *label,
                        uint64_t label_hash);

/* errand__audit_event, inlined as far as a step is only folded: its words are in registers then,
 * and those that are constant cost nothing. */
__attribute__((always_inline)) static inline void
errand__audit_fold(errand__scheduler *scheduler, const errand_step *event,
                   uint64_t label_hash)
{
    errand__audit *audit = &scheduler->audit;
    unsigned char bytes[ERRAND__AUDIT_BYTES];
    errand__step_frame frame;

    if (__builtin_expect(!errand__audit_only_folds(audit), 0)) {
        errand__audit_tell(scheduler, (uint64_t)event->kind << 32 | event->detail,
                           event->key, event->value, event->context, event->label,
                           label_hash);
        return;
    }
    frame = errand__step_take(scheduler);
    errand__step_write(bytes, &frame, event, label_hash);
    audit->mix = errand__mix_step(audit->mix, bytes);
}
#endif
