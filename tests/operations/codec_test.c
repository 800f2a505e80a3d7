/* SPDX-License-Identifier: MIT */
/* Goal: what a codec wrote becomes an equal payload, and bytes that it did not write are refused, or
 * become a payload that is whole.
 * Method: payloads made by hand go through the codecs; then each of their bytes is changed, and they
 * are cut at each place. */
#include <stdlib.h>
#include <string.h>
#include "errand/files.h"
#include "errand/record.h"
#include "recording/recording.h"
#include "rig.h"
#include "runtime/runtime.h"

static const errand_payload_codec *
codec_of(test_rig *rig, const errand_payload_type *type)
{
    assert_int_equal(errand_operations_codecs(rig->runtime), ERRAND_OK);
    return errand__digester_find(rig->runtime, type)->codec;
}

static errand__bytes
encode(const errand_payload_codec *codec, const void *data, size_t size)
{
    errand__bytes bytes = {.data = NULL};
    uint64_t digest;
    bool kept = false;

    assert_true(errand__sink_encode(codec, data, size, &bytes, &digest, &kept));
    assert_true(kept);
    return bytes;
}

/* What it makes may differ, but is all there: written again it is as long as it should be. */
static void
expect_whole(const errand_payload_codec *codec, const unsigned char *bytes, size_t size)
{
    errand_payload payload = {.data = NULL};
    errand_status status = codec->decode(bytes, size, &payload);

    if (status != ERRAND_OK) {
        assert_int_equal(status, ERRAND_EDECODE);
        assert_null(payload.data);
        return;
    }
    errand__bytes again = encode(codec, payload.data, payload.size);
    assert_int_equal(again.size, size);
    errand__bytes_fini(&again);
    errand_payload_drop(&payload);
}

static void
expect_there_and_back(test_rig *rig, const errand_payload_type *type, const void *data,
                      size_t size, uint64_t (*digest)(const void *data, size_t size))
{
    const errand_payload_codec *codec = codec_of(rig, type);
    errand_payload payload = {.data = NULL};
    errand__bytes bytes = encode(codec, data, size);

    assert_int_equal(codec->decode(bytes.data, bytes.size, &payload), ERRAND_OK);
    assert_ptr_equal(payload.held_type, type);
    assert_int_equal(payload.size, size);
    assert_int_equal(digest(payload.data, payload.size), digest(data, size));
    errand__bytes again = encode(codec, payload.data, payload.size);
    assert_int_equal(again.size, bytes.size);
    if (bytes.size > 0)
        assert_memory_equal(again.data, bytes.data, bytes.size);
    errand__bytes_fini(&again);
    errand_payload_drop(&payload);
    for (size_t cut = 0; cut < bytes.size; cut++) {
        unsigned char *part = malloc(cut + 1); /* so that a reader beyond it is found */
        memcpy(part, bytes.data, cut);
        expect_whole(codec, part, cut);
        free(part);
    }
    for (size_t at = 0; at < bytes.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes.data[at] ^= (unsigned char)(1U << bit);
            expect_whole(codec, bytes.data, bytes.size);
            bytes.data[at] ^= (unsigned char)(1U << bit);
        }
    errand__bytes_fini(&bytes);
}

static void
payloads_of_files_come_back_from_their_bytes(void **state)
{
    test_rig *rig = *state;
    char text[] = "a\0b";
    const errand_file_bytes file = {(unsigned char *)text, 3};
    const errand_file_bytes none = {(unsigned char *)text, 0};
    const errand_file_written written = {UINT64_MAX};
    const errand_file_stat about = {ERRAND_FILE_LINK, 0644, 77, -5};
    const errand_hash hash = {1, 2};
    const errand_file_place place = {UINT64_MAX - 1};

    expect_there_and_back(rig, &errand_file_bytes_type, &file, sizeof file + 3,
                          errand_file_bytes_digest);
    expect_there_and_back(rig, &errand_file_bytes_type, &none, sizeof none,
                          errand_file_bytes_digest);
    expect_there_and_back(rig, &errand_file_written_type, &written, sizeof written,
                          errand_file_written_digest);
    expect_there_and_back(rig, &errand_file_stat_type, &about, sizeof about,
                          errand_file_stat_digest);
    expect_there_and_back(rig, &errand_hash_type, &hash, sizeof hash, errand_hash_digest);
    expect_there_and_back(rig, &errand_file_place_type, &place, sizeof place,
                          errand_file_place_digest);
}

static void
lists_come_back_from_their_bytes(void **state)
{
    test_rig *rig = *state;
    const errand_dir_entry entries[] = {{"a", ERRAND_FILE_REGULAR},
                                        {"", ERRAND_FILE_OTHER},
                                        {"a long name", ERRAND_FILE_DIRECTORY}};
    const errand_dir_list list = {entries, 3}, empty = {entries, 0};
    const errand_address addresses[] = {
        {.family = 4, .bytes = {127, 0, 0, 1}, .port = 80, .text = "127.0.0.1"},
        {.family = 6, .scope = 3, .bytes = {0xfe, 0x80, [15] = 1}, .text = "fe80::1"}};
    const errand_addresses found = {addresses, 2};

    expect_there_and_back(rig, &errand_dir_list_type, &list,
                          sizeof list + sizeof entries + 3 + 2 + 13,
                          errand_dir_list_digest);
    expect_there_and_back(rig, &errand_dir_list_type, &empty, sizeof empty,
                          errand_dir_list_digest);
    expect_there_and_back(rig, &errand_addresses_type, &found,
                          sizeof found + sizeof addresses, errand_addresses_digest);
}

static void
results_of_commands_come_back_from_their_bytes(void **state)
{
    test_rig *rig = *state;
    char out[] = "out\0put", err[] = "";
    const errand_command_result ended = {.out = (unsigned char *)out,
                                         .err = (unsigned char *)err,
                                         .out_size = 7,
                                         .exit_status = 3};
    const errand_command_result killed = {.out = (unsigned char *)err,
                                          .err = (unsigned char *)out,
                                          .err_size = 3,
                                          .exit_status = -1,
                                          .signal_number = 9};

    expect_there_and_back(rig, &errand_command_result_type, &ended,
                          sizeof ended + 7 + 0 + 2, errand_command_result_digest);
    expect_there_and_back(rig, &errand_command_result_type, &killed,
                          sizeof killed + 0 + 3 + 2, errand_command_result_digest);
}

static void
payloads_of_real_operations_have_the_size_that_their_codec_makes(void **state)
{
    test_rig *rig = *state;
    errand_spec spec;

    assert_int_equal(errand_spec_list_dir(&spec, ".", 0), ERRAND_OK);
    rig_run(rig, &spec);
    expect_there_and_back(rig, &errand_dir_list_type,
                          rig_payload(rig, &errand_dir_list_type),
                          rig->result.payload.size, errand_dir_list_digest);
    assert_int_equal(errand_spec_echo(&spec, "bytes", 5), ERRAND_OK);
    rig_run(rig, &spec);
    expect_there_and_back(rig, &errand_file_bytes_type,
                          rig_payload(rig, &errand_file_bytes_type),
                          rig->result.payload.size, errand_file_bytes_digest);
}

#define TEST(function)                                                                   \
    cmocka_unit_test_setup_teardown(function, rig_setup_manual, rig_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(payloads_of_files_come_back_from_their_bytes),
        TEST(lists_come_back_from_their_bytes),
        TEST(results_of_commands_come_back_from_their_bytes),
        TEST(payloads_of_real_operations_have_the_size_that_their_codec_makes),
    };

    return test_group("operations/codec", tests, NULL, NULL);
}
