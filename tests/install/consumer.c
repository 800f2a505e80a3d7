/* SPDX-License-Identifier: MIT */
/* consumer: a user's program, built against the installed package in C and in C++. */
#include <errand/base.h>
#include <stdio.h>
#include <string.h>

int
main(void)
{
    char expected[64];

    snprintf(expected, sizeof expected, "%d.%d.%d", ERRAND_VERSION_MAJOR,
             ERRAND_VERSION_MINOR, ERRAND_VERSION_PATCH);
    if (strcmp(errand_version(), expected) != 0) {
        fprintf(stderr, "headers are %s, the library is %s\n", expected,
                errand_version());
        return 1;
    }
    return strcmp(errand_status_name(ERRAND_OK), "OK") != 0;
}
