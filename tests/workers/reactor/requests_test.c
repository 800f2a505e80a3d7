/* SPDX-License-Identifier: MIT */
/* Goal: every kind of request does what the system call does, on both back ends, with and without
 * threads.
 * Method: jobs carry requests out one by one; results are compared with what the files, pipes and
 * sockets show. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include "rig.h"
#include "workers/reactor/reactor.h"

static void
every_kind_has_a_function_in_both_back_ends(void **state)
{
    static const int of_disks[] = {ERRAND_IO_OPEN,    ERRAND_IO_CLOSE, ERRAND_IO_READ,
                                   ERRAND_IO_WRITE,   ERRAND_IO_READV, ERRAND_IO_WRITEV,
                                   ERRAND_IO_SYNC,    ERRAND_IO_STAT,  ERRAND_IO_RENAME,
                                   ERRAND_IO_UNLINK,  ERRAND_IO_MKDIR, ERRAND_IO_SPLICE,
                                   ERRAND_IO_TRUNCATE};

    (void)state;
    for (int kind = ERRAND_IO_NOTHING; kind < ERRAND_IO_KINDS; kind++) {
        const errand__kind *cell = &errand__kinds[kind];

        assert_non_null(cell->name);
        if (cell->of_loop)
            continue;
        assert_non_null(cell->attempt);
        if (errand__uring_refused() != ENOSYS)
            assert_true(cell->fill != NULL || cell->block != NULL);
    }
    for (size_t i = 0; i < sizeof of_disks / sizeof of_disks[0]; i++)
        assert_non_null(errand__kinds[of_disks[i]].block);
}

/* ---- files ---------------------------------------------------------------------------------------- */

static uint64_t
filers_given(scene *world)
{
    errand__filers *filers = errand__reactor_of(world->executor)->filers;

    return atomic_load_explicit(&filers->bell, memory_order_relaxed);
}

/* The file at path has 32 bytes and is open as fd; the folder has nothing else. */
static void
names_are_changed(scene *world, const char *folder, const char *path, int fd)
{
    char other[256];
    struct statx found;

    snprintf(other, sizeof other, "%s/two", folder);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_STAT,
                                               .fd = AT_FDCWD,
                                               .path = path,
                                               .mask = STATX_SIZE,
                                               .out_stat = &found}),
                     0);
    assert_int_equal(found.stx_size, 32);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_RENAME,
                                               .fd = AT_FDCWD,
                                               .path = path,
                                               .to_fd = AT_FDCWD,
                                               .to_path = other}),
                     0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_CLOSE, .fd = fd}), 0);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_MKDIR,
                                               .fd = AT_FDCWD,
                                               .path = path,
                                               .mode = 0700}),
                     0);
    assert_int_equal(
        rig_do(world,
               (errand_io){.kind = ERRAND_IO_UNLINK, .fd = AT_FDCWD, .path = other}),
        0);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_UNLINK,
                                               .fd = AT_FDCWD,
                                               .path = path,
                                               .flags = AT_REMOVEDIR}),
                     0);
    assert_int_equal(
        rig_do(world, (errand_io){.kind = ERRAND_IO_OPEN, .fd = AT_FDCWD, .path = other}),
        -ENOENT);
}

/* What waits for a disk never does so on a loop's thread: where the kernel has no request for it,
 * a filer has it.  The file at path has 2^20 bytes. */
static void
moved_by_filers(scene *world, const rig_config *config, const char *path, int fd)
{
    bool by_kernel = config->backend == ERRAND_REACTOR_URING;
    uint64_t done = filers_given(world);
    int ends[2], other = open(path, O_RDONLY);

    assert_int_equal(
        rig_do(world,
               (errand_io){.kind = ERRAND_IO_TRUNCATE, .fd = fd, .offset = 1 << 20}),
        0);
    assert_int_equal(filers_given(world), ++done);
    assert_int_equal(pipe2(ends, 0), 0);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_SPLICE,
                                               .fd = fd,
                                               .offset = 0,
                                               .to_fd = ends[1],
                                               .to_offset = -1,
                                               .length = 100}),
                     100);
    if (!by_kernel)
        done++;
    assert_int_equal(filers_given(world), done);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_CLOSE, .fd = other}), 0);
    assert_int_equal(fcntl(other, F_GETFD), -1);
    if (!by_kernel)
        done++;
    assert_int_equal(filers_given(world), done);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            rig_do(world, (errand_io){.kind = ERRAND_IO_CLOSE, .fd = ends[i]}), 0);
    assert_int_equal(filers_given(world), done);
}

