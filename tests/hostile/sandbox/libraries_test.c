/* SPDX-License-Identifier: MIT */
/* Goal: libraries that people use work, and what is wrong with their input is their caller's news alone: by
 * the same descriptions on a thread and in a sandbox.
 * Method: zlib, libm, the C library, SQLite, libpng and Expat where they are installed (others are skipped
 * by name), with inputs that are right, cut, flipped and made up. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "errand/ffi.h"
#include "group.h"
#include "pool.h"

#define MS UINT64_C(1000000)
enum { LARGE = 10 << 20 };

typedef struct tier {
    hostile_pool pool; /* the executor is the tier's */
    bool sandboxed;
    errand_ffi_library
        *kept; /* a thread's library goes with who holds it, and all that it made */
    /* Of the last call; outputs are copied. */
    int64_t number;
    double real;
    char text[256];
    unsigned char *out[4];
    size_t out_size[4];
} tier;

static bool
installed(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    if (handle != NULL)
        dlclose(handle);
    else
        print_message("[  SKIPPED ] %s: not installed\n", library);
    return handle != NULL;
}

/* Functions whose results are addresses that later calls are given: a sandbox must know all of them from
 * the start.  One that it does not know yet is for a worker that is started then, who knows nothing of them. */
typedef struct known {
    const char *library, *signature;
} known;

static size_t
describe_known(const known *list, errand_entry *out_entries,
               errand_ffi_function **out_functions)
{
    errand_ffi_library *library;
    size_t count = 0;

    for (; list != NULL && list[count].library != NULL; count++) {
        assert_int_equal(errand_ffi_library_create(list[count].library, &library),
                         ERRAND_OK);
        assert_int_equal(errand_ffi_describe(library, list[count].signature,
                                             &out_functions[count], NULL),
                         ERRAND_OK);
        errand_ffi_library_abandon(&library);
        out_entries[count] =
            (errand_entry){list[count].library,
                           errand_ffi_function_signature(out_functions[count])->symbol,
                           errand_ffi_function_text(out_functions[count])};
    }
    return count;
}

static void
tier_begin(tier *self, bool sandboxed, const known *list)
{
    errand_entry entries[8];
    errand_ffi_function *functions[8];
    char text[256] = "";

    memset(self, 0, sizeof *self);
    self->sandboxed = sandboxed;
    if (sandboxed) {
        errand_sandbox_config config;
        errand_sandbox_policy policy;

        hostile_config(&config, &policy);
        config.workers_max = 1;
        policy.promises = ERRAND_PROMISE_CALLBACK;
        policy.reuse = 0;
        policy.in_bytes = policy.out_bytes = 32u << 20;
        policy.entries = entries;
        policy.entry_count = describe_known(list, entries, functions);
        if (!hostile_begin(&self->pool, &config, ERRAND_TEST_JOBS, text, sizeof text))
            fail_msg("no sandbox: %s", text);
        for (size_t i = 0; i < policy.entry_count; i++)
            errand_ffi_function_abandon(&functions[i]);
        return;
    }
    errand_blocking_config config = {.struct_size = sizeof config, .workers_max = 1};
    assert_int_equal(errand_runtime_create(NULL, &self->pool.runtime), ERRAND_OK);
    assert_int_equal(errand_blocking_create(&config, &self->pool.executor), ERRAND_OK);
    assert_int_equal(
        errand_attach(self->pool.runtime, self->pool.executor, 0, &self->pool.lease),
        ERRAND_OK);
}

static void
forget_outputs(tier *self)
{
    for (int i = 0; i < 4; i++) {
        free(self->out[i]);
        self->out[i] = NULL;
    }
}

static void
tier_end(tier *self)
{
    forget_outputs(self);
    errand_ffi_library_abandon(&self->kept);
    assert_true(hostile_end(&self->pool));
}

static void
keep(void *arg, errand_completion *completion)
{
    tier *self = arg;
    void *data = NULL;

    self->pool.heard++;
    self->pool.ends = hostile_ends_of(completion);
    self->pool.signal_number = completion->signal_number;
    self->pool.job_code = completion->job_code;
    snprintf(self->pool.message, sizeof self->pool.message, "%s",
             completion->message == NULL ? "" : completion->message);
    if (completion->outcome != ERRAND_COMPLETED)
        return;
    assert_int_equal(
        errand_completion_read(completion, &errand_ffi_result_type, &data, NULL),
        ERRAND_OK);
    const errand_ffi_result *result = data;
    self->number = result->value.as.i;
    self->real = result->value.as.f64;
    if (result->value.kind == ERRAND_FFI_STRING && result->value.as.string != NULL)
        snprintf(self->text, sizeof self->text, "%s", result->value.as.string);
    for (uint32_t i = 0; i < result->output_count && i < 4; i++) {
        self->out_size[i] = result->outputs[i].size;
        self->out[i] = malloc(result->outputs[i].size + 1);
        memcpy(self->out[i], result->outputs[i].bytes, result->outputs[i].size);
    }
}

