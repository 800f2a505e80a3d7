/* SPDX-License-Identifier: MIT */
/* Goal: what goes in arrives bit by bit, and what comes back is what the function gave.
 * Method: functions of subject.c and of the system's libraries, each called by a job and once more by
 * the bytes a sandbox gets; guard words stand around the result of calls by hand. */
#include <errno.h>
#include <math.h>
#include <dlfcn.h>
#include <string.h>
#include "rig.h"

#define V(x) errand_ffi_##x

/* What the compiler does with the same function. */
static void *
subject(const char *symbol)
{
    void *handle = dlopen(SUBJECT, RTLD_NOW), *address;

    assert_non_null(handle);
    address = dlsym(handle, symbol);
    assert_non_null(address);
    dlclose(handle); /* the rig's library keeps it */
    return address;
}

/* C-K2, S20 */
static void
narrow_results_are_widened_by_their_sign(void **state)
{
    ffi_rig *rig = *state;
    const errand_ffi_result *result;

    result = rig_call(rig, rig_function(rig, "i8 give_i8()"), NULL, 0);
    assert_int_equal(result->value.kind, ERRAND_FFI_I8);
    assert_true(result->value.as.i == -1);
    result = rig_call(rig, rig_function(rig, "u16 give_u16()"), NULL, 0);
    assert_true(result->value.as.u == 65535);
    result = rig_call(rig, rig_function(rig, "bool give_true()"), NULL, 0);
    assert_true(result->value.as.u == 1);
    assert_int_equal(result->output_count, 0);
}

static void
every_width_goes_through_at_its_ends(void **state)
{
    ffi_rig *rig = *state;
    static const struct {
        const char *text;
        bool is_signed;
        uint64_t low, high;
    } rows[] = {
        {"bool same_bool(bool)", false, 0, 1},
        {"i8 same_i8(i8)", true, (uint64_t)INT8_MIN, INT8_MAX},
        {"u8 same_u8(u8)", false, 0, UINT8_MAX},
        {"i16 same_i16(i16)", true, (uint64_t)INT16_MIN, INT16_MAX},
        {"u16 same_u16(u16)", false, 0, UINT16_MAX},
        {"i32 same_i32(i32)", true, (uint64_t)INT32_MIN, INT32_MAX},
        {"u32 same_u32(u32)", false, 0, UINT32_MAX},
        {"i64 same_i64(i64)", true, (uint64_t)INT64_MIN, INT64_MAX},
        {"u64 same_u64(u64)", false, 0, UINT64_MAX},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        errand_ffi_function *function = rig_function(rig, rows[i].text);
        const errand_ffi_value low = errand_ffi_i((int64_t)rows[i].low),
                               high = rows[i].is_signed
                                          ? errand_ffi_i((int64_t)rows[i].high)
                                          : errand_ffi_u(rows[i].high);

        assert_true(rig_call(rig, function, &low, 1)->value.as.u == rows[i].low);
        assert_true(rig_call(rig, function, &high, 1)->value.as.u == rows[i].high);
        if (i == 7 || i == 8) /* nothing is beyond them but the other sign */
            continue;
        rig_assert_refused(rig, function, (errand_ffi_value[]){V(u)(rows[i].high + 1)}, 1,
                           1, "out of the range");
        rig_assert_refused(rig, function,
                           (errand_ffi_value[]){V(i)((int64_t)rows[i].low - 1)}, 1, 1,
                           "out of the range");
    }
    rig_assert_refused(rig, rig_function(rig, "u64 same_u64(u64)"),
                       (errand_ffi_value[]){V(i)(-1)}, 1, 1,
                       "-1 is out of the range of u64");
    rig_assert_refused(rig, rig_function(rig, "i64 same_i64(i64)"),
                       (errand_ffi_value[]){V(u)(UINT64_C(1) << 63)}, 1, 1,
                       "9223372036854775808 is out of the range of i64");
}

static uint64_t
bits(double number)
{
    uint64_t word;

    memcpy(&word, &number, sizeof word);
    return word;
}

