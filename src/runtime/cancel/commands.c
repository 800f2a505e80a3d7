/* SPDX-License-Identifier: MIT */
/* Design notes: what other threads may do.
 *
 * A handle holds the block, not the runtime, so it may outlive it; posting into a closed inbox
 * answers EGONE.  Commands travel in the same list as completions and cannot overtake those
 * that were put before them (O65).  A posted cancel uses the record's own second node and needs
 * no memory (O44).
 *
 * In the seeded orders all of this is input that no seed decides: it is refused, or admitted and
 * the run marked as not reproducible from there. */
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "runtime/runtime.h"

errand_status
errand_inbox_open(errand_runtime *runtime, errand_inbox **out_inbox)
{
    errand_inbox *inbox;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_inbox != NULL, ERRAND_EINVAL, "out_inbox is NULL");
    inbox = errand__mem_alloc(NULL, sizeof *inbox);
    if (inbox == NULL)
        return ERRAND_ENOMEM;
    inbox->block = runtime->block;
    inbox->fork_epoch = runtime->fork_epoch;
    inbox->runtime_id = runtime->id;
    inbox->refuses = errand__seeded(runtime) &&
                     (runtime->config.flags & ERRAND_RUNTIME_REFUSE_FOREIGN) != 0;
    runtime->registrar.shared = runtime->block->shared = true;
    errand__block_hold(inbox->block);
    *out_inbox = inbox;
    return ERRAND_OK;
}

void
errand_inbox_abandon(errand_inbox **take_inbox)
{
    errand_inbox *inbox;

    if (take_inbox == NULL || *take_inbox == NULL)
        return;
    inbox = *take_inbox;
    *take_inbox = NULL;
    errand__block_let(inbox->block);
    errand__mem_free(NULL, inbox, sizeof *inbox);
}

bool
errand_inbox_closed(const errand_inbox *inbox)
{
    return inbox == NULL || inbox->fork_epoch != errand__fork_epoch() ||
           errand__inbox_closed(inbox->block);
}

static errand_status
inbox_check(const errand_inbox *inbox, const char *function)
{
    if (inbox == NULL)
        return errand__misuse(ERRAND_EINVAL, function, "the inbox is NULL");
    if (inbox->fork_epoch != errand__fork_epoch())
        return errand__misuse(ERRAND_EFORKED, function,
                              "the inbox was opened by the parent");
    if (inbox->refuses)
        return ERRAND_EREPRODUCE;
    return ERRAND_OK;
}

/* The first foreign thread of a seeded run leaves its name, for errand_reproducible (O65). */
static void
leave_name(errand_inbox *inbox)
{
    errand__block *block = inbox->block;
    unsigned nobody = 0;

    if (!block->virtual_time ||
        !atomic_compare_exchange_strong_explicit(
            &block->foreign, &nobody, 1, memory_order_acq_rel, memory_order_relaxed))
        return;
    if (pthread_getname_np(pthread_self(), block->foreign_name,
                           sizeof block->foreign_name) != 0)
        errand__text_format(block->foreign_name, sizeof block->foreign_name, "a thread");
    atomic_store_explicit(&block->foreign, 2,
                          memory_order_release); /* Pairs: foreign-name */
}

errand_status
errand_post_cancel(errand_inbox *inbox, const errand_identity *identity)
{
    errand_status status = inbox_check(inbox, __func__);

    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(identity != NULL, ERRAND_EINVAL, "identity is NULL");
    if (identity->runtime != inbox->runtime_id || identity->slot == 0 ||
        identity->slot >= inbox->block->record_count ||
        (uint32_t)identity->generation == 0)
        return ERRAND_EGONE;
    leave_name(inbox);
    if (!errand__post_record(inbox->block, &inbox->block->records[identity->slot],
                             (uint32_t)identity->generation, ERRAND__FLAG_ASKED))
        return ERRAND_EGONE;
    return ERRAND_OK;
}

/* library[1] of a command: 1 while it is posted.  Written by its poster before the put. */
errand_status
errand_post(errand_inbox *inbox, errand_command *node)
{
    errand_status status = inbox_check(inbox, __func__);

    if (status != ERRAND_OK)
        return status;
    ERRAND_REQUIRE_ARG(node != NULL && node->fn != NULL, ERRAND_EINVAL,
                       "node and node->fn are needed");
    ERRAND_REQUIRE_ARG(((uintptr_t)node & ERRAND__NODE_TAGS) == 0, ERRAND_EINVAL,
                       "node must be aligned to 8 bytes");
    ERRAND_REQUIRE_ARG(node->library[1] == NULL, ERRAND_EBUSY, "node is posted already");
    leave_name(inbox);
    node->library[1] = inbox;
    if (errand__inbox_put(inbox->block, node, ERRAND__NODE_COMMAND, NULL))
        return ERRAND_OK;
    node->library[1] = NULL;
    return ERRAND_EGONE;
}

void
errand_interrupt(errand_inbox *inbox)
{
    if (inbox == NULL || inbox->fork_epoch != errand__fork_epoch())
        return;
    atomic_store_explicit(&inbox->block->interrupted, 1,
                          memory_order_seq_cst); /* Pairs: interrupted */
    errand__inbox_ring(inbox->block);
}

void
errand__command_run(errand_runtime *runtime, errand_command *command)
{
    void (*fn)(errand_runtime *, void *) = command->fn;
    void *arg = command->arg;

    bool of_job = ((uintptr_t)command->library[1] & ERRAND__COMMAND_OF_JOB) != 0;

    command->library[1] = NULL; /* from here on the node is the host's again */
    if (!of_job)
        errand__foreign_mark(runtime, ERRAND__FOREIGN_COMMAND, 0);
    errand__lock_none_held();
    fn(runtime, arg);
}

void
errand__foreign_mark(errand_runtime *runtime, const char *what, uint64_t key)
{
    if (!errand__seeded(runtime) && !errand__inputs(runtime))
        return;
    errand__audit_step(&runtime->scheduler, ERRAND_STEP_COMMAND, 0, key, 0, what);
    if (runtime->foreign_input || !errand__seeded(runtime))
        return;
    runtime->foreign_input = true;
    errand__text_format(
        runtime->foreign_text, sizeof runtime->foreign_text,
        "%s of thread '%s' at virtual time %llu ns", what,
        atomic_load_explicit(&runtime->block->foreign, memory_order_acquire) ==
                2 /* Pairs: foreign-name */
            ? runtime->block->foreign_name
            : "?",
        (unsigned long long)runtime->scheduler.now);
}
