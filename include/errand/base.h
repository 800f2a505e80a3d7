/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_BASE_H
#define ERRAND_BASE_H
/* base: what every errand header needs: version, calling words, the two planes of
 * answers.
 *
 * A *status* (errand_status) is about a call: anything but ERRAND_OK means that the call
 * changed nothing it was given.  An *outcome* (errand_outcome, errand_code) is about an
 * operation and arrives exactly once, with its completion.  No function uses both for one
 * event. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version is written here and nowhere else; the build reads it from these lines. */
#define ERRAND_VERSION_MAJOR 0
#define ERRAND_VERSION_MINOR 1
#define ERRAND_VERSION_PATCH 0

#if defined(__cplusplus)
#define ERRAND_BEGIN extern "C" {
#define ERRAND_END   }
#else
#define ERRAND_BEGIN
#define ERRAND_END
#endif

#if defined(__GNUC__)
#define ERRAND_API          __attribute__((visibility("default")))
#define ERRAND_MUST_USE     __attribute__((warn_unused_result))
#define ERRAND_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define ERRAND_NORETURN     __attribute__((noreturn))
#else
#define ERRAND_API
#define ERRAND_MUST_USE
#define ERRAND_PRINTF(f, a)
#define ERRAND_NORETURN
#endif

ERRAND_BEGIN

/* Statuses: X(name, number, sentence).  Numbers are never reused.  Each sentence names
 * the cause and the mend. */
#define ERRAND_STATUS_TABLE(X)                                                           \
    X(OK, 0, "the call did what it says")                                                \
    X(ENOMEM, 1, "memory ran out; free some and call again, nothing was changed")        \
    X(EINVAL, 2, "an argument is missing or out of range; see the call's documentation") \
    X(ETHREAD, 3, "only the runtime's own thread may do this; post a command instead")   \
    X(EFOREIGN, 4, "the identity or token belongs to another runtime; use it there")     \
    X(ESPENT, 5, "the token or identity was used already; prepare or issue a new one")   \
    X(EKIND, 6,                                                                          \
      "the prepared operation and the identity differ in kind; issue one of its kind")   \
    X(EFULL, 7,                                                                          \
      "a bound is reached (owed_max, operations_max, held_max); drain first or "         \
      "raise it")                                                                        \
    X(ECLOSED, 8,                                                                        \
      "the runtime, lease or executor is shut or being shut; begin nothing new there")   \
    X(EDUPLICATE, 9,                                                                     \
      "this runtime is attached to this executor already; use that lease")               \
    X(EBUSY, 10,                                                                         \
      "a drain or drive of this runtime is in progress; call when it returned")          \
    X(EFORKED, 11,                                                                       \
      "this process is a fork of the one that made the object; make a new one")          \
    X(EEXHAUSTED, 12, "the counter issued its largest number; use a new runtime")        \
    X(ENOTHREAD, 13,                                                                     \
      "no worker thread could be made; raise the limit, then submit again")              \
    X(EDEADLOCK, 14,                                                                     \
      "a job may not wait for an errand; hand on work with errand_job_follow")           \
    X(EBOUND, 15, "the job is beyond its declared amount of work; return soon")          \
    X(EMISUSE, 16,                                                                       \
      "the call does not fit the object's state; see the call's documentation")          \
    X(EUNKNOWN, 17, "no live operation or task has this identity; it may have ended")    \
    X(ECANCELLED, 18, "it was cancelled before; a task should clean up and return")      \
    X(ETIMEOUT, 19, "the deadline passed first; try again or give up")                   \
    X(ESYSTEM, 20, "the operating system refused; see the errno of the same thread")     \
    X(EUNSUPPORTED, 21,                                                                  \
      "this executor, build or order cannot do it; see the call's documentation")        \
    X(EDECODE, 22,                                                                       \
      "the payload has another type, was taken, or there is none; see the message")      \
    X(EGONE, 23, "the inbox is closed; nobody will hear of it")                          \
    X(EREPRODUCE, 24,                                                                    \
      "a seeded runtime refuses other threads' input, a replay what its log lacks")      \
    X(EEXTERNAL, 25,                                                                     \
      "something real went wrong that virtual time cannot express; see the stall text")  \
    X(ETAINTED, 26,                                                                      \
      "a fault may have damaged this process; restart it, or set ERRAND_FAULTS_GO_ON")   \
    X(EBREAKER, 27,                                                                      \
      "too many of the pool's jobs faulted or panicked of late; submit again later")

typedef enum errand_status {
#define ERRAND_X(name, number, sentence) ERRAND_##name = number,
    ERRAND_STATUS_TABLE(ERRAND_X)
#undef ERRAND_X
} errand_status;

