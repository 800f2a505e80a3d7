/* SPDX-License-Identifier: MIT */
/* Goal: what docs/containment.md says of each case is so, also where the host hangs or dies
 * (O75, O78, C-F9, C-F10).
 * Method: each case in a process of its own with an alarm: a pool that catches runs one body, the host
 * says what it heard, does what may hang, and says that it is back. */
#include <dlfcn.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bodies.h"
#include "core/core.h"
#include "errand/faults.h"
#include "group.h"

#define SAYS 3 /* the descriptor that the host speaks on */

typedef struct said { /* what the host of a case said, in this order */
    char heard;       /* 'h' */
    char back;        /* 'b' */
    int outcome, signal_number, code, verdict;
} said;

/* ---- the process of a case ----------------------------------------------------------------------------------- */

static void
hear(void *arg, errand_completion *completion)
{
    said *now = arg;

    now->heard = 'h';
    now->outcome = (int)completion->outcome;
    now->code = (int)completion->code;
    now->signal_number = completion->signal_number;
}

static void
must(bool good)
{
    if (!good)
        _exit(99);
}

static void
use_the_process(void)
{
    for (size_t size = 16; size < 1000000; size *= 3)
        free(malloc(size));
    must(printf("still here\n") > 0 && fflush(NULL) == 0);
    must(dlopen("libm.so.6", RTLD_NOW) != NULL);
}

static _Noreturn void
be_the_host(const tier_case *it)
{
    const errand_job_type type = {
        .struct_size = sizeof type, .name = it->name, .run = it->run};
    errand_blocking_config config = {.struct_size = sizeof config,
                                     .workers_min = 1,
                                     .workers_max = 1,
                                     .flags = ERRAND_BLOCKING_CATCH_FAULTS};
    errand_faults_config trouble = {.struct_size = sizeof trouble,
                                    .flags = ERRAND_FAULTS_GO_ON};
    struct rlimit no_core = {0, 0};
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_runtime *runtime;
    errand_executor *pool;
    errand_lease *lease;
    errand_faults counts;
    said now = {0};

    mallopt(M_ARENA_MAX, 1);
    setrlimit(RLIMIT_CORE, &no_core);
    must(freopen("/dev/null", "w", stdout) != NULL &&
         freopen("/dev/null", "w", stderr) != NULL);
    alarm(it->end == TIER_HANGS ? 1 : 30);
    must(errand_runtime_create(NULL, &runtime) == ERRAND_OK);
    must(errand_blocking_create(&config, &pool) == ERRAND_OK);
    must(errand_faults_set(pool, &trouble) == ERRAND_OK);
    must(errand_attach(runtime, pool, 0, &lease) == ERRAND_OK);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &type;
    must(errand_start(lease, &spec, NULL, NULL) == ERRAND_OK);
    for (size_t count = 0; count == 0;) {
        must(errand_park(runtime, UINT64_MAX) == ERRAND_OK);
        must(errand_drain(runtime, 1, hear, &now, &count) == ERRAND_OK);
    }
    must(errand_faults_read(pool, &counts) == ERRAND_OK);
    now.verdict = counts.caught > 0 ? (int)counts.last.verdict : 0;
    must(write(SAYS, &now, sizeof now) == (ssize_t)sizeof now);
    (it->probe != NULL ? it->probe : use_the_process)();
    now.back = 'b';
    must(write(SAYS, &now, sizeof now) == (ssize_t)sizeof now);
    _exit(0);
}

/* ---- the test ------------------------------------------------------------------------------------------------ */

static int
run_process(const char *name, said *out)
{
    int ends[2], status = 0;
    said next;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        if (ends[1] != SAYS) {
            dup2(ends[1], SAYS);
            close(ends[1]);
        }
        execl("/proc/self/exe", "thread_tier", "--case", name, (char *)NULL);
        _exit(98);
    }
    assert_true(child > 0);
    close(ends[1]);
    memset(out, 0, sizeof *out);
    while (read(ends[0], &next, sizeof next) == (ssize_t)sizeof next)
        *out = next;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void
check_case(const tier_case *it)
{
    said now;
    int status = run_process(it->name, &now);
    bool told = it->end == TIER_GOES_ON || it->end == TIER_HANGS;

    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        print_error("%s: exit %d\n", it->name, WEXITSTATUS(status));
    else
        print_message("%s: heard %d outcome %d signal %d verdict %d back %d status %x\n",
                      it->name, now.heard != 0, now.outcome, now.signal_number,
                      now.verdict, now.back != 0, (unsigned)status);
    assert_int_equal(now.heard != 0, told);
    assert_int_equal(now.back != 0, it->end == TIER_GOES_ON);
    if (told) {
        assert_int_equal(now.outcome, it->outcome);
        assert_int_equal(now.signal_number, it->signal_number);
        if (it->outcome == ERRAND_CRASHED)
            assert_int_equal(now.verdict,
                             it->suspect ? ERRAND_FAULT_SUSPECT : ERRAND_FAULT_CLEAN);
    }
    if (it->end == TIER_KILLED || it->end == TIER_HANGS) {
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status),
                         it->end == TIER_HANGS ? SIGALRM : it->signal_number);
    } else {
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void
check_all(const tier_case *cases, size_t count)
{
    if (ERRAND_SANITIZED)
        test_skip("a sanitizer has fault handlers of its own");
    if (test_under("valgrind"))
        test_skip("valgrind has fault handlers of its own");
    for (size_t i = 0; i < count; i++)
        check_case(&cases[i]);
}

static void
mistakes_are_contained_and_the_host_goes_on(void **state)
{
    (void)state;
    check_all(tier_mistakes, tier_mistake_count);
}

static void
locks_stay_held_and_the_guard_can_be_jumped(void **state)
{
    (void)state;
    check_all(tier_locks, tier_lock_count);
}

static void
malice_ends_the_process(void **state)
{
    (void)state;
    check_all(tier_attacks, tier_attack_count);
}

static const tier_case *
find_case(const char *name)
{
    const tier_case *const tables[] = {tier_mistakes, tier_locks, tier_attacks};
    const size_t counts[] = {tier_mistake_count, tier_lock_count, tier_attack_count};

    for (int t = 0; t < 3; t++)
        for (size_t i = 0; i < counts[t]; i++)
            if (strcmp(tables[t][i].name, name) == 0)
                return &tables[t][i];
    return NULL;
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_contained_and_the_host_goes_on),
        cmocka_unit_test(locks_stay_held_and_the_guard_can_be_jumped),
        cmocka_unit_test(malice_ends_the_process),
    };

    if (argc == 3 && strcmp(argv[1], "--case") == 0 && find_case(argv[2]) != NULL)
        be_the_host(find_case(argv[2]));
    return test_group("hostile/thread_tier", tests, NULL, NULL);
}
