/* SPDX-License-Identifier: MIT */
/* Goal: misuse reaches the hook that is set, with cause and mend, and answers its status.
 * Method: a function with a required argument; hooks that write down what they hear. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/core.h"
#include "group.h"

typedef struct heard {
    int times;
    errand_status status;
    char text[512];
} heard;

static void
write_down(void *arg, errand_status status, const char *text)
{
    heard *news = arg;
    news->times++;
    news->status = status;
    strcpy(news->text, text);
}

static errand_status
take_even(int number)
{
    ERRAND_REQUIRE_ARG(number % 2 == 0, ERRAND_EINVAL, "number is odd");
    return ERRAND_OK;
}

static int
teardown(void **state)
{
    (void)state;
    errand_misuse_hook(NULL, NULL);
    return 0;
}

/* O80 */
static void
misuse_answers_its_status_and_calls_the_hook(void **state)
{
    (void)state;
    heard news = {0};
    errand_misuse_hook(write_down, &news);
    assert_int_equal(take_even(2), ERRAND_OK);
    assert_int_equal(news.times, 0);
    assert_int_equal(take_even(3), ERRAND_EINVAL);
    assert_int_equal(news.times, 1);
    assert_int_equal(news.status, ERRAND_EINVAL);
    assert_string_equal(news.text, "take_even: number is odd");
}

static errand_status
take_again(const char *text)
{
    return errand__misuse(ERRAND_EDUPLICATE, __func__, text);
}

static void
cause_and_mend_are_said_once(void **state)
{
    (void)state;
    heard news = {0};
    errand_misuse_hook(write_down, &news);
    assert_int_equal(take_again("it is attached"), ERRAND_EDUPLICATE);
    assert_string_equal(news.text, "take_again: it is attached; use that lease");
    assert_int_equal(take_again("it is attached; let go first"), ERRAND_EDUPLICATE);
    assert_string_equal(news.text, "take_again: it is attached; let go first");
}

/* O80 */
static void
misuse_answers_its_status_without_a_hook(void **state)
{
    (void)state;
    heard news = {0};
    errand_misuse_hook(write_down, &news);
    errand_misuse_hook(NULL, &news);
    assert_int_equal(take_even(3), ERRAND_EINVAL);
    assert_int_equal(news.times, 0);
}

static void
only_the_last_hook_hears(void **state)
{
    (void)state;
    static heard news[200]; /* more than need no memory */
    memset(news, 0, sizeof news);
    int64_t live = 0;
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 200; i++) {
            errand_misuse_hook(write_down, &news[i]);
            (void)take_even(3);
            assert_int_equal(news[i].times, round);
        }
        if (round == 1)
            live = errand__mem_live_bytes();
        assert_int_equal(errand__mem_live_bytes(), live); /* hooks that come again */
    }
}

static void
long_text_is_cut(void **state)
{
    (void)state;
    heard news = {0};
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    errand_misuse_hook(write_down, &news);
    assert_int_equal(errand__misuse(ERRAND_ESPENT, "f", text), ERRAND_ESPENT);
    assert_int_equal(strlen(news.text), 511);
    assert_string_equal(news.text + 508, "...");
}

/* times, wrong: calls of a hook, and those with the other hook's argument.
 * Writers: the thread that misuses.  Readers: the same.  Order: relaxed.  Pairs: none.
 * Why: plain counts. */
typedef struct pairs {
    atomic_int times, wrong;
} pairs;

static pairs counts[2];

static int
get(atomic_int *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

static void
hear_first(void *arg, errand_status status, const char *text)
{
    (void)status;
    (void)text;
    if (arg != &counts[0])
        atomic_fetch_add_explicit(&counts[0].wrong, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts[0].times, 1, memory_order_relaxed);
}

static void
hear_second(void *arg, errand_status status, const char *text)
{
    (void)status;
    (void)text;
    if (arg != &counts[1])
        atomic_fetch_add_explicit(&counts[1].wrong, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts[1].times, 1, memory_order_relaxed);
}

static void *
change_hooks(void *arg)
{
    atomic_bool *stop = arg;
    while (!atomic_load_explicit(stop, memory_order_relaxed)) {
        errand_misuse_hook(hear_first, &counts[0]);
        errand_misuse_hook(hear_second, &counts[1]);
    }
    return NULL;
}

static void
hook_is_read_as_a_pair_while_others_change_it(void **state)
{
    (void)state;
    atomic_bool stop = false;
    pthread_t threads[2];
    errand_misuse_hook(hear_first, &counts[0]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, change_hooks, &stop), 0);
    int called = 0;
    while (get(&counts[0].times) < 1000 || get(&counts[1].times) < 1000) {
        (void)take_even(1);
        called++;
    }
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(get(&counts[0].wrong) + get(&counts[1].wrong), 0);
    assert_int_equal(get(&counts[0].times) + get(&counts[1].times), called);
}

static void
failed_assertion_names_its_place_and_aborts(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        errand__assert_failed("some/file.c", 42, "pigs == wings");
    }
    close(ends[1]);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGABRT);
    char text[256];
    ssize_t size = read(ends[0], text, sizeof text - 1);
    assert_true(size > 0);
    text[size] = '\0';
    assert_non_null(strstr(text, "some/file.c:42: assertion failed: pigs == wings\n"));
    close(ends[0]);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(misuse_answers_its_status_and_calls_the_hook, teardown),
        cmocka_unit_test_teardown(cause_and_mend_are_said_once, teardown),
        cmocka_unit_test_teardown(misuse_answers_its_status_without_a_hook, teardown),
        cmocka_unit_test_teardown(only_the_last_hook_hears, teardown),
        cmocka_unit_test_teardown(long_text_is_cut, teardown),
        cmocka_unit_test_teardown(hook_is_read_as_a_pair_while_others_change_it,
                                  teardown),
        cmocka_unit_test(failed_assertion_names_its_place_and_aborts),
    };
    return test_group("core/misuse", tests, NULL, NULL);
}
