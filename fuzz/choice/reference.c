/* SPDX-License-Identifier: MIT */
/* Design notes: a second scheduler, as plain as can be: arrays, no time to save.
 *
 * It makes no choices: it looks up those on the tape of the library's run, by site, key and
 * ordinal, and says who has to run when.  That every choice it needs is there, with the n that it
 * expects, and that none is left over, is a part of the check. */
#include <string.h>
#include "plan.h"

#define CYCLE        1000000U
#define SLEEP_UNIT   250000U
#define RERUNS_MAX   16
#define RANK_CHANGED (UINT64_C(1) << 32)

typedef struct reference_task {
    size_t at;                                /* in its moves */
    bool ended, parked, token, sleeps, woken; /* woken: and has not run since */
    uint64_t wake_ns, registration;
    uint64_t visits, draws, ordinal, place, rank;
    unsigned reruns;
    uint64_t rerun_pass;
    uint32_t starves, asked;
} reference_task;

typedef struct reference {
    const task_plan *plan;
    const uint64_t *keys;
    errand_tape *tape;
    plan_trail *trail;
    reference_task tasks[PLAN_TASKS];
    size_t ready[PLAN_TASKS], pass[PLAN_TASKS], ready_count, pass_count;
    uint64_t now, passes, picks, left, registrations, used;
    uint64_t first[ERRAND_DEPTH_MAX + 1], length[ERRAND_DEPTH_MAX + 1];
    const char *problem;
} reference;

static uint64_t
look_up(reference *self, errand_site site, uint64_t key, uint64_t ordinal, uint64_t n)
{
    errand_choice choice;

    if (n == 1)
        return 0;
    if (errand_tape_find(self->tape, site, key, ordinal, &choice) != ERRAND_OK) {
        self->problem = "a choice is missing on the tape";
        return 0;
    }
    if (choice.n != n)
        self->problem = "a choice has another n";
    if (n != 0 && choice.value >= n)
        self->problem = "a choice is beyond its n";
    self->used++;
    return choice.value;
}

static bool
fair(const reference *self)
{
    return self->plan->policy <= ERRAND_POLICY_FIFO;
}

static void
append(reference *self, size_t task, bool soon)
{
    reference_task *its = &self->tasks[task];

    its->ordinal = its->visits++;
    if (soon && fair(self))
        self->pass[self->pass_count++] = task;
    else
        self->ready[self->ready_count++] = task;
    if (self->plan->policy == ERRAND_POLICY_PCT && its->ordinal == 0)
        its->rank =
            look_up(self, ERRAND_SITE_PRIORITY, self->keys[task], 0, UINT64_C(1) << 32);
    if (soon && !fair(self))
        self->left++;
}

static size_t
remove_at(size_t *list, size_t *count, size_t index)
{
    size_t task = list[index];

    memmove(&list[index], &list[index + 1], (--*count - index) * sizeof *list);
    return task;
}

/* ---- policies -------------------------------------------------------------------------------------- */

static void
init_policy(reference *self)
{
    const task_plan *plan = self->plan;
    uint64_t n = plan->steps + 1;

    for (uint32_t i = 1; i <= plan->depth; i++) {
        if (plan->policy == ERRAND_POLICY_PCT && i < plan->depth)
            self->first[i] = look_up(self, ERRAND_SITE_CHANGE, i, 0, n);
        if (plan->policy == ERRAND_POLICY_DELAY)
            self->first[i] = look_up(self, ERRAND_SITE_DELAY, i, 0, n);
        if (plan->policy != ERRAND_POLICY_STARVE)
            continue;
        self->first[i] = look_up(self, ERRAND_SITE_STARVE, i, 0, n);
        self->length[i] = look_up(self, ERRAND_SITE_STARVE, i, 1, plan->steps / 4 + 2);
    }
}

