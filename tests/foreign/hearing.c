/* SPDX-License-Identifier: MIT */
/* Goal: tests of callbacks say who calls and what must be heard.  Method: one handler that writes down. */
#include <stdio.h>
#include <string.h>
#include "hearing.h"

const char hearing_plain[] = "i32(i32, string)";

void
hear(void *arg, const errand_ffi_value *arguments, uint32_t count,
     errand_ffi_value *out_result)
{
    heard *self = arg;

    assert_int_equal(count, 2);
    self->count++;
    self->thread = pthread_self();
    self->number = arguments[0].as.i;
    snprintf(self->text, sizeof self->text, "%s", arguments[1].as.string);
    assert_int_equal(arguments[1].size, strlen(self->text));
    self->virtual_ns = errand_runtime_now(self->rig->runtime);
    *out_result = self->answer;
}

errand_ffi_callback *
hearing_of(heard *self, const char *signature, errand_ffi_callback_fn *handler,
           uint32_t flags)
{
    const errand_ffi_callback_config config = {
        .struct_size = sizeof config,
        .flags = flags,
        .signature = signature,
        .handler = handler,
        .held_arg = self,
        .fallback = signature == hearing_plain ? errand_ffi_i(-77)
                                               : (errand_ffi_value){.size = 0}};
    errand_ffi_callback *callback;
    errand_ffi_error error;

    if (errand_ffi_callback_create(self->rig->runtime, &config, &callback, &error) !=
        ERRAND_OK)
        fail_msg("%s", error.text);
    return callback;
}

errand_ffi_callback *
hearing(heard *self, ffi_rig *rig, uint32_t flags)
{
    *self = (heard){.rig = rig, .answer = errand_ffi_i(42)};
    rig->once = true;
    return hearing_of(self, hearing_plain, hear, flags);
}

void
hearing_end(errand_ffi_callback **callback)
{
    assert_int_equal(errand_ffi_callback_destroy(callback), ERRAND_OK);
    assert_null(*callback);
}
