/* SPDX-License-Identifier: MIT */
/* Design notes: where errand-worker is, if nobody says.
 *
 * - In a folder libexec beside the file that this code was loaded from, or up to four folders
 *   above, which is where lib/triplet/lua/5.4 of an installation begins.  It must be of the same
 *   owner as the file's own folder, or root's: a folder above may be everybody's.
 * - Which file that is the kernel is asked.  The loader only knows what it was told: of a program
 *   that was found by PATH the bare name, of others a symbolic link or a path that counts from
 *   where the process was then.  Looked up from the current folder such a name would start what
 *   somebody else put there.
 * - A program with the static library may lie anywhere; but it was compiled with the headers of an
 *   installation, and says which (errand_sandbox_header).  On another machine that folder may be
 *   somebody else's: what is there must be root's or this user's. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "workers/sandbox/sandbox.h"

#define HEADER "errand/sandbox.h"

/* In a program that has the static library and was compiled with that header.  Weak: in the shared library
 * and elsewhere there is none. */
extern const char errand_sandbox_header[] __attribute__((weak, visibility("hidden")));

/* The worker of the installation whose headers this program was compiled with; out is "" where that is
 * not known. */
static bool
installed_with_headers(char *out, size_t size)
{
    struct stat found;
    size_t length;

    out[0] = '\0';
    if (errand_sandbox_header == NULL || errand_sandbox_header[0] != '/')
        return false;
    length = strlen(errand_sandbox_header);
    if (length < sizeof HEADER || length + sizeof ERRAND_HEADERS_TO_WORKER > size ||
        strcmp(errand_sandbox_header + length - (sizeof HEADER - 1), HEADER) != 0)
        return false;
    errand__text_format(out, size, "%.*s%s", (int)(length - (sizeof HEADER - 1)),
                        errand_sandbox_header, ERRAND_HEADERS_TO_WORKER);
    return access(out, X_OK) == 0 && stat(out, &found) == 0 &&
           (found.st_uid == 0 || found.st_uid == geteuid());
}

/* The absolute path of the file that holds this code; false: it is not known. */
static bool
own_file(char *out, size_t size)
{
    uintptr_t here = (uintptr_t)&errand__worker_find;
    char line[PATH_MAX + 128];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");

    if (maps == NULL) { /* a root folder without /proc */
        Dl_info info;

        if (dladdr((void *)here, &info) == 0 || info.dli_fname == NULL ||
            info.dli_fname[0] != '/' || strlen(info.dli_fname) >= size)
            return false;
        errand__text_format(out, size, "%s", info.dli_fname);
        return true;
    }
    while (!found && fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin, end;
        const char *path = strchr(line, '/');

        if (sscanf(line, "%lx-%lx", &begin, &end) != 2 || here < begin || here >= end)
            continue;
        if (path == NULL || strlen(path) >= size)
            break;
        errand__text_format(out, size, "%s", path);
        found = true;
    }
    fclose(maps);
    return found;
}

bool
errand__worker_find(char *out, size_t size, char *out_where, size_t where_size)
{
    struct stat own, found;

    errand__text_format(out_where, where_size, "looked for %s", ERRAND_WORKER_PATH);
    if (own_file(out, size))
        strrchr(out, '/')[1] = '\0'; /* what the kernel adds to a name goes too */
    else
        out[0] = '\0';
    if (out[0] != '\0' && stat(out, &own) == 0) {
        errand__text_format(out_where, where_size,
                            "looked for libexec/errand-worker in %s and the four folders "
                            "above it, then for %s",
                            out, ERRAND_WORKER_PATH);
        for (int up = 0; up < 5; up++) {
            size_t length = strlen(out);

            if (length + sizeof "libexec/errand-worker" > size)
                break;
            errand__text_format(out + length, size - length, "libexec/errand-worker");
            if (access(out, X_OK) == 0 && stat(out, &found) == 0 &&
                (found.st_uid == own.st_uid || found.st_uid == 0))
                return true;
            errand__text_format(out + length, size - length, "../");
        }
    }
    if (installed_with_headers(out, size))
        return true;
    if (out[0] != '\0') {
        size_t length = strlen(out_where);

        errand__text_format(out_where + length, where_size - length, " and %s", out);
    }
    errand__text_format(out, size, "%s", ERRAND_WORKER_PATH);
    return access(out, X_OK) == 0;
}
