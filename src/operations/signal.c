/* SPDX-License-Identifier: MIT */
/* signal: signals as items of a source.
 *
 * Design notes: a signalfd reads what is pending for the process, or for the thread that reads, so
 * the signals have to be blocked wherever they might be delivered.  Each read takes as many
 * as there is room for. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "operations/codec.h"

typedef struct signals {
    int fd;
} signals;

static int32_t take_signal(errand_job *job, void *thing, size_t chunk_max,
                           errand_payload *out_item);
static int signals_fd(void *thing);
static void let_signals(void *thing);
static void drop_signal(void *data, size_t size);

const errand_payload_type errand_caught_signal_type = {"signal", drop_signal};
static const errand__source_type signals_type = {
    .name = "signal",
    .take = take_signal,
    .fd = signals_fd,
    .let = let_signals,
    .buffers = true,
};

errand_status
errand_source_signals(const int32_t *numbers, size_t count,
                      const errand_source_config *config, errand_source **out_source)
{
    sigset_t set;

    ERRAND_REQUIRE_ARG(numbers != NULL && count > 0 && out_source != NULL, ERRAND_EINVAL,
                       "numbers or out_source is missing");
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        ERRAND_REQUIRE_ARG(numbers[i] != SIGKILL && numbers[i] != SIGSTOP &&
                               sigaddset(&set, numbers[i]) == 0,
                           ERRAND_EINVAL,
                           "there is no such signal, or it cannot be told");
    signals *made = errand__operation_block_alloc(sizeof *made);
    if (made == NULL)
        return ERRAND_ENOMEM;
    made->fd = errand__operation_fd_raise(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
    if (made->fd < 0 || pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) {
        let_signals(made);
        return ERRAND_ESYSTEM;
    }
    errand_status status =
        errand__source_create(__func__, &signals_type, made, NULL, config, out_source);
    if (status != ERRAND_OK)
        let_signals(made);
    return status;
}

static int32_t
take_signal(errand_job *job, void *thing, size_t chunk_max, errand_payload *out_item)
{
    struct signalfd_siginfo told;
    ssize_t count;

    (void)chunk_max;
    do
        count = read(signals_fd(thing), &told, sizeof told);
    while (count < 0 && errno == EINTR);
    if (count < 0 && errno == EAGAIN)
        return ERRAND_PENDING;
    if (count != (ssize_t)sizeof told)
        return errand__operation_refused(job, count < 0 ? errno : EIO, "read",
                                         "no signal was read");
    errand_caught_signal *signal = errand__operation_block_alloc(sizeof *signal);
    if (signal == NULL)
        return errand__operation_no_memory(job, sizeof *signal);
    signal->number = (int32_t)told.ssi_signo;
    signal->code = told.ssi_code;
    signal->pid = (int32_t)told.ssi_pid;
    signal->uid = told.ssi_uid;
    signal->status = told.ssi_status;
    errand__operation_payload(out_item, &errand_caught_signal_type, signal,
                              sizeof *signal);
    return 0;
}

static int
signals_fd(void *thing)
{
    return ((signals *)thing)->fd;
}

static void
let_signals(void *thing)
{
    signals *gone = thing;

    errand__operation_fd_close(&gone->fd);
    errand__operation_block_free(gone);
}

static void
drop_signal(void *data, size_t size)
{
    (void)size;
    errand__operation_block_free(data);
}

/* ---- digest and codec ------------------------------------------------------------------------ */

uint64_t
errand_caught_signal_digest(const void *data, size_t size)
{
    const errand_caught_signal *signal = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, (uint64_t)(int64_t)signal->number);
    errand__digest_number(&mix, (uint64_t)(int64_t)signal->code);
    return errand__digest_end(&mix);
}

static bool
encode_signal(const void *data, size_t size, errand_sink *sink)
{
    const errand_caught_signal *signal = data;

    (void)size;
    errand_sink_word(sink, (uint64_t)(int64_t)signal->number);
    errand_sink_word(sink, (uint64_t)(int64_t)signal->code);
    errand_sink_word(sink, (uint64_t)(int64_t)signal->pid);
    errand_sink_word(sink, signal->uid);
    errand_sink_word(sink, (uint64_t)(int64_t)signal->status);
    return true;
}

static errand_status
decode_signal(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    errand_caught_signal read = {.number =
                                     (int32_t)(int64_t)errand__codec_read_word(&in)};

    read.code = (int32_t)(int64_t)errand__codec_read_word(&in);
    read.pid = (int32_t)(int64_t)errand__codec_read_word(&in);
    read.uid = (uint32_t)errand__codec_read_word(&in);
    read.status = (int32_t)(int64_t)errand__codec_read_word(&in);
    if (!in.good || in.left != 0)
        return ERRAND_EDECODE;
    errand_caught_signal *signal = errand__operation_block_alloc(sizeof *signal);
    if (signal == NULL)
        return ERRAND_ENOMEM;
    *signal = read;
    errand__operation_payload(out_payload, &errand_caught_signal_type, signal,
                              sizeof *signal);
    return ERRAND_OK;
}

static const errand_payload_codec signal_codec = {sizeof signal_codec, encode_signal,
                                                  decode_signal};
const errand__codec_row errand__signal_rows[] = {
    {&errand_caught_signal_type, errand_caught_signal_digest, &signal_codec},
    {NULL, NULL, NULL},
};
