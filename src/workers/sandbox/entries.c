/* SPDX-License-Identifier: MIT */
/* Design notes: the functions that workers may call.
 *
 * A worker finds them when it starts and is told their numbers afterwards, never a name.  The table
 * only grows and what stands in it stays, so whoever has seen a count may read below it without the
 * lock.  The first are the policy's; others are added when a job first needs them.
 *
 * A worker opens the libraries of all entries, so one whose constructor ends or stops it would keep the
 * pool from ever having a worker again.  Who ended two starts in a row is skipped by those that
 * come: its jobs are told so, and nobody else notices. */
#include <string.h>
#include "workers/sandbox/sandbox.h"

#define FIRST 4

static uint64_t
hash_of(const errand_entry *entry)
{
    return errand__mix_words(errand__label_hash(entry->library),
                             errand__label_hash(entry->symbol),
                             errand__label_hash(entry->signature), 0);
}

static bool
same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool
same_entry(const errand_entry *a, const errand_entry *b)
{
    return same_text(a->library, b->library) && same_text(a->symbol, b->symbol) &&
           same_text(a->signature, b->signature);
}

/* The first ones are compared as they are: most pools have few, and a hash costs as much. */
static bool
find_first_locked(const errand__sandbox *pool, const errand_entry *entry,
                  uint32_t *out_index)
{
    for (uint32_t i = 0; i < pool->entry_count && i < FIRST; i++) {
        if (same_entry(&pool->entries[i], entry)) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

static bool
find_locked(const errand__sandbox *pool, const errand_entry *entry, uint64_t hash,
            uint32_t *out_index)
{
    for (uint32_t i = 0; i < pool->entry_count; i++) {
        const errand_entry *known = &pool->entries[i];

        if (pool->entry_blocks[i].hash == hash && same_entry(known, entry)) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

static const char *
copy_text(const char *text, char **at)
{
    const char *copy = *at;

    if (text == NULL)
        return NULL;
    *at = stpcpy(*at, text) + 1;
    return copy;
}

static errand_status
add(errand__sandbox *pool, const errand_entry *entry, uint64_t hash, uint32_t *out_index)
{
    size_t size = (entry->library != NULL ? strlen(entry->library) : 0) +
                  (entry->signature != NULL ? strlen(entry->signature) : 0) +
                  strlen(entry->symbol) + 3;
    char *block = errand__mem_alloc(NULL, size), *at = block;
    errand_status status = ERRAND_OK;
    errand_entry copy;

    if (block == NULL)
        return ERRAND_ENOMEM;
    copy.library = copy_text(entry->library, &at);
    copy.symbol = copy_text(entry->symbol, &at);
    copy.signature = copy_text(entry->signature, &at);
    errand__lock_acquire(&pool->lock);
    if (find_locked(pool, entry, hash, out_index)) {
        /* another owner was faster */
    } else if (pool->entry_count == ERRAND__WIRE_ENTRIES) {
        status = ERRAND_EFULL;
    } else {
        *out_index = pool->entry_count++;
        pool->entries[*out_index] = copy;
        pool->entry_blocks[*out_index] =
            (errand__sandbox_entry){.hash = hash, .block = block, .size = size};
        block = NULL;
    }
    errand__lock_release(&pool->lock);
    errand__mem_free(NULL, block, size);
    return status;
}

errand_status
errand__entry_find(errand__sandbox *pool, const errand_entry *entry, uint32_t *out_index)
{
    const char *reason;
    uint64_t hash;
    bool found;

    if (entry == NULL || entry->symbol == NULL)
        return errand__misuse(ERRAND_EINVAL, "errand_submit",
                              "the job names no entry with a symbol");
    errand__lock_acquire(&pool->lock);
    found = find_first_locked(pool, entry, out_index);
    errand__lock_release(&pool->lock);
    if (found)
        return ERRAND_OK;
    hash = hash_of(entry);
    errand__lock_acquire(&pool->lock);
    found = find_locked(pool, entry, hash, out_index);
    errand__lock_release(&pool->lock);
    if (found)
        return ERRAND_OK;
    if (pool->policy.values.entries_fixed)
        return errand__misuse(ERRAND_EUNSUPPORTED, "errand_submit",
                              "the policy's entries are fixed, and this is none of them");
    reason = errand__entry_reason(entry);
    if (reason != NULL)
        return errand__misuse(ERRAND_EINVAL, "errand_submit", reason);
    return add(pool, entry, hash, out_index);
}

bool
errand__entry_blame(errand__sandbox *pool, uint32_t index, const char *why)
{
    const char *library = NULL;

    errand__lock_acquire(&pool->lock);
    if (index < pool->entry_count)
        library = pool->entries[index].library;
    for (uint32_t i = 0; library != NULL && i < pool->entry_count; i++)
        if (same_text(pool->entries[i].library, library) &&
            pool->entry_blocks[i].strikes < ERRAND__SANDBOX_STRIKES) {
            pool->entry_blocks[i].strikes++;
            errand__text_format(pool->entry_blocks[i].why, ERRAND__SANDBOX_WHY, "%s",
                                why);
        }
    errand__lock_release(&pool->lock);
    return library != NULL;
}

void
errand__entry_explain(errand__sandbox *pool, uint32_t index, char *text, size_t size)
{
    errand__lock_acquire(&pool->lock);
    if (index < pool->entry_count &&
        pool->entry_blocks[index].strikes >= ERRAND__SANDBOX_STRIKES)
        errand__text_append(text, size, "; the last one %s",
                            pool->entry_blocks[index].why);
    errand__lock_release(&pool->lock);
}

void
errand__entries_opened(errand__sandbox *pool, uint32_t count)
{
    errand__lock_acquire(&pool->lock);
    for (uint32_t i = 0; i < count; i++)
        if (pool->entry_blocks[i].strikes < ERRAND__SANDBOX_STRIKES)
            pool->entry_blocks[i].strikes = 0;
    errand__lock_release(&pool->lock);
}

void
errand__entries_skip(errand__sandbox *pool, uint32_t count,
                     errand__wire_entry *out_entries)
{
    errand__lock_acquire(&pool->lock);
    for (uint32_t i = 0; i < count; i++)
        out_entries[i].skip = pool->entry_blocks[i].strikes >= ERRAND__SANDBOX_STRIKES;
    errand__lock_release(&pool->lock);
}

void
errand__entries_init(errand__sandbox *pool)
{
    const errand_sandbox_policy *policy = &pool->policy.values;

    for (size_t i = 0; i < policy->entry_count; i++) {
        pool->entries[i] = policy->entries[i];
        pool->entry_blocks[i].hash = hash_of(&policy->entries[i]);
    }
    pool->entry_count = (uint32_t)policy->entry_count;
}

void
errand__entries_fini(errand__sandbox *pool)
{
    for (uint32_t i = 0; i < pool->entry_count; i++)
        errand__mem_free(NULL, pool->entry_blocks[i].block, pool->entry_blocks[i].size);
}
