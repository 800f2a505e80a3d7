/* SPDX-License-Identifier: MIT */
/* command: run a child process to its end and give back what it wrote.
 *
 * Design notes: the body sleeps in one poll over both outputs, the process and the stop.  It
 * has three ways out: the process ended and both outputs did; the process ended and somebody
 * it left behind keeps an output open (a short drain, then that is closed); or it was told to
 * end (cancel, too much output, no memory): SIGTERM, later SIGKILL, always to the group and
 * always before the leader is reaped, so that the group's number is still its own. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "errand/traps.h"
#include "operations/operations.h"

#define MILLISECOND UINT64_C(1000000)

enum { OUTPUT_DEFAULT = 16 * 1024 * 1024, OUTPUT_FIRST = 4096, READS_PER_ROUND = 16 };
static const uint64_t term_default_ns = 200 * MILLISECOND;
static const uint64_t ask_ns = 5 * MILLISECOND; /* only without a pidfd */
static const uint64_t quiet_ns = 50 * MILLISECOND, drain_ns = 500 * MILLISECOND;

extern char **environ;

typedef struct command_state {
    errand__stop *stop;
    errand__child_plan plan;
    errand__operation_shown shown;
    size_t output_max;
    uint64_t term_ns;
} command_state;

typedef struct output {
    char *bytes; /* a block */
    size_t used, room;
    const char *name;
} output;

typedef struct watch { /* one running command */
    errand_job *job;
    const command_state *command;
    errand__child child;
    output out, err;
    int32_t code;      /* why it was told to end; 0 = it was not */
    bool killed;       /* SIGKILL was sent */
    bool exited;       /* the leader; not reaped yet */
    uint64_t kill_at;  /* told to end: when to send SIGKILL */
    uint64_t quiet_at; /* exited: silent since this long */
    uint64_t drain_at; /* exited: the longest that outputs are read */
} watch;

static int32_t command_run(errand_job *job, void *state, errand_payload *out_payload);
static void command_drop(void *state);
static void supervise(watch *run);
static bool over(const watch *run, uint64_t now);
static void sleep_for_news(watch *run, uint64_t now);
static bool take_output(watch *run, int *fd, output *into);
static bool keep(watch *run, output *into, const char *bytes, size_t count);
static void end_it(watch *run, int32_t code);
static int32_t finish(watch *run, errand_payload *out_payload);
static int32_t give(watch *run, int32_t status, int32_t signal_number,
                    errand_payload *out_payload);

static const errand_job_type command_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "command",
    .run = command_run,
    .drop = command_drop,
};

errand_status
errand_spec_command(errand_spec *out_spec, const errand_command_config *config)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && config != NULL, ERRAND_EINVAL,
                       "out_spec or config is NULL");
    ERRAND_REQUIRE_ARG(config->struct_size == sizeof *config && config->flags == 0,
                       ERRAND_EINVAL, "struct_size or flags are wrong");
    ERRAND_REQUIRE_ARG(config->argv != NULL && config->argv[0] != NULL &&
                           config->argv[0][0] != 0,
                       ERRAND_EINVAL, "argv[0] names no command");
    ERRAND_REQUIRE_ARG(config->cwd == NULL || config->cwd[0] != 0, ERRAND_EINVAL,
                       "cwd is empty");
    ERRAND_REQUIRE_ARG(config->input != NULL || config->input_size == 0, ERRAND_EINVAL,
                       "input is NULL");
    const char *const *env =
        config->env != NULL ? config->env : (const char *const *)(void *)environ;
    size_t arguments, variables;
    size_t text = errand__child_list_size(config->argv, &arguments) +
                  errand__child_list_size(env, &variables);
    text += config->cwd == NULL ? 0 : strlen(config->cwd) + 1;
    size_t table = (arguments + variables + 2) * sizeof(char *);
    if (config->input_size > PTRDIFF_MAX / 2)
        return ERRAND_ENOMEM;
    command_state *state =
        errand__operation_block_alloc(sizeof *state + table + text + config->input_size);
    if (state == NULL)
        return ERRAND_ENOMEM;
    state->stop = errand__operation_stop_create();
    if (state->stop == NULL) {
        errand__operation_block_free(state);
        return ERRAND_ENOMEM;
    }
    errand__operation_cursor tables = {(char *)(state + 1)}, texts = {tables.at + table};
    state->plan.argv = errand__child_list_copy(&tables, &texts, config->argv);
    state->plan.env = errand__child_list_copy(&tables, &texts, env);
    if (config->cwd != NULL)
        state->plan.cwd =
            errand__operation_copy(&texts, config->cwd, strlen(config->cwd) + 1);
    state->plan.search_path = errand__child_search_path(state->plan.env);
    state->plan.input = errand__operation_copy(&texts, config->input, config->input_size);
    state->plan.input_size = config->input_size;
    state->shown = errand__operation_show(config->argv[0]);
    state->output_max = config->output_max == 0 ? OUTPUT_DEFAULT : config->output_max;
    state->term_ns = config->term_ns == 0 ? term_default_ns : config->term_ns;
    errand__operation_spec_fill(out_spec, ERRAND_KIND_COMMAND, &command_job, state);
    out_spec->held_hook = &errand__operation_stop_hook;
    out_spec->hook_data = state->stop;
    return ERRAND_OK;
}

