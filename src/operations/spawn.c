/* SPDX-License-Identifier: MIT */
/* spawn: a child is started and becomes an object.
 *
 * Design notes: the command is looked for and read from a disk, and the thread that starts it stands
 * still until then: a helper thread.  When it has started and its body has ended meanwhile,
 * the state's drop has it killed. */
#include <string.h>
#include "core/pause.h"
#include "operations/process.h"

static const uint64_t term_default_ns = 200000000;

typedef struct spawn_state {
    errand__wait wait;
    errand__child_plan plan;
    uint64_t term_ns;
    errand_process *made; /* until it is given */
    errand__child_failure failure;
} spawn_state;

extern char **environ;

static int32_t spawn_poll(errand_job *job, void *state, errand_payload *out_payload);
static void spawn_drop(void *state);

static const errand_job_type spawn_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "spawn",
    .poll = spawn_poll,
    .drop = spawn_drop,
};

errand_status
errand_spec_spawn(errand_spec *out_spec, const errand_process_config *config)
{
    const uint32_t both = ERRAND_PROCESS_ERRORS | ERRAND_PROCESS_TOGETHER;

    ERRAND_REQUIRE_ARG(out_spec != NULL && config != NULL, ERRAND_EINVAL,
                       "out_spec or config is NULL");
    ERRAND_REQUIRE_ARG(config->struct_size == sizeof *config && config->flags < 16 &&
                           (config->flags & both) != both,
                       ERRAND_EINVAL, "struct_size or flags are wrong");
    ERRAND_REQUIRE_ARG(config->argv != NULL && config->argv[0] != NULL &&
                           config->argv[0][0] != 0 &&
                           (config->cwd == NULL || config->cwd[0] != 0),
                       ERRAND_EINVAL, "argv[0] names no command, or cwd is empty");
    const char *const *env =
        config->env != NULL ? config->env : (const char *const *)(void *)environ;
    size_t arguments, variables;
    size_t text = errand__child_list_size(config->argv, &arguments) +
                  errand__child_list_size(env, &variables);
    size_t cwd = config->cwd == NULL ? 0 : strlen(config->cwd) + 1;
    size_t table = (arguments + variables + 2) * sizeof(char *);
    spawn_state *state =
        errand__operation_block_alloc(sizeof *state + table + text + cwd);
    if (state == NULL)
        return ERRAND_ENOMEM;
    errand__operation_cursor tables = {(char *)(state + 1)}, texts = {tables.at + table};
    state->plan.argv = errand__child_list_copy(&tables, &texts, config->argv);
    state->plan.env = errand__child_list_copy(&tables, &texts, env);
    if (cwd > 0)
        state->plan.cwd = errand__operation_copy(&texts, config->cwd, cwd);
    state->plan.search_path = errand__child_search_path(state->plan.env);
    state->plan.pipe_in = (config->flags & ERRAND_PROCESS_INPUT) != 0;
    state->plan.no_out = (config->flags & ERRAND_PROCESS_OUTPUT) == 0;
    state->plan.no_err = (config->flags & ERRAND_PROCESS_ERRORS) == 0;
    state->plan.together = (config->flags & ERRAND_PROCESS_TOGETHER) != 0;
    state->term_ns = config->term_ns == 0 ? term_default_ns : config->term_ns;
    errand__wait_spec(out_spec, ERRAND_KIND_SPAWN, &spawn_job, state);
    return ERRAND_OK;
}

/* On a helper thread: it looks for the command and reads it from the disk. */
static int32_t
start_child(void *arg)
{
    spawn_state *spawns = arg;

    ERRAND__PAUSE("spawn");
    return errand__child_start(NULL, NULL, &spawns->plan, &spawns->made->child,
                               &spawns->failure)
               ? 0
               : 1; /* below 0 it was not called */
}

static int32_t
spawn_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    spawn_state *spawns = state;
    int32_t code = errand__wait_ready(job, &spawns->wait);

    if (code == 0 && !spawns->wait.asked) {
        spawns->made = errand__process_create();
        if (spawns->made == NULL)
            return errand__operation_no_memory(job, sizeof *spawns->made);
        code = errand__wait_call(job, &spawns->wait, start_child, spawns);
    }
    if (code != 0)
        return code;
    if (spawns->wait.io.result < 0)
        return errand__operation_refused(
            job, -spawns->wait.io.result, "the reactor",
            "no helper could be asked to start '%s'",
            errand__operation_show(spawns->plan.argv[0]).text);
    if (spawns->wait.io.result != 0)
        return errand__child_refused(job, &spawns->failure);
    errand_process *made = spawns->made;
    spawns->made = NULL;
    made->pid = made->child.pid;
    made->term_ns = spawns->term_ns;
    made->in.fd = made->child.in;
    made->out.fd = made->child.out;
    made->err.fd = made->child.err;
    made->child.in = made->child.out = made->child.err = -1; /* the pipes' own */
    made->in.missing = made->in.fd < 0;
    made->out.missing = made->out.fd < 0;
    made->err.missing = made->err.fd < 0;
    errand__operation_payload(out_payload, &errand_process_type, made, sizeof(uint64_t));
    return 0;
}

static int32_t
let_process(void *arg)
{
    errand_process *process = arg;

    errand_process_abandon(&process);
    return 0;
}

/* One that nobody gets any more is killed and reaped, which waits for its end. */
static void
spawn_drop(void *state)
{
    spawn_state *spawns = state;

    if (spawns->made != NULL && spawns->made->child.pid != 0)
        errand_helpers_call(spawns->wait.helpers, let_process, spawns->made);
    else
        errand_process_abandon(&spawns->made);
    errand__wait_fini(&spawns->wait);
    errand__operation_block_free(spawns);
}
