/* SPDX-License-Identifier: MIT */
/* random: draws that are functions of their arguments, keys, the audit's mix, entropy.
 *
 * Design notes.
 * - (seed, stream, key) names a sequence: one long product, both halves folded.  A number
 *   of it is the name plus the ordinal times the golden ratio, well spread.  For a fixed
 *   sequence that is a permutation of the ordinals, so neighbours never collide and every
 *   ordinal is equal.  An operation draws four times, so this is arithmetic on words; a
 *   general hash of the same bytes took three times as long.
 * - Keys of operations are made alike; children's keys, which hang on labels, are hashes.
 * - What is hashed is written out byte by byte, little end first: the same on every
 *   machine, and no padding of a structure gets in. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "core/core.h"

#define TAG_CHILD 1U
/* Odd, or fractions of square roots: any would do, and they are for ever. */
#define GOLDEN    UINT64_C(0x9e3779b97f4a7c15)
#define ROOT_TWO  UINT64_C(0x6a09e667f3bcc909)
#define ROOT_FIVE UINT64_C(0x3c6ef372fe94f82b)
#define ROOT_SIX  UINT64_C(0x7311c2812425cfa1)

static uint64_t hash_three(uint64_t seed, uint64_t first, uint64_t second,
                           uint64_t third);

/* Every bit of a word counts for every bit of the answer; no two words have the same. */
static inline uint64_t
spread(uint64_t word)
{
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

/* The low half of a * b; *out_high is the high half. */
static inline uint64_t
multiply(uint64_t a, uint64_t b, uint64_t *out_high)
{
#if defined(__SIZEOF_INT128__)
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;

    *out_high = (uint64_t)(product >> 64);
#else
    uint64_t a_low = a & UINT32_MAX, a_high = a >> 32;
    uint64_t b_low = b & UINT32_MAX, b_high = b >> 32;
    uint64_t low = a_low * b_low;
    uint64_t middle = a_high * b_low + (low >> 32);
    uint64_t other = a_low * b_high + (middle & UINT32_MAX);

    *out_high = a_high * b_high + (middle >> 32) + (other >> 32);
#endif
    return a * b;
}

/* No seed that anybody would choose makes a factor that is 0. */
static inline uint64_t
name_sequence(uint64_t seed, errand__stream stream, uint64_t key)
{
    uint64_t high, low = multiply(seed ^ (ROOT_FIVE + (uint64_t)stream * ROOT_SIX),
                                  key ^ ROOT_TWO, &high);

    return low ^ high;
}

static inline uint64_t
number_of(uint64_t sequence, uint64_t ordinal)
{
    return spread(sequence + ordinal * GOLDEN);
}

/* The high half of draw * n; *out_rest is the low half. */
static inline uint64_t
scale(uint64_t draw, uint64_t n, uint64_t *out_rest)
{
    uint64_t high;

    *out_rest = multiply(draw, n, &high);
    return high;
}

uint64_t
errand__random_draw(uint64_t seed, errand__stream stream, uint64_t key, uint64_t ordinal)
{
    return number_of(name_sequence(seed, stream, key), ordinal);
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
    uint64_t first = number_of(sequence, ordinal);
    uint64_t rest;
    uint64_t answer = scale(first, n, &rest);
    if (rest >= n)
        return answer; /* the surplus is smaller than n: no division in the common case */
    uint64_t surplus = (UINT64_MAX - n + 1) % n;
    for (uint64_t retry = 1; rest < surplus; retry++) {
        answer = scale(spread(first + retry * ROOT_FIVE), n, &rest);
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
    uint64_t key = number_of(spread(task ^ ROOT_SIX), ordinal);
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
hash_three(uint64_t seed, uint64_t first, uint64_t second, uint64_t third)
{
    unsigned char bytes[24];
    errand__word_write(bytes, first);
    errand__word_write(bytes + 8, second);
    errand__word_write(bytes + 16, third);
    return XXH3_64bits_withSeed(bytes, sizeof bytes, seed);
}
