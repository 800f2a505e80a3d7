/* SPDX-License-Identifier: MIT */
/* bytes: buffers that grow, and the strings of a block, each of which stands there once.
 *
 * Strings are found by the hash of their text and then compared, so that a log says what was
 * said even where two hashes are equal. */
#include <string.h>
#include "recording/recording.h"

#define BYTES_MAX (UINT32_C(1) << 31)

bool
errand__bytes_reserve(errand__bytes *bytes, size_t more)
{
    size_t room = bytes->room == 0 ? 1024 : bytes->room;
    unsigned char *grown;

    if (more > BYTES_MAX - bytes->size)
        return false;
    if (more <= bytes->room - bytes->size)
        return true;
    while (room - bytes->size < more)
        room *= 2;
    grown = errand__mem_grow(NULL, bytes->data, bytes->room, room);
    if (grown == NULL)
        return false;
    bytes->data = grown;
    bytes->room = room;
    return true;
}

bool
errand__bytes_put(errand__bytes *bytes, const void *data, size_t size)
{
    if (!errand__bytes_reserve(bytes, size))
        return false;
    if (size > 0)
        memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return true;
}

void
errand__bytes_fini(errand__bytes *bytes)
{
    errand__mem_free(NULL, bytes->data, bytes->room);
    *bytes = (errand__bytes){.data = NULL};
}

/* ---- strings --------------------------------------------------------------------------------- */

static bool
rehash(errand__strings *strings)
{
    uint32_t room = strings->room == 0 ? 64 : strings->room * 2;
    struct errand__string_slot *slots =
        errand__mem_alloc(NULL, (size_t)room * sizeof *slots);

    if (slots == NULL)
        return false;
    for (uint32_t i = 0; i < strings->room; i++) {
        uint64_t place = strings->slots[i].hash & (room - 1);

        if (strings->slots[i].number == 0)
            continue;
        while (slots[place].number != 0)
            place = (place + 1) & (room - 1);
        slots[place] = strings->slots[i];
    }
    errand__mem_free(NULL, strings->slots, (size_t)strings->room * sizeof *slots);
    strings->slots = slots;
    strings->room = room;
    return true;
}

/* Longer ones are cut at a character's end, so they are compared as they are written. */
static bool
is_at(const errand__strings *strings, uint32_t at, const char *text)
{
    return strncmp((const char *)strings->text.data + at + 2, text, ERRAND__TEXT_MAX) ==
           0;
}

static bool
append(errand__strings *strings, const char *text)
{
    char cut[ERRAND__TEXT_MAX + 1];
    unsigned char length[2];
    size_t size = strnlen(text, sizeof cut);

    if (size == sizeof cut) {
        size = errand__text_format(cut, sizeof cut, "%s", text);
        text = cut;
    }
    length[0] = (unsigned char)size;
    length[1] = (unsigned char)(size >> 8);
    if (!errand__bytes_reserve(&strings->text, size + 3))
        return false;
    return errand__bytes_put(&strings->text, length, 2) &&
           errand__bytes_put(&strings->text, text, size) &&
           errand__bytes_put(&strings->text, "", 1);
}

uint32_t
errand__strings_add(errand__strings *strings, const char *text, uint64_t hash)
{
    uint64_t place;
    uint32_t at = (uint32_t)strings->text.size;

    if (strings->count >= strings->room / 2 && !rehash(strings))
        return 0;
    place = hash & (strings->room - 1);
    while (strings->slots[place].number != 0) {
        const struct errand__string_slot *slot = &strings->slots[place];

        if (slot->hash == hash && is_at(strings, slot->at, text))
            return slot->number;
        place = (place + 1) & (strings->room - 1);
    }
    if (!append(strings, text))
        return 0;
    strings->slots[place] = (struct errand__string_slot){hash, ++strings->count, at};
    return strings->count;
}

void
errand__strings_clear(errand__strings *strings)
{
    if (strings->count > 0)
        memset(strings->slots, 0, (size_t)strings->room * sizeof *strings->slots);
    strings->count = 0;
    strings->text.size = 0;
}

void
errand__strings_fini(errand__strings *strings)
{
    errand__mem_free(NULL, strings->slots,
                     (size_t)strings->room * sizeof *strings->slots);
    errand__bytes_fini(&strings->text);
    *strings = (errand__strings){.count = 0};
}