/* Spec case 100. */
static void
floats_go_through_bit_by_bit(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_function *f64 = rig_function(rig, "f64 same_f64(f64)"),
                        *f32 = rig_function(rig, "f32 same_f32(f32)");
    static const uint64_t wide[] = {0,
                                    UINT64_C(1) << 63,
                                    UINT64_C(0x7ff8000000000001),
                                    UINT64_C(0xfff4deadbeef0001),
                                    UINT64_C(0x7ff0000000000000),
                                    1};
    static const uint32_t narrow[] = {0, 1u << 31, 0x7fc00001, 0xffa12345, 0x7f800000, 1};
    const errand_ffi_result *result;

    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        errand_ffi_value value = errand_ffi_f64(0), thin = errand_ffi_f32(0);

        memcpy(&value.as.f64, &wide[i], sizeof wide[i]);
        result = rig_call(rig, f64, &value, 1);
        assert_memory_equal(&result->value.as.f64, &wide[i], sizeof wide[i]);
        memcpy(&thin.as.f32, &narrow[i], sizeof narrow[i]);
        result = rig_call(rig, f32, &thin, 1);
        assert_memory_equal(&result->value.as.f32, &narrow[i], sizeof narrow[i]);
    }
    result = RIG_CALL(rig, f32, V(f64)(0.1));
    assert_true(result->value.as.f32 == 0.1f);
    result = RIG_CALL(rig, f32, V(f64)(INFINITY));
    assert_true(isinf(result->value.as.f32));
    result = RIG_CALL(rig, f64, V(i)(-(INT64_C(1) << 53)));
    assert_true(bits(result->value.as.f64) == bits(-9007199254740992.0));
    rig_assert_refused(rig, f32, (errand_ffi_value[]){V(f64)(1e39)}, 1, 1,
                       "1e+39 is out of the range of f32");
    rig_assert_refused(rig, f64, (errand_ffi_value[]){V(i)((INT64_C(1) << 53) + 1)}, 1, 1,
                       "out of the range");
}

static void
arguments_of_all_kinds_keep_their_places(void **state)
{
    ffi_rig *rig = *state;
    const errand_ffi_result *result;
    __typeof__(mixed) *direct;

    result =
        RIG_CALL(rig, rig_function(rig, "i64 widen_all(i8, u8, i16, u16, i32, u32)"),
                 V(i)(-1), V(u)(255), V(i)(-2), V(u)(65535), V(i)(-3), V(u)(4000000000));
    assert_true(result->value.as.i == INT64_C(4000065784));
    result =
        RIG_CALL(rig,
                 rig_function(rig, "f64 mixed(i8, f64, f32, u64, i16, f32, f64, i32, "
                                   "u8, f64, i64, u32)"),
                 V(i)(-1), V(f64)(0.5), V(f32)(1.5f), V(u)(7), V(i)(-8), V(f32)(2.5f),
                 V(f64)(-0.125), V(i)(-100), V(u)(200), V(f64)(1e3), V(i)(-5), V(u)(3));
    direct = (__typeof__(mixed) *)(uintptr_t)subject("mixed");
    assert_true(result->value.as.f64 ==
                direct(-1, 0.5, 1.5f, 7, -8, 2.5f, -0.125, -100, 200, 1e3, -5, 3));
}

static void
structures_go_in_and_out_by_value(void **state)
{
    ffi_rig *rig = *state;
    const errand_ffi_value numbers[] = {V(f64)(1), V(f64)(-0.0), V(f64)(3.5)},
                           first[] = {V(u)(1), V(u)(65535)},
                           second[] = {V(u)(3), V(u)(4)},
                           pairs[] = {V(struct)(first, 2), V(struct)(second, 2)},
                           fields[] = {V(i)(-5), V(array)(numbers, 3),
                                       V(array)(pairs, 2)};
    const struct nested image = {-5, {1, -0.0, 3.5}, {{1, 65535}, {3, 4}}};
    errand_ffi_function *turn = rig_function(
        rig, "{i8, [3]f64, [2]{u16, u16}} turn({i8, [3]f64, [2]{u16, u16}}, i32)");
    const errand_ffi_value *items;

    for (int i = 0; i < 2; i++) {
        const errand_ffi_result *result = RIG_CALL(
            rig, turn, i == 0 ? V(struct)(fields, 3) : V(bytes)(&image, sizeof image),
            V(i)(2));

        assert_int_equal(result->value.kind, ERRAND_FFI_STRUCT);
        assert_int_equal(result->value.size, 3);
        items = result->value.as.items;
        assert_true(items[0].kind == ERRAND_FFI_I8 && items[0].as.i == -3);
        assert_true(items[1].kind == ERRAND_FFI_ARRAY && items[1].size == 3);
        assert_true(bits(items[1].as.items[1].as.f64) == bits(0.0));
        assert_true(items[1].as.items[2].as.f64 == -3.5);
        assert_true(items[2].as.items[0].as.items[0].as.u == 65535);
        assert_true(items[2].as.items[1].as.items[1].as.u == 3);
    }
    items = RIG_CALL(rig, rig_function(rig, "{i32, i32} small_turn({i32, i32})"),
                     V(struct)((errand_ffi_value[]){V(i)(-1), V(i)(2)}, 2))
                ->value.as.items;
    assert_true(items[0].as.i == 2 && items[1].as.i == -1);
    items = RIG_CALL(rig, rig_function(rig, "{f32, f32} floats_turn({f32, f32})"),
                     V(struct)((errand_ffi_value[]){V(f32)(1.5f), V(f32)(-0.0f)}, 2))
                ->value.as.items;
    assert_true(signbit(items[0].as.f32) && items[1].as.f32 == 1.5f);
    rig_assert_refused(rig, turn, (errand_ffi_value[]){V(struct)(fields, 2), V(i)(0)}, 2,
                       1, "2 items were given for a structure of 3");
    rig_assert_refused(rig, turn, (errand_ffi_value[]){V(bytes)(&image, 5), V(i)(0)}, 2,
                       1, "5 bytes were given for a structure of 40");
}

