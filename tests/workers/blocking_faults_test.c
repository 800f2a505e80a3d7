/* SPDX-License-Identifier: MIT */
/* Goal: a fault of a body is one CRASHED completion that says what it was, its worker is replaced, and
 * what the process may have lost is counted, told and remembered (O78).
 * Method: bodies that fault in every way that is caught, on a pool that catches. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fault_rig.h"

/* ---- bodies ---------------------------------------------------------------------------------------- */

static void
write_nowhere(rig_job *self, errand_job *job)
{
    (void)self;
    (void)job;
    *(volatile int *)nowhere = 1;
}

static volatile int zero;

static void
divide(rig_job *self, errand_job *job)
{
    (void)job;
    self->number = 7 / zero;
}

static void
undefined_instruction(rig_job *self, errand_job *job)
{
    (void)self;
    (void)job;
#if defined(__x86_64__)
    __asm__ volatile("ud2");
#else
    __builtin_trap();
#endif
}

static void
read_truncated(rig_job *self, errand_job *job)
{
    FILE *file = tmpfile();
    volatile char *page =
        mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0); /* of an empty file */

    (void)job;
    self->arg = file;
    self->number = page[0];
}

static void
call_abort(rig_job *self, errand_job *job)
{
    (void)self;
    (void)job;
    abort();
}

static __attribute__((noinline)) int
recurse(volatile char *above, int depth)
{
    volatile char frame[512];

    frame[0] = (char)(above[0] + 1);
    return depth == 0 ? frame[0] : recurse(frame, depth - 1) + frame[0];
}

static void
overflow_stack(rig_job *self, errand_job *job)
{
    volatile char start[1] = {0};

    (void)job;
    self->number = recurse(start, 1 << 24);
}

static void
do_nothing(rig_job *self, errand_job *job)
{
    (void)job;
    self->number++;
}

/* ---- tests ----------------------------------------------------------------------------------------- */

static void
each_signal_is_a_crash_that_says_what_it_was(void **state)
{
    /* O78 */
    static const struct {
        void (*fn)(rig_job *self, errand_job *job);
        const char *text;
        int number;
        errand_verdict_on_fault verdict;
    } cases[] = {
        {write_nowhere, "SIGSEGV at address 0x10,", SIGSEGV, ERRAND_FAULT_CLEAN},
        {divide, "SIGFPE at address 0x", SIGFPE, ERRAND_FAULT_CLEAN},
        {undefined_instruction, "SIGILL at address 0x", SIGILL, ERRAND_FAULT_CLEAN},
        {read_truncated, "SIGBUS at address 0x", SIGBUS, ERRAND_FAULT_CLEAN},
        {call_abort, "SIGABRT, instruction 0x", SIGABRT, ERRAND_FAULT_SUSPECT},
        {overflow_stack, "stack overflow: SIGSEGV", SIGSEGV, ERRAND_FAULT_CLEAN},
    };
    enum { CASES = sizeof cases / sizeof cases[0] };
    rig_job jobs[CASES], after = {.fn = do_nothing};
    errand_fault fault;
    pool_rig rig;

    (void)state;
    fault_rig_needed();
    memset(jobs, 0, sizeof jobs);
    fault_rig_init(&rig, 1, NULL);
    for (uint64_t i = 0; i < CASES; i++) {
        jobs[i].fn = cases[i].fn;
        rig_start(&rig, &jobs[i]);
        rig_await(&rig, i + 1);
        assert_int_equal(rig.outcomes[ERRAND_CRASHED], i + 1);
        assert_int_equal(rig.codes[ERRAND_CODE_CRASHED], i + 1);
        assert_ptr_equal(strstr(rig.message, cases[i].text), rig.message);
        assert_int_equal(jobs[i].dropped, 1);
        assert_int_equal(errand_faults_find(rig.executor, &jobs[i].identity, &fault),
                         ERRAND_OK);
        assert_int_equal(fault.signal_number, cases[i].number);
        assert_int_equal(fault.verdict, cases[i].verdict);
        assert_int_equal(fault.stack_overflow, cases[i].fn == overflow_stack);
        assert_true(fault.pc != 0 && fault.module[0] != '\0');
    }
    fclose(jobs[3].arg);
    rig_start(&rig, &after);
    rig_await(&rig, CASES + 1);
    assert_int_equal(after.number, 1);
    errand_faults counts = fault_rig_read(&rig);
    assert_int_equal(counts.caught, CASES);
    assert_int_equal(counts.suspect, 1);
    assert_int_equal(counts.segv, 2);
    assert_int_equal(counts.bus + counts.fpe + counts.ill + counts.abrt, 4);
    assert_int_equal(counts.last.signal_number, SIGSEGV);
    assert_int_equal(counts.flags, ERRAND_FAULTS_CATCHING | ERRAND_FAULTS_TAINTED |
                                       ERRAND_FAULTS_RESTART_ADVISED);
    assert_int_equal(errand_faults_find(rig.executor, &after.identity, &fault),
                     ERRAND_EUNKNOWN);
    rig_fini(&rig);
}

