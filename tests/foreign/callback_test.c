/* SPDX-License-Identifier: MIT */
/* Goal: a callback is heard on the runtime's thread, once for each call, in every order.
 * Method: each case where the body is on this thread, on another, and due at a virtual time. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include "errand/order.h"
#include "hearing.h"

#define V(x) errand_ffi_##x

/* The same in each order and place that it names. */
enum { HERE = 1, THREADS = 2, INLINE = 4, PACED = 8 };
static void
in_each(unsigned places, void (*test)(ffi_rig *rig))
{
    static int (*const setups[])(void **) = {rig_setup, rig_setup_threads,
                                             rig_setup_inline, rig_setup_paced};
    void *rig;

    for (int i = 0; i < 4; i++) {
        if ((places >> i & 1) == 0)
            continue;
        setups[i](&rig);
        test(rig);
        rig_teardown(&rig);
    }
}

static void
hears(ffi_rig *rig)
{
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    errand_ffi_function *call =
        rig_function(rig, "i32 call_with(fn(i32(i32, string)), i32)");

    for (int i = 1; i <= 100; i++) {
        const errand_ffi_result *result =
            RIG_CALL(rig, call, V(callback_value)(callback), V(i)(-i));
        assert_true(result->value.as.i == 42);
        assert_int_equal(self.count, i);
        assert_true(self.number == -i);
        assert_string_equal(self.text, "text");
        assert_true(pthread_equal(self.thread, pthread_self()));
    }
    assert_true(RIG_CALL(rig, call, V(pointer)(NULL), V(i)(1))->value.as.i == -1);
    hearing_end(&callback);
}

/* S24 */
static void
a_callback_is_heard_on_the_runtimes_thread(void **state)
{
    (void)state;
    in_each(HERE | THREADS | INLINE | PACED, hears);
}

static void
hear_wide(void *arg, const errand_ffi_value *arguments, uint32_t count,
          errand_ffi_value *out_result)
{
    heard *self = arg;
    const errand_ffi_value *items = arguments[5].as.items;

    self->count++;
    assert_int_equal(count, 6);
    assert_true(arguments[0].kind == ERRAND_FFI_I8 && arguments[0].as.i == -1);
    assert_true(arguments[1].as.u == 65535);
    assert_true(arguments[2].kind == ERRAND_FFI_F32 && arguments[2].as.f32 == 1.5f);
    assert_true(arguments[3].as.f64 == -0.25);
    assert_true(arguments[4].as.i == INT64_MIN);
    assert_true(items[0].as.i == -3 && items[1].as.items[2].as.f64 == -4);
    assert_true(items[2].as.items[1].as.items[0].as.u == 9);
    assert_int_equal(out_result->kind, ERRAND_FFI_F64);
    assert_true(out_result->as.f64 == 0);
    *out_result = errand_ffi_f32(0.5f);
}

static void
hear_void(void *arg, const errand_ffi_value *arguments, uint32_t count,
          errand_ffi_value *out_result)
{
    (void)arguments;
    assert_int_equal(count, 0);
    assert_int_equal(out_result->kind, ERRAND_FFI_VOID);
    ((heard *)arg)->count++;
}

static void
hears_all_kinds(ffi_rig *rig)
{
    heard self = {.rig = rig};
    errand_ffi_callback *wide = hearing_of(
        &self, "f64(i8, u16, f32, f64, i64, {i8, [3]f64, [2]{u16, u16}})", hear_wide, 0);
    errand_ffi_callback *empty = hearing_of(&self, "void()", hear_void, 0);
    const errand_ffi_result *result;

    rig->once = true;
    result =
        RIG_CALL(rig,
                 rig_function(rig, "f64 call_wide(fn(f64(i8, u16, f32, f64, i64, {i8, "
                                   "[3]f64, [2]{u16, u16}})))"),
                 V(callback_value)(wide));
    assert_true(result->value.as.f64 == 0.5);
    result = RIG_CALL(rig, rig_function(rig, "u8 call_void(fn(void()))"),
                      V(callback_value)(empty));
    assert_true(result->value.as.u == 7);
    assert_int_equal(self.count, 2);
    hearing_end(&wide);
    hearing_end(&empty);
}

