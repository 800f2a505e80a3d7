/* SPDX-License-Identifier: MIT */
/* Goal: whatever the library calls may be left by longjmp, and nothing is lost or done twice (O34).
 * Method: three operations; the one in the middle leaves one of its parts, or all of them, the first
 * time it is called; the test goes on until nothing is left, and then counts. */
#include "counted.h"

typedef struct leaver {
    jmp_buf out;
    counted_place from; /* COUNTED_PLACES: from everywhere */
    bool left_from[COUNTED_PLACES];
    unsigned left;
} leaver;

static leaver leaving;

static void
leave_once(counted *self, counted_place place)
{
    (void)self;
    if (place == AT_BODY || place == AT_DEFER || leaving.left_from[place] ||
        (leaving.from != place && leaving.from != COUNTED_PLACES))
        return;
    leaving.left_from[place] = true;
    leaving.left++;
    longjmp(leaving.out, 1);
}

/* Runs act; if it was left, does what a host has to, and answers true. */
static bool
was_left(test_world *world, void (*act)(test_world *world))
{
    if (setjmp(leaving.out) == 0) {
        act(world);
        return false;
    }
    assert_int_equal(errand_drain(world->runtime, 10, NULL, NULL, NULL), ERRAND_EBUSY);
    assert_int_equal(errand_drive(world->runtime, NULL, NULL), ERRAND_EBUSY);
    assert_int_equal(errand_runtime_release(world->runtime), ERRAND_EBUSY);
    assert_int_equal(errand_runtime_unwound(world->runtime), ERRAND_OK);
    assert_int_equal(errand_runtime_unwound(world->runtime), ERRAND_EMISUSE);
    world_check(world);
    return true;
}

static void
turn(test_world *world)
{
    assert_int_equal(errand_testing_clock(world->runtime, 1000000), ERRAND_OK);
    assert_int_equal(errand_drive(world->runtime, NULL, NULL), ERRAND_OK);
}

/* Drives until it was left as often as it could be, and then some turns more. */
static void
go_on(test_world *world)
{
    for (int quiet = 0; quiet < 5; quiet++)
        if (was_left(world, turn))
            quiet = -1;
    world_check(world);
}

/* A panic of a decoder is contained, and nobody thinks that this thread is a worker: no frame of
 * what was left counts any more. */
static void
panic_in_decoder(counted *self, counted_place place)
{
    (void)self;
    if (place == AT_DECODE)
        errand_panic("contained");
}

static void
check_frames(test_world *world)
{
    counted work = {.on = panic_in_decoder};

    counted_submit(world, &work);
    world_step(world, 1);
    turn(world);
    assert_int_equal(work.count[AT_RESUME], 1);
    assert_int_equal(work.told, ERRAND_EDECODE);
    assert_int_equal(errand_park(world->runtime, 0), ERRAND_OK);
}

/* Each part was called at most once; what is called on every path was called. */
static void
check_parts(const counted *self)
{
    for (int i = 0; i < COUNTED_PLACES; i++)
        if (i != AT_REAP)
            assert_true(self->count[i] <= 1);
    assert_int_equal(self->count[AT_STATE_DROP], 1);
    assert_int_equal(self->count[AT_HOOK_DROP], 1);
    assert_int_equal(self->count[AT_DECODE] + self->count[AT_DECODER_DROP], 1);
    assert_int_equal(self->count[AT_RESUME] + self->count[AT_CONTINUATION_DROP], 1);
    assert_int_equal(self->count[AT_PAYLOAD_DROP], self->count[AT_BODY]);
}

static counted three[3];

static void
begin(test_world *world, counted_place from, const counted *like)
{
    leaving = (leaver){.from = from};
    for (int i = 0; i < 3; i++) {
        three[i] = *like;
        counted_submit(world, &three[i]);
    }
    three[1].on = leave_once;
}

