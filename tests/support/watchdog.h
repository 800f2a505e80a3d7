/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_SUPPORT_WATCHDOG_H
#define ERRAND_TESTS_SUPPORT_WATCHDOG_H
/* watchdog: ends a program whose test hangs, and says which test it was.  It uses SIGALRM and
 * no thread, so a test may count threads and fork. */

/* How long one test may take: ERRAND_TEST_SECONDS, else 60. */
unsigned watchdog_seconds(void);

/* After so many seconds without watchdog_stop the program prints name and aborts.  name must
 * live until then.  Starting again sets a new limit: a test that needs longer calls it with
 * its own name and figure. */
void watchdog_start(const char *name, unsigned seconds);
void watchdog_stop(void);

#endif
