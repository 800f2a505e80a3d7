/* SPDX-License-Identifier: MIT */
/* Goal: no bytes crash the reader of logs or make it hang, read beyond them or give a text without end.
 * Method: the first byte chooses.  Even: the rest is the file.  Odd: the rest is the body of a block
 * that is sealed as if it had been written, so that what lies behind the checksums is reached too. */
#include <stdlib.h>
#include <string.h>
#include "recording/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sum; /* so that nothing that is read is left out */

static void
touch(const void *bytes, size_t size)
{
    for (size_t i = 0; bytes != NULL && i < size; i++)
        sum += ((const unsigned char *)bytes)[i];
}

static void
touch_text(const char *text)
{
    if (text != NULL)
        touch(text, strlen(text));
}

static void
read_log(errand_log *log)
{
    errand_log_step step;
    errand_log_end end;
    errand_log_block block;
    uint64_t last = 0;

    touch_text(errand_log_header_of(log)->version);
    touch_text(errand_log_header_of(log)->build_text);
    touch_text(errand_log_header_of(log)->config_text);
    touch_text(errand_log_header_of(log)->policy_text);
    while (errand_log_next(log, &step)) {
        if (step.step.step != last + 1)
            abort();
        last++;
        touch_text(step.step.label);
        touch(step.bytes, step.size);
        if (step.completion != NULL) {
            touch_text(step.completion->message);
            touch_text(step.completion->system_call);
            touch_text(step.completion->payload_type);
            touch(step.completion->bytes, step.completion->size);
        }
    }
    if (errand_log_end_read(log, &end) != ERRAND_OK || end.text[0] == '\0' ||
        last > end.steps)
        abort();
    for (uint64_t i = 0; errand_log_block_read(log, i, &block) == ERRAND_OK; i++) {
        if (block.count == 0 || errand_log_seek(log, i) != ERRAND_OK)
            abort();
        if (errand_log_next(log, &step) && step.step.step != block.first)
            abort();
    }
}

static size_t
write_head(unsigned char *out)
{
    unsigned char *body = out + ERRAND__HEAD_BYTES;
    size_t size = 48 + 16;

    memset(out, 0, ERRAND__HEAD_BYTES + size);
    errand__word_write(out, ERRAND__LOG_MAGIC);
    errand__write_half(out + 8, ERRAND__LOG_FORMAT);
    errand__write_half(out + 12, (uint32_t)size);
    errand__word_write(out + 16,
                       errand__mix_bytes(errand__mix_bytes(0, out, 16), body, size));
    return ERRAND__HEAD_BYTES + size;
}

/* {count, strings, bytes of strings : 2 each, body}: the frame says what the body has room for. */
static size_t
write_block(unsigned char *out, uint64_t seal, const uint8_t *data, size_t size)
{
    size_t count = data[0] | (size_t)data[1] << 8,
           strings = data[2] | (size_t)data[3] << 8;
    size_t parts[4] = {0, 0, data[4] | (size_t)data[5] << 8, 0};
    const unsigned char *body = data + 6;
    uint64_t checksum = seal;

    size -= 6;
    if (count > size / 72)
        count = size / 72;
    parts[0] = count * ERRAND__STEP_BYTES;
    parts[1] = count * ERRAND__PLACE_BYTES;
    if (parts[2] > size - parts[0] - parts[1])
        parts[2] = size - parts[0] - parts[1];
    parts[3] = size - parts[0] - parts[1] - parts[2];
    memcpy(out + ERRAND__FRAME_BYTES, body, size);
    for (unsigned i = 0; i < 4; i++) {
        checksum = errand__mix_bytes(checksum, body, parts[i]);
        body += parts[i];
    }
    errand__word_write(out, ERRAND__BLOCK_MAGIC);
    errand__write_half(out + 8, ERRAND__BLOCK_OF_STEPS);
    errand__write_half(out + 12, (uint32_t)size);
    errand__word_write(out + 24, 1);
    errand__write_half(out + 32, (uint32_t)count);
    errand__write_half(out + 36, (uint32_t)strings);
    errand__write_half(out + 40, (uint32_t)parts[2]);
    errand__write_half(out + 44, (uint32_t)parts[3]);
    errand__word_write(out + 64, checksum);
    errand__word_write(out + 72, errand__mix_bytes(seal, out, 72));
    return ERRAND__FRAME_BYTES + size;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *made = NULL;
    errand_log *log = NULL;
    char text[128];
    bool sealed = size > 0 && (data[0] & 1) != 0;

    if (size < 7)
        sealed = false;
    if (sealed) {
        made = calloc(1, size + 1024);
        if (made == NULL)
            abort();
        size_t head = write_head(made);
        size = head +
               write_block(made + head, errand__read_word(made + 16), data + 1, size - 1);
    } else if (size > 0) {
        data++;
        size--;
    }
    if (errand__log_open_memory(sealed ? made : data, size, &log, text, sizeof text) ==
        ERRAND_OK)
        read_log(log);
    else if (sealed)
        abort();
    errand_log_close(&log);
    free(made);
    return 0;
}
