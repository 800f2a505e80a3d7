/* SPDX-License-Identifier: MIT */
/* Goal: whatever ends a job while the kernel has its memory (cancel, deadline, panic, an early
 * answer, a lease's or runtime's end, a thread's exit), each request is done once and nothing is
 * given back before.
 * Method: receives on silent sockets and pipes; states in heap blocks that are freed by drop, which
 * AddressSanitizer watches; counts of polls and drops. */
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "errand/order.h"
#include "rig.h"

/* A receive into a heap block that goes with its state. */
typedef struct heap_recv {
    errand_io io;
    char *buffer;
    atomic_int *drops;
    int32_t *result;
    int end; /* what it does after the start: see end_ */
    bool begun;
} heap_recv;
enum { END_NEVER, END_ANSWER, END_PANIC, END_THREAD, END_START };
enum { BUFFER = 4096 };

static int32_t
heap_recv_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    heap_recv *self = state;

    (void)out_payload;
    if (!self->begun) {
        self->begun = true;
        if (errand_io_start(job, &self->io) != ERRAND_OK)
            return 99;
        if (self->end == END_ANSWER)
            return 5;
        if (self->end == END_PANIC)
            errand_panic("left with a request under way");
        if (self->end == END_THREAD)
            pthread_exit(NULL);
        return ERRAND_PENDING;
    }
    if (!self->io.done)
        return ERRAND_PENDING;
    *self->result = self->io.result;
    return self->io.result < 0 ? -self->io.result : 0;
}
static void
heap_recv_drop(void *state)
{
    heap_recv *self = state;

    assert_true(self->io.done || !self->begun);
    memset(self->buffer, 0xee, BUFFER);
    free(self->buffer);
    atomic_fetch_add_explicit(self->drops, 1, memory_order_release);
    free(self);
}
static const errand_job_type heap_recv_job = {.struct_size = sizeof(errand_job_type),
                                              .name = "recv",
                                              .poll = heap_recv_poll,
                                              .drop = heap_recv_drop};

static heap_recv *
heap_recv_create(int fd, int end, atomic_int *drops, int32_t *result)
{
    heap_recv *self = calloc(1, sizeof *self);

    self->buffer = malloc(BUFFER);
    self->end = end;
    self->drops = drops;
    self->result = result;
    self->io = (errand_io){
        .kind = ERRAND_IO_RECV, .fd = fd, .buffer = self->buffer, .length = BUFFER};
    return self;
}

