/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "reach.h"

#define SECOND UINT64_C(1000000000)
/* Sanitizers map memory of their own whenever they like: there only mappings of the library's files count. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MAPPINGS true
#elif defined(__has_feature)
#define OWN_MAPPINGS (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define OWN_MAPPINGS false
#endif

uint64_t
hostile_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* ---- a pool ----------------------------------------------------------------------------------------- */

void
hostile_config(errand_sandbox_config *out_config, errand_sandbox_policy *out_policy)
{
    *out_policy = (errand_sandbox_policy){
        .struct_size = sizeof *out_policy,
        .memory_bytes = 256u << 20,
        .in_bytes = 64u << 10,
        .out_bytes = 1u << 20,
        .reuse = 1,
    };
    *out_config = (errand_sandbox_config){
        .struct_size = sizeof *out_config,
        .workers_min = 1,
        .workers_max = 2,
        .policy = out_policy,
        .worker_path = test_reachable(ERRAND_TEST_WORKER),
        .crash_limit = 65536, /* here crashing is what jobs are for */
    };
}

bool
hostile_begin(hostile_pool *self, const errand_sandbox_config *config, const char *object,
              char *out_text, size_t size)
{
    memset(self, 0, sizeof *self);
    self->object = test_reachable(object);
    self->rest = config->workers_min;
    snprintf(out_text, size, "the runtime could not be made");
    if (errand_runtime_create(NULL, &self->runtime) != ERRAND_OK)
        return false;
    return errand_sandbox_create(config, &self->executor, out_text, size) == ERRAND_OK &&
           errand_attach(self->runtime, self->executor, 0, &self->lease) == ERRAND_OK;
}

bool
hostile_end(hostile_pool *self)
{
    errand_report report = {.clean = false};
    bool ended = errand_runtime_shutdown(&self->runtime, errand_deadline_in(10 * SECOND),
                                         ERRAND_SHUTDOWN_QUIET, &report) == ERRAND_OK;

    errand_executor_abandon(&self->executor);
    return ended && report.clean;
}

int
hostile_ends_of(const errand_completion *completion)
{
    static const int failed[ERRAND_CODES] = {
        [ERRAND_CODE_JOB] = ENDS_JOB,       [ERRAND_CODE_DEADLINE] = ENDS_DEADLINE,
        [ERRAND_CODE_SPAWN] = ENDS_SPAWN,   [ERRAND_CODE_CANCELLED] = ENDS_CANCELLED,
        [ERRAND_CODE_MEMORY] = ENDS_MEMORY, [ERRAND_CODE_OUTPUT] = ENDS_OUTPUT,
    };
    static const int crashed[ERRAND_CODES] = {
        [ERRAND_CODE_CRASHED] = ENDS_CRASHED,  [ERRAND_CODE_POLICY] = ENDS_POLICY,
        [ERRAND_CODE_EXITED] = ENDS_EXITED,    [ERRAND_CODE_PROTOCOL] = ENDS_PROTOCOL,
        [ERRAND_CODE_CPU] = ENDS_CPU,          [ERRAND_CODE_OUTPUT] = ENDS_OUTPUT,
        [ERRAND_CODE_KILLED] = ENDS_KILLED,    [ERRAND_CODE_MEMORY] = ENDS_MEMORY,
        [ERRAND_CODE_WORKER_LOST] = ENDS_LOST,
    };
    int ends = 0;

    if (completion->outcome == ERRAND_COMPLETED)
        return completion->code == ERRAND_CODE_NONE ? ENDS_ODD : ENDS_WRONG;
    if (completion->outcome == ERRAND_CANCELLED)
        return ENDS_CANCELLED;
    if ((unsigned)completion->code < ERRAND_CODES)
        ends = completion->outcome == ERRAND_FAILED    ? failed[completion->code]
               : completion->outcome == ERRAND_CRASHED ? crashed[completion->code]
                                                       : 0;
    return ends != 0 ? ends : ENDS_WRONG;
}

static void
hear(void *arg, errand_completion *completion)
{
    hostile_pool *self = arg;
    void *data = NULL;

    self->heard++;
    self->ends = hostile_ends_of(completion);
    self->job_code = completion->job_code;
    self->signal_number = completion->signal_number;
    self->size = 0;
    snprintf(self->message, sizeof self->message, "%s",
             completion->message == NULL ? "" : completion->message);
    self->outcome = (errand_sandbox_outcome){.struct_size = sizeof self->outcome};
    if (errand_sandbox_outcome_read(completion, &self->outcome) != ERRAND_OK)
        self->outcome.pid = -2;
    if (self->ends == ENDS_ODD &&
        errand_completion_read(completion, &errand_plugin_bytes_type, &data, NULL) ==
            ERRAND_OK) {
        const errand_plugin_bytes *bytes = data;

        self->size = bytes->size;
        if (bytes->size == 2 && memcmp(bytes->bytes, "ok", 2) == 0)
            self->ends = ENDS_OK;
    }
}