size_t
errand__child_list_size(const char *const *texts, size_t *out_count)
{
    size_t size = 0, count = 0;

    for (; texts != NULL && texts[count] != NULL; count++)
        size += strlen(texts[count]) + 1;
    *out_count = count;
    return size;
}

char **
errand__child_list_copy(errand__operation_cursor *table, errand__operation_cursor *text,
                        const char *const *texts)
{
    char **copies = (char **)(void *)table->at;
    size_t count = 0;

    for (; texts != NULL && texts[count] != NULL; count++)
        copies[count] =
            errand__operation_copy(text, texts[count], strlen(texts[count]) + 1);
    copies[count] = NULL;
    table->at += (count + 1) * sizeof(char *);
    return copies;
}

const char *
errand__child_search_path(char *const *env)
{
    for (; *env != NULL; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return NULL;
}

static int32_t
command_run(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_job_impure(job);
    const command_state *command = state;
    watch run = {.job = job,
                 .command = command,
                 .out.name = "stdout",
                 .err.name = "stderr",
                 .quiet_at = UINT64_MAX,
                 .drain_at = UINT64_MAX};
    errand__child_failure failure;
    int32_t code = 0;

    if (!errand__operation_stop_begin(command->stop))
        code = errand__operation_refused(job, errno, "eventfd", "cannot start '%s'",
                                         command->shown.text);
    else if (errand__operation_stop_asked(command->stop) || errand_job_cancelled(job))
        code = errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                        "'%s' was cancelled before it began",
                                        command->shown.text);
    else if (!errand__child_start(job, command->stop, &command->plan, &run.child,
                                  &failure))
        code = errand__child_refused(job, &failure);
    if (code == 0) {
        supervise(&run);
        code = finish(&run, out_payload);
    }
    errand__operation_stop_end(command->stop);
    return code;
}

static void
command_drop(void *state)
{
    command_state *command = state;

    errand__operation_stop_let(command->stop);
    errand__operation_block_free(command);
}

/* Until the leader has ended and its outputs have, or nobody wants them any more. */
static void
supervise(watch *run)
{
    uint64_t now = errand__clock_now();

    while (!over(run, now)) {
        sleep_for_news(run, now);
        now = errand__clock_now();
        bool some = take_output(run, &run->child.out, &run->out);
        some = take_output(run, &run->child.err, &run->err) || some;
        if (some)
            run->quiet_at = run->exited ? now + quiet_ns : UINT64_MAX;
        if (errand__operation_stop_asked(run->command->stop) ||
            errand_job_cancelled(run->job))
            end_it(run, ERRAND_OPERATION_STOPPED);
        if (run->code != 0 && !run->killed && (run->exited || now >= run->kill_at)) {
            errand__child_signal(&run->child, SIGKILL);
            run->killed = true;
        }
    }
}

static bool
over(const watch *run, uint64_t now)
{
    if (!run->exited)
        return false;
    if (run->code != 0)
        return run->killed;
    return (run->child.out < 0 && run->child.err < 0) || now >= run->quiet_at ||
           now >= run->drain_at;
}

