/* SPDX-License-Identifier: MIT */
/* Goal: buffers that all workers of a sandbox read where they lie: right sums of more bytes than a
 * request may have, and nothing of them can be written by a worker, moved under a call, mixed up
 * with another sandbox's, or lost with the pool.  Method: real workers. */
#include "hostile.h"
#include "pool_rig.h"
#include "reach.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

typedef struct heard {
    unsigned count;
    errand_outcome outcome;
    errand_code code;
    int signal_number;
    uint64_t number; /* of a sum, of a call */
    int32_t error;
} heard;

static int
region_setup(void **state)
{
    rig *self;

    rig_setup(state);
    self = *state;
    self->worker_path = test_reachable(ERRAND_TEST_WORKER);
    self->config.workers_max = 2;
    self->config.crash_limit = 1000;
    self->policy.shared_in_bytes = 96 * MIB;
    return 0;
}

static errand_ffi_buffer *
shared(rig *self, size_t size)
{
    errand_ffi_buffer *buffer = NULL;

    assert_int_equal(errand_sandbox_buffer(self->executor, size, &buffer), ERRAND_OK);
    assert_true(errand_ffi_buffer_shared(buffer));
    assert_int_equal(errand_ffi_buffer_size(buffer), size);
    return buffer;
}

static void
hear(void *arg, errand_completion *completion)
{
    heard *self = arg;
    void *data;
    size_t size;

    self->count++;
    self->outcome = completion->outcome;
    self->code = completion->code;
    self->signal_number = completion->signal_number;
    if (completion->outcome != ERRAND_COMPLETED)
        return;
    if (errand_completion_read(completion, &errand_ffi_result_type, &data, &size) ==
        ERRAND_OK) {
        self->number = ((errand_ffi_result *)data)->value.as.u;
    } else if (errand_completion_read(completion, &errand_plugin_bytes_type, &data,
                                      &size) == ERRAND_OK) {
        const errand_plugin_bytes *bytes = data;

        memcpy(&self->number, bytes->bytes, sizeof self->number);
        if (bytes->size == sizeof(hostile_response))
            self->error = ((const hostile_response *)(const void *)bytes->bytes)->error;
    }
}

static void
await_all(rig *self, heard *news, unsigned count)
{
    size_t now;

    while (news->count < count) {
        assert_int_equal(errand_park(self->runtime, UINT64_MAX), ERRAND_OK);
        assert_int_equal(errand_drain(self->runtime, SIZE_MAX, hear, news, &now),
                         ERRAND_OK);
    }
}

static heard
run(rig *self, const errand_spec *spec)
{
    heard news = {.count = 0};

    rig_start_spec(self, 0, spec);
    await_all(self, &news, 1);
    return news;
}

static errand_spec
sum_spec(errand_ffi_buffer *buffer)
{
    errand_spec spec;

    assert_int_equal(errand_spec_plugin_buffer(&spec, test_reachable(ERRAND_TEST_PLUGIN),
                                               "sums", buffer),
                     ERRAND_OK);
    return spec;
}

static void
sixty_four_mebibytes_are_read_where_they_lie(void **state) /* S26 */
{
    rig *self = *state;
    uint64_t sum = 0;

    rig_begin(self); /* in_bytes is 1 MiB, memory_bytes of a worker are 512 */
    errand_ffi_buffer *small = shared(self, 5), *buffer = shared(self, 64 * MIB);
    unsigned char *bytes = errand_ffi_buffer_data(buffer);

    memset(errand_ffi_buffer_data(small), 1, 5);
    for (size_t i = 0; i < 64 * MIB; i++) {
        bytes[i] = (unsigned char)(i * 31 + i / 251);
        sum += bytes[i];
    }
    errand_spec spec = sum_spec(buffer);
    heard news = run(self, &spec);

    assert_int_equal(news.outcome, ERRAND_COMPLETED);
    assert_true(news.number == sum);
    spec = sum_spec(small);
    assert_true(run(self, &spec).number == 5);
    errand_ffi_buffer_abandon(&buffer);
    errand_ffi_buffer_abandon(&small);
}

