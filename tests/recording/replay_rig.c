/* SPDX-License-Identifier: MIT */
/* Design notes: see replay_rig.h. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "replay_rig.h"

/* ---- boxes ------------------------------------------------------------------------------------ */

typedef struct box {
    char text[48];
} box;

typedef struct box_state {
    replay_rig *rig;
    char text[32];
} box_state;

static void
drop_box(void *data, size_t size)
{
    (void)size;
    free(data);
}

static const errand_payload_type box_type = {"box", drop_box};

static bool
encode_box(const void *data, size_t size, errand_sink *sink)
{
    const box *self = data;

    (void)size;
    errand_sink_put(sink, self->text, strlen(self->text));
    return true;
}

static errand_status
decode_box(const void *bytes, size_t size, errand_payload *out_payload)
{
    box *made = size < sizeof made->text ? calloc(1, sizeof *made) : NULL;

    if (made == NULL)
        return size < sizeof made->text ? ERRAND_ENOMEM : ERRAND_EDECODE;
    memcpy(made->text, bytes, size);
    *out_payload = (errand_payload){&box_type, made, sizeof *made};
    return ERRAND_OK;
}

static errand_status
decode_nothing(const void *bytes, size_t size, errand_payload *out_payload)
{
    (void)bytes;
    (void)size;
    (void)out_payload;
    return ERRAND_EDECODE;
}

static const errand_payload_codec box_codec = {sizeof box_codec, encode_box, decode_box};
static const errand_payload_codec bad_codec = {sizeof bad_codec, encode_box,
                                               decode_nothing};

static int32_t
fill_box(errand_job *job, void *state, errand_payload *out_payload)
{
    static atomic_int number; /* no two jobs of the process answer the same */
    box_state *self = state;
    int mine = atomic_fetch_add_explicit(&number, 1, memory_order_relaxed);
    box *made;

    atomic_fetch_add_explicit(&self->rig->ran, 1, memory_order_relaxed);
    if (self->text[0] == '?') {
        errand_job_fail(job, 2, 0, "open", "there is no %s %d", "such thing",
                        self->rig->same_results ? 0 : mine);
        return 7;
    }
    if (self->text[0] == '~') /* until it is cancelled */
        while (!errand_job_cancelled(job))
            ;
    if (self->text[0] == '!') /* whatever it is asked */
        while (atomic_load_explicit(&self->rig->let_go, memory_order_relaxed) == 0)
            ;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return 1;
    snprintf(made->text, sizeof made->text, "%s %d", self->text,
             self->rig->same_results ? 0 : mine);
    *out_payload = (errand_payload){&box_type, made, sizeof *made};
    return 0;
}

static const errand_job_type box_job = {
    .struct_size = sizeof box_job, .name = "fill a box", .run = fill_box, .drop = free};

errand_spec
rig_spec(replay_rig *rig, const char *text)
{
    errand_spec spec = ERRAND_SPEC_INIT;
    box_state *state = calloc(1, sizeof *state);

    assert_non_null(state);
    state->rig = rig;
    snprintf(state->text, sizeof state->text, "%s", text);
    spec.kind = 9;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &box_job;
    spec.held_name = text;
    spec.state = state;
    return spec;
}

errand_status
rig_start(replay_rig *rig, const char *text)
{
    errand_spec spec = rig_spec(rig, text);
    errand_status status = errand_start(rig->in->lease, &spec, NULL, NULL);

    if (status != ERRAND_OK)
        free(spec.state);
    return status;
}

errand_task_answer
rig_await(replay_rig *rig, errand_task *task, const char *text)
{
    errand_spec spec = rig_spec(rig, text);
    errand_status status =
        errand_task_await(task, rig->in->lease, &spec, UINT64_MAX, NULL);

    if (status == ERRAND_OK)
        return ERRAND_TASK_WAIT;
    assert_true(rig->replays); /* refused: it has left the log, or the log says so */
    free(spec.state);
    return ERRAND_TASK_FAILED;
}

/* ---- what is said ------------------------------------------------------------------------------ */

void
rig_say(replay_rig *rig, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(rig->said + rig->length, sizeof rig->said - rig->length, format,
                       arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length < sizeof rig->said - rig->length);
    rig->length += (size_t)length;
    if (rig->sync && rig->recorder != NULL && !rig->replays)
        assert_int_equal(errand_recorder_sync(rig->recorder), ERRAND_OK);
}

