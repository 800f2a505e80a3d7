/* SPDX-License-Identifier: MIT */
/* reactor, libuv: uv_fs_read, submitted again from its callback; uv_timer_t, one each. */
#include "reactor.h"

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

typedef struct read_node {
    uv_fs_t fs;
    reactor_reads *reads;
    uint32_t place;
} read_node;

static void read_next(uv_loop_t *loop, read_node *node);

static void
was_read(uv_fs_t *fs)
{
    read_node *node = (read_node *)fs;
    uv_loop_t *loop = fs->loop;

    reactor_read(node->reads, node->place, fs->result);
    uv_fs_req_cleanup(fs);
    read_next(loop, node);
}

static void
read_next(uv_loop_t *loop, read_node *node)
{
    int64_t block = reactor_next(node->reads, node->place);
    uv_buf_t buffer = uv_buf_init(node->reads->buffers[node->place], REACTOR_BLOCK);

    if (block >= 0 && uv_fs_read(loop, &node->fs, node->reads->fd, &buffer, 1,
                                 block * REACTOR_BLOCK, was_read) != 0)
        node->reads->wrong++;
}

bool
reactor_reads_libuv(reactor_reads *reads, char *text, size_t size)
{
    static read_node nodes[REACTOR_WINDOW_MAX];
    uv_loop_t loop;

    if (uv_loop_init(&loop) != 0) {
        snprintf(text, size, "uv_loop_init failed");
        return false;
    }
    for (uint32_t i = 0; i < reads->in_flight; i++) {
        nodes[i].reads = reads;
        nodes[i].place = i;
        read_next(&loop, &nodes[i]);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return true;
}

typedef struct timer_node {
    uv_timer_t timer;
    reactor_timers *timers;
} timer_node;

static void
fired(uv_timer_t *timer)
{
    ((timer_node *)timer)->timers->heard++;
}

static void
go_through(uv_loop_t *loop, reactor_timers *timers, timer_node *nodes)
{
    uint64_t begun = bench_now();

    timers->heard = 0;
    uv_update_time(loop);
    for (uint32_t i = 0; i < timers->count; i++)
        uv_timer_start(&nodes[i].timer, fired, reactor_due_ms(timers, i), 0);
    timers->armed_ns = bench_now() - begun;
    begun = bench_now();
    for (uint32_t i = 0; timers->cancels && i < timers->count; i++) {
        uv_timer_stop(&nodes[i].timer);
        timers->heard++;
    }
    if (!timers->cancels)
        uv_run(loop, UV_RUN_DEFAULT);
    timers->ended_ns = bench_now() - begun;
}

bool
reactor_timers_libuv(reactor_timers *timers, char *text, size_t size)
{
    timer_node *nodes = calloc(timers->count, sizeof *nodes);
    uv_loop_t loop;

    if (nodes == NULL || uv_loop_init(&loop) != 0) {
        snprintf(text, size, "uv_loop_init failed");
        return false;
    }
    for (uint32_t i = 0; i < timers->count; i++) {
        nodes[i].timers = timers;
        uv_timer_init(&loop, &nodes[i].timer);
    }
    for (int round = 0; round < 2; round++) /* the first warms up */
        go_through(&loop, timers, nodes);
    for (uint32_t i = 0; i < timers->count; i++)
        uv_close((uv_handle_t *)&nodes[i].timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    free(nodes);
    return true;
}
