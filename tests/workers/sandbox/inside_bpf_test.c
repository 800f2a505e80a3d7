/* SPDX-License-Identifier: MIT */
/* Goal: a program decides as its rules say: the first that matches, of who named the call first; what
 * does not fit is refused; and where memory runs out while a filter is made the host gets an error.
 * Method: drawn rules are looked at one by one, and compared with what their program answers.  The C
 * library's allocations are this program's own, and the n-th fails. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bpf_run.h"
#include "inside_rig.h"
#include "workers/sandbox/bpf.h"
#include "workers/sandbox/filter.h"

enum {
    NUMBERS = 6,
    RULES = 40,
    PROGRAMS = 300,
    DRAWS = 400,
    NEWER = SECCOMP_RET_ERRNO | ENOSYS
};

#if !ERRAND_SANITIZED && defined(__GLIBC__)
#define OWN_MEMORY 1
/* ---- allocations that fail -------------------------------------------------------------- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);

static uint64_t asked, failing; /* failing: which of those asked for; 0 = none */

static bool
fails(void)
{
    if (++asked != failing)
        return false;
    errno = ENOMEM;
    return true;
}

void *
malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *block, size_t size)
{
    return fails() ? NULL : __libc_realloc(block, size);
}

/* O10: each of them, also those of other libraries. */
static void
a_filter_that_finds_no_memory_is_refused(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        errand__filter filter;
        char text[128] = "";
        asked = 0;
        failing = n;
        errand_status status =
            errand__filter_create(ERRAND_PROMISE_INET, ERRAND_DENY_KILL,
                                  ERRAND__FILTER_LOADING, &filter, text, sizeof text);
        failing = 0;
        if (asked < n) {
            assert_int_equal(status, ERRAND_OK);
            errand__filter_destroy(&filter);
            assert_true(n > 1);
            return;
        }
        assert_int_equal(status, ERRAND_ENOMEM);
        assert_non_null(strstr(text, strerror(ENOMEM)));
    }
}
#endif

/* ---- rules ------------------------------------------------------------------------------- */

typedef struct drawn { /* one rule */
    int number;
    bool names; /* its call is named before it */
    uint32_t action;
    unsigned count;
    errand__bpf_test tests[ERRAND__BPF_TESTS];
} drawn;

static uint64_t
draw(uint64_t *state, uint64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (*state >> 20) % below;
}

/* Few values, so that some match; in both halves. */
static uint64_t
draw_word(uint64_t *state)
{
    return draw(state, 4) | draw(state, 4) << 31 | draw(state, 2) << 63;
}

static bool
matches(const drawn *item, const struct seccomp_data *data)
{
    for (unsigned i = 0; i < item->count; i++) {
        const errand__bpf_test *test = &item->tests[i];
        if ((data->args[test->argument] & test->mask) != test->value)
            return false;
    }
    return true;
}

/* By the rules of who names the call first. */
static uint32_t
decide(const drawn *items, const struct seccomp_data *data)
{
    unsigned i = 0;
    while (i < RULES && items[i].number != data->nr)
        i++;
    if (i == RULES)
        return SECCOMP_RET_KILL_PROCESS;
    do
        if (matches(&items[i], data))
            return items[i].action;
    while (++i < RULES && !items[i].names);
    return SECCOMP_RET_KILL_PROCESS;
}

static void
the_first_rule_of_the_first_to_name_a_call_decides(void **state)
{
    (void)state;
    uint64_t seed = 3, matched = 0;
    for (unsigned i = 0; i < PROGRAMS; i++) {
        static errand__bpf bpf;
        drawn items[RULES];
        struct sock_filter *program = NULL;
        uint32_t length = 0;
        int number = 0;
        errand__bpf_begin(&bpf, BPF_MACHINE, NEWER, SECCOMP_RET_KILL_PROCESS);
        for (unsigned j = 0; j < RULES; j++) {
            drawn *item = &items[j];
            bool names = j == 0 || draw(&seed, 3) == 0;
            if (names) {
                number = (int)draw(&seed, NUMBERS);
                errand__bpf_call(&bpf, number);
            }
            *item = (drawn){.number = number,
                            .names = names,
                            .action = SECCOMP_RET_ERRNO | (j + 1),
                            .count = (unsigned)draw(&seed, ERRAND__BPF_TESTS + 1)};
            for (unsigned k = 0; k < item->count; k++) {
                uint64_t mask = draw(&seed, 3) == 0 ? UINT64_MAX : draw_word(&seed);
                item->tests[k] = (errand__bpf_test){(unsigned)draw(&seed, 6), mask,
                                                    draw_word(&seed) & mask};
            }
            errand__bpf_rule(&bpf, item->action, item->count, item->tests);
        }
        assert_int_equal(errand__bpf_finish(&bpf, &program, &length), 0);
        for (unsigned j = 0; j < DRAWS; j++) {
            struct seccomp_data data = {.nr = (int)draw(&seed, NUMBERS + 1),
                                        .arch = BPF_MACHINE};
            for (int k = 0; k < 6; k++)
                data.args[k] = draw_word(&seed);
            uint32_t expected = decide(items, &data);
            assert_int_equal(bpf_run(program, length, &data), expected);
            matched += expected != SECCOMP_RET_KILL_PROCESS;
        }
        errand__mem_free(NULL, program, length * sizeof *program);
    }
    assert_true(matched > PROGRAMS * DRAWS / 4);
}

