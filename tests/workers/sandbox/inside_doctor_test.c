/* SPDX-License-Identifier: MIT */
/* Goal: the doctor tells what is, not what should be: the same as a worker achieves, and the
 * opposite where a call is refused.
 * Method: its facts beside a real worker's report; once more in a child whose kernel refuses things. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/core.h"
#include "errand/doctor.h"
#include "errand/io.h"
#include "inside_rig.h"
#include "workers/sandbox/layers.h"

enum { FACTS = 18 };
typedef struct heard {
    size_t count;
    char names[FACTS + 1][32], values[FACTS + 1][128];
    bool available[FACTS + 1];
} heard;

static void
hear(void *arg, const errand_doctor_fact *fact)
{
    heard *self = arg;
    assert_true(self->count < FACTS + 1);
    assert_true(fact->value[0] != '\0' && fact->advice[0] != '\0');
    strncpy(self->names[self->count], fact->name, 31);
    strncpy(self->values[self->count], fact->value, 127);
    self->available[self->count++] = fact->available;
}

static size_t
index_of(const heard *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (strcmp(self->names[i], name) == 0)
            return i;
    }
    fail_msg("no fact %s", name);
    return 0;
}

static void
each_fact_is_told_once_in_the_same_order(void **state)
{
    (void)state;
    heard first = {0}, second = {0};
    assert_int_equal(errand_doctor(hear, &first), ERRAND_OK);
    assert_int_equal(errand_doctor(hear, &second), ERRAND_OK);
    assert_int_equal(first.count, second.count);
    assert_true(first.count >= 14);
    for (size_t i = 0; i < first.count; i++) {
        assert_string_equal(first.names[i], second.names[i]);
        assert_int_equal(index_of(&first, first.names[i]), i);
    }
}

static void
a_limit_of_file_sizes_that_would_end_the_process_is_told(void **state)
{
    struct rlimit before, limit;
    heard told = {0}, mended = {0};
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){1 << 30, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(errand_doctor(hear, &told), ERRAND_OK);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(errand_doctor(hear, &mended), ERRAND_OK);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    size_t at = index_of(&told, "file-sizes");
    assert_false(told.available[at]);
    assert_string_equal(told.values[at], "1073741824 bytes, SIGXFSZ ends the process");
    assert_true(mended.available[at]);
    assert_string_equal(mended.values[at], "1073741824 bytes, SIGXFSZ ends nothing");
}

static void
facts_are_those_that_a_worker_achieves(void **state)
{
    (void)state;
    heard told = {0};
    assert_int_equal(errand_doctor(hear, &told), ERRAND_OK);
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    policy.want_layers = ERRAND_LAYER_NO_NEW_PRIVS | ERRAND_LAYER_SECCOMP |
                         ERRAND_LAYER_LANDLOCK | ERRAND_LAYER_RLIMITS |
                         ERRAND_LAYER_UID_DROP | ERRAND_LAYER_USER_NS |
                         ERRAND_LAYER_NET_NS | ERRAND_LAYER_IPC_NS;
    inside worker;
    inside_start_ready(&worker, &(inside_start_how){.policy = &policy});
    uint32_t layers = worker.response->layers;
    assert_int_equal(told.available[index_of(&told, "seccomp")],
                     (layers & ERRAND_LAYER_SECCOMP) != 0);
    assert_int_equal(told.available[index_of(&told, "landlock")],
                     (layers & ERRAND_LAYER_LANDLOCK) != 0);
    assert_int_equal(told.available[index_of(&told, "user-namespaces")],
                     (layers & ERRAND_LAYER_USER_NS) != 0);
    assert_int_equal(told.available[index_of(&told, "network-namespaces")],
                     (layers & ERRAND_LAYER_NET_NS) != 0);
    assert_true(told.available[index_of(&told, "write-seals")]);
    inside_end(&worker);
}

/* In a child: the doctor's view of a kernel that refuses that call; is that fact missing? */
static void
is_missing(const char *call, int error, const char *name)
{
    pid_t child = fork();
    if (child == 0) {
        inside_refusal refusal = {call, error, 0, 0};
        errand__layers found;
        inside_refuse_call(&refusal);
        errand__layers_probe(&found);
        bool missing =
            (strcmp(name, "landlock") == 0 && found.landlock_abi == 0 &&
             found.landlock_error == error) ||
            (strcmp(name, "namespaces") == 0 && found.user_error == error &&
             found.net_error == error) ||
            (strcmp(name, "io_uring") == 0 && found.io_uring_error == error) ||
            (strcmp(name, "futex-waitv") == 0 && found.futex_waitv_error == error) ||
            (strcmp(name, "pidfd") == 0 && found.pidfd_error == error &&
             found.pidfd_info_error == error) ||
            (strcmp(name, "cgroups") == 0 && found.group_error == error);
        _exit(missing ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s without %s: wait status 0x%x", name, call, (unsigned)status);
}

static void
what_the_kernel_refuses_is_missing(void **state)
{
    (void)state;
    is_missing("landlock_create_ruleset", ENOSYS, "landlock");
    is_missing("clone", EPERM, "namespaces");
    is_missing("io_uring_setup", EPERM, "io_uring");
    is_missing("futex_waitv", ENOSYS, "futex-waitv");
    is_missing("pidfd_open", ENOSYS, "pidfd");
    is_missing("mkdirat", EROFS, "cgroups");
}

static void
what_a_reactor_would_choose_is_told_and_why(void **state)
{
    (void)state;
    heard told = {0};
    pid_t child = fork();
    if (child == 0) {
        inside_refusal refusal = {"io_uring_setup", EPERM, 0, 0};
        inside_refuse_call(&refusal);
        if (errand_doctor(hear, &told) != ERRAND_OK)
            _exit(1);
        size_t at = index_of(&told, "io_uring");
        const char *wanted = "epoll (io_uring: Operation not permitted), ";
        _exit(!told.available[at] && strncmp(told.values[at], wanted, strlen(wanted)) == 0
                  ? 0
                  : 2);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(errand_doctor(hear, &told), ERRAND_OK);
    const char *chosen = errand_reactor_backend(NULL);
    size_t at = index_of(&told, "io_uring");
    assert_int_equal(told.available[at], strcmp(chosen, "io_uring") == 0);
    assert_int_equal(strncmp(told.values[at], chosen, strlen(chosen)), 0);
}

static void
nobody_to_tell_is_misuse(void **state)
{
    (void)state;
    errand_misuse_hook(NULL, NULL);
    assert_int_equal(errand_doctor(NULL, NULL), ERRAND_EINVAL);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_reactor_would_choose_is_told_and_why),
        cmocka_unit_test(each_fact_is_told_once_in_the_same_order),
        cmocka_unit_test(a_limit_of_file_sizes_that_would_end_the_process_is_told),
        cmocka_unit_test(facts_are_those_that_a_worker_achieves),
        cmocka_unit_test(what_the_kernel_refuses_is_missing),
        cmocka_unit_test(nobody_to_tell_is_misuse),
    };
    return test_group("workers/sandbox/inside_doctor", tests, NULL, NULL);
}
