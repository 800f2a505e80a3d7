/* SPDX-License-Identifier: MIT */
/* signals: the first one asks the run to end, a second one ends the process.
 *
 * Design notes.  The handler calls errand_lua_interrupt, write and _exit, and nothing else.  The
 * library's threads block signals, so it runs on the main thread.  SIGINT is taken also where a
 * shell had it ignored for a job in the background: who sends it to this process means it.
 * SIGHUP stays ignored under nohup.  SIGPIPE is ignored: a lost reader ends the run in order, so
 * that child processes are not left behind. */
#include "program.h"
#include <errno.h>
#include <signal.h>
#include <unistd.h>

static errand_lua_stop stop;
/* Written by the handler, which is alone: the three signals block each other. */
static volatile sig_atomic_t first;

/* One write for the whole line, so that no bar is drawn inside it. */
static void
write_line(const char *prefix, const char *name, const char *text)
{
    char line[128];
    const char *const parts[] = {prefix, *text != '\0' ? "errand: " : "", name, text};
    size_t length = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        for (const char *byte = parts[i]; *byte != '\0' && length < sizeof line; byte++)
            line[length++] = *byte;
    }
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written; /* nobody to tell */
}

static void
on_signal(int number)
{
    int saved = errno;
    int count = errand_lua_interrupt(&stop);
    const char *prefix = errand__bar_prefix(count > 1);
    if (count > 1) {
        write_line(prefix, "", "");
        _exit(ERRAND__EXIT_SIGNAL + number);
    }
    first = number;
    write_line(prefix, errand__signals_name(number),
               ": the run is asked to end; once more ends it at once\n");
    errno = saved;
}

errand_lua_stop *
errand__signals_install(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    return &stop;
}

int
errand__signals_first(void)
{
    return first;
}

void
errand__signals_output_lost(int error)
{
    if (error == EPIPE && first == 0)
        first = SIGPIPE;
    errand_lua_interrupt(&stop);
}

const char *
errand__signals_name(int number)
{
    switch (number) {
    case SIGINT:
        return "SIGINT";
    case SIGTERM:
        return "SIGTERM";
    case SIGHUP:
        return "SIGHUP";
    default:
        return "SIGPIPE";
    }
}