/* Numbers that are none, or are newer, are left out with their rules. */
static void
a_call_without_a_number_has_no_rules(void **state)
{
    (void)state;
    static const int numbers[] = {-1, -10180, ERRAND__BPF_CALLS, INT32_MAX};
    static errand__bpf bpf;
    struct sock_filter *program = NULL;
    uint32_t length = 0;
    errand__bpf_begin(&bpf, BPF_MACHINE, NEWER, SECCOMP_RET_KILL_PROCESS);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        errand__bpf_call(&bpf, 1);
        errand__bpf_rule(&bpf, SECCOMP_RET_ERRNO | EPERM, 0, NULL);
        errand__bpf_call(&bpf, numbers[i]);
        errand__bpf_rule(&bpf, SECCOMP_RET_ALLOW, 0, NULL);
    }
    assert_int_equal(errand__bpf_finish(&bpf, &program, &length), 0);
    for (int number = -2; number < 2000; number++) {
        struct seccomp_data data = {.nr = number, .arch = BPF_MACHINE};
        uint32_t expected = number == 1                   ? SECCOMP_RET_ERRNO | EPERM
                            : number >= ERRAND__BPF_CALLS ? NEWER
                                                          : SECCOMP_RET_KILL_PROCESS;
        assert_int_equal(bpf_run(program, length, &data), expected);
    }
    errand__mem_free(NULL, program, length * sizeof *program);
}

/* Rules of count, each of which takes four instructions and its answer. */
static int
finish_with(unsigned calls, unsigned rules)
{
    static const errand__bpf_test both = {0, UINT64_MAX, UINT64_C(1) << 32 | 1};
    static errand__bpf bpf;
    struct sock_filter *program = NULL;
    uint32_t length = 0;
    int64_t before = errand__mem_live_bytes();
    errand__bpf_begin(&bpf, BPF_MACHINE, NEWER, SECCOMP_RET_KILL_PROCESS);
    for (unsigned i = 0; i < calls; i++) {
        errand__bpf_call(&bpf, (int)i);
        for (unsigned j = 0; j < rules; j++)
            errand__bpf_rule(&bpf, SECCOMP_RET_ALLOW, 1, &both);
    }
    int error = errand__bpf_finish(&bpf, &program, &length);
    if (error == 0)
        errand__mem_free(NULL, program, length * sizeof *program);
    assert_int_equal(errand__mem_live_bytes(), before);
    return error;
}

static void
what_no_jump_or_kernel_can_span_is_refused(void **state)
{
    (void)state;
    assert_int_equal(finish_with(1, 50), 0); /* 250 and the end */
    assert_int_equal(finish_with(1, 51), E2BIG);
    assert_int_equal(finish_with(16, 50), 0);
    assert_int_equal(finish_with(17, 50), E2BIG);
    assert_int_equal(finish_with(ERRAND__BPF_CALLS, 50), E2BIG);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
#ifdef OWN_MEMORY
        cmocka_unit_test(a_filter_that_finds_no_memory_is_refused),
#endif
        cmocka_unit_test(the_first_rule_of_the_first_to_name_a_call_decides),
        cmocka_unit_test(a_call_without_a_number_has_no_rules),
        cmocka_unit_test(what_no_jump_or_kernel_can_span_is_refused),
    };
    return test_group("workers/sandbox/inside_bpf", tests, NULL, NULL);
}
