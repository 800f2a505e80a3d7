/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_SANDBOX_HOSTILE_H
#define ERRAND_TESTS_WORKERS_SANDBOX_HOSTILE_H
/* hostile: an object that tries, inside a worker, what the request asks for: a probe by name, or
 * ("call") a system call by number. */
#include <stdint.h>

typedef struct hostile_request {
    char name[24];
    int64_t number;       /* of the call; else the probe's own */
    int64_t arguments[6]; /* HOSTILE_... are replaced */
    char text[128];       /* a path, a message */
} hostile_request;
enum {
    HOSTILE_SCRATCH = 0x7ead0001, /* an address of zeroed memory */
    HOSTILE_REQUEST = 0x7ead0002, /* an address in the request file */
    HOSTILE_SELF = 0x7ead0003,    /* this process */
    HOSTILE_TEXT = 0x7ead0004     /* the request's text, copied */
};
typedef struct hostile_response {
    int64_t result;
    int32_t error; /* errno */
    int32_t reserved;
    char text[128];
} hostile_response;

#endif
