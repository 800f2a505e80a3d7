/* SPDX-License-Identifier: MIT */
/* Goal: libraries that people use work, and what goes wrong in them is their caller's news alone: by the
 * same descriptions on a thread and in a sandbox.
 * Method: zlib, libm, the C library and SQLite where they are installed (others are skipped by name). */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include "tier.h"

enum { LARGE = 10 << 20 };

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
    if (!tier_installed(ZLIB))
        test_skip("libz.so.1 is not installed");
    tier_in_both(compress_large, NULL);
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
    tier_in_both(use_c, NULL);
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
        assert_int_equal(tier_call(&self, NULL, "void abort()", NULL, 0), ENDS_CRASHED);
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
    assert_int_equal(tier_call(self, SQLITE, STOP, NULL, 0), ENDS_ODD);
}

static void
a_database_in_memory_answers_and_says_what_is_wrong(void **state)
{
    (void)state;
    if (!tier_installed(SQLITE))
        test_skip("libsqlite3.so.0 is not installed");
    tier_in_both(use_sqlite, sqlite);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_megabytes_are_packed_and_come_back),
        cmocka_unit_test(the_c_library_computes_prints_and_calls_back),
        cmocka_unit_test(calls_that_would_end_a_host_end_a_worker),
        cmocka_unit_test(a_database_in_memory_answers_and_says_what_is_wrong),
    };

    return test_group("hostile/sandbox/libraries", tests, NULL, NULL);
}
