/* SPDX-License-Identifier: MIT */
/* Design notes: what a completion can tell beside its code.
 *
 * It stands beside the record, in the lease's array, with the number of the operation that it is of:
 * written by whoever ends the operation before the put, read by the owner after it.  A completion
 * does not say which lease it is of, so all attached sandboxes stand in one list of the process. */
#include <string.h>
#include "workers/sandbox/filter.h"
#include "workers/sandbox/sandbox.h"

static struct {
    errand__lock lock;
    errand__sandbox_place *first; /* guarded by lock */
} known;

void
errand__outcome_enter(errand__sandbox_place *place)
{
    errand__lock_acquire(&known.lock);
    place->next_known = known.first;
    known.first = place;
    errand__lock_release(&known.lock);
}

void
errand__outcome_leave(errand__sandbox_place *place)
{
    errand__sandbox_place **at = &known.first;

    errand__lock_acquire(&known.lock);
    while (*at != NULL && *at != place)
        at = &(*at)->next_known;
    if (*at != NULL)
        *at = place->next_known;
    errand__lock_release(&known.lock);
}

static errand_sandbox_outcome *
blank(errand__sandbox_place *place, const errand__record *record)
{
    errand__sandbox_job *job = &place->jobs[record->slot];

    job->operation = record->operation;
    job->outcome = (errand_sandbox_outcome){
        .struct_size = sizeof job->outcome,
        .pid = -1,
        .wait_status = -1,
        .denied_call = -1,
    };
    return &job->outcome;
}

void
errand__outcome_none(errand__sandbox_place *place, const errand__record *record,
                     bool retry)
{
    blank(place, record)->retry_hint = retry;
}

/* The worker may have written anything. */
static void
read_refused(const errand__wire_response *response, errand_sandbox_outcome *outcome)
{
    for (int i = 0; i < ERRAND__WIRE_REFUSED && i < ERRAND_SANDBOX_REFUSALS; i++) {
        uint32_t word = atomic_load_explicit(&response->refused[i], memory_order_relaxed);
        uint32_t call = word & 0xffff, error = word >> 16;

        if (call == 0 || call > 4096 || error > 4095)
            return;
        outcome->refused[outcome->refused_count++] =
            (errand_sandbox_refusal){(uint16_t)(call - 1), (uint16_t)error};
    }
}

void
errand_sandbox_call_name(int32_t call, char *out, size_t size)
{
    errand__filter_call_name(call, out, size);
}

errand_sandbox_outcome *
errand__outcome_begin(const errand__sandbox_slot *slot)
{
    errand_sandbox_outcome *outcome = blank(slot->lease->impl, slot->record);

    outcome->pid = slot->pid;
    outcome->layers = slot->layers;
    outcome->landlock_abi = slot->landlock_abi;
    if (slot->pool->policy.values.on_deny == ERRAND_DENY_REPORT)
        read_refused(slot->response, outcome);
    return outcome;
}

errand_status
errand_sandbox_outcome_read(const errand_completion *completion,
                            errand_sandbox_outcome *out_outcome)
{
    bool found = false;

    ERRAND_REQUIRE_ARG(completion != NULL && out_outcome != NULL, ERRAND_EINVAL,
                       "a completion and a place for its outcome are needed");
    errand__lock_acquire(&known.lock);
    for (errand__sandbox_place *place = known.first; place != NULL && !found;
         place = place->next_known) {
        const errand__block *block = place->lease->block;
        const errand__sandbox_job *job = &place->jobs[completion->identity.slot];

        if (block->runtime_id != completion->identity.runtime ||
            completion->identity.slot >= block->record_count ||
            job->operation != completion->identity.operation)
            continue;
        *out_outcome = job->outcome;
        found = true;
    }
    errand__lock_release(&known.lock);
    return found ? ERRAND_OK : ERRAND_EINVAL;
}
