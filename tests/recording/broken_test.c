/* SPDX-License-Identifier: MIT */
/* Goal: a log that is cut or changed anywhere gives the steps before that place and says what it is;
 * none is believed that was not written.
 * Method: a small log cut at every byte, and with every byte changed; a larger one with one bit of
 * each block flipped; and made-up blocks whose checksums are right. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "log_rig.h"

static char refusal[128];

/* NULL = refused, with the reason in refusal. */
static errand_log *
open_bytes(const void *bytes, size_t size)
{
    errand_log *log = NULL;
    errand_status status =
        errand__log_open_memory(bytes, size, &log, refusal, sizeof refusal);

    if (status == ERRAND_OK)
        return log;
    assert_int_equal(status, ERRAND_EINVAL);
    assert_true(refusal[0] != '\0');
    return NULL;
}

/* Reads to the end; all steps are as they were written.  Answers how many. */
static uint64_t
read_all(errand_log *log, errand_log_end *out_end)
{
    errand_log_step step;
    uint64_t count = 0;

    while (errand_log_next(log, &step))
        assert_true(log_is_filled(++count, &step));
    assert_int_equal(errand_log_end_read(log, out_end), ERRAND_OK);
    assert_true(out_end->text[0] != '\0');
    errand_log_close(&log);
    return count;
}

static size_t
header_size(const log_rig *rig)
{
    return ERRAND__HEAD_BYTES + errand__read_half(rig->bytes + 12);
}

static void
a_log_cut_at_any_byte_gives_what_stands_before(void **state)
{
    log_rig *rig = *state;
    uint64_t last = 0;

    for (unsigned i = 0; i < 3; i++) {
        log_fill(rig, 5);
        assert_int_equal(errand_recorder_sync(rig->recorder), ERRAND_OK);
    }
    log_end(rig);
    log_read(rig);
    for (size_t size = 0; size < rig->size; size++) {
        errand_log *log = open_bytes(rig->bytes, size);
        errand_log_end end;
        uint64_t count;

        assert_true((log != NULL) == (size >= header_size(rig)));
        if (log == NULL)
            continue;
        count = read_all(log, &end);
        assert_true(count % 5 == 0 && count >= last);
        assert_true(end.state == ERRAND_LOG_TORN || end.state == ERRAND_LOG_OPEN);
        assert_true((end.state == ERRAND_LOG_OPEN) == (end.offset == size));
        assert_int_equal(end.steps, count);
        last = count;
    }
    assert_int_equal(last, 15);
}

static void
a_log_with_any_bit_changed_is_never_believed(void **state)
{
    log_rig *rig = *state;

    for (unsigned i = 0; i < 2; i++) {
        log_fill(rig, 5);
        assert_int_equal(errand_recorder_sync(rig->recorder), ERRAND_OK);
    }
    log_end(rig);
    log_read(rig);
    for (size_t at = 0; at < rig->size; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            errand_log *log;
            errand_log_end end;

            rig->bytes[at] ^= (unsigned char)(1U << bit);
            log = open_bytes(rig->bytes, rig->size);
            assert_true((log != NULL) == (at >= header_size(rig)));
            if (log != NULL) {
                assert_true(read_all(log, &end) % 5 == 0);
                assert_int_not_equal(end.state, ERRAND_LOG_ENDED);
            }
            rig->bytes[at] ^= (unsigned char)(1U << bit);
        }
    }
}

static void
a_damaged_block_is_named_with_the_steps_that_are_lost(void **state)
{
    log_rig *rig = *state;
    errand_log_block blocks[5];
    errand_log *log;

    log_fill(rig, 5 * 4096);
    log_end(rig);
    log_read(rig);
    log = open_bytes(rig->bytes, rig->size);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(errand_log_block_read(log, i, &blocks[i]), ERRAND_OK);
    errand_log_close(&log);
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned part = 0; part < 2; part++) { /* its frame, its body */
            size_t at =
                (size_t)blocks[i].offset + (part == 0 ? 30 : (size_t)blocks[i].size / 2);
            char name[64];
            errand_log_end end;

            rig->bytes[at] ^= 16;
            assert_int_equal(read_all(open_bytes(rig->bytes, rig->size), &end), i * 4096);
            rig->bytes[at] ^= 16;
            assert_int_equal(end.state, ERRAND_LOG_DAMAGED);
            assert_int_equal(end.offset, blocks[i].offset);
            errand__text_format(name, sizeof name, "block %u, at byte %llu, is damaged",
                                i, (unsigned long long)blocks[i].offset);
            if (i < 4) {
                assert_non_null(strstr(end.text, name));
                errand__text_format(name, sizeof name, "steps %u to %u are lost",
                                    i * 4096 + 1, (i + 1) * 4096);
                assert_non_null(strstr(end.text, name));
            }
        }
    }
}