static void
end(test_world *world)
{
    assert_true(leaving.left > 0);
    for (int i = 0; i < 3; i++)
        check_parts(&three[i]);
    assert_true(three[0].order[AT_RESUME] < three[2].order[AT_RESUME]);
    check_frames(world);
}

static void
leave_a_completed_one(test_world *world, counted_place from)
{
    const counted like = {.answer = 0};

    begin(world, from, &like);
    world_step(world, 10);
    go_on(world);
    end(world);
    assert_int_equal(three[1].count[AT_RESUME], 1);
    assert_true(three[1].completed);
}

static void
a_decoder_that_is_left_counts_as_a_failed_one(void **state)
{
    /* O34, O32 */
    leave_a_completed_one(*state, AT_DECODE);
    assert_int_equal(three[1].outcome, ERRAND_FAILED);
    assert_int_equal(three[1].told, ERRAND_EDECODE);
    assert_int_equal(three[2].told, ERRAND_OK);
}

static void
a_continuation_that_is_left_was_resumed(void **state)
{
    /* O34 */
    leave_a_completed_one(*state, AT_RESUME);
    assert_int_equal(three[1].told, ERRAND_OK);
}

static void
drops_that_are_left_are_made_once_and_those_after_them_too(void **state)
{
    /* O34, O11 */
    static const counted_place places[] = {AT_STATE_DROP, AT_PAYLOAD_DROP, AT_HOOK_DROP,
                                           COUNTED_PLACES};

    for (int i = 0; i < 4; i++)
        leave_a_completed_one(*state, places[i]);
    assert_true(leaving.left >= 5);
}

/* ---- cancels ------------------------------------------------------------------------------------ */

static void
cancel_second(test_world *world)
{
    errand_cancel_answer answer;

    assert_int_equal(errand_cancel(world->runtime, &three[1].identity,
                                   ERRAND_REASON_EXPLICIT, &answer),
                     ERRAND_OK);
}

static void
leave_a_cancelled_one(test_world *world, counted_place from, bool running)
{
    const counted like = {.lingers = running, .cancel_answer = ERRAND_HOOK_PENDING};

    begin(world, from, &like);
    if (running)
        world_step(world, 10);
    (void)was_left(world, cancel_second);
    counted_ready(&three[0]);
    counted_ready(&three[2]);
    world_step(world, 10);
    go_on(world);
    world_step(world, 10);
    go_on(world);
    end(world);
    assert_int_equal(three[1].reason, ERRAND_REASON_EXPLICIT);
    assert_int_equal(three[1].count[AT_DECODER_DROP], 1);
    assert_int_equal(three[1].count[AT_BODY], running);
    assert_int_equal(three[1].count[AT_CANCEL], running);
    assert_false(three[1].completed);
}

static void
a_cancel_that_is_left_has_cancelled(void **state)
{
    /* O34, O37 */
    leave_a_cancelled_one(*state, AT_DECODER_DROP, false);
    leave_a_cancelled_one(*state, COUNTED_PLACES, false);
    leave_a_cancelled_one(*state, AT_DECODER_DROP, true);
    leave_a_cancelled_one(*state, AT_CANCEL, true);
    leave_a_cancelled_one(*state, COUNTED_PLACES, true);
}

static void
a_reap_that_is_left_is_made_again(void **state)
{
    /* O34, O38 */
    leave_a_cancelled_one(*state, AT_REAP, true);
    assert_int_equal(three[1].count[AT_REAP], 2);
    assert_int_equal(three[1].count[AT_CANCEL], 1);
}

static void
cancel_from_a_handler(void *arg, errand_completion *completion)
{
    test_world *world = arg;

    world_handler(world, completion);
    if (completion->wait == &three[0])
        cancel_second(world);
}

static void
drain_and_cancel(test_world *world)
{
    size_t count;

    assert_int_equal(
        errand_drain(world->runtime, 10, cancel_from_a_handler, world, &count),
        ERRAND_OK);
}

