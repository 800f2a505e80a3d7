/* SPDX-License-Identifier: MIT */
/* trampoline: code that foreign functions can call, and its end.
 *
 * Design notes: foreign code may keep an address longer than it should.  So what was retired is not
 * given back at once: its code stays and answers its default value, until RETIRED_MAX further ones
 * were retired.  `uses` decides between a call that comes in and the end: a call adds itself
 * first and looks for CLOSED then.
 *
 * A forked child never gives a closure back: where libffi gets its memory from a file, parent and
 * child share it (SELinux systems). */
#include <string.h>
#include <unistd.h>
#include "foreign/foreign.h"

enum { CLOSED = 1u << 31, RETIRED_MAX = 1024 };

static struct {
    errand__lock lock;
    errand__link list; /* guarded by lock; oldest first */
    unsigned count;
} retired;

/* refused: tests make closures fail.  Writers: tests.  Readers: any thread.  Order: relaxed.
 * Pairs: none.  Why: nothing hangs on it. */
static atomic_bool refused;

static void entered(ffi_cif *cif, void *result, void **arguments, void *user);

errand__trampoline *
errand__trampoline_create(const errand_ffi_signature *view,
                          errand__signature *own_signature, errand__trampoline_fn *enter,
                          void *owner, errand_ffi_error *out_error, bool *out_no_exec)
{
    errand__trampoline *made = errand__mem_alloc(NULL, sizeof *made);

    *out_no_exec = false;
    if (made == NULL) {
        errand__signature_destroy(own_signature);
        errand__ffi_refuse(out_error, 0, "no memory for the callback");
        return NULL;
    }
    made->view = *view;
    made->owned = own_signature;
    made->enter = enter;
    made->owner = owner;
    made->process = (int)getpid();
    atomic_init(&made->uses, 0);
    if (!errand__cif_create(&made->view,
                            (errand__cif){&made->cif, &made->types, &made->block,
                                          &made->block_size, NULL},
                            out_error)) {
        errand__trampoline_destroy(made);
        return NULL;
    }
    if (!atomic_load_explicit(&refused, memory_order_relaxed))
        made->closure = ffi_closure_alloc(sizeof *made->closure, &made->code);
    if (made->closure == NULL || ffi_prep_closure_loc(made->closure, &made->cif, entered,
                                                      made, made->code) != FFI_OK) {
        errand__ffi_refuse(out_error, 0,
                           "the system gives out no memory for code; permit it, or call "
                           "without callbacks");
        *out_no_exec = true;
        errand__trampoline_destroy(made);
        return NULL;
    }
    return made;
}

void
errand__trampoline_destroy(errand__trampoline *trampoline)
{
    if (trampoline == NULL)
        return;
    if (trampoline->closure != NULL && trampoline->process == (int)getpid())
        ffi_closure_free(trampoline->closure);
    if (trampoline->block != NULL)
        errand__mem_free(NULL, trampoline->block, trampoline->block_size);
    errand__signature_destroy(trampoline->owned);
    errand__mem_free(NULL, trampoline, sizeof *trampoline);
}

void
errand__trampoline_pin(errand__trampoline *trampoline)
{
    /* Pairs: trampoline-uses */
    atomic_fetch_add_explicit(&trampoline->uses, 1, memory_order_acq_rel);
}

void
errand__trampoline_unpin(errand__trampoline *trampoline)
{
    atomic_fetch_sub_explicit(&trampoline->uses, 1, memory_order_acq_rel);
}

static void
destroy_all(errand__link *list)
{
    while (!errand__list_empty(list)) {
        errand__link *first = list->next;

        errand__list_unlink(first);
        errand__trampoline_destroy(ERRAND__CONTAINER(first, errand__trampoline, link));
    }
}

bool
errand__trampoline_retire(errand__trampoline *trampoline)
{
    unsigned none = 0;
    errand__trampoline *oldest = NULL;

    if (!atomic_compare_exchange_strong_explicit(
            &trampoline->uses, &none, CLOSED, memory_order_acq_rel, memory_order_acquire))
        return false;
    errand__lock_acquire(&retired.lock);
    if (retired.list.next == NULL)
        errand__list_init(&retired.list);
    errand__list_append(&retired.list, &trampoline->link);
    if (++retired.count > RETIRED_MAX) {
        oldest = ERRAND__CONTAINER(retired.list.next, errand__trampoline, link);
        errand__list_unlink(&oldest->link);
        retired.count--;
    }
    errand__lock_release(&retired.lock);
    errand__trampoline_destroy(oldest);
    return true;
}

void
errand__trampolines_refuse(bool refuse)
{
    atomic_store_explicit(&refused, refuse, memory_order_relaxed);
}

void
errand__trampolines_forget(void)
{
    errand__link all;

    errand__list_init(&all);
    errand__lock_acquire(&retired.lock);
    while (retired.list.next != NULL && !errand__list_empty(&retired.list)) {
        errand__link *first = retired.list.next;

        errand__list_unlink(first);
        errand__list_append(&all, first);
    }
    retired.count = 0;
    errand__lock_release(&retired.lock);
    destroy_all(&all);
}

void
errand__trampoline_answer(const errand__trampoline *trampoline, void *result,
                          uint64_t word)
{
    errand_ffi_kind kind = trampoline->view.result.kind;

    word = errand__word_narrow(kind, word);
    if (kind == ERRAND_FFI_VOID)
        return;
    if (kind == ERRAND_FFI_F32 || kind == ERRAND_FFI_F64)
        errand__word_into(kind, result, word);
    else /* libffi wants integers widened to a register */
        memcpy(result, &word, sizeof word);
}

static void
entered(ffi_cif *cif, void *result, void **arguments, void *user)
{
    errand__trampoline *trampoline = user;
    unsigned before;

    (void)cif;
    /* Pairs: trampoline-uses */
    before = atomic_fetch_add_explicit(&trampoline->uses, 1, memory_order_acq_rel);
    errand__trampoline_answer(trampoline, result, trampoline->fallback);
    if ((before & CLOSED) == 0)
        trampoline->enter(trampoline->owner, result, arguments);
    atomic_fetch_sub_explicit(&trampoline->uses, 1, memory_order_acq_rel);
}
