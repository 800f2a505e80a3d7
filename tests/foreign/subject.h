/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_FOREIGN_SUBJECT_H
#define ERRAND_TESTS_FOREIGN_SUBJECT_H
/* subject: what subject.c offers; the tests use the structures alone. */
#include <stdbool.h>
#include <stdint.h>

struct pair {
    uint16_t x, y;
};
struct nested { /* {i8, [3]f64, [2]{u16, u16}} */
    int8_t tag;
    double numbers[3];
    struct pair pairs[2];
};
struct small { /* {i32, i32} */
    int32_t a, b;
};
struct floats { /* {f32, f32} */
    float x, y;
};
struct both { /* {i64, f64} */
    int64_t whole;
    double part;
};

double last_register(float first, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e,
                     struct both value);
int8_t give_i8(void);
uint16_t give_u16(void);
bool give_true(void);
int64_t widen_all(int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint32_t f);
double mixed(int8_t a, double b, float c, uint64_t d, int16_t e, float f, double g,
             int32_t h, uint8_t i, double j, int64_t k, uint32_t l);
struct nested turn(struct nested value, int32_t by);
struct small small_turn(struct small value);
struct floats floats_turn(struct floats value);
uint64_t count_bytes(const char *text, const void *bytes, uint64_t size);
int32_t fill(unsigned char *out, uint64_t size, uint8_t with);
void add_one(unsigned char *bytes, uint64_t size);
const char *name_of(int32_t number);
int32_t fail_with(int32_t error);
int32_t leave_errno(void);
double sum_of(int32_t count, ...);
double sum_doubles(int32_t count, ...);
int32_t call_with(int32_t (*callback)(int32_t, const char *), int32_t number);
double call_wide(double (*callback)(int8_t, uint16_t, float, double, int64_t,
                                    struct nested));
uint8_t call_void(void (*callback)(void));
int32_t keep_callback(int32_t (*callback)(int32_t, const char *));
int32_t call_kept(int32_t number);
int32_t call_from_thread(int32_t (*callback)(int32_t, const char *), int32_t number);
int32_t wait_for_byte(_Atomic unsigned char *bytes);

#endif
