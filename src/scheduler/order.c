/* SPDX-License-Identifier: MIT */
/* Design notes: what is chosen about an operation, all of it when it is submitted.
 *
 * Each choice hangs on the operation's key: one operation more or less anywhere else shifts none
 * of them (D52).  The arithmetic is in whole numbers, so that a seed
 * means the same on every machine; 2^x is a polynomial of third degree, off by little more
 * than 1 in 10^4, which no one can tell from the true curve of a latency. */
#include "scheduler/scheduler.h"

#define ONE_Q31 (UINT64_C(1) << 31)
#define TWO_32  (UINT64_C(1) << 32)

static size_t latency_place(const errand__scheduler *scheduler, uint32_t kind);
static uint64_t draw_latency(uint64_t draw, uint64_t estimate);
static uint64_t fraction_of(uint64_t whole, uint64_t fraction);
static void follow_domain(errand__extra *extra);

errand_status
errand__latency_set(errand__scheduler *scheduler, uint32_t kind, uint64_t estimate)
{
    size_t place = latency_place(scheduler, kind);
    errand__latency *latencies = scheduler->latencies;

    if (place < scheduler->latency_count && latencies[place].kind == kind) {
        latencies[place].estimate = estimate;
        return ERRAND_OK;
    }
    if (scheduler->latency_count == scheduler->latency_room) {
        size_t room = scheduler->latency_room == 0 ? 8 : scheduler->latency_room * 2;

        latencies = errand__mem_grow(scheduler->allocator, latencies,
                                     scheduler->latency_room * sizeof *latencies,
                                     room * sizeof *latencies);
        if (latencies == NULL)
            return ERRAND_ENOMEM;
        scheduler->latencies = latencies;
        scheduler->latency_room = room;
    }
    for (size_t i = scheduler->latency_count++; i > place; i--)
        latencies[i] = latencies[i - 1];
    latencies[place] = (errand__latency){.kind = kind, .estimate = estimate};
    return ERRAND_OK;
}

uint64_t
errand__latency_of(const errand__scheduler *scheduler, uint32_t kind)
{
    size_t place = latency_place(scheduler, kind);

    if (place < scheduler->latency_count && scheduler->latencies[place].kind == kind)
        return scheduler->latencies[place].estimate;
    return ERRAND__LATENCY_DEFAULT;
}

bool
errand__order_reserve(errand__scheduler *scheduler, size_t count)
{
    return errand__dues_reserve(&scheduler->due, count) &&
           (scheduler->order != ERRAND_ORDER_PACED ||
            errand__dues_reserve(&scheduler->begins, count));
}

void
errand__order_draw(errand__scheduler *scheduler, errand__extra *extra, uint64_t key,
                   uint32_t kind)
{
    const errand__operation_choices chosen = errand__choose_operation(scheduler, key);
    uint64_t now = scheduler->now, latency;

    latency = draw_latency(chosen.latency, errand__latency_of(scheduler, kind));
    if (latency > UINT64_MAX - 1 - now) /* at the end of time it is due just before it */
        latency = UINT64_MAX - 1 - now;
    extra->key = key;
    extra->begin = now + fraction_of(latency + 1, chosen.begin);
    extra->due = now + latency;
    extra->tie = chosen.tie;
    extra->fate = chosen.fate;
    if (extra->domain != NULL)
        follow_domain(extra);
    errand__dues_insert(&scheduler->due, &extra->due_entry);
    if (scheduler->order != ERRAND_ORDER_PACED || extra->begin <= now)
        return;
    extra->begin_entry.major = extra->begin;
    extra->begin_entry.minor = extra->tie;
    extra->begin_entry.last = key;
    errand__dues_insert(&scheduler->begins, &extra->begin_entry);
}

void
errand__order_forget(errand__scheduler *scheduler, errand__extra *extra)
{
    errand__dues_remove(&scheduler->due, &extra->due_entry);
    errand__dues_remove(&scheduler->begins, &extra->begin_entry);
}

uint64_t
errand__order_next(errand__scheduler *scheduler)
{
    return errand__dues_next(&scheduler->due);
}

/* Behind the last of its domain: so delivery is in the order of submission, and what a job of it
 * takes in virtual time overlaps with no other's. */
static void
follow_domain(errand__extra *extra)
{
    errand__domain *domain = extra->domain;

    if (extra->due < domain->due)
        extra->due = domain->due;
    if (extra->due == domain->due && extra->tie <= domain->tie) {
        if (domain->tie == UINT64_MAX && extra->due < UINT64_MAX - 1)
            extra->due++; /* no tie is left there */
        else
            extra->tie = domain->tie + (domain->tie != UINT64_MAX);
    }
    if (extra->begin < domain->due)
        extra->begin = domain->due;
    domain->due = extra->due;
    domain->tie = extra->tie;
}

/* Where the kind is or belongs. */
static size_t
latency_place(const errand__scheduler *scheduler, uint32_t kind)
{
    size_t low = 0, high = scheduler->latency_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (scheduler->latencies[middle].kind < kind)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Log-uniform in [estimate / 2, estimate * 2]: estimate times 2^x, x uniform in [-1, 1), from 32
 * bits: 0 is the estimate itself. */
static uint64_t
draw_latency(uint64_t draw, uint64_t estimate)
{
    uint64_t fraction = draw & (ONE_Q31 - 1); /* of x, in 2^-31 */
    uint64_t power = UINT64_C(167816342);     /* 0.0781456 */
    uint64_t latency;

    power = UINT64_C(485704047) + ((power * fraction) >> 31);  /* 0.2261736 */
    power = UINT64_C(1493696975) + ((power * fraction) >> 31); /* 0.6955569 */
    power = ONE_Q31 + ((power * fraction) >> 31);              /* 2^fraction, in 2^-31 */
    latency = (estimate >> 31) * power + (((estimate & (ONE_Q31 - 1)) * power) >> 31);
    if ((draw >> 31) != 0) /* x in [-1, 0): the same curve, half as high */
        latency -= latency / 2;
    return latency == 0 ? 1 : latency;
}

/* whole times fraction / 2^32, rounded down. */
static uint64_t
fraction_of(uint64_t whole, uint64_t fraction)
{
    return (whole >> 32) * fraction + (((whole & (TWO_32 - 1)) * fraction) >> 32);
}
