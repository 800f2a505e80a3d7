/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_REGISTRAR_H
#define ERRAND_REGISTRAR_H
/* registrar: names.  The record of an operation, the slab it lives in, and the identities.
 *
 * A record is three cache lines.  The first is the worker's between claim and put; the other
 * two are touched only by the runtime's thread (but for the fields of a failure, written by
 * the worker before its put).  Records live in one mapped array in the inbox block
 * (inbox/inbox.h) and are taken and given back by the runtime's thread alone.
 *
 * Life (owner's phase):  free -> issued -> bound -> split -> armed -> drained -> free
 *                                                   armed -> drained, held -> free
 * The control word (below) begins to count when the record is armed. */
#include "core/core.h"
#include "errand.h"

/* ---- the control word ------------------------------------------------------------------- */
/* control: {generation : 32 | code : 8 | outcome : 8 | flags : 8 | state : 8}.
 *   state:  IDLE -> QUEUED (arming, by the owner's plain store before anyone can see it)
 *           QUEUED -> SETTLED (canceller) | RUNNING (worker)
 *           RUNNING -> SETTLED (worker, or whoever writes the worker off)
 * Writers: owner (IDLE, QUEUED, recycling, flags CANCEL and OVERDUE); one worker or canceller (the rest);
 *          any thread (flag POSTED).
 * Readers: everybody who holds a dispatch, a token or an identity of it.
 * Order:   each move is one compare-exchange, acquire-release: its winner owns the job.
 *          Where one thread alone can write it, a release store.
 * Pairs:   control-claim, control-settle, control-post.
 * Why:     both sides need the job's bytes; relaxed would let the winner read half of them.
 * The generation is the low half of the identity's, never 0 in a live record; recycling stores 0.
 * A claim with an old generation fails, so queues may hold stale entries. */
enum { ERRAND__IDLE = 0, ERRAND__QUEUED = 1, ERRAND__RUNNING = 2, ERRAND__SETTLED = 3 };
#define ERRAND__STATE_MASK  UINT64_C(0xff)
#define ERRAND__FLAG_CANCEL (UINT64_C(1) << 8)  /* somebody asked it to end */
#define ERRAND__FLAG_POSTED (UINT64_C(1) << 9)  /* its post node is linked in the inbox */
#define ERRAND__FLAG_HELD   (UINT64_C(1) << 10) /* settled by the library; body not back */
#define ERRAND__FLAG_BACK   (UINT64_C(1) << 11) /* a held body returned */
#define ERRAND__FLAG_DRAINED                                                             \
    (UINT64_C(1) << 12) /* a held operation's completion was drained */
#define ERRAND__FLAG_LOST (UINT64_C(1) << 13) /* its message was lost */
#define ERRAND__FLAG_ASKED                                                               \
    (UINT64_C(1) << 14) /* with POSTED: another thread asked to cancel */
#define ERRAND__FLAG_OVERDUE                                                             \
    (UINT64_C(1) << 15) /* with CANCEL: it was its deadline that asked it to end */
#define ERRAND__OUTCOME_SHIFT    16
#define ERRAND__CODE_SHIFT       24
#define ERRAND__GENERATION_SHIFT 32
/* node of a record that was armed and not put yet; settle asserts it (O17). */
#define ERRAND__NODE_UNPUT ((uintptr_t)1)
static inline unsigned
errand__control_state(uint64_t control)
{
    return (unsigned)(control & ERRAND__STATE_MASK);
}
static inline uint32_t
errand__control_generation(uint64_t control)
{
    return (uint32_t)(control >> ERRAND__GENERATION_SHIFT);
}

/* ---- the record --------------------------------------------------------------------------- */
/* A failure's details: a block of the runtime's message pool, taken by the worker. */
typedef struct errand__failure {
    /* next: in the pool's free list.  Writers: whoever gives it back.  Readers: whoever takes one,
     * perhaps too late.  Order: relaxed.  Pairs: failure-pool (inbox.h).  Why: failure_free orders
     * it. */
    _Atomic uint32_t next;
    int32_t sys_errno, signal_number;
    char system_call[44];
    char text[256];
} errand__failure;

