/* SPDX-License-Identifier: MIT */
/* Goal: kind, decoder, resource and job of an operation are destroyed once on every path, and what
 * is given up before admission is silent (O11).
 * Method: a table of paths through an operation's life, each of which is walked once. */
#include "counted.h"

typedef void path(test_world *world, counted *self);

static errand_prepared
prepare(test_world *world, counted *self)
{
    errand_spec spec = counted_spec(world, self);
    errand_prepared prepared;

    self->no_continuation = true;
    assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_prepared_kind(&prepared), 1); /* readable before binding */
    return prepared;
}

static errand_binding
bind(test_world *world, counted *self)
{
    errand_prepared prepared = prepare(world, self);
    errand_binding binding;

    assert_int_equal(errand_issue(world->runtime, 1, self, &self->identity), ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, &self->identity, &prepared, &binding),
                     ERRAND_OK);
    assert_int_equal(errand_prepared_kind(&prepared), 0);
    return binding;
}

/* ---- silent ones ------------------------------------------------------------------------------ */

static void
prepared_abandoned(test_world *world, counted *self)
{
    errand_prepared prepared = prepare(world, self), copy = prepared;

    errand_prepared_abandon(&prepared);
    errand_prepared_abandon(&copy);
    errand_prepared_abandon(&prepared);
    errand_prepared_abandon(NULL);
}

static void
prepared_left(test_world *world, counted *self)
{
    (void)prepare(world, self);
    world_end(world);
}

static void
binding_abandoned(test_world *world, counted *self)
{
    errand_binding binding = bind(world, self), copy = binding;

    errand_binding_abandon(&binding);
    errand_binding_abandon(&copy);
    errand_binding_abandon(NULL);
}

static void
binding_left(test_world *world, counted *self)
{
    (void)bind(world, self);
    world_end(world);
}

static void
submission_abandoned(test_world *world, counted *self)
{
    errand_submission submission = counted_submission(world, self), copy = submission;

    self->no_continuation = true; /* the wait stays a half */
    errand_submission_abandon(&submission);
    errand_submission_abandon(&copy);
    errand_wait_abandon(&self->wait);
    errand_submission_abandon(NULL);
    errand_wait_abandon(NULL);
}

static void
submission_abandoned_after_its_wait(test_world *world, counted *self)
{
    errand_submission submission = counted_submission(world, self);

    counted_await(self);
    errand_submission_abandon(&submission);
    assert_int_equal(self->count[AT_CONTINUATION_DROP], 1);
}

static void
submission_abandoned_later(test_world *world, counted *self)
{
    errand_submission submission = counted_submission(world, self), copy = submission;

    counted_await(self);
    assert_int_equal(errand_abandon_later(&submission), ERRAND_OK);
    assert_int_equal(errand_abandon_later(&copy), ERRAND_ESPENT);
    assert_int_equal(errand_submit(world->lease, &copy), ERRAND_ESPENT);
    errand_submission_abandon(&copy);
    assert_int_equal(self->count[AT_STATE_DROP], 0);
    counted_drive(world);
}

static void
submission_left(test_world *world, counted *self)
{
    (void)counted_submission(world, self);
    counted_await(self);
    world_end(world);
}

static void
submission_doomed_at_the_end(test_world *world, counted *self)
{
    errand_submission submission = counted_submission(world, self);

    counted_await(self);
    assert_int_equal(errand_abandon_later(&submission), ERRAND_OK);
    world_end(world);
}

static void
submission_cancelled_and_abandoned(test_world *world, counted *self)
{
    errand_submission submission = counted_submission(world, self);

    counted_await(self);
    assert_int_equal(counted_cancel(self), ERRAND_CANCEL_NOT_SUBMITTED);
    errand_submission_abandon(&submission);
    counted_drive(world);
    assert_int_equal(self->count[AT_RESUME], 1);
}

/* ---- admitted ones ----------------------------------------------------------------------------- */

static void
finish(test_world *world, counted *self)
{
    counted_submit(world, self);
    world_step(world, 10);
    counted_drive(world);
}

