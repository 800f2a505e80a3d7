/* SPDX-License-Identifier: MIT */
/* Goal: accepts and receives that go on lose nothing and keep nothing: whatever fills their ring, stops
 * them or ends their job, each connection and byte is given once, in order, or closed.
 * Method: peers that come all at once, jobs that take nothing until they are told, small queues of the
 * kernel; ports, bytes and open descriptors are counted. */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include "rig.h"
#include "workers/reactor/reactor.h"
#if ERRAND_HAS_URING
#include "workers/reactor/uring.h"
#endif

enum { CLIENTS = 60 };

/* ---- a job with a ring --------------------------------------------------------------------------- */
typedef struct taker {
    errand_io io;
    size_t most;     /* takes at most so much in one poll */
    bool holds;      /* takes nothing before it is told */
    bool stops;      /* asks its request back as soon as it takes */
    bool stops_full; /* asks it back when its ring is full, and takes nothing before */
    bool leaves;     /* answers when it is told, and takes nothing */
    bool told_panic; /* the same by a panic */
    bool begun, asked;
    atomic_bool told, waker_there;
    errand_waker *waker;
    void *seen; /* descriptors or bytes */
    size_t taken,
        wanted; /* wanted: asks its request back when it has so many; 0 = never */
    int32_t end;
    atomic_int *drops;
} taker;

static void
take_some(errand_job *job, taker *self)
{
    for (size_t i = 0; self->io.ready > 0 && i < self->most; i++) {
        if (self->io.kind == ERRAND_IO_ACCEPT_MANY)
            ((int32_t *)self->seen)[self->taken++] =
                ((int32_t *)self->io.buffer)[self->io.first];
        else
            ((char *)self->seen)[self->taken++] =
                ((char *)self->io.buffer)[self->io.first];
        assert_int_equal(errand_io_consume(job, &self->io, 1), ERRAND_OK);
    }
    if (self->io.ready > 0)
        errand_waker_wake(self->waker);
}

static int32_t
taker_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    taker *self = state;
    bool told = atomic_load_explicit(&self->told, memory_order_acquire) || !self->holds;

    (void)out_payload;
    if (!self->begun) {
        self->begun = true;
        self->waker = errand_job_waker(job);
        atomic_store_explicit(&self->waker_there, true, memory_order_release);
        return errand_io_start(job, &self->io) == ERRAND_OK ? ERRAND_PENDING : 99;
    }
    if (!told)
        return ERRAND_PENDING;
    if (self->told_panic)
        errand_panic("left with a ring that fills");
    if (self->leaves)
        return 0;
    if ((!self->stops && !self->stops_full) || self->io.done)
        take_some(job, self);
    if ((self->stops || (self->stops_full && self->io.ready == self->io.length) ||
         (self->wanted > 0 && self->taken >= self->wanted)) &&
        !self->asked) {
        self->asked = true;
        assert_int_equal(errand_io_cancel(job, &self->io), ERRAND_OK);
    }
    if (!self->io.done)
        return ERRAND_PENDING;
    while (self->io.ready > 0) /* also after it is done */
        take_some(job, self);
    self->end = self->io.result;
    return 0;
}

static void
taker_drop(void *state)
{
    taker *self = state;

    assert_true(self->io.done || !self->begun);
    errand_waker_abandon(&self->waker);
    if (self->drops != NULL)
        atomic_fetch_add_explicit(self->drops, 1, memory_order_release);
}
static const errand_job_type taker_job = {.struct_size = sizeof(errand_job_type),
                                          .name = "taker",
                                          .poll = taker_poll,
                                          .drop = taker_drop};

static void
tell(scene *world, taker *self)
{
    errand_waker *waker;

    while (!atomic_load_explicit(&self->waker_there, memory_order_acquire))
        scene_drain(world, 0);
    waker = errand_waker_hold(self->waker);
    atomic_store_explicit(&self->told, true, memory_order_release);
    errand_waker_wake(waker);
    errand_waker_abandon(&waker);
}

/* The loop has been through what was there. */
static void
settle_down(scene *world)
{
    for (int i = 0; i < 3; i++)
        (void)rig_do(world, (errand_io){.kind = ERRAND_IO_NOTHING});
}

