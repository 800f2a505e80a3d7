/* SPDX-License-Identifier: MIT */
/* isolation: calls in another process: errand's sandbox, locked down as by default, beside a process for
 * each call, processes behind sockets, and bare pairs of words.  A call is described once; each is
 * a spec, an operation, a completion, and a result that was copied and checked. */
#include "isolation.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRIPS_MAX = 40000, REST_NS = 3000000, PEERS = 5 };
enum { FORK = 1, SOCKETS = 2, FUTEXES = 3, SPINS = 4 };
typedef enum shape {
    BUSY = 0,   /* one call after the other */
    PARKED = 1, /* 3 ms of rest before each, so that both sides sleep */
    WINDOW = 2, /* many in flight */
    ECHO = 3,
    REFILL = 4,
    CRASH = 5, /* a call that ends its process, and the next one */
    AGAIN = 6  /* as REFILL, of the one that has just taken a dead one's place */
} shape;

static const isolation_peer *const peers[PEERS] = {&isolation_errand, &isolation_fork,
                                                   &isolation_sockets, &isolation_futexes,
                                                   &isolation_spins};

/* What one config needs of a peer; the peer has it. */
typedef struct measured {
    const isolation_peer *peer;
    const bench_config *config;
    bench_sample *out;
    void *world;
    uint64_t *stamps;
} measured;

static void
put_times(measured *self, uint64_t count)
{
    double per_ns = bench_cycles_per_ns();
    bench_sort(self->stamps, count);
    self->out->values[0] = bench_percentile(self->stamps, count, 0.5) / per_ns;
    self->out->values[1] = bench_percentile(self->stamps, count, 0.99) / per_ns;
    self->out->values[2] = bench_percentile(self->stamps, count, 0.1) / per_ns;
}

static void
sample_trips(measured *self)
{
    const struct timespec rest = {.tv_nsec = REST_NS};
    bool rests = self->config->variant == PARKED;
    uint64_t count = 0, answer, measure = self->config->measure_ms * (uint64_t)1000000;
    uint64_t warm = bench_now() + measure / 5, until = warm + measure;
    for (uint64_t i = 0; count < TRIPS_MAX; i++) {
        uint64_t now = bench_now();
        if (now >= until && count > 0)
            break;
        if (rests)
            nanosleep(&rest, NULL);
        uint64_t start = bench_cycles();
        if (!self->peer->trip(self->world, i, &answer, self->out->fault.text))
            return;
        if (now >= warm)
            self->stamps[count++] = bench_cycles() - start;
        self->out->fault.wrong += answer != isolation_turn(i);
        self->out->checked++;
    }
    put_times(self, count);
}

static void
sample_window(measured *self)
{
    uint64_t total = 20000;
    char *text = self->out->fault.text;
    if (self->peer->pump(self->world, total / 4, text) != total / 4)
        return; /* nothing is checked: an error */
    uint64_t start = bench_now();
    uint64_t right = self->peer->pump(self->world, total, text);
    self->out->values[0] = (double)right * 1000 / (double)(bench_now() - start);
    self->out->checked = right;
    self->out->fault.lost = total - right;
}

static void
sample_echo(measured *self)
{
    size_t size = self->config->plan.in_flight * (size_t)(1 << 20);
    unsigned char *bytes = malloc(size), *back = malloc(size);
    uint64_t count = 0, until = 0;
    if (bytes == NULL || back == NULL)
        return;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    memset(back, 0, size);
    for (uint64_t i = 0; count < 3 || bench_now() < until; i++) {
        bytes[i % size] ^= 0x55;
        uint64_t start = bench_cycles();
        if (!self->peer->echo(self->world, bytes, size, back, self->out->fault.text))
            return;
        if (i > 0) /* the first warms up */
            self->stamps[count++] = bench_cycles() - start;
        else
            until = bench_now() + self->config->measure_ms * (uint64_t)1000000;
        self->out->fault.wrong += memcmp(bytes, back, size) != 0;
        self->out->checked++;
        if (count == TRIPS_MAX)
            break;
    }
    put_times(self, count);
    self->out->values[0] /= 1000;
}

static void
sample_refill(measured *self)
{
    bool again = self->config->variant == AGAIN;
    const struct timespec rest = {.tv_nsec = 20000000}; /* all workers are there again */
    uint64_t ns, count = 0;
    for (int i = 0; i < 25; i++) {
        nanosleep(&rest, NULL);
        for (int time = 0; time <= again; time++)
            if (!self->peer->refill(self->world, &ns, self->out->fault.text))
                return;
        if (i >= 5)
            self->stamps[count++] = (uint64_t)((double)ns * bench_cycles_per_ns());
        self->out->checked++;
    }
    put_times(self, count);
    self->out->values[0] /= 1000;
}

static void
sample_crash(measured *self)
{
    uint64_t answer, count = 0;
    const struct timespec rest = {.tv_nsec = 20000000}; /* all workers are there again */
    for (uint64_t i = 0; i < 25; i++) {
        nanosleep(&rest, NULL);
        if (!self->peer->trip(self->world, i, &answer, self->out->fault.text))
            return;
        uint64_t start = bench_cycles();
        if (!self->peer->crash(self->world, self->out->fault.text) ||
            !self->peer->trip(self->world, i, &answer, self->out->fault.text))
            return;
        if (i >= 5)
            self->stamps[count++] = bench_cycles() - start;
        self->out->fault.wrong += answer != isolation_turn(i);
        self->out->checked++;
    }
    put_times(self, count);
    self->out->values[0] /= 1000;
}

