/* SPDX-License-Identifier: MIT */
/* Design notes: io_uring, for whoever waits elsewhere.
 *
 * A ring's own descriptor does not tell of work that is put off (DEFER_TASKRUN), an event
 * descriptor that is registered with it does.  It is silenced while the thread looks itself. */
#include <unistd.h>
#include "workers/reactor/uring.h"

int
errand__uring_descriptor(errand__loop *loop)
{
    errand__uring *self = loop->state;

    if (self->signal >= 0)
        return self->signal;
    self->signal = errand__bell_create();
    if (self->signal >= 0 && io_uring_register_eventfd(&self->ring, self->signal) != 0) {
        close(self->signal);
        self->signal = -1;
    }
    if (self->signal >= 0)
        (void)io_uring_cq_eventfd_toggle(&self->ring, false);
    return self->signal;
}

static void
set_alarm(errand__loop *loop, uint64_t at_ns)
{
    errand__uring *self = loop->state;
    struct io_uring_sqe *entry;
    bool armed = loop->alarm_ns != UINT64_MAX;

    if (at_ns == loop->alarm_ns || (entry = errand__uring_entry(loop)) == NULL)
        return;
    self->alarm.tv_sec = (int64_t)(at_ns / 1000000000);
    self->alarm.tv_nsec = (long long)(at_ns % 1000000000);
    if (!armed)
        io_uring_prep_timeout(entry, &self->alarm, 0, IORING_TIMEOUT_ABS);
    else if (at_ns == UINT64_MAX)
        io_uring_prep_timeout_remove(entry, ERRAND__TAG_ALARM, 0);
    else
        io_uring_prep_timeout_update(entry, &self->alarm, ERRAND__TAG_ALARM,
                                     IORING_TIMEOUT_ABS);
    io_uring_sqe_set_data64(entry, armed ? ERRAND__TAG_NOBODY : ERRAND__TAG_ALARM);
    loop->alarm_ns = at_ns;
    (void)errand__uring_enter(loop, NULL);
}

void
errand__uring_rest(errand__loop *loop, uint64_t at_ns)
{
    errand__uring *self = loop->state;
    uint64_t count;

    set_alarm(loop, at_ns);
    if (self->signal < 0)
        return;
    ssize_t got = read(self->signal, &count, sizeof count); /* of the last time */
    (void)got;
    (void)io_uring_cq_eventfd_toggle(&self->ring, true);
    self->looked = false;
    if (errand__uring_waits(self)) /* what came before the toggle tells nobody */
        (void)errand__uring_enter(loop, NULL);
}

void
errand__uring_rouse(errand__loop *loop)
{
    errand__uring *self = loop->state;

    if (self->signal >= 0)
        (void)io_uring_cq_eventfd_toggle(&self->ring, false);
}
