/* SPDX-License-Identifier: MIT */
/* wait: what all bodies do that wait on a reactor: begin, be told to end, hold to a limit.
 *
 * Design notes: a body asks for one thing at a time, with its limit beside it.  When it is to end
 * (cancelled, its thing closed, its limit passed) it says so at once: the reactor asks back
 * what is under way, and the state, with all memory that the kernel knows of, is dropped when that
 * has come.  Where something could be lost with an answer that nobody hears (a connection, a
 * packet), the body asks for readiness alone, and takes it by a call that does not wait. */
#include <poll.h>
#include "errand/traps.h"
#include "operations/operations.h"

void *
errand__wait_create(size_t front, size_t bytes, uint64_t limit_ns)
{
    size_t start = (front + bytes + 15) / 16 * 16;
    errand__wait *wait = errand__operation_block_alloc_for(
        front, limit_ns == 0 ? bytes : start - front + sizeof(errand_io));

    if (wait == NULL)
        return NULL;
    wait->limit_ns = limit_ns;
    if (limit_ns != 0) {
        wait->limit = (errand_io *)(void *)((char *)wait + start);
        *wait->limit = (errand_io){.result = 0};
    }
    return wait;
}

/* Which of its seats is gone? */
static int32_t
gone(errand_job *job, const errand__wait *wait, bool begun)
{
    if (begun && wait->item && errand__seat_gone(wait->seat) == ERRAND__SEAT_CLOSED)
        return errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                        "its source was closed");
    return errand__operation_failed(
        job, ERRAND_OPERATION_CLOSED,
        "it is closed, or what came before on it failed or was cancelled");
}

static void
begin(errand_job *job, errand__wait *wait)
{
    errand_job_impure(job);
    wait->begun = true;
    if (wait->limit != NULL) {
        uint64_t now = errand__clock_now();

        *wait->limit = (errand_io){
            .kind = ERRAND_IO_TIMEOUT,
            .until_ns =
                wait->limit_ns > UINT64_MAX - now ? UINT64_MAX : now + wait->limit_ns,
        };
    }
}

/* Does its limit hold from now on?  It is asked for once. */
static errand_status
limit(errand_job *job, errand__wait *wait)
{
    errand_status status = ERRAND_OK;

    if (wait->limit != NULL && !wait->timed)
        status = errand_io_start(job, wait->limit);
    wait->timed = status == ERRAND_OK;
    return status;
}

static int32_t
late(errand_job *job, const errand__wait *wait)
{
    return errand__operation_failed(job, ERRAND_OPERATION_TIMEOUT,
                                    "it took longer than %s",
                                    errand__operation_length(wait->limit_ns).text);
}

/* The operation before it was told to end, and its body has not left yet.  Where no reactor is a limit
 * is not held to meanwhile: what was told to end does. */
static errand__seat_answer
enter(errand_job *job, errand__wait *wait)
{
    errand__seat_answer answer = ERRAND__SEAT_HAS;

    if (wait->seat != NULL && !wait->in)
        answer = errand__seat_enter(wait->seat, &wait->place, wait->ticket,
                                    ERRAND__SEAT_OPEN, job);
    wait->in = answer == ERRAND__SEAT_HAS;
    if (wait->in && wait->outer != NULL) {
        answer = errand__seat_enter(wait->outer, &wait->place, wait->outer_ticket,
                                    ERRAND__SEAT_OPEN, job);
        if (answer == ERRAND__SEAT_WAITS &&
            !errand__seat_wait(wait->seat, wait->ticket, job))
            answer = ERRAND__SEAT_GONE;
    }
    return answer;
}

/* At each poll until it has its turn: as ready. */
static int32_t
take_turn(errand_job *job, errand__wait *wait)
{
    bool again = wait->begun;

    if (!again)
        begin(job, wait);
    else if (errand_job_cancelled(job))
        return errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                        "it was cancelled before its turn came");
    else if (wait->limit != NULL && wait->limit->done)
        return late(job, wait);
    switch (enter(job, wait)) {
    case ERRAND__SEAT_GONE:
        return gone(job, wait, again);
    case ERRAND__SEAT_WAITS:
        (void)limit(job, wait);
        return ERRAND_PENDING;
    default:
        break;
    }
    /* Then the next one may have been here before it, and what it did now would come behind. */
    if (wait->seat != NULL && !wait->acts && errand_job_cancelled(job))
        return errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                        "it was cancelled before its turn came");
    wait->turned = true;
    if (again)
        wait->io = (errand_io){.result = 0}; /* where its place was */
    return 0;
}

