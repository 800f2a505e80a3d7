/* SPDX-License-Identifier: MIT */
/* jobs: native jobs that every script of the program may call by errand.job(name, ...).
 *
 *     errand.job("primes", n)     how many primes there are below n: work for a processor
 *     errand.job("panic", text)   panics: the run survives and the script gets an error
 *     errand.job("clock")         seconds since 1970, from the real clock: what traps are for
 *
 * Design notes.  Each is what a host's own job looks like: fill checks the Lua arguments and makes
 * the state last; the body watches its token; drop frees the state. */
#include "program.h"
#include <inttypes.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of errand_job_fail; the message says it in words. */
enum { CODE_STOPPED = 1, CODE_MEMORY = 2 };

/* ---- primes ---------------------------------------------------------------------------------- */

#define PRIMES_MAX 100000000U

static void
count_drop(void *data, size_t size)
{
    (void)size;
    free(data);
}

static const errand_payload_type count_type = {"count", count_drop};

static bool
count_encode(const void *data, size_t size, errand_sink *sink)
{
    (void)size;
    errand_sink_word(sink, *(const uint64_t *)data);
    return true;
}

static errand_status
count_decode(const void *bytes, size_t size, errand_payload *out_payload)
{
    const unsigned char *in = bytes;
    if (size != 8)
        return ERRAND_EDECODE;
    uint64_t *count = calloc(1, sizeof *count);
    if (count == NULL)
        return ERRAND_ENOMEM;
    for (int i = 0; i < 8; i++)
        *count |= (uint64_t)in[i] << (8 * i);
    *out_payload = (errand_payload){&count_type, count, sizeof *count};
    return ERRAND_OK;
}

static const errand_payload_codec count_codec = {sizeof count_codec, count_encode,
                                                 count_decode};

typedef struct primes_state {
    uint32_t limit;
} primes_state;

static int32_t
primes_run(errand_job *job, void *data, errand_payload *out_payload)
{
    const primes_state *state = data;
    unsigned char *composite = errand_job_alloc(job, (size_t)state->limit + 1);
    uint64_t *count = composite != NULL ? calloc(1, sizeof *count) : NULL;
    if (count == NULL) {
        errand_job_message(job, "no memory for %" PRIu32 " numbers: ask for fewer",
                           state->limit);
        return CODE_MEMORY;
    }
    *out_payload = (errand_payload){&count_type, count, sizeof *count};
    for (uint64_t n = 2; n < state->limit; n++) {
        if (n % 4096 == 0 && errand_job_cancelled(job)) {
            errand_job_message(job, "it was asked to end while it ran, and did");
            return CODE_STOPPED;
        }
        if (composite[n])
            continue;
        ++*count;
        for (uint64_t m = n * n; m < state->limit; m += n)
            composite[m] = 1;
    }
    return 0;
}

static const errand_job_type primes_type = {
    .struct_size = sizeof primes_type, .name = "primes", .run = primes_run, .drop = free};

static void
primes_fill(lua_State *L, errand_spec *spec, void *arg)
{
    (void)arg;
    lua_Integer limit = luaL_checkinteger(L, 2);
    luaL_argcheck(L, limit >= 0 && limit <= PRIMES_MAX, 2,
                  "give a number from 0 to 10^8");
    primes_state *state = malloc(sizeof *state);
    if (state == NULL)
        luaL_error(L, "primes: no memory");
    state->limit = (uint32_t)limit;
    spec->resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec->held_job = &primes_type;
    spec->state = state;
}

static int
primes_push(lua_State *L, errand_completion *completion, void *arg)
{
    (void)arg;
    void *data = NULL;
    size_t size = 0;
    if (errand_completion_read(completion, &count_type, &data, &size) != ERRAND_OK)
        return luaL_error(L, "%s", completion->message);
    lua_pushinteger(L, (lua_Integer) * (const uint64_t *)data);
    return 1;
}

/* ---- panic ------------------------------------------------------------------------------------- */

static int32_t
panic_run(errand_job *job, void *data, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    errand_panic("%s", (const char *)data);
}

static const errand_job_type panic_type = {
    .struct_size = sizeof panic_type, .name = "panic", .run = panic_run, .drop = free};

static void
panic_fill(lua_State *L, errand_spec *spec, void *arg)
{
    (void)arg;
    char *text = strdup(luaL_optstring(L, 2, "a panic was asked for"));
    if (text == NULL)
        luaL_error(L, "panic: no memory");
    spec->resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec->held_job = &panic_type;
    spec->state = text;
}

/* ---- clock ------------------------------------------------------------------------------------- */

static int32_t
clock_run(errand_job *job, void *data, errand_payload *out_payload)
{
    uint64_t *count = calloc(1, sizeof *count);
    (void)data;
    if (count == NULL) {
        errand_job_message(job, "no memory for a number: free some");
        return CODE_MEMORY;
    }
    *out_payload = (errand_payload){&count_type, count, sizeof *count};
    *count = (uint64_t)time(NULL);
    return 0;
}

static const errand_job_type clock_type = {
    .struct_size = sizeof clock_type, .name = "clock", .run = clock_run};

static void
clock_fill(lua_State *L, errand_spec *spec, void *arg)
{
    (void)L;
    (void)arg;
    spec->resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec->held_job = &clock_type;
}

void
errand__jobs_register(lua_State *L)
{
    static const errand_lua_job jobs[] = {
        {.struct_size = sizeof jobs[0],
         .name = "primes",
         .fill = primes_fill,
         .push = primes_push,
         .held_type = &count_type,
         .held_codec = &count_codec},
        {.struct_size = sizeof jobs[0], .name = "panic", .fill = panic_fill},
        {.struct_size = sizeof jobs[0],
         .name = "clock",
         .fill = clock_fill,
         .push = primes_push},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        errand_lua_register_job(L, &jobs[i]);
}