static void
a_hook_that_is_left_inside_a_handler_leaves_the_drain(void **state)
{
    /* O34 */
    test_world *world = *state;
    const counted like = {.lingers = true};

    begin(world, AT_CANCEL, &like);
    world_step(world, 10);
    counted_ready(&three[0]);
    counted_ready(&three[2]);
    world_step(world, 10);
    assert_true(was_left(world, drain_and_cancel));
    assert_int_equal(world->news_count, 1); /* it counts as delivered */
    world_step(world, 10);
    (void)was_left(world, drain_and_cancel);
    go_on(world);
    assert_int_equal(world->news_count, 3);
    end(world);
}

/* ---- abandons, commands ---------------------------------------------------------------------------- */

static errand_submission abandoned;

static void
abandon_it(test_world *world)
{
    (void)world;
    errand_submission_abandon(&abandoned);
}

static void
an_abandon_that_is_left_goes_on_with_the_next_drain(void **state)
{
    /* O34, O11 */
    static const counted_place places[] = {AT_DECODER_DROP, AT_HOOK_DROP, AT_STATE_DROP,
                                           AT_CONTINUATION_DROP, COUNTED_PLACES};
    test_world *world = *state;

    for (int i = 0; i < 5; i++) {
        static counted work;

        leaving = (leaver){.from = places[i]};
        work = (counted){.on = leave_once};
        abandoned = counted_submission(world, &work);
        counted_await(&work);
        assert_true(was_left(world, abandon_it));
        go_on(world);
        counted_check_ended(&work);
        assert_int_equal(work.count[AT_RESUME], 0);
        check_frames(world);
    }
    assert_int_equal(leaving.left, 4);
}

static void
leave_command(errand_runtime *runtime, void *arg)
{
    unsigned *calls = arg;

    (void)runtime;
    if (++*calls == 1)
        longjmp(leaving.out, 1);
}

static void
a_command_that_is_left_has_run(void **state)
{
    /* O34, O44 */
    test_world *world = *state;
    unsigned calls = 0;
    errand_command first = {.fn = leave_command, .arg = &calls}, second = first;
    errand_inbox *inbox;

    assert_int_equal(errand_inbox_open(world->runtime, &inbox), ERRAND_OK);
    assert_int_equal(errand_post(inbox, &first), ERRAND_OK);
    assert_int_equal(errand_post(inbox, &second), ERRAND_OK);
    assert_true(was_left(world, turn));
    assert_int_equal(calls, 1);
    assert_int_equal(errand_post(inbox, &first), ERRAND_OK); /* it is the host's again */
    go_on(world);
    assert_int_equal(calls, 3);
    errand_inbox_abandon(&inbox);
}

static void
a_value_whose_drop_is_left_is_dropped_once(void **state)
{
    /* O34, O39: cancelled after it was drained. */
    test_world *world = *state;
    const counted like = {.answer = 0};

    begin(world, AT_VALUE_DROP, &like);
    world_step(world, 10);
    assert_int_equal(world_drain(world, 10), 3);
    assert_true(was_left(world, cancel_second));
    go_on(world);
    end(world);
    assert_int_equal(three[1].count[AT_VALUE_DROP], 1);
    assert_int_equal(three[1].reason, ERRAND_REASON_EXPLICIT);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
        WITH_WORLD(a_decoder_that_is_left_counts_as_a_failed_one),
        WITH_WORLD(a_continuation_that_is_left_was_resumed),
        WITH_WORLD(drops_that_are_left_are_made_once_and_those_after_them_too),
        WITH_WORLD(a_cancel_that_is_left_has_cancelled),
        WITH_WORLD(a_reap_that_is_left_is_made_again),
        WITH_WORLD(a_hook_that_is_left_inside_a_handler_leaves_the_drain),
        WITH_WORLD(an_abandon_that_is_left_goes_on_with_the_next_drain),
        WITH_WORLD(a_command_that_is_left_has_run),
        WITH_WORLD(a_value_whose_drop_is_left_is_dropped_once),
    };
    return test_group("runtime/unwind", tests, NULL, NULL);
}
