/* SPDX-License-Identifier: MIT */
/* Goal: the wheel fires each timer once, not before its time and at most a tick late, however far
 * away it was and in whatever order timers were armed and taken out.
 * Method: random timers against an array that is searched. */
#include <stdlib.h>
#include <string.h>
#include "core/core.h"
#include "group.h"
#include "workers/reactor/reactor.h"

enum { TIMERS = 500, TICK = 1 << 14 };

typedef struct armed {
    errand_io io;
    bool is_armed;
} armed;

static uint64_t
draw(uint64_t *ordinal)
{
    return errand__random_draw(11, ERRAND__STREAM_APPLICATION, 5, (*ordinal)++);
}

static uint64_t
earliest(const armed *timers)
{
    uint64_t first = UINT64_MAX;

    for (int i = 0; i < TIMERS; i++)
        if (timers[i].is_armed && timers[i].io.until_ns < first)
            first = timers[i].io.until_ns;
    return first;
}

static void
move_to(errand__wheel *wheel, armed *timers, uint64_t now)
{
    errand_io *io;

    while ((io = errand__wheel_take(wheel, now)) != NULL) {
        armed *self = (armed *)(void *)io;

        assert_true(self->is_armed);
        assert_true(io->until_ns <= now);
        self->is_armed = false;
    }
    for (int i = 0; i < TIMERS; i++)
        assert_false(timers[i].is_armed && timers[i].io.until_ns + TICK <= now);
}

static void
timers_fire_once_and_in_time(void **state)
{
    (void)state;
    static errand__wheel wheel;
    static armed timers[TIMERS];
    uint64_t now = UINT64_C(123456789012), ordinal = 0;

    errand__wheel_init(&wheel, now);
    for (uint64_t round = 0; round < 200000; round++) {
        armed *one = &timers[draw(&ordinal) % TIMERS];
        uint64_t what = draw(&ordinal) % 8;

        if (what < 4 && !one->is_armed) {
            uint64_t far = draw(&ordinal) >> (draw(&ordinal) % 60 + 4);

            memset(&one->io, 0, sizeof one->io);
            one->io.until_ns = far % 16 == 0 && now > 100000 ? now - 100000 : now + far;
            if (one->io.until_ns < now && far > UINT64_MAX / 2)
                one->io.until_ns = UINT64_MAX;
            errand__wheel_insert(&wheel, &one->io);
            one->is_armed = true;
        } else if (what == 4 && one->is_armed) {
            errand__wheel_remove(&wheel, &one->io);
            one->is_armed = false;
        } else if (what >= 6) {
            uint64_t next = errand__wheel_next(&wheel), first = earliest(timers);

            /* It may be asked too early, never too late. */
            if (first < now)
                first = now;
            assert_true(first > UINT64_MAX - 2 * TICK || next < first + 2 * TICK);
            if (what == 7 && next != UINT64_MAX && next > now)
                now = next;
            else
                now += draw(&ordinal) >> (draw(&ordinal) % 30 + 34);
            move_to(&wheel, timers, now);
        }
    }
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].is_armed)
            errand__wheel_remove(&wheel, &timers[i].io);
    assert_int_equal(wheel.count, 0);
    assert_true(errand__wheel_next(&wheel) == UINT64_MAX);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_once_and_in_time),
    };
    return test_group("workers/reactor/wheel", tests, NULL, NULL);
}
