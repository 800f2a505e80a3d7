/* SPDX-License-Identifier: MIT */
/* Goal: accepts and receives that go on lose nothing and keep nothing: whatever fills their ring, stops
 * them or ends their job, each connection and byte is given once, in order, or closed.
 * Method: peers that come all at once, jobs that take nothing until they are told, small queues of the
 * kernel; ports, bytes and open descriptors are counted. */
#include "many_rig.h"
#include "workers/reactor/reactor.h"
#include "descriptors.h"

static void
stopped_accept_body(scene *world, const rig_config *config)
{
    enum { RING = 8 };
    int32_t ring[RING], seen[CLIENTS];
    crowd peers;
    taker first, rest;

    for (int mode = 0; mode <= SOCK_NONBLOCK; mode += SOCK_NONBLOCK) {
        size_t had = world->seen[0].count;

        crowd_come(&peers, mode);
        first = (taker){.holds = true, .stops = true, .most = 1, .seen = seen};
        first.io = (errand_io){.kind = ERRAND_IO_ACCEPT_MANY,
                               .fd = peers.listener,
                               .buffer = ring,
                               .length = RING};
        scene_poll(world, 0, &taker_job, &first);
        settle_down(world);
        tell(world, &first);
        scene_await(world, 0, had + 4);
        assert_int_equal(first.end, -ECANCELED);
        printf("    %s: %zu accepted, ring of %d\n", config->name, first.taken, RING);
        assert_true(first.taken >= 1 && first.taken <= CLIENTS);
        are_of(&peers, 0, seen, first.taken);
        /* What it did not accept waits for the next. */
        rest = (taker){.most = 3, .seen = seen, .wanted = CLIENTS - first.taken};
        rest.io = (errand_io){.kind = ERRAND_IO_ACCEPT_MANY,
                              .fd = peers.listener,
                              .buffer = ring,
                              .length = RING};
        if (rest.wanted > 0) {
            scene_poll(world, 0, &taker_job, &rest);
            scene_await(world, 0, had + 5);
        }
        assert_int_equal(first.taken + rest.taken, CLIENTS);
        are_of(&peers, first.taken, seen, rest.taken);
        crowd_go(&peers);
    }
}

static void
a_stopped_accept_gives_all_that_it_accepted_also_beyond_its_ring(void **state)
{
    (void)state; /* O79, D129 */
    rig_each(stopped_accept_body);
}

static void
slow_accept_body(scene *world, const rig_config *config)
{
    enum { RING = 8 };
    int32_t ring[RING], seen[CLIENTS];
    crowd peers;
    taker slow = {.most = 1, .seen = seen, .wanted = CLIENTS};

    (void)config;
    crowd_come(&peers, 0);
    slow.io = (errand_io){.kind = ERRAND_IO_ACCEPT_MANY,
                          .fd = peers.listener,
                          .buffer = ring,
                          .length = RING};
    scene_poll(world, 0, &taker_job, &slow);
    scene_await(world, 0, 1);
    assert_int_equal(slow.taken, CLIENTS);
    assert_int_equal(slow.end, -ECANCELED);
    are_of(&peers, 0, seen, CLIENTS);
    crowd_go(&peers);
}

static void
an_accept_goes_on_whenever_its_full_ring_gets_room(void **state)
{
    (void)state; /* O79, D129 */
    rig_each(slow_accept_body);
}

