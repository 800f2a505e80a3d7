/* SPDX-License-Identifier: MIT */
/* Goal: errand_wait_fd ends by an event, by the deadline and by every cancel, however shortly before the
 * sleep that comes (O37, O60).
 * Method: a pause point between the look at the token and the sleep; then many rounds in which a cancel
 * and a byte race, at offsets that are moved until both have won their share. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "errand/async.h"
#include "errand/wait.h"
#include "pool_rig.h"

typedef struct waiter {
    rig_job job;
    int ends[2];
    uint64_t deadline_ns;
    errand_status status;
    short events;
    int fd; /* what is waited for; -2 = ends[0] */
    atomic_bool begun;
} waiter;

static void
wait_for_it(rig_job *job, errand_job *running)
{
    waiter *self = job->arg;

    atomic_store_explicit(&self->begun, true, memory_order_release);
    self->events = 0;
    self->status = errand_wait_fd(running, self->fd == -2 ? self->ends[0] : self->fd,
                                  POLLIN, self->deadline_ns, &self->events);
}

static void
waiter_init(waiter *self)
{
    memset(self, 0, sizeof *self);
    self->job.fn = wait_for_it;
    self->job.arg = self;
    self->deadline_ns = UINT64_MAX;
    self->fd = -2;
    assert_int_equal(pipe2(self->ends, O_CLOEXEC | O_NONBLOCK), 0);
}

static void
waiter_fini(waiter *self)
{
    close(self->ends[0]);
    close(self->ends[1]);
}

static void
await_begin(waiter *self)
{
    while (!atomic_load_explicit(&self->begun, memory_order_acquire))
        sched_yield();
}

static void
cancel(pool_rig *rig, waiter *self)
{
    assert_int_equal(
        errand_cancel(rig->runtime, &self->job.identity, ERRAND_REASON_EXPLICIT, NULL),
        ERRAND_OK);
}

static void
event_ends_the_wait(void **state)
{
    pool_rig rig;
    waiter self;

    (void)state;
    rig_init(&rig, 1, 1);
    waiter_init(&self);
    rig_start(&rig, &self.job);
    await_begin(&self);
    assert_int_equal(write(self.ends[1], "x", 1), 1);
    rig_await(&rig, 1);
    assert_int_equal(self.status, ERRAND_OK);
    assert_int_equal(self.events, POLLIN);
    close(self.ends[1]);
    self.ends[1] = -1;
    assert_int_equal(read(self.ends[0], &(char){0}, 1), 1);
    rig_start(&rig, &self.job); /* the other end is closed */
    rig_await(&rig, 2);
    assert_int_equal(self.status, ERRAND_OK);
    assert_int_equal(self.events, POLLHUP);
    rig_fini(&rig);
    waiter_fini(&self);
}

static void
deadline_ends_the_wait(void **state)
{
    pool_rig rig;
    waiter self;

    (void)state;
    rig_init(&rig, 1, 1);
    waiter_init(&self);
    for (int i = 0; i < 3; i++) { /* past, at once, soon */
        uint64_t begin = rig_now(), length = i == 2 ? 20000000 : 0;

        self.deadline_ns = i == 0 ? 1 : begin + length;
        rig_start(&rig, &self.job);
        rig_await(&rig, (uint64_t)i + 1);
        assert_int_equal(self.status, ERRAND_ETIMEOUT); /* of errand_wait_fd */
        assert_true(rig_now() >= begin + length);
    }
    rig_fini(&rig);
    waiter_fini(&self);
}

static void
cancel_ends_the_wait_with_and_without_a_descriptor(void **state)
{
    pool_rig rig;
    waiter self;

    (void)state;
    rig_init(&rig, 1, 1);
    for (int i = 0; i < 2; i++) {
        waiter_init(&self);
        self.fd = i == 0 ? -2 : -1;
        rig_start(&rig, &self.job);
        await_begin(&self);
        cancel(&rig, &self);
        rig_await(&rig, (uint64_t)i + 1);
        assert_int_equal(self.status, ERRAND_ECANCELLED); /* of errand_wait_fd */
        waiter_fini(&self);
    }
    rig_fini(&rig);
}

/* ---- the moment between the look and the sleep ------------------------------------------------------------- */

static test_gate window;

static void
stop_before_sleep(void *arg, const char *place)
{
    (void)arg;
    if (strcmp(place, "wait-fd") == 0)
        gate_wait(&window);
}

