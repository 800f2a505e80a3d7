/* SPDX-License-Identifier: MIT */
/* Goal: accepts and receives that go on lose nothing and keep nothing: whatever fills their ring, stops
 * them or ends their job, each connection and byte is given once, in order, or closed.
 * Method: peers that come all at once, jobs that take nothing until they are told, small queues of the
 * kernel; ports, bytes and open descriptors are counted. */
#include "many_rig.h"
#include "workers/reactor/reactor.h"

static char
byte_at(size_t stream, size_t at)
{
    return (char)((stream * 101 + at * 31 + at / 251) % 253);
}

static size_t
send_some(int fd, size_t stream, size_t from, size_t most)
{
    char text[3000];
    size_t part = most < sizeof text ? most : sizeof text;
    ssize_t put;

    for (size_t i = 0; i < part; i++)
        text[i] = byte_at(stream, from + i);
    put = send(fd, text, part, MSG_DONTWAIT);
    return put > 0 ? (size_t)put : 0;
}

static void
pair(int ends[2], int mode)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | mode, 0, ends), 0);
}

static void
long_stream_body(scene *world, const rig_config *config)
{
    enum { RING = 20000, LENGTH = 600000 };
    static const size_t speeds[] = {SIZE_MAX, 777};
    char *ring = malloc(RING), *seen = malloc(LENGTH);

    (void)config;
    for (int speed = 0; speed < 2; speed++) {
        taker many = {.most = speeds[speed], .seen = seen};
        size_t sent = 0, had = world->seen[0].count;
        int ends[2];

        pair(ends, speed == 0 ? 0 : SOCK_NONBLOCK);
        many.io = (errand_io){
            .kind = ERRAND_IO_RECV_MANY, .fd = ends[0], .buffer = ring, .length = RING};
        scene_poll(world, 0, &taker_job, &many);
        while (sent < LENGTH) {
            sent += send_some(ends[1], 0, sent, LENGTH - sent);
            scene_drain(world, 0);
        }
        assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
        scene_await(world, 0, had + 1);
        assert_int_equal(many.end, 0);
        assert_int_equal(many.taken, LENGTH);
        for (size_t i = 0; i < LENGTH; i++)
            assert_int_equal(seen[i], byte_at(0, i));
        close(ends[0]);
        close(ends[1]);
    }
    free(ring);
    free(seen);
}

static void
a_long_stream_comes_whole_through_a_ring_however_slowly_it_is_taken(void **state)
{
    (void)state; /* O79, D130 */
    rig_each(long_stream_body);
}

static void
many_streams_body(scene *world, const rig_config *config)
{
    enum { STREAMS = 40, RING = 16384, LENGTH = 12000 };
    taker *many = calloc(STREAMS, sizeof *many);
    int ends[STREAMS][2];

    (void)config;
    for (size_t i = 0; i < STREAMS; i++) {
        size_t sent = 0;

        pair(ends[i], 0);
        while (sent < LENGTH)
            sent += send_some(ends[i][1], i, sent, LENGTH - sent);
        assert_int_equal(shutdown(ends[i][1], SHUT_WR), 0);
        many[i] = (taker){.most = SIZE_MAX, .seen = malloc(LENGTH)};
        many[i].io = (errand_io){.kind = ERRAND_IO_RECV_MANY,
                                 .fd = ends[i][0],
                                 .buffer = malloc(RING),
                                 .length = RING};
        scene_poll(world, 0, &taker_job, &many[i]);
    }
    scene_await(world, 0, STREAMS);
    for (size_t i = 0; i < STREAMS; i++) {
        assert_int_equal(many[i].end, 0);
        assert_int_equal(many[i].taken, LENGTH);
        for (size_t at = 0; at < LENGTH; at++)
            assert_int_equal(((char *)many[i].seen)[at], byte_at(i, at));
        free(many[i].seen);
        free(many[i].io.buffer);
        close(ends[i][0]);
        close(ends[i][1]);
    }
    free(many);
}

