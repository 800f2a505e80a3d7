/* SPDX-License-Identifier: MIT */
/* Goal: a run is its choices: whoever makes them, the same ones make the same run, and one more
 * anywhere shifts no other.
 * Method: one program of tasks and operations, run with each provider, its tapes compared. */
#include <string.h>
#include "actor.h"
#include "errand/choice.h"

enum { TASKS = 5, ROUNDS = 4 };

typedef struct program {
    actor tasks[TASKS];
    world_job jobs[TASKS][ROUNDS];
    unsigned rounds[TASKS];
    bool busy; /* the last task does more than usual */
} program;

static program all;

static errand_task_answer
step_work(errand_task *task, actor *self, const errand_task_news *news)
{
    size_t me = (size_t)(self - all.tasks);
    unsigned round = all.rounds[me]++;
    errand_spec spec;

    (void)news;
    if (round >= ROUNDS)
        return ERRAND_TASK_DONE;
    if (all.busy && me == TASKS - 1)
        (void)errand_task_random(task);
    if (errand_task_choose(task, 3) == 0) {
        self->status = errand_task_yield(task);
        return ERRAND_TASK_WAIT;
    }
    all.jobs[me][round].world = self->in;
    spec = world_spec(&all.jobs[me][round]);
    self->status = errand_task_await(task, self->in->lease, &spec, NEVER, NULL);
    return ERRAND_TASK_WAIT;
}

static void
begin(test_world *in, uint64_t seed, const errand_choices *choices)
{
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ERRAND_ORDER_INLINE,
                                    .seed = seed,
                                    .choices = choices};

    world_end(in);
    world_begin(in, &config, 0);
}

/* The digest of a whole run with these choices. */
static uint64_t
run(test_world *in, uint64_t seed, const errand_choices *choices, bool busy)
{
    static const char *const labels[TASKS] = {"a", "b", "c", "d", "e"};

    begin(in, seed, choices);
    memset(&all, 0, sizeof all);
    all.busy = busy;
    for (size_t i = 0; i < TASKS; i++) {
        all.tasks[i].step = step_work;
        actor_spawn(in, NULL, labels[i], &all.tasks[i]);
    }
    drive_all(in);
    for (size_t i = 0; i < TASKS; i++)
        assert_int_equal(actor_end(&all.tasks[i]), ERRAND_END_DONE);
    return errand_digest(in->runtime);
}

static errand_tape *
empty_tape(void)
{
    errand_tape *tape = NULL;

    assert_int_equal(errand_tape_create(&tape), ERRAND_OK);
    return tape;
}

static bool
same_tapes(errand_tape *a, errand_tape *b)
{
    errand_choice one, other;

    if (errand_tape_count(a) != errand_tape_count(b))
        return false;
    for (size_t i = 0; errand_tape_at(a, i, &one) && errand_tape_at(b, i, &other); i++) {
        if (one.site != other.site || one.key != other.key ||
            one.ordinal != other.ordinal || one.n != other.n || one.value != other.value)
            return false;
    }
    return true;
}

/* ---- tapes (D145) --------------------------------------------------------------------------------- */

static void
a_recorded_run_is_the_same_run_and_its_tape_makes_it_again(void **state)
{
    static const errand_policy policies[] = {ERRAND_POLICY_SHUFFLE, ERRAND_POLICY_PICK,
                                             ERRAND_POLICY_PCT, ERRAND_POLICY_DELAY,
                                             ERRAND_POLICY_STARVE};

    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        errand_tape *recorded = empty_tape(), *again = empty_tape();
        errand_choices choices = ERRAND_CHOICES_INIT;
        errand_choice choice;
        uint64_t digest;

        choices.policy = policies[i];
        choices.steps = 40;
        digest = run(*state, 11, &choices, false);
        choices.held_record = recorded;
        assert_int_equal(run(*state, 11, &choices, false), digest);
        assert_true(errand_tape_count(recorded) > 50);
        choices.provider = ERRAND_PROVIDER_TAPE;
        choices.held_tape = recorded;
        choices.held_record = again;
        assert_int_equal(run(*state, 12, &choices, false),
                         digest); /* whatever the seed */
        assert_true(same_tapes(recorded, again));
        assert_false(errand_tape_unused(recorded, 0, &choice));
        assert_false(errand_tape_changed(recorded, 0, &choice));
        errand_tape_abandon(&recorded);
        errand_tape_abandon(&again);
    }
}

