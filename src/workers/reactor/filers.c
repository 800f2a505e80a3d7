/* SPDX-License-Identifier: MIT */
/* Design notes: threads that do what cannot be waited for.
 *
 * There are as many as there is work for, up to the limit; one that finds none for ten seconds
 * ends.  A request that still stands in the queue can be taken back; one that a filer has ends
 * when its call does, and until then its block is the filer's.
 *
 * No request stays in the queue with nobody to look at it: a filer is counted (serving) from
 * before it is made until, with the same lock, it has found the queue empty and ends.  Whoever
 * could make none and is told that nobody is left does what is queued itself, until somebody
 * is there.  So a request that was given is done, whatever the system refuses.
 *
 * What they have done comes back through a stack of the loop's and a descriptor: whoever pushes onto
 * an empty one writes, and the loop takes all of it when it has read that, so each write belongs
 * to one batch, and no filer touches the descriptor after the loop has its request.
 *
 * What nobody waits for (errand_helpers_call) has a request of its own, which goes with it.  Whoever
 * lets something go may outlive the reactor: then it does it itself.
 *
 * A filer that ends joins the one that ended before it, and the reactor's end, which waits for the count,
 * the last: so when that has returned nothing of them runs any more, neither what a library does at the end of
 * a thread that has called it (libcrypto frees what is the thread's, and may not be unloaded by an exit
 * meanwhile). */
#include <errno.h>
#include <unistd.h>
#include "core/pause.h"
#include "workers/reactor/calls.h"

#define IDLE_NS UINT64_C(10000000000)

errand__filers *
errand__filers_create(uint32_t limit, const char *name)
{
    errand__filers *made = errand__mem_alloc(NULL, sizeof *made);

    if (made == NULL)
        return NULL;
    made->limit = limit;
    made->idle_ns = IDLE_NS;
    made->name = name;
    made->fork_epoch = errand__fork_epoch();
    atomic_init(&made->refs, 1);
    errand__list_init(&made->queue);
    return made;
}

void
errand__filers_let(errand__filers *filers)
{
    /* Pairs: filer-refs */
    if (atomic_fetch_sub_explicit(&filers->refs, 1, memory_order_acq_rel) == 1)
        errand__mem_free(NULL, filers, sizeof *filers);
}

void
errand__filers_end(errand__filers *filers)
{
    unsigned left;
    pthread_t last;
    bool any_ended;

    errand__lock_acquire(&filers->lock);
    filers->stopping = true;
    errand__lock_release(&filers->lock);
    atomic_fetch_add_explicit(&filers->bell, 1,
                              memory_order_release); /* Pairs: filer-bell */
    errand__futex_wake(&filers->bell, INT32_MAX);
    while ((left = atomic_load_explicit(&filers->threads, memory_order_acquire)) != 0)
        errand__futex_wait(&filers->threads, left, UINT64_MAX); /* Pairs: filer-count */
    errand__lock_acquire(&filers->lock);
    any_ended = filers->any_ended;
    last = filers->last;
    filers->any_ended = false;
    errand__lock_release(&filers->lock);
    if (any_ended)
        pthread_join(last, NULL);
    errand__filers_let(filers);
}

/* The oldest in the queue, with the lock; NULL: it is empty. */
static errand_io *
take_oldest(errand__filers *filers)
{
    errand__link *link = filers->queue.next;

    if (errand__list_empty(&filers->queue))
        return NULL;
    errand__list_unlink(link);
    filers->queued--;
    return errand__request_io(link);
}

/* The next request; NULL: this filer ends. */
static errand_io *
next_request(errand__filers *filers)
{
    for (;;) {
        unsigned bell = atomic_load_explicit(
            &filers->bell, memory_order_acquire); /* Pairs: filer-bell */
        errand_io *io;
        bool ended, timely;

        errand__lock_acquire(&filers->lock);
        io = take_oldest(filers);
        if (io == NULL)
            filers->idle++;
        ended = filers->stopping;
        errand__lock_release(&filers->lock);
        if (io != NULL)
            return io;
        timely = ended || errand__futex_wait(&filers->bell, bell, filers->idle_ns);
        ERRAND__PAUSE("filer-wakes");
        errand__lock_acquire(&filers->lock);
        filers->idle--;
        ended = errand__list_empty(&filers->queue) && (filers->stopping || !timely);
        if (ended)
            filers->serving--;
        errand__lock_release(&filers->lock);
        if (ended)
            return NULL;
    }
}

