/* SPDX-License-Identifier: MIT */
/* mutex: the pool that one writes in an afternoon: a list under a mutex with a condition each way.
 * A worker takes one job at a time; the host's thread takes all that came back at once; neither
 * signals when nobody waits.  A cancel takes the job out of the list. */
#include "peer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct mutex_world mutex_world;
typedef struct mutex_node {
    struct mutex_node *next, *before;
    mutex_world *world;
    bench_slot slot;
    bool cancelled;
} mutex_node;

typedef struct mutex_list { /* Guarded by lock, but for the host's own. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    mutex_node *first, *last;
    uint32_t waiting;
} mutex_list;

struct mutex_world {
    mutex_list *queue; /* shared with a second world */
    mutex_list done;
    mutex_list own; /* the host's thread's, without lock: cancelled, to be delivered */
    mutex_node *nodes;
    uint32_t count;
};

static void
list_init(mutex_list *list)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&list->lock, NULL);
    pthread_cond_init(&list->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    list->first = list->last = NULL;
}

static void
list_append_locked(mutex_list *list, mutex_node *node)
{
    node->next = NULL;
    node->before = list->last;
    if (list->last != NULL)
        list->last->next = node;
    else
        list->first = node;
    list->last = node;
}

static void
list_remove_locked(mutex_list *list, mutex_node *node)
{
    if (node->before != NULL)
        node->before->next = node->next;
    else
        list->first = node->next;
    if (node->next != NULL)
        node->next->before = node->before;
    else
        list->last = node->before;
}

static void
list_put(mutex_list *list, mutex_node *node)
{
    pthread_mutex_lock(&list->lock);
    list_append_locked(list, node);
    bool wake = list->waiting != 0;
    pthread_mutex_unlock(&list->lock);
    if (wake)
        pthread_cond_signal(&list->changed);
}

static void *
mutex_worker(void *arg)
{
    mutex_list *queue = arg;
    for (;;) {
        pthread_mutex_lock(&queue->lock);
        queue->waiting++;
        while (queue->first == NULL)
            pthread_cond_wait(&queue->changed, &queue->lock);
        queue->waiting--;
        mutex_node *node = queue->first;
        list_remove_locked(queue, node);
        pthread_mutex_unlock(&queue->lock);
        bench_body(&node->slot);
        list_put(&node->world->done, node);
    }
    return NULL;
}

static void *
mutex_second(void *first, const bench_plan *plan)
{
    mutex_world *world = calloc(1, sizeof *world);
    mutex_node *nodes = calloc(plan->in_flight, sizeof *nodes);
    mutex_list *queue =
        first == NULL ? calloc(1, sizeof *queue) : ((mutex_world *)first)->queue;
    if (world == NULL || nodes == NULL || queue == NULL)
        return NULL; /* the process ends */
    for (uint32_t i = 0; i < plan->in_flight; i++) {
        nodes[i].slot.index = i;
        nodes[i].world = world;
    }
    world->nodes = nodes;
    world->count = plan->in_flight;
    world->queue = queue;
    list_init(&world->done);
    if (first != NULL)
        return world;
    list_init(queue);
    for (uint32_t i = 0; i < plan->workers; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, mutex_worker, queue) != 0)
            return NULL;
        pthread_detach(thread);
    }
    return world;
}

static void *
mutex_open(const bench_plan *plan)
{
    return mutex_second(NULL, plan);
}

static bool
mutex_fill(void *opaque, bench_run *run)
{
    mutex_world *world = opaque;
    for (uint32_t i = 0; i < world->count && bench_begin(run); i++)
        list_put(world->queue, &world->nodes[i]);
    return true;
}

static bool
mutex_collect(void *opaque, bench_run *run)
{
    mutex_world *world = opaque;
    while (!bench_ended(run)) {
        mutex_node *node = world->own.first;
        world->own.first = world->own.last = NULL;
        if (node == NULL) {
            mutex_list *done = &world->done;
            pthread_mutex_lock(&done->lock);
            done->waiting++;
            while (done->first == NULL)
                pthread_cond_wait(&done->changed, &done->lock);
            done->waiting--;
            node = done->first;
            done->first = done->last = NULL;
            pthread_mutex_unlock(&done->lock);
        }
        while (node != NULL) {
            mutex_node *next = node->next;
            if (bench_completed(run, &node->slot, node->cancelled))
                list_put(world->queue, node);
            node = next;
        }
    }
    return true;
}

static bool
mutex_cancel(void *opaque, bench_run *run)
{
    (void)run;
    mutex_world *world = opaque;
    for (uint32_t i = 1; i < world->count; i++) {
        mutex_node *node = &world->nodes[i];
        pthread_mutex_lock(&world->queue->lock);
        list_remove_locked(world->queue, node);
        pthread_mutex_unlock(&world->queue->lock);
        node->cancelled = true;
        list_append_locked(&world->own, node);
    }
    return true;
}

static bool
mutex_rest(void *opaque, uint64_t ns)
{
    mutex_world *world = opaque;
    uint64_t until_ns = bench_now() + ns;
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                             .tv_nsec = (long)(until_ns % 1000000000u)};
    pthread_mutex_lock(&world->done.lock);
    world->done.waiting++;
    int answer = 0;
    while (world->done.first == NULL && answer != ETIMEDOUT)
        answer = pthread_cond_timedwait(&world->done.changed, &world->done.lock, &until);
    world->done.waiting--;
    pthread_mutex_unlock(&world->done.lock);
    return answer == ETIMEDOUT;
}

static bench_slot *
mutex_slot(void *opaque, uint32_t index)
{
    mutex_world *world = opaque;
    return &world->nodes[index].slot;
}

const bench_peer bench_peer_mutex = {.name = "mutex",
                                     .open = mutex_open,
                                     .second = mutex_second,
                                     .fill = mutex_fill,
                                     .collect = mutex_collect,
                                     .cancel = mutex_cancel,
                                     .rest = mutex_rest,
                                     .slot = mutex_slot};
