/* SPDX-License-Identifier: MIT */
/* Goal: a run that is forked in its middle goes on in the child as if nothing had been, can be sent
 * another way from there.
 * Method: one program of tasks and operations in inline order; a handler of its steps forks at some
 * of them; children tell their ends through a pipe. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "actor.h"
#include "errand/choice.h"
#include "errand/snapshot.h"
#include "forks.h"
#include "descriptors.h"

enum { TASKS = 4, ROUNDS = 6, BRANCHES = 6 };

typedef struct ending { /* what a run says at its end */
    uint64_t digest, time, drawn;
    size_t tape_size;
} ending;

/* What the handler does: fork at `at`, and if branches != 0 send each child another way. */
static struct {
    test_world *in;
    uint64_t at, steps, picks;
    unsigned branches;
    uint64_t seeds[BRANCHES];
    ending ends[BRANCHES];
    char tapes[BRANCHES][65536];
    int out; /* in a child: where it tells its end */
} mark;

static actor tasks[TASKS];
static world_job jobs[TASKS][ROUNDS];
static unsigned rounds[TASKS];
static uint64_t drawn;

static errand_task_answer
step_work(errand_task *task, actor *self, const errand_task_news *news)
{
    size_t me = (size_t)(self - tasks);
    unsigned round = rounds[me]++;
    errand_spec spec;

    (void)news;
    drawn = drawn * 31 + me; /* the order of the visits */
    if (round >= ROUNDS)
        return ERRAND_TASK_DONE;
    drawn = drawn * 31 + errand_task_choose(task, 1000);
    if (errand_task_choose(task, 3) == 0) {
        self->status = errand_task_yield(task);
        return ERRAND_TASK_WAIT;
    }
    jobs[me][round].world = self->in;
    spec = world_spec(&jobs[me][round]);
    self->status = errand_task_await(task, self->in->lease, &spec, NEVER, NULL);
    return ERRAND_TASK_WAIT;
}

static void
write_all(int fd, const void *bytes, size_t size)
{
    const char *from = bytes;

    while (size > 0) {
        ssize_t written = write(fd, from, size);

        if (written <= 0)
            _exit(9);
        from += written;
        size -= (size_t)written;
    }
}

static size_t
read_all(int fd, void *bytes, size_t size)
{
    size_t got = 0;

    for (ssize_t more; got < size; got += (size_t)more) {
        more = read(fd, (char *)bytes + got, size - got);
        if (more <= 0)
            break;
    }
    return got;
}

/* Forks a child that goes on, and hears how it ended.  True: this is the child. */
static bool
wake(unsigned branch)
{
    char text[160] = "";
    int ends[2];
    int64_t child = -1;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(errand_snapshot_fork(mark.in->runtime, text, sizeof text, &child),
                     ERRAND_OK);
    if (child == 0) {
        close(ends[0]);
        mark.out = ends[1];
        mark.at = 0;
        return true;
    }
    close(ends[1]);
    assert_int_equal(read_all(ends[0], &mark.ends[branch], sizeof(ending)),
                     sizeof(ending));
    assert_true(mark.ends[branch].tape_size < sizeof mark.tapes[branch]);
    assert_int_equal(read_all(ends[0], mark.tapes[branch], mark.ends[branch].tape_size),
                     mark.ends[branch].tape_size);
    close(ends[0]);
    await_child(child);
    return false;
}

static void
at_step(void *arg, const errand_step *step)
{
    (void)arg;
    mark.steps = step->step;
    if (step->step != mark.at)
        return;
    mark.picks = errand_runtime_picks(mark.in->runtime);
    if (mark.branches == 0)
        wake(0);
    for (unsigned i = 0; i < mark.branches; i++) {
        if (!wake(i))
            continue;
        assert_int_equal(errand_snapshot_branch(mark.in->runtime, mark.seeds[i]),
                         ERRAND_OK);
        return;
    }
}

