/* SPDX-License-Identifier: MIT */
/* workers/blocking_signal: the interrupt signal of cancelled bodies (O60).
 *
 * Goal: it ends blocking calls of the body that was cancelled, also when it came too early, and
 * nothing else; and the process is afterwards what it was (O62).
 * Method: bodies read from pipes that nobody writes; gates and pause points decide what has
 * happened; where something must not come, another cancelled body counts what it gets. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "errand/task.h"
#include "pool_rig.h"

#define SIGNAL SIGURG

/* ---- bodies --------------------------------------------------------------------------------- */

typedef struct reader {
    int fds[2];
    test_gate gate; /* before the read */
    int patience;   /* that many times EINTR is not heeded */
    atomic_int interrupted;
    bool got, open, asked;
    pthread_t thread;
} reader;

static bool
is_open(void)
{
    sigset_t blocked;

    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    return sigismember(&blocked, SIGNAL) == 0;
}

/* Reads one byte, or ends when its patience is over. */
static void
read_byte(rig_job *self, errand_job *job)
{
    reader *of = self->arg;
    sigset_t pending;
    char byte;

    of->open = is_open();
    of->thread = pthread_self();
    gate_wait(&of->gate);
    sigpending(&pending); /* whatever was sent before has come by now */
    for (;;) {
        of->got = read(of->fds[0], &byte, 1) == 1;
        if (of->got || errno != EINTR)
            break;
        if (atomic_fetch_add_explicit(&of->interrupted, 1, memory_order_relaxed) >=
            of->patience)
            break;
    }
    of->asked = errand_job_cancelled(job);
}

static void
reader_init(reader *of)
{
    memset(of, 0, sizeof *of);
    assert_int_equal(pipe(of->fds), 0);
    gate_init(&of->gate, "before the read");
}

static void
reader_fini(reader *of)
{
    close(of->fds[0]);
    close(of->fds[1]);
    gate_fini(&of->gate);
}

static int
interruptions(reader *of)
{
    return atomic_load_explicit(&of->interrupted, memory_order_relaxed);
}

/* ---- the rig -------------------------------------------------------------------------------- */

static errand_blocking_config
signalling(uint32_t workers)
{
    return (errand_blocking_config){.struct_size = sizeof(errand_blocking_config),
                                    .workers_min = workers,
                                    .workers_max = workers,
                                    .interrupt_signal = SIGNAL};
}

static void
open_rig(pool_rig *rig, uint32_t workers)
{
    errand_blocking_config config = signalling(workers);

    rig_init_config(rig, &config, 0);
}

static void
hear(void *arg, errand_completion *completion)
{
    pool_rig *rig = arg;

    rig->heard++;
    rig->outcomes[completion->outcome]++;
}

typedef struct expected {
    pool_rig *rig;
    uint64_t heard;
} expected;

static bool
is_heard(void *arg)
{
    const expected *of = arg;

    assert_int_equal(errand_drain(of->rig->runtime, SIZE_MAX, hear, of->rig, NULL),
                     ERRAND_OK);
    return of->rig->heard >= of->heard;
}

/* As rig_await, but with an end, because a body that is not signalled reads for ever. */
static void
await(pool_rig *rig, uint64_t heard)
{
    rig_until(is_heard, &(expected){rig, heard});
}

static void
cancel_running(pool_rig *rig, const rig_job *job)
{
    errand_cancel_answer answer;

    assert_int_equal(
        errand_cancel(rig->runtime, &job->identity, ERRAND_REASON_EXPLICIT, &answer),
        ERRAND_OK);
    assert_int_equal(answer, ERRAND_CANCEL_RUNNING);
}

static struct sigaction
handler_of(int number)
{
    struct sigaction action;

    assert_int_equal(sigaction(number, NULL, &action), 0);
    return action;
}

static bool
has_no_handler(void *arg)
{
    (void)arg;
    return handler_of(SIGNAL).sa_handler == SIG_DFL;
}

static void
close_rig(pool_rig *rig)
{
    rig_fini(rig);
    rig_until(has_no_handler, NULL);
}

static bool
counts_six(void *arg)
{
    return interruptions(arg) >= 6;
}

/* Returns when a body that was cancelled now has been signalled six times: 31 ms at least. */
static void
let_signals_pass(void)
{
    errand_blocking_config config = signalling(1);
    pool_rig rig;
    reader counter;
    rig_job job = {.fn = read_byte, .arg = &counter};

    reader_init(&counter);
    counter.patience = 6;
    rig_init_config(&rig, &config, 0);
    rig_start(&rig, &job);
    gate_await_arrival(&counter.gate);
    gate_open(&counter.gate);
    cancel_running(&rig, &job);
    rig_until(counts_six, &counter);
    await(&rig, 1);
    rig_fini(&rig);
    reader_fini(&counter);
}

