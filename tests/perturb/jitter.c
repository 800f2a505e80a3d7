/* SPDX-License-Identifier: MIT */
/* jitter: loaded before the program, it lets calls that workers make take random real times: up to
 * two milliseconds for one in four of read, open, close and waitid. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void
dawdle(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t drawn =
        ((uint64_t)now.tv_nsec ^ (uintptr_t)&now) * UINT64_C(0x9e3779b97f4a7c15);
    struct timespec pause = {.tv_nsec = (long)((drawn >> 20) % 2000000)};

    if (drawn >> 62 == 0)
        nanosleep(&pause, NULL);
}

ssize_t
read(int fd, void *out, size_t size)
{
    static ssize_t (*real)(int, void *, size_t);

    dawdle();
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "read");
    return real(fd, out, size);
}

int
open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list arguments;

    va_start(arguments, flags);
    int mode = va_arg(arguments, int);
    va_end(arguments);
    dawdle();
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "open");
    return real(path, flags, mode);
}

int
close(int fd)
{
    static int (*real)(int);

    dawdle();
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "close");
    return real(fd);
}

int
waitid(idtype_t type, id_t id, siginfo_t *out, int options)
{
    static int (*real)(idtype_t, id_t, siginfo_t *, int);

    dawdle();
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "waitid");
    return real(type, id, out, options);
}
