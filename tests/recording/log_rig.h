/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_RECORDING_LOG_RIG_H
#define ERRAND_TESTS_RECORDING_LOG_RIG_H
/* log_rig: a log in a file of its own, written step by step without a runtime, and read into memory. */
#include "group.h"
#include "recording/recording.h"

typedef struct log_rig {
    char path[64];
    errand_recorder *recorder;
    uint64_t steps, mix;
    unsigned char *bytes; /* of the file, after log_read */
    size_t size;
    int64_t live; /* bytes of memory before */
} log_rig;

int log_setup(void **state); /* the recorder is open and has begun */
int log_teardown(void **state);
/* One step more: kind, value and label are its own, the rest hangs on its number. */
void log_step(log_rig *rig, errand_step_kind kind, uint64_t value, const char *label,
              const errand_log_completion *completion, const void *more, size_t size);
/* Steps of many kinds, some with labels, completions and bytes. */
void log_fill(log_rig *rig, uint64_t steps);
/* What log_fill's step n is; true if the one that was read is that. */
bool log_is_filled(uint64_t n, const errand_log_step *step);
void log_end(log_rig *rig); /* writes the end and closes the recorder */
void
log_close(log_rig *rig);     /* without an end: as if the process had died after a sync */
void log_read(log_rig *rig); /* the file into bytes */

#endif
