/* SPDX-License-Identifier: MIT */
/* Goal: whatever a call needs stays as long as it can run, and not longer.
 * Method: a body stands still in wait_for_byte until the test sets the byte; meanwhile everything is
 * let go of, resized, destroyed. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include "errand/record.h"
#include "rig.h"

#define V(x) errand_ffi_##x

static const char standing[] = "i32 wait_for_byte(inout bytes)";

static _Atomic unsigned char *
start_standing(ffi_rig *rig, errand_ffi_function *function, errand_ffi_buffer *buffer)
{
    const errand_ffi_value value = V(buffer_value)(buffer);
    _Atomic unsigned char *bytes = errand_ffi_buffer_data(buffer);

    atomic_init(&bytes[2], 99);
    rig_start(rig, function, &value, 1, NULL);
    while (atomic_load_explicit(&bytes[1], memory_order_acquire) == 0)
        continue; /* until it is inside */
    return bytes;
}

static void
let_go(_Atomic unsigned char *bytes)
{
    atomic_store_explicit(&bytes[0], 1, memory_order_release);
}

/* C-K4, S22 */
static void
a_buffer_is_pinned_until_its_completion_is_drained(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_buffer *buffer;

    assert_int_equal(errand_ffi_buffer_create(16, &buffer), ERRAND_OK);
    assert_int_equal(errand_ffi_buffer_size(buffer), 16);
    assert_int_equal(errand_ffi_buffer_resize(buffer, 32), ERRAND_OK);
    assert_int_equal(errand_ffi_buffer_size(buffer), 32);
    assert_int_equal(((unsigned char *)errand_ffi_buffer_data(buffer))[31], 0);
    assert_false(errand_ffi_buffer_pinned(buffer));
    _Atomic unsigned char *bytes =
        start_standing(rig, rig_function(rig, standing), buffer);
    assert_true(errand_ffi_buffer_pinned(buffer));
    assert_int_equal(errand_ffi_buffer_resize(buffer, 64), ERRAND_EBUSY);
    assert_int_equal(errand_ffi_buffer_size(buffer), 32);
    assert_true(errand_ffi_buffer_data(buffer) == (void *)bytes);
    let_go(bytes);
    assert_int_equal(errand_park(rig->runtime, UINT64_MAX), ERRAND_OK);
    assert_int_equal(errand_ffi_buffer_resize(buffer, 64),
                     ERRAND_EBUSY); /* not drained */
    rig_await(rig);
    assert_true(((errand_ffi_result *)rig->payload.data)->value.as.i == 99);
    assert_null(((errand_ffi_result *)rig->payload.data)->outputs[0].bytes);
    assert_false(errand_ffi_buffer_pinned(buffer));
    assert_int_equal(errand_ffi_buffer_resize(buffer, 1), ERRAND_OK);
    assert_int_equal(((unsigned char *)errand_ffi_buffer_data(buffer))[0], 1);
    assert_int_equal(errand_ffi_buffer_resize(buffer, SIZE_MAX), ERRAND_ENOMEM);
    assert_int_equal(errand_ffi_buffer_resize(buffer, 0), ERRAND_EINVAL);
    errand_ffi_buffer_abandon(&buffer);
    assert_int_equal(errand_ffi_buffer_create(SIZE_MAX, &buffer), ERRAND_ENOMEM);
    assert_int_equal(errand_ffi_buffer_create(0, &buffer), ERRAND_EINVAL);
}