/* Runs in a filer. */
static void
give_back(errand__loop *loop, errand_io *io)
{
    const uint64_t one = 1;
    errand__request *request = errand__request_of(io);
    int fd = loop->returned_fd;
    uintptr_t head = atomic_load_explicit(&loop->returned, memory_order_relaxed);
    ssize_t written;

    do
        request->link.next = (errand__link *)head;
    while (!atomic_compare_exchange_weak_explicit(
        &loop->returned, &head, (uintptr_t)&request->link,
        memory_order_acq_rel, /* Pairs: filer-return */
        memory_order_relaxed));
    if (head != 0)
        return;
    do
        written = write(fd, &one, sizeof one);
    while (written < 0 && errno == EINTR);
}

/* The same. */
static void
do_request(errand_io *io)
{
    errand_waker *waker = errand__request_of(io)->waker;
    errand__loop_lease *mine = waker == NULL ? NULL : waker->lease;
    int32_t result;

    ERRAND__PAUSE("filer-begins");
    result = errand__kinds[io->kind].block(io);
    if (mine == NULL) { /* nobody waits for it */
        errand__mem_free(NULL, io, sizeof *io);
        return;
    }
    io->result = result;
    give_back(mine->loop, io);
}

static void
gone(errand__filers *filers)
{
    if (atomic_fetch_sub_explicit(&filers->threads, 1, memory_order_acq_rel) ==
        1) /* Pairs: filer-count */
        errand__futex_wake(&filers->threads, 1);
}

/* This filer is the last one now; the one before is joined. */
static void
join_former(errand__filers *filers)
{
    pthread_t former;
    bool any;

    errand__lock_acquire(&filers->lock);
    any = filers->any_ended;
    former = filers->last;
    filers->any_ended = true;
    filers->last = pthread_self();
    errand__lock_release(&filers->lock);
    if (any)
        pthread_join(former, NULL);
}

static void *
run_filer(void *arg)
{
    errand__filers *filers = arg;
    errand_io *io;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setname_np(pthread_self(), filers->name);
    while ((io = next_request(filers)) != NULL)
        do_request(io);
    ERRAND__PAUSE("filer-ends");
    join_former(filers);
    gone(filers);
    return NULL;
}

/* With no filer there: what is queued, on this thread, which may be the host's. */
static void
do_queued(errand__filers *filers)
{
    errand__pipe_guard guard = {.active = true};
    errand_io *io;

    errand__pipe_guard_enter(&guard);
    for (;;) {
        errand__lock_acquire(&filers->lock);
        io = filers->serving == 0 ? take_oldest(filers) : NULL;
        errand__lock_release(&filers->lock);
        if (io == NULL)
            break;
        do_request(io);
    }
    errand__pipe_guard_leave(&guard);
}

/* Which is counted already.  True: it was made, or the others will look at the queue; else what was
 * queued has been done here. */
static bool
make_filer(errand__filers *filers)
{
    pthread_t thread;
    bool served;

    ERRAND__PAUSE("filer-wanted");
    if (errand__thread_create(&thread, NULL, run_filer, filers) == 0)
        return true;
    errand__lock_acquire(&filers->lock);
    served = --filers->serving != 0;
    errand__lock_release(&filers->lock);
    if (!served)
        do_queued(filers);
    gone(filers);
    return served;
}

