/* SPDX-License-Identifier: MIT */
/* isolation_errand: the same calls through errand: described functions and a plug-in in a sandbox with
 * all that its default policy locks down, or, beside it, in a pool of threads. */
#include "isolation.h"
#include "sample.h"

#include "errand.h"
#include "errand/executor.h"
#include "errand/ffi.h"
#include "errand/sandbox.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TEXT = 120 };

typedef struct place { /* one call in flight */
    uint64_t number;
} place;

typedef struct world {
    isolation_plan plan;
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    errand_ffi_library *library;
    errand_ffi_function *turn;
    place places[ISOLATION_WINDOW_MAX];
    char *text;
    uint64_t heard, right, next, total, answer;
    int32_t pid;
    const unsigned char *sent; /* an echo's */
    unsigned char *back;
    size_t size;
    bool crashes; /* the call that is out */
} world;

static bool
good(world *self, const char *call, errand_status status)
{
    if (status == ERRAND_OK)
        return true;
    if (self->text[0] == '\0')
        snprintf(self->text, TEXT, "%s: %s", call, errand_status_text(status));
    return false;
}

static bool
ask(world *self, place *at)
{
    const errand_ffi_value argument = errand_ffi_u(at->number);
    errand_spec spec;
    return good(self, "errand_spec_call",
                errand_spec_call(&spec, self->turn, &argument, 1, NULL)) &&
           good(self, "errand_start", errand_start(self->lease, &spec, at, NULL));
}

static void
hear_number(world *self, errand_completion *completion)
{
    place *at = completion->wait;
    void *data;
    if (!good(self, completion->message,
              errand_completion_read(completion, &errand_ffi_result_type, &data, NULL)))
        return;
    self->answer = ((errand_ffi_result *)data)->value.as.u;
    self->right += self->answer == isolation_turn(at->number);
    if (self->next < self->total) {
        at->number = self->next++;
        ask(self, at);
    }
}

static void
hear_bytes(world *self, errand_completion *completion)
{
    void *data;
    if (!good(self, completion->message,
              errand_completion_read(completion, &errand_plugin_bytes_type, &data, NULL)))
        return;
    const errand_plugin_bytes *bytes = data;
    if (bytes->size == self->size) {
        memcpy(self->back, bytes->bytes, bytes->size);
        self->right++;
    }
}

static void
hear(void *arg, errand_completion *completion)
{
    world *self = arg;
    errand_sandbox_outcome outcome = {.struct_size = sizeof outcome};
    self->heard++;
    if (self->crashes && completion->outcome == ERRAND_CRASHED) {
        self->right++;
        return;
    }
    if (completion->outcome != ERRAND_COMPLETED) {
        if (self->text[0] == '\0')
            snprintf(self->text, TEXT, "a call ended as %d: %.90s", completion->outcome,
                     completion->message);
        return;
    }
    if (self->pid == 0 && !self->plan.threads &&
        errand_sandbox_outcome_read(completion, &outcome) == ERRAND_OK)
        self->pid = outcome.pid;
    if (self->sent != NULL)
        hear_bytes(self, completion);
    else
        hear_number(self, completion);
}

/* Until so many were heard. */
static bool
await(world *self, uint64_t until)
{
    size_t count;
    while (self->heard < until && self->text[0] == '\0') {
        if (!good(self, "errand_drain",
                  errand_drain(self->runtime, SIZE_MAX, hear, self, &count)))
            break;
        if (self->heard < until && count == 0 &&
            !good(self, "errand_park", errand_park(self->runtime, UINT64_MAX)))
            break;
    }
    return self->text[0] == '\0';
}

static bool
trip(void *opaque, uint64_t number, uint64_t *out_answer, char *text)
{
    world *self = opaque;
    self->text = text;
    self->places[0].number = number;
    self->next = self->total = 0;
    if (!ask(self, &self->places[0]) || !await(self, self->heard + 1))
        return false;
    *out_answer = self->answer;
    return true;
}

static uint64_t
pump(void *opaque, uint64_t total, char *text)
{
    world *self = opaque;
    uint64_t right = self->right, until = self->heard + total;
    self->text = text;
    self->total = total;
    for (self->next = 0; self->next < self->plan.in_flight && self->next < total;) {
        place *at = &self->places[self->next];
        at->number = self->next++;
        if (!ask(self, at))
            return 0;
    }
    return await(self, until) ? self->right - right : 0;
}

