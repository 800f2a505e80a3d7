/* SPDX-License-Identifier: MIT */
/* replay: a run does what a log has.
 *
 * Design notes.  A replay is the run's own order again, with two changes: what the world decided is
 * taken from the log's next step instead, and each step that the audit makes is compared with the
 * log's next step.  Seeded orders need little else: their machinery draws the same, and only results
 * come from the log.  In arrival order the log also says whose turn it is (replay_drive.c).
 *
 * There is one place in the log, which only moves forward.  So the first step that differs is where
 * the run left the log, and nothing behind it is looked at: the run ends (fails closed).  The time
 * of a step is compared in seeded orders only; in arrival order it is taken over from the log. */
#include <errno.h>
#include <string.h>
#include "runtime/replay/replay.h"

static void
say(char *out, size_t size, const char *text)
{
    if (out != NULL && size > 0)
        errand__text_format(out, size, "%s", text);
}

/* "'a script' (1f)" */
static void
print_identity(char *out, size_t size, const char *text, uint64_t number)
{
    if (text != NULL)
        errand__text_format(out, size, "'%.80s' (%016llx)", text,
                            (unsigned long long)number);
    else
        errand__text_format(out, size, "%016llx", (unsigned long long)number);
}

static errand_status
check_identity(const errand_replay_config *config, const errand_log_header *header,
               char *out_text, size_t size)
{
    const char *what = NULL;
    bool changed = false; /* what has the same name */
    char theirs[112], ours[112], text[320];

    if (strcmp(header->version, errand_version()) != 0) {
        what = "version of errand";
        errand__text_format(theirs, sizeof theirs, "%.80s", header->version);
        errand__text_format(ours, sizeof ours, "%s", errand_version());
    } else if (header->build != config->build) {
        what = "build";
        changed = config->build_text != NULL &&
                  strcmp(header->build_text, config->build_text) == 0;
        print_identity(theirs, sizeof theirs, header->build_text, header->build);
        print_identity(ours, sizeof ours, config->build_text, config->build);
    } else if (header->config != config->config) {
        what = "configuration";
        print_identity(theirs, sizeof theirs, header->config_text, header->config);
        print_identity(ours, sizeof ours, config->config_text, config->config);
    }
    if (what == NULL)
        return ERRAND_OK;
    errand__text_format(text, sizeof text,
                        "its %s is another one: it was recorded with %s, this is %s%s",
                        what, theirs, ours, changed ? ": its text has changed" : "");
    say(out_text, size, text);
    return ERRAND_EREPRODUCE;
}

static errand_status
open_log(errand_replay *replay, const errand_replay_config *config, char *out_text,
         size_t size)
{
    errand_status status = errand_log_open(config->path, &replay->log, out_text, size);
    const errand_log_header *header;

    if (status != ERRAND_OK)
        return status;
    header = errand_log_header_of(replay->log);
    status = check_identity(config, header, out_text, size);
    if (status != ERRAND_OK)
        return status;
    if ((unsigned)header->order > ERRAND_ORDER_PACED) {
        say(out_text, size, "it is of an order that is not known");
        return ERRAND_EINVAL;
    }
    if (config->run_jobs && header->order == ERRAND_ORDER_ARRIVAL) {
        say(out_text, size, "it is of arrival order, whose jobs cannot be run again");
        return ERRAND_EUNSUPPORTED;
    }
    return ERRAND_OK;
}

errand_status
errand_replay_open(const errand_replay_config *config, errand_replay **out_replay,
                   char *out_text, size_t size)
{
    errand_replay *replay;
    errand_status status;

    ERRAND_REQUIRE_ARG(config != NULL && out_replay != NULL, ERRAND_EINVAL,
                       "config and out_replay are needed");
    ERRAND_REQUIRE_ARG(config->struct_size == sizeof *config && config->path != NULL,
                       ERRAND_EINVAL, "config needs its struct_size and a path");
    say(out_text, size, "");
    replay = errand__mem_alloc(NULL, sizeof *replay);
    if (replay == NULL)
        return ERRAND_ENOMEM;
    *replay = (errand_replay){.run_jobs = config->run_jobs, .live = true};
    status = open_log(replay, config, out_text, size);
    if (status == ERRAND_OK) {
        *out_replay = replay;
    } else {
        int error = errno;

        errand_log_close(&replay->log);
        errand__mem_free(NULL, replay, sizeof *replay);
        errno = error;
    }
    return status;
}

