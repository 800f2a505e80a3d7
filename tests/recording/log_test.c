/* SPDX-License-Identifier: MIT */
/* Goal: what is written into a log is what is read from it, block by block, and trouble of writing
 * ends the log and nothing else.
 * Method: logs without a runtime, of steps whose every field hangs on their number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include "errand/testing.h"
#include "log_rig.h"

static errand_log *
open_log(const log_rig *rig)
{
    errand_log *log = NULL;
    char text[128];

    assert_int_equal(errand_log_open(rig->path, &log, text, sizeof text), ERRAND_OK);
    assert_string_equal(text, "");
    return log;
}

static void
all_steps_come_back_as_they_were_written(void **state)
{
    log_rig *rig = *state;
    errand_log_step step;
    errand_log_end end;
    errand_log *log;

    log_fill(rig, 10000);
    log_end(rig);
    log = open_log(rig);
    for (uint64_t n = 1; n <= 10000; n++) {
        assert_true(errand_log_next(log, &step));
        assert_true(log_is_filled(n, &step));
    }
    assert_false(errand_log_next(log, &step));
    assert_false(errand_log_next(log, &step));
    assert_int_equal(errand_log_end_read(log, &end), ERRAND_OK);
    assert_int_equal(end.state, ERRAND_LOG_ENDED);
    assert_int_equal(end.steps, 10000);
    assert_int_equal(end.blocks, 3);
    assert_int_equal(end.digest, rig->mix);
    assert_int_equal(end.time_ns, 100000);
    assert_int_equal(end.run, ERRAND_ETIMEOUT);
    assert_true(end.clean);
    errand_log_close(&log);
    assert_null(log);
}

static void
the_header_says_who_made_it_and_how(void **state)
{
    log_rig *rig = *state;
    const errand_log_header *header;
    errand_log *log;

    log_end(rig);
    log = open_log(rig);
    header = errand_log_header_of(log);
    assert_int_equal(header->format, 1);
    assert_string_equal(header->version, "9.8.7");
    assert_int_equal(header->build, 11);
    assert_int_equal(header->config, 12);
    assert_string_equal(header->build_text, "the build");
    assert_string_equal(header->config_text, "the config");
    assert_int_equal(header->order, ERRAND_ORDER_INLINE);
    assert_int_equal(header->payloads, ERRAND_RECORD_PAYLOADS);
    assert_int_equal(header->seed, 77);
    assert_int_equal(header->start_ns, 5);
    assert_int_equal(header->policy, 3);
    assert_string_equal(header->policy_text, "shuffle");
    assert_null(errand_log_header_of(NULL));
    errand_log_close(&log);
    errand_log_close(&log);
    errand_log_close(NULL);
}

static void
blocks_end_behind_each_step_that_4096_divides(void **state)
{
    log_rig *rig = *state;
    const uint64_t counts[] = {4096, 904, 3192, 1808};
    errand_log_block block;
    errand_log_step step;
    errand_log *log;
    uint64_t first = 1, offset = 0;

    log_fill(rig, 5000);
    assert_int_equal(errand_recorder_sync(rig->recorder), ERRAND_OK);
    log_fill(rig, 5000);
    log_end(rig);
    log = open_log(rig);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(errand_log_block_read(log, i, &block), ERRAND_OK);
        assert_int_equal(block.first, first);
        assert_int_equal(block.count, counts[i]);
        if (i > 0)
            assert_int_equal(block.offset, offset);
        first += block.count;
        offset = block.offset + block.size;
    }
    assert_int_equal(block.mix, rig->mix);
    assert_int_equal(errand_log_block_read(log, 4, &block), ERRAND_EINVAL);
    assert_int_equal(errand_log_seek(log, 2), ERRAND_OK);
    assert_true(errand_log_next(log, &step));
    assert_true(log_is_filled(5001, &step));
    assert_int_equal(errand_log_seek(log, 0), ERRAND_OK);
    assert_true(errand_log_next(log, &step));
    assert_true(log_is_filled(1, &step));
    assert_int_equal(errand_log_seek(log, 5), ERRAND_EINVAL);
    assert_true(errand_log_next(log, &step));
    assert_true(log_is_filled(2, &step));
    errand_log_close(&log);
}

static void
a_blocks_digest_is_of_its_steps_alone(void **state)
{
    log_rig *rig = *state;
    errand_log_block block;
    errand_log *log;

    log_fill(rig, 5000);
    log_end(rig);
    log_read(rig);
    log = open_log(rig);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(errand_log_block_read(log, i, &block), ERRAND_OK);
        assert_int_equal(
            block.digest,
            errand__mix_bytes(0, rig->bytes + block.offset + ERRAND__FRAME_BYTES,
                              (size_t)block.count * ERRAND__STEP_BYTES));
    }
    assert_int_equal(block.mix, rig->mix);
    errand_log_close(&log);
}

static void
a_log_without_an_end_says_so(void **state)
{
    log_rig *rig = *state;
    errand_log_step step;
    errand_log_end end;
    errand_log *log;

    log_fill(rig, 4100);
    assert_int_equal(errand_recorder_sync(rig->recorder), ERRAND_OK);
    log_fill(rig, 100); /* never written */
    log_close(rig);
    log = open_log(rig);
    assert_int_equal(errand_log_end_read(log, &end), ERRAND_OK);
    assert_int_equal(end.state, ERRAND_LOG_OPEN);
    assert_int_equal(end.steps, 4100);
    assert_non_null(strstr(end.text, "no end"));
    for (uint64_t n = 1; n <= 4100; n++) {
        assert_true(errand_log_next(log, &step));
        assert_true(log_is_filled(n, &step));
    }
    assert_false(errand_log_next(log, &step));
    errand_log_close(&log);
}

