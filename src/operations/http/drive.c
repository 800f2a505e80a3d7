/* SPDX-License-Identifier: MIT */
/* drive: a body that waits for what libcurl waits for.
 *
 * Design notes: libcurl changes its mind about sockets while requests to wait for them are under way.
 * A slot's request is asked back when it no longer fits, and made anew once it has come.
 * Whenever libcurl works it may close a socket and open another one, which gets the same number: of the
 * same transfer, or, while a helper has it, of anybody here.  So it works when no request is under way.
 * libcurl reads and understands all authorities' certificates when a connection begins, which takes
 * the disk and then the processor tens of milliseconds: until a connection is secure, whatever libcurl
 * does of it is done by a helper thread, and nobody here looks at the transfer meanwhile.
 * As long as a server sends faster than it is read, libcurl wants to go on at once, for ever: it gets
 * a bounded number of steps per poll, so that limits, cancels and other jobs have their turn. */
#include <errno.h>
#include <poll.h>
#include "core/pause.h"
#include "errand/traps.h"
#include "operations/http/http.h"

#if ERRAND_HAS_CURL
int32_t
errand__http_drive_turn(errand_job *job, errand__http_drive *drive,
                        errand__transfer *transfer)
{
    if (!drive->begun) {
        errand_job_impure(job);
        uint64_t now = errand__clock_now();
        drive->begun = true;
        drive->until =
            drive->limit_ns > UINT64_MAX - now ? UINT64_MAX : now + drive->limit_ns;
    } else if (errand_job_cancelled(job)) {
        return errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                        "%s: it was cancelled", transfer->shown.text);
    }
    return errand__http_drive_hear(job, drive, transfer);
}

/* Is there news of sockets that was not passed on? */
static bool
collect(errand__http_drive *drive)
{
    bool any = false;

    for (size_t i = 0; i < HTTP_SOCKETS; i++) {
        errand_io *io = &drive->polls[i];

        if (drive->polling[i] && io->done) {
            drive->polling[i] = false;
            drive->news[i].fd = io->fd;
            drive->news[i].events = io->result == -ECANCELED ? 0
                                    : io->result < 0         ? POLLERR
                                                             : (uint32_t)io->result;
        }
        any = any || drive->news[i].events != 0;
    }
    return any;
}

/* Are requests under way?  Then they are asked back. */
static bool
ask_back(errand_job *job, errand__http_drive *drive)
{
    bool any = false;

    for (size_t i = 0; i < HTTP_SOCKETS; i++) {
        any = any || drive->polling[i];
        if (drive->polling[i])
            errand_io_cancel(job, &drive->polls[i]);
    }
    return any;
}

/* The loop, or a helper: what came, and what is due. */
static int32_t
pass_on(void *arg)
{
    errand__http_drive *drive = arg;
    errand__transfer *transfer = drive->transfer;

    ERRAND__PAUSE("http");
    for (size_t i = 0; i < HTTP_SOCKETS; i++) {
        uint32_t events = drive->news[i].events;

        drive->news[i].events = 0;
        if (events != 0 && !transfer->over && drive->news[i].fd == transfer->wants[i].fd)
            errand__transfer_act(transfer, drive->news[i].fd, events);
    }
    errand__transfer_timers(transfer);
    ERRAND__PAUSE("http-worked");
    return 0;
}

int32_t
errand__http_drive_hear(errand_job *job, errand__http_drive *drive,
                        errand__transfer *transfer)
{
    if (drive->timing && drive->timer.done)
        drive->timing = false;
    if (drive->calling && !drive->call.done)
        return errand__http_drive_wait(job, drive, transfer);
    drive->calling = drive->waiting = false;
    bool due = collect(drive) || transfer->timer_at <= errand__clock_now();
    if (!due || transfer->over)
        return 0;
    drive->waiting = ask_back(job, drive);
    if (drive->waiting)
        return errand__http_drive_wait(job, drive, transfer);
    drive->transfer = transfer;
    drive->call = (errand_io){.kind = ERRAND_IO_CALL, .function = pass_on, .arg = drive};
    drive->calling = transfer->apart && errand_io_start(job, &drive->call) == ERRAND_OK;
    return drive->calling ? errand__http_drive_wait(job, drive, transfer)
                          : pass_on(drive);
}

/* Requests for what the transfer waits for, unless libcurl works or is about to; a timer until then. */
static errand_status
arm(errand_job *job, errand__http_drive *drive, const errand__transfer *transfer,
    uint64_t until)
{
    errand_status status = ERRAND_OK;
    size_t count = drive->calling || drive->waiting ? 0 : HTTP_SOCKETS;

    for (size_t i = 0; i < count && status == ERRAND_OK; i++) {
        errand_io *io = &drive->polls[i];
        int fd = transfer->wants[i].fd;
        uint32_t events = transfer->wants[i].events;

        if (drive->polling[i] && (io->fd != fd || io->events != events)) {
            errand_io_cancel(job, io);
        } else if (!drive->polling[i] && fd >= 0 && events != 0) {
            *io = (errand_io){.kind = ERRAND_IO_POLL, .fd = fd, .events = events};
            status = errand_io_start(job, io);
            drive->polling[i] = status == ERRAND_OK;
        }
    }
    if (drive->timing && until < drive->timer.until_ns) {
        errand_io_cancel(job, &drive->timer);
    } else if (!drive->timing && status == ERRAND_OK) {
        drive->timer = (errand_io){.kind = ERRAND_IO_TIMEOUT, .until_ns = until};
        status = errand_io_start(job, &drive->timer);
        drive->timing = status == ERRAND_OK;
    }
    return status;
}

int32_t
errand__http_drive_wait(errand_job *job, errand__http_drive *drive,
                        errand__transfer *transfer)
{
    uint64_t until = drive->until;

    if (!drive->calling && !drive->waiting && transfer->timer_at < until)
        until = transfer->timer_at;
    if (errand__clock_now() >= drive->until)
        return errand__operation_failed(
            job, ERRAND_OPERATION_TIMEOUT, "%s: it took longer than %s",
            transfer->shown.text, errand__operation_length(drive->limit_ns).text);
    if (arm(job, drive, transfer, until) != ERRAND_OK)
        return errand__operation_no_reactor(job);
    return ERRAND_PENDING;
}
#endif