/* What jobs of one domain share (domain.c).  Owner thread only. */
typedef struct errand__domain {
    uint64_t number;
    struct errand__domain *next; /* in its bucket, or free */
    uint64_t refs;               /* extras that name it */
    uint64_t out;                /* seeded: armed, and not yet ended for the program */
    uint64_t due, tie;           /* seeded: of the last that is out; 0 = none is */
    /* Arrival and paced: those that have not ended really, in the order of submission. */
    errand__link queue;
    bool handed; /* the first of them is with its executor */
} errand__domain;

/* What only some operations have; allocated in bind (or start) by the runtime's thread, from the
 * library's own memory: a body that outlives its runtime still reads it (O58).  A brief one ends
 * before `arrived`: what waits in arrival order, without a limit, is to be small.  See
 * errand__record_whole. */
typedef struct errand__extra {
    bool brief; /* constant */
    /* What deadline_entry waits for, see deadlines.c; 0 = it is in no heap. */
    uint8_t deadline_stage;
    /* Seeded orders: the errand_code that the program hears of at the due, whatever the body
     * answers; 0 = the body's. */
    uint8_t fixed_code;
    bool no_signal; /* see ERRAND_SPEC_NO_SIGNAL; constant from bind on */
    bool
        labelled; /* it has a name or a trace id, see errand__label; constant from bind on */
    bool effect_free;
    struct errand_waker *waker; /* async: a counted reference; else one for later */
    struct errand__extra *next_free;
    /* Not of a brief one.  First what every operation of the seeded orders needs when it is due. */
    bool arrived;           /* paced: its completion has come and waits for its due */
    bool counted;           /* seeded: among its lease's told ones */
    bool in_domain;         /* seeded: among its domain's that are out */
    bool begun;             /* of a domain: virtual time has reached its begin */
    uint32_t slot;          /* of a domain, or seeded orders: its record's */
    errand__domain *domain; /* a counted reference, or NULL */
    union {
        errand__heap_entry
            due_entry; /* seeded orders: in the due heap, in whose order: */
        struct {
            uint64_t due, tie, key;
        };
    };
    uint64_t begin, fate;             /* seeded orders */
    uint64_t label_hash;              /* seeded orders: of its name */
    uint64_t deadline_ns, soft_ns;    /* relative; 0 = none */
    uint64_t quarantine_ns, work_max; /* 0 = none */
    /* work_done: Writers: the job's threads.  Readers: the owner.  Order: relaxed.
     * Pairs: none.  Why: a count; the posted node that follows it orders what matters. */
    _Atomic uint64_t work_done;
    errand__heap_entry deadline_entry; /* in the runtime's deadline heap */
    errand__heap_entry begin_entry;    /* paced: in the begin heap */
    errand__link domain_link;          /* in the domain's queue */
} errand__extra;

/* What a name, a trace id or exact times need: a line beside the records, one per slot, touched only
 * by operations that have some.  Such a record's extra says so; if it needs nothing else it is
 * errand__label_only, which nobody writes. */
typedef struct errand__label {
    const char *name;
    uint64_t trace_id;
    uint64_t t_start, t_end; /* exact times; the worker's until put */
} errand__label;
extern errand__extra errand__label_only;
_Static_assert(offsetof(errand__extra, due) - offsetof(errand__extra, due_entry) ==
                       offsetof(errand__heap_entry, major) &&
                   offsetof(errand__extra, tie) - offsetof(errand__extra, due_entry) ==
                       offsetof(errand__heap_entry, minor) &&
                   offsetof(errand__extra, key) - offsetof(errand__extra, due_entry) ==
                       offsetof(errand__heap_entry, last),
               "an operation's due, tie and key are its entry's words");

typedef enum errand__phase {
    ERRAND__PHASE_FREE = 0,
    ERRAND__PHASE_ISSUED = 1,
    ERRAND__PHASE_BOUND = 2,
    ERRAND__PHASE_SPLIT = 3,
    ERRAND__PHASE_ARMED = 4,
    ERRAND__PHASE_HELD = 5, /* completion drained, body not back */
    ERRAND__PHASE_LINGER =
        6, /* to be recycled once its post node was taken from the chain */
    ERRAND__PHASE_DOOMED = 7 /* being abandoned, or soon: no token can use it any more */
} errand__phase;

