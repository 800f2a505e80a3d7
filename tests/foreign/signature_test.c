/* SPDX-License-Identifier: MIT */
/* Goal: every signature is either read as it was meant or refused with the place and the mend.
 * Method: tables of texts; what is read is written again and compared. */
#include <limits.h>
#include <string.h>
#include "rig.h"

static void
texts_are_read_and_written_canonically(void **state)
{
    static const char *const rows[][2] = {
        {"u64 crc32(u64, bytes, u32)", "u64 crc32(u64, bytes, u32)"},
        {"  int  f ( void ) ", "i32 f()"},
        {"void qsort(inout bytes,size_t,size_t,fn(int(pointer,pointer)))",
         "void qsort(inout bytes, u64, u64, fn(i32(pointer, pointer)))"},
        {"i32 snprintf(out bytes, size_t, string, ..., int, double)",
         "i32 snprintf(out bytes, u64, string, ..., i32, f64)"},
        {"int printf(string, ...)", "i32 printf(string, ...)"},
        {"{i8,[3]f64,[2]{u16,u16}} turn({i8,[3]f64,[2]{u16,u16}}, i32)",
         "{i8, [3]f64, [2]{u16, u16}} turn({i8, [3]f64, [2]{u16, u16}}, i32)"},
        {"bool f(char, uchar, short, ushort, uint, long, ulong, llong, ullong, ssize_t)",
         CHAR_MIN < 0 ? "bool f(i8, u8, i16, u16, u32, i64, u64, i64, u64, i64)"
                      : "bool f(u8, u8, i16, u16, u32, i64, u64, i64, u64, i64)"},
        {"unix64 string f(float, double)", "unix64 string f(f32, f64)"},
        {"u8 f(fn(void()))", "u8 f(fn(void()))"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        errand__signature *signature = NULL, *again = NULL;
        errand_ffi_error error = {.column = 0};

        if (errand__signature_parse(rows[i][0], &signature, &error) != ERRAND_OK)
            fail_msg("%s: %u: %s", rows[i][0], error.column, error.text);
        assert_string_equal(signature->text, rows[i][1]);
        assert_int_equal(errand__signature_parse(signature->text, &again, &error),
                         ERRAND_OK);
        assert_string_equal(again->text, rows[i][1]);
        errand__signature_destroy(signature);
        errand__signature_destroy(again);
    }
}

static const struct {
    const char *text;
    uint32_t column, argument;
    const char *part;
} refused[] = {
    {"", 1, 0, "the text ends"},
    {"i32 f", 6, 0, "'(' and the parameters"},
    {"i32 f(", 7, 1, "the text ends"},
    {"i32 f(i32", 10, 1, "',' or ')'"},
    {"i32 f(i32) x", 12, 0, "goes on"},
    {"f(i32)", 1, 0, "'f' is no type"},
    {"i32 f(i32, integer)", 12, 2, "'integer' is no type"},
    {"i32 f(void, i32)", 11, 0, "',' or ')'"},
    {"i32 f(i32, void)", 12, 2, "void is a result only"},
    {"long double f()", 1, 0, "long double"},
    {"i32 f(long double)", 7, 1, "long double"},
    {"i32 f(union u)", 7, 1, "union"},
    {"i32 f({i32, union u})", 13, 1, "union"},
    {"i32 f({u8:3, u8})", 10, 1, "bit-fields"},
    {"i32 f(struct s)", 7, 1, "{TYPE, TYPE}"},
    {"i32 f(const char *)", 7, 1, "const is left out"},
    {"i32 f(char *)", 12, 1, "write string, bytes, out bytes or pointer"},
    {"i32 f(int count)", 11, 1, "no name"},
    {"i32 f(long long)", 12, 1, "llong"},
    {"i32 f(i32;", 10, 1, "',' or ')'"},
    {"char *f()", 6, 0, "write pointer or string"},
    {"i32 f(unsigned int)", 7, 1, "uint"},
    {"i32 f(_Complex)", 7, 1, "complex"},
    {"i32 f({})", 7, 1, "needs a field"},
    {"i32 f({i32 i32})", 12, 1, "',' or '}'"},
    {"i32 f({string})", 8, 1, "use pointer"},
    {"i32 f({bytes})", 8, 1, "use pointer, or an array"},
    {"i32 f([3]i32)", 7, 1, "put it into a structure"},
    {"[3]i32 f()", 1, 0, "put it into a structure"},
    {"i32 f({[0]i32})", 8, 1, "needs an element"},
    {"i32 f({[x]i32})", 9, 1, "number of elements"},
    {"i32 f({[99999]u8})", 8, 1, "65536"},
    {"i32 f({[60000]u16})", 7, 1, "64 KiB"},
    {"bytes f()", 1, 0, "pointer or string"},
    {"fn(void()) f()", 1, 0, "a callback is a parameter only"},
    {"i32 f(out)", 10, 1, "'bytes' belongs"},
    {"i32 f(out i32)", 11, 1, "'bytes' belongs"},
    {"i32 f(fn(string()))", 10, 1, "nobody could tell"},
    {"i32 f(fn({i32}()))", 10, 1, "void, a scalar or a pointer"},
    {"i32 f(fn(i32(bytes)))", 14, 1, "use pointer or string"},
    {"i32 f(fn(i32()", 15, 1, "')' belongs here"},
    {"i32 f(..., i32)", 7, 1, "behind the first"},
    {"i32 f(i32, ..., i32, ...)", 22, 3, "stands once"},
    {"i32 f(i32, ..., f32)", 17, 2, "write f64"},
    {"i32 f(i32, ..., i8)", 17, 2, "write i32"},
    {"i32 f({{{{{{{{{{{{{{{{{{i32}}}}}}}}}}}}}}}}}})", 23, 1, "deeper"},
};

/* S19 */
static void
errors_name_the_column_the_parameter_and_the_mend(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        errand__signature *signature = NULL;
        errand_ffi_error error = {.column = 0};

        assert_int_equal(errand__signature_parse(refused[i].text, &signature, &error),
                         ERRAND_EINVAL);
        if (error.column != refused[i].column || error.argument != refused[i].argument ||
            strstr(error.text, refused[i].part) == NULL)
            fail_msg("%s: column %u, parameter %u: %s", refused[i].text, error.column,
                     error.argument, error.text);
    }
}

