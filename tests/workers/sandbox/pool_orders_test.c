/* SPDX-License-Identifier: MIT */
/* Goal: a sandbox under each order and each way of waiting: seeded runs say the same whatever the
 * workers do, a wake descriptor becomes readable, leases and priorities get their turns.  Method:
 * simulated workers; digests compared; what the kernel offers is taken away in a child. */
#include "errand/order.h"
#include "inside_rig.h"
#include "pool_rig.h"
#include "reach.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

/* One seeded run of twenty jobs of different lengths; answers its digest. */
static uint64_t
seeded_run(errand_order order, uint64_t seed)
{
    rig *self;
    uint64_t digest = 0;

    rig_setup((void **)&self);
    self->config.workers_max = 3;
    self->config.workers_min = 3;
    self->runtime_config.order = order;
    self->runtime_config.seed = seed;
    rig_begin(self);
    for (uintptr_t i = 0; i < 20; i++)
        rig_start(self, i, i % 5 == 4 ? SIM_FAIL : SIM_SLOW,
                  i % 5 == 4 ? i : i * 37 % 800);
    rig_await(self, 20);
    for (size_t i = 0; i < self->count; i++) {
        const rig_news *news = &self->news[i];

        digest = errand__mix_words(digest, news->wait,
                                   (uint64_t)news->outcome << 32 | (uint32_t)news->code,
                                   (uint64_t)(uint32_t)news->job_code);
    }
    rig_teardown((void **)&self);
    return digest;
}

static void
seeded_orders_tell_the_same_whoever_is_faster(void **state) /* S17, D140 */
{
    uint64_t first = seeded_run(ERRAND_ORDER_INLINE, 7);

    (void)state;
    assert_true(seeded_run(ERRAND_ORDER_INLINE, 7) == first);
    assert_true(seeded_run(ERRAND_ORDER_PACED, 7) == first);
    assert_true(seeded_run(ERRAND_ORDER_PACED, 7) == first);
    assert_true(seeded_run(ERRAND_ORDER_INLINE, 8) != first);
}

/* Jobs with a deadline of 20 ms, on workers that need this long in fact. */
static uint64_t
bounded_run(uint64_t slow_us, unsigned *out_completed)
{
    rig *self;
    uint64_t digest = 0;

    *out_completed = 0;
    rig_setup((void **)&self);
    self->config.workers_max = self->config.workers_min = 3;
    self->runtime_config.order = ERRAND_ORDER_INLINE;
    self->runtime_config.seed = 7;
    rig_begin(self);
    for (uintptr_t i = 0; i < 6; i++) {
        errand_spec spec = rig_spec(self, SIM_SLOW, slow_us, NULL, 0);

        spec.deadline_ns = 20 * MS;
        rig_start_spec(self, i, &spec);
    }
    rig_await(self, 6);
    for (size_t i = 0; i < self->count; i++) {
        *out_completed += self->news[i].outcome == ERRAND_COMPLETED;
        digest = errand__mix_words(digest, self->news[i].wait, self->news[i].code, 0);
    }
    assert_true(errand_reproducible(self->runtime, NULL, 0));
    rig_teardown((void **)&self);
    return digest;
}

static void
a_deadline_of_a_seeded_order_is_not_the_workers(void **state) /* S17 */
{
    unsigned fast, slow;

    (void)state;
    assert_true(bounded_run(0, &fast) == bounded_run(60000, &slow));
    assert_true(fast > 0);
    assert_int_equal(fast, slow);
}

