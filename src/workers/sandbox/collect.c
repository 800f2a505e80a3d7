/* SPDX-License-Identifier: MIT */
/* Design notes: looking at an answer.
 *
 * - The answer is one word, loaded once.  Its sequence must be that of the last command (the one
 *   before means "not yet"), its status one of five, its length at most what the file holds.  Then
 *   the bytes are copied, once, into memory that the worker does not see, and only that copy is
 *   read.  Anything else breaks the protocol: the worker is ended and the operation says so.
 * - Pieces are gathered up to out_bytes and seen by nobody before the last one is there.
 * - A look that finds nothing new although the word or a wake said so is counted; a job that
 *   causes too many is ended, so a worker cannot keep the host busy.
 * - A question to the host is answered by the owner alone: whoever else finds one rings it. */
#include <string.h>
#include "workers/sandbox/sandbox.h"

#define ROUNDS 16 /* answers of one worker in a row */

typedef enum look { /* what was found */
                    LOOK_NOTHING = 0,
                    LOOK_WENT_ON = 1, /* the next command is out */
                    LOOK_ENDED = 2    /* the job is settled */
} look;

/* Settles the job in hand and says what becomes of its worker. */
static look
end_by(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
       errand__slot_intent intent)
{
    errand__slot_fail(slot, hand, intent, NULL);
    slot->intent = intent;
    return LOOK_ENDED;
}

static look
breach(errand__sandbox_slot *slot, const errand__sandbox_hand *hand)
{
    return end_by(slot, hand, ERRAND__INTENT_PROTOCOL);
}

/* Room for so many bytes.  A large response gets as much at once as the last one that was taken had: where
 * blocks are kept, it is that one. */
static bool
make_room(errand__gathered *gathered, size_t needed)
{
    size_t room = gathered->wished;
    unsigned char *bytes = NULL;

    if (gathered->bytes != NULL && needed <= gathered->room)
        return true;
    if (gathered->bytes == NULL && needed >= ERRAND__KEEP_LEAST && needed <= room)
        bytes = errand__mem_alloc_bare(room);
    if (bytes == NULL) {
        for (room = gathered->room == 0 ? 4096 : gathered->room; room < needed;)
            room *= 2;
        bytes = errand__mem_grow(NULL, gathered->bytes, gathered->room, room);
    }
    if (bytes == NULL)
        return false;
    gathered->bytes = bytes;
    gathered->room = room;
    return true;
}

/* Copies length bytes behind what was gathered. */
static bool
gather(errand__sandbox_slot *slot, uint32_t length)
{
    errand__gathered *gathered = &slot->gathered;

    if (!make_room(gathered, gathered->used + length))
        return false;
    memcpy(gathered->bytes + gathered->used, slot->response_bytes, length);
    if (length > slot->dirty)
        slot->dirty = length;
    return true;
}

/* ---- the five answers --------------------------------------------------------------------------- */

/* In memory, because a panic in read_response comes back here. */
typedef struct reading {
    errand__sandbox_slot *slot;
    errand__hands *hands;
    errand__cell *cell;
} reading;

static void
read_response(const reading *call)
{
    errand__sandbox_slot *slot = call->slot;
    errand__record *record = slot->record;

    call->hands->gathered = &slot->gathered;
    if (ERRAND__CATCH(&call->hands->frame)) {
        errand__hands_panicked(call->hands, call->hands->frame.message);
    } else {
        errand__hands_at(call->hands, &slot->job, slot->lease->block, call->cell);
        int32_t answer = record->job->held_portable->read_response(
            &slot->job, record->state, slot->gathered.bytes, slot->gathered.used,
            &slot->job.payload);
        errand__hands_back(&slot->job, ERRAND_COMPLETED, ERRAND_CODE_NONE, answer);
    }
    call->hands->gathered = NULL;
    errand__frame_leave(&call->hands->frame);
}

static look
take_done(errand__sandbox_slot *slot, const errand__sandbox_hand *hand, uint32_t length)
{
    const reading call = {slot, hand->hands, errand__hand_cell(hand, slot->lease)};

    if (!gather(slot, length)) {
        errand__slot_settle(slot, hand, ERRAND_FAILED, ERRAND_CODE_MEMORY,
                            "there was no memory to copy its result");
        return LOOK_ENDED;
    }
    slot->gathered.used += length;
    errand__sandbox_monitor_keep(slot->pool, slot->gathered.used, hand->hands->now_ns);
    errand__outcome_begin(slot);
    read_response(&call);
    errand__hands_ring(hand->hands, slot->lease->block);
    return LOOK_ENDED;
}

static look
take_piece(errand__sandbox_slot *slot, const errand__sandbox_hand *hand, uint32_t length)
{
    if (length == 0) /* it could go on for ever */
        return breach(slot, hand);
    if (!gather(slot, length)) {
        errand__slot_settle(slot, hand, ERRAND_FAILED, ERRAND_CODE_MEMORY,
                            "there was no memory to copy its result");
        slot->intent = ERRAND__INTENT_RECYCLE;
        return LOOK_ENDED;
    }
    slot->gathered.used += length;
    errand__slot_ring(slot, ERRAND__WIRE_GO_ON);
    return LOOK_WENT_ON;
}

