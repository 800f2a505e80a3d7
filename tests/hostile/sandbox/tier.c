/* SPDX-License-Identifier: MIT */
#include "tier.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)

bool
tier_installed(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    if (handle != NULL)
        dlclose(handle);
    else
        print_message("[  SKIPPED ] %s: not installed\n", library);
    return handle != NULL;
}

static size_t
describe_known(const known *list, errand_entry *out_entries,
               errand_ffi_function **out_functions)
{
    errand_ffi_library *library;
    size_t count = 0;

    for (; list != NULL && list[count].library != NULL; count++) {
        assert_int_equal(errand_ffi_library_create(list[count].library, &library),
                         ERRAND_OK);
        assert_int_equal(errand_ffi_describe(library, list[count].signature,
                                             &out_functions[count], NULL),
                         ERRAND_OK);
        errand_ffi_library_abandon(&library);
        out_entries[count] =
            (errand_entry){list[count].library,
                           errand_ffi_function_signature(out_functions[count])->symbol,
                           errand_ffi_function_text(out_functions[count])};
    }
    return count;
}

void
tier_begin(tier *self, bool sandboxed, const known *list)
{
    errand_entry entries[8];
    errand_ffi_function *functions[8];
    char text[256] = "";

    memset(self, 0, sizeof *self);
    self->sandboxed = sandboxed;
    if (sandboxed) {
        errand_sandbox_config config;
        errand_sandbox_policy policy;

        hostile_config(&config, &policy);
        config.workers_max = 1;
        policy.promises = ERRAND_PROMISE_CALLBACK;
        policy.reuse = 0;
        policy.in_bytes = policy.out_bytes = 32u << 20;
        policy.entries = entries;
        policy.entry_count = describe_known(list, entries, functions);
        if (!hostile_begin(&self->pool, &config, ERRAND_TEST_JOBS, text, sizeof text))
            fail_msg("no sandbox: %s", text);
        for (size_t i = 0; i < policy.entry_count; i++)
            errand_ffi_function_abandon(&functions[i]);
        return;
    }
    errand_blocking_config config = {.struct_size = sizeof config, .workers_max = 1};
    assert_int_equal(errand_runtime_create(NULL, &self->pool.runtime), ERRAND_OK);
    assert_int_equal(errand_blocking_create(&config, &self->pool.executor), ERRAND_OK);
    assert_int_equal(
        errand_attach(self->pool.runtime, self->pool.executor, 0, &self->pool.lease),
        ERRAND_OK);
}

static void
forget_outputs(tier *self)
{
    for (int i = 0; i < 4; i++) {
        free(self->out[i]);
        self->out[i] = NULL;
    }
}

void
tier_end(tier *self)
{
    forget_outputs(self);
    errand_ffi_library_abandon(&self->kept);
    assert_true(hostile_end(&self->pool));
}

static void
keep(void *arg, errand_completion *completion)
{
    tier *self = arg;
    void *data = NULL;

    self->pool.heard++;
    self->pool.ends = hostile_ends_of(completion);
    self->pool.signal_number = completion->signal_number;
    self->pool.job_code = completion->job_code;
    snprintf(self->pool.message, sizeof self->pool.message, "%s",
             completion->message == NULL ? "" : completion->message);
    if (completion->outcome != ERRAND_COMPLETED)
        return;
    assert_int_equal(
        errand_completion_read(completion, &errand_ffi_result_type, &data, NULL),
        ERRAND_OK);
    const errand_ffi_result *result = data;
    self->number = result->value.as.i;
    self->real = result->value.as.f64;
    if (result->value.kind == ERRAND_FFI_STRING && result->value.as.string != NULL)
        snprintf(self->text, sizeof self->text, "%s", result->value.as.string);
    for (uint32_t i = 0; i < result->output_count && i < 4; i++) {
        self->out_size[i] = result->outputs[i].size;
        self->out[i] = malloc(result->outputs[i].size + 1);
        memcpy(self->out[i], result->outputs[i].bytes, result->outputs[i].size);
    }
}

int
tier_call(tier *self, const char *library, const char *signature,
          const errand_ffi_value *arguments, size_t count)
{
    errand_ffi_library *opened;
    errand_ffi_function *function;
    errand_ffi_error error = {.text = ""};
    errand_spec spec = ERRAND_SPEC_INIT;
    uint64_t before = self->pool.heard;

    forget_outputs(self);
    assert_int_equal(errand_ffi_library_create(library, &opened), ERRAND_OK);
    if (errand_ffi_describe(opened, signature, &function, &error) != ERRAND_OK ||
        errand_spec_call(&spec, function, arguments, count, &error) != ERRAND_OK)
        fail_msg("%s: %s", signature, error.text);
    spec.deadline_ns = self->sandboxed ? 20000 * MS : 0;
    if (strstr(signature, "sleep") != NULL)
        spec.deadline_ns = 100 * MS;
    assert_int_equal(errand_start(self->pool.lease, &spec, NULL, NULL), ERRAND_OK);
    errand_ffi_function_abandon(&function);
    while (self->pool.heard == before) {
        assert_int_equal(errand_park(self->pool.runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(self->pool.runtime, SIZE_MAX, keep, self, NULL),
                         ERRAND_OK);
    }
    errand_ffi_library_abandon(&self->kept);
    self->kept = opened;
    return self->pool.ends;
}
void
tier_in_both(void (*test)(tier *self), const known *list)
{
    tier self;

    for (int sandboxed = 0; sandboxed < 2; sandboxed++) {
        tier_begin(&self, sandboxed != 0, list);
        test(&self);
        tier_end(&self);
    }
}