/* Outcomes of an operation, as its completion says. */
typedef enum errand_outcome {
    ERRAND_COMPLETED = 1, /* the job returned its result */
    ERRAND_FAILED = 2,    /* the job, or the library for it, failed: see the code */
    ERRAND_CANCELLED = 3, /* the body never ran */
    ERRAND_PANICKED = 4,  /* the body panicked or ended its thread */
    ERRAND_CRASHED = 5    /* a fault was caught, or a worker process died */
} errand_outcome;

/* Failure codes of completions, one table for all tiers (O29): X(name, number,
 * sentence), which begin at 0 and leave no gap. */
#define ERRAND_CODE_TABLE(X)                                                             \
    X(NONE, 0, "no failure")                                                             \
    X(CANCELLED, 1, "cancelled before its body ran")                                     \
    X(DEADLINE, 2, "its deadline passed")                                                \
    X(BOUND, 3, "it did more work than it declared")                                     \
    X(PANIC, 4, "its body panicked")                                                     \
    X(CRASHED, 5, "a fault ended it")                                                    \
    X(POLICY, 6, "its policy forbids a call that it made")                               \
    X(MEMORY, 7, "it used more memory than allowed, or memory ran out")                  \
    X(CPU, 8, "it used more processor time than allowed")                                \
    X(OUTPUT, 9, "it wrote more output than allowed")                                    \
    X(EXITED, 10, "its process exited")                                                  \
    X(KILLED, 11, "its process was killed")                                              \
    X(WORKER_LOST, 12, "its worker was lost and could not be replaced")                  \
    X(PROTOCOL, 13, "its worker broke the protocol")                                     \
    X(SPAWN, 14, "its process could not be started")                                     \
    X(DECODE, 15, "its payload could not be decoded")                                    \
    X(JOB, 16, "the job returned a code of its own")

typedef enum errand_code {
#define ERRAND_X(name, number, sentence) ERRAND_CODE_##name = number,
    ERRAND_CODE_TABLE(ERRAND_X)
#undef ERRAND_X
} errand_code;
enum { ERRAND_CODES = 17 }; /* how many there are */

/* With -fshort-enums these would shrink and break the layout of completions. */
#if defined(__cplusplus)
static_assert(sizeof(errand_status) == 4, "errand needs enums of four bytes");
#else
_Static_assert(sizeof(errand_status) == 4, "errand needs enums of four bytes");
#endif

/* errand_status_name: the status's name without its prefix, for example "ESPENT".
 * errand_status_text: one sentence with cause and mend.  Unknown: "unknown".
 * errand_code_name, errand_code_text: the same for a completion's failure code.
 * errand_outcome_name: "completed", "failed", "cancelled", "panicked", "crashed".
 *
 * Thread: [any], also in a forked child.  Gives: a string that lives for ever. */
ERRAND_API const char *errand_status_name(errand_status status);
ERRAND_API const char *errand_status_text(errand_status status);
ERRAND_API const char *errand_code_name(errand_code code);
ERRAND_API const char *errand_code_text(errand_code code);
ERRAND_API const char *errand_outcome_name(errand_outcome outcome);

/* errand_version: "major.minor.patch" of the library that is loaded.   Thread: [any]. */
ERRAND_API const char *errand_version(void);

/* An allocator of the host's, for one runtime (O58).  It is called only on the runtime's
 * thread, never while a lock is held, never after errand_runtime_shutdown returned, and
 * never for the block of records and inbox, which may outlive the runtime.
 * alloc answers NULL when memory runs out.  size is given back to free. */
typedef struct errand_allocator {
    void *(*alloc)(void *arg, size_t size);
    void (*free)(void *arg, void *block, size_t size);
    void *arg;
} errand_allocator;

/* errand_misuse_hook: have fn called whenever a call answers a status because the caller
 * misused it (O80): text names the function, the cause, and the mend unless the cause
 * says it: "errand_attach: owed_max must be below 2^24".  NULL takes it away.
 * Thread: [any]; fn runs on the thread that made the call, with no lock held. */
typedef void errand_misuse_fn(void *arg, errand_status status, const char *text);
ERRAND_API void errand_misuse_hook(errand_misuse_fn *fn, void *arg);

/* errand_features: what this build can do, as one line of words, for example
 * "0.1.0 jemalloc=no sanitizer=none arenas=lists": which allocator serves
 * errand_job_alloc (O63), and which parts are compiled in.   Thread: [any]. */
ERRAND_API const char *errand_features(void);

ERRAND_END
#endif