static void
cancel_just_before_the_sleep_is_not_lost(void **state)
{
    pool_rig rig;
    waiter self;

    (void)state;
    gate_init(&window, "about to sleep");
    errand_testing_pause(stop_before_sleep, NULL);
    rig_init(&rig, 1, 1);
    waiter_init(&self);
    rig_start(&rig, &self.job);
    gate_await_arrival(&window);
    cancel(&rig, &self); /* no byte and no deadline: this alone can end it */
    gate_open(&window);
    rig_await(&rig, 1);
    assert_int_equal(self.status, ERRAND_ECANCELLED);
    errand_testing_pause(NULL, NULL);
    self.begun = false;
    rig_start(&rig, &self.job); /* what was rung is not left for the next */
    await_begin(&self);
    assert_int_equal(write(self.ends[1], "x", 1), 1);
    rig_await(&rig, 2);
    assert_int_equal(self.status, ERRAND_OK);
    rig_fini(&rig);
    waiter_fini(&self);
    gate_fini(&window);
}

/* ---- races -------------------------------------------------------------------------------------------------- */

typedef struct writer {
    sem_t go;
    waiter *at;
    uint64_t offset;
    atomic_bool done, ends;
} writer;

static void *
write_later(void *arg)
{
    writer *self = arg;

    for (;;) {
        sem_wait(&self->go);
        if (atomic_load_explicit(&self->ends, memory_order_acquire))
            return NULL;
        await_begin(self->at);
        rig_spin(self->offset);
        if (write(self->at->ends[1], "x", 1) != 1)
            return NULL;
        atomic_store_explicit(&self->done, true, memory_order_release);
    }
}

/* Aimed at the 100 us after the body began; answers whether the cancel won. */
static bool
race_once(pool_rig *rig, waiter *self, writer *other, uint64_t cancel_at,
          uint64_t write_at)
{
    char bytes[4];

    atomic_store_explicit(&self->begun, false, memory_order_relaxed);
    atomic_store_explicit(&other->done, false, memory_order_relaxed);
    other->offset = write_at;
    rig_start(rig, &self->job);
    sem_post(&other->go);
    await_begin(self);
    rig_spin(cancel_at);
    cancel(rig, self);
    rig_await(rig, rig->heard + 1);
    while (!atomic_load_explicit(&other->done, memory_order_acquire))
        sched_yield();
    while (read(self->ends[0], bytes, sizeof bytes) > 0)
        continue;
    if (self->status == ERRAND_OK)
        assert_int_equal(self->events, POLLIN);
    else
        assert_int_equal(self->status, ERRAND_ECANCELLED);
    return self->status == ERRAND_ECANCELLED;
}

static void
cancel_and_event_may_race_and_both_win_their_share(void **state)
{
    uint64_t rounds = test_scaled(100000) / 8, cancels = 0;
    int64_t bias = 0; /* ns by which the cancel comes later */
    pthread_t thread;
    writer other;
    pool_rig rig;
    waiter self;

    (void)state;
    rig_init(&rig, 1, 1);
    waiter_init(&self);
    memset(&other, 0, sizeof other);
    assert_int_equal(sem_init(&other.go, 0, 0), 0);
    other.at = &self;
    assert_int_equal(pthread_create(&thread, NULL, write_later, &other), 0);
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t cancel_at = i * 7919 % 100000, write_at = i * 104729 % 100000;
        bool won =
            race_once(&rig, &self, &other, cancel_at + (uint64_t)(bias > 0 ? bias : 0),
                      write_at + (uint64_t)(bias < 0 ? -bias : 0));

        cancels += won;
        bias += won ? 4000 : -4000; /* whoever wins goes later */
    }
    atomic_store_explicit(&other.ends, true, memory_order_release);
    sem_post(&other.go);
    assert_int_equal(pthread_join(thread, NULL), 0);
    printf("wait_fd: %llu rounds, the cancel won %llu\n", (unsigned long long)rounds,
           (unsigned long long)cancels);
    assert_true(cancels * 20 >= rounds && cancels * 20 <= rounds * 19);
    rig_fini(&rig);
    waiter_fini(&self);
}

/* ---- elsewhere ------------------------------------------------------------------------------------------------ */

static int32_t
wait_in_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)out_payload;
    *(errand_status *)state = errand_wait_fd(job, -1, 0, 1, NULL);
    return 0;
}

