/* SPDX-License-Identifier: MIT */
/* fingerprint: what makes two failures the same: class, site, message.
 *
 * Design notes.  Two seeds show one bug with other numbers: other task numbers, other sums, other
 * addresses.  So digits of a message become #, and the site, where line numbers count, is
 * taken out before.  A stall is the set of places where tasks wait, whoever they are. */
#include "explore/explore.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Copies up to the line's end, with runs of digits and addresses as #. */
static void
normalise(const char *text, char *out, size_t size)
{
    size_t used = 0;
    while (*text != '\0' && *text != '\n' && used + 2 < size) {
        unsigned char byte = (unsigned char)*text;
        if (text[0] == '0' && text[1] == 'x' && isxdigit((unsigned char)text[2])) {
            for (text += 2; isxdigit((unsigned char)*text); text++)
                continue;
            out[used++] = '#';
        } else if (isdigit(byte)) {
            for (; isdigit((unsigned char)*text); text++)
                continue;
            if (text[0] == '.' && isdigit((unsigned char)text[1])) {
                for (text++; isdigit((unsigned char)*text); text++)
                    continue;
            }
            out[used++] = '#';
        } else {
            out[used++] = byte < 0x20 ? ' ' : *text;
            text++;
        }
    }
    out[used] = '\0';
}

/* "path:12" inside the first line.  Returns what follows it and ": ", or NULL. */
static const char *
find_site(const char *text, char *site, size_t size)
{
    for (const char *at = text; *at != '\0' && *at != '\n'; at++) {
        size_t digits = at[0] == ':' ? strspn(at + 1, "0123456789") : 0;
        if (digits == 0 || at == text || at[1 + digits] != ':')
            continue;
        const char *begin = at;
        while (begin > text && begin[-1] != ' ' && begin[-1] != '\t')
            begin--;
        if (begin == at)
            continue;
        snprintf(site, size, "%.*s", (int)(at + 1 + digits - begin), begin);
        const char *rest = at + 1 + digits + 1;
        return *rest == ' ' ? rest + 1 : rest;
    }
    return NULL;
}

/* ---- stalls --------------------------------------------------------------------------------- */

#define PLACES_MAX 24

static int
compare_places(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* " waits in await for task 2 at bank.lua:12" becomes "await at bank.lua:12", each place once. */
static void
stall_places(const char *text, errand__fingerprint *out)
{
    char places[PLACES_MAX][96];
    size_t count = 0, used = 0;
    for (const char *at = text; (at = strstr(at, " waits in ")) != NULL;) {
        at += strlen(" waits in ");
        int length = (int)strcspn(at, "\n");
        const char *site = at + length;
        for (const char *next = at; (next = strstr(next, " at ")) != NULL && next < site;
             next += 4)
            if (next + 4 < at + length)
                site = next + 4;
        if (count < PLACES_MAX && site < at + length)
            snprintf(places[count++], sizeof places[0], "%.*s at %.*s",
                     (int)strcspn(at, " \n"), at, (int)(at + length - site), site);
    }
    qsort(places, count, sizeof places[0], compare_places);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(places[i], places[i - 1]) == 0)
            continue;
        int written = snprintf(out->message + used, sizeof out->message - used, "%s%s",
                               used == 0 ? "tasks wait in " : ", ", places[i]);
        used += (size_t)written;
        if (used >= sizeof out->message)
            break;
        const char *site = strstr(places[i], " at ");
        if (out->site[0] == '\0' && site != NULL)
            snprintf(out->site, sizeof out->site, "%s", site + 4);
    }
}

/* ---- the whole -------------------------------------------------------------------------------- */

void
errand__fingerprint_make(errand__class class, const char *text, errand__fingerprint *out)
{
    memset(out, 0, sizeof *out);
    out->class = class;
    if (text == NULL)
        return;
    if (class == ERRAND__CLASS_STALL) {
        stall_places(text, out);
        return;
    }
    const char *rest = text;
    if (class == ERRAND__CLASS_ERROR || class == ERRAND__CLASS_PANIC)
        rest = find_site(text, out->site, sizeof out->site);
    normalise(rest != NULL ? rest : text, out->message, sizeof out->message);
}

void
errand__fingerprint_ended(int wait_status, errand__fingerprint *out)
{
    memset(out, 0, sizeof *out);
    if (WIFSIGNALED(wait_status)) {
        const char *name = sigabbrev_np(WTERMSIG(wait_status));
        out->class = ERRAND__CLASS_CRASH;
        snprintf(out->site, sizeof out->site, "SIG%s", name != NULL ? name : "RT");
    } else if (WEXITSTATUS(wait_status) != 0) {
        out->class = ERRAND__CLASS_EXIT;
        snprintf(out->site, sizeof out->site, "code %d", WEXITSTATUS(wait_status));
    }
}

bool
errand__fingerprint_same(const errand__fingerprint *a, const errand__fingerprint *b)
{
    return a->class == b->class && strcmp(a->site, b->site) == 0 &&
           strcmp(a->message, b->message) == 0;
}

bool
errand__fingerprint_in(const errand__fingerprint *wanted, const char *printed,
                       int wait_status)
{
    static const int codes[] = {
        [ERRAND__CLASS_ERROR] = ERRAND__EXIT_SCRIPT,
        [ERRAND__CLASS_STALL] = ERRAND__EXIT_STALL,
        [ERRAND__CLASS_DEADLINE] = ERRAND__EXIT_DEADLINE,
        [ERRAND__CLASS_PANIC] = ERRAND__EXIT_SCRIPT,
        [ERRAND__CLASS_REFUSED] = ERRAND__EXIT_REFUSED,
        [ERRAND__CLASS_EXTERNAL] = ERRAND__EXIT_EXTERNAL,
    };
    errand__fingerprint found;
    errand__fingerprint_ended(wait_status, &found);
    if (wanted->class == ERRAND__CLASS_CRASH || wanted->class == ERRAND__CLASS_EXIT)
        return wanted->class == found.class && strcmp(wanted->site, found.site) == 0;
    if (!WIFEXITED(wait_status))
        return false;
    if ((size_t)wanted->class >= sizeof codes / sizeof codes[0] ||
        codes[wanted->class] != WEXITSTATUS(wait_status))
        return false;
    for (const char *at = printed; (at = strstr(at, "errand: ")) != NULL;) {
        at += strlen("errand: ");
        errand__fingerprint_make(wanted->class, at, &found);
        /* The program may add a mend behind the message. */
        size_t length = strlen(wanted->message);
        if (strcmp(wanted->site, found.site) == 0 &&
            strncmp(wanted->message, found.message, length) == 0)
            return true;
    }
    return false;
}
