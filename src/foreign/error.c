/* SPDX-License-Identifier: MIT */
/* error: what is wrong, where, and what to do instead; and the names of codes. */
#include "foreign/foreign.h"

const char *
errand_ffi_code_name(int32_t job_code)
{
    switch (job_code) {
#define NAME(name, number, sentence)                                                     \
    case number:                                                                         \
        return #name;
        ERRAND_FFI_TABLE(NAME)
#undef NAME
    }
    return "unknown";
}

bool
errand__ffi_refuse(errand_ffi_error *out_error, uint32_t argument, const char *format,
                   ...)
{
    va_list arguments;

    if (out_error == NULL)
        return false;
    out_error->column = 0;
    out_error->argument = argument;
    va_start(arguments, format);
    errand__text_vformat(out_error->text, sizeof out_error->text, format, arguments);
    va_end(arguments);
    return false;
}

bool
errand__ffi_refuse_at(errand_ffi_error *out_error, size_t column, uint32_t argument,
                      const char *format, ...)
{
    va_list arguments;

    if (out_error == NULL)
        return false;
    out_error->column = (uint32_t)column;
    out_error->argument = argument;
    va_start(arguments, format);
    errand__text_vformat(out_error->text, sizeof out_error->text, format, arguments);
    va_end(arguments);
    return false;
}
