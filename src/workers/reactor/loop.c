/* SPDX-License-Identifier: MIT */
/* Design notes: one loop.
 *
 * A round polls jobs that were woken (turns.c), hands what they started to the back end in one go, and
 * polls the jobs of what is done.
 *
 * Every poll may panic, and lands in the round's frame: whatever the round takes out of a list or
 * queue it takes before it polls, so it goes on where it was.  What is filled in for the kernel
 * stays filled in. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include "workers/reactor/reactor.h"

#define FIRES_HERE   256               /* then who waits is told, while all is near */
#define CLOCK_AGE_NS UINT64_C(1000000) /* then the clock is read again */

/* current: whose job runs on this thread.  Written around each round. */
static _Thread_local errand__loop *current;

errand__loop *
errand__loop_current(void)
{
    return current;
}

int
errand__loop_init(errand__loop *loop, errand__reactor *reactor, errand__port *port)
{
    loop->reactor = reactor;
    loop->backend = reactor->backend;
    loop->port = port;
    loop->alarm_ns = UINT64_MAX;
    loop->returned_fd = -1;
    errand__list_init(&loop->turns);
    errand__list_init(&loop->waiting);
    errand__list_init(&loop->finished);
    errand__wheel_init(&loop->wheel, errand__clock_now());
    errand__poller_init(&loop->poller, &loop->spans);
    loop->poller.recall = errand__request_recall_all;
    return 0;
}

void
errand__loop_fini(errand__loop *loop)
{
    errand__poller_fini(&loop->poller);
    if (loop->port != NULL)
        errand__port_let(loop->port);
    loop->port = NULL;
}

/* Nobody has anything of this loop's any more. */
static void
forget_returned(errand__loop *loop)
{
    if (loop->returned_fd >= 0)
        close(loop->returned_fd);
    loop->returned_fd = -1;
}

int
errand__loop_begin(errand__loop *loop, int bell)
{
    int error;

    loop->returned_fd = errand__bell_create();
    error = loop->returned_fd < 0 ? errno : loop->backend->init(loop, bell);
    loop->ready = error == 0;
    if (!loop->ready)
        forget_returned(loop);
    return error;
}

void
errand__loop_end(errand__loop *loop)
{
    if (loop->ready)
        loop->backend->fini(loop);
    forget_returned(loop);
    loop->ready = false;
}

/* ---- what is done ---------------------------------------------------------------------------- */

static void
tell_finished(errand__loop *loop)
{
    /* As many as there are now: a job that starts the next at once does not keep the round. */
    size_t count = 0;

    for (errand__link *link = loop->finished.next; link != &loop->finished;
         link = link->next)
        count++;
    for (; count > 0 && !errand__list_empty(&loop->finished); count--) {
        errand_io *io = errand__request_io(loop->finished.next);
        errand__request *request = errand__request_of(io);

        errand__list_unlink(&request->link);
        request->state &= ~(uintptr_t)(ERRAND__IO_LISTED | ERRAND__IO_FINISHED);
        if (errand__kinds[io->kind].many)
            errand__request_item(loop, io, io->result, false);
        else
            errand__request_done(loop, io, io->result);
    }
}

static void
fire_timers(errand__loop *loop)
{
    errand__hands *hands = &loop->poller.hands;
    unsigned fired = 0;
    errand_io *io;
    uint64_t now;

    if (loop->wheel.count == 0)
        return;
    now = errand__clock_now();
    errand__hands_read(hands);
    uint64_t begun = hands->cycles;
    for (unsigned most = loop->local ? FIRES_HERE : UINT_MAX;
         fired < most && (io = errand__wheel_take(&loop->wheel, now)) != NULL; fired++) {
        if (errand__kinds[io->kind].of_loop)
            errand__request_done(loop, io, 0);
        else
            loop->backend->start(loop, io); /* a try that was put off */
    }
    errand__loop_pace(hands, begun, fired);
}

uint64_t
errand__loop_until(const errand__loop *loop)
{
    uint64_t next = errand__wheel_next(&loop->wheel), now;

    if (next == UINT64_MAX)
        return UINT64_MAX;
    now = errand__clock_now();
    return next > now ? next - now : 0;
}