static size_t
front_of_line(const reference *self)
{
    size_t best = 0;

    for (size_t i = 1; i < self->ready_count; i++) {
        if (self->tasks[self->ready[i]].rank < self->tasks[self->ready[best]].rank)
            best = i;
    }
    return best;
}

static bool
starves(reference *self, size_t task)
{
    reference_task *its = &self->tasks[task];
    bool answer = false;

    for (uint32_t i = 1; i <= self->plan->depth; i++) {
        uint32_t bit = UINT32_C(1) << (i - 1);

        if (self->first[i] == 0 || self->picks < self->first[i] ||
            self->picks >= self->first[i] + self->length[i])
            continue;
        if ((its->asked & bit) == 0 &&
            look_up(self, ERRAND_SITE_STARVE, self->keys[task], 1 + i, 2) == 1)
            its->starves |= bit;
        its->asked |= bit;
        answer |= (its->starves & bit) != 0;
    }
    return answer;
}

static size_t
pick_any(reference *self, bool windows)
{
    size_t fed[PLAN_TASKS], count = 0;

    for (size_t i = 0; i < self->ready_count; i++) {
        if (!windows || !starves(self, self->ready[i]))
            fed[count++] = i;
    }
    for (size_t i = 0; count == 0 && i < self->ready_count; i++)
        fed[i] = i;
    count = count == 0 ? self->ready_count : count;
    return fed[look_up(self, ERRAND_SITE_PICK, 0, self->picks - 1, count) % count];
}

static void
oldest_to_the_end(reference *self)
{
    size_t oldest = remove_at(self->ready, &self->ready_count, 0);

    self->ready[self->ready_count++] = oldest;
}

/* An index of the ready list. */
static size_t
pick(reference *self)
{
    const task_plan *plan = self->plan;

    self->picks++;
    if (plan->policy == ERRAND_POLICY_PICK)
        return pick_any(self, false);
    if (self->picks > plan->steps)
        return 0;
    if (plan->policy == ERRAND_POLICY_STARVE)
        return pick_any(self, self->picks < plan->steps);
    for (uint32_t i = 1; i <= plan->depth; i++) {
        if (self->first[i] != self->picks)
            continue;
        if (plan->policy == ERRAND_POLICY_PCT)
            self->tasks[self->ready[front_of_line(self)]].rank = RANK_CHANGED + i;
        else
            oldest_to_the_end(self);
    }
    return plan->policy == ERRAND_POLICY_PCT ? front_of_line(self) : 0;
}

/* ---- passes ---------------------------------------------------------------------------------------- */

static void
begin_pass(reference *self)
{
    self->passes++;
    self->left = fair(self) ? 0 : self->ready_count;
    if (!fair(self))
        return;
    memcpy(self->pass, self->ready, sizeof self->pass);
    self->pass_count = self->ready_count;
    self->ready_count = 0;
    if (self->plan->policy == ERRAND_POLICY_FIFO || self->pass_count < 2)
        return;
    for (size_t i = 0; i < self->pass_count; i++) {
        reference_task *its = &self->tasks[self->pass[i]];
        size_t task = self->pass[i], place = i;

        its->place = look_up(self, ERRAND_SITE_PLACE, self->keys[task], its->ordinal,
                             UINT64_C(1) << 32);
        for (; place > 0 && self->tasks[self->pass[place - 1]].place > its->place;
             place--)
            self->pass[place] = self->pass[place - 1];
        self->pass[place] = task;
    }
}

static bool
next_of_pass(reference *self, size_t *out_task)
{
    if (self->pass_count > 0) {
        *out_task = remove_at(self->pass, &self->pass_count, 0);
        return true;
    }
    if (self->left == 0 || self->ready_count == 0)
        return false;
    self->left--;
    *out_task = remove_at(self->ready, &self->ready_count, pick(self));
    return true;
}

/* ---- tasks ----------------------------------------------------------------------------------------- */

