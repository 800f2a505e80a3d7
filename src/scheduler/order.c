/* SPDX-License-Identifier: MIT */
/* Design notes: what the seed decides about an operation, all of it when it is submitted.
 *
 * Each draw is a function of (seed, stream, the operation's key): one operation more or less
 * anywhere else shifts none of them (D52).  The arithmetic is in whole numbers, so that a seed
 * means the same on every machine; 2^x is a polynomial of third degree, off by little more
 * than 1 in 10^4, which no one can tell from the true curve of a latency. */
#include "scheduler/scheduler.h"

#define ONE_Q31 (UINT64_C(1) << 31)

static size_t latency_place(const errand__scheduler *scheduler, uint32_t kind);
static uint64_t draw_latency(uint64_t draw, uint64_t estimate);

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
    return errand__heap_reserve(&scheduler->due, count);
}

void
errand__order_draw(errand__scheduler *scheduler, errand__extra *extra, uint64_t key,
                   uint32_t kind)
{
    uint64_t seed = scheduler->seed, now = scheduler->now, latency, draw;

    draw = errand__random_draw(seed, ERRAND__STREAM_LATENCY, key, 0);
    latency = draw_latency(draw, errand__latency_of(scheduler, kind));
    if (latency > UINT64_MAX - 1 - now) /* at the end of time it is due just before it */
        latency = UINT64_MAX - 1 - now;
    extra->key = key;
    extra->begin =
        now + errand__random_below(seed, ERRAND__STREAM_BEGIN, key, 0, latency + 1);
    extra->due = now + latency;
    extra->tie = errand__random_draw(seed, ERRAND__STREAM_TIE, key, 0);
    extra->fate = errand__random_draw(seed, ERRAND__STREAM_FATE, key, 0);
    extra->due_entry.major = extra->due;
    extra->due_entry.minor = extra->tie;
    extra->due_entry.last = key;
    errand__heap_insert(&scheduler->due, &extra->due_entry);
}

void
errand__order_forget(errand__scheduler *scheduler, errand__extra *extra)
{
    errand__heap_remove(&scheduler->due, &extra->due_entry);
}

uint64_t
errand__order_next(const errand__scheduler *scheduler)
{
    return errand__heap_next(&scheduler->due);
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

/* Log-uniform in [estimate / 2, estimate * 2]: estimate times 2^x, x uniform in [-1, 1). */
static uint64_t
draw_latency(uint64_t draw, uint64_t estimate)
{
    uint64_t fraction = (draw >> 32) & (ONE_Q31 - 1); /* of x, in 2^-31 */
    uint64_t power = UINT64_C(167816342);             /* 0.0781456 */
    uint64_t latency;

    power = UINT64_C(485704047) + ((power * fraction) >> 31);  /* 0.2261736 */
    power = UINT64_C(1493696975) + ((power * fraction) >> 31); /* 0.6955569 */
    power = ONE_Q31 + ((power * fraction) >> 31);              /* 2^fraction, in 2^-31 */
    latency = (estimate >> 31) * power + (((estimate & (ONE_Q31 - 1)) * power) >> 31);
    if ((draw >> 63) != 0) /* x in [-1, 0): the same curve, half as high */
        latency -= latency / 2;
    return latency == 0 ? 1 : latency;
}
