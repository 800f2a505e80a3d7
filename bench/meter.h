/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_BENCH_METER_H
#define ERRAND_BENCH_METER_H
/* meter: what the whole process allocates, the shared libraries of the peers too: this program's
 * own malloc and mmap stand before the C library's. */
#include <stdbool.h>
#include <stdint.h>

typedef struct bench_meter {
    uint64_t calls; /* of malloc, calloc, realloc, memalign and mmap */
    int64_t bytes;  /* blocks with headers, and mapped bytes; less what was given back */
    int64_t mapped; /* of these, mapped */
} bench_meter;

/* Counting slows every call down a little, so it is on only in between. */
void bench_meter_start(void);
bench_meter bench_meter_read(void);
void bench_meter_stop(void);
/* Resident bytes; what mallinfo2 says is in use: it knows no mappings but its own. */
int64_t bench_meter_resident(void);
int64_t bench_meter_mallinfo(void);

#endif