/* ---- peers ----------------------------------------------------------------------------------------- */
typedef struct crowd {
    int listener, clients[CLIENTS];
    uint16_t ports[CLIENTS];
} crowd;

static void
crowd_come(crowd *self, int mode)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | mode, 0);
    assert_int_equal(bind(self->listener, (struct sockaddr *)&address, sizeof address),
                     0);
    assert_int_equal(listen(self->listener, 128), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &length),
                     0);
    for (int i = 0; i < CLIENTS; i++) {
        struct sockaddr_in mine;

        length = sizeof mine;
        self->clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(
            connect(self->clients[i], (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(getsockname(self->clients[i], (struct sockaddr *)&mine, &length),
                         0);
        self->ports[i] = mine.sin_port;
    }
}

static void
crowd_go(crowd *self)
{
    for (int i = 0; i < CLIENTS; i++)
        close(self->clients[i]);
    close(self->listener);
}

/* These descriptors are the connections of the crowd from this one on; closes them. */
static void
are_of(const crowd *self, size_t from, const int32_t *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;

        assert_int_equal(getpeername(descriptors[i], (struct sockaddr *)&peer, &length),
                         0);
        assert_int_equal(peer.sin_port, self->ports[from + i]);
        assert_true((fcntl(descriptors[i], F_GETFD) & FD_CLOEXEC) != 0);
        close(descriptors[i]);
    }
}

static int
count_open(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* ---- accepts ------------------------------------------------------------------------------------------- */

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
        before = count_open();
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
        assert_int_equal(count_open(), before);
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
    before = count_open();
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
    assert_int_equal(count_open(), before);
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

/* ---- receives ------------------------------------------------------------------------------------------- */

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

/* ---- the kernel's flag --------------------------------------------------------------------------------- */
#if ERRAND_HAS_URING

/* Says that the kernel has put work off, as it does a moment too late where it is done already. */
static int32_t
flag_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    errand__loop *loop = errand__loop_current();
    errand__uring *ring = loop->state;

    (void)job;
    (void)state;
    (void)out_payload;
    __atomic_fetch_or(ring->ring.sq.kflags, IORING_SQ_TASKRUN, __ATOMIC_SEQ_CST);
    return 0;
}
static const errand_job_type flag_job = {
    .struct_size = sizeof(errand_job_type), .name = "flag", .poll = flag_poll};

static void
flag_body(scene *world, const rig_config *config)
{
    errand__loop_lease *mine = world->leases[0]->impl;
    errand__loop *loop = mine->loop;

    if (config->backend != ERRAND_REACTOR_URING)
        return;
    scene_poll(world, 0, &flag_job, NULL);
    scene_await(world, 0, 1);
    if (config->threads == 0) {
        scene_drain(world, 0);
        assert_false(errand__loop_busy(loop));
    }
    while (config->threads != 0 &&
           !atomic_load_explicit(&loop->asleep, memory_order_relaxed))
        sched_yield();
    /* And nothing that comes then is missed. */
    assert_int_equal(
        rig_do(world,
               (errand_io){.kind = ERRAND_IO_OPEN, .fd = AT_FDCWD, .path = "/nowhere"}),
        -ENOENT);
}
#endif

static void
a_flag_of_the_kernels_without_work_keeps_no_loop_awake(void **state)
{
    (void)state; /* O67 */
#if ERRAND_HAS_URING
    rig_each(flag_body);
#else
    skip();
#endif
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
        cmocka_unit_test(
            a_long_stream_comes_whole_through_a_ring_however_slowly_it_is_taken),
        cmocka_unit_test(
            streams_that_want_more_pieces_than_there_are_get_all_their_bytes),
        cmocka_unit_test(a_stopped_receive_loses_no_byte_and_touches_its_ring_no_more),
        cmocka_unit_test(
            a_job_that_leaves_its_receive_is_told_when_the_kernel_has_given_it_back),
        cmocka_unit_test(a_flag_of_the_kernels_without_work_keeps_no_loop_awake),
    };
    return test_group("workers/reactor/many", tests, NULL, NULL);
}
