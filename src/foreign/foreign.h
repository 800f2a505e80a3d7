/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_FOREIGN_FOREIGN_H
#define ERRAND_FOREIGN_FOREIGN_H
/* foreign, inside: calls that are described at run time.  See README.md.
 *
 * The first section is the seam to the program that runs in a sandbox: it needs core and libffi
 * alone, no runtime and no dispatch. */
#include <ffi.h>
#include "core/core.h"
#include "errand/ffi.h"
#include "errand/portable.h"
#include "foreign/buffer.h"

/* ---- callee: a function found and described (callee.c, serve.c) ----------------------------- */
typedef struct errand__callee errand__callee;
/* signature: text as in errand/ffi.h, with or without a name; the canonical text of a function will
 * do.  NULL: out_error says why. */
errand__callee *errand__callee_create(void *address, const char *signature,
                                      errand_ffi_error *out_error);
void errand__callee_destroy(errand__callee *callee);

/* Where the bytes of an answer go: the worker's ring, or memory. */
typedef struct errand__reply {
    /* False: no more may be written; the call ends as OUTPUT. */
    bool (*write)(struct errand__reply *reply, const void *bytes, size_t size);
    /* A callback of the host's: asks, waits, and answers where the answer is, until the next ask.
     * False: nobody answers: the callback gives its default.  NULL = none can be asked. */
    bool (*ask)(struct errand__reply *reply, const void *question, size_t size,
                const void **out_answer, size_t *out_size);
} errand__reply;
/* Unpacks a request (what write_request of errand_portable_type wrote; 16-aligned), calls, writes the
 * response.  input: the borrowed region, if the request names one.  Answers 0, or a number of
 * ERRAND_FFI_TABLE with a text.  One thread at a time for each callee that takes callbacks. */
int32_t errand__callee_serve(errand__callee *callee, const unsigned char *request,
                             size_t size, const unsigned char *input, size_t input_size,
                             errand__reply *reply, errand_ffi_error *out_error);
/* Before the lock-down: makes the closures that callbacks of this callee need.  Until then, and where
 * it answered false, callbacks are refused (NO_EXEC).  True at once for a callee without any. */
bool errand__callee_ready(errand__callee *callee, errand_ffi_error *out_error);
bool errand__callee_calls_back(const errand__callee *callee);

/* ---- errors (error.c) ----------------------------------------------------------------------- */
/* Both are NULL-safe in out_error and answer false. */
bool errand__ffi_refuse(errand_ffi_error *out_error, uint32_t argument,
                        const char *format, ...) ERRAND_PRINTF(3, 4);
bool errand__ffi_refuse_at(errand_ffi_error *out_error, size_t column, uint32_t argument,
                           const char *format, ...) ERRAND_PRINTF(4, 5);

/* ---- types (type.c) --------------------------------------------------------------------------- */
enum {
    FFI_PARAMETERS_MAX = 64,
    FFI_PLAIN_MAX = 8,          /* parameters of a plain function */
    FFI_DEPTH_MAX = 16,         /* of structures and arrays in each other */
    FFI_STRUCT_MAX = 64 * 1024, /* bytes */
    FFI_LEAVES_MAX = 4096,      /* scalars in one structure */
    FFI_TEXT_MAX = 64 * 1024    /* of a signature */
};
const char *
errand__kind_name(errand_ffi_kind kind); /* as it is written; "?" if unknown */
/* A word's kind; 0 = none.  C's names too. */
errand_ffi_kind errand__kind_of_word(const char *word, size_t length);
bool errand__kind_integer(errand_ffi_kind kind); /* bool is one */
bool errand__kind_signed(errand_ffi_kind kind);
bool errand__kind_scalar(errand_ffi_kind kind); /* integers, floats, pointer */
bool errand__kind_memory(errand_ffi_kind kind); /* bytes, out, inout */
typedef struct errand__layout {
    size_t size, align;
    size_t leaves; /* scalars; arrays count each element's */
    size_t nodes;  /* values that describe it: leaves, structures, arrays */
} errand__layout;
/* Of scalars, pointers, structures and arrays; string and callback as pointers.  False: it has none,
 * or is beyond the limits. */
bool errand__type_layout(const errand_ffi_type *type, errand__layout *out_layout);
/* Offset of a structure's next field after `at`. */
size_t errand__align_up(size_t at, size_t align);

/* ---- signatures (signature.c, _type.c, _text.c) --------------------------------------------------- */
typedef struct errand__signature {
    errand_ffi_signature view; /* symbol: NULL = without a name */
    char *text;                /* canonical */
    size_t text_size;          /* with its 0 */
    errand_ffi_type *nodes;    /* what view points into */
    size_t node_count;
    char *symbol;
    size_t symbol_size;
} errand__signature;
errand_status errand__signature_parse(const char *text, errand__signature **out_signature,
                                      errand_ffi_error *out_error);
