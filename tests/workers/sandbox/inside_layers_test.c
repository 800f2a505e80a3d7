/* SPDX-License-Identifier: MIT */
/* Goal: each layer of confinement is there when the worker says so, as root and as anybody else; one
 * that cannot be had is missing from its report, and a required one ends it with a reason.
 * Method: /proc tells what a ready worker is; kernels that lack something are made by a filter that
 * refuses single calls before the program starts. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "hostile.h"
#include "inside_rig.h"

enum {
    USUAL = ERRAND_LAYER_NO_NEW_PRIVS | ERRAND_LAYER_SECCOMP | ERRAND_LAYER_RLIMITS |
            ERRAND_LAYER_UID_DROP
};

/* The value of a line of /proc/<pid>/status, as text. */
static void
status_line(pid_t pid, const char *key, char *out, size_t size)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    out[0] = '\0';
    while (fgets(line, sizeof line, file) != NULL) {
        size_t length = strlen(key);
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            snprintf(out, size, "%s",
                     line + length + 1 + strspn(line + length + 1, " \t"));
    }
    fclose(file);
    out[strcspn(out, "\n")] = '\0';
}

static void
expect_status(pid_t pid, const char *key, const char *wanted)
{
    char value[128];
    status_line(pid, key, value, sizeof value);
    if (strcmp(value, wanted) != 0)
        fail_msg("%s: %s, not %s", key, value, wanted);
}

/* Everything about a ready worker that the kernel tells: C-L4, C-L6, C-G3. */
static void
look_at(const inside *worker)
{
    assert_int_equal(worker->response->layers & USUAL, USUAL);
    assert_int_equal(worker->response->landlock_abi, inside_landlock_abi());
    assert_int_equal((worker->response->layers & ERRAND_LAYER_LANDLOCK) != 0,
                     inside_landlock_abi() > 0);
    expect_status(worker->pid, "Threads", "1");
    expect_status(worker->pid, "NoNewPrivs", "1");
    expect_status(worker->pid, "Seccomp", "2");
    expect_status(worker->pid, "SigBlk", "0000000000000000");
    expect_status(worker->pid, "SigIgn", "0000000000000000");
    expect_status(worker->pid, "CapEff", "0000000000000000");
    expect_status(worker->pid, "CapPrm", "0000000000000000");
    expect_status(worker->pid, "CapAmb", "0000000000000000");
    char filters[32];
    status_line(worker->pid, "Seccomp_filters", filters, sizeof filters);
    assert_true(filters[0] == '\0' || atoi(filters) == 2);
}

static void
ignore_and_block(void *unused)
{
    (void)unused;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_IGN);
}

static void
all_layers_are_there(void **state)
{
    (void)state;
    inside worker;
    inside_start_ready(&worker, &(inside_start_how){0});
    look_at(&worker);
    if (geteuid() == 0)
        expect_status(worker.pid, "Uid", "65534\t65534\t65534\t65534");
    inside_end(&worker);
}

/* C-G3: whatever the host had blocked and ignored. */
static void
signals_begin_afresh(void **state)
{
    (void)state;
    inside worker;
    inside_start_ready(&worker, &(inside_start_how){.prepare = ignore_and_block});
    look_at(&worker);
    inside_end(&worker);
}

static void
a_user_without_rights_has_the_same_layers(void **state)
{
    (void)state;
    inside_need_nobody();
    inside worker;
    inside_start_ready(&worker, &(inside_start_how){.prepare = inside_become_nobody});
    look_at(&worker);
    inside_end(&worker);
}

static void
limits_are_those_of_the_policy(void **state)
{
    (void)state;
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    policy.memory_bytes = UINT64_C(100) << 20;
    policy.stack_bytes = 1u << 20;
    policy.descriptors = 33;
    policy.cpu_seconds = 17;
    inside worker;
    inside_start_ready(&worker, &(inside_start_how){.policy = &policy});
    char text[4096], rings[64], space[128];
    snprintf(space, sizeof space, "/proc/%d/limits", (int)worker.pid);
    FILE *file = fopen(space, "re");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    snprintf(rings, sizeof rings, "%zu",
             (size_t)policy.memory_bytes + worker.request_size + worker.response_size);
    const struct {
        const char *name, *soft, *hard;
    } wanted[] = {
        {"Max address space", rings, rings}, {"Max stack size", "1048576", "1048576"},
        {"Max open files", "33", "33"},      {"Max cpu time", "17", "18"},
        {"Max file size", "0", "0"},         {"Max core file size", "0", "0"},
        {"Max processes", "0", "0"},         {"Max locked memory", "0", "0"}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        char soft[32] = "", hard[32] = "";
        const char *line = strstr(text, wanted[i].name);
        assert_non_null(line);
        assert_int_equal(sscanf(line + strlen(wanted[i].name), "%31s %31s", soft, hard),
                         2);
        assert_string_equal(soft, wanted[i].soft);
        assert_string_equal(hard, wanted[i].hard);
    }
    inside_end(&worker);
}

