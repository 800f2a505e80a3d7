/* SPDX-License-Identifier: MIT */
/* traps: what becomes of a call that was caught.
 *
 * Design notes.  Nearly every call comes from outside a body: then the price is two loads and the
 * library's look at its own thread-local list of frames.  Inside a body the module decides that the
 * call comes from: what the C library, an allocator or a sanitizer reads for itself is no input of
 * the job.  There may be several libraries in a process (a program's own, a module's), so there is
 * a port for each. */
#include "traps.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORTS 4

/* ports: who can be asked; NULL = free.  Writers: any thread (attach).  Readers: any thread.
 * Order: compare-exchange, acquire-release; acquire.  Pairs: trap-ports.  Why: the port's fields
 * must be there when it is found. */
static _Atomic(const errand_traps_port *) ports[PORTS];
/* mode: an errand_traps_mode.  Writers, Readers: any thread.  Order: relaxed.  Pairs: none.  Why:
 * whoever sets it does so before the run. */
static atomic_int mode;
/* caught: a count.  Writers, Readers: any thread.  Order: relaxed.  Pairs: none.  Why: nothing hangs
 * on it. */
static _Atomic uint64_t caught;

static const char *const mends[] = {
    [ERRAND__TRAP_CLOCK] = "ask errand_runtime_now before, and hand the time in",
    [ERRAND__TRAP_RANDOM] = "draw by errand_task_random before, and hand it in",
    [ERRAND__TRAP_THREAD] = "hand the work to errand_job_follow",
    [ERRAND__TRAP_ENVIRONMENT] = "read it before the run, and hand it in",
    [ERRAND__TRAP_PROCESS] = "leave it out of what the job answers",
};

void
errand_traps_attach(const errand_traps_port *held_port)
{
    if (held_port->struct_size != sizeof *held_port)
        return;
    for (int i = 0; i < PORTS; i++) {
        const errand_traps_port *before = NULL;

        if (atomic_compare_exchange_strong_explicit(
                &ports[i], &before, held_port, memory_order_acq_rel,
                memory_order_acquire) || /* Pairs: trap-ports */
            before == held_port)
            return;
    }
}

void
errand_traps_set(errand_traps_mode new_mode)
{
    atomic_store_explicit(&mode, (int)new_mode, memory_order_relaxed);
}

uint64_t
errand_traps_caught(void)
{
    return atomic_load_explicit(&caught, memory_order_relaxed);
}

/* Who asked for liberrand-traps.so says by a variable what it is to do. */
__attribute__((constructor)) static void
read_environment(void)
{
    const char *word = getenv("ERRAND_TRAPS");

    if (word != NULL && strcmp(word, "warn") == 0)
        errand_traps_set(ERRAND_TRAPS_WARN);
    else if (word != NULL && strcmp(word, "off") == 0)
        errand_traps_set(ERRAND_TRAPS_OFF);
}

/* Is this the code of a library that reads such things for itself? */
static bool
is_of_the_system(const void *caller)
{
    static const char *const names[] = {
        "libc.",    "libc-",       "ld-linux",    "libpthread",  "libm.",   "libresolv",
        "libnss_",  "libjemalloc", "libtcmalloc", "libmimalloc", "libasan", "libtsan",
        "libubsan", "libgcc_s",    "linux-vdso",  "liberrand.",
    };
    Dl_info info;
    const char *name;

    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
        return false;
    name = strrchr(info.dli_fname, '/');
    name = name == NULL ? info.dli_fname : name + 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static void
catch_call(const errand_traps_port *port, const char *job, const char *call,
           errand__trap_kind kind)
{
    atomic_fetch_add_explicit(&caught, 1, memory_order_relaxed);
    if (atomic_load_explicit(&mode, memory_order_relaxed) == ERRAND_TRAPS_WARN) {
        fprintf(stderr,
                "errand: the job '%s' called %s in a seeded run: %s, or declare it by "
                "errand_job_impure\n",
                job, call, mends[kind]);
        return;
    }
    port->panic("the job called %s, which no seed decides: %s, or declare the job by "
                "errand_job_impure",
                call, mends[kind]);
}

void
errand__trap_check(const char *call, errand__trap_kind kind, const void *caller)
{
    const char *job;

    for (int i = 0; i < PORTS; i++) {
        const errand_traps_port *port =
            atomic_load_explicit(&ports[i], memory_order_acquire); /* Pairs: trap-ports */

        if (port == NULL)
            return;
        if (!port->inside(&job))
            continue;
        if (atomic_load_explicit(&mode, memory_order_relaxed) != ERRAND_TRAPS_OFF &&
            !is_of_the_system(caller))
            catch_call(port, job, call, kind);
        return;
    }
}
