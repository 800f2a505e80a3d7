/* SPDX-License-Identifier: MIT */
/* Goal: whatever a job does to its worker, its operation ends in one of the ways that are safe, in time;
 * the host's files, descriptors, threads, children and memory are as before; and the next honest job is
 * completed by another process.  Method: a list that was written from the specification and the public
 * headers alone, by somebody who did not write the tier; each row in a pool that uses a worker once, as
 * root and as nobody.  (Cases 1 to 76 of the field list are in it.) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "group.h"
#include "jobs.h"
#include "list.h"
#include "pool.h"

#define MS UINT64_C(1000000)

static char open_file[] = "/tmp/errand-hostile-open-XXXXXX";
static char secret_file[] = "/tmp/errand-hostile-secret-XXXXXX";
static struct stat before[2];

/* ---- the host's files ----------------------------------------------------------------------------------- */

static int
make_files(void **state)
{
    char *const paths[] = {open_file, secret_file};

    (void)state;
    for (int i = 0; i < 2; i++) {
        int fd = mkstemp(paths[i]);

        if (fd < 0 || write(fd, "the host's", 10) != 10 ||
            fchmod(fd, i == 0 ? 0666 : 0600) != 0 || fstat(fd, &before[i]) != 0)
            return -1;
        close(fd);
    }
    return 0;
}

static int
remove_files(void **state)
{
    (void)state;
    unlink(open_file);
    unlink(secret_file);
    return 0;
}

static bool
files_are_intact(void)
{
    const char *const paths[] = {open_file, secret_file};
    struct stat now;

    for (int i = 0; i < 2; i++)
        if (stat(paths[i], &now) != 0 || now.st_size != before[i].st_size ||
            now.st_mode != before[i].st_mode || now.st_ino != before[i].st_ino ||
            now.st_mtim.tv_nsec != before[i].st_mtim.tv_nsec ||
            now.st_nlink != before[i].st_nlink)
            return false;
    return access("/tmp/errand-hostile-made", F_OK) != 0;
}

/* ---- one job and what is looked at afterwards -------------------------------------------------------------- */

typedef struct walk {
    hostile_pool pool;
    hostile_process process;
    int wrong;
} walk;

static void
complain(walk *self, const char *name, const char *what)
{
    printf("[  WRONG   ] %s: %s (%s, code %d, signal %d, %s)\n", name, what,
           hostile_ends_text(self->pool.ends), (int)self->pool.job_code,
           (int)self->pool.signal_number, self->pool.message);
    fflush(stdout);
    self->wrong++;
}

static void
look_around(walk *self, const char *name)
{
    hostile_process now;
    int32_t pid = self->pool.outcome.pid;

    if (!hostile_settle(&self->pool))
        complain(self, name, "the pool does not come to rest");
    hostile_process_read(&now);
    if (now.descriptors != self->process.descriptors ||
        now.children != self->process.children) {
        /* A busy machine may have cost the pool its template: what has leaked is there with the next. */
        if (!hostile_warm(&self->pool) || !hostile_settle(&self->pool))
            complain(self, name, "no worker is forked");
        hostile_process_read(&now);
    }
    if (now.descriptors != self->process.descriptors)
        complain(self, name, "another number of descriptors");
    if (now.threads != self->process.threads)
        complain(self, name, "another number of threads");
    if (now.children != self->process.children)
        complain(self, name, "another number of children");
    /* Files of two places come and go; what leaks with each job is more than that. */
    if (now.mappings > self->process.mappings + 8)
        complain(self, name, "more mappings");
    if (!files_are_intact())
        complain(self, name, "a file of the host's was changed");
    if (hostile_run(&self->pool, "job_ok", NULL, 0, 0) != ENDS_OK)
        complain(self, name, "the next honest job is not completed");
    if (pid > 0 && self->pool.outcome.pid == pid)
        complain(self, name, "the next job had the same worker");
}

/* Less than the policy's own limit, so that it tells that from the operation's, and otherwise only a
 * hang from a busy machine. */
#define TOO_LATE_NS (20000 * MS)