/* Calls library's function of that signature; answers how it ended (ENDS_ODD: it came back). */
static int
call(tier *self, const char *library, const char *signature,
     const errand_ffi_value *arguments, size_t count)
{
    errand_ffi_library *opened;
    errand_ffi_function *function;
    errand_ffi_error error = {.text = ""};
    errand_spec spec = ERRAND_SPEC_INIT;
    uint64_t before = self->pool.heard;

    forget_outputs(self);
    assert_int_equal(errand_ffi_library_create(library, &opened), ERRAND_OK);
    if (errand_ffi_describe(opened, signature, &function, &error) != ERRAND_OK ||
        errand_spec_call(&spec, function, arguments, count, &error) != ERRAND_OK)
        fail_msg("%s: %s", signature, error.text);
    spec.deadline_ns = self->sandboxed ? 20000 * MS : 0;
    if (strstr(signature, "sleep") != NULL)
        spec.deadline_ns = 100 * MS;
    assert_int_equal(errand_start(self->pool.lease, &spec, NULL, NULL), ERRAND_OK);
    errand_ffi_function_abandon(&function);
    while (self->pool.heard == before) {
        assert_int_equal(errand_park(self->pool.runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(self->pool.runtime, SIZE_MAX, keep, self, NULL),
                         ERRAND_OK);
    }
    errand_ffi_library_abandon(&self->kept);
    self->kept = opened;
    return self->pool.ends;
}
#define CALL(self, library, signature, ...)                                              \
    call(self, library, signature, (const errand_ffi_value[]){__VA_ARGS__},              \
         sizeof((const errand_ffi_value[]){__VA_ARGS__}) / sizeof(errand_ffi_value))

static void
in_both(void (*test)(tier *self), const known *list)
{
    tier self;

    for (int sandboxed = 0; sandboxed < 2; sandboxed++) {
        tier_begin(&self, sandboxed != 0, list);
        test(&self);
        tier_end(&self);
    }
}

/* ---- zlib ------------------------------------------------------------------------------------------------ */

#define ZLIB     "libz.so.1"
#define COMPRESS "i32 compress2(out bytes, inout bytes, bytes, u64, i32)"
#define EXPAND   "i32 uncompress(out bytes, inout bytes, bytes, u64)"

static unsigned char *
make_large(void)
{
    unsigned char *bytes = malloc(LARGE);
    uint32_t seed = 7;

    for (size_t i = 0; i < LARGE; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (unsigned char)((i % 5 == 0 ? seed >> 24 : i >> 4) & 0xff);
    }
    return bytes;
}

static void
compress_large(tier *self)
{
    unsigned char *bytes = make_large();
    uint64_t size = LARGE + LARGE / 100, packed;

    assert_int_equal(CALL(self, ZLIB, "u64 crc32(u64, bytes, u32)", errand_ffi_u(0),
                          errand_ffi_bytes("123456789", 9), errand_ffi_u(9)),
                     ENDS_ODD);
    assert_int_equal(self->number, 0xcbf43926);
    assert_int_equal(CALL(self, ZLIB, COMPRESS, errand_ffi_out(size),
                          errand_ffi_inout(&size, sizeof size),
                          errand_ffi_bytes(bytes, LARGE), errand_ffi_u(LARGE),
                          errand_ffi_i(1)),
                     ENDS_ODD);
    assert_int_equal(self->number, 0);
    memcpy(&packed, self->out[1], sizeof packed);
    assert_true(packed > 1000 && packed < LARGE);
    unsigned char *small = malloc(packed);
    memcpy(small, self->out[0], packed);
    size = LARGE;
    assert_int_equal(CALL(self, ZLIB, EXPAND, errand_ffi_out(LARGE),
                          errand_ffi_inout(&size, sizeof size),
                          errand_ffi_bytes(small, packed), errand_ffi_u(packed)),
                     ENDS_ODD);
    assert_int_equal(self->number, 0);
    assert_memory_equal(self->out[0], bytes, LARGE);
    for (size_t cut = 1; cut < packed;
         cut *= 16) { /* cut, and flipped: Z_DATA_ERROR or so */
        small[packed - cut] ^= 0x10;
        size = LARGE;
        assert_int_equal(CALL(self, ZLIB, EXPAND, errand_ffi_out(LARGE),
                              errand_ffi_inout(&size, sizeof size),
                              errand_ffi_bytes(small, packed), errand_ffi_u(packed)),
                         ENDS_ODD);
        assert_true(self->number < 0);
        small[packed - cut] ^= 0x10;
    }
    free(small);
    free(bytes);
}

static void
ten_megabytes_are_packed_and_come_back(void **state)
{
    (void)state;
    if (!installed(ZLIB))
        test_skip("libz.so.1 is not installed");
    in_both(compress_large, NULL);
}

/* ---- the C library and libm -------------------------------------------------------------------------------- */

static uint64_t compared;

static void
compare(void *arg, const errand_ffi_value *arguments, uint32_t count,
        errand_ffi_value *out_result)
{
    (void)arg;
    (void)arguments;
    assert_int_equal(count, 2);
    compared++;
    out_result->as.i =
        0; /* all are equal: a sandbox's addresses are no more than numbers */
}

static void
use_c(tier *self)
{
    int32_t numbers[64];
    errand_ffi_callback_config config = {.struct_size = sizeof config,
                                         .signature = "i32(pointer, pointer)",
                                         .handler = compare};
    errand_ffi_callback *callback;
    errand_ffi_error error;

    assert_int_equal(CALL(self, "libm.so.6", "f64 cos(f64)", errand_ffi_f64(0)),
                     ENDS_ODD);
    assert_true(self->real == 1.0);
    assert_int_equal(CALL(self, "libm.so.6", "f64 pow(f64, f64)", errand_ffi_f64(-1),
                          errand_ffi_f64(0.5)),
                     ENDS_ODD);
    assert_true(isnan(self->real));
    assert_int_equal(
        CALL(self, NULL, "i32 snprintf(out bytes, u64, string, ..., i32, f64)",
             errand_ffi_out(64), errand_ffi_u(64), errand_ffi_string("%d %.2f"),
             errand_ffi_i(-7), errand_ffi_f64(2.5)),
        ENDS_ODD);
    assert_string_equal((char *)self->out[0], "-7 2.50");
    for (int i = 0; i < 64; i++)
        numbers[i] = 64 - i;
    compared = 0;
    assert_int_equal(
        errand_ffi_callback_create(self->pool.runtime, &config, &callback, &error),
        ERRAND_OK);
    assert_int_equal(CALL(self, NULL,
                          "void qsort(inout bytes, u64, u64, fn(i32(pointer, pointer)))",
                          errand_ffi_inout(numbers, sizeof numbers), errand_ffi_u(64),
                          errand_ffi_u(4), errand_ffi_callback_value(callback)),
                     ENDS_ODD);
    assert_true(compared >= 63);
    assert_memory_equal(self->out[0], numbers, sizeof numbers);
    assert_int_equal(errand_ffi_callback_destroy(&callback), ERRAND_OK);
}

static void
the_c_library_computes_prints_and_calls_back(void **state)
{
    (void)state;
    in_both(use_c, NULL);
}

static void
calls_that_would_end_a_host_end_a_worker(void **state)
{
    tier self;

    (void)state;
    tier_begin(&self, true, NULL);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(CALL(&self, NULL, "void exit(i32)", errand_ffi_i(9)),
                         ENDS_EXITED);
        assert_int_equal(self.pool.job_code, 9);
        assert_int_equal(call(&self, NULL, "void abort()", NULL, 0), ENDS_CRASHED);
        assert_int_equal(self.pool.signal_number, SIGABRT);
        assert_int_equal(
            CALL(&self, NULL, "u64 strlen(pointer)", errand_ffi_pointer((void *)8)),
            ENDS_CRASHED);
        assert_int_equal(CALL(&self, NULL, "u32 sleep(u32)", errand_ffi_u(3600)),
                         ENDS_DEADLINE);
        assert_int_equal(CALL(&self, NULL, "void free(pointer)",
                              errand_ffi_pointer((void *)0x1234560)),
                         ENDS_CRASHED);
        int ends = CALL(&self, NULL, "i32 system(string)", errand_ffi_string("true"));
        assert_true((ends & (ENDS_ODD | ENDS_POLICY)) != 0);
        assert_int_equal(CALL(&self, "libm.so.6", "f64 cos(f64)", errand_ffi_f64(0)),
                         ENDS_ODD);
    }
    tier_end(&self);
}

