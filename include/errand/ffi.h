/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_FFI_H
#define ERRAND_FFI_H
/* ffi: calls of foreign functions that are described at run time.  Conventions: errand.h.
 *
 *     errand_ffi_library_create("libz.so.1", &zlib);
 *     errand_ffi_describe(zlib, "u64 crc32(u64, bytes, u32)", &crc32, &error);
 *     errand_ffi_value arguments[] = {errand_ffi_u(0), errand_ffi_bytes(data, size),
 *                                     errand_ffi_u(size)};
 *     errand_spec_call(&spec, crc32, arguments, 3, &error);
 *     errand_start(lease, &spec, wait, NULL);      a pool of threads, or a sandbox
 *
 * On a pool of threads the library is opened in this process; in a sandbox by the worker, and
 * never here.  Signature:  RESULT NAME(PARAMETER, ...)
 *   void · bool · i8 u8 i16 u16 i32 u32 i64 u64 · f32 f64 · C's char uchar short ushort int
 *   uint long ulong llong ullong size_t ssize_t float double · pointer: an opaque address ·
 *   string: text that ends with 0 · bytes: the address of bytes that are read · out bytes: of
 *   memory that is filled · inout bytes · {TYPE, TYPE ...}: a structure by value ·
 *   [N]TYPE: an array inside one · fn(RESULT(TYPE, ...)): a callback · ... before the
 *   arguments of one variadic call:  i32 snprintf(out bytes, u64, string, ..., i32, f64)
 *   unix64 or win64 before all of it: another calling convention
 * Results are scalars, pointer, string (copied) or structures; structures hold scalars,
 * pointers, structures and arrays; a callback takes those and strings.
 * Unions, bit-fields, long double, complex, packed structures and va_list are refused: they
 * cannot be passed reliably.
 *
 * All functions are [any] unless they say otherwise; what is counted is let go of by its
 * _abandon and lives on as long as something here needs it. */
#include "errand.h"
ERRAND_BEGIN

typedef struct errand_ffi_library errand_ffi_library;   /* counted */
typedef struct errand_ffi_function errand_ffi_function; /* counted, immutable */
typedef struct errand_ffi_buffer errand_ffi_buffer;     /* counted */
typedef struct errand_ffi_callback errand_ffi_callback;

enum {
    ERRAND_KIND_CALL = 0x0E000020
}; /* of errand_spec_call, unless the host writes its own */

/* ---- types and signatures ---------------------------------------------------------- */

typedef enum errand_ffi_kind {
    ERRAND_FFI_VOID = 1,
    ERRAND_FFI_BOOL = 2,
    ERRAND_FFI_I8 = 3,
    ERRAND_FFI_U8 = 4,
    ERRAND_FFI_I16 = 5,
    ERRAND_FFI_U16 = 6,
    ERRAND_FFI_I32 = 7,
    ERRAND_FFI_U32 = 8,
    ERRAND_FFI_I64 = 9,
    ERRAND_FFI_U64 = 10,
    ERRAND_FFI_F32 = 11,
    ERRAND_FFI_F64 = 12,
    ERRAND_FFI_POINTER = 13,
    ERRAND_FFI_STRING = 14,
    ERRAND_FFI_BYTES = 15,
    ERRAND_FFI_OUT = 16,
    ERRAND_FFI_INOUT = 17,
    ERRAND_FFI_STRUCT = 18,
    ERRAND_FFI_ARRAY = 19,
    ERRAND_FFI_CALLBACK = 20,
    ERRAND_FFI_BUFFER = 21 /* of values alone: for bytes, out bytes, inout bytes */
} errand_ffi_kind;
typedef struct errand_ffi_type {
    errand_ffi_kind kind;
    uint32_t count; /* STRUCT: fields · ARRAY: elements · CALLBACK: parameters */
    const struct errand_ffi_type
        *items; /* fields · the element · the result, then parameters */
} errand_ffi_type;
typedef enum errand_ffi_convention {
    ERRAND_FFI_DEFAULT = 0,
    ERRAND_FFI_UNIX64 = 1, /* x86-64 alone */
    ERRAND_FFI_WIN64 = 2   /* x86-64 alone; not variadic, no structures */
} errand_ffi_convention;
typedef struct errand_ffi_signature {
    uint32_t struct_size;
    errand_ffi_convention convention;
    const char *symbol;
    errand_ffi_type result;
    const errand_ffi_type *parameters;
    uint32_t count; /* at most 64 */
    uint32_t fixed; /* variadic: how many come before the rest, 1 .. count */
    bool variadic;
} errand_ffi_signature;

