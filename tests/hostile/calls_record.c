/* SPDX-License-Identifier: MIT */
/* Design notes: as calls_others.c, of errand/record.h.  Recorders write to nowhere; the log that is
 * read is made once, of a run that did nothing. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "recording/recording.h"
#include "errand/ffi.h"
#include "errand/operations.h"
#include "calls.h"

void errand__trampolines_forget(void); /* foreign/foreign.h, which needs libffi */

static const errand_recorder_config nowhere = {
    .struct_size = sizeof nowhere,
    .path = "/dev/null",
};

static errand_recorder *the_recorder;

/* In the child it is the parent's. */
static errand_recorder *
recorder_of(const stage *self)
{
    if (the_recorder == NULL) {
        errand_status made = errand_recorder_open(&nowhere, &the_recorder);

        assert_int_equal(made, ERRAND_OK);
        if (self->child)
            the_recorder->process = (int32_t)getppid();
    }
    return the_recorder;
}

static void
forget_recorder(stage *self)
{
    if (!self->child && the_recorder != NULL)
        assert_int_equal(errand_recorder_close(&the_recorder), ERRAND_OK);
}

static errand_log *
make_log(char *path)
{
    static const errand_log_header header = {.version = "", .policy_text = ""};
    errand_recorder_config config = nowhere;
    errand_recorder *recorder = NULL;
    errand_log *log = NULL;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    config.path = path;
    assert_int_equal(errand_recorder_open(&config, &recorder), ERRAND_OK);
    errand__recorder_begin(recorder, &header, NULL);
    recorder->count = 1; /* a step of zeros is one to read */
    recorder->steps[0] = 1;
    errand__recorder_end(recorder, &(errand_log_end){.digest = 0});
    assert_int_equal(errand_recorder_close(&recorder), ERRAND_OK);
    assert_int_equal(errand_log_open(path, &log, NULL, 0), ERRAND_OK);
    return log;
}

static errand_status
call_recorder_open(stage *self, int broken)
{
    errand_recorder *recorder = NULL;
    errand_recorder_config config = nowhere;
    errand_status status;

    (void)self;
    config.path = N(3, config.path);
    status = errand_recorder_open(N(1, &config), N(2, &recorder));
    if (status == ERRAND_OK)
        assert_int_equal(errand_recorder_close(&recorder), ERRAND_OK);
    return status;
}

static errand_status
call_recorder_sync(stage *self, int broken)
{
    errand_status status = errand_recorder_sync(N(1, recorder_of(self)));

    forget_recorder(self);
    return status;
}

static errand_status
call_recorder_status(stage *self, int broken)
{
    errand_status status = errand_recorder_status(N(1, recorder_of(self)), NULL, 0);

    forget_recorder(self);
    return status;
}

static errand_status
call_recorder_close(stage *self, int broken)
{
    errand_recorder *recorder = recorder_of(self);
    errand_status status = errand_recorder_close(N(1, &recorder));

    if (status == ERRAND_OK)
        the_recorder = NULL;
    forget_recorder(self);
    return status;
}

/* The two of codecs are called inside one, of a sink that keeps nothing. */
static int sink_broken;

static bool
encode_nothing(const void *data, size_t size, errand_sink *sink)
{
    int broken = sink_broken;

    (void)data;
    errand_sink_put(N(1, sink), N(2, "byte"), size);
    return true;
}

static bool
encode_word(const void *data, size_t size, errand_sink *sink)
{
    int broken = sink_broken;

    (void)data;
    errand_sink_word(N(1, sink), size);
    return true;
}

static errand_status
decode_nothing(const void *bytes, size_t size, errand_payload *out_payload)
{
    (void)bytes;
    (void)size;
    (void)out_payload;
    return ERRAND_OK;
}

static errand_status
encode(stage *self, const errand_payload_codec *codec, int broken)
{
    uint64_t digest;
    bool kept;

    sink_broken = broken;
    (void)errand__sink_encode(codec, "data", 4, NULL, &digest, &kept);
    return self->misuses == 0 ? ERRAND_OK : self->misuse;
}

static const errand_payload_codec codec = {sizeof codec, encode_nothing, decode_nothing};
static const errand_payload_codec words = {sizeof words, encode_word, decode_nothing};

static errand_status
call_sink_put(stage *self, int broken)
{
    return encode(self, &codec, broken);
}

static errand_status
call_sink_word(stage *self, int broken)
{
    return encode(self, &words, broken);
}

static errand_status
call_record_codec(stage *self, int broken)
{
    return errand_record_codec(N(1, self->tokens.runtime), N(2, &errand_hash_type),
                               N(3, "hash"), N(4, &codec));
}

/* ---- reading ------------------------------------------------------------------------------------- */