static void
long_texts_are_cut_and_large_payloads_end_a_block(void **state)
{
    log_rig *rig = *state;
    static char text[6000], bytes[600000];
    errand_log_completion completion = {.outcome = ERRAND_COMPLETED,
                                        .payload = ERRAND_LOG_PAYLOAD_BYTES,
                                        .bytes = bytes,
                                        .size = sizeof bytes};
    errand_log_step step;
    errand_log_block block;
    errand_log *log;

    memset(text, 'x', sizeof text - 1);
    log_step(rig, ERRAND_STEP_NOTE, 0, text, NULL, NULL, 0);
    for (unsigned i = 0; i < 3; i++) {
        bytes[i] = 1;
        log_step(rig, ERRAND_STEP_COMPLETION, 0, "large", &completion, NULL, 0);
    }
    log_end(rig);
    log = open_log(rig);
    assert_int_equal(errand_log_block_read(log, 0, &block), ERRAND_OK);
    assert_int_equal(block.count, 3);
    assert_true(errand_log_next(log, &step));
    assert_int_equal(strlen(step.step.label), 4095);
    assert_string_equal(step.step.label + 4092, "...");
    for (unsigned i = 0; i < 3; i++) {
        const char *got;

        assert_true(errand_log_next(log, &step));
        got = step.completion->bytes;
        assert_int_equal(step.completion->size, sizeof bytes);
        assert_int_equal(got[i], 1);
        assert_int_equal(got[i + 1], 0);
    }
    errand_log_close(&log);
}

/* ---- trouble --------------------------------------------------------------------------------------- */

