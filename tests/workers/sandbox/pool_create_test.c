/* SPDX-License-Identifier: MIT */
/* Goal: what a sandbox's calls refuse, and that a refusal leaves nothing; plug-ins give the same in
 * a sandbox and on a pool of threads.  Method: real workers; memory, threads and arguments are
 * missing one by one. */
#include "pool_rig.h"
#include "reach.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void
what_is_missing_or_wrong_is_named(void **state)
{
    rig *self = *state;
    errand_sandbox_config config = {.struct_size = sizeof config,
                                    .worker_path = test_reachable(ERRAND_TEST_WORKER)};
    errand_sandbox_snapshot snapshot = {.struct_size = sizeof snapshot};
    errand_sandbox_outcome outcome;
    errand_executor *executor = NULL;
    char *text = self->text;
    size_t size = sizeof self->text;

    assert_int_equal(errand_sandbox_create(&config, NULL, text, size), ERRAND_EINVAL);
    assert_int_equal(errand_sandbox_create(&config, &executor, NULL, 1), ERRAND_EINVAL);
    config.struct_size--;
    assert_int_equal(errand_sandbox_create(&config, &executor, text, size),
                     ERRAND_EINVAL);
    config.struct_size++;
    config.workers_max = 257;
    assert_int_equal(errand_sandbox_create(&config, &executor, text, size),
                     ERRAND_EINVAL);
    assert_non_null(strstr(text, "workers_max"));
    config.workers_max = 0;
    config.flags = 2;
    assert_int_equal(errand_sandbox_create(&config, &executor, text, size),
                     ERRAND_EINVAL);
    config.flags = 0;
    self->policy.in_bytes = UINT64_MAX;
    config.policy = &self->policy;
    assert_int_equal(errand_sandbox_create(&config, &executor, text, size),
                     ERRAND_EINVAL);
    assert_non_null(strstr(text, "in_bytes"));
    assert_null(executor);
    assert_int_equal(errand_sandbox_snapshot_read(NULL, &snapshot), ERRAND_EINVAL);
    assert_int_equal(errand_manual_create(NULL, &executor), ERRAND_OK);
    assert_int_equal(errand_sandbox_snapshot_read(executor, &snapshot), ERRAND_EINVAL);
    errand_executor_abandon(&executor);
    assert_int_equal(errand_sandbox_outcome_read(NULL, &outcome), ERRAND_EINVAL);
    assert_int_equal(
        errand_sandbox_outcome_read(&(errand_completion){.wait = NULL}, &outcome),
        ERRAND_EINVAL);
}

static void
a_config_is_checked_without_a_pool(void **state)
{
    rig *self = *state;
    char *text = self->text;
    size_t size = sizeof self->text;
    errand_sandbox_config config = {.struct_size = sizeof config,
                                    .worker_path = "/nonexistent/errand-worker"};

    assert_int_equal(errand_sandbox_check(&config, text, size), ERRAND_OK);
    assert_int_equal(errand_sandbox_check(NULL, text, size), ERRAND_EINVAL);
    assert_int_equal(errand_sandbox_check(&config, NULL, 1), ERRAND_EINVAL);
    config.struct_size--;
    assert_int_equal(errand_sandbox_check(&config, text, size), ERRAND_EINVAL);
    config.struct_size++;
    config.workers_min = 3;
    config.workers_max = 2;
    assert_int_equal(errand_sandbox_check(&config, text, size), ERRAND_EINVAL);
    assert_non_null(strstr(text, "workers_min <= workers_max"));
    config.workers_max = 257;
    assert_int_equal(errand_sandbox_check(&config, text, size), ERRAND_EINVAL);
    config.workers_max = 0;
    assert_int_equal(errand_sandbox_check(&config, text, size), ERRAND_OK);
    config.crash_limit = 65537;
    assert_int_equal(errand_sandbox_check(&config, text, size), ERRAND_EINVAL);
    assert_non_null(strstr(text, "crash_limit"));
    config.crash_limit = 0;
    config.flags = ERRAND_SANDBOX_NO_TEMPLATE << 1;
    assert_int_equal(errand_sandbox_check(&config, NULL, 0), ERRAND_EINVAL);
    config.flags = 0;
    self->policy.in_bytes = UINT64_MAX;
    config.policy = &self->policy;
    assert_int_equal(errand_sandbox_check(&config, text, size), ERRAND_EINVAL);
    assert_non_null(strstr(text, "in_bytes"));
}