/* Nothing virtual ends it; the policy's limit does, and says that real time had a part in it. */
static void
a_job_that_never_ends_is_ended_by_the_policy_in_each_order(void **state) /* S8, D141 */
{
    static const errand_order orders[] = {ERRAND_ORDER_ARRIVAL, ERRAND_ORDER_INLINE,
                                          ERRAND_ORDER_PACED};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        bool seeded = orders[i] != ERRAND_ORDER_ARRIVAL;
        char text[96] = "";
        rig *self;

        rig_setup((void **)&self);
        self->policy.deadline_ns = 500 * MS; /* the others have to be faster */
        self->runtime_config.order = orders[i];
        self->runtime_config.seed = seeded ? 7 : 0;
        rig_begin(self);
        rig_start(self, 0, SIM_ECHO, 0);
        rig_await(self, 1);
        assert_true(errand_reproducible(self->runtime, NULL, 0));
        errand_spec spec = rig_spec(self, SIM_HANG, 0, NULL, 0);
        spec.deadline_ns = seeded ? 20 * MS : 0; /* virtual */
        rig_start_spec(self, 1, &spec);
        rig_await(self, 2);
        assert_int_equal(self->news[1].outcome, ERRAND_FAILED);
        assert_int_equal(self->news[1].code, ERRAND_CODE_DEADLINE);
        assert_true(errand_reproducible(self->runtime, text, sizeof text) != seeded);
        if (seeded)
            assert_non_null(strstr(text, "a real limit ended operation 2"));
        rig_start(self, 2, SIM_ECHO, 0);
        rig_await(self, 3);
        assert_int_equal(self->news[2].outcome, ERRAND_COMPLETED);
        rig_teardown((void **)&self);
    }
}

static void
await_by_descriptor(rig *self, size_t count)
{
    int fd;

    assert_int_equal(errand_runtime_wake_fd(self->runtime, &fd), ERRAND_OK);
    while (self->count < count) {
        struct pollfd readable = {.fd = fd, .events = POLLIN};

        assert_int_equal(poll(&readable, 1, 10000), 1);
        rig_drain(self);
    }
}

static void
a_wake_descriptor_tells_of_answers(void **state)
{
    rig *self = *state;
    uint64_t start;

    rig_begin(self);
    rig_start(self, 0, SIM_SLOW, 5000); /* it is out before there is a descriptor */
    await_by_descriptor(self, 1);
    start = errand__clock_now();
    for (size_t i = 1; i < 200; i++) {
        rig_start(self, i, SIM_PATTERN, i);
        await_by_descriptor(self, i + 1);
        assert_int_equal(self->news[i].size, i);
    }
    /* Without a wake each would take 100 ms. */
    assert_true(errand__clock_now() - start < 15000 * MS);
}

static void
a_question_finds_an_owner_that_polls_its_descriptor(void **state)
{
    rig *self = *state;
    unsigned char bytes[] = {1, 2, 3};

    rig_begin(self);
    for (size_t i = 0; i < 50; i++) {
        errand_spec spec = rig_spec(self, SIM_ASK, 0, bytes, sizeof bytes);

        rig_start_spec(self, 0, &spec);
        await_by_descriptor(self, i + 1);
        assert_int_equal(self->news[i].sum, 9);
    }
}

static void
an_owner_that_does_other_things_has_its_queue_run(void **state)
{
    rig *self = *state;
    struct timespec pause = {0, 1000000};
    errand_snapshot snapshot;

    rig_begin(self);
    for (uintptr_t i = 0; i < 50; i++)
        rig_start(self, i, SIM_PATTERN, i);
    do { /* it neither drains nor parks */
        nanosleep(&pause, NULL);
        assert_int_equal(errand_lease_snapshot(self->lease, &snapshot), ERRAND_OK);
    } while (snapshot.queued + snapshot.running > 1);
    rig_await(self, 50);
}

static void
high_goes_before_normal_before_low(void **state) /* S18 */
{
    rig *self = *state;

    /* It goes on when this thread drains. */
    unsigned char bytes[] = {1, 2, 3};
    errand_spec asks = rig_spec(self, SIM_ASK, 0, bytes, sizeof bytes);

    rig_begin(self);
    rig_start_spec(self, 100, &asks);
    for (uintptr_t i = 0; i < 9; i++) {
        errand_spec spec = rig_spec(self, SIM_PATTERN, 1, NULL, 0);

        spec.priority = (uint8_t)(i % 3);
        rig_start_spec(self, i % 3, &spec);
    }
    rig_await(self, 10);
    for (size_t i = 1; i < 10; i++) /* 1 high, 0 normal, 2 low */
        assert_int_equal(self->news[i].wait, i < 4 ? 1 : i < 7 ? 0 : 2);
}

