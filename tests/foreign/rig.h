/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_FOREIGN_RIG_H
#define ERRAND_TESTS_FOREIGN_RIG_H
/* rig: a runtime, an executor, and the library of subject.c; one call after another.
 *
 *     f = rig_function(rig, "i32 fill(out bytes, u64, u8)");
 *     result = RIG_CALL(rig, f, errand_ffi_out(3), errand_ffi_u(3), errand_ffi_u(9));
 *
 * Each call of a function without callbacks is made in both forms: by a job, and written down, served
 * apart and read back as a sandbox does; both results must be the same. */
#include "errand/executor.h"
#include "errand/ffi.h"
#include "errand/record.h"
#include "errand/task.h"
#include "errand/testing.h"
#include "foreign/foreign.h"
#include "group.h"
#include "subject.h"

typedef struct ffi_rig {
    errand_executor *executor;
    errand_runtime *runtime;
    errand_lease *lease;
    errand_ffi_library *library;
    errand_ffi_function *functions[64];
    size_t function_count;
    bool threads, once; /* once: by a job alone */
    errand_recorder *recorder;
    errand_replay *replay;
    int completions, misuses;
    errand_outcome outcome;
    int32_t job_code;
    uint32_t flags;
    char message[512], misuse_text[512];
    errand_payload payload;
    int64_t bytes;
} ffi_rig;

int rig_setup(void **state);         /* arrival, manual executor */
int rig_setup_threads(void **state); /* arrival, a pool of threads */
int rig_setup_inline(void **state);  /* seeded, a pool of threads */
int rig_setup_paced(void **state);
int rig_setup_order(void **state, errand_order order, bool threads);
/* Inline, recorded to a file with payloads; or replayed from there. */
int rig_setup_logged(void **state, const char *path, bool replay);
int rig_teardown(void **state);
void rig_shutdown(ffi_rig *rig); /* the runtime alone; may be called before teardown */

errand_ffi_function *rig_function(ffi_rig *rig, const char *signature);
errand_ffi_function *rig_function_of(ffi_rig *rig, errand_ffi_library *library,
                                     const char *signature);
/* The result of a call that must succeed; lives until the next call. */
const errand_ffi_result *rig_call(ffi_rig *rig, errand_ffi_function *function,
                                  const errand_ffi_value *arguments, size_t count);
#define RIG_CALL(rig, function, ...)                                                     \
    rig_call((rig), (function), (const errand_ffi_value[]){__VA_ARGS__},                 \
             sizeof((const errand_ffi_value[]){__VA_ARGS__}) / sizeof(errand_ffi_value))
void rig_start(ffi_rig *rig, errand_ffi_function *function,
               const errand_ffi_value *arguments, size_t count,
               errand_identity *out_identity);
void rig_await(ffi_rig *rig); /* its completion */
void rig_drain(ffi_rig *rig); /* what is there now */
/* EINVAL with that argument, and a text with that part. */
void rig_assert_refused(ffi_rig *rig, errand_ffi_function *function,
                        const errand_ffi_value *arguments, size_t count,
                        uint32_t argument, const char *part);
/* The spec's request, served apart, as a payload. */
errand_payload rig_apart(ffi_rig *rig, const errand_spec *spec);

#endif