static void
promises_and_layers_are_read_from_words(void **state)
{
    rig *self = *state;
    char *text = self->text;
    size_t size = sizeof self->text;
    uint32_t bits = 77;

    assert_int_equal(errand_promises_parse("", &bits, text, size), ERRAND_OK);
    assert_int_equal(bits, ERRAND_PROMISE_PURE);
    assert_int_equal(errand_promises_parse(" rpath,inet | callback pure", &bits, NULL, 0),
                     ERRAND_OK);
    assert_int_equal(bits, ERRAND_PROMISE_RPATH | ERRAND_PROMISE_INET |
                               ERRAND_PROMISE_CALLBACK);
    assert_int_equal(errand_promises_parse("wpath,thread", &bits, NULL, 0), ERRAND_OK);
    assert_int_equal(bits, ERRAND_PROMISE_WPATH | ERRAND_PROMISE_THREAD);
    assert_int_equal(errand_promises_parse("inet,rpaths", &bits, text, size),
                     ERRAND_EINVAL);
    assert_string_equal(text, "'rpaths' is no promise; there are pure, rpath, wpath, "
                              "inet, thread, callback");
    assert_int_equal(errand_promises_parse("RPATH", &bits, NULL, 0), ERRAND_EINVAL);
    assert_int_equal(bits, ERRAND_PROMISE_WPATH | ERRAND_PROMISE_THREAD);
    assert_int_equal(errand_layers_parse("no_new_privs seccomp landlock rlimits uid_drop "
                                         "user_ns net_ns ipc_ns cgroup",
                                         &bits, NULL, 0),
                     ERRAND_OK);
    assert_int_equal(bits, 0xff | ERRAND_LAYER_CGROUP);
    assert_int_equal(errand_layers_parse("seccomp pid_ns", &bits, text, size),
                     ERRAND_EINVAL);
    assert_non_null(strstr(text, "'pid_ns' is no layer; there are no_new_privs, "));
    assert_non_null(strstr(text, ", cgroup"));
    assert_int_equal(errand_layers_parse(NULL, &bits, NULL, 0), ERRAND_EINVAL);
    assert_int_equal(errand_promises_parse("", NULL, NULL, 0), ERRAND_EINVAL);
    assert_int_equal(errand_promises_parse("", &bits, NULL, 1), ERRAND_EINVAL);
}

static void
a_worker_program_that_is_not_there_is_named(void **state)
{
    rig *self = *state;
    errand_sandbox_config config = {.struct_size = sizeof config,
                                    .worker_path = "/nonexistent/errand-worker"};
    errand_executor *executor = NULL;

    assert_int_equal(
        errand_sandbox_create(&config, &executor, self->text, sizeof self->text),
        ERRAND_ESYSTEM);
    assert_null(executor);
    assert_non_null(strstr(self->text, "No such file or directory"));
    assert_non_null(strstr(self->text, config.worker_path));
}

static void
a_sandbox_without_memory_is_not_made(void **state)
{
    rig *self = *state;
    errand_sandbox_config config = {.struct_size = sizeof config,
                                    .workers_max = 1,
                                    .worker_path = test_reachable(ERRAND_TEST_WORKER)};
    errand_executor *executor = NULL;
    errand_status status = ERRAND_ENOMEM;

    for (uint64_t n = 1; status != ERRAND_OK; n++) {
        errand_testing_fail_allocation(n);
        status = errand_sandbox_create(&config, &executor, self->text, sizeof self->text);
        errand_testing_fail_allocation(0);
        if (status != ERRAND_OK)
            assert_int_equal(status, ERRAND_ENOMEM); /* of errand_sandbox_create */
    }
    errand_executor_abandon(&executor);
}