errand_status
errand_replay_close(errand_replay **take_replay)
{
    errand_replay *replay = take_replay == NULL ? NULL : *take_replay;

    if (replay == NULL)
        return ERRAND_OK;
    ERRAND_REQUIRE_ARG(!replay->begun || replay->ended, ERRAND_EBUSY,
                       "its runtime lives: shut it down before");
    errand_log_close(&replay->log);
    errand__mem_free(NULL, replay, sizeof *replay);
    *take_replay = NULL;
    return ERRAND_OK;
}

const errand_log_header *
errand_replay_header_of(const errand_replay *replay)
{
    return replay == NULL ? NULL : errand_log_header_of(replay->log);
}

errand_status
errand_replay_status(const errand_replay *replay, char *out_text, size_t size)
{
    ERRAND_REQUIRE_ARG(replay != NULL, ERRAND_EINVAL, "the replay is NULL");
    say(out_text, size, replay->text);
    return replay->status;
}

/* ---- its runtime --------------------------------------------------------------------------------- */

errand_status
errand__replay_check(const errand_runtime_config *config)
{
    const errand_log_header *header = errand_log_header_of(config->held_replay->log);
    errand_choices choices = ERRAND_CHOICES_INIT;

    if (config->held_replay->begun)
        return errand__misuse(ERRAND_EINVAL, "errand_runtime_create",
                              "the replay has a runtime; open another one");
    if (header->order == ERRAND_ORDER_ARRIVAL)
        return ERRAND_OK;
    if (config->choices != NULL &&
        header->policy >> ERRAND__LOG_PROVIDER_SHIFT == config->choices->provider)
        return ERRAND_OK;
    if (header->policy >> ERRAND__LOG_PROVIDER_SHIFT != ERRAND_PROVIDER_SEED ||
        errand_choices_parse(&choices, header->policy_text, header->seed, NULL, 0) !=
            ERRAND_OK)
        return errand__misuse(ERRAND_EREPRODUCE, "errand_runtime_create",
                              "the recorded run's choices are not its seed's: give them "
                              "again in config->choices");
    return ERRAND_OK;
}

void
errand__replay_config(errand_runtime_config *config, errand_choices *choices)
{
    const errand_replay *replay = config->held_replay;
    const errand_log_header *header = errand_log_header_of(replay->log);

    config->order = header->order;
    if (header->order == ERRAND_ORDER_PACED && !replay->run_jobs)
        config->order = ERRAND_ORDER_INLINE; /* the same run */
    config->seed = header->seed;
    config->start_ns = header->start_ns;
    if (header->order == ERRAND_ORDER_ARRIVAL) {
        config->choices = NULL;
    } else if (config->choices == NULL) {
        *choices = (errand_choices)ERRAND_CHOICES_INIT;
        if (errand_choices_parse(choices, header->policy_text, header->seed, NULL, 0) ==
            ERRAND_OK)
            config->choices = choices; /* as was checked */
    }
}

static bool
same_label(const char *a, const char *b)
{
    return strncmp(a == NULL ? "" : a, b == NULL ? "" : b, ERRAND__TEXT_MAX) == 0;
}

