/* SPDX-License-Identifier: MIT */
/* callback: a function of the host's that foreign code calls.
 *
 * Design notes: whoever calls waits while the runtime's thread answers.  A question (ask) is held by
 * both: the waiter may give up (the call was cancelled), and the command that carries the question may
 * be run or dropped long after; whoever lets go last frees it.  Its arguments are the waiter's, so
 * once the handler has begun the waiter stays.
 *
 * A call that comes from the thread of a body knows its job; one from a thread that the callee made
 * takes a job that runs with this callback, if there is one, under the lock that the body needs to
 * end: so seeded orders hear it at that job's due, and it ends with that job's cancel.  Where the body
 * occupies the runtime's own thread, nobody could hear such a thread: it is refused.
 *
 * Which thread is the runtime's is known from the last call made, or handler entered, there. */
#include <string.h>
#include "foreign/foreign.h"

#define LOOK_NS UINT64_C(5000000) /* how often a waiter looks at its token */

struct errand_ffi_callback {
    /* Immutable after create. */
    errand__trampoline *trampoline;
    errand_inbox *inbox;
    errand_ffi_callback_fn *handler;
    void *held_arg;
    uint32_t flags;
    /* owner: the runtime's thread.
     * Writers: that thread.   Readers: any thread that calls.
     * Order:   relaxed.   Pairs: none.
     * Why:     a thread only asks whether it is itself, and that it has written itself. */
    _Atomic uintptr_t owner;
    errand__lock lock;
    errand__link running; /* guarded by lock: of bodies that may call it */
    unsigned on_owner; /* guarded by lock: how many of them are on the owner's thread */
};

enum { WAITING = 0, ANSWERING = 1, ANSWERED = 2, REFUSED = 3, GIVEN_UP = 4 };

typedef struct ask {
    errand_command command;
    errand_ffi_callback *callback;
    const errand_ffi_value *arguments;
    uint64_t word;
    /* state: Writers: the waiter (GIVEN_UP), the owner (the others); from WAITING by compare-exchange.
     * Readers: both.
     * Order:   acq_rel.
     * Pairs:   ask-state.
     * Why:     the arguments are read after ANSWERING, the word after ANSWERED. */
    atomic_uint state;
    /* holders: the waiter and the command.   Writers, Readers: both.   Order: acq_rel.
     * Pairs:   ask-holders.
     * Why:     the last one frees what the other one wrote. */
    atomic_uint holders;
} ask;