static void
a_sandbox_without_its_thread_is_not_made(void **state)
{
    rig *self = *state;
    errand_sandbox_config config = {.struct_size = sizeof config,
                                    .worker_path = test_reachable(ERRAND_TEST_WORKER)};
    errand_executor *executor = NULL;

    errand_testing_refuse_threads(1);
    assert_int_equal(
        errand_sandbox_create(&config, &executor, self->text, sizeof self->text),
        ERRAND_ENOTHREAD);
    assert_null(executor);
}

static void
a_pool_without_its_watcher_goes_on(void **state)
{
    rig *self = *state;

    rig_begin(self);
    errand_testing_refuse_threads(UINT32_MAX);
    for (uintptr_t i = 0; i < 50; i++)
        rig_start(self, i, SIM_PATTERN, i);
    rig_await(self, 50);
    errand_testing_refuse_threads(0);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(self->news[i].size, self->news[i].wait);
}

/* ---- the two files -------------------------------------------------------------------------------- */

static errand__launcher simulated;
static int seals[2], whole[2];

static int
look_then_start(void *arg, const errand__worker_files *files, int32_t *out_pid,
                int *out_fd)
{
    const int fds[2] = {files->request_fd, files->response_fd};

    for (int i = 0; i < 2; i++) {
        struct stat status;

        assert_int_equal(fstat(fds[i], &status), 0);
        whole[i] = status.st_blocks * 512 >= status.st_size;
        seals[i] = fcntl(fds[i], F_GET_SEALS);
    }
    return simulated.start(arg, files, out_pid, out_fd);
}

static void
files_are_sealed_and_whole_and_not_read_back(void **state) /* S1 */
{
    rig *self = *state;
    const int fixed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, read_only = 0x0010;
    errand__launcher launcher = sim_launcher(&self->sim);
    static const errand_entry first = {"/sim.so", "first", NULL};
    const unsigned char bytes[10] = "123456789";
    errand_spec spec;

    simulated = launcher;
    launcher.start = look_then_start;
    self->policy.entries = &first;
    self->policy.entry_count = 1;
    self->config.policy = &self->policy;
    assert_int_equal(errand__sandbox_make(&self->config, &launcher, &self->executor,
                                          self->text, sizeof self->text),
                     ERRAND_OK);
    assert_int_equal(seals[0], fixed | read_only);
    assert_int_equal(seals[1], fixed);
    assert_true(whole[0] && whole[1]);
    assert_int_equal(errand_runtime_create(&self->runtime_config, &self->runtime),
                     ERRAND_OK);
    assert_int_equal(errand_attach(self->runtime, self->executor, 0, &self->lease),
                     ERRAND_OK);
    /* What this worker does not look at any more, and nobody may. */
    errand__wire_request *request = errand__sandbox_of(self->executor)->slots[0].request;

    request->response_size = request->request_file_size = 0;
    request->response_file_size = request->body_size = request->return_size = 0;
    request->response_offset = request->setup_size = request->entry = 0;
    spec = rig_spec(self, SIM_ECHO, 0, bytes, sizeof bytes);
    rig_start_spec(self, 0, &spec);
    rig_await(self, 1);
    assert_int_equal(self->news[0].outcome, ERRAND_COMPLETED);
    assert_int_equal(self->news[0].size, sizeof bytes);
}

/* ---- plug-ins ------------------------------------------------------------------------------------- */

typedef struct heard {
    errand_outcome outcome;
    errand_code code;
    int32_t job_code;
    size_t size;
    char bytes[16], message[256];
    int count;
} heard;

