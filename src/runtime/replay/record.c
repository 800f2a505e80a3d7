/* SPDX-License-Identifier: MIT */
/* record: the glue between a runtime and its recorder.
 *
 * Design notes.  The audit makes the steps; a step that carries more (a completion, a note's bytes)
 * leaves it in the runtime for the one call of the audit that follows.  The recorder takes what it
 * can: its trouble is told to whoever asks it, and never to the run (a full disk must not change
 * what a program does).  A completion is recorded before its decoder sees it, because that may take
 * the payload, and because a replay will call the decoder again. */
#include "runtime/runtime.h"

static void
hear(void *arg, const errand_step *step, const unsigned char *bytes, uint64_t label_hash)
{
    errand_runtime *runtime = arg;
    const errand__record_step heard = {
        .bytes = bytes,
        .step = step->step,
        .label_hash = label_hash,
        .mix = runtime->scheduler.audit.mix,
        .label = step->label,
        .completion = runtime->record_completion,
        .more = runtime->record_bytes,
        .more_size = runtime->record_size,
    };

    runtime->record_completion = NULL;
    runtime->record_bytes = NULL;
    runtime->record_size = 0;
    errand__recorder_step(runtime->config.held_recorder, &heard);
}

void
errand__record_begin(errand_runtime *runtime)
{
    const errand_runtime_config *config = &runtime->config;
    const errand_choices plain = ERRAND_CHOICES_INIT;
    const errand_choices *given = &runtime->scheduler.chooser.given;
    const errand_choices *choices = given->struct_size != 0 ? given : &plain;
    char policy[128] = "arrival";
    const errand_log_header header = {
        .version = errand_version(),
        .order = config->order,
        .seed = config->seed,
        .start_ns = config->start_ns,
        .policy = (uint32_t)choices->policy | (uint32_t)choices->provider
                                                  << ERRAND__LOG_PROVIDER_SHIFT,
        .policy_text = policy,
    };

    if (config->held_recorder == NULL)
        return;
    if (errand__seeded(runtime))
        (void)errand_choices_print(choices, policy, sizeof policy);
    else
        runtime->scheduler.audit.inputs = true;
    errand__recorder_begin(config->held_recorder, &header, &runtime->owner);
    runtime->scheduler.audit.record = hear;
    runtime->scheduler.audit.record_arg = runtime;
    errand__audit_heard(&runtime->scheduler.audit);
}

errand_status
errand_record_codec(errand_runtime *runtime, const errand_payload_type *held_type,
                    const char *held_name, const errand_payload_codec *held_codec)
{
    errand__digesters *digester;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(held_type != NULL && held_name != NULL && held_codec != NULL,
                       ERRAND_EINVAL, "held_type, held_name and held_codec are needed");
    ERRAND_REQUIRE_ARG(held_codec->struct_size == sizeof *held_codec &&
                           held_codec->encode != NULL && held_codec->decode != NULL,
                       ERRAND_EINVAL,
                       "held_codec needs its struct_size, encode and decode");
    digester = errand__digester_need(runtime, held_type);
    if (digester == NULL)
        return ERRAND_ENOMEM;
    digester->codec = held_codec;
    digester->codec_name = held_name;
    return ERRAND_OK;
}

/* ---- payloads -------------------------------------------------------------------------------- */

/* May these bytes, a copy, be written? */
static bool
allowed(const errand_recorder *recorder, const char *operation, errand__bytes *bytes)
{
    return recorder->redact == NULL ||
           recorder->redact(recorder->redact_arg, operation, bytes->data, bytes->size);
}

static void
record_payload(errand_runtime *runtime, const errand_completion *completion,
               errand_log_completion *image)
{
    errand_recorder *recorder = runtime->config.held_recorder;
    const errand_payload *payload = &completion->payload;
    const errand__digesters *digester;
    uint64_t digest;
    bool kept = false;

    if (payload->data == NULL)
        return;
    image->payload = ERRAND_LOG_PAYLOAD_UNKNOWN;
    if (payload->held_type == NULL)
        return;
    image->payload_type = payload->held_type->name;
    digester = errand__digester_find(runtime, payload->held_type);
    if (digester == NULL)
        return;
    if (digester->codec_name != NULL)
        image->payload_type = digester->codec_name;
    if (digester->digest == NULL && image->payload_digest == 0)
        return; /* its codec refused */
    image->payload = ERRAND_LOG_PAYLOAD_DIGEST;
    if (recorder->payloads == ERRAND_RECORD_DIGESTS || digester->codec == NULL)
        return;
    if (!errand__sink_encode(digester->codec, payload->data, payload->size,
                             &recorder->scratch, &digest, &kept)) {
        image->payload = ERRAND_LOG_PAYLOAD_UNKNOWN;
        return;
    }
    image->payload = ERRAND_LOG_PAYLOAD_LEFT_OUT;
    if (!kept || !allowed(recorder, completion->operation, &recorder->scratch))
        return;
    image->payload = ERRAND_LOG_PAYLOAD_BYTES;
    image->bytes = recorder->scratch.data;
    image->size = recorder->scratch.size;
}

void
errand__record_completion(errand_runtime *runtime, const errand__record *record,
                          uint64_t digest, errand_log_completion *out_image)
{
    const errand_completion *completion = &runtime->hand_completion;

    *out_image = (errand_log_completion){
        .outcome = completion->outcome,
        .code = completion->code,
        .flags = completion->flags,
        .job_code = completion->job_code,
        .sys_errno = completion->sys_errno,
        .signal_number = completion->signal_number,
        .message = completion->message,
        .system_call = completion->system_call,
        .operation = record->operation,
        .trace_id = completion->trace_id,
        .t_submit_ns = completion->t_submit_ns,
        .t_start_ns = completion->t_start_ns,
        .t_end_ns = completion->t_end_ns,
        .payload_size = completion->payload.size,
        .payload_digest = digest,
    };
    record_payload(runtime, completion, out_image);
    runtime->record_completion = out_image;
}

void
errand__record_note(errand_runtime *runtime, const char *label, const void *bytes,
                    size_t size)
{
    errand_recorder *recorder = runtime->config.held_recorder;

    if (recorder == NULL || recorder->payloads == ERRAND_RECORD_DIGESTS ||
        size > ERRAND__PAYLOAD_MAX)
        return;
    recorder->scratch.size = 0;
    if (!errand__bytes_put(&recorder->scratch, bytes, size) ||
        !allowed(recorder, label, &recorder->scratch))
        return;
    runtime->record_bytes = recorder->scratch.data;
    runtime->record_size = size;
}

void
errand__record_end(errand_runtime *runtime, bool clean)
{
    const errand_log_end end = {
        .digest = errand__audit_digest(&runtime->scheduler.audit),
        .time_ns = runtime->scheduler.now,
        .run = runtime->run_status,
        .clean = clean,
    };

    if (runtime->config.held_recorder != NULL)
        errand__recorder_end(runtime->config.held_recorder, &end);
}