static void
wake(reference *self, size_t task)
{
    reference_task *its = &self->tasks[task];

    if (its->ended)
        return;
    if (!its->parked) {
        its->token |= !its->woken;
        return;
    }
    its->parked = false;
    its->woken = true;
    append(self, task, false);
}

static void
go_to_sleep(reference *self, size_t task, uint64_t ns)
{
    reference_task *its = &self->tasks[task];

    if (ns == 0) { /* it goes on in this pass, but not for ever */
        if (its->rerun_pass != self->passes)
            its->reruns = 0;
        its->rerun_pass = self->passes;
        append(self, task, ++its->reruns <= RERUNS_MAX);
        return;
    }
    its->sleeps = true;
    its->wake_ns = self->now + ns;
    its->registration = self->registrations++;
}

static void
visit(reference *self, size_t task)
{
    reference_task *its = &self->tasks[task];

    its->woken = false;
    plan_note(self->trail, task, self->now, 0);
    for (;;) {
        uint8_t move = its->at < PLAN_MOVES ? self->plan->moves[task][its->at] : MOVE_END;
        uint8_t argument =
            its->at < PLAN_MOVES ? self->plan->arguments[task][its->at] : 0;

        its->at++;
        if (move == MOVE_WAKE) {
            wake(self, argument);
            continue;
        }
        if (move == MOVE_CHOOSE) {
            uint64_t ordinal = argument == 1 ? 0 : its->draws++;

            plan_note(self->trail, task, self->now,
                      1 + look_up(self, ERRAND_SITE_APPLICATION, self->keys[task],
                                  ordinal, argument));
            continue;
        }
        if (move == MOVE_END)
            its->ended = true;
        if (move == MOVE_YIELD || (move == MOVE_PARK && its->token))
            append(self, task, false);
        else if (move == MOVE_PARK)
            its->parked = true;
        if (move == MOVE_PARK) {
            its->woken = its->token;
            its->token = false;
        }
        if (move == MOVE_SLEEP)
            go_to_sleep(self, task, argument * (uint64_t)SLEEP_UNIT);
        return;
    }
}

/* The sleeper that is next, or PLAN_TASKS. */
static size_t
next_sleeper(const reference *self)
{
    size_t best = PLAN_TASKS;

    for (size_t i = 0; i < self->plan->tasks; i++) {
        const reference_task *its = &self->tasks[i];

        if (its->sleeps &&
            (best == PLAN_TASKS || its->wake_ns < self->tasks[best].wake_ns ||
             (its->wake_ns == self->tasks[best].wake_ns &&
              its->registration < self->tasks[best].registration)))
            best = i;
    }
    return best;
}

const char *
reference_run(const task_plan *plan, const uint64_t *keys, errand_tape *tape,
              plan_trail *out_trail)
{
    reference self = {.plan = plan, .keys = keys, .tape = tape, .trail = out_trail};
    size_t task;

    init_policy(&self);
    for (task = 0; task < plan->tasks; task++)
        append(&self, task, false);
    while (self.problem == NULL) {
        while ((task = next_sleeper(&self)) < PLAN_TASKS &&
               self.tasks[task].wake_ns <= self.now) {
            self.tasks[task].sleeps = false;
            append(&self, task, false);
        }
        begin_pass(&self);
        while (next_of_pass(&self, &task)) {
            visit(&self, task);
            out_trail->picks++;
        }
        task = next_sleeper(&self);
        if (self.ready_count > 0)
            self.now = task < PLAN_TASKS && self.tasks[task].wake_ns < self.now + CYCLE
                           ? self.tasks[task].wake_ns
                           : self.now + CYCLE;
        else if (task < PLAN_TASKS)
            self.now = self.tasks[task].wake_ns;
        else
            break;
    }
    if (self.problem == NULL && self.used != errand_tape_count(tape))
        self.problem = "there are choices on the tape that nobody needs";
    return self.problem;
}
