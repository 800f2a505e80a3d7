/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_CHOICE_H
#define ERRAND_CHOICE_H
/* choice: every decision of a seeded run goes through one place, where a seed, a tape, a
 * fuzzer's bytes or an enumerator makes it; and the policies by which ready items are
 * chosen.  Conventions: errand.h.  Tapes and enumerators belong to no runtime: [any], one
 * thread at a time.  All functions of a runtime or task are [owner]. */
#include "errand/task.h"
ERRAND_BEGIN

/* ---- decisions --------------------------------------------------------------------- */

/* Where a decision is made.  Numbers and names are part of tapes and never reused.  An
 * item is a task or continuation that is ready; its key is its task's, or its operation's.
 * Whatever the site, 0 is the plainest value: a run whose choices are all 0 takes every
 * operation's estimate for its latency and runs what is ready first in, first out. */
typedef enum errand_site {
    ERRAND_SITE_LATENCY = 1,   /* due of the operation key; n = 2^32; 0 = its estimate */
    ERRAND_SITE_BEGIN = 2,     /* its begin, a fraction of the latency; n = 2^32 */
    ERRAND_SITE_TIE = 3,       /* its place among equal dues; n = 2^32 */
    ERRAND_SITE_FATE = 4,      /* for faults; n = 2^64 */
    ERRAND_SITE_PLACE = 5,     /* shuffle: of item key at its visit ordinal; n = 2^32; a
                                  * pass is sorted by it, equal ones as they came */
    ERRAND_SITE_PICK = 6,      /* ordinal = picks before; n = items ready; 0 = oldest */
    ERRAND_SITE_PRIORITY = 7,  /* pct: of item key; n = 2^32; the smallest goes first */
    ERRAND_SITE_CHANGE = 8,    /* pct: pick at which the first in line becomes the last;
                                  * key = 1 .. depth - 1; n = steps + 1; 0 = never */
    ERRAND_SITE_DELAY = 9,     /* delay: pick at which the oldest is passed over; key =
                                  * 1 .. depth; n = steps + 1; 0 = never */
    ERRAND_SITE_STARVE = 10,   /* starve: key = window 1 .. depth: ordinal 0 its first
                                  * pick (n = steps + 1, 0 = never), 1 its length (n = steps /
                                  * 4 + 2).  key = an item's: ordinal 1 + window; n = 2; 1 =
                                  * it starves then */
    ERRAND_SITE_WORKLOAD = 11, /* key = the workload's name's; ordinal = item; n = 2; 0 =
                                  * keep, 1 = leave out; only tapes ever leave out */
    ERRAND_SITE_APPLICATION = 12 /* a task's own draws; key = the task's */
} errand_site;
enum { ERRAND_SITES = 12 };
/* "latency", "place" ...; "unknown".   Thread: [any]. */
ERRAND_API const char *errand_site_name(errand_site site);

/* One decision: value is one of 0 .. n - 1; n = 0 means 2^64.  n = 1 is no decision:
 * nothing is asked and nothing is kept. */
typedef struct errand_choice {
    errand_site site;
    uint64_t key, ordinal, n, value;
} errand_choice;

/* ---- tapes ------------------------------------------------------------------------- */

/* What was chosen: found by (site, key, ordinal), listed in the order first put. */
typedef struct errand_tape errand_tape;
/* Thread: [any].   Errors: ENOMEM.   abandon is NULL-safe. */
ERRAND_API ERRAND_MUST_USE errand_status errand_tape_create(errand_tape **out_tape);
ERRAND_API void errand_tape_abandon(errand_tape **take_tape);
/* errand_tape_put: enter a choice, in the place of an equal (site, key, ordinal).
 * errand_tape_remove: take the choice of that site, key and ordinal out.
 * errand_tape_find: read its n and value.
 * Thread: [any].   Errors: EINVAL (unknown site, n = 1, a value that is not below n) ·
 *   ENOMEM (put) · EUNKNOWN (remove, find). */
ERRAND_API ERRAND_MUST_USE errand_status
errand_tape_put(errand_tape *tape, const errand_choice *choice);
ERRAND_API ERRAND_MUST_USE errand_status
errand_tape_remove(errand_tape *tape, errand_site site, uint64_t key, uint64_t ordinal);
ERRAND_API ERRAND_MUST_USE errand_status errand_tape_find(
    const errand_tape *tape, errand_site site, uint64_t key, uint64_t ordinal,
    errand_choice *out_choice);
