/* SPDX-License-Identifier: MIT */
/* A library that does in its constructor, while a worker opens it, what TRIES says; and a function that
 * answers "ok" where the constructor let it come that far. */
#include "jobs.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CRASHES = 1, EXITS, HANGS, FORKS, THREAD, ABORTS, KILLS_HOST, LOOPS_DEAF };
static int found;

static void *
live_on(void *arg)
{
    for (;;)
        sleep(3600);
    return arg;
}

static volatile int *volatile nowhere = (volatile int *)8; /* the compiler may not look */

__attribute__((constructor)) static void
begin(void)
{
    pthread_t thread;

    switch (TRIES) {
    case CRASHES:
        *nowhere = 1;
        break;
    case EXITS:
        _exit(0);
    case HANGS:
        for (;;)
            __asm__ __volatile__("");
    case FORKS:
        found = fork();
        if (found == 0)
            for (;;)
                __asm__ __volatile__("");
        break;
    case THREAD:
        found = pthread_create(&thread, NULL, live_on, NULL);
        break;
    case ABORTS:
        abort();
    case KILLS_HOST:
        kill(getppid(), SIGKILL);
        break;
    default:
        for (int number = 1; number < NSIG; number++)
            signal(number, SIG_IGN);
        for (;;)
            __asm__ __volatile__("");
    }
}

/* "ok" where what was tried was refused; "evil" where it was not. */
JOB(job_ok)
{
    bool refused = TRIES == FORKS ? found < 0 : found != 0;

    return call->write(call, refused ? "ok" : "evil", refused ? 2 : 4) ? 0 : EFBIG;
}
