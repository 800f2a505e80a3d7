/* SPDX-License-Identifier: MIT */
/* Goal: no operation has its reactor's loop wait for a disk, nor does the end of what an operation
 * made; what is given up meanwhile leaves no descriptor, no process and no path.
 * Method: helper threads are stopped where they are about to wait; timers go on beside them. */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "errand/files.h"
#include "errand/process.h"
#include "errand/waits.h"
#include "folder_rig.h"
#include "gate.h"

/* Stops one thread that comes to a place.  Helpers may look there after a test has ended, so it stays. */
typedef struct held_place {
    _Atomic(const char *) place; /* NULL = nobody is stopped */
    atomic_int left;             /* that many pass before */
    atomic_bool seen, passed;
    test_gate gate;
} held_place;
static held_place held;

static void
hold(void *arg, const char *place)
{
    const char *wanted = atomic_load_explicit(&held.place, memory_order_acquire);

    (void)arg;
    if (wanted != NULL && strcmp(place, wanted) == 0 &&
        atomic_fetch_sub_explicit(&held.left, 1, memory_order_relaxed) <= 0 &&
        !atomic_exchange_explicit(&held.seen, true, memory_order_relaxed)) {
        gate_wait(&held.gate);
        atomic_store_explicit(&held.passed, true, memory_order_release);
    }
}

static void
hold_at(const char *place, int pass)
{
    gate_init(&held.gate, place);
    atomic_store_explicit(&held.left, pass, memory_order_relaxed);
    atomic_store_explicit(&held.seen, false, memory_order_relaxed);
    atomic_store_explicit(&held.passed, false, memory_order_relaxed);
    atomic_store_explicit(&held.place, place, memory_order_release);
    errand_testing_pause(hold, NULL);
}

static void
end_hold(void)
{
    gate_open(&held.gate);
    while (!atomic_load_explicit(&held.passed, memory_order_acquire))
        sched_yield();
    errand_testing_pause(NULL, NULL);
    atomic_store_explicit(&held.place, NULL, memory_order_relaxed);
    gate_fini(&held.gate);
}

static void
timers_go_on(net_rig *rig)
{
    for (int i = 0; i < 3; i++) {
        net_result result = {.started = false};
        errand_spec spec;

        assert_int_equal(errand_spec_timer(&spec, 1000000), ERRAND_OK);
        net_run(rig, &spec, &result);
        net_assert_nothing(&result);
    }
}

/* Until a helper stands at the place; where the runtime's thread is the loop, it has to turn. */
static void
await_held(net_rig *rig)
{
    while (!atomic_load_explicit(&held.seen, memory_order_relaxed))
        net_turn(rig, 1);
    gate_await_arrival(&held.gate);
}

/* The operation waits at the place, and nothing else does. */
static void
waits_alone(net_rig *rig, const char *place, errand_spec *spec, net_result *result)
{
    hold_at(place, 0);
    net_start(rig, spec, result);
    await_held(rig);
    timers_go_on(rig);
    assert_false(result->done);
    end_hold();
    net_await(rig, result);
    assert_int_equal(result->outcome, ERRAND_COMPLETED);
}

/* It is cancelled there. */
static void
is_given_up(net_rig *rig, const char *place, int pass, errand_spec *spec)
{
    net_result result = {.started = false};

    hold_at(place, pass);
    net_start(rig, spec, &result);
    await_held(rig);
    net_cancel(rig, &result);
    timers_go_on(rig);
    end_hold();
    net_await(rig, &result);
    net_assert_failed(&result, ERRAND_OPERATION_STOPPED);
}

