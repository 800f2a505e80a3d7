/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_RECORD_H
#define ERRAND_RUNTIME_RECORD_H
/* record: the part of runtime.h, which includes it, that record.c is for. */
#include "runtime/runtime.h"

/* The recorder of config.held_recorder hears of each step. */
void errand__record_begin(errand_runtime *runtime);
/* The completion in hand; digest: of its payload, as the audit takes it. */
void errand__record_completion(errand_runtime *runtime, const errand__record *record,
                               uint64_t digest, errand_log_completion *out_image);
/* A note's bytes, for the next step; the redaction hook may keep them out. */
void errand__record_note(errand_runtime *runtime, const char *label, const void *bytes,
                         size_t size);
void errand__record_end(errand_runtime *runtime, bool clean);
#endif
