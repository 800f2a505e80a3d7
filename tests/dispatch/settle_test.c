/* SPDX-License-Identifier: MIT */
/* Goal: of all who may end an operation one wins, and only the winner puts (O17, O20).
 * Method: a record without a runtime; its control word is moved by hand, and by two threads at
 * once, whose distance is swept until each of them wins often enough to count. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "dispatch/dispatch.h"
#include "group.h"

typedef struct stage {
    errand__block *block;
    errand__registrar registrar;
    errand__record *record;
    uint32_t generation;
    errand__cell mine, theirs;
} stage;

static int32_t
run_nothing(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    return 0;
}

static const errand_job_type job_type = {.struct_size = sizeof job_type,
                                         .run = run_nothing};

static void
stage_init(stage *self)
{
    memset(self, 0, sizeof *self);
    self->block = errand__block_create(1, 8, 4);
    assert_non_null(self->block);
    errand__registrar_init(&self->registrar, self->block->records, 8, NULL, 1);
}

static void
stage_fini(stage *self)
{
    errand__registrar_fini(&self->registrar);
    errand__block_close_account(self->block, 0);
    errand__block_let(self->block);
}

/* A fresh operation, QUEUED. */
static void
stage_arm(stage *self)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &job_type;
    assert_int_equal(errand__registrar_issue(&self->registrar, 1, NULL, &self->record),
                     ERRAND_OK);
    errand__record_fill(self->record, &spec, NULL);
    self->record->phase = ERRAND__PHASE_ARMED;
    self->generation = errand__arm(self->record, true);
}

/* How many completions were put; the record is free again. */
static unsigned
stage_take(stage *self)
{
    uintptr_t last, link = errand__inbox_take(self->block, &last);
    unsigned puts = 0;

    for (; link != 0; link = *errand__node_next(link), puts++)
        assert_ptr_equal(errand__node_pointer(link), self->record);
    errand__registrar_recycle(&self->registrar, self->record);
    return puts;
}

static bool
claim(stage *self)
{
    return errand__claim(self->record, self->generation, &self->theirs);
}

static bool
end_running(stage *self, errand__cell *cell)
{
    if (!errand__settle_begin(self->record, self->generation, ERRAND__RUNNING,
                              ERRAND_COMPLETED, ERRAND_CODE_NONE, 0))
        return false;
    errand__settle(self->block, self->record, cell, NULL);
    return true;
}

static bool
cancel_queued(stage *self)
{
    return errand__settle_queued(self->block, self->record, self->generation,
                                 ERRAND_CANCELLED, ERRAND_CODE_CANCELLED, &self->mine,
                                 NULL);
}

static void
nothing_leaves_settled(void **state)
{
    /* O17, O20: whichever way it came there. */
    stage self;

    (void)state;
    stage_init(&self);
    for (int way = 0; way < 2; way++) {
        uint64_t word;

        stage_arm(&self);
        if (way == 0)
            assert_true(claim(&self) && end_running(&self, &self.theirs));
        else
            assert_true(cancel_queued(&self));
        word = atomic_load_explicit(&self.record->control, memory_order_relaxed);
        assert_int_equal(errand__control_state(word), ERRAND__SETTLED);
        assert_false(claim(&self));
        assert_false(cancel_queued(&self));
        assert_false(end_running(&self, &self.mine));
        assert_false(errand__settle_begin(self.record, self.generation, ERRAND__QUEUED,
                                          ERRAND_FAILED, ERRAND_CODE_DEADLINE, 0));
        assert_true(atomic_load_explicit(&self.record->control, memory_order_relaxed) ==
                    word);
        assert_int_equal(stage_take(&self), 1);
    }
    stage_fini(&self);
}

static void
moves_that_skip_a_state_are_refused(void **state)
{
    /* O17 */
    stage self;

    (void)state;
    stage_init(&self);
    stage_arm(&self);
    assert_false(end_running(&self, &self.theirs)); /* it was not claimed */
    assert_true(claim(&self));
    assert_false(claim(&self)); /* O20: a body is entered once */
    assert_false(cancel_queued(&self));
    self.generation++; /* an entry of an older operation of this record */
    assert_false(end_running(&self, &self.theirs));
    self.generation--;
    assert_true(end_running(&self, &self.theirs));
    assert_int_equal(stage_take(&self), 1);
    stage_arm(&self);
    self.generation--;
    assert_false(claim(&self));
    assert_false(cancel_queued(&self));
    self.generation++;
    assert_true(cancel_queued(&self));
    assert_int_equal(stage_take(&self), 1);
    stage_fini(&self);
}

/* ---- the assertion ----------------------------------------------------------------------------- */

static void
settle_twice(stage *self)
{
    (void)claim(self);
    (void)end_running(self, &self->theirs);
    errand__settle(self->block, self->record, &self->mine, NULL);
}

