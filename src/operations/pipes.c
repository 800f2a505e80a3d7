/* SPDX-License-Identifier: MIT */
/* pipes: a process's input and outputs, while it runs.
 *
 * Design notes: a write to a pipe that nobody reads raises a signal on the thread that writes, which
 * may be the host's: it is blocked around the write, and taken away if it was ours. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "operations/process.h"

enum { SCRATCH = 65536 };

typedef struct write_state {
    errand__wait wait;
    errand_process *process;
    size_t size, written;
    char bytes[];
} write_state;

static int32_t write_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t go_on(errand_job *job, write_state *writes);
static ssize_t write_quietly(int fd, const void *bytes, size_t size);
static void close_input(errand_process *process);
static void close_ended(errand_process *process);
static void write_drop(void *state);
static int32_t take_output(errand_job *job, void *thing, size_t chunk_max,
                           errand_payload *out_item);
static int output_fd(void *thing);
static void let_output(void *thing);

static const errand_job_type write_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "write to a process",
    .poll = write_poll,
    .drop = write_drop,
    .told = errand__wait_told,
};
static const errand__source_type output_type = {
    .name = "output",
    .take = take_output,
    .fd = output_fd,
    .let = let_output,
};

errand_status
errand_spec_process_write(errand_spec *out_spec, errand_process *process,
                          const void *bytes, size_t size)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && process != NULL &&
                           (bytes != NULL || size == 0) && size <= ERRAND_RECEIVE_MAX,
                       ERRAND_EINVAL, "out_spec, process or bytes is missing");
    if (process->in.missing)
        return ERRAND_EINVAL;
    write_state *state = errand__wait_create(sizeof *state, size, 0);
    if (state == NULL)
        return ERRAND_ENOMEM;
    if (!errand__seat_take(&process->in.seat, &state->wait.ticket)) {
        errand__operation_block_free(state);
        return ERRAND_EBUSY;
    }
    state->wait.seat = &process->in.seat;
    state->process = errand_process_hold(process);
    state->size = size;
    if (size > 0)
        memcpy(state->bytes, bytes, size);
    errand__wait_spec(out_spec, ERRAND_KIND_PROCESS_WRITE, &write_job, state);
    return ERRAND_OK;
}

errand_status
errand_process_end_input(errand_process *process)
{
    uint32_t ticket;

    ERRAND_REQUIRE_ARG(process != NULL, ERRAND_EINVAL, "process is NULL");
    if (process->in.missing)
        return ERRAND_EINVAL;
    if (!errand__seat_take(&process->in.seat, &ticket))
        return ERRAND_EBUSY;
    if (!errand__seat_close(&process->in.seat, ERRAND__SEAT_ENDED))
        close_input(process);
    errand__seat_told(&process->in.seat, ticket);
    return ERRAND_OK;
}

static void
close_input(errand_process *process)
{
    errand__lock_acquire(&process->lock);
    int fd = process->in.fd;
    process->in.fd = -1;
    errand__lock_release(&process->lock);
    errand__operation_fd_close(&fd);
}

/* A write that was told to end had the turn when the input was ended. */
static void
close_ended(errand_process *process)
{
    if (errand__seat_is_left(&process->in.seat))
        close_input(process);
}

static int32_t
write_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    write_state *writes = state;
    int32_t code = errand__wait_ready(job, &writes->wait);

    (void)out_payload;
    if (code == 0)
        code = go_on(job, writes);
    code = errand__wait_done(&writes->wait, code);
    if (code != ERRAND_PENDING)
        close_ended(writes->process);
    return code;
}

static int32_t
go_on(errand_job *job, write_state *writes)
{
    int fd = writes->process->in.fd;

    while (writes->written < writes->size) {
        ssize_t count = write_quietly(fd, writes->bytes + writes->written,
                                      writes->size - writes->written);

        if (count >= 0)
            writes->written += (size_t)count;
        else if (errno == EAGAIN)
            return errand__wait_poll(job, &writes->wait, fd, POLLOUT);
        else if (errno != EINTR)
            return errand__operation_refused_as(
                job, ERRAND_OPERATION_SEND_FAILED, errno, "write",
                "process %d has read %zu of %zu bytes at most", writes->process->pid,
                writes->written, writes->size);
    }
    return 0;
}

static ssize_t
write_quietly(int fd, const void *bytes, size_t size)
{
    const struct timespec now = {.tv_sec = 0};
    sigset_t pipe_only, before, pending;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    ssize_t count = write(fd, bytes, size);
    int error = errno;
    if (count < 0 && error == EPIPE && sigismember(&pending, SIGPIPE) == 0)
        sigtimedwait(&pipe_only, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return count;
}

static void
write_drop(void *state)
{
    write_state *writes = state;

    errand__wait_fini(&writes->wait);
    close_ended(writes->process);
    errand_process_abandon(&writes->process);
    errand__operation_block_free(writes);
}

/* ---- outputs ------------------------------------------------------------------------------------- */

errand_status
errand_source_output(errand_process *process, errand_output output,
                     const errand_source_config *config, errand_source **out_source)
{
    ERRAND_REQUIRE_ARG(process != NULL && out_source != NULL &&
                           (output == ERRAND_OUTPUT_OUT || output == ERRAND_OUTPUT_ERR),
                       ERRAND_EINVAL, "process, output or out_source is missing");
    errand__pipe *pipe = output == ERRAND_OUTPUT_OUT ? &process->out : &process->err;
    if (pipe->missing || (process->pid != 0 && pipe->fd < 0))
        return ERRAND_EINVAL;
    errand_process_hold(process);
    errand_status status = errand__source_create(__func__, &output_type, pipe,
                                                 &pipe->seat, config, out_source);
    if (status != ERRAND_OK)
        let_output(pipe);
    return status;
}

static int32_t
take_output(errand_job *job, void *thing, size_t chunk_max, errand_payload *out_item)
{
    char scratch[SCRATCH];
    size_t max = chunk_max < sizeof scratch ? chunk_max : sizeof scratch;
    ssize_t count;

    do
        count = read(output_fd(thing), scratch, max);
    while (count < 0 && errno == EINTR);
    if (count < 0 && errno == EAGAIN)
        return ERRAND_PENDING;
    if (count < 0)
        return errand__operation_refused(job, errno, "read", "its output cannot be read");
    if (count == 0)
        return 0;
    char *block = errand__operation_bytes_alloc((size_t)count);
    if (block == NULL)
        return errand__operation_no_memory(job, (size_t)count);
    memcpy(block + sizeof(errand_file_bytes), scratch, (size_t)count);
    errand__operation_payload_bytes(out_item, block, (size_t)count);
    return 0;
}

static int
output_fd(void *thing)
{
    return ((errand__pipe *)thing)->fd;
}

static void
let_output(void *thing)
{
    errand_process *process = ((errand__pipe *)thing)->process;

    errand_process_abandon(&process);
}
