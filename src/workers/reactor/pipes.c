/* SPDX-License-Identifier: MIT */
/* pipes: a write to a pipe that nobody reads raises SIGPIPE on the thread that makes the call, and
 * a loop without a thread of its own makes it on the host's.  It is blocked meanwhile, and one
 * that came is taken out, unless the host had it blocked and pending itself (O62). */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include "workers/reactor/reactor.h"

_Static_assert(sizeof(sigset_t) <= sizeof(((errand__pipe_guard *)0)->mask),
               "room for a signal mask");

static void
only_pipe(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

void
errand__pipe_guard_enter(errand__pipe_guard *guard)
{
    sigset_t set, before;

    sigpending(&set);
    guard->pending = sigismember(&set, SIGPIPE) == 1;
    only_pipe(&set);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    memcpy(guard->mask, &before, sizeof before);
}

void
errand__pipe_guard_leave(errand__pipe_guard *guard)
{
    const struct timespec none = {0, 0};
    int saved = errno;
    sigset_t set, before;

    only_pipe(&set);
    if (!guard->pending)
        while (sigtimedwait(&set, NULL, &none) < 0 && errno == EINTR) {
        }
    memcpy(&before, guard->mask, sizeof before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
}