static void
what_a_tape_lacks_is_0_or_the_seeds(void **state)
{
    errand_tape *empty = empty_tape(), *record = empty_tape();
    errand_choices choices = ERRAND_CHOICES_INIT;
    uint64_t digest = run(*state, 11, NULL, false);
    errand_choice choice;

    choices.provider = ERRAND_PROVIDER_TAPE;
    choices.held_tape = empty;
    choices.held_record = record;
    assert_int_not_equal(run(*state, 11, &choices, false), digest);
    assert_true(errand_tape_count(record) > 20);
    for (size_t i = 0; errand_tape_at(record, i, &choice); i++)
        assert_int_equal(choice.value, 0);
    choices.held_record = NULL;
    choices.seed_missing = true;
    assert_int_equal(run(*state, 11, &choices, false), digest);
    assert_int_equal(errand_tape_count(empty), 0);
    errand_tape_abandon(&empty);
    errand_tape_abandon(&record);
}

/* Every entry is looked up by its site, key and ordinal, so the order on the tape is nothing. */
static void
entries_count_wherever_they_stand_on_the_tape(void **state)
{
    errand_tape *recorded = empty_tape(), *turned = empty_tape();
    errand_choices choices = ERRAND_CHOICES_INIT;
    uint64_t digest;
    errand_choice choice;

    choices.held_record = recorded;
    digest = run(*state, 5, &choices, false);
    for (size_t i = errand_tape_count(recorded); i > 0; i--) {
        assert_true(errand_tape_at(recorded, i - 1, &choice));
        assert_int_equal(errand_tape_put(turned, &choice), ERRAND_OK);
    }
    choices = (errand_choices)ERRAND_CHOICES_INIT;
    choices.provider = ERRAND_PROVIDER_TAPE;
    choices.held_tape = turned;
    assert_int_equal(run(*state, 6, &choices, false), digest);
    errand_tape_abandon(&recorded);
    errand_tape_abandon(&turned);
}

static void
unused_and_changed_entries_are_reported(void **state)
{
    const errand_choice stray = {ERRAND_SITE_FATE, 12345, 0, 0, 9};
    errand_tape *tape = empty_tape();
    errand_choices choices = ERRAND_CHOICES_INIT;
    errand_choice choice, wrong = {.n = 0};
    uint64_t digest;

    choices.held_record = tape;
    digest = run(*state, 5, &choices, false);
    for (size_t i = 0; wrong.n == 0 && errand_tape_at(tape, i, &choice); i++) {
        if (choice.site == ERRAND_SITE_APPLICATION)
            wrong = choice;
    }
    assert_int_equal(wrong.n, 3);
    wrong.n = 30;
    wrong.value += 9; /* modulo 3 it is the same */
    assert_int_equal(errand_tape_put(tape, &wrong), ERRAND_OK);
    assert_int_equal(errand_tape_put(tape, &stray), ERRAND_OK);
    choices = (errand_choices)ERRAND_CHOICES_INIT;
    choices.provider = ERRAND_PROVIDER_TAPE;
    choices.held_tape = tape;
    assert_true(errand_tape_unused(tape, 1, &choice)); /* nobody has asked yet */
    assert_int_equal(run(*state, 6, &choices, false), digest);
    assert_true(errand_tape_unused(tape, 0, &choice));
    assert_int_equal(choice.key, stray.key);
    assert_false(errand_tape_unused(tape, 1, &choice));
    assert_true(errand_tape_changed(tape, 0, &choice));
    assert_int_equal(choice.n, 30);
    assert_false(errand_tape_changed(tape, 1, &choice));
    errand_tape_rewind(tape);
    assert_true(errand_tape_unused(tape, 1, &choice));
    assert_false(errand_tape_changed(tape, 0, &choice));
    errand_tape_abandon(&tape);
}

