/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_SUPPORT_GROUP_H
#define ERRAND_TESTS_SUPPORT_GROUP_H
/* group: one test program's tests, run by cmocka with a watchdog around each.
 *
 *     int
 *     main(void)
 *     {
 *         static const struct CMUnitTest tests[] = {
 *             cmocka_unit_test(second_bind_is_refused_as_spent),
 *         };
 *         return test_group("registrar/registrar", tests, NULL, NULL);
 *     }
 *
 * ERRAND_TEST_FILTER=pattern (with * and ?) in the environment runs some of them.
 * ERRAND_TEST_SECONDS=n changes how long one test may take (default 60). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Runs the tests; answers what main should return.  name is the folder and file. */
#define test_group(name, tests, setup, teardown)                                         \
    test_group_run((name), (tests), sizeof(tests) / sizeof((tests)[0]), (setup),         \
                   (teardown))
int test_group_run(const char *name, const struct CMUnitTest *tests, size_t count,
                   CMFixtureFunction setup, CMFixtureFunction teardown);

/* The running test's name, for messages; "(no test)" between tests.  Any thread. */
const char *test_name(void);

/* Ends the running test as skipped and prints why, for what this configuration cannot run:
 * test_skip("fault catching does not work under sanitizers"). */
void test_skip(const char *reason);

/* Is this the configuration of ./check with that name ("valgrind", "tsan", ...)?  For what cannot
 * be looked at there. */
bool test_under(const char *config);

/* How often to repeat: full in ./check --long, a tenth of it by default (at least 1),
 * a twentieth of that under valgrind.  ERRAND_TEST_SCALE says how many tenths. */
uint64_t test_scaled(uint64_t full);

#endif