static const char *
path_of(const char *name)
{
    static char path[160];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static errand_endpoint
socket_at(const char *name)
{
    char text[200];

    snprintf(text, sizeof text, "unix:%s", path_of(name));
    return net_endpoint(text);
}

/* Does anybody listen there? */
static bool
connects(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_true(strlen(path) < sizeof name.sun_path);
    memcpy(name.sun_path, path, strlen(path) + 1);
    bool connected = connect(fd, (struct sockaddr *)&name, sizeof name) == 0;
    close(fd);
    return connected;
}

/* ---- folders -------------------------------------------------------------------------------------- */

/* L11 */
static void
a_folder_is_read_beside_the_loop_and_one_that_is_given_up_is_closed(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(mkdir(path_of("one"), 0700), 0);
    assert_int_equal(errand_spec_scan(&spec, dir, 0), ERRAND_OK);
    waits_alone(rig, "scan", &spec, &result);
    assert_int_equal(((const errand_dir_list *)result.payload.data)->count, 1);
    net_clear(&result);
    assert_int_equal(errand_spec_scan(&spec, dir, 0), ERRAND_OK);
    is_given_up(rig, "scan", 0, &spec);
}

/* L11: a helper reads some thousand names at a time. */
static void
a_folder_of_several_pieces_is_read_and_given_up_between_two(void **state)
{
    enum { NAMES = 4200 };
    net_rig *rig = *state;
    net_result result = {.started = false};
    char name[16];
    errand_spec spec;

    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(symlink("nowhere", path_of(name)), 0);
    }
    assert_int_equal(errand_spec_scan(&spec, dir, 0), ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(((const errand_dir_list *)result.payload.data)->count, NAMES);
    net_clear(&result);
    assert_int_equal(errand_spec_scan(&spec, dir, NAMES - 1), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_failed(&result, ERRAND_OPERATION_TOO_LARGE);
    assert_int_equal(errand_spec_scan(&spec, dir, 0), ERRAND_OK);
    is_given_up(rig, "scan", 1, &spec);
}

/* ---- processes -------------------------------------------------------------------------------------- */

static errand_process_config
sleeper(void)
{
    static const char *const argv[] = {"sleep", "1000", NULL};

    return (errand_process_config){.struct_size = sizeof(errand_process_config),
                                   .argv = argv};
}

/* L11: and what has started for nobody is killed and reaped. */
static void
a_program_is_read_beside_the_loop_and_killed_if_nobody_wants_it(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_process_config config = sleeper();
    errand_spec spec;

    assert_int_equal(errand_spec_spawn(&spec, &config), ERRAND_OK);
    waits_alone(rig, "spawn", &spec, &result);
    net_clear(&result);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errand_spec_spawn(&spec, &config), ERRAND_OK);
    is_given_up(rig, "spawn", 0, &spec);
    while (waitpid(-1, NULL, WNOHANG | WNOWAIT) != -1)
        sched_yield();
}

/* ---- sockets of paths --------------------------------------------------------------------------------- */

/* L11 */
static void
paths_are_bound_and_looked_up_beside_the_loop(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    errand_endpoint at = socket_at("listener"), packets = socket_at("packets");
    errand_endpoint from = socket_at("from");
    errand_connect_config local = {.struct_size = sizeof local, .local = &from};
    errand_spec spec;

    assert_int_equal(errand_spec_listen(&spec, &at, NULL), ERRAND_OK);
    waits_alone(rig, "bind", &spec, &result);
    errand_listener *listener = result.payload.data;
    result.payload = (errand_payload){.data = NULL};
    assert_int_equal(errand_spec_connect(&spec, &at, &local), ERRAND_OK);
    waits_alone(rig, "bind", &spec, &result); /* its own name */
    net_clear(&result);
    assert_int_equal(unlink(path_of("from")), 0);
    assert_int_equal(errand_spec_connect(&spec, &at, NULL), ERRAND_OK);
    waits_alone(rig, "filer-begins", &spec, &result);
    net_clear(&result);
    assert_int_equal(errand_spec_datagram(&spec, &packets, NULL), ERRAND_OK);
    waits_alone(rig, "bind", &spec, &result);
    errand_datagram *datagram = result.payload.data;
    result.payload = (errand_payload){.data = NULL};
    assert_int_equal(errand_spec_send_packet(&spec, datagram, &packets, "x", 1),
                     ERRAND_OK);
    waits_alone(rig, "filer-begins", &spec, &result);
    net_clear(&result);
    errand_datagram_abandon(&datagram);
    errand_listener_abandon(&listener);
}

/* L11: with its path. */
static void
a_socket_that_was_bound_for_nobody_goes(void **state)
{
    net_rig *rig = *state;
    errand_endpoint at = socket_at("listener");
    errand_spec spec;

    assert_int_equal(errand_spec_listen(&spec, &at, NULL), ERRAND_OK);
    is_given_up(rig, "bind", 0, &spec);
    while (access(path_of("listener"), F_OK) == 0)
        sched_yield();
    assert_int_equal(errand_spec_datagram(&spec, &at, NULL), ERRAND_OK);
    is_given_up(rig, "bind", 0, &spec);
    while (access(path_of("listener"), F_OK) == 0)
        sched_yield();
}

/* L11: whoever listens there next finds it free, at whichever point the helper is. */
static void
a_path_is_removed_beside_the_loop_and_free_for_the_next(void **state)
{
    static const char *const places[] = {"filer-begins", "path-goes"};
    net_rig *rig = *state;
    errand_endpoint at = socket_at("listener");

    for (int i = 0; i < 2; i++) {
        net_result result = {.started = false};
        char text[200];
        errand_spec spec;

        snprintf(text, sizeof text, "unix:%s", path_of("listener"));
        errand_listener *listener = net_listen(rig, text);
        hold_at(places[i], 0);
        errand_listener_abandon(&listener);
        await_held(rig);
        timers_go_on(rig);
        assert_int_equal(access(path_of("listener"), F_OK), 0);
        assert_false(connects(path_of("listener"))); /* it is closed, the path is left */
        if (i == 1)
            at = socket_at("./listener"); /* the same file */
        assert_int_equal(errand_spec_listen(&spec, &at, NULL), ERRAND_OK);
        net_start(rig, &spec, &result);
        if (i == 0) {
            net_await(rig, &result);
        } else {
            timers_go_on(rig);
            assert_false(result.done);
        }
        end_hold();
        net_await(rig, &result);
        assert_int_equal(result.outcome, ERRAND_COMPLETED);
        assert_int_equal(access(path_of("listener"), F_OK), 0);
        net_clear(&result);
        while (access(path_of("listener"), F_OK) == 0)
            sched_yield();
    }
}

/* The number of the descriptor that is bound there. */
static int
bound_fd(const char *path)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_un name = {.sun_family = AF_UNSPEC};
        socklen_t size = sizeof name;

        if (getsockname(fd, (struct sockaddr *)&name, &size) == 0 &&
            name.sun_family == AF_UNIX && strcmp(name.sun_path, path) == 0)
            return fd;
    }
    fail_msg("nobody is bound to %s", path);
    return -1;
}

