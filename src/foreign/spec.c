/* SPDX-License-Identifier: MIT */
/* spec: a call as a job: on a thread, or written down for another process.
 *
 * Design notes: both tiers use the same bytes.  On a thread the body serves the request itself and
 * reads its own response, so that what is tested there holds in a sandbox too. */
#include <string.h>
#include "errand/traps.h"
#include "foreign/foreign.h"

static int32_t call_run(errand_job *job, void *state, errand_payload *out_payload);
static void call_drop(void *state);
static const errand_entry *call_entry(const void *state);
static size_t call_request_size(const void *state);
static void call_write(const void *state, unsigned char *out_bytes);
static int32_t call_read(errand_job *job, void *state, const unsigned char *bytes,
                         size_t size, errand_payload *out_payload);
static size_t call_answer(errand_job *job, void *state, const unsigned char *question,
                          size_t size, unsigned char *out_answer, size_t room);
static const errand_ffi_buffer *call_borrowed(const void *state);

static const errand_portable_type call_portable = {
    .struct_size = sizeof(errand_portable_type),
    .entry = call_entry,
    .request_size = call_request_size,
    .write_request = call_write,
    .read_response = call_read,
    .answer = call_answer,
    .borrowed = call_borrowed,
};
static const errand_job_type call_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "call",
    .run = call_run,
    .drop = call_drop,
    .held_portable = &call_portable,
};

errand_status
errand_spec_call(errand_spec *out_spec, errand_ffi_function *function,
                 const errand_ffi_value *arguments, size_t count,
                 errand_ffi_error *out_error)
{
    errand_ffi_error error = {.column = 0};
    errand__call *call = NULL;
    errand_status status;

    ERRAND_REQUIRE_ARG(out_spec != NULL && function != NULL, ERRAND_EINVAL,
                       "out_spec and function are needed");
    ERRAND_REQUIRE_ARG(arguments != NULL || count == 0, ERRAND_EINVAL,
                       "arguments is NULL");
    status = errand__call_create(function, arguments, count, &call, &error);
    if (status == ERRAND_EINVAL) {
        if (out_error != NULL)
            *out_error = error;
        return errand__misuse(status, __func__, error.text);
    }
    if (status != ERRAND_OK)
        return status;
    *out_spec = (errand_spec)ERRAND_SPEC_INIT;
    out_spec->kind = ERRAND_KIND_CALL;
    out_spec->resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    out_spec->held_job = &call_job;
    out_spec->state = call;
    return ERRAND_OK;
}

static int32_t
failed(errand_job *job, const errand__call *call, int32_t code,
       const errand_ffi_error *error)
{
    const char *symbol = errand_ffi_function_signature(call->function)->symbol;

    if (error->argument == 0)
        errand_job_message(job, "'%.100s': %s", symbol, error->text);
    else
        errand_job_message(job, "'%.100s', argument %u: %s", symbol,
                           (unsigned)error->argument, error->text);
    return code;
}

static int32_t
call_run(errand_job *job, void *state, errand_payload *out_payload)
{
    const errand__call *call = state;
    errand_ffi_error error = {.column = 0};
    errand__memory_reply reply;
    errand__running *running = NULL;
    errand__callee *callee;
    int32_t code = ERRAND_FFI_CODE_MEMORY;

    errand_job_impure(job);
    callee = errand__function_callee(call->function, &code, &error);
    if (callee == NULL)
        return failed(job, call, code, &error);
    if (errand__callee_calls_back(callee) &&
        !errand__running_begin(job, call, &running)) {
        errand__ffi_refuse(&error, 0, "no memory for the call");
        return failed(job, call, ERRAND_FFI_CODE_MEMORY, &error);
    }
    errand__memory_reply_init(&reply, SIZE_MAX / 4);
    code = errand__callee_serve_direct(callee, call->request.bytes, call->request.size,
                                       &reply.reply, running, &error);
    if (code == ERRAND_FFI_CODE_OUTPUT && reply.no_memory)
        code = ERRAND_FFI_CODE_MEMORY;
    if (code == 0)
        code = errand__result_read(call, reply.bytes, reply.size, false, out_payload,
                                   &error);
    errand__memory_reply_fini(&reply);
    return code == 0 ? 0 : failed(job, call, code, &error);
}

