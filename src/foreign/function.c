/* SPDX-License-Identifier: MIT */
/* function: a description that can be called: a library, a symbol, a signature.
 *
 * Design notes: describing opens nothing, because the same function may be called in a sandbox alone.
 * The first call in this process finds the symbol and makes the callee; two that are first both make
 * one, and the second one's goes. */
#include <string.h>
#include "foreign/foreign.h"

struct errand_ffi_function {
    /* Immutable after create. */
    errand_ffi_library *library;
    errand__signature *signature;
    errand_entry entry;
    /* callee: made by the first call.
     * Writers: whoever called first.  Readers: any thread.
     * Order:   compare-exchange acq_rel; loads acquire.
     * Pairs:   function-callee.
     * Why:     its fields are read by whoever finds it. */
    _Atomic(errand__callee *) callee;
    /* holders: its creator and each call.
     * Writers, Readers: whoever holds it.   Order: acq_rel on the way down.
     * Pairs:   function-holders.
     * Why:     the last one frees what all others used. */
    atomic_uint holders;
};

static errand_status
create(errand_ffi_library *library, const char *text, errand_ffi_function **out_function,
       errand_ffi_error *out_error)
{
    errand__signature *signature = NULL;
    errand_ffi_function *function;
    errand_status status = errand__signature_parse(text, &signature, out_error);

    if (status != ERRAND_OK)
        return status;
    if (signature->view.symbol == NULL) {
        errand__ffi_refuse(out_error, 0, "the function's name belongs before '('");
        status = ERRAND_EINVAL;
    } else if (!errand__convention_check(&signature->view, out_error)) {
        status = ERRAND_EUNSUPPORTED;
    }
    function = status == ERRAND_OK ? errand__mem_alloc(NULL, sizeof *function) : NULL;
    if (function == NULL) {
        errand__signature_destroy(signature);
        return status == ERRAND_OK ? ERRAND_ENOMEM : status;
    }
    errand__library_hold(library);
    function->library = library;
    function->signature = signature;
    function->entry = (errand_entry){.library = errand__library_name(library),
                                     .symbol = signature->view.symbol,
                                     .signature = signature->text};
    atomic_init(&function->callee, NULL);
    atomic_init(&function->holders, 1);
    *out_function = function;
    return ERRAND_OK;
}

/* What is wrong with a signature is the caller's bug, like any other argument's. */
static errand_status
answered(errand_status status, const char *function, const errand_ffi_error *error,
         errand_ffi_error *out_error)
{
    if (status == ERRAND_OK || status == ERRAND_ENOMEM)
        return status;
    if (out_error != NULL)
        *out_error = *error;
    return errand__misuse(status, function, error->text);
}

errand_status
errand_ffi_describe(errand_ffi_library *library, const char *signature,
                    errand_ffi_function **out_function, errand_ffi_error *out_error)
{
    errand_ffi_error error = {.column = 0};

    ERRAND_REQUIRE_ARG(library != NULL && signature != NULL && out_function != NULL,
                       ERRAND_EINVAL, "library, signature and out_function are needed");
    return answered(create(library, signature, out_function, &error), __func__, &error,
                    out_error);
}

/* What the parser takes for a name. */
static const char symbol_letters[] = "abcdefghijklmnopqrstuvwxyz"
                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.@";

static bool
check_given(const errand_ffi_signature *given, errand_ffi_error *out_error)
{
    if (given->struct_size != sizeof *given || given->symbol == NULL ||
        given->symbol[0] == 0)
        return errand__ffi_refuse(out_error, 0,
                                  "the signature needs its struct_size and a symbol");
    if ((unsigned)given->convention > ERRAND_FFI_WIN64)
        return errand__ffi_refuse(out_error, 0, "there is no such calling convention");
    if (given->count > FFI_PARAMETERS_MAX ||
        (given->count > 0 && given->parameters == NULL))
        return errand__ffi_refuse(
            out_error, 0,
            "a function has at most 64 parameters, and parameters are needed");
    if (given->variadic && (given->fixed == 0 || given->fixed > given->count))
        return errand__ffi_refuse(out_error, 0,
                                  "fixed must be 1 .. count, it is %u of %u",
                                  (unsigned)given->fixed, (unsigned)given->count);
    if (given->symbol[strspn(given->symbol, symbol_letters)] != 0 ||
        (given->symbol[0] >= '0' && given->symbol[0] <= '9'))
        return errand__ffi_refuse(out_error, 0, "'%.100s' is no name of a function",
                                  given->symbol);
    return true;
}

/* Written down and read back, so that all rules stand in the parser. */
static errand_status
describe_written(errand_ffi_library *library, const errand_ffi_signature *given,
                 errand_ffi_function **out_function, errand_ffi_error *out_error)
{
    size_t length;
    char *text;
    errand_status status;

    if (!check_given(given, out_error))
        return ERRAND_EINVAL;
    length = errand__signature_text(given, NULL, 0);
    if (length == 0) {
        errand__ffi_refuse(
            out_error, 0,
            "a type is of no known kind (unions and bit-fields have none), "
            "lacks its items, or is nested too deep");
        return ERRAND_EINVAL;
    }
    text = errand__mem_alloc(NULL, length + 1);
    if (text == NULL)
        return ERRAND_ENOMEM;
    errand__signature_text(given, text, length + 1);
    status = create(library, text, out_function, out_error);
    errand__mem_free(NULL, text, length + 1);
    if (out_error != NULL)
        out_error->column = 0;
    return status;
}