typedef enum errand__wait_state {
    ERRAND__WAIT_NONE = 0,   /* nobody is told: errand_drain's handler alone */
    ERRAND__WAIT_HALF = 1,   /* the half is in the host's hands */
    ERRAND__WAIT_ACTIVE = 2, /* continuation registered */
    ERRAND__WAIT_ENDED = 3   /* cancelled: the completion will be late */
} errand__wait_state;

/* Follow-up work of a job (errand_job_follow), newest first.  next is tagged like details. */
typedef struct errand__follow {
    uintptr_t next;
    errand_spec spec;
    void *wait;
    /* Given when its parent is delivered. */
    uint64_t key; /* seeded orders */
    uint8_t lease;
} errand__follow;
/* details of a record: a failure, or (low bit set) the newest follow, whose next leads on to the
 * older ones and last to the failure, if there is one. */
#define ERRAND__DETAILS_FOLLOW ((uintptr_t)1)

typedef struct errand__record {
    /* Line 0.  Atomic; see above. */
    _Atomic uint64_t control;
    /* The worker's from claim to put, the owner's otherwise. */
    uintptr_t node; /* next in the inbox's chain, tagged */
    const errand_job_type *job;
    void *state;
    errand_payload payload;
    uint64_t times; /* packed start and length, see errand__times_pack */
    /* Line 1.  Owner thread only (kind, slot, class, lane, priority, lease: written before
     * arming, then constant until recycled). */
    uint64_t wait_id, generation, operation;
    uint32_t kind, slot;
    void *wait;
    const errand_decoder_type *decoder;
    void *decoder_data;
    uint8_t phase, wait_state, reason, resource_class;
    uint8_t lane, priority, lease, owner_flags;
    /* Line 2.  Owner thread only, but for details, job_code, sys_errno: the worker's from
     * claim to put. */
    uint64_t t_submit;
    const errand_hook_type *hook;
    void *hook_data;
    errand__extra *extra;
    union {
        uintptr_t details; /* claim to drain; see ERRAND__DETAILS_FOLLOW */
        struct errand__record *next_free;
    };
    /* post: next in the inbox's chain of this record's second node, for a posted cancel.  Owned by
     * whoever set FLAG_POSTED until the owner clears it; a record is not recycled while it is set. */
    uintptr_t post;
    struct errand__resume
        *resume; /* who is resumed: owned by the runtime; NULL = nobody */
    int32_t job_code;
    int32_t sys_errno;
} errand__record;
_Static_assert(sizeof(errand__record) == 3 * ERRAND_LINE,
               "a record is three cache lines");

enum {                            /* errand__record.owner_flags */
       ERRAND__OWN_HOOK_RAN = 1,  /* cancel hook was called (at most once) */
       ERRAND__OWN_ENTRY = 2,     /* a cleanup entry exists */
       ERRAND__OWN_CANCELLED = 4, /* cancel was asked before submit */
       ERRAND__OWN_HANDED = 8,    /* seeded: handed to its executor */
       ERRAND__OWN_LATER = 16,    /* on the cancel-later list */
       ERRAND__OWN_ABANDON = 32,  /* ... to be abandoned, not cancelled */
       ERRAND__OWN_DROPPED = 64   /* abandoned: its state was dropped */
};

/* ---- the registrar -------------------------------------------------------------------------- */
/* records[0] names nothing; its wait is the runtime, so that a token leads to it, and its state the
 * array of labels. */
static inline void *
errand__record_owner(const errand__record *record)
{
    return (record - record->slot)->wait;
}

/* Its extra, if it has a whole one: limits, a domain, what the seeded orders need; else NULL. */
static inline errand__extra *
errand__record_whole(const errand__record *record)
{
    return record->extra == NULL || record->extra->brief ? NULL : record->extra;
}

static inline errand__label *
errand__record_label(const errand__record *record)
{
    return (errand__label *)(record - record->slot)->state + record->slot;
}