static void
what_is_no_log_is_refused_by_a_reason(void **state)
{
    log_rig *rig = *state;

    log_end(rig);
    log_read(rig);
    assert_null(open_bytes(rig->bytes, 0));
    assert_string_equal(refusal, "it is empty");
    assert_null(open_bytes("#!/bin/sh\n", 10));
    assert_string_equal(refusal, "it is no log of errand's");
    rig->bytes[8] = 2;
    assert_null(open_bytes(rig->bytes, rig->size));
    assert_non_null(strstr(refusal, "another format"));
    rig->bytes[8] = 1;
    rig->bytes[24] ^= 1;
    assert_null(open_bytes(rig->bytes, rig->size));
    assert_string_equal(refusal, "its header is cut or damaged");
}

static void
a_block_of_another_log_is_no_block_of_this(void **state)
{
    log_rig *rig = *state;
    errand_log_end end;
    size_t size;

    log_fill(rig, 5);
    log_end(rig);
    log_read(rig);
    size = errand__read_half(rig->bytes + 12);
    rig->bytes[ERRAND__HEAD_BYTES] ^= 1; /* as if another build had begun the log */
    errand__word_write(rig->bytes + 16,
                       errand__mix_bytes(errand__mix_bytes(0, rig->bytes, 16),
                                         rig->bytes + ERRAND__HEAD_BYTES, size));
    assert_int_equal(read_all(open_bytes(rig->bytes, rig->size), &end), 0);
    assert_int_equal(end.state, ERRAND_LOG_TORN);
}

/* ---- made-up blocks ----------------------------------------------------------------------------------- */

/* Seals the only block again, as if it had been written like this. */
static void
seal_again(log_rig *rig, size_t at)
{
    unsigned char *frame = rig->bytes + at, *body = frame + ERRAND__FRAME_BYTES;
    uint64_t seal = errand__read_word(rig->bytes + 16);
    size_t count = errand__read_half(frame + 32);
    size_t parts[4] = {count * 64, count * 8, errand__read_half(frame + 40),
                       errand__read_half(frame + 44)};
    uint64_t checksum = seal;

    for (unsigned i = 0; i < 4; i++) {
        checksum = errand__mix_bytes(checksum, body, parts[i]);
        body += parts[i];
    }
    errand__word_write(frame + 64, checksum);
    errand__word_write(frame + 72, errand__mix_bytes(seal, frame, 72));
}

static void
made_up_places_in_a_block_end_the_reading(void **state)
{
    log_rig *rig = *state;
    size_t at, size;

    log_fill(rig, 5);
    log_end(rig);
    log_read(rig);
    at = header_size(rig);
    size = ERRAND__FRAME_BYTES + errand__read_half(rig->bytes + at + 12);
    for (size_t i = ERRAND__FRAME_BYTES; i < size; i++) {
        for (unsigned bit = 0; bit < 8; bit += 7) {
            errand_log_step step;
            errand_log_end end;
            errand_log *log;

            rig->bytes[at + i] ^= (unsigned char)(1U << bit);
            seal_again(rig, at);
            log = open_bytes(rig->bytes, rig->size);
            assert_non_null(log);
            while (errand_log_next(log, &step)) {
                if (step.step.label != NULL)
                    assert_true(strlen(step.step.label) < 100);
                if (step.completion != NULL)
                    assert_true(strlen(step.completion->message) < 100);
            }
            assert_int_equal(errand_log_end_read(log, &end), ERRAND_OK);
            errand_log_close(&log);
            rig->bytes[at + i] ^= (unsigned char)(1U << bit);
        }
    }
}

/* Neither blocks, whether somebody reads or not; and a run's log is no reader's to stop. */
static void
a_pipe_is_no_log_and_takes_none(void **state)
{
    log_rig *rig = *state;
    errand_recorder_config config = {.struct_size = sizeof config};
    errand_recorder *recorder = NULL;
    errand_log *log = NULL;
    char path[sizeof rig->path + 8];
    int reader;

    snprintf(path, sizeof path, "%s.pipe", rig->path);
    config.path = path;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(errand_log_open(path, &log, refusal, sizeof refusal), ERRAND_EINVAL);
    assert_string_equal(refusal, "it is no regular file");
    assert_int_equal(errand_recorder_open(&config, &recorder), ERRAND_ESYSTEM);
    assert_int_equal(errno, ENXIO);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(errand_recorder_open(&config, &recorder), ERRAND_ESYSTEM);
    assert_int_equal(errno, ESPIPE);
    close(reader);
    unlink(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, log_setup, log_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(a_log_cut_at_any_byte_gives_what_stands_before),
        TEST(a_log_with_any_bit_changed_is_never_believed),
        TEST(a_damaged_block_is_named_with_the_steps_that_are_lost),
        TEST(what_is_no_log_is_refused_by_a_reason),
        TEST(a_block_of_another_log_is_no_block_of_this),
        TEST(made_up_places_in_a_block_end_the_reading),
        TEST(a_pipe_is_no_log_and_takes_none),
    };
    return test_group("recording/broken", tests, NULL, NULL);
}