static void
namespace_of(pid_t pid, const char *kind, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, kind);
    ssize_t length = readlink(path, out, size - 1);
    out[length < 0 ? 0 : length] = '\0';
}

static void
namespaces_are_its_own_where_wanted(void **state)
{
    (void)state;
    uint32_t spaces = ERRAND_LAYER_USER_NS | ERRAND_LAYER_NET_NS | ERRAND_LAYER_IPC_NS;
    inside_need_layer(spaces);
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    policy.require_layers = USUAL | spaces;
    inside worker;
    inside_start_ready(&worker, &(inside_start_how){.policy = &policy});
    look_at(&worker);
    assert_int_equal(worker.response->layers & spaces, spaces);
    static const char *const kinds[] = {"user", "net", "ipc"};
    for (size_t i = 0; geteuid() == 0 && i < 3; i++) {
        char own[64], its[64];
        namespace_of(getpid(), kinds[i], own, sizeof own);
        namespace_of(worker.pid, kinds[i], its, sizeof its);
        assert_true(its[0] != '\0');
        assert_string_not_equal(own, its);
    }
    inside_end(&worker);
}

/* As if the kernel refused that call: what it reports, or why it ends. */
static void
refuse(inside *worker, inside_refusal refusal, const errand_sandbox_policy *policy)
{
    inside_start(worker, &(inside_start_how){.policy = policy,
                                             .prepare = inside_refuse_call,
                                             .prepare_arg = &refusal});
}

/* C-L4, C-L5, case 89 */
static void
a_kernel_without_landlock_is_told_or_refused(void **state)
{
    (void)state;
    inside worker;
    refuse(&worker, (inside_refusal){"landlock_create_ruleset", ENOSYS, 0, 0}, NULL);
    assert_int_equal(inside_ready(&worker), 1);
    assert_int_equal(worker.response->layers & (USUAL | ERRAND_LAYER_LANDLOCK), USUAL);
    assert_int_equal(worker.response->landlock_abi, 0);
    inside_end(&worker);
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    policy.require_layers = USUAL | ERRAND_LAYER_LANDLOCK;
    refuse(&worker, (inside_refusal){"landlock_create_ruleset", ENOSYS, 0, 0}, &policy);
    assert_int_equal(inside_ready(&worker), ERRAND__SETUP_LAYER);
    assert_int_equal(worker.response->setup_errno, ENOSYS);
    assert_non_null(strstr(worker.response->setup_text, "landlock"));
    int status = inside_wait(&worker);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == ERRAND__SETUP_LAYER);
    inside_end(&worker);
}

/* C-L5: EINVAL at one ABI: the next lower one. */
static void
a_kernel_that_refuses_its_own_abi_is_asked_for_less(void **state)
{
    (void)state;
    if (inside_landlock_abi() < 6)
        test_skip("needs landlock ABI 6");
    inside worker;
    refuse(&worker, (inside_refusal){"landlock_create_ruleset", EINVAL, 1, 24}, NULL);
    assert_int_equal(inside_ready(&worker), 1);
    assert_int_equal(worker.response->layers & ERRAND_LAYER_LANDLOCK,
                     ERRAND_LAYER_LANDLOCK);
    assert_int_equal(worker.response->landlock_abi, 5);
    inside_end(&worker);
    /* Ports need ABI 4: with the first alone the promise is not kept, so there is no worker. */
    static const uint16_t ports[] = {1};
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_INET);
    policy.tcp_ports = ports;
    policy.port_count = 1;
    refuse(&worker, (inside_refusal){"landlock_add_rule", EINVAL, 1, 2}, &policy);
    assert_int_equal(inside_ready(&worker), ERRAND__SETUP_LAYER);
    inside_end(&worker);
}

