/* SPDX-License-Identifier: MIT */
/* Design notes: the reactor, seen from the runtimes.
 *
 * Which back end it has is decided when it is made, for all its loops.  Leases of a reactor without
 * threads have a loop each (local.c); else the leases take the loops in turn (thread.c).  What is
 * here is the same for both: rosters, snapshots, the end. */
#include <errno.h>
#include <string.h>
#include "workers/reactor/reactor.h"

#define ENTRIES_DEFAULT 256
#define ENTRIES_MOST    4096
#define HELPERS_DEFAULT 4
#define HELPERS_MOST    1024

/* ---- which back end -------------------------------------------------------------------------------- */

#if !ERRAND_HAS_URING
int
errand__uring_refused(void)
{
    return ENOSYS;
}
#endif

static const char *
reason_text(int error, char *room, size_t size)
{
    if (!ERRAND_HAS_URING)
        return "not in this build";
    if (error == EOPNOTSUPP)
        return "the kernel is too old";
#if defined(__GLIBC__)
    return strerror_r(error, room, size);
#else
    return strerror_r(error, room, size) == 0 ? room : "unknown";
#endif
}

/* OK, or EUNSUPPORTED with errno. */
static errand_status
choose(uint32_t wanted, const errand__backend **out_backend, char *text, size_t size)
{
    char room[64];
    int error = wanted == ERRAND_REACTOR_EPOLL ? 0 : errand__uring_refused();

    *out_backend = &errand__epoll_backend;
    errand__text_format(text, size, "epoll");
    if (wanted == ERRAND_REACTOR_EPOLL)
        return ERRAND_OK;
    if (error != 0) {
        errand__text_format(text, size, "epoll (io_uring: %s)",
                            reason_text(error, room, sizeof room));
        errno = error;
        return wanted == ERRAND_REACTOR_ANY ? ERRAND_OK : ERRAND_EUNSUPPORTED;
    }
#if ERRAND_HAS_URING
    *out_backend = &errand__uring_backend;
#endif
    errand__text_format(text, size, "io_uring");
    return ERRAND_OK;
}

const char *
errand_reactor_backend(const errand_executor *executor)
{
    static _Thread_local char text[96];
    const errand__backend *chosen;

    if (executor == NULL) {
        (void)choose(ERRAND_REACTOR_ANY, &chosen, text, sizeof text);
        return text;
    }
    if (executor->ops != &errand__reactor_local_ops &&
        executor->ops != &errand__reactor_thread_ops)
        return NULL;
    return ERRAND__CONTAINER(executor, const errand__reactor, base)->backend_text;
}

/* ---- create ------------------------------------------------------------------------------------------ */

static errand_status
config_check(const errand_reactor_config *config)
{
    static const char create[] = "errand_reactor_create";

    if (config->struct_size != sizeof *config)
        return errand__misuse(
            ERRAND_EINVAL, create,
            "config->struct_size must be sizeof(errand_reactor_config)");
    if (config->flags != 0)
        return errand__misuse(ERRAND_EINVAL, create, "config->flags has unknown bits");
    if (config->backend > ERRAND_REACTOR_EPOLL)
        return errand__misuse(ERRAND_EINVAL, create, "config->backend is none");
    if (config->threads > ERRAND__REACTOR_THREADS || config->entries > ENTRIES_MOST ||
        config->helpers > HELPERS_MOST)
        return errand__misuse(ERRAND_EINVAL, create,
                              "at most 64 threads, 4096 entries and 1024 helpers");
    if (config->name != NULL && strlen(config->name) > 11)
        return errand__misuse(ERRAND_EINVAL, create,
                              "config->name has more than 11 bytes");
    return ERRAND_OK;
}

/* Loops with threads.  What was started is stopped by the caller's free. */
static errand_status
start_loops(errand__reactor *reactor, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        errand__loop *loop = errand__mem_alloc(NULL, sizeof *loop);
        errand__port *port = loop == NULL ? NULL : errand__port_create();
        errand_status status;

        if (port == NULL) {
            errand__mem_free(NULL, loop, sizeof *loop);
            return ERRAND_ENOMEM;
        }
        errand__loop_init(loop, reactor, port);
        loop->index = i;
        status = errand__loop_thread_start(loop);
        if (status != ERRAND_OK) {
            errand__loop_fini(loop);
            errand__mem_free(NULL, loop, sizeof *loop);
            return status;
        }
        reactor->loops[i] = loop;
        reactor->thread_count = i + 1;
    }
    return ERRAND_OK;
}

