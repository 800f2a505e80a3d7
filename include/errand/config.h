/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_CONFIG_H
#define ERRAND_CONFIG_H
/* config: what errand_runtime_create is told: the order, what times cost, flags, bounds.
 * Conventions: errand.h, which includes this.  NULL, or a zeroed config with struct_size
 * set, is production: arrival order, coarse times, no recording. */
#include "errand/base.h"
ERRAND_BEGIN

/* Defined in errand.h, record.h, choice.h and checkpoint.h. */
struct errand_completion;
struct errand_recorder;
struct errand_replay;
struct errand_choices;
struct errand_checkpoint;

/* In which order completions are drained, and who runs the jobs.  Inline, paced and, of a
 * seeded run's log, replay are the seeded orders: time is virtual there, and everything a
 * program sees is a function of its seed. */
typedef enum errand_order {
    ERRAND_ORDER_ARRIVAL = 0, /* real workers; drained as it comes: production */
    ERRAND_ORDER_INLINE = 1,  /* one job at a time at its virtual due; seeded: tests */
    ERRAND_ORDER_PACED = 2,   /* the same with real workers, from virtual begin to due */
    ERRAND_ORDER_REPLAY = 3   /* a recorded run again: held_replay, errand/record.h */
} errand_order;

/* Where the times of a completion come from (t_submit_ns, t_start_ns, t_end_ns).
 * Coarse: clocks are read once per group of jobs and per millisecond of work: start and end
 * are off by at most 1 ms + 1/10^5; what a drain's handlers submit may share the time of one
 * of the last 16, jobs far below a microsecond one of the next three of their group. */
typedef enum errand_times {
    ERRAND_TIMES_COARSE = 0,
    ERRAND_TIMES_EXACT = 1, /* two clock reads per job */
    ERRAND_TIMES_NONE = 2   /* all three are 0 */
} errand_times;

/* errand_runtime_config.flags */
enum {
    /* Seeded orders: other threads' posts answer EREPRODUCE and do not mark the run. */
    ERRAND_RUNTIME_REFUSE_FOREIGN = 1,
    /* The clock moves only by errand_testing_clock; times are read from it, as if exact. */
    ERRAND_RUNTIME_TEST_CLOCK = 2,
    /* Roots fail by the first failure below them: errand/tree.h. */
    ERRAND_RUNTIME_PROPAGATE = 4
};

typedef struct errand_runtime_config {
    uint32_t struct_size;
    uint32_t operations_max; /* issued, not yet delivered; 0 = 65536; at most 2^24 - 1 */
    errand_order order;
    errand_times times;
    uint64_t seed;     /* seeded: decides everything; arrival: application draws only */
    uint64_t start_ns; /* seeded: what the clock reads first */
    uint64_t grace_ns; /* between a cancel and the abort; 0 = 1 s */
    const errand_allocator *held_allocator; /* NULL = the library's own */
    uint32_t messages; /* blocks of 256 bytes for failure messages; 0 = 256 */
    uint32_t held_max; /* operations whose body outlived them; 0 = 64 */
    uint32_t flags;
    uint32_t reserved_zero;
    /* An errand_completion_fn: the handler of drives and of a RUN shutdown; NULL = none.
     * A drain has its own. */
    void (*on_completion)(void *arg, struct errand_completion *completion);
    void *held_on_completion_arg;
    /* Every step is written to a log; NULL = none. */
    struct errand_recorder *held_recorder;
    struct errand_replay *held_replay;    /* ERRAND_ORDER_REPLAY only: what is replayed */
    const struct errand_choices *choices; /* who decides: errand/choice.h */
    /* Seeded: real time at a due before EEXTERNAL; 0 = 60 s.  Whoever has real limits of its own
     * (a sandbox's deadline_ns, 25 s) keeps them below it, to be heard of first. */
    uint64_t watchdog_ns;
    uint64_t deadline_ns; /* of every errand_run, on the runtime's clock; 0 = none */
    struct errand_checkpoint *held_checkpoint; /* go on there: errand/checkpoint.h */
    /* Seeded: how far time moves after a pass while tasks are ready: what a turn of theirs
     * costs.  0 = 1 ms; at most 1 h (EINVAL, as in arrival order).  A replay needs the same. */
    uint64_t cycle_ns;
} errand_runtime_config;

ERRAND_END
#endif
