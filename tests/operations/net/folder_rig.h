/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_OPERATIONS_NET_FOLDER_RIG_H
#define ERRAND_TESTS_OPERATIONS_NET_FOLDER_RIG_H
/* folder_rig: a net_rig with a directory of its own for each test. */
#include <stdio.h>
#include <stdlib.h>
#include "net_rig.h"

static char dir[64];

static inline int
folder_setup(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/errand-files-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return net_setup(state);
}

static inline int
folder_teardown(void **state)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
    return net_teardown(state);
}

#endif
