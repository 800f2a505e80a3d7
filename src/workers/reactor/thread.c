/* SPDX-License-Identifier: MIT */
/* Design notes: loops with a thread, and the leases that are spread over them.
 *
 * Submits and wakes are the same push into the loop's port.  A sleeping loop waits in its back
 * end; whoever pushes then writes to a descriptor that the back end watches.
 *
 * A body that ends its thread (pthread_exit) is settled as PANICKED by a cleanup handler, inside
 * which the thread goes on serving: what the kernel has been given is this thread's, and would
 * be lost with it. */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "workers/reactor/reactor.h"

/* own: the loop whose thread this is. */
static _Thread_local errand__loop *own;

bool
errand__loop_is_own(const errand__loop *loop)
{
    return own == loop;
}

/* ---- the thread ---------------------------------------------------------------------------------- */

static void
serve(errand__loop *loop)
{
    for (;;) {
        if (errand__loop_pressed(loop)) {
            errand__loop_round(loop, 0);
            continue;
        }
        if (atomic_load_explicit(&loop->stopping,
                                 memory_order_acquire)) /* Pairs: loop-stop */
            return; /* no lease is left: what the kernel still says it has is nobody's */
        if (!errand__port_rest(loop->port))
            continue;
        atomic_store_explicit(&loop->asleep, true, memory_order_relaxed);
        errand__loop_round(loop, UINT64_MAX);
        atomic_store_explicit(&loop->asleep, false, memory_order_relaxed);
        errand__port_rouse(loop->port);
    }
}

static void
finish(errand__loop *loop)
{
    errand__loop_end(loop);
    own = NULL;
    if (!loop->orphan)
        return;
    pthread_detach(pthread_self());
    errand__reactor_free(loop->reactor);
}

/* A body ended the thread. */
static void
ended_inside(void *arg)
{
    errand__loop *loop = arg;

    errand__frame_unwind(&loop->poller.hands.frame);
    errand__frame_leave(&loop->poller.hands.frame);
    atomic_fetch_add_explicit(&loop->replaced, 1, memory_order_relaxed);
    errand__loop_left(loop, "the body ended its thread");
    serve(loop);
    finish(loop);
}

static void *
run_thread(void *arg)
{
    errand__loop *loop = arg;
    char name[16];

    own = loop;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    errand__text_format(name, sizeof name, "%s-%u", loop->reactor->name,
                        (unsigned)loop->index);
    pthread_setname_np(pthread_self(), name);
    loop->start_error = errand__loop_begin(loop, loop->port->fd);
    atomic_store_explicit(&loop->phase, loop->start_error == 0 ? 1 : 2,
                          memory_order_release); /* Pairs: loop-phase */
    errand__futex_wake(&loop->phase, 1);
    if (loop->start_error != 0)
        return NULL;
    pthread_cleanup_push(ended_inside, loop);
    serve(loop);
    pthread_cleanup_pop(0);
    finish(loop);
    return NULL;
}

/* Clear of the standard descriptors (O62). */
int
errand__bell_create(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), higher;

    if (fd < 0 || fd > 2)
        return fd;
    higher = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return higher;
}

errand_status
errand__loop_thread_start(errand__loop *loop)
{
    loop->port->fd = errand__bell_create();
    if (loop->port->fd < 0)
        return ERRAND_ESYSTEM;
    if (errand__thread_create(&loop->thread, NULL, run_thread, loop) != 0)
        return ERRAND_ENOTHREAD;
    while (atomic_load_explicit(&loop->phase, memory_order_acquire) ==
           0) /* Pairs: loop-phase */
        errand__futex_wait(&loop->phase, 0, UINT64_MAX);
    if (loop->start_error == 0)
        return ERRAND_OK;
    pthread_join(loop->thread, NULL);
    errno = loop->start_error;
    return loop->start_error == ENOMEM ? ERRAND_ENOMEM : ERRAND_ESYSTEM;
}

void
errand__loop_thread_stop(errand__loop *loop)
{
    atomic_store_explicit(&loop->stopping, true,
                          memory_order_release); /* Pairs: loop-stop */
    errand__port_ring(loop->port);
    ERRAND_ASSERT(pthread_join(loop->thread, NULL) == 0);
}

/* ---- leases ------------------------------------------------------------------------------------------ */

static uint32_t
thread_cells(errand_executor *executor)
{
    (void)executor;
    return 1; /* its loop's */
}

static errand_status
thread_attach(errand_executor *executor, errand_lease *lease)
{
    errand__reactor *self = errand__reactor_of(executor);
    errand__loop_lease *mine = errand__mem_alloc(NULL, sizeof *mine);
    errand__loop *loop;

    if (mine == NULL)
        return ERRAND_ENOMEM;
    errand__lock_acquire(&self->lock);
    loop = self->loops[self->next_loop];
    self->next_loop = (self->next_loop + 1) % self->thread_count;
    errand__lock_release(&self->lock);
    if (!errand__roster_init(&mine->roster, lease, &loop->lock, loop->port)) {
        errand__mem_free(NULL, mine, sizeof *mine);
        return ERRAND_ENOMEM;
    }
    errand__port_hold(loop->port);
    mine->loop = loop;
    lease->impl = mine;
    errand__reactor_join(self, mine);
    return ERRAND_OK;
}

static void
thread_submit(errand_lease *lease, errand__record *record, uint32_t generation)
{
    errand__loop_lease *mine = lease->impl;
    uint64_t now = errand__cycles();

    errand__ages_submitted(&mine->roster.ages, record, generation, now);
    errand__port_push(mine->roster.port,
                      errand__roster_enter(&mine->roster, record, generation, now));
}

static void
thread_detach(errand_lease *lease, uint64_t deadline_ns)
{
    errand__loop_lease *mine = lease->impl;

    errand__roster_close(&mine->roster);
    errand__roster_await(&mine->roster, deadline_ns);
    errand__roster_drop(&mine->roster);
    errand__reactor_part(errand__reactor_of(lease->executor), mine);
}

static void
thread_forget(errand_lease *lease)
{
    errand__loop_lease *mine = lease->impl;

    errand__roster_fini(&mine->roster);
    errand__mem_free(NULL, mine, sizeof *mine);
}

const errand__executor_ops errand__reactor_thread_ops = {
    .name = "reactor",
    .cells = thread_cells,
    .attach = thread_attach,
    .ready = errand__reactor_ready,
    .reserve = errand__reactor_reserve,
    .submit = thread_submit,
    .stale = errand__reactor_stale,
    .write_off = errand__reactor_write_off,
    .nudge = errand__roster_nudge,
    .detach = thread_detach,
    .snapshot = errand__reactor_snapshot,
    .destroy = errand__reactor_destroy,
    .forget = thread_forget,
};
