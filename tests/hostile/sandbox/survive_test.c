/* SPDX-License-Identifier: MIT */
/* Goal: a host that gives one job in ten to somebody hostile completes all the others, hears of each
 * exactly once, and has nothing left of any of them at its end.
 * Method: thousands of jobs, many at once, in one pool whose workers are used again; honest ones say their
 * number twice and their host compares; what a hostile one may do to others of its worker (answer in their
 * place) is excluded by what a user has to set: see docs/containment.md. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "group.h"
#include "pool.h"

#define MS UINT64_C(1000000)
enum { AT_ONCE = 64, HONEST_EACH = 10 };

static const struct {
    const char *function;
    int32_t number;
    int allowed;
    uint64_t deadline_ms; /* 0 = the policy's */
} hostile[] = {
    {"job_writes_null", 0, ENDS_CRASHED, 0},
    {"job_loops_deaf", 0, ENDS_DEADLINE, 60},
    {"job_eats_memory", 0, ENDS_JOB | ENDS_CRASHED, 0},
    {"job_writes_too_much", 0, ENDS_JOB, 0},
    {"job_sends_pieces_for_ever", 0, ENDS_OUTPUT | ENDS_PROTOCOL, 0},
    {"job_burns", 0, ENDS_CPU, 20000},
    {"job_wipes", 0, ENDS_PROTOCOL, 0},
    {"job_exit_now", 7, ENDS_EXITED, 0},
    {"job_changes_its_mind", 0,
     ENDS_OK | ENDS_ODD | ENDS_JOB | ENDS_PROTOCOL | ENDS_DEADLINE, 400},
    {"job_kills_its_parent", 0, ENDS_POLICY, 0},
    {"job_catches_faults", 0, ENDS_DEADLINE, 60},
    {"job_aborts", 0, ENDS_CRASHED, 0},
    {"job_stutters", 0, ENDS_PROTOCOL | ENDS_DEADLINE, 400},
    {"job_overflows_its_stack", 0, ENDS_CRASHED, 0},
};
enum { HOSTILE = sizeof hostile / sizeof hostile[0] };

typedef struct job {
    uint32_t number;
    int kind; /* -1 = honest */
    unsigned heard;
} job;

typedef struct crowd {
    hostile_pool pool;
    job *jobs;
    uint64_t out, wrong, by_end[16];
} crowd;

static void
hear(void *arg, errand_completion *completion)
{
    crowd *self = arg;
    job *it = completion->wait;
    void *data = NULL;
    int ends = hostile_ends_of(completion);
    bool right;

    self->out--;
    it->heard++;
    if (ends == ENDS_ODD && errand_completion_read(completion, &errand_plugin_bytes_type,
                                                   &data, NULL) != ERRAND_OK)
        data = NULL;
    if (it->kind < 0) {
        const errand_plugin_bytes *bytes = data;
        const uint32_t twice[2] = {it->number, it->number};

        right = ends == ENDS_ODD && bytes != NULL && bytes->size == sizeof twice &&
                memcmp(bytes->bytes, twice, sizeof twice) == 0;
    } else {
        right = (ends & hostile[it->kind].allowed) != 0;
    }
    for (int i = 0; i < 16; i++)
        self->by_end[i] += (ends & 1 << i) != 0;
    if (right)
        return;
    if (self->wrong++ < 20)
        printf("[  WRONG   ] %u, %s: %s (%s)\n", it->number,
               it->kind < 0 ? "honest" : hostile[it->kind].function,
               hostile_ends_text(ends), completion->message);
}

static bool
send(crowd *self, job *it)
{
    errand_spec spec = ERRAND_SPEC_INIT;
    const void *input = &it->number;
    const char *function = "job_says_it_twice";

    if (it->kind >= 0) {
        input = &hostile[it->kind].number;
        function = hostile[it->kind].function;
    }
    if (errand_spec_plugin(&spec, self->pool.object, function, input,
                           sizeof it->number) != ERRAND_OK)
        return false;
    if (it->kind >= 0)
        spec.deadline_ns = hostile[it->kind].deadline_ms * MS;
    if (errand_start(self->pool.lease, &spec, it, NULL) != ERRAND_OK)
        return false;
    self->out++;
    return true;
}

static bool
listen(crowd *self, uint64_t until_out)
{
    while (self->out > until_out)
        if (errand_park(self->pool.runtime, UINT64_MAX) != ERRAND_OK ||
            errand_drain(self->pool.runtime, SIZE_MAX, hear, self, NULL) != ERRAND_OK)
            return false;
    return true;
}

/* What stands in docs/containment.md: a limit for everything, the breaker wide enough for what is expected,
 * and a worker for one job where one job may not speak for another. */