/* As long as it is open the file's number is no other file's, so no other can be taken for it. */
static void
a_path_goes_before_its_descriptor(void **state)
{
    net_rig *rig = *state;

    for (int i = 0; i < 3; i++) {
        net_result result = {.started = false};
        errand_endpoint at = socket_at("bound");
        errand_spec spec;

        assert_int_equal(i == 0 ? errand_spec_datagram(&spec, &at, NULL)
                                : errand_spec_listen(&spec, &at, NULL),
                         ERRAND_OK);
        net_run(rig, &spec, &result);
        assert_int_equal(result.outcome, ERRAND_COMPLETED);
        int fd = bound_fd(path_of("bound"));
        if (i == 2)
            errand_listener_close(result.payload.data);
        hold_at("path-gone", 0);
        net_clear(&result); /* lets it go */
        await_held(rig);
        bool there = access(path_of("bound"), F_OK) == 0;
        bool open = fcntl(fd, F_GETFD) >= 0;
        end_hold();
        assert_false(there);
        assert_true(open);
        while (fcntl(fd, F_GETFD) >= 0)
            sched_yield();
    }
}

/* O61: what a forked child lets go of is closed there, and goes on here. */
static void
a_path_is_its_makers_and_no_forked_childs(void **state)
{
    net_rig *rig = *state;
    char text[200];
    int status = -1;

    snprintf(text, sizeof text, "unix:%s", path_of("listener"));
    errand_listener *listener = net_listen(rig, text);
    pid_t child = fork();
    if (child == 0) {
        errand_listener_abandon(&listener);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(connects(path_of("listener")));
    errand_listener_abandon(&listener);
    while (access(path_of("listener"), F_OK) == 0)
        sched_yield();
}

/* ---- files -------------------------------------------------------------------------------------------- */

static errand_file *
open_here(net_rig *rig, const char *name)
{
    net_result result = {.started = false};
    errand_spec spec;

    assert_int_equal(
        errand_spec_open(&spec, path_of(name), ERRAND_OPEN_WRITE | ERRAND_OPEN_CREATE, 0),
        ERRAND_OK);
    net_run(rig, &spec, &result);
    assert_int_equal(result.outcome, ERRAND_COMPLETED);
    errand_file *file = result.payload.data;
    result.payload = (errand_payload){.data = NULL};
    return file;
}

/* L3, L11 */
static void
a_file_that_is_let_go_is_closed_beside_the_loop(void **state)
{
    net_rig *rig = *state;
    errand_file *file = open_here(rig, "file");
    int fd = errand_file_fd(file);

    hold_at("file-let", 0);
    errand_file_abandon(&file);
    await_held(rig);
    timers_go_on(rig);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    end_hold();
    while (fcntl(fd, F_GETFD) >= 0)
        sched_yield();
}

/* L3, L11: one that the host brought knows the reactor from its first operation on. */
static void
a_file_of_the_hosts_is_closed_beside_the_loop_that_used_it(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600), number = fd;
    errand_file *file;
    errand_spec spec;

    assert_true(fd >= 0);
    assert_int_equal(errand_file_adopt(&fd, &file), ERRAND_OK);
    assert_int_equal(errand_spec_sync(&spec, file, false), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    hold_at("file-let", 0);
    errand_file_abandon(&file);
    await_held(rig);
    end_hold();
    while (fcntl(number, F_GETFD) >= 0)
        sched_yield();
}

/* A reactor of its own syncs it, and ends. */
static void
sync_elsewhere(errand_file *file)
{
    errand_reactor_config config = {.struct_size = sizeof config, .threads = 1};
    net_rig other = {.executor = NULL};
    net_result result = {.started = false};
    errand_report report;
    errand_spec spec;

    assert_int_equal(errand_reactor_create(&config, &other.executor), ERRAND_OK);
    assert_int_equal(errand_runtime_create(NULL, &other.runtime), ERRAND_OK);
    assert_int_equal(errand_attach(other.runtime, other.executor, 0, &other.lease),
                     ERRAND_OK);
    assert_int_equal(errand_spec_sync(&spec, file, false), ERRAND_OK);
    net_run(&other, &spec, &result);
    net_assert_nothing(&result);
    assert_int_equal(errand_runtime_shutdown(&other.runtime,
                                             errand_deadline_in(30000000000u),
                                             ERRAND_SHUTDOWN_QUIET, &report),
                     ERRAND_OK);
    errand_executor_abandon(&other.executor);
}

/* L3, L11: those before may have ended. */
static void
a_file_is_closed_beside_the_loop_that_used_it_last(void **state)
{
    net_rig *rig = *state;
    net_result result = {.started = false};
    int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600), number = fd;
    errand_file *file;
    errand_spec spec;

    assert_true(fd >= 0);
    assert_int_equal(errand_file_adopt(&fd, &file), ERRAND_OK);
    sync_elsewhere(file);
    assert_int_equal(errand_spec_sync(&spec, file, false), ERRAND_OK);
    net_run(rig, &spec, &result);
    net_assert_nothing(&result);
    hold_at("file-let", 0);
    errand_file_abandon(&file);
    await_held(rig);
    end_hold();
    while (fcntl(number, F_GETFD) >= 0)
        sched_yield();
}

int
main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_FOLDER(a_folder_is_read_beside_the_loop_and_one_that_is_given_up_is_closed),
        WITH_FOLDER(a_folder_of_several_pieces_is_read_and_given_up_between_two),
        WITH_FOLDER(a_program_is_read_beside_the_loop_and_killed_if_nobody_wants_it),
        WITH_FOLDER(paths_are_bound_and_looked_up_beside_the_loop),
        WITH_FOLDER(a_socket_that_was_bound_for_nobody_goes),
        WITH_FOLDER(a_path_is_removed_beside_the_loop_and_free_for_the_next),
        WITH_FOLDER(a_path_is_its_makers_and_no_forked_childs),
        WITH_FOLDER(a_path_goes_before_its_descriptor),
        WITH_FOLDER(a_file_that_is_let_go_is_closed_beside_the_loop),
        WITH_FOLDER(a_file_of_the_hosts_is_closed_beside_the_loop_that_used_it),
        WITH_FOLDER(a_file_is_closed_beside_the_loop_that_used_it_last),
    };
    return test_group("operations/net/disk", tests, NULL, NULL);
}
