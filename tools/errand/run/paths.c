/* SPDX-License-Identifier: MIT */
/* paths: no file of a run is written over another one of it.
 *
 * Design notes.  Two names are one file if the system says so, whatever links lead there; of a file
 * that is not there yet, if they are written alike.  What is no regular file (a terminal, /dev/null)
 * may be given twice. */
#include "program.h"
#include <string.h>
#include <sys/stat.h>

typedef struct named_path {
    const char *option, *path; /* path NULL = not given */
} named_path;

static bool
same_file(const char *a, const char *b)
{
    struct stat one, other;
    bool there = stat(a, &one) == 0;
    if (there != (stat(b, &other) == 0))
        return false;
    if (!there)
        return strcmp(a, b) == 0;
    return S_ISREG(one.st_mode) && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

bool
errand__paths_apart(const char *option, const char *path, const char *what,
                    const char *other)
{
    if (other == NULL || !same_file(path, other))
        return true;
    errand__help_problem("%s %s: that is the same file as %s: give another one", option,
                         path, what);
    return false;
}

bool
errand__paths_check(const errand__options *options)
{
    const named_path written[] = {{"--record", options->record_path},
                                  {"--trace", options->trace_path},
                                  {"--save-tape", options->save_tape_path}};
    const named_path others[] = {{"the script", options->script},
                                 {"--replay", options->replay_path},
                                 {"--tape", options->tape_path},
                                 {"--record", options->record_path},
                                 {"--trace", options->trace_path}};
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        /* The last ones are written themselves: each pair once. */
        size_t count = 3 + i;
        for (size_t k = 0; k < count && written[i].path != NULL; k++) {
            if (!errand__paths_apart(written[i].option, written[i].path, others[k].option,
                                     others[k].path))
                return false;
        }
    }
    return true;
}