/* ---- SQLite -------------------------------------------------------------------------------------------------- */

#define SQLITE "libsqlite3.so.0"
#define EXEC   "i32 sqlite3_exec(pointer, string, pointer, pointer, out bytes)"

#define OPEN  "i32 sqlite3_open(string, out bytes)"
#define WHY   "string sqlite3_errmsg(pointer)"
#define CLOSE "i32 sqlite3_close(pointer)"
#define STOP  "i32 sqlite3_shutdown()"
static const known sqlite[] = {{SQLITE, OPEN},  {SQLITE, EXEC}, {SQLITE, WHY},
                               {SQLITE, CLOSE}, {SQLITE, STOP}, {NULL, NULL}};

static int64_t
exec(tier *self, void *database, const char *text)
{
    assert_int_equal(CALL(self, SQLITE, EXEC, errand_ffi_pointer(database),
                          errand_ffi_string(text), errand_ffi_pointer(NULL),
                          errand_ffi_pointer(NULL), errand_ffi_out(8)),
                     ENDS_ODD);
    return self->number;
}

static void
use_sqlite(tier *self)
{
    void *database;

    assert_int_equal(
        CALL(self, SQLITE, OPEN, errand_ffi_string(":memory:"), errand_ffi_out(8)),
        ENDS_ODD);
    assert_int_equal(self->number, 0);
    memcpy(&database, self->out[0], sizeof database);
    assert_int_equal(
        exec(self, database, "create table t(a integer primary key, b text)"), 0);
    assert_int_equal(
        exec(self, database,
             "with recursive n(i) as (select 1 union all select i + 1 from n where "
             "i < 2000) insert into t select i, hex(randomblob(20)) from n"),
        0);
    assert_int_equal(
        exec(self, database, "select count(*), max(b) from t group by a % 7"), 0);
    assert_int_equal(exec(self, database, "selekt nothing"), 1);
    assert_int_equal(CALL(self, SQLITE, WHY, errand_ffi_pointer(database)), ENDS_ODD);
    assert_string_equal(self->text, "near \"selekt\": syntax error");
    assert_int_not_equal(
        exec(self, database, "attach '/etc/passwd' as p; select * from p.q"), 0);
    assert_int_equal(exec(self, database, "select 1"), 0);
    assert_int_equal(CALL(self, SQLITE, CLOSE, errand_ffi_pointer(database)), ENDS_ODD);
    assert_int_equal(self->number, 0);
    assert_int_equal(call(self, SQLITE, STOP, NULL, 0), ENDS_ODD);
}

