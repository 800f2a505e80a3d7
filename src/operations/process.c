/* SPDX-License-Identifier: MIT */
/* process: a child as an object: signalled, waited for.
 *
 * Design notes: a group is signalled only while its leader is ours and not reaped, which the object's
 * lock makes one step: a wait's body on another thread may reap it at any moment.  A cancelled
 * wait goes on until the process has ended: only then is it known that nothing of it is left. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include "operations/codec.h"
#include "operations/process.h"

static const uint64_t ask_ns = 5000000; /* only without a pidfd */

typedef struct wait_state {
    errand__wait wait; /* its io waits for the process */
    errand_process *process;
    errand_io timer; /* until SIGKILL */
    bool told, killed, timed;
} wait_state;

static int32_t wait_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t go_on(errand_job *job, wait_state *waiting);
static int32_t give(errand_job *job, wait_state *waiting, errand_payload *out_payload);
static int32_t ask(errand_job *job, wait_state *waiting);
static bool ended(errand_process *process, bool kills);
static void wait_drop(void *state);
static void drop_process(void *data, size_t size);
static void drop_exit(void *data, size_t size);

const errand_payload_type errand_process_type = {"process", drop_process};
const errand_payload_type errand_exit_type = {"exit", drop_exit};
static const errand_job_type wait_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "wait for a process",
    .poll = wait_poll,
    .drop = wait_drop,
    .told = errand__wait_told,
};

errand_process *
errand__process_create(void)
{
    errand_process *made = errand__operation_block_alloc(sizeof *made);

    if (made == NULL)
        return NULL;
    atomic_init(&made->refs, 1);
    made->in = made->out = made->err = (errand__pipe){.process = made, .fd = -1};
    made->child = (errand__child){0, -1, -1, -1, -1};
    return made;
}

/* ---- the object ------------------------------------------------------------------------------- */

errand_process *
errand_process_hold(errand_process *process)
{
    if (process != NULL)
        atomic_fetch_add_explicit(&process->refs, 1, memory_order_relaxed);
    return process;
}

void
errand_process_abandon(errand_process **take_process)
{
    int32_t status, signal_number;

    if (take_process == NULL || *take_process == NULL)
        return;
    errand_process *process = *take_process;
    *take_process = NULL;
    /* Pairs: process-refs */
    if (atomic_fetch_sub_explicit(&process->refs, 1, memory_order_acq_rel) != 1)
        return;
    errand__pipe *const pipes[] = {&process->in, &process->out, &process->err};
    for (size_t i = 0; i < 3; i++) {
        errand__operation_fd_close(&pipes[i]->fd);
        errand__seat_fini(&pipes[i]->seat);
    }
    errand__seat_fini(&process->seat);
    if (process->child.pid != 0) {
        errand__child_signal(&process->child, SIGKILL);
        errand__child_reap(&process->child, &status, &signal_number);
    }
    errand__operation_block_free(process);
}

int32_t
errand_process_id(const errand_process *process)
{
    return process == NULL ? 0 : process->pid;
}

/* False: it has been reaped. */
static bool
tell(errand_process *process, int32_t number)
{
    errand__lock_acquire(&process->lock);
    bool there = process->child.pid != 0;
    if (there)
        errand__child_signal(&process->child, number);
    errand__lock_release(&process->lock);
    return there;
}

errand_status
errand_process_signal(errand_process *process, int32_t number)
{
    ERRAND_REQUIRE_ARG(process != NULL && number > 0 && number <= SIGRTMAX, ERRAND_EINVAL,
                       "process is NULL, or there is no such signal");
    return tell(process, number) ? ERRAND_OK : ERRAND_EGONE;
}

/* ---- wait ----------------------------------------------------------------------------------------- */

errand_status
errand_spec_process_wait(errand_spec *out_spec, errand_process *process)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && process != NULL, ERRAND_EINVAL,
                       "out_spec or process is NULL");
    wait_state *state = errand__wait_create(sizeof *state, 0, 0);
    if (state == NULL)
        return ERRAND_ENOMEM;
    if (!errand__seat_take(&process->seat, &state->wait.ticket)) {
        errand__operation_block_free(state);
        return ERRAND_EBUSY;
    }
    state->wait.seat = &process->seat;
    state->wait.keeps = state->wait.acts = true;
    state->process = errand_process_hold(process);
    errand__wait_spec(out_spec, ERRAND_KIND_PROCESS_WAIT, &wait_job, state);
    return ERRAND_OK;
}

static int32_t
wait_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    wait_state *waiting = state;
    errand__wait *wait = &waiting->wait;
    int32_t code = 0;

    if (!wait->turned)
        code = errand__wait_ready(job, wait);
    if (code == 0)
        code = go_on(job, waiting);
    if (code == 0)
        code = give(job, waiting, out_payload);
    return errand__wait_done(wait, code);
}

/* PENDING, 0 when it was reaped, or a failure. */
static int32_t
go_on(errand_job *job, wait_state *waiting)
{
    errand__wait *wait = &waiting->wait;
    errand_process *process = waiting->process;
    uint64_t now = errand__clock_now();

    if (ended(process, waiting->told))
        return waiting->told
                   ? errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                              "process %d was cancelled and has ended",
                                              process->pid)
                   : 0;
    if (!waiting->told && errand_job_cancelled(job)) {
        waiting->told = true;
        tell(process, SIGTERM);
        waiting->timer = (errand_io){
            .kind = ERRAND_IO_TIMEOUT,
            .until_ns =
                process->term_ns > UINT64_MAX - now ? UINT64_MAX : now + process->term_ns,
        };
        waiting->timed = errand_io_start(job, &waiting->timer) == ERRAND_OK;
    }
    if (waiting->told && !waiting->killed && (!waiting->timed || waiting->timer.done)) {
        waiting->killed = true;
        tell(process, SIGKILL);
    }
    return wait->asked && !wait->io.done ? ERRAND_PENDING : ask(job, waiting);
}