void errand__signature_destroy(errand__signature *signature); /* NULL-safe */
/* Writes at most size bytes and a 0; answers the length that the whole has.  0 = it cannot be written
 * (too deep, too long, an unknown kind). */
size_t errand__signature_text(const errand_ffi_signature *signature, char *out,
                              size_t size);
/* Do two types pass the same? */
bool errand__type_equal(const errand_ffi_type *a, const errand_ffi_type *b);

/* ---- callee, inside ------------------------------------------------------------------------------- */
typedef struct errand__trampoline errand__trampoline;
struct errand__callee {
    void *address;
    errand__signature *signature;
    ffi_cif cif;
    ffi_type **types; /* of the parameters */
    void *type_block; /* ffi_types of structures */
    size_t type_block_size;
    uint64_t splits;    /* see errand__cif */
    int shape;          /* of the fast paths; 0 = none: by ffi_call */
    bool plain;         /* a few scalars, and a scalar or void: see serve.c */
    size_t words;       /* of all slots */
    size_t result_room; /* bytes, at least 16 */
    uint32_t *slots;    /* each parameter's first word */
    errand__trampoline **trampolines; /* of callback parameters, where ready; else NULL */
};
/* Arguments in place: slot i is one word (integers widened as their type says, floats' bits in the low
 * bytes) or a structure's image; addresses: where each value begins, as libffi wants them. */
typedef struct errand__frame {
    uint64_t *words;
    void **addresses;
    void *result; /* result_room bytes, 16-aligned */
    int32_t sys_errno;
} errand__frame;
/* Calls; narrows the result to one word, widened as its type says; structures are as they are. */
void errand__callee_call(const errand__callee *callee, errand__frame *frame);
/* ffi_types for a signature: also used for callbacks.  False: no memory, or libffi refuses. */
typedef struct errand__cif {
    ffi_cif *cif;
    ffi_type ***types;
    void **block;
    size_t *block_size;
    /* Parameters (a bit each) that libffi gets as two arguments, their two words; NULL = none may be. */
    uint64_t *out_splits;
} errand__cif;
bool errand__cif_create(const errand_ffi_signature *view, errand__cif into,
                        errand_ffi_error *out_error);
/* False: this machine has not the convention, or it is not for such functions. */
bool errand__convention_check(const errand_ffi_signature *view,
                              errand_ffi_error *out_error);
void errand__callee_unready(errand__callee *callee);
uint64_t errand__word_of(errand_ffi_kind kind,
                         const void *at); /* reads a scalar, widened */
void errand__word_into(errand_ffi_kind kind, void *at, uint64_t word);
uint64_t errand__word_narrow(errand_ffi_kind kind, uint64_t word);
/* Where in a word the value of that kind lies. */
void *errand__word_place(errand_ffi_kind kind, uint64_t *word);

/* ---- wire: one form of calls for both tiers (wire.c) --------------------------------------------------
 * All words are 8 bytes in the machine's own order: both ends run on one machine.
 *   request    {u32 version, u32 count, u64 size} then a record for each parameter, then nothing
 *   record     scalar, pointer: its word · structure: its image, padded to 8 · string, bytes, out,
 *              inout, callback: {tag, size}, and as the tag says
 *                NULL, ZEROED, ASK  nothing more   INLINE  bytes, from a multiple of 16 on, padded to 8
 *                REGION  {offset} in the borrowed region   DIRECT  {address} in this process
 *   response   {u32 version, i32 errno} the result, then {tag, size} for each out and inout parameter,
 *              behind INLINE its bytes padded to 8
 *   result     void: nothing · scalar: its word · structure: its image padded to 8 · string: {tag, size},
 *              behind INLINE its bytes with a 0, padded to 8
 *   question   {u32 version, u32 parameter} the arguments of a callback, each as a result
 *   answer     {u32 version, u32 zero} a result */
enum { FFI_WIRE_VERSION = 1 };
enum {
    FFI_TAG_NULL = 0,
    FFI_TAG_INLINE = 1,
    FFI_TAG_ZEROED = 2,
    FFI_TAG_REGION = 3,
    FFI_TAG_DIRECT = 4,
    FFI_TAG_ASK = 5,
    FFI_TAG_IN_PLACE = 6
};
/* Reads bytes that are not believed: beyond the end, and after the first error, everything is 0. */
typedef struct errand__wire {
    const unsigned char *base;
    size_t size, at;
    bool good;
} errand__wire;
uint64_t errand__wire_word(errand__wire *in);
void errand__wire_head(errand__wire *in, uint32_t *out_first, uint32_t *out_second);
/* NULL = so many are not there.  Skips to a multiple of 8 behind them. */
const unsigned char *errand__wire_bytes(errand__wire *in, size_t size);
void errand__wire_align(errand__wire *in, size_t align);
bool errand__wire_end(errand__wire *in); /* good, and nothing is left */
/* One record of a request, syntax alone. */
typedef struct errand__record_view {
    uint64_t tag, size, word;   /* word: scalars, REGION's offset, DIRECT's address */
    const unsigned char *bytes; /* INLINE, and a structure's image */
} errand__record_view;
bool errand__wire_record(errand__wire *in, const errand_ffi_type *type,
                         errand__record_view *out_view);