static void
a_database_in_memory_answers_and_says_what_is_wrong(void **state)
{
    (void)state;
    if (!installed(SQLITE))
        test_skip("libsqlite3.so.0 is not installed");
    in_both(use_sqlite, sqlite);
}

/* ---- parsers of what comes from outside ------------------------------------------------------------------- */

static const unsigned char picture[] = {/* 1 x 1, grey */
                                        0x89, 'P',  'N',  'G',  '\r', '\n', 0x1a, '\n',
                                        0,    0,    0,    13,   'I',  'H',  'D',  'R',
                                        0,    0,    0,    1,    0,    0,    0,    1,
                                        8,    0,    0,    0,    0,    0x3a, 0x7e, 0x9b,
                                        0x55, 0,    0,    0,    10,   'I',  'D',  'A',
                                        'T',  0x78, 0x9c, 0x63, 0x60, 0,    0,    0,
                                        2,    0,    1,    0x48, 0xaf, 0xa4, 0x71, 0,
                                        0,    0,    0,    'I',  'E',  'N',  'D',  0xae,
                                        0x42, 0x60, 0x82};

static void
read_pictures(tier *self)
{
    struct {
        void *opaque;
        uint32_t version, width, height, format, flags, colours, error;
        char message[64];
    } image;
    unsigned char bytes[sizeof picture];
    uint64_t rounds = test_scaled(1000);
    unsigned seed = 3, good = 0;

    for (uint64_t i = 0; i < rounds; i++) {
        memcpy(bytes, picture, sizeof bytes);
        size_t size = sizeof bytes;
        if (i != 0)
            bytes[(unsigned)rand_r(&seed) % size] ^=
                (unsigned char)(1 << rand_r(&seed) % 8);
        if (i % 3 == 2)
            size = (unsigned)rand_r(&seed) % size;
        memset(&image, 0, sizeof image);
        image.version = 1;
        assert_int_equal(
            CALL(self, "libpng16.so.16",
                 "i32 png_image_begin_read_from_memory(inout bytes, bytes, u64)",
                 errand_ffi_inout(&image, sizeof image), errand_ffi_bytes(bytes, size),
                 errand_ffi_u(size)),
            ENDS_ODD);
        good += self->number != 0;
        memcpy(&image, self->out[0], sizeof image);
        if (i == 0)
            assert_true(image.width == 1 && image.height == 1);
        if (self->number == 0)
            assert_true(memchr(image.message, 0, sizeof image.message) != NULL);
    }
    assert_true(good != 0);
}