static void
workers_have_their_memory_beside_the_region(void **state)
{
    rig *self = *state;

    self->policy.memory_bytes = 32 * MIB;
    rig_begin(self);
    errand_ffi_buffer *buffer = shared(self, 64 * MIB);
    errand_spec spec = sum_spec(buffer);

    assert_int_equal(run(self, &spec).outcome, ERRAND_COMPLETED);
    errand_ffi_buffer_abandon(&buffer);
}

/* Reference: zlib in this process. */
typedef unsigned long crc_fn(unsigned long, const unsigned char *, unsigned);

static void
a_described_call_reads_two_buffers_where_they_lie(void **state) /* S26 */
{
    rig *self = *state;
    void *zlib = dlopen("libz.so.1", RTLD_NOW);
    void *address = zlib == NULL ? NULL : dlsym(zlib, "crc32");
    errand_ffi_library *library;
    errand_ffi_function *crc, *compare;
    crc_fn *crc32;
    errand_spec spec;

    if (address == NULL)
        test_skip("there is no zlib here");
    memcpy(&crc32, &address, sizeof crc32);
    rig_begin(self);
    errand_ffi_buffer *first = shared(self, 64 * MIB), *second = shared(self, 4096);
    unsigned char *bytes = errand_ffi_buffer_data(first);

    for (size_t i = 0; i < 64 * MIB; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 1021);
    memcpy(errand_ffi_buffer_data(second), bytes, 4096);
    assert_int_equal(errand_ffi_library_create("libz.so.1", &library), ERRAND_OK);
    assert_int_equal(
        errand_ffi_describe(library, "u64 crc32(u64, bytes, u32)", &crc, NULL),
        ERRAND_OK);
    const errand_ffi_value arguments[] = {errand_ffi_u(0), errand_ffi_buffer_value(first),
                                          errand_ffi_u(64 * MIB)};

    assert_int_equal(errand_spec_call(&spec, crc, arguments, 3, NULL), ERRAND_OK);
    assert_true(run(self, &spec).number == crc32(0, bytes, 64 * MIB));
    errand_ffi_library_abandon(&library);
    errand_ffi_function_abandon(&crc);

    assert_int_equal(errand_ffi_library_create(NULL, &library), ERRAND_OK);
    assert_int_equal(
        errand_ffi_describe(library, "i32 memcmp(bytes, bytes, u64)", &compare, NULL),
        ERRAND_OK);
    const errand_ffi_value both[] = {errand_ffi_buffer_value(first),
                                     errand_ffi_buffer_value(second), errand_ffi_u(4096)};

    assert_int_equal(errand_spec_call(&spec, compare, both, 3, NULL), ERRAND_OK);
    assert_true(run(self, &spec).number == 0);
    bytes[4095]++;
    assert_int_equal(errand_spec_call(&spec, compare, both, 3, NULL), ERRAND_OK);
    assert_true(run(self, &spec).number != 0);
    errand_ffi_library_abandon(&library);
    errand_ffi_function_abandon(&compare);
    errand_ffi_buffer_abandon(&first);
    errand_ffi_buffer_abandon(&second);
    dlclose(zlib);
}

/* A probe of the hostile object whose request lies in the region. */
static heard
probe(rig *self, errand_ffi_buffer *buffer, const hostile_request *request)
{
    errand_spec spec;

    memcpy(errand_ffi_buffer_data(buffer), request, sizeof *request);
    assert_int_equal(errand_spec_plugin_buffer(&spec, test_reachable(ERRAND_TEST_HOSTILE),
                                               "probe", buffer),
                     ERRAND_OK);
    return run(self, &spec);
}