/* The job in hand, which its worker outlives; errand_job_fail has said why. */
static look
give_back(errand__sandbox_slot *slot, const errand__sandbox_hand *hand, errand_code code,
          int32_t job_code)
{
    errand__hands_back(&slot->job, ERRAND_FAILED, code, job_code);
    errand__hands_ring(hand->hands, slot->lease->block);
    return LOOK_ENDED;
}

static look
take_error(errand__sandbox_slot *slot, const errand__sandbox_hand *hand, uint32_t length)
{
    errand__wire_error error = {.code = 0};
    char limit[ERRAND__SANDBOX_WHY];

    if (length > sizeof error || length < offsetof(errand__wire_error, text))
        return breach(slot, hand);
    slot->gathered.used = 0;
    if (length > slot->dirty)
        slot->dirty = length;
    memcpy(&error, slot->response_bytes, length);
    error.text[sizeof error.text - 1] = '\0';
    if (error.code == 0)
        return breach(slot, hand);
    if (error.code == ERRAND_FFI_CODE_NO_LIBRARY) {
        const errand__sandbox_place *place = slot->lease->impl;

        errand__entry_explain(slot->pool, place->jobs[slot->record->slot].entry,
                              error.text, sizeof error.text);
    }
    errand__outcome_begin(slot);
    errand__hands_at(hand->hands, &slot->job, slot->lease->block,
                     errand__hand_cell(hand, slot->lease));
    errand__verdict_limit(slot->pool, error.error, limit, sizeof limit);
    errand_job_fail(&slot->job, error.error, 0, NULL, "%s%s", error.text, limit);
    return give_back(slot, hand, ERRAND_CODE_JOB, error.code);
}

static look
take_large(errand__sandbox_slot *slot, const errand__sandbox_hand *hand, uint32_t length)
{
    if (length != 0)
        return breach(slot, hand);
    slot->gathered.used = 0;
    errand__outcome_begin(slot);
    errand__hands_at(hand->hands, &slot->job, slot->lease->block,
                     errand__hand_cell(hand, slot->lease));
    errand_job_fail(&slot->job, 0, 0, NULL,
                    "its result is larger than out_bytes of the policy, %llu",
                    (unsigned long long)slot->pool->policy.values.out_bytes);
    return give_back(slot, hand, ERRAND_CODE_OUTPUT, 0);
}

static look
take_question(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
              uint32_t length)
{
    const errand_portable_type *portable = slot->record->job->held_portable;
    errand__hands *hands = hand->hands;
    size_t answered;

    if (portable->answer == NULL)
        return breach(slot, hand);
    if (hand->only == NULL) {
        atomic_store_explicit(&slot->asks, 1, memory_order_relaxed);
        errand__inbox_ring(slot->lease->block);
        return LOOK_NOTHING;
    }
    if (!gather(slot, length)) {
        errand__slot_settle(slot, hand, ERRAND_FAILED, ERRAND_CODE_MEMORY,
                            "there was no memory to copy its question");
        slot->intent = ERRAND__INTENT_RECYCLE;
        return LOOK_ENDED;
    }
    errand__hands_at(hands, &slot->job, slot->lease->block,
                     errand__hand_cell(hand, slot->lease));
    answered = portable->answer(&slot->job, slot->record->state,
                                slot->gathered.bytes + slot->gathered.used, length,
                                slot->reply, slot->pool->reply_size);
    errand__hands_put_down(hands);
    if (answered == 0 || answered > slot->pool->reply_size)
        return breach(slot, hand);
    slot->request->return_used = answered;
    atomic_store_explicit(&slot->asks, 0, memory_order_relaxed);
    errand__slot_ring(slot, ERRAND__WIRE_RETURN);
    return LOOK_WENT_ON;
}

/* ---- a look ----------------------------------------------------------------------------------------- */