static void
signal_of_a_completion_is_its_own(void *arg, errand_completion *completion)
{
    *(int32_t *)arg = completion->signal_number;
}

static void
completion_has_the_signals_number(void **state)
{
    /* O27, O78 */
    rig_job job = {.fn = write_nowhere};
    int32_t number = 0;
    size_t count = 0;
    pool_rig rig;

    (void)state;
    fault_rig_needed();
    fault_rig_init(&rig, 1, NULL);
    rig_start(&rig, &job);
    while (count == 0) {
        assert_int_equal(errand_park(rig.runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(rig.runtime, 1, signal_of_a_completion_is_its_own,
                                      &number, &count),
                         ERRAND_OK);
    }
    assert_int_equal(number, SIGSEGV);
    rig_fini(&rig);
}

static void
after_a_suspect_fault_only_a_host_that_says_so_goes_on(void **state)
{
    errand_faults_config strict = {.struct_size = sizeof strict};
    rig_job clean = {.fn = write_nowhere}, suspect = {.fn = call_abort},
            after = {.fn = do_nothing};
    errand_spec spec = rig_spec(&after);
    pool_rig rig;

    (void)state;
    fault_rig_needed();
    fault_rig_init(&rig, 1, &strict);
    rig_start(&rig, &clean);
    rig_await(&rig, 1);
    assert_int_equal(fault_rig_read(&rig).flags,
                     ERRAND_FAULTS_CATCHING | ERRAND_FAULTS_TAINTED);
    rig_start(&rig, &after); /* clean: it goes on */
    rig_await(&rig, 2);
    rig_start(&rig, &suspect);
    rig_await(&rig, 3);
    assert_int_equal(fault_rig_read(&rig).flags & ERRAND_FAULTS_REFUSING,
                     ERRAND_FAULTS_REFUSING);
    for (int i = 0; i < 2; i++) {
        errand_status status = errand_start(rig.lease, &spec, NULL, NULL);

        assert_int_equal(status, ERRAND_ETAINTED); /* of errand_submit */
    }
    assert_int_equal(after.dropped, 1); /* O10: the state of the refused ones is ours */
    rig_fini(&rig);
}

typedef struct taint_heard {
    errand_fault fault;
    atomic_bool told;
} taint_heard;

static void
hear_taint(void *arg, const errand_fault *fault)
{
    taint_heard *heard = arg;

    heard->fault = *fault;
    atomic_store_explicit(&heard->told, true, memory_order_release);
}

static void
host_is_told_of_each_taint(void **state)
{
    static taint_heard heard;
    errand_faults_config config = {
        .struct_size = sizeof config, .held_on_taint = hear_taint, .held_arg = &heard};
    rig_job job = {.fn = write_nowhere};
    pool_rig rig;

    (void)state;
    fault_rig_needed();
    fault_rig_init(&rig, 1, &config);
    rig_start(&rig, &job);
    rig_await(&rig, 1);
    rig_fini(&rig); /* the runtime ends; the hook may still run */
    while (!atomic_load_explicit(&heard.told, memory_order_acquire))
        sched_yield();
    assert_int_equal(heard.fault.signal_number, SIGSEGV);
    assert_int_equal(heard.fault.address, 16);
    assert_memory_equal(&heard.fault.identity, &job.identity, sizeof job.identity);
}

/* ---- many ------------------------------------------------------------------------------------------- */

static int
count_entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static size_t
resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t all = 0, pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu %zu", &all, &pages), 2);
    fclose(file);
    return pages * 4096;
}

static bool
threads_are(void *arg)
{
    return count_entries("/proc/self/task") - 2 == *(int *)arg; /* "." and ".." */
}

static bool
two_work_again(void *arg)
{
    int threads = 4; /* this one, two workers, who looks after them */

    return rig_snapshot(arg).workers == 2 && threads_are(&threads);
}

