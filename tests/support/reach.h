/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_SUPPORT_REACH_H
#define ERRAND_TESTS_SUPPORT_REACH_H
#include <stdbool.h>

/* reach: files of the build for processes that are not root any more. */

/* A file of the same contents that every user may read and run: the file itself where all folders
 * above let everybody through, else a copy below /tmp that goes with the process that asked first.
 * Where others are forked who may not copy, ask before.  The answer is valid until the end. */
const char *test_reachable(const char *path);
/* Copies a file's bytes; what is there is overwritten, and may be run by everybody. */
bool test_copy_file(const char *from, const char *to);

#endif