/* A string as in a result: word 0, bytes NULL for none. */
bool errand__wire_text(errand__wire *in, errand__record_view *out_view);
/* Writers: to a reply. */
bool errand__wire_put_words(errand__reply *reply, const uint64_t *words, size_t count);
bool errand__wire_put_head(errand__reply *reply, uint32_t first, uint32_t second);
bool errand__wire_put_bytes(errand__reply *reply, const void *bytes, size_t size);
/* A result in the callee's memory, as above; string: at is its address. */
bool errand__wire_put_result(errand__reply *reply, const errand_ffi_type *type,
                             const void *at);
/* An image without what lies between its fields. */
void errand__image_clean(const errand_ffi_type *type, const void *image,
                         unsigned char *out_image);

/* A reply into memory that grows.  It stays where it is initialised. */
typedef struct errand__memory_reply {
    errand__reply reply;
    unsigned char *bytes;
    size_t size, room, limit;
    bool no_memory;
    _Alignas(16) unsigned char small[64]; /* bytes, until that is too small */
} errand__memory_reply;
void errand__memory_reply_init(errand__memory_reply *memory, size_t limit);
void errand__memory_reply_fini(errand__memory_reply *memory);

/* ---- trampolines: code that foreign functions can call (trampoline.c) ------------------------------- */
typedef void errand__trampoline_fn(void *owner, void *result, void **arguments);
struct errand__trampoline {
    errand_ffi_signature view; /* of what is called */
    errand__signature *owned;  /* what view lies in; NULL = somebody else's */
    ffi_closure *closure;
    void *code;
    ffi_cif cif;
    ffi_type **types;
    void *block;
    size_t block_size;
    errand__trampoline_fn *enter;
    void *owner;
    uint64_t fallback; /* the default's word */
    errand__link link; /* of those that were retired */
    int process;       /* that made it */
    /* uses: who may not be surprised by its end: calls inside, and whoever pinned it; CLOSED is added
     * once, when there are none.
     * Writers: callers (any thread), pins, the destroyer.   Readers: the same.
     * Order:   acq_rel.
     * Pairs:   trampoline-uses.
     * Why:     what a call did with the owner must be done before it is freed. */
    atomic_uint uses;
};
/* view is copied; what it points to must live as long (own_signature, if given, goes with it, on failure
 * too).  NULL: no memory, or none that may be executed (*out_no_exec). */
errand__trampoline *errand__trampoline_create(const errand_ffi_signature *view,
                                              errand__signature *own_signature,
                                              errand__trampoline_fn *enter, void *owner,
                                              errand_ffi_error *out_error,
                                              bool *out_no_exec);
void
errand__trampoline_destroy(errand__trampoline *trampoline); /* nobody calls it any more */
void errand__trampoline_pin(errand__trampoline *trampoline);
void errand__trampoline_unpin(errand__trampoline *trampoline);
/* False: pinned, or inside.  Then it goes on giving its default, and is destroyed when many more were
 * retired. */
bool errand__trampoline_retire(errand__trampoline *trampoline);
/* A result where libffi looks for it. */
void errand__trampoline_answer(const errand__trampoline *trampoline, void *result,
                               uint64_t word);
/* Tests: no closure can be made from now on; all that were retired are destroyed. */
void errand__trampolines_refuse(bool refuse);
void errand__trampolines_forget(void);

/* ---- serve (serve.c) -------------------------------------------------------------------------------- */
/* The call that this thread is inside of; NULL = none. */
typedef struct errand__current {
    const errand__callee *callee;
    errand__reply *reply;
    void *running; /* of the thread tier: see callback.c */
} errand__current;
extern _Thread_local const errand__current *errand__current_call;
/* The same as errand__callee_serve, for a request of this process's own, which may name addresses. */
int32_t errand__callee_serve_direct(errand__callee *callee, const unsigned char *request,
                                    size_t size, errand__reply *reply, void *running,
                                    errand_ffi_error *out_error);