typedef struct running_link {
    errand__link link;
    errand_job *job;
    errand_ffi_callback *callback;
    bool on_owner;
} running_link;
struct errand__running {
    errand_job *job;
    size_t count;
    running_link links[];
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
        running_link *link = &running->links[i];

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
        running_link *link = &running->links[running->count];
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

/* ---- the owner's side ----------------------------------------------------------------------------- */

/* False: the handler answered something that the result cannot be. */
static bool
enter_handler(errand_ffi_callback *callback, const errand_ffi_value *arguments,
              uint64_t *out_word)
{
    const errand__trampoline *trampoline = callback->trampoline;
    errand_ffi_kind kind = trampoline->view.result.kind;
    errand_ffi_error error = {.column = 0};
    errand_ffi_value answer = {.kind = kind};

    *out_word = trampoline->fallback;
    if (kind == ERRAND_FFI_F32)
        errand__word_into(kind, &answer.as.f32, trampoline->fallback);
    else
        memcpy(&answer.as, &trampoline->fallback, sizeof answer.as);
    errand__lock_none_held();
    callback->handler(callback->held_arg, arguments, trampoline->view.count, &answer);
    if (kind == ERRAND_FFI_VOID || errand__value_word(kind, &answer, 0, out_word, &error))
        return true;
    *out_word = trampoline->fallback;
    (void)errand__misuse(ERRAND_EINVAL, "errand_ffi_callback_fn", error.text);
    return false;
}

static void
let(ask *self)
{
    /* Pairs: ask-holders */
    if (atomic_fetch_sub_explicit(&self->holders, 1, memory_order_acq_rel) == 1)
        errand__mem_free(NULL, self, sizeof *self);
}

static bool
move(ask *self, unsigned from, unsigned to)
{
    /* Pairs: ask-state */
    return atomic_compare_exchange_strong_explicit(
        &self->state, &from, to, memory_order_acq_rel, memory_order_acquire);
}

static void
answer_ask(errand_runtime *runtime, void *arg)
{
    ask *self = arg;

    (void)runtime;
    if (move(self, WAITING, ANSWERING)) {
        errand__callback_owned(self->callback);
        (void)enter_handler(self->callback, self->arguments, &self->word);
        (void)move(self, ANSWERING, ANSWERED);
        errand__futex_wake(&self->state, 1);
    }
    let(self);
}

static void
drop_ask(void *arg)
{
    ask *self = arg;

    if (move(self, WAITING, REFUSED))
        errand__futex_wake(&self->state, 1);
    let(self);
}

/* ---- the caller's side ------------------------------------------------------------------------------ */

/* job: of the body on this thread; NULL = a thread of the callee's. */
static bool
post(errand_ffi_callback *callback, errand_job *job, ask *self)
{
    errand_status status = ERRAND_EGONE;
    errand_job *other = NULL;
    bool refused = false;

    if (job != NULL)
        return errand_job_post(job, &self->command) == ERRAND_OK;
    errand__lock_acquire(&callback->lock);
    refused = callback->on_owner > 0;
    if (!refused && !errand__list_empty(&callback->running)) {
        other = ERRAND__CONTAINER(callback->running.next, running_link, link)->job;
        status = errand_job_post(other, &self->command);
    }
    errand__lock_release(&callback->lock);
    if (!refused && other == NULL)
        status = errand_post(callback->inbox, &self->command);
    return status == ERRAND_OK;
}

static bool
is_cancelled(errand_ffi_callback *callback, const errand_job *job)
{
    bool cancelled = false;

    if (job != NULL)
        return errand_job_cancelled(job);
    errand__lock_acquire(&callback->lock);
    if (!errand__list_empty(&callback->running))
        cancelled = errand_job_cancelled(
            ERRAND__CONTAINER(callback->running.next, running_link, link)->job);
    errand__lock_release(&callback->lock);
    return cancelled;
}

/* Waits until somebody answered, nobody will, or the call was cancelled. */
static bool
await_answer(errand_ffi_callback *callback, errand_job *job, ask *self)
{
    for (;;) {
        /* Pairs: ask-state */
        unsigned state = atomic_load_explicit(&self->state, memory_order_acquire);

        if (state == ANSWERED)
            return true;
        if (state == REFUSED)
            return false;
        if (state == WAITING && is_cancelled(callback, job) &&
            move(self, WAITING, GIVEN_UP))
            return false;
        (void)errand__futex_wait(&self->state, state, LOOK_NS);
    }
}

bool
errand__callback_ask(errand_ffi_callback *callback, errand_job *job,
                     const errand_ffi_value *arguments, uint64_t *out_word)
{
    bool answered;
    ask *self;

    if (errand_inbox_closed(callback->inbox))
        return false;
    if (atomic_load_explicit(&callback->owner, memory_order_relaxed) ==
        errand__thread_self())
        return enter_handler(callback, arguments, out_word);
    if (job == NULL && (callback->flags & ERRAND_FFI_CALLBACK_REFUSE_FOREIGN) != 0)
        return false;
    self = errand__mem_alloc(NULL, sizeof *self);
    if (self == NULL)
        return false;
    self->command = (errand_command){.fn = answer_ask, .drop = drop_ask, .arg = self};
    self->callback = callback;
    self->arguments = arguments;
    atomic_init(&self->state, WAITING);
    atomic_init(&self->holders, 2);
    if (!post(callback, job, self)) {
        errand__mem_free(NULL, self, sizeof *self);
        return false;
    }
    answered = await_answer(callback, job, self);
    *out_word = self->word;
    let(self);
    return answered;
}

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