static void
call_drop(void *state)
{
    errand__call_destroy(state);
}

/* ---- for another process ---------------------------------------------------------------------- */

static const errand_entry *
call_entry(const void *state)
{
    return errand__function_entry(((const errand__call *)state)->function);
}

static size_t
call_request_size(const void *state)
{
    return errand__call_request_size(state);
}

static void
call_write(const void *state, unsigned char *out_bytes)
{
    errand__call_write(state, out_bytes);
}

static const errand_ffi_buffer *
call_borrowed(const void *state)
{
    return errand__call_borrowed(state);
}

static int32_t
call_read(errand_job *job, void *state, const unsigned char *bytes, size_t size,
          errand_payload *out_payload)
{
    errand_ffi_error error = {.column = 0};
    int32_t code = errand__result_read(state, bytes, size, true, out_payload, &error);

    if (code == 0)
        return 0;
    code = failed(job, state, code, &error);
    return code == ERRAND_FFI_CODE_RESPONSE ? ERRAND_PORTABLE_BROKEN : code;
}

/* Where each argument of a question lies; words: room for the scalars. */
static bool
read_question(const errand_ffi_signature *view, errand__wire *in, uint64_t *words,
              void **places)
{
    errand__record_view record;

    for (uint32_t i = 0; i < view->count; i++) {
        const errand_ffi_type *type = &view->parameters[i];

        if (type->kind == ERRAND_FFI_STRING) {
            if (!errand__wire_text(in, &record))
                return false;
            words[i] = (uint64_t)(uintptr_t)record.bytes;
        } else if (!errand__wire_record(in, type, &record)) {
            return false;
        } else {
            words[i] = record.word;
        }
        if (type->kind != ERRAND_FFI_STRUCT &&
            errand__word_narrow(type->kind, words[i]) != words[i])
            return false;
        places[i] = type->kind == ERRAND_FFI_STRUCT
                        ? (void *)(uintptr_t)record.bytes
                        : errand__word_place(type->kind, &words[i]);
    }
    return errand__wire_end(in);
}

static size_t
call_answer(errand_job *job, void *state, const unsigned char *question, size_t size,
            unsigned char *out_answer, size_t room)
{
    errand__wire in = {.base = question, .size = size, .good = true};
    uint64_t words[FFI_PARAMETERS_MAX], answer[2] = {0, 0};
    errand_ffi_value values_room[FFI_PARAMETERS_MAX], *values;
    void *places[FFI_PARAMETERS_MAX];
    const uint32_t head[2] = {FFI_WIRE_VERSION, 0};
    errand_ffi_callback *callback;
    const errand__trampoline *trampoline;
    errand__result_block block;
    uint32_t version, parameter;
    size_t length;

    errand__wire_head(&in, &version, &parameter);
    callback = errand__call_callback(state, parameter);
    if (!in.good || version != FFI_WIRE_VERSION || callback == NULL)
        return 0;
    trampoline = errand__callback_trampoline(callback);
    length = trampoline->view.result.kind == ERRAND_FFI_VOID ? 8 : 16;
    if (!read_question(&trampoline->view, &in, words, places) || room < length)
        return 0;
    answer[1] = trampoline->fallback;
    values = errand__callback_values(&trampoline->view, places, values_room, &block);
    if (values != NULL && !errand__callback_ask(callback, job, values, &answer[1]))
        answer[1] = trampoline->fallback;
    if (block.block != NULL)
        errand__mem_free(NULL, block.block, block.size);
    memcpy(answer, head, sizeof head);
    memcpy(out_answer, answer, length);
    return length;
}
