/* SPDX-License-Identifier: MIT */
/* failure: how a body says what went wrong: cause, then mend.
 *
 * Design notes: messages may be cut at 255 bytes, so names in them are cut first; the text of
 * an errno is the untranslated one, so that a message does not depend on the locale. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include "operations/operations.h"

static const char *mend(int32_t code);
static const char *error_text(int error);

const char *
errand_operation_code_name(int32_t job_code)
{
    switch (job_code) {
#define NAME(name, number, sentence)                                                     \
    case number:                                                                         \
        return #name;
        ERRAND_OPERATION_TABLE(NAME)
#undef NAME
    }
    return "unknown";
}

errand__operation_shown
errand__operation_show(const char *name)
{
    errand__operation_shown shown;

    errand__text_format(shown.text, sizeof shown.text, "%s", name);
    return shown;
}

errand__operation_shown
errand__operation_length(uint64_t ns)
{
    static const struct {
        uint64_t ns;
        const char *name;
    } units[] = {{1, "ns"}, {1000, "us"}, {1000000, "ms"}, {1000000000, "s"}};
    errand__operation_shown shown;
    size_t unit = 0;

    while (unit < 3 && ns / units[unit].ns >= 10000)
        unit++;
    errand__text_format(
        shown.text, sizeof shown.text, "%llu %s",
        (unsigned long long)(ns / units[unit].ns +
                             (ns % units[unit].ns >= units[unit].ns / 2 && unit > 0)),
        units[unit].name);
    return shown;
}

int32_t
errand__operation_code(int error)
{
    switch (error) {
    case ENOENT:
        return ERRAND_OPERATION_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERRAND_OPERATION_PERMISSION;
    case EEXIST:
    case ENOTEMPTY:
        return ERRAND_OPERATION_EXISTS;
    case EISDIR:
        return ERRAND_OPERATION_IS_DIRECTORY;
    case ENOTDIR:
        return ERRAND_OPERATION_NOT_DIRECTORY;
    case ENXIO:
    case ENODEV:
        return ERRAND_OPERATION_NOT_REGULAR;
    case EFBIG:
        return ERRAND_OPERATION_TOO_LARGE;
    case ENOSPC:
    case EDQUOT:
        return ERRAND_OPERATION_NO_SPACE;
    case EMFILE:
    case ENFILE:
        return ERRAND_OPERATION_LIMIT;
    case ENOMEM:
        return ERRAND_OPERATION_MEMORY;
    case ENOEXEC:
        return ERRAND_OPERATION_EXEC;
    case EAGAIN:
    case ETXTBSY:
        return ERRAND_OPERATION_AGAIN;
    default:
        return ERRAND_OPERATION_IO;
    }
}

int32_t
errand__operation_refused(errand_job *job, int error, const char *system_call,
                          const char *format, ...)
{
    char text[256];
    int32_t code = errand__operation_code(error);
    va_list arguments;

    va_start(arguments, format);
    errand__text_vformat(text, sizeof text, format, arguments);
    va_end(arguments);
    errand_job_fail(job, error, 0, system_call, "%s: %s; %s", text, error_text(error),
                    mend(code));
    return code;
}

int32_t
errand__operation_refused_as(errand_job *job, int32_t code, int error,
                             const char *system_call, const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    errand__text_vformat(text, sizeof text, format, arguments);
    va_end(arguments);
    errand_job_fail(job, error, 0, system_call, "%s: %s; %s", text, error_text(error),
                    mend(code));
    return code;
}

int32_t
errand__operation_failed(errand_job *job, int32_t code, const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    errand__text_vformat(text, sizeof text, format, arguments);
    va_end(arguments);
    errand_job_fail(job, 0, 0, NULL, "%s; %s", text, mend(code));
    return code;
}

int32_t
errand__operation_no_memory(errand_job *job, size_t size)
{
    return errand__operation_failed(job, ERRAND_OPERATION_MEMORY,
                                    "no memory for the result of %zu bytes", size);
}

/* Where only another executor or file would do: the text has its own mend. */
static int32_t
unsupported(errand_job *job, const char *text)
{
    errand_job_fail(job, 0, 0, NULL, "%s", text);
    return ERRAND_OPERATION_UNSUPPORTED;
}

int32_t
errand__operation_no_reactor(errand_job *job)
{
    return unsupported(
        job, "it has to wait for time or a descriptor, and this executor cannot; "
             "start it on a lease of a reactor (errand_reactor_create)");
}

int32_t
errand__operation_no_position(errand_job *job)
{
    return unsupported(job, "it has no position, what it gives comes once; "
                            "read and write it as it comes, or open a regular file");
}

static const char *
mend(int32_t code)
{
    switch ((errand_operation_code)code) {
    case ERRAND_OPERATION_NOT_FOUND:
        return "check the name";
    case ERRAND_OPERATION_PERMISSION:
        return "change the permissions or the user";
    case ERRAND_OPERATION_IS_DIRECTORY:
        return "name a file in it";
    case ERRAND_OPERATION_NOT_DIRECTORY:
        return "check each part of the path";
    case ERRAND_OPERATION_NOT_REGULAR:
        return "only regular files are read and written";
    case ERRAND_OPERATION_TOO_LARGE:
        return "raise the limit";
    case ERRAND_OPERATION_OUTPUT:
        return "raise output_max or let it write less";
    case ERRAND_OPERATION_STOPPED:
        return "start it again if it is still wanted";
    case ERRAND_OPERATION_NO_SPACE:
        return "free some space";
    case ERRAND_OPERATION_LIMIT:
        return "end some or raise the limit";
    case ERRAND_OPERATION_MEMORY:
        return "free some or ask for less";
    case ERRAND_OPERATION_EXEC:
        return "name a program, or a script with a #! line";
    case ERRAND_OPERATION_AGAIN:
        return "try again later";
    case ERRAND_OPERATION_LOST:
        return "do not ignore SIGCHLD, and wait only for processes of your own";
    case ERRAND_OPERATION_CLOSED:
        return "open another";
    case ERRAND_OPERATION_TIMEOUT:
        return "try again later or raise the limit";
    case ERRAND_OPERATION_BIND_FAILED:
        return "choose another address or end who has it";
    case ERRAND_OPERATION_CONNECTION_FAILED:
        return "check the address and whether somebody listens there";
    case ERRAND_OPERATION_ACCEPT_FAILED:
        return "accept again";
    case ERRAND_OPERATION_RECEIVE_FAILED:
    case ERRAND_OPERATION_SEND_FAILED:
        return "connect again if it is still wanted";
    case ERRAND_OPERATION_UNSUPPORTED:
        return "choose what can do it";
    case ERRAND_OPERATION_EXISTS:
        return "choose another name";
    case ERRAND_OPERATION_PROTOCOL:
        return "ask who runs the other side";
    case ERRAND_OPERATION_CERTIFICATE:
        return "check the host's name and which authorities are trusted";
    case ERRAND_OPERATION_REDIRECTS:
        return "raise the limit or ask the place it names";
    case ERRAND_OPERATION_IO:
        break;
    }
    return "see the errno";
}

static const char *
error_text(int error)
{
#if defined(__GLIBC__)
    const char *text = strerrordesc_np(error); /* in English, whatever the locale */
#else
    const char *text = strerror(error);
#endif

    return text == NULL ? "unknown error" : text;
}