static void
settle_without_winning(stage *self)
{
    (void)claim(self);
    errand__settle(self->block, self->record, &self->mine, NULL);
}

/* Runs act in a child; true if it died of an assertion. */
static bool
dies(stage *self, void (*act)(stage *))
{
    char text[256] = "";
    int ends[2], status;
    ssize_t length;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        act(self);
        _exit(0);
    }
    close(ends[1]);
    length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && length > 0 &&
           strstr(text, "assertion failed") != NULL && strstr(text, "settle.c") != NULL;
}

static void
a_second_put_of_one_operation_aborts_in_every_build(void **state)
{
    /* O17 */
    stage self;

    (void)state;
    stage_init(&self);
    stage_arm(&self);
    assert_true(dies(&self, settle_twice));
    assert_true(dies(&self, settle_without_winning));
    assert_true(cancel_queued(&self)); /* what the children did is not ours */
    assert_int_equal(stage_take(&self), 1);
    stage_fini(&self);
}

/* ---- races ------------------------------------------------------------------------------------- */

enum { STEP = 16, FAR = 4000 }; /* of a counting loop */

typedef struct race {
    stage stage;
    bool from_running; /* both try RUNNING -> SETTLED, as a write-off does */
    /* ready: the round that the other side waits for.  go: the one that it may play.  done: the
     * one that it played.
     * Writers: one side each.  Readers: the other.  Order: release, acquire.
     * Pairs: race-round (this file).  Why: the record is armed before, read after. */
    atomic_uint ready, go, done;
    int delay;  /* of the other side in this round */
    bool other; /* won */
} race;

static void
pause_for(int rounds)
{
    if (rounds > FAR)
        sched_yield(); /* the other side has no processor of its own */
    else
        for (volatile int i = 0; i < rounds; i++)
            continue;
}

static unsigned
wait_for(atomic_uint *word, unsigned least)
{
    unsigned seen;

    for (int i = 0; (seen = atomic_load_explicit(word, memory_order_acquire)) < least;
         i++)
        if (i > 1000) /* Pairs: race-round */
            sched_yield();
    return seen;
}

static void *
play_other_side(void *arg)
{
    race *self = arg;

    for (unsigned round = 1;; round++) {
        atomic_store_explicit(&self->ready, round, memory_order_release);
        if (wait_for(&self->go, round) == UINT32_MAX)
            return NULL;
        pause_for(self->delay);
        self->other = (self->from_running || claim(&self->stage)) &&
                      end_running(&self->stage, &self->stage.theirs);
        atomic_store_explicit(&self->done, round, memory_order_release);
    }
}

static void
run_race(bool from_running)
{
    race self = {.from_running = from_running};
    unsigned rounds = (unsigned)test_scaled(1000000), won[2] = {0, 0};
    int offset = 0;
    pthread_t thread;

    stage_init(&self.stage);
    assert_int_equal(pthread_create(&thread, NULL, play_other_side, &self), 0);
    for (unsigned round = 1; round <= rounds; round++) {
        bool mine;

        stage_arm(&self.stage);
        if (from_running)
            assert_true(claim(&self.stage));
        self.delay = offset < 0 ? -offset : 0;
        wait_for(&self.ready, round);
        atomic_store_explicit(&self.go, round, memory_order_release);
        pause_for(offset > 0 ? offset : 0);
        mine = from_running ? end_running(&self.stage, &self.stage.mine)
                            : cancel_queued(&self.stage);
        wait_for(&self.done, round);
        assert_true(mine != self.other);
        assert_int_equal(stage_take(&self.stage), 1);
        won[mine]++;
        offset += mine ? STEP : -STEP; /* who won is held back next time */
        if (offset > 2 * FAR || offset < -2 * FAR)
            offset = 0;
    }
    atomic_store_explicit(&self.go, UINT32_MAX, memory_order_release);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(won[0] >= rounds / 20 && won[1] >= rounds / 20);
    stage_fini(&self.stage);
}

static void
a_canceller_and_a_worker_never_both_end_an_operation(void **state)
{
    /* O17, C-A10 */
    (void)state;
    run_race(false);
}

static void
a_worker_and_who_writes_it_off_never_both_end_an_operation(void **state)
{
    /* O17 */
    (void)state;
    run_race(true);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_leaves_settled),
        cmocka_unit_test(moves_that_skip_a_state_are_refused),
        cmocka_unit_test(a_second_put_of_one_operation_aborts_in_every_build),
        cmocka_unit_test(a_canceller_and_a_worker_never_both_end_an_operation),
        cmocka_unit_test(a_worker_and_who_writes_it_off_never_both_end_an_operation),
    };
    return test_group("dispatch/settle", tests, NULL, NULL);
}