bool
errand__loop_holds(errand__loop *loop)
{
    return !errand__list_empty(&loop->turns) || !errand__port_empty(loop->port) ||
           !errand__list_empty(&loop->finished);
}

static bool
turn_wanted(errand__loop *loop)
{
    const errand__backend *backend = loop->backend;

    return loop->ready &&
           (backend->wanted(loop) || (backend->filled != NULL && backend->filled(loop)));
}

bool
errand__loop_busy(errand__loop *loop)
{
    return errand__loop_holds(loop) || turn_wanted(loop);
}

bool
errand__loop_pressed(errand__loop *loop)
{
    return errand__loop_holds(loop) || (loop->ready && loop->backend->wanted(loop));
}

/* A runtime that dozes is rung once for several puts, at the latest at the end of the round. */
static void
ring_owed(errand__loop *loop)
{
    errand_lease *lease = loop->owed;

    if (lease == NULL)
        return;
    loop->owed = NULL;
    errand__hands_ring(&loop->poller.hands, lease->block);
    errand__lease_let(lease);
}

void
errand__loop_serve(errand__loop *loop, errand_lease *lease)
{
    if (loop->local || loop->owed == lease)
        return;
    ring_owed(loop);
    errand__lease_hold(lease);
    loop->owed = lease;
}

void
errand__loop_left(errand__loop *loop, const char *message)
{
    errand_lease *lease = loop->serving;

    errand__poller_panicked(&loop->poller, message);
    loop->inside = false;
    if (lease == NULL)
        return;
    errand__loop_end_turn(loop);
    loop->serving = NULL;
    if (!loop->local)
        errand__lease_let(lease);
}

static void
one_round(errand__loop *loop, uint64_t timeout_ns)
{
    errand__hands *hands = &loop->poller.hands;
    uint64_t until;

    if (!loop->flushing) /* else the first job's begin reads it, unless its submission did */
        errand__hands_read(hands);
    else if (loop->flushed_at > hands->cycles)
        errand__hands_at_cycles(hands, loop->flushed_at);
    if (hands->now_ns - hands->base_ns > CLOCK_AGE_NS)
        errand__hands_clock(hands);
    if (!loop->flushing)
        hands->lazy_left = hands->lazy;
    else
        hands->lazy_left = loop->flushed_at != 0 ? 1 : 0;
    errand__loop_run_woken(loop);
    if (loop->flushing) { /* the rest is the next drain's */
        if (turn_wanted(loop))
            loop->backend->turn(loop, 0);
        return;
    }
    tell_finished(loop);
    fire_timers(loop);
    if (timeout_ns != 0) {
        if (loop->moved || errand__loop_pressed(loop)) {
            timeout_ns = 0;
        } else if ((until = errand__loop_until(loop)) < timeout_ns) {
            timeout_ns = until;
        }
    }
    ring_owed(loop); /* before a wait */
    if (loop->ready)
        loop->backend->turn(loop, timeout_ns);
    if (timeout_ns != 0)
        fire_timers(loop);
}

/* A round, in memory, so that a panic finds it as it was. */
typedef struct round {
    errand__loop *loop;
    uint64_t timeout_ns;
} round;

static void
run_round(round *self)
{
    errand__hands *hands = &self->loop->poller.hands;

    if (ERRAND__CATCH(&hands->frame)) {
        errand__loop_left(self->loop, self->loop->poller.hands.frame.message);
        self->loop->inside = true;
        self->timeout_ns = 0; /* what the round had left comes with the next */
    }
    one_round(self->loop, self->timeout_ns);
    errand__frame_leave(&self->loop->poller.hands.frame);
}

void
errand__loop_round(errand__loop *loop, uint64_t timeout_ns)
{
    round self = {loop, timeout_ns};
    errand__loop *outer = current;

    if (loop->inside)
        return;
    loop->inside = true;
    loop->moved = false;
    current = loop;
    run_round(&self);
    current = outer;
    ring_owed(loop);
    errand__spans_hands(&loop->spans, &loop->poller.hands);
    loop->inside = false;
}