/* What is wrong with a signature, value or library, and where. */
typedef struct errand_ffi_error {
    uint32_t column;   /* of the text, from 1; 0 = not of a place */
    uint32_t argument; /* from 1; 0 = none */
    char text[240];    /* cause and mend */
} errand_ffi_error;

/* In all functions out_error may be NULL and is written on errors alone.
 *
 * errand_ffi_library_create: a name, as for dlopen; NULL = what the process has already (libc
 *   and, where it is linked, libm).  It is opened by its first call, on a worker, or by
 *   errand_ffi_library_load, here; it stays open while a call into it can run, also when all
 *   else has let go of it.   Errors: ENOMEM · EINVAL (an empty name).
 * errand_ffi_library_load: EUNSUPPORTED (it cannot be opened: the text is the loader's) ·
 *   EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_ffi_library_create(const char *name, errand_ffi_library **out_library);
ERRAND_API ERRAND_MUST_USE errand_status
errand_ffi_library_load(errand_ffi_library *library, errand_ffi_error *out_error);
ERRAND_API void errand_ffi_library_abandon(errand_ffi_library **take_library);

/* errand_ffi_describe: a function by a signature's text, with its name.
 * errand_ffi_describe_named: the same where the name stands apart: signature is
 *   RESULT(PARAMETER, ...); columns count in it.
 * errand_ffi_describe_as: the same by structures, which are copied.
 * Nothing is opened or looked up.
 * Errors: ENOMEM · EINVAL (the text or a type: column and text say which and why) ·
 *   EUNSUPPORTED (a calling convention that this machine has not). */
ERRAND_API ERRAND_MUST_USE errand_status errand_ffi_describe(
    errand_ffi_library *library, const char *signature,
    errand_ffi_function **out_function, errand_ffi_error *out_error);
ERRAND_API ERRAND_MUST_USE errand_status errand_ffi_describe_named(
    errand_ffi_library *library, const char *symbol, const char *signature,
    errand_ffi_function **out_function, errand_ffi_error *out_error);
ERRAND_API ERRAND_MUST_USE errand_status errand_ffi_describe_as(
    errand_ffi_library *library, const errand_ffi_signature *signature,
    errand_ffi_function **out_function, errand_ffi_error *out_error);
ERRAND_API void errand_ffi_function_abandon(errand_ffi_function **take_function);
/* errand_ffi_function_signature: how it was described; lives as long as the function.
 * errand_ffi_function_text: the canonical text of that, without spare blanks. */
ERRAND_API const errand_ffi_signature *
errand_ffi_function_signature(const errand_ffi_function *function);
ERRAND_API const char *errand_ffi_function_text(const errand_ffi_function *function);

/* errand_ffi_layout: size and alignment in memory of a scalar, pointer, structure or array;
 * where out_offsets is given: of each field of a structure.
 * Errors: EINVAL (another kind, a structure without fields or beyond 64 KiB). */
ERRAND_API ERRAND_MUST_USE errand_status errand_ffi_layout(
    const errand_ffi_type *type, size_t *out_size, size_t *out_align,
    size_t *out_offsets);

/* ---- values ------------------------------------------------------------------------ */

/* kind says which member counts.  An argument's kind need not be its parameter's: every
 * integer that is in range will do, f64 for f32, a null pointer for whatever is an address, an
 * image in memory (BYTES of the right size) for a structure. */
typedef struct errand_ffi_value {
    errand_ffi_kind kind;
    uint32_t reserved_zero;
    size_t size; /* BYTES, OUT, INOUT: bytes · STRING: length · STRUCT, ARRAY: items */
    union {
        int64_t i;           /* I8 .. I64 */
        uint64_t u;          /* U8 .. U64, BOOL */
        float f32;           /* its bits are passed as they are */
        double f64;          /* likewise */
        const void *pointer; /* POINTER, BYTES, INOUT */
        const char *string;
        const struct errand_ffi_value *items;
        errand_ffi_buffer *buffer;
        errand_ffi_callback *callback;
    } as;
} errand_ffi_value;

/* Values of each kind.  Bytes, texts and items are borrowed until errand_spec_call returned,
 * which copies them: but for buffers, which are pinned.  Thread: [any]. */
#if defined(__cplusplus)
#define ERRAND_FFI_VALUE(k, n, member, x)                                                \
    errand_ffi_value value = errand_ffi_value();                                         \
    value.kind = k;                                                                      \
    value.size = n;                                                                      \
    value.as.member = x;                                                                 \
    return value
#else
#define ERRAND_FFI_VALUE(k, n, member, x)                                                \
    errand_ffi_value value = {k, 0, n, {.u = 0}};                                        \
    value.as.member = x;                                                                 \
    return value
