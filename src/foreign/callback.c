/* SPDX-License-Identifier: MIT */
/* callback: a function of the host's that foreign code calls: its life, and the bodies that may call
 * it.
 *
 * Design notes: a call that comes from the thread of a body knows its job; one from a thread that the
 * callee made takes a job that runs with this callback, if there is one (ask.c), under the lock that
 * the body needs to end: so seeded orders hear it at that job's due, and it ends with that job's
 * cancel.  Where the body occupies the runtime's own thread, nobody could hear such a thread: it is
 * refused.
 *
 * Which thread is the runtime's is known from the last call described, made, or handler entered,
 * there. */
#include "foreign/callback.h"

struct errand__running {
    errand_job *job;
    size_t count;
    errand__running_link links[];
};

static void called(void *owner, void *result, void **arguments);

/* ---- life ---------------------------------------------------------------------------------- */

static errand_status
check_config(const errand_ffi_callback_config *config, errand__signature *signature,
             errand_ffi_error *out_error)
{
    const errand_ffi_signature *view = &signature->view;

    if (view->symbol != NULL || view->variadic ||
        view->convention != ERRAND_FFI_DEFAULT ||
        view->result.kind == ERRAND_FFI_STRUCT ||
        view->result.kind == ERRAND_FFI_STRING) {
        errand__ffi_refuse(out_error, 0,
                           "a callback is RESULT(TYPE, ...) without a name, a convention "
                           "or ..., and answers void, a scalar or a pointer");
        return ERRAND_EINVAL;
    }
    for (uint32_t i = 0; i < view->count; i++) {
        errand_ffi_kind kind = view->parameters[i].kind;
        if (errand__kind_memory(kind) || kind == ERRAND_FFI_CALLBACK) {
            errand__ffi_refuse(out_error, i + 1, "a callback cannot take %s; use pointer",
                               errand__kind_name(kind));
            return ERRAND_EINVAL;
        }
    }
    if (config->fallback.kind != 0 && view->result.kind == ERRAND_FFI_VOID) {
        errand__ffi_refuse(out_error, 0, "a callback of void has no default");
        return ERRAND_EINVAL;
    }
    return ERRAND_OK;
}

static errand_status
create(const errand_ffi_callback_config *config, errand_ffi_callback *callback,
       errand_ffi_error *out_error)
{
    errand__signature *signature = NULL;
    uint64_t word = 0;
    bool no_exec;
    errand_status status =
        errand__signature_parse(config->signature, &signature, out_error);

    if (status != ERRAND_OK)
        return status;
    status = check_config(config, signature, out_error);
    if (status == ERRAND_OK && config->fallback.kind != 0 &&
        !errand__value_word(signature->view.result.kind, &config->fallback, 0, &word,
                            out_error))
        status = ERRAND_EINVAL;
    if (status != ERRAND_OK) {
        errand__signature_destroy(signature);
        return status;
    }
    callback->trampoline = errand__trampoline_create(&signature->view, signature, called,
                                                     callback, out_error, &no_exec);
    if (callback->trampoline == NULL)
        return no_exec ? ERRAND_EUNSUPPORTED : ERRAND_ENOMEM;
    callback->trampoline->fallback = word;
    return ERRAND_OK;
}

errand_status
errand_ffi_callback_create(errand_runtime *runtime,
                           const errand_ffi_callback_config *config,
                           errand_ffi_callback **out_callback,
                           errand_ffi_error *out_error)
{
    errand_ffi_error error = {.column = 0};
    errand_ffi_callback *callback;
    errand_status status;

    ERRAND_REQUIRE_ARG(runtime != NULL && config != NULL && out_callback != NULL,
                       ERRAND_EINVAL, "runtime, config and out_callback are needed");
    ERRAND_REQUIRE_ARG(
        config->struct_size == sizeof *config && config->handler != NULL &&
            config->signature != NULL && (config->flags & ~1u) == 0,
        ERRAND_EINVAL,
        "config needs struct_size, signature and handler, and known flags");
    callback = errand__mem_alloc(NULL, sizeof *callback);
    if (callback == NULL)
        return ERRAND_ENOMEM;
    callback->handler = config->handler;
    callback->held_arg = config->held_arg;
    callback->flags = config->flags;
    atomic_init(&callback->owner, errand__thread_self());
    errand__list_init(&callback->running);
    status = errand_inbox_open(runtime, &callback->inbox);
    if (status == ERRAND_OK)
        status = create(config, callback, &error);
    if (status == ERRAND_OK) {
        *out_callback = callback;
        return ERRAND_OK;
    }
    errand_inbox_abandon(&callback->inbox);
    errand__mem_free(NULL, callback, sizeof *callback);
    if (out_error != NULL && error.text[0] != 0)
        *out_error = error;
    return status == ERRAND_EINVAL ? errand__misuse(status, __func__, error.text)
                                   : status;
}

