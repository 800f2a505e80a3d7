/* SPDX-License-Identifier: MIT */
/* Goal: a callback is heard on the runtime's thread, once for each call, or gives its default and
 * enters nothing.
 * Method: each case in the orders where the body is on this thread, on another, or due at a virtual
 * time; what would be a race is told by snapshots of the runtime. */
#include <pthread.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "errand/order.h"
#include "rig.h"

#define V(x) errand_ffi_##x

typedef struct heard {
    ffi_rig *rig;
    int count;
    pthread_t thread;
    int64_t number;
    char text[32];
    uint64_t virtual_ns;
    errand_ffi_value answer;
} heard;

static const char plain[] = "i32(i32, string)";

static void
hear(void *arg, const errand_ffi_value *arguments, uint32_t count,
     errand_ffi_value *out_result)
{
    heard *self = arg;

    assert_int_equal(count, 2);
    self->count++;
    self->thread = pthread_self();
    self->number = arguments[0].as.i;
    snprintf(self->text, sizeof self->text, "%s", arguments[1].as.string);
    assert_int_equal(arguments[1].size, strlen(self->text));
    self->virtual_ns = errand_runtime_now(self->rig->runtime);
    *out_result = self->answer;
}

static errand_ffi_callback *
callback_of(heard *self, const char *signature, errand_ffi_callback_fn *handler,
            uint32_t flags)
{
    const errand_ffi_callback_config config = {
        .struct_size = sizeof config,
        .flags = flags,
        .signature = signature,
        .handler = handler,
        .held_arg = self,
        .fallback =
            signature == plain ? errand_ffi_i(-77) : (errand_ffi_value){.size = 0}};
    errand_ffi_callback *callback;
    errand_ffi_error error;

    if (errand_ffi_callback_create(self->rig->runtime, &config, &callback, &error) !=
        ERRAND_OK)
        fail_msg("%s", error.text);
    return callback;
}

static errand_ffi_callback *
hearing(heard *self, ffi_rig *rig, uint32_t flags)
{
    *self = (heard){.rig = rig, .answer = errand_ffi_i(42)};
    rig->once = true;
    return callback_of(self, plain, hear, flags);
}

static void
destroy(errand_ffi_callback **callback)
{
    assert_int_equal(errand_ffi_callback_destroy(callback), ERRAND_OK);
    assert_null(*callback);
}