static void
no_worker_can_write_there(void **state) /* S26 */
{
    rig *self = *state;
    hostile_request request = {.name = "write request"};
    heard news;

    rig_begin(self);
    errand_ffi_buffer *buffer = shared(self, sizeof request);

    news = probe(self, buffer, &request);
    assert_int_equal(news.outcome, ERRAND_CRASHED);
    assert_int_equal(news.signal_number, SIGSEGV);
    assert_memory_equal(errand_ffi_buffer_data(buffer), &request, sizeof request);
    request = (hostile_request){.name = "protect request"};
    news = probe(self, buffer, &request);
    assert_int_equal(news.outcome, ERRAND_COMPLETED);
    assert_int_equal((int64_t)news.number, -1);
    assert_memory_equal(errand_ffi_buffer_data(buffer), &request, sizeof request);
    /* A hole that a worker makes would be seen by all. */
    request = (hostile_request){.name = "call",
                                .number = SYS_madvise,
                                .arguments = {HOSTILE_REQUEST, 4096, MADV_REMOVE}};
    news = probe(self, buffer, &request);
    assert_true(news.outcome == ERRAND_CRASHED || (int64_t)news.number == -1);
    assert_memory_equal(errand_ffi_buffer_data(buffer), &request, sizeof request);
    errand_ffi_buffer_abandon(&buffer);
}

static void
a_buffer_that_is_out_stays_where_it_is(void **state) /* S22, S26 */
{
    rig *self = *state;
    errand_spec spec;
    heard news = {.count = 0};

    rig_begin(self);
    errand_ffi_buffer *buffer = shared(self, 5000);
    void *data = errand_ffi_buffer_data(buffer);
    errand_ffi_buffer *other;

    memset(data, 2, 5000);
    spec = sum_spec(buffer);
    assert_true(errand_ffi_buffer_pinned(buffer));
    assert_int_equal(errand_ffi_buffer_resize(buffer, 10000), ERRAND_EBUSY);
    rig_start_spec(self, 0, &spec);
    assert_int_equal(errand_ffi_buffer_resize(buffer, 10000), ERRAND_EBUSY);
    await_all(self, &news, 1);
    assert_true(news.number == 10000);
    assert_int_equal(errand_ffi_buffer_resize(buffer, 10000), ERRAND_OK);
    assert_memory_equal(errand_ffi_buffer_data(buffer), (char *)data + 1, 1);
    spec = sum_spec(buffer);
    errand_ffi_buffer_abandon(&buffer); /* its bytes are taken until the call is over */
    other = shared(self, 4096);
    memset(errand_ffi_buffer_data(other), 9, 4096);
    assert_true(run(self, &spec).number == 10000);
    errand_ffi_buffer_abandon(&other);
}

static void
memory_of_a_buffer_before_is_zeroed_and_used_again(void **state) /* S26 */
{
    rig *self = *state;
    errand_ffi_buffer *buffers[5], *more = NULL;
    void *second;

    self->policy.shared_in_bytes = 4 * 4096 + 1; /* five pages */
    rig_begin(self);
    for (int i = 0; i < 5; i++) {
        buffers[i] = shared(self, 4096);
        memset(errand_ffi_buffer_data(buffers[i]), 1, 4096);
    }
    assert_int_equal(errand_sandbox_buffer(self->executor, 1, &more), ERRAND_ENOMEM);
    second = errand_ffi_buffer_data(buffers[1]);
    errand_ffi_buffer_abandon(&buffers[1]);
    errand_ffi_buffer_abandon(&buffers[3]);
    assert_int_equal(errand_sandbox_buffer(self->executor, 4097, &more), ERRAND_ENOMEM);
    errand_ffi_buffer_abandon(&buffers[2]);
    more = shared(self, 2 * 4096);
    assert_ptr_equal(errand_ffi_buffer_data(more), second);
    for (size_t i = 0; i < 2 * 4096; i++)
        assert_int_equal(((char *)errand_ffi_buffer_data(more))[i], 0);
    buffers[2] = shared(self, 1);
    assert_int_equal(errand_sandbox_buffer(self->executor, 1, &buffers[1]),
                     ERRAND_ENOMEM);
    errand_ffi_buffer_abandon(&more);
    errand_ffi_buffer_abandon(&buffers[0]);
    errand_ffi_buffer_abandon(&buffers[2]);
    errand_ffi_buffer_abandon(&buffers[4]);
    more = shared(self, 5 * 4096);
    errand_ffi_buffer_abandon(&more);
    errand_testing_fail_allocation(1);
    assert_int_equal(errand_sandbox_buffer(self->executor, 1, &more), ERRAND_ENOMEM);
    errand_testing_fail_allocation(2);
    assert_int_equal(errand_sandbox_buffer(self->executor, 1, &more), ERRAND_ENOMEM);
    errand_testing_fail_allocation(0);
}