static void
sleep_for_news(watch *run, uint64_t now)
{
    bool told = run->code != 0;
    struct pollfd fds[] = {
        {.fd = run->child.out, .events = POLLIN},
        {.fd = run->child.err, .events = POLLIN},
        {.fd = run->exited ? -1 : run->child.pidfd, .events = POLLIN},
        {.fd = told ? -1 : errand__operation_stop_fd(run->command->stop),
         .events = POLLIN},
    };
    uint64_t until = UINT64_MAX;

    if (told && !run->killed)
        until = run->kill_at;
    if (run->exited)
        until = run->quiet_at < run->drain_at ? run->quiet_at : run->drain_at;
    bool ask = !run->exited && run->child.pidfd < 0;
    if (ask && until > now + ask_ns)
        until = now + ask_ns;
    uint64_t left = until > now ? until - now : 0;
    struct timespec time = {.tv_sec = (time_t)(left / 1000000000u),
                            .tv_nsec = (long)(left % 1000000000u)};
    if (ppoll(fds, 4, until == UINT64_MAX ? NULL : &time, NULL) < 0)
        return; /* EINTR, or no memory for the moment: look again */
    if (fds[2].revents != 0 || (ask && errand__child_ended(&run->child))) {
        run->exited = true;
        now = errand__clock_now();
        run->quiet_at = now + quiet_ns;
        run->drain_at = now + drain_ns;
    }
}

/* Reads what is there, but not for ever.  True if something was. */
static bool
take_output(watch *run, int *fd, output *into)
{
    char piece[65536];
    bool some = false;

    for (int i = 0; i < READS_PER_ROUND && *fd >= 0; i++) {
        ssize_t count = read(*fd, piece, sizeof piece);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            return some;
        if (count <= 0) {
            errand__operation_fd_close(fd);
            return some;
        }
        some = true;
        /* Told to end: read on, so that it can, and forget what it says. */
        if (run->code == 0 && !keep(run, into, piece, (size_t)count))
            return some;
    }
    return some;
}

static bool
keep(watch *run, output *into, const char *bytes, size_t count)
{
    size_t max = run->command->output_max;

    if (count > max - into->used) {
        errand__operation_failed(run->job, ERRAND_OPERATION_OUTPUT,
                                 "'%s' wrote more than %zu bytes to %s",
                                 run->command->shown.text, max, into->name);
        end_it(run, ERRAND_OPERATION_OUTPUT);
        return false;
    }
    if (count > into->room - into->used) {
        size_t room = into->room == 0 ? OUTPUT_FIRST : into->room;
        while (room - into->used < count)
            room *= 2;
        char *wider = into->bytes == NULL
                          ? errand__operation_block_alloc(room)
                          : errand__operation_block_grow(into->bytes, room);
        if (wider == NULL) {
            end_it(run, errand__operation_no_memory(run->job, room));
            return false;
        }
        into->bytes = wider;
        into->room = room;
    }
    memcpy(into->bytes + into->used, bytes, count);
    into->used += count;
    return true;
}

static void
end_it(watch *run, int32_t code)
{
    if (run->code != 0)
        return;
    uint64_t now = errand__clock_now();
    run->code = code;
    run->kill_at = run->command->term_ns > UINT64_MAX - now ? UINT64_MAX
                                                            : now + run->command->term_ns;
    errand__child_signal(&run->child, SIGTERM);
}

static int32_t
finish(watch *run, errand_payload *out_payload)
{
    int32_t status = -1, signal_number = 0;
    int32_t code = run->code;
    const char *name = run->command->shown.text;

    bool reaped = errand__child_reap(&run->child, &status, &signal_number);
    if (code == ERRAND_OPERATION_STOPPED)
        errand_job_fail(
            run->job, 0, signal_number, NULL,
            "'%s' was cancelled and %s %d; start it again if it is still wanted", name,
            signal_number != 0 ? "ended by signal" : "exited with status",
            signal_number != 0 ? signal_number : status);
    if (code == 0 && !reaped)
        code = errand__operation_failed(run->job, ERRAND_OPERATION_LOST,
                                        "the exit status of '%s' was taken", name);
    if (code == 0)
        code = give(run, status, signal_number, out_payload);
    errand__operation_block_free(run->out.bytes);
    errand__operation_block_free(run->err.bytes);
    return code;
}

static int32_t
give(watch *run, int32_t status, int32_t signal_number, errand_payload *out_payload)
{
    const output *out = &run->out, *err = &run->err;
    size_t size = sizeof(errand_command_result) + out->used + err->used + 2;
    errand_command_result *result = errand__operation_block_alloc(size);

    if (result == NULL)
        return errand__operation_no_memory(run->job, size);
    errand__operation_cursor cursor = {(char *)(result + 1)};
    result->out = (unsigned char *)errand__operation_copy(&cursor, out->bytes, out->used);
    cursor.at++; /* the 0 behind it */
    result->err = (unsigned char *)errand__operation_copy(&cursor, err->bytes, err->used);
    result->out_size = out->used;
    result->err_size = err->used;
    result->exit_status = status;
    result->signal_number = signal_number;
    errand__operation_payload(out_payload, &errand_command_result_type, result, size);
    return 0;
}
