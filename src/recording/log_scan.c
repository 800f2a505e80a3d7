/* SPDX-License-Identifier: MIT */
/* log_scan: all of a log is looked at once, so that its end is known before its first step is used.
 *
 * Design notes.  Where a block is wrong and no good one follows, the log was cut there: a process
 * died while it wrote, or its disk was full.  Where a good one follows, what stands between is
 * damage, and it is named.  Blocks are keyed with the header's checksum, so that a block of
 * another log is never taken for one of this. */
#include <errno.h>
#include <string.h>
#include "recording/recording.h"

enum { FIXED = 48, TEXTS = 4, HEADER_MAX = 1 << 16, WINDOW = 1 << 16 };

static errand_status
refuse(char *out, size_t size, const char *text)
{
    if (out != NULL && size > 0)
        errand__text_format(out, size, "%s", text);
    return ERRAND_EINVAL;
}

/* ---- the header ------------------------------------------------------------------------------ */

static void
read_fixed(errand_log_header *header, const unsigned char *body)
{
    header->format = ERRAND__LOG_FORMAT;
    header->build = errand__read_word(body);
    header->config = errand__read_word(body + 8);
    header->seed = errand__read_word(body + 16);
    header->start_ns = errand__read_word(body + 24);
    header->order = (errand_order)errand__read_half(body + 32);
    header->policy = errand__read_half(body + 36);
    header->payloads = (errand_record_payloads)errand__read_half(body + 40);
}

/* The texts become strings where they stand: each length is overwritten by the end of the text
 * before it. */
static bool
read_texts(errand_log_header *header, unsigned char *body, size_t size)
{
    const char **texts[TEXTS] = {&header->version, &header->build_text,
                                 &header->config_text, &header->policy_text};
    size_t at = FIXED;

    for (size_t i = 0; i < TEXTS; i++) {
        uint32_t length;

        if (size - at < 4)
            return false;
        length = errand__read_half(body + at);
        body[at] = '\0';
        at += 4;
        if (length > size - at)
            return false;
        *texts[i] = (const char *)body + at;
        at += length;
    }
    body[at] = '\0';
    return true;
}

