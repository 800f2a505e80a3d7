/* SPDX-License-Identifier: MIT */
/* yardstick: what the machine allows, in its parked mode.  Intrusive stacks that are taken whole by
 * one exchange, batches of 64 jobs that come back as they went out, a futex call only if the
 * other side sleeps, and no spinning.  Each worker has a stack of its own; batches are dealt in
 * turn.  It has no identities, lifetimes or fairness, and a cancel (one compare-exchange,
 * delivered by the host's thread itself) only where the plan asks for it. */
#include "peer.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BATCH = 64, QUEUED = 0, RUNNING = 1, CANCELLED = 2 };

/* state: may its job run?
 * Writers: the worker that runs it, the host's thread that cancels it.   Readers: the same.
 * Order:   relaxed compare-exchange from QUEUED.
 * Pairs:   none: the stacks carry the bytes.
 * Why:     only one side may win, and neither reads what the other wrote. */
typedef struct yard_node {
    struct yard_node *next;       /* in its batch */
    struct yard_node *next_batch; /* of the first of a batch, in a stack */
    struct yard_node *next_own;   /* cancelled, to be delivered */
    bench_slot slot;
    _Atomic uint32_t state;
} yard_node;

/* top: batches, the newest first.
 * Writers: one side pushes whole batches, the other takes all.   Readers: the sleeper.
 * Order:   push seq_cst, take acquire (seq_cst as the sleeper's last look).
 * Pairs:   yard-sleep.
 * Why:     the jobs' bytes go with the batch; push then asleep, and asleep then top, must each be
 *          seen in that order.
 * asleep: 1 while the taker waits in the futex or is about to.
 * Writers: the taker (1), the pusher or the taker (0).   Readers: the pusher.
 * Order:   seq_cst.   Pairs: yard-sleep.   Why: see top. */
typedef struct yard_stack {
    _Alignas(64) _Atomic(yard_node *) top;
    _Alignas(64) _Atomic uint32_t asleep;
} yard_stack;

typedef struct yard_world {
    yard_stack done;
    yard_stack *queues; /* one per worker */
    yard_node *nodes, *own;
    yard_node *first, *last; /* the batch in the making */
    uint32_t batched, turn, workers, count;
    bool cancels;
} yard_world;

typedef struct yard_worker {
    yard_world *world;
    yard_stack *queue;
} yard_worker;

