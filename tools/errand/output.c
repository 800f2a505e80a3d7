/* SPDX-License-Identifier: MIT */
/* output: standard output and standard error as streams that the program looks after.
 *
 * Design notes.  stdout becomes a stream of the program's own, before there is a lua_State, so
 * that io.write and print go through it too.  It keeps the errno of the first write that failed,
 * which stdio forgets, and asks the run to end then: a script that prints in a loop would not
 * notice.  It knows whether its last line is open, so that a line of the program's own never
 * begins inside one of the script's.  Text for a terminal goes above the bar, standard error's
 * too.  The streams stay until the process ends, because the lua_State holds them. */
#include "program.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    int error; /* of the first failing write to standard output, or 0 */
    bool in_line, terminal, both_terminals;
} output;

size_t
errand__output_write(int fd, const char *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t written = write(fd, bytes + done, size - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        done += (size_t)written;
    }
    return done;
}

static ssize_t
write_stdout(void *cookie, const char *bytes, size_t size)
{
    (void)cookie;
    errno = 0;
    size_t written = output.terminal ? errand__bar_write(STDOUT_FILENO, bytes, size)
                                     : errand__output_write(STDOUT_FILENO, bytes, size);
    if (written > 0)
        output.in_line = bytes[written - 1] != '\n';
    if (written < size && output.error == 0) {
        output.error = errno != 0 ? errno : EIO;
        errand__signals_output_lost(output.error);
    }
    return (ssize_t)written;
}

static int
seek_stdout(void *cookie, off64_t *offset, int whence)
{
    (void)cookie;
    off64_t at = lseek64(STDOUT_FILENO, *offset, whence);
    if (at >= 0)
        *offset = at;
    return at >= 0 ? 0 : -1;
}

static ssize_t
write_stderr(void *cookie, const char *bytes, size_t size)
{
    (void)cookie;
    return (ssize_t)errand__bar_write(STDERR_FILENO, bytes, size);
}

static void
replace(FILE **stream, cookie_io_functions_t functions)
{
    FILE *own = fopencookie(NULL, "w", functions);
    if (own == NULL)
        return; /* the old one does, without what this file adds */
    fflush(*stream);
    setvbuf(own, NULL, _IOLBF, BUFSIZ);
    *stream = own;
}

void
errand__output_start(void)
{
    output.terminal = isatty(STDOUT_FILENO);
    output.both_terminals = output.terminal && isatty(STDERR_FILENO);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    replace(&stdout, (cookie_io_functions_t){.write = write_stdout, .seek = seek_stdout});
    if (isatty(STDERR_FILENO))
        replace(&stderr, (cookie_io_functions_t){.write = write_stderr});
}

void
errand__output_line(void)
{
    errand__output_flush();
    if (output.in_line)
        putchar('\n');
}

void
errand__output_problem_line(void)
{
    if (output.both_terminals)
        errand__output_line();
}

void
errand__output_flush(void)
{
    errno = 0;
    if (fflush(stdout) != 0 && output.error == 0)
        output.error = errno != 0 ? errno : EIO;
}

int
errand__output_error(void)
{
    errand__output_flush();
    if (ferror(stdout) && output.error == 0)
        output.error = EIO;
    return output.error;
}

const char *
errand__output_mend(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "free some space, or send it to another place";
    case EPIPE:
        return "its reader ended; let it read to the end";
    case EBADF:
        return "it is closed: send it to a file, a pipe or a terminal";
    case EFBIG:
        return "raise the limit of file sizes (ulimit -f), or send it to another place";
    default:
        return "send it to another place";
    }
}

int
errand__output_code(int code)
{
    int error = errand__output_error();
    if (error == 0 || code > ERRAND__EXIT_SIGNAL)
        return code;
    if (error == EPIPE)
        return ERRAND__EXIT_SIGNAL + SIGPIPE;
    if (code != ERRAND__EXIT_OUTPUT) /* else the report said so */
        errand__help_problem("standard output could not be written: %s: %s",
                             strerror(error), errand__output_mend(error));
    return ERRAND__EXIT_OUTPUT;
}
