/* SPDX-License-Identifier: MIT */
/* Design notes: what can be prepared, and how it is dropped.
 *
 * The check is one list of rules, so that every way in (prepare, start, follow, tasks) refuses
 * the same things with the same words.  "Unbounded and not interruptible" cannot be built: the
 * class says how it is stopped, and quarantined work needs a bound (O12, O14). */
#include "dispatch/dispatch.h"
#include "errand/executor.h"

errand_status
errand__spec_check(const errand_spec *spec, const char **out_text)
{
    const errand_job_type *job = spec->held_job;
    bool quarantined = spec->resource_class == ERRAND_QUARANTINED_BLOCKING;
    const char *text = NULL;

    if (spec->struct_size != sizeof *spec)
        text = "spec->struct_size must be sizeof(errand_spec)";
    else if (spec->kind == 0)
        text = "spec->kind must not be 0";
    else if (spec->resource_class < ERRAND_INTERRUPTIBLE_BLOCKING ||
             spec->resource_class > ERRAND_INTERRUPTIBLE_ASYNC)
        text = "spec->resource_class must be one of the three";
    else if (job == NULL || (job->struct_size != sizeof *job &&
                             job->struct_size != ERRAND__JOB_TYPE_SECOND &&
                             job->struct_size != ERRAND__JOB_TYPE_FIRST))
        text = "spec->held_job is needed, with its struct_size set";
    else if (spec->resource_class == ERRAND_INTERRUPTIBLE_ASYNC ? job->poll == NULL
                                                                : job->run == NULL)
        text = "the job type lacks run (blocking) or poll (async)";
    else if (spec->priority > 2 || spec->lane >= ERRAND_LANES ||
             (spec->flags &
              ~(unsigned)(ERRAND_SPEC_NO_SIGNAL | ERRAND_SPEC_EFFECT_FREE)) != 0)
        text = "spec->priority, lane or flags is out of range";
    else if (quarantined && spec->quarantine_ns == 0 && spec->work_max == 0)
        text = "quarantined work needs quarantine_ns or work_max above 0";
    else if (quarantined && spec->held_hook != NULL)
        text = "quarantined work cannot be stopped and takes no hook";
    else if (!quarantined && (spec->quarantine_ns != 0 || spec->work_max != 0))
        text = "quarantine_ns and work_max are for quarantined work";
    else if (spec->work_max != 0 && spec->held_work_unit == NULL)
        text = "work_max needs held_work_unit, the unit's name";
    else if (spec->held_hook != NULL &&
             (spec->held_hook->struct_size != sizeof(errand_hook_type) ||
              spec->held_hook->cancel == NULL))
        text = "the hook type needs struct_size and cancel";
    else if (spec->held_decoder != NULL &&
             (spec->held_decoder->struct_size != sizeof(errand_decoder_type) ||
              spec->held_decoder->decode == NULL))
        text = "the decoder type needs struct_size and decode";
    if (out_text != NULL)
        *out_text = text;
    return text == NULL ? ERRAND_OK : ERRAND_EINVAL;
}

void
errand__record_fill(errand__record *record, const errand_spec *spec, errand__extra *extra)
{
    record->job = spec->held_job;
    record->state = spec->state;
    record->payload = (errand_payload){.data = NULL};
    record->times = 0;
    record->decoder = spec->held_decoder;
    record->decoder_data = spec->decoder_data;
    record->hook = spec->held_hook;
    record->hook_data = spec->hook_data;
    record->resource_class = (uint8_t)spec->resource_class;
    record->lane = spec->lane;
    record->priority = spec->priority;
    record->job_code = record->sys_errno = 0;
    record->extra = extra;
    if (extra == NULL)
        return;
    if (extra == &errand__label_only || spec->held_name != NULL || spec->trace_id != 0) {
        errand__label *label = errand__record_label(record);
        if (label->name != spec->held_name || label->trace_id != spec->trace_id)
            *label = (errand__label){.name = spec->held_name, .trace_id = spec->trace_id};
        if (extra == &errand__label_only)
            return;
        extra->labelled = true;
    } else {
        extra->labelled = false; /* and the label's line is not touched */
    }
    extra->no_signal = (spec->flags & ERRAND_SPEC_NO_SIGNAL) != 0;
    extra->effect_free = (spec->flags & ERRAND_SPEC_EFFECT_FREE) != 0;
    if (extra->brief)
        return;
    extra->deadline_ns = spec->deadline_ns;
    extra->soft_ns = spec->soft_ns;
    extra->quarantine_ns = spec->quarantine_ns;
    extra->work_max = spec->work_max;
}

/* ---- drops, each contained ------------------------------------------------------------------ */
/* A part is crossed out before it is called, so that whoever was left by longjmp can go on. */
static void
drop_job(void *arg)
{
    errand_spec *spec = arg;
    const errand_job_type *job = spec->held_job;

    spec->held_job = NULL;
    job->drop(spec->state);
}

static void
drop_decoder(void *arg)
{
    errand_spec *spec = arg;
    const errand_decoder_type *decoder = spec->held_decoder;

    spec->held_decoder = NULL;
    decoder->drop(spec->decoder_data);
}

static void
drop_hook(void *arg)
{
    errand_spec *spec = arg;
    const errand_hook_type *hook = spec->held_hook;

    spec->held_hook = NULL;
    hook->drop(spec->hook_data);
}

ERRAND_APART unsigned
errand__spec_drop(errand_spec *spec)
{
    unsigned leaked = 0;
    char text[64];

    if (spec->held_decoder != NULL && spec->held_decoder->drop != NULL)
        leaked += errand__contained(drop_decoder, spec, text, sizeof text);
    if (spec->held_hook != NULL && spec->held_hook->drop != NULL)
        leaked += errand__contained(drop_hook, spec, text, sizeof text);
    if (spec->held_job != NULL && spec->held_job->drop != NULL)
        leaked += errand__contained(drop_job, spec, text, sizeof text);
    return leaked;
}

ERRAND_APART unsigned
errand__record_drop_decoder(errand__record *record)
{
    errand_spec spec = {.held_decoder = record->decoder,
                        .decoder_data = record->decoder_data};

    record->decoder = NULL;
    return spec.held_decoder == NULL ? 0 : errand__spec_drop(&spec);
}

ERRAND_APART unsigned
errand__record_drop_hook(errand__record *record)
{
    errand_spec spec = {.held_hook = record->hook, .hook_data = record->hook_data};

    record->hook = NULL;
    return spec.held_hook == NULL ? 0 : errand__spec_drop(&spec);
}

static void
drop_payload(void *arg)
{
    errand_payload_drop(arg);
}

ERRAND_APART unsigned
errand__payload_drop(errand_payload *payload)
{
    char text[64];

    return errand__contained(drop_payload, payload, text, sizeof text);
}

static void
tell_job(void *arg)
{
    const errand__record *record = arg;

    record->job->told(record->state);
}

ERRAND_APART unsigned
errand__record_tell(errand__record *record)
{
    char text[64];

    return errand__contained(tell_job, record, text, sizeof text);
}

ERRAND_APART unsigned
errand__record_drop_state(errand__record *record)
{
    errand_spec spec = {.held_job = record->job, .state = record->state};

    if (record->job->drop == NULL)
        return 0;
    return errand__spec_drop(&spec);
}
