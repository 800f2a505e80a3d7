/* SPDX-License-Identifier: MIT */
/* Design notes: random bytes are programs already; the generator only favours starts that get
 * far.  Shrinking leaves away ever smaller runs of calls, then lowers single bytes. */
#include <string.h>
#include "program.h"

static uint64_t
draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

size_t
program_make(uint64_t seed, size_t calls, uint8_t *out_bytes)
{
    uint64_t state = seed;
    size_t size = PROGRAM_HEAD + calls * PROGRAM_CALL;

    for (size_t i = 0; i < size; i++)
        out_bytes[i] = (uint8_t)draw(&state);
    return size;
}

size_t
program_shrink(uint8_t *bytes, size_t size,
               bool (*fails)(void *arg, const uint8_t *bytes, size_t size), void *arg)
{
    uint8_t kept[PROGRAM_HEAD + PROGRAM_CALLS_MAX * PROGRAM_CALL];
    bool smaller = true;

    while (smaller) {
        smaller = false;
        for (size_t calls = (size / PROGRAM_CALL) / 2; calls > 0; calls /= 2)
            for (size_t at = PROGRAM_HEAD; at + calls * PROGRAM_CALL <= size;) {
                memcpy(kept, bytes, size);
                memmove(bytes + at, bytes + at + calls * PROGRAM_CALL,
                        size - at - calls * PROGRAM_CALL);
                if (fails(arg, bytes, size - calls * PROGRAM_CALL)) {
                    size -= calls * PROGRAM_CALL;
                    smaller = true;
                } else {
                    memcpy(bytes, kept, size);
                    at += PROGRAM_CALL;
                }
            }
    }
    for (size_t i = 0; i < size; i++) {
        uint8_t was = bytes[i];
        bytes[i] = 0;
        if (was != 0 && !fails(arg, bytes, size))
            bytes[i] = was;
    }
    return size;
}
