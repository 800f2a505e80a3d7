/* SPDX-License-Identifier: MIT */
/* ask: a question of foreign code to the host, from any thread, and its answer.
 *
 * Design notes: whoever calls waits while the runtime's thread answers.  A question (ask) is held by
 * both: the waiter may give up (the call was cancelled), and the command that carries the question may
 * be run or dropped long after; whoever lets go last frees it.  Its arguments are the waiter's, so
 * once the handler has begun the waiter stays.
 *
 * A thread of the callee's has no job.  It asks by all that run with the callback, since nobody can tell
 * whose it is: in seeded orders the first that is due would wait for ever for one that asked by
 * another.
 *
 * The waiter sleeps on the bell of the operation that it belongs to, which both the answer and a
 * cancel of that operation ring. */
#include <string.h>
#include "core/pause.h"
#include "foreign/callback.h"

enum { WAITING = 0, ANSWERING = 1, ANSWERED = 2, REFUSED = 3, GIVEN_UP = 4 };

typedef struct ask ask;
typedef struct path { /* one way to the owner */
    errand_command command;
    ask *self;
    errand_identity asker; /* zeroed: no job */
} path;
struct ask {
    errand_ffi_callback *callback;
    const errand_ffi_value *arguments;
    uint64_t word;
    errand_job *job; /* whose cancel ends it; NULL = nobody's */
    errand__bell *bell;
    /* state: Writers: the waiter (GIVEN_UP), the owner (the others); from WAITING by compare-exchange.
     * Readers: both.
     * Order:   acq_rel.
     * Pairs:   ask-state.
     * Why:     the arguments are read after ANSWERING, the word after ANSWERED. */
    atomic_uint state;
    /* holders: the waiter and the commands.   Writers, Readers: all.   Order: acq_rel.
     * Pairs:   ask-holders.
     * Why:     the last one frees what the others wrote. */
    atomic_uint holders;
    size_t room; /* of paths */
    path paths[];
};

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
        errand__mem_free(NULL, self, sizeof *self + self->room * sizeof self->paths[0]);
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
    const path *by = arg;
    ask *self = by->self;

    (void)runtime;
    if (move(self, WAITING, ANSWERING)) {
        errand__callback_owned(self->callback);
        (void)enter_handler(self->callback, by->asker, self->arguments, &self->word);
        (void)move(self, ANSWERING, ANSWERED);
        errand__bell_ring(self->bell);
    }
    let(self);
}

static void
drop_ask(void *arg)
{
    ask *self = ((path *)arg)->self;

    if (move(self, WAITING, REFUSED))
        errand__bell_ring(self->bell);
    let(self);
}

/* ---- the caller's side ------------------------------------------------------------------------------ */

/* The n-th way; job: by which, or NULL. */
static bool
send(ask *self, size_t n, errand_job *job)
{
    path *by = &self->paths[n];
    errand_status status;

    by->command = (errand_command){.fn = answer_ask, .drop = drop_ask, .arg = by};
    by->self = self;
    if (job != NULL)
        by->asker = errand_job_identity(job);
    if (n == 0) {
        self->job = job;
        self->bell = errand__bell_of(by->asker.slot, by->asker.generation);
    }
    /* Before it is sent, as it may be answered at once. */
    atomic_fetch_add_explicit(&self->holders, 1, memory_order_relaxed);
    status = job != NULL ? errand_job_post(job, &by->command)
                         : errand_post(self->callback->inbox, &by->command);
    if (status != ERRAND_OK)
        atomic_fetch_sub_explicit(&self->holders, 1, memory_order_relaxed);
    return status == ERRAND_OK;
}

/* By all that run with the callback, as far as there is room; by none: to its runtime. */
static bool
send_to_all(ask *self)
{
    errand_ffi_callback *callback = self->callback;
    bool refused, sent = false;
    size_t count = 0;

    errand__lock_acquire(&callback->lock);
    refused = callback->on_owner > 0;
    for (errand__link *at = callback->running.next;
         !refused && at != &callback->running && count < self->room; at = at->next)
        sent |=
            send(self, count++, ERRAND__CONTAINER(at, errand__running_link, link)->job);
    errand__lock_release(&callback->lock);
    return sent || (!refused && count == 0 && send(self, 0, NULL));
}

/* How many ways a question of a thread without a job may have. */
static size_t
count_running(errand_ffi_callback *callback)
{
    size_t count = 0;

    errand__lock_acquire(&callback->lock);
    for (errand__link *at = callback->running.next; at != &callback->running;
         at = at->next)
        count++;
    errand__lock_release(&callback->lock);
    return count == 0 ? 1 : count;
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
    size_t room;
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
    room = job != NULL ? 1 : count_running(callback);
    self = errand__mem_alloc(NULL, sizeof *self + room * sizeof self->paths[0]);
    if (self == NULL)
        return false;
    self->room = room;
    self->callback = callback;
    self->arguments = arguments;
    atomic_init(&self->state, WAITING);
    atomic_init(&self->holders, 1);
    if (!(job != NULL ? send(self, 0, job) : send_to_all(self))) {
        let(self);
        return false;
    }
    errand__bell_listen(self->bell);
    answered = await_answer(callback, self, job != NULL);
    errand__bell_leave(self->bell);
    *out_word = self->word;
    let(self);
    return answered;
}
