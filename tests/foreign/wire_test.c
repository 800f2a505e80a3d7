/* SPDX-License-Identifier: MIT */
/* Goal: no bytes of a worker become anything but the result that was asked for.
 * Method: true requests and responses, then each byte changed, each length cut and each word set to
 * what is dangerous; whatever is accepted must be whole (a sanitizer looks), and what a response must
 * say exactly is refused when it says something else. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "errand/record.h"
#include "rig.h"

#define V(x) errand_ffi_##x

static const uint64_t dangerous[] = {
    0,   1, 2, 6, 7, UINT64_MAX, UINT64_MAX - 7, INT64_MAX, UINT32_MAX, UINT64_C(1) << 63,
    4096};

typedef struct subject_call {
    errand_spec spec;
    unsigned char *request, *response;
    size_t request_size, response_size;
    errand__callee *callee;
    void *handle;
} subject_call;

static void
begin(ffi_rig *rig, subject_call *self, const char *signature,
      const errand_ffi_value *arguments, size_t count)
{
    errand_ffi_function *function = rig_function(rig, signature);
    const errand_portable_type *portable;
    errand_ffi_error error = {.column = 0};
    errand__memory_reply reply;

    assert_int_equal(errand_spec_call(&self->spec, function, arguments, count, &error),
                     ERRAND_OK);
    portable = self->spec.held_job->held_portable;
    self->request_size = portable->request_size(self->spec.state);
    self->request = aligned_alloc(16, (self->request_size + 15) / 16 * 16);
    portable->write_request(self->spec.state, self->request);
    self->handle = dlopen(SUBJECT, RTLD_NOW);
    self->callee = errand__callee_create(
        dlsym(self->handle, errand_ffi_function_signature(function)->symbol),
        errand_ffi_function_text(function), &error);
    errand__memory_reply_init(&reply, 1 << 20);
    assert_int_equal(errand__callee_serve(self->callee, self->request, self->request_size,
                                          NULL, 0, &reply.reply, &error),
                     0);
    self->response_size = reply.size;
    self->response = malloc(reply.size);
    memcpy(self->response, reply.bytes, reply.size);
    errand__memory_reply_fini(&reply);
}

static void
end(subject_call *self)
{
    free(self->request);
    free(self->response);
    errand__callee_destroy(self->callee);
    dlclose(self->handle);
    self->spec.held_job->drop(self->spec.state);
}

/* Reads it from memory of exactly that size; true: accepted. */
static bool
read_back(subject_call *self, const unsigned char *bytes, size_t size)
{
    unsigned char *exact = malloc(size > 0 ? size : 1);
    errand_payload payload = {.data = NULL};
    int32_t code;

    memcpy(exact, bytes, size);
    code = self->spec.held_job->held_portable->read_response(NULL, self->spec.state,
                                                             exact, size, &payload);
    free(exact);
    assert_true(code == 0 || code == ERRAND_PORTABLE_BROKEN);
    if (code != 0)
        assert_null(payload.data);
    else
        (void)errand_ffi_result_digest(payload.data, payload.size); /* reads all of it */
    errand_payload_drop(&payload);
    return code == 0;
}

static void
mutate_response(subject_call *self)
{
    unsigned char *changed = malloc(self->response_size + 8);

    assert_true(read_back(self, self->response, self->response_size));
    for (size_t cut = 0; cut < self->response_size; cut++)
        assert_false(read_back(self, self->response, cut));
    memcpy(changed, self->response, self->response_size);
    memset(changed + self->response_size, 0, 8);
    assert_false(read_back(self, changed, self->response_size + 8));
    for (size_t at = 0; at < self->response_size; at++)
        for (int value = 0; value < 256; value += 51) {
            memcpy(changed, self->response, self->response_size);
            changed[at] = (unsigned char)value;
            (void)read_back(self, changed, self->response_size);
        }
    for (size_t at = 0; at + 8 <= self->response_size; at += 8)
        for (size_t i = 0; i < sizeof dangerous / sizeof dangerous[0]; i++) {
            memcpy(changed, self->response, self->response_size);
            memcpy(changed + at, &dangerous[i], 8);
            (void)read_back(self, changed, self->response_size);
        }
    free(changed);
}