static void
completed(test_world *world, counted *self)
{
    finish(world, self);
}

static void
failed(test_world *world, counted *self)
{
    self->answer = 5;
    finish(world, self);
}

static void
panicked(test_world *world, counted *self)
{
    self->panics = true;
    finish(world, self);
}

static void
unwaited(test_world *world, counted *self)
{
    self->no_continuation = true;
    finish(world, self);
}

static void
cancelled_in_the_queue(test_world *world, counted *self)
{
    counted_submit(world, self);
    (void)counted_cancel(self);
    counted_drive(world);
}

static void
cancelled_while_it_ran(test_world *world, counted *self)
{
    self->lingers = true;
    self->cancel_answer = ERRAND_HOOK_PENDING;
    counted_submit(world, self);
    world_step(world, 10);
    (void)counted_cancel(self);
    world_step(world, 10);
    counted_drive(world);
}

static void
cancelled_after_it_settled(test_world *world, counted *self)
{
    counted_submit(world, self);
    world_step(world, 10);
    (void)counted_cancel(self);
    counted_drive(world);
}

static void
cancelled_after_it_was_drained(test_world *world, counted *self)
{
    counted_submit(world, self);
    world_step(world, 10);
    world_drain(world, 10);
    (void)counted_cancel(self);
    counted_drive(world);
}

static void
queued_at_the_end(test_world *world, counted *self)
{
    counted_submit(world, self);
    world_end(world);
}

static void
pending_at_the_end(test_world *world, counted *self)
{
    self->lingers = self->deaf = true;
    counted_submit(world, self);
    world_step(world, 10);
    world_end(world);
}

static void
settled_at_the_end(test_world *world, counted *self)
{
    counted_submit(world, self);
    world_step(world, 10);
    world_end(world);
}

static void
drained_at_the_end(test_world *world, counted *self)
{
    counted_submit(world, self);
    world_step(world, 10);
    world_drain(world, 10);
    world_end(world);
}

static void
walk(test_world *world, path *const *paths, size_t count, bool silent)
{
    for (size_t i = 0; i < count; i++) {
        counted self = {.answer = 0};

        world->news_count = 0;
        paths[i](world, &self);
        if (!world->ended)
            world_end(world);
        counted_check_ended(&self);
        assert_int_equal(world->report.accounts.accepted, !silent);
        if (silent) {
            assert_int_equal(world->news_count, 0);
            assert_int_equal(self.count[AT_BODY] + self.count[AT_CANCEL], 0);
            assert_true(world->report.clean);
        }
        world_begin(world, &world->config, 0);
    }
}

static void
what_is_given_up_before_admission_is_silent_and_dropped_once(void **state)
{
    /* O11 */
    static path *const paths[] = {prepared_abandoned,
                                  prepared_left,
                                  binding_abandoned,
                                  binding_left,
                                  submission_abandoned,
                                  submission_abandoned_after_its_wait,
                                  submission_abandoned_later,
                                  submission_left,
                                  submission_doomed_at_the_end,
                                  submission_cancelled_and_abandoned};

    walk(*state, paths, sizeof paths / sizeof paths[0], true);
}

static void
what_was_admitted_is_dropped_once_however_it_ends(void **state)
{
    /* O11 */
    static path *const paths[] = {completed,
                                  failed,
                                  panicked,
                                  unwaited,
                                  cancelled_in_the_queue,
                                  cancelled_while_it_ran,
                                  cancelled_after_it_settled,
                                  cancelled_after_it_was_drained,
                                  queued_at_the_end,
                                  pending_at_the_end,
                                  settled_at_the_end,
                                  drained_at_the_end};

    walk(*state, paths, sizeof paths / sizeof paths[0], false);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(what_is_given_up_before_admission_is_silent_and_dropped_once),
        WITH_WORLD(what_was_admitted_is_dropped_once_however_it_ends),
    };
    return test_group("dispatch/parts", tests, NULL, NULL);
}
