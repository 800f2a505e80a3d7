/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_INPUTS_H
#define ERRAND_RUNTIME_INPUTS_H
/* inputs: the part of runtime.h, which includes it, that recorders of arrival order and replays
 * need.  Owner thread only. */
#include "runtime/runtime.h"

/* ---- inputs.c: what is real in arrival order, written down, or served from the log ------------ */
/* OK, or the refusal that the log has for the submission that comes now. */
errand_status errand__input_refusal(const errand_runtime *runtime);
/* A submission was refused; answers the status. */
errand_status errand__input_refused(errand_runtime *runtime, errand_status status,
                                    const errand_task *task);
/* State of an armed operation's control word, as the program hears of it: one of
 * errand__control_state's.  *out_control: the word, as far as its outcome goes. */
unsigned errand__input_state(errand_runtime *runtime, errand__record *record,
                             uint64_t *out_control);
/* A replay: does the log have it in this state now?  Changes nothing. */
bool errand__input_is(const errand_runtime *runtime, const errand__record *record,
                      unsigned state);
/* It was found in this state: FOUND.  outcome: of a settled one. */
void errand__input_found(errand_runtime *runtime, const errand__record *record,
                         unsigned state, unsigned outcome);
/* A hook is to be called: false, and its answer is in the log; else call it and tell its answer. */
bool errand__input_hook(const errand_runtime *runtime, uint64_t key, unsigned what,
                        errand_hook_answer *out_answer);
void errand__input_hooked(errand_runtime *runtime, uint64_t key, unsigned what,
                          errand_hook_answer answer);
/* TURN, if inputs are kept. */
void errand__input_turn(errand_runtime *runtime, errand_turn_step what, uint64_t key,
                        uint64_t value);

/* ---- replay.c, replay_drive.c, replay_result.c ------------------------------------------------- */
/* Fills the config from the log, whose text of choices goes to *choices.  OK, EINVAL or EREPRODUCE. */
errand_status errand__replay_check(const errand_runtime_config *config);
void errand__replay_config(errand_runtime_config *config, errand_choices *choices);
void errand__replay_begin(errand_runtime *runtime);
/* The runtime is being shut down: the log is not followed any more. */
void errand__replay_over(errand_runtime *runtime);
/* The next step of the log, while it is followed; NULL = there is none. */
const errand_log_step *errand__replay_peek(const errand_runtime *runtime);
/* A status of the log; one that it cannot have is EREPRODUCE. */
errand_status errand__replay_status_of(uint64_t value);
/* Is a log followed, and has the run not left it?  arrival: one of arrival order. */
bool errand__replay_live(const errand_runtime *runtime);
static inline bool
errand__replay_arrival(const errand_runtime *runtime)
{
    return runtime->config.held_replay != NULL && !errand__seeded(runtime) &&
           errand__replay_live(runtime);
}
/* The run has left the log, which goes on with its next step; instead: a clause, "the run came to"
 * something else. */
void errand__replay_leave(errand_runtime *runtime, const char *instead);
/* One turn of a replay in arrival order: what the log has, until the turn has ended.  fn: as in
 * errand__deliver. */
void errand__turn_replay(errand_runtime *runtime, errand__turn *turn,
                         errand_completion_fn *fn, void *arg);
/* What a seeded replay's log has at this place of the instant comes in. */
void errand__replay_news(errand_runtime *runtime);
/* Settles an operation with the result that is the log's next step; it is in hand then, not in the
 * chain.  False: the run has left the log. */
bool errand__replay_settle(errand_runtime *runtime, errand__record *record);
/* Nobody has this held operation's body: does it count as back now? */
bool errand__replay_back(const errand_runtime *runtime, const errand__record *record);
/* The completion in hand is what the log has. */
void errand__replay_fill(errand_runtime *runtime, const errand__record *record,
                         errand_completion *completion);
/* Of its payload, as the log has it; false = it is not from the log. */
bool errand__replay_digest(const errand_runtime *runtime, uint64_t *out_digest,
                           uint64_t *out_size);
#endif
