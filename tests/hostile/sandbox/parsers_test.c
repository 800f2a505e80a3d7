/* SPDX-License-Identifier: MIT */
/* Goal: what is wrong with the input of a parser is its caller's news alone: by the same descriptions on a
 * thread and in a sandbox.
 * Method: libpng and Expat where they are installed (else they are skipped by name), with inputs that are
 * right, cut, flipped and made up. */
#include <stdlib.h>
#include "tier.h"

/* ---- parsers of what comes from outside ------------------------------------------------------------------- */

static const unsigned char picture[] = {/* 1 x 1, grey */
                                        0x89, 'P',  'N',  'G',  '\r', '\n', 0x1a, '\n',
                                        0,    0,    0,    13,   'I',  'H',  'D',  'R',
                                        0,    0,    0,    1,    0,    0,    0,    1,
                                        8,    0,    0,    0,    0,    0x3a, 0x7e, 0x9b,
                                        0x55, 0,    0,    0,    10,   'I',  'D',  'A',
                                        'T',  0x78, 0x9c, 0x63, 0x60, 0,    0,    0,
                                        2,    0,    1,    0x48, 0xaf, 0xa4, 0x71, 0,
                                        0,    0,    0,    'I',  'E',  'N',  'D',  0xae,
                                        0x42, 0x60, 0x82};

static void
read_pictures(tier *self)
{
    struct {
        void *opaque;
        uint32_t version, width, height, format, flags, colours, error;
        char message[64];
    } image;
    unsigned char bytes[sizeof picture];
    uint64_t rounds = test_scaled(1000);
    unsigned seed = 3, good = 0;

    for (uint64_t i = 0; i < rounds; i++) {
        memcpy(bytes, picture, sizeof bytes);
        size_t size = sizeof bytes;
        if (i != 0)
            bytes[(unsigned)rand_r(&seed) % size] ^=
                (unsigned char)(1 << rand_r(&seed) % 8);
        if (i % 3 == 2)
            size = (unsigned)rand_r(&seed) % size;
        memset(&image, 0, sizeof image);
        image.version = 1;
        assert_int_equal(
            CALL(self, "libpng16.so.16",
                 "i32 png_image_begin_read_from_memory(inout bytes, bytes, u64)",
                 errand_ffi_inout(&image, sizeof image), errand_ffi_bytes(bytes, size),
                 errand_ffi_u(size)),
            ENDS_ODD);
        good += self->number != 0;
        memcpy(&image, self->out[0], sizeof image);
        if (i == 0)
            assert_true(image.width == 1 && image.height == 1);
        if (self->number == 0)
            assert_true(memchr(image.message, 0, sizeof image.message) != NULL);
    }
    assert_true(good != 0);
}

static void
pictures_that_are_damaged_are_refused(void **state)
{
    tier self;

    (void)state;
    if (!tier_installed("libpng16.so.16"))
        test_skip("libpng16.so.16 is not installed");
    tier_begin(&self, true, NULL); /* what it reads is lent to one call only */
    read_pictures(&self);
    tier_end(&self);
}

#define EXPAT  "libexpat.so.1"
#define CREATE "pointer XML_ParserCreate(pointer)"
#define PARSE  "i32 XML_Parse(pointer, bytes, i32, i32)"
#define FREE   "void XML_ParserFree(pointer)"
static const known expat[] = {
    {EXPAT, CREATE}, {EXPAT, PARSE}, {EXPAT, FREE}, {NULL, NULL}};

static int64_t
parse(tier *self, const char *text, size_t size)
{
    assert_int_equal(CALL(self, EXPAT, CREATE, errand_ffi_pointer(NULL)), ENDS_ODD);
    void *parser = (void *)(uintptr_t)self->number;
    assert_non_null(parser);
    assert_int_equal(CALL(self, EXPAT, PARSE, errand_ffi_pointer(parser),
                          errand_ffi_bytes(text, size), errand_ffi_i((int64_t)size),
                          errand_ffi_i(1)),
                     ENDS_ODD);
    int64_t status = self->number;
    assert_int_equal(CALL(self, EXPAT, FREE, errand_ffi_pointer(parser)), ENDS_ODD);
    return status;
}

static void
parse_documents(tier *self)
{
    static const char fine[] = "<a><b c='d'>text &amp; more</b></a>";
    static const char laughs[] =
        "<!DOCTYPE z [<!ENTITY a 'aaaaaaaaaaaaaaaaaaaa'><!ENTITY b "
        "'&a;&a;&a;&a;&a;&a;&a;&a;'>"
        "<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;'><!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;'>"
        "<!ENTITY e '&d;&d;&d;&d;&d;&d;&d;&d;'><!ENTITY f '&e;&e;&e;&e;&e;&e;&e;&e;'>"
        "<!ENTITY g '&f;&f;&f;&f;&f;&f;&f;&f;'><!ENTITY h '&g;&g;&g;&g;&g;&g;&g;&g;'>]>"
        "<z>&h;&h;&h;&h;</z>";
    char bytes[sizeof fine];
    unsigned seed = 5;

    assert_int_equal(parse(self, fine, sizeof fine - 1), 1);
    assert_int_equal(parse(self, laughs, sizeof laughs - 1), 0);
    for (uint64_t i = 0; i < test_scaled(300); i++) {
        memcpy(bytes, fine, sizeof bytes);
        bytes[(unsigned)rand_r(&seed) % (sizeof fine - 1)] = (char)rand_r(&seed);
        (void)parse(self, bytes, sizeof fine - 1 - (unsigned)rand_r(&seed) % 4);
    }
    assert_int_equal(parse(self, fine, sizeof fine - 1), 1);
}

static void
documents_that_are_damaged_are_refused(void **state)
{
    (void)state;
    if (!tier_installed(EXPAT))
        test_skip("libexpat.so.1 is not installed");
    tier_in_both(parse_documents, expat);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_that_are_damaged_are_refused),
        cmocka_unit_test(documents_that_are_damaged_are_refused),
    };

    return test_group("hostile/sandbox/parsers", tests, NULL, NULL);
}