int
hostile_run_spec(hostile_pool *self, errand_spec *spec)
{
    uint64_t began = hostile_now(), before = self->heard;
    errand_status status = errand_start(self->lease, spec, NULL, NULL);

    if (status != ERRAND_OK) {
        printf("errand_start: %s\n", errand_status_name(status));
        return ENDS_WRONG;
    }
    self->submitted++;
    while (self->heard == before)
        if (errand_park(self->runtime, UINT64_MAX) != ERRAND_OK ||
            errand_drain(self->runtime, SIZE_MAX, hear, self, NULL) != ERRAND_OK)
            return ENDS_WRONG;
    self->took_ns = hostile_now() - began;
    return self->heard == before + 1 ? self->ends : ENDS_WRONG;
}

int
hostile_run(hostile_pool *self, const char *function, const void *bytes, size_t size,
            uint64_t deadline_ns)
{
    errand_spec spec = ERRAND_SPEC_INIT;

    if (errand_spec_plugin(&spec, self->object, function, bytes, size) != ERRAND_OK)
        return ENDS_WRONG;
    spec.deadline_ns = deadline_ns;
    return hostile_run_spec(self, &spec);
}

bool
hostile_settle(hostile_pool *self)
{
    uint64_t until = hostile_now() + 10 * SECOND;

    while (hostile_now() < until) {
        const struct timespec nap = {0, 200000};
        errand_sandbox_snapshot now = {.struct_size = sizeof now};

        if (errand_sandbox_snapshot_read(self->executor, &now) == ERRAND_OK &&
            now.busy + now.starting + now.dying == 0 && now.ready == self->rest &&
            (now.forked == 0 || now.reserve == 1))
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

bool
hostile_warm(hostile_pool *self)
{
    errand_sandbox_snapshot before = {.struct_size = sizeof before}, now;
    const int seven = 7;

    if (errand_sandbox_snapshot_read(self->executor, &before) != ERRAND_OK)
        return false;
    now = before;
    for (int i = 0; i < 1000 && now.forked == before.forked; i++)
        if (hostile_run(self, "job_exit_now", &seven, sizeof seven, 0) != ENDS_EXITED ||
            hostile_run(self, "job_ok", NULL, 0, 0) != ENDS_OK ||
            errand_sandbox_snapshot_read(self->executor, &now) != ERRAND_OK)
            return false;
    return now.forked != before.forked;
}

/* ---- this process ------------------------------------------------------------------------------------ */

static unsigned
entries_of(const char *path)
{
    DIR *open = opendir(path);
    unsigned count = 0;

    while (open != NULL && readdir(open) != NULL)
        count++;
    if (open != NULL)
        closedir(open);
    return count;
}

static unsigned
words_of(const char *path)
{
    FILE *file = fopen(path, "r");
    unsigned count = 0;

    if (file == NULL)
        return 0;
    for (int at = getc(file); at != EOF; at = getc(file))
        count += at == ' ';
    fclose(file);
    return count;
}

static unsigned
mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned count = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        count += !OWN_MAPPINGS || strstr(line, "memfd:errand-") != NULL;
    if (file != NULL)
        fclose(file);
    return count;
}

/* Children of each thread: who started one counts as its parent. */
static unsigned
children(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    unsigned count = 0;
    char path[320];

    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        snprintf(path, sizeof path, "/proc/self/task/%s/children", task->d_name);
        if (task->d_name[0] != '.')
            count += words_of(path);
    }
    if (tasks != NULL)
        closedir(tasks);
    return count;
}

void
hostile_process_read(hostile_process *out_process)
{
    out_process->descriptors = entries_of("/proc/self/fd");
    out_process->threads = entries_of("/proc/self/task");
    out_process->children = children();
    out_process->mappings = mappings();
}

const char *
hostile_ends_text(int ends)
{
    static const char *const names[] = {"OK",        "ODD",     "JOB",    "DEADLINE",
                                        "CANCELLED", "CRASHED", "POLICY", "EXITED",
                                        "PROTOCOL",  "CPU",     "OUTPUT", "KILLED",
                                        "MEMORY",    "LOST",    "SPAWN",  "WRONG"};
    static char text[2][160];
    static unsigned turn;
    char *out = text[turn++ & 1];

    out[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((ends & 1 << i) != 0) {
            strcat(out, out[0] == '\0' ? "" : "|");
            strcat(out, names[i]);
        }
    return out;
}

/* ---- children ------------------------------------------------------------------------------------------ */

void
hostile_reach(void)
{
    (void)test_reachable(ERRAND_TEST_WORKER);
    (void)test_reachable(ERRAND_TEST_JOBS);
}

bool
hostile_become(unsigned user)
{
    return setgroups(0, NULL) == 0 && setresgid(user, user, user) == 0 &&
           setresuid(user, user, user) == 0 && geteuid() == user;
}

int
hostile_in_child(bool as_nobody, int (*fn)(void *arg), void *arg)
{
    int status;

    hostile_reach();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int answer = as_nobody && !hostile_become(65534) ? 100 : fn(arg);

        fflush(NULL);
        _exit(answer);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
