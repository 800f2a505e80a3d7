/* SPDX-License-Identifier: MIT */
/* GLib: an exclusive thread pool, and an asynchronous queue for what comes back.  It has no
 * cancel for work that is queued. */
#include "peer.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct glib_world glib_world;
typedef struct glib_node {
    glib_world *world;
    bench_slot slot;
} glib_node;

struct glib_world {
    GThreadPool *pool;
    GAsyncQueue *done;
    glib_node *nodes;
    uint32_t count;
};

static void
glib_work(gpointer data, gpointer user_data)
{
    (void)user_data;
    glib_node *node = data;
    bench_body(&node->slot);
    g_async_queue_push(node->world->done, node);
}

static void *
glib_second(void *first, const bench_plan *plan)
{
    glib_world *world = calloc(1, sizeof *world);
    glib_node *nodes = calloc(plan->in_flight, sizeof *nodes);
    if (world == NULL || nodes == NULL) {
        free(nodes);
        free(world);
        return NULL;
    }
    for (uint32_t i = 0; i < plan->in_flight; i++) {
        nodes[i].slot.index = i;
        nodes[i].world = world;
    }
    world->nodes = nodes;
    world->count = plan->in_flight;
    world->done = g_async_queue_new();
    world->pool = first == NULL ? g_thread_pool_new(glib_work, NULL, (gint)plan->workers,
                                                    TRUE, NULL)
                                : ((glib_world *)first)->pool;
    return world;
}

static void *
glib_open(const bench_plan *plan)
{
    return glib_second(NULL, plan);
}

static bool
glib_submit(glib_world *world, glib_node *node, bench_run *run)
{
    if (g_thread_pool_push(world->pool, node, NULL))
        return true;
    snprintf(run->fault.text, sizeof run->fault.text, "g_thread_pool_push: no thread");
    return false;
}

static bool
glib_fill(void *opaque, bench_run *run)
{
    glib_world *world = opaque;
    for (uint32_t i = 0; i < world->count && bench_begin(run); i++) {
        if (!glib_submit(world, &world->nodes[i], run))
            return false;
    }
    return true;
}

static bool
glib_collect(void *opaque, bench_run *run)
{
    glib_world *world = opaque;
    while (!bench_ended(run)) {
        glib_node *node = g_async_queue_pop(world->done);
        if (bench_completed(run, &node->slot, false) && !glib_submit(world, node, run))
            return false;
    }
    return true;
}

static bool
glib_rest(void *opaque, uint64_t ns)
{
    glib_world *world = opaque;
    return g_async_queue_timeout_pop(world->done, ns / 1000) == NULL;
}

static bench_slot *
glib_slot(void *opaque, uint32_t index)
{
    glib_world *world = opaque;
    return &world->nodes[index].slot;
}

const bench_peer bench_peer_glib = {.name = "glib",
                                    .open = glib_open,
                                    .second = glib_second,
                                    .fill = glib_fill,
                                    .collect = glib_collect,
                                    .rest = glib_rest,
                                    .slot = glib_slot};
