/* SPDX-License-Identifier: MIT */
/* Goal: draws are a fixed function of their arguments, even and unrelated to each other.
 * Method: known values; every argument's every bit; counts over boxes against wide bounds
 * (the numbers are fixed, so a test that passes once passes always). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/core.h"
#include "group.h"

#define APPLICATION ERRAND__STREAM_APPLICATION

__extension__ typedef unsigned __int128 wide;

/* A log that was recorded yesterday must replay tomorrow: these may never change.  They
 * were computed apart from the library.  The fourth one is drawn three times again. */
static void
draws_and_keys_are_the_same_for_ever(void **state)
{
    (void)state;
    assert_int_equal(errand__random_draw(1, ERRAND__STREAM_SCHEDULE, 2, 3),
                     0xc189da574df817a5);
    assert_int_equal(errand__random_draw(0, ERRAND__STREAM_FATE, 0, 0),
                     0xef18fcf0fe172589);
    assert_int_equal(errand__random_below(1, ERRAND__STREAM_TIE, 2, 3, 1000), 482);
    assert_int_equal(
        errand__random_below(1, ERRAND__STREAM_TIE, 2, 8, (UINT64_C(1) << 63) + 1),
        2646058044172531916);
    assert_int_equal(errand__key_child(7, "fetch", 0), 0x86fa8a49ef215990);
    assert_int_equal(errand__key_operation(7, 1), 0xb6d75a6e5cc59b5f);
    assert_int_equal(errand__mix_bytes(7, "bytes", 5), 0xd26a647c2a05f302);
}

static unsigned
distance(uint64_t a, uint64_t b)
{
    return (unsigned)__builtin_popcountll(a ^ b);
}

/* Each single bit of each argument changes about half of the answer. */
static void
every_bit_of_every_argument_counts(void **state)
{
    (void)state;
    unsigned sum = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t flip = UINT64_C(1) << bit;
        uint64_t drawn = errand__random_draw(11, APPLICATION, 22, 33);
        unsigned changed[] = {
            distance(drawn, errand__random_draw(11 ^ flip, APPLICATION, 22, 33)),
            distance(drawn, errand__random_draw(11, APPLICATION, 22 ^ flip, 33)),
            distance(drawn, errand__random_draw(11, APPLICATION, 22, 33 ^ flip)),
            distance(errand__key_child(5, "a", 6), errand__key_child(5 ^ flip, "a", 6)),
            distance(errand__key_child(5, "a", 6), errand__key_child(5, "a", 6 ^ flip)),
            distance(errand__key_operation(5, 6), errand__key_operation(5 ^ flip, 6)),
            distance(errand__key_operation(5, 6), errand__key_operation(5, 6 ^ flip)),
            distance(errand__mix_bytes(5, "x", 1), errand__mix_bytes(5 ^ flip, "x", 1))};
        for (size_t i = 0; i < 8; i++) {
            assert_in_range(changed[i], 10, 54);
            sum += changed[i];
        }
    }
    assert_in_range(sum, 64 * 8 * 31, 64 * 8 * 33);
    for (int stream = 1; stream < 6; stream++) {
        uint64_t drawn = errand__random_draw(1, (errand__stream)stream, 2, 3);
        uint64_t other = errand__random_draw(1, (errand__stream)(stream + 1), 2, 3);
        assert_in_range(distance(drawn, other), 10, 54);
    }
}

/* Pearson's sum over 256 boxes; 255 expected, deviation 22.6. */
static double
unevenness(const uint64_t *boxes, double drawn)
{
    double sum = 0, expected = drawn / 256;
    for (int i = 0; i < 256; i++) {
        double off = (double)boxes[i] - expected;
        sum += off * off / expected;
    }
    return sum;
}

static void
draws_are_even_along_each_argument(void **state)
{
    (void)state;
    enum { DRAWS = 1 << 16 };
    for (int axis = 0; axis < 4; axis++) {
        uint64_t top[256] = {0}, bottom[256] = {0}, steps[256] = {0}, before = 0;
        for (uint64_t i = 0; i < DRAWS; i++) {
            uint64_t drawn = axis == 0   ? errand__random_draw(i, APPLICATION, 1, 1)
                             : axis == 1 ? errand__random_draw(1, APPLICATION, i, 1)
                             : axis == 2
                                 ? errand__random_draw(1, APPLICATION, 1, i)
                                 : errand__random_draw(i, ERRAND__STREAM_TIE, i, i);
            top[drawn >> 56]++;
            bottom[drawn & 255]++;
            steps[(drawn - before) >> 56]++; /* relation of neighbours */
            before = drawn;
        }
        assert_true(fabs(unevenness(top, DRAWS) - 255) < 5 * 22.6);
        assert_true(fabs(unevenness(bottom, DRAWS) - 255) < 5 * 22.6);
        assert_true(fabs(unevenness(steps, DRAWS) - 255) < 5 * 22.6);
    }
}

static void
small_ranges_are_even(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 10; n++) {
        uint64_t counts[10] = {0};
        for (uint64_t i = 0; i < 20000; i++) {
            uint64_t drawn = errand__random_below(3, APPLICATION, n, i, n);
            assert_true(drawn < n);
            counts[drawn]++;
        }
        for (uint64_t i = 0; i < n; i++)
            assert_true(fabs((double)counts[i] * (double)n / 20000 - 1) < 0.1);
    }
}