bool
errand__filers_give(errand__filers *filers, errand_io *io)
{
    bool wanted;

    errand__lock_acquire(&filers->lock);
    if (filers->stopping) {
        errand__lock_release(&filers->lock);
        return false;
    }
    errand__request_of(io)->state |= ERRAND__IO_FILER;
    errand__list_append(&filers->queue, &errand__request_of(io)->link);
    filers->queued++;
    wanted = filers->queued > filers->idle && filers->serving < filers->limit;
    if (wanted) {
        filers->serving++;
        atomic_fetch_add_explicit(&filers->threads, 1,
                                  memory_order_relaxed); /* the end waits for it */
    }
    errand__lock_release(&filers->lock);
    if (wanted && !make_filer(filers))
        return true;
    atomic_fetch_add_explicit(&filers->bell, 1,
                              memory_order_release); /* Pairs: filer-bell */
    errand__futex_wake(&filers->bell, 1);
    return true;
}

/* True: it was in the queue still, and is the caller's. */
static bool
take_back(errand__filers *filers, errand_io *io)
{
    errand__link *link = &errand__request_of(io)->link;
    bool taken; /* previous: next also links what filers give back */

    errand__lock_acquire(&filers->lock);
    taken = link->previous != NULL;
    if (taken) {
        errand__list_unlink(link);
        filers->queued--;
    }
    errand__lock_release(&filers->lock);
    return taken;
}

bool
errand__filers_recall(errand__loop *loop, errand_io *io)
{
    errand__request *request = errand__request_of(io);

    if ((request->state & ERRAND__IO_FILER) == 0)
        return false;
    if (!take_back(loop->reactor->filers, io))
        return true; /* it ends when its call does */
    if (io->kind == ERRAND_IO_OPEN)
        errand__fifo_forget(io);
    request->state &= (uintptr_t)(ERRAND__IO_UNDER_WAY | ERRAND__IO_ASKED);
    errand__request_finish_later(loop, io, -ECANCELED);
    return true;
}

void
errand__filers_collect(errand__loop *loop)
{
    uint64_t count;
    errand__link *link;

    if (read(loop->returned_fd, &count, sizeof count) != sizeof count)
        return;
    link = (errand__link *)atomic_exchange_explicit(
        &loop->returned, 0, memory_order_acq_rel); /* Pairs: filer-return */
    while (link != NULL) {
        errand__link *next = link->next;
        errand_io *io = errand__request_io(link);
        errand__request *request = errand__request_of(io);
        bool again = io->kind != ERRAND_IO_CALL && /* whose answer may be any number */
                     (io->result == ERRAND__TRY_LATER || io->result == ERRAND__TRY_IN);

        link->next = link->previous = NULL;
        request->state &= ~(uintptr_t)ERRAND__IO_FILER;
        if (!again) {
            errand__request_finish_later(loop, io, io->result);
        } else if ((request->state & ERRAND__IO_ASKED) != 0) {
            if (io->kind == ERRAND_IO_OPEN)
                errand__fifo_forget(io);
            errand__request_finish_later(loop, io, -ECANCELED);
        } else if (io->result == ERRAND__TRY_LATER) {
            errand__request_put_off(loop, io);
        } else {
            loop->backend->start(loop, io);
        }
        link = next;
    }
}

/* ---- what nobody waits for ------------------------------------------------------------------------ */

void
errand_helpers_call(errand_helpers *helpers, int32_t (*function)(void *arg), void *arg)
{
    errand_io *io = NULL;

    if (function == NULL)
        return;
    if (helpers != NULL && helpers->fork_epoch == errand__fork_epoch())
        io = errand__mem_alloc(NULL, sizeof *io);
    if (io != NULL) {
        *io = (errand_io){.kind = ERRAND_IO_CALL, .function = function, .arg = arg};
        if (errand__filers_give(helpers, io))
            return;
        errand__mem_free(NULL, io, sizeof *io);
    }
    (void)function(arg);
}

void
errand_helpers_abandon(errand_helpers **take_helpers)
{
    if (take_helpers == NULL || *take_helpers == NULL)
        return;
    errand__filers_let(*take_helpers);
    *take_helpers = NULL;
}