static void
describing_tells_misuse_where_the_text_is_wrong(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_function *function = NULL;
    errand_ffi_error error = {.column = 0};

    assert_int_equal(errand_ffi_describe(rig->library, "i32 f(i33)", &function, &error),
                     ERRAND_EINVAL);
    assert_int_equal(error.column, 7);
    assert_int_equal(error.argument, 1);
    assert_non_null(strstr(rig->misuse_text, "errand_ffi_describe: 'i33' is no type"));
    assert_int_equal(errand_ffi_describe(rig->library, "i32 (i32)", &function, &error),
                     ERRAND_EINVAL);
    assert_non_null(strstr(error.text, "name"));
    assert_int_equal(errand_ffi_describe(rig->library, "i32 f(i33)", &function, NULL),
                     ERRAND_EINVAL);
    assert_null(function);
}

/* The name stands apart: columns are those of the text that was given. */
static void
a_name_and_a_signature_describe_the_same_as_one_text(void **state)
{
    ffi_rig *rig = *state;
    static const char *const good[][3] = {
        {"labs", "i64 (i64)", "i64 labs(i64)"},
        {"ldiv", "{i64, {i64}}(i64, i64)", "{i64, {i64}} ldiv(i64, i64)"},
        {"f@V_1.2", "  void ( ) ", "void f@V_1.2()"},
#if defined(__x86_64__)
        {"f", " unix64 void ( ) ", "unix64 void f()"},
#endif
        {"g", "i32(out bytes, ..., i32)", "i32 g(out bytes, ..., i32)"},
        {"h", "void (fn(i32(pointer)))", "void h(fn(i32(pointer)))"},
    };
    static const struct {
        const char *symbol, *text;
        uint32_t column;
        const char *part;
    } bad[] = {
        {"f", "i32 (i33)", 6, "'i33' is no type"},
        {"f", "i32", 4, "'(' and the parameters"},
        {"f", "i32 g(i32)", 0, "a name of its own, 'g'"},
        {"f", "i32 f(i32)", 0, "leave it out"},
        {"", "i32 (i32)", 0, "the function's name is empty"},
        {"f(", "i32 (i32)", 0, "'f(' is no name"},
        {"f-g", "i32 (i32)", 0, "'f-g' is no name"},
        {"2f", "i32 (i32)", 0, "'2f' is no name"},
    };
    errand_ffi_function *function = NULL;
    errand_ffi_error error = {.column = 0};

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (errand_ffi_describe_named(rig->library, good[i][0], good[i][1], &function,
                                      &error) != ERRAND_OK)
            fail_msg("%s: %u: %s", good[i][1], error.column, error.text);
        assert_string_equal(errand_ffi_function_text(function), good[i][2]);
        assert_string_equal(errand_ffi_function_signature(function)->symbol, good[i][0]);
        errand_ffi_function_abandon(&function);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(errand_ffi_describe_named(rig->library, bad[i].symbol,
                                                   bad[i].text, &function, &error),
                         ERRAND_EINVAL);
        if (error.column != bad[i].column || strstr(error.text, bad[i].part) == NULL)
            fail_msg("%s: column %u: %s", bad[i].text, error.column, error.text);
    }
    assert_int_equal(
        errand_ffi_describe_named(rig->library, NULL, "i32 ()", &function, NULL),
        ERRAND_EINVAL);
    assert_int_equal(
        errand_ffi_describe_named(rig->library, "f", "win64 {i32} ()", &function, &error),
        ERRAND_EUNSUPPORTED);
    assert_null(function);
}