/* errand_tape_count: how many choices there are.
 * errand_tape_at: the one with this index; indices hold until the next remove.  false =
 *   there are not so many.
 * errand_tape_unused: the index-th of those that no run has asked for since
 *   errand_tape_rewind; errand_tape_changed: of those that were asked for with another n,
 *   and answered modulo that.  Both step through the whole tape: a report's, not a loop's.
 * Thread: [any]. */
ERRAND_API size_t errand_tape_count(const errand_tape *tape);
ERRAND_API bool
errand_tape_at(errand_tape *tape, size_t index, errand_choice *out_choice);
ERRAND_API bool
errand_tape_unused(errand_tape *tape, size_t index, errand_choice *out_choice);
ERRAND_API bool
errand_tape_changed(errand_tape *tape, size_t index, errand_choice *out_choice);
ERRAND_API void errand_tape_rewind(errand_tape *tape);

/* The text form, to be read, edited and kept: a first line "errand tape 1", then a line
 * per choice: site's name, key in hexadecimal digits, ordinal, n, value.  Blank lines and
 * lines that begin with # do not count.
 * errand_tape_print: like snprintf: returns the length that it would need; NULL and 0
 *   ask for it.
 * errand_tape_parse: size bytes of text.  A bad line is named in message, with its number,
 *   and nothing is made.  message may be NULL with room 0.
 * errand_tape_write, errand_tape_read: the same for a file.
 * Thread: [any].   Errors: EINVAL (a bad line) · ENOMEM (write: also a tape that lost
 *   choices because memory ran out while it recorded) · ESYSTEM. */
ERRAND_API size_t errand_tape_print(errand_tape *tape, char *out, size_t size);
ERRAND_API ERRAND_MUST_USE errand_status errand_tape_parse(
    const char *text, size_t size, errand_tape **out_tape, char *message, size_t room);
ERRAND_API ERRAND_MUST_USE errand_status
errand_tape_write(errand_tape *tape, const char *path);
ERRAND_API ERRAND_MUST_USE errand_status
errand_tape_read(const char *path, errand_tape **out_tape, char *message, size_t room);

/* ---- enumerators ------------------------------------------------------------------- */

/* All runs of a small program, one after the other, depth first: the first run takes value
 * 0 everywhere, and each next one differs from it at the last choice that has a value
 * left.  A run is a new runtime with this enumerator in its config. */
typedef struct errand_enumerator errand_enumerator;
typedef struct errand_enumerator_config {
    uint32_t struct_size;
    uint32_t width; /* values tried per choice, spread over 0 .. n - 1; 0 = 8 */
    uint32_t sites; /* 1 << site of those that are enumerated, the others take 0; 0 =
                     * PLACE, PICK and APPLICATION */
    uint32_t
        depth;     /* choices of a run that are enumerated, later ones take 0; 0 = 4096 */
    uint64_t runs; /* at most so many; 0 = no limit */
} errand_enumerator_config;
/* errand_enumerator_create: config NULL = the defaults.
 * errand_enumerator_next: call it before each run, the first too.  false: that was all, or
 *   the limit of runs.
 * errand_enumerator_runs: how many next has allowed.
 * errand_enumerator_complete: every run was made, none was cut by width or depth, and each
 *   made its choices like the run that it came from.
 * Thread: [any].   Errors: ENOMEM · EINVAL.   abandon is NULL-safe. */
ERRAND_API ERRAND_MUST_USE errand_status errand_enumerator_create(
    const errand_enumerator_config *config, errand_enumerator **out_enumerator);
ERRAND_API void errand_enumerator_abandon(errand_enumerator **take_enumerator);
ERRAND_API bool errand_enumerator_next(errand_enumerator *enumerator);
ERRAND_API uint64_t errand_enumerator_runs(const errand_enumerator *enumerator);
ERRAND_API bool errand_enumerator_complete(const errand_enumerator *enumerator);

/* ---- a run's choices --------------------------------------------------------------- */

typedef enum errand_provider {
    ERRAND_PROVIDER_SEED = 0,  /* each value a function of (seed, site, key, ordinal) */
    ERRAND_PROVIDER_TAPE = 1,  /* held_tape; what it lacks is 0 */
    ERRAND_PROVIDER_BYTES = 2, /* a fuzzer's: the next byte for n up to 2^8, the next two
                                   * up to 2^16, four up to 2^32, else eight; modulo n;
                                   * behind the last byte all is 0 */
    ERRAND_PROVIDER_ENUMERATE = 3 /* held_enumerator */
} errand_provider;

