/* SPDX-License-Identifier: MIT */
/* Goal: find choices after which tasks do not run as passes, policies and time promise (D3 - D8,
 * D144, D145).
 * Method: the input's first bytes are a program of tasks, the rest are its choices.  The run is
 * recorded and compared with a reference that looks every choice up; then it is run a second time
 * by its bytes, and once by its tape, which was text in between.  Last, some runs are enumerated:
 * no two of them make the same choices, and each is that of its tape. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "errand/order.h"
#include "plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct plan_player {
    const task_plan *plan;
    plan_trail *trail;
    errand_runtime *runtime;
    errand_task_id ids[PLAN_TASKS];
    size_t at[PLAN_TASKS];
} plan_player;

typedef struct player_task {
    plan_player *player;
    size_t index;
} player_task;

static void
need(bool good, const char *text)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", text);
    abort();
}

/* ---- the input ---------------------------------------------------------------------------------- */

static uint8_t
take(const uint8_t **data, size_t *size)
{
    if (*size == 0)
        return 0;
    --*size;
    return *(*data)++;
}

static task_plan
read_plan(const uint8_t **data, size_t *size)
{
    task_plan made = {.policy = (errand_policy)(take(data, size) % ERRAND_POLICIES)};

    made.depth = 1 + take(data, size) % 4;
    made.steps = 1 + take(data, size) % 48;
    made.tasks = 1 + take(data, size) % PLAN_TASKS;
    for (size_t task = 0; task < made.tasks; task++) {
        for (size_t at = 0; at < PLAN_MOVES; at++) {
            uint8_t byte = take(data, size);

            made.moves[task][at] = byte % MOVES;
            made.arguments[task][at] = byte / MOVES % 16;
            if (made.moves[task][at] == MOVE_END)
                break;
            if (made.moves[task][at] == MOVE_WAKE)
                made.arguments[task][at] %= (uint8_t)made.tasks;
        }
    }
    return made;
}

/* ---- the run ------------------------------------------------------------------------------------ */

static errand_task_answer
play(errand_task *task, void *state, const errand_task_news *news)
{
    player_task *self = state;
    plan_player *player = self->player;
    errand_status status = ERRAND_OK;

    (void)news;
    plan_note(player->trail, self->index, errand_runtime_now(player->runtime), 0);
    for (;;) {
        size_t at = player->at[self->index]++;
        uint8_t move = at < PLAN_MOVES ? player->plan->moves[self->index][at] : MOVE_END;
        uint8_t argument = at < PLAN_MOVES ? player->plan->arguments[self->index][at] : 0;

        switch (move) {
        case MOVE_YIELD:
            status = errand_task_yield(task);
            break;
        case MOVE_SLEEP:
            status = errand_task_sleep(task, argument * UINT64_C(250000));
            break;
        case MOVE_PARK:
            status = errand_task_park(task, UINT64_MAX);
            break;
        case MOVE_WAKE:
            status = errand_task_wake(player->runtime, &player->ids[argument]);
            need(status == ERRAND_OK || status == ERRAND_EUNKNOWN, "a wake was refused");
            continue;
        case MOVE_CHOOSE:
            plan_note(player->trail, self->index, errand_runtime_now(player->runtime),
                      1 + errand_task_choose(task, argument));
            continue;
        default:
            return ERRAND_TASK_DONE;
        }
        need(status == ERRAND_OK, "a wait was refused");
        return ERRAND_TASK_WAIT;
    }
}

static void
hear(void *arg, const errand_step *step)
{
    plan_trail *trail = arg;

    if (step->kind == ERRAND_STEP_SPAWN)
        trail->keys[step->value - 1] = step->key;
}

static void
run(const task_plan *plan, errand_choices *choices, plan_trail *trail)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .operations_max = 8,
                                    .messages = 1,
                                    .order = ERRAND_ORDER_INLINE,
                                    .choices = choices};
    plan_player player = {.plan = plan, .trail = trail};
    player_task tasks[PLAN_TASKS];
    errand_turn turn;

    memset(trail, 0, sizeof *trail);
    choices->policy = plan->policy;
    choices->depth = plan->depth;
    choices->steps = plan->steps;
    need(errand_runtime_create(&config, &player.runtime) == ERRAND_OK, "no runtime");
    need(errand_trace(player.runtime, hear, trail) == ERRAND_OK, "no trace");
    for (size_t i = 0; i < plan->tasks; i++) {
        const errand_task_spec spec = {
            .struct_size = sizeof spec, .fn = play, .state = &tasks[i]};

        tasks[i] = (player_task){&player, i};
        need(errand_spawn(player.runtime, NULL, &spec, &player.ids[i]) == ERRAND_OK,
             "no task");
    }
    do
        need(errand_drive(player.runtime, NULL, &turn) == ERRAND_OK, "no turn");
    while (turn.kind == ERRAND_TURN_PROGRESS);
    trail->digest = errand_digest(player.runtime);
    trail->picks = errand_runtime_picks(player.runtime);
    need(errand_runtime_shutdown(&player.runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL) ==
             ERRAND_OK,
         "no end");
}