#endif
static inline errand_ffi_value
errand_ffi_i(int64_t number)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_I64, 0, i, number);
}
static inline errand_ffi_value
errand_ffi_u(uint64_t number)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_U64, 0, u, number);
}
static inline errand_ffi_value
errand_ffi_bool(bool truth)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_BOOL, 0, u, truth);
}
static inline errand_ffi_value
errand_ffi_f32(float number)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_F32, 0, f32, number);
}
static inline errand_ffi_value
errand_ffi_f64(double number)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_F64, 0, f64, number);
}
static inline errand_ffi_value
errand_ffi_pointer(const void *address)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_POINTER, 0, pointer, address);
}
static inline errand_ffi_value
errand_ffi_string(const char *text)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_STRING, 0, string, text); /* size is not looked at */
}
static inline errand_ffi_value
errand_ffi_bytes(const void *bytes, size_t size)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_BYTES, size, pointer, bytes);
}
/* The memory is zeroed; what the function left there is in the result. */
static inline errand_ffi_value
errand_ffi_out(size_t size)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_OUT, size, u, 0);
}
static inline errand_ffi_value
errand_ffi_inout(const void *bytes, size_t size)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_INOUT, size, pointer, bytes);
}
static inline errand_ffi_value
errand_ffi_struct(const errand_ffi_value *items, size_t count)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_STRUCT, count, items, items);
}
static inline errand_ffi_value
errand_ffi_array(const errand_ffi_value *items, size_t count)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_ARRAY, count, items, items);
}
static inline errand_ffi_value
errand_ffi_buffer_value(errand_ffi_buffer *buffer)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_BUFFER, 0, buffer, buffer);
}
static inline errand_ffi_value
errand_ffi_callback_value(errand_ffi_callback *callback)
{
    ERRAND_FFI_VALUE(ERRAND_FFI_CALLBACK, 0, callback, callback);
}
#undef ERRAND_FFI_VALUE

/* ---- buffers ----------------------------------------------------------------------- */

/* Memory that a call works on in place.  It is pinned from errand_spec_call until the
 * completion's handler returned (or the spec was abandoned): its address and size stay, and
 * only the call should touch it.  In a sandbox the worker works on a copy, which is brought
 * back when it answers.  Logs hold no contents of buffers: a replay does not fill them.
 *
 * errand_ffi_buffer_create: size bytes, zeroed.   Errors: ENOMEM · EINVAL (size 0).
 * errand_ffi_buffer_resize: EBUSY (pinned) · ENOMEM · EINVAL; what is new is zeroed.
 * errand_ffi_buffer_abandon: the memory goes when the last pin is gone. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_ffi_buffer_create(size_t size, errand_ffi_buffer **out_buffer);
ERRAND_API ERRAND_MUST_USE errand_status
errand_ffi_buffer_resize(errand_ffi_buffer *buffer, size_t size);
ERRAND_API void errand_ffi_buffer_abandon(errand_ffi_buffer **take_buffer);
ERRAND_API void *errand_ffi_buffer_data(const errand_ffi_buffer *buffer);
ERRAND_API size_t errand_ffi_buffer_size(const errand_ffi_buffer *buffer);
ERRAND_API bool errand_ffi_buffer_pinned(const errand_ffi_buffer *buffer);
/* errand_ffi_buffer_shared: is it one of errand_sandbox_buffer, which that sandbox's workers read
 *   in place?
 * errand_ffi_buffer_pin, _unpin: for a job type of the host's own, from the spec to its drop. */
ERRAND_API bool errand_ffi_buffer_shared(const errand_ffi_buffer *buffer);
ERRAND_API void errand_ffi_buffer_pin(errand_ffi_buffer *buffer);
ERRAND_API void errand_ffi_buffer_unpin(errand_ffi_buffer *buffer);

/* ---- callbacks --------------------------------------------------------------------- */

/* A function of the host's that foreign code can call.  The handler runs on the runtime's
 * thread: where the call runs there (inline order) at once, else inside a drain or drive,
 * while the thread that called waits for its answer.  Where nobody hears (the call was
 * cancelled, the runtime or the callback is gone, a wrong thread with REFUSE_FOREIGN) the host
 * is not entered and the caller gets the default value.  Seeded orders: it is heard at the
 * virtual due of the call that makes it; a thread of the callee's own belongs to the calls that
 * run with the callback, and is heard at the first of their dues.  So a run with such threads
 * is the seed's as long as they ask one after another and such calls have a callback each.
 * arguments: valid until it returns; texts and addresses are the callee's own memory, in a
 * sandbox texts are copies and addresses are only numbers.  out_result: holds the default. */
typedef void errand_ffi_callback_fn(
    void *arg, const errand_ffi_value *arguments, uint32_t count,
    errand_ffi_value *out_result);