/* With n just over half of the range every second draw is drawn again.  Without that the
 * lower numbers would come twice as often as some. */
static void
large_ranges_are_even_and_redraws_repeat_no_neighbour(void **state)
{
    (void)state;
    enum { DRAWS = 1 << 16 };
    uint64_t n = (UINT64_C(1) << 63) + 1, again = 0, thirds[3] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        uint64_t answer = errand__random_below(9, APPLICATION, 9, i, n);
        assert_true(answer < n);
        thirds[answer / (n / 3 + 1)]++;
        /* The plain answer of this ordinal and of the next ones. */
        bool plain = false;
        for (uint64_t near = 0; near < 4; near++) {
            uint64_t drawn = errand__random_draw(9, APPLICATION, 9, i + near);
            uint64_t scaled = (uint64_t)(((wide)drawn * n) >> 64);
            if (near == 0)
                plain = answer == scaled;
            else
                assert_int_not_equal(answer, scaled);
        }
        again += !plain;
    }
    assert_in_range(again, DRAWS * 48 / 100, DRAWS * 52 / 100);
    for (int i = 0; i < 3; i++)
        assert_in_range(thirds[i], DRAWS * 32 / 100, DRAWS * 35 / 100);
    assert_int_equal(errand__random_below(1, APPLICATION, 1, 1, 1), 0);
}

/* Multiply-shift alone, with n = 3 * 2^62, would give one number in three twice as
 * often. */
static void
remainders_of_large_ranges_are_even(void **state)
{
    (void)state;
    uint64_t n = UINT64_C(3) << 62, counts[3] = {0};
    for (uint64_t i = 0; i < 30000; i++)
        counts[errand__random_below(4, APPLICATION, 4, i, n) % 3]++;
    for (int i = 0; i < 3; i++)
        assert_in_range(counts[i], 9500, 10500);
}

static int
by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void
keys_differ_and_are_never_zero(void **state)
{
    (void)state;
    enum { PARENTS = 40, ORDINALS = 100, LABELS = 4 };
    static uint64_t keys[PARENTS * ORDINALS * (LABELS + 1)];
    const char *labels[LABELS] = {"", "a", "ab", "b"};
    size_t count = 0;
    for (uint64_t parent = 0; parent < PARENTS; parent++) {
        for (uint64_t ordinal = 0; ordinal < ORDINALS; ordinal++) {
            for (int label = 0; label < LABELS; label++)
                keys[count++] = errand__key_child(parent, labels[label], ordinal);
            keys[count++] = errand__key_operation(parent, ordinal);
        }
    }
    qsort(keys, count, sizeof keys[0], by_value);
    assert_int_not_equal(keys[0], 0);
    for (size_t i = 1; i < count; i++)
        assert_int_not_equal(keys[i - 1], keys[i]);
}

static void
labels_count_by_content_and_none_is_empty(void **state)
{
    (void)state;
    char copy[] = "label";
    assert_int_equal(errand__key_child(1, copy, 0), errand__key_child(1, "label", 0));
    assert_int_equal(errand__key_child(1, NULL, 0), errand__key_child(1, "", 0));
    copy[4]++;
    assert_int_not_equal(errand__key_child(1, copy, 0), errand__key_child(1, "label", 0));
}

static void
mix_depends_on_every_byte_and_on_the_order(void **state)
{
    (void)state;
    unsigned char bytes[300] = {0};
    for (size_t size = 0; size < sizeof bytes; size += 13) {
        uint64_t mixed = errand__mix_bytes(1, bytes, size);
        assert_int_not_equal(mixed, 1);
        assert_int_not_equal(mixed, errand__mix_bytes(1, bytes, size + 1));
        for (size_t i = 0; i < size; i++) {
            bytes[i] ^= 1;
            assert_int_not_equal(errand__mix_bytes(1, bytes, size), mixed);
            bytes[i] ^= 1;
        }
    }
    uint64_t ab = errand__mix_bytes(errand__mix_bytes(0, "a", 1), "b", 1);
    uint64_t ba = errand__mix_bytes(errand__mix_bytes(0, "b", 1), "a", 1);
    assert_int_not_equal(ab, ba);
    assert_int_equal(errand__mix_bytes(3, NULL, 0), errand__mix_bytes(3, "", 0));
}

static void
entropy_is_not_zero_and_differs(void **state)
{
    (void)state;
    uint64_t first = errand__random_entropy();
    assert_int_not_equal(first, 0);
    assert_int_not_equal(first, errand__random_entropy());
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_and_keys_are_the_same_for_ever),
        cmocka_unit_test(every_bit_of_every_argument_counts),
        cmocka_unit_test(draws_are_even_along_each_argument),
        cmocka_unit_test(small_ranges_are_even),
        cmocka_unit_test(large_ranges_are_even_and_redraws_repeat_no_neighbour),
        cmocka_unit_test(remainders_of_large_ranges_are_even),
        cmocka_unit_test(keys_differ_and_are_never_zero),
        cmocka_unit_test(labels_count_by_content_and_none_is_empty),
        cmocka_unit_test(mix_depends_on_every_byte_and_on_the_order),
        cmocka_unit_test(entropy_is_not_zero_and_differs),
    };
    return test_group("core/random", tests, NULL, NULL);
}