static void
try_row(walk *self, const list_row *row)
{
    const void *bytes = NULL;
    size_t size = 0;

    switch (row->input) {
    case LIST_NUMBER:
        bytes = row->numbers;
        size = sizeof row->numbers[0];
        break;
    case LIST_LIE:
        bytes = row->numbers;
        size = sizeof row->numbers;
        break;
    case LIST_FILE:
    case LIST_SECRET:
        bytes = row->input == LIST_FILE ? open_file : secret_file;
        size = strlen(bytes);
        break;
    case LIST_TEXT:
        bytes = row->text;
        size = strlen(row->text);
        break;
    default:
        break;
    }
    int ends =
        hostile_run(&self->pool, row->function, bytes, size, row->deadline_ms * MS);
    if ((ends & row->allowed) == 0)
        complain(self, row->function, hostile_ends_text(row->allowed));
    if (row->code != 0 && (ends & (ENDS_JOB | ENDS_EXITED)) != 0 &&
        self->pool.job_code != row->code)
        complain(self, row->function, "another code");
    if (self->pool.took_ns > TOO_LATE_NS && !test_under("valgrind"))
        complain(self, row->function, "too late");
    look_around(self, row->function);
}

static bool
walk_begin(walk *self)
{
    errand_sandbox_config config;
    errand_sandbox_policy policy;
    char text[256];

    *self = (walk){.wrong = 0};
    hostile_config(&config, &policy);
    if (!hostile_begin(&self->pool, &config, ERRAND_TEST_JOBS, text, sizeof text)) {
        printf("no sandbox: %s\n", text);
        return false;
    }
    for (int i = 0; i < 3; i++)
        if (hostile_run(&self->pool, "job_ok", NULL, 0, 0) != ENDS_OK)
            complain(self, "job_ok", "an honest job fails");
    if (!hostile_warm(&self->pool)) /* most are forked from then on */
        complain(self, "template", "no worker was forked");
    if (!hostile_settle(&self->pool))
        return false;
    hostile_process_read(&self->process);
    return self->wrong == 0;
}

static int
walk_end(walk *self)
{
    if (!hostile_end(&self->pool))
        complain(self, "the end", "the runtime was not clean");
    if (self->pool.heard != self->pool.submitted)
        complain(self, "the end", "not one completion each");
    return self->wrong;
}

static int
walk_rows(void *arg)
{
    walk self;

    (void)arg;
    if (!walk_begin(&self))
        return 99;
    for (uint64_t round = 0; round < test_scaled(10); round++)
        for (size_t i = 0; i < list_row_count; i++)
            try_row(&self, &list_rows[i]);
    return walk_end(&self);
}

static int
walk_calls(void *arg)
{
    walk self;

    (void)arg;
    if (!walk_begin(&self))
        return 99;
    for (size_t i = 0; i < list_call_count; i++) {
        const jobs_call call = {.number = list_calls[i].number, .scratch = i % 64u};
        int ends = hostile_run(&self.pool, "job_call", &call, sizeof call, 5000 * MS);

        if (ends != ENDS_POLICY)
            complain(&self, list_calls[i].name, "it is not denied");
        if (i % 16 == 0)
            look_around(&self, list_calls[i].name);
    }
    /* Numbers that no kernel had when this was written. */
    for (long number = 450; number < 520; number += 23) {
        const jobs_call call = {.number = number};

        if (hostile_run(&self.pool, "job_call", &call, sizeof call, 5000 * MS) !=
                ENDS_JOB ||
            self.pool.job_code != ENOSYS)
            complain(&self, "a newer call", "it is not unknown");
    }
    look_around(&self, "calls");
    return walk_end(&self);
}

static bool
can_be_nobody(void)
{
    return geteuid() == 0;
}

static void
hostile_jobs_end_safely_and_leave_nothing(void **state)
{
    (void)state;
    assert_int_equal(hostile_in_child(false, walk_rows, NULL), 0);
}

static void
hostile_jobs_end_safely_under_a_host_that_is_nobody(void **state)
{
    (void)state;
    if (!can_be_nobody())
        test_skip("only root can become nobody");
    assert_int_equal(hostile_in_child(true, walk_rows, NULL), 0);
}

static void
calls_that_nobody_needs_end_the_worker(void **state)
{
    (void)state;
    assert_int_equal(hostile_in_child(false, walk_calls, NULL), 0);
    if (can_be_nobody())
        assert_int_equal(hostile_in_child(true, walk_calls, NULL), 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_jobs_end_safely_and_leave_nothing),
        cmocka_unit_test(hostile_jobs_end_safely_under_a_host_that_is_nobody),
        cmocka_unit_test(calls_that_nobody_needs_end_the_worker),
    };

    return test_group("hostile/sandbox/list", tests, make_files, remove_files);
}
