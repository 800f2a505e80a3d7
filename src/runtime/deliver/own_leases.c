/* SPDX-License-Identifier: MIT */
/* Design notes: leases whose work the runtime's own thread does.
 *
 * They are asked in each drain, turn and park, put what has ended into the inbox, and are told
 * when the thread goes to sleep or elsewhere.  One such lease sleeps for all; with several, the
 * thread sleeps on a descriptor around theirs, and a foreign loop always gets that. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include "runtime/runtime.h"

/* The next lease after *at that is this thread's own; NULL = none. */
static errand_lease *
next_own(errand_runtime *runtime, uint32_t *at)
{
    while (*at < errand__lease_count(runtime)) {
        errand_lease *lease = runtime->leases[(*at)++];

        if ((!lease->closed || lease->lingers) && lease->executor->ops->sleep != NULL)
            return lease;
    }
    return NULL;
}

bool
errand__leases_own(errand_runtime *runtime)
{
    uint32_t at = 0;

    return next_own(runtime, &at) != NULL;
}

void
errand__collect_leases(errand_runtime *runtime)
{
    if (runtime->draining || runtime->driving)
        errand__inbox_disarm(runtime->block); /* they end by arming it again */
    for (uint32_t i = 0; i < errand__lease_count(runtime); i++) {
        errand_lease *lease = runtime->leases[i];

        if ((!lease->closed || lease->lingers) && lease->executor->ops->collect != NULL)
            lease->executor->ops->collect(lease);
        if (lease->lingers && !lease->executor->ops->lingers(lease)) {
            lease->lingers = false;
            runtime->collectors--;
        }
    }
}

bool
errand__leases_rest(errand_runtime *runtime)
{
    errand_lease *lease;
    bool rest = true;

    if (runtime->collectors == 0)
        return true;
    for (uint32_t at = 0; (lease = next_own(runtime, &at)) != NULL;)
        rest = lease->executor->ops->rest(lease) && rest;
    return rest;
}

bool
errand__leases_leave(errand_runtime *runtime)
{
    errand_lease *lease;

    for (uint32_t at = 0; (lease = next_own(runtime, &at)) != NULL;)
        if (!lease->executor->ops->leave(lease))
            return false;
    return true;
}

/* ---- one descriptor around several ------------------------------------------------------------- */

static int
open_around(void)
{
    int fd = epoll_create1(EPOLL_CLOEXEC), higher;

    if (fd < 0 || fd > 2)
        return fd;
    higher = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return higher;
}

static bool
add(int around, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(around, EPOLL_CTL_ADD, fd, &event) == 0 || errno == EEXIST;
}

errand_status
errand__leases_descriptor(errand_runtime *runtime, int *out_fd)
{
    errand_lease *lease;

    if (!errand__leases_own(runtime)) {
        *out_fd = runtime->block->wake_fd;
        return ERRAND_OK;
    }
    if (runtime->foreign_fd < 0)
        runtime->foreign_fd = open_around();
    if (runtime->foreign_fd < 0 || !add(runtime->foreign_fd, runtime->block->wake_fd))
        return ERRAND_ESYSTEM;
    for (uint32_t at = 0; (lease = next_own(runtime, &at)) != NULL;)
        if (!add(runtime->foreign_fd, lease->executor->ops->descriptor(lease)))
            return ERRAND_ESYSTEM;
    *out_fd = runtime->foreign_fd;
    return ERRAND_OK;
}

/* ---- sleep --------------------------------------------------------------------------------------- */

static void
sleep_around(errand_runtime *runtime, uint64_t length_ns)
{
    struct pollfd one = {.events = POLLIN};
    struct timespec length = {.tv_sec = (time_t)(length_ns / 1000000000),
                              .tv_nsec = (long)(length_ns % 1000000000)};
    bool was_armed;

    if (errand__leases_descriptor(runtime, &one.fd) != ERRAND_OK ||
        !errand__inbox_watch(runtime->block, &was_armed))
        return;
    if (errand__leases_rest(runtime))
        (void)ppoll(&one, 1, length_ns == UINT64_MAX ? NULL : &length, NULL);
    errand__inbox_unwatch(runtime->block, was_armed);
    errand__collect_leases(runtime);
}

bool
errand__leases_sleep(errand_runtime *runtime, uint64_t length_ns)
{
    uint32_t at = 0;
    errand_lease *first, *second;

    if (runtime->collectors == 0 || (first = next_own(runtime, &at)) == NULL)
        return false;
    second = next_own(runtime, &at);
    if (second == NULL)
        first->executor->ops->sleep(first, length_ns);
    else
        sleep_around(runtime, length_ns);
    return true;
}