static void
waits_where_nobody_may_wait_are_refused(void **state)
{
    static const errand_job_type type = {
        .struct_size = sizeof type, .name = "async", .poll = wait_in_poll};
    errand_status status = ERRAND_OK;
    errand_spec spec = ERRAND_SPEC_INIT;
    errand_executor *async;
    errand_lease *lease;
    pool_rig rig;
    waiter self;

    (void)state;
    rig_init(&rig, 1, 1);
    waiter_init(&self);
    self.fd = 1000000; /* nobody has that */
    rig_start(&rig, &self.job);
    rig_await(&rig, 1);
    assert_int_equal(self.status, ERRAND_EINVAL);
    assert_int_equal(errand_async_create(NULL, &async), ERRAND_OK);
    assert_int_equal(errand_attach(rig.runtime, async, 0, &lease), ERRAND_OK);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_ASYNC;
    spec.held_job = &type;
    spec.state = &status;
    assert_int_equal(errand_start(lease, &spec, NULL, NULL), ERRAND_OK);
    rig_await(&rig, 2);
    assert_int_equal(status, ERRAND_EUNSUPPORTED); /* of errand_wait_fd */
    rig_fini(&rig);
    errand_executor_abandon(&async);
    waiter_fini(&self);
}

static void *
wait_beside(void *arg)
{
    errand_job *job = *(errand_job **)arg;

    return errand_wait_fd(job, -1, 0, 1, NULL) == ERRAND_EMISUSE ? arg : NULL;
}

static void
wait_on_a_second_thread(rig_job *self, errand_job *job)
{
    pthread_t thread;
    void *answer = NULL;

    if (pthread_create(&thread, NULL, wait_beside, &job) == 0)
        pthread_join(thread, &answer);
    self->number = answer != NULL;
}

static void
only_the_thread_of_the_body_waits(void **state)
{
    rig_job job = {.fn = wait_on_a_second_thread};
    pool_rig rig;

    (void)state;
    rig_init(&rig, 1, 1);
    rig_start(&rig, &job);
    rig_await(&rig, 1);
    assert_int_equal(job.number, 1);
    rig_fini(&rig);
}

static void
wait_without_a_descriptor_of_its_own_looks_at_the_token(void **state)
{
    /* No descriptor is to be had: the cancel is seen all the same. */
    struct rlimit before, none;
    pool_rig rig;
    waiter self;

    (void)state;
    rig_init(&rig, 1, 1);
    waiter_init(&self);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    self.fd = -1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rig_start(&rig, &self.job);
    await_begin(&self);
    cancel(&rig, &self);
    rig_await(&rig, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(self.status, ERRAND_ECANCELLED);
    rig_fini(&rig);
    waiter_fini(&self);
}

static void
system_that_refuses_to_wait_is_told(void **state)
{
    /* poll takes no more descriptors than a process may have open. */
    struct rlimit before, none;
    pool_rig rig;
    waiter self;

    (void)state;
    rig_init(&rig, 1, 1);
    waiter_init(&self);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rig_start(&rig, &self.job);
    rig_await(&rig, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(self.status, ERRAND_ESYSTEM); /* of errand_wait_fd */
    rig_fini(&rig);
    waiter_fini(&self);
}

static void
manual_executor_waits_too(void **state)
{
    errand_executor *manual;
    pool_rig rig;
    size_t count;
    waiter self;

    (void)state;
    assert_int_equal(errand_manual_create(NULL, &manual), ERRAND_OK);
    rig_join(&rig, manual, 0);
    rig.shares = false;
    waiter_init(&self);
    assert_int_equal(write(self.ends[1], "x", 1), 1);
    rig_start(&rig, &self.job);
    assert_int_equal(errand_manual_step(manual, 1, &count), ERRAND_OK);
    assert_int_equal(self.status, ERRAND_OK);
    self.fd = -1;
    self.deadline_ns = rig_now() + 30000000; /* three looks */
    rig_start(&rig, &self.job);
    assert_int_equal(errand_manual_step(manual, 1, &count), ERRAND_OK);
    assert_int_equal(self.status, ERRAND_ETIMEOUT);
    rig_await(&rig, 2);
    rig_fini(&rig);
    waiter_fini(&self);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_ends_the_wait),
        cmocka_unit_test(deadline_ends_the_wait),
        cmocka_unit_test(cancel_ends_the_wait_with_and_without_a_descriptor),
        cmocka_unit_test(cancel_just_before_the_sleep_is_not_lost),
        cmocka_unit_test(cancel_and_event_may_race_and_both_win_their_share),
        cmocka_unit_test(waits_where_nobody_may_wait_are_refused),
        cmocka_unit_test(only_the_thread_of_the_body_waits),
        cmocka_unit_test(wait_without_a_descriptor_of_its_own_looks_at_the_token),
        cmocka_unit_test(system_that_refuses_to_wait_is_told),
        cmocka_unit_test(manual_executor_waits_too),
    };

    return test_group("workers/wait_fd", tests, NULL, NULL);
}