static int32_t
ask(errand_job *job, wait_state *waiting)
{
    errand__wait *wait = &waiting->wait;
    int fd = waiting->process->child.pidfd;

    if (fd >= 0)
        return errand__wait_poll(job, wait, fd, POLLIN);
    wait->io =
        (errand_io){.kind = ERRAND_IO_TIMEOUT, .until_ns = errand__clock_now() + ask_ns};
    return errand__wait_ask(job, wait);
}

/* Has it ended?  Then it is reaped here, and, if it was told to end, what it left behind is killed
 * before. */
static bool
ended(errand_process *process, bool kills)
{
    errand_exit result = {-1, 0};

    errand__lock_acquire(&process->lock);
    if (process->child.pid != 0 && errand__child_ended(&process->child)) {
        if (kills)
            errand__child_signal(&process->child, SIGKILL);
        process->lost = !errand__child_reap(&process->child, &result.exit_status,
                                            &result.signal_number);
        process->exit = result;
    }
    bool is_over = process->child.pid == 0;
    errand__lock_release(&process->lock);
    return is_over;
}

static int32_t
give(errand_job *job, wait_state *waiting, errand_payload *out_payload)
{
    if (waiting->process->lost)
        return errand__operation_failed(job, ERRAND_OPERATION_LOST,
                                        "the exit status of process %d was taken",
                                        waiting->process->pid);
    errand_exit *result = errand__operation_block_alloc(sizeof *result);
    if (result == NULL)
        return errand__operation_no_memory(job, sizeof *result);
    *result = waiting->process->exit;
    errand__operation_payload(out_payload, &errand_exit_type, result, sizeof *result);
    return 0;
}

static void
wait_drop(void *state)
{
    wait_state *waiting = state;

    errand__wait_fini(&waiting->wait);
    errand_process_abandon(&waiting->process);
    errand__operation_block_free(waiting);
}

/* ---- payloads ---------------------------------------------------------------------------------------- */

static void
drop_process(void *data, size_t size)
{
    errand_process *process = data;

    (void)size;
    errand_process_abandon(&process);
}

static void
drop_exit(void *data, size_t size)
{
    (void)size;
    errand__operation_block_free(data);
}

uint64_t
errand_process_digest(const void *data, size_t size)
{
    (void)data;
    (void)size;
    return errand__digest_plain("process", 7);
}

uint64_t
errand_exit_digest(const void *data, size_t size)
{
    const errand_exit *result = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, (uint64_t)(int64_t)result->exit_status);
    errand__digest_number(&mix, (uint64_t)(int64_t)result->signal_number);
    return errand__digest_end(&mix);
}

/* Which pipes it has not. */
enum { NO_IN = 1, NO_OUT = 2, NO_ERR = 4, NO_PIPES = 7 };

static bool
encode_process(const void *data, size_t size, errand_sink *sink)
{
    const errand_process *process = data;

    (void)size;
    errand_sink_word(sink, (process->in.missing ? NO_IN : 0U) |
                               (process->out.missing ? NO_OUT : 0U) |
                               (process->err.missing ? NO_ERR : 0U));
    return true;
}

static errand_status
decode_process(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    uint64_t none = errand__codec_read_word(&in);

    if (none > NO_PIPES || !in.good || in.left != 0)
        return ERRAND_EDECODE;
    errand_process *made = errand__process_create();
    if (made == NULL)
        return ERRAND_ENOMEM;
    made->in.missing = (none & NO_IN) != 0;
    made->out.missing = (none & NO_OUT) != 0;
    made->err.missing = (none & NO_ERR) != 0;
    errand__operation_payload(out_payload, &errand_process_type, made, sizeof(uint64_t));
    return ERRAND_OK;
}

static bool
encode_exit(const void *data, size_t size, errand_sink *sink)
{
    const errand_exit *result = data;

    (void)size;
    errand_sink_word(sink, (uint64_t)(int64_t)result->exit_status);
    errand_sink_word(sink, (uint64_t)(int64_t)result->signal_number);
    return true;
}

static errand_status
decode_exit(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    errand_exit read = {(int32_t)(int64_t)errand__codec_read_word(&in), 0};

    read.signal_number = (int32_t)(int64_t)errand__codec_read_word(&in);
    if (!in.good || in.left != 0)
        return ERRAND_EDECODE;
    errand_exit *result = errand__operation_block_alloc(sizeof *result);
    if (result == NULL)
        return ERRAND_ENOMEM;
    *result = read;
    errand__operation_payload(out_payload, &errand_exit_type, result, sizeof *result);
    return ERRAND_OK;
}

static const errand_payload_codec process_codec = {sizeof process_codec, encode_process,
                                                   decode_process};
static const errand_payload_codec exit_codec = {sizeof exit_codec, encode_exit,
                                                decode_exit};
const errand__codec_row errand__process_rows[] = {
    {&errand_process_type, errand_process_digest, &process_codec},
    {&errand_exit_type, errand_exit_digest, &exit_codec},
    {NULL, NULL, NULL},
};
