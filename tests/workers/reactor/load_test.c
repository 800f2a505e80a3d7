/* SPDX-License-Identifier: MIT */
/* Goal: many waits at once are cheap and none is lost: ten thousand pending jobs, a queue of the
 * kernel that overflows, thousands of timers, rings of items that fill up, the cost in memory.
 * Method: small queues and many requests; everything is counted. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include "errand/order.h"
#include "rig.h"
#include "workers/reactor/reactor.h"

enum { MANY = 10000, AGE_LINE = 32, WAIT_MOST = 512 };

/* ---- jobs without requests ------------------------------------------------------------------------- */

static void
wakers_body(const rig_config *config)
{
    scene world;
    scene_sleeper *jobs = calloc(MANY, sizeof *jobs);

    if (!rig_open(&world, config, 1, MANY)) {
        free(jobs);
        return;
    }
    for (int i = 0; i < MANY; i++) {
        jobs[i].wakes_wanted = 1;
        scene_poll(&world, 0, &scene_sleeper_job, &jobs[i]);
    }
    scene_drain(&world, 0);
    for (int i = 0; i < MANY; i++)
        while (scene_count(&jobs[i].polls) == 0)
            sched_yield();
    for (int i = MANY - 1; i >= 0; i--) {
        while (scene_waker(&jobs[i]) == NULL)
            sched_yield();
        errand_waker_wake(scene_waker(&jobs[i]));
    }
    scene_await(&world, 0, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(scene_count(&jobs[i].polls), 2);
        assert_int_equal(scene_count(&jobs[i].drops), 1);
        scene_sleeper_end(&jobs[i]);
    }
    scene_close(&world);
    free(jobs);
}

static void
ten_thousand_jobs_that_only_wait_for_wakers_run_here_too(void **state)
{
    (void)state;
    for (int i = 0; i < RIG_CONFIGS; i++)
        wakers_body(&rig_configs[i]);
}

/* ---- ten thousand receives ---------------------------------------------------------------------------- */

static void
receives_body(const rig_config *config)
{
    scene world;
    rig_script *jobs = calloc(MANY, sizeof *jobs);
    char *bytes = calloc(MANY, 1);
    int ends[2];
    int64_t before;

    if (!rig_open(&world, config, 1, MANY)) {
        free(jobs);
        free(bytes);
        return;
    }
    /* Datagrams: each receive gets one. */
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    before = errand_testing_live_bytes();
    for (int i = 0; i < MANY; i++) {
        jobs[i].count = 1;
        jobs[i].steps[0] = (errand_io){
            .kind = ERRAND_IO_RECV, .fd = ends[0], .buffer = &bytes[i], .length = 1};
        scene_poll(&world, 0, &rig_script_job, &jobs[i]);
    }
    scene_drain(&world, 0);
    for (int i = 0; i < MANY; i++)
        while (scene_count(&jobs[i].polls) == 0)
            sched_yield();
    /* Its record, the line of its age, what bind allocates, and its request; the job's own state and
     * the kernel's part come on top. */
    double each = (double)(errand_testing_live_bytes() - before) / MANY +
                  sizeof(errand__record) + AGE_LINE + sizeof(errand_io);
    printf("    %s: %.0f bytes for an open wait\n", config->name, each);
    assert_true(each <= WAIT_MOST);
    for (int i = 0; i < MANY; i++) {
        while (send(ends[1], "x", 1, MSG_DONTWAIT) < 0)
            scene_drain(&world, 0);
    }
    scene_await(&world, 0, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(bytes[i], 'x');
        assert_int_equal(jobs[i].drops, 1);
    }
    close(ends[0]);
    close(ends[1]);
    scene_close(&world);
    free(jobs);
    free(bytes);
}

static void
ten_thousand_receives_are_open_at_once_and_each_gets_its_datagram(void **state)
{
    (void)state;
    for (int i = 0; i < RIG_CONFIGS; i++)
        receives_body(&rig_configs[i]);
}