static look
look_at(errand__sandbox_slot *slot, const errand__sandbox_hand *hand)
{
    uint64_t answer = atomic_load_explicit(&slot->response->answer,
                                           memory_order_acquire); /* Pairs: wire-answer */
    uint32_t sequence = errand__wire_answer_sequence(answer);
    uint32_t status = errand__wire_answer_status(answer);
    uint32_t length = errand__wire_answer_length(answer);

    if (sequence == slot->previous) {
        unsigned wakes = atomic_load_explicit(&slot->wakes, memory_order_relaxed);

        if ((unsigned)(answer >> 32) !=
            atomic_load_explicit(&slot->quiet, memory_order_relaxed))
            wakes = 1 + atomic_fetch_add_explicit(&slot->wakes, 1, memory_order_relaxed);
        return wakes > ERRAND__SANDBOX_STORM ? breach(slot, hand) : LOOK_NOTHING;
    }
    if (sequence != slot->sequence || length > slot->pool->response_size)
        return breach(slot, hand);
    if ((status == ERRAND__WIRE_DONE || status == ERRAND__WIRE_MORE) &&
        slot->gathered.used + length > slot->pool->policy.values.out_bytes)
        return end_by(slot, hand, ERRAND__INTENT_OUTPUT);
    switch (status) {
    case ERRAND__WIRE_DONE:
        return take_done(slot, hand, length);
    case ERRAND__WIRE_MORE:
        return take_piece(slot, hand, length);
    case ERRAND__WIRE_ERROR:
        return take_error(slot, hand, length);
    case ERRAND__WIRE_CALLBACK:
        return take_question(slot, hand, length);
    case ERRAND__WIRE_LARGE:
        return take_large(slot, hand, length);
    default:
        return breach(slot, hand);
    }
}

bool
errand__slot_look_once(errand__sandbox_slot *slot, const errand__sandbox_hand *hand)
{
    look found = LOOK_WENT_ON;

    for (int i = 0; i < ROUNDS && found == LOOK_WENT_ON; i++)
        found = look_at(slot, hand); /* its next answer may be there already */
    return found == LOOK_ENDED;
}

bool
errand__slot_look(errand__sandbox_slot *slot, const errand__sandbox_hand *hand)
{
    uint64_t answer = atomic_load_explicit(&slot->response->answer, memory_order_relaxed);

    if ((unsigned)(answer >> 32) ==
            atomic_load_explicit(&slot->quiet, memory_order_relaxed) &&
        atomic_load_explicit(&slot->wakes, memory_order_relaxed) <= ERRAND__SANDBOX_STORM)
        return false;
    if (!errand__slot_take(slot))
        return false;
    __builtin_prefetch(slot->response_bytes);
    if (hand->only != NULL && slot->lease->impl != hand->only) {
        errand__slot_put_back(slot, hand); /* another's job by now */
        return false;
    }
    if (!errand__slot_look_once(slot, hand)) {
        errand__slot_put_back(slot, hand);
        return false;
    }
    errand__slot_release(slot, slot->intent);
    return true;
}

void
errand__sandbox_collect(errand_lease *lease)
{
    errand__sandbox_place *place = lease->impl;
    bool any = false;

    if (place->collecting)
        return; /* a read_response looks for news */
    place->collecting = true;
    for (unsigned word = 0; word < ERRAND__SANDBOX_WORDS; word++) {
        uint64_t busy = atomic_load_explicit(
            &place->busy[word], memory_order_acquire); /* Pairs: place-busy */

        for (; busy != 0; busy &= busy - 1)
            any |= errand__slot_look(
                &place->pool->slots[word * 64 + (unsigned)__builtin_ctzll(busy)],
                &place->hand);
    }
    place->collecting = false;
    if (any)
        errand__sandbox_pump(place->pool, &place->hand);
    if (lease->block->wake_fd >= 0 || !errand__futex_has_many())
        errand__place_let_watch(place);
}

void
errand__place_let_watch(errand__sandbox_place *place)
{
    if (atomic_load_explicit(&place->watched, memory_order_relaxed) != 0)
        return;
    atomic_store_explicit(&place->watched, 1, memory_order_seq_cst);
    errand__watcher_wake(place->pool);
}

void
errand__sandbox_watch(errand_lease *lease, errand__watch *watch)
{
    errand__sandbox_place *place = lease->impl;
    bool crowded = errand__place_crowded(place);
    unsigned own = crowded ? 0 : errand__cpu_current() + 1;

    if (!errand__futex_has_many()) {
        errand__place_let_watch(place);
        return;
    }
    for (unsigned word = 0; word < ERRAND__SANDBOX_WORDS; word++) {
        uint64_t busy = atomic_load_explicit(
            &place->busy[word], memory_order_acquire); /* Pairs: place-busy */

        for (; busy != 0; busy &= busy - 1) {
            errand__sandbox_slot *slot =
                &place->pool->slots[word * 64 + (unsigned)__builtin_ctzll(busy)];

            if (watch->count == ERRAND__WATCH_MAX) {
                errand__place_let_watch(place);
                return;
            }
            unsigned peer =
                atomic_load_explicit(&slot->response->worker_cpu, memory_order_relaxed);
            if (peer != 0 && own != 0 && peer != own)
                watch->spins = true;
            /* The worker is about to read that line. */
            if (atomic_load_explicit(&slot->request->host_cpu, memory_order_relaxed) !=
                own)
                atomic_store_explicit(&slot->request->host_cpu, own,
                                      memory_order_relaxed);
            watch->words[watch->count++] = (errand__watched){
                .word = errand__wire_futex(slot->response),
                .expected = atomic_load_explicit(&slot->quiet, memory_order_relaxed),
                .sleepers = &slot->request->host_sleeps,
                .wakes = &slot->wakes,
            };
        }
    }
}