static errand_status
read_header(errand_log *log, char *out_text, size_t text_size, uint64_t *out_at)
{
    unsigned char head[ERRAND__HEAD_BYTES];
    unsigned char *body;
    uint32_t size;

    if (log->size == 0)
        return refuse(out_text, text_size, "it is empty");
    if (!errand__log_get(log, 0, head, sizeof head) ||
        errand__read_word(head) != ERRAND__LOG_MAGIC)
        return refuse(out_text, text_size, "it is no log of errand's");
    if (errand__read_half(head + 8) != ERRAND__LOG_FORMAT)
        return refuse(out_text, text_size,
                      "it has another format than this errand reads; use the errand that "
                      "wrote it");
    size = errand__read_half(head + 12);
    if (size < FIXED || size > HEADER_MAX || size > log->size - sizeof head)
        return refuse(out_text, text_size, "its header is cut or damaged");
    body = errand__mem_alloc(NULL, (size_t)size + 1);
    if (body == NULL)
        return ERRAND_ENOMEM;
    log->texts = (char *)body;
    log->texts_size = (size_t)size + 1;
    log->seal = errand__read_word(head + 16);
    if (!errand__log_get(log, sizeof head, body, size) ||
        errand__mix_bytes(errand__mix_bytes(0, head, 16), body, size) != log->seal)
        return refuse(out_text, text_size, "its header is cut or damaged");
    read_fixed(&log->header, body);
    if (!read_texts(&log->header, body, size))
        return refuse(out_text, text_size, "its header is cut or damaged");
    *out_at = sizeof head + size;
    return ERRAND_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------ */

bool
errand__frame_read(const errand_log *log, const unsigned char *bytes,
                   errand__frame_view *out_frame)
{
    uint64_t size;

    if (errand__read_word(bytes) != ERRAND__BLOCK_MAGIC ||
        errand__read_word(bytes + 72) != errand__mix_bytes(log->seal, bytes, 72))
        return false;
    *out_frame = (errand__frame_view){
        .kind = errand__read_half(bytes + 8),
        .size = errand__read_half(bytes + 12),
        .number = errand__read_word(bytes + 16),
        .first = errand__read_word(bytes + 24),
        .count = errand__read_half(bytes + 32),
        .string_count = errand__read_half(bytes + 36),
        .string_bytes = errand__read_half(bytes + 40),
        .more_bytes = errand__read_half(bytes + 44),
        .mix = errand__read_word(bytes + 48),
        .digest = errand__read_word(bytes + 56),
        .checksum = errand__read_word(bytes + 64),
    };
    size = (uint64_t)out_frame->count * (ERRAND__STEP_BYTES + ERRAND__PLACE_BYTES) +
           out_frame->string_bytes + out_frame->more_bytes;
    return size == out_frame->size && size > 0; /* no block is empty */
}

static bool
add_block(errand_log *log, uint64_t offset, const errand__frame_view *frame)
{
    if (log->block_count == log->block_room) {
        size_t room = log->block_room == 0 ? 16 : log->block_room * 2;
        errand_log_block *blocks = errand__mem_grow(
            NULL, log->blocks, log->block_room * sizeof *blocks, room * sizeof *blocks);

        if (blocks == NULL)
            return false;
        log->blocks = blocks;
        log->block_room = room;
    }
    log->blocks[log->block_count++] = (errand_log_block){
        .first = frame->first,
        .count = frame->count,
        .offset = offset,
        .size = (uint64_t)ERRAND__FRAME_BYTES + frame->size,
        .mix = frame->mix,
        .digest = frame->digest,
    };
    log->end.steps += frame->count;
    return true;
}

static void
read_end(errand_log *log, const errand__frame_view *frame)
{
    const unsigned char *body = log->body;

    if (frame->size != ERRAND__END_BYTES || frame->count != 0 ||
        errand__read_word(body) != log->end.steps) {
        log->end.state = ERRAND_LOG_DAMAGED;
        return;
    }
    log->end.state = ERRAND_LOG_ENDED;
    log->end.digest = errand__read_word(body + 8);
    log->end.time_ns = errand__read_word(body + 16);
    log->end.run = (errand_status)errand__read_half(body + 24);
    log->end.clean = body[32] != 0;
}

/* The step that the next good block behind this place begins with; 0 = none follows. */
static uint64_t
find_next(const errand_log *log, uint64_t at, unsigned char *window)
{
    errand__frame_view frame;

    while (log->size - at >= ERRAND__FRAME_BYTES) {
        uint64_t left = log->size - at;
        size_t size = left < WINDOW ? (size_t)left : WINDOW;

        if (!errand__log_get(log, at, window, size))
            return 0;
        for (size_t i = 0; i + ERRAND__FRAME_BYTES <= size; i++) {
            if (errand__frame_read(log, window + i, &frame))
                return frame.kind == ERRAND__BLOCK_OF_STEPS ? frame.first : UINT64_MAX;
        }
        at += size - (ERRAND__FRAME_BYTES - 1);
    }
    return 0;
}

/* Something at `at` is wrong: is it the end, or damage? */
static errand_status
judge(errand_log *log, uint64_t at)
{
    unsigned char *window = errand__mem_alloc(NULL, WINDOW);
    uint64_t next;

    if (window == NULL)
        return ERRAND_ENOMEM;
    next = find_next(log, at + 1, window);
    errand__mem_free(NULL, window, WINDOW);
    log->end.state = next == 0 ? ERRAND_LOG_TORN : ERRAND_LOG_DAMAGED;
    if (next != 0 && next != UINT64_MAX)
        errand__text_format(
            log->end.text, sizeof log->end.text,
            "block %zu, at byte %llu, is damaged: steps %llu to %llu are lost; reading "
            "ends before them",
            log->block_count, (unsigned long long)at,
            (unsigned long long)(log->end.steps + 1), (unsigned long long)(next - 1));
    return ERRAND_OK;
}

/* One block; *more: go on behind it. */
static errand_status
scan_block(errand_log *log, uint64_t *at, bool *more)
{
    unsigned char bytes[ERRAND__FRAME_BYTES];
    errand__frame_view frame;
    errand__load load;

    *more = false;
    if (!errand__log_get(log, *at, bytes, sizeof bytes) ||
        !errand__frame_read(log, bytes, &frame))
        return judge(log, *at);
    if (frame.number != log->block_count || frame.first != log->end.steps + 1)
        return judge(log, *at);
    load = errand__log_load(log, *at, &frame);
    if (load == ERRAND__LOAD_MEMORY)
        return ERRAND_ENOMEM;
    if (load == ERRAND__LOAD_FAILED)
        return ERRAND_ESYSTEM;
    if (load != ERRAND__LOAD_GOOD)
        return judge(log, *at);
    if (frame.kind == ERRAND__BLOCK_OF_END) {
        read_end(log, &frame);
        *at += (uint64_t)ERRAND__FRAME_BYTES + frame.size;
        return ERRAND_OK;
    }
    if (frame.kind != ERRAND__BLOCK_OF_STEPS || frame.count == 0)
        return judge(log, *at);
    if (!add_block(log, *at, &frame))
        return ERRAND_ENOMEM;
    *at += (uint64_t)ERRAND__FRAME_BYTES + frame.size;
    *more = true;
    return ERRAND_OK;
}

static void
describe(errand_log *log)
{
    errand_log_end *end = &log->end;
    const char *text = "";

    end->blocks = log->block_count;
    if (end->text[0] != '\0')
        return;
    switch (end->state) {
    case ERRAND_LOG_ENDED:
        text = "it ends with the run's end";
        break;
    case ERRAND_LOG_OPEN:
        text = "it has no end: the run goes on, or its process died";
        break;
    case ERRAND_LOG_TORN:
        text = "its last block is cut: the process died while it wrote, or the disk was "
               "full";
        break;
    case ERRAND_LOG_DAMAGED:
        text = "its last block of steps, or its end, is damaged";
        break;
    default:
        text = "it could not be read to its end";
        break;
    }
    errand__text_format(end->text, sizeof end->text, "%s (%llu steps, %llu bytes)", text,
                        (unsigned long long)end->steps, (unsigned long long)end->offset);
}

errand_status
errand__log_scan(errand_log *log, char *out_text, size_t text_size)
{
    uint64_t at = 0;
    bool more = true;
    errand_status status = read_header(log, out_text, text_size, &at);

    log->end.state = ERRAND_LOG_OPEN;
    while (status == ERRAND_OK && more && at < log->size)
        status = scan_block(log, &at, &more);
    if (status != ERRAND_OK)
        return status;
    log->end.offset = at;
    describe(log);
    return errand_log_seek(log, 0);
}
