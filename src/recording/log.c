/* SPDX-License-Identifier: MIT */
/* log: a log that is read: opening it, its header, its blocks, its end.
 *
 * Design notes.  A reader trusts no number of the file: each length is compared with what is
 * there before it is used, and memory is asked for only as much as the file has bytes.  The file
 * is read by pread and never mapped, because it may be cut while it is read. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "recording/recording.h"

bool
errand__log_get(const errand_log *log, uint64_t offset, void *out, size_t size)
{
    size_t done = 0;

    if (offset > log->size || size > log->size - offset || size == 0)
        return false;
    if (log->fd < 0) {
        memcpy(out, log->memory + offset, size);
        return true;
    }
    while (done < size) {
        ssize_t got =
            pread(log->fd, (char *)out + done, size - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = EIO; /* it was cut meanwhile */
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static void
say(char *out, size_t size, const char *text)
{
    if (out != NULL && size > 0)
        errand__text_format(out, size, "%s", text);
}

static errand_status
open_source(errand_log *log, char *out_text, size_t text_size)
{
    errand_status status = errand__log_scan(log, out_text, text_size);

    if (status != ERRAND_OK) {
        int error = errno;

        errand_log_close(&log);
        errno = error;
    }
    return status;
}

errand_status
errand_log_open(const char *path, errand_log **out_log, char *out_text, size_t size)
{
    errand_log *log;
    struct stat about;
    errand_status status;

    ERRAND_REQUIRE_ARG(path != NULL && out_log != NULL, ERRAND_EINVAL,
                       "path and out_log are needed");
    say(out_text, size, "");
    log = errand__mem_alloc(NULL, sizeof *log);
    if (log == NULL)
        return ERRAND_ENOMEM;
    /* Not blocking: a pipe that nobody writes to is no log either. */
    log->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (log->fd < 0 || fstat(log->fd, &about) != 0) {
        int error = errno;

        say(out_text, size, strerror(error));
        errand_log_close(&log);
        errno = error;
        return ERRAND_ESYSTEM;
    }
    if (!S_ISREG(about.st_mode)) {
        say(out_text, size, "it is no regular file");
        errand_log_close(&log);
        return ERRAND_EINVAL;
    }
    log->size = (uint64_t)about.st_size;
    status = open_source(log, out_text, size);
    if (status == ERRAND_OK)
        *out_log = log;
    return status;
}

errand_status
errand__log_open_memory(const void *bytes, size_t size, errand_log **out_log,
                        char *out_text, size_t text_size)
{
    errand_log *log = errand__mem_alloc(NULL, sizeof *log);
    errand_status status;

    if (log == NULL)
        return ERRAND_ENOMEM;
    log->fd = -1;
    log->memory = bytes;
    log->size = size;
    status = open_source(log, out_text, text_size);
    if (status == ERRAND_OK)
        *out_log = log;
    return status;
}

void
errand_log_close(errand_log **take_log)
{
    errand_log *log = take_log == NULL ? NULL : *take_log;

    if (log == NULL)
        return;
    if (log->fd >= 0)
        close(log->fd);
    errand__mem_free(NULL, log->texts, log->texts_size);
    errand__mem_free(NULL, log->blocks, log->block_room * sizeof *log->blocks);
    errand__mem_free(NULL, log->body, log->body_room);
    errand__mem_free(NULL, log->string_at, log->string_room * sizeof *log->string_at);
    errand__mem_free(NULL, log, sizeof *log);
    *take_log = NULL;
}

const errand_log_header *
errand_log_header_of(const errand_log *log)
{
    return log == NULL ? NULL : &log->header;
}

errand_status
errand_log_end_read(const errand_log *log, errand_log_end *out_end)
{
    ERRAND_REQUIRE_ARG(log != NULL && out_end != NULL, ERRAND_EINVAL,
                       "log and out_end are needed");
    *out_end = log->end;
    return ERRAND_OK;
}

errand_status
errand_log_block_read(const errand_log *log, uint64_t index, errand_log_block *out_block)
{
    ERRAND_REQUIRE_ARG(log != NULL && out_block != NULL && index < log->block_count,
                       ERRAND_EINVAL, "log, out_block and a block that is there");
    *out_block = log->blocks[index];
    return ERRAND_OK;
}

errand_status
errand_log_seek(errand_log *log, uint64_t block)
{
    ERRAND_REQUIRE_ARG(log != NULL && block <= log->block_count, ERRAND_EINVAL,
                       "log and a block that is there are needed");
    log->block = block;
    log->place = 0;
    log->loaded = false;
    return ERRAND_OK;
}
