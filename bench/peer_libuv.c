/* SPDX-License-Identifier: MIT */
/* libuv: uv_queue_work on a loop, submitted again from the after-work callback, as its users do.
 * The pool is the process's; its size comes from the environment, before its first use. */
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

typedef struct libuv_node {
    uv_work_t work;
    bench_slot slot;
} libuv_node;

typedef struct libuv_world {
    uv_loop_t loop;
    libuv_node *nodes;
    uint32_t count;
    bench_run *run;
} libuv_world;

static bool libuv_submit(libuv_world *world, libuv_node *node);

static void *
libuv_second(void *first, const bench_plan *plan)
{
    (void)first; /* every loop of the process shares the pool */
    libuv_world *world = calloc(1, sizeof *world);
    libuv_node *nodes = calloc(plan->in_flight, sizeof *nodes);
    if (world == NULL || nodes == NULL || uv_loop_init(&world->loop) != 0) {
        free(nodes);
        free(world);
        return NULL;
    }
    for (uint32_t i = 0; i < plan->in_flight; i++) {
        nodes[i].slot.index = i;
        nodes[i].work.data = world;
    }
    world->nodes = nodes;
    world->count = plan->in_flight;
    return world;
}

static void *
libuv_open(const bench_plan *plan)
{
    char workers[16];
    snprintf(workers, sizeof workers, "%u", plan->workers);
    setenv("UV_THREADPOOL_SIZE", workers, 1);
    return libuv_second(NULL, plan);
}

static bool
libuv_fill(void *opaque, bench_run *run)
{
    libuv_world *world = opaque;
    world->run = run;
    for (uint32_t i = 0; i < world->count && bench_begin(run); i++) {
        if (!libuv_submit(world, &world->nodes[i]))
            return false;
    }
    return true;
}

static bool
libuv_collect(void *opaque, bench_run *run)
{
    libuv_world *world = opaque;
    world->run = run;
    while (!bench_ended(run)) {
        if (run->fault.text[0] != '\0')
            return false;
        uv_run(&world->loop, UV_RUN_ONCE);
    }
    return true;
}

static bool
libuv_cancel(void *opaque, bench_run *run)
{
    libuv_world *world = opaque;
    for (uint32_t i = 1; i < world->count; i++) {
        int error = uv_cancel((uv_req_t *)&world->nodes[i].work);
        if (error != 0) {
            snprintf(run->fault.text, sizeof run->fault.text, "uv_cancel: %s",
                     uv_strerror(error));
            return false;
        }
    }
    return true;
}

static void
libuv_rested(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static bool
libuv_rest(void *opaque, uint64_t ns)
{
    libuv_world *world = opaque;
    uv_timer_t timer;
    uv_timer_init(&world->loop, &timer);
    uv_timer_start(&timer, libuv_rested, ns / 1000000, 0);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&world->loop, UV_RUN_NOWAIT);
    return true;
}

static bench_slot *
libuv_slot(void *opaque, uint32_t index)
{
    libuv_world *world = opaque;
    return &world->nodes[index].slot;
}

static void
libuv_work(uv_work_t *work)
{
    bench_body(&((libuv_node *)work)->slot);
}

static void
libuv_after(uv_work_t *work, int status)
{
    libuv_node *node = (libuv_node *)work;
    libuv_world *world = work->data;
    if (bench_completed(world->run, &node->slot, status == UV_ECANCELED))
        libuv_submit(world, node);
}

static bool
libuv_submit(libuv_world *world, libuv_node *node)
{
    int error = uv_queue_work(&world->loop, &node->work, libuv_work, libuv_after);
    if (error == 0)
        return true;
    snprintf(world->run->fault.text, sizeof world->run->fault.text, "uv_queue_work: %s",
             uv_strerror(error));
    return false;
}

const bench_peer bench_peer_libuv = {.name = "libuv",
                                     .open = libuv_open,
                                     .second = libuv_second,
                                     .fill = libuv_fill,
                                     .collect = libuv_collect,
                                     .cancel = libuv_cancel,
                                     .rest = libuv_rest,
                                     .slot = libuv_slot};
