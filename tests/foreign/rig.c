/* SPDX-License-Identifier: MIT */
/* Goal: tests of calls say what goes in and what must come out, and nothing else.
 * Method: every call runs through a real runtime, and through the bytes that a sandbox would get. */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rig.h"

static void
misused(void *arg, errand_status status, const char *text)
{
    ffi_rig *rig = arg;

    (void)status;
    rig->misuses++;
    snprintf(rig->misuse_text, sizeof rig->misuse_text, "%s", text);
}

static void
take(void *arg, errand_completion *completion)
{
    ffi_rig *rig = arg;

    rig->completions++;
    rig->outcome = completion->outcome;
    rig->job_code = completion->job_code;
    rig->flags = completion->flags;
    snprintf(rig->message, sizeof rig->message, "%s",
             completion->message == NULL ? "" : completion->message);
    rig->payload = errand_completion_take(completion);
}

static int
setup(void **state, errand_order order, bool threads, errand_recorder *recorder,
      errand_replay *replay)
{
    ffi_rig *made = calloc(1, sizeof *made);
    const errand_runtime_config config = {.struct_size = sizeof config,
                                          .order = order,
                                          .seed = 7,
                                          .on_completion = take,
                                          .held_on_completion_arg = made,
                                          .held_recorder = recorder,
                                          .held_replay = replay};
    const errand_blocking_config pool = {
        .struct_size = sizeof pool, .workers_min = 2, .workers_max = 4};

    assert_non_null(made);
    made->threads = threads;
    made->bytes = errand_testing_live_bytes();
    assert_int_equal(threads ? errand_blocking_create(&pool, &made->executor)
                             : errand_manual_create(NULL, &made->executor),
                     ERRAND_OK);
    assert_int_equal(errand_runtime_create(&config, &made->runtime), ERRAND_OK);
    assert_int_equal(errand_attach(made->runtime, made->executor, 0, &made->lease),
                     ERRAND_OK);
    assert_int_equal(errand_ffi_library_create(SUBJECT, &made->library), ERRAND_OK);
    errand_misuse_hook(misused, made);
    *state = made;
    return 0;
}

int
rig_setup_order(void **state, errand_order order, bool threads)
{
    return setup(state, order, threads, NULL, NULL);
}

int
rig_setup_logged(void **state, const char *path, bool replay)
{
    const errand_recorder_config made = {
        .struct_size = sizeof made, .payloads = ERRAND_RECORD_PAYLOADS, .path = path};
    const errand_replay_config wanted = {.struct_size = sizeof wanted, .path = path};
    int64_t bytes = errand_testing_live_bytes();
    errand_recorder *recorder = NULL;
    errand_replay *log = NULL;
    char text[256];

    if (replay) {
        if (errand_replay_open(&wanted, &log, text, sizeof text) != ERRAND_OK)
            fail_msg("%s", text);
    } else {
        assert_int_equal(errand_recorder_open(&made, &recorder), ERRAND_OK);
    }
    setup(state, replay ? ERRAND_ORDER_REPLAY : ERRAND_ORDER_INLINE, false, recorder,
          log);
    ffi_rig *rig = *state;
    rig->bytes = bytes;
    rig->recorder = recorder;
    rig->replay = log;
    assert_int_equal(errand_ffi_codecs(rig->runtime), ERRAND_OK);
    return 0;
}

int
rig_setup(void **state)
{
    return rig_setup_order(state, ERRAND_ORDER_ARRIVAL, false);
}

int
rig_setup_threads(void **state)
{
    return rig_setup_order(state, ERRAND_ORDER_ARRIVAL, true);
}

int
rig_setup_inline(void **state)
{
    return rig_setup_order(state, ERRAND_ORDER_INLINE, true);
}

int
rig_setup_paced(void **state)
{
    return rig_setup_order(state, ERRAND_ORDER_PACED, true);
}

static void
clear(ffi_rig *rig)
{
    errand_payload_drop(&rig->payload);
    rig->completions = 0;
}

