/* SPDX-License-Identifier: MIT */
/* stop: a cancel's way into a body that sleeps in poll; and the operation that only sleeps.
 *
 * Design notes: the token (errand_job_cancelled) can be read but not waited for, so a body that
 * sleeps has a hook, and both share this object: the body makes an eventfd when it begins (not
 * before: ten thousand queued commands hold no descriptor), the hook writes it.  The eventfd
 * stays open until both holders have let go, because the hook may write it at any time
 * before its drop. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "errand/traps.h"
#include "operations/operations.h"

enum { BEGUN = 1, ASKED = 2, ENDED = 4 };

struct errand__stop {
    /* word: what has happened so far; bits are only added.
     * Writers: the body (BEGUN, ENDED), the hook on the runtime's thread (ASKED).
     * Readers: both.
     * Order:   fetch_or acq_rel; loads acquire.
     * Pairs:   stop-begin: BEGUN publishes fd to the hook that then adds ASKED.
     * Why:     relaxed would let the hook write to a descriptor that it cannot see yet; a body
     *          that adds BEGUN after ASKED must see that nobody will write. */
    atomic_uint word;
    /* holders: the job's state and the hook's data.
     * Writers: whoever drops one of them.   Readers: the same.
     * Order:   fetch_sub acq_rel.
     * Pairs:   stop-let.
     * Why:     the last one frees what the other one wrote. */
    atomic_uint holders;
    int fd; /* written by the body before BEGUN; -1 = none */
};

typedef struct sleep_state {
    errand__stop *stop;
    uint64_t ns;
} sleep_state;

static errand_hook_answer ask(void *data, char *text, size_t size);
static errand_hook_answer reap(void *data, char *text, size_t size);
static void let(void *data);
static int32_t sleep_run(errand_job *job, void *state, errand_payload *out_payload);
static void sleep_drop(void *state);
static int32_t sleep_until(errand_job *job, errand__stop *stop, uint64_t end);

const errand_hook_type errand__operation_stop_hook = {
    .struct_size = sizeof(errand_hook_type),
    .cancel = ask,
    .reap = reap,
    .drop = let,
};

static const errand_job_type sleep_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "sleep",
    .run = sleep_run,
    .drop = sleep_drop,
};

errand__stop *
errand__operation_stop_create(void)
{
    errand__stop *stop = errand__mem_alloc(NULL, sizeof *stop);

    if (stop == NULL)
        return NULL;
    atomic_init(&stop->word, 0);
    atomic_init(&stop->holders, 2);
    stop->fd = -1;
    return stop;
}

void
errand__operation_stop_let(errand__stop *stop)
{
    /* Pairs: stop-let */
    if (stop == NULL ||
        atomic_fetch_sub_explicit(&stop->holders, 1, memory_order_acq_rel) > 1)
        return;
    errand__operation_fd_close(&stop->fd);
    errand__mem_free(NULL, stop, sizeof *stop);
}

bool
errand__operation_stop_begin(errand__stop *stop)
{
    stop->fd = errand__operation_fd_raise(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (stop->fd < 0)
        return false;
    /* Pairs: stop-begin */
    atomic_fetch_or_explicit(&stop->word, BEGUN, memory_order_acq_rel);
    return true;
}

bool
errand__operation_stop_asked(errand__stop *stop)
{
    return (atomic_load_explicit(&stop->word, memory_order_acquire) & ASKED) != 0;
}

int
errand__operation_stop_fd(const errand__stop *stop)
{
    return stop->fd;
}

void
errand__operation_stop_end(errand__stop *stop)
{
    atomic_fetch_or_explicit(&stop->word, ENDED, memory_order_acq_rel);
}

errand_status
errand_spec_sleep(errand_spec *out_spec, uint64_t ns)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL, ERRAND_EINVAL, "out_spec is NULL");
    sleep_state *state = errand__operation_block_alloc(sizeof *state);
    if (state == NULL)
        return ERRAND_ENOMEM;
    state->ns = ns;
    state->stop = errand__operation_stop_create();
    if (state->stop == NULL) {
        errand__operation_block_free(state);
        return ERRAND_ENOMEM;
    }
    errand__operation_spec_fill(out_spec, ERRAND_KIND_SLEEP, &sleep_job, state);
    out_spec->flags = ERRAND_SPEC_EFFECT_FREE;
    out_spec->held_hook = &errand__operation_stop_hook;
    out_spec->hook_data = state->stop;
    return ERRAND_OK;
}

static errand_hook_answer
ask(void *data, char *text, size_t size)
{
    errand__stop *stop = data;
    const uint64_t one = 1;

    /* Pairs: stop-begin */
    unsigned before = atomic_fetch_or_explicit(&stop->word, ASKED, memory_order_acq_rel);
    if ((before & ENDED) != 0)
        return ERRAND_HOOK_REAPED;
    if ((before & BEGUN) != 0 && write(stop->fd, &one, sizeof one) < 0) {
        errand__text_format(text, size, "the body could not be woken (errno %d)", errno);
        return ERRAND_HOOK_ERROR;
    }
    return ERRAND_HOOK_PENDING;
}

static errand_hook_answer
reap(void *data, char *text, size_t size)
{
    errand__stop *stop = data;

    (void)text;
    (void)size;
    unsigned word = atomic_load_explicit(&stop->word, memory_order_acquire);
    return (word & ENDED) != 0 ? ERRAND_HOOK_REAPED : ERRAND_HOOK_PENDING;
}

static void
let(void *data)
{
    errand__operation_stop_let(data);
}

static int32_t
sleep_run(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_job_impure(job);
    sleep_state *sleep = state;
    uint64_t now = errand__clock_now();
    uint64_t end = sleep->ns > UINT64_MAX - now ? UINT64_MAX : now + sleep->ns;
    int32_t code;

    (void)out_payload;
    if (!errand__operation_stop_begin(sleep->stop))
        code = errand__operation_refused(job, errno, "eventfd", "cannot begin to sleep");
    else
        code = sleep_until(job, sleep->stop, end);
    errand__operation_stop_end(sleep->stop);
    return code;
}

static int32_t
sleep_until(errand_job *job, errand__stop *stop, uint64_t end)
{
    struct pollfd wake = {.fd = errand__operation_stop_fd(stop), .events = POLLIN};

    for (;;) {
        if (errand__operation_stop_asked(stop) || errand_job_cancelled(job))
            return errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                            "the sleep was cancelled");
        uint64_t now = errand__clock_now();
        if (now >= end)
            return 0;
        uint64_t left = end - now;
        struct timespec time = {.tv_sec = (time_t)(left / 1000000000u),
                                .tv_nsec = (long)(left % 1000000000u)};
        ppoll(&wake, 1, &time, NULL); /* EINTR: looks again */
    }
}

static void
sleep_drop(void *state)
{
    sleep_state *sleep = state;

    errand__operation_stop_let(sleep->stop);
    errand__operation_block_free(sleep);
}