static void
stack_push(yard_stack *stack, yard_node *batch)
{
    yard_node *top = atomic_load_explicit(&stack->top, memory_order_relaxed);
    do {
        batch->next_batch = top;
    } while (!atomic_compare_exchange_weak_explicit(
        &stack->top, &top, batch, memory_order_seq_cst, memory_order_relaxed));
    if (atomic_load_explicit(&stack->asleep, memory_order_seq_cst) != 0 &&
        atomic_exchange_explicit(&stack->asleep, 0, memory_order_seq_cst) != 0)
        syscall(SYS_futex, &stack->asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* stack_take: all batches, the oldest first; NULL = none. */
static yard_node *
stack_take(yard_stack *stack)
{
    if (atomic_load_explicit(&stack->top, memory_order_relaxed) == NULL)
        return NULL;
    yard_node *newest = atomic_exchange_explicit(&stack->top, NULL, memory_order_acquire);
    yard_node *oldest = NULL;
    while (newest != NULL) {
        yard_node *older = newest->next_batch;
        newest->next_batch = oldest;
        oldest = newest;
        newest = older;
    }
    return oldest;
}

/* stack_wait: until there is a batch, or for ns (0 = no limit). */
static void
stack_wait(yard_stack *stack, uint64_t ns)
{
    struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
    atomic_exchange_explicit(&stack->asleep, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&stack->top, memory_order_seq_cst) == NULL)
        syscall(SYS_futex, &stack->asleep, FUTEX_WAIT_PRIVATE, 1, ns == 0 ? NULL : &limit,
                NULL, 0);
    atomic_store_explicit(&stack->asleep, 0, memory_order_seq_cst);
}

static bool
node_claim(yard_node *node, uint32_t state)
{
    uint32_t queued = QUEUED;
    return atomic_compare_exchange_strong_explicit(
        &node->state, &queued, state, memory_order_relaxed, memory_order_relaxed);
}

static void *
yard_work(void *arg)
{
    yard_worker *worker = arg;
    bool cancels = worker->world->cancels;
    for (;;) {
        yard_node *batch = stack_take(worker->queue);
        if (batch == NULL)
            stack_wait(worker->queue, 0);
        while (batch != NULL) {
            yard_node *next_batch = batch->next_batch;
            for (yard_node *node = batch; node != NULL; node = node->next) {
                if (!cancels || node_claim(node, RUNNING))
                    bench_body(&node->slot);
            }
            stack_push(&worker->world->done, batch);
            batch = next_batch;
        }
    }
    return NULL;
}

static void *
yard_open(const bench_plan *plan)
{
    yard_world *world = aligned_alloc(64, sizeof *world);
    yard_stack *queues = aligned_alloc(64, plan->workers * sizeof *queues);
    yard_worker *workers = calloc(plan->workers, sizeof *workers);
    yard_node *nodes = calloc(plan->in_flight, sizeof *nodes);
    if (world == NULL || queues == NULL || workers == NULL || nodes == NULL)
        return NULL; /* the process ends */
    *world = (yard_world){.queues = queues,
                          .nodes = nodes,
                          .count = plan->in_flight,
                          .workers = plan->workers,
                          .cancels = plan->cancels};
    for (uint32_t i = 0; i < plan->in_flight; i++)
        nodes[i].slot.index = i;
    for (uint32_t i = 0; i < plan->workers; i++) {
        pthread_t thread;
        queues[i] = (yard_stack){.top = NULL};
        workers[i] = (yard_worker){.world = world, .queue = &queues[i]};
        if (pthread_create(&thread, NULL, yard_work, &workers[i]) != 0)
            return NULL;
        pthread_detach(thread);
    }
    return world;
}

static void
yard_show(yard_world *world)
{
    if (world->first == NULL)
        return;
    world->last->next = NULL;
    stack_push(&world->queues[world->turn], world->first);
    world->turn = world->turn + 1 == world->workers ? 0 : world->turn + 1;
    world->first = NULL;
    world->batched = 0;
}

static void
yard_submit(yard_world *world, yard_node *node)
{
    if (world->first == NULL)
        world->first = node;
    else
        world->last->next = node;
    world->last = node;
    if (++world->batched == BATCH)
        yard_show(world);
}

static bool
yard_fill(void *opaque, bench_run *run)
{
    yard_world *world = opaque;
    for (uint32_t i = 0; i < world->count && bench_begin(run); i++)
        yard_submit(world, &world->nodes[i]);
    yard_show(world);
    return true;
}

static void
yard_deliver(yard_world *world, yard_node *batch, bench_run *run)
{
    while (batch != NULL) {
        yard_node *next_batch = batch->next_batch;
        for (yard_node *node = batch, *next; node != NULL; node = next) {
            next = node->next;
            if (world->cancels &&
                atomic_load_explicit(&node->state, memory_order_relaxed) == CANCELLED)
                continue; /* a tombstone, delivered already */
            if (bench_completed(run, &node->slot, false))
                yard_submit(world, node);
        }
        batch = next_batch;
    }
    yard_show(world);
}

static bool
yard_collect(void *opaque, bench_run *run)
{
    yard_world *world = opaque;
    for (yard_node *node = world->own; node != NULL; node = node->next_own)
        bench_completed(run, &node->slot, true);
    world->own = NULL;
    while (!bench_ended(run)) {
        yard_node *batch = stack_take(&world->done);
        if (batch == NULL)
            stack_wait(&world->done, 0);
        else
            yard_deliver(world, batch, run);
    }
    return true;
}

static bool
yard_cancel(void *opaque, bench_run *run)
{
    (void)run;
    yard_world *world = opaque;
    yard_node **end = &world->own;
    for (uint32_t i = 1; i < world->count; i++) {
        yard_node *node = &world->nodes[i];
        if (node_claim(node, CANCELLED)) {
            *end = node;
            end = &node->next_own;
        }
    }
    return true;
}

static bool
yard_rest(void *opaque, uint64_t ns)
{
    yard_world *world = opaque;
    stack_wait(&world->done, ns);
    return true;
}

static bench_slot *
yard_slot(void *opaque, uint32_t index)
{
    yard_world *world = opaque;
    return &world->nodes[index].slot;
}

const bench_peer bench_peer_yardstick = {.name = "yardstick",
                                         .open = yard_open,
                                         .fill = yard_fill,
                                         .collect = yard_collect,
                                         .cancel = yard_cancel,
                                         .rest = yard_rest,
                                         .slot = yard_slot};
