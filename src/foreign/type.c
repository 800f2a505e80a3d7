/* SPDX-License-Identifier: MIT */
/* type: kinds by name and size, and how structures lie in memory.
 *
 * Design notes: the layout is computed here and not asked of libffi, because a process that only
 * hands calls to a sandbox needs it too, and because both answers are compared when a callee
 * is made. */
#include <limits.h>
#include <string.h>
#include "foreign/foreign.h"

static const struct {
    const char *name;
    uint8_t size; /* 0 = has none of its own */
    bool integer, is_signed;
} kinds[] = {
    [ERRAND_FFI_VOID] = {"void", 0, false, false},
    [ERRAND_FFI_BOOL] = {"bool", 1, true, false},
    [ERRAND_FFI_I8] = {"i8", 1, true, true},
    [ERRAND_FFI_U8] = {"u8", 1, true, false},
    [ERRAND_FFI_I16] = {"i16", 2, true, true},
    [ERRAND_FFI_U16] = {"u16", 2, true, false},
    [ERRAND_FFI_I32] = {"i32", 4, true, true},
    [ERRAND_FFI_U32] = {"u32", 4, true, false},
    [ERRAND_FFI_I64] = {"i64", 8, true, true},
    [ERRAND_FFI_U64] = {"u64", 8, true, false},
    [ERRAND_FFI_F32] = {"f32", 4, false, false},
    [ERRAND_FFI_F64] = {"f64", 8, false, false},
    [ERRAND_FFI_POINTER] = {"pointer", sizeof(void *), false, false},
    [ERRAND_FFI_STRING] = {"string", sizeof(void *), false, false},
    [ERRAND_FFI_BYTES] = {"bytes", sizeof(void *), false, false},
    [ERRAND_FFI_OUT] = {"out bytes", sizeof(void *), false, false},
    [ERRAND_FFI_INOUT] = {"inout bytes", sizeof(void *), false, false},
    [ERRAND_FFI_STRUCT] = {"structure", 0, false, false},
    [ERRAND_FFI_ARRAY] = {"array", 0, false, false},
    [ERRAND_FFI_CALLBACK] = {"callback", sizeof(void *), false, false},
    [ERRAND_FFI_BUFFER] = {"buffer", 0, false, false},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

#define OF_SIZE(type, i, u)                                                              \
    (sizeof(type) == 1   ? ERRAND_FFI_##i##8                                             \
     : sizeof(type) == 2 ? ERRAND_FFI_##i##16                                            \
     : sizeof(type) == 4 ? ERRAND_FFI_##i##32                                            \
                         : ERRAND_FFI_##i##64)
static const struct {
    const char *name;
    errand_ffi_kind kind;
} words[] = {
    {"void", ERRAND_FFI_VOID},
    {"bool", ERRAND_FFI_BOOL},
    {"i8", ERRAND_FFI_I8},
    {"u8", ERRAND_FFI_U8},
    {"i16", ERRAND_FFI_I16},
    {"u16", ERRAND_FFI_U16},
    {"i32", ERRAND_FFI_I32},
    {"u32", ERRAND_FFI_U32},
    {"i64", ERRAND_FFI_I64},
    {"u64", ERRAND_FFI_U64},
    {"f32", ERRAND_FFI_F32},
    {"f64", ERRAND_FFI_F64},
    {"pointer", ERRAND_FFI_POINTER},
    {"string", ERRAND_FFI_STRING},
    {"bytes", ERRAND_FFI_BYTES},
    {"char", CHAR_MIN < 0 ? ERRAND_FFI_I8 : ERRAND_FFI_U8},
    {"uchar", ERRAND_FFI_U8},
    {"short", OF_SIZE(short, I, )},
    {"ushort", OF_SIZE(short, U, )},
    {"int", OF_SIZE(int, I, )},
    {"uint", OF_SIZE(int, U, )},
    {"long", OF_SIZE(long, I, )},
    {"ulong", OF_SIZE(long, U, )},
    {"llong", OF_SIZE(long long, I, )},
    {"ullong", OF_SIZE(long long, U, )},
    {"size_t", OF_SIZE(size_t, U, )},
    {"ssize_t", OF_SIZE(size_t, I, )},
    {"float", ERRAND_FFI_F32},
    {"double", ERRAND_FFI_F64},
};

static bool layout_at(const errand_ffi_type *type, unsigned depth,
                      errand__layout *out_layout);

static bool
known(errand_ffi_kind kind)
{
    return (unsigned)kind >= ERRAND_FFI_VOID && (unsigned)kind < KINDS;
}

const char *
errand__kind_name(errand_ffi_kind kind)
{
    return known(kind) ? kinds[kind].name : "?";
}

errand_ffi_kind
errand__kind_of_word(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].name) == length && memcmp(words[i].name, word, length) == 0)
            return words[i].kind;
    return (errand_ffi_kind)0;
}

