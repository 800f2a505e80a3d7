/* SPDX-License-Identifier: MIT */
/* bar: the progress bar of a terminal.
 *
 * Design notes.  The bar is one line below everything else, drawn on standard error by a thread
 * of its own every 100 ms, from half a second on, so that short runs stay plain.  Whatever the
 * program or a script writes to the terminal goes through the same lock (output.c): the bar is
 * wiped, the text written, and the thread draws the bar anew when a line has ended.
 * One per process: the terminal is the process's.
 * The thread blocks all signals.  A handler puts errand__bar_prefix before its text, in one
 * write, so that neither a bar nor the ^C of the terminal stands before it; a bar that is drawn
 * around that moment is wiped by the next text or at the end, for the handler takes no note of
 * what is drawn. */
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

/* Guarded by lock, but for in_line and gone. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t end;
    pthread_t thread;
    bool running, ended, drawn, with_clock;
    uint64_t submitted, done;
    unsigned ticks;
    char what[64];
    /* in_line: the last text on the terminal ended inside a line.
     * Writers: errand__bar_write, under lock.  Readers: draw_locked, a signal handler.
     * Order: relaxed.  Pairs: none.
     * Why: it publishes nothing; a stale value costs a line end too many or too few. */
    atomic_bool in_line;
    /* gone: nothing is drawn any more.
     * Writers: a signal handler that ends the process.  Readers: draw_locked.
     * Order: relaxed.  Pairs: none.  Why: as for in_line. */
    atomic_bool gone;
} bar = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool has_escapes; /* standard error is a terminal that knows \033[K; set once */

#define WIPE "\r\033[K"

static void
wipe_locked(void)
{
    if (bar.drawn)
        errand__output_write(STDERR_FILENO, WIPE, sizeof WIPE - 1);
    bar.drawn = false;
}

const char *
errand__bar_prefix(bool last)
{
    if (last)
        atomic_store_explicit(&bar.gone, true, memory_order_relaxed);
    if (atomic_load_explicit(&bar.in_line, memory_order_relaxed))
        return "\n";
    return has_escapes ? WIPE : "";
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
    if (atomic_load_explicit(&bar.in_line, memory_order_relaxed) ||
        atomic_load_explicit(&bar.gone, memory_order_relaxed) || bar.ticks < PATIENCE)
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
    bar.drawn = true;
    errand__output_write(STDERR_FILENO, out, total);
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

/* ---- text above the bar -------------------------------------------------------------------------- */

size_t
errand__bar_write(int fd, const char *bytes, size_t size)
{
    pthread_mutex_lock(&bar.lock);
    wipe_locked();
    size_t written = errand__output_write(fd, bytes, size);
    if (size > 0)
        atomic_store_explicit(&bar.in_line, bytes[size - 1] != '\n',
                              memory_order_relaxed);
    pthread_mutex_unlock(&bar.lock);
    return written;
}

/* ---- from start to stop ----------------------------------------------------------------------------- */

void
errand__bar_start(bool with_clock, bool quiet)
{
    const char *terminal = getenv("TERM");
    has_escapes =
        isatty(STDERR_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0;
    if (!has_escapes || quiet)
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_cond_init(&bar.end, NULL);
    bar.with_clock = with_clock;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bar.running = pthread_create(&bar.thread, NULL, tick, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (bar.running) /* else the run goes on without */
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
    wipe_locked(); /* the thread is no more */
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