static void
leases_take_turns_on_one_worker(void **state) /* S18 */
{
    rig *self = *state, *other = calloc(1, sizeof *other);
    size_t between = 0;

    assert_non_null(other);
    rig_begin(self);
    other->runtime_config = self->runtime_config;
    assert_int_equal(errand_runtime_create(&other->runtime_config, &other->runtime),
                     ERRAND_OK);
    assert_int_equal(errand_attach(other->runtime, self->executor, 0, &other->lease),
                     ERRAND_OK);
    for (uintptr_t i = 0; i < 200; i++)
        rig_start(self, i, SIM_SLOW, 100);
    rig_start(other, 0, SIM_SLOW, 100);
    rig_start(other, 1, SIM_SLOW, 100);
    rig_await(other, 2);
    rig_await(self, 200);
    /* While the other lease's last one waited, few of this one's had their turn. */
    for (size_t i = 0; i < 200; i++)
        between += self->news[i].start_ns > other->news[1].submit_ns &&
                   self->news[i].end_ns < other->news[1].start_ns;
    assert_in_range(between, 0, 10);
    rig_end(other);
    free(other);
}

/* In a process where the kernel has no futex_waitv. */
static int
run_without_waitv(rig *self)
{
    inside_refusal refusal = {.call = "futex_waitv", .error = ENOSYS};

    inside_refuse_call(&refusal);
    if (errand__futex_has_many())
        return 2;
    rig_begin(self);
    for (uintptr_t i = 0; i < 100; i++)
        if (rig_run(self, SIM_PATTERN, i)->size != i)
            return 3;
    if (rig_run(self, SIM_NO_WAKE, 0)->outcome != ERRAND_COMPLETED)
        return 4;
    rig_end(self);
    return 0;
}

static void
a_kernel_that_waits_for_one_word_alone_will_do(void **state)
{
    rig *self = *state;
    int status;
    pid_t child = fork();

    if (child == 0) {
        alarm(60);
        _exit(run_without_waitv(self));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* How often the pool's own threads went to sleep so far. */
static uint64_t
count_sleeps(void)
{
    DIR *folder = opendir("/proc/self/task");
    uint64_t sum = 0;

    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[300], line[256];
        bool own = false;
        FILE *file;

        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        file = fopen(path, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            own |= strcmp(line, "Name:\terrand-monitor\n") == 0 ||
                   strcmp(line, "Name:\terrand-watcher\n") == 0;
            if (own && strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
                sum += strtoull(line + 24, NULL, 10);
        }
        if (file != NULL)
            fclose(file);
    }
    closedir(folder);
    return sum;
}

static void
an_idle_pool_wakes_nobody(void **state) /* S6 */
{
    rig *self = *state;
    const errand_entry echo = {test_reachable(ERRAND_TEST_PLUGIN), "echo", NULL};
    struct timespec moment = {0, 300000000};
    uint64_t before;

    if (ERRAND_SANITIZED)
        test_skip("ThreadSanitizer's sleeps are many short ones");
    self->policy.deadline_ns = 250 * MS;
    self->worker_path =
        test_reachable(ERRAND_TEST_WORKER); /* simulated ones inherit the thread's name */
    self->policy.entries = &echo;
    self->policy.entry_count = 1;
    rig_begin(self);
    errand_spec spec =
        rig_plugin_spec(self, test_reachable(ERRAND_TEST_PLUGIN), "echo", "abc", 3);
    rig_start_spec(self, 0, &spec);
    rig_await(self, 1);
    nanosleep(&moment, NULL); /* the deadline of that job is over */
    before = count_sleeps();
    nanosleep(&moment, NULL);
    assert_int_equal(count_sleeps(), before);
}

int
main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
    static const struct CMUnitTest tests[] = {
        /* First: what the kernel can do is asked once. */
        WITH_RIG(a_kernel_that_waits_for_one_word_alone_will_do),
        cmocka_unit_test(seeded_orders_tell_the_same_whoever_is_faster),
        cmocka_unit_test(a_deadline_of_a_seeded_order_is_not_the_workers),
        cmocka_unit_test(a_job_that_never_ends_is_ended_by_the_policy_in_each_order),
        WITH_RIG(a_wake_descriptor_tells_of_answers),
        WITH_RIG(a_question_finds_an_owner_that_polls_its_descriptor),
        WITH_RIG(an_owner_that_does_other_things_has_its_queue_run),
        WITH_RIG(high_goes_before_normal_before_low),
        WITH_RIG(leases_take_turns_on_one_worker),
        WITH_RIG(an_idle_pool_wakes_nobody),
    };
    return test_group("workers/sandbox/pool_orders", tests, NULL, NULL);
}
