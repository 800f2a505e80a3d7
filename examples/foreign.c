/* SPDX-License-Identifier: MIT */
/* foreign: functions of the C library, described at run time and called on a worker thread; one of
 * them calls back.
 *     cc foreign.c $(pkg-config --cflags --libs errand) && ./a.out
 * What a call is given is copied when its spec is made; what it gave back is the payload. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errand/executor.h>
#include <errand/ffi.h>

static errand_runtime *runtime;
static errand_lease *lease;
static errand_payload payload; /* of the last call */
static const errand_ffi_result *result;
static errand_ffi_error error; /* of the last call that answered EINVAL */

static void
must(errand_status status)
{
    if (status == ERRAND_OK)
        return;
    fprintf(stderr, "%s %s\n", errand_status_text(status), error.text);
    exit(1);
}

/* The callback: on this program's thread, inside errand_drain, while qsort waits on its own. */
static void
larger_first(void *arg, const errand_ffi_value *arguments, uint32_t count,
             errand_ffi_value *out_result)
{
    int32_t pair[2];

    (void)arg;
    for (uint32_t i = 0; i < count; i++)
        memcpy(&pair[i], arguments[i].as.pointer, sizeof pair[i]);
    *out_result = errand_ffi_i((pair[0] < pair[1]) - (pair[0] > pair[1]));
}

static void
on_completion(void *arg, errand_completion *completion)
{
    (void)arg;
    if (completion->outcome != ERRAND_COMPLETED) {
        fprintf(stderr, "%s: %s\n", completion->operation, completion->message);
        exit(1);
    }
    errand_payload_drop(&payload);
    payload = errand_completion_take(completion);
    result = payload.data;
}

/* Describes a function, calls it once and waits for its result. */
static void
call(errand_ffi_library *library, const char *signature,
     const errand_ffi_value *arguments, size_t count)
{
    errand_ffi_function *function;
    errand_spec spec;

    must(errand_ffi_describe(library, signature, &function, &error));
    must(errand_spec_call(&spec, function, arguments, count, &error));
    errand_ffi_function_abandon(&function); /* the call keeps what it needs */
    must(errand_start(lease, &spec, NULL, NULL));
    for (size_t heard = 0; heard == 0;) {
        must(errand_park(runtime, UINT64_MAX));
        must(errand_drain(runtime, 16, on_completion, NULL, &heard));
    }
}

int
main(void)
{
    int32_t numbers[] = {5, -1, 900};
    errand_executor *pool;
    errand_ffi_library *libc;
    errand_ffi_callback *callback;
    errand_ffi_callback_config config = {.struct_size = sizeof config};

    must(errand_runtime_create(NULL, &runtime));
    must(errand_blocking_create(NULL, &pool));
    must(errand_attach(runtime, pool, 0, &lease));
    must(errand_ffi_library_create(NULL, &libc)); /* what the process has already */
    config.signature = "i32(pointer, pointer)";
    config.handler = larger_first;
    must(errand_ffi_callback_create(runtime, &config, &callback, &error));

    const errand_ffi_value print[] = {errand_ffi_out(32), errand_ffi_u(32),
                                      errand_ffi_string("%d is %.2f"), errand_ffi_i(7),
                                      errand_ffi_f64(7)};
    call(libc, "i32 snprintf(out bytes, u64, string, ..., i32, f64)", print, 5);
    printf("snprintf: %d, '%s'\n", (int)result->value.as.i, result->outputs[0].bytes);

    const errand_ffi_value sort[] = {errand_ffi_inout(numbers, sizeof numbers),
                                     errand_ffi_u(3), errand_ffi_u(sizeof numbers[0]),
                                     errand_ffi_callback_value(callback)};
    call(libc, "void qsort(inout bytes, u64, u64, fn(i32(pointer, pointer)))", sort, 4);
    memcpy(numbers, result->outputs[0].bytes, sizeof numbers);
    printf("qsort: %d %d %d\n", numbers[0], numbers[1], numbers[2]);

    errand_payload_drop(&payload);
    must(errand_ffi_callback_destroy(&callback)); /* no call has it any more */
    errand_ffi_library_abandon(&libc);
    must(errand_runtime_shutdown(&runtime, errand_deadline_in(1000000000),
                                 ERRAND_SHUTDOWN_QUIET, NULL));
    errand_executor_abandon(&pool);
    return 0;
}