static void
left_accept_body(scene *world, const rig_config *config)
{
    enum { RING = 8, WAYS = 2 };
    int32_t ring[RING];
    crowd peers;
    char byte;

    (void)config;
    for (int way = 0; way < WAYS; way++) {
        taker left = {.holds = true, .leaves = true, .told_panic = way == 1};
        size_t had = world->seen[0].count;
        int before;

        crowd_come(&peers, 0);
        before = test_count_descriptors();
        left.io = (errand_io){.kind = ERRAND_IO_ACCEPT_MANY,
                              .fd = peers.listener,
                              .buffer = ring,
                              .length = RING};
        scene_poll(world, 0, &taker_job, &left);
        settle_down(world);
        tell(world, &left);
        scene_await(world, 0, had + 4);
        for (; left.io.ready > 0; left.io.ready--) /* the job's to close */
            close(ring[left.io.first++ % RING]);
        assert_int_equal(test_count_descriptors(), before);
        close(peers.listener);
        for (int i = 0; i < CLIENTS; i++) /* nobody is kept waiting */
            assert_true(recv(peers.clients[i], &byte, 1, 0) <= 0);
        peers.listener = dup(0);
        crowd_go(&peers);
    }
}

static void
connections_beyond_a_ring_are_closed_with_the_job_that_left_them(void **state)
{
    (void)state; /* O79 */
    rig_each(left_accept_body);
}

/* Nobody accepts any more: who comes now waits with the system. */
static void
late_one_waits(scene *world, const crowd *peers)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    struct pollfd waits = {.fd = peers->listener, .events = POLLIN};
    int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(getsockname(peers->listener, (struct sockaddr *)&address, &length),
                     0);
    assert_int_equal(connect(late, (struct sockaddr *)&address, sizeof address), 0);
    settle_down(world);
    assert_int_equal(poll(&waits, 1, 0), 1);
    close(late);
}

static void
amid_accept_body(scene *world, const rig_config *config)
{
    int32_t ring[CLIENTS + 4], seen[CLIENTS];
    crowd peers;

    (void)config;
    for (int way = 0; way < 2; way++) {
        taker first = {.most = 1, .seen = seen}, rest = first;
        size_t had = world->seen[0].count;

        crowd_come(&peers, 0);
        first.stops_full = way == 0;
        first.wanted = way == 0 ? 0 : 1;
        first.io = (errand_io){.kind = ERRAND_IO_ACCEPT_MANY,
                               .fd = peers.listener,
                               .buffer = ring,
                               .length = way == 0 ? 8 : CLIENTS + 4};
        scene_poll(world, 0, &taker_job, &first);
        scene_await(world, 0, had + 1);
        assert_int_equal(first.end, -ECANCELED);
        are_of(&peers, 0, seen, first.taken);
        rest.wanted = CLIENTS - first.taken;
        rest.io = first.io;
        if (rest.wanted > 0) {
            scene_poll(world, 0, &taker_job, &rest);
            scene_await(world, 0, had + 2);
        }
        are_of(&peers, first.taken, seen, rest.taken);
        assert_int_equal(first.taken + rest.taken, CLIENTS);
        late_one_waits(world, &peers);
        crowd_go(&peers);
    }
}

static void
an_accept_that_is_asked_back_amid_its_items_gives_those_that_came(void **state)
{
    (void)state; /* C-B3, C-B4, O79 */
    rig_each(amid_accept_body);
}

static void
full_accept_body(scene *world, const rig_config *config)
{
    enum { RING = 8 };
    int32_t ring[RING], seen[CLIENTS];
    crowd peers;
    taker full = {.holds = true, .stops = true, .most = 1, .seen = seen};
    size_t had = world->seen[0].count;

    (void)config;
    crowd_come(&peers, 0);
    full.io = (errand_io){.kind = ERRAND_IO_ACCEPT_MANY,
                          .fd = peers.listener,
                          .buffer = ring,
                          .length = RING};
    scene_poll(world, 0, &taker_job, &full);
    for (int i = 0; i < RING; i++)
        settle_down(world);
    late_one_waits(world, &peers);
    tell(world, &full);
    scene_await(world, 0, had + 28);
    are_of(&peers, 0, seen, full.taken);
    crowd_go(&peers);
}

static void
nothing_more_is_taken_in_when_a_ring_is_full(void **state)
{
    (void)state; /* O79 */
    rig_each(full_accept_body);
}