void
rig_shutdown(ffi_rig *rig)
{
    errand_report report;

    if (rig->runtime == NULL)
        return;
    assert_int_equal(errand_runtime_shutdown(&rig->runtime,
                                             errand_deadline_in(30000000000u),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    assert_true(report.clean || report.posts_dropped > 0);
    errand_executor_abandon(&rig->executor);
    if (rig->recorder != NULL)
        assert_int_equal(errand_recorder_close(&rig->recorder), ERRAND_OK);
    if (rig->replay != NULL)
        assert_int_equal(errand_replay_close(&rig->replay), ERRAND_OK);
}

int
rig_teardown(void **state)
{
    ffi_rig *done = *state;

    clear(done);
    for (size_t i = 0; i < done->function_count; i++)
        errand_ffi_function_abandon(&done->functions[i]);
    errand_ffi_library_abandon(&done->library);
    rig_shutdown(done);
    errand__trampolines_forget();
    while (done->threads && errand_testing_live_bytes() != done->bytes)
        sched_yield(); /* its threads end by themselves; the watchdog counts */
    assert_int_equal(errand_testing_live_bytes(), done->bytes);
    errand_misuse_hook(NULL, NULL);
    free(done);
    return 0;
}

errand_ffi_function *
rig_function_of(ffi_rig *rig, errand_ffi_library *library, const char *signature)
{
    errand_ffi_function **place = &rig->functions[rig->function_count++];
    errand_ffi_error error = {.column = 0};

    assert_true(rig->function_count <= sizeof rig->functions / sizeof rig->functions[0]);
    if (errand_ffi_describe(library, signature, place, &error) != ERRAND_OK)
        fail_msg("%s: column %u: %s", signature, error.column, error.text);
    return *place;
}

errand_ffi_function *
rig_function(ffi_rig *rig, const char *signature)
{
    return rig_function_of(rig, rig->library, signature);
}

errand_payload
rig_apart(ffi_rig *rig, const errand_spec *spec)
{
    const errand_portable_type *portable = spec->held_job->held_portable;
    const errand_entry *entry = portable->entry(spec->state);
    void *handle = dlopen(entry->library, RTLD_NOW);
    errand_ffi_error error = {.column = 0};
    errand_payload payload = {.data = NULL};
    errand__memory_reply reply;
    errand__callee *callee;
    unsigned char *request;
    size_t size = portable->request_size(spec->state);
    int32_t code;

    (void)rig;
    assert_non_null(handle);
    request = aligned_alloc(16, (size + 15) / 16 * 16);
    portable->write_request(spec->state, request);
    callee =
        errand__callee_create(dlsym(handle, entry->symbol), entry->signature, &error);
    assert_non_null(callee);
    errand__memory_reply_init(&reply, 1 << 24);
    code = errand__callee_serve(callee, request, size, NULL, 0, &reply.reply, &error);
    if (code != 0)
        fail_msg("%s: %d: %s", entry->signature, code, error.text);
    assert_int_equal(
        portable->read_response(NULL, spec->state, reply.bytes, reply.size, &payload), 0);
    errand__memory_reply_fini(&reply);
    errand__callee_destroy(callee);
    free(request);
    dlclose(handle);
    return payload;
}

void
rig_start(ffi_rig *rig, errand_ffi_function *function, const errand_ffi_value *arguments,
          size_t count, errand_identity *out_identity)
{
    errand_ffi_error error = {.column = 0};
    errand_spec spec;

    clear(rig);
    if (errand_spec_call(&spec, function, arguments, count, &error) != ERRAND_OK)
        fail_msg("argument %u: %s", error.argument, error.text);
    assert_int_equal(errand_start(rig->lease, &spec, rig, out_identity), ERRAND_OK);
}

void
rig_drain(ffi_rig *rig)
{
    errand_turn turn;

    assert_int_equal(errand_drive(rig->runtime, NULL, &turn), ERRAND_OK);
}

void
rig_await(ffi_rig *rig)
{
    size_t count;

    while (rig->completions == 0) {
        if (!rig->threads)
            assert_int_equal(errand_manual_step(rig->executor, 1, &count), ERRAND_OK);
        else
            assert_int_equal(errand_park(rig->runtime, UINT64_MAX), ERRAND_OK);
        rig_drain(rig);
    }
    assert_int_equal(rig->completions, 1);
}

const errand_ffi_result *
rig_call(ffi_rig *rig, errand_ffi_function *function, const errand_ffi_value *arguments,
         size_t count)
{
    errand_ffi_error error = {.column = 0};
    errand_payload apart = {.data = NULL};
    errand_spec spec;

    clear(rig);
    if (errand_spec_call(&spec, function, arguments, count, &error) != ERRAND_OK)
        fail_msg("argument %u: %s", error.argument, error.text);
    if (!rig->once)
        apart = rig_apart(rig, &spec);
    assert_int_equal(errand_start(rig->lease, &spec, rig, NULL), ERRAND_OK);
    rig_await(rig);
    if (rig->outcome != ERRAND_COMPLETED)
        fail_msg("%s", rig->message);
    assert_ptr_equal(rig->payload.held_type, &errand_ffi_result_type);
    if (!rig->once) {
        assert_int_equal(apart.size, rig->payload.size);
        assert_true(errand_ffi_result_digest(apart.data, apart.size) ==
                    errand_ffi_result_digest(rig->payload.data, rig->payload.size));
    }
    errand_payload_drop(&apart);
    return rig->payload.data;
}

void
rig_assert_refused(ffi_rig *rig, errand_ffi_function *function,
                   const errand_ffi_value *arguments, size_t count, uint32_t argument,
                   const char *part)
{
    errand_ffi_error error = {.column = 0};
    errand_spec spec;
    int before = rig->misuses;

    assert_int_equal(errand_spec_call(&spec, function, arguments, count, &error),
                     ERRAND_EINVAL);
    assert_int_equal(error.argument, argument);
    if (strstr(error.text, part) == NULL)
        fail_msg("'%s' is not in: %s", part, error.text);
    assert_int_equal(rig->misuses, before + 1);
    assert_non_null(strstr(rig->misuse_text, part));
}
