/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_DISPATCH_FAULT_H
#define ERRAND_DISPATCH_FAULT_H
/* fault: where a fault of a body lands (fault.c), and whose code it was in (module.c). */
#include <setjmp.h>
#include <signal.h>
#include <sys/types.h>
#include "errand/faults.h"

#define ERRAND__GUARD_SIZE ((size_t)65536) /* below the stack of a worker */

/* One worker's, in a mapping of its own between guards, so that a body that writes beyond its stack
 * or its blocks does not meet it.  Its thread only; after the jump and the report (release,
 * acquire) whoever settles the job. */
typedef struct errand__fault {
    sigjmp_buf jump;             /* set by the thread before it first arms */
    volatile sig_atomic_t armed; /* a body runs; the handler clears it */
    pid_t process, thread;
    uintptr_t stack_low; /* the guard ends here */
    /* The module of the last body, so that most need no look into the list. */
    uintptr_t known, known_size;
    /* Written by the handler. */
    int signal_number, signal_code;
    uintptr_t address, pc;
} errand__fault;

/* False: under a sanitizer or valgrind, which have handlers of their own. */
bool errand__fault_possible(void);
/* The process's handlers are put in place with the first user and go with the last.  False: one could
 * not be put.  Any thread. */
bool errand__fault_handlers_take(void);
void errand__fault_handlers_give(void);
errand__fault *errand__fault_create(void); /* NULL = no memory */
void errand__fault_destroy(errand__fault *fault);
/* enter: its thread, before its first body: alternate stack, bounds of the stack.  leave: the same
 * thread; afterwards nothing of it is touched.  Both are async-signal-safe in effect: no memory, no
 * locks; leave is also called by a thread that was just torn out of a body. */
bool errand__fault_enter(errand__fault *fault);
void errand__fault_leave(errand__fault *fault);
/* Makes sure that the module of this function is in the list. */
void errand__fault_know(errand__fault *fault, uintptr_t function);
static inline void
errand__fault_arm(errand__fault *fault, uintptr_t function)
{
    if (__builtin_expect(function - fault->known >= fault->known_size, 0))
        errand__fault_know(fault, function);
    fault->armed = 1;
}
static inline void
errand__fault_disarm(errand__fault *fault)
{
    fault->armed = 0;
}
/* What happened, to a body that was entered at function.  in_library: it was inside a call of ours that
 * has lists in hand. */
void errand__fault_read(const errand__fault *fault, uintptr_t function, bool in_library,
                        errand_fault *out);
void errand__fault_text(const errand_fault *fault, char *text, size_t size);
struct errand__hands;
/* What the torn job of these hands gives up, and what its completion says. */
void errand__fault_note(const errand_fault *fault, struct errand__hands *hands);

/* ---- module.c ------------------------------------------------------------------------------ */
/* A list of what is mapped as code, made by refresh and looked at without the loader's locks, which
 * a fault may have left held. */
typedef struct errand__module {
    uintptr_t start, size; /* of the code */
    uintptr_t base;        /* where the file begins */
    uint32_t number;       /* equal for all parts of one file, within one list */
    bool lonely;           /* a program without a loader: the C library is part of it */
    char name[55];
} errand__module;
void errand__modules_refresh(void); /* may allocate and take the loader's locks */
bool errand__modules_find(uintptr_t address, errand__module *out);
bool errand__modules_named(const char *part); /* is there one whose name has this? */
#endif