static void
a_callback_is_heard_on_the_runtimes_thread(void **state)
{
    ffi_rig *rig = *state;
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
    destroy(&callback);
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
arguments_of_callbacks_are_of_all_kinds(void **state)
{
    ffi_rig *rig = *state;
    heard self = {.rig = rig};
    errand_ffi_callback *wide = callback_of(
        &self, "f64(i8, u16, f32, f64, i64, {i8, [3]f64, [2]{u16, u16}})", hear_wide, 0);
    errand_ffi_callback *empty = callback_of(&self, "void()", hear_void, 0);
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
    destroy(&wide);
    destroy(&empty);
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
qsort_sorts_by_a_callback(void **state)
{
    ffi_rig *rig = *state;
    heard self = {.rig = rig};
    errand_ffi_callback *callback =
        callback_of(&self, "i32(pointer, pointer)", compare, 0);
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
    destroy(&callback);
}

/* C-K5 */
static void
a_thread_of_the_callees_own_is_heard_too(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    const errand_ffi_result *result = RIG_CALL(
        rig, rig_function(rig, "i32 call_from_thread(fn(i32(i32, string)), i32)"),
        V(callback_value)(callback), V(i)(9));

    assert_true(result->value.as.i == 42);
    assert_int_equal(self.count, 1);
    assert_string_equal(self.text, "thread");
    assert_true(pthread_equal(self.thread, pthread_self()));
    destroy(&callback);
}

/* C-K5 */
static void
a_thread_of_the_callees_own_is_refused_where_that_is_asked_for(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback =
        hearing(&self, rig, ERRAND_FFI_CALLBACK_REFUSE_FOREIGN);
    const errand_ffi_result *result = RIG_CALL(
        rig, rig_function(rig, "i32 call_from_thread(fn(i32(i32, string)), i32)"),
        V(callback_value)(callback), V(i)(9));

    assert_true(result->value.as.i == -77);
    assert_int_equal(self.count, 0);
    destroy(&callback);
}

/* The owner is inside the body, so nobody could answer: not for ever. */
static void
a_thread_of_the_callees_own_is_refused_while_the_owner_runs_the_body(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    const errand_ffi_result *result = RIG_CALL(
        rig, rig_function(rig, "i32 call_from_thread(fn(i32(i32, string)), i32)"),
        V(callback_value)(callback), V(i)(9));

    assert_true(result->value.as.i == -77);
    assert_int_equal(self.count, 0);
    destroy(&callback);
}

/* C-K5: freeing it while a job that has it is pending. */
static void
a_callback_of_a_pending_call_is_not_destroyed(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0), *same = callback;
    const errand_ffi_value arguments[] = {V(callback_value)(callback), V(i)(1)};

    rig_start(rig, rig_function(rig, "i32 call_with(fn(i32(i32, string)), i32)"),
              arguments, 2, NULL);
    assert_int_equal(errand_ffi_callback_destroy(&callback), ERRAND_EBUSY);
    assert_ptr_equal(callback, same);
    assert_non_null(strstr(rig->misuse_text, "drain that first"));
    rig_await(rig);
    destroy(&callback);
}

/* C-K6 */
static void
after_its_end_a_callback_gives_the_default_and_enters_nothing(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    errand_ffi_function *kept = rig_function(rig, "i32 call_kept(i32)");

    RIG_CALL(rig, rig_function(rig, "i32 keep_callback(fn(i32(i32, string)))"),
             V(callback_value)(callback));
    assert_true(RIG_CALL(rig, kept, V(i)(1))->value.as.i == 42);
    assert_int_equal(self.count, 1);
    destroy(&callback);
    assert_true(RIG_CALL(rig, kept, V(i)(1))->value.as.i == -77);
    assert_int_equal(self.count, 1);
}

/* C-K6: the runtime is gone, the callback is not, and foreign code calls from two threads. */
static void
after_the_runtimes_end_a_callback_gives_the_default(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    void *handle = dlopen(SUBJECT, RTLD_NOW);
    __typeof__(call_with) *call =
        (__typeof__(call_with) *)(uintptr_t)dlsym(handle, "call_with");
    __typeof__(call_from_thread) *thread =
        (__typeof__(call_from_thread) *)(uintptr_t)dlsym(handle, "call_from_thread");
    int32_t (*code)(int32_t, const char *) = (int32_t(*)(int32_t, const char *))(
        uintptr_t)errand_ffi_callback_address(callback);

    assert_int_equal(call(code, 1), 42);
    assert_int_equal(self.count, 1);
    rig_shutdown(rig);
    assert_int_equal(call(code, 1), -77);
    assert_int_equal(thread(code, 1), -77);
    assert_int_equal(self.count, 1);
    destroy(&callback);
    dlclose(handle);
}

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
    destroy(&callback);
}

static void
a_shutdown_frees_those_who_wait(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    const errand_ffi_value arguments[] = {V(callback_value)(callback), V(i)(1)};

    rig_start(rig, rig_function(rig, "i32 call_with(fn(i32(i32, string)), i32)"),
              arguments, 2, NULL);
    assert_int_equal(errand_park(rig->runtime, UINT64_MAX), ERRAND_OK);
    rig_shutdown(rig); /* does not wait for its deadline of 30 s */
    assert_true(self.count <= 1);
    destroy(&callback);
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
        destroy(&callbacks[i]);
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

/* ---- what is refused -------------------------------------------------------------------------- */

static void
callbacks_that_do_not_fit_are_refused(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0), *none = NULL;
    errand_ffi_function *wide = rig_function(rig, "void f(fn(i32(i32, pointer)))"),
                        *more = rig_function(rig, "void f(fn(i32(i32)))"),
                        *other = rig_function(rig, "void f(fn(i64(i32, string)))");
    const errand_ffi_value value = V(callback_value)(callback);
    static const char *const bad[] = {
        "i32 f(i32)", "i32(i32, ..., i32)", "string()", "{i32}()",
        "i32(bytes)", "i32(fn(void()))",    "i33()"};
    errand_ffi_callback_config config = {.struct_size = sizeof config, .handler = hear};

    rig_assert_refused(rig, wide, &value, 1, 1, "parameter 2 is of another type");
    rig_assert_refused(rig, more, &value, 1, 1, "another signature");
    rig_assert_refused(rig, other, &value, 1, 1, "another signature");
    rig_assert_refused(rig, other, (errand_ffi_value[]){V(u)(1)}, 1, 1,
                       "is u64, where the parameter is callback");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        config.signature = bad[i];
        assert_int_equal(errand_ffi_callback_create(rig->runtime, &config, &none, NULL),
                         ERRAND_EINVAL);
    }
    config.signature = "i8()";
    config.fallback = errand_ffi_i(128);
    assert_int_equal(errand_ffi_callback_create(rig->runtime, &config, &none, NULL),
                     ERRAND_EINVAL);
    config.signature = "void()";
    assert_int_equal(errand_ffi_callback_create(rig->runtime, &config, &none, NULL),
                     ERRAND_EINVAL);
    config.fallback.kind = (errand_ffi_kind)0;
    config.flags = 2;
    assert_int_equal(errand_ffi_callback_create(rig->runtime, &config, &none, NULL),
                     ERRAND_EINVAL);
    assert_null(none);
    destroy(&callback);
}