static void
a_full_disk_ends_the_log_and_is_told_to_who_asks(void **state)
{
    log_rig *rig = *state;
    struct rlimit limit, full;
    char text[128];
    errand_log_end end;
    errand_log *log;
    errand_status status;

    getrlimit(RLIMIT_FSIZE, &limit);
    full = limit;
    full.rlim_cur = 400000; /* less than two blocks */
    signal(SIGXFSZ, SIG_IGN);
    log_fill(rig, 4096);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    log_fill(rig, 9000);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    log_fill(rig, 9000); /* there would be room again, but a log has no gaps */
    assert_int_equal(errand_recorder_status(rig->recorder, text, sizeof text),
                     ERRAND_ESYSTEM);
    assert_int_equal(errno, EFBIG);
    assert_non_null(strstr(text, "step 4096: "));
    assert_int_equal(errand_recorder_sync(rig->recorder), ERRAND_ESYSTEM);
    errand__recorder_end(rig->recorder, &(errand_log_end){.digest = 0});
    errno = 0;
    status = errand_recorder_close(&rig->recorder); /* gone, whatever it answers */
    assert_int_equal(status, ERRAND_ESYSTEM);
    assert_int_equal(errno, EFBIG);
    assert_null(rig->recorder);
    log = open_log(rig);
    assert_int_equal(errand_log_end_read(log, &end), ERRAND_OK);
    assert_int_equal(end.state, ERRAND_LOG_TORN);
    assert_int_equal(end.steps, 4096);
    errand_log_close(&log);
}

static void
memory_that_runs_out_ends_the_log_behind_the_last_whole_step(void **state)
{
    log_rig *rig = *state;
    static char bytes[200000];
    char text[128];
    errand_log_step step;
    errand_log_end end;
    errand_log *log;

    log_fill(rig, 10);
    (void)errand_testing_fail_allocation(1);
    log_step(rig, ERRAND_STEP_NOTE, 0, "no room", NULL, bytes, sizeof bytes);
    (void)errand_testing_fail_allocation(0);
    log_fill(rig, 10);
    assert_int_equal(errand_recorder_status(rig->recorder, text, sizeof text),
                     ERRAND_ENOMEM);
    assert_string_equal(text, "the log ends after step 10: memory ran out");
    errand__recorder_end(rig->recorder, &(errand_log_end){.digest = 0});
    assert_int_equal(errand_recorder_close(&rig->recorder), ERRAND_ENOMEM);
    log = open_log(rig);
    for (uint64_t n = 1; n <= 10; n++) {
        assert_true(errand_log_next(log, &step));
        assert_true(log_is_filled(n, &step));
    }
    assert_false(errand_log_next(log, &step));
    assert_int_equal(errand_log_end_read(log, &end), ERRAND_OK);
    assert_int_equal(end.state, ERRAND_LOG_OPEN);
    errand_log_close(&log);
}

static void
opening_says_why_it_cannot(void **state)
{
    log_rig *rig = *state;
    errand_recorder_config config = {.struct_size = sizeof config,
                                     .path = "/nowhere/at all"};
    errand_recorder *recorder = NULL;
    errand_log *log = NULL;
    char text[128];

    assert_int_equal(errand_recorder_open(&config, &recorder), ERRAND_ESYSTEM);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(errand_log_open(config.path, &log, text, sizeof text),
                     ERRAND_ESYSTEM);
    assert_int_equal(errno, ENOENT);
    assert_string_equal(text, strerror(ENOENT));
    assert_int_equal(errand_log_open("/dev/null", &log, text, sizeof text),
                     ERRAND_EINVAL);
    assert_string_equal(text, "it is no regular file");
    config.payloads = (errand_record_payloads)7;
    assert_int_equal(errand_recorder_open(&config, &recorder), ERRAND_EINVAL);
    config = (errand_recorder_config){.path = rig->path};
    assert_int_equal(errand_recorder_open(&config, &recorder), ERRAND_EINVAL);
    assert_null(recorder);
    assert_null(log);
}