/* ---- what it ends --------------------------------------------------------------------------- */

static void
a_cancel_ends_a_read_that_nobody_answers(void **state)
{
    /* O60 */
    pool_rig rig;
    reader of;
    rig_job job = {.fn = read_byte, .arg = &of};

    (void)state;
    reader_init(&of);
    open_rig(&rig, 1);
    rig_start(&rig, &job);
    gate_await_arrival(&of.gate);
    gate_open(&of.gate);
    cancel_running(&rig, &job);
    await(&rig, 1);
    assert_true(of.open && of.asked && !of.got);
    assert_int_equal(interruptions(&of), 1);
    close_rig(&rig);
    reader_fini(&of);
}

static void
a_signal_that_came_before_the_call_is_sent_again(void **state)
{
    /* O60: the gate is opened after the cancel, so its own signal is spent before the read */
    pool_rig rig;
    reader of;
    rig_job job = {.fn = read_byte, .arg = &of};

    (void)state;
    reader_init(&of);
    of.patience = 3; /* and again */
    open_rig(&rig, 1);
    rig_start(&rig, &job);
    gate_await_arrival(&of.gate);
    cancel_running(&rig, &job);
    gate_open(&of.gate);
    await(&rig, 1);
    assert_int_equal(interruptions(&of), 4);
    close_rig(&rig);
    reader_fini(&of);
}

static test_gate open_gate;

static void
stop_before_open(void *arg, const char *place)
{
    (void)arg;
    if (strcmp(place, "interrupt-open") == 0)
        gate_wait(&open_gate);
}

static void
a_cancel_between_claim_and_body_is_not_lost(void **state)
{
    /* O60: the canceller finds a running job that cannot be signalled yet */
    pool_rig rig;
    reader of;
    rig_job job = {.fn = read_byte, .arg = &of};

    (void)state;
    reader_init(&of);
    gate_init(&open_gate, "before the signal is let in");
    gate_open(&of.gate);
    open_rig(&rig, 1);
    errand_testing_pause(stop_before_open, NULL);
    rig_start(&rig, &job);
    gate_await_arrival(&open_gate);
    cancel_running(&rig, &job);
    gate_open(&open_gate);
    await(&rig, 1);
    errand_testing_pause(NULL, NULL);
    assert_int_equal(interruptions(&of), 1);
    close_rig(&rig);
    gate_fini(&open_gate);
    reader_fini(&of);
}

/* Deadlines are met by errand_drive, which drains as well. */
static bool
drive_until_drained(void *arg)
{
    pool_rig *rig = arg;
    errand_snapshot of;

    assert_int_equal(errand_drive(rig->runtime, NULL, NULL), ERRAND_OK);
    assert_int_equal(errand_runtime_snapshot(rig->runtime, &of), ERRAND_OK);
    return of.drained == 1;
}

