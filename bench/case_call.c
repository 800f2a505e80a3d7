/* SPDX-License-Identifier: MIT */
/* call: what a call that is described at run time costs, in one process, one after the other: directly,
 * by ffi_call on a cif that was prepared, and by errand's callee, from a request to a response.
 * Then the whole operation beside one with an empty job, in inline order and on a pool of threads.
 * This file alone looks into src/: no host sees a callee without its operation. */
#include "report.h"

#include "errand.h"
#include "errand/executor.h"
#include "errand/ffi.h"
#include "errand/order.h"
#include "errand/task.h"
#include "foreign/foreign.h"

#include <dlfcn.h>
#include <ffi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 31, CALLS = 4000, SERVED_MAX = 64, KIND = 7 };
enum { RAW = 0, INLINE = 1, THREADS = 2 };
/* values of RAW; of the others: described, empty */
enum { DIRECT = 0, FFI = 1, SERVED = 2, MIX_DIRECT = 3, MIX_FFI = 4, MIX_SERVED = 5 };
enum { DESCRIBED = 0, EMPTY = 1 };

typedef uint64_t turn_fn(uint64_t number);
typedef double mix_fn(int32_t whole, float half, double part);

/* ---- raw calls ---------------------------------------------------------------------------------- */

typedef struct subject {
    turn_fn *turn;
    mix_fn *mix;
    ffi_cif turn_cif, mix_cif;
    errand_spec turn_spec, mix_spec;
    errand__callee *turn_callee, *mix_callee;
    uint64_t wrong;
} subject;

typedef struct reply { /* the response, where it can be looked at */
    errand__reply base;
    unsigned char bytes[SERVED_MAX];
    size_t used;
} reply;

static bool
reply_write(errand__reply *base, const void *bytes, size_t size)
{
    reply *self = (reply *)(void *)base;
    if (size > SERVED_MAX - self->used)
        return false;
    memcpy(self->bytes + self->used, bytes, size);
    self->used += size;
    return true;
}

static bool
describe(errand_ffi_library *library, const char *signature, void *address,
         const errand_ffi_value *arguments, size_t count, errand_spec *out_spec,
         errand__callee **out_callee)
{
    errand_ffi_function *function;
    if (errand_ffi_describe(library, signature, &function, NULL) != ERRAND_OK)
        return false;
    *out_callee = errand__callee_create(address, signature, NULL);
    return *out_callee != NULL &&
           errand_spec_call(out_spec, function, arguments, count, NULL) == ERRAND_OK;
}

static bool
subject_open(subject *self)
{
    static ffi_type *turn_types[] = {&ffi_type_uint64};
    static ffi_type *mix_types[] = {&ffi_type_sint32, &ffi_type_float, &ffi_type_double};
    const errand_ffi_value numbers[] = {errand_ffi_u(7)};
    const errand_ffi_value mixed[] = {errand_ffi_i(-2), errand_ffi_f32(0.5F),
                                      errand_ffi_f64(0.25)};
    void *handle = dlopen(BENCH_SUBJECT, RTLD_NOW);
    errand_ffi_library *library;
    if (handle == NULL || errand_ffi_library_create(BENCH_SUBJECT, &library) != ERRAND_OK)
        return false;
    void *turn = dlsym(handle, "bench_turn"), *mix = dlsym(handle, "bench_mix");
    self->turn = (turn_fn *)(uintptr_t)turn;
    self->mix = (mix_fn *)(uintptr_t)mix;
    return turn != NULL && mix != NULL &&
           ffi_prep_cif(&self->turn_cif, FFI_DEFAULT_ABI, 1, &ffi_type_uint64,
                        turn_types) == FFI_OK &&
           ffi_prep_cif(&self->mix_cif, FFI_DEFAULT_ABI, 3, &ffi_type_double,
                        mix_types) == FFI_OK &&
           describe(library, "u64 bench_turn(u64)", turn, numbers, 1, &self->turn_spec,
                    &self->turn_callee) &&
           describe(library, "f64 bench_mix(i32, f32, f64)", mix, mixed, 3,
                    &self->mix_spec, &self->mix_callee);
}

static double
serve(subject *self, errand__callee *callee, const errand_spec *spec, uint64_t right)
{
    const errand__call *call = spec->state;
    uint64_t got;
    uint64_t start = bench_cycles();
    for (int i = 0; i < CALLS; i++) {
        reply to = {.base = {.write = reply_write}};
        int32_t code = errand__callee_serve_direct(
            callee, call->request.bytes, call->request.size, &to.base, NULL, NULL);
        memcpy(&got, to.bytes + 8, sizeof got); /* see wire in foreign.h */
        self->wrong += code != 0 || got != right;
    }
    return (double)(bench_cycles() - start);
}

