/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_SLOT_H
#define ERRAND_SANDBOX_SLOT_H
/* slot: the place of one worker: its files, mapped where they always are, and what the host knows of
 * it, none of which it reads back from there.
 *
 * Whoever moves a slot from BUSY to HELD has it in hand, alone, until it moves it on. */
#include "errand/sandbox.h"
#include "workers/async/async.h"
#include "workers/sandbox/group.h"
#include "workers/sandbox/launcher.h"
#include "workers/sandbox/wire.h"

typedef struct errand__sandbox errand__sandbox;
typedef struct errand__sandbox_place errand__sandbox_place;
typedef struct errand__sandbox_hand errand__sandbox_hand; /* place.h */

enum { ERRAND__SANDBOX_STORM = 1000 }; /* wakes without news that one job may cause */
typedef enum errand__slot_phase {
    ERRAND__SLOT_EMPTY = 0,    /* no worker.  Monitor */
    ERRAND__SLOT_STARTING = 1, /* Monitor */
    ERRAND__SLOT_IDLE = 2,     /* in the pool's list: whoever has the lock */
    ERRAND__SLOT_BUSY = 3,     /* a job is out, nobody looks */
    ERRAND__SLOT_HELD = 4,     /* somebody has it in hand */
    ERRAND__SLOT_DYING = 5,    /* to be killed, or dead and not buried.  Monitor */
    ERRAND__SLOT_RESERVE = 6   /* ready, for the place of one that ends.  Monitor */
} errand__slot_phase;
typedef enum errand__slot_intent { /* why the host ends a worker; the first reason counts */
                                   ERRAND__INTENT_NONE = 0,
                                   ERRAND__INTENT_RECYCLE = 1,
                                   ERRAND__INTENT_DEADLINE = 2,
                                   ERRAND__INTENT_CANCEL = 3,
                                   ERRAND__INTENT_PROTOCOL = 4,
                                   ERRAND__INTENT_OUTPUT = 5,
                                   ERRAND__INTENT_CLOSE = 6,
                                   ERRAND__INTENT_START = 7 /* not ready in time */
} errand__slot_intent;

typedef struct errand__sandbox_slot {
    /* Immutable after create. */
    errand__sandbox *pool;
    uint32_t index;
    errand__wire_request *request;   /* always at this address, whichever file is there */
    errand__wire_response *response; /* the same */
    /* phase: errand__slot_phase.
     * Writers: whoever has the slot; to HELD: anybody, from BUSY.
     * Readers: anybody.
     * Order: compare-exchange acquire-release to HELD; release stores, acquire loads.
     * Pairs: slot-phase.
     * Why: the next who has it must see what the last one wrote. */
    _Alignas(ERRAND_LINE) atomic_uint phase;
    /* quiet: the upper half of the answer that means that there is none yet.
     * Writers: whoever has it.  Readers: who looks or sleeps.  Order: relaxed.  Pairs: none.
     * Why: only says whether a look pays; what counts is compared by who has it. */
    atomic_uint quiet;
    /* wakes: wakes and looks without news since the job began.
     * Writers: who looks or sleeps.  Readers: whoever has it.  Order: relaxed.  Pairs: none.
     * Why: a count against storms. */
    atomic_uint wakes;
    /* asks: the job waits for an answer that its owner alone can give.
     * foreign: not its owner gave the job to it, who may sleep and know nothing of it.
     * Writers: whoever has it.  Readers: the watcher.  Order: relaxed; phase orders them.
     * Pairs: none.  Why: they only say whether the watcher need look. */
    atomic_uint asks, foreign;
    /* deadline_ns: when the job is ended, UINT64_MAX = never.  kill_ns: when, since somebody asked.
     * Writers: whoever has it (both); kill_ns also under the lock, while the job is this slot's.
     * Readers: monitor.  Order: seq_cst, with plan.  Pairs: sandbox-plan.
     * Why: of a new deadline and a monitor that goes to sleep one sees the other. */
    _Atomic uint64_t deadline_ns, kill_ns;
    /* Whoever has it. */
    size_t mapped_request, mapped_response;
    unsigned char *body, *reply, *response_bytes; /* in the files */
    int32_t pid;
    int fd;                      /* of the launcher's; -1 = no worker */
    uint32_t sequence, previous; /* of the last command; of the one before */
    uint32_t call_sequence;
    uint32_t jobs;        /* taken since its start */
    uint32_t entry_count; /* entries that it knows: those below */
    uint32_t layers, landlock_abi;
    errand__slot_intent intent;
    /* The job in hand. */
    errand__record *record;
    uint32_t generation, job_slot; /* of the record */
    uint64_t began_ns, began_cycles;
    errand_job job;
    size_t asked; /* bytes of the request area that are not 0 */
    size_t dirty; /* of the response area */
    errand__gathered gathered;
    bool borrowed; /* the last command named bytes of the region */
    bool settled;  /* its job is over; the slot is still to be released */
    /* Guarded by the pool's lock; also read by whoever has it. */
    errand__link idle;
    errand_lease *lease;             /* a reference while a job is assigned; else NULL */
    errand__slot_intent kill_intent; /* with kill_ns */
    /* Monitor's. */
    uint64_t started_ns;
    uint32_t
        ticket; /* the template was asked for its worker, and has not answered; 0 = no */
    int lifeline; /* the writing end: the worker ends with it; -1 = none */
    errand__group group;
    bool died, killed;
    bool reserve;  /* it is in reserve, or will be */
    uint64_t user; /* who started it */
    uint64_t again_ns,
        pace_ns; /* killed: when it is tried again, and how long that was put off */
    /* Watcher's: the upper half of an answer that its owner had not taken at the last nap. */
    unsigned noticed;
} errand__sandbox_slot;