static void
responses_that_were_tampered_with_are_refused_or_whole(void **state)
{
    ffi_rig *rig = *state;
    const struct nested image = {1, {1, 2, 3}, {{1, 2}, {3, 4}}};
    subject_call call;

    begin(rig, &call, "i32 fill(out bytes, u64, u8)",
          (errand_ffi_value[]){V(out)(11), V(u)(11), V(u)(5)}, 3);
    mutate_response(&call);
    end(&call);
    begin(rig, &call, "string name_of(i32)", (errand_ffi_value[]){V(i)(1)}, 1);
    mutate_response(&call);
    end(&call);
    begin(rig, &call,
          "{i8, [3]f64, [2]{u16, u16}} turn({i8, [3]f64, [2]{u16, u16}}, i32)",
          (errand_ffi_value[]){V(bytes)(&image, sizeof image), V(i)(1)}, 2);
    mutate_response(&call);
    end(&call);
    begin(rig, &call, "void add_one(inout bytes, u64)",
          (errand_ffi_value[]){V(inout)("abc", 3), V(u)(3)}, 2);
    mutate_response(&call);
    end(&call);
    begin(rig, &call, "bool give_true()", NULL, 0);
    mutate_response(&call);
    end(&call);
}

/* Spec case 99: counts, kinds and lengths that are not the function's. */
static void
what_a_response_must_say_is_compared(void **state)
{
    ffi_rig *rig = *state;
    subject_call call;
    uint64_t word;

    begin(rig, &call, "i32 fill(out bytes, u64, u8)",
          (errand_ffi_value[]){V(out)(16), V(u)(16), V(u)(5)}, 3);
    /* {version, errno} {result} {tag, size} bytes */
    assert_int_equal(call.response_size, 8 + 8 + 16 + 16);
    word = UINT64_C(1) << 40; /* no i32 */
    memcpy(call.response + 8, &word, 8);
    assert_false(read_back(&call, call.response, call.response_size));
    word = (uint64_t)INT64_C(-5);
    memcpy(call.response + 8, &word, 8);
    assert_true(read_back(&call, call.response, call.response_size));
    word = 8; /* a shorter buffer, with as many bytes */
    memcpy(call.response + 24, &word, 8);
    assert_false(read_back(&call, call.response, 8 + 8 + 16 + 8));
    word = FFI_TAG_IN_PLACE; /* as if it had been a buffer here */
    memcpy(call.response + 16, &word, 8);
    assert_false(read_back(&call, call.response, 8 + 8 + 16));
    word = FFI_TAG_NULL;
    memcpy(call.response + 16, &word, 8);
    assert_false(read_back(&call, call.response, 8 + 8 + 16));
    end(&call);
    begin(rig, &call, "bool give_true()", NULL, 0);
    call.response[8] = 2;
    assert_false(read_back(&call, call.response, call.response_size));
    end(&call);
    begin(rig, &call, "string name_of(i32)", (errand_ffi_value[]){V(i)(1)}, 1);
    call.response[24 + 1] = 0; /* a text that ends early */
    assert_false(read_back(&call, call.response, call.response_size));
    end(&call);
}

static bool
count_reply(errand__reply *reply, const void *bytes, size_t size)
{
    (void)reply;
    (void)bytes;
    (void)size;
    return true;
}

