/* SPDX-License-Identifier: MIT */
/* calls: the calls that are caught, in place of the C library's.
 *
 * Design notes.  Each asks whether it is to be refused, and then is the call that it stands for:
 * the next definition in the order of loading.  Under a sanitizer, which stands there itself, there
 * are none. */
#include "traps.h"

#if ERRAND_TRAPS_NONE
bool
errand_traps_present(void)
{
    return false;
}
#else
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

bool
errand_traps_present(void)
{
    return true;
}

static void *
next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL)
        abort();
    return found;
}

/* The prototype is in a header of the C library, but for arc4random in older ones. */
#define CALL(kind, type, name, parameters, arguments)                                    \
    type name parameters;                                                                \
    type name parameters                                                                 \
    {                                                                                    \
        static type(*real) parameters;                                                   \
                                                                                         \
        errand__trap_check(#name, kind, __builtin_return_address(0));                    \
        if (real == NULL)                                                                \
            *(void **)&real = next(#name);                                               \
        return real arguments;                                                           \
    }
#define CALL_VOID(kind, name, parameters, arguments)                                     \
    void name parameters;                                                                \
    void name parameters                                                                 \
    {                                                                                    \
        static void(*real) parameters;                                                   \
                                                                                         \
        errand__trap_check(#name, kind, __builtin_return_address(0));                    \
        if (real == NULL)                                                                \
            *(void **)&real = next(#name);                                               \
        real arguments;                                                                  \
    }

CALL(ERRAND__TRAP_CLOCK, time_t, time, (time_t * out), (out))
CALL(ERRAND__TRAP_CLOCK, clock_t, clock, (void), ())
CALL(ERRAND__TRAP_CLOCK, int, clock_gettime, (clockid_t id, struct timespec *out),
     (id, out))
CALL(ERRAND__TRAP_CLOCK, int, gettimeofday, (struct timeval * out, void *zone),
     (out, zone))
CALL(ERRAND__TRAP_CLOCK, int, timespec_get, (struct timespec * out, int base),
     (out, base))

CALL(ERRAND__TRAP_RANDOM, int, rand, (void), ())
CALL(ERRAND__TRAP_RANDOM, long, random, (void), ())
CALL(ERRAND__TRAP_RANDOM, double, drand48, (void), ())
CALL(ERRAND__TRAP_RANDOM, long, lrand48, (void), ())
CALL(ERRAND__TRAP_RANDOM, long, mrand48, (void), ())
CALL(ERRAND__TRAP_RANDOM, ssize_t, getrandom, (void *out, size_t size, unsigned flags),
     (out, size, flags))
CALL(ERRAND__TRAP_RANDOM, int, getentropy, (void *out, size_t size), (out, size))
CALL(ERRAND__TRAP_RANDOM, uint32_t, arc4random, (void), ())
CALL(ERRAND__TRAP_RANDOM, uint32_t, arc4random_uniform, (uint32_t bound), (bound))
CALL_VOID(ERRAND__TRAP_RANDOM, arc4random_buf, (void *out, size_t size), (out, size))

CALL(ERRAND__TRAP_THREAD, int, pthread_create,
     (pthread_t * out, const pthread_attr_t *attributes, void *(*start)(void *),
      void *arg),
     (out, attributes, start, arg))
CALL(ERRAND__TRAP_THREAD, int, thrd_create, (thrd_t * out, thrd_start_t start, void *arg),
     (out, start, arg))

CALL(ERRAND__TRAP_ENVIRONMENT, char *, getenv, (const char *name), (name))
CALL(ERRAND__TRAP_ENVIRONMENT, char *, secure_getenv, (const char *name), (name))
CALL(ERRAND__TRAP_PROCESS, pid_t, getpid, (void), ())
CALL(ERRAND__TRAP_PROCESS, pid_t, getppid, (void), ())
CALL(ERRAND__TRAP_PROCESS, pid_t, gettid, (void), ())
CALL(ERRAND__TRAP_PROCESS, int, sched_getcpu, (void), ())
#endif
