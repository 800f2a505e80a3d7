/* SPDX-License-Identifier: MIT */
/* Design notes: the block of a runtime.
 *
 * One mapping: header, records, failures; a second one for labels, made when the first is
 * needed.  Pages are touched as they are first used: a failure whose next is 0 was never given
 * back, and the one behind it is next.
 *
 * refs is biased: it starts at the bias plus one for the runtime.  Handles and leases add one
 * each.  While the inbox is open every accepted operation comes back through it, so operations
 * need no count.  At close the owner knows how many will still come (each gives one back when
 * its put is refused): it adds that many and takes the bias away, in one addition, so no late
 * put can bring the count to zero in between. */
#include <unistd.h>
#include "inbox/inbox.h"

#define LAST UINT32_MAX /* next of a failure that was given back while none was free */

static size_t
round_up(size_t size)
{
    return (size + ERRAND_LINE - 1) / ERRAND_LINE * ERRAND_LINE;
}

static size_t
labels_size(const errand__block *block)
{
    return block->record_count * sizeof(errand__label);
}

bool
errand__block_labels(errand__block *block)
{
    if (block->records[0].state == NULL)
        block->records[0].state = errand__mem_map(labels_size(block));
    return block->records[0].state != NULL;
}

errand__block *
errand__block_create(uint64_t runtime_id, uint32_t operations_max, uint32_t messages)
{
    size_t head = round_up(sizeof(errand__block));
    size_t records = round_up(((size_t)operations_max + 1) * sizeof(errand__record));
    size_t failures = ((size_t)messages + 1) * sizeof(errand__failure);
    size_t size = head + records + failures;
    errand__block *block = errand__mem_map(size);

    if (block == NULL)
        return NULL;
    block->records = (errand__record *)(void *)((char *)block + head);
    block->failures = (errand__failure *)(void *)((char *)block + head + records);
    block->record_count = operations_max + 1;
    block->failure_count = messages + 1;
    block->mapped = size;
    block->runtime_id = runtime_id;
    block->wake_fd = -1;
    atomic_store_explicit(&block->failure_free, messages > 0 ? 1 : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&block->refs, ERRAND__REFS_BIAS + 1, memory_order_relaxed);
    return block;
}

void
errand__block_hold(errand__block *block)
{
    atomic_fetch_add_explicit(&block->refs, 1,
                              memory_order_relaxed); /* Pairs: block-refs */
}

static void
block_add(errand__block *block, int64_t amount)
{
    int64_t before =
        atomic_fetch_add_explicit(&block->refs, amount, memory_order_acq_rel);

    ERRAND_ASSERT(before + amount >= 0);
    if (before + amount != 0)
        return;
    if (block->wake_fd >= 0)
        close(block->wake_fd);
    if (block->records[0].state != NULL)
        errand__mem_unmap(block->records[0].state, labels_size(block));
    errand__mem_unmap(block, block->mapped);
}

void
errand__block_let(errand__block *block)
{
    block_add(block, -1);
}

void
errand__block_close_account(errand__block *block, uint64_t outstanding)
{
    block_add(block, (int64_t)outstanding - ERRAND__REFS_BIAS);
}

errand__failure *
errand__failure_take(errand__block *block)
{
    uint64_t first = atomic_load_explicit(&block->failure_free,
                                          memory_order_acquire); /* Pairs: failure-pool */

    for (;;) {
        uint32_t index = (uint32_t)first;
        errand__failure *failure = &block->failures[index];
        uint32_t next;
        uint64_t after;

        if (index == 0)
            return NULL;
        next = atomic_load_explicit(&failure->next, memory_order_relaxed);
        if (next == 0)
            next = index + 1 < block->failure_count ? index + 1 : 0;
        else if (next == LAST)
            next = 0;
        after = ((first >> 32) + 1) << 32 | next;
        if (atomic_compare_exchange_weak_explicit(&block->failure_free, &first, after,
                                                  memory_order_acq_rel,
                                                  memory_order_acquire)) {
            failure->sys_errno = failure->signal_number = 0;
            failure->system_call[0] = failure->text[0] = '\0';
            return failure;
        }
    }
}

void
errand__failure_give(errand__block *block, errand__failure *failure)
{
    uint32_t index = (uint32_t)(failure - block->failures);
    uint64_t first = atomic_load_explicit(&block->failure_free, memory_order_relaxed);
    uint64_t after;

    do {
        atomic_store_explicit(&failure->next,
                              (uint32_t)first == 0 ? LAST : (uint32_t)first,
                              memory_order_relaxed);
        after = ((first >> 32) + 1) << 32 | index;
    } while (!atomic_compare_exchange_weak_explicit(
        &block->failure_free, &first, after,
        memory_order_acq_rel, /* Pairs: failure-pool */
        memory_order_relaxed));
}