static double
run_turn(subject *self, int how)
{
    /* volatile: nothing is known before the loop. */
    turn_fn *volatile turn = self->turn;
    volatile uint64_t seven = 7;
    uint64_t start = bench_cycles();
    for (int i = 0; i < CALLS; i++) {
        uint64_t number = seven, got;
        void *arguments[] = {&number};
        if (how == DIRECT)
            got = turn(number);
        else
            ffi_call(&self->turn_cif, FFI_FN(turn), &got, arguments);
        self->wrong += got != 22;
    }
    return (double)(bench_cycles() - start);
}

static double
run_mix(subject *self, int how)
{
    mix_fn *volatile mix = self->mix;
    volatile int32_t two = -2;
    volatile float half = 0.5F;
    volatile double quarter = 0.25;
    uint64_t start = bench_cycles();
    for (int i = 0; i < CALLS; i++) {
        int32_t a = two;
        float b = half;
        double c = quarter, got;
        void *arguments[] = {&a, &b, &c};
        if (how == MIX_DIRECT)
            got = mix(a, b, c);
        else
            ffi_call(&self->mix_cif, FFI_FN(mix), &got, arguments);
        self->wrong += got != -1.25;
    }
    return (double)(bench_cycles() - start);
}

static void
sample_raw(const bench_config *config, bench_sample *out)
{
    static const double sum = -1.25;
    uint64_t times[6][ROUNDS], bits;
    subject self = {.wrong = 0};
    (void)config;
    memcpy(&bits, &sum, sizeof bits);
    if (!subject_open(&self)) {
        snprintf(out->fault.text, sizeof out->fault.text, "open failed");
        return;
    }
    for (int round = 0; round < ROUNDS; round++) {
        times[DIRECT][round] = (uint64_t)run_turn(&self, DIRECT);
        times[FFI][round] = (uint64_t)run_turn(&self, FFI);
        times[SERVED][round] =
            (uint64_t)serve(&self, self.turn_callee, &self.turn_spec, 22);
        times[MIX_DIRECT][round] = (uint64_t)run_mix(&self, MIX_DIRECT);
        times[MIX_FFI][round] = (uint64_t)run_mix(&self, MIX_FFI);
        times[MIX_SERVED][round] =
            (uint64_t)serve(&self, self.mix_callee, &self.mix_spec, bits);
    }
    for (int v = 0; v < 6; v++) {
        bench_sort(times[v], ROUNDS);
        out->values[v] =
            bench_percentile(times[v], ROUNDS, 0.5) / CALLS / bench_cycles_per_ns();
    }
    out->fault.wrong = self.wrong;
    out->checked = (uint64_t)6 * ROUNDS * CALLS;
}

/* ---- operations --------------------------------------------------------------------------------- */

typedef struct world {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_ffi_function *turn;
    uint64_t heard, right;
    errand_status status;
} world;

static int32_t
empty_run(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    ++*(uint64_t *)state;
    return 0;
}

static const errand_job_type empty_type = {
    .struct_size = sizeof(errand_job_type), .name = "empty", .run = empty_run};

static void
hear(void *arg, errand_completion *completion)
{
    world *self = arg;
    void *data;
    self->heard++;
    if (completion->wait != NULL) /* an empty one's counter */
        self->right += *(uint64_t *)completion->wait == 1;
    else if (errand_completion_read(completion, &errand_ffi_result_type, &data, NULL) ==
             ERRAND_OK)
        self->right += ((errand_ffi_result *)data)->value.as.u == 22;
}

static bool
world_open(world *self, bool threads)
{
    const errand_runtime_config config = {.struct_size = sizeof config,
                                          .order = threads ? ERRAND_ORDER_ARRIVAL
                                                           : ERRAND_ORDER_INLINE,
                                          .seed = 1,
                                          .operations_max = 4,
                                          .on_completion = hear,
                                          .held_on_completion_arg = self};
    const errand_blocking_config pool = {
        .struct_size = sizeof pool, .workers_min = 1, .workers_max = 1};
    errand_ffi_library *library;
    *self = (world){.heard = 0};
    return (threads ? errand_blocking_create(&pool, &self->executor)
                    : errand_manual_create(NULL, &self->executor)) == ERRAND_OK &&
           errand_runtime_create(&config, &self->runtime) == ERRAND_OK &&
           errand_attach(self->runtime, self->executor, 4, &self->lease) == ERRAND_OK &&
           errand_ffi_library_create(BENCH_SUBJECT, &library) == ERRAND_OK &&
           errand_ffi_describe(library, "u64 bench_turn(u64)", &self->turn, NULL) ==
               ERRAND_OK;
}

static void
note(world *self, errand_status status)
{
    if (self->status == ERRAND_OK)
        self->status = status;
}

