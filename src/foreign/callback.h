/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_FOREIGN_CALLBACK_H
#define ERRAND_FOREIGN_CALLBACK_H
/* callback, inside: what callback.c and ask.c share. */
#include "foreign/foreign.h"

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
    errand_identity asker; /* the owner's: of the call that its handler is entered for */
    errand__lock lock;
    errand__link running; /* guarded by lock: of bodies that may call it */
    unsigned on_owner; /* guarded by lock: how many of them are on the owner's thread */
};

/* A body that may call it.  on_owner: it runs on the owner's thread. */
typedef struct errand__running_link {
    errand__link link;
    errand_job *job;
    errand_ffi_callback *callback;
    bool on_owner;
} errand__running_link;

#endif