static void
hear(void *arg, errand_completion *completion)
{
    heard *self = arg;
    void *data;
    size_t size;

    self->count++;
    self->outcome = completion->outcome;
    self->code = completion->code;
    self->job_code = completion->job_code;
    snprintf(self->message, sizeof self->message, "%s", completion->message);
    if (completion->outcome == ERRAND_COMPLETED) {
        const errand_plugin_bytes *bytes;

        assert_int_equal(
            errand_completion_read(completion, &errand_plugin_bytes_type, &data, &size),
            ERRAND_OK);
        bytes = data;
        self->size = bytes->size;
        memcpy(self->bytes, bytes->bytes, bytes->size < 16 ? bytes->size : 16);
    }
}

static heard
call_plugin(rig *self, const char *symbol, const void *bytes, size_t size)
{
    heard news = {.count = 0};
    errand_spec spec;
    size_t count;

    assert_int_equal(errand_spec_plugin(&spec, test_reachable(ERRAND_TEST_PLUGIN), symbol,
                                        bytes, size),
                     ERRAND_OK);
    assert_int_equal(errand_start(self->lease, &spec, NULL, NULL), ERRAND_OK);
    while (news.count == 0) {
        assert_int_equal(errand_park(self->runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(self->runtime, SIZE_MAX, hear, &news, &count),
                         ERRAND_OK);
    }
    return news;
}

static void
check_plugins(rig *self)
{
    uint64_t length = 5000000;
    heard news = call_plugin(self, "echo", "hello", 5);

    assert_int_equal(news.outcome, ERRAND_COMPLETED);
    assert_int_equal(news.size, 5);
    assert_memory_equal(news.bytes, "hello", 5);
    news = call_plugin(self, "echo", NULL, 0);
    assert_int_equal(news.outcome, ERRAND_COMPLETED);
    assert_int_equal(news.size, 0);
    news = call_plugin(self, "grows", &length, sizeof length);
    assert_int_equal(news.size, length);
    news = call_plugin(self, "refuses", NULL, 0);
    assert_int_equal(news.code, ERRAND_CODE_JOB);
    news = call_plugin(self, "nobody", NULL, 0);
    assert_int_equal(news.code, ERRAND_CODE_JOB);
    assert_int_equal(news.job_code, ENOENT);
}

static void
plugins_give_the_same_in_a_process_and_on_a_thread(void **state)
{
    rig *self = *state;
    errand_executor *pool;
    errand_spec spec;

    self->worker_path = test_reachable(ERRAND_TEST_WORKER);
    rig_begin(self);
    check_plugins(self);
    assert_int_equal(errand_lease_shutdown(&self->lease, UINT64_MAX, NULL), ERRAND_OK);
    assert_int_equal(errand_blocking_create(NULL, &pool), ERRAND_OK);
    assert_int_equal(errand_attach(self->runtime, pool, 0, &self->lease), ERRAND_OK);
    check_plugins(self);
    errand_executor_abandon(&pool);
    assert_int_equal(errand_spec_plugin(NULL, "/x.so", "y", NULL, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_plugin(&spec, NULL, "y", NULL, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_plugin(&spec, "/x.so", NULL, NULL, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_plugin(&spec, "/x.so", "y", NULL, 1), ERRAND_EINVAL);
    errand_testing_fail_allocation(1);
    assert_int_equal(errand_spec_plugin(&spec, "/x.so", "y", "z", 1), ERRAND_ENOMEM);
    errand_testing_fail_allocation(0);
}

int
main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_RIG(what_is_missing_or_wrong_is_named),
        WITH_RIG(a_config_is_checked_without_a_pool),
        WITH_RIG(promises_and_layers_are_read_from_words),
        WITH_RIG(a_worker_program_that_is_not_there_is_named),
        WITH_RIG(a_sandbox_without_memory_is_not_made),
        WITH_RIG(a_sandbox_without_its_thread_is_not_made),
        WITH_RIG(a_pool_without_its_watcher_goes_on),
        WITH_RIG(files_are_sealed_and_whole_and_not_read_back),
        WITH_RIG(plugins_give_the_same_in_a_process_and_on_a_thread),
    };
    return test_group("workers/sandbox/pool_create", tests, NULL, NULL);
}