static void
arguments_of_callbacks_are_of_all_kinds(void **state)
{
    (void)state;
    in_each(HERE | THREADS, hears_all_kinds);
}

static void
compare(void *arg, const errand_ffi_value *arguments, uint32_t count,
        errand_ffi_value *out_result)
{
    int32_t a, b;

    (void)count;
    memcpy(&a, arguments[0].as.pointer, sizeof a);
    memcpy(&b, arguments[1].as.pointer, sizeof b);
    ((heard *)arg)->count++;
    *out_result = errand_ffi_i((a > b) - (a < b));
}

static void
sorts(ffi_rig *rig)
{
    heard self = {.rig = rig};
    errand_ffi_callback *callback =
        hearing_of(&self, "i32(pointer, pointer)", compare, 0);
    errand_ffi_library *libc;
    int32_t numbers[] = {5, -1, 3, 3, 900, -70};
    const int32_t sorted[] = {-70, -1, 3, 3, 5, 900};

    assert_int_equal(errand_ffi_library_create("libc.so.6", &libc), ERRAND_OK);
    errand_ffi_function *sort = rig_function_of(
        rig, libc, "void qsort(inout bytes, u64, u64, fn(i32(pointer, pointer)))");
    errand_ffi_library_abandon(&libc);
    rig->once = true;
    const errand_ffi_result *result =
        RIG_CALL(rig, sort, V(inout)(numbers, sizeof numbers), V(u)(6), V(u)(4),
                 V(callback_value)(callback));
    assert_memory_equal(result->outputs[0].bytes, sorted, sizeof sorted);
    assert_true(self.count >= 6);
    hearing_end(&callback);
}

static void
qsort_sorts_by_a_callback(void **state)
{
    (void)state;
    in_each(HERE | THREADS | PACED, sorts);
}

/* C-K5 */
static void
hears_thread(ffi_rig *rig)
{
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    const errand_ffi_result *result = RIG_CALL(
        rig, rig_function(rig, "i32 call_from_thread(fn(i32(i32, string)), i32)"),
        V(callback_value)(callback), V(i)(9));

    assert_true(result->value.as.i == 42);
    assert_int_equal(self.count, 1);
    assert_string_equal(self.text, "thread");
    assert_true(pthread_equal(self.thread, pthread_self()));
    hearing_end(&callback);
}

static void
a_thread_of_the_callees_own_is_heard_too(void **state)
{
    (void)state;
    in_each(THREADS | INLINE | PACED, hears_thread);
}

/* C-K5 */
static void
refuses_thread(ffi_rig *rig)
{
    heard self;
    errand_ffi_callback *callback =
        hearing(&self, rig, ERRAND_FFI_CALLBACK_REFUSE_FOREIGN);
    const errand_ffi_result *result = RIG_CALL(
        rig, rig_function(rig, "i32 call_from_thread(fn(i32(i32, string)), i32)"),
        V(callback_value)(callback), V(i)(9));

    assert_true(result->value.as.i == -77);
    assert_int_equal(self.count, 0);
    hearing_end(&callback);
}

static void
a_thread_of_the_callees_own_is_refused_where_that_is_asked_for(void **state)
{
    (void)state;
    in_each(THREADS, refuses_thread);
}

/* The owner is inside the body, so nobody could answer: not for ever. */
static void
refuses_thread_here(ffi_rig *rig)
{
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    const errand_ffi_result *result = RIG_CALL(
        rig, rig_function(rig, "i32 call_from_thread(fn(i32(i32, string)), i32)"),
        V(callback_value)(callback), V(i)(9));

    assert_true(result->value.as.i == -77);
    assert_int_equal(self.count, 0);
    hearing_end(&callback);
}

static void
a_thread_of_the_callees_own_is_refused_while_the_owner_runs_the_body(void **state)
{
    (void)state;
    in_each(HERE, refuses_thread_here);
}

/* ---- seeded orders -------------------------------------------------------------------------- */

typedef struct seeded_run {
    uint64_t digest, heard_ns[4], ended_ns[4];
} seeded_run;

