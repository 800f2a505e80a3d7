/* SPDX-License-Identifier: MIT */
#include "descriptors.h"
#include <dirent.h>
#include "group.h"

int
test_count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}
