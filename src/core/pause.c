/* SPDX-License-Identifier: MIT */
/* Design notes: the hook is two words that tests set while nothing runs; a pause point reads the
 * function with acquire and then its argument, which was stored before it. */
#include "core/core.h"
#include "core/pause.h"
#include "errand/testing.h"

#if ERRAND_TESTING
/* hook_fn, hook_arg.  Writers: a test.  Readers: any thread at a pause point.
 * Order: arg relaxed, then fn release; fn acquire, then arg.  Pairs: pause-hook.
 * Why: a weaker fn could be seen with the old argument. */
static _Atomic(errand_pause_fn *) hook_fn;
static _Atomic(void *) hook_arg;

void
errand_testing_pause(errand_pause_fn *fn, void *arg)
{
    atomic_store_explicit(&hook_arg, arg, memory_order_relaxed);
    atomic_store_explicit(&hook_fn, fn, memory_order_release); /* Pairs: pause-hook */
}

void
errand__pause(const char *place)
{
    errand_pause_fn *fn =
        atomic_load_explicit(&hook_fn, memory_order_acquire); /* Pairs: pause-hook */

    if (fn != NULL)
        fn(atomic_load_explicit(&hook_arg, memory_order_relaxed), place);
}

uint64_t
errand_testing_fail_allocation(uint64_t n)
{
    return errand__mem_fail_nth(n);
}

int64_t
errand_testing_live_bytes(void)
{
    return errand__mem_live_bytes();
}
#else
typedef int errand__pause_is_empty; /* ISO C wants a declaration */
#endif