static void
pictures_that_are_damaged_are_refused(void **state)
{
    tier self;

    (void)state;
    if (!installed("libpng16.so.16"))
        test_skip("libpng16.so.16 is not installed");
    tier_begin(&self, true, NULL); /* what it reads is lent to one call only */
    read_pictures(&self);
    tier_end(&self);
}

#define EXPAT  "libexpat.so.1"
#define CREATE "pointer XML_ParserCreate(pointer)"
#define PARSE  "i32 XML_Parse(pointer, bytes, i32, i32)"
#define FREE   "void XML_ParserFree(pointer)"
static const known expat[] = {
    {EXPAT, CREATE}, {EXPAT, PARSE}, {EXPAT, FREE}, {NULL, NULL}};

static int64_t
parse(tier *self, const char *text, size_t size)
{
    assert_int_equal(CALL(self, EXPAT, CREATE, errand_ffi_pointer(NULL)), ENDS_ODD);
    void *parser = (void *)(uintptr_t)self->number;
    assert_non_null(parser);
    assert_int_equal(CALL(self, EXPAT, PARSE, errand_ffi_pointer(parser),
                          errand_ffi_bytes(text, size), errand_ffi_i((int64_t)size),
                          errand_ffi_i(1)),
                     ENDS_ODD);
    int64_t status = self->number;
    assert_int_equal(CALL(self, EXPAT, FREE, errand_ffi_pointer(parser)), ENDS_ODD);
    return status;
}

static void
parse_documents(tier *self)
{
    static const char fine[] = "<a><b c='d'>text &amp; more</b></a>";
    static const char laughs[] =
        "<!DOCTYPE z [<!ENTITY a 'aaaaaaaaaaaaaaaaaaaa'><!ENTITY b "
        "'&a;&a;&a;&a;&a;&a;&a;&a;'>"
        "<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;'><!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;'>"
        "<!ENTITY e '&d;&d;&d;&d;&d;&d;&d;&d;'><!ENTITY f '&e;&e;&e;&e;&e;&e;&e;&e;'>"
        "<!ENTITY g '&f;&f;&f;&f;&f;&f;&f;&f;'><!ENTITY h '&g;&g;&g;&g;&g;&g;&g;&g;'>]>"
        "<z>&h;&h;&h;&h;</z>";
    char bytes[sizeof fine];
    unsigned seed = 5;

    assert_int_equal(parse(self, fine, sizeof fine - 1), 1);
    assert_int_equal(parse(self, laughs, sizeof laughs - 1), 0);
    for (uint64_t i = 0; i < test_scaled(300); i++) {
        memcpy(bytes, fine, sizeof bytes);
        bytes[(unsigned)rand_r(&seed) % (sizeof fine - 1)] = (char)rand_r(&seed);
        (void)parse(self, bytes, sizeof fine - 1 - (unsigned)rand_r(&seed) % 4);
    }
    assert_int_equal(parse(self, fine, sizeof fine - 1), 1);
}

static void
documents_that_are_damaged_are_refused(void **state)
{
    (void)state;
    if (!installed(EXPAT))
        test_skip("libexpat.so.1 is not installed");
    in_both(parse_documents, expat);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_megabytes_are_packed_and_come_back),
        cmocka_unit_test(the_c_library_computes_prints_and_calls_back),
        cmocka_unit_test(calls_that_would_end_a_host_end_a_worker),
        cmocka_unit_test(a_database_in_memory_answers_and_says_what_is_wrong),
        cmocka_unit_test(pictures_that_are_damaged_are_refused),
        cmocka_unit_test(documents_that_are_damaged_are_refused),
    };

    return test_group("hostile/sandbox/libraries", tests, NULL, NULL);
}
