/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_PLACE_H
#define ERRAND_SANDBOX_PLACE_H
/* place: one lease, with its queues and its jobs.
 *
 *   job       the side of a record that this executor needs: entry, written request, worker, outcome
 *   hand      who acts: the owner of a lease, the monitor, or the watcher; each has hands and a cell */
#include "workers/sandbox/slot.h"

enum {
    ERRAND__SANDBOX_MOST = 256, /* workers of one pool */
    ERRAND__SANDBOX_WORDS = ERRAND__SANDBOX_MOST / 64,
    ERRAND__SANDBOX_RANKS = 3,  /* high, normal, low */
    ERRAND__SANDBOX_SPARES = 16 /* sizes of kept request buffers: powers of two */
};

typedef struct errand__sandbox_job { /* beside a record */
    /* Owner's: of the operation that is admitted next; the old one may still stand in a queue. */
    uint32_t ready_entry;
    size_t ready_size;
    uint64_t ready_input_offset, ready_input_size;
    /* Guarded by the pool's lock until it is claimed; constant from then on. */
    uint32_t entry;
    size_t size; /* of its request */
    uint64_t input_offset,
        input_size;       /* what it borrows of the region; size 0 = nothing */
    uint64_t deadline_ns; /* its own, on the system's clock; 0 = none */
    errand__link link;    /* in its queue */
    uint32_t generation;
    uint32_t
        deadline_ms; /* its own as it was given, for messages; guarded as deadline_ns */
    uint32_t slot;   /* of the slot it is assigned to, + 1; 0 = none */
    uint8_t rank;    /* of its queue */
    unsigned char *bytes; /* its request, written down when it was queued */
    size_t room;
    /* Whoever ends it, before the put; then the owner's. */
    uint64_t operation; /* whose outcome this is; 0 = nobody's */
    errand_sandbox_outcome outcome;
} errand__sandbox_job;

struct errand__sandbox_hand {
    errand__hands *hands;
    const errand__sandbox_place
        *only; /* the owner's: no other lease's jobs; NULL = any */
    uint32_t cell;
};

struct errand__sandbox_place { /* lease->impl */
    /* Immutable. */
    errand__sandbox *pool;
    errand_lease *lease;
    errand__sandbox_job *jobs; /* by slot of the record */
    size_t mapped;
    errand__ages ages;
    errand__sandbox_place *next_known; /* guarded by outcome.c's lock */
    /* Owner's. */
    errand__hands hands;
    errand__sandbox_hand hand;
    bool collecting;
    /* busy: bit n: slot n has a job of this lease.
     * Writers: who assigns and releases.  Readers: owner.  Order: release, acquire.
     * Pairs: place-busy.  Why: says where to look; the slot's phase orders the rest. */
    _Atomic uint64_t busy[ERRAND__SANDBOX_WORDS];
    /* watched: its owner does not sleep on answers: the watcher looks for them.
     * Writers: owner.  Readers: watcher.  Order: seq_cst, with bell.  Pairs: sandbox-bell.
     * Why: as a bell's. */
    atomic_uint watched;
    /* Guarded by the pool's lock. */
    errand__link attached;
    errand__link turn; /* in the pool's turns while something is queued */
    errand__link queues[ERRAND__SANDBOX_RANKS];
    uint32_t queued, stale, streak;
    bool gone;
    struct errand__spare { /* in request buffers that nobody uses */
        struct errand__spare *next;
        size_t room;
    } * spares[ERRAND__SANDBOX_SPARES];
};
enum { ERRAND__CELL_OWNER = 0, ERRAND__CELL_MONITOR = 1, ERRAND__CELL_WATCHER = 2 };

static inline errand__cell *
errand__hand_cell(const errand__sandbox_hand *hand, const errand_lease *lease)
{
    return &lease->cells[hand->cell];
}

/* queue.c */
/* Hands queued jobs to idle workers, as far as this hand may. */
void errand__sandbox_pump(errand__sandbox *pool, const errand__sandbox_hand *hand);
/* The slot is assigned and in hand: the job is claimed and the worker asked.  False: the operation
 * has ended meanwhile, and the slot is still in hand. */
bool errand__job_begin(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                       const unsigned char *bytes);
bool errand__sandbox_enough_locked(const errand__sandbox *pool);
void errand__sandbox_served_locked(errand__sandbox *pool, uint64_t cycles);
void errand__job_assign_locked(errand__sandbox_slot *slot, errand__sandbox_place *place,
                               errand__sandbox_job *job);
/* An idle worker that knows the entry, out of the list and in the caller's hand; NULL = none.  One
 * that has written into its answer unasked broke the protocol. */
errand__sandbox_slot *errand__idle_take_locked(errand__sandbox *pool, uint32_t entry);
/* The job whose turn it is in this place; stale ones are dropped on the way. */
errand__sandbox_job *errand__job_head_locked(errand__sandbox_place *place,
                                             struct errand__spare **free_later);
void errand__job_enqueue_locked(errand__sandbox_place *place, errand__sandbox_job *job);
/* Out of its queue; its bytes are to be freed after the lock was released. */
void errand__job_drop_locked(errand__sandbox_place *place, errand__sandbox_job *job,
                             struct errand__spare **free_later);
void errand__spares_free(struct errand__spare *spare);
unsigned errand__job_rank(uint8_t priority);
bool errand__job_is_live(const errand__sandbox_place *place,
                         const errand__sandbox_job *job);
/* Memory for a written request, and back. */
size_t errand__bytes_room(unsigned class);
unsigned char *errand__bytes_take(errand__sandbox_place *place, size_t size,
                                  size_t *out_room);
void errand__place_spare(errand__sandbox_place *place, unsigned char *bytes, size_t room);

/* submit.c */
errand_status errand__sandbox_ready(errand_lease *lease, const errand__record *record);
void errand__sandbox_submit(errand_lease *lease, errand__record *record,
                            uint32_t generation);
void errand__sandbox_stale(errand_lease *lease, uint8_t lane, uint8_t priority);
void errand__sandbox_nudge(errand_lease *lease, errand__record *record,
                           uint32_t generation);
bool errand__sandbox_write_off(errand_lease *lease, errand__record *record,
                               uint32_t generation);
/* Ends with this text what is queued and next in its queue for an entry from known on; 0: all that is
 * queued.  Monitor. */
void errand__sandbox_fail_queued(errand__sandbox *pool, uint32_t known, const char *text);
/* Forgets what is queued; it was settled before. */
void errand__place_empty(errand__sandbox_place *place);
void errand__place_fini(errand__sandbox_place *place);

/* collect.c */
/* Its owner does not sleep on answers: the watcher looks for them from now on. */
void errand__place_let_watch(errand__sandbox_place *place);
void errand__sandbox_collect(errand_lease *lease);
void errand__sandbox_watch(errand_lease *lease, errand__watch *watch);

/* outcome.c */
/* begin: of the job in hand, with what is known of its worker.  none: no worker had it. */
errand_sandbox_outcome *errand__outcome_begin(const errand__sandbox_slot *slot);
void errand__outcome_none(errand__sandbox_place *place, const errand__record *record,
                          bool retry);
void errand__outcome_enter(errand__sandbox_place *place);
void errand__outcome_leave(errand__sandbox_place *place);

#endif