/* Of the files' parts, which begin with a page. */
static inline size_t
errand__whole_pages(uint64_t size)
{
    return (size_t)((size + ERRAND__WIRE_PAGE - 1) / ERRAND__WIRE_PAGE *
                    ERRAND__WIRE_PAGE);
}
static inline unsigned
errand__slot_phase_of(const errand__sandbox_slot *slot)
{
    return atomic_load_explicit(&slot->phase,
                                memory_order_acquire); /* Pairs: slot-phase */
}
static inline void
errand__slot_move(errand__sandbox_slot *slot, errand__slot_phase phase)
{
    atomic_store_explicit(&slot->phase, phase,
                          memory_order_release); /* Pairs: slot-phase */
}
/* BUSY to HELD: true, and the caller has it.  put_back: HELD to BUSY. */
bool errand__slot_take(errand__sandbox_slot *slot);
void errand__slot_put_back(errand__sandbox_slot *slot, const errand__sandbox_hand *hand);

/* slot.c */
/* A file of that size, mapped at the address; an errno.  Sealed: SHRINK, GROW, SEAL and those. */
int errand__sandbox_map_file(const char *name, void *address, size_t size, int seals,
                             int *out_fd);
/* What stands at the start of each request file, but for sizes and places. */
void errand__sandbox_sign(errand__wire_request *request);
/* New files for the worker to come, and its set-up.  An errno; *out_files are open then. */
int errand__slot_prepare(errand__sandbox_slot *slot, errand__worker_files *out_files);
/* Ends the worker without the right to signal it: see program/confine.c. */
void errand__slot_cut(errand__sandbox_slot *slot);
/* Lets go of a lifeline, and writes there first. */
void errand__lifeline_cut(int *lifeline);
/* Nothing is there any more but zeroed memory. */
void errand__slot_clear(errand__sandbox_slot *slot);
/* Has the idle worker left its last answer alone? */
bool errand__slot_is_quiet(const errand__sandbox_slot *slot);
/* The assigned job is written into the worker's file (bytes: its request, or NULL: the job writes
 * it) and the worker is rung.  HELD to BUSY. */
void errand__slot_ask(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                      const unsigned char *bytes);
/* Rings for the next command. */
void errand__slot_ring(errand__sandbox_slot *slot, uint32_t command);
/* What one job was answered is gone from the file; what it was asked the next request covers. */
void errand__slot_scrub(errand__sandbox_slot *slot);
/* Its job is settled: the slot goes back (IDLE), or (intent) to the monitor (DYING). */
void errand__slot_release(errand__sandbox_slot *slot, errand__slot_intent intent);

/* collect.c; more of it in place.h */
/* Looks whether the worker has answered, and does what follows.  True: it moved on. */
bool errand__slot_look(errand__sandbox_slot *slot, const errand__sandbox_hand *hand);
/* The same for one that the caller has in hand.  True: the job is settled, and the slot still
 * the caller's; false: there is no end yet, nothing was moved. */
bool errand__slot_look_once(errand__sandbox_slot *slot, const errand__sandbox_hand *hand);

/* verdict.c */
/* Settles the job in hand without an answer: by intent, or by how the worker ended (end). */
void errand__slot_fail(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                       errand__slot_intent intent, const errand__worker_end *end);
/* The same with an outcome, code and text of the caller's. */
void errand__slot_settle(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                         errand_outcome outcome, errand_code code, const char *text);
/* Why a worker ended before it was ready. */
errand_status errand__verdict_start(const errand__sandbox_slot *slot,
                                    const errand__worker_end *end, char *out_text,
                                    size_t size);

/* A deadline for a message: milliseconds, rounded up, at most UINT32_MAX. */
uint32_t errand__verdict_ms(uint64_t ns);

/* What of the policy a job met that failed with that errno; "" = nothing; size is ERRAND__SANDBOX_WHY. */
void errand__verdict_limit(const errand__sandbox *pool, int error, char *out_text,
                           size_t size);
/* The same in a few words, for those who come after it; size is ERRAND__SANDBOX_WHY. */
void errand__verdict_why(const errand__sandbox_slot *slot, const errand__worker_end *end,
                         char *out_text, size_t size);

#endif