static void
configure(errand_sandbox_config *config, errand_sandbox_policy *policy)
{
    hostile_config(config, policy);
    config->workers_min = 2;
    config->workers_max = 4;
    config->crash_limit = 1000; /* of them in a second */
    policy->memory_bytes = 64u << 20;
    policy->out_bytes = 1u << 20;
    policy->cpu_seconds = 1;
    policy->deadline_ns = 4000 * MS;
    policy->reuse = 1;
}

static int
check_counts(crowd *self, uint64_t jobs)
{
    errand_sandbox_snapshot sandbox = {.struct_size = sizeof sandbox};
    errand_snapshot now;
    uint64_t codes = 0;
    int wrong = 0;

    if (errand_runtime_snapshot(self->pool.runtime, &now) != ERRAND_OK ||
        errand_sandbox_snapshot_read(self->pool.executor, &sandbox) != ERRAND_OK)
        return 1;
    for (size_t i = 1; i < ERRAND_CODES; i++)
        codes += now.codes[i];
    wrong += now.accepted != jobs || now.drained != jobs || now.queued + now.running != 0;
    wrong +=
        now.completed + now.failed + now.crashed + now.cancelled + now.panicked != jobs;
    wrong += now.completed + codes != jobs;
    wrong += sandbox.breaker_open || sandbox.refused_starts != 0;
    /* Each that was started is there, or ended in one of three ways. */
    wrong += sandbox.started != sandbox.ready + sandbox.reserve + sandbox.busy +
                                    sandbox.starting + sandbox.recycled +
                                    sandbox.crashed + sandbox.killed;
    if (wrong != 0)
        printf(
            "[  WRONG   ] counts: accepted %llu drained %llu completed %llu failed %llu "
            "crashed %llu codes %llu; workers: started %llu recycled %llu crashed %llu "
            "killed %llu refused %llu ready %u breaker %d\n",
            (unsigned long long)now.accepted, (unsigned long long)now.drained,
            (unsigned long long)now.completed, (unsigned long long)now.failed,
            (unsigned long long)now.crashed, (unsigned long long)codes,
            (unsigned long long)sandbox.started, (unsigned long long)sandbox.recycled,
            (unsigned long long)sandbox.crashed, (unsigned long long)sandbox.killed,
            (unsigned long long)sandbox.refused_starts, sandbox.ready,
            (int)sandbox.breaker_open);
    return wrong;
}

static int
run_crowd(void *arg)
{
    uint64_t jobs = test_scaled(10000), i;
    errand_sandbox_config config;
    errand_sandbox_policy policy;
    hostile_process before, after;
    crowd self = {.out = 0};
    char text[256];
    unsigned seed = 20;

    (void)arg;
    configure(&config, &policy);
    /* What a process has once for all threads, a sanitizer's own too, comes with the first pool. */
    if (!hostile_begin(&self.pool, &config, ERRAND_TEST_JOBS, text, sizeof text) ||
        !hostile_end(&self.pool))
        return 94;
    hostile_process_read(&before);
    if (!hostile_begin(&self.pool, &config, ERRAND_TEST_JOBS, text, sizeof text)) {
        printf("no sandbox: %s\n", text);
        return 99;
    }
    self.jobs = calloc(jobs, sizeof *self.jobs);
    for (i = 0; i < jobs; i++) {
        self.jobs[i] = (job){(uint32_t)i, -1, 0};
        if (i % HONEST_EACH == 3)
            self.jobs[i].kind = (int)((unsigned)rand_r(&seed) % HOSTILE);
        if (!send(&self, &self.jobs[i]) || !listen(&self, AT_ONCE - 1))
            return 98;
    }
    if (!listen(&self, 0) || !hostile_settle(&self.pool))
        return 97;
    for (i = 0; i < jobs; i++)
        self.wrong += self.jobs[i].heard != 1;
    self.wrong += (uint64_t)check_counts(&self, jobs);
    for (int end = 0; end < 16; end++)
        if (self.by_end[end] != 0)
            printf("[   ENDS   ] %s %llu\n", hostile_ends_text(1 << end),
                   (unsigned long long)self.by_end[end]);
    free(self.jobs);
    if (!hostile_end(&self.pool))
        return 96;
    hostile_process_read(&after);
    if (after.descriptors != before.descriptors || after.threads != before.threads ||
        after.children != before.children) {
        printf("[  WRONG   ] left: %d descriptors, %d threads, %d children\n",
               (int)(after.descriptors - before.descriptors),
               (int)(after.threads - before.threads),
               (int)(after.children - before.children));
        return 95;
    }
    return self.wrong != 0;
}

static void
a_host_survives_thousands_of_jobs_of_which_each_tenth_is_hostile(void **state)
{
    (void)state;
    assert_int_equal(hostile_in_child(false, run_crowd, NULL), 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_host_survives_thousands_of_jobs_of_which_each_tenth_is_hostile),
    };

    return test_group("hostile/sandbox/survive", tests, NULL, NULL);
}
