/* SPDX-License-Identifier: MIT */
/* log_read: blocks become steps.
 *
 * Design notes.  A block's checksum says that it is what was written, not that what was written
 * makes sense: whoever makes up a log can make up its checksums.  So every place that a step names
 * is compared with the block's bounds; a step that names a wrong one ends the reading. */
#include <string.h>
#include "recording/recording.h"

static bool index_strings(errand_log *log, const errand__frame_view *frame);

static bool
make_room(errand_log *log, const errand__frame_view *frame)
{
    if (frame->size > log->body_room) {
        unsigned char *body = errand__mem_alloc(NULL, frame->size);

        if (body == NULL)
            return false;
        errand__mem_free(NULL, log->body, log->body_room);
        log->body = body;
        log->body_room = frame->size;
    }
    if (frame->string_count > log->string_room) {
        uint32_t *string_at =
            errand__mem_alloc(NULL, frame->string_count * sizeof *string_at);

        if (string_at == NULL)
            return false;
        errand__mem_free(NULL, log->string_at, log->string_room * sizeof *log->string_at);
        log->string_at = string_at;
        log->string_room = frame->string_count;
    }
    return true;
}

/* As it was made: piece by piece. */
static uint64_t
checksum_of(const errand_log *log, const errand__frame_view *frame)
{
    size_t steps = (size_t)frame->count * ERRAND__STEP_BYTES;
    size_t places = (size_t)frame->count * ERRAND__PLACE_BYTES;
    const unsigned char *body = log->body;
    uint64_t checksum = log->seal;

    if (frame->kind != ERRAND__BLOCK_OF_STEPS)
        return errand__mix_bytes(checksum, body, frame->size);
    checksum = errand__mix_bytes(checksum, body, steps);
    checksum = errand__mix_bytes(checksum, body + steps, places);
    body += steps + places;
    checksum = errand__mix_bytes(checksum, body, frame->string_bytes);
    return errand__mix_bytes(checksum, body + frame->string_bytes, frame->more_bytes);
}

errand__load
errand__log_load(errand_log *log, uint64_t offset, const errand__frame_view *frame)
{
    uint64_t body = offset + ERRAND__FRAME_BYTES;

    log->loaded = false;
    if (frame->size > log->size - body)
        return ERRAND__LOAD_SHORT;
    if (frame->string_count > frame->string_bytes / 3)
        return ERRAND__LOAD_WRONG;
    if (!make_room(log, frame))
        return ERRAND__LOAD_MEMORY;
    if (!errand__log_get(log, body, log->body, frame->size))
        return ERRAND__LOAD_FAILED;
    if (checksum_of(log, frame) != frame->checksum)
        return ERRAND__LOAD_WRONG;
    log->body_size = frame->size;
    log->strings = (uint32_t)(frame->count * (ERRAND__STEP_BYTES + ERRAND__PLACE_BYTES));
    log->more = log->strings + frame->string_bytes;
    log->string_count = frame->string_count;
    return index_strings(log, frame) ? ERRAND__LOAD_GOOD : ERRAND__LOAD_WRONG;
}

static bool
index_strings(errand_log *log, const errand__frame_view *frame)
{
    uint32_t at = log->strings;

    for (uint32_t i = 0; i < frame->string_count; i++) {
        uint32_t length;

        if (log->more - at < 3)
            return false;
        length = (uint32_t)log->body[at] | (uint32_t)log->body[at + 1] << 8;
        if (length + 3 > log->more - at || log->body[at + 2 + length] != '\0')
            return false;
        log->string_at[i] = at + 2;
        at += length + 3;
    }
    return at == log->more;
}

/* ---- steps -------------------------------------------------------------------------------------- */

/* 0 = none: what stands in its place. */
static bool
string_of(const errand_log *log, uint32_t number, const char *none, const char **out)
{
    *out = none;
    if (number > log->string_count)
        return false;
    if (number != 0)
        *out = (const char *)log->body + log->string_at[number - 1];
    return true;
}

static bool
read_completion(errand_log *log, const unsigned char *in, uint32_t size)
{
    errand_log_completion *completion = &log->completion;

    if (size < ERRAND__COMPLETION_BYTES)
        return false;
    *completion = (errand_log_completion){
        .outcome = (errand_outcome)errand__read_half(in),
        .code = (errand_code)errand__read_half(in + 4),
        .flags = errand__read_half(in + 8),
        .job_code = (int32_t)errand__read_half(in + 12),
        .sys_errno = (int32_t)errand__read_half(in + 16),
        .signal_number = (int32_t)errand__read_half(in + 20),
        .payload = (errand_log_payload)errand__read_half(in + 36),
        .operation = errand__read_word(in + 40),
        .trace_id = errand__read_word(in + 48),
        .t_submit_ns = errand__read_word(in + 56),
        .t_start_ns = errand__read_word(in + 64),
        .t_end_ns = errand__read_word(in + 72),
        .payload_size = errand__read_word(in + 80),
        .payload_digest = errand__read_word(in + 88),
    };
    if (completion->payload > ERRAND_LOG_PAYLOAD_UNKNOWN)
        return false;
    if (completion->payload == ERRAND_LOG_PAYLOAD_BYTES) {
        completion->bytes = in + ERRAND__COMPLETION_BYTES;
        completion->size = size - ERRAND__COMPLETION_BYTES;
    }
    return string_of(log, errand__read_half(in + 24), "", &completion->message) &&
           string_of(log, errand__read_half(in + 28), "", &completion->system_call) &&
           string_of(log, errand__read_half(in + 32), "", &completion->payload_type);
}

