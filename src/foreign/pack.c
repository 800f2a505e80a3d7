/* SPDX-License-Identifier: MIT */
/* pack: a call that waits to be made: its arguments, checked and written down.
 *
 * Design notes: the request is written once, when the call is described, with the addresses of pinned
 * buffers and of callbacks in it: that is what a body in this process uses.  For another process
 * the same records are written again without addresses: a buffer's bytes, or its place in a region
 * that both see; a callback becomes a question. */
#include <string.h>
#include "foreign/foreign.h"

static bool
is_null(const errand_ffi_value *value)
{
    return (value->kind == ERRAND_FFI_POINTER && value->as.pointer == NULL) ||
           (value->kind == ERRAND_FFI_STRING && value->as.string == NULL);
}

static bool
put_record(errand__reply *to, uint64_t tag, uint64_t size, uint64_t word)
{
    const uint64_t words[3] = {tag, size, word};
    bool three = tag == FFI_TAG_REGION || tag == FFI_TAG_DIRECT;

    return errand__wire_put_words(to, words, three ? 3 : 2);
}

/* Bytes begin at a multiple of 16. */
static bool
put_inline(errand__memory_reply *to, const void *bytes, size_t size, bool text)
{
    static const uint64_t zero;
    const uint64_t words[2] = {FFI_TAG_INLINE, size};

    return errand__wire_put_words(&to->reply, words, 2) &&
           (to->size % 16 == 0 || errand__wire_put_words(&to->reply, &zero, 1)) &&
           (text ? errand__wire_put_bytes(&to->reply, bytes, size + 1)
                 : errand__wire_put_bytes(&to->reply, bytes, size));
}

static bool
refuse_kind(errand_ffi_kind kind, const errand_ffi_value *value, uint32_t argument,
            errand_ffi_error *out_error)
{
    return errand__ffi_refuse(
        out_error, argument, "argument %u is %s, where the parameter is %s",
        (unsigned)argument, errand__kind_name(value->kind), errand__kind_name(kind));
}

/* ---- one argument ----------------------------------------------------------------------- */
/* All answer false with the error written, or with to->no_memory. */

static bool
pack_struct(errand__memory_reply *to, const errand_ffi_type *type,
            const errand_ffi_value *value, uint32_t argument, errand_ffi_error *out_error)
{
    errand__layout layout;
    unsigned char *image;
    bool good;

    errand__type_layout(type, &layout);
    image = errand__mem_alloc_used(layout.size);
    if (image == NULL) {
        to->no_memory = true;
        return false;
    }
    good = errand__value_image(type, value, argument, image, out_error) &&
           errand__wire_put_bytes(&to->reply, image, layout.size);
    errand__mem_free(NULL, image, layout.size);
    return good;
}

static bool
pack_memory(errand__memory_reply *to, errand_ffi_kind kind, const errand_ffi_value *value,
            uint32_t argument, errand_ffi_error *out_error)
{
    if (value->kind == ERRAND_FFI_BUFFER && value->as.buffer != NULL)
        return put_record(&to->reply, FFI_TAG_DIRECT,
                          errand_ffi_buffer_size(value->as.buffer),
                          (uintptr_t)errand_ffi_buffer_data(value->as.buffer));
    if (value->kind != kind)
        return refuse_kind(kind, value, argument, out_error);
    if (value->size >= SIZE_MAX / 4 ||
        (kind != ERRAND_FFI_OUT && value->size > 0 && value->as.pointer == NULL))
        return errand__ffi_refuse(
            out_error, argument,
            "argument %u: %zu bytes without an address, or more than "
            "there can be",
            (unsigned)argument, value->size);
    if (kind == ERRAND_FFI_OUT)
        return put_record(&to->reply, FFI_TAG_ZEROED, value->size, 0);
    return put_inline(to, value->as.pointer, value->size, false);
}

static bool
pack_callback(errand__memory_reply *to, const errand_ffi_type *type,
              const errand_ffi_value *value, uint32_t argument,
              errand_ffi_error *out_error)
{
    errand_ffi_type has = {.kind = ERRAND_FFI_CALLBACK};
    const errand__trampoline *trampoline;

    if (value->kind != ERRAND_FFI_CALLBACK || value->as.callback == NULL)
        return refuse_kind(ERRAND_FFI_CALLBACK, value, argument, out_error);
    trampoline = errand__callback_trampoline(value->as.callback);
    has.count = trampoline->view.count;
    if (has.count != type->count ||
        !errand__type_equal(&trampoline->view.result, &type->items[0]))
        return errand__ffi_refuse(
            out_error, argument,
            "argument %u: the callback has another signature than the parameter",
            (unsigned)argument);
    for (uint32_t i = 0; i < type->count; i++)
        if (!errand__type_equal(&trampoline->view.parameters[i], &type->items[i + 1]))
            return errand__ffi_refuse(
                out_error, argument,
                "argument %u: the callback's parameter %u is of another type",
                (unsigned)argument, (unsigned)i + 1);
    return put_record(&to->reply, FFI_TAG_DIRECT, 0, (uintptr_t)trampoline->code);
}