static void
a_structure_in_the_last_integer_register_leaves_the_floats_alone(void **state)
{
    ffi_rig *rig = *state;
    const struct both value = {7, 0.5};
    errand_ffi_function *last =
        rig_function(rig, "f64 last_register(f32, i64, i64, i64, i64, i64, {i64, f64})");
    const errand_ffi_result *result =
        RIG_CALL(rig, last, V(f32)(1.25f), V(i)(1), V(i)(2), V(i)(3), V(i)(4), V(i)(5),
                 V(bytes)(&value, sizeof value));

    assert_true(result->value.as.f64 == 2.5 + 15 + 21 + 2.5);
}

/* Spec case 101: a buffer of exactly the size. */
static void
memory_is_read_filled_and_changed(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_function *fill = rig_function(rig, "i32 fill(out bytes, u64, u8)"),
                        *count = rig_function(rig, "u64 count_bytes(string, bytes, u64)"),
                        *add = rig_function(rig, "void add_one(inout bytes, u64)");
    unsigned char bytes[3] = {1, 2, 255};
    const errand_ffi_result *result;

    for (size_t size = 0; size <= 4097; size = size * 2 + 1) {
        result = RIG_CALL(rig, fill, V(out)(size), V(u)(size), V(u)(200));
        assert_true(result->value.as.i == (int64_t)size);
        assert_int_equal(result->output_count, 1);
        assert_int_equal(result->outputs[0].argument, 1);
        assert_int_equal(result->outputs[0].size, size);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(result->outputs[0].bytes[i], 200);
        assert_int_equal(result->outputs[0].bytes[size], 0);
    }
    result = RIG_CALL(rig, add, V(inout)(bytes, 3), V(u)(3));
    assert_int_equal(result->value.kind, ERRAND_FFI_VOID);
    assert_memory_equal(result->outputs[0].bytes, "\2\3\0", 3);
    assert_int_equal(bytes[0], 1);
    result = RIG_CALL(rig, count, V(string)("four"), V(bytes)(bytes, 3), V(u)(3));
    assert_true(result->value.as.u == 262);
    result = RIG_CALL(rig, count, V(string)(NULL), V(pointer)(NULL), V(u)(3));
    assert_true(result->value.as.u == 1000);
    result = RIG_CALL(rig, add, V(pointer)(NULL), V(u)(3));
    assert_null(result->outputs[0].bytes);
    rig_assert_refused(rig, count,
                       (errand_ffi_value[]){V(string)("x"), V(bytes)(NULL, 3), V(u)(3)},
                       3, 2, "without an address");
    rig_assert_refused(rig, count,
                       (errand_ffi_value[]){V(u)(1), V(bytes)(bytes, 3), V(u)(3)}, 3, 1,
                       "argument 1 is u64, where the parameter is string");
    rig_assert_refused(rig, count, NULL, 0, 0, "0 arguments were given for 3");
}

static void
texts_come_back_copied(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_function *name = rig_function(rig, "string name_of(i32)");
    const errand_ffi_result *result = RIG_CALL(rig, name, V(i)(1));

    assert_string_equal(result->value.as.string, "one");
    assert_int_equal(result->value.size, 3);
    __typeof__(name_of) *direct = (__typeof__(name_of) *)(uintptr_t)subject("name_of");
    assert_true(result->value.as.string != direct(1));
    assert_null(RIG_CALL(rig, name, V(i)(0))->value.as.string);
    assert_string_equal(RIG_CALL(rig, name, V(i)(2))->value.as.string, "");
}

