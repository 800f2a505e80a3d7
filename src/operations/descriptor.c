/* SPDX-License-Identifier: MIT */
/* descriptor: open, pipe and close as every body needs them.
 *
 * Design notes: a host may have closed its descriptors 0, 1 or 2; a new one that lands there
 * would receive what other code writes to stdout, and could not be passed to a child by dup2
 * in a fixed order.  So each is moved above 2.  close is never repeated: on Linux the number is
 * free also after EINTR. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "operations/operations.h"

int
errand__operation_fd_open(const char *path, int flags, uint32_t mode)
{
    int fd;

    do {
        fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, (mode_t)mode);
    } while (fd < 0 && errno == EINTR);
    return errand__operation_fd_raise(fd);
}

int
errand__operation_fd_raise(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    errand__operation_fd_close(&fd);
    return high;
}

bool
errand__operation_fd_pipe(int out_ends[2])
{
    if (pipe2(out_ends, O_CLOEXEC) != 0) {
        out_ends[0] = out_ends[1] = -1;
        return false;
    }
    out_ends[0] = errand__operation_fd_raise(out_ends[0]);
    int error = errno;
    out_ends[1] = errand__operation_fd_raise(out_ends[1]);
    if (out_ends[0] >= 0 && out_ends[1] >= 0)
        return true;
    errno = out_ends[0] < 0 ? error : errno;
    errand__operation_fd_close(&out_ends[0]);
    errand__operation_fd_close(&out_ends[1]);
    return false;
}

void
errand__operation_fd_close(int *take_fd)
{
    int error = errno;

    if (*take_fd >= 0)
        close(*take_fd);
    *take_fd = -1;
    errno = error;
}