static bool
echo(void *opaque, const unsigned char *bytes, size_t size, unsigned char *out_bytes,
     char *text)
{
    world *self = opaque;
    uint64_t right = self->right;
    errand_spec spec;
    self->text = text;
    self->sent = bytes;
    self->back = out_bytes;
    self->size = size;
    return good(self, "errand_spec_plugin",
                errand_spec_plugin(&spec, BENCH_SUBJECT, "bench_echo", bytes, size)) &&
           good(self, "errand_start",
                errand_start(self->lease, &spec, &self->places[0], NULL)) &&
           await(self, self->heard + 1) && self->right == right + 1;
}

static bool
crash(void *opaque, char *text)
{
    world *self = opaque;
    uint64_t right = self->right;
    errand_spec spec;
    self->text = text;
    self->crashes = true;
    bool crashed = good(self, "errand_spec_plugin",
                        errand_spec_plugin(&spec, BENCH_SUBJECT, "bench_crash", "", 0)) &&
                   good(self, "errand_start",
                        errand_start(self->lease, &spec, &self->places[0], NULL)) &&
                   await(self, self->heard + 1) && self->right == right + 1;
    self->crashes = false;
    return crashed;
}

static bool
refill(void *opaque, uint64_t *out_ns, char *text)
{
    world *self = opaque;
    const struct timespec pause = {.tv_nsec = 20000};
    errand_sandbox_snapshot before = {.struct_size = sizeof before}, now = before;
    uint64_t answer;
    self->pid = 0;
    if (!trip(self, 1, &answer, text) ||
        !good(self, "errand_sandbox_snapshot_read",
              errand_sandbox_snapshot_read(self->executor, &before)))
        return false;
    uint64_t start = bench_now();
    if (self->pid <= 0 || kill(self->pid, SIGKILL) != 0) {
        snprintf(text, TEXT, "its worker cannot be ended");
        return false;
    }
    do {
        nanosleep(&pause, NULL);
        if (!good(self, "errand_sandbox_snapshot_read",
                  errand_sandbox_snapshot_read(self->executor, &now)))
            return false;
    } while (now.crashed == before.crashed || now.ready == 0);
    *out_ns = bench_now() - start;
    return true;
}

/* This thread on the first processor; the worker and all other threads on the second. */
static bool
part(world *self)
{
    return (self->plan.threads || (self->pid > 0 && isolation_pin(self->pid, 1))) &&
           bench_sample_part();
}

static bool
open_pool(world *self)
{
    const isolation_plan *plan = &self->plan;
    const errand_blocking_config threads = {.struct_size = sizeof threads,
                                            .workers_min = plan->workers,
                                            .workers_max = plan->workers};
    const errand_sandbox_policy policy = {
        .struct_size = sizeof policy,
        .in_bytes = plan->bytes < 1 << 20 ? 0 : plan->bytes + 4096,
        .out_bytes = plan->bytes < 1 << 20 ? 0 : plan->bytes + 4096};
    const errand_sandbox_config sandbox = {.struct_size = sizeof sandbox,
                                           .workers_min = plan->workers,
                                           .workers_max = plan->workers,
                                           .policy = &policy,
                                           .crash_limit = 1000,
                                           .worker_path = BENCH_WORKER};
    if (plan->threads)
        return good(self, "errand_blocking_create",
                    errand_blocking_create(&threads, &self->executor));
    return errand_sandbox_create(&sandbox, &self->executor, self->text, TEXT) ==
           ERRAND_OK;
}

static void *
open_world(const isolation_plan *plan, char *text)
{
    static world made;
    world *self = &made;
    const errand_runtime_config config = {.struct_size = sizeof config,
                                          .operations_max = ISOLATION_WINDOW_MAX + 1};
    uint64_t answer;
    self->plan = *plan;
    self->text = text;
    if (!open_pool(self) ||
        !good(self, "errand_runtime_create",
              errand_runtime_create(&config, &self->runtime)) ||
        !good(self, "errand_attach",
              errand_attach(self->runtime, self->executor, ISOLATION_WINDOW_MAX + 1,
                            &self->lease)) ||
        !good(self, "errand_ffi_library_create",
              errand_ffi_library_create(BENCH_SUBJECT, &self->library)) ||
        !good(
            self, "errand_ffi_describe",
            errand_ffi_describe(self->library, "u64 bench_turn(u64)", &self->turn, NULL)))
        return NULL;
    for (uint64_t i = 0; i < 64; i++) { /* the worker that knows this function is there */
        self->pid = 0;
        if (!trip(self, i, &answer, text))
            return NULL;
    }
    if (plan->apart && !part(self)) {
        snprintf(text, TEXT, "cannot be kept apart");
        return NULL;
    }
    return self;
}

const isolation_peer isolation_errand = {.name = "errand",
                                         .open = open_world,
                                         .trip = trip,
                                         .pump = pump,
                                         .echo = echo,
                                         .refill = refill,
                                         .crash = crash};
