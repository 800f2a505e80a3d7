/* SPDX-License-Identifier: MIT */
/* cif: a signature in libffi's terms.
 *
 * Design notes: an array inside a structure is given to libffi as a structure of equal elements,
 * which has the same size, alignment and classes.  All ffi_types of one signature lie in one block,
 * measured before.  libffi's idea of a structure's size is compared with ours: where they differ,
 * nothing is called.
 *
 * On System V x86-64 libffi (3.4.4) copies a structure of an integer and a float eightbyte with 16
 * bytes to the place of its integer register; where that is the last one, the second half lands on
 * the first float register, which another argument has by then.  Such a structure is given to libffi
 * as two arguments instead, its two words: the same registers by definition. */
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

/* ---- which structures are split ---------------------------------------------------------------- */
#if defined(__x86_64__) && !defined(_WIN32)
typedef struct eightbytes {
    bool integer[2], present[2];
} eightbytes;

static void
classify(const errand_ffi_type *type, size_t at, eightbytes *out)
{
    errand__layout layout;

    if (type->kind != ERRAND_FFI_STRUCT && type->kind != ERRAND_FFI_ARRAY) {
        out->present[at / 8] = true;
        if (type->kind != ERRAND_FFI_F32 && type->kind != ERRAND_FFI_F64)
            out->integer[at / 8] = true;
        return;
    }
    for (uint32_t i = 0; i < type->count; i++) {
        const errand_ffi_type *item =
            type->kind == ERRAND_FFI_ARRAY ? type->items : &type->items[i];

        errand__type_layout(item, &layout);
        at = errand__align_up(at, layout.align);
        classify(item, at, out);
        at += layout.size;
    }
}

/* A bit for each parameter. */
static uint64_t
find_splits(const errand_ffi_signature *view)
{
    unsigned integers = 0, floats = 0;
    uint64_t splits = 0;
    errand__layout layout;

    if (view->convention == ERRAND_FFI_WIN64)
        return 0;
    if (view->result.kind == ERRAND_FFI_STRUCT) {
        errand__type_layout(&view->result, &layout);
        integers = layout.size > 16; /* the address where it goes */
    }
    for (uint32_t i = 0; i < view->count; i++) {
        eightbytes of = {.integer = {false}};
        unsigned i_count, f_count;

        errand__type_layout(&view->parameters[i], &layout);
        if (layout.size > 16)
            continue; /* in memory */
        if (view->parameters[i].kind == ERRAND_FFI_STRUCT ||
            errand__kind_scalar(view->parameters[i].kind))
            classify(&view->parameters[i], 0, &of);
        else
            of.integer[0] = of.present[0] = true; /* an address */
        i_count = (unsigned)of.integer[0] + of.integer[1];
        f_count = (unsigned)of.present[0] + of.present[1] - i_count;
        if (integers + i_count > 6 || floats + f_count > 8)
            continue; /* in memory */
        if (of.integer[0] && of.present[1] && !of.integer[1] && integers == 5)
            splits |= UINT64_C(1) << i;
        integers += i_count;
        floats += f_count;
    }
    return splits;
}
#else
static uint64_t
find_splits(const errand_ffi_signature *view)
{
    (void)view;
    return 0;
}
#endif

/* ---- ffi_types ------------------------------------------------------------------------------------ */

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

    return errand__type_layout(type, &layout) && layout.size == made->size &&
           layout.align == made->alignment;
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

/* How many arguments libffi sees of the first so many parameters. */
static unsigned
seen(uint64_t splits, uint32_t parameters)
{
    if (parameters < 64)
        splits &= (UINT64_C(1) << parameters) - 1;
    return parameters + (unsigned)__builtin_popcountll(splits);
}

static bool
prepare(const errand_ffi_signature *view, errand__cif into, uint64_t splits,
        ffi_type *result, errand_ffi_error *out_error)
{
    unsigned count = seen(splits, view->count);
    ffi_status status;
    ffi_abi abi;

    convention_abi(view->convention, &abi);
    status = view->variadic ? ffi_prep_cif_var(into.cif, abi, seen(splits, view->fixed),
                                               count, result, *into.types)
                            : ffi_prep_cif(into.cif, abi, count, result, *into.types);
    if (status != FFI_OK)
        return errand__ffi_refuse(
            out_error, 0, "libffi refuses this signature (status %d); simplify it",
            (int)status);
    if (view->result.kind != ERRAND_FFI_VOID && !same_layout(&view->result, result))
        return errand__ffi_refuse(
            out_error, 0, "libffi lays out the result differently; pass an address");
    for (uint32_t i = 0; i < view->count; i++)
        if ((splits >> i & 1) == 0 &&
            !same_layout(&view->parameters[i], (*into.types)[seen(splits, i)]))
            return errand__ffi_refuse(
                out_error, i + 1,
                "libffi lays out this structure differently; pass its address");
    return true;
}

bool
errand__cif_create(const errand_ffi_signature *view, errand__cif into,
                   errand_ffi_error *out_error)
{
    uint64_t splits = into.out_splits == NULL ? 0 : find_splits(view);
    unsigned count = seen(splits, view->count);
    size_t size = measure(&view->result) + ((size_t)count + 1) * sizeof(ffi_type *);
    maker from;
    ffi_type *result;

    if (!errand__convention_check(view, out_error))
        return false;
    for (uint32_t i = 0; i < view->count; i++)
        size += measure(&view->parameters[i]);
    *into.block = errand__mem_alloc_used(size);
    *into.block_size = size;
    if (*into.block == NULL)
        return errand__ffi_refuse(out_error, 0, "no memory for the function's types");
    from.at = *into.block;
    from.end = from.at + size;
    if (into.out_splits != NULL)
        *into.out_splits = splits;
    *into.types = cut(&from, ((size_t)count + 1) * sizeof(ffi_type *));
    for (uint32_t i = 0; i < view->count; i++) {
        ffi_type **place = &(*into.types)[seen(splits, i)];

        place[0] = make(&from, &view->parameters[i]);
        if ((splits >> i & 1) != 0) {
            place[0] = &ffi_type_uint64;
            place[1] = &ffi_type_double;
        }
    }
    result = make(&from, &view->result);
    return prepare(view, into, splits, result, out_error);
}