static void
hear(void *arg, const errand_step *step)
{
    errand_runtime *runtime = arg;
    errand_replay *replay = runtime->config.held_replay;
    const errand_log_step *next;
    const errand_step *logged;

    if (!replay->live)
        return;
    next = errand__replay_peek(runtime);
    logged = next == NULL ? NULL : &next->step;
    if (logged != NULL && logged->kind == step->kind && logged->detail == step->detail &&
        logged->key == step->key && logged->value == step->value &&
        logged->context == step->context && logged->chosen == step->chosen &&
        (logged->time_ns == step->time_ns || !errand__seeded(runtime)) &&
        same_label(logged->label, step->label)) {
        replay->has = false;
        replay->met++;
        return;
    }
    errand__replay_say(replay, step, NULL);
    errand__replay_end(runtime);
}

static bool
say_time(void *arg, uint64_t *out_now)
{
    const errand_runtime *runtime = arg;
    const errand_log_step *next = errand__replay_peek(runtime);

    if (!errand__replay_live(runtime))
        return false;
    *out_now = next == NULL || next->step.kind != ERRAND_STEP_TIME
                   ? runtime->scheduler.now
                   : next->step.value;
    return true;
}

void
errand__replay_begin(errand_runtime *runtime)
{
    errand_replay *replay = runtime->config.held_replay;
    errand__audit *audit = &runtime->scheduler.audit;

    replay->begun = true;
    replay->runtime = runtime;
    runtime->unhanded = !replay->run_jobs;
    audit->replay = hear;
    audit->replay_time = say_time;
    audit->replay_arg = runtime;
    errand__audit_heard(audit);
    if (errand__seeded(runtime))
        return;
    audit->inputs = true;
    runtime->scheduler.real_clock = false;
    runtime->scheduler.now = 0;
    if (errand__replay_peek(runtime) != NULL)
        runtime->scheduler.now = errand__replay_peek(runtime)->step.time_ns;
}

void
errand__replay_over(errand_runtime *runtime)
{
    errand_replay *replay = runtime->config.held_replay;
    bool calling;

    if (replay == NULL)
        return;
    replay->live = false;
    replay->ended = true; /* but for what the shutdown does */
    calling = errand__calls_begin(runtime);
    for (uint32_t slot = 1; runtime->unhanded && slot <= runtime->registrar.fresh;
         slot++) {
        errand__record *record = &runtime->registrar.records[slot];

        if (record->phase == ERRAND__PHASE_HELD)
            errand__held_finish(runtime, record); /* nobody has its body */
    }
    errand__calls_end(runtime, calling);
    if (errand__seeded(runtime))
        return;
    runtime->scheduler.real_clock =
        (runtime->config.flags & ERRAND_RUNTIME_TEST_CLOCK) == 0;
    runtime->scheduler.audit.inputs = runtime->config.held_recorder != NULL;
}

const errand_log_step *
errand__replay_peek(const errand_runtime *runtime)
{
    errand_replay *replay = runtime->config.held_replay;

    if (replay == NULL || !replay->live)
        return NULL;
    if (!replay->has)
        replay->has = errand_log_next(replay->log, &replay->next);
    return replay->has ? &replay->next : NULL;
}

errand_status
errand__replay_status_of(uint64_t value)
{
    return value <= ERRAND_EEXTERNAL ? (errand_status)value : ERRAND_EREPRODUCE;
}

bool
errand__replay_live(const errand_runtime *runtime)
{
    return runtime->config.held_replay != NULL && runtime->config.held_replay->live;
}

void
errand__replay_leave(errand_runtime *runtime, const char *instead)
{
    errand_replay *replay = runtime->config.held_replay;

    if (!replay->live)
        return;
    errand__replay_say(replay, NULL, instead);
    errand__replay_end(runtime);
}

void
errand__replay_end(errand_runtime *runtime)
{
    errand_replay *replay = runtime->config.held_replay;

    replay->status = ERRAND_EREPRODUCE;
    replay->live = false;
    runtime->external = true;
    runtime->external_status = ERRAND_EREPRODUCE;
    errand__text_format(runtime->external_text, sizeof runtime->external_text, "%s",
                        replay->text);
    if (runtime->turn != NULL)
        runtime->turn->over = true;
}