errand_status
errand_ffi_callback_destroy(errand_ffi_callback **take_callback)
{
    errand_ffi_callback *callback;

    ERRAND_REQUIRE_ARG(take_callback != NULL && *take_callback != NULL, ERRAND_EINVAL,
                       "the callback is NULL");
    callback = *take_callback;
    ERRAND_REQUIRE_ARG(errand__trampoline_retire(callback->trampoline), ERRAND_EBUSY,
                       "a call that it was given to has not been drained, or calls it; "
                       "drain that first");
    *take_callback = NULL;
    errand_inbox_abandon(&callback->inbox);
    errand__mem_free(NULL, callback, sizeof *callback);
    return ERRAND_OK;
}

const void *
errand_ffi_callback_address(const errand_ffi_callback *callback)
{
    return callback == NULL ? NULL : callback->trampoline->code;
}

errand_identity
errand_ffi_callback_asker(const errand_ffi_callback *callback)
{
    return callback == NULL ? (errand_identity){.runtime = 0} : callback->asker;
}

errand__trampoline *
errand__callback_trampoline(errand_ffi_callback *callback)
{
    return callback->trampoline;
}

void
errand__callback_owned(errand_ffi_callback *callback)
{
    atomic_store_explicit(&callback->owner, errand__thread_self(), memory_order_relaxed);
}

/* ---- bodies that may be called back ------------------------------------------------------------- */

static void
running_end(void *arg)
{
    errand__running *running = arg;

    for (size_t i = 0; i < running->count; i++) {
        errand__running_link *link = &running->links[i];

        errand__lock_acquire(&link->callback->lock);
        errand__list_unlink(&link->link);
        link->callback->on_owner -= link->on_owner;
        errand__lock_release(&link->callback->lock);
    }
    errand__current_call = NULL;
}

bool
errand__running_begin(errand_job *job, const errand__call *call,
                      errand__running **out_running)
{
    errand__running *running = errand_job_alloc(
        job, sizeof *running + call->hold_count * sizeof running->links[0]);

    if (running == NULL)
        return false;
    running->job = job;
    if (errand_job_defer(job, running_end, running) != ERRAND_OK)
        return false;
    for (size_t i = 0; i < call->hold_count; i++) {
        errand__running_link *link = &running->links[running->count];
        errand_ffi_callback *callback = call->holds[i].object;

        if (call->holds[i].kind != ERRAND_FFI_CALLBACK)
            continue;
        running->count++;
        link->job = job;
        link->callback = callback;
        link->on_owner = atomic_load_explicit(&callback->owner, memory_order_relaxed) ==
                         errand__thread_self();
        errand__lock_acquire(&callback->lock);
        errand__list_append(&callback->running, &link->link);
        callback->on_owner += link->on_owner;
        errand__lock_release(&callback->lock);
    }
    *out_running = running;
    return true;
}

/* ---- called ---------------------------------------------------------------------------- */

/* The arguments, where they lie, as values.  In room if there are no structures, else in a block. */
errand_ffi_value *
errand__callback_values(const errand_ffi_signature *view, void **arguments,
                        errand_ffi_value *room, errand__result_block *block)
{
    errand_ffi_value *values = room;

    *block = (errand__result_block){.block = NULL};
    for (uint32_t i = 0; i < view->count; i++)
        if (view->parameters[i].kind == ERRAND_FFI_STRUCT)
            values = NULL;
    for (int walk = values == NULL ? 0 : 1; walk < 2; walk++) {
        if (values == NULL) {
            if (walk == 1 && !errand__result_alloc(block))
                return NULL;
            values = errand__result_values(block, view->count);
        }
        for (uint32_t i = 0; i < view->count; i++)
            errand__result_image(block, &view->parameters[i], arguments[i],
                                 values == NULL ? NULL : values + i);
    }
    return values;
}

static void
called(void *owner, void *result, void **arguments)
{
    errand_ffi_callback *callback = owner;
    const errand__trampoline *trampoline = callback->trampoline;
    const errand__current *current = errand__current_call;
    const errand__running *running = current == NULL ? NULL : current->running;
    errand_ffi_value room[FFI_PARAMETERS_MAX], *values;
    errand__result_block block;
    uint64_t word;

    values = errand__callback_values(&trampoline->view, arguments, room, &block);
    if (values != NULL &&
        errand__callback_ask(callback, running == NULL ? NULL : running->job, values,
                             &word))
        errand__trampoline_answer(trampoline, result, word);
    if (block.block != NULL)
        errand__mem_free(NULL, block.block, block.size);
}