static void
files_body(scene *world, const rig_config *config)
{
    char folder[200], path[256], bytes[64] = "";
    struct iovec parts[2] = {{bytes, 3}, {bytes + 3, 10}};
    int fd;

    rig_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/one", folder);
    fd = rig_do(world, (errand_io){.kind = ERRAND_IO_OPEN,
                                   .fd = AT_FDCWD,
                                   .path = path,
                                   .flags = O_RDWR | O_CREAT | O_EXCL,
                                   .mode = 0600});
    assert_true(fd > 2);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_WRITE,
                                               .fd = fd,
                                               .bytes = "hello, file",
                                               .length = 11,
                                               .offset = 0}),
                     11);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_SYNC, .fd = fd}), 0);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_SYNC,
                                               .fd = fd,
                                               .flags = ERRAND_IO_DATA_ONLY}),
                     0);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_READ,
                                               .fd = fd,
                                               .buffer = bytes,
                                               .length = 5,
                                               .offset = 7}),
                     4);
    assert_memory_equal(bytes, "file", 4);
    /* offset -1: where the file stands, which no offset moved. */
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_READV,
                                               .fd = fd,
                                               .vectors = parts,
                                               .count = 2,
                                               .offset = -1}),
                     11);
    assert_memory_equal(bytes, "hello, file", 11);
    parts[0].iov_len = 2;
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_WRITEV,
                                               .fd = fd,
                                               .vectors = parts,
                                               .count = 2,
                                               .offset = 20}),
                     12);
    assert_int_equal(
        rig_do(world,
               (errand_io){.kind = ERRAND_IO_TRUNCATE, .fd = fd, .offset = 1 << 20}),
        0);
    moved_by_filers(world, config, path, fd);
    assert_int_equal(
        rig_do(world, (errand_io){.kind = ERRAND_IO_TRUNCATE, .fd = fd, .offset = 32}),
        0);
    names_are_changed(world, folder, path, fd);
    assert_int_equal(rmdir(folder), 0);
}

static void
files_are_made_written_read_and_removed(void **state)
{
    (void)state;
    rig_each(files_body);
}

/* ---- pipes ---------------------------------------------------------------------------------------- */

/* mode: 0 or O_NONBLOCK. */
static void
pipe_waits(scene *world, int mode)
{
    char bytes[8] = "";
    rig_script reader = {.count = 1};
    int ends[2];

    assert_int_equal(pipe2(ends, mode), 0);
    reader.steps[0] = (errand_io){.kind = ERRAND_IO_READ,
                                  .fd = ends[0],
                                  .buffer = bytes,
                                  .length = sizeof bytes,
                                  .offset = -1};
    scene_poll(world, 0, &rig_script_job, &reader);
    for (int i = 0; i < 3; i++)
        scene_drain(world, 0);
    assert_int_equal(reader.drops, 0);
    size_t before = world->seen[0].count;
    assert_int_equal(write(ends[1], "abc", 3), 3);
    scene_await(world, 0, before + 1);
    assert_int_equal(reader.steps[0].result, 3);
    assert_memory_equal(bytes, "abc", 3);
    close(ends[0]);
    close(ends[1]);
}

static void
full_pipe_takes_more_when_it_is_read(scene *world, int mode)
{
    static char many[1 << 20];
    rig_script writer = {.count = 1};
    int ends[2];
    size_t before = world->seen[0].count;
    ssize_t got;

    assert_int_equal(pipe2(ends, mode), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], many, sizeof many) > 0) {
    }
    assert_int_equal(fcntl(ends[1], F_SETFL, mode), 0);
    writer.steps[0] = (errand_io){.kind = ERRAND_IO_WRITE,
                                  .fd = ends[1],
                                  .bytes = many,
                                  .length = 100,
                                  .offset = -1};
    scene_poll(world, 0, &rig_script_job, &writer);
    for (int i = 0; i < 3; i++)
        scene_drain(world, 0);
    assert_int_equal(world->seen[0].count, before);
    got = read(ends[0], many, sizeof many);
    assert_true(got > 0);
    scene_await(world, 0, before + 1);
    assert_int_equal(writer.steps[0].result, 100);
    close(ends[0]);
    close(ends[1]);
}