static void
structures_describe_the_same_as_texts(void **state)
{
    ffi_rig *rig = *state;
    static const errand_ffi_type f64 = {ERRAND_FFI_F64, 0, NULL};
    static const errand_ffi_type fields[] = {{ERRAND_FFI_I8, 0, NULL},
                                             {ERRAND_FFI_ARRAY, 3, &f64}};
    static const errand_ffi_type callback[] = {{ERRAND_FFI_I32, 0, NULL},
                                               {ERRAND_FFI_POINTER, 0, NULL}};
    static const errand_ffi_type parameters[] = {{ERRAND_FFI_STRUCT, 2, fields},
                                                 {ERRAND_FFI_CALLBACK, 1, callback},
                                                 {ERRAND_FFI_I32, 0, NULL}};
    errand_ffi_signature signature = {.struct_size = sizeof signature,
                                      .symbol = "f",
                                      .result = {ERRAND_FFI_VOID, 0, NULL},
                                      .parameters = parameters,
                                      .count = 3,
                                      .variadic = true,
                                      .fixed = 2};
    errand_ffi_function *function;
    errand_ffi_error error;

    assert_int_equal(errand_ffi_describe_as(rig->library, &signature, &function, &error),
                     ERRAND_OK);
    assert_string_equal(errand_ffi_function_text(function),
                        "void f({i8, [3]f64}, fn(i32(pointer)), ..., i32)");
    assert_int_equal(errand_ffi_function_signature(function)->fixed, 2);
    errand_ffi_function_abandon(&function);
    assert_null(function);
}

