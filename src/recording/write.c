/* SPDX-License-Identifier: MIT */
/* write: bytes into the file.  The first trouble ends the log and is remembered: a torn piece at
 * its end is what readers expect. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include "recording/recording.h"

enum { PIECES_MAX = 6 };

static bool
write_all(int fd, struct iovec *next, int count)
{
    while (count > 0) {
        ssize_t done = writev(fd, next, count);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            if (done == 0)
                errno = EIO;
            return false;
        }
        for (; count > 0 && (size_t)done >= next->iov_len; next++, count--)
            done -= (ssize_t)next->iov_len;
        if (count > 0) {
            next->iov_base = (char *)next->iov_base + done;
            next->iov_len -= (size_t)done;
        }
    }
    return true;
}

int
errand__recorder_file(const char *path)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY;
    int fd = open(path, flags | O_NONBLOCK, 0666);
    struct stat about;

    if (fd < 0)
        return -1;
    if (fstat(fd, &about) == 0 && (S_ISREG(about.st_mode) || S_ISCHR(about.st_mode)) &&
        fcntl(fd, F_SETFL, 0) == 0)
        return fd;
    close(fd);
    errno = ESPIPE;
    return -1;
}

void
errand__recorder_write(errand_recorder *recorder, const errand__piece *pieces,
                       size_t count)
{
    struct iovec vector[PIECES_MAX];
    int used = 0, saved = errno;

    if (recorder->status != ERRAND_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].size > 0)
            vector[used++] = (struct iovec){(void *)pieces[i].data, pieces[i].size};
    }
    if (!write_all(recorder->fd, vector, used)) {
        recorder->status = ERRAND_ESYSTEM;
        recorder->error = errno;
    }
    errno = saved;
}

void
errand__recorder_frame(errand_recorder *recorder, uint32_t kind, uint64_t digest,
                       const errand__piece *body, size_t count)
{
    unsigned char frame[ERRAND__FRAME_BYTES];
    errand__piece pieces[PIECES_MAX] = {{frame, sizeof frame}};
    uint64_t checksum = recorder->seal;
    size_t size = 0;

    ERRAND_ASSERT(count < PIECES_MAX);
    for (size_t i = 0; i < count; i++) {
        checksum = errand__mix_bytes(checksum, body[i].data, body[i].size);
        size += body[i].size;
        pieces[i + 1] = body[i];
    }
    errand__word_write(frame, ERRAND__BLOCK_MAGIC);
    errand__write_half(frame + 8, kind);
    errand__write_half(frame + 12, (uint32_t)size);
    errand__word_write(frame + 16, recorder->number);
    errand__word_write(frame + 24, recorder->first);
    errand__write_half(frame + 32, recorder->count);
    errand__write_half(frame + 36, recorder->strings.count);
    errand__write_half(frame + 40, (uint32_t)recorder->strings.text.size);
    errand__write_half(frame + 44, (uint32_t)body[count - 1].size);
    errand__word_write(frame + 48, recorder->mix);
    errand__word_write(frame + 56, digest);
    errand__word_write(frame + 64, checksum);
    errand__word_write(frame + 72, errand__mix_bytes(recorder->seal, frame, 72));
    errand__recorder_write(recorder, pieces, count + 1);
    recorder->number++;
}