/* Case 91 */
static void
a_kernel_without_filters_starts_no_worker(void **state)
{
    (void)state;
    inside worker;
    refuse(&worker, (inside_refusal){"seccomp", ENOSYS, 0, 0}, NULL);
    assert_int_equal(inside_ready(&worker), ERRAND__SETUP_LAYER);
    assert_non_null(strstr(worker.response->setup_text, "system call filter"));
    inside_end(&worker);
}

/* Case 90 */
static void
a_kernel_without_user_namespaces_is_told_or_refused(void **state)
{
    (void)state;
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    policy.want_layers = USUAL | ERRAND_LAYER_USER_NS;
    inside worker;
    refuse(&worker, (inside_refusal){"unshare", EPERM, 0, 0}, &policy);
    assert_int_equal(inside_ready(&worker), 1);
    assert_int_equal(worker.response->layers & ERRAND_LAYER_USER_NS, 0);
    inside_end(&worker);
    policy.require_layers = USUAL | ERRAND_LAYER_USER_NS;
    refuse(&worker, (inside_refusal){"unshare", EPERM, 0, 0}, &policy);
    assert_int_equal(inside_ready(&worker), ERRAND__SETUP_LAYER);
    assert_non_null(strstr(worker.response->setup_text, "user namespace"));
    inside_end(&worker);
}

static void
every_required_layer_that_is_refused_ends_it(void **state)
{
    (void)state;
    static const inside_refusal refusals[] = {{"setrlimit", EPERM, 0, 0},
                                              {"prlimit64", EPERM, 0, 0}};
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    unsigned ended = 0;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        inside worker;
        refuse(&worker, refusals[i], &policy);
        ended += inside_ready(&worker) == ERRAND__SETUP_LAYER &&
                 strstr(worker.response->setup_text, "limits") != NULL;
        inside_end(&worker);
    }
    assert_int_equal(ended, 1); /* the C library sets limits by one of the two */
    inside_refusal privileges = {"prctl", EINVAL, 0, PR_SET_NO_NEW_PRIVS};
    inside worker;
    refuse(&worker, privileges, &policy);
    assert_int_equal(inside_ready(&worker), ERRAND__SETUP_LAYER);
    inside_end(&worker);
    if (geteuid() != 0)
        return;
    policy.require_layers = USUAL;
    refuse(&worker, (inside_refusal){"setresuid", EPERM, 0, 0}, &policy);
    assert_int_equal(inside_ready(&worker), ERRAND__SETUP_LAYER);
    inside_end(&worker);
}

static void
a_file_that_it_could_write_is_refused(void **state)
{
    (void)state;
    inside worker;
    inside_start(&worker, &(inside_start_how){.unsealed = true});
    assert_int_equal(inside_ready(&worker), ERRAND__SETUP_WIRE);
    assert_non_null(strstr(worker.response->setup_text, "not sealed"));
    inside_end(&worker);
    inside_start(&worker,
                 &(inside_start_how){.input_bytes = 4096, .input_unsealed = true});
    assert_int_equal(inside_ready(&worker), ERRAND__SETUP_WIRE);
    assert_non_null(strstr(worker.response->setup_text, "input file can be written"));
    inside_end(&worker);
}

/* Case 88 */
static void
another_version_is_refused(void **state)
{
    (void)state;
    inside worker;
    inside_start(&worker, &(inside_start_how){.other_version = true});
    assert_int_equal(inside_ready(&worker), ERRAND__SETUP_WIRE);
    assert_non_null(strstr(worker.response->setup_text, "version"));
    int status = inside_wait(&worker);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == ERRAND__SETUP_WIRE);
    inside_end(&worker);
}

static void
a_worker_whose_host_is_another_ends(void **state)
{
    (void)state;
    inside worker;
    inside_start(&worker, &(inside_start_how){.other_parent = true});
    assert_int_equal(inside_ready(&worker), ERRAND__SETUP_PARENT);
    inside_end(&worker);
}