static void
pipes_body(scene *world, const rig_config *config)
{
    (void)config;
    for (int mode = 0; mode <= O_NONBLOCK; mode += O_NONBLOCK) {
        pipe_waits(world, mode);
        full_pipe_takes_more_when_it_is_read(world, mode);
    }
}

static void
pipes_are_waited_for_in_both_modes(void **state)
{
    (void)state;
    rig_each(pipes_body);
}

static void
broken_pipe_body(scene *world, const rig_config *config)
{
    int ends[2];

    (void)config;
    assert_int_equal(pipe2(ends, 0), 0);
    close(ends[0]);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_WRITE,
                                               .fd = ends[1],
                                               .bytes = "x",
                                               .length = 1,
                                               .offset = -1}),
                     -EPIPE);
    close(ends[1]);
}

static void
write_to_a_broken_pipe_raises_no_signal(void **state)
{
    (void)state; /* O62: its default action would end this program */
    rig_each(broken_pipe_body);
}

static void
splice_body(scene *world, const rig_config *config)
{
    int first[2], second[2];
    char bytes[8];

    (void)config;
    assert_int_equal(pipe2(first, 0), 0);
    assert_int_equal(pipe2(second, 0), 0);
    assert_int_equal(write(first[1], "moved", 5), 5);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_SPLICE,
                                               .fd = first[0],
                                               .offset = -1,
                                               .to_fd = second[1],
                                               .to_offset = -1,
                                               .length = 100}),
                     5);
    assert_int_equal(read(second[0], bytes, sizeof bytes), 5);
    assert_memory_equal(bytes, "moved", 5);
    for (int i = 0; i < 2; i++) {
        close(first[i]);
        close(second[i]);
    }
}

static void
splice_moves_bytes_between_pipes(void **state)
{
    (void)state;
    rig_each(splice_body);
}

static void
poll_body(scene *world, const rig_config *config)
{
    rig_script watcher = {.count = 1};
    size_t before = world->seen[0].count;
    int ends[2];

    (void)config;
    assert_int_equal(pipe2(ends, 0), 0);
    assert_int_equal(
        rig_do(world,
               (errand_io){.kind = ERRAND_IO_POLL, .fd = ends[1], .events = POLLOUT}),
        POLLOUT);
    watcher.steps[0] =
        (errand_io){.kind = ERRAND_IO_POLL, .fd = ends[0], .events = POLLIN};
    scene_poll(world, 0, &rig_script_job, &watcher);
    scene_drain(world, 0);
    close(ends[1]);
    scene_await(world, 0, before + 2);
    assert_true((watcher.steps[0].result & POLLHUP) != 0);
    close(ends[0]);
}

static void
poll_tells_what_a_descriptor_is_ready_for(void **state)
{
    (void)state;
    rig_each(poll_body);
}

/* ---- sockets ---------------------------------------------------------------------------------------- */

static void
talk(scene *world, int client, int server)
{
    char bytes[32];
    struct iovec part = {(void *)"vectored", 8};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_SEND,
                                               .fd = client,
                                               .bytes = "ping",
                                               .length = 4}),
                     4);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_RECV,
                                               .fd = server,
                                               .buffer = bytes,
                                               .length = sizeof bytes}),
                     4);
    assert_memory_equal(bytes, "ping", 4);
    assert_int_equal(
        rig_do(world,
               (errand_io){.kind = ERRAND_IO_SENDMSG, .fd = server, .message = &message}),
        8);
    part = (struct iovec){bytes, sizeof bytes};
    assert_int_equal(
        rig_do(world,
               (errand_io){.kind = ERRAND_IO_RECVMSG, .fd = client, .message = &message}),
        8);
    assert_memory_equal(bytes, "vectored", 8);
    assert_int_equal(
        rig_do(world,
               (errand_io){.kind = ERRAND_IO_SHUTDOWN, .fd = client, .flags = SHUT_WR}),
        0);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_RECV,
                                               .fd = server,
                                               .buffer = bytes,
                                               .length = sizeof bytes}),
                     0);
}