static void
say_completion(replay_rig *rig, errand_completion *completion)
{
    void *data = NULL;

    if (completion->outcome == ERRAND_COMPLETED &&
        errand_completion_read(completion, &box_type, &data, NULL) != ERRAND_OK)
        assert_true(rig->replays); /* somebody made up the log */
    /* Its own end alone: what heeds may be written off, too, where its worker gets no processor. */
    if ((completion->flags & ERRAND_HELD) != 0 && strcmp(completion->operation, "!") == 0)
        atomic_store_explicit(&rig->let_go, 1, memory_order_relaxed);
    rig_say(rig, "'%s' %d %d %x %d %d '%s' '%s' %s at %llu..%llu;", completion->operation,
            completion->outcome, completion->code, completion->flags,
            completion->job_code, completion->sys_errno, completion->message,
            completion->system_call == NULL ? "" : completion->system_call,
            data == NULL ? "" : ((const box *)data)->text,
            (unsigned long long)completion->t_start_ns,
            (unsigned long long)completion->t_end_ns);
}

void
rig_say_completion(void *rig, errand_completion *completion)
{
    say_completion(rig, completion);
}

void
rig_say_news(replay_rig *rig, int number, const errand_task_news *news)
{
    rig_say(rig, "%d heard %d: ", number, news->why);
    if (news->completion != NULL)
        say_completion(rig, news->completion);
}

/* ---- runs ---------------------------------------------------------------------------------------- */

int
rig_setup(void **state)
{
    replay_rig *rig = calloc(1, sizeof *rig);
    int fd;

    if (rig == NULL || world_setup_inline((void **)&rig->in) != 0)
        return -1;
    world_end(rig->in);
    strcpy(rig->path, "/tmp/errand-replay-XXXXXX");
    fd = mkstemp(rig->path);
    assert_true(fd >= 0);
    close(fd);
    rig->seed = 5;
    *state = rig;
    return 0;
}

int
rig_teardown(void **state)
{
    replay_rig *rig = *state;
    void *world = rig->in;
    int status;

    world_end(rig->in);
    assert_int_equal(errand_replay_close(&rig->replay), ERRAND_OK);
    unlink(rig->path);
    status = world_teardown(&world);
    free(rig);
    return status;
}

static void
begin(replay_rig *rig, errand_runtime_config *config, errand_order order)
{
    errand_choices choices = ERRAND_CHOICES_INIT;

    config->struct_size = sizeof *config;
    config->seed = rig->seed;
    config->grace_ns = rig->grace_ns;
    config->on_completion = rig_say_completion;
    config->held_on_completion_arg = rig;
    if (rig->policy != NULL) {
        assert_int_equal(errand_choices_parse(&choices, rig->policy, 0, NULL, 0),
                         ERRAND_OK);
        config->choices = &choices;
    }
    if (rig->tape != NULL) {
        choices.provider = ERRAND_PROVIDER_TAPE;
        choices.held_tape = rig->tape;
        config->choices = &choices;
    }
    rig->length = 0;
    rig->said[0] = '\0';
    atomic_store_explicit(&rig->ran, 0, memory_order_relaxed);
    atomic_store_explicit(&rig->let_go, 0, memory_order_relaxed);
    rig->hooks = 0;
    world_begin(rig->in, config, rig->owed_max);
    if (order != ERRAND_ORDER_INLINE && !rig->manual)
        world_pool(rig->in, 2);
    if (!rig->no_codec)
        assert_int_equal(errand_record_codec(rig->in->runtime, &box_type, "box of text",
                                             rig->bad_codec ? &bad_codec : &box_codec),
                         ERRAND_OK);
}

void
rig_record(replay_rig *rig, errand_order order, errand_record_payloads payloads)
{
    errand_runtime_config config = {.order = order};
    const errand_recorder_config wanted = {
        .struct_size = sizeof wanted,
        .path = rig->path,
        .payloads = payloads,
        .build = RIG_BUILD,
        .build_text = "the rig",
        .config = RIG_CONFIG,
        .config_text = "no arguments",
        .redact = rig->redact,
    };

    rig->replays = false;
    assert_int_equal(errand_recorder_open(&wanted, &rig->recorder), ERRAND_OK);
    config.held_recorder = rig->recorder;
    begin(rig, &config, order);
}

void
rig_recorded(replay_rig *rig)
{
    rig->recorded_digest = errand_digest(rig->in->runtime);
    strcpy(rig->recorded, rig->said);
    world_end(rig->in);
    assert_int_equal(errand_recorder_close(&rig->recorder), ERRAND_OK);
}

errand_replay_config
rig_config(const replay_rig *rig)
{
    return (errand_replay_config){
        .struct_size = sizeof(errand_replay_config),
        .run_jobs = rig->run_jobs,
        .path = rig->path,
        .build = RIG_BUILD,
        .config = RIG_CONFIG,
    };
}

