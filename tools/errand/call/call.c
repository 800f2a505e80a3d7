/* SPDX-License-Identifier: MIT */
/* call: one foreign call, from the command line to its result.
 *
 * Design notes.  It is a host as small as one can be: a runtime, an executor, one operation, a
 * drain.  What went wrong is told with the code that a program would see. */
#include "call/call.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct called {
    bool done;
    int code; /* exit code */
    const errand__call_options *options;
    errand_ffi_function *function;
    char misuse[256]; /* why the library refused the last call that it refused so */
} called;

static void
hear_misuse(void *arg, errand_status status, const char *text)
{
    called *self = arg;

    (void)status;
    snprintf(self->misuse, sizeof self->misuse, "%s", text);
}

/* Room that was made and not used is told, not shown. */
static void
print_output(const errand_ffi_output *output)
{
    size_t size = output->size;

    printf("argument %u: ", (unsigned)output->argument);
    if (output->bytes == NULL) {
        fputs("null\n", stdout);
        return;
    }
    while (size > 0 && output->bytes[size - 1] == 0)
        size--;
    if (output->size - size < 2)
        size = output->size;
    errand__call_bytes_print(stdout, output->bytes, size);
    if (size < output->size)
        printf(" and %zu zero bytes", output->size - size);
    fputc('\n', stdout);
}

static void
print_result(const errand_ffi_result *result)
{
    errand__call_values_print(stdout, &result->value);
    fputc('\n', stdout);
    for (uint32_t i = 0; i < result->output_count; i++)
        print_output(&result->outputs[i]);
    if (result->sys_errno != 0)
        printf("errno: %d (%s)\n", (int)result->sys_errno, strerror(result->sys_errno));
}

static void
print_failure(const errand_completion *completion)
{
    errand_sandbox_outcome outcome = {.struct_size = sizeof outcome};

    /* Of a job's own codes those of foreign calls have names, which Lua has too, in small letters. */
    const char *code = completion->code == ERRAND_CODE_JOB
                           ? errand_ffi_code_name(completion->job_code)
                           : errand_code_name(completion->code);
    errand__help_problem("call: %s: %s", code, completion->message);
    if (completion->signal_number != 0)
        fprintf(stderr, "  signal: %d (%s)\n", (int)completion->signal_number,
                strsignal(completion->signal_number));
    if (completion->system_call != NULL)
        fprintf(stderr, "  system call: %s\n", completion->system_call);
    if (errand_sandbox_outcome_read(completion, &outcome) != ERRAND_OK)
        return;
    if (outcome.denied_call >= 0)
        fprintf(stderr, "  its number: %d\n", (int)outcome.denied_call);
    else if (completion->code == ERRAND_CODE_POLICY)
        fputs("  --report-denied names the call; --promise permits more\n", stderr);
    if (completion->code == ERRAND_CODE_OUTPUT)
        fputs("  --output permits more\n", stderr);
    if (outcome.address != 0)
        fprintf(stderr, "  address: 0x%llx\n", (unsigned long long)outcome.address);
    if (outcome.memory_hint)
        fputs("  --memory permits more\n", stderr);
}

/* With --report-denied: what a policy answered with an error, whether the call went on or not. */
static void
print_refused(const errand_completion *completion)
{
    errand_sandbox_outcome outcome = {.struct_size = sizeof outcome};

    if (errand_sandbox_outcome_read(completion, &outcome) != ERRAND_OK)
        return;
    for (uint32_t i = 0; i < outcome.refused_count; i++) {
        const errand_sandbox_refusal *item = &outcome.refused[i];
        char name[48];

        errand_sandbox_call_name(item->call, name, sizeof name);
        fprintf(stderr, "  refused: %s (%d): %s\n", name, (int)item->call,
                item->error == 0 ? "answered with 0" : strerror(item->error));
    }
}

static void
handle(void *arg, errand_completion *completion)
{
    called *self = arg;
    void *data = NULL;
    size_t size = 0;

    self->done = true;
    if (completion->outcome == ERRAND_COMPLETED &&
        errand_completion_read(completion, &errand_ffi_result_type, &data, &size) ==
            ERRAND_OK) {
        print_result(data);
        errand__output_flush();
        print_refused(completion);
        self->code = ERRAND__EXIT_GOOD;
        return;
    }
    print_failure(completion);
    print_refused(completion);
    if (completion->code == ERRAND_CODE_JOB &&
        completion->job_code == ERRAND_FFI_CODE_NO_LIBRARY &&
        strchr(self->options->library, '/') == NULL &&
        access(self->options->library, F_OK) == 0)
        fprintf(stderr,
                "  a name without / is looked up where libraries are installed; the file "
                "here is ./%s\n",
                self->options->library);
    self->code = completion->code == ERRAND_CODE_DEADLINE ? ERRAND__EXIT_DEADLINE
                                                          : ERRAND__EXIT_SCRIPT;
}

static int
describe(called *self, errand_ffi_library *library)
{
    const char *signature = self->options->signature;
    errand_ffi_error error = {0};
    errand_status status = errand_ffi_describe_named(library, self->options->symbol,
                                                     signature, &self->function, &error);

    if (status == ERRAND_OK)
        return ERRAND__EXIT_GOOD;
    errand__help_problem("call: %s",
                         error.text[0] != '\0' ? error.text : errand_status_text(status));
    if (error.column > 0)
        fprintf(stderr, "  %s\n  %*s^\n", signature, (int)error.column - 1, "");
    return ERRAND__EXIT_USAGE;
}

static int
refused(const char *text, errand_status status)
{
    errand__help_problem("call: %s", text[0] != '\0' ? text : errand_status_text(status));
    return status == ERRAND_EINVAL ? ERRAND__EXIT_USAGE : ERRAND__EXIT_REFUSED;
}

