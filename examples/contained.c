/* SPDX-License-Identifier: MIT */
/* contained: foreign code in a process of its own.  It crashes, exits and never ends; this program hears
 * of each, and goes on.
 *     cc contained.c $(pkg-config --cflags --libs errand) && ./a.out
 *     cc -shared -fPIC plugin.c -o plugin.so $(pkg-config --cflags errand)
 *     ./a.out $PWD/plugin.so
 * The path of a library or plug-in is absolute, and where this program is root, user 65534 must be
 * able to read it: the processes run as that user.  A name alone (libz.so.1) is looked for by the loader. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errand/sandbox.h>

/* Why a call was refused, beside its status: of errand_ffi_* and errand_spec_call; of a sandbox. */
static errand_ffi_error error;
static char text[512];

static void
must(errand_status status)
{
    if (status == ERRAND_OK)
        return;
    fprintf(stderr, "%s%s%s%s%s\n", errand_status_text(status),
            error.text[0] != '\0' ? ": " : "", error.text, text[0] != '\0' ? ": " : "",
            text);
    exit(1);
}

static void
on_completion(void *arg, errand_completion *completion)
{
    const errand_payload *payload = &completion->payload;

    (void)arg;
    if (completion->outcome != ERRAND_COMPLETED) {
        printf("%s: %s: %s\n", completion->operation, errand_code_name(completion->code),
               completion->message);
    } else if (payload->held_type == &errand_plugin_bytes_type) {
        const errand_plugin_bytes *result = payload->data;
        printf("%s: '%.*s'\n", completion->operation, (int)result->size, result->bytes);
    } else {
        const errand_ffi_result *result = payload->data;
        printf("%s: %lld\n", completion->operation, (long long)result->value.as.i);
    }
}

static void
await(errand_runtime *runtime, errand_lease *lease, errand_spec *spec, const char *name)
{
    spec->held_name = name;
    must(errand_start(lease, spec, NULL, NULL));
    for (size_t heard = 0; heard == 0;) {
        must(errand_park(runtime, UINT64_MAX));
        must(errand_drain(runtime, 16, on_completion, NULL, &heard));
    }
}

int
main(int argc, char **argv)
{
    const struct {
        const char *name, *signature;
        errand_ffi_value argument;
    } calls[] = {
        {"labs", "i64 (i64)", errand_ffi_i(-7)},
        {"strlen", "u64 (string)", errand_ffi_pointer(NULL)}, /* crashes */
        {"exit", "void (i32)", errand_ffi_i(3)},
        {"getpgid", "i32 (i32)", errand_ffi_i(0)}, /* not promised */
        {"sleep", "u32 (u32)", errand_ffi_u(3600)},
        {"labs", "i64 (i64)", errand_ffi_i(-8)},
    };
    const errand_sandbox_policy policy = {.struct_size = sizeof policy,
                                          .memory_bytes = 256 << 20,
                                          .deadline_ns = 300000000};
    const errand_sandbox_config config = {.struct_size = sizeof config,
                                          .policy = &policy};
    errand_runtime *runtime;
    errand_executor *sandbox;
    errand_lease *lease;
    errand_ffi_library *libc;
    errand_ffi_function *function;
    errand_spec spec;

    must(errand_sandbox_create(&config, &sandbox, text, sizeof text));
    must(errand_runtime_create(NULL, &runtime));
    must(errand_attach(runtime, sandbox, 0, &lease));
    must(errand_ffi_library_create(NULL, &libc)); /* the worker's; never opened here */
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        must(errand_ffi_describe_named(libc, calls[i].name, calls[i].signature, &function,
                                       &error));
        /* Like all errand_spec_*, it fills the whole spec: kind, resource_class, job, state. */
        must(errand_spec_call(&spec, function, &calls[i].argument, 1, &error));
        errand_ffi_function_abandon(&function);
        await(runtime, lease, &spec, calls[i].name);
    }
    for (int i = 0; argc > 1 && i < 2; i++) { /* plugin.c: one is right, one is not */
        const char *symbol = i == 0 ? "reverse" : "overrun";
        must(errand_spec_plugin(&spec, argv[1], symbol, "stressed", 8));
        await(runtime, lease, &spec, symbol);
    }
    errand_ffi_library_abandon(&libc);
    must(errand_runtime_shutdown(&runtime, errand_deadline_in(1000000000),
                                 ERRAND_SHUTDOWN_QUIET, NULL));
    errand_executor_abandon(&sandbox); /* its processes end */
    return 0;
}