/* S21 */
static void
errno_is_the_functions_own(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_function *fail = rig_function(rig, "i32 fail_with(i32)"),
                        *leave = rig_function(rig, "i32 leave_errno()");

    errno = EPERM;
    assert_int_equal(RIG_CALL(rig, fail, V(i)(EILSEQ))->sys_errno, EILSEQ);
    errno = EPERM;
    assert_true(rig_call(rig, leave, NULL, 0)->value.as.i == 0);
    assert_int_equal(((const errand_ffi_result *)rig->payload.data)->sys_errno, 0);
}

/* C-K1 */
static void
variadic_calls_pass_as_the_compiler_does(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_library *libc;
    errand_ffi_value doubles[11] = {V(i)(10)};
    const errand_ffi_result *result;
    double sum = 0;

    result = RIG_CALL(rig, rig_function(rig, "f64 sum_of(i32, ..., i32, f64, i32, f64)"),
                      V(i)(4), V(i)(-1), V(f64)(0.5), V(i)(10), V(f64)(0.25));
    assert_true(result->value.as.f64 == 9.75);
    for (int i = 1; i <= 10; i++) {
        doubles[i] = errand_ffi_f64(i / 8.0);
        sum = sum * 2 + i / 8.0;
    }
    result =
        rig_call(rig,
                 rig_function(rig, "f64 sum_doubles(i32, ..., f64, f64, f64, f64, f64, "
                                   "f64, f64, f64, f64, f64)"),
                 doubles, 11);
    assert_true(result->value.as.f64 == sum);
    assert_int_equal(errand_ffi_library_create("libc.so.6", &libc), ERRAND_OK);
    errand_ffi_function *print = rig_function_of(
        rig, libc, "i32 snprintf(out bytes, u64, string, ..., i32, string, f64)");
    errand_ffi_library_abandon(&libc);
    result = RIG_CALL(rig, print, V(out)(32), V(u)(32), V(string)("%d %s %.2f"), V(i)(-7),
                      V(string)("text"), V(f64)(2.5));
    assert_string_equal((const char *)result->outputs[0].bytes, "-7 text 2.50");
    assert_true(result->value.as.i == 12);
}

static void
libraries_of_the_system_are_called(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_library *libm, *libz;
    errand_ffi_error error;
    const errand_ffi_result *result;
    const char *text = "errand errand errand errand errand errand errand errand";
    uint64_t room = 200;

    assert_int_equal(errand_ffi_library_create("libm.so.6", &libm), ERRAND_OK);
    errand_ffi_function *cosine = rig_function_of(rig, libm, "f64 cos(f64)");
    errand_ffi_library_abandon(&libm);
    result = RIG_CALL(rig, cosine, V(f64)(1));
    assert_true(result->value.as.f64 == cos(1));
    assert_int_equal(errand_ffi_library_create("libz.so.1", &libz), ERRAND_OK);
    if (errand_ffi_library_load(libz, &error) != ERRAND_OK) {
        errand_ffi_library_abandon(&libz);
        test_skip("libz.so.1 is not here");
    }
    errand_ffi_function *crc = rig_function_of(rig, libz, "u64 crc32(u64, bytes, u32)"),
                        *pack = rig_function_of(rig, libz,
                                                "i32 compress2(out bytes, inout bytes, "
                                                "bytes, u64, i32)"),
                        *unpack = rig_function_of(
                            rig, libz,
                            "i32 uncompress(out bytes, inout bytes, bytes, u64)");
    errand_ffi_library_abandon(&libz);
    result = RIG_CALL(rig, crc, V(u)(0), V(bytes)("123456789", 9), V(u)(9));
    assert_true(result->value.as.u == 0xcbf43926);
    result = RIG_CALL(rig, pack, V(out)(200), V(inout)(&room, 8), V(bytes)(text, 55),
                      V(u)(55), V(i)(9));
    assert_true(result->value.as.i == 0 && result->output_count == 2);
    memcpy(&room, result->outputs[1].bytes, 8);
    assert_true(room > 8 && room < 55);
    unsigned char packed[200];
    uint64_t size = room;
    memcpy(packed, result->outputs[0].bytes, sizeof packed);
    room = 55;
    result = RIG_CALL(rig, unpack, V(out)(55), V(inout)(&room, 8), V(bytes)(packed, size),
                      V(u)(size));
    assert_memory_equal(result->outputs[0].bytes, text, 55);
}

