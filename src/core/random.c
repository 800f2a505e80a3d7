/* SPDX-License-Identifier: MIT */
/* random: draws that are functions of their arguments, keys, the audit's mix, entropy.
 *
 * Design notes.
 * - A draw is two short hashes: (stream, key) under the seed names a sequence, the
 *   ordinal under that name is a number of it.  For a fixed sequence the second hash is a
 *   permutation of the ordinals, so neighbours never collide and every ordinal is equal.
 * - What is hashed is written out byte by byte, little end first: the same on every
 *   machine, and no padding of a structure gets in.
 * - Messages of different kinds differ in length (8: a draw; 16: a redraw, a sequence's
 *   name; 24: keys, with a tag in front), so one kind never repeats another's hash. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "core/core.h"

#define TAG_CHILD     1U
#define TAG_OPERATION 2U

static uint64_t hash_one(uint64_t seed, uint64_t word);
static uint64_t hash_two(uint64_t seed, uint64_t first, uint64_t second);
static uint64_t hash_three(uint64_t seed, uint64_t first, uint64_t second,
                           uint64_t third);
static uint64_t name_sequence(uint64_t seed, errand__stream stream, uint64_t key);
static uint64_t scale(uint64_t draw, uint64_t n, uint64_t *out_rest);

uint64_t
errand__random_draw(uint64_t seed, errand__stream stream, uint64_t key, uint64_t ordinal)
{
    return hash_one(name_sequence(seed, stream, key), ordinal);
}

/* Multiply and keep the high half; of the 2^64 draws the (2^64 mod n) surplus ones, those
 * with the smallest rest, are drawn again under (ordinal, try). */
uint64_t
errand__random_below(uint64_t seed, errand__stream stream, uint64_t key, uint64_t ordinal,
                     uint64_t n)
{
    ERRAND_ASSERT(n >= 1);
    if (n == 1)
        return 0;
    uint64_t sequence = name_sequence(seed, stream, key);
    uint64_t draw = hash_one(sequence, ordinal);
    uint64_t rest;
    uint64_t answer = scale(draw, n, &rest);
    if (rest >= n)
        return answer; /* the surplus is smaller than n: no division in the common case */
    uint64_t surplus = (UINT64_MAX - n + 1) % n;
    for (uint64_t retry = 1; rest < surplus; retry++) {
        draw = hash_two(sequence, ordinal, retry);
        answer = scale(draw, n, &rest);
    }
    return answer;
}

uint64_t
errand__key_child(uint64_t parent, const char *label, uint64_t ordinal)
{
    if (label == NULL)
        label = "";
    size_t size = strlen(label);
    uint64_t named = XXH3_64bits_withSeed(label, size, parent);
    uint64_t key = hash_three(named, TAG_CHILD, size, ordinal);
    return key == 0 ? 1 : key;
}

uint64_t
errand__key_operation(uint64_t task, uint64_t ordinal)
{
    uint64_t key = hash_three(task, TAG_OPERATION, ordinal, 0);
    return key == 0 ? 1 : key;
}

uint64_t
errand__mix_bytes(uint64_t mix, const void *bytes, size_t size)
{
    return XXH3_64bits_withSeed(size == 0 ? "" : bytes, size, mix);
}

uint64_t
errand__mix_words(uint64_t first, uint64_t second, uint64_t third, uint64_t fourth)
{
    unsigned char bytes[32];

    errand__word_write(bytes, first);
    errand__word_write(bytes + 8, second);
    errand__word_write(bytes + 16, third);
    errand__word_write(bytes + 24, fourth);
    return XXH3_64bits_withSeed(bytes, sizeof bytes, 0);
}

uint64_t
errand__label_hash(const char *label)
{
    return label == NULL ? 0 : errand__mix_bytes(1, label, strlen(label));
}

uint64_t
errand__random_entropy(void)
{
    uint64_t entropy = 0;
    int saved = errno;
    ssize_t got;
    do {
        got = getrandom(&entropy, sizeof entropy, 0);
    } while (got == -1 && errno == EINTR);
    errno = saved;
    if (got != (ssize_t)sizeof entropy || entropy == 0) {
        /* A kernel or filter without it: what differs between processes and moments. */
        entropy ^= hash_three(errand__cycles(), errand__clock_now(), (uint64_t)getpid(),
                              (uint64_t)(uintptr_t)&entropy);
    }
    return entropy == 0 ? 1 : entropy;
}

static uint64_t
hash_one(uint64_t seed, uint64_t word)
{
    unsigned char bytes[8];
    errand__word_write(bytes, word);
    return XXH3_64bits_withSeed(bytes, sizeof bytes, seed);
}

static uint64_t
hash_two(uint64_t seed, uint64_t first, uint64_t second)
{
    unsigned char bytes[16];
    errand__word_write(bytes, first);
    errand__word_write(bytes + 8, second);
    return XXH3_64bits_withSeed(bytes, sizeof bytes, seed);
}

static uint64_t
hash_three(uint64_t seed, uint64_t first, uint64_t second, uint64_t third)
{
    unsigned char bytes[24];
    errand__word_write(bytes, first);
    errand__word_write(bytes + 8, second);
    errand__word_write(bytes + 16, third);
    return XXH3_64bits_withSeed(bytes, sizeof bytes, seed);
}

static uint64_t
name_sequence(uint64_t seed, errand__stream stream, uint64_t key)
{
    return hash_two(seed, (uint64_t)stream, key);
}

/* The high half of draw * n; *out_rest is the low half. */
static uint64_t
scale(uint64_t draw, uint64_t n, uint64_t *out_rest)
{
    uint64_t draw_low = draw & UINT32_MAX, draw_high = draw >> 32;
    uint64_t n_low = n & UINT32_MAX, n_high = n >> 32;
    uint64_t low = draw_low * n_low;
    uint64_t middle = draw_high * n_low + (low >> 32);
    uint64_t other = draw_low * n_high + (middle & UINT32_MAX);
    *out_rest = draw * n;
    return draw_high * n_high + (middle >> 32) + (other >> 32);
}