static bool
read_more(errand_log *log, uint32_t place, errand_log_step *step)
{
    const unsigned char *in = log->body + log->more;
    uint32_t left = (uint32_t)log->body_size - log->more, size;

    if (place == 0)
        return step->step.kind != ERRAND_STEP_COMPLETION;
    if (place - 1 > left || left - (place - 1) < ERRAND__MORE_BYTES)
        return false;
    in += place - 1;
    left -= place - 1;
    size = errand__read_half(in);
    if (size < ERRAND__MORE_BYTES || size > left)
        return false;
    if (errand__read_half(in + 4) == ERRAND__MORE_COMPLETION) {
        step->completion = &log->completion;
        return step->step.kind == ERRAND_STEP_COMPLETION &&
               read_completion(log, in + ERRAND__MORE_BYTES, size - ERRAND__MORE_BYTES);
    }
    step->bytes = in + ERRAND__MORE_BYTES;
    step->size = size - ERRAND__MORE_BYTES;
    return step->step.kind != ERRAND_STEP_COMPLETION;
}

static bool
read_step(errand_log *log, uint64_t number, errand_log_step *out)
{
    const errand_log_block *block = &log->blocks[log->block];
    const unsigned char *in = log->body + log->place * ERRAND__STEP_BYTES;
    const unsigned char *place =
        log->body + block->count * ERRAND__STEP_BYTES + log->place * ERRAND__PLACE_BYTES;
    uint64_t kind = errand__read_word(in + 16);

    *out = (errand_log_step){
        .step =
            {
                .step = errand__read_word(in),
                .time_ns = errand__read_word(in + 8),
                .kind = (errand_step_kind)(kind >> 32),
                .detail = (uint32_t)kind,
                .key = errand__read_word(in + 24),
                .value = errand__read_word(in + 32),
                .chosen = errand__read_word(in + 48),
                .context = errand__read_word(in + 56),
            },
    };
    return out->step.step == number &&
           string_of(log, errand__read_half(place), NULL, &out->step.label) &&
           read_more(log, errand__read_half(place + 4), out);
}

/* The block again, which may have changed since the scan. */
static bool
load_again(errand_log *log)
{
    const errand_log_block *block = &log->blocks[log->block];
    unsigned char bytes[ERRAND__FRAME_BYTES];
    errand__frame_view frame;

    log->loaded = errand__log_get(log, block->offset, bytes, sizeof bytes) &&
                  errand__frame_read(log, bytes, &frame) &&
                  frame.kind == ERRAND__BLOCK_OF_STEPS && frame.count == block->count &&
                  frame.digest == block->digest &&
                  errand__log_load(log, block->offset, &frame) == ERRAND__LOAD_GOOD;
    if (!log->loaded) {
        log->end.state = ERRAND_LOG_UNREADABLE;
        errand__text_format(log->end.text, sizeof log->end.text,
                            "block %llu could not be read again: memory ran out, or the "
                            "file changed",
                            (unsigned long long)log->block);
        return false;
    }
    log->loaded = true;
    return true;
}

bool
errand_log_next(errand_log *log, errand_log_step *out_step)
{
    const errand_log_block *block;

    if (log == NULL || out_step == NULL) {
        (void)errand__misuse(ERRAND_EINVAL, __func__, "log and out_step are needed");
        return false;
    }
    while (log->block < log->block_count && log->place >= log->blocks[log->block].count) {
        log->block++;
        log->place = 0;
        log->loaded = false;
    }
    if (log->block >= log->block_count || log->end.state == ERRAND_LOG_UNREADABLE)
        return false;
    if (!log->loaded && !load_again(log))
        return false;
    block = &log->blocks[log->block];
    if (!read_step(log, block->first + log->place, out_step)) {
        log->end.state = ERRAND_LOG_DAMAGED;
        errand__text_format(log->end.text, sizeof log->end.text,
                            "step %llu, in block %llu, makes no sense",
                            (unsigned long long)(block->first + log->place),
                            (unsigned long long)log->block);
        log->block_count = log->block; /* nothing behind it is read */
        return false;
    }
    log->place++;
    return true;
}