static void
what_cannot_be_borrowed_is_refused(void **state) /* S26 */
{
    rig *self = *state;
    errand_executor *other, *threads;
    errand_sandbox_config config;
    errand_ffi_buffer *buffer = NULL, *foreign, *own;
    errand_ffi_library *library;
    errand_ffi_function *compare;
    errand_ffi_error error = {.column = 0};
    errand_identity identity;
    errand_spec spec;

    rig_begin(self);
    config = self->config;
    assert_int_equal(
        errand_sandbox_create(&config, &other, self->text, sizeof self->text), ERRAND_OK);
    assert_int_equal(errand_sandbox_buffer(other, 100, &foreign), ERRAND_OK);
    spec = sum_spec(foreign);
    assert_int_equal(errand_start(self->lease, &spec, NULL, &identity), ERRAND_EINVAL);
    spec.held_job->drop(spec.state);
    own = shared(self, 100);
    assert_int_equal(errand_ffi_library_create(NULL, &library), ERRAND_OK);
    assert_int_equal(
        errand_ffi_describe(library, "i32 memcmp(bytes, bytes, u64)", &compare, NULL),
        ERRAND_OK);
    const errand_ffi_value both[] = {errand_ffi_buffer_value(own),
                                     errand_ffi_buffer_value(foreign), errand_ffi_u(9)};
    assert_int_equal(errand_spec_call(&spec, compare, both, 3, &error), ERRAND_EINVAL);
    assert_int_equal(error.argument, 2);
    assert_false(errand_ffi_buffer_pinned(own));
    errand_ffi_function_abandon(&compare);
    errand_ffi_library_abandon(&library);
    errand_ffi_buffer_abandon(&own);
    errand_ffi_buffer_abandon(&foreign);
    errand_executor_abandon(&other);
    self->policy.shared_in_bytes = 0;
    assert_int_equal(
        errand_sandbox_create(&config, &other, self->text, sizeof self->text), ERRAND_OK);
    assert_int_equal(errand_sandbox_buffer(other, 100, &buffer), ERRAND_EUNSUPPORTED);
    errand_executor_abandon(&other);
    assert_int_equal(errand_manual_create(NULL, &threads), ERRAND_OK);
    assert_int_equal(errand_sandbox_buffer(threads, 100, &buffer), ERRAND_EINVAL);
    errand_executor_abandon(&threads);
    assert_int_equal(errand_sandbox_buffer(NULL, 100, &buffer), ERRAND_EINVAL);
    assert_int_equal(errand_sandbox_buffer(self->executor, 0, &buffer), ERRAND_EINVAL);
    assert_int_equal(errand_sandbox_buffer(self->executor, 1, NULL), ERRAND_EINVAL);
    assert_int_equal(errand_sandbox_buffer(self->executor, 97 * MIB, &buffer),
                     ERRAND_ENOMEM);
    assert_null(buffer);
    assert_int_equal(errand_spec_plugin_buffer(&spec, "/x.so", "y", NULL), ERRAND_EINVAL);
    assert_false(errand_ffi_buffer_shared(NULL));
    errand_ffi_buffer_pin(NULL);
    errand_ffi_buffer_unpin(NULL);
    own = shared(self, 100);
    errand_testing_fail_allocation(1);
    assert_int_equal(errand_spec_plugin_buffer(&spec, "/x.so", "y", own), ERRAND_ENOMEM);
    errand_testing_fail_allocation(0);
    assert_false(errand_ffi_buffer_pinned(own));
    errand_ffi_buffer_abandon(&own);
}