/* ---- library, function (library.c, function.c) --------------------------------------------------- */
void errand__library_hold(errand_ffi_library *library);
const char *
errand__library_name(const errand_ffi_library *library); /* NULL = the process */
/* Opens it where nobody has yet. */
bool errand__library_open(errand_ffi_library *library, errand_ffi_error *out_error);
void *errand__library_find(errand_ffi_library *library, const char *symbol,
                           errand_ffi_error *out_error);
void errand__function_hold(errand_ffi_function *function);
/* Found and made at its first call; NULL: *out_code says why. */
errand__callee *errand__function_callee(errand_ffi_function *function, int32_t *out_code,
                                        errand_ffi_error *out_error);
const errand_entry *errand__function_entry(const errand_ffi_function *function);

/* ---- values and requests (value.c, pack.c) ------------------------------------------------------------- */
/* A scalar, pointer included, as a word; false: it does not fit. */
bool errand__value_word(errand_ffi_kind kind, const errand_ffi_value *value,
                        uint32_t argument, uint64_t *out_word,
                        errand_ffi_error *out_error);
/* A structure or array into its zeroed memory. */
bool errand__value_image(const errand_ffi_type *type, const errand_ffi_value *value,
                         uint32_t argument, unsigned char *image,
                         errand_ffi_error *out_error);
/* A call that waits to be made: the job's state. */
typedef struct errand__call {
    errand_ffi_function *function;
    errand__memory_reply request; /* with addresses: see errand__call_write */
    size_t hold_count;
    size_t size; /* of this block */
    /* What it keeps: the buffers and callbacks, by parameter. */
    struct errand__call_hold {
        errand_ffi_kind kind; /* BUFFER or CALLBACK */
        uint32_t parameter;
        void *object;
    } holds[];
} errand__call;
errand_status errand__call_create(errand_ffi_function *function,
                                  const errand_ffi_value *arguments, size_t count,
                                  errand__call **out_call, errand_ffi_error *out_error);
void errand__call_destroy(errand__call *call);
/* The request as another process can read it: without addresses. */
size_t errand__call_request_size(const errand__call *call);
void errand__call_write(const errand__call *call, unsigned char *out_bytes);
/* The first buffer that is read where it lies; NULL = none. */
const errand_ffi_buffer *errand__call_borrowed(const errand__call *call);
errand_ffi_callback *errand__call_callback(const errand__call *call, uint32_t parameter);

/* ---- results (result.c, result_codec.c) ------------------------------------------------------------------- */
/* Checks a response and makes the payload of it.  apart: it comes from another process.  Answers 0 or a
 * number of ERRAND_FFI_TABLE. */
int32_t errand__result_read(const errand__call *call, const unsigned char *bytes,
                            size_t size, bool apart, errand_payload *out_payload,
                            errand_ffi_error *out_error);
/* A block that is measured first (block NULL) and filled then, by the same walk. */
typedef struct errand__result_block {
    errand_ffi_result *block;
    size_t values, outputs, bytes; /* how many were taken */
    size_t values_all, outputs_all, size;
} errand__result_block;
/* All three answer NULL while it is measured. */
errand_ffi_value *errand__result_values(errand__result_block *self, size_t count);
errand_ffi_output *errand__result_outputs(errand__result_block *self, size_t count);
unsigned char *errand__result_bytes(errand__result_block *self, size_t size); /* + a 0 */
/* A value that lies in memory; its items are taken from the block.  string: its address. */
void errand__result_image(errand__result_block *self, const errand_ffi_type *type,
                          const void *at, errand_ffi_value *out_value);
bool errand__result_alloc(errand__result_block *self); /* after the measuring walk */
void errand__result_payload(errand__result_block *self, errand_payload *out_payload);

/* A log's bytes as a payload; OK, ENOMEM, EDECODE. */
errand_status errand__result_decode(const void *bytes, size_t size,
                                    errand_payload *out_payload);

/* ---- callbacks (callback.c, ask.c) ----------------------------------------------------------------------------- */
errand__trampoline *errand__callback_trampoline(errand_ffi_callback *callback);
void errand__callback_owned(errand_ffi_callback *callback); /* by this thread */
/* Around a body that may be called back: until the job's end, however it ends. */
typedef struct errand__running errand__running;
bool errand__running_begin(errand_job *job, const errand__call *call,
                           errand__running **out_running);
/* Asks the owner, or is it; job: whose body is on this thread, or NULL.  False: nobody answered. */
bool errand__callback_ask(errand_ffi_callback *callback, errand_job *job,
                          const errand_ffi_value *arguments, uint64_t *out_word);
/* Arguments where they lie, as values, in room (of FFI_PARAMETERS_MAX) or in block, which is the
 * caller's to free then.  NULL = no memory. */
errand_ffi_value *errand__callback_values(const errand_ffi_signature *view,
                                          void **arguments, errand_ffi_value *room,
                                          errand__result_block *block);

#endif