/* ---- many timers ---------------------------------------------------------------------------------- */
static void
timers_body(const rig_config *config)
{
    enum { WAITS = 3000 };
    scene world;
    rig_script *jobs = calloc(WAITS, sizeof *jobs);
    errand_identity *names = calloc(WAITS, sizeof *names);
    uint64_t near = errand_deadline_in(1000000), far = errand_deadline_in(3600000000000);

    if (rig_open(&world, config, 1, WAITS)) {
        for (int i = 0; i < WAITS; i++) {
            jobs[i].count = 1;
            jobs[i].steps[0] = (errand_io){.kind = ERRAND_IO_TIMEOUT,
                                           .until_ns = i % 2 == 0 ? near : far};
            names[i] = scene_poll(&world, 0, &rig_script_job, &jobs[i]);
        }
        for (int i = 1; i < WAITS; i += 2)
            (void)scene_cancel(&world, 0, names[i]);
        scene_await(&world, 0, WAITS);
        for (int i = 0; i < WAITS; i++) {
            assert_int_equal(jobs[i].drops, 1);
            if (i % 2 == 0)
                assert_int_equal(jobs[i].steps[0].result, 0);
            else if (jobs[i].steps[0].done) /* else it was cancelled unbegun */
                assert_int_equal(jobs[i].steps[0].result, -ECANCELED);
        }
        scene_close(&world);
    }
    free(jobs), free(names);
}

static void
thousands_of_timers_are_cancelled_and_fired_once_each(void **state)
{
    (void)state;
    for (int i = 0; i < RIG_CONFIGS; i++)
        timers_body(&rig_configs[i]);
}

/* ---- overflow ------------------------------------------------------------------------------------------ */

static void
overflow_body(const rig_config *config)
{
    enum { WAITS = 3000 };
    scene world;
    errand_executor *executor;
    rig_script *jobs = calloc(WAITS, sizeof *jobs);
    int ends[2];

    scene_begin(&world);
    if (!rig_create(config, 4, &executor)) { /* a completion queue of 32 */
        free(jobs);
        return;
    }
    scene_open(&world, executor, 1, NULL, 0);
    assert_int_equal(pipe2(ends, 0), 0);
    for (int i = 0; i < WAITS; i++) {
        jobs[i].count = 2;
        jobs[i].steps[0] =
            (errand_io){.kind = ERRAND_IO_POLL, .fd = ends[0], .events = POLLIN};
        jobs[i].steps[1] = (errand_io){.kind = ERRAND_IO_NOTHING};
        scene_poll(&world, 0, &rig_script_job, &jobs[i]);
    }
    scene_drain(&world, 0);
    for (int i = 0; i < WAITS; i++)
        while (scene_count(&jobs[i].polls) == 0)
            sched_yield();
    assert_int_equal(write(ends[1], "!", 1), 1); /* all of them at once */
    scene_await(&world, 0, WAITS);
    for (int i = 0; i < WAITS; i++) {
        assert_int_equal(jobs[i].drops, 1);
        assert_int_equal(jobs[i].steps[0].result, POLLIN);
    }
    close(ends[0]);
    close(ends[1]);
    scene_close(&world);
    free(jobs);
}

static void
completions_beyond_the_kernels_queue_are_not_lost(void **state)
{
    (void)state;
    for (int i = 0; i < RIG_CONFIGS; i++)
        overflow_body(&rig_configs[i]);
}

/* ---- rings of items --------------------------------------------------------------------------------------- */

typedef struct taker {
    errand_io io;
    int32_t ring[4];
    char bytes[16];
    int taken, wanted, step;
    char seen[4096];
    size_t length;
    bool begun, asked;
    int32_t end;
} taker;

static int32_t
poll_taker(errand_job *job, void *state, errand_payload *out_payload)
{
    taker *self = state;

    (void)out_payload;
    if (!self->begun) {
        self->begun = true;
        return errand_io_start(job, &self->io) == ERRAND_OK ? ERRAND_PENDING : 99;
    }
    while (self->io.ready > 0) {
        if (self->io.kind == ERRAND_IO_ACCEPT_MANY)
            close(self->ring[self->io.first]);
        else
            self->seen[self->length++] = self->bytes[self->io.first];
        self->taken++;
        if (errand_io_consume(job, &self->io, 1) != ERRAND_OK)
            return 98;
    }
    if (self->taken >= self->wanted && !self->asked && !self->io.done) {
        self->asked = true;
        if (errand_io_cancel(job, &self->io) != ERRAND_OK)
            return 97;
    }
    if (!self->io.done)
        return ERRAND_PENDING;
    self->end = self->io.result;
    return 0;
}
static const errand_job_type taker_job = {
    .struct_size = sizeof(errand_job_type), .name = "taker", .poll = poll_taker};