static void
run_seeded(errand_order order, bool threads, seeded_run *out_run)
{
    void *state;
    ffi_rig *rig;
    heard self[4];
    errand_ffi_callback *callbacks[4];
    bool from_thread;

    rig_setup_order(&state, order, threads);
    rig = state;
    for (int i = 0; i < 4; i++) {
        callbacks[i] = hearing(&self[i], rig, 0);
        from_thread = threads && i % 2 == 1;
        const errand_ffi_value arguments[] = {V(callback_value)(callbacks[i]), V(i)(i)};
        errand_ffi_function *call = rig_function(
            rig, from_thread ? "i32 call_from_thread(fn(i32(i32, string)), i32)"
                             : "i32 call_with(fn(i32(i32, string)), i32)");
        rig_start(rig, call, arguments, 2, NULL);
    }
    assert_int_equal(errand_ffi_codecs(rig->runtime), ERRAND_OK);
    rig->completions = 0;
    for (int done = 0; done < 4;) {
        int before = rig->completions;

        rig_drain(rig);
        if (rig->completions != before) {
            assert_true(((errand_ffi_result *)rig->payload.data)->value.as.i == 42);
            errand_payload_drop(&rig->payload);
        }
        done = rig->completions;
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(self[i].count, 1);
        assert_true(pthread_equal(self[i].thread, pthread_self()));
        out_run->heard_ns[i] = self[i].virtual_ns;
    }
    assert_true(errand_reproducible(rig->runtime, NULL, 0));
    out_run->digest = errand_digest(rig->runtime);
    for (int i = 0; i < 4; i++)
        hearing_end(&callbacks[i]);
    rig_teardown(&state);
}

static void
seeded_orders_hear_callbacks_at_their_dues(void **state)
{
    seeded_run first, again, paced, here;

    (void)state;
    run_seeded(ERRAND_ORDER_INLINE, true, &first);
    run_seeded(ERRAND_ORDER_INLINE, true, &again);
    run_seeded(ERRAND_ORDER_INLINE, false, &here);
    assert_true(first.digest != 0 && first.digest == again.digest);
    assert_true(here.digest == first.digest);
    for (int i = 0; i < 10; i++) {
        run_seeded(ERRAND_ORDER_PACED, true, &paced);
        assert_true(paced.digest == first.digest);
        assert_memory_equal(paced.heard_ns, first.heard_ns, sizeof first.heard_ns);
    }
    assert_memory_equal(again.heard_ns, first.heard_ns, sizeof first.heard_ns);
    assert_memory_equal(here.heard_ns, first.heard_ns, sizeof first.heard_ns);
}

/* C-K5: whichever of them is due first, the thread that it waits for is heard. */
static void
calls_that_share_a_callback_hear_each_others_threads(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    const errand_ffi_value arguments[] = {V(callback_value)(callback), V(i)(1)};
    errand_ffi_function *call =
        rig_function(rig, "i32 call_from_thread(fn(i32(i32, string)), i32)");

    for (int round = 1; round <= 40; round++) {
        for (int i = 0; i < 4; i++)
            rig_start(rig, call, arguments, 2, NULL);
        while (rig->completions < 4) {
            errand_payload_drop(&rig->payload);
            rig_drain(rig);
        }
        assert_int_equal(self.count, 4 * round);
    }
    hearing_end(&callback);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_callback_is_heard_on_the_runtimes_thread),
        cmocka_unit_test(arguments_of_callbacks_are_of_all_kinds),
        cmocka_unit_test(qsort_sorts_by_a_callback),
        cmocka_unit_test(a_thread_of_the_callees_own_is_heard_too),
        cmocka_unit_test(a_thread_of_the_callees_own_is_refused_where_that_is_asked_for),
        cmocka_unit_test(
            a_thread_of_the_callees_own_is_refused_while_the_owner_runs_the_body),
        cmocka_unit_test_setup_teardown(
            calls_that_share_a_callback_hear_each_others_threads, rig_setup_paced,
            rig_teardown),
        cmocka_unit_test(seeded_orders_hear_callbacks_at_their_dues),
    };

    return test_group("foreign/callback", tests, NULL, NULL);
}
