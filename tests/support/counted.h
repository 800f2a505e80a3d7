/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_SUPPORT_COUNTED_H
#define ERRAND_TESTS_SUPPORT_COUNTED_H
/* counted: an operation with every part that an operation can have, each of which counts how
 * often it was called, and when, and on which thread; on() is called in each of them. */
#include <pthread.h>
#include "world.h"

typedef enum counted_place {
    AT_BODY = 0,
    AT_DECODE,
    AT_DECODER_DROP,
    AT_CANCEL,
    AT_REAP,
    AT_HOOK_DROP,
    AT_RESUME,
    AT_CONTINUATION_DROP,
    AT_STATE_DROP,
    AT_PAYLOAD_DROP,
    AT_VALUE_DROP,
    AT_DEFER,
    COUNTED_PLACES
} counted_place;

enum { HELD_BY_DECODER = 0, HELD_BY_HOOK, HELD_BY_CONTINUATION, HELD_BY_VALUE };

typedef struct counted {
    test_world *world;
    errand_identity identity;
    errand_wait wait; /* counted_submission leaves it here */
    unsigned count[COUNTED_PLACES];
    unsigned order[COUNTED_PLACES]; /* of the last call, over all counted operations */
    pthread_t thread[COUNTED_PLACES];
    /* What the parts do. */
    void (*on)(struct counted *self, counted_place place);
    void *arg;
    errand_job *running; /* in AT_BODY */
    int32_t answer;
    bool no_payload, no_hook, no_continuation, defers, panics;
    /* An async job instead, which runs until its token is set, unless it is deaf, or counted_ready
     * was called: so that it runs while the test does other things on one thread. */
    bool lingers, deaf, ready;
    struct errand_waker *waker;
    /* What a collector is shown: the decoder's, the hook's, the continuation's and the value's. */
    void *held[4];
    errand_hook_answer cancel_answer, reap_answer; /* 0 = REAPED */
    errand_status verdict;                         /* of the decoder; 0 = OK */
    /* What the continuation was told. */
    errand_reason reason;
    bool completed;
    errand_outcome outcome;
    errand_status told;
    uint32_t flags;
} counted;

errand_spec counted_spec(test_world *world, counted *self);
/* Up to the submission, the wait in self->wait and not registered. */
errand_submission counted_submission(test_world *world, counted *self);
void counted_await(counted *self);
/* All five steps and the wait; must be accepted. */
void counted_submit(test_world *world, counted *self);
/* The same with a spec of the test's (made by counted_spec). */
errand_submission counted_submission_of(test_world *world, counted *self,
                                        const errand_spec *spec);
/* Each part met its end once (O11): state dropped, decoder used or dropped, hook dropped, the
 * continuation resumed or dropped, value and payload dropped. */
void counted_check_ended(const counted *self);
void counted_ready(counted *self);
errand_cancel_answer counted_cancel(counted *self);
/* Drives until nothing is ready. */
void counted_drive(test_world *world);
/* The calls of one place happened on the calling thread. */
void counted_check_here(const counted *self, counted_place place);

#endif