/* A close reaches it from here on; false: one came before. */
static bool
sit(errand_job *job, errand__wait *wait)
{
    return (wait->seat == NULL || errand__seat_wait(wait->seat, wait->ticket, job)) &&
           (wait->outer == NULL ||
            errand__seat_wait(wait->outer, wait->outer_ticket, job));
}

int32_t
errand__wait_ready(errand_job *job, errand__wait *wait)
{
    if (!wait->turned)
        return take_turn(job, wait);
    if (errand_job_cancelled(job))
        return errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                        "it was cancelled while it waited");
    if ((wait->seat != NULL && errand__seat_gone(wait->seat) != ERRAND__SEAT_OPEN) ||
        (wait->outer != NULL && errand__seat_gone(wait->outer) != ERRAND__SEAT_OPEN))
        return gone(job, wait, true);
    if (wait->limit != NULL && wait->limit->done)
        return late(job, wait);
    if (wait->asked && !wait->io.done)
        return ERRAND_PENDING;
    if (wait->asked && wait->io.kind == ERRAND_IO_POLL && wait->io.result < 0)
        return errand__operation_refused(job, -wait->io.result, "poll", "it cannot wait");
    return 0;
}

int32_t
errand__wait_ask(errand_job *job, errand__wait *wait)
{
    errand_status status = ERRAND_OK;

    if (!wait->seated && !sit(job, wait))
        return gone(job, wait, true);
    if (!wait->seated)
        status = limit(job, wait);
    wait->seated = true;
    if (status == ERRAND_OK)
        status = errand_io_start(job, &wait->io);
    if (status != ERRAND_OK)
        return errand__operation_no_reactor(job);
    wait->asked = true;
    return ERRAND_PENDING;
}

int32_t
errand__wait_poll(errand_job *job, errand__wait *wait, int fd, uint32_t events)
{
    wait->io = (errand_io){.kind = ERRAND_IO_POLL, .fd = fd, .events = events};
    return errand__wait_ask(job, wait);
}

void
errand__wait_helpers(errand_job *job, errand__wait *wait)
{
    if (wait->helpers == NULL)
        wait->helpers = errand_job_helpers(job);
}

int32_t
errand__wait_call(errand_job *job, errand__wait *wait, int32_t (*function)(void *arg),
                  void *arg)
{
    errand__wait_helpers(job, wait);
    wait->io = (errand_io){.kind = ERRAND_IO_CALL, .function = function, .arg = arg};
    if (wait->helpers != NULL)
        return errand__wait_ask(job, wait);
    wait->asked = true;
    wait->io.result = function(arg);
    wait->io.done = true;
    return 0;
}

/* The outer one first: the next item needs both. */
static void
leave(errand__wait *wait, bool poison)
{
    errand__seat_place *place = wait->turned ? NULL : &wait->place;

    wait->left = true;
    if (wait->outer != NULL && wait->in)
        errand__seat_leave(wait->outer, place, wait->outer_ticket, poison);
    if (wait->seat != NULL)
        errand__seat_leave(wait->seat, wait->in ? NULL : place, wait->ticket, poison);
}

int32_t
errand__wait_done(errand__wait *wait, int32_t code)
{
    if (code != ERRAND_PENDING)
        leave(wait, wait->turned && code != 0 && !wait->keeps &&
                        !(wait->item && code == ERRAND_OPERATION_STOPPED));
    return code;
}

void
errand__wait_told(void *state)
{
    const errand__wait *wait = state;

    if (wait->seat != NULL)
        errand__seat_told(wait->seat, wait->ticket);
}

void
errand__wait_fini(errand__wait *wait)
{
    errand__wait_told(wait);
    if (!wait->left)
        leave(wait, false); /* once it has left, somebody else may be there */
    errand_helpers_abandon(&wait->helpers);
}

void
errand__wait_spec(errand_spec *out_spec, uint32_t kind, const errand_job_type *held_job,
                  void *state)
{
    errand__operation_spec_fill(out_spec, kind, held_job, state);
    out_spec->resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
}
