/* SPDX-License-Identifier: MIT */
/* Design notes: what happened, as one number and as a call per step.
 *
 * A step is 48 bytes, each field written out low byte first, so that neither padding nor the
 * machine's byte order gets in; the label goes in as a hash of its own, so ("a", "bc") and
 * ("ab", "c") differ (D42).  The digest of the steps before is the key of the next hash, so it
 * also tells their order.  It is kept in seeded orders only: in arrival it would say nothing. */
#include <string.h>
#include "scheduler/scheduler.h"

enum { STEP_BYTES = 48 };

/* Written out, so that compilers make one store of it where the machine's order is the same. */
static inline void
write_word(unsigned char *out, uint64_t word)
{
    errand__word_write(out, word);
}

static void
fold(errand__audit *audit, const errand_step *step)
{
    unsigned char bytes[STEP_BYTES];
    uint64_t label =
        step->label == NULL ? 0 : errand__mix_bytes(1, step->label, strlen(step->label));

    write_word(bytes, step->step);
    write_word(bytes + 8, step->time_ns);
    write_word(bytes + 16, (uint64_t)step->kind << 32 | step->detail);
    write_word(bytes + 24, step->key);
    write_word(bytes + 32, step->value);
    write_word(bytes + 40, label);
    audit->mix = errand__mix_bytes(audit->mix, bytes, sizeof bytes);
}

void
errand__audit_step(errand__scheduler *scheduler, errand_step_kind kind, uint32_t detail,
                   uint64_t key, uint64_t value, const char *label)
{
    errand__audit *audit = &scheduler->audit;
    errand_step step;

    if (!audit->seeded && audit->trace == NULL)
        return;
    step = (errand_step){
        .step = ++audit->steps,
        .time_ns = scheduler->now,
        .kind = kind,
        .detail = detail,
        .key = key,
        .value = value,
        .label = label,
    };
    if (audit->seeded)
        fold(audit, &step);
    if (audit->trace != NULL)
        audit->trace(audit->trace_arg, &step);
}