/* One run; in a child that was forked in it the end is told, and that is all. */
static ending
run(test_world *in, const errand_choices *choices)
{
    static const char *const labels[TASKS] = {"a", "b", "c", "d"};
    errand_runtime_config config = {.struct_size = sizeof config,
                                    .order = ERRAND_ORDER_INLINE,
                                    .seed = 7,
                                    .choices = choices};
    errand_tape *record = choices != NULL ? choices->held_record : NULL;
    ending end = {0};

    world_end(in);
    world_begin(in, &config, 0);
    mark.in = in;
    drawn = 0;
    assert_int_equal(errand_trace(in->runtime, at_step, NULL), ERRAND_OK);
    for (size_t i = 0; i < TASKS; i++) {
        tasks[i] = (actor){.step = step_work};
        rounds[i] = 0;
        memset(jobs[i], 0, sizeof jobs[i]);
        actor_spawn(in, NULL, labels[i], &tasks[i]);
    }
    drive_all(in);
    end.digest = errand_digest(in->runtime);
    end.time = errand_runtime_now(in->runtime);
    end.drawn = drawn;
    if (mark.out == 0)
        return end;
    for (size_t i = 0; i < TASKS; i++)
        actor_end(&tasks[i]);
    if (record != NULL)
        end.tape_size = errand_tape_print(record, NULL, 0);
    write_all(mark.out, &end, sizeof end);
    if (record != NULL) {
        static char text[sizeof mark.tapes[0]];

        errand_tape_print(record, text, sizeof text);
        write_all(mark.out, text, end.tape_size);
    }
    _exit(0);
}

static void
assert_same(ending a, ending b)
{
    assert_int_equal(a.digest, b.digest);
    assert_int_equal(a.time, b.time);
    assert_int_equal(a.drawn, b.drawn);
}

static void
mark_at(uint64_t step, unsigned branches)
{
    memset(&mark, 0, sizeof mark);
    mark.at = step;
    mark.branches = branches;
    for (unsigned i = 0; i < BRANCHES; i++)
        mark.seeds[i] = 100 + i / 2; /* each twice */
}

/* ---- going on ------------------------------------------------------------------------------------- */

/* O61 */
static void
a_child_goes_on_to_the_end_of_a_run_that_nobody_forked(void **state)
{
    ending whole;

    need_one_thread();
    mark_at(0, 0);
    whole = run(*state, NULL);
    assert_true(mark.steps > 50);
    for (uint64_t at = 1, last = mark.steps; at <= last; at += 7) {
        mark_at(at, 0);
        assert_same(run(*state, NULL), whole); /* the parent goes on, too */
        assert_same(mark.ends[0], whole);
    }
}

