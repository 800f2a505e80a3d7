/* SPDX-License-Identifier: MIT */
/* watchdog: alarm(2) and a handler that may only write and abort.
 *
 * Design notes: the handler runs on whichever thread takes SIGALRM, so the message is made
 * ready before the alarm is set and is not changed while it runs.  A forked child inherits
 * no alarm. */
#include "watchdog.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECONDS_DEFAULT = 60 };

static char message[256];
static size_t message_size;

unsigned
watchdog_seconds(void)
{
    const char *text = getenv("ERRAND_TEST_SECONDS");
    unsigned long seconds = text != NULL ? strtoul(text, NULL, 10) : 0;

    return seconds > 0 ? (unsigned)seconds : SECONDS_DEFAULT;
}

static void
bark(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, message, message_size) < 0)
        _exit(99);
    abort();
}

void
watchdog_start(const char *name, unsigned seconds)
{
    struct sigaction action = {.sa_handler = bark};

    alarm(0);
    int length = snprintf(message, sizeof message,
                          "[  HUNG    ] %s: did not end within %u s\n", name, seconds);
    message_size = (size_t)length < sizeof message ? (size_t)length : sizeof message - 1;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGALRM, &action, NULL) != 0)
        abort();
    alarm(seconds);
}

void
watchdog_stop(void)
{
    alarm(0);
    signal(SIGALRM, SIG_DFL);
}
