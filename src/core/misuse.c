/* SPDX-License-Identifier: MIT */
/* misuse: what happens when an assertion of ours, or a caller's argument, is wrong.
 *
 * Design notes.  The hook is a pair (function, argument) that is read as one from any
 * thread, also in a forked child, where a lock could be held by a thread that does not
 * exist there.  So each pair that was ever set is kept, unchanged, for ever, and one
 * pointer says which one counts.  A pair that comes again is found again; the first ones
 * need no memory. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/core.h"

#define PAIRS_BUILT_IN 64

typedef struct hook_pair {
    errand_misuse_fn *fn;
    void *arg;
    struct hook_pair *older;
} hook_pair;

static hook_pair built_in[PAIRS_BUILT_IN];

/* built_in_used: how many of the built-in pairs were claimed (or more, once all are).
 * Writers: errand_misuse_hook.  Readers: the same.  Order: relaxed.  Pairs: none.
 * Why:     the number alone says whose the pair is; it is published by known. */
static atomic_uint built_in_used;

/* known: newest of all pairs; current: the one that counts, NULL = no hook.
 * Writers: errand_misuse_hook.  Readers: errand_misuse_hook, errand__misuse.
 * Order:   release when a pair is shown, acquire when it is read.
 * Pairs:   misuse-pair (errand_misuse_hook, find_pair, errand__misuse).
 * Why:     the reader follows the pointer, so it must see the pair's fields. */
static _Atomic(hook_pair *) known;
static _Atomic(hook_pair *) current;

static hook_pair *find_pair(errand_misuse_fn *fn, void *arg);
static hook_pair *claim_pair(void);

void
errand_misuse_hook(errand_misuse_fn *fn, void *arg)
{
    hook_pair *pair = NULL;
    if (fn != NULL) {
        pair = find_pair(fn, arg);
        if (pair == NULL) {
            pair = claim_pair();
            if (pair == NULL)
                return; /* out of memory after very many hooks: the old one stays */
            pair->fn = fn;
            pair->arg = arg;
            pair->older = atomic_load_explicit(&known, memory_order_relaxed);
            /* Pairs: misuse-pair */
            while (!atomic_compare_exchange_weak_explicit(
                &known, &pair->older, pair, memory_order_release, memory_order_relaxed))
                continue;
        }
    }
    /* Pairs: misuse-pair */
    atomic_store_explicit(&current, pair, memory_order_release);
}

errand_status
errand__misuse(errand_status status, const char *function, const char *text)
{
    errand__lock_none_held();
    /* Pairs: misuse-pair */
    hook_pair *pair = atomic_load_explicit(&current, memory_order_acquire);
    if (pair != NULL) {
        /* The caller's text is the cause; the mend is the status's, unless it has its own, or the
         * status has none but to look the call up, which a cause that is named spares. */
        const char *mend = strstr(errand_status_text(status), "; ");
        char line[512];
        if (mend == NULL || strstr(text, "; ") != NULL ||
            strcmp(mend, "; see the call's documentation") == 0)
            mend = "";
        errand__text_format(line, sizeof line, "%s: %s%s", function, text, mend);
        pair->fn(pair->arg, status, line);
    }
    return status;
}

void
errand__assert_failed(const char *file, int line, const char *condition)
{
    char text[512];
    size_t length =
        errand__text_format(text, sizeof text - 1, "errand: %s:%d: assertion failed: %s",
                            file, line, condition);
    text[length++] = '\n';
    if (write(STDERR_FILENO, text, length) < 0)
        abort();
    abort();
}

static hook_pair *
find_pair(errand_misuse_fn *fn, void *arg)
{
    /* Pairs: misuse-pair */
    hook_pair *pair = atomic_load_explicit(&known, memory_order_acquire);
    while (pair != NULL && (pair->fn != fn || pair->arg != arg))
        pair = pair->older;
    return pair;
}

static hook_pair *
claim_pair(void)
{
    unsigned index = atomic_load_explicit(&built_in_used, memory_order_relaxed);
    while (index < PAIRS_BUILT_IN) {
        if (atomic_compare_exchange_weak_explicit(&built_in_used, &index, index + 1,
                                                  memory_order_relaxed,
                                                  memory_order_relaxed))
            return &built_in[index];
    }
    return errand__mem_alloc(NULL, sizeof(hook_pair));
}
