/* SPDX-License-Identifier: MIT */
/* inputs: what is real in arrival order, as steps.
 *
 * Design notes.  In arrival order a run hangs on when workers end and on what the clock says.  Where
 * a recorder or a replay listens, each such place makes a step, and a replay takes the place's value
 * from the log's next step before it makes the same step again.  So no place needs a name of its own:
 * the run that asks for something else than the log has is found at once, by the comparison of the
 * step (replay.c). */
#include "runtime/replay/replay.h"

errand_status
errand__input_refusal(const errand_runtime *runtime)
{
    const errand_log_step *next;

    if (runtime->external && runtime->external_status == ERRAND_EREPRODUCE)
        return ERRAND_EREPRODUCE;
    if (!errand__replay_arrival(runtime))
        return ERRAND_OK;
    next = errand__replay_peek(runtime);
    if (next == NULL || next->step.kind != ERRAND_STEP_REFUSED)
        return ERRAND_OK;
    return errand__replay_status_of(next->step.detail);
}

ERRAND_COLD errand_status
errand__input_refused(errand_runtime *runtime, errand_status status,
                      const errand_task *task)
{
    if (!errand__inputs(runtime) || status == ERRAND_EREPRODUCE)
        return status;
    if (task == NULL)
        task = runtime->scheduler.running;
    errand__audit_event(&runtime->scheduler,
                        &(errand_step){
                            .kind = ERRAND_STEP_REFUSED,
                            .detail = (uint32_t)status,
                            .context = task == NULL ? 0 : task->key,
                        },
                        0);
    return status;
}

void
errand__input_found(errand_runtime *runtime, const errand__record *record, unsigned state,
                    unsigned outcome)
{
    if (!errand__inputs(runtime))
        return;
    errand__audit_step(&runtime->scheduler, ERRAND_STEP_FOUND, state,
                       errand__record_key(runtime, record), outcome,
                       errand__record_name(record));
}

bool
errand__input_is(const errand_runtime *runtime, const errand__record *record,
                 unsigned state)
{
    const errand_log_step *next = errand__replay_peek(runtime);

    return next != NULL && next->step.kind == ERRAND_STEP_FOUND &&
           next->step.key == errand__record_key(runtime, record) &&
           next->step.detail == state;
}

unsigned
errand__input_state(errand_runtime *runtime, errand__record *record,
                    uint64_t *out_control)
{
    uint64_t control = atomic_load_explicit(&record->control, memory_order_acquire);
    unsigned state = errand__control_state(control);
    unsigned outcome =
        state == ERRAND__SETTLED ? (control >> ERRAND__OUTCOME_SHIFT) & 0xff : 0;
    const errand_log_step *next;

    *out_control = control;
    if (!errand__inputs(runtime))
        return state;
    next = errand__replay_arrival(runtime) ? errand__replay_peek(runtime) : NULL;
    if (next != NULL && next->step.kind == ERRAND_STEP_FOUND &&
        next->step.key == errand__record_key(runtime, record) &&
        (next->step.detail == ERRAND__QUEUED || next->step.detail == ERRAND__RUNNING ||
         next->step.detail == ERRAND__SETTLED)) {
        state = next->step.detail;
        outcome = (unsigned)next->step.value & 0xff;
        *out_control = (uint64_t)outcome << ERRAND__OUTCOME_SHIFT;
    }
    errand__input_found(runtime, record, state, outcome);
    return state;
}

bool
errand__input_hook(const errand_runtime *runtime, uint64_t key, unsigned what,
                   errand_hook_answer *out_answer)
{
    const errand_log_step *next;

    if (!runtime->unhanded)
        return true;
    *out_answer = ERRAND_HOOK_REAPED; /* nothing of it was ever there */
    next = errand__replay_arrival(runtime) ? errand__replay_peek(runtime) : NULL;
    if (next != NULL && next->step.kind == ERRAND_STEP_HOOK && next->step.key == key &&
        next->step.value == what && next->step.detail >= ERRAND_HOOK_REAPED &&
        next->step.detail <= ERRAND_HOOK_ERROR)
        *out_answer = (errand_hook_answer)next->step.detail;
    return false;
}

void
errand__input_hooked(errand_runtime *runtime, uint64_t key, unsigned what,
                     errand_hook_answer answer)
{
    if (errand__inputs(runtime))
        errand__audit_step(&runtime->scheduler, ERRAND_STEP_HOOK, (uint32_t)answer, key,
                           what, NULL);
}

void
errand__input_turn(errand_runtime *runtime, errand_turn_step what, uint64_t key,
                   uint64_t value)
{
    if (__builtin_expect(errand__inputs(runtime), 0))
        errand__audit_step(&runtime->scheduler, ERRAND_STEP_TURN, what, key, value, NULL);
}
