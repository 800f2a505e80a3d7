/* SPDX-License-Identifier: MIT */
/* Goal: a control group for each worker: what it bounds, what its end says, that none is left, and
 * that a host which can make none is told so.  Method: real workers, where groups can be made. */
#include "probe_rig.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAYERS = ERRAND_LAYER_NO_NEW_PRIVS | ERRAND_LAYER_SECCOMP | ERRAND_LAYER_CGROUP };

/* Groups of this process that are there now; only: the name of one of them. */
static int
count_groups(char *only, size_t size)
{
    errand__groups groups;
    char mine[40];
    int count = 0;
    DIR *folder;

    errand__groups_init(&groups, true);
    if (groups.place < 0)
        return -1;
    snprintf(mine, sizeof mine, "errand-worker-%ld-", (long)getpid());
    folder = fdopendir(groups.place);
    assert_non_null(folder);
    for (struct dirent *item; (item = readdir(folder)) != NULL;)
        if (strncmp(item->d_name, mine, strlen(mine)) == 0) {
            count++;
            snprintf(only, size, "%.*s", (int)size - 1, item->d_name);
        }
    closedir(folder);
    return count;
}

static int
group_setup(void **state)
{
    rig *self;

    probe_setup(state);
    self = *state;
    self->policy.memory_bytes = UINT64_C(64) << 20;
    self->policy.want_layers = self->policy.require_layers = LAYERS;
    return 0;
}

/* Also where a test has failed, no group stays on this machine. */
static int
group_teardown(void **state)
{
    char name[64];
    errand__groups groups;
    int result = rig_teardown(state);

    while (count_groups(name, sizeof name) > 0) {
        result = -1;
        errand__groups_init(&groups, true);
        if (unlinkat(groups.place, name, AT_REMOVEDIR) != 0)
            break;
        errand__groups_fini(&groups);
    }
    return result;
}

static void
need_groups(void)
{
    char name[64];

    if (count_groups(name, sizeof name) < 0)
        test_skip("no control group that counts memory can be made here");
}

static void
who_needs_more_than_memory_bytes_says_memory(void **state) /* S27, 92 */
{
    rig *self = *state;
    const rig_news *news;

    need_groups();
    rig_begin(self);
    for (int i = 0; i < 3; i++) {
        news = probe(self, "memory unchecked", 0);
        assert_int_equal(news->outcome, ERRAND_CRASHED);
        assert_int_equal(news->code, ERRAND_CODE_MEMORY);
        assert_int_equal(news->more_status, ERRAND_OK);
        assert_true(news->more.memory_hint);
        assert_true(news->more.peak_bytes <= UINT64_C(72) << 20);
        news = probe(self, "memory checked", 16);
        assert_int_equal(news->outcome, ERRAND_COMPLETED);
        assert_int_equal(news->more.layers & LAYERS, LAYERS);
    }
}

static void
a_kill_by_somebody_is_not_memory(void **state) /* S10, S27 */
{
    rig *self = *state;
    errand_spec spec;
    int32_t pid;

    need_groups();
    rig_begin(self);
    pid = probe(self, "memory checked", 1)->more.pid;
    spec = probe_spec(self, "sleep", 60);
    rig_start_spec(self, 0, &spec);
    kill(pid, SIGKILL);
    rig_await(self, 2);
    assert_int_equal(self->news[1].code, ERRAND_CODE_KILLED);
}

static void
each_worker_has_a_group_until_its_end(void **state) /* S27 */
{
    rig *self = *state;
    char first[64] = "", second[64] = "", path[96], line[512] = "";
    bool found = false;
    FILE *file;
    int32_t pid;

    need_groups();
    rig_begin(self);
    assert_int_equal(count_groups(first, sizeof first), 1);
    pid = probe(self, "memory checked", 1)->more.pid;
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        found = found || strstr(line, first) != NULL;
    fclose(file);
    assert_true(found);
    probe(self, "_exit", 3);
    probe(self, "memory checked", 1);
    assert_int_equal(count_groups(second, sizeof second), 1);
    assert_string_not_equal(first, second);
    rig_end(self);
    assert_int_equal(count_groups(first, sizeof first), 0);
}

static void
a_start_that_fails_leaves_no_group(void **state) /* S27 */
{
    rig *self = *state;
    char name[64];

    need_groups();
    self->config.policy = &self->policy;
    self->config.worker_path = "/nowhere/errand-worker";
    assert_int_equal(errand_sandbox_create(&self->config, &self->executor, self->text,
                                           sizeof self->text),
                     ERRAND_ESYSTEM);
    assert_int_equal(count_groups(name, sizeof name), 0);
}

/* Nobody may make groups. */
static void
a_host_that_can_make_none_is_told(void **state)
{
    rig *self = *state;
    int status;
    pid_t child;

    inside_need_root();
    inside_need_nobody();
    self->config.policy = &self->policy;
    self->config.worker_path = test_reachable(ERRAND_TEST_WORKER);
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        inside_become_nobody(NULL);
        bool fine = errand_sandbox_create(&self->config, &self->executor, self->text,
                                          sizeof self->text) == ERRAND_EUNSUPPORTED &&
                    strstr(self->text, "control group") != NULL;

        self->policy.require_layers &= ~(uint32_t)ERRAND_LAYER_CGROUP;
        fine = fine && errand_sandbox_create(&self->config, &self->executor, self->text,
                                             sizeof self->text) == ERRAND_OK;
        fine = fine && rig_snapshot(self).degraded == ERRAND_LAYER_CGROUP;
        errand_executor_abandon(&self->executor);
        _exit(fine ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int
main(void)
{
#define WITH_GROUP(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, group_setup, group_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_GROUP(who_needs_more_than_memory_bytes_says_memory),
        WITH_GROUP(a_kill_by_somebody_is_not_memory),
        WITH_GROUP(each_worker_has_a_group_until_its_end),
        WITH_GROUP(a_start_that_fails_leaves_no_group),
        WITH_GROUP(a_host_that_can_make_none_is_told),
    };
    return test_group("workers/sandbox/pool_group", tests, NULL, NULL);
}
