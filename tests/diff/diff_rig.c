/* SPDX-License-Identifier: MIT */
/* Design notes: see diff_rig.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "diff_rig.h"

enum { BYTES = 16 };

void
diff_require(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    exit(3);
}

/* ---- operations: bytes, given back as they are ------------------------------------------------------- */

typedef struct bytes_state {
    unsigned char bytes[BYTES];
} bytes_state;

static void
drop_bytes(void *data, size_t size)
{
    (void)size;
    free(data);
}

static const errand_payload_type bytes_type = {"bytes", drop_bytes};

static bool
encode_bytes(const void *data, size_t size, errand_sink *sink)
{
    errand_sink_put(sink, data, size);
    return true;
}

static errand_status
decode_bytes(const void *bytes, size_t size, errand_payload *out_payload)
{
    (void)bytes;
    (void)size;
    (void)out_payload;
    return ERRAND_EDECODE;
}

static const errand_payload_codec bytes_codec = {sizeof bytes_codec, encode_bytes,
                                                 decode_bytes};

static int32_t
give_bytes(errand_job *job, void *state, errand_payload *out_payload)
{
    bytes_state *made = malloc(sizeof *made);

    (void)job;
    diff_require(made != NULL, "no memory");
    *made = *(bytes_state *)state;
    *out_payload = (errand_payload){&bytes_type, made, sizeof *made};
    return 0;
}

static const errand_job_type bytes_job = {
    .struct_size = sizeof bytes_job,
    .name = "bytes",
    .run = give_bytes,
    .drop = free,
};

static errand_spec
spec_of(const char *name, const void *bytes, size_t size)
{
    errand_spec spec = ERRAND_SPEC_INIT;
    bytes_state *state = calloc(1, sizeof *state);

    diff_require(state != NULL && size <= BYTES, "no memory");
    memcpy(state->bytes, bytes, size);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &bytes_job;
    spec.held_name = name;
    spec.state = state;
    return spec;
}

void
diff_start(diff_run *run, const char *name, const void *bytes, size_t size)
{
    errand_spec spec = spec_of(name, bytes, size);

    diff_require(errand_start(run->lease, &spec, NULL, NULL) == ERRAND_OK, "start");
}

/* ---- tasks ---------------------------------------------------------------------------------------------- */

typedef struct chatter {
    diff_run *run;
    unsigned round;
} chatter;

/* An operation, then a sleep of a drawn length, and again. */
static errand_task_answer
chat(errand_task *task, void *state, const errand_task_news *news)
{
    chatter *self = state;
    errand_status status;

    if (news->why == ERRAND_WHY_CANCELLED || self->round == DIFF_ROUNDS)
        return ERRAND_TASK_DONE;
    if (news->why == ERRAND_WHY_COMPLETION) {
        self->round++;
        status = errand_task_sleep(task, errand_task_random(task) % 3000000);
    } else {
        errand_spec spec = spec_of("chat", &self->round, sizeof self->round);

        status = errand_task_await(task, self->run->lease, &spec, UINT64_MAX, NULL);
    }
    diff_require(status == ERRAND_OK, "chat");
    return ERRAND_TASK_WAIT;
}

static errand_task_answer
suffer(errand_task *task, void *state, const errand_task_news *news)
{
    diff_run *run = state;
    bool waits = false;

    if (news->why == ERRAND_WHY_CANCELLED || run->round == DIFF_ROUNDS)
        return ERRAND_TASK_DONE;
    if (++run->round == DIFF_INJECTION)
        waits = diff_inject(run, task);
    if (!waits)
        diff_require(errand_task_sleep(task, 1000000) == ERRAND_OK, "victim");
    return ERRAND_TASK_WAIT;
}

static errand_task_answer
stay(errand_task *task, void *state, const errand_task_news *news)
{
    (void)state;
    if (news->why == ERRAND_WHY_CANCELLED)
        return ERRAND_TASK_DONE;
    diff_require(errand_task_park(task, UINT64_MAX) == ERRAND_OK, "park");
    return ERRAND_TASK_WAIT;
}

/* ---- the trace -------------------------------------------------------------------------------------------- */

static void
hear(void *arg, const errand_step *step)
{
    diff_run *run = arg;

    run->steps = step->step;
    if (run->watch == NULL || !run->watch(run, step))
        return;
    run->found = step->step;
    run->watch = NULL;
}

void
diff_next(diff_run *run)
{
    run->found = run->steps + 1;
}

void
diff_watch(diff_run *run, bool (*watch)(diff_run *run, const errand_step *step))
{
    run->watch = watch;
}

/* ---- the program ------------------------------------------------------------------------------------------ */

static errand_recorder *
begin(diff_run *run, const char *path, uint64_t seed)
{
    errand_recorder_config record = {
        .struct_size = sizeof record,
        .payloads = ERRAND_RECORD_PAYLOADS,
        .path = path,
        .build_text = "tests/diff",
    };
    errand_runtime_config config = {
        .struct_size = sizeof config,
        .order = ERRAND_ORDER_INLINE,
        .seed = seed,
    };
    errand_recorder *recorder = NULL;

    diff_require(errand_recorder_open(&record, &recorder) == ERRAND_OK, "recorder");
    config.held_recorder = recorder;
    diff_require(errand_runtime_create(&config, &run->runtime) == ERRAND_OK, "runtime");
    diff_require(errand_manual_create(NULL, &run->executor) == ERRAND_OK, "executor");
    diff_require(errand_attach(run->runtime, run->executor, 0, &run->lease) == ERRAND_OK,
                 "attach");
    diff_require(errand_trace(run->runtime, hear, run) == ERRAND_OK, "trace");
    diff_require(errand_record_codec(run->runtime, &bytes_type, "bytes", &bytes_codec) ==
                     ERRAND_OK,
                 "codec");
    return recorder;
}

static errand_task_id
spawn(diff_run *run, const errand_task_id *parent, const char *label, errand_task_fn *fn,
      void *state)
{
    errand_task_spec spec = {
        .struct_size = sizeof spec, .label = label, .fn = fn, .state = state};
    errand_task_id id;

    diff_require(errand_spawn(run->runtime, parent, &spec, &id) == ERRAND_OK, "spawn");
    return id;
}

int
main(int argc, char **argv)
{
    static chatter chatters[3];
    static diff_run run;
    errand_recorder *recorder;
    errand_task_id top, victim;

    diff_require(argc == 4, "usage: program LOG plain|injected SEED");
    run.injected = strcmp(argv[2], "injected") == 0;
    recorder = begin(&run, argv[1], strtoull(argv[3], NULL, 10));
    top = spawn(&run, NULL, "top", stay, &run);
    for (int i = 0; i < 3; i++) {
        chatters[i].run = &run;
        spawn(&run, &top, "chatter", chat, &chatters[i]);
    }
    run.parked = spawn(&run, &top, "parked", stay, &run);
    victim = spawn(&run, &top, "victim", suffer, &run);
    diff_require(errand_run(run.runtime, &victim, UINT64_MAX) == ERRAND_OK, "run");
    diff_require(errand_runtime_shutdown(&run.runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL) ==
                     ERRAND_OK,
                 "shutdown");
    errand_executor_abandon(&run.executor);
    diff_require(errand_recorder_close(&recorder) == ERRAND_OK, "close");
    diff_require(run.found != 0, "the injection did not come");
    printf("step %llu\n", (unsigned long long)run.found);
    return 0;
}