static void
run_one(world *self, bool described, bool threads)
{
    const errand_budget all = {.struct_size = sizeof all};
    const errand_ffi_value argument = errand_ffi_u(7);
    uint64_t counter = 0, until = self->heard + 1;
    errand_spec spec = ERRAND_SPEC_INIT;
    size_t count;
    spec.kind = KIND;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &empty_type;
    spec.state = &counter;
    if (described)
        note(self, errand_spec_call(&spec, self->turn, &argument, 1, NULL));
    note(self, errand_start(self->lease, &spec, described ? NULL : &counter, NULL));
    while (self->heard < until && self->status == ERRAND_OK) {
        if (!threads) {
            note(self, errand_drive(self->runtime, &all, NULL));
            continue;
        }
        note(self, errand_park(self->runtime, UINT64_MAX));
        note(self, errand_drain(self->runtime, SIZE_MAX, hear, self, &count));
    }
}

static void
sample_operations(const bench_config *config, bench_sample *out)
{
    static uint64_t stamps[2][65536];
    bool threads = config->variant == THREADS;
    uint64_t count = 0, total = 2000, seen = 0;
    world self;
    if (!world_open(&self, threads)) {
        snprintf(out->fault.text, sizeof out->fault.text, "open failed");
        return;
    }
    for (uint64_t i = 0; i < total + 200 && self.status == ERRAND_OK; i++) {
        if (i == 200 && config->apart && !bench_sample_part()) {
            snprintf(out->fault.text, sizeof out->fault.text, "cannot be kept apart");
            return;
        }
        for (int how = DESCRIBED; how <= EMPTY; how++) {
            uint64_t start = bench_cycles();
            for (int again = 0; again < 8; again++, seen++)
                run_one(&self, how == DESCRIBED, threads);
            stamps[how][count] = (bench_cycles() - start) / 8;
        }
        count += i >= 200;
    }
    for (int how = DESCRIBED; how <= EMPTY; how++) {
        bench_sort(stamps[how], count);
        out->values[how] =
            bench_percentile(stamps[how], count, 0.5) / bench_cycles_per_ns();
    }
    if (self.status != ERRAND_OK)
        snprintf(out->fault.text, sizeof out->fault.text, "%s",
                 errand_status_text(self.status));
    out->fault.wrong = self.heard - self.right;
    out->fault.lost = seen - self.heard;
    out->checked = self.heard;
}

static void
sample(const bench_peer *peer, const bench_config *config, bench_sample *out)
{
    (void)peer;
    if (config->variant == RAW)
        sample_raw(config, out);
    else
        sample_operations(config, out);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

/* Of served: what it takes more than ffi_call; of ffi_call: more than a direct call. */
static double
added(const bench_sample *sample, uint32_t value)
{
    return sample->values[value] - sample->values[value - 1];
}

void
bench_case_call(const bench_options *options, bench_report *report)
{
    static const bench_config configs[] = {
        {"raw", {.workers = 0, .in_flight = 1}, 1, 0, 0, false, RAW},
        {"inline order", {.workers = 0, .in_flight = 1}, 1, 0, 0, false, INLINE},
        {"threads", {.workers = 1, .in_flight = 1}, 2, 0, 0, true, THREADS}};
    static const struct {
        uint32_t config, value, peer_value;
        const char *work, *peer;
        bool added;
    } rows[] = {
        {RAW, SERVED, DIRECT, "integer", "direct call", false},
        {RAW, SERVED, FFI, "integer", "ffi_call", false},
        {RAW, SERVED, FFI, "integer, ns added", "ffi_call to direct", true},
        {RAW, MIX_SERVED, MIX_DIRECT, "int, float, double", "direct call", false},
        {RAW, MIX_SERVED, MIX_FFI, "int, float, double", "ffi_call", false},
        {RAW, MIX_SERVED, MIX_FFI, "int, float, double, added", "ffi_call to direct",
         true},
        {INLINE, DESCRIBED, EMPTY, "operation, inline order", "empty job", false},
        {THREADS, DESCRIBED, EMPTY, "operation, threads, apart", "empty job", false},
    };
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 3 : 9;
    bench_table *table = bench_table_fill("call", configs, 3, samples, sample, NULL, ~1u);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        bench_pairing pairing = {.table = table,
                                 .errand_config = rows[r].config,
                                 .peer_config = rows[r].config,
                                 .value = rows[r].value,
                                 .other = true,
                                 .peer_value = rows[r].peer_value,
                                 .of = rows[r].added ? added : NULL};
        bench_row *row = bench_report_pair(report, "call", rows[r].work, "ns", &pairing);
        if (row == NULL)
            continue;
        snprintf(row->peer, sizeof row->peer, "%s", rows[r].peer);
        if (rows[r].added)
            bench_row_aim(row, BENCH_AIM_VALUE, 30);
    }
    bench_table_destroy(table);
}
