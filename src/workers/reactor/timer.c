/* SPDX-License-Identifier: MIT */
/* Design notes: a wheel of wheels.
 *
 * Time is counted in ticks of 16.384 us.  A timer stands in the level of the highest group of six
 * bits in which its tick differs from now's, in the slot of that group: so all levels below have
 * only what comes before it, and the next event is the first occupied slot of the lowest level
 * that has any.  Arming and taking out are a few instructions however many there are; one that is
 * far away is moved at most once per level.
 *
 * A timer never fires before its time: its tick is rounded up. */
#include "workers/reactor/reactor.h"

#define TICK_SHIFT 14
#define GROUP      6

static uint64_t
tick_of(const errand_io *io)
{
    uint64_t tick = io->until_ns >> TICK_SHIFT;

    return (tick << TICK_SHIFT) == io->until_ns ? tick : tick + 1;
}

void
errand__wheel_init(errand__wheel *wheel, uint64_t now_ns)
{
    wheel->now = now_ns >> TICK_SHIFT;
    wheel->count = 0;
    for (int level = 0; level < ERRAND__WHEEL_LEVELS; level++) {
        wheel->occupied[level] = 0;
        for (int slot = 0; slot < ERRAND__WHEEL_SLOTS; slot++)
            errand__list_init(&wheel->slots[level][slot]);
    }
}

static void
place(errand__wheel *wheel, errand_io *io, uint64_t tick)
{
    uint64_t differs = tick ^ wheel->now;
    unsigned level =
        differs == 0 ? 0 : (63U - (unsigned)__builtin_clzll(differs)) / GROUP;
    unsigned slot = (unsigned)(tick >> (level * GROUP)) & (ERRAND__WHEEL_SLOTS - 1);

    errand__list_append(&wheel->slots[level][slot], &errand__request_of(io)->link);
    wheel->occupied[level] |= UINT64_C(1) << slot;
}

void
errand__wheel_insert(errand__wheel *wheel, errand_io *io)
{
    uint64_t tick = tick_of(io);

    place(wheel, io, tick < wheel->now ? wheel->now : tick);
    errand__request_of(io)->state |= ERRAND__IO_TIMED;
    wheel->count++;
}

static void
unlink_from(errand__wheel *wheel, errand__link *link)
{
    errand__link *head = link->next == link->previous ? link->next : NULL;

    errand__list_unlink(link);
    if (head != NULL) { /* it was alone: that is its slot */
        size_t at = (size_t)(head - &wheel->slots[0][0]);

        wheel->occupied[at / ERRAND__WHEEL_SLOTS] &=
            ~(UINT64_C(1) << at % ERRAND__WHEEL_SLOTS);
    }
}

void
errand__wheel_remove(errand__wheel *wheel, errand_io *io)
{
    errand__request *request = errand__request_of(io);

    unlink_from(wheel, &request->link);
    request->state &= ~(uintptr_t)ERRAND__IO_TIMED;
    wheel->count--;
}

/* The first occupied slot, and the tick at which it begins; false: there is none. */
static bool
first_slot(const errand__wheel *wheel, unsigned *out_level, unsigned *out_slot,
           uint64_t *out_tick)
{
    for (unsigned level = 0; level < ERRAND__WHEEL_LEVELS; level++) {
        unsigned shift = level * GROUP, above = shift + GROUP;

        if (wheel->occupied[level] == 0)
            continue;
        *out_level = level;
        *out_slot = (unsigned)__builtin_ctzll(wheel->occupied[level]);
        *out_tick = (wheel->now >> above << above) | (uint64_t)*out_slot << shift;
        return true;
    }
    return false;
}

uint64_t
errand__wheel_next(const errand__wheel *wheel)
{
    unsigned level, slot;
    uint64_t tick;

    if (wheel->count == 0 || !first_slot(wheel, &level, &slot, &tick))
        return UINT64_MAX;
    return tick >= UINT64_MAX >> TICK_SHIFT ? UINT64_MAX : tick << TICK_SHIFT;
}

/* Many timers lie far apart: what the next ones need is fetched while this one is served, of the next
 * the record, of the one after it the waker, of the third the request. */
static void
fetch_next(const errand__link *head, const errand__link *link)
{
    const errand__link *next = link->next;
    const errand_waker *waker;

    if (next == head)
        return;
    waker = errand__request_of(errand__request_io((errand__link *)next))->waker;
    if (waker != NULL && waker->job.record != NULL) {
        errand__prefetch_own(waker->job.record);
        errand__prefetch_own((const char *)waker->job.record + ERRAND_LINE);
        errand__prefetch_own((const char *)waker->job.record + 2 * ERRAND_LINE);
    }
    next = next->next;
    if (next == head)
        return;
    errand__prefetch_own(next->next);
    waker = errand__request_of(errand__request_io((errand__link *)next))->waker;
    if (waker == NULL)
        return;
    errand__prefetch_own(waker);
    errand__prefetch_own((const char *)waker + ERRAND_LINE);
    errand__prefetch_own((const char *)waker + 2 * ERRAND_LINE);
}

errand_io *
errand__wheel_take(errand__wheel *wheel, uint64_t now_ns)
{
    uint64_t now = now_ns >> TICK_SHIFT, tick;
    unsigned level, slot;

    while (wheel->count != 0 && first_slot(wheel, &level, &slot, &tick) && tick <= now) {
        errand__link *head = &wheel->slots[level][slot];
        errand__link *first = head->next;

        if (wheel->now < tick)
            wheel->now = tick;
        if (level == 0) {
            errand_io *io = errand__request_io(first);

            fetch_next(head, first);
            errand__wheel_remove(wheel, io);
            return io;
        }
        while (!errand__list_empty(head)) { /* nearer now: into the levels below */
            errand_io *io = errand__request_io(head->next);

            errand__list_unlink(head->next);
            place(wheel, io, tick_of(io) < wheel->now ? wheel->now : tick_of(io));
        }
        wheel->occupied[level] &= ~(UINT64_C(1) << slot);
    }
    if (wheel->now < now)
        wheel->now = now;
    return NULL;
}