/* D52, I19: what one task does more is nothing to the choices of the others. */
static void
a_choice_more_in_one_task_shifts_no_others(void **state)
{
    errand_tape *few = empty_tape(), *many = empty_tape();
    errand_choices choices = ERRAND_CHOICES_INIT;
    errand_choice choice, other;
    uint64_t busy;
    size_t checked = 0;

    choices.held_record = few;
    run(*state, 3, &choices, false);
    choices.held_record = many;
    run(*state, 3, &choices, true);
    assert_false(same_tapes(few, many));
    for (size_t i = 0; i < TASKS; i++) /* which key is the busy one's? */
        errand_tape_rewind(few);
    busy = 0;
    for (size_t i = 0; errand_tape_at(many, i, &choice); i++) {
        if (choice.site == ERRAND_SITE_APPLICATION && choice.n == 0)
            busy = choice.key;
    }
    assert_int_not_equal(busy, 0);
    for (size_t i = 0; errand_tape_at(few, i, &choice); i++) {
        if (choice.site != ERRAND_SITE_APPLICATION || choice.key == busy)
            continue;
        assert_int_equal(
            errand_tape_find(many, choice.site, choice.key, choice.ordinal, &other),
            ERRAND_OK);
        assert_int_equal(other.value, choice.value);
        checked++;
    }
    assert_int_equal(checked, (TASKS - 1) * ROUNDS);
    errand_tape_abandon(&few);
    errand_tape_abandon(&many);
}

static errand_task_answer
step_one_value(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    assert_int_equal(errand_task_choose(task, 1), 0);
    assert_false(errand_task_chance(task, 0, 10)); /* D53 */
    assert_true(errand_task_chance(task, 10, 10));
    assert_true(errand_task_chance(task, 11, 10));
    errand_task_fill(task, NULL, 0);
    self->number = errand_task_random(task);
    return ERRAND_TASK_DONE;
}

static errand_task_answer
step_draw(errand_task *task, actor *self, const errand_task_news *news)
{
    (void)news;
    self->number = errand_task_random(task);
    return ERRAND_TASK_DONE;
}

/* D53, D145 */
static void
one_possible_value_makes_no_entry_and_takes_no_number(void **state)
{
    errand_tape *tape = empty_tape();
    errand_choices choices = ERRAND_CHOICES_INIT;
    actor one = {.step = step_one_value}, other = {.step = step_draw};
    uint64_t digest;

    choices.held_record = tape;
    begin(*state, 3, &choices);
    actor_spawn(*state, NULL, "one", &one);
    drive_all(*state);
    digest = errand_digest(((test_world *)*state)->runtime);
    assert_int_equal(errand_tape_count(tape), 1);
    begin(*state, 3, NULL);
    actor_spawn(*state, NULL, "one", &other);
    drive_all(*state);
    assert_int_equal(one.number, other.number);
    assert_int_equal(errand_digest(((test_world *)*state)->runtime), digest);
    errand_tape_abandon(&tape);
}

/* ---- draws of tasks (D50) --------------------------------------------------------------------------- */

static errand_task_answer
step_all_draws(errand_task *task, actor *self, const errand_task_news *news)
{
    unsigned char bytes[21] = {0}, zero[21] = {0};
    unsigned heads = 0, sixes = 0;
    uint64_t wide = 0, narrow = 0;

    (void)news;
    for (int i = 0; i < 64; i++) {
        wide |= errand_task_random(task);
        narrow |= errand_task_random32(task);
    }
    assert_int_equal(wide, UINT64_MAX);
    assert_int_equal(narrow, UINT32_MAX);
    for (int i = 0; i < 6000; i++) {
        uint64_t value = errand_task_choose(task, 6);

        assert_true(value < 6);
        sixes += value == 5;
        heads += errand_task_chance(task, 1, 4);
    }
    assert_in_range(sixes, 880, 1120);
    assert_in_range(heads, 1370, 1630);
    errand_task_fill(task, bytes, 20);
    assert_memory_not_equal(bytes, zero, 8);
    assert_memory_not_equal(bytes + 8, zero, 8);
    assert_memory_not_equal(bytes + 16, zero, 4);
    assert_int_equal(bytes[20], 0);
    self->number = errand_task_random(task);
    return ERRAND_TASK_DONE;
}

static void
tasks_draw_32_bits_64_bits_bytes_and_one_of_n(void **state)
{
    actor first = {.step = step_all_draws}, second = {.step = step_all_draws};

    begin(*state, 3, NULL);
    actor_spawn(*state, NULL, "all", &first);
    drive_all(*state);
    begin(*state, 3, NULL);
    actor_spawn(*state, NULL, "all", &second);
    drive_all(*state);
    assert_int_equal(first.number, second.number);
}

