/* SPDX-License-Identifier: MIT */
/* Design notes: what a cancelled operation leaves behind (O39, O41).
 *
 * An entry exists for a cancelled operation that was running: a quarantined one waits for its
 * completion alone; an interruptible one whose hook said PENDING or failed is reaped until its
 * hook says REAPED, at 1, 2, 4 ... 1000 ms, at once when its completion is drained, and when the
 * host says errand_reap_ready.  The entry then owns the hook, so the record goes its own way.
 * An entry that only waits has no due time and is no progress: the host may park. */
#include "runtime/runtime.h"

#define FIRST_NS    UINT64_C(1000000)
#define LAST_NS     UINT64_C(1000000000)
#define STUCK_AFTER 32

void
errand__cleanup_add(errand_runtime *runtime, errand__record *record, const char *error,
                    bool sealed, bool asked)
{
    errand__cleanup *entry = runtime->cleanups_free;

    if (entry != NULL)
        runtime->cleanups_free = entry->next_free;
    else
        entry = errand__mem_alloc(runtime->allocator, sizeof *entry);
    if (entry == NULL)
        return; /* its completion alone ends it */
    *entry = (errand__cleanup){.wait_id = record->wait_id,
                               .generation = record->generation,
                               .record = record,
                               .due_ns = UINT64_MAX,
                               .sealed = sealed,
                               .asked = asked,
                               .errors = error != NULL};
    if (error != NULL)
        errand__text_format(entry->text, sizeof entry->text, "%s", error);
    if (record->resource_class == ERRAND_QUARANTINED_BLOCKING) {
        entry->bound_ns = record->extra->quarantine_ns;
    } else {
        entry->hook = record->hook;
        entry->hook_data = record->hook_data;
        record->hook = NULL; /* the entry's now */
        if (!sealed)
            entry->due_ns = errand__runtime_time(runtime) + FIRST_NS;
    }
    record->owner_flags |= ERRAND__OWN_ENTRY;
    errand__list_append(&runtime->cleanups, &entry->link);
    runtime->cleanup_count++;
}

static errand__cleanup *
entry_of(errand_runtime *runtime, uint64_t wait_id, uint64_t generation)
{
    errand__link *link = runtime->cleanups.next;

    for (; link != &runtime->cleanups; link = link->next) {
        errand__cleanup *entry = ERRAND__CONTAINER(link, errand__cleanup, link);

        if (entry->wait_id == wait_id && entry->generation == generation)
            return entry;
    }
    return NULL;
}

static void
entry_end(errand_runtime *runtime, errand__cleanup *entry)
{
    errand_spec spec = {.held_hook = entry->hook, .hook_data = entry->hook_data};

    if (entry->record != NULL)
        entry->record->owner_flags &= (uint8_t)~ERRAND__OWN_ENTRY;
    errand__list_unlink(&entry->link);
    runtime->cleanup_count--;
    entry->next_free = runtime->cleanups_free;
    runtime->cleanups_free = entry;
    if (spec.held_hook != NULL)
        errand__leak_count(runtime, errand__spec_drop(&spec));
}

/* Seeded orders: it had begun in virtual time only, and the end of the run came first.  (In
 * arrival order one that ends as cancelled and has an entry was pending, and dropped so.) */
static bool
never_ran(const errand_runtime *runtime, const errand__record *record)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_relaxed);

    return errand__seeded(runtime) &&
           ((control >> ERRAND__OUTCOME_SHIFT) & 0xff) == ERRAND_CANCELLED;
}

bool
errand__cleanup_completed(errand_runtime *runtime, errand__record *record)
{
    errand__cleanup *entry;

    if ((record->owner_flags & ERRAND__OWN_ENTRY) == 0)
        return false;
    entry = entry_of(runtime, record->wait_id, record->generation);
    ERRAND_ASSERT(entry != NULL);
    if (entry->hook == NULL) {
        entry_end(runtime, entry);
        return true;
    }
    /* It ended by itself, or never began and left nothing: its hook goes as any other. */
    if (!entry->asked || never_ran(runtime, record)) {
        record->hook = entry->hook;
        entry->hook = NULL;
        entry_end(runtime, entry);
        return false;
    }
    record->owner_flags &= (uint8_t)~ERRAND__OWN_ENTRY;
    entry->record = NULL;
    entry->sealed = false;
    entry->due_ns = errand__runtime_time(runtime); /* ask at once */
    return false;
}

static void
call_cancel(void *arg)
{
    errand__cleanup *entry = arg;
    char text[128];

    (void)entry->hook->cancel(entry->hook_data, text, sizeof text);
}

void
errand__cleanup_ask(errand_runtime *runtime, errand__record *record)
{
    errand__cleanup *entry;
    char text[64];

    if ((record->owner_flags & ERRAND__OWN_ENTRY) == 0)
        return;
    entry = entry_of(runtime, record->wait_id, record->generation);
    if (entry == NULL || entry->hook == NULL || !entry->sealed)
        return;
    entry->sealed = false;
    entry->due_ns = errand__time_add(errand__runtime_time(runtime), FIRST_NS);
    if (entry->asked)
        return;
    entry->asked = true;
    if (!runtime->unhanded)
        (void)errand__contained(call_cancel, entry, text, sizeof text);
}

