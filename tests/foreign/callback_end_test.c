/* SPDX-License-Identifier: MIT */
/* Goal: where nobody may or can hear, a callback gives its default, enters nothing and ends.
 * Method: something ends, then foreign code calls. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "errand/order.h"
#include "gate.h"
#include "hearing.h"

#define V(x) errand_ffi_##x

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
    hearing_end(&callback);
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
    hearing_end(&callback);
    assert_true(RIG_CALL(rig, kept, V(i)(1))->value.as.i == -77);
    assert_int_equal(self.count, 1);
}

/* C-K6, S25: the runtime is gone, the callback is not, and foreign code calls from two threads. */
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
    hearing_end(&callback);
    dlclose(handle);
}

typedef struct adopter {
    ffi_rig *rig;
    errand_ffi_function *function;
    errand_ffi_callback *callback;
    int32_t (*code)(int32_t, const char *);
    int32_t by_hand;
    int64_t by_call;
} adopter;

static void *
adopt_and_call(void *arg)
{
    adopter *self = arg;
    const errand_ffi_value arguments[] = {V(callback_value)(self->callback), V(i)(1)};

    assert_int_equal(errand_runtime_adopt(self->rig->runtime), ERRAND_OK);
    rig_start(self->rig, self->function, arguments, 2, NULL);
    self->by_hand = self->code(1, "text"); /* REFUSE_FOREIGN: the owner alone is heard */
    rig_await(self->rig);
    self->by_call = ((errand_ffi_result *)self->rig->payload.data)->value.as.i;
    assert_int_equal(errand_runtime_release(self->rig->runtime), ERRAND_OK);
    return NULL;
}

/* S24: in inline order the body runs on the new owner's thread: who took it for a stranger would wait
 * for itself. */