static void
crashed_threads_leave_nothing_behind(void **state)
{
    static void (*const bodies[])(rig_job *, errand_job *) = {
        write_nowhere, divide, undefined_instruction, call_abort, overflow_stack};
    uint64_t rounds = test_scaled(2000), heard = 0;
    errand_faults_config config = {.struct_size = sizeof config,
                                   .flags = ERRAND_FAULTS_GO_ON,
                                   .breaker_events = UINT32_MAX};
    int descriptors = 0;
    size_t pages = 0;
    pool_rig rig;

    (void)state;
    fault_rig_needed();
    fault_rig_init(&rig, 2, &config);
    for (uint64_t i = 0; i < rounds; i++) {
        rig_job job = {.fn = bodies[i % 5]};

        rig_start(&rig, &job);
        rig_await(&rig, ++heard);
        if (i == 20) { /* warm */
            descriptors = count_entries("/proc/self/fd");
            pages = resident();
        }
    }
    assert_int_equal(rig.outcomes[ERRAND_CRASHED], rounds);
    assert_int_equal(fault_rig_read(&rig).caught, rounds);
    assert_int_equal(count_entries("/proc/self/fd"), descriptors);
    rig_until(two_work_again, &rig);
    assert_true(resident() < pages + 4 * 1024 * 1024);
    assert_true(rig_snapshot(&rig).threads_started >= rounds);
    rig_fini(&rig);
}

static void
every_job_of_a_crowd_that_faults_is_told_once(void **state)
{
    enum { JOBS = 200 };
    static rig_job jobs[JOBS];
    pool_rig rig;

    (void)state;
    fault_rig_needed();
    memset(jobs, 0, sizeof jobs);
    fault_rig_init(&rig, 4, NULL);
    for (int i = 0; i < JOBS; i++) {
        jobs[i].fn = i % 2 == 0 ? write_nowhere : do_nothing;
        rig_start(&rig, &jobs[i]);
    }
    rig_await(&rig, JOBS);
    assert_int_equal(rig.outcomes[ERRAND_CRASHED], JOBS / 2);
    assert_int_equal(rig.outcomes[ERRAND_COMPLETED], JOBS / 2);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].ran, 1);
        assert_int_equal(jobs[i].dropped, 1);
    }
    rig_fini(&rig);
}

/* ---- what belongs to the process --------------------------------------------------------------------- */

static void
handlers_of_the_process_come_back(void **state)
{
    /* O62 */
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction before[5], now;
    errand_blocking_config config = fault_rig_config(1);
    errand_executor *first, *second;
    int threads = 1;

    (void)state;
    fault_rig_needed();
    rig_until(threads_are, &threads); /* the pools of other tests have ended */
    for (int i = 0; i < 5; i++)
        assert_int_equal(sigaction(numbers[i], NULL, &before[i]), 0);
    assert_int_equal(errand_blocking_create(&config, &first), ERRAND_OK);
    assert_int_equal(errand_blocking_create(&config, &second), ERRAND_OK);
    errand_executor_abandon(&first);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(sigaction(numbers[i], NULL, &now), 0);
        assert_ptr_not_equal(now.sa_sigaction, before[i].sa_sigaction);
    }
    errand_executor_abandon(&second);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(sigaction(numbers[i], NULL, &now), 0);
        assert_ptr_equal(now.sa_sigaction, before[i].sa_sigaction);
        assert_int_equal(now.sa_flags, before[i].sa_flags);
    }
}

static void
sanitized_builds_refuse_to_catch(void **state)
{
    errand_blocking_config config = fault_rig_config(1);
    errand_executor *executor = NULL;
    errand_status status = errand_blocking_create(&config, &executor);

    (void)state;
    if (ERRAND_SANITIZED || test_under("valgrind")) {
        assert_int_equal(status, ERRAND_EUNSUPPORTED); /* of errand_blocking_create */
        assert_null(executor);
        return;
    }
    assert_int_equal(status, ERRAND_OK);
    errand_executor_abandon(&executor);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_signal_is_a_crash_that_says_what_it_was),
        cmocka_unit_test(completion_has_the_signals_number),
        cmocka_unit_test(after_a_suspect_fault_only_a_host_that_says_so_goes_on),
        cmocka_unit_test(host_is_told_of_each_taint),
        cmocka_unit_test(crashed_threads_leave_nothing_behind),
        cmocka_unit_test(every_job_of_a_crowd_that_faults_is_told_once),
        cmocka_unit_test(handlers_of_the_process_come_back),
        cmocka_unit_test(sanitized_builds_refuse_to_catch),
    };

    return test_group("workers/blocking_faults", tests, NULL, NULL);
}