errand_status
errand_ffi_describe_as(errand_ffi_library *library, const errand_ffi_signature *signature,
                       errand_ffi_function **out_function, errand_ffi_error *out_error)
{
    errand_ffi_error error = {.column = 0};

    ERRAND_REQUIRE_ARG(library != NULL && signature != NULL && out_function != NULL,
                       ERRAND_EINVAL, "library, signature and out_function are needed");
    return answered(describe_written(library, signature, out_function, &error), __func__,
                    &error, out_error);
}

/* Columns are of the text that was given; what is joined to it is checked on its own. */
static errand_status
describe_joined(errand_ffi_library *library, const char *symbol, const char *text,
                errand_ffi_function **out_function, errand_ffi_error *out_error)
{
    errand__signature *bare = NULL;
    errand_ffi_signature whole;
    errand_status status;

    if (symbol[0] == 0 || strchr(text, '(') == NULL) {
        errand__ffi_refuse_at(out_error, symbol[0] == 0 ? 0 : strlen(text) + 1, 0,
                              symbol[0] == 0
                                  ? "the function's name is empty"
                                  : "'(' and the parameters belong here, as in "
                                    "'u64 (u64, bytes, u32)'");
        return ERRAND_EINVAL;
    }
    status = errand__signature_parse(text, &bare, out_error);
    if (status != ERRAND_OK)
        return status;
    whole = bare->view;
    if (whole.symbol != NULL) {
        errand__ffi_refuse(out_error, 0,
                           "the signature has a name of its own, '%.100s': leave it out",
                           whole.symbol);
        status = ERRAND_EINVAL;
    } else {
        whole.symbol = symbol;
        status = describe_written(library, &whole, out_function, out_error);
    }
    errand__signature_destroy(bare);
    return status;
}

errand_status
errand_ffi_describe_named(errand_ffi_library *library, const char *symbol,
                          const char *signature, errand_ffi_function **out_function,
                          errand_ffi_error *out_error)
{
    errand_ffi_error error = {.column = 0};

    ERRAND_REQUIRE_ARG(
        library != NULL && symbol != NULL && signature != NULL && out_function != NULL,
        ERRAND_EINVAL, "library, symbol, signature and out_function are needed");
    return answered(describe_joined(library, symbol, signature, out_function, &error),
                    __func__, &error, out_error);
}

void
errand_ffi_function_abandon(errand_ffi_function **take_function)
{
    errand_ffi_function *function;

    if (take_function == NULL || *take_function == NULL)
        return;
    function = *take_function;
    *take_function = NULL;
    /* Pairs: function-holders */
    if (atomic_fetch_sub_explicit(&function->holders, 1, memory_order_acq_rel) > 1)
        return;
    errand__callee_destroy(atomic_load_explicit(&function->callee, memory_order_acquire));
    errand__signature_destroy(function->signature);
    errand_ffi_library_abandon(&function->library);
    errand__mem_free(NULL, function, sizeof *function);
}

const errand_ffi_signature *
errand_ffi_function_signature(const errand_ffi_function *function)
{
    return function == NULL ? NULL : &function->signature->view;
}

const char *
errand_ffi_function_text(const errand_ffi_function *function)
{
    return function == NULL ? "" : function->signature->text;
}

void
errand__function_hold(errand_ffi_function *function)
{
    atomic_fetch_add_explicit(&function->holders, 1, memory_order_relaxed);
}

const errand_entry *
errand__function_entry(const errand_ffi_function *function)
{
    return &function->entry;
}

errand__callee *
errand__function_callee(errand_ffi_function *function, int32_t *out_code,
                        errand_ffi_error *out_error)
{
    errand__callee *none = NULL, *made;
    void *address;

    made = atomic_load_explicit(&function->callee, memory_order_acquire);
    if (made != NULL)
        return made;
    *out_code = ERRAND_FFI_CODE_NO_LIBRARY;
    if (!errand__library_open(function->library, out_error))
        return NULL;
    *out_code = ERRAND_FFI_CODE_NO_SYMBOL;
    address = errand__library_find(function->library, function->entry.symbol, out_error);
    if (address == NULL)
        return NULL;
    *out_code = ERRAND_FFI_CODE_SIGNATURE;
    made = errand__callee_create(address, function->signature->text, out_error);
    if (made == NULL)
        return NULL;
    /* Pairs: function-callee */
    if (atomic_compare_exchange_strong_explicit(
            &function->callee, &none, made, memory_order_acq_rel, memory_order_acquire))
        return made;
    errand__callee_destroy(made);
    return none;
}
