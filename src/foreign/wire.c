/* SPDX-License-Identifier: MIT */
/* wire: reading and writing the bytes of calls.
 *
 * Design notes: a reader that met something wrong answers 0 from then on, so that whoever reads asks
 * once, at the end, or before it uses a length.  Words are copied out, so nothing need be aligned but
 * what a callee gets the address of. */
#include <string.h>
#include "foreign/foreign.h"

uint64_t
errand__wire_word(errand__wire *in)
{
    uint64_t word = 0;

    if (!in->good || in->size - in->at < sizeof word) {
        in->good = false;
        return 0;
    }
    memcpy(&word, in->base + in->at, sizeof word);
    in->at += sizeof word;
    return word;
}

void
errand__wire_head(errand__wire *in, uint32_t *out_first, uint32_t *out_second)
{
    uint64_t word = errand__wire_word(in);
    uint32_t halves[2];

    memcpy(halves, &word, sizeof halves);
    *out_first = halves[0];
    *out_second = halves[1];
}

void
errand__wire_align(errand__wire *in, size_t align)
{
    size_t at = errand__align_up(in->at, align);

    if (!in->good || at > in->size)
        in->good = false;
    else
        in->at = at;
}

const unsigned char *
errand__wire_bytes(errand__wire *in, size_t size)
{
    const unsigned char *bytes = in->base + in->at;

    if (!in->good || in->size - in->at < size) {
        in->good = false;
        return NULL;
    }
    in->at += size;
    errand__wire_align(in, 8);
    return in->good ? bytes : NULL;
}

bool
errand__wire_end(errand__wire *in)
{
    in->good = in->good && in->at == in->size;
    return in->good;
}

static void
read_memory(errand__wire *in, const errand_ffi_type *type, errand__record_view *out)
{
    out->tag = errand__wire_word(in);
    out->size = errand__wire_word(in);
    if (out->tag == FFI_TAG_REGION || out->tag == FFI_TAG_DIRECT) {
        out->word = errand__wire_word(in);
    } else if (out->tag == FFI_TAG_INLINE) {
        bool text = type->kind == ERRAND_FFI_STRING;

        if (out->size >= in->size)
            in->good = false; /* so that 1 more is no overflow */
        errand__wire_align(in, 16);
        out->bytes = errand__wire_bytes(in, (size_t)out->size + text);
        if (out->bytes != NULL && text &&
            memchr(out->bytes, 0, (size_t)out->size + 1) != out->bytes + out->size)
            in->good = false;
    }
}

bool
errand__wire_text(errand__wire *in, errand__record_view *out_view)
{
    *out_view = (errand__record_view){.tag = errand__wire_word(in)};
    out_view->size = errand__wire_word(in);
    if (out_view->tag == FFI_TAG_NULL && out_view->size == 0)
        return in->good;
    if (out_view->tag != FFI_TAG_INLINE || out_view->size >= in->size)
        in->good = false;
    out_view->bytes = errand__wire_bytes(in, (size_t)out_view->size + 1);
    if (out_view->bytes == NULL ||
        memchr(out_view->bytes, 0, (size_t)out_view->size + 1) !=
            out_view->bytes + out_view->size)
        in->good = false;
    return in->good;
}

bool
errand__wire_record(errand__wire *in, const errand_ffi_type *type,
                    errand__record_view *out_view)
{
    errand__layout layout;

    *out_view = (errand__record_view){.tag = FFI_TAG_NULL};
    if (type->kind == ERRAND_FFI_STRUCT) {
        errand__type_layout(type, &layout);
        out_view->size = layout.size;
        out_view->bytes = errand__wire_bytes(in, layout.size);
    } else if (errand__kind_scalar(type->kind)) {
        out_view->word = errand__wire_word(in);
    } else {
        read_memory(in, type, out_view);
    }
    return in->good;
}

bool
errand__wire_put_words(errand__reply *reply, const uint64_t *words, size_t count)
{
    return reply->write(reply, words, count * sizeof *words);
}