static errand_status
with_log(stage *self, int broken, int which)
{
    char path[] = "/tmp/errand-log-XXXXXX";
    errand_log *log = make_log(path), *again = NULL;
    errand_log_step step;
    errand_log_end end;
    errand_log_block block;
    errand_status status = ERRAND_OK;

    switch (which) {
    case 0:
        status = errand_log_open(N(1, path), N(2, &again), NULL, 0);
        errand_log_close(&again);
        break;
    case 1:
        (void)errand_log_next(N(1, log), N(2, &step));
        status = self->misuses == 0 ? ERRAND_OK : self->misuse;
        break;
    case 2:
        status = errand_log_seek(N(1, log), 0);
        break;
    case 3:
        status = errand_log_end_read(N(1, log), N(2, &end));
        break;
    default:
        status = errand_log_block_read(N(1, log), 0, N(2, &block));
        break;
    }
    errand_log_close(&log);
    unlink(path);
    return status;
}

static errand_status
call_log_open(stage *self, int broken)
{
    return with_log(self, broken, 0);
}

static errand_status
call_log_next(stage *self, int broken)
{
    return with_log(self, broken, 1);
}

static errand_status
call_log_seek(stage *self, int broken)
{
    return with_log(self, broken, 2);
}

static errand_status
call_log_end_read(stage *self, int broken)
{
    return with_log(self, broken, 3);
}

static errand_status
call_log_block_read(stage *self, int broken)
{
    return with_log(self, broken, 4);
}

/* ---- replaying ----------------------------------------------------------------------------------- */

/* Of the log that make_log makes. */
static errand_status
open_replay(int broken, errand_replay **out_replay)
{
    char path[] = "/tmp/errand-log-XXXXXX";
    errand_log *log = make_log(path);
    errand_replay_config config = {.struct_size = sizeof config};
    errand_status status;

    errand_log_close(&log);
    config.path = N(3, path);
    status = errand_replay_open(N(1, &config), N(2, out_replay), NULL, 0);
    unlink(path);
    return status == ERRAND_EREPRODUCE ? ERRAND_OK : status; /* it is of no version */
}

static errand_status
call_replay_open(stage *self, int broken)
{
    errand_replay *replay = NULL;

    (void)self;
    return open_replay(broken, &replay);
}

static errand_status
call_replay_status(stage *self, int broken)
{
    errand_replay *none = NULL;

    (void)self;
    return broken == 0 ? errand_replay_close(&none) : errand_replay_status(NULL, NULL, 0);
}

static errand_status
call_replay_close(stage *self, int broken)
{
    errand_replay *none = NULL;

    (void)self;
    return errand_replay_close(N(1, &none));
}

static errand_status
call_operations_codecs(stage *self, int broken)
{
    return errand_operations_codecs(N(1, self->tokens.runtime));
}

static errand_status
call_ffi_codecs(stage *self, int broken)
{
    return errand_ffi_codecs(N(1, self->tokens.runtime));
}

static void
answer_nothing(void *arg, const errand_ffi_value *arguments, uint32_t count,
               errand_ffi_value *out_result)
{
    (void)arg;
    (void)arguments;
    (void)count;
    (void)out_result;
}

static errand_status
call_ffi_callback_create(stage *self, int broken)
{
    const errand_ffi_callback_config config = {
        .struct_size = sizeof config, .signature = "void()", .handler = answer_nothing};
    errand_ffi_callback *callback = NULL;
    errand_status status = errand_ffi_callback_create(
        N(1, self->tokens.runtime), N(2, &config), N(3, &callback), NULL);

    if (callback != NULL)
        (void)!errand_ffi_callback_destroy(&callback);
    errand__trampolines_forget();
    return status;
}

const public_call record_calls[] = {
    {"errand_recorder_open", call_recorder_open, PLACE_PLAIN, 3, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_recorder_sync", call_recorder_sync, PLACE_PLAIN, 1, ERRAND_OK,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_recorder_status", call_recorder_status, PLACE_PLAIN, 1, ERRAND_OK,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_recorder_close", call_recorder_close, PLACE_PLAIN, 1, ERRAND_OK,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_sink_put", call_sink_put, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_sink_word", call_sink_word, PLACE_PLAIN, 1, ERRAND_OK, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_record_codec", call_record_codec, PLACE_PLAIN, 4, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_log_open", call_log_open, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_log_next", call_log_next, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_log_seek", call_log_seek, PLACE_PLAIN, 1, ERRAND_OK, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK},
    {"errand_log_end_read", call_log_end_read, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_log_block_read", call_log_block_read, PLACE_PLAIN, 2, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_replay_open", call_replay_open, PLACE_PLAIN, 3, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_replay_status", call_replay_status, PLACE_PLAIN, 1, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_replay_close", call_replay_close, PLACE_PLAIN, 0, ERRAND_OK, ERRAND_OK,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_operations_codecs", call_operations_codecs, PLACE_PLAIN, 1, ERRAND_ETHREAD,
     ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_ffi_codecs", call_ffi_codecs, PLACE_PLAIN, 1, ERRAND_ETHREAD, ERRAND_EFORKED,
     ERRAND_OK, ERRAND_OK, ERRAND_OK},
    {"errand_ffi_callback_create", call_ffi_callback_create, PLACE_PLAIN, 3,
     ERRAND_ETHREAD, ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK},
};
const size_t record_call_count = sizeof record_calls / sizeof record_calls[0];