static void
opening_without_memory_opens_nothing(void **state)
{
    log_rig *rig = *state;
    errand_recorder_config config = {.struct_size = sizeof config, .path = "/dev/null"};
    errand_recorder *recorder = NULL;
    errand_log *log = NULL;
    unsigned tries = 0;

    log_fill(rig, 5);
    log_end(rig);
    for (errand_status status = ERRAND_ENOMEM; status != ERRAND_OK; tries++) {
        (void)errand_testing_fail_allocation(tries + 1);
        status = errand_recorder_open(&config, &recorder);
        (void)errand_testing_fail_allocation(0);
        assert_true(status == ERRAND_OK || status == ERRAND_ENOMEM);
        assert_true((status == ERRAND_OK) == (recorder != NULL));
    }
    assert_int_equal(tries, 6);
    assert_int_equal(errand_recorder_close(&recorder), ERRAND_OK);
    tries = 0;
    for (errand_status status = ERRAND_ENOMEM; status != ERRAND_OK; tries++) {
        (void)errand_testing_fail_allocation(tries + 1);
        status = errand_log_open(rig->path, &log, NULL, 0);
        (void)errand_testing_fail_allocation(0);
        assert_true(status == ERRAND_OK || status == ERRAND_ENOMEM);
        assert_true((status == ERRAND_OK) == (log != NULL));
    }
    assert_true(tries >= 4);
    errand_log_close(&log);
    (void)errand_testing_fail_allocation(1);
    assert_int_equal(errand_log_open(rig->path, &log, NULL, 0), ERRAND_ENOMEM);
    (void)errand_testing_fail_allocation(0);
    errand_log_close(&log);
}

static const char *const pieces[] = {"", "s", "ame by", "tes, other", " pieces"};

static bool
encode_whole(const void *data, size_t size, errand_sink *sink)
{
    (void)size;
    errand_sink_put(sink, data, strlen(data));
    return true;
}

static bool
encode_pieces(const void *data, size_t size, errand_sink *sink)
{
    (void)data;
    (void)size;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        errand_sink_put(sink, pieces[i], strlen(pieces[i]));
    return true;
}

static bool
encode_word(const void *data, size_t size, errand_sink *sink)
{
    (void)data;
    errand_sink_word(sink, size);
    return true;
}

static bool
encode_never(const void *data, size_t size, errand_sink *sink)
{
    (void)data;
    (void)size;
    errand_sink_put(sink, "half", 4);
    return false;
}

static void
the_pieces_in_which_bytes_come_change_no_digest(void **state)
{
    /* D43 */
    const char *text = "same bytes, other pieces";
    errand_payload_codec codec = {.struct_size = sizeof codec, .encode = encode_whole};
    errand__bytes bytes = {.data = NULL};
    uint64_t whole, other;
    bool kept;

    (void)state;
    assert_true(errand__sink_encode(&codec, text, 0, NULL, &whole, &kept));
    assert_false(kept);
    codec.encode = encode_pieces;
    assert_true(errand__sink_encode(&codec, text, 0, &bytes, &other, &kept));
    assert_true(kept);
    assert_int_equal(whole, other);
    assert_int_equal(bytes.size, strlen(text));
    assert_memory_equal(bytes.data, text, strlen(text));
    codec.encode = encode_word;
    assert_true(errand__sink_encode(&codec, text, 0x0102, &bytes, &other, &kept));
    assert_memory_equal(bytes.data, "\2\1\0\0\0\0\0\0", 8);
    assert_int_equal(bytes.size, 8);
    assert_int_not_equal(whole, other);
    codec.encode = encode_never;
    assert_false(errand__sink_encode(&codec, text, 0, &bytes, &other, &kept));
    errand__bytes_fini(&bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, log_setup, log_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(all_steps_come_back_as_they_were_written),
        TEST(the_header_says_who_made_it_and_how),
        TEST(blocks_end_behind_each_step_that_4096_divides),
        TEST(a_blocks_digest_is_of_its_steps_alone),
        TEST(a_log_without_an_end_says_so),
        TEST(long_texts_are_cut_and_large_payloads_end_a_block),
        TEST(a_full_disk_ends_the_log_and_is_told_to_who_asks),
        TEST(memory_that_runs_out_ends_the_log_behind_the_last_whole_step),
        TEST(opening_says_why_it_cannot),
        TEST(opening_without_memory_opens_nothing),
        TEST(the_pieces_in_which_bytes_come_change_no_digest),
    };
    return test_group("recording/log", tests, NULL, NULL);
}