static void
a_buffer_outlives_its_sandbox(void **state) /* S26 */
{
    rig *self = *state;
    errand_spec spec;

    rig_begin(self);
    errand_ffi_buffer *buffer = shared(self, 5000);
    unsigned char *bytes = errand_ffi_buffer_data(buffer);

    spec = sum_spec(buffer);
    memset(bytes, 3, 5000);
    rig_end(self);
    bytes[4999] = 4;
    assert_int_equal(bytes[0], 3);
    assert_int_equal(errand_ffi_buffer_resize(buffer, 9000), ERRAND_EBUSY);
    spec.held_job->drop(spec.state);
    assert_int_equal(errand_ffi_buffer_resize(buffer, 9000), ERRAND_OK);
    bytes = errand_ffi_buffer_data(buffer);
    assert_int_equal(bytes[4999], 4);
    errand_ffi_buffer_abandon(&buffer);
}

/* A call of its own bytes on a pool of threads, and copied where the buffer is nobody's. */
static void
buffers_give_the_same_wherever_they_are_of(void **state)
{
    rig *self = *state;
    errand_executor *threads;
    errand_ffi_buffer *plain;
    errand_spec spec;

    rig_begin(self);
    errand_ffi_buffer *buffer = shared(self, 5000);

    memset(errand_ffi_buffer_data(buffer), 3, 5000);
    assert_int_equal(errand_ffi_buffer_create(5000, &plain), ERRAND_OK);
    memset(errand_ffi_buffer_data(plain), 4, 5000);
    assert_false(errand_ffi_buffer_shared(plain));
    spec = sum_spec(plain);
    assert_true(run(self, &spec).number == 20000);
    assert_int_equal(errand_lease_shutdown(&self->lease, UINT64_MAX, NULL), ERRAND_OK);
    assert_int_equal(errand_blocking_create(NULL, &threads), ERRAND_OK);
    assert_int_equal(errand_attach(self->runtime, threads, 0, &self->lease), ERRAND_OK);
    spec = sum_spec(plain);
    assert_true(run(self, &spec).number == 20000);
    spec = sum_spec(buffer);
    assert_true(run(self, &spec).number == 15000);
    errand_ffi_buffer_abandon(&plain);
    errand_ffi_buffer_abandon(&buffer);
    errand_executor_abandon(&threads);
}

static void
a_forked_child_can_let_go_of_a_buffer(void **state)
{
    rig *self = *state;
    pid_t child;
    int status;

    rig_begin(self);
    errand_ffi_buffer *buffer = shared(self, 5000), *more = NULL;

    memset(errand_ffi_buffer_data(buffer), 3, 5000);
    child = fork();
    if (child == 0) {
        bool fine = errand_ffi_buffer_resize(buffer, 9000) == ERRAND_ENOMEM &&
                    errand_sandbox_buffer(self->executor, 9, &more) == ERRAND_EFORKED;

        errand_ffi_buffer_abandon(&buffer);
        _exit(fine ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    errand_spec spec = sum_spec(buffer);
    assert_true(run(self, &spec).number == 15000);
    errand_ffi_buffer_abandon(&buffer);
}

int
main(void)
{
#define WITH_REGION(test)                                                                \
    cmocka_unit_test_setup_teardown(test, region_setup, rig_teardown)
    static const struct CMUnitTest tests[] = {
        WITH_REGION(sixty_four_mebibytes_are_read_where_they_lie),
        WITH_REGION(workers_have_their_memory_beside_the_region),
        WITH_REGION(a_described_call_reads_two_buffers_where_they_lie),
        WITH_REGION(no_worker_can_write_there),
        WITH_REGION(a_buffer_that_is_out_stays_where_it_is),
        WITH_REGION(memory_of_a_buffer_before_is_zeroed_and_used_again),
        WITH_REGION(what_cannot_be_borrowed_is_refused),
        WITH_REGION(a_buffer_outlives_its_sandbox),
        WITH_REGION(buffers_give_the_same_wherever_they_are_of),
        WITH_REGION(a_forked_child_can_let_go_of_a_buffer),
    };
    return test_group("workers/sandbox/pool_region", tests, NULL, NULL);
}