static bool
same_trails(const plan_trail *a, const plan_trail *b)
{
    return a->count == b->count && a->picks == b->picks &&
           memcmp(a->events, b->events, a->count * sizeof a->events[0]) == 0;
}

/* The tape as text, and read again. */
static errand_tape *
by_its_text(errand_tape *tape)
{
    static char text[1 << 17];
    errand_tape *copy = NULL;
    size_t length = errand_tape_print(tape, text, sizeof text);

    need(length < sizeof text, "a tape of such a run is short");
    need(errand_tape_parse(text, length, &copy, NULL, 0) == ERRAND_OK,
         "a tape's own text is refused");
    return copy;
}

static bool
same_choices(errand_tape *a, errand_tape *b)
{
    errand_choice one, other;

    if (errand_tape_count(a) != errand_tape_count(b))
        return false;
    for (size_t i = 0; errand_tape_at(a, i, &one); i++)
        if (errand_tape_find(b, one.site, one.key, one.ordinal, &other) != ERRAND_OK ||
            one.value != other.value)
            return false;
    return true;
}

static void
enumerate(const task_plan *plan)
{
    enum { RUNS = 6 };
    static plan_trail first, again;
    const errand_enumerator_config config = {.struct_size = sizeof config,
                                             .width = 1 + plan->depth,
                                             .depth = 1 + (uint32_t)plan->steps / 2,
                                             .runs = RUNS};
    errand_enumerator *enumerator = NULL;
    errand_tape *tapes[RUNS] = {NULL};
    uint64_t runs = 0;

    need(errand_enumerator_create(&config, &enumerator) == ERRAND_OK, "no enumerator");
    for (; errand_enumerator_next(enumerator); runs++) {
        errand_choices choices = ERRAND_CHOICES_INIT;

        need(runs < RUNS && errand_tape_create(&tapes[runs]) == ERRAND_OK, "a run more");
        choices.provider = ERRAND_PROVIDER_ENUMERATE;
        choices.held_enumerator = enumerator;
        choices.held_record = tapes[runs];
        run(plan, &choices, &first);
        choices.provider = ERRAND_PROVIDER_TAPE;
        choices.held_tape = tapes[runs];
        choices.held_record = NULL;
        run(plan, &choices, &again);
        need(first.digest == again.digest && same_trails(&first, &again),
             "the tape of an enumerated run makes another");
        for (uint64_t i = 0; i < runs; i++)
            need(!same_choices(tapes[i], tapes[runs]), "one run is made twice");
    }
    need(runs == errand_enumerator_runs(enumerator), "a count of runs");
    need(!errand_enumerator_complete(enumerator) || runs < RUNS ||
             !errand_enumerator_next(enumerator),
         "complete, and there is more");
    need(!errand_enumerator_next(enumerator), "a run after the last");
    errand_enumerator_abandon(&enumerator);
    for (uint64_t i = 0; i < runs; i++)
        errand_tape_abandon(&tapes[i]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static plan_trail first, again, expected;
    errand_choices choices = ERRAND_CHOICES_INIT;
    errand_tape *tape = NULL;
    errand_choice unused;
    const task_plan plan = read_plan(&data, &size);
    const char *problem;

    choices.provider = ERRAND_PROVIDER_BYTES;
    choices.held_bytes = data;
    choices.bytes_size = size;
    need(errand_tape_create(&tape) == ERRAND_OK, "no tape");
    choices.held_record = tape;
    run(&plan, &choices, &first);
    memset(&expected, 0, sizeof expected);
    problem = reference_run(&plan, first.keys, tape, &expected);
    need(problem == NULL, problem);
    need(same_trails(&first, &expected), "the run is not that of the reference");

    choices.held_record = NULL;
    run(&plan, &choices, &again);
    need(first.digest == again.digest && same_trails(&first, &again), "two runs differ");

    errand_tape *copy = by_its_text(tape);
    errand_tape_abandon(&tape);
    tape = copy;
    choices.provider = ERRAND_PROVIDER_TAPE;
    choices.held_tape = tape;
    run(&plan, &choices, &again);
    need(first.digest == again.digest && same_trails(&first, &again),
         "the tape makes another run");
    need(!errand_tape_unused(tape, 0, &unused) && !errand_tape_changed(tape, 0, &unused),
         "the tape does not fit its own run");
    errand_tape_abandon(&tape);
    enumerate(&plan);
    return 0;
}
