/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_INBOX_H
#define ERRAND_INBOX_H
/* inbox: news.  One block per runtime holds the inbox, the records and the message pool; it is
 * counted and may outlive the runtime, so that a late job never touches freed memory.
 *
 * The list is one word.  Producers push a complete node by compare-exchange; the runtime's
 * thread takes the whole chain by one exchange and turns it round.  The word also says what the
 * consumer is doing while the list is empty, so that "is it empty?" and "wake me" are one
 * compare-exchange: a producer that replaces PARKED owes a futex wake, one that replaces ARMED
 * a write to the descriptor, one that meets CLOSED keeps its node. */
#include "registrar/registrar.h"

/* Tags in the low bits of links: what the link points at, and so where its next link is. */
enum {
    ERRAND__NODE_COMPLETION = 0, /* an errand__record; next in record->node */
    ERRAND__NODE_COMMAND = 1,    /* an errand_command; next in command->library[0] */
    ERRAND__NODE_POSTED = 2,     /* an errand__record; next in record->post */
    ERRAND__NODE_TAGS = 7
};
/* In library[1] of a command: what stands there besides is the record of the job that posted it. */
enum { ERRAND__COMMAND_OF_JOB = 1 };
enum { /* values of the head that are no node */
       ERRAND__INBOX_EMPTY = 0,
       ERRAND__INBOX_PARKED = 8,  /* the consumer sleeps, or is about to */
       ERRAND__INBOX_ARMED = 16,  /* the descriptor is to be written */
       ERRAND__INBOX_CLOSED = 24, /* nothing is delivered any more */
       ERRAND__INBOX_DOZING =
           32, /* the consumer sleeps at most 4 ms: a worker may wake it
                                   * later, at the end of its group */
       ERRAND__INBOX_SPECIAL = 63 /* all up to this are no nodes */
};

typedef struct errand__block {
    /* Immutable after create. */
    errand__record *records; /* [0] is unused: slot 0 names nothing */
    errand__failure *failures;
    uint32_t record_count, failure_count; /* with the unused [0] of both */
    size_t mapped;
    uint64_t runtime_id, epoch_ns; /* epoch of packed times */
    errand_times times;
    bool test_time;    /* the clock is test_clock */
    bool virtual_time; /* t_start and t_end are the order's, not the worker's */
    int wake_fd;       /* -1 until asked for; written by the owner before ARMED is set */
    /* Owner thread only. */
    int64_t fd_writes; /* of the descriptor: made or still owed, and not read */
    bool fd_armed;     /* ARMED was stored; whoever replaces it owes a write */
    bool crowded;      /* workers need every processor: no spinning */
    bool shared;       /* an inbox handle exists: other threads may post */
    uintptr_t own,
        own_last;  /* put by the owner itself, in order; see errand__inbox_put_own */
    unsigned cpus; /* processors that the owner may use; 0 = not asked yet */
    uint64_t spin_cycles;  /* how long the next park may spin; adapts */
    uint64_t last_traffic; /* cycle counter at the last park that found something */
    /* Atomic; own line: every producer's.
     * head.  Writers: producers (push), owner (take, park, arm, close).  Readers: the same.
     * Order: compare-exchange and exchange, acquire-release.  Pairs: inbox-put.
     * Why: the consumer must see the node's bytes. */
    _Alignas(ERRAND_LINE) _Atomic uintptr_t head;
    /* bell: what a parked consumer sleeps on; stepped by whoever replaced PARKED, or rings.
     * Writers: any thread, signal handlers.  Readers: the owner.  Order: release, acquire.
     * Pairs: bell.  Why: the owner must see what was rung for. */
    _Alignas(ERRAND_LINE) atomic_uint bell;
    /* interrupted: errand_interrupt was called.  Writers: any thread, signal handlers; the owner
     * clears it.  Readers: the owner.  Order: release, acquire; with head, where the descriptor is
     * armed, sequentially consistent.  Pairs: interrupted.  Why: what was done before the call is
     * seen by the drive that heeds it; and of a call and an arming at one time, one sees the other. */
    atomic_uint interrupted;
    /* test_clock: what a test clock reads.  Writers: the owner.  Readers: workers.
     * Order: release, acquire.  Pairs: test-clock.  Why: a body that a test lets go on after it
     * moved the clock sees it moved. */
    _Atomic uint64_t test_clock;
    /* foreign: 0, 1 while foreign_name is written, 2 once it is: the first thread that posted into a
     * seeded run.  Writers: posters.  Readers: the owner.  Order: acquire-release.
     * Pairs: foreign-name.  Why: the name must be there when it is read. */
    atomic_uint foreign;
    char foreign_name[16];
    /* refs: biased count, see block.c.  Writers, Readers: any thread that holds one.
     * Order: acquire-release on the way down.  Pairs: block-refs.  Why: the last one unmaps what
     * all others wrote. */
    _Atomic int64_t refs;
    /* undeliverable, returned_late, messages_lost, leaked: plain counts of rare events.
     * Writers: any worker.  Readers: snapshots.  Order: relaxed.  Pairs: none.  Why: nothing hangs
     * on them. */
    _Atomic uint64_t undeliverable, returned_late, messages_lost, leaked;
    /* failure_free: {tag : 32 | index : 32} of the first free failure, a stack with a tag
     * against ABA.  Writers, Readers: any thread.  Order: acquire-release.  Pairs: failure-pool.
     * Why: whoever takes a block must see its link. */
    _Atomic uint64_t failure_free;
} errand__block;