/* C-K2: nothing around the result is touched, and the same on all paths. */
static void
results_stay_in_their_cell(void **state)
{
    static const char *const texts[] = {"i8 give_i8()", "i8 give_i8()", "u8 give_i8()",
                                        "{i32, i32} small_turn({i32, i32})"};
    static const char *const symbols[] = {"give_i8", "give_i8", "give_i8", "small_turn"};
    void *handle = dlopen(SUBJECT, RTLD_NOW);
    errand_ffi_error error;

    (void)state;
    assert_non_null(handle);
    for (int i = 0; i < 4; i++) {
        errand__callee *callee =
            errand__callee_create(dlsym(handle, symbols[i]), texts[i], &error);
        _Alignas(16) struct {
            uint64_t before[2];
            uint64_t cell[2];
            uint64_t after[2];
        } room = {{1, 2}, {0, 0}, {3, 4}};
        uint64_t word = 5;
        void *address = &word;
        errand__frame frame = {&word, &address, room.cell, 0};

        assert_non_null(callee);
        if (i == 1)
            callee->shape = 0; /* by libffi */
        assert_true(callee->result_room <= sizeof room.cell);
        errand__callee_call(callee, &frame);
        assert_true(room.before[0] == 1 && room.before[1] == 2 && room.after[0] == 3 &&
                    room.after[1] == 4);
        assert_true(room.cell[0] == (i < 2    ? UINT64_MAX
                                     : i == 2 ? 255
                                              : UINT64_C(5) << 32));
        errand__callee_destroy(callee);
    }
    dlclose(handle);
}

static void
what_cannot_be_found_fails_with_the_loaders_text(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_library *none;
    errand_ffi_error error = {.column = 0};

    assert_int_equal(errand_ffi_library_create("libnowhere.so.9", &none), ERRAND_OK);
    assert_int_equal(errand_ffi_library_load(NULL, &error), ERRAND_EINVAL);
    assert_int_equal(errand_ffi_library_load(none, &error), ERRAND_EUNSUPPORTED);
    assert_non_null(strstr(error.text, "libnowhere.so.9"));
    errand_ffi_function *lost = rig_function_of(rig, none, "i32 f()");
    errand_ffi_library_abandon(&none);
    rig_start(rig, lost, NULL, 0, NULL);
    rig_await(rig);
    assert_int_equal(rig->outcome, ERRAND_FAILED);
    assert_string_equal(errand_ffi_code_name(rig->job_code), "NO_LIBRARY");
    assert_non_null(strstr(rig->message, "'f': libnowhere.so.9"));
    rig_start(rig, rig_function(rig, "i32 nowhere()"), NULL, 0, NULL);
    rig_await(rig);
    assert_string_equal(errand_ffi_code_name(rig->job_code), "NO_SYMBOL");
    assert_non_null(strstr(rig->message, "nowhere"));
    assert_int_equal(errand_ffi_library_create("", &none), ERRAND_EINVAL);
    assert_string_equal(errand_ffi_code_name(99), "unknown");
}

static void
the_process_itself_is_a_library(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_library *self;

    assert_int_equal(errand_ffi_library_create(NULL, &self), ERRAND_OK);
    errand_ffi_function *length = rig_function_of(rig, self, "u64 strlen(string)");
    errand_ffi_library_abandon(&self);
    assert_true(RIG_CALL(rig, length, V(string)("seven77"))->value.as.u == 7);
}

int
main(void)
{
#define CALL(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    static const struct CMUnitTest tests[] = {
        CALL(narrow_results_are_widened_by_their_sign),
        CALL(every_width_goes_through_at_its_ends),
        CALL(floats_go_through_bit_by_bit),
        CALL(arguments_of_all_kinds_keep_their_places),
        CALL(structures_go_in_and_out_by_value),
        CALL(a_structure_in_the_last_integer_register_leaves_the_floats_alone),
        CALL(memory_is_read_filled_and_changed),
        CALL(texts_come_back_copied),
        CALL(errno_is_the_functions_own),
        CALL(variadic_calls_pass_as_the_compiler_does),
        CALL(libraries_of_the_system_are_called),
        cmocka_unit_test(results_stay_in_their_cell),
        CALL(what_cannot_be_found_fails_with_the_loaders_text),
        CALL(the_process_itself_is_a_library),
    };

    return test_group("foreign/calls", tests, NULL, NULL);
}
