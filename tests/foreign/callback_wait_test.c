/* SPDX-License-Identifier: MIT */
/* Goal: who waits for a callback's answer sleeps until it is there or nobody will give one.
 * Method: calls stand in a callback while something ends; how often they go to sleep is counted at a
 * pause point, and what would be a race is told by snapshots of the runtime. */
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include "hearing.h"

#define V(x) errand_ffi_##x

static void
await_running(ffi_rig *rig, uint64_t running)
{
    errand_snapshot snapshot;

    do
        assert_int_equal(errand_runtime_snapshot(rig->runtime, &snapshot), ERRAND_OK);
    while (snapshot.running != running);
}

static void
a_cancelled_call_goes_on_with_the_default(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    const errand_ffi_value arguments[] = {V(callback_value)(callback), V(i)(1)};
    const char *symbols[] = {"i32 call_with(fn(i32(i32, string)), i32)",
                             "i32 call_from_thread(fn(i32(i32, string)), i32)"};
    errand_identity identity;

    for (int i = 0; i < 2; i++) {
        rig_start(rig, rig_function(rig, symbols[i]), arguments, 2, &identity);
        assert_int_equal(errand_park(rig->runtime, UINT64_MAX), ERRAND_OK); /* it asks */
        assert_int_equal(
            errand_cancel(rig->runtime, &identity, ERRAND_REASON_EXPLICIT, NULL),
            ERRAND_OK);
        await_running(rig, 0);
        rig_await(rig);
        assert_int_equal(rig->outcome, ERRAND_COMPLETED);
        assert_true(((errand_ffi_result *)rig->payload.data)->value.as.i == -77);
        assert_int_equal(self.count, 0);
    }
    hearing_end(&callback);
}

static void
shuts_down(ffi_rig *rig)
{
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    const errand_ffi_value arguments[] = {V(callback_value)(callback), V(i)(1)};

    rig_start(rig, rig_function(rig, "i32 call_with(fn(i32(i32, string)), i32)"),
              arguments, 2, NULL);
    assert_int_equal(errand_park(rig->runtime, UINT64_MAX), ERRAND_OK);
    rig_shutdown(rig); /* does not wait for its deadline of 30 s */
    assert_true(self.count <= 1);
    hearing_end(&callback);
}

static void
a_shutdown_frees_those_who_wait(void **state)
{
    static int (*const setups[])(void **) = {rig_setup_threads, rig_setup_inline,
                                             rig_setup_paced};
    void *rig;

    (void)state;
    for (int i = 0; i < 3; i++) {
        setups[i](&rig);
        shuts_down(rig);
        rig_teardown(&rig);
    }
}

/* sleeps: how often somebody was about to sleep.
 * Writers: callers.   Readers: the test.   Order: relaxed.   Pairs: none.
 * Why:     it is a count. */
static atomic_int sleeps;

static void
count_sleeps(void *arg, const char *place)
{
    (void)arg;
    if (strcmp(place, "ask-sleep") == 0)
        atomic_fetch_add_explicit(&sleeps, 1, memory_order_relaxed);
}

/* The time is there for what must not happen. */
static void
who_waits_for_an_answer_sleeps_until_it_is_there(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    const errand_ffi_value arguments[] = {V(callback_value)(callback), V(i)(1)};
    const char *symbols[] = {"i32 call_with(fn(i32(i32, string)), i32)",
                             "i32 call_from_thread(fn(i32(i32, string)), i32)"};
    const struct timespec some_time = {.tv_nsec = 60000000};

    errand_testing_pause(count_sleeps, NULL);
    for (int i = 0; i < 2; i++) {
        atomic_store_explicit(&sleeps, 0, memory_order_relaxed);
        rig_start(rig, rig_function(rig, symbols[i]), arguments, 2, NULL);
        assert_int_equal(errand_park(rig->runtime, UINT64_MAX), ERRAND_OK); /* it asks */
        nanosleep(&some_time, NULL);
        assert_int_equal(atomic_load_explicit(&sleeps, memory_order_relaxed), 1);
        rig_await(rig);
        assert_true(((errand_ffi_result *)rig->payload.data)->value.as.i == 42);
    }
    errand_testing_pause(NULL, NULL);
    hearing_end(&callback);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cancelled_call_goes_on_with_the_default,
                                        rig_setup_threads, rig_teardown),
        cmocka_unit_test(a_shutdown_frees_those_who_wait),
        cmocka_unit_test_setup_teardown(who_waits_for_an_answer_sleeps_until_it_is_there,
                                        rig_setup_threads, rig_teardown),
    };

    return test_group("foreign/callback_wait", tests, NULL, NULL);
}
