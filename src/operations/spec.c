/* SPDX-License-Identifier: MIT */
/* spec: what every errand_spec_* function fills in, how one is given up, and the two
 * operations without any system call. */
#include <string.h>
#include "operations/operations.h"

typedef struct echo_state {
    size_t size;
    const char *bytes;
} echo_state;

static int32_t nothing_run(errand_job *job, void *state, errand_payload *out_payload);
static int32_t echo_run(errand_job *job, void *state, errand_payload *out_payload);

static const errand_job_type nothing_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "nothing",
    .run = nothing_run,
    .drop = errand__operation_block_free,
};
static const errand_job_type echo_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "echo",
    .run = echo_run,
    .drop = errand__operation_block_free,
};

void
errand__operation_spec_fill(errand_spec *out_spec, uint32_t kind,
                            const errand_job_type *held_job, void *state)
{
    *out_spec = (errand_spec)ERRAND_SPEC_INIT;
    out_spec->kind = kind;
    out_spec->resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    out_spec->held_job = held_job;
    out_spec->state = state;
}

void
errand_spec_abandon(errand_spec *spec)
{
    if (spec == NULL)
        return;
    errand_spec gone = *spec;
    memset(spec, 0, sizeof *spec);
    if (gone.held_decoder != NULL && gone.held_decoder->drop != NULL)
        gone.held_decoder->drop(gone.decoder_data);
    if (gone.held_hook != NULL && gone.held_hook->drop != NULL)
        gone.held_hook->drop(gone.hook_data);
    if (gone.held_job != NULL && gone.held_job->drop != NULL)
        gone.held_job->drop(gone.state);
}

errand_status
errand_spec_nothing(errand_spec *out_spec)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL, ERRAND_EINVAL, "out_spec is NULL");
    errand__operation_spec_fill(out_spec, ERRAND_KIND_NOTHING, &nothing_job, NULL);
    out_spec->flags = ERRAND_SPEC_EFFECT_FREE;
    return ERRAND_OK;
}

errand_status
errand_spec_echo(errand_spec *out_spec, const void *bytes, size_t size)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL, ERRAND_EINVAL, "out_spec is NULL");
    ERRAND_REQUIRE_ARG(bytes != NULL || size == 0, ERRAND_EINVAL, "bytes is NULL");
    if (size > PTRDIFF_MAX - sizeof(echo_state))
        return ERRAND_ENOMEM;
    echo_state *state = errand__operation_block_alloc_for(sizeof *state, size);
    if (state == NULL)
        return ERRAND_ENOMEM;
    errand__operation_cursor cursor = {(char *)(state + 1)};
    state->size = size;
    state->bytes = errand__operation_copy(&cursor, bytes, size);
    errand__operation_spec_fill(out_spec, ERRAND_KIND_ECHO, &echo_job, state);
    out_spec->flags = ERRAND_SPEC_EFFECT_FREE;
    return ERRAND_OK;
}

static int32_t
nothing_run(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 0;
}

static int32_t
echo_run(errand_job *job, void *state, errand_payload *out_payload)
{
    const echo_state *echo = state;
    char *block = errand__operation_bytes_alloc(echo->size);

    if (block == NULL)
        return errand__operation_no_memory(job, echo->size);
    if (echo->size > 0)
        memcpy(block + sizeof(errand_file_bytes), echo->bytes, echo->size);
    errand__operation_payload_bytes(out_payload, block, echo->size);
    return 0;
}