static void
forks_leave_no_process_and_no_descriptor(void **state)
{
    int before = test_count_descriptors();

    need_one_thread();
    mark_at(10, BRANCHES);
    run(*state, NULL);
    assert_int_equal(test_count_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* O61: what was made before is the child's; what a plain fork makes is nobody's. */
static void
the_childs_objects_are_good_and_those_of_its_own_child_are_not(void **state)
{
    test_world *in = *state;
    errand_inbox *inbox;
    int64_t child = -1;
    int fd;

    need_one_thread();
    assert_int_equal(errand_inbox_open(in->runtime, &inbox), ERRAND_OK);
    assert_int_equal(errand_snapshot_fork(in->runtime, NULL, 0, &child), ERRAND_OK);
    if (child == 0) {
        errand_identity nobody = {.runtime = 0};
        world_job job = {.world = in};
        pid_t own;

        if (errand_post_cancel(inbox, &nobody) != ERRAND_EGONE)
            _exit(1);
        world_start(in, &job);
        drive_all(in);
        if (job.ran != 1 || job.dropped != 1)
            _exit(2);
        own = fork();
        if (own == 0)
            _exit(errand_runtime_wake_fd(in->runtime, &fd) == ERRAND_EFORKED ? 0 : 3);
        await_child(own);
        if (errand_runtime_wake_fd(in->runtime, &fd) != ERRAND_OK)
            _exit(4);
        _exit(0);
    }
    await_child(child);
    errand_inbox_abandon(&inbox);
}

/* ---- other ways ----------------------------------------------------------------------------------- */

static void
branch_all(test_world *in, uint64_t at, errand_policy policy)
{
    errand_choices choices = ERRAND_CHOICES_INIT;

    mark_at(at, BRANCHES);
    choices.policy = policy;
    choices.depth = 4;
    choices.steps = 60;
    assert_int_equal(errand_tape_create(&choices.held_record), ERRAND_OK);
    run(in, &choices);
    world_end(in);
    errand_tape_abandon(&choices.held_record);
    in->bytes = errand_testing_live_bytes();
}

/* The run that the tape of a branch makes, from the start. */
static ending
run_tape(test_world *in, unsigned branch, errand_policy policy)
{
    errand_choices choices = ERRAND_CHOICES_INIT;
    ending end;

    choices.provider = ERRAND_PROVIDER_TAPE;
    choices.policy = policy;
    choices.depth = 4;
    choices.steps = 60;
    assert_int_equal(errand_tape_parse(mark.tapes[branch], mark.ends[branch].tape_size,
                                       &choices.held_tape, NULL, 0),
                     ERRAND_OK);
    end = run(in, &choices);
    world_end(in);
    errand_tape_abandon(&choices.held_tape);
    in->bytes = errand_testing_live_bytes();
    return end;
}

static void
branches_differ_by_their_seeds_and_their_tapes_make_them_again(void **state)
{
    need_one_thread();
    for (int policy = 0; policy < ERRAND_POLICIES; policy++) {
        branch_all(*state, 20, (errand_policy)policy);
        mark.at = 0;
        for (unsigned i = 0; i < BRANCHES; i += 2) {
            ending again = run_tape(*state, i, (errand_policy)policy);

            assert_same(mark.ends[i], mark.ends[i + 1]);
            assert_int_equal(again.drawn, mark.ends[i].drawn);
            assert_int_equal(again.time, mark.ends[i].time);
        }
        assert_int_not_equal(mark.ends[0].drawn, mark.ends[2].drawn);
        assert_int_not_equal(mark.ends[2].drawn, mark.ends[4].drawn);
    }
}

/* A point that was reached stands; one that lies ahead is drawn anew, and lies ahead again. */
static void
what_a_policy_has_ahead_is_chosen_anew(void **state)
{
    static const struct {
        errand_policy policy;
        errand_site site;
        uint64_t first, count;
    } rows[] = {{ERRAND_POLICY_PCT, ERRAND_SITE_CHANGE, 1, 3},
                {ERRAND_POLICY_DELAY, ERRAND_SITE_DELAY, 1, 4},
                {ERRAND_POLICY_STARVE, ERRAND_SITE_STARVE, 1, 4}};
    unsigned moved = 0, kept = 0;

    need_one_thread();
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        errand_tape *tapes[2];

        branch_all(*state, 90, rows[row].policy);
        for (int i = 0; i < 2; i++)
            assert_int_equal(errand_tape_parse(mark.tapes[2 * i],
                                               mark.ends[2 * i].tape_size, &tapes[i],
                                               NULL, 0),
                             ERRAND_OK);
        for (uint64_t key = rows[row].first; key <= rows[row].count; key++) {
            errand_choice a, b;

            assert_int_equal(errand_tape_find(tapes[0], rows[row].site, key, 0, &a),
                             ERRAND_OK);
            assert_int_equal(errand_tape_find(tapes[1], rows[row].site, key, 0, &b),
                             ERRAND_OK);
            assert_int_equal(a.n, 61);
            assert_int_equal(a.value <= mark.picks, b.value <= mark.picks);
            if (a.value <= mark.picks)
                assert_int_equal(a.value, b.value);
            moved += a.value != b.value;
            kept += a.value == b.value;
        }
        for (int i = 0; i < 2; i++)
            errand_tape_abandon(&tapes[i]);
    }
    assert_true(moved > 3);
    assert_true(kept > 1);
}

#define INLINE_TEST(fn) cmocka_unit_test_setup_teardown(fn, actors_setup, world_teardown)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        INLINE_TEST(a_child_goes_on_to_the_end_of_a_run_that_nobody_forked),
        INLINE_TEST(forks_leave_no_process_and_no_descriptor),
        INLINE_TEST(the_childs_objects_are_good_and_those_of_its_own_child_are_not),
        INLINE_TEST(branches_differ_by_their_seeds_and_their_tapes_make_them_again),
        INLINE_TEST(what_a_policy_has_ahead_is_chosen_anew),
    };

    return test_group("runtime/snapshot", tests, NULL, NULL);
}