/* C-K4, C-K8, S23: everything is let go of while the call stands inside the library. */
static void
a_call_keeps_its_buffer_function_and_library(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_buffer *buffer;
    errand_ffi_function *function;
    void *loaded;

    assert_int_equal(errand_ffi_buffer_create(16, &buffer), ERRAND_OK);
    assert_int_equal(errand_ffi_describe(rig->library, standing, &function, NULL),
                     ERRAND_OK);
    _Atomic unsigned char *bytes = start_standing(rig, function, buffer);
    errand_ffi_buffer_abandon(&buffer);
    errand_ffi_function_abandon(&function);
    errand_ffi_library_abandon(&rig->library);
    assert_true(buffer == NULL && function == NULL && rig->library == NULL);
    loaded = dlopen(SUBJECT, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(loaded);
    dlclose(loaded);
    let_go(bytes);
    rig_await(rig);
    assert_true(((errand_ffi_result *)rig->payload.data)->value.as.i == 99);
    if (!ERRAND_SANITIZED) /* a sanitizer keeps what it has seen */
        assert_null(dlopen(SUBJECT, RTLD_NOW | RTLD_NOLOAD));
}

static void
buffers_are_read_and_filled_in_place_and_apart(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_function *fill = rig_function(rig, "i32 fill(out bytes, u64, u8)"),
                        *count = rig_function(rig, "u64 count_bytes(string, bytes, u64)"),
                        *add = rig_function(rig, "void add_one(inout bytes, u64)");
    errand_ffi_buffer *buffer;
    unsigned char *bytes;
    errand_payload payload;
    errand_spec spec;

    rig->once = true;
    assert_int_equal(errand_ffi_buffer_create(5, &buffer), ERRAND_OK);
    bytes = errand_ffi_buffer_data(buffer);
    assert_true(
        RIG_CALL(rig, fill, V(buffer_value)(buffer), V(u)(5), V(u)(3))->value.as.i == 5);
    assert_memory_equal(bytes, "\3\3\3\3\3", 5);
    RIG_CALL(rig, add, V(buffer_value)(buffer), V(u)(5));
    assert_memory_equal(bytes, "\4\4\4\4\4", 5);
    assert_true(RIG_CALL(rig, count, V(string)(""), V(buffer_value)(buffer), V(u)(5))
                    ->value.as.u == 20);
    const errand_ffi_value arguments[] = {V(buffer_value)(buffer), V(u)(5)};
    assert_int_equal(errand_spec_call(&spec, add, arguments, 2, NULL), ERRAND_OK);
    bytes[4] = 9; /* what is there when it is written down counts */
    payload = rig_apart(rig, &spec);
    assert_memory_equal(bytes, "\5\5\5\5\12", 5);
    errand_payload_drop(&payload);
    spec.held_job->drop(spec.state);
    errand_ffi_buffer_abandon(&buffer);
}

/* ---- a region that a sandbox can read ---------------------------------------------------- */

static unsigned char region[256];
static int region_dropped;

static void *
region_alloc(void *owner, size_t size)
{
    (void)owner;
    memset(region + 64, 0, size);
    return region + 64;
}

static void
region_free(void *owner, void *data, size_t size)
{
    (void)owner;
    (void)size;
    assert_ptr_equal(data, region + 64);
}

static bool
region_offset(void *owner, const void *data, uint64_t *out_offset)
{
    (void)owner;
    *out_offset = (uint64_t)((const unsigned char *)data - region);
    return true;
}

static void
region_drop(void *owner)
{
    (void)owner;
    region_dropped++;
}

static void
a_buffer_in_a_region_goes_uncopied(void **state)
{
    static const errand__buffer_memory memory = {region_alloc, region_free, region_offset,
                                                 region_drop};
    ffi_rig *rig = *state;
    errand_ffi_function *count = rig_function(rig, "u64 count_bytes(string, bytes, u64)");
    void *handle = dlopen(SUBJECT, RTLD_NOW);
    errand_ffi_error error = {.column = 0};
    errand_ffi_buffer *buffer;
    errand__memory_reply reply;
    errand__callee *callee;
    _Alignas(16) unsigned char request[256];
    size_t size;
    errand_spec spec;

    assert_int_equal(errand__buffer_create(&memory, NULL, 100, &buffer), ERRAND_OK);
    memset(errand_ffi_buffer_data(buffer), 1, 100);
    const errand_ffi_value arguments[] = {V(string)(""), V(buffer_value)(buffer),
                                          V(u)(100)};
    assert_int_equal(errand_spec_call(&spec, count, arguments, 3, NULL), ERRAND_OK);
    errand_ffi_buffer_abandon(&buffer);
    size = spec.held_job->held_portable->request_size(spec.state);
    assert_true(size <= 128); /* so its bytes are not in there */
    spec.held_job->held_portable->write_request(spec.state, request);
    callee = errand__callee_create(dlsym(handle, "count_bytes"),
                                   errand_ffi_function_text(count), &error);
    for (size_t room = 163; room <= 164; room++) {
        errand__memory_reply_init(&reply, 4096);
        assert_int_equal(errand__callee_serve(callee, request, size, region, room,
                                              &reply.reply, &error),
                         room < 164 ? ERRAND_FFI_CODE_REQUEST : 0);
        if (room == 164) {
            uint64_t sum;
            memcpy(&sum, reply.bytes + 8, sizeof sum);
            assert_true(sum == 100);
        }
        errand__memory_reply_fini(&reply);
    }
    errand__callee_destroy(callee);
    dlclose(handle);
    assert_int_equal(region_dropped, 0);
    spec.held_job->drop(spec.state);
    assert_int_equal(region_dropped, 1);
}

static void
memory_that_runs_out_leaves_nothing(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_function *turn = rig_function(
        rig, "{i8, [3]f64, [2]{u16, u16}} turn({i8, [3]f64, [2]{u16, u16}}, i32)");
    const struct nested image = {0, {1, 2, 3}, {{1, 2}, {3, 4}}};
    const errand_ffi_value arguments[] = {V(bytes)(&image, sizeof image), V(i)(2)};
    int64_t before = errand_testing_live_bytes();
    errand_ffi_function *function = NULL;
    errand_ffi_library *library;
    errand_status status;
    errand_spec spec;

    for (uint64_t n = 1;; n++) {
        errand_testing_fail_allocation(n);
        status = errand_spec_call(&spec, turn, arguments, 2, NULL);
        errand_testing_fail_allocation(0);
        if (status == ERRAND_OK)
            break;
        assert_int_equal(status, ERRAND_ENOMEM); /* of errand_spec_call */
        assert_int_equal(errand_testing_live_bytes(), before);
    }
    spec.held_job->drop(spec.state);
    for (uint64_t n = 1;; n++) {
        errand_testing_fail_allocation(n);
        status =
            errand_ffi_describe(rig->library, "i32 f({i32, [2]u8})", &function, NULL);
        errand_testing_fail_allocation(0);
        if (status == ERRAND_OK)
            break;
        assert_int_equal(status, ERRAND_ENOMEM); /* of errand_ffi_describe */
        assert_int_equal(errand_testing_live_bytes(), before);
    }
    errand_ffi_function_abandon(&function);
    errand_testing_fail_allocation(1);
    status = errand_ffi_library_create("libm.so.6", &library);
    errand_testing_fail_allocation(0);
    assert_int_equal(status, ERRAND_ENOMEM); /* of errand_ffi_library_create */
    for (uint64_t n = 1;; n++) { /* inside the body, and everywhere else on the way */
        rig_start(rig, turn, arguments, 2, NULL);
        errand_testing_fail_allocation(n);
        rig_await(rig);
        uint64_t asked = errand_testing_fail_allocation(0);
        if (rig->outcome == ERRAND_COMPLETED) {
            assert_true(asked < n);
            break;
        }
        assert_int_equal(rig->outcome, ERRAND_FAILED);
        assert_true(rig->job_code == ERRAND_FFI_CODE_MEMORY ||
                    rig->job_code == ERRAND_FFI_CODE_SIGNATURE);
    }
}

/* ---- a job type of before ------------------------------------------------------------------ */

static int32_t
answer_7(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 7;
}

static void
a_job_type_without_the_portable_field_is_served(void **state)
{
    ffi_rig *rig = *state;
    const errand_job_type old = {.struct_size = offsetof(errand_job_type, held_portable),
                                 .name = "old",
                                 .run = answer_7};
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &old;
    assert_int_equal(errand_start(rig->lease, &spec, rig, NULL), ERRAND_OK);
    rig_await(rig);
    assert_int_equal(rig->job_code, 7);
}

int
main(void)
{
#define HERE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
#define THREADS(name)                                                                    \
    cmocka_unit_test_setup_teardown(name, rig_setup_threads, rig_teardown)
    static const struct CMUnitTest tests[] = {
        THREADS(a_buffer_is_pinned_until_its_completion_is_drained),
        THREADS(a_call_keeps_its_buffer_function_and_library),
        HERE(buffers_are_read_and_filled_in_place_and_apart),
        HERE(a_buffer_in_a_region_goes_uncopied),
        HERE(memory_that_runs_out_leaves_nothing),
        HERE(a_job_type_without_the_portable_field_is_served),
    };

    return test_group("foreign/life", tests, NULL, NULL);
}
