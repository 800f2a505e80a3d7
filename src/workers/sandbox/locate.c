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
 *   somebody else's.
 * - A worker starts by its name, again and again.  So a found one must be at a name at which only root,
 *   this user or the owner of the library's folder can put something else: links are followed once, each
 *   folder down to the file is looked at, and the name without links is kept. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "workers/sandbox/sandbox.h"

#define HEADER "errand/sandbox.h"

/* In a program that has the static library and was compiled with that header.  Weak: in the shared library
 * and elsewhere there is none. */
extern const char errand_sandbox_header[] __attribute__((weak, visibility("hidden")));

/* Can nobody else put something in its place?  The owner of the root folder may anything, whoever
 * that is in a user namespace. */
static bool
is_trusted(const struct stat *found, uid_t other, bool is_folder)
{
    struct stat root;
    bool sticky = is_folder && (found->st_mode & S_ISVTX) != 0;

    if ((found->st_mode & S_IWOTH) != 0 && !sticky && !S_ISLNK(found->st_mode))
        return false;
    return found->st_uid == 0 || found->st_uid == geteuid() || found->st_uid == other ||
           (stat("/", &root) == 0 && found->st_uid == root.st_uid);
}

/* Is there a program, at a name at which nobody else can put another?  Then path has no links any more. */
static bool
take(char *path, size_t size, uid_t other, bool *out_unsafe)
{
    char real[PATH_MAX], at[PATH_MAX];
    struct stat found;

    if (access(path, X_OK) != 0 || lstat(path, &found) != 0 ||
        realpath(path, real) == NULL || strlen(real) >= size)
        return false;
    *out_unsafe = true;
    if (!is_trusted(&found, other, false))
        return false;
    errand__text_format(at, sizeof at, "%s", real);
    for (bool is_folder = false;; is_folder = true) {
        char *slash = strrchr(at, '/');

        if (stat(at, &found) != 0 || !is_trusted(&found, other, is_folder))
            return false;
        if (at[1] == '\0')
            break;
        slash[slash == at ? 1 : 0] = '\0';
    }
    *out_unsafe = false;
    errand__text_format(path, size, "%s", real);
    return true;
}

/* Where the worker of the installation lies whose headers this program was compiled with; "" = not known. */
static void
name_by_headers(char *out, size_t size)
{
    size_t length;

    out[0] = '\0';
    if (errand_sandbox_header == NULL || errand_sandbox_header[0] != '/')
        return;
    length = strlen(errand_sandbox_header);
    if (length < sizeof HEADER || length + sizeof ERRAND_HEADERS_TO_WORKER > size ||
        strcmp(errand_sandbox_header + length - (sizeof HEADER - 1), HEADER) != 0)
        return;
    errand__text_format(out, size, "%.*s%s", (int)(length - (sizeof HEADER - 1)),
                        errand_sandbox_header, ERRAND_HEADERS_TO_WORKER);
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
    static const char file[] = "libexec/errand-worker";
    char refused[PATH_MAX] = "";
    struct stat own;
    bool unsafe = false;

    errand__text_format(out_where, where_size, "looked for ");
    if (own_file(out, size))
        strrchr(out, '/')[1] = '\0'; /* what the kernel adds to a name goes too */
    else
        out[0] = '\0';
    if (out[0] != '\0' && stat(out, &own) == 0) {
        errand__text_append(out_where, where_size,
                            "libexec/errand-worker in %s and the four folders above it, "
                            "then for ",
                            out);
        for (int up = 0; up < 5; up++) {
            size_t length = strlen(out);

            if (length + sizeof file > size)
                break;
            errand__text_append(out, size, "%s", file);
            if (take(out, size, own.st_uid, &unsafe))
                return true;
            if (unsafe)
                errand__text_format(refused, sizeof refused, "%s", out);
            unsafe = false;
            errand__text_format(out + length, size - length, "../");
        }
    }
    name_by_headers(out, size);
    if (out[0] != '\0') {
        if (take(out, size, geteuid(), &unsafe))
            return true;
        if (unsafe)
            errand__text_format(refused, sizeof refused, "%s", out);
        errand__text_append(out_where, where_size, "%s and ", out);
    }
    errand__text_append(out_where, where_size, "%s", ERRAND_WORKER_PATH);
    if (refused[0] != '\0')
        errand__text_append(out_where, where_size,
                            "; %s is not used, because others may put something else "
                            "there (owner or mode of it or of a folder above)",
                            refused);
    errand__text_format(out, size, "%s", ERRAND_WORKER_PATH);
    return access(out, X_OK) == 0;
}