/* The record's name: its own, or its job's. */
static inline const char *
errand__record_name(const errand__record *record)
{
    const char *name = NULL;

    if (record->extra != NULL && record->extra->labelled)
        name = errand__record_label(record)->name;
    if (name == NULL)
        name = record->job->name;
    return name != NULL ? name : "operation";
}

typedef struct errand__registrar {
    /* Immutable after init. */
    errand__record *records;
    const errand_allocator *allocator;
    uint64_t runtime_id;
    uint32_t limit; /* slots 1 .. limit */
    /* Owner thread only. */
    errand__record *free_first; /* recycled slots, last in first out */
    uint32_t fresh;             /* slots above this were never used */
    uint32_t live;              /* records that are not free */
    bool shared;                /* an inbox handle exists: other threads may post */
    uint64_t next_wait, next_generation, next_operation; /* 0 = exhausted */
    errand__extra *free_extras[2];                       /* whole ones, brief ones */
    errand__domain **domains; /* buckets, a power of 2 of them */
    errand__domain *free_domains;
    size_t domain_room, domain_count;
    struct errand__prepared *prepared_free, *prepared_all;
} errand__registrar;

/* records[1 .. limit] are the slots; records[0] names nothing. */
void errand__registrar_init(errand__registrar *registrar, errand__record *records,
                            uint32_t limit, const errand_allocator *allocator,
                            uint64_t runtime_id);
void errand__registrar_fini(errand__registrar *registrar); /* frees extras and prepared */

/* One process-wide counter (O6).  0 = exhausted. */
uint64_t errand__registrar_runtime_id(void);
/* Takes the next of a counter that issues its largest value once (O5).  False = exhausted. */
bool errand__counter_take(uint64_t *next, uint64_t *out_value);
/* A wait key without an operation: timers, joins, sleeps (O6). */
errand_status errand__registrar_wait_key(errand__registrar *registrar, uint64_t *out_wait,
                                         uint64_t *out_generation);

/* issue: a free record with a fresh identity, phase ISSUED.  EFULL · EEXHAUSTED. */
errand_status errand__registrar_issue(errand__registrar *registrar, uint32_t kind,
                                      void *wait, errand__record **out_record);
/* recycle: phase FREE, generation of the control word 0; or LINGER while its post node is linked
 * (call again when that was taken).  extra is given back; nothing else is dropped here. */
void errand__registrar_recycle(errand__registrar *registrar, errand__record *record);
/* The record whose five fields match, in any phase but FREE; else NULL. */
errand__record *errand__registrar_find(const errand__registrar *registrar,
                                       const errand_identity *identity);
static inline errand_identity
errand__record_identity(uint64_t runtime_id, const errand__record *record)
{
    errand_identity identity = {runtime_id,        record->wait_id, record->generation,
                                record->operation, record->kind,    record->slot};
    return identity;
}
/* An extra, blank but for the waker that it was given back with and for what record_fill sets;
 * from the free list or the allocator.  NULL = no memory.  give: it is in no heap and no queue. */
errand__extra *errand__extra_take(errand__registrar *registrar, bool brief);
void errand__extra_give(errand__registrar *registrar, errand__extra *extra);
void errand__extra_free(errand__extra *extra); /* its memory, whosever it is now */

/* domain.c.  hold: the domain of this number, with one more reference; NULL = no memory. */
errand__domain *errand__domain_hold(errand__registrar *registrar, uint64_t number);
void errand__domain_let(errand__registrar *registrar, errand__domain *domain);
/* Forgets what is queued in any domain. */
void errand__domains_empty(errand__registrar *registrar);
void errand__domains_fini(errand__registrar *registrar);

/* Prepared operations: blocks that stay while the runtime lives, with a generation. */
typedef struct errand__prepared {
    uint64_t stamp; /* stepped at every use and abandon */
    errand__registrar *registrar;
    struct errand__prepared *next_free, *next_all;
    bool taken;
    errand_spec spec;
} errand__prepared;
errand__prepared *
errand__prepared_take(errand__registrar *registrar);    /* NULL = no memory */
void errand__prepared_give(errand__prepared *prepared); /* steps the stamp */
#endif