enum {
    ERRAND_FFI_CALLBACK_REFUSE_FOREIGN =
        1 /* only the thread that runs the call may call it */
};
typedef struct errand_ffi_callback_config {
    uint32_t struct_size;
    uint32_t flags;
    const char *signature; /* RESULT(TYPE, ...); a result is void, scalar or pointer */
    errand_ffi_callback_fn *handler;
    void *held_arg;
    errand_ffi_value fallback; /* the default; zeroed = 0 */
} errand_ffi_callback_config;
/* errand_ffi_callback_create: Thread: [owner].   Errors: ENOMEM · EINVAL · EUNSUPPORTED (this
 *   system gives out no memory for code) · ETHREAD.
 * errand_ffi_callback_destroy: foreign code that kept its address gets the default value from
 *   now on, until 1024 further callbacks were destroyed.
 *   Thread: [any].   Errors: EBUSY (a spec that it was given to lives, or it is being called).
 * errand_ffi_callback_address: to be stored in structures, as pointer.
 * errand_ffi_callback_asker: inside its handler: the operation whose call it is heard for, zeroed
 *   where none is known (foreign code kept the address).   Thread: [owner]. */
ERRAND_API ERRAND_MUST_USE errand_status errand_ffi_callback_create(
    errand_runtime *runtime, const errand_ffi_callback_config *config,
    errand_ffi_callback **out_callback, errand_ffi_error *out_error);
ERRAND_API ERRAND_MUST_USE errand_status
errand_ffi_callback_destroy(errand_ffi_callback **take_callback);
ERRAND_API const void *errand_ffi_callback_address(const errand_ffi_callback *callback);
ERRAND_API errand_identity errand_ffi_callback_asker(const errand_ffi_callback *callback);

/* ---- calls ------------------------------------------------------------------------- */

/* job_code of a call that failed with ERRAND_CODE_JOB: X(name, number, sentence).  Numbers
 * are never reused. */
#define ERRAND_FFI_TABLE(X)                                                              \
    X(NO_LIBRARY, 1, "the library cannot be opened")                                     \
    X(NO_SYMBOL, 2, "the library has no such function")                                  \
    X(SIGNATURE, 3, "the function cannot be called as it is described")                  \
    X(NO_EXEC, 4, "there is no memory for the code of a callback")                       \
    X(REQUEST, 5, "the arguments do not fit the function's description")                 \
    X(RESPONSE, 6, "the answer does not fit the function's description")                 \
    X(OUTPUT, 7, "the answer is larger than allowed")                                    \
    X(MEMORY, 8, "memory ran out")
typedef enum errand_ffi_code {
#define ERRAND_X(name, number, sentence) ERRAND_FFI_CODE_##name = number,
    ERRAND_FFI_TABLE(ERRAND_X)
#undef ERRAND_X
} errand_ffi_code;
/* "NO_LIBRARY"; an unknown number gets "unknown".   Thread: [any]. */
ERRAND_API const char *errand_ffi_code_name(int32_t job_code);

/* What an out or inout parameter holds after the call; NULL for null pointers and buffers. */
typedef struct errand_ffi_output {
    const unsigned char *bytes;
    size_t size;
    uint32_t argument; /* from 1 */
    uint32_t reserved_zero;
} errand_ffi_output;
/* The payload, one block: what a call gave back. */
typedef struct errand_ffi_result {
    errand_ffi_value value; /* of the declared kind */
    int32_t sys_errno; /* read right after the call; 0 if the function left it alone */
    uint32_t output_count;
    const errand_ffi_output *outputs; /* one for each out and inout parameter, in order */
} errand_ffi_result;
ERRAND_API extern const errand_payload_type errand_ffi_result_type;
/* Its digest: value, errno, outputs; of addresses only whether they are null. */
ERRAND_API uint64_t errand_ffi_result_digest(const void *data, size_t size);
/* errand_ffi_codecs: errand_audit_payload and errand_record_codec for that type.
 * Thread: [owner].   Errors: those of errand_record_codec. */
ERRAND_API ERRAND_MUST_USE errand_status errand_ffi_codecs(errand_runtime *runtime);

/* errand_spec_call: one call.  On a pool of threads nothing can stop it; a body that waits for
 * a callback goes on, with the default value, when it is cancelled.  Make the spec
 * quarantined (see errand_resource_class) where a call may take long.
 * Thread: [any]; with callbacks [owner].
 * Errors: ENOMEM · EINVAL (their number, a kind, a range: argument and text say which). */
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_call(
    errand_spec *out_spec, errand_ffi_function *function,
    const errand_ffi_value *arguments, size_t count, errand_ffi_error *out_error);

ERRAND_END
#endif