bool
errand__kind_integer(errand_ffi_kind kind)
{
    return known(kind) && kinds[kind].integer;
}

bool
errand__kind_signed(errand_ffi_kind kind)
{
    return known(kind) && kinds[kind].is_signed;
}

bool
errand__kind_scalar(errand_ffi_kind kind)
{
    return kind >= ERRAND_FFI_BOOL && kind <= ERRAND_FFI_POINTER;
}

bool
errand__kind_memory(errand_ffi_kind kind)
{
    return kind == ERRAND_FFI_BYTES || kind == ERRAND_FFI_OUT || kind == ERRAND_FFI_INOUT;
}

size_t
errand__align_up(size_t at, size_t align)
{
    return (at + align - 1) / align * align;
}

bool
errand__type_layout(const errand_ffi_type *type, errand__layout *out_layout)
{
    return layout_at(type, 0, out_layout);
}

errand_status
errand_ffi_layout(const errand_ffi_type *type, size_t *out_size, size_t *out_align,
                  size_t *out_offsets)
{
    errand__layout layout, field;
    size_t at = 0;

    ERRAND_REQUIRE_ARG(type != NULL && out_size != NULL && out_align != NULL,
                       ERRAND_EINVAL, "type, out_size and out_align are needed");
    ERRAND_REQUIRE_ARG(
        errand__type_layout(type, &layout), ERRAND_EINVAL,
        "the type has no layout; give a scalar, pointer, structure or array");
    *out_size = layout.size;
    *out_align = layout.align;
    if (type->kind != ERRAND_FFI_STRUCT || out_offsets == NULL)
        return ERRAND_OK;
    for (uint32_t i = 0; i < type->count; i++) {
        errand__type_layout(&type->items[i], &field);
        at = errand__align_up(at, field.align);
        out_offsets[i] = at;
        at += field.size;
    }
    return ERRAND_OK;
}

bool
errand__type_equal(const errand_ffi_type *a, const errand_ffi_type *b)
{
    uint32_t items;

    if (a->kind != b->kind)
        return false;
    if (a->kind != ERRAND_FFI_STRUCT && a->kind != ERRAND_FFI_ARRAY &&
        a->kind != ERRAND_FFI_CALLBACK)
        return true;
    if (a->count != b->count)
        return false;
    items = a->kind == ERRAND_FFI_ARRAY      ? 1
            : a->kind == ERRAND_FFI_CALLBACK ? a->count + 1
                                             : a->count;
    for (uint32_t i = 0; i < items; i++)
        if (!errand__type_equal(&a->items[i], &b->items[i]))
            return false;
    return true;
}

static bool
layout_array(const errand_ffi_type *type, unsigned depth, errand__layout *out_layout)
{
    if (type->count == 0 || type->items == NULL || type->count > FFI_STRUCT_MAX ||
        !layout_at(type->items, depth + 1, out_layout))
        return false;
    out_layout->size *= type->count; /* both are at most 64 Ki */
    out_layout->leaves *= type->count;
    out_layout->nodes = out_layout->nodes * type->count + 1;
    return out_layout->size <= FFI_STRUCT_MAX && out_layout->leaves <= FFI_LEAVES_MAX;
}

static bool
layout_struct(const errand_ffi_type *type, unsigned depth, errand__layout *out_layout)
{
    errand__layout all = {.align = 1, .nodes = 1}, field;

    if (type->count == 0 || type->items == NULL)
        return false;
    for (uint32_t i = 0; i < type->count; i++) {
        if (!layout_at(&type->items[i], depth + 1, &field))
            return false;
        all.size = errand__align_up(all.size, field.align) + field.size;
        all.align = field.align > all.align ? field.align : all.align;
        all.leaves += field.leaves;
        all.nodes += field.nodes;
        if (all.size > FFI_STRUCT_MAX || all.leaves > FFI_LEAVES_MAX)
            return false;
    }
    all.size = errand__align_up(all.size, all.align);
    *out_layout = all;
    return all.size <= FFI_STRUCT_MAX;
}

static bool
layout_at(const errand_ffi_type *type, unsigned depth, errand__layout *out_layout)
{
    if (depth > FFI_DEPTH_MAX)
        return false;
    if (type->kind == ERRAND_FFI_STRUCT)
        return layout_struct(type, depth, out_layout);
    if (type->kind == ERRAND_FFI_ARRAY)
        return layout_array(type, depth, out_layout);
    if (!known(type->kind) || kinds[type->kind].size == 0)
        return false;
    *out_layout = (errand__layout){kinds[type->kind].size, kinds[type->kind].size, 1, 1};
    return true;
}
