/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_SUBMIT_H
#define ERRAND_RUNTIME_SUBMIT_H
/* submit: the part of runtime.h, which includes it, that is this folder's: an operation goes out. */
#include "runtime/runtime.h"

/* Admission of a SPLIT or filled record on a lease: checks, accounts, arms, hands over (arrival) or queues by
 * due (seeded).  task: whose key and ordinal the draws hang on; NULL = the runtime's. */
errand_status errand__admit(errand_lease *lease, errand__record *record,
                            errand_task *task);
/* Gives an armed operation to its executor; its lease is flushed with the others (flush_all). */
void errand__hand_over(errand_runtime *runtime, errand__record *record);
/* errand_start with a resume object attached (wait active) before it can complete. */
errand_status errand__start(errand_lease *lease, const errand_spec *spec, void *wait,
                            errand__resume *resume, errand_task *task,
                            errand_identity *out_identity);

/* A refusal that is misuse (ECLOSED) is told to the misuse hook; answers the status. */
errand_status errand__refusal_tell(errand_status status, const char *function);

/* Every submit is followed by a flush of its lease: at once, or inside a drain or turn at its end,
 * all of them together (flush_all; before a wait inside one too). */
void errand__flush(errand_lease *lease);
void errand__flush_all(errand_runtime *runtime);
/* The same at the end of a drain, a turn or a move of time: in paced order not for a few. */
void errand__flush_many(errand_runtime *runtime);

/* ---- names.c ---- */
bool errand__needs_extra(const errand_runtime *runtime, const errand_spec *spec);
/* An extra with everything that the operation may need later: heap places, a waker.  ENOMEM. */
errand_status errand__extra_make(errand_runtime *runtime, const errand_spec *spec,
                                 errand__extra **out_extra);
/* The live record of a token that this thread may use, or a status with its misuse reported. */
errand_status errand__token_record(void *held_record, uint64_t stamp,
                                   const char *function, errand__record **out_record);
/* Drops all that an unarmed record owns, ends its wait silently, recycles it. */
void errand__record_abandon(errand_runtime *runtime, errand__record *record);

/* ---- domain.c ---- */
/* An armed operation of a domain takes its place there; arrival: and begins. */
void errand__domain_enter(errand_runtime *runtime, errand__record *record);
/* From here on it may be handed over, once it is the first. */
void errand__domain_begin(errand_runtime *runtime, errand__record *record);
/* Its body has ended, or will never run: the next one's turn.  Harmless twice, and outside of any
 * domain. */
void errand__domain_leave(errand_runtime *runtime, errand__record *record);
/* Seeded: it has ended for the program.  Harmless twice. */
void errand__domain_told(errand__extra *extra);
/* Completions that came in arrival order: whoever waited for them in a domain goes on. */
void errand__domains_note(errand_runtime *runtime, uintptr_t link);
#endif