static void
an_answer_that_does_not_fit_is_the_default(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    errand_ffi_function *call =
        rig_function(rig, "i32 call_with(fn(i32(i32, string)), i32)");

    self.answer = errand_ffi_i(INT64_C(1) << 31);
    assert_true(RIG_CALL(rig, call, V(callback_value)(callback), V(i)(1))->value.as.i ==
                -77);
    assert_non_null(strstr(rig->misuse_text, "out of the range of i32"));
    self.answer = errand_ffi_string("x");
    assert_true(RIG_CALL(rig, call, V(callback_value)(callback), V(i)(1))->value.as.i ==
                -77);
    assert_int_equal(rig->misuses, 2);
    destroy(&callback);
}

/* C-K9 */
static void
without_memory_for_code_nothing_is_prepared(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_callback_config config = {
        .struct_size = sizeof config, .handler = hear, .signature = plain};
    errand_ffi_callback *none = NULL;
    errand_ffi_error error = {.column = 0};
    errand__callee *callee;

    errand__trampolines_refuse(true);
    assert_int_equal(errand_ffi_callback_create(rig->runtime, &config, &none, &error),
                     ERRAND_EUNSUPPORTED);
    assert_null(none);
    assert_non_null(strstr(error.text, "memory for code"));
    callee = errand__callee_create((void *)(uintptr_t)abort,
                                   "void f(fn(i32(i32, string)))", &error);
    assert_non_null(callee);
    assert_true(errand__callee_calls_back(callee));
    assert_false(errand__callee_ready(callee, &error));
    errand__callee_destroy(callee);
    errand__trampolines_refuse(false);
}

/* ---- apart --------------------------------------------------------------------------------------- */

typedef struct apart {
    errand__memory_reply memory; /* first: what write expects */
    const errand_spec *spec;
    unsigned char answer[64];
    int asked;
} apart;

static bool
ask_here(errand__reply *reply, const void *question, size_t size, const void **out_answer,
         size_t *out_size)
{
    apart *self = (apart *)(void *)reply;
    const errand_portable_type *portable = self->spec->held_job->held_portable;

    self->asked++;
    *out_size = portable->answer(NULL, self->spec->state, question, size, self->answer,
                                 sizeof self->answer);
    *out_answer = self->answer;
    /* What breaks the protocol is refused. */
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(portable->answer(NULL, self->spec->state, question, cut,
                                          self->answer + 32, 32),
                         0);
    assert_int_equal(
        portable->answer(NULL, self->spec->state, question, size, self->answer + 32, 8),
        0);
    return *out_size != 0;
}

static void
callbacks_are_asked_for_from_another_process(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    errand_ffi_function *call =
        rig_function(rig, "i32 call_with(fn(i32(i32, string)), i32)");
    const errand_ffi_value arguments[] = {V(callback_value)(callback), V(i)(-5)};
    void *handle = dlopen(SUBJECT, RTLD_NOW);
    errand_ffi_error error = {.column = 0};
    errand_payload payload;
    errand_spec spec;
    apart to = {.spec = &spec};
    _Alignas(16) unsigned char request[256];
    errand__callee *callee;
    size_t size;

    assert_int_equal(errand_spec_call(&spec, call, arguments, 2, &error), ERRAND_OK);
    size = spec.held_job->held_portable->request_size(spec.state);
    assert_true(size <= sizeof request);
    spec.held_job->held_portable->write_request(spec.state, request);
    callee = errand__callee_create(dlsym(handle, "call_with"),
                                   errand_ffi_function_text(call), &error);
    errand__memory_reply_init(&to.memory, 4096);
    to.memory.reply.ask = ask_here;
    assert_int_equal(
        errand__callee_serve(callee, request, size, NULL, 0, &to.memory.reply, &error),
        ERRAND_FFI_CODE_NO_EXEC);
    assert_true(errand__callee_ready(callee, &error));
    assert_int_equal(
        errand__callee_serve(callee, request, size, NULL, 0, &to.memory.reply, &error),
        0);
    assert_int_equal(to.asked, 1);
    assert_int_equal(self.count, 1);
    assert_true(self.number == -5);
    assert_string_equal(self.text, "text");
    assert_int_equal(spec.held_job->held_portable->read_response(
                         NULL, spec.state, to.memory.bytes, to.memory.size, &payload),
                     0);
    assert_true(((errand_ffi_result *)payload.data)->value.as.i == 42);
    errand_payload_drop(&payload);
    errand__memory_reply_fini(&to.memory);
    errand__callee_destroy(callee);
    dlclose(handle);
    spec.held_job->drop(spec.state);
    destroy(&callback);
}

