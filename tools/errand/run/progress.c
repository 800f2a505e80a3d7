/* SPDX-License-Identifier: MIT */
/* progress: a line for each completion as it is drained, and what the end says about them.
 *
 * Design notes.  A line holds what the same seed makes the same: virtual time, outcome, name,
 * subject, detail.  In arrival order the time is real.  Both count from the run's start.
 * The digest of arrival order is a sum over completions of a hash of their contents, so that it
 * does not depend on their order; it begins with the hash of nothing.  Late ones are left out: whether a cancelled command had begun
 * is a matter of real time.  The tour sends out one errand for each file of a tree: it is brief,
 * so that what it is for stands on one screen. */
#include "program.h"
#include <inttypes.h>
#include <string.h>

enum { BRIEF_MAX = 4 };

#define HASH_OF_NOTHING 0xCBF29CE484222325U /* of FNV-1a */

void
errand__progress_init(errand__progress *progress, const errand__options *options)
{
    memset(progress, 0, sizeof *progress);
    progress->quiet = options->quiet;
    progress->brief = options->command == ERRAND__COMMAND_TOUR && !options->quiet;
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

/* Counts what is left out.  A kind for which there is no room is printed. */
static bool
is_hidden(errand__progress *progress, const errand_lua_event *event)
{
    errand_outcome outcome = event->completion->outcome;
    size_t room = sizeof progress->kinds[0].name - 1;
    for (size_t i = 0; i < sizeof progress->kinds / sizeof progress->kinds[0]; i++) {
        if (progress->kinds[i].shown == 0) {
            snprintf(progress->kinds[i].name, room + 1, "%s", event->name);
            progress->kinds[i].outcome = outcome;
        } else if (progress->kinds[i].outcome != outcome ||
                   strncmp(progress->kinds[i].name, event->name, room) != 0) {
            continue;
        }
        bool hidden = progress->kinds[i].shown == BRIEF_MAX;
        progress->kinds[i].shown += !hidden;
        progress->hidden += hidden;
        return hidden;
    }
    return false;
}

void
errand__progress_more(errand__progress *progress)
{
    if (progress->hidden == 0)
        return;
    errand__output_line();
    printf("             ... %" PRIu64 " more completion%s\n", progress->hidden,
           progress->hidden == 1 ? "" : "s");
    progress->hidden = 0;
}

/* print, after what the progress had to say before it. */
static int
print_after(lua_State *L)
{
    errand__progress_more(lua_touserdata(L, lua_upvalueindex(2)));
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

void
errand__progress_open(lua_State *L, errand__progress *progress)
{
    if (!progress->brief)
        return;
    lua_getglobal(L, "print");
    lua_pushlightuserdata(L, progress);
    lua_pushcclosure(L, print_after, 2);
    lua_setglobal(L, "print");
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
    if (!progress->quiet && !(progress->brief && is_hidden(progress, event)))
        print_event(event);
    errand__bar_done(event->name, event->subject);
}