static void
a_deadline_signals_the_body_too(void **state)
{
    /* O45, O60 */
    errand_runtime_config clocked = {.struct_size = sizeof clocked,
                                     .flags = ERRAND_RUNTIME_TEST_CLOCK};
    errand_blocking_config config = signalling(1);
    pool_rig rig = {.shares = false};
    reader of;
    rig_job job = {.fn = read_byte, .arg = &of};
    errand_spec spec = rig_spec(&job);

    (void)state;
    reader_init(&of);
    spec.deadline_ns = 1000000;
    assert_int_equal(errand_blocking_create(&config, &rig.executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(&clocked, &rig.runtime), ERRAND_OK);
    assert_int_equal(errand_attach(rig.runtime, rig.executor, 0, &rig.lease), ERRAND_OK);
    rig_start_spec(&rig, &spec);
    gate_await_arrival(&of.gate); /* it runs, whatever the time is */
    gate_open(&of.gate);
    assert_int_equal(errand_testing_clock(rig.runtime, spec.deadline_ns), ERRAND_OK);
    rig_until(drive_until_drained, &rig);
    assert_true(of.asked && !of.got);
    assert_int_equal(interruptions(&of), 1);
    close_rig(&rig);
    reader_fini(&of);
}

/* ---- what it leaves alone ------------------------------------------------------------------- */

static void
return_when_asked(rig_job *self, errand_job *job)
{
    gate_wait(self->arg);
    while (!errand_job_cancelled(job))
        continue;
}

static void
panic_when_asked(rig_job *self, errand_job *job)
{
    return_when_asked(self, job);
    errand_panic("asked to end");
}

static void
exit_when_asked(rig_job *self, errand_job *job)
{
    return_when_asked(self, job);
    pthread_exit(NULL);
}

static void
the_next_job_on_the_worker_is_not_interrupted(void **state)
{
    /* O60: whichever way the cancelled body ended */
    void (*const ends[3])(rig_job *, errand_job *) = {return_when_asked, panic_when_asked,
                                                      exit_when_asked};

    (void)state;
    for (int i = 0; i < 3; i++) {
        pool_rig rig;
        reader of;
        test_gate gate;
        rig_job jobs[2] = {{.fn = ends[i], .arg = &gate}, {.fn = read_byte, .arg = &of}};

        reader_init(&of);
        gate_init(&gate, "running");
        gate_open(&gate);
        gate_open(&of.gate);
        open_rig(&rig, 1);
        rig_start(&rig, &jobs[0]);
        gate_await_arrival(&gate);
        cancel_running(&rig, &jobs[0]);
        rig_start(&rig, &jobs[1]);
        gate_await_arrival(&of.gate);
        let_signals_pass();
        assert_int_equal(write(of.fds[1], "x", 1), 1);
        await(&rig, 2);
        assert_true(of.got && !of.asked);
        assert_int_equal(interruptions(&of), 0);
        close_rig(&rig);
        gate_fini(&gate);
        reader_fini(&of);
    }
}

static atomic_int closed_places, open_places;

static void
look_at_mask(void *arg, const char *place)
{
    (void)arg;
    if (strcmp(place, "body-done") == 0)
        atomic_fetch_add_explicit(is_open() ? &open_places : &closed_places, 1,
                                  memory_order_relaxed);
}

static void
it_is_let_in_during_such_bodies_alone(void **state)
{
    /* O60 */
    pool_rig rig;
    reader readers[3];
    rig_job jobs[3];

    (void)state;
    open_rig(&rig, 1);
    atomic_store_explicit(&open_places, 0, memory_order_relaxed);
    atomic_store_explicit(&closed_places, 0, memory_order_relaxed);
    errand_testing_pause(look_at_mask, NULL);
    for (int i = 0; i < 3; i++) {
        reader_init(&readers[i]);
        jobs[i] = (rig_job){.fn = read_byte, .arg = &readers[i]};
        errand_spec spec = rig_spec(&jobs[i]);
        if (i == 1)
            spec.flags = ERRAND_SPEC_NO_SIGNAL;
        if (i == 2) {
            spec.resource_class = ERRAND_QUARANTINED_BLOCKING;
            spec.quarantine_ns = UINT64_C(60000000000);
        }
        rig_start_spec(&rig, &spec);
        gate_await_arrival(&readers[i].gate);
        if (i > 0) {
            cancel_running(&rig, &jobs[i]);
            let_signals_pass();
        }
        assert_int_equal(write(readers[i].fds[1], "x", 1), 1);
        gate_open(&readers[i].gate);
        await(&rig, (uint64_t)i + 1);
        assert_true(readers[i].got);
        assert_int_equal(interruptions(&readers[i]), 0);
        assert_int_equal(readers[i].open, i == 0);
        reader_fini(&readers[i]);
    }
    errand_testing_pause(NULL, NULL);
    assert_int_equal(atomic_load_explicit(&open_places, memory_order_relaxed), 0);
    assert_true(atomic_load_explicit(&closed_places, memory_order_relaxed) >= 3);
    close_rig(&rig);
}

static void
cancels_that_race_the_end_of_bodies_interrupt_no_other(void **state)
{
    /* O60 */
    const int rounds = (int)test_scaled(2000);
    pool_rig rig;

    (void)state;
    open_rig(&rig, 1);
    for (int i = 0; i < rounds; i++) {
        reader of[2];
        rig_job jobs[2] = {{.fn = read_byte, .arg = &of[0]},
                           {.fn = read_byte, .arg = &of[1]}};

        for (int k = 0; k < 2; k++) {
            reader_init(&of[k]);
            gate_open(&of[k].gate);
            rig_start(&rig, &jobs[k]);
        }
        gate_await_arrival(&of[0].gate);
        assert_int_equal(write(of[0].fds[1], "x", 1), 1);
        rig_spin((uint64_t)(i % 50) * 1000);
        assert_int_equal(
            errand_cancel(rig.runtime, &jobs[0].identity, ERRAND_REASON_EXPLICIT, NULL),
            ERRAND_OK);
        gate_await_arrival(&of[1].gate);
        assert_int_equal(write(of[1].fds[1], "x", 1), 1);
        await(&rig, 2 * (uint64_t)(i + 1));
        assert_true(of[1].got);
        assert_int_equal(interruptions(&of[1]), 0);
        reader_fini(&of[0]);
        reader_fini(&of[1]);
    }
    close_rig(&rig);
}

/* ---- the process ---------------------------------------------------------------------------- */

static void
hosts_own(int number)
{
    (void)number;
}

static void
a_signal_that_the_host_uses_is_refused(void **state)
{
    /* O62, O10 */
    static void (*const used[2])(int) = {hosts_own, SIG_IGN};
    errand_blocking_config config = signalling(1);
    errand_executor *executor = NULL;

    (void)state;
    for (int i = 0; i < 2; i++) {
        signal(SIGNAL, used[i]);
        assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_EBUSY);
        assert_null(executor);
        assert_true(handler_of(SIGNAL).sa_handler == used[i]);
    }
    signal(SIGNAL, SIG_DFL);
    errand_testing_refuse_threads(1);
    assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_ENOTHREAD);
    errand_testing_refuse_threads(0);
    assert_null(executor);
    assert_true(has_no_handler(NULL));
}