static bool
pack_one(errand__memory_reply *to, const errand_ffi_type *type,
         const errand_ffi_value *value, uint32_t argument, errand_ffi_error *out_error)
{
    uint64_t word;

    if (type->kind == ERRAND_FFI_STRUCT)
        return pack_struct(to, type, value, argument, out_error);
    if (errand__kind_scalar(type->kind))
        return errand__value_word(type->kind, value, argument, &word, out_error) &&
               errand__wire_put_words(&to->reply, &word, 1);
    if (is_null(value))
        return put_record(&to->reply, FFI_TAG_NULL, 0, 0);
    if (errand__kind_memory(type->kind))
        return pack_memory(to, type->kind, value, argument, out_error);
    if (type->kind == ERRAND_FFI_CALLBACK)
        return pack_callback(to, type, value, argument, out_error);
    if (value->kind != ERRAND_FFI_STRING)
        return refuse_kind(type->kind, value, argument, out_error);
    return put_inline(to, value->as.string, strlen(value->as.string), true);
}

/* ---- the call ------------------------------------------------------------------------------- */

static bool
pack_all(errand__call *call, const errand_ffi_value *arguments,
         errand_ffi_error *out_error)
{
    const errand_ffi_signature *view = errand_ffi_function_signature(call->function);
    uint64_t size = 0;

    if (!errand__wire_put_head(&call->request.reply, FFI_WIRE_VERSION, view->count) ||
        !errand__wire_put_words(&call->request.reply, &size, 1))
        return false;
    for (uint32_t i = 0; i < view->count; i++)
        if (!pack_one(&call->request, &view->parameters[i], &arguments[i], i + 1,
                      out_error))
            return false;
    size = call->request.size;
    memcpy(call->request.bytes + 8, &size, sizeof size);
    return true;
}

/* Only what was packed is of use to the function. */
static bool
kept(const errand_ffi_type *type, const errand_ffi_value *value)
{
    return (value->kind == ERRAND_FFI_BUFFER && errand__kind_memory(type->kind)) ||
           (value->kind == ERRAND_FFI_CALLBACK && type->kind == ERRAND_FFI_CALLBACK);
}

static void
keep_all(errand__call *call, const errand_ffi_value *arguments)
{
    const errand_ffi_signature *view;

    errand__function_hold(call->function);
    view = errand_ffi_function_signature(call->function);
    for (uint32_t i = 0; i < view->count; i++) {
        struct errand__call_hold *hold = &call->holds[call->hold_count];

        if (!kept(&view->parameters[i], &arguments[i]))
            continue;
        hold->kind = arguments[i].kind;
        hold->parameter = i;
        if (hold->kind == ERRAND_FFI_BUFFER) {
            hold->object = arguments[i].as.buffer;
            errand_ffi_buffer_pin(arguments[i].as.buffer);
        } else {
            hold->object = arguments[i].as.callback;
            errand__trampoline_pin(errand__callback_trampoline(arguments[i].as.callback));
            errand__callback_owned(hold->object); /* it may have been adopted */
        }
        call->hold_count++;
    }
}

/* Bytes that a sandbox's workers read in place: a call runs in one of them. */
static bool
of_one_sandbox(const errand_ffi_signature *view, const errand_ffi_value *arguments,
               errand_ffi_error *out_error)
{
    const errand_ffi_buffer *first = NULL;

    for (uint32_t i = 0; i < view->count; i++) {
        const errand_ffi_buffer *buffer = arguments[i].as.buffer;

        if (view->parameters[i].kind != ERRAND_FFI_BYTES ||
            arguments[i].kind != ERRAND_FFI_BUFFER || !errand_ffi_buffer_shared(buffer))
            continue;
        if (first != NULL && !errand__buffer_beside(first, buffer))
            return errand__ffi_refuse(
                out_error, i + 1,
                "argument %u: a buffer of another sandbox than one before it",
                (unsigned)i + 1);
        first = buffer;
    }
    return true;
}

errand_status
errand__call_create(errand_ffi_function *function, const errand_ffi_value *arguments,
                    size_t count, errand__call **out_call, errand_ffi_error *out_error)
{
    const errand_ffi_signature *view = errand_ffi_function_signature(function);
    errand__call *call;
    size_t holds = 0;

    if (count != view->count) {
        errand__ffi_refuse(out_error, 0, "%zu arguments were given for %u parameters",
                           count, (unsigned)view->count);
        return ERRAND_EINVAL;
    }
    if (!of_one_sandbox(view, arguments, out_error))
        return ERRAND_EINVAL;
    for (uint32_t i = 0; i < view->count; i++)
        holds += kept(&view->parameters[i], &arguments[i]);
    call = errand__mem_alloc(NULL, sizeof *call + holds * sizeof call->holds[0]);
    if (call == NULL)
        return ERRAND_ENOMEM;
    call->size = sizeof *call + holds * sizeof call->holds[0];
    call->function = function;
    errand__memory_reply_init(&call->request, SIZE_MAX / 4);
    if (!pack_all(call, arguments, out_error)) {
        bool no_memory = call->request.no_memory;
        errand__memory_reply_fini(&call->request);
        errand__mem_free(NULL, call, call->size);
        return no_memory ? ERRAND_ENOMEM : ERRAND_EINVAL;
    }
    keep_all(call, arguments);
    *out_call = call;
    return ERRAND_OK;
}