typedef struct reap_call {
    errand__cleanup *entry;
    errand_hook_answer answer;
    char text[128];
} reap_call;

static void
call_reap(void *arg)
{
    reap_call *call = arg;

    call->answer = call->entry->hook->reap == NULL
                       ? ERRAND_HOOK_REAPED
                       : call->entry->hook->reap(call->entry->hook_data, call->text,
                                                 sizeof call->text);
}

/* A replay: is this the entry that the log has reaped now? */
static bool
is_next(const errand_runtime *runtime, const errand__cleanup *entry)
{
    const errand_log_step *next = errand__replay_peek(runtime);

    return next != NULL && next->step.key == entry->wait_id;
}

bool
errand__cleanup_visit(errand_runtime *runtime)
{
    uint64_t now = errand__runtime_time(runtime), delay = FIRST_NS;
    errand__link *link = runtime->cleanups.next;
    errand__cleanup *entry = NULL;
    char text[64];

    for (; link != &runtime->cleanups; link = link->next) {
        entry = ERRAND__CONTAINER(link, errand__cleanup, link);
        if (errand__replay_arrival(runtime) ? is_next(runtime, entry)
                                            : entry->due_ns <= now)
            break;
    }
    if (link == &runtime->cleanups)
        return false;
    errand__list_unlink(&entry->link); /* round-robin: to the back */
    errand__list_append(&runtime->cleanups, &entry->link);
    reap_call call = {entry, ERRAND_HOOK_ERROR, ""};
    if (errand__input_hook(runtime, entry->wait_id, 1, &call.answer) &&
        errand__contained(call_reap, &call, text, sizeof text))
        call.answer = ERRAND_HOOK_ERROR;
    errand__input_hooked(runtime, entry->wait_id, 1, call.answer);
    if (call.answer == ERRAND_HOOK_REAPED) {
        entry_end(runtime, entry);
        return true;
    }
    entry->errors = call.answer == ERRAND_HOOK_ERROR ? entry->errors + 1 : 0;
    if (call.answer == ERRAND_HOOK_ERROR)
        errand__text_format(entry->text, sizeof entry->text, "%s", call.text);
    for (uint32_t i = 0; i < entry->tries && delay < LAST_NS; i++)
        delay *= 2;
    entry->tries++;
    /* From its end on: a hook that takes longer than its delay is not due again at once. */
    entry->due_ns = errand__time_add(errand__runtime_time(runtime),
                                     delay < LAST_NS ? delay : LAST_NS);
    return true;
}

static bool
key_before(const errand__cleanup *a, const errand__cleanup *b)
{
    return a->wait_id != b->wait_id ? a->wait_id < b->wait_id
                                    : a->generation < b->generation;
}

const errand__cleanup *
errand__cleanup_stuck(const errand_runtime *runtime, const errand__cleanup *after)
{
    const errand__cleanup *found = NULL;
    const errand__link *link = runtime->cleanups.next;

    for (; link != &runtime->cleanups; link = link->next) {
        const errand__cleanup *entry = ERRAND__CONTAINER(link, errand__cleanup, link);

        if (entry->errors >= STUCK_AFTER && (after == NULL || key_before(after, entry)) &&
            (found == NULL || key_before(entry, found)))
            found = entry;
    }
    return found;
}

uint64_t
errand__cleanup_next(const errand_runtime *runtime)
{
    uint64_t next = UINT64_MAX;
    const errand__link *link = runtime->cleanups.next;

    for (; link != &runtime->cleanups; link = link->next) {
        const errand__cleanup *entry = ERRAND__CONTAINER(link, errand__cleanup, link);

        if (entry->due_ns < next)
            next = entry->due_ns;
    }
    return next;
}

errand_status
errand_reap_ready(errand_runtime *runtime, const errand_identity *identity)
{
    errand__cleanup *entry;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(identity != NULL, ERRAND_EINVAL, "identity is NULL");
    entry = identity->runtime == runtime->id
                ? entry_of(runtime, identity->wait, identity->generation)
                : NULL;
    if (entry == NULL || entry->hook == NULL)
        return ERRAND_EUNKNOWN;
    if (!entry->sealed)
        entry->due_ns = 0;
    return ERRAND_OK;
}

void
errand__cleanups_fini(errand_runtime *runtime)
{
    while (!errand__list_empty(&runtime->cleanups))
        entry_end(runtime,
                  ERRAND__CONTAINER(runtime->cleanups.next, errand__cleanup, link));
    while (runtime->cleanups_free != NULL) {
        errand__cleanup *entry = runtime->cleanups_free;

        runtime->cleanups_free = entry->next_free;
        errand__mem_free(runtime->allocator, entry, sizeof *entry);
    }
}
