/* SPDX-License-Identifier: MIT */
/* progress: a line for each completion as it is drained, and what the end says about them.
 *
 * Design notes.  A line holds what the same seed makes the same: virtual time, outcome, name,
 * subject, detail.  In arrival order the time is real.  Both count from the run's start.
 * The digest of arrival order is a sum over completions of a hash of their contents, so that it
 * does not depend on their order; it begins with the hash of nothing.  Late ones are left out: whether a cancelled command had begun
 * is a matter of real time. */
#include "program.h"
#include <inttypes.h>
#include <string.h>

#define HASH_OF_NOTHING 0xCBF29CE484222325U /* of FNV-1a */

void
errand__progress_init(errand__progress *progress, const errand__options *options)
{
    memset(progress, 0, sizeof *progress);
    progress->quiet = options->quiet;
    progress->seeded = options->order != ERRAND_ORDER_ARRIVAL;
    progress->contents = HASH_OF_NOTHING;
}

void
errand__progress_text(FILE *file, const char *text)
{
    /* What needs none is written at once: each write to standard error is a call of the system. */
    for (const char *from = text; *text != '\0'; from = text) {
        while ((unsigned char)*text >= 0x20 && *text != 0x7F)
            text++;
        fwrite(from, 1, (size_t)(text - from), file);
        if (*text != '\0')
            fprintf(file, "\\x%02x", (unsigned char)*text++);
    }
}

/* FNV-1a over a text and its end, so that "a", "b" and "ab", "" differ. */
static uint64_t
hash_text(uint64_t hash, const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    do {
        hash = (hash ^ *byte) * 0x100000001B3U;
    } while (*byte++ != '\0');
    return hash;
}

static uint64_t
hash_event(const errand_lua_event *event)
{
    uint64_t hash = HASH_OF_NOTHING;
    hash = hash_text(hash, event->name);
    hash = hash_text(hash, event->subject);
    hash = hash_text(hash, event->outcome);
    hash = hash_text(hash, event->detail);
    /* Spread, because the hashes are summed. */
    hash = (hash ^ (hash >> 33)) * 0xFF51AFD7ED558CCDU;
    hash = (hash ^ (hash >> 33)) * 0xC4CEB9FE1A85EC53U;
    return hash ^ (hash >> 33);
}

static void
print_event(const errand_lua_event *event)
{
    uint64_t ns = event->time_ns;
    errand__output_line();
    printf("%4" PRIu64 ".%06" PRIu64 "  %-9s  %s", ns / 1000000000U,
           ns % 1000000000U / 1000U, event->outcome, event->name);
    if (event->subject[0] != '\0') {
        putchar(' ');
        errand__progress_text(stdout, event->subject);
    }
    if (event->late)
        fputs(" (late)", stdout);
    if (event->detail[0] != '\0') {
        fputs(": ", stdout);
        errand__progress_text(stdout, event->detail);
    }
    putchar('\n');
}

void
errand__progress_event(void *arg, const errand_lua_event *event)
{
    errand__progress *progress = arg;
    errand_outcome outcome = event->completion->outcome;
    if (event->closing && progress->seeded)
        return; /* no seed decides how that ends */
    progress->drained++;
    progress->late += event->late;
    if (outcome >= 1 && outcome <= 5)
        progress->outcomes[outcome]++;
    if (outcome == ERRAND_PANICKED)
        snprintf(progress->panic, sizeof progress->panic, "%s", event->detail);
    if (!event->late)
        progress->contents += hash_event(event);
    if (!progress->quiet)
        print_event(event);
    errand__bar_done(event->name, event->subject);
}