static void
signals_that_cannot_be_used_are_refused(void **state)
{
    static const int bad[] = {-1, SIGKILL, SIGSTOP, SIGSEGV, SIGABRT, 32, 65};
    errand_executor *executor = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        errand_blocking_config config = signalling(1);

        config.interrupt_signal = bad[i];
        assert_int_equal(errand_blocking_create(&config, &executor), ERRAND_EINVAL);
    }
    assert_null(executor);
}

static void
the_handler_goes_with_the_last_pool(void **state)
{
    /* O62 */
    errand_blocking_config config = signalling(1);
    errand_executor *first, *second, *without;

    (void)state;
    assert_int_equal(errand_blocking_create(NULL, &without), ERRAND_OK);
    assert_true(has_no_handler(NULL));
    assert_int_equal(errand_blocking_create(&config, &first), ERRAND_OK);
    assert_int_equal(errand_blocking_create(&config, &second), ERRAND_OK);
    struct sigaction own = handler_of(SIGNAL);
    assert_true(own.sa_handler != SIG_DFL && (own.sa_flags & SA_RESTART) == 0);
    errand_executor_abandon(&first);
    errand_executor_abandon(&without);
    assert_true(handler_of(SIGNAL).sa_handler == own.sa_handler);
    errand_executor_abandon(&second);
    assert_true(has_no_handler(NULL));
}

static void
a_handler_that_the_host_puts_in_its_place_stays(void **state)
{
    /* O62 */
    errand_blocking_config config = signalling(1);
    errand_executor *first, *second = NULL;

    (void)state;
    config.interrupt_signal = SIGRTMIN + 3;
    assert_int_equal(errand_blocking_create(&config, &first), ERRAND_OK);
    signal(SIGRTMIN + 3, hosts_own);
    assert_int_equal(errand_blocking_create(&config, &second), ERRAND_EBUSY);
    errand_executor_abandon(&first);
    assert_true(handler_of(SIGRTMIN + 3).sa_handler == hosts_own);
    signal(SIGRTMIN + 3, SIG_DFL);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancel_ends_a_read_that_nobody_answers),
        cmocka_unit_test(a_signal_that_came_before_the_call_is_sent_again),
        cmocka_unit_test(a_cancel_between_claim_and_body_is_not_lost),
        cmocka_unit_test(a_deadline_signals_the_body_too),
        cmocka_unit_test(the_next_job_on_the_worker_is_not_interrupted),
        cmocka_unit_test(it_is_let_in_during_such_bodies_alone),
        cmocka_unit_test(cancels_that_race_the_end_of_bodies_interrupt_no_other),
        cmocka_unit_test(a_signal_that_the_host_uses_is_refused),
        cmocka_unit_test(signals_that_cannot_be_used_are_refused),
        cmocka_unit_test(the_handler_goes_with_the_last_pool),
        cmocka_unit_test(a_handler_that_the_host_puts_in_its_place_stays),
    };

    return test_group("workers/blocking_signal", tests, NULL, NULL);
}