/* ---- bytes (D51) ------------------------------------------------------------------------------------ */

static void
bytes_in_place_of_a_seed_make_the_same_run_twice(void **state)
{
    errand_tape *tape = empty_tape();
    errand_choices choices = ERRAND_CHOICES_INIT;
    unsigned char bytes[600];
    uint64_t digest, other;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37 + i / 7);
    choices.provider = ERRAND_PROVIDER_BYTES;
    choices.held_bytes = bytes;
    choices.bytes_size = sizeof bytes;
    digest = run(*state, 1, &choices, false);
    assert_int_equal(run(*state, 2, &choices, false), digest); /* no seed in it */
    choices.held_record = tape;
    assert_int_equal(run(*state, 2, &choices, false), digest);
    bytes[3] ^= 1;
    other = run(*state, 1, &choices, false);
    assert_int_not_equal(other, digest);
    choices.bytes_size = 10; /* all behind them is 0 */
    assert_int_not_equal(run(*state, 1, &choices, false), other);
    choices.held_bytes = NULL;
    choices.bytes_size = 0;
    choices.held_record = NULL;
    digest = run(*state, 1, &choices, false);
    choices.provider = ERRAND_PROVIDER_TAPE;
    errand_tape_abandon(&tape);
    choices.held_tape = tape = empty_tape();
    assert_int_equal(run(*state, 1, &choices, false), digest);
    errand_tape_abandon(&tape);
}

/* The bytes become entries: their tape makes the run without them. */
static void
a_fuzzers_bytes_become_a_tape(void **state)
{
    static const unsigned char bytes[] = "any bytes that a fuzzer may have found";
    errand_tape *tape = empty_tape();
    errand_choices choices = ERRAND_CHOICES_INIT;
    uint64_t digest;

    choices.provider = ERRAND_PROVIDER_BYTES;
    choices.held_bytes = bytes;
    choices.bytes_size = sizeof bytes;
    choices.held_record = tape;
    digest = run(*state, 1, &choices, false);
    choices = (errand_choices)ERRAND_CHOICES_INIT;
    choices.provider = ERRAND_PROVIDER_TAPE;
    choices.held_tape = tape;
    assert_int_equal(run(*state, 1, &choices, false), digest);
    errand_tape_abandon(&tape);
}

/* ---- digest (D45) ------------------------------------------------------------------------------------ */

/* Of an operation that nobody ever waits for a fate is drawn, and nothing shows it: but it counts. */
static void
each_changed_choice_changes_the_digest(void **state)
{
    errand_tape *tape = empty_tape();
    errand_choices choices = ERRAND_CHOICES_INIT;
    errand_choice choice;
    uint64_t digest;
    size_t fates = 0;

    choices.held_record = tape;
    digest = run(*state, 5, &choices, false);
    choices = (errand_choices)ERRAND_CHOICES_INIT;
    choices.provider = ERRAND_PROVIDER_TAPE;
    choices.held_tape = tape;
    for (size_t i = 0; errand_tape_at(tape, i, &choice); i++) {
        uint64_t kept = choice.value;

        if (choice.site != ERRAND_SITE_FATE && choice.site != ERRAND_SITE_BEGIN)
            continue;
        choice.value ^= 1;
        fates++;
        assert_int_equal(errand_tape_put(tape, &choice), ERRAND_OK);
        assert_int_not_equal(run(*state, 5, &choices, false), digest);
        choice.value = kept;
        assert_int_equal(errand_tape_put(tape, &choice), ERRAND_OK);
    }
    assert_true(fates > 10);
    assert_int_equal(run(*state, 5, &choices, false), digest);
    errand_tape_abandon(&tape);
}

/* ---- workloads ----------------------------------------------------------------------------------------- */