/* C-K1: declaring fixed > total. */
static void
structures_that_cannot_be_are_refused(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_type self = {ERRAND_FFI_STRUCT, 1, &self};
    const errand_ffi_type unknown = {(errand_ffi_kind)99, 0, NULL},
                          empty = {ERRAND_FFI_STRUCT, 1, NULL};
    const errand_ffi_type *bad[] = {&self, &unknown, &empty};
    errand_ffi_function *function = NULL;
    errand_ffi_error error = {.column = 0};
    errand_ffi_signature signature = {.struct_size = sizeof signature,
                                      .symbol = "f",
                                      .result = {ERRAND_FFI_VOID, 0, NULL},
                                      .count = 1};

    for (int i = 0; i < 3; i++) {
        signature.parameters = bad[i];
        assert_int_equal(
            errand_ffi_describe_as(rig->library, &signature, &function, &error),
            ERRAND_EINVAL);
        assert_non_null(strstr(error.text, "unions and bit-fields have none"));
    }
    signature.parameters = &(errand_ffi_type){ERRAND_FFI_I32, 0, NULL};
    signature.variadic = true;
    for (uint32_t fixed = 0; fixed <= 2; fixed += 2) {
        signature.fixed = fixed;
        assert_int_equal(
            errand_ffi_describe_as(rig->library, &signature, &function, &error),
            ERRAND_EINVAL);
        assert_non_null(strstr(error.text, "fixed must be 1 .. count"));
    }
    signature.fixed = 1;
    signature.symbol = "f(g)";
    assert_int_equal(errand_ffi_describe_as(rig->library, &signature, &function, &error),
                     ERRAND_EINVAL);
    signature.symbol = "f";
    signature.convention = (errand_ffi_convention)7;
    assert_int_equal(errand_ffi_describe_as(rig->library, &signature, &function, &error),
                     ERRAND_EINVAL);
    signature.convention = ERRAND_FFI_WIN64;
    assert_int_equal(errand_ffi_describe_as(rig->library, &signature, &function, &error),
                     ERRAND_EUNSUPPORTED);
    signature.convention = ERRAND_FFI_DEFAULT;
    signature.struct_size = 1;
    assert_int_equal(errand_ffi_describe_as(rig->library, &signature, &function, &error),
                     ERRAND_EINVAL);
    assert_null(function);
}

static void
layouts_are_those_of_the_compiler(void **state)
{
    static const errand_ffi_type f64 = {ERRAND_FFI_F64, 0, NULL},
                                 u16[] = {{ERRAND_FFI_U16, 0, NULL},
                                          {ERRAND_FFI_U16, 0, NULL}},
                                 pair = {ERRAND_FFI_STRUCT, 2, u16},
                                 fields[] = {{ERRAND_FFI_I8, 0, NULL},
                                             {ERRAND_FFI_ARRAY, 3, &f64},
                                             {ERRAND_FFI_ARRAY, 2, &pair}};
    const errand_ffi_type type = {ERRAND_FFI_STRUCT, 3, fields},
                          bad = {ERRAND_FFI_BYTES, 0, NULL},
                          none = {ERRAND_FFI_VOID, 0, NULL};
    size_t size, align, offsets[3];

    (void)state;
    assert_int_equal(errand_ffi_layout(&type, &size, &align, offsets), ERRAND_OK);
    assert_int_equal(size, sizeof(struct nested));
    assert_int_equal(align, _Alignof(struct nested));
    assert_int_equal(offsets[0], offsetof(struct nested, tag));
    assert_int_equal(offsets[1], offsetof(struct nested, numbers));
    assert_int_equal(offsets[2], offsetof(struct nested, pairs));
    assert_int_equal(errand_ffi_layout(&bad, &size, &align, NULL), ERRAND_OK);
    assert_int_equal(size, sizeof(void *));
    assert_int_equal(errand_ffi_layout(&none, &size, &align, NULL), ERRAND_EINVAL);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read_and_written_canonically),
        cmocka_unit_test(errors_name_the_column_the_parameter_and_the_mend),
        cmocka_unit_test_setup_teardown(describing_tells_misuse_where_the_text_is_wrong,
                                        rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_name_and_a_signature_describe_the_same_as_one_text, rig_setup,
            rig_teardown),
        cmocka_unit_test_setup_teardown(structures_describe_the_same_as_texts, rig_setup,
                                        rig_teardown),
        cmocka_unit_test_setup_teardown(structures_that_cannot_be_are_refused, rig_setup,
                                        rig_teardown),
        cmocka_unit_test(layouts_are_those_of_the_compiler),
    };

    return test_group("foreign/signature", tests, NULL, NULL);
}
