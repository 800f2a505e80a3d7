/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_RECORDING_REPLAY_RIG_H
#define ERRAND_TESTS_RECORDING_REPLAY_RIG_H
/* replay_rig: one program, recorded and replayed.  What it says goes into a text; its jobs count
 * themselves, and what they answer has their number in it, so that no two runs of a job are alike. */
#include <stdatomic.h>
#include <string.h>
#include "errand/choice.h"
#include "errand/order.h"
#include "errand/record.h"
#include "world.h"

enum { RIG_BUILD = 71, RIG_CONFIG = 72, RIG_TEXT = 8192 };
typedef enum rig_variant { RIG_SAME = 0, RIG_OTHER = 1, RIG_LEAVES_OUT = 2 } rig_variant;

typedef struct replay_rig replay_rig;
typedef struct replay_actor {
    replay_rig *rig;
    int number, step;
} replay_actor;

struct replay_rig {
    test_world *in;
    char path[64];
    errand_recorder *recorder;
    errand_replay *replay;
    bool replays;
    errand_inbox *inbox;
    rig_variant variant;
    /* Of the next runtime. */
    const char *policy;
    errand_tape *tape; /* whose choices are made */
    uint64_t seed;
    uint32_t owed_max;
    uint64_t grace_ns;
    bool manual; /* arrival order: no pool, the program steps */
    bool run_jobs, same_results, no_codec, bad_codec, sync;
    bool (*redact)(void *arg, const char *operation, void *bytes, size_t size);
    /* Of the last run. */
    /* ran: jobs that were.  Writers: workers.  Readers: the test.  Order: relaxed.  Pairs: none.
     * Why: a count. */
    atomic_int ran;
    /* let_go: a body that heeds nothing may end.  Writers: the test.  Readers: workers.
     * Order: relaxed.  Pairs: none.  Why: a flag. */
    atomic_int let_go;
    int hooks; /* calls */
    char said[RIG_TEXT], recorded[RIG_TEXT];
    size_t length;
    uint64_t digest, recorded_digest;
    replay_actor root, actors[8];
    errand_task_id ids[8];
};

int rig_setup(void **state);
int rig_teardown(void **state);
/* Begins a runtime of this order that is recorded; recorded: ends it, the log is whole then. */
void rig_record(replay_rig *rig, errand_order order, errand_record_payloads payloads);
void rig_recorded(replay_rig *rig);
/* Begins one that replays; replayed: ends it, the replay stays open to be asked. */
void rig_replay(replay_rig *rig);
void rig_replayed(replay_rig *rig);
errand_replay_config rig_config(const replay_rig *rig);
void
rig_tear(const replay_rig *rig); /* cuts the log within the last block of its middle */

void rig_say(replay_rig *rig, const char *format, ...) ERRAND_PRINTF(2, 3);
void rig_say_news(replay_rig *rig, int number, const errand_task_news *news);
void rig_say_completion(void *rig, errand_completion *completion); /* a handler */
/* An operation whose job fills a box with the text; "?": it fails. */
errand_spec rig_spec(replay_rig *rig, const char *text);
errand_status rig_start(replay_rig *rig, const char *text);
/* WAIT, or, refused, FAILED. */
errand_task_answer rig_await(replay_rig *rig, errand_task *task, const char *text);
errand_task_id rig_spawn(replay_rig *rig, errand_task *parent, const char *label,
                         errand_task_fn *fn, replay_actor *actor);
errand_status rig_run(replay_rig *rig, errand_task_fn *root);
/* A program: so many tasks, each of which awaits a box, sleeps, and awaits an operation that fails. */
enum { RIG_ACTORS = 3 };
errand_status rig_actors(replay_rig *rig);
#endif
