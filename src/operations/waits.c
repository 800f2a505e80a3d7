/* SPDX-License-Identifier: MIT */
/* waits: for time, and for a foreign descriptor. */
#include <poll.h>
#include "errand/waits.h"
#include "operations/codec.h"

typedef struct waits_state {
    errand__wait wait;
    uint64_t ns;
    int fd;
    uint32_t events;
} waits_state;

static int32_t timer_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t fd_poll(errand_job *job, void *state, errand_payload *out_payload);
static void drop_readiness(void *data, size_t size);

_Static_assert(ERRAND_WAIT_READABLE == POLLIN && ERRAND_WAIT_WRITABLE == POLLOUT &&
                   ERRAND_WAIT_ERROR == POLLERR && ERRAND_WAIT_HANGUP == POLLHUP,
               "they are the system's");

const errand_payload_type errand_readiness_type = {"readiness", drop_readiness};
static const errand_job_type timer_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "timer",
    .poll = timer_poll,
    .drop = errand__operation_block_free,
};
static const errand_job_type fd_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "wait for a descriptor",
    .poll = fd_poll,
    .drop = errand__operation_block_free,
};

errand_status
errand_spec_timer(errand_spec *out_spec, uint64_t ns)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL, ERRAND_EINVAL, "out_spec is NULL");
    waits_state *state = errand__wait_create(sizeof *state, 0, 0);
    if (state == NULL)
        return ERRAND_ENOMEM;
    state->ns = ns;
    errand__wait_spec(out_spec, ERRAND_KIND_TIMER, &timer_job, state);
    return ERRAND_OK;
}

errand_status
errand_spec_wait_fd(errand_spec *out_spec, int fd, uint32_t events)
{
    const uint32_t known = ERRAND_WAIT_READABLE | ERRAND_WAIT_WRITABLE;

    ERRAND_REQUIRE_ARG(out_spec != NULL && fd >= 0 && events != 0 &&
                           (events & ~known) == 0,
                       ERRAND_EINVAL, "out_spec, fd or events is missing");
    waits_state *state = errand__wait_create(sizeof *state, 0, 0);
    if (state == NULL)
        return ERRAND_ENOMEM;
    state->fd = fd;
    state->events = events;
    errand__wait_spec(out_spec, ERRAND_KIND_WAIT_FD, &fd_job, state);
    return ERRAND_OK;
}

static int32_t
timer_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    waits_state *timer = state;
    int32_t code = errand__wait_ready(job, &timer->wait);

    (void)out_payload;
    if (code == 0 && !timer->wait.asked) {
        uint64_t now = errand__clock_now();

        timer->wait.io = (errand_io){
            .kind = ERRAND_IO_TIMEOUT,
            .until_ns = timer->ns > UINT64_MAX - now ? UINT64_MAX : now + timer->ns,
        };
        code = errand__wait_ask(job, &timer->wait);
    }
    return errand__wait_done(&timer->wait, code);
}

static int32_t
fd_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    waits_state *waiter = state;
    int32_t code = errand__wait_ready(job, &waiter->wait);

    if (code == 0 && !waiter->wait.asked)
        code = errand__wait_poll(job, &waiter->wait, waiter->fd, waiter->events);
    else if (code == 0) {
        errand_readiness *ready = errand__operation_block_alloc(sizeof *ready);

        if (ready == NULL)
            return errand__operation_no_memory(job, sizeof *ready);
        ready->events =
            (uint32_t)waiter->wait.io.result & (POLLIN | POLLOUT | POLLERR | POLLHUP);
        errand__operation_payload(out_payload, &errand_readiness_type, ready,
                                  sizeof *ready);
    }
    return errand__wait_done(&waiter->wait, code);
}

/* ---- digest and codec ------------------------------------------------------------------------ */

static void
drop_readiness(void *data, size_t size)
{
    (void)size;
    errand__operation_block_free(data);
}

uint64_t
errand_readiness_digest(const void *data, size_t size)
{
    const errand_readiness *ready = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, ready->events);
    return errand__digest_end(&mix);
}

static bool
encode_readiness(const void *data, size_t size, errand_sink *sink)
{
    (void)size;
    errand_sink_word(sink, ((const errand_readiness *)data)->events);
    return true;
}

static errand_status
decode_readiness(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    uint32_t events = (uint32_t)errand__codec_read_below(&in, UINT32_MAX);

    if (!in.good || in.left != 0)
        return ERRAND_EDECODE;
    errand_readiness *ready = errand__operation_block_alloc(sizeof *ready);
    if (ready == NULL)
        return ERRAND_ENOMEM;
    ready->events = events;
    errand__operation_payload(out_payload, &errand_readiness_type, ready, sizeof *ready);
    return ERRAND_OK;
}

static const errand_payload_codec readiness_codec = {sizeof readiness_codec,
                                                     encode_readiness, decode_readiness};
const errand__codec_row errand__waits_rows[] = {
    {&errand_readiness_type, errand_readiness_digest, &readiness_codec},
    {NULL, NULL, NULL},
};
