/* SPDX-License-Identifier: MIT */
/* reactor: a file of which nothing lies in memory.  It is written out, has no name any more, and the
 * kernel is asked to forget its pages before each sample; how many it forgot, and how many the reads
 * brought back, is counted page by page. */
#include "reactor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { CHUNK = 256 };
#define BYTES ((size_t)REACTOR_COLD_BLOCKS * REACTOR_BLOCK)

static bool
write_blocks(int fd)
{
    static char chunk[CHUNK][REACTOR_BLOCK];
    struct statfs found;

    if (fstatfs(fd, &found) == 0 && found.f_type == TMPFS_MAGIC) {
        errno = EOPNOTSUPP; /* memory is never cold */
        return false;
    }
    for (uint64_t i = 0; i < REACTOR_COLD_BLOCKS; i++) {
        memcpy(chunk[i % CHUNK], &i, sizeof i);
        if (i % CHUNK == CHUNK - 1 && write(fd, chunk, sizeof chunk) != sizeof chunk)
            return false;
    }
    return fdatasync(fd) == 0;
}

/* In a folder of its own, which is gone when this returns: the descriptor alone leads to it. */
int
reactor_cold_open(void)
{
    const char *place = getenv("TMPDIR");
    char folder[256], path[272];
    int fd;

    if (place == NULL || place[0] != '/')
        place = "/var/tmp"; /* /tmp may be memory */
    if ((size_t)snprintf(folder, sizeof folder, "%s/errand-bench-XXXXXX", place) >=
            sizeof folder ||
        mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/blocks", folder);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        unlink(path);
    rmdir(folder);
    if (fd < 0 || write_blocks(fd))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* How many of its pages are in memory; -1: it cannot be said. */
static int64_t
pages_there(int fd)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = BYTES / page;
    unsigned char *marks = malloc(count);
    void *at = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    int64_t there = -1;

    if (marks != NULL && at != MAP_FAILED && mincore(at, BYTES, marks) == 0) {
        there = 0;
        for (size_t i = 0; i < count; i++)
            there += marks[i] & 1;
    }
    if (at != MAP_FAILED)
        munmap(at, BYTES);
    free(marks);
    return there;
}

bool
reactor_cold_make(int fd, char *text, size_t size)
{
    int64_t there;

    /* Each read is of its own block: what lies beside it is not to be brought along. */
    if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0 ||
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) != 0) {
        snprintf(text, size, "posix_fadvise: %s", strerror(errno));
        return false;
    }
    there = pages_there(fd);
    if (there >= 0 && there <= REACTOR_COLD_BLOCKS / 100)
        return true;
    snprintf(text, size, "not cold: %lld pages of the file stay in memory",
             (long long)there);
    return false;
}

bool
reactor_cold_was(int fd, uint64_t reads, char *text, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t least = page > REACTOR_BLOCK ? 1 : reads - reads / 20;
    int64_t there = pages_there(fd);

    if (there >= (int64_t)least && (uint64_t)there <= reads + reads / 5)
        return true;
    snprintf(text, size, "%llu cold reads brought %lld pages into memory",
             (unsigned long long)reads, (long long)there);
    return false;
}