/* What is ready is run in passes by the fair policies: a pass takes all that is ready at
 * its begin, and what becomes ready meanwhile waits for the next one.  The others have no
 * passes: each pick is among all that is ready then, and an instant has as many picks as
 * items were ready at its begin, so virtual time goes on whatever they do.  They walk
 * through what is ready for each pick, and give no verdict on liveness; but from the pick
 * number steps on pct, delay and starve go on first in, first out. */
typedef enum errand_policy {
    ERRAND_POLICY_SHUFFLE = 0, /* fair: each pass is permuted */
    ERRAND_POLICY_FIFO = 1,    /* fair: each pass as it came */
    ERRAND_POLICY_PICK = 2,    /* any that is ready */
    ERRAND_POLICY_PCT = 3, /* drawn priorities with depth - 1 changes: finds a bug that
                                * needs depth orderings in one of items * steps^(depth - 1)
                                * runs at the least */
    ERRAND_POLICY_DELAY =
        4, /* first in, first out, but depth times the next one instead */
    ERRAND_POLICY_STARVE = 5 /* pick, with depth windows in which half the items starve */
} errand_policy;
enum { ERRAND_POLICIES = 6, ERRAND_DEPTH_MAX = 32 };

typedef struct errand_choices {
    uint32_t struct_size;
    errand_provider provider;
    errand_policy policy;
    uint32_t depth; /* of pct, delay, starve; at most ERRAND_DEPTH_MAX; 0 = 3 */
    uint64_t
        steps; /* picks that a run has: errand_runtime_picks of one before; 0 = 1000 */
    errand_tape *held_tape;
    bool seed_missing;        /* TAPE: what it lacks comes from the seed, not 0 */
    errand_tape *held_record; /* NULL, or another tape: every choice is put there */
    const void *held_bytes;
    size_t bytes_size;
    errand_enumerator *held_enumerator;
} errand_choices;
#define ERRAND_CHOICES_INIT                                                              \
    {                                                                                    \
        sizeof(errand_choices), ERRAND_PROVIDER_SEED, ERRAND_POLICY_SHUFFLE, 0, 0, NULL, \
            false, NULL, NULL, 0, NULL                                                   \
    }

/* errand_choices_portfolio: policy and its parameters as the seed says, for explorers that
 *   go through seeds; the provider and its fields stay as they are.
 * errand_choices_parse: policy, depth and steps from text: shuffle, fifo, pick,
 *   pct[:DEPTH[:STEPS]], delay.., starve.., portfolio[:STEPS].  steps 0 = those of the
 *   struct.  What is wrong is said in message, which may be NULL with room 0.
 * errand_choices_print: the text of policy, depth and steps; like snprintf.
 * Thread: [any].   Errors: EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_choices_portfolio(errand_choices *choices, uint64_t seed, uint64_t steps);
ERRAND_API ERRAND_MUST_USE errand_status errand_choices_parse(
    errand_choices *choices, const char *text, uint64_t seed, char *message, size_t room);
ERRAND_API size_t
errand_choices_print(const errand_choices *choices, char *out, size_t size);

/* errand_runtime_picks: how many visits were begun so far, in any order; 0 for NULL.
 * errand_workload_keeps: does the item ordinal of the workload name stay in this run?
 *   true, unless a tape leaves it out.  Make all items first and ask then: so what makes
 *   them draws the same with and without the others. */
ERRAND_API uint64_t errand_runtime_picks(const errand_runtime *runtime);
ERRAND_API bool
errand_workload_keeps(errand_runtime *runtime, const char *name, uint64_t ordinal);
/* Draws of the task's own stream, like errand_task_random, which is the one with n = 2^64.
 * errand_task_choose: one of 0 .. n - 1, each as likely; n = 0 means 2^64; 1 draws nothing.
 * errand_task_chance: true in part of whole cases; none and all of them draw nothing.
 * errand_task_random32: 32 bits.   errand_task_fill: size bytes; none draw nothing. */
ERRAND_API uint64_t errand_task_choose(errand_task *task, uint64_t n);
ERRAND_API bool errand_task_chance(errand_task *task, uint64_t part, uint64_t whole);
ERRAND_API uint32_t errand_task_random32(errand_task *task);
ERRAND_API void errand_task_fill(errand_task *task, void *out, size_t size);

ERRAND_END
#endif