/* NULL = no memory.  refs = ERRAND__REFS_BIAS. */
/* Now, on the clock of the block's runtime; not in seeded orders. */
static inline uint64_t
errand__block_now(const errand__block *block)
{
    return block->test_time
               ? atomic_load_explicit(&block->test_clock,
                                      memory_order_acquire) /* Pairs: test-clock */
               : errand__clock_now();
}

errand__block *errand__block_create(uint64_t runtime_id, uint32_t operations_max,
                                    uint32_t messages);
#define ERRAND__REFS_BIAS (INT64_C(1) << 48)
/* Makes sure that the lines for labels are there (errand__record_label).  Owner.  False = no memory. */
bool errand__block_labels(errand__block *block);
void errand__block_hold(errand__block *block);
void errand__block_let(errand__block *block); /* the last one unmaps */
/* Called by the owner after close: outstanding completions will each be put (refused) later. */
void errand__block_close_account(errand__block *block, uint64_t outstanding);

/* What a thread that puts much keeps: see the notes on hints in inbox.c. */
typedef struct errand__putter {
    bool owes;
    unsigned at;
    const void *recent[8]; /* what it put last */
} errand__putter;

/* Has it been closed?  Any thread. */
static inline bool
errand__inbox_closed(const errand__block *block)
{
    return atomic_load_explicit(&block->head, memory_order_acquire) ==
           ERRAND__INBOX_CLOSED; /* Pairs: inbox-put */
}
/* put: push the node; wakes what has to be woken.  False: the inbox is closed and the node is
 * still the caller's.  Any thread.  Never blocks (a futex wake or an 8-byte write at most). */
/* putter: NULL = wake at once; else the worker's own: owes is set to true instead of waking a
 * dozing consumer: it rings soon (errand__inbox_ring). */
bool errand__inbox_put(errand__block *block, void *object, unsigned tag,
                       errand__putter *putter);
/* put_own: the same for the owner, who needs no waking: while the list is empty its nodes go to a
 * chain beside it, without a locked operation and in order for the take, which begins with them.
 * Whatever the list holds then came later. */
bool errand__inbox_put_own(errand__block *block, void *object, unsigned tag);
/* take: the whole chain in arrival order, linked through the nodes; 0 = nothing.  *out_last: its
 * newest node.  Owner. */
uintptr_t errand__inbox_take(errand__block *block, uintptr_t *out_last);
static inline bool
errand__inbox_empty(const errand__block *block) /* owner */
{
    return block->own == 0 && atomic_load_explicit(&block->head, memory_order_acquire) <=
                                  ERRAND__INBOX_SPECIAL; /* Pairs: inbox-put */
}
/* What a parked consumer waits for beside the list: words that other processes write. */
#define ERRAND__WATCH_NS UINT64_C(100000000) /* no sleep on such words is longer */
enum { ERRAND__WATCH_MAX = 127 };
typedef struct errand__watched {
    /* word: it wakes when this is not as expected.  sleepers: how many sleep on it: whoever writes it
     * wakes them.  wakes: stepped at each wake that came from there.
     * Writers: the other process (word); who sleeps (the other two).  Readers: both.
     * Order: seq_cst; wakes relaxed.  Pairs: none here: see whose words they are.
     * Why: of a word that is written and a sleeper that says so one sees the other. */
    atomic_uint *word, *sleepers, *wakes;
    unsigned expected;
} errand__watched;
typedef struct errand__watch {
    unsigned count;
    bool spins; /* one of them may be written soon, by another processor */
    errand__watched words[ERRAND__WATCH_MAX];
} errand__watch;
/* One sleeper less, unless there is none. */
void errand__sleepers_leave(atomic_uint *sleepers);
/* park: sleep until something is put or rung, or the timeout passed.  Returns at once if anything
 * is there.  Spins first if that paid lately and a processor is free; then dozes; then sleeps.
 * watch: NULL = nothing; returns too when such a word changes, and after WATCH_NS. */
void errand__inbox_park(errand__block *block, uint64_t timeout_ns, errand__watch *watch);
/* Arms the descriptor if the list is empty; reads it empty.  Owner. */
void errand__inbox_arm(errand__block *block);
/* Makes the descriptor readable: something is buffered that is not in the list.  Owner. */
void errand__inbox_signal(errand__block *block);
errand_status errand__inbox_open_fd(errand__block *block);
/* watch: the owner is about to sleep on the descriptor (and others); false: something is there.
 * unwatch: it woke; *out_was_armed is for it.  disarm: the owner looks by itself now.  Owner. */
bool errand__inbox_watch(errand__block *block, bool *out_was_armed);
void errand__inbox_unwatch(errand__block *block, bool was_armed);
void errand__inbox_disarm(errand__block *block);
/* close: from now on puts are refused; returns what was there, in arrival order.  Owner. */
uintptr_t errand__inbox_close(errand__block *block);
/* wake a parked consumer with no node (interrupt); async-signal-safe. */
void errand__inbox_ring(errand__block *block);
/* Where the next link of a node is. */
uintptr_t *errand__node_next(uintptr_t link);
static inline void *
errand__node_pointer(uintptr_t link)
{
    return (void *)(link & ~(uintptr_t)ERRAND__NODE_TAGS);
}
static inline unsigned
errand__node_tag(uintptr_t link)
{
    return (unsigned)(link & ERRAND__NODE_TAGS);
}

/* The message pool.  NULL = none is free (messages_lost is counted by the caller). */
errand__failure *errand__failure_take(errand__block *block);
void errand__failure_give(errand__block *block, errand__failure *failure);
#endif