static void
streams_that_want_more_pieces_than_there_are_get_all_their_bytes(void **state)
{
    (void)state;
    rig_each(many_streams_body);
}

static void
stopped_receive_body(scene *world, const rig_config *config)
{
    enum { RING = 16384, ROUNDS = 40 };
    char *ring = malloc(RING), seen[16], rest[16];

    (void)config;
    for (int i = 0; i < ROUNDS; i++) {
        taker many = {.holds = true, .stops = true, .most = SIZE_MAX, .seen = seen};
        size_t had = world->seen[0].count, length;
        int ends[2];
        ssize_t left;

        pair(ends, 0);
        many.io = (errand_io){
            .kind = ERRAND_IO_RECV_MANY, .fd = ends[0], .buffer = ring, .length = RING};
        scene_poll(world, 0, &taker_job, &many);
        settle_down(world);
        assert_int_equal(send(ends[1], "abc", 3, 0), 3);
        if (i % 2 == 0)
            settle_down(world);
        tell(world, &many);
        assert_int_equal(send(ends[1], "def", 3, 0), 3); /* while it is asked back */
        scene_await(world, 0, had + (i % 2 == 0 ? 7 : 4));
        assert_int_equal(many.end, -ECANCELED);
        length = many.taken;
        memset(ring, '?', RING); /* it is the job's again */
        left = recv(ends[0], rest, sizeof rest, MSG_DONTWAIT);
        if (left > 0) {
            memcpy(seen + length, rest, (size_t)left);
            length += (size_t)left;
        }
        assert_int_equal(length, 6);
        assert_memory_equal(seen, "abcdef", 6);
        assert_int_equal(send(ends[1], "late", 4, 0), 4);
        settle_down(world);
        for (size_t at = 0; at < RING; at++)
            assert_int_equal(ring[at], '?');
        close(ends[0]);
        close(ends[1]);
    }
    free(ring);
}

static void
a_stopped_receive_loses_no_byte_and_touches_its_ring_no_more(void **state)
{
    (void)state; /* C-B3, C-B4, O79 */
    rig_each(stopped_receive_body);
}

static void
left_receive_body(scene *world, const rig_config *config)
{
    enum { RING = 16384 };

    (void)config;
    for (int way = 0; way < 2; way++) {
        atomic_int drops = 0;
        taker left = {
            .holds = true, .leaves = true, .told_panic = way == 1, .drops = &drops};
        size_t had = world->seen[0].count;
        char *ring = malloc(RING);
        int ends[2];

        pair(ends, 0);
        left.io = (errand_io){
            .kind = ERRAND_IO_RECV_MANY, .fd = ends[0], .buffer = ring, .length = RING};
        scene_poll(world, 0, &taker_job, &left);
        settle_down(world);
        tell(world, &left);
        assert_int_equal(send(ends[1], "more", 4, 0), 4);
        scene_await(world, 0, had + 4);
        assert_int_equal(atomic_load_explicit(&drops, memory_order_acquire), 1);
        assert_true(left.io.done); /* its drop saw that too */
        free(ring);
        assert_int_equal(send(ends[1], "late", 4, 0), 4);
        settle_down(world);
        close(ends[0]);
        close(ends[1]);
    }
}

static void
a_job_that_leaves_its_receive_is_told_when_the_kernel_has_given_it_back(void **state)
{
    (void)state; /* C-B3, C-B4 */
    rig_each(left_receive_body);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_long_stream_comes_whole_through_a_ring_however_slowly_it_is_taken),
        cmocka_unit_test(
            streams_that_want_more_pieces_than_there_are_get_all_their_bytes),
        cmocka_unit_test(a_stopped_receive_loses_no_byte_and_touches_its_ring_no_more),
        cmocka_unit_test(
            a_job_that_leaves_its_receive_is_told_when_the_kernel_has_given_it_back),
    };
    return test_group("workers/reactor/many_receive", tests, NULL, NULL);
}
