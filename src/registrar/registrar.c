/* SPDX-License-Identifier: MIT */
/* Design notes.
 *
 * An identity is five numbers and a slot.  The slot is only where to look: find compares all
 * five with the record's, so a forged or stale identity finds nothing, in constant time and
 * without a hash table.  The low half of the generation also stands in the record's control
 * word, where other threads can see it; a record is free there when it is 0.
 *
 * Free records are a stack, so a warm runtime keeps using the same few cache lines. */
#include "registrar/registrar.h"

/* next_runtime: the next runtime id.  Writers, Readers: any thread.  Order: relaxed.
 * Pairs: none.  Why: each value is handed out by one compare-exchange; it orders nothing. */
static _Atomic uint64_t next_runtime = 1;

uint64_t
errand__registrar_runtime_id(void)
{
    uint64_t id = atomic_load_explicit(&next_runtime, memory_order_relaxed);

    do {
        if (id == 0)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(
        &next_runtime, &id, id + 1, memory_order_relaxed, memory_order_relaxed));
    return id;
}

bool
errand__counter_take(uint64_t *next, uint64_t *out_value)
{
    if (*next == 0)
        return false;
    *out_value = (*next)++; /* after the largest value it is 0: exhausted for ever */
    return true;
}

void
errand__registrar_init(errand__registrar *registrar, errand__record *records,
                       uint32_t limit, const errand_allocator *allocator,
                       uint64_t runtime_id)
{
    *registrar = (errand__registrar){
        .records = records,
        .allocator = allocator,
        .runtime_id = runtime_id,
        .limit = limit,
        .next_wait = 1,
        .next_generation = 1,
        .next_operation = 1,
    };
}

void
errand__registrar_fini(errand__registrar *registrar)
{
    for (int brief = 0; brief < 2; brief++)
        while (registrar->free_extras[brief] != NULL) {
            errand__extra *extra = registrar->free_extras[brief];

            registrar->free_extras[brief] = extra->next_free;
            errand__extra_free(extra);
        }
    errand__domains_fini(registrar);
    while (registrar->prepared_all != NULL) {
        errand__prepared *prepared = registrar->prepared_all;

        registrar->prepared_all = prepared->next_all;
        errand__mem_free(registrar->allocator, prepared, sizeof *prepared);
    }
}

errand_status
errand__registrar_wait_key(errand__registrar *registrar, uint64_t *out_wait,
                           uint64_t *out_generation)
{
    if (registrar->next_wait == 0 || registrar->next_generation == 0)
        return ERRAND_EEXHAUSTED;
    *out_wait = registrar->next_wait++;
    *out_generation = registrar->next_generation++;
    return ERRAND_OK;
}

/* What is free was used in any order: the next one's lines are fetched while this one is filled. */
static inline void
fetch_record(const errand__record *next)
{
    if (next == NULL)
        return;
    errand__prefetch_own(next);
    errand__prefetch_own((const char *)next + ERRAND_LINE);
    errand__prefetch_own((const char *)next + 2 * ERRAND_LINE);
}

errand_status
errand__registrar_issue(errand__registrar *registrar, uint32_t kind, void *wait,
                        errand__record **out_record)
{
    errand__record *record = registrar->free_first;

    if (registrar->next_wait == 0 || registrar->next_operation == 0)
        return ERRAND_EEXHAUSTED;
    if ((uint32_t)registrar->next_generation == 0) { /* its low half names free records */
        if (registrar->next_generation == 0)
            return ERRAND_EEXHAUSTED;
        registrar->next_generation++;
    }
    if (record != NULL) {
        registrar->free_first = record->next_free;
        fetch_record(registrar->free_first);
    } else {
        if (registrar->fresh >= registrar->limit)
            return ERRAND_EFULL;
        record = &registrar->records[++registrar->fresh];
        record->slot = registrar->fresh;
    }
    record->wait_id = registrar->next_wait++;
    record->generation = registrar->next_generation++;
    record->operation = registrar->next_operation++;
    record->kind = kind;
    record->wait = wait;
    record->phase = ERRAND__PHASE_ISSUED;
    record->wait_state = ERRAND__WAIT_NONE;
    record->reason = 0;
    record->owner_flags = 0;
    record->extra = NULL;
    record->details = 0;
    record->resume = NULL;
    atomic_store_explicit(&record->control,
                          (uint64_t)(uint32_t)record->generation
                              << ERRAND__GENERATION_SHIFT,
                          memory_order_release); /* Pairs: control-post */
    registrar->live++;
    *out_record = record;
    return ERRAND_OK;
}