void
rig_replay(replay_rig *rig)
{
    errand_runtime_config config = {.order = ERRAND_ORDER_REPLAY};
    const errand_replay_config wanted = rig_config(rig);
    char text[300];

    assert_int_equal(errand_replay_close(&rig->replay), ERRAND_OK);
    if (errand_replay_open(&wanted, &rig->replay, text, sizeof text) != ERRAND_OK)
        fail_msg("%s", text);
    rig->replays = true;
    config.held_replay = rig->replay;
    begin(rig, &config, errand_replay_header_of(rig->replay)->order);
}

void
rig_replayed(replay_rig *rig)
{
    char text[1200] = "";
    errand_status status = errand_replay_status(rig->replay, text, sizeof text);

    if ((status == ERRAND_OK) != (text[0] == '\0'))
        fail_msg("status %d and text '%s'", status, text);
    rig->digest = errand_digest(rig->in->runtime);
    world_end(rig->in);
}

void
rig_tear(const replay_rig *rig)
{
    errand_log *log = NULL;
    errand_log_end end;
    errand_log_block block;

    assert_int_equal(errand_log_open(rig->path, &log, NULL, 0), ERRAND_OK);
    assert_int_equal(errand_log_end_read(log, &end), ERRAND_OK);
    assert_true(end.blocks > 3);
    assert_int_equal(errand_log_block_read(log, end.blocks / 2, &block), ERRAND_OK);
    errand_log_close(&log);
    assert_int_equal(truncate(rig->path, (off_t)(block.offset + block.size - 3)), 0);
}

/* ---- tasks ------------------------------------------------------------------------------------------ */

errand_task_id
rig_spawn(replay_rig *rig, errand_task *parent, const char *label, errand_task_fn *fn,
          replay_actor *actor)
{
    const errand_task_spec spec = {
        .struct_size = sizeof spec, .label = label, .fn = fn, .state = actor};
    errand_task_id id, above;

    if (parent != NULL)
        above = errand_task_self(parent);
    assert_int_equal(
        errand_spawn(rig->in->runtime, parent == NULL ? NULL : &above, &spec, &id),
        ERRAND_OK);
    return id;
}

errand_status
rig_run(replay_rig *rig, errand_task_fn *root)
{
    errand_task_id id = rig_spawn(rig, NULL, "root", root, &rig->root);

    return errand_run(rig->in->runtime, &id, UINT64_MAX);
}

/* ---- the actors ------------------------------------------------------------------------------------ */

/* Awaits a box, sleeps, awaits one that fails, and says all of it. */
static errand_task_answer
act(errand_task *task, void *state, const errand_task_news *news)
{
    replay_actor *self = state;
    replay_rig *rig = self->rig;

    switch (self->step++) {
    case 0:
        return rig_await(rig, task, "hello");
    case 1:
        rig_say_news(rig, self->number, news);
        assert_int_equal(
            errand_task_sleep(task, 1000 * (1 + errand_task_random(task) % 7)),
            ERRAND_OK);
        return ERRAND_TASK_WAIT;
    case 2:
        rig_say(rig, "%d woke at %llu;", self->number,
                (unsigned long long)errand_runtime_now(rig->in->runtime));
        if (rig->variant == RIG_LEAVES_OUT && self->number == 1)
            return ERRAND_TASK_DONE;
        return rig_await(rig, task,
                         rig->variant == RIG_OTHER && self->number == 1 ? "other" : "?");
    default:
        rig_say_news(rig, self->number, news);
        return ERRAND_TASK_DONE;
    }
}

/* Spawns them and waits for one after the other. */
static errand_task_answer
act_all(errand_task *task, void *state, const errand_task_news *news)
{
    static const char *const labels[RIG_ACTORS] = {"first", "second", "third"};
    replay_actor *self = state;
    replay_rig *rig = self->rig;

    (void)news;
    for (int i = 0; self->step == 0 && i < RIG_ACTORS; i++) {
        rig->actors[i] = (replay_actor){rig, i, 0};
        rig->ids[i] = rig_spawn(rig, task, labels[i], act, &rig->actors[i]);
    }
    if (self->step == RIG_ACTORS)
        return ERRAND_TASK_DONE;
    assert_int_equal(errand_task_join(task, &rig->ids[self->step++], 1, UINT64_MAX),
                     ERRAND_OK);
    return ERRAND_TASK_WAIT;
}

errand_status
rig_actors(replay_rig *rig)
{
    rig->root = (replay_actor){rig, 0, 0};
    return rig_run(rig, act_all);
}