static void
tcp_body(scene *world, const rig_config *config)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                       peer;
    socklen_t length = sizeof address;
    uint32_t peer_length = sizeof peer;
    rig_script accepting = {.count = 1};
    size_t before = world->seen[0].count;
    int listener, client, server;

    (void)config;
    listener = rig_do(
        world,
        (errand_io){.kind = ERRAND_IO_SOCKET, .fd = AF_INET, .flags = SOCK_STREAM});
    assert_true(listener > 2);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 16), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    accepting.steps[0] = (errand_io){.kind = ERRAND_IO_ACCEPT,
                                     .fd = listener,
                                     .out_address = (struct sockaddr *)&peer,
                                     .out_length = &peer_length};
    scene_poll(world, 0, &rig_script_job, &accepting);
    client = rig_do(
        world,
        (errand_io){.kind = ERRAND_IO_SOCKET, .fd = AF_INET, .flags = SOCK_STREAM});
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_CONNECT,
                                               .fd = client,
                                               .address = (struct sockaddr *)&address,
                                               .length = sizeof address}),
                     0);
    scene_await(world, 0, before + 4);
    server = accepting.steps[0].result;
    assert_true(server > 2);
    assert_int_equal(peer.sin_family, AF_INET);
    talk(world, client, server);
    close(client);
    close(server);
    close(listener);
    client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_CONNECT,
                                               .fd = client,
                                               .address = (struct sockaddr *)&address,
                                               .length = sizeof address}),
                     -ECONNREFUSED);
    close(client);
}

static void
tcp_connects_accepts_sends_and_receives(void **state)
{
    (void)state;
    rig_each(tcp_body);
}

/* ---- time ------------------------------------------------------------------------------------------- */

static void
timeout_body(scene *world, const rig_config *config)
{
    uint64_t begun = errand_runtime_now(world->runtimes[0]);
    rig_script late = {.count = 1}, never = {.count = 1};
    errand_identity identity;

    (void)config;
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_NOTHING}), 0);
    assert_int_equal(rig_do(world, (errand_io){.kind = ERRAND_IO_TIMEOUT, .until_ns = 1}),
                     0);
    late.steps[0] = (errand_io){.kind = ERRAND_IO_TIMEOUT, .until_ns = begun + 20000000};
    never.steps[0] = (errand_io){.kind = ERRAND_IO_TIMEOUT, .until_ns = UINT64_MAX};
    identity = scene_poll(world, 0, &rig_script_job, &never);
    scene_poll(world, 0, &rig_script_job, &late);
    scene_await(world, 0, 3);
    assert_true(errand_runtime_now(world->runtimes[0]) >= begun + 20000000);
    assert_int_equal(late.steps[0].result, 0);
    assert_int_equal(never.drops, 0);
    assert_int_equal(scene_cancel(world, 0, identity), ERRAND_CANCEL_RUNNING);
    scene_await(world, 0, 4);
    assert_int_equal(never.steps[0].result, -ECANCELED);
}

static void
timeouts_come_in_time_and_can_be_asked_back(void **state)
{
    (void)state;
    rig_each(timeout_body);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_function_in_both_back_ends),
        cmocka_unit_test(files_are_made_written_read_and_removed),
        cmocka_unit_test(pipes_are_waited_for_in_both_modes),
        cmocka_unit_test(write_to_a_broken_pipe_raises_no_signal),
        cmocka_unit_test(splice_moves_bytes_between_pipes),
        cmocka_unit_test(poll_tells_what_a_descriptor_is_ready_for),
        cmocka_unit_test(tcp_connects_accepts_sends_and_receives),
        cmocka_unit_test(timeouts_come_in_time_and_can_be_asked_back),
    };
    return test_group("workers/reactor/requests", tests, NULL, NULL);
}
