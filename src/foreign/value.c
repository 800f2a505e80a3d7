/* SPDX-License-Identifier: MIT */
/* value: a value of the host's as a parameter's word or image, or why it does not fit.
 *
 * Design notes: nothing is cut off silently.  An integer must be in its parameter's range; f64 for
 * f32 is rounded, as C does, but may not become infinite; an integer for a float must be exact.
 * Floats of the parameter's own width are passed bit by bit. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "foreign/foreign.h"

static bool
refuse_kind(errand_ffi_kind kind, const errand_ffi_value *value, uint32_t argument,
            errand_ffi_error *out_error)
{
    return errand__ffi_refuse(
        out_error, argument, "argument %u is %s, where the parameter is %s",
        (unsigned)argument, errand__kind_name(value->kind), errand__kind_name(kind));
}

static bool
refuse_range(errand_ffi_kind kind, const errand_ffi_value *value, uint32_t argument,
             errand_ffi_error *out_error)
{
    if (errand__kind_signed(value->kind))
        return errand__ffi_refuse(
            out_error, argument,
            "argument %u: %lld is out of the range of %s; describe a "
            "wider parameter or give less",
            (unsigned)argument, (long long)value->as.i, errand__kind_name(kind));
    if (errand__kind_integer(value->kind))
        return errand__ffi_refuse(
            out_error, argument,
            "argument %u: %llu is out of the range of %s; describe a "
            "wider parameter or give less",
            (unsigned)argument, (unsigned long long)value->as.u, errand__kind_name(kind));
    return errand__ffi_refuse(
        out_error, argument,
        "argument %u: %g is out of the range of %s; describe f64 or "
        "give less",
        (unsigned)argument, value->as.f64, errand__kind_name(kind));
}

static bool
integer_word(errand_ffi_kind kind, const errand_ffi_value *value, uint64_t *out_word)
{
    bool negative = errand__kind_signed(value->kind) && value->as.i < 0;
    uint64_t word = value->as.u;

    *out_word = word;
    if (kind == ERRAND_FFI_BOOL)
        return word <= 1;
    if (errand__word_narrow(kind, word) != word)
        return false;
    /* 64 bits wide, or it fits: then the sign must be one that the parameter has. */
    if (errand__kind_signed(kind))
        return negative || word <= INT64_MAX;
    return !negative;
}

static bool
float_word(errand_ffi_kind kind, const errand_ffi_value *value, uint64_t *out_word)
{
    double wide;
    float narrow;

    if (value->kind == ERRAND_FFI_F64) {
        wide = value->as.f64;
    } else if (value->kind == ERRAND_FFI_F32) {
        wide = (double)value->as.f32;
    } else {
        uint64_t size = errand__kind_signed(value->kind) && value->as.i < 0
                            ? 0 - value->as.u
                            : value->as.u;
        if (size > (kind == ERRAND_FFI_F32 ? UINT64_C(1) << 24 : UINT64_C(1) << 53))
            return false;
        wide = size == value->as.u ? (double)size : -(double)size;
    }
    *out_word = 0;
    if (kind == ERRAND_FFI_F64) {
        memcpy(out_word, &wide, sizeof wide);
        return true;
    }
    if (value->kind == ERRAND_FFI_F32) {
        *out_word = errand__word_of(kind, &value->as.f32);
        return true;
    }
    narrow = (float)wide;
    *out_word = errand__word_of(kind, &narrow);
    return !isinf(narrow) || isinf(wide);
}

bool
errand__value_word(errand_ffi_kind kind, const errand_ffi_value *value, uint32_t argument,
                   uint64_t *out_word, errand_ffi_error *out_error)
{
    bool integer = errand__kind_integer(value->kind);
    bool number =
        integer || value->kind == ERRAND_FFI_F32 || value->kind == ERRAND_FFI_F64;

    if (kind == ERRAND_FFI_POINTER && value->kind == ERRAND_FFI_POINTER) {
        *out_word = (uint64_t)(uintptr_t)value->as.pointer;
        return true;
    }
    if (errand__kind_integer(kind) && integer)
        return integer_word(kind, value, out_word) ||
               refuse_range(kind, value, argument, out_error);
    if ((kind == ERRAND_FFI_F32 || kind == ERRAND_FFI_F64) && number)
        return float_word(kind, value, out_word) ||
               refuse_range(kind, value, argument, out_error);
    return refuse_kind(kind, value, argument, out_error);
}

static bool
compound_image(const errand_ffi_type *type, const errand_ffi_value *value,
               uint32_t argument, unsigned char *image, errand_ffi_error *out_error)
{
    errand__layout layout;
    size_t at = 0;

    if (value->size != type->count || value->as.items == NULL)
        return errand__ffi_refuse(out_error, argument,
                                  "argument %u: %zu items were given for a %s of %u",
                                  (unsigned)argument, value->size,
                                  errand__kind_name(type->kind), (unsigned)type->count);
    for (uint32_t i = 0; i < type->count; i++) {
        const errand_ffi_type *item =
            type->kind == ERRAND_FFI_ARRAY ? type->items : &type->items[i];

        errand__type_layout(item, &layout);
        at = errand__align_up(at, layout.align);
        if (!errand__value_image(item, &value->as.items[i], argument, image + at,
                                 out_error))
            return false;
        at += layout.size;
    }
    return true;
}

bool
errand__value_image(const errand_ffi_type *type, const errand_ffi_value *value,
                    uint32_t argument, unsigned char *image, errand_ffi_error *out_error)
{
    errand__layout layout;
    uint64_t word;

    if (type->kind != ERRAND_FFI_STRUCT && type->kind != ERRAND_FFI_ARRAY) {
        if (!errand__value_word(type->kind, value, argument, &word, out_error))
            return false;
        errand__word_into(type->kind, image, word);
        return true;
    }
    if (value->kind == type->kind)
        return compound_image(type, value, argument, image, out_error);
    if (value->kind != ERRAND_FFI_BYTES)
        return refuse_kind(type->kind, value, argument, out_error);
    errand__type_layout(type, &layout);
    if (value->size != layout.size || value->as.pointer == NULL)
        return errand__ffi_refuse(
            out_error, argument, "argument %u: %zu bytes were given for a %s of %zu",
            (unsigned)argument, value->size, errand__kind_name(type->kind), layout.size);
    errand__image_clean(type, value->as.pointer, image);
    return true;
}
