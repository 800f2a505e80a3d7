/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_OPERATIONS_RIG_H
#define ERRAND_TESTS_OPERATIONS_RIG_H
/* rig: a runtime and an executor for one operation after another, and a directory to work in.
 *
 *     assert_int_equal(errand_spec_echo(&spec, "hi", 2), ERRAND_OK);
 *     rig_run(rig, &spec);                     to its end; rig->result says how
 *
 * Each test has its own (cmocka_unit_test_setup_teardown); teardown finds what is left: operations, bytes, descriptors, child
 * processes. */
#include "errand/executor.h"
#include "errand/operations.h"
#include "errand/testing.h"
#include "group.h"

typedef struct rig_result {
    int completions;
    errand_outcome outcome;
    errand_code code;
    int32_t job_code, sys_errno, signal_number;
    uint32_t flags;
    char message[512], system_call[64], operation[64];
    errand_payload payload; /* the rig's; dropped by the next run */
} rig_result;

typedef struct test_rig {
    errand_executor *executor;
    errand_runtime *runtime;
    errand_lease *lease;
    bool threads; /* a blocking pool; else the manual executor on this thread */
    rig_result result;
    char dir[64];
    int fds;       /* open before anything was made */
    int64_t bytes; /* live before */
} test_rig;

int rig_setup_manual(void **state);
int rig_setup_threads(void **state);
int rig_teardown(void **state);

void rig_run(test_rig *rig, errand_spec *spec);
/* In two halves, with something between; threads only. */
void rig_start(test_rig *rig, errand_spec *spec, errand_identity *out_identity);
void rig_cancel(test_rig *rig, const errand_identity *identity);
void rig_await_running(test_rig *rig);
void rig_await_end(test_rig *rig);
/* Until no body is out that its operation did not wait for. */
void rig_await_held(test_rig *rig);

/* What the result must be. */
const void *rig_payload(test_rig *rig, const errand_payload_type *type);
void rig_assert_failed(test_rig *rig, errand_operation_code code, int sys_errno);
void rig_assert_says(test_rig *rig, const char *part); /* of its message */

/* In the rig's directory.  path: in a buffer that the next four calls leave alone. */
const char *rig_path(test_rig *rig, const char *name);
void rig_put(test_rig *rig, const char *name, const void *bytes, size_t size);
void rig_put_executable(test_rig *rig, const char *name, const char *text);

#endif