static void
who_adopts_a_runtime_is_the_one_who_hears(void **state)
{
    void *inside;
    heard heard_here;
    errand_ffi_callback *callback;
    pthread_t thread;

    (void)state;
    rig_setup_inline(&inside);
    ffi_rig *rig = inside;
    callback = hearing(&heard_here, rig, ERRAND_FFI_CALLBACK_REFUSE_FOREIGN);
    adopter self = {.rig = rig,
                    .function =
                        rig_function(rig, "i32 call_with(fn(i32(i32, string)), i32)"),
                    .callback = callback,
                    .code = (int32_t(*)(int32_t, const char *))(
                        uintptr_t)errand_ffi_callback_address(callback)};
    assert_int_equal(errand_runtime_release(rig->runtime), ERRAND_OK);
    assert_int_equal(pthread_create(&thread, NULL, adopt_and_call, &self), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(errand_runtime_adopt(rig->runtime), ERRAND_OK);
    assert_int_equal(self.by_hand, 42);
    assert_true(self.by_call == 42);
    assert_int_equal(heard_here.count, 2);
    hearing_end(&callback);
    rig_teardown(&inside);
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
    hearing_end(&callback);
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
    hearing_end(&callback);
}

/* C-K9 */
static void
without_memory_for_code_nothing_is_prepared(void **state)
{
    ffi_rig *rig = *state;
    errand_ffi_callback_config config = {
        .struct_size = sizeof config, .handler = hear, .signature = hearing_plain};
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

static void
memory_that_runs_out_makes_no_callback(void **state)
{
    ffi_rig *rig = *state;
    const errand_ffi_callback_config config = {
        .struct_size = sizeof config, .handler = hear, .signature = hearing_plain};
    int64_t before = errand_testing_live_bytes();
    errand_ffi_callback *callback = NULL;
    errand_status status;

    for (uint64_t n = 1;; n++) {
        errand_testing_fail_allocation(n);
        status = errand_ffi_callback_create(rig->runtime, &config, &callback, NULL);
        errand_testing_fail_allocation(0);
        if (status == ERRAND_OK)
            break;
        assert_int_equal(status, ERRAND_ENOMEM); /* of errand_ffi_callback_create */
        assert_int_equal(errand_testing_live_bytes(), before);
        assert_null(callback);
    }
    hearing_end(&callback);
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
    hearing_end(&callback);
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
    hearing_end(&callback);
}

static void
retired_callbacks_go_when_many_more_were_retired(void **state)
{
    ffi_rig *rig = *state;
    heard self;
    int64_t before = 0;

    for (int i = 0; i < 1030; i++) {
        errand_ffi_callback *callback = hearing(&self, rig, 0);

        hearing_end(&callback);
        if (i == 1025)
            before = errand_testing_live_bytes();
    }
    assert_int_equal(errand_testing_live_bytes(), before);
}

/* ---- errand_job_post ------------------------------------------------------------------------ */

typedef struct poster {
    errand_command node;
    errand_status first, second;
    int ran;
    bool stands; /* until the gate is opened */
    test_gate gate;
} poster;

static void
ran(errand_runtime *runtime, void *arg)
{
    (void)runtime;
    ((poster *)arg)->ran++;
}

static int32_t
post_twice(errand_job *job, void *state, errand_payload *out_payload)
{
    poster *self = state;

    (void)out_payload;
    if (self->stands)
        gate_wait(&self->gate);
    self->node = (errand_command){.fn = ran, .arg = self};
    self->first = errand_job_post(job, &self->node);
    self->second = errand_job_post(job, &self->node);
    if (self->stands)
        gate_wait(&self->gate);
    return 0;
}

static void
start_poster(ffi_rig *rig, poster *self)
{
    static const errand_job_type type = {
        .struct_size = sizeof type, .name = "poster", .run = post_twice};
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &type;
    spec.state = self;
    assert_int_equal(errand_start(rig->lease, &spec, rig, NULL), ERRAND_OK);
}

static void
a_job_posts_a_node_once(void **state)
{
    ffi_rig *rig = *state;
    poster self = {.ran = 0};
    size_t count;

    start_poster(rig, &self);
    assert_int_equal(errand_manual_step(rig->executor, 1, &count), ERRAND_OK);
    assert_int_equal(self.first, ERRAND_OK);
    assert_int_equal(self.second, ERRAND_EBUSY); /* of errand_job_post */
    rig_await(rig);
    assert_int_equal(self.ran, 1);
    assert_int_equal(errand_job_post(NULL, &self.node), ERRAND_EINVAL);
}

static void
a_job_that_outlives_its_runtime_posts_to_nobody(void **state)
{
    ffi_rig *rig = *state;
    static poster self; /* its body may end after the test */
    errand_report report;

    self = (poster){.stands = true};
    gate_init(&self.gate, "poster");
    start_poster(rig, &self);
    gate_await_arrival(&self.gate);
    assert_int_equal(errand_runtime_shutdown(&rig->runtime, errand_deadline_in(0),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    assert_int_equal(report.running, 1);
    errand_executor_abandon(&rig->executor);
    gate_open(&self.gate);
    gate_await_arrival(&self.gate);
    assert_int_equal(self.first, ERRAND_EGONE); /* of errand_job_post */
    assert_int_equal(self.second, ERRAND_EGONE);
    assert_int_equal(self.ran, 0);
    gate_open(&self.gate);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
#define THREADS(name)                                                                    \
    cmocka_unit_test_setup_teardown(name, rig_setup_threads, rig_teardown)
    static const struct CMUnitTest tests[] = {
        CASE(a_callback_of_a_pending_call_is_not_destroyed),
        THREADS(after_its_end_a_callback_gives_the_default_and_enters_nothing),
        CASE(after_the_runtimes_end_a_callback_gives_the_default),
        cmocka_unit_test(who_adopts_a_runtime_is_the_one_who_hears),
        CASE(callbacks_that_do_not_fit_are_refused),
        THREADS(an_answer_that_does_not_fit_is_the_default),
        CASE(without_memory_for_code_nothing_is_prepared),
        CASE(memory_that_runs_out_makes_no_callback),
        CASE(callbacks_are_asked_for_from_another_process),
        CASE(a_forked_child_frees_its_copy_alone),
        CASE(retired_callbacks_go_when_many_more_were_retired),
        CASE(a_job_posts_a_node_once),
        THREADS(a_job_that_outlives_its_runtime_posts_to_nobody),
    };

    return test_group("foreign/callback_end", tests, NULL, NULL);
}
