/* SPDX-License-Identifier: MIT */
#include "actor.h"

static errand_task_answer
visit(errand_task *task, void *state, const errand_task_news *news)
{
    actor *self = state;

    self->visits++;
    self->news = *news;
    self->time = errand_runtime_now(self->in->runtime);
    if (news->completion != NULL)
        self->outcome = news->completion->outcome;
    assert_int_equal(errand_task_self(task).task, self->id.task);
    assert_ptr_equal(errand_task_runtime(task), self->in->runtime);
    return self->step(task, self, news);
}

static void
ended(errand_runtime *runtime, errand_task_id id, void *state)
{
    actor *self = state;
    errand_task_state now = 0;

    assert_int_equal(self->drops, 0);
    self->ends++;
    assert_int_equal(errand_task_state_read(runtime, &id, &now, &self->end), ERRAND_OK);
    assert_int_equal(now, ERRAND_TASK_ENDED);
}

static void
drop(void *state)
{
    ((actor *)state)->drops++;
}

errand_task_spec
actor_spec(test_world *in, const char *label, actor *self)
{
    self->in = in;
    return (errand_task_spec){
        .struct_size = sizeof(errand_task_spec),
        .label = label,
        .fn = visit,
        .state = self,
        .held_on_end = ended,
        .held_drop = drop,
    };
}

errand_task_id
actor_spawn(test_world *in, const errand_task_id *parent, const char *label, actor *self)
{
    errand_task_spec spec = actor_spec(in, label, self);

    assert_int_equal(errand_spawn(in->runtime, parent, &spec, &self->id), ERRAND_OK);
    return self->id;
}

int
actors_setup(void **state)
{
    return world_setup_seeded(state, ACTOR_ORDER);
}

void
actors_restart(test_world *in, uint64_t seed, errand_completion_fn *fn, void *arg)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ACTOR_ORDER,
                                    .seed = seed,
                                    .on_completion = fn,
                                    .held_on_completion_arg = arg};

    world_end(in);
    world_begin(in, &config, 0);
}

errand_turn
drive_items(test_world *in, uint32_t items)
{
    const errand_budget budget = {.struct_size = sizeof budget, .items = items};
    errand_turn turn;

    assert_int_equal(errand_drive(in->runtime, &budget, &turn), ERRAND_OK);
    world_check(in);
    return turn;
}

errand_turn
drive_all(test_world *in)
{
    errand_turn turn;

    do
        assert_int_equal(errand_drive(in->runtime, NULL, &turn), ERRAND_OK);
    while (turn.kind == ERRAND_TURN_PROGRESS);
    world_check(in);
    return turn;
}

errand_task_end
actor_end(const actor *self)
{
    assert_int_equal(self->ends, 1);
    assert_int_equal(self->drops, 1);
    return self->end;
}

errand_task_answer
step_done(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)task;
    (void)self;
    (void)news;
    return ERRAND_TASK_DONE;
}

errand_task_answer
step_park(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    self->status = errand_task_park(task, NEVER);
    return ERRAND_TASK_WAIT;
}

errand_task_answer
step_yield(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    self->status = errand_task_yield(task);
    return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_DONE;
}

errand_task_answer
step_sleep(errand_task *task, actor *self, const errand_task_news *news)
{
    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    self->status = errand_task_sleep(task, self->number);
    return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_FAILED;
}

errand_task_answer
step_await(errand_task *task, actor *self, const errand_task_news *news)
{
    world_job *job = self->arg;
    errand_spec spec;

    if (news->why != ERRAND_WHY_START)
        return ERRAND_TASK_DONE;
    job->world = self->in;
    spec = world_spec(job);
    self->status = errand_task_await(task, self->in->lease, &spec,
                                     self->number == 0 ? NEVER : self->number, NULL);
    return self->status == ERRAND_OK ? ERRAND_TASK_WAIT : ERRAND_TASK_FAILED;
}
