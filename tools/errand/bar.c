/* SPDX-License-Identifier: MIT */
/* bar: the progress bar of a terminal.
 *
 * Design notes.  The bar is one line below everything else, drawn on standard error by a thread
 * of its own every 100 ms, from half a second on, so that short runs stay plain.  Whatever the
 * program or a script writes to the terminal goes through the same lock: stdout and stderr become
 * streams that wipe the bar, write, and let the thread draw it anew when a line has ended.  Those
 * streams stay until the process ends, because the lua_State holds them.
 * One per process: streams and terminal are the process's.
 * The thread blocks all signals; a handler may wipe, and touches nothing but `drawn`. */
#include "program.h"
#include <stdatomic.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 5 /* ticks before the first bar */
#define TICK_NS  100000000

/* Guarded by lock, but for drawn. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t end;
    pthread_t thread;
    bool running, ended, in_line, with_clock;
    uint64_t submitted, done;
    unsigned ticks;
    char what[64];
    /* Writers: whoever draws or wipes, under lock; a signal handler, without.
     * Readers: whoever wipes.  Order: relaxed.  Pairs: none.
     * Why: it publishes nothing; a stale value costs a wipe too many or too few. */
    atomic_bool drawn;
} bar = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written <= 0)
            return; /* a terminal that is gone: nobody to tell */
        bytes += written;
        size -= (size_t)written;
    }
}

void
errand__bar_wipe(void)
{
    if (atomic_exchange_explicit(&bar.drawn, false, memory_order_relaxed))
        write_all(STDERR_FILENO, "\r\033[K", 4);
}

/* ---- drawing ------------------------------------------------------------------------------- */

static size_t
terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col < 20 ? 20 : size.ws_col > 200 ? 200 : size.ws_col;
}

static void
draw_locked(void)
{
    enum { WIDTH = 24 };
    char line[320], cells[WIDTH + 1];
    if (bar.in_line || bar.ticks < PATIENCE)
        return;
    size_t filled = bar.submitted == 0 ? 0 : (size_t)(bar.done * WIDTH / bar.submitted);
    for (size_t i = 0; i < WIDTH; i++)
        cells[i] = i < filled ? '#' : i == bar.ticks / 2 % WIDTH ? ':' : '.';
    cells[WIDTH] = '\0';
    char count[48] = "waiting", clock[24] = "";
    if (bar.submitted > 0)
        snprintf(count, sizeof count, "%llu of %llu", (unsigned long long)bar.done,
                 (unsigned long long)bar.submitted);
    if (bar.with_clock)
        snprintf(clock, sizeof clock, "  %u s", bar.ticks / (1000000000 / TICK_NS));
    int length =
        snprintf(line, sizeof line, "[%s] %s%s  %s", cells, count, clock, bar.what);
    size_t size =
        (size_t)length < terminal_columns() ? (size_t)length : terminal_columns() - 1;
    char out[sizeof line + 8];
    size_t total = (size_t)snprintf(out, sizeof out, "\r%.*s\033[K", (int)size, line);
    atomic_store_explicit(&bar.drawn, true, memory_order_relaxed);
    write_all(STDERR_FILENO, out, total);
}

static void *
tick(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&bar.lock);
    while (!bar.ended) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TICK_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        int result = 0;
        while (!bar.ended && result == 0)
            result = pthread_cond_clockwait(&bar.end, &bar.lock, CLOCK_MONOTONIC, &until);
        bar.ticks++;
        if (!bar.ended)
            draw_locked();
    }
    pthread_mutex_unlock(&bar.lock);
    return NULL;
}

/* ---- streams above the bar --------------------------------------------------------------------- */

static ssize_t
stream_write(void *cookie, const char *bytes, size_t size)
{
    int fd = (int)(intptr_t)cookie;
    pthread_mutex_lock(&bar.lock);
    errand__bar_wipe();
    write_all(fd, bytes, size);
    if (size > 0)
        bar.in_line = bytes[size - 1] != '\n';
    pthread_mutex_unlock(&bar.lock);
    return (ssize_t)size;
}

static void
replace_stream(FILE **stream, int fd, int mode)
{
    cookie_io_functions_t functions = {.write = stream_write};
    FILE *own = fopencookie((void *)(intptr_t)fd, "w", functions);
    if (own == NULL)
        return;
    fflush(*stream);
    setvbuf(own, NULL, mode, BUFSIZ);
    *stream = own;
}

/* ---- from start to stop ----------------------------------------------------------------------------- */

void
errand__bar_start(bool with_clock)
{
    const char *terminal = getenv("TERM");
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (!isatty(STDERR_FILENO) || terminal == NULL || strcmp(terminal, "dumb") == 0)
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_cond_init(&bar.end, NULL);
    bar.with_clock = with_clock;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bar.running = pthread_create(&bar.thread, NULL, tick, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!bar.running)
        return; /* the run goes on without */
    if (isatty(STDOUT_FILENO))
        replace_stream(&stdout, STDOUT_FILENO, _IOLBF);
    replace_stream(&stderr, STDERR_FILENO, _IOLBF);
    atexit(errand__bar_stop);
}

void
errand__bar_stop(void)
{
    if (!bar.running)
        return;
    pthread_mutex_lock(&bar.lock);
    bar.ended = true;
    pthread_cond_signal(&bar.end);
    pthread_mutex_unlock(&bar.lock);
    pthread_join(bar.thread, NULL);
    bar.running = false;
    errand__bar_wipe();
}

void
errand__bar_submitted(void)
{
    if (!bar.running)
        return;
    pthread_mutex_lock(&bar.lock);
    bar.submitted++;
    pthread_mutex_unlock(&bar.lock);
}

void
errand__bar_done(const char *name, const char *subject)
{
    if (!bar.running)
        return;
    pthread_mutex_lock(&bar.lock);
    bar.done++;
    snprintf(bar.what, sizeof bar.what, "%s %s", name, subject);
    for (char *byte = bar.what; *byte != '\0'; byte++) {
        if ((unsigned char)*byte < 0x20 || (unsigned char)*byte >= 0x7F)
            *byte = '?';
    }
    pthread_mutex_unlock(&bar.lock);
}