/* C-E6 */
static void
a_forked_child_frees_its_copy_alone(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    errand_ffi_callback *callback = hearing(&self, rig, 0);
    errand_ffi_function *call =
        rig_function(rig, "i32 call_with(fn(i32(i32, string)), i32)");
    int status;
    pid_t child = fork();

    if (child == 0) {
        errand_status answer = errand_ffi_callback_destroy(&callback);
        errand__trampolines_forget(); /* what was retired goes, as far as it may */
        _exit(answer == ERRAND_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(RIG_CALL(rig, call, V(callback_value)(callback), V(i)(1))->value.as.i ==
                42);
    assert_int_equal(self.count, 1);
    destroy(&callback);
}

static void
retired_callbacks_go_when_many_more_were_retired(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    int64_t before = 0;

    for (int i = 0; i < 1030; i++) {
        errand_ffi_callback *callback = hearing(&self, rig, 0);

        destroy(&callback);
        if (i == 1025)
            before = errand_testing_live_bytes();
    }
    assert_int_equal(errand_testing_live_bytes(), before);
}

int
main(void)
{
#define HERE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
#define THREADS(name)                                                                    \
    cmocka_unit_test_setup_teardown(name, rig_setup_threads, rig_teardown)
#define INLINE(name) cmocka_unit_test_setup_teardown(name, rig_setup_inline, rig_teardown)
#define PACED(name)  cmocka_unit_test_setup_teardown(name, rig_setup_paced, rig_teardown)
    static const struct CMUnitTest tests[] = {
        HERE(a_callback_is_heard_on_the_runtimes_thread),
        THREADS(a_callback_is_heard_on_the_runtimes_thread),
        INLINE(a_callback_is_heard_on_the_runtimes_thread),
        PACED(a_callback_is_heard_on_the_runtimes_thread),
        HERE(arguments_of_callbacks_are_of_all_kinds),
        THREADS(arguments_of_callbacks_are_of_all_kinds),
        HERE(qsort_sorts_by_a_callback),
        THREADS(qsort_sorts_by_a_callback),
        THREADS(a_thread_of_the_callees_own_is_heard_too),
        INLINE(a_thread_of_the_callees_own_is_heard_too),
        PACED(a_thread_of_the_callees_own_is_heard_too),
        THREADS(a_thread_of_the_callees_own_is_refused_where_that_is_asked_for),
        HERE(a_thread_of_the_callees_own_is_refused_while_the_owner_runs_the_body),
        HERE(a_callback_of_a_pending_call_is_not_destroyed),
        HERE(after_its_end_a_callback_gives_the_default_and_enters_nothing),
        THREADS(after_its_end_a_callback_gives_the_default_and_enters_nothing),
        HERE(after_the_runtimes_end_a_callback_gives_the_default),
        THREADS(a_cancelled_call_goes_on_with_the_default),
        THREADS(a_shutdown_frees_those_who_wait),
        INLINE(a_shutdown_frees_those_who_wait),
        PACED(a_shutdown_frees_those_who_wait),
        cmocka_unit_test(seeded_orders_hear_callbacks_at_their_dues),
        HERE(callbacks_that_do_not_fit_are_refused),
        HERE(an_answer_that_does_not_fit_is_the_default),
        THREADS(an_answer_that_does_not_fit_is_the_default),
        HERE(without_memory_for_code_nothing_is_prepared),
        HERE(callbacks_are_asked_for_from_another_process),
        HERE(a_forked_child_frees_its_copy_alone),
        HERE(retired_callbacks_go_when_many_more_were_retired),
    };

    return test_group("foreign/callback", tests, NULL, NULL);
}