static bool
peer_has(const isolation_peer *peer, uint32_t variant)
{
    return variant == WINDOW                       ? peer->pump != NULL
           : variant == ECHO                       ? peer->echo != NULL
           : variant == REFILL || variant == AGAIN ? peer->refill != NULL
           : variant == CRASH                      ? peer->crash != NULL
                                                   : true;
}

static const struct { /* by shape */
    void (*run)(measured *self);
    const char *unit; /* of values[0] */
    bool more_is_better;
} kinds[] = {
    [BUSY] = {sample_trips, "ns", false},    [PARKED] = {sample_trips, "ns", false},
    [WINDOW] = {sample_window, "M/s", true}, [ECHO] = {sample_echo, "us", false},
    [REFILL] = {sample_refill, "us", false}, [CRASH] = {sample_crash, "us", false},
    [AGAIN] = {sample_refill, "us", false},
};

static void
sample(const bench_peer *peer, const bench_config *config, bench_sample *out)
{
    measured self = {.config = config, .out = out};
    isolation_plan plan = {.workers = config->plan.workers,
                           .in_flight = config->plan.in_flight,
                           .apart = config->apart};
    for (uint32_t p = 0; p < PEERS; p++) {
        if (peer == bench_peers[p])
            self.peer = peers[p];
    }
    if (!peer_has(self.peer, config->variant) ||
        (self.peer == &isolation_spins && config->processors < 2)) {
        out->absent = true;
        return;
    }
    if (config->variant == ECHO)
        plan.bytes = config->plan.in_flight * (size_t)(1 << 20);
    self.stamps = calloc(TRIPS_MAX, sizeof *self.stamps);
    self.world = self.stamps == NULL ? NULL : self.peer->open(&plan, out->fault.text);
    if (self.world != NULL)
        kinds[config->variant].run(&self);
}

static const bench_config configs[] = {
    {"trip, busy", {.workers = 1, .in_flight = 1}, 2, 0, 100, true, BUSY},
    {"trip, parked", {.workers = 1, .in_flight = 1}, 2, 0, 400, true, PARKED},
    {"trip, busy", {.workers = 1, .in_flight = 1}, 1, 0, 100, false, BUSY},
    {"trip, parked", {.workers = 1, .in_flight = 1}, 1, 0, 400, false, PARKED},
    {"64 in flight", {.workers = 2, .in_flight = 64}, 2, 0, 0, false, WINDOW},
    {"echo, MiB in flight", {.workers = 1, .in_flight = 1}, 2, 0, 100, false, ECHO},
    {"echo, MiB in flight", {.workers = 1, .in_flight = 64}, 2, 0, 100, false, ECHO},
    {"worker dies, next ready", {.workers = 1, .in_flight = 1}, 2, 0, 0, false, REFILL},
    {"it dies, too, next ready", {.workers = 1, .in_flight = 1}, 2, 0, 0, false, AGAIN},
    {"crash, next answered", {.workers = 1, .in_flight = 1}, 2, 0, 0, false, CRASH},
    {"crash, next answered", {.workers = 2, .in_flight = 1}, 2, 0, 0, false, CRASH},
};
enum { CONFIGS = sizeof configs / sizeof *configs };

static void
aim(bench_row *row, uint32_t config, uint32_t peer)
{
    switch (configs[config].variant) {
    case BUSY:
        if (peer == SPINS)
            bench_row_aim(row, BENCH_AIM_VALUE, 1000);
        if (peer == FORK)
            bench_row_aim(row, BENCH_AIM_RATIO, configs[config].apart ? 100 : 20);
        break;
    case PARKED:
        if (peer == FUTEXES)
            bench_row_aim(row, BENCH_AIM_RATIO, 1 / 1.2);
        break;
    case WINDOW:
    case ECHO:
        break;
    case CRASH: /* with one more worker than calls no start is waited for */
        if (configs[config].plan.workers > configs[config].plan.in_flight)
            bench_row_aim(row, BENCH_AIM_VALUE, 1500);
        break;
    case REFILL:
        bench_row_aim(row, BENCH_AIM_VALUE, 1500);
        /* fall through */
    case AGAIN:
        snprintf(row->peer, sizeof row->peer, "posix_spawn of true");
        break;
    default:
        break;
    }
}

/* What a machine that does other things as well still shows. */
static void
add_tenth(bench_report *report, const bench_pairing *median)
{
    bench_pairing pairing = *median;
    pairing.value = 2;
    bench_row *row =
        bench_report_pair(report, "isolation", "trip, busy, 10th pct", "ns", &pairing);
    if (row != NULL)
        snprintf(row->peer, sizeof row->peer, "%s", peers[pairing.peer]->name);
}

void
bench_case_isolation(const bench_options *options, bench_report *report)
{
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 3 : 9;
    bench_table *table =
        bench_table_fill("isolation", configs, CONFIGS, samples, sample, NULL, 0);
    for (uint32_t c = 0; c < CONFIGS; c++) {
        uint32_t variant = configs[c].variant;
        for (uint32_t p = 1; p < PEERS; p++) {
            bench_pairing pairing = {.table = table,
                                     .errand_config = c,
                                     .peer_config = c,
                                     .peer = p,
                                     .more_is_better = kinds[variant].more_is_better};
            bench_row *row = bench_report_pair(report, "isolation", configs[c].work,
                                               kinds[variant].unit, &pairing);
            if (row == NULL)
                continue;
            snprintf(row->peer, sizeof row->peer, "%s", peers[p]->name);
            aim(row, c, p);
            if (variant == BUSY && p >= FUTEXES)
                add_tenth(report, &pairing);
        }
    }
    bench_table_destroy(table);
}