static void
accepts_body(scene *world, const rig_config *config)
{
    enum { CLIENTS = 60 };
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    taker many = {.wanted = CLIENTS};
    int listener = socket(AF_INET, SOCK_STREAM, 0), clients[CLIENTS];

    (void)config;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 128), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    many.io = (errand_io){
        .kind = ERRAND_IO_ACCEPT_MANY, .fd = listener, .buffer = many.ring, .length = 4};
    scene_poll(world, 0, &taker_job, &many);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(clients[i], (struct sockaddr *)&address, sizeof address),
                         0);
        if (i % 7 == 0)
            scene_drain(world, 0);
    }
    scene_await(world, 0, 1);
    assert_int_equal(many.taken, CLIENTS);
    assert_int_equal(many.end, -ECANCELED);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    close(listener);
}

static void
many_accepts_fill_a_ring_and_go_on_when_it_is_emptied(void **state)
{
    (void)state; /* O79 */
    rig_each(accepts_body);
}

static void
stream_body(scene *world, const rig_config *config)
{
    taker many = {.wanted = 1 << 20};
    char text[3000];
    int ends[2];
    size_t sent = 0;

    (void)config;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 31 % 251);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    many.io = (errand_io){
        .kind = ERRAND_IO_RECV_MANY, .fd = ends[0], .buffer = many.bytes, .length = 16};
    scene_poll(world, 0, &taker_job, &many);
    while (sent < sizeof text) {
        size_t part = sizeof text - sent < 37 ? sizeof text - sent : 37;

        assert_int_equal(send(ends[1], text + sent, part, 0), (ssize_t)part);
        sent += part;
        scene_drain(world, 0);
    }
    assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
    scene_await(world, 0, 1);
    assert_int_equal(many.end, 0);
    assert_int_equal(many.length, sizeof text);
    assert_memory_equal(many.seen, text, sizeof text);
    close(ends[0]);
    close(ends[1]);
}

static void
a_stream_goes_through_a_small_ring_whole_and_in_order(void **state)
{
    (void)state;
    rig_each(stream_body);
}

/* ---- the seeded orders --------------------------------------------------------------------------------------- */

static void
seeded_run(const rig_config *config, errand_order order, uint64_t *out_digest)
{
    errand_runtime_config wanted = {
        .struct_size = sizeof wanted, .order = order, .seed = 7};
    enum { JOBS = 50 };
    errand_executor *executor;
    scene world;
    rig_script jobs[JOBS];
    char bytes[JOBS];
    int file = open("/dev/zero", O_RDONLY);

    scene_begin(&world);
    assert_true(rig_create(config, 0, &executor));
    scene_open(&world, executor, 1, &wanted, 0);
    memset(jobs, 0, sizeof jobs);
    memset(bytes, 1, sizeof bytes);
    for (int i = 0; i < JOBS; i++) {
        jobs[i].count = 2;
        jobs[i].steps[0] = (errand_io){.kind = ERRAND_IO_READ,
                                       .fd = file,
                                       .buffer = &bytes[i],
                                       .length = 1,
                                       .offset = -1};
        jobs[i].steps[1] = (errand_io){.kind = ERRAND_IO_TIMEOUT,
                                       .until_ns = errand_deadline_in(1000000)};
        scene_poll(&world, 0, &rig_script_job, &jobs[i]);
    }
    scene_await(&world, 0, JOBS);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(bytes[i], 0);
    *out_digest = errand_digest(world.runtimes[0]);
    scene_close(&world);
    close(file);
}

static void
seeded_orders_wait_for_the_requests_of_the_due_job(void **state)
{
    static const errand_order orders[] = {ERRAND_ORDER_INLINE, ERRAND_ORDER_PACED};

    (void)state;
    for (int at = 0; at < 2; at++) {
        uint64_t first = 0, digest = 0;

        for (int i = 0; i < RIG_CONFIGS; i++) {
            if (rig_configs[i].backend == ERRAND_REACTOR_URING &&
                errand__uring_refused() != 0)
                continue;
            seeded_run(&rig_configs[i], orders[at], &digest);
            if (first == 0)
                first = digest;
            assert_true(digest == first);
        }
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_jobs_that_only_wait_for_wakers_run_here_too),
        cmocka_unit_test(
            ten_thousand_receives_are_open_at_once_and_each_gets_its_datagram),
        cmocka_unit_test(thousands_of_timers_are_cancelled_and_fired_once_each),
        cmocka_unit_test(completions_beyond_the_kernels_queue_are_not_lost),
        cmocka_unit_test(many_accepts_fill_a_ring_and_go_on_when_it_is_emptied),
        cmocka_unit_test(a_stream_goes_through_a_small_ring_whole_and_in_order),
        cmocka_unit_test(seeded_orders_wait_for_the_requests_of_the_due_job),
    };
    return test_group("workers/reactor/load", tests, NULL, NULL);
}
