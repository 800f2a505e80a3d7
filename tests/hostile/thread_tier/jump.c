/* SPDX-License-Identifier: MIT */
/* A frame larger than the guard: compiled with and without -fstack-clash-protection. */
#include <alloca.h>
#include <string.h>
#include "bodies.h"

/* The lowest bytes of the frame are written, and nothing between. */
void
TIER_JUMP(size_t size, size_t low)
{
    volatile char *frame = alloca(size);

    for (size_t i = 0; i < low; i++)
        frame[i] = 0x5a;
}