errand_status
errand_reactor_create(const errand_reactor_config *config, errand_executor **out_executor)
{
    static const errand_reactor_config defaults = {.struct_size = sizeof defaults};
    errand__reactor *reactor;
    errand_status status;

    ERRAND_REQUIRE_ARG(out_executor != NULL, ERRAND_EINVAL, "out_executor is NULL");
    if (config == NULL)
        config = &defaults;
    status = config_check(config);
    if (status != ERRAND_OK)
        return status;
    reactor = errand__mem_alloc(NULL, sizeof *reactor);
    if (reactor == NULL)
        return ERRAND_ENOMEM;
    status = choose(config->backend, &reactor->backend, reactor->backend_text,
                    sizeof reactor->backend_text);
    if (status != ERRAND_OK) {
        int saved = errno;

        errand__mem_free(NULL, reactor, sizeof *reactor);
        errno = saved;
        return status;
    }
    errand__text_format(reactor->name, sizeof reactor->name, "%s",
                        config->name != NULL ? config->name : "errand-io");
    reactor->entries = config->entries != 0 ? config->entries : ENTRIES_DEFAULT;
    reactor->helpers = config->helpers;
    errand__list_init(&reactor->rosters);
    reactor->filers = errand__filers_create(
        config->helpers != 0 ? config->helpers : HELPERS_DEFAULT, reactor->name);
    if (reactor->filers == NULL) {
        errand__mem_free(NULL, reactor, sizeof *reactor);
        return ERRAND_ENOMEM;
    }
    errand__executor_init(&reactor->base, config->threads == 0
                                              ? &errand__reactor_local_ops
                                              : &errand__reactor_thread_ops);
    status = start_loops(reactor, config->threads);
    if (status != ERRAND_OK) {
        errand__reactor_destroy(&reactor->base);
        return status;
    }
    *out_executor = &reactor->base;
    return ERRAND_OK;
}

/* ---- leases -------------------------------------------------------------------------------------------- */

errand_status
errand__reactor_ready(errand_lease *lease, const errand__record *record)
{
    (void)lease;
    if (record->resource_class != ERRAND_INTERRUPTIBLE_ASYNC)
        return errand__misuse(ERRAND_EUNSUPPORTED, "errand_submit",
                              "a reactor polls and cannot run a blocking job; attach a "
                              "blocking pool (errand_blocking_create)");
    return ERRAND_OK;
}

errand_status
errand__reactor_reserve(errand_lease *lease, uint32_t count)
{
    (void)lease;
    (void)count;
    return ERRAND_OK;
}

void
errand__reactor_stale(errand_lease *lease, uint8_t lane, uint8_t priority)
{
    (void)lease; /* the loop meets it soon */
    (void)lane;
    (void)priority;
}

bool
errand__reactor_write_off(errand_lease *lease, errand__record *record,
                          uint32_t generation)
{
    errand__loop_lease *mine = lease->impl;

    (void)generation;
    return errand__roster_write_off(&mine->roster, record);
}

void
errand__reactor_join(errand__reactor *reactor, errand__loop_lease *mine)
{
    errand__lock_acquire(&reactor->lock);
    errand__list_append(&reactor->rosters, &mine->roster.link);
    errand__lock_release(&reactor->lock);
}

void
errand__reactor_part(errand__reactor *reactor, errand__loop_lease *mine)
{
    errand__lock_acquire(&reactor->lock);
    errand__list_unlink(&mine->roster.link);
    errand__lock_release(&reactor->lock);
}

void
errand__reactor_snapshot(errand_executor *executor, const errand_lease *only,
                         errand_executor_snapshot *out_snapshot)
{
    errand__reactor *self = errand__reactor_of(executor);
    errand_snapshot sums = {0};
    bool shown = only == NULL;

    errand__lock_acquire(&self->lock);
    for (errand__link *link = self->rosters.next; link != &self->rosters;
         link = link->next) {
        errand__roster *roster = ERRAND__CONTAINER(link, errand__roster, link);
        errand__loop_lease *mine = ERRAND__CONTAINER(roster, errand__loop_lease, roster);

        if (only != NULL && roster->lease != only)
            continue;
        shown = true;
        errand__lease_account(roster->lease, &sums);
        errand__roster_ages(roster, out_snapshot);
        if (mine->loop->local)
            errand__spans_add(&mine->loop->spans, out_snapshot);
    }
    errand__lock_release(&self->lock);
    if (!shown)
        return;
    out_snapshot->queued = sums.queued;
    out_snapshot->running = sums.running;
    out_snapshot->workers = self->thread_count;
    for (uint32_t i = 0; i < self->thread_count; i++) {
        out_snapshot->idle +=
            atomic_load_explicit(&self->loops[i]->asleep, memory_order_relaxed);
        out_snapshot->threads_replaced +=
            atomic_load_explicit(&self->loops[i]->replaced, memory_order_relaxed);
        errand__spans_add(&self->loops[i]->spans, out_snapshot);
    }
    out_snapshot->threads_started = self->thread_count + out_snapshot->threads_replaced;
}

/* ---- the end --------------------------------------------------------------------------------------------- */

void
errand__reactor_free(errand__reactor *reactor)
{
    errand__filers_end(reactor->filers);
    for (uint32_t i = 0; i < reactor->thread_count; i++) {
        errand__loop_fini(reactor->loops[i]);
        errand__mem_free(NULL, reactor->loops[i], sizeof *reactor->loops[i]);
    }
    errand__mem_free(NULL, reactor, sizeof *reactor);
}

void
errand__reactor_destroy(errand_executor *executor)
{
    errand__reactor *self = errand__reactor_of(executor);
    errand__loop *own = NULL;

    for (uint32_t i = 0; i < self->thread_count; i++) {
        if (errand__loop_is_own(self->loops[i]))
            own = self->loops[i];
        else
            errand__loop_thread_stop(self->loops[i]);
    }
    if (own == NULL) {
        errand__reactor_free(self);
        return;
    }
    own->orphan = true; /* nobody joins it: it frees the rest when its round ends */
    atomic_store_explicit(&own->stopping, true,
                          memory_order_release); /* Pairs: loop-stop */
}