static int
make_spec(called *self, errand_spec *out_spec)
{
    const errand_ffi_signature *signature = errand_ffi_function_signature(self->function);
    errand__call_values *values = calloc(1, sizeof *values);
    errand_ffi_error error = {0};
    int code = ERRAND__EXIT_USAGE;

    if (values == NULL)
        return refused("", ERRAND_ENOMEM);
    if ((uint32_t)self->options->count != signature->count) {
        bool late = false; /* --deadline 1 behind LIB */
        for (int i = 0; i < self->options->count; i++)
            late = late || strncmp(self->options->arguments[i], "--", 2) == 0;
        errand__help_problem("call: %s takes %u arguments, and %d were given%s",
                             errand_ffi_function_text(self->function),
                             (unsigned)signature->count, self->options->count,
                             late ? "; options come before LIB" : "");
        free(values);
        return code;
    }
    values->sandboxed = self->options->process;
    values->file_max = errand__call_file_max(self->options);
    bool good = true;
    for (uint32_t i = 0; good && i < signature->count; i++)
        good = errand__call_values_read(values, i, &signature->parameters[i],
                                        self->options->arguments[i]);
    if (good) {
        errand_status status = errand_spec_call(out_spec, self->function, values->values,
                                                signature->count, &error);
        code = status == ERRAND_OK ? ERRAND__EXIT_GOOD : refused(error.text, status);
    }
    errand__call_values_fini(values);
    free(values);
    return code;
}

static int
make_executor(const errand__call_options *options, errand_executor **out_executor)
{
    char text[512] = "";
    errand_sandbox_config sandbox = options->sandbox;
    errand_blocking_config pool = {.struct_size = sizeof pool, .workers_max = 1};
    errand_status status;

    sandbox.policy = &options->policy;
    sandbox.workers_max = 1;
    if (options->process)
        status = errand_sandbox_create(&sandbox, out_executor, text, sizeof text);
    else
        status = errand_blocking_create(&pool, out_executor);
    if (status == ERRAND_OK)
        return ERRAND__EXIT_GOOD;
    int code = refused(text, status);
    if (strstr(text, "worker_path") != NULL)
        fputs("  here that is --worker FILE\n", stderr);
    return code;
}

/* Submits the one operation and waits for it. */
static int
run_call(called *self, errand_executor *executor, errand_spec *spec)
{
    errand_runtime *runtime = NULL;
    errand_lease *lease = NULL;
    size_t count;
    errand_status status = errand_runtime_create(NULL, &runtime);

    if (status == ERRAND_OK)
        status = errand_attach(runtime, executor, 0, &lease);
    if (status == ERRAND_OK)
        status = errand_start(lease, spec, NULL, NULL);
    if (status != ERRAND_OK)
        errand_spec_abandon(spec);
    while (status == ERRAND_OK && !self->done) {
        status = errand_drain(runtime, SIZE_MAX, handle, self, &count);
        if (status == ERRAND_OK && !self->done)
            status = errand_park(runtime, UINT64_MAX);
    }
    if (runtime != NULL &&
        errand_runtime_shutdown(&runtime, errand_deadline_in(1000000000),
                                ERRAND_SHUTDOWN_QUIET, NULL) != ERRAND_OK)
        errand__help_problem("call: the runtime could not be shut down");
    return status == ERRAND_OK ? self->code : refused(self->misuse, status);
}

/* A sandbox opens no library by a path that counts from the current folder; a shell's user writes
 * such paths.  *out_name NULL = the C library.  False: there is no such file, and a message has
 * said so. */
static bool
name_library(const errand__call_options *options, char whole[PATH_MAX],
             const char **out_name)
{
    const char *library = options->library;

    *out_name = strcmp(library, "-") == 0 ? NULL : library;
    if (strchr(library, '/') == NULL)
        return true;
    if (realpath(library, whole) != NULL) {
        *out_name = whole;
    } else if (library[0] != '/' && options->process) {
        errand__help_problem("call: %s: the library cannot be opened: %s", library,
                             strerror(errno));
        return false;
    }
    return true;
}

int
errand__call_main(int argc, char **argv)
{
    errand__call_options options;
    called self = {.options = &options};
    errand_ffi_library *library = NULL;
    errand_executor *executor = NULL;
    errand_spec spec = ERRAND_SPEC_INIT;
    const char *name;
    char whole[PATH_MAX];

    if (!errand__call_options_read(argc, argv, &options))
        return ERRAND__EXIT_USAGE;
    if (options.library == NULL) {
        (void)errand__help_print(stdout, "call");
        return errand__output_code(ERRAND__EXIT_GOOD);
    }
    if (!name_library(&options, whole, &name))
        return ERRAND__EXIT_SCRIPT;
    errand_misuse_hook(hear_misuse, &self);
    errand_status status = errand_ffi_library_create(name, &library);
    int code =
        status == ERRAND_OK ? describe(&self, library) : refused(self.misuse, status);
    if (code == ERRAND__EXIT_GOOD)
        code = make_spec(&self, &spec);
    if (code == ERRAND__EXIT_GOOD) {
        spec.deadline_ns = options.deadline_ns;
        code = make_executor(&options, &executor);
        if (code == ERRAND__EXIT_GOOD)
            code = run_call(&self, executor, &spec);
        else
            errand_spec_abandon(&spec);
    }
    errand_executor_abandon(&executor);
    errand_ffi_function_abandon(&self.function);
    errand_ffi_library_abandon(&library);
    errand_misuse_hook(NULL, NULL);
    return errand__output_code(code);
}
