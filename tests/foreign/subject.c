/* SPDX-License-Identifier: MIT */
/* subject: a library of functions that tests call by description alone. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "subject.h"

/* ---- every width ---------------------------------------------------------------------- */
#define SAME(name, type)                                                                 \
    type same_##name(type value);                                                        \
    type same_##name(type value)                                                         \
    {                                                                                    \
        return value;                                                                    \
    }
SAME(bool, bool)
SAME(i8, int8_t)
SAME(u8, uint8_t)
SAME(i16, int16_t)
SAME(u16, uint16_t)
SAME(i32, int32_t)
SAME(u32, uint32_t)
SAME(i64, int64_t)
SAME(u64, uint64_t)
SAME(f32, float)
SAME(f64, double)
SAME(pointer, void *)

int8_t
give_i8(void)
{
    return -1;
}

uint16_t
give_u16(void)
{
    return 65535;
}

bool
give_true(void)
{
    return true;
}

/* The register's upper bits are as dirty as a caller may leave them. */
int64_t
widen_all(int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint32_t f)
{
    return (int64_t)a + b + c + d + e + f;
}

double
mixed(int8_t a, double b, float c, uint64_t d, int16_t e, float f, double g, int32_t h,
      uint8_t i, double j, int64_t k, uint32_t l)
{
    return a + 2 * b + 3 * (double)c + 4 * (double)d + 5 * e + 6 * (double)f + 7 * g +
           8.0 * h + 9 * i + 10 * j + 11 * (double)k + 12.0 * l;
}

/* ---- structures ------------------------------------------------------------------------- */
struct nested
turn(struct nested value, int32_t by)
{
    value.tag = (int8_t)(value.tag + by);
    for (int i = 0; i < 3; i++)
        value.numbers[i] = -value.numbers[i];
    for (int i = 0; i < 2; i++) {
        uint16_t x = value.pairs[i].x;
        value.pairs[i].x = value.pairs[i].y;
        value.pairs[i].y = x;
    }
    return value;
}

struct small
small_turn(struct small value)
{
    return (struct small){value.b, value.a};
}

struct floats
floats_turn(struct floats value)
{
    return (struct floats){value.y, value.x};
}

/* The structure's integer takes the last integer register. */
double
last_register(float first, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e,
              struct both value)
{
    return 2 * (double)first + (double)(a + b + c + d + e) + 3.0 * (double)value.whole +
           5 * value.part;
}

/* ---- memory --------------------------------------------------------------------------------- */
uint64_t
count_bytes(const char *text, const void *bytes, uint64_t size)
{
    const unsigned char *at = bytes;
    uint64_t sum = text == NULL ? 1000 : strlen(text);

    for (uint64_t i = 0; at != NULL && i < size; i++)
        sum += at[i];
    return sum;
}

int32_t
fill(unsigned char *out, uint64_t size, uint8_t with)
{
    for (uint64_t i = 0; i < size; i++) {
        if (out[i] != 0)
            return -1; /* it must be zeroed */
        out[i] = with;
    }
    return (int32_t)size;
}

void
add_one(unsigned char *bytes, uint64_t size)
{
    for (uint64_t i = 0; bytes != NULL && i < size; i++)
        bytes[i]++;
}

const char *
name_of(int32_t number)
{
    return number == 0 ? NULL : number == 1 ? "one" : "";
}

int32_t
fail_with(int32_t error)
{
    errno = error;
    return -1;
}

int32_t
leave_errno(void)
{
    return errno;
}

/* ---- variadic ---------------------------------------------------------------------------------- */
double
sum_of(int32_t count, ...)
{
    double sum = 0;
    va_list list;

    va_start(list, count);
    for (int32_t i = 0; i < count; i++)
        sum += i % 2 == 0 ? va_arg(list, int32_t) : va_arg(list, double);
    va_end(list);
    return sum;
}

double
sum_doubles(int32_t count, ...)
{
    double sum = 0;
    va_list list;

    va_start(list, count);
    for (int32_t i = 0; i < count; i++)
        sum = sum * 2 + va_arg(list, double);
    va_end(list);
    return sum;
}

/* ---- callbacks ------------------------------------------------------------------------------------ */
int32_t
call_with(int32_t (*callback)(int32_t, const char *), int32_t number)
{
    return callback == NULL ? -1 : callback(number, "text");
}

double
call_wide(double (*callback)(int8_t, uint16_t, float, double, int64_t, struct nested))
{
    struct nested value = {-3, {1, 2.5, -4}, {{7, 8}, {9, 10}}};

    return callback(-1, 65535, 1.5f, -0.25, INT64_MIN, value);
}

uint8_t
call_void(void (*callback)(void))
{
    callback();
    return 7;
}

static int32_t (*kept)(int32_t, const char *);

int32_t
keep_callback(int32_t (*callback)(int32_t, const char *))
{
    kept = callback;
    return 1;
}

int32_t
call_kept(int32_t number)
{
    return kept(number, "kept");
}

struct errand_for_thread {
    int32_t (*callback)(int32_t, const char *);
    int32_t number, answer;
};

static void *
thread_main(void *arg)
{
    struct errand_for_thread *self = arg;

    self->answer = self->callback(self->number, "thread");
    return NULL;
}

int32_t
call_from_thread(int32_t (*callback)(int32_t, const char *), int32_t number)
{
    struct errand_for_thread self = {callback, number, 0};
    pthread_t thread;

    if (pthread_create(&thread, NULL, thread_main, &self) != 0)
        return -1000;
    pthread_join(thread, NULL);
    return self.answer;
}

/* Waits until the byte is set; sets the second one first: "I am here". */
int32_t
wait_for_byte(_Atomic unsigned char *bytes)
{
    const struct timespec pause = {0, 1000000};

    atomic_store_explicit(&bytes[1], 1, memory_order_release);
    while (atomic_load_explicit(&bytes[0], memory_order_acquire) == 0)
        nanosleep(&pause, NULL);
    return atomic_load_explicit(&bytes[2], memory_order_relaxed);
}
