/* SPDX-License-Identifier: MIT */
/* Design notes: work that a job handed on (O54).
 *
 * It comes with the job's completion, newest first, and is submitted in call order on the runtime's
 * thread.  What finds no room waits here for the next drain that makes some.  Their keys hang on
 * their parent's: another operation's follow-ups shift none of them. */
#include "runtime/runtime.h"

static void
follow_push(errand_runtime *runtime, errand__follow *follow)
{
    follow->next = 0;
    if (runtime->follow_first == 0)
        runtime->follow_first = (uintptr_t)follow;
    else
        ((errand__follow *)runtime->follow_last)->next = (uintptr_t)follow;
    runtime->follow_last = (uintptr_t)follow;
}

void
errand__follows_drop(errand_runtime *runtime, errand__record *record)
{
    while ((record->details & ERRAND__DETAILS_FOLLOW) != 0) {
        errand__follow *follow =
            (errand__follow *)(record->details & ~ERRAND__DETAILS_FOLLOW);
        errand_spec spec = follow->spec;

        record->details = follow->next;
        errand__mem_free(NULL, follow, sizeof *follow);
        errand__leak_count(runtime, errand__spec_drop(&spec));
    }
}

void
errand__follows_take(errand_runtime *runtime, errand__record *record)
{
    uint64_t ordinal = 0;
    uintptr_t ordered = 0;

    while ((record->details & ERRAND__DETAILS_FOLLOW) != 0) {
        errand__follow *follow =
            (errand__follow *)(record->details & ~ERRAND__DETAILS_FOLLOW);

        record->details = follow->next;
        follow->next = ordered;
        ordered = (uintptr_t)follow;
    }
    while (ordered != 0) {
        errand__follow *follow = (errand__follow *)ordered;

        ordered = follow->next;
        follow->lease = record->lease;
        follow->key = errand__seeded(runtime) || errand__inputs(runtime)
                          ? errand__key_operation(record->extra->key, ordinal++)
                          : 0;
        follow_push(runtime, follow);
    }
}

void
errand__follows_run(errand_runtime *runtime)
{
    while (runtime->follow_first != 0) {
        errand__follow *follow = (errand__follow *)runtime->follow_first;
        errand_lease *lease = runtime->leases[follow->lease];
        errand_spec spec = follow->spec;
        errand_status status;

        runtime->given_key = follow->key;
        status = errand__start(lease, &spec, follow->wait, NULL, NULL, NULL);
        runtime->given_key = 0;
        if (status == ERRAND_EFULL || status == ERRAND_ENOMEM ||
            status == ERRAND_ENOTHREAD)
            return; /* later, in order */
        runtime->follow_first = follow->next;
        errand__mem_free(NULL, follow, sizeof *follow);
        if (status == ERRAND_OK)
            errand__flush(lease);
        else
            errand__leak_count(runtime, errand__spec_drop(&spec));
    }
}

void
errand__follows_fini(errand_runtime *runtime)
{
    while (runtime->follow_first != 0) {
        errand__follow *follow = (errand__follow *)runtime->follow_first;

        runtime->follow_first = follow->next;
        errand__leak_count(runtime, errand__spec_drop(&follow->spec));
        errand__mem_free(NULL, follow, sizeof *follow);
    }
}
