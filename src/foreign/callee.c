/* SPDX-License-Identifier: MIT */
/* callee: a function that was found and described, and the call itself.
 *
 * Design notes: the frame's slots are words, integers widened to 64 bits as their type says.  Both
 * conventions that are taken here (System V x86-64, AAPCS64) pass an integer argument of any width in
 * one whole register and look at its low bits, so a function with few integers and pointers is
 * called through a pointer to a function of words: the fast paths.  The same goes for a few f64.
 * What is variadic, has structures, narrow floats, or more goes through libffi.
 *
 * errno is set to 0 before and read right after, with nothing between, so that a function which
 * leaves it alone shows 0. */
#include <errno.h>
#include <string.h>
#include "foreign/foreign.h"

enum {
    SHAPE_NONE = 0,
    SHAPE_WORDS = 1, /* + number of parameters, 0 .. 6 */
    SHAPE_FLOATS = 8 /* + number of parameters, 0 .. 3 */
};
#if (defined(__x86_64__) && !defined(_WIN32)) || defined(__aarch64__)
enum { FAST = 1 };
#else
enum { FAST = 0 };
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { BIG = 1 };
#else
enum { BIG = 0 };
#endif

static bool is_plain(const errand_ffi_signature *view);
static int shape_of(const errand_ffi_signature *view);
static bool place_slots(errand__callee *callee);

errand__callee *
errand__callee_create(void *address, const char *signature, errand_ffi_error *out_error)
{
    errand__callee *callee = errand__mem_alloc(NULL, sizeof *callee);
    errand_status status;

    if (callee == NULL) {
        errand__ffi_refuse(out_error, 0, "no memory for the function");
        return NULL;
    }
    callee->address = address;
    status = errand__signature_parse(signature, &callee->signature, out_error);
    if (status == ERRAND_ENOMEM)
        errand__ffi_refuse(out_error, 0, "no memory for the function");
    if (status != ERRAND_OK ||
        !errand__cif_create(&callee->signature->view,
                            (errand__cif){&callee->cif, &callee->types,
                                          &callee->type_block, &callee->type_block_size,
                                          &callee->splits},
                            out_error)) {
        errand__callee_destroy(callee);
        return NULL;
    }
    callee->shape = shape_of(&callee->signature->view);
    callee->plain = is_plain(&callee->signature->view);
    if (!place_slots(callee)) {
        errand__ffi_refuse(out_error, 0, "no memory for the function");
        errand__callee_destroy(callee);
        return NULL;
    }
    return callee;
}

void
errand__callee_destroy(errand__callee *callee)
{
    if (callee == NULL)
        return;
    if (callee->trampolines != NULL)
        errand__callee_unready(callee);
    if (callee->slots != NULL)
        errand__mem_free(NULL, callee->slots,
                         callee->signature->view.count * sizeof *callee->slots);
    if (callee->type_block != NULL)
        errand__mem_free(NULL, callee->type_block, callee->type_block_size);
    errand__signature_destroy(callee->signature);
    errand__mem_free(NULL, callee, sizeof *callee);
}

static bool
passes_as_word(errand_ffi_kind kind)
{
    return errand__kind_integer(kind) || errand__kind_memory(kind) ||
           kind == ERRAND_FFI_POINTER || kind == ERRAND_FFI_STRING ||
           kind == ERRAND_FFI_CALLBACK;
}

static int
shape_of(const errand_ffi_signature *view)
{
    uint32_t words = 0, floats = 0;

    if (!FAST || view->variadic || view->convention == ERRAND_FFI_WIN64)
        return SHAPE_NONE;
    for (uint32_t i = 0; i < view->count; i++) {
        words += passes_as_word(view->parameters[i].kind);
        floats += view->parameters[i].kind == ERRAND_FFI_F64;
    }
    if (words == view->count && words <= 6 &&
        (view->result.kind == ERRAND_FFI_VOID || passes_as_word(view->result.kind)))
        return SHAPE_WORDS + (int)words;
    if (floats == view->count && floats <= 3 && view->result.kind == ERRAND_FFI_F64)
        return SHAPE_FLOATS + (int)floats;
    return SHAPE_NONE;
}

static bool
is_plain(const errand_ffi_signature *view)
{
    if (view->count > FFI_PLAIN_MAX ||
        (view->result.kind != ERRAND_FFI_VOID && !errand__kind_scalar(view->result.kind)))
        return false;
    for (uint32_t i = 0; i < view->count; i++)
        if (!errand__kind_scalar(view->parameters[i].kind))
            return false;
    return true;
}

static bool
place_slots(errand__callee *callee)
{
    const errand_ffi_signature *view = &callee->signature->view;
    errand__layout layout = {.size = 0};

    if (view->count > 0) {
        callee->slots = errand__mem_alloc(NULL, view->count * sizeof *callee->slots);
        if (callee->slots == NULL)
            return false;
    }
    for (uint32_t i = 0; i < view->count; i++) {
        errand__type_layout(&view->parameters[i], &layout);
        callee->slots[i] = (uint32_t)callee->words;
        callee->words += (layout.size + 7) / 8;
    }
    layout.size = 0;
    if (view->result.kind != ERRAND_FFI_VOID)
        errand__type_layout(&view->result, &layout);
    callee->result_room = errand__align_up(layout.size < 16 ? 16 : layout.size, 16);
    return true;
}