bool
errand__wire_put_head(errand__reply *reply, uint32_t first, uint32_t second)
{
    const uint32_t halves[2] = {first, second};

    return reply->write(reply, halves, sizeof halves);
}

bool
errand__wire_put_bytes(errand__reply *reply, const void *bytes, size_t size)
{
    static const unsigned char zeros[8];
    size_t rest = (8 - size % 8) % 8;

    return (size == 0 || reply->write(reply, bytes, size)) &&
           (rest == 0 || reply->write(reply, zeros, rest));
}

void
errand__image_clean(const errand_ffi_type *type, const void *image,
                    unsigned char *out_image)
{
    const unsigned char *from = image;
    errand__layout layout;
    size_t at = 0;

    if (type->kind != ERRAND_FFI_STRUCT && type->kind != ERRAND_FFI_ARRAY) {
        errand__word_into(type->kind, out_image, errand__word_of(type->kind, from));
        return;
    }
    for (uint32_t i = 0; i < type->count; i++) {
        const errand_ffi_type *item =
            type->kind == ERRAND_FFI_ARRAY ? type->items : &type->items[i];
        errand__type_layout(item, &layout);
        at = errand__align_up(at, layout.align);
        errand__image_clean(item, from + at, out_image + at);
        at += layout.size;
    }
}

static bool
put_image(errand__reply *reply, const errand_ffi_type *type, const void *at)
{
    unsigned char small[256] = {0}, *image = small;
    errand__layout layout;
    bool good;

    errand__type_layout(type, &layout);
    if (layout.size > sizeof small)
        image = errand__mem_alloc_used(layout.size);
    if (image == NULL)
        return false;
    errand__image_clean(type, at, image);
    good = errand__wire_put_bytes(reply, image, layout.size);
    if (image != small)
        errand__mem_free(NULL, image, layout.size);
    return good;
}

bool
errand__wire_put_result(errand__reply *reply, const errand_ffi_type *type, const void *at)
{
    uint64_t words[2] = {FFI_TAG_NULL, 0};
    const char *text;

    if (type->kind == ERRAND_FFI_VOID)
        return true;
    if (type->kind == ERRAND_FFI_STRUCT)
        return put_image(reply, type, at);
    if (type->kind != ERRAND_FFI_STRING) {
        words[0] = errand__word_of(type->kind, at);
        return errand__wire_put_words(reply, words, 1);
    }
    memcpy(&text, at, sizeof text);
    if (text == NULL)
        return errand__wire_put_words(reply, words, 2);
    words[0] = FFI_TAG_INLINE;
    words[1] = strlen(text);
    return errand__wire_put_words(reply, words, 2) &&
           errand__wire_put_bytes(reply, text, words[1] + 1);
}

static bool
memory_write(errand__reply *reply, const void *bytes, size_t size)
{
    errand__memory_reply *memory = ERRAND__CONTAINER(reply, errand__memory_reply, reply);

    if (size > memory->limit - memory->size)
        return false;
    if (size > memory->room - memory->size) {
        size_t room = 2 * memory->room > memory->size + size ? 2 * memory->room
                                                             : memory->size + size + 128;
        unsigned char *larger =
            memory->bytes == memory->small
                ? errand__mem_alloc_used(room)
                : errand__mem_grow(NULL, memory->bytes, memory->room, room);
        memory->no_memory = larger == NULL;
        if (larger == NULL)
            return false;
        if (memory->bytes == memory->small)
            memcpy(larger, memory->small, memory->size);
        memory->bytes = larger;
        memory->room = room;
    }
    memcpy(memory->bytes + memory->size, bytes, size);
    memory->size += size;
    return true;
}

void
errand__memory_reply_init(errand__memory_reply *memory, size_t limit)
{
    *memory = (errand__memory_reply){.reply = {.write = memory_write}, .limit = limit};
    memory->bytes = memory->small;
    memory->room = sizeof memory->small;
}

void
errand__memory_reply_fini(errand__memory_reply *memory)
{
    if (memory->bytes != memory->small)
        errand__mem_free(NULL, memory->bytes, memory->room);
    memory->bytes = memory->small;
}
