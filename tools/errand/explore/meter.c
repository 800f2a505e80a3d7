/* SPDX-License-Identifier: MIT */
/* meter: the progress bar of an exploration.
 *
 * Design notes.  It looks like a run's (bar.c), but is drawn by the loop that waits for the
 * children: a process that forks must have no thread of its own. */
#include "explore/explore.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PATIENCE_NS 300000000U
#define TICK_NS     100000000U
#define WIPE        "\r\033[K"

void
errand__meter_init(errand__meter *meter, bool quiet)
{
    const char *terminal = getenv("TERM");
    memset(meter, 0, sizeof *meter);
    meter->shown = !quiet && isatty(STDERR_FILENO) && terminal != NULL &&
                   strcmp(terminal, "dumb") != 0;
    meter->begun_ns = errand__trial_now();
    meter->next_ns = meter->begun_ns + PATIENCE_NS;
}

static size_t
terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col < 20 ? 20 : size.ws_col > 200 ? 200 : size.ws_col;
}

/* "1:02:03", "4:05" or "6 s". */
static void
print_time(uint64_t seconds, char *out, size_t size)
{
    if (seconds >= 3600)
        snprintf(out, size, "%u:%02u:%02u", (unsigned)(seconds / 3600),
                 (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
    else if (seconds >= 60)
        snprintf(out, size, "%u:%02u", (unsigned)(seconds / 60),
                 (unsigned)(seconds % 60));
    else
        snprintf(out, size, "%u s", (unsigned)seconds);
}

void
errand__meter_count(const errand__meter *meter, uint64_t done, uint64_t total, char *out,
                    size_t size)
{
    uint64_t elapsed = errand__trial_now() - meter->begun_ns + 1;
    double rate = (double)done * 1e9 / (double)elapsed;
    char left[32] = "?";
    if (done > 0)
        print_time((uint64_t)((double)(total - done) / rate) + 1, left, sizeof left);
    snprintf(out, size, "%llu of %llu  %.*f/s  %s left", (unsigned long long)done,
             (unsigned long long)total, rate < 10 ? 1 : 0, rate, left);
}

bool
errand__meter_due(const errand__meter *meter)
{
    return meter->shown && errand__trial_now() >= meter->next_ns;
}

void
errand__meter_draw(errand__meter *meter, uint64_t done, uint64_t total, const char *text)
{
    enum { WIDTH = 24 };
    char line[320], cells[WIDTH + 1];
    meter->next_ns = errand__trial_now() + TICK_NS;
    meter->ticks++;
    size_t filled = total == 0 ? 0 : (size_t)((double)done * WIDTH / (double)total);
    for (size_t i = 0; i < WIDTH; i++)
        cells[i] = i < filled ? '#' : i == meter->ticks / 2 % WIDTH ? ':' : '.';
    cells[WIDTH] = '\0';
    int length = snprintf(line, sizeof line, "[%s] %s", cells, text);
    size_t size =
        (size_t)length < terminal_columns() ? (size_t)length : terminal_columns() - 1;
    char out[sizeof line + 8];
    int written = snprintf(out, sizeof out, "\r%.*s\033[K", (int)size, line);
    meter->drawn = true;
    errand__output_write(STDERR_FILENO, out, (size_t)written);
}

void
errand__meter_wipe(errand__meter *meter)
{
    if (meter->drawn)
        errand__output_write(STDERR_FILENO, WIPE, sizeof WIPE - 1);
    meter->drawn = false;
}

uint64_t
errand__meter_next(const errand__meter *meter)
{
    return meter->shown ? meter->next_ns : errand__trial_now() + 1000000000U;
}