uint64_t
errand__word_of(errand_ffi_kind kind, const void *at)
{
    uint64_t word = 0;
    errand_ffi_type type = {.kind = kind};
    errand__layout layout = {.size = 0};

    errand__type_layout(&type, &layout);
    memcpy((char *)&word + (BIG ? sizeof word - layout.size : 0), at, layout.size);
    return errand__word_narrow(kind, word);
}

void
errand__word_into(errand_ffi_kind kind, void *at, uint64_t word)
{
    errand_ffi_type type = {.kind = kind};
    errand__layout layout = {.size = 0};

    errand__type_layout(&type, &layout);
    memcpy(at, (char *)&word + (BIG ? sizeof word - layout.size : 0), layout.size);
}

void *
errand__word_place(errand_ffi_kind kind, uint64_t *word)
{
    errand_ffi_type type = {.kind = kind};
    errand__layout layout = {.size = sizeof *word};

    if (BIG)
        errand__type_layout(&type, &layout);
    return (char *)word + (sizeof *word - layout.size);
}

uint64_t
errand__word_narrow(errand_ffi_kind kind, uint64_t word)
{
    switch (kind) {
    case ERRAND_FFI_BOOL:
        return (word & 0xFF) != 0;
    case ERRAND_FFI_I8:
        return (uint64_t)(int64_t)(int8_t)word;
    case ERRAND_FFI_U8:
        return (uint8_t)word;
    case ERRAND_FFI_I16:
        return (uint64_t)(int64_t)(int16_t)word;
    case ERRAND_FFI_U16:
        return (uint16_t)word;
    case ERRAND_FFI_I32:
        return (uint64_t)(int64_t)(int32_t)word;
    case ERRAND_FFI_U32:
    case ERRAND_FFI_F32:
        return (uint32_t)word;
    default:
        return word;
    }
}

#define W uint64_t
static inline uint64_t
call_words(const void *address, int count, const uint64_t *w)
{
    switch (count) {
    case 0:
        return ((uint64_t(*)(void))(uintptr_t)address)();
    case 1:
        return ((uint64_t(*)(W))(uintptr_t)address)(w[0]);
    case 2:
        return ((uint64_t(*)(W, W))(uintptr_t)address)(w[0], w[1]);
    case 3:
        return ((uint64_t(*)(W, W, W))(uintptr_t)address)(w[0], w[1], w[2]);
    case 4:
        return ((uint64_t(*)(W, W, W, W))(uintptr_t)address)(w[0], w[1], w[2], w[3]);
    case 5:
        return ((uint64_t(*)(W, W, W, W, W))(uintptr_t)address)(w[0], w[1], w[2], w[3],
                                                                w[4]);
    default:
        return ((uint64_t(*)(W, W, W, W, W, W))(uintptr_t)address)(w[0], w[1], w[2], w[3],
                                                                   w[4], w[5]);
    }
}
#undef W

static inline double
call_floats(const void *address, int count, const uint64_t *words)
{
    double f[3] = {0, 0, 0};

    memcpy(f, words, (size_t)count * sizeof *f);
    switch (count) {
    case 0:
        return ((double (*)(void))(uintptr_t)address)();
    case 1:
        return ((double (*)(double))(uintptr_t)address)(f[0]);
    case 2:
        return ((double (*)(double, double))(uintptr_t)address)(f[0], f[1]);
    default:
        return ((double (*)(double, double, double))(uintptr_t)address)(f[0], f[1], f[2]);
    }
}

void
errand__callee_call(const errand__callee *callee, errand__frame *frame)
{
    errand_ffi_kind kind = callee->signature->view.result.kind;
    int *error = &errno; /* the same place before and after */
    uint64_t word;

    if (callee->shape >= SHAPE_FLOATS) {
        double number;
        *error = 0;
        number = call_floats(callee->address, callee->shape - SHAPE_FLOATS, frame->words);
        frame->sys_errno = *error;
        memcpy(frame->result, &number, sizeof number);
        return;
    }
    if (callee->shape != SHAPE_NONE) {
        *error = 0;
        word = call_words(callee->address, callee->shape - SHAPE_WORDS, frame->words);
        frame->sys_errno = *error;
    } else {
        /* libffi only reads the cif. */
        ffi_cif *cif = (ffi_cif *)(uintptr_t)&callee->cif;
        *error = 0;
        ffi_call(cif, FFI_FN((uintptr_t)callee->address), frame->result,
                 frame->addresses);
        frame->sys_errno = *error;
        if (kind == ERRAND_FFI_STRUCT || kind == ERRAND_FFI_VOID)
            return;
        memcpy(&word, frame->result, sizeof word);
        if (BIG && kind == ERRAND_FFI_F32)
            word >>= 32; /* the only one that libffi does not widen */
    }
    word = errand__word_narrow(kind, word);
    memcpy(frame->result, &word, sizeof word);
}
