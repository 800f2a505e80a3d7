/* SPDX-License-Identifier: MIT */
/* executor: what all kinds have in common: the count of references, and forks.
 *
 * Design notes.
 * - The epoch is stepped in each child by a handler that is registered when the library is
 *   loaded; comparing it is one load, so every call can afford to ask (O61).
 * - A child that errand_snapshot_fork made had everything in one thread and takes its parent's
 *   number back: there all goes on.
 * - In any other child nothing is ever destroyed: its threads are not there, a lock may be held by
 *   one of them for ever.  References are given back in silence and the memory stays. */
#include <pthread.h>
#include <string.h>
#include "workers/workers.h"

/* errand__forks: how many forks lie between the process that loaded the library and this one.
 * Writers: the handler and errand__fork_adopt, in a child that has one thread.  Readers: every
 *          call.
 * Order:   relaxed.  Pairs: none.
 * Why:     written while there is no other thread. */
_Atomic uint32_t errand__forks;

/* Does this thread go through a turn of a seeded order? */
static _Thread_local bool virtual_turn;

void
errand__virtual_enter(bool is_virtual)
{
    virtual_turn = is_virtual;
}

errand_status
errand__virtual_refuse(const char *function)
{
    return errand__misuse(ERRAND_EUNSUPPORTED, function,
                          "its figures are real: no turn of a seeded order may see them");
}

bool
errand__virtual_inside(void)
{
    return virtual_turn;
}

void
errand__fork_adopt(uint32_t epoch)
{
    atomic_store_explicit(&errand__forks, epoch, memory_order_relaxed);
}

static void
step_epoch(void)
{
    atomic_fetch_add_explicit(&errand__forks, 1, memory_order_relaxed);
}

__attribute__((constructor)) static void
watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, step_epoch);
}

void
errand__executor_init(errand_executor *executor, const errand__executor_ops *ops)
{
    executor->ops = ops;
    executor->fork_epoch = errand__fork_epoch();
    atomic_store_explicit(&executor->refs, 1, memory_order_relaxed);
}

void
errand__executor_hold(errand_executor *executor)
{
    atomic_fetch_add_explicit(&executor->refs, 1, memory_order_relaxed);
}

void
errand__executor_let(errand_executor *executor)
{
    if (executor->fork_epoch != errand__fork_epoch())
        return;
    uint32_t before = atomic_fetch_sub_explicit(
        &executor->refs, 1, memory_order_acq_rel); /* Pairs: executor-refs */
    ERRAND_ASSERT(before > 0);
    if (before == 1)
        executor->ops->destroy(executor);
}

void
errand_executor_abandon(errand_executor **take_executor)
{
    if (take_executor == NULL || *take_executor == NULL)
        return;
    errand_executor *executor = *take_executor;
    *take_executor = NULL;
    errand__executor_let(executor);
}

errand_status
errand_executor_snapshot_read(errand_executor *executor,
                              errand_executor_snapshot *out_snapshot)
{
    ERRAND_REQUIRE_ARG(executor != NULL && out_snapshot != NULL, ERRAND_EINVAL,
                       "an executor and a place for its snapshot are needed");
    ERRAND_REQUIRE_ARG(executor->fork_epoch == errand__fork_epoch(), ERRAND_EFORKED,
                       "the executor belongs to the parent process");
    if (virtual_turn)
        return errand__virtual_refuse(__func__);
    memset(out_snapshot, 0, sizeof *out_snapshot);
    executor->ops->snapshot(executor, NULL, out_snapshot);
    return ERRAND_OK;
}

errand_status
errand_lane_define(errand_executor *executor, const char *name, uint32_t limit,
                   uint8_t *out_lane)
{
    ERRAND_REQUIRE_ARG(executor != NULL && name != NULL && out_lane != NULL,
                       ERRAND_EINVAL,
                       "an executor, a name and a place for the lane are needed");
    ERRAND_REQUIRE_ARG(name[0] != '\0', ERRAND_EINVAL, "a lane's name has no letters");
    ERRAND_REQUIRE_ARG(limit > 0, ERRAND_EINVAL, "a lane lets at least one worker in");
    ERRAND_REQUIRE_ARG(executor->fork_epoch == errand__fork_epoch(), ERRAND_EFORKED,
                       "the executor belongs to the parent process");
    ERRAND_REQUIRE_ARG(executor->ops->lane_define != NULL, ERRAND_EUNSUPPORTED,
                       "this kind of executor has no lanes");
    return executor->ops->lane_define(executor, name, limit, out_lane);
}
