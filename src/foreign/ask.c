/* SPDX-License-Identifier: MIT */
/* ask: a question of foreign code to the host, from any thread, and its answer.
 *
 * Design notes: whoever calls waits while the runtime's thread answers.  A question (ask) is held by
 * both: the waiter may give up (the call was cancelled), and the command that carries the question may
 * be run or dropped long after; whoever lets go last frees it.  Its arguments are the waiter's, so
 * once the handler has begun the waiter stays.
 *
 * The waiter sleeps on the bell of the operation that it belongs to, which both the answer and a
 * cancel of that operation ring. */
#include <string.h>
#include "core/pause.h"
#include "foreign/callback.h"

enum { WAITING = 0, ANSWERING = 1, ANSWERED = 2, REFUSED = 3, GIVEN_UP = 4 };

typedef struct ask {
    errand_command command;
    errand_ffi_callback *callback;
    const errand_ffi_value *arguments;
    uint64_t word;
    errand_job *job;       /* whose cancel ends it; NULL = nobody's */
    errand_identity asker; /* of that job; else zeroed */
    errand__bell *bell;
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

/* ---- the owner's side ----------------------------------------------------------------------------- */

/* False: the handler answered something that the result cannot be. */
static bool
enter_handler(errand_ffi_callback *callback, errand_identity asker,
              const errand_ffi_value *arguments, uint64_t *out_word)
{
    const errand_identity before = callback->asker; /* handlers may lead to others */
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
    callback->asker = asker;
    callback->handler(callback->held_arg, arguments, trampoline->view.count, &answer);
    callback->asker = before;
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
        (void)enter_handler(self->callback, self->asker, self->arguments, &self->word);
        (void)move(self, ANSWERING, ANSWERED);
        errand__bell_ring(self->bell);
    }
    let(self);
}

static void
drop_ask(void *arg)
{
    ask *self = arg;

    if (move(self, WAITING, REFUSED))
        errand__bell_ring(self->bell);
    let(self);
}

/* ---- the caller's side ------------------------------------------------------------------------------ */

static void
belong(ask *self, errand_job *job)
{
    self->job = job;
    self->asker = errand_job_identity(job);
    self->bell = errand__bell_of(self->asker.slot, self->asker.generation);
}

/* job: of the body on this thread; NULL = a thread of the callee's, which takes one that runs. */
static bool
post(errand_ffi_callback *callback, errand_job *job, ask *self)
{
    errand_status status = ERRAND_EGONE;
    bool refused = false;

    if (job != NULL) {
        belong(self, job);
        return errand_job_post(job, &self->command) == ERRAND_OK;
    }
    self->bell = errand__bell_of((uintptr_t)self >> 4, 0);
    errand__lock_acquire(&callback->lock);
    refused = callback->on_owner > 0;
    if (!refused && !errand__list_empty(&callback->running)) {
        belong(
            self,
            ERRAND__CONTAINER(callback->running.next, errand__running_link, link)->job);
        status = errand_job_post(self->job, &self->command);
    }
    errand__lock_release(&callback->lock);
    if (!refused && self->job == NULL)
        status = errand_post(callback->inbox, &self->command);
    return status == ERRAND_OK;
}

/* own: the body on this thread is the job's, which lives on.  Another's lives while it can be
 * called. */
static bool
is_cancelled(errand_ffi_callback *callback, const ask *self, bool own)
{
    bool cancelled = false;

    if (own || self->job == NULL)
        return own && errand_job_cancelled(self->job);
    errand__lock_acquire(&callback->lock);
    for (errand__link *at = callback->running.next; at != &callback->running;
         at = at->next)
        if (ERRAND__CONTAINER(at, errand__running_link, link)->job == self->job)
            cancelled = errand_job_cancelled(self->job);
    errand__lock_release(&callback->lock);
    return cancelled;
}

/* Waits until somebody answered, nobody will, or the call was cancelled. */
static bool
await_answer(errand_ffi_callback *callback, ask *self, bool own)
{
    for (;;) {
        unsigned rings = errand__bell_rings(self->bell);
        /* Pairs: ask-state */
        unsigned state = atomic_load_explicit(&self->state, memory_order_acquire);

        if (state == ANSWERED)
            return true;
        if (state == REFUSED)
            return false;
        if (state == WAITING && is_cancelled(callback, self, own) &&
            move(self, WAITING, GIVEN_UP))
            return false;
        ERRAND__PAUSE("ask-sleep");
        errand__bell_await(self->bell, rings);
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
        return enter_handler(callback,
                             job == NULL ? (errand_identity){.runtime = 0}
                                         : errand_job_identity(job),
                             arguments, out_word);
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
    errand__bell_listen(self->bell);
    answered = await_answer(callback, self, job != NULL);
    errand__bell_leave(self->bell);
    *out_word = self->word;
    let(self);
    return answered;
}