void
errand__call_destroy(errand__call *call)
{
    for (size_t i = 0; i < call->hold_count; i++) {
        struct errand__call_hold *hold = &call->holds[i];

        if (hold->kind == ERRAND_FFI_BUFFER)
            errand_ffi_buffer_unpin(hold->object);
        else
            errand__trampoline_unpin(errand__callback_trampoline(hold->object));
    }
    errand_ffi_function_abandon(&call->function);
    errand__memory_reply_fini(&call->request);
    errand__mem_free(NULL, call, call->size);
}

errand_ffi_callback *
errand__call_callback(const errand__call *call, uint32_t parameter)
{
    for (size_t i = 0; i < call->hold_count; i++)
        if (call->holds[i].kind == ERRAND_FFI_CALLBACK &&
            call->holds[i].parameter == parameter)
            return call->holds[i].object;
    return NULL;
}

const errand_ffi_buffer *
errand__call_borrowed(const errand__call *call)
{
    const errand_ffi_signature *view = errand_ffi_function_signature(call->function);

    for (size_t i = 0; i < call->hold_count; i++)
        if (call->holds[i].kind == ERRAND_FFI_BUFFER &&
            view->parameters[call->holds[i].parameter].kind == ERRAND_FFI_BYTES &&
            errand_ffi_buffer_shared(call->holds[i].object))
            return call->holds[i].object;
    return NULL;
}

/* ---- for another process ------------------------------------------------------------------------ */

static bool
write_apart(errand__memory_reply *to, const errand_ffi_type *type,
            const errand__record_view *record, const errand__call *call,
            uint32_t parameter)
{
    uint64_t offset;

    if (type->kind == ERRAND_FFI_STRUCT)
        return errand__wire_put_bytes(&to->reply, record->bytes, (size_t)record->size);
    if (errand__kind_scalar(type->kind))
        return errand__wire_put_words(&to->reply, &record->word, 1);
    if (record->tag == FFI_TAG_INLINE)
        return put_inline(to, record->bytes, (size_t)record->size,
                          type->kind == ERRAND_FFI_STRING);
    if (record->tag != FFI_TAG_DIRECT)
        return put_record(&to->reply, record->tag, record->size, 0);
    if (type->kind == ERRAND_FFI_CALLBACK)
        return put_record(&to->reply, FFI_TAG_ASK, 0, 0);
    for (size_t i = 0; i < call->hold_count; i++)
        if (call->holds[i].parameter == parameter && type->kind == ERRAND_FFI_BYTES &&
            errand__buffer_region(call->holds[i].object, &offset))
            return put_record(&to->reply, FFI_TAG_REGION, record->size, offset);
    if (type->kind == ERRAND_FFI_OUT)
        return put_record(&to->reply, FFI_TAG_ZEROED, record->size, 0);
    return put_inline(to, (const void *)(uintptr_t)record->word, (size_t)record->size,
                      false);
}

static void
write_all(const errand__call *call, errand__memory_reply *to)
{
    const errand_ffi_signature *view = errand_ffi_function_signature(call->function);
    errand__wire in = {
        .base = call->request.bytes, .size = call->request.size, .at = 16, .good = true};
    const uint64_t zero = 0;
    errand__record_view record;

    (void)errand__wire_put_head(&to->reply, FFI_WIRE_VERSION, view->count);
    (void)errand__wire_put_words(&to->reply, &zero, 1);
    for (uint32_t i = 0; i < view->count; i++) {
        errand__wire_record(&in, &view->parameters[i], &record);
        (void)write_apart(to, &view->parameters[i], &record, call, i);
    }
}

/* A reply that only counts. */
static bool
count_write(errand__reply *reply, const void *bytes, size_t size)
{
    (void)bytes;
    ERRAND__CONTAINER(reply, errand__memory_reply, reply)->size += size;
    return true;
}

static bool
place_write(errand__reply *reply, const void *bytes, size_t size)
{
    errand__memory_reply *memory = ERRAND__CONTAINER(reply, errand__memory_reply, reply);

    if (size > memory->room - memory->size)
        return false;
    memcpy(memory->bytes + memory->size, bytes, size);
    memory->size += size;
    return true;
}

size_t
errand__call_request_size(const errand__call *call)
{
    errand__memory_reply to = {.reply = {.write = count_write}};

    if (call->hold_count == 0) /* no address stands in it */
        return call->request.size;
    write_all(call, &to);
    return to.size;
}

void
errand__call_write(const errand__call *call, unsigned char *out_bytes)
{
    errand__memory_reply to = {.reply = {.write = place_write},
                               .bytes = out_bytes,
                               .room = errand__call_request_size(call)};
    uint64_t size;

    if (call->hold_count == 0) {
        memcpy(out_bytes, call->request.bytes, call->request.size);
        return;
    }
    write_all(call, &to);
    size = to.size;
    memcpy(out_bytes + 8, &size, sizeof size);
}