static void
only_a_tape_leaves_items_of_a_workload_out(void **state)
{
    test_world *in = *state;
    errand_tape *tape = empty_tape(), *record = empty_tape();
    errand_choices choices = ERRAND_CHOICES_INIT;
    errand_choice choice;

    choices.held_record = record;
    begin(in, 3, &choices);
    for (uint64_t item = 0; item < 50; item++) {
        assert_true(errand_workload_keeps(in->runtime, "calls", item));
        assert_true(errand_workload_keeps(in->runtime, "others", item));
    }
    assert_int_equal(errand_tape_count(record), 100); /* what could be left out */
    for (size_t i = 0; errand_tape_at(record, i, &choice); i++) {
        assert_int_equal(choice.site, ERRAND_SITE_WORKLOAD);
        choice.value = i % 4 == 2; /* every second of calls */
        assert_int_equal(errand_tape_put(tape, &choice), ERRAND_OK);
    }
    choices = (errand_choices)ERRAND_CHOICES_INIT;
    choices.provider = ERRAND_PROVIDER_TAPE;
    choices.held_tape = tape;
    choices.seed_missing = true;
    begin(in, 3, &choices);
    for (uint64_t item = 0; item < 60; item++) {
        bool kept = item % 2 == 0 || item >= 50;

        assert_int_equal(errand_workload_keeps(in->runtime, "calls", item), kept);
        assert_true(errand_workload_keeps(in->runtime, "others", item));
        assert_true(errand_workload_keeps(in->runtime, "", item));
    }
    choices.provider = ERRAND_PROVIDER_BYTES;
    choices.held_bytes = "\377\377\377\377\377\377";
    choices.bytes_size = 6;
    begin(in, 3, &choices);
    assert_true(errand_workload_keeps(in->runtime, "calls", 1));
    begin(in, 3, NULL);
    errand_tape_abandon(&tape);
    errand_tape_abandon(&record);
}

/* ---- configs --------------------------------------------------------------------------------------------- */

static errand_status
try_config(errand_order order, const errand_choices *choices)
{
    errand_runtime_config config = {
        .struct_size = sizeof config, .order = order, .choices = choices};
    errand_runtime *runtime = NULL;
    errand_status status = errand_runtime_create(&config, &runtime);

    if (status == ERRAND_OK)
        assert_int_equal(
            errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL), ERRAND_OK);
    return status;
}

static void
choices_that_make_no_sense_are_refused(void **state)
{
    errand_tape *tape = empty_tape();
    errand_choices good = ERRAND_CHOICES_INIT, bad[9];

    (void)state;
    for (size_t i = 0; i < 9; i++)
        bad[i] = good;
    bad[0].struct_size = 1;
    bad[1].provider = (errand_provider)4;
    bad[2].policy = (errand_policy)6;
    bad[3].depth = ERRAND_DEPTH_MAX + 1;
    bad[4].steps = UINT64_MAX;
    bad[5].provider = ERRAND_PROVIDER_TAPE;
    bad[6].held_tape = bad[6].held_record = tape;
    bad[7].provider = ERRAND_PROVIDER_BYTES;
    bad[7].bytes_size = 1;
    bad[8].provider = ERRAND_PROVIDER_ENUMERATE;
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(try_config(ERRAND_ORDER_INLINE, &bad[i]), ERRAND_EINVAL);
    assert_int_equal(try_config(ERRAND_ORDER_INLINE, &good), ERRAND_OK);
    assert_int_equal(try_config(ERRAND_ORDER_ARRIVAL, &good),
                     ERRAND_EUNSUPPORTED); /* of errand_runtime_create */
    errand_tape_abandon(&tape);
}

#define CHOICE_TEST(name)                                                                \
    cmocka_unit_test_setup_teardown(name, world_setup_inline, world_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        CHOICE_TEST(a_recorded_run_is_the_same_run_and_its_tape_makes_it_again),
        CHOICE_TEST(what_a_tape_lacks_is_0_or_the_seeds),
        CHOICE_TEST(entries_count_wherever_they_stand_on_the_tape),
        CHOICE_TEST(unused_and_changed_entries_are_reported),
        CHOICE_TEST(a_choice_more_in_one_task_shifts_no_others),
        CHOICE_TEST(one_possible_value_makes_no_entry_and_takes_no_number),
        CHOICE_TEST(tasks_draw_32_bits_64_bits_bytes_and_one_of_n),
        CHOICE_TEST(bytes_in_place_of_a_seed_make_the_same_run_twice),
        CHOICE_TEST(a_fuzzers_bytes_become_a_tape),
        CHOICE_TEST(each_changed_choice_changes_the_digest),
        CHOICE_TEST(only_a_tape_leaves_items_of_a_workload_out),
        CHOICE_TEST(choices_that_make_no_sense_are_refused),
    };
    return test_group("runtime/choices", tests, NULL, NULL);
}
