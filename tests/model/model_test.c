/* SPDX-License-Identifier: MIT */
/* Goal: the library answers, delivers and drops what docs/promises.md says, for any calls in
 * any order.  Method: programs from seeds, run against the library and the model; a program
 * that disagrees is made as small as it goes, in children, and printed. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "group.h"
#include "program.h"

static uint8_t bytes[PROGRAM_HEAD + PROGRAM_CALLS_MAX * PROGRAM_CALL];

/* Inline order runs a program twice. */
static bool
agrees(const uint8_t *program, size_t size, uint64_t inline_seed, bool trace,
       program_result *result)
{
    program_result again;

    if (!program_run(program, size, inline_seed, trace, result))
        return false;
    if (inline_seed == 0)
        return true;
    if (!program_run(program, size, inline_seed, false, &again)) {
        *result = again;
        return false;
    }
    if (again.log != result->log || again.digest != result->digest) {
        snprintf(result->text, sizeof result->text, "two runs differ");
        return false;
    }
    return true;
}

/* Which disagreement is it?  Its words without their numbers; 1 = none. */
static int
kind_of(const program_result *result)
{
    const char *text = strstr(result->text, "): ");
    unsigned hash = 7;

    for (text = text != NULL ? text : result->text; *text != '\0'; text++)
        if (*text < '0' || *text > '9')
            hash = hash * 31 + (unsigned char)*text;
    return 2 + (int)(hash % 120);
}

/* What becomes of it in a child: 0, a kind, or more than that for a crash. */
static int
outcome_in_child(const uint8_t *program, size_t size, uint64_t inline_seed)
{
    program_result result;
    int status = 0;

    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(10);
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(3);
        _exit(agrees(program, size, inline_seed, false, &result) ? 0 : kind_of(&result));
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

typedef struct failure {
    uint64_t inline_seed;
    int outcome;
} failure;

static bool
fails_alike(void *arg, const uint8_t *program, size_t size)
{
    const failure *wanted = arg;

    return outcome_in_child(program, size, wanted->inline_seed) == wanted->outcome;
}

static void
print_smallest(size_t size, uint64_t inline_seed)
{
    program_result result;
    failure wanted = {inline_seed, outcome_in_child(bytes, size, inline_seed)};

    size = program_shrink(bytes, size, fails_alike, &wanted);
    fprintf(stderr, "smallest program, %zu calls:", (size - PROGRAM_HEAD) / PROGRAM_CALL);
    for (size_t i = 0; i < size; i++)
        fprintf(stderr, "%s%02x", i % PROGRAM_CALL == 0 ? " " : "", bytes[i]);
    fprintf(stderr, "\n");
    agrees(bytes, size, inline_seed, true, &result);
}

/* The seed that runs, for a library that aborts. */
static volatile uint64_t running;

static void
tell_seed(int number)
{
    char text[] =
        "aborted; again with the smallest program: ERRAND_MODEL_SEED=00000000\n";
    size_t end = sizeof text - 3;

    for (uint64_t seed = running; seed != 0 && text[end] == '0'; seed /= 10)
        text[end--] = (char)('0' + seed % 10);
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(1);
    signal(number, SIG_DFL);
}

static void
report(uint64_t seed, size_t size, uint64_t inline_seed, const char *text)
{
    fprintf(stderr, "seed %llu, %s order: %s\n", (unsigned long long)seed,
            inline_seed == 0       ? "arrival"
            : inline_seed % 2 != 0 ? "inline"
                                   : "paced",
            text);
    print_smallest(size, inline_seed);
    fail();
}

static void
run_seeds(uint64_t seeds, bool inline_order)
{
    const char *only = getenv("ERRAND_MODEL_SEED");
    uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1, completions = 0,
             calls = 0, bodies = 0;
    program_result result;

    signal(SIGABRT, tell_seed);
    signal(SIGSEGV, tell_seed);
    for (running = first; running < first + (only != NULL ? 1 : seeds); running++) {
        size_t size = program_make(running, 20 + running % 180, bytes);
        uint64_t inline_seed = inline_order ? running : 0;
        if (only != NULL && outcome_in_child(bytes, size, inline_seed) != 0)
            report(running, size, inline_seed, "it fails");
        if (!agrees(bytes, size, inline_seed, false, &result))
            report(running, size, inline_seed, result.text);
        completions += result.completions;
        calls += result.calls;
        bodies += result.bodies;
    }
    printf("%llu programs, %llu calls, %llu bodies, %llu completions\n",
           (unsigned long long)seeds, (unsigned long long)calls,
           (unsigned long long)bodies, (unsigned long long)completions);
}

static void
any_program_agrees_with_the_model(void **state)
{
    (void)state;
    run_seeds(test_scaled(20000), false);
}

static void
any_program_runs_the_same_twice_in_a_seeded_order(void **state)
{
    (void)state;
    run_seeds(test_scaled(10000), true);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_program_agrees_with_the_model),
        cmocka_unit_test(any_program_runs_the_same_twice_in_a_seeded_order),
    };
    return test_group("model/model", tests, NULL, NULL);
}