static void
pair(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void
unpair(int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* ---- cancel ---------------------------------------------------------------------------------------- */

static void
cancel_body(scene *world, const rig_config *config)
{
    atomic_int drops = 0;
    int32_t result = 0;
    int ends[2];
    errand_identity identity;

    (void)config;
    pair(ends);
    identity = scene_poll(world, 0, &heap_recv_job,
                          heap_recv_create(ends[0], END_NEVER, &drops, &result));
    scene_drain(world, 0);
    assert_int_equal(drops, 0);
    errand_cancel_answer answer = scene_cancel(world, 0, identity);
    assert_true(answer == ERRAND_CANCEL_RUNNING || answer == ERRAND_CANCEL_CANCELLED);
    scene_await(world, 0, 1);
    assert_int_equal(drops, 1);
    if (answer == ERRAND_CANCEL_RUNNING)
        assert_int_equal(result, -ECANCELED);
    /* What comes later finds nobody: the buffer is gone. */
    assert_int_equal(send(ends[1], "late", 4, 0), 4);
    for (int i = 0; i < 3; i++)
        scene_drain(world, 0);
    unpair(ends);
}

static void
a_cancelled_receive_gives_its_buffer_back_once_and_late_bytes_touch_nothing(void **state)
{
    (void)state; /* C-B3, C-B4 */
    rig_each(cancel_body);
}

static void
early_body(scene *world, const rig_config *config)
{
    for (int end = END_ANSWER; end <= END_THREAD; end++) {
        atomic_int drops = 0;
        int32_t result = 1;
        size_t before = world->seen[0].count;
        int ends[2];

        if (end == END_THREAD && config->threads == 0)
            continue; /* it would end this thread */
        pair(ends);
        scene_poll(world, 0, &heap_recv_job,
                   heap_recv_create(ends[0], end, &drops, &result));
        scene_await(world, 0, before + 1);
        assert_int_equal(drops, 1);
        assert_int_equal(result, 1);
        assert_int_equal(send(ends[1], "late", 4, 0), 4);
        unpair(ends);
    }
    assert_int_equal(world->seen[0].codes[ERRAND_CODE_JOB], 1);
    assert_int_equal(world->seen[0].outcomes[ERRAND_PANICKED],
                     config->threads == 0 ? 1 : 2);
}

static void
a_job_that_ends_with_a_request_under_way_is_told_when_that_is_back(void **state)
{
    (void)state;
    rig_each(early_body);
}

/* ---- races: both sides of a cancel win ---------------------------------------------------------------- */

static void
race_body(scene *world, const rig_config *config)
{
    enum { RACES = 400 };
    int cancelled = 0, received = 0;

    (void)config;
    for (int i = 0; i < RACES; i++) {
        atomic_int drops = 0;
        int32_t result = 0;
        size_t before = world->seen[0].count;
        int ends[2];
        errand_identity identity;

        pair(ends);
        identity = scene_poll(world, 0, &heap_recv_job,
                              heap_recv_create(ends[0], END_NEVER, &drops, &result));
        if (i % 3 != 0)
            scene_drain(world, 0);
        if (i % 2 == 0)
            assert_int_equal(send(ends[1], "x", 1, 0), 1);
        if (i % 4 == 0) /* these win for certain; the others race */
            scene_await(world, 0, before + 1);
        scene_cancel(world, 0, identity);
        if (i % 2 != 0)
            assert_int_equal(send(ends[1], "x", 1, 0), 1);
        if (world->seen[0].count == before)
            scene_await(world, 0, before + 1);
        assert_int_equal(drops, 1);
        assert_true(result == 1 || result == -ECANCELED || result == 0);
        received += result == 1;
        cancelled += result != 1;
        unpair(ends);
    }
    assert_true(cancelled >= RACES / 20);
    assert_true(received >= RACES / 20);
}

static void
a_cancel_and_bytes_that_race_end_each_receive_once(void **state)
{
    (void)state; /* C-B2 */
    rig_each(race_body);
}

/* ---- deadlines --------------------------------------------------------------------------------------- */

static unsigned
count_threads(void)
{
    char line[128];
    unsigned threads = 0;
    FILE *file = fopen("/proc/self/status", "r");

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Threads: %u", &threads) == 1)
            break;
    fclose(file);
    return threads;
}

static void
fifo_body(scene *world, const rig_config *config)
{
    enum { OPENS = 1000 };
    char folder[200], path[256];
    rig_script *scripts = calloc(OPENS, sizeof *scripts);
    errand_spec spec = ERRAND_SPEC_INIT;
    unsigned before = count_threads(), most = 0;

    (void)config;
    rig_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    spec.held_job = &rig_script_job;
    spec.deadline_ns = 100000000;
    for (int i = 0; i < OPENS; i++) {
        scripts[i].count = 1;
        scripts[i].steps[0] =
            (errand_io){.kind = ERRAND_IO_OPEN, .fd = AT_FDCWD, .path = path};
        spec.state = &scripts[i];
        assert_int_equal(errand_start(world->leases[0], &spec, NULL, NULL), ERRAND_OK);
    }
    /* A state that is still in use when its job is written off is dropped later. */
    for (int drops = 0; world->seen[0].count < OPENS || drops < OPENS;) {
        unsigned threads = count_threads();

        most = threads > most ? threads : most;
        drops = 0;
        for (int i = 0; i < OPENS; i++)
            drops += scripts[i].drops;
        if (scene_drain(world, 0) == 0)
            assert_int_equal(
                errand_park(world->runtimes[0],
                            errand_runtime_now(world->runtimes[0]) + 20000000),
                ERRAND_OK);
    }
    for (int i = 0; i < OPENS; i++) {
        assert_int_equal(scripts[i].drops, 1);
        if (scripts[i].polls != 0) /* else it was settled while it was queued */
            assert_int_equal(scripts[i].steps[0].result, -ECANCELED);
    }
    assert_true(most <= before + 24);
    assert_int_equal(world->seen[0].codes[ERRAND_CODE_DEADLINE], OPENS);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    free(scripts);
}

static void
a_thousand_opens_of_a_fifo_without_a_writer_end_at_their_deadline(void **state)
{
    (void)state;
    rig_each(fifo_body);
}

static void
fifo_pair_body(scene *world, const rig_config *config)
{
    char folder[200], path[256];
    rig_script reader = {.count = 1};
    size_t before = world->seen[0].count;
    int fd, got;
    char byte;

    (void)config;
    rig_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    reader.steps[0] = (errand_io){.kind = ERRAND_IO_OPEN, .fd = AT_FDCWD, .path = path};
    scene_poll(world, 0, &rig_script_job, &reader);
    scene_drain(world, 0);
    fd = rig_do(world, (errand_io){.kind = ERRAND_IO_OPEN,
                                   .fd = AT_FDCWD,
                                   .path = path,
                                   .flags = O_WRONLY});
    assert_true(fd > 2);
    scene_await(world, 0, before + 2);
    assert_true(reader.steps[0].result > 2);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(reader.steps[0].result, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(write(fd, "f", 1), 1);
    got = (int)read(reader.steps[0].result, &byte, 1);
    assert_int_equal(got, 1);
    close(fd);
    close(reader.steps[0].result);
    unlink(path);
    rmdir(folder);
}

static void
both_sides_of_a_fifo_are_opened_when_they_meet(void **state)
{
    (void)state;
    rig_each(fifo_pair_body);
}

/* ---- the end of a runtime ------------------------------------------------------------------------------ */

static void
shutdown_body(scene *world, const rig_config *config)
{
    enum { JOBS = 100 };
    atomic_int drops = 0;
    int32_t result = 0;
    int ends[2];
    errand_report report;

    (void)config;
    pair(ends);
    for (int i = 0; i < JOBS; i++)
        scene_poll(world, 0, &heap_recv_job,
                   heap_recv_create(ends[0], END_NEVER, &drops, &result));
    scene_drain(world, 0);
    report = scene_end(world, 0, errand_deadline_in(UINT64_C(5000000000)));
    assert_true(report.clean);
    assert_int_equal(drops, JOBS);
    assert_int_equal(report.accounts.accepted, JOBS);
    unpair(ends);
}

static void
a_shutdown_has_every_request_back_first(void **state)
{
    (void)state;
    rig_each(shutdown_body);
}

static void
no_time_body(scene *world, const rig_config *config)
{
    enum { JOBS = 100 };
    atomic_int drops = 0;
    int32_t result = 0;
    int ends[2];
    errand_report report;

    (void)config;
    pair(ends);
    for (int i = 0; i < JOBS; i++)
        scene_poll(world, 0, &heap_recv_job,
                   heap_recv_create(ends[0], END_NEVER, &drops, &result));
    scene_drain(world, 0);
    report = scene_end(world, 0, 0);
    assert_int_equal(report.accounts.drained + report.accounts.undeliverable, JOBS);
    errand_executor_abandon(&world->executor);
    scene_await_memory(world);
    assert_int_equal(drops, JOBS);
    unpair(ends);
}

static void
a_shutdown_without_time_counts_the_rest_and_frees_it_when_the_kernel_has(void **state)
{
    (void)state; /* C-D3 */
    rig_each(no_time_body);
}

static void
lease_body(scene *world, const rig_config *config)
{
    atomic_int drops = 0;
    int32_t result = 0;
    int ends[2];
    errand_report report;

    (void)config;
    pair(ends);
    scene_poll(world, 0, &heap_recv_job,
               heap_recv_create(ends[0], END_NEVER, &drops, &result));
    scene_drain(world, 0);
    assert_int_equal(
        errand_lease_shutdown(&world->leases[0], errand_deadline_in(5000000000), &report),
        ERRAND_OK);
    scene_await(world, 0, 1);
    assert_int_equal(drops, 1);
    unpair(ends);
}

static void
a_lease_that_is_shut_has_its_requests_back(void **state)
{
    (void)state;
    rig_each(lease_body);
}

/* ---- fork ------------------------------------------------------------------------------------------------ */

static void
fork_body(scene *world, const rig_config *config)
{
    atomic_int drops = 0;
    int32_t result = 0;
    int ends[2], status;
    pid_t child;

    (void)config;
    pair(ends);
    scene_poll(world, 0, &heap_recv_job,
               heap_recv_create(ends[0], END_NEVER, &drops, &result));
    scene_drain(world, 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        errand_spec spec = ERRAND_SPEC_INIT;
        size_t count;
        rig_script script = {.count = 0};
        bool refused;

        errand_misuse_hook(NULL, NULL);
        spec.kind = 1;
        spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
        spec.held_job = &rig_script_job;
        spec.state = &script;
        refused =
            errand_start(world->leases[0], &spec, NULL, NULL) == ERRAND_EFORKED &&
            errand_drain(world->runtimes[0], 1, NULL, NULL, &count) == ERRAND_EFORKED &&
            errand_park(world->runtimes[0], 0) == ERRAND_EFORKED;
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(send(ends[1], "parent", 6, 0), 6);
    scene_await(world, 0, 1);
    assert_int_equal(result, 6);
    unpair(ends);
}

static void
a_forked_child_is_refused_and_the_parent_has_its_results(void **state)
{
    (void)state; /* C-E5 */
    rig_each(fork_body);
}

/* ---- another owner ------------------------------------------------------------------------------------- */

typedef struct heir {
    scene *world;
    int32_t result;
} heir;

static void *
adopt(void *arg)
{
    heir *self = arg;

    assert_int_equal(errand_runtime_adopt(self->world->runtimes[0]), ERRAND_OK);
    self->result = rig_do(
        self->world,
        (errand_io){.kind = ERRAND_IO_OPEN, .fd = AT_FDCWD, .path = "/nowhere/at/all"});
    assert_int_equal(errand_runtime_release(self->world->runtimes[0]), ERRAND_OK);
    return NULL;
}

static void
adopt_body(scene *world, const rig_config *config)
{
    heir next = {.world = world};
    atomic_int drops = 0;
    int32_t result = 0;
    int ends[2];
    pthread_t thread;

    assert_int_equal(
        rig_do(world,
               (errand_io){.kind = ERRAND_IO_OPEN, .fd = AT_FDCWD, .path = "/nowhere"}),
        -ENOENT);
    if (config->threads == 0) {
        pair(ends);
        scene_poll(world, 0, &heap_recv_job,
                   heap_recv_create(ends[0], END_NEVER, &drops, &result));
        assert_int_equal(errand_runtime_release(world->runtimes[0]), ERRAND_EBUSY);
        assert_int_equal(send(ends[1], "x", 1, 0), 1);
        scene_await(world, 0, 2);
        unpair(ends);
    }
    assert_int_equal(errand_runtime_release(world->runtimes[0]), ERRAND_OK);
    assert_int_equal(pthread_create(&thread, NULL, adopt, &next), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(next.result, -ENOENT);
    assert_int_equal(errand_runtime_adopt(world->runtimes[0]), ERRAND_OK);
    assert_int_equal(
        rig_do(world,
               (errand_io){.kind = ERRAND_IO_OPEN, .fd = AT_FDCWD, .path = "/nowhere"}),
        -ENOENT);
}

static void
a_runtime_with_nothing_under_way_goes_on_in_another_thread(void **state)
{
    (void)state;
    rig_each(adopt_body);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_cancelled_receive_gives_its_buffer_back_once_and_late_bytes_touch_nothing),
        cmocka_unit_test(
            a_job_that_ends_with_a_request_under_way_is_told_when_that_is_back),
        cmocka_unit_test(a_cancel_and_bytes_that_race_end_each_receive_once),
        cmocka_unit_test(
            a_thousand_opens_of_a_fifo_without_a_writer_end_at_their_deadline),
        cmocka_unit_test(both_sides_of_a_fifo_are_opened_when_they_meet),
        cmocka_unit_test(a_shutdown_has_every_request_back_first),
        cmocka_unit_test(
            a_shutdown_without_time_counts_the_rest_and_frees_it_when_the_kernel_has),
        cmocka_unit_test(a_lease_that_is_shut_has_its_requests_back),
        cmocka_unit_test(a_forked_child_is_refused_and_the_parent_has_its_results),
        cmocka_unit_test(a_runtime_with_nothing_under_way_goes_on_in_another_thread),
    };
    return test_group("workers/reactor/ends", tests, NULL, NULL);
}