static void
restarted_accept_body(scene *world, const rig_config *config)
{
    enum { RING = 8 };
    int32_t ring[RING], seen[CLIENTS];
    crowd peers;
    taker again = {.holds = true, .stops = true, .most = 1, .seen = seen};
    size_t had = world->seen[0].count;
    int before;

    (void)config;
    crowd_come(&peers, 0);
    before = test_count_descriptors();
    /* Not zeroed where the reactor keeps its own: it must not be taken for something. */
    again.io = (errand_io){.kind = ERRAND_IO_ACCEPT_MANY,
                           .fd = peers.listener,
                           .buffer = ring,
                           .length = RING,
                           .offset = -1};
    scene_poll(world, 0, &taker_job, &again);
    settle_down(world);
    tell(world, &again);
    scene_await(world, 0, had + 4);
    are_of(&peers, 0, seen, again.taken);
    assert_int_equal(test_count_descriptors(), before);
    crowd_go(&peers);
}

static void
an_accept_whose_block_was_used_before_is_as_good(void **state)
{
    (void)state;
    rig_each(restarted_accept_body);
}

static void
deaf_body(scene *world, const rig_config *config)
{
    int32_t ring[16];
    taker deaf = {.most = 1, .seen = ring};
    int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)config;
    deaf.io = (errand_io){
        .kind = ERRAND_IO_ACCEPT_MANY, .fd = plain, .buffer = ring, .length = 16};
    scene_poll(world, 0, &taker_job, &deaf);
    scene_await(world, 0, 1);
    assert_int_equal(deaf.end, -EINVAL);
    close(plain);
}

static void
an_accept_of_a_socket_that_does_not_listen_fails_once(void **state)
{
    (void)state;
    rig_each(deaf_body);
}

static void
overflow_body(const rig_config *config)
{
    int32_t ring[CLIENTS + 4], seen[CLIENTS];
    errand_executor *executor;
    crowd peers;
    taker many = {.holds = true, .stops = true, .most = CLIENTS, .seen = seen};
    scene world;

    scene_begin(&world);
    if (!rig_create(config, 4, &executor)) /* a completion queue of 32 */
        return;
    scene_open(&world, executor, 1, NULL, 0);
    crowd_come(&peers, 0);
    many.io = (errand_io){.kind = ERRAND_IO_ACCEPT_MANY,
                          .fd = peers.listener,
                          .buffer = ring,
                          .length = CLIENTS + 4};
    scene_poll(&world, 0, &taker_job, &many);
    for (int i = 0; i < 20; i++)
        settle_down(&world);
    tell(&world, &many);
    scene_await(&world, 0, 61);
    assert_int_equal(many.taken, CLIENTS);
    are_of(&peers, 0, seen, CLIENTS);
    crowd_go(&peers);
    scene_close(&world);
}

static void
more_connections_than_the_kernels_queue_has_places_are_all_accepted(void **state)
{
    (void)state;
    for (int i = 0; i < RIG_CONFIGS; i++)
        overflow_body(&rig_configs[i]);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_stopped_accept_gives_all_that_it_accepted_also_beyond_its_ring),
        cmocka_unit_test(an_accept_goes_on_whenever_its_full_ring_gets_room),
        cmocka_unit_test(
            connections_beyond_a_ring_are_closed_with_the_job_that_left_them),
        cmocka_unit_test(
            an_accept_that_is_asked_back_amid_its_items_gives_those_that_came),
        cmocka_unit_test(nothing_more_is_taken_in_when_a_ring_is_full),
        cmocka_unit_test(an_accept_whose_block_was_used_before_is_as_good),
        cmocka_unit_test(an_accept_of_a_socket_that_does_not_listen_fails_once),
        cmocka_unit_test(
            more_connections_than_the_kernels_queue_has_places_are_all_accepted),
    };
    return test_group("workers/reactor/many", tests, NULL, NULL);
}