/* The worker ends with its host, although its user changed in between. */
static void
a_worker_ends_with_its_host(void **state)
{
    (void)state;
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    /* Orphans come here, so that their end can be seen. */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    pid_t host = fork();
    if (host == 0) {
        inside worker;
        inside_start(&worker, &(inside_start_how){0});
        bool ready = inside_ready(&worker) == 1;
        hostile_request request = {.name = "burn deaf"};
        inside_ask(&worker, 0, &request, sizeof request);
        if (!ready || write(pipe_ends[1], &worker.pid, sizeof worker.pid) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    pid_t worker = 0;
    assert_int_equal(read(pipe_ends[0], &worker, sizeof worker), (ssize_t)sizeof worker);
    assert_int_equal(kill(host, SIGKILL), 0);
    int status = -1;
    assert_int_equal(waitpid(host, &status, 0), host);
    assert_int_equal(waitpid(worker, &status, 0), worker);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

/* Does a line with that text come, from *at on?  Moves *at behind it. */
static bool
comes_next(const char **at, const char *text)
{
    const char *found = strstr(*at, text);
    if (found != NULL)
        *at = found + strlen(text);
    return found != NULL;
}

/* All that strace wrote; it ends after the worker. */
static void
read_trace(int file, char *text, size_t size)
{
    for (int i = 0; i < 5000; i++) {
        ssize_t got = pread(file, text, size - 1, 0);
        text[got < 0 ? 0 : got] = '\0';
        if (strstr(text, "+++ exited") != NULL)
            return;
        usleep(1000);
    }
    fail_msg("strace does not end");
}

/* The order of the stages, as the kernel saw it. */
static void
stages_come_in_their_order(void **state)
{
    (void)state;
    if (access("/usr/bin/strace", X_OK) != 0)
        test_skip("there is no strace");
    if (inside_landlock_abi() < 1)
        test_skip("needs landlock");
    char trace[] = "/tmp/errand-stages-XXXXXX";
    int file = mkstemp(trace);
    assert_true(file >= 0);
    /* -D: the tracer is nobody's parent, or the worker would miss its own. */
    const char *const before[] = {"/usr/bin/strace", "-D", "-o", trace, NULL};
    inside worker;
    inside_start(&worker, &(inside_start_how){.before = before});
    uint32_t ready = inside_ready(&worker);
    if (ready == 0) {
        inside_end(&worker);
        unlink(trace);
        close(file);
        test_skip("strace cannot trace here");
    }
    assert_int_equal(ready, 1);
    inside_command(&worker, ERRAND__WIRE_EXIT);
    inside_wait(&worker);
    inside_end(&worker);
    static char text[1 << 20];
    read_trace(file, text, sizeof text);
    const char *at = text;
    close(file);
    unlink(trace);
    static const char *const order[] = {"landlock_create_ruleset({",
                                        "close_range(",
                                        "capset(",
                                        "PR_SET_PDEATHSIG",
                                        "getppid()",
                                        "PR_SET_DUMPABLE",
                                        "RLIMIT_AS",
                                        "PR_SET_NO_NEW_PRIVS",
                                        "landlock_restrict_self",
                                        "seccomp(SECCOMP_SET_MODE_FILTER",
                                        "openat(",
                                        "landlock_restrict_self",
                                        "seccomp(SECCOMP_SET_MODE_FILTER",
                                        "FUTEX_WAKE"};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (!comes_next(&at, order[i]))
            fail_msg("%s does not come where it should", order[i]);
    }
    /* Nothing but reading libraries between the two filters. */
    const char *first = strstr(text, "SECCOMP_SET_MODE_FILTER");
    assert_null(strstr(first, "clone("));
    if (geteuid() == 0) {
        at = text;
        assert_true(comes_next(&at, "setresuid(65534") &&
                    comes_next(&at, "PR_SET_PDEATHSIG"));
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_layers_are_there),
        cmocka_unit_test(signals_begin_afresh),
        cmocka_unit_test(a_user_without_rights_has_the_same_layers),
        cmocka_unit_test(limits_are_those_of_the_policy),
        cmocka_unit_test(namespaces_are_its_own_where_wanted),
        cmocka_unit_test(a_kernel_without_landlock_is_told_or_refused),
        cmocka_unit_test(a_kernel_that_refuses_its_own_abi_is_asked_for_less),
        cmocka_unit_test(a_kernel_without_filters_starts_no_worker),
        cmocka_unit_test(a_kernel_without_user_namespaces_is_told_or_refused),
        cmocka_unit_test(every_required_layer_that_is_refused_ends_it),
        cmocka_unit_test(a_file_that_it_could_write_is_refused),
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(a_worker_whose_host_is_another_ends),
        cmocka_unit_test(a_worker_ends_with_its_host),
        cmocka_unit_test(stages_come_in_their_order),
    };
    return test_group("workers/sandbox/inside_layers", tests, NULL, NULL);
}