/* From here on no generation matches.  False: its post node is linked.  Without an inbox handle nobody
 * else can write the word of a record that was settled, so a store will do. */
static bool
control_clear(const errand__registrar *registrar, errand__record *record,
              uint64_t control)
{
    if (!registrar->shared && (control & ERRAND__FLAG_POSTED) == 0) {
        atomic_store_explicit(&record->control, 0, memory_order_release);
        return true;
    }
    do {
        if ((control & ERRAND__FLAG_POSTED) != 0)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(
        &record->control, &control, 0, memory_order_acq_rel, /* Pairs: control-post */
        memory_order_relaxed));
    return true;
}

void
errand__registrar_recycle(errand__registrar *registrar, errand__record *record)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);

    ERRAND_ASSERT(record->phase != ERRAND__PHASE_FREE);
    if (record->extra != NULL) {
        errand__extra_give(registrar, record->extra);
        record->extra = NULL;
    }
    if (!control_clear(registrar, record, control)) {
        record->phase = ERRAND__PHASE_LINGER;
        return;
    }
    record->phase = ERRAND__PHASE_FREE;
    record->next_free = registrar->free_first;
    registrar->free_first = record;
    registrar->live--;
}

errand__record *
errand__registrar_find(const errand__registrar *registrar,
                       const errand_identity *identity)
{
    errand__record *record;

    if (identity->runtime != registrar->runtime_id || identity->slot == 0 ||
        identity->slot > registrar->fresh)
        return NULL;
    record = &registrar->records[identity->slot];
    if (record->phase == ERRAND__PHASE_FREE || record->phase == ERRAND__PHASE_LINGER ||
        record->operation != identity->operation || record->wait_id != identity->wait ||
        record->generation != identity->generation || record->kind != identity->kind)
        return NULL;
    return record;
}

errand__extra errand__label_only = {.labelled = true};

static size_t
extra_size(bool brief)
{
    return brief ? offsetof(errand__extra, arrived) : sizeof(errand__extra);
}

/* The one after the next, and the next one's waker: its own line was fetched the last time. */
static inline void
fetch_extra(const errand__extra *next)
{
    const char *waker;

    if (next == NULL)
        return;
    errand__prefetch_own(next->next_free);
    waker = (const char *)next->waker;
    if (waker == NULL)
        return;
    errand__prefetch_own(waker);
    errand__prefetch_own(waker + ERRAND_LINE);
    errand__prefetch_own(waker + 2 * ERRAND_LINE);
}

errand__extra *
errand__extra_take(errand__registrar *registrar, bool brief)
{
    errand__extra *extra = registrar->free_extras[brief];

    if (extra == NULL) {
        extra = errand__mem_alloc(NULL, extra_size(brief));
        if (extra != NULL)
            extra->brief = brief;
        return extra;
    }
    registrar->free_extras[brief] = extra->next_free;
    fetch_extra(extra->next_free);
    extra->deadline_stage = extra->fixed_code = 0;
    if (brief)
        return extra;
    extra->begun = extra->arrived = extra->counted = extra->in_domain = false;
    extra->key = extra->begin = extra->due = extra->tie = extra->fate = 0;
    atomic_store_explicit(&extra->work_done, 0, memory_order_relaxed);
    return extra;
}

void
errand__extra_give(errand__registrar *registrar, errand__extra *extra)
{
    if (extra == &errand__label_only)
        return;
    ERRAND_ASSERT(extra->brief || extra->due_entry.position == 0);
    if (!extra->brief && extra->domain != NULL) {
        errand__domain_let(registrar, extra->domain);
        extra->domain = NULL;
    }
    extra->next_free = registrar->free_extras[extra->brief];
    registrar->free_extras[extra->brief] = extra;
}

void
errand__extra_free(errand__extra *extra)
{
    errand__mem_free(NULL, extra, extra_size(extra->brief));
}

errand__prepared *
errand__prepared_take(errand__registrar *registrar)
{
    errand__prepared *prepared = registrar->prepared_free;

    if (prepared != NULL) {
        registrar->prepared_free = prepared->next_free;
    } else {
        prepared = errand__mem_alloc(registrar->allocator, sizeof *prepared);
        if (prepared == NULL)
            return NULL;
        prepared->registrar = registrar;
        prepared->stamp = 1;
        prepared->next_all = registrar->prepared_all;
        registrar->prepared_all = prepared;
    }
    prepared->taken = true;
    return prepared;
}

void
errand__prepared_give(errand__prepared *prepared)
{
    errand__registrar *registrar = prepared->registrar;

    prepared->taken = false;
    prepared->stamp++;
    prepared->next_free = registrar->prepared_free;
    registrar->prepared_free = prepared;
}