/* Spec case 99.  Only requests that are refused are served: others would call with what they say. */
static void
requests_that_do_not_fit_the_callee_are_refused(void **state)
{
    ffi_rig *rig = *state;
    errand__reply reply = {.write = count_reply};
    errand_ffi_error error;
    subject_call call;
    uint64_t word;

    begin(rig, &call, "u64 count_bytes(string, bytes, u64)",
          (errand_ffi_value[]){V(string)("text"), V(bytes)("abcdefg", 7), V(u)(7)}, 3);
#define SERVE(bytes, size)                                                               \
    errand__callee_serve(call.callee, bytes, size, NULL, 0, &reply, &error)
    for (size_t cut = 0; cut < call.request_size; cut++)
        assert_int_equal(SERVE(call.request, cut), ERRAND_FFI_CODE_REQUEST);
    for (size_t at = 0; at < 16; at++) {
        call.request[at] ^= 1;
        assert_int_equal(SERVE(call.request, call.request_size), ERRAND_FFI_CODE_REQUEST);
        call.request[at] ^= 1;
    }
    const uint64_t tags[] = {FFI_TAG_ZEROED, FFI_TAG_REGION,   FFI_TAG_DIRECT,
                             FFI_TAG_ASK,    FFI_TAG_IN_PLACE, 7,
                             UINT64_MAX};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        memcpy(call.request + 16, &tags[i], 8);
        assert_int_equal(SERVE(call.request, call.request_size), ERRAND_FFI_CODE_REQUEST);
    }
    word = FFI_TAG_INLINE;
    memcpy(call.request + 16, &word, 8);
    for (size_t i = 0; i < sizeof dangerous / sizeof dangerous[0]; i++) {
        memcpy(call.request + 24, &dangerous[i], 8);
        assert_int_equal(SERVE(call.request, call.request_size), ERRAND_FFI_CODE_REQUEST);
    }
    word = 4;
    memcpy(call.request + 24, &word, 8);
    assert_int_equal(SERVE(call.request, call.request_size), 0);
    end(&call);
}

static bool
refuse_after(errand__reply *reply, const void *bytes, size_t size)
{
    errand__memory_reply *memory = (errand__memory_reply *)(void *)reply;

    (void)bytes;
    memory->size += size;
    return memory->size <= memory->limit;
}

/* Spec case 101: an answer of exactly what is allowed, and of one byte more. */
static void
an_answer_beyond_the_limit_ends_as_output(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_error error;
    subject_call call;

    begin(rig, &call, "i32 fill(out bytes, u64, u8)",
          (errand_ffi_value[]){V(out)(1000), V(u)(1000), V(u)(5)}, 3);
    for (size_t limit = 0; limit <= call.response_size; limit++) {
        errand__memory_reply reply = {.reply = {.write = refuse_after}, .limit = limit};
        assert_int_equal(errand__callee_serve(call.callee, call.request,
                                              call.request_size, NULL, 0, &reply.reply,
                                              &error),
                         limit < call.response_size ? ERRAND_FFI_CODE_OUTPUT : 0);
    }
    end(&call);
}

/* ---- logs ------------------------------------------------------------------------------------- */

static void
results_are_recorded_and_replayed(void **state)
{
    char path[] = "/tmp/errand-foreign-XXXXXX";
    int fd = mkstemp(path);
    uint64_t digests[2][3];

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    for (int replay = 0; replay < 2; replay++) {
        void *made;
        ffi_rig *rig;

        rig_setup_logged(&made, path, replay);
        rig = made;
        rig->once = true;
        errand_ffi_function *fill = rig_function(rig, "i32 fill(out bytes, u64, u8)"),
                            *name = rig_function(rig, "string name_of(i32)"),
                            *turn =
                                rig_function(rig, "{f32, f32} floats_turn({f32, f32})");
        const errand_ffi_result *result =
            RIG_CALL(rig, fill, V(out)(9), V(u)(9), V(u)(77));
        assert_int_equal(result->outputs[0].bytes[8], 77);
        digests[replay][0] = errand_ffi_result_digest(result, 0);
        result = RIG_CALL(rig, name, V(i)(1));
        assert_string_equal(result->value.as.string, "one");
        digests[replay][1] = errand_ffi_result_digest(result, 0);
        result = RIG_CALL(rig, turn,
                          V(struct)((errand_ffi_value[]){V(f32)(1), V(f32)(-0.0f)}, 2));
        digests[replay][2] = errand_ffi_result_digest(result, 0);
        rig_teardown(&made);
    }
    assert_memory_equal(digests[0], digests[1], sizeof digests[0]);
    unlink(path);
}

int
main(void)
{
#define HERE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    static const struct CMUnitTest tests[] = {
        HERE(responses_that_were_tampered_with_are_refused_or_whole),
        HERE(what_a_response_must_say_is_compared),
        HERE(requests_that_do_not_fit_the_callee_are_refused),
        HERE(an_answer_beyond_the_limit_ends_as_output),
        cmocka_unit_test(results_are_recorded_and_replayed),
    };

    return test_group("foreign/wire", tests, NULL, NULL);
}
