/* SPDX-License-Identifier: MIT */
/* cif: a signature in libffi's terms.
 *
 * Design notes: an array inside a structure is given to libffi as a structure of equal elements,
 * which has the same size, alignment and classes.  All ffi_types of one signature lie in one block,
 * measured before.  libffi's idea of a structure's size is compared with ours: where they differ,
 * nothing is called. */
#include <string.h>
#include "foreign/foreign.h"

typedef struct maker {
    char *at, *end;
} maker;

static ffi_type *
scalar(errand_ffi_kind kind)
{
    switch (kind) {
    case ERRAND_FFI_VOID:
        return &ffi_type_void;
    case ERRAND_FFI_BOOL:
    case ERRAND_FFI_U8:
        return &ffi_type_uint8;
    case ERRAND_FFI_I8:
        return &ffi_type_sint8;
    case ERRAND_FFI_I16:
        return &ffi_type_sint16;
    case ERRAND_FFI_U16:
        return &ffi_type_uint16;
    case ERRAND_FFI_I32:
        return &ffi_type_sint32;
    case ERRAND_FFI_U32:
        return &ffi_type_uint32;
    case ERRAND_FFI_I64:
        return &ffi_type_sint64;
    case ERRAND_FFI_U64:
        return &ffi_type_uint64;
    case ERRAND_FFI_F32:
        return &ffi_type_float;
    case ERRAND_FFI_F64:
        return &ffi_type_double;
    default:
        return &ffi_type_pointer;
    }
}

/* Bytes for a type's ffi_types, itself included. */
static size_t
measure(const errand_ffi_type *type)
{
    size_t size = sizeof(ffi_type) + ((size_t)type->count + 1) * sizeof(ffi_type *);

    if (type->kind == ERRAND_FFI_ARRAY)
        return size + measure(type->items);
    if (type->kind != ERRAND_FFI_STRUCT)
        return 0;
    for (uint32_t i = 0; i < type->count; i++)
        size += measure(&type->items[i]);
    return size;
}

static void *
cut(maker *from, size_t size)
{
    void *piece = from->at;

    from->at += size;
    ERRAND_ASSERT(from->at <= from->end);
    return piece;
}

static ffi_type *
make(maker *from, const errand_ffi_type *type)
{
    ffi_type *made, **elements;

    if (type->kind != ERRAND_FFI_STRUCT && type->kind != ERRAND_FFI_ARRAY)
        return scalar(type->kind);
    made = cut(from, sizeof *made);
    elements = cut(from, ((size_t)type->count + 1) * sizeof *elements);
    made->type = FFI_TYPE_STRUCT;
    made->elements = elements;
    if (type->kind == ERRAND_FFI_ARRAY) {
        elements[0] = make(from, type->items);
        for (uint32_t i = 1; i < type->count; i++)
            elements[i] = elements[0];
    } else {
        for (uint32_t i = 0; i < type->count; i++)
            elements[i] = make(from, &type->items[i]);
    }
    return made;
}

static bool
same_layout(const errand_ffi_type *type, const ffi_type *made)
{
    errand__layout layout;

    return type->kind == ERRAND_FFI_VOID ||
           (errand__type_layout(type, &layout) && layout.size == made->size &&
            layout.align == made->alignment);
}

static bool
convention_abi(errand_ffi_convention convention, ffi_abi *out_abi)
{
    *out_abi = FFI_DEFAULT_ABI;
#if defined(__x86_64__) && !defined(_WIN32)
    if (convention == ERRAND_FFI_UNIX64)
        *out_abi = FFI_UNIX64;
    if (convention == ERRAND_FFI_WIN64)
        *out_abi = FFI_GNUW64;
    return true;
#else
    return convention == ERRAND_FFI_DEFAULT;
#endif
}

bool
errand__convention_check(const errand_ffi_signature *view, errand_ffi_error *out_error)
{
    ffi_abi abi;
    bool structures = view->result.kind == ERRAND_FFI_STRUCT;

    if (!convention_abi(view->convention, &abi))
        return errand__ffi_refuse(out_error, 0,
                                  "this machine has no such calling convention");
    for (uint32_t i = 0; i < view->count; i++)
        structures = structures || view->parameters[i].kind == ERRAND_FFI_STRUCT;
    if (view->convention == ERRAND_FFI_WIN64 && (structures || view->variadic))
        return errand__ffi_refuse(
            out_error, 0, "win64 is for functions without structures and ... alone");
    return true;
}

static bool
prepare(const errand_ffi_signature *view, errand__cif into, ffi_type *result,
        errand_ffi_error *out_error)
{
    ffi_status status;
    ffi_abi abi;

    convention_abi(view->convention, &abi);
    status = view->variadic
                 ? ffi_prep_cif_var(into.cif, abi, view->fixed, view->count, result,
                                    *into.types)
                 : ffi_prep_cif(into.cif, abi, view->count, result, *into.types);
    if (status != FFI_OK)
        return errand__ffi_refuse(
            out_error, 0, "libffi refuses this signature (status %d); simplify it",
            (int)status);
    for (uint32_t i = 0; i <= view->count; i++) {
        const errand_ffi_type *type =
            i == view->count ? &view->result : &view->parameters[i];
        if (!same_layout(type, i == view->count ? result : (*into.types)[i]))
            return errand__ffi_refuse(
                out_error, i == view->count ? 0 : i + 1,
                "libffi lays out this structure differently; pass its address");
    }
    return true;
}

bool
errand__cif_create(const errand_ffi_signature *view, errand__cif into,
                   errand_ffi_error *out_error)
{
    size_t size = measure(&view->result) + ((size_t)view->count + 1) * sizeof(ffi_type *);
    maker from;
    ffi_type *result;

    if (!errand__convention_check(view, out_error))
        return false;
    for (uint32_t i = 0; i < view->count; i++)
        size += measure(&view->parameters[i]);
    *into.block = errand__mem_alloc(NULL, size);
    *into.block_size = size;
    if (*into.block == NULL)
        return errand__ffi_refuse(out_error, 0, "no memory for the function's types");
    from.at = *into.block;
    from.end = from.at + size;
    *into.types = cut(&from, ((size_t)view->count + 1) * sizeof(ffi_type *));
    for (uint32_t i = 0; i < view->count; i++)
        (*into.types)[i] = make(&from, &view->parameters[i]);
    result = make(&from, &view->result);
    return prepare(view, into, result, out_error);
}
