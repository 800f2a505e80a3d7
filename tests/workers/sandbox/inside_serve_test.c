/* SPDX-License-Identifier: MIT */
/* Goal: the conversation of a worker: results of any size arrive whole and in order, errors with
 * their text, borrowed input uncopied, calls by a signature, callbacks; and orders are obeyed.
 * Method: the real worker and a host that speaks the other half word by word (inside_rig). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "foreign/foreign.h"
#include "inside_rig.h"
#include "reach.h"

/* Up to MISSING they are the plugin's. */
enum { ECHO, GROWS, REFUSES, SUMS, WAITS, MISSING, NO_LIBRARY, ABS, SQRT, QSORT, BAD };
static errand_entry entries[] = {
    [ECHO] = {NULL, "echo", NULL},
    [GROWS] = {NULL, "grows", NULL},
    [REFUSES] = {NULL, "refuses", NULL},
    [SUMS] = {NULL, "sums", NULL},
    [WAITS] = {NULL, "waits", NULL},
    [MISSING] = {NULL, "there_is_none", NULL},
    [NO_LIBRARY] = {"/nowhere/at/all.so", "echo", NULL},
    [ABS] = {NULL, "labs", "i64(i64)"},
    [SQRT] = {NULL, "sqrt", "f64(f64)"},
    [QSORT] = {NULL, "qsort", "void(inout bytes, u64, u64, fn(i32(pointer, pointer)))"},
    [BAD] = {NULL, "labs", "i64(union)"},
};

static errand_sandbox_policy
policy_of(uint32_t promises)
{
    for (int i = ECHO; i <= MISSING; i++)
        entries[i].library = test_reachable(ERRAND_TEST_PLUGIN);
    return (errand_sandbox_policy){.struct_size = sizeof(errand_sandbox_policy),
                                   .promises = promises,
                                   .entries = entries,
                                   .entry_count = sizeof entries / sizeof entries[0]};
}

static void
start(inside *worker, uint32_t promises, size_t response_bytes, size_t body_bytes)
{
    errand_sandbox_policy policy = policy_of(promises);
    inside_start_ready(worker, &(inside_start_how){.policy = &policy,
                                                   .response_bytes = response_bytes,
                                                   .body_bytes = body_bytes});
}

static void
entries_that_are_not_there_are_told(void **state)
{
    (void)state;
    inside worker;
    start(&worker, ERRAND_PROMISE_PURE, 0, 0);
    const uint8_t *told = worker.response->entry_state;
    for (int i = ECHO; i <= WAITS; i++)
        assert_int_equal(told[i], ERRAND__ENTRY_FINE);
    assert_int_equal(told[MISSING], ERRAND__ENTRY_NO_SYMBOL);
    assert_int_equal(told[NO_LIBRARY], ERRAND__ENTRY_NO_LIBRARY);
    assert_int_equal(told[ABS], ERRAND__ENTRY_FINE);
    assert_int_equal(told[BAD], ERRAND__ENTRY_SIGNATURE);
    assert_non_null(strstr(worker.response->entry_text, "there_is_none"));
    /* Asked all the same, the answer is an error and the worker goes on. */
    inside_ask(&worker, MISSING, "x", 1);
    assert_int_equal(inside_answer(&worker, NULL), ERRAND__WIRE_ERROR);
    inside_ask(&worker, 4000, "x", 1);
    assert_int_equal(inside_answer(&worker, NULL), ERRAND__WIRE_ERROR);
    inside_ask(&worker, ECHO, "hello", 5);
    uint32_t length;
    assert_int_equal(inside_answer(&worker, &length), ERRAND__WIRE_DONE);
    assert_int_equal(length, 5);
    assert_memory_equal(inside_bytes(&worker), "hello", 5);
    inside_end(&worker);
}

/* Takes a whole result, piece by piece, looks at every byte; answers how many pieces there were. */
static unsigned
take_growing(inside *worker, uint64_t wanted)
{
    uint64_t got = 0;
    for (unsigned pieces = 1;; pieces++) {
        uint32_t length, status = inside_answer(worker, &length);
        const unsigned char *bytes = inside_bytes(worker);
        assert_true(length <= worker->request->response_size);
        for (uint32_t i = 0; i < length; i++) {
            if (bytes[i] != (got + i) % 251)
                fail_msg("byte %llu is wrong", (unsigned long long)(got + i));
        }
        got += length;
        if (status == ERRAND__WIRE_DONE) {
            assert_int_equal(got, wanted);
            return pieces;
        }
        assert_int_equal(status, ERRAND__WIRE_MORE);
        inside_command(worker, ERRAND__WIRE_GO_ON);
    }
}

/* C-F4 (the worker's half): byte-exact at and around the size of the ring, and far above it. */
static void
results_of_any_size_arrive_whole(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {
        0, 1, 65535, 65536, 65537, 131072, UINT64_C(1) << 20, 104857600};
    inside worker;
    start(&worker, ERRAND_PROMISE_PURE, 65536, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t wanted =
            i + 1 < sizeof sizes / sizeof sizes[0] ? sizes[i] : test_scaled(sizes[i]);
        inside_ask(&worker, GROWS, &wanted, sizeof wanted);
        unsigned pieces = take_growing(&worker, wanted);
        uint64_t ring = worker.request->response_size;
        assert_int_equal(pieces, wanted == 0 ? 1 : (wanted + ring - 1) / ring);
    }
    inside_end(&worker);
}

static void
more_than_out_max_is_refused_in_the_worker(void **state)
{
    (void)state;
    inside worker;
    start(&worker, ERRAND_PROMISE_PURE, 65536, 0);
    worker.request->out_max = 3000;
    uint64_t wanted = 3000;
    inside_ask(&worker, GROWS, &wanted, sizeof wanted);
    take_growing(&worker, wanted);
    wanted = 3001;
    inside_ask(&worker, GROWS, &wanted, sizeof wanted);
    uint32_t length;
    assert_int_equal(inside_answer(&worker, &length), ERRAND__WIRE_ERROR);
    errand__wire_error error;
    memcpy(&error, inside_bytes(&worker), sizeof error);
    assert_int_equal(error.code, EFBIG);
    inside_end(&worker);
}

static void
errors_come_with_code_errno_and_text(void **state)
{
    (void)state;
    inside worker;
    start(&worker, ERRAND_PROMISE_PURE, 0, 0);
    inside_ask(&worker, REFUSES, NULL, 0);
    uint32_t length;
    assert_int_equal(inside_answer(&worker, &length), ERRAND__WIRE_ERROR);
    errand__wire_error error;
    memcpy(&error, inside_bytes(&worker), sizeof error);
    assert_int_equal(error.code, -7);
    assert_int_equal(error.error, EDOM);
    assert_int_equal(length, 8 + strlen("this one is never content"));
    assert_memory_equal(error.text, "this one is never content", length - 8);
    inside_end(&worker);
}

static void
a_borrowed_region_is_read_where_it_lies(void **state)
{
    (void)state;
    inside worker;
    errand_sandbox_policy policy = policy_of(ERRAND_PROMISE_PURE);
    inside_start_ready(&worker,
                       &(inside_start_how){.policy = &policy, .input_bytes = 2 << 20});
    memset(worker.input + (1 << 20), 3, 1 << 20);
    worker.request->input_offset = 1 << 20;
    worker.request->input_size = 1 << 20;
    inside_ask(&worker, SUMS, "ignored", 7);
    uint32_t length;
    assert_int_equal(inside_answer(&worker, &length), ERRAND__WIRE_DONE);
    uint64_t sum;
    memcpy(&sum, inside_bytes(&worker), sizeof sum);
    assert_int_equal(sum, 3u << 20);
    inside_end(&worker);
}

static void
a_cancel_is_seen_by_the_call_that_it_is_for(void **state)
{
    (void)state;
    inside worker;
    start(&worker, ERRAND_PROMISE_PURE, 0, 0);
    for (int i = 0; i < 3; i++) {
        inside_ask(&worker, WAITS, NULL, 0);
        /* That of the call before has no meaning any more. */
        uint64_t now = errand__wire_await_answer(&worker.waiter, worker.request,
                                                 worker.response, worker.seen, 5000000);
        assert_true(now == worker.seen);
        atomic_store_explicit(&worker.request->cancelled, worker.sequence,
                              memory_order_relaxed);
        uint32_t length;
        assert_int_equal(inside_answer(&worker, &length), ERRAND__WIRE_DONE);
        assert_memory_equal(inside_bytes(&worker), "yes", 3);
    }
    inside_end(&worker);
}

static void
an_order_to_exit_is_obeyed(void **state)
{
    (void)state;
    inside worker;
    start(&worker, ERRAND_PROMISE_PURE, 0, 0);
    inside_ask(&worker, ECHO, "a", 1);
    assert_int_equal(inside_answer(&worker, NULL), ERRAND__WIRE_DONE);
    inside_command(&worker, ERRAND__WIRE_EXIT);
    int status = inside_wait(&worker);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    inside_end(&worker);
}

/* In the middle of a result too. */
static void
an_order_to_exit_ends_an_unfinished_result(void **state)
{
    (void)state;
    inside worker;
    start(&worker, ERRAND_PROMISE_PURE, 4096, 0);
    uint64_t wanted = 100000;
    inside_ask(&worker, GROWS, &wanted, sizeof wanted);
    assert_int_equal(inside_answer(&worker, NULL), ERRAND__WIRE_MORE);
    inside_command(&worker, ERRAND__WIRE_EXIT);
    int status = inside_wait(&worker);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    inside_end(&worker);
}

static void
a_command_out_of_place_ends_it(void **state)
{
    (void)state;
    inside worker;
    start(&worker, ERRAND_PROMISE_PURE, 0, 0);
    inside_command(&worker, ERRAND__WIRE_GO_ON);
    int status = inside_wait(&worker);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == ERRAND__SETUP_WIRE);
    inside_end(&worker);
}

/* Sequences go on after the last one without a 0. */
static void
the_first_sequence_comes_after_the_last(void **state)
{
    (void)state;
    inside worker;
    start(&worker, ERRAND_PROMISE_PURE, 0, 0);
    worker.sequence = ERRAND__WIRE_SEQUENCES - 3;
    for (int i = 0; i < 6; i++) {
        inside_ask(&worker, ECHO, &i, sizeof i);
        assert_int_equal(inside_answer(&worker, NULL), ERRAND__WIRE_DONE);
        assert_memory_equal(inside_bytes(&worker), &i, sizeof i);
    }
    assert_int_equal(worker.sequence, 4);
    inside_end(&worker);
}

/* ---- calls by a signature: requests as src/foreign writes them */
typedef struct request {
    unsigned char bytes[1024];
    size_t size;
} request;

static void
add_word(request *self, uint64_t word)
{
    memcpy(self->bytes + self->size, &word, sizeof word);
    self->size += sizeof word;
}

static void
begin(request *self, uint32_t count)
{
    self->size = 0;
    add_word(self, FFI_WIRE_VERSION | (uint64_t)count << 32);
    add_word(self, 0);
}

static void
finish(request *self)
{
    uint64_t size = self->size;
    memcpy(self->bytes + 8, &size, sizeof size);
}

static uint64_t
word_at(const inside *worker, size_t index)
{
    uint64_t word;
    memcpy(&word, inside_bytes(worker) + index * 8, sizeof word);
    return word;
}

static void
functions_are_called_by_their_signature(void **state)
{
    (void)state;
    inside worker;
    request call;
    start(&worker, ERRAND_PROMISE_PURE, 0, 0);
    begin(&call, 1);
    add_word(&call, (uint64_t)INT64_C(-1234567890123));
    finish(&call);
    inside_ask(&worker, ABS, call.bytes, call.size);
    uint32_t length, status = inside_answer(&worker, &length);
    if (status != ERRAND__WIRE_DONE)
        fail_msg("status %u: %.200s", status, (const char *)inside_bytes(&worker) + 8);
    assert_int_equal(word_at(&worker, 1), 1234567890123);
    double two = 2.0, root;
    uint64_t bits;
    memcpy(&bits, &two, sizeof bits);
    begin(&call, 1);
    add_word(&call, bits);
    finish(&call);
    inside_ask(&worker, SQRT, call.bytes, call.size);
    assert_int_equal(inside_answer(&worker, &length), ERRAND__WIRE_DONE);
    bits = word_at(&worker, 1);
    memcpy(&root, &bits, sizeof root);
    assert_true(root > 1.41421356 && root < 1.41421357);
    /* What does not fit its signature is an error, not an end. */
    inside_ask(&worker, ABS, "nonsense", 8);
    assert_int_equal(inside_answer(&worker, &length), ERRAND__WIRE_ERROR);
    inside_end(&worker);
}

/* qsort of bytes, whose comparison is asked of the host. */
static void
request_sort(request *call, const char *bytes, size_t size)
{
    begin(call, 4);
    add_word(call, FFI_TAG_INLINE);
    add_word(call, size);
    call->size = (call->size + 15) & ~(size_t)15;
    memset(call->bytes + call->size, 0, (size + 7) & ~(size_t)7);
    memcpy(call->bytes + call->size, bytes, size);
    call->size += (size + 7) & ~(size_t)7;
    add_word(call, size);
    add_word(call, 1);
    add_word(call, FFI_TAG_ASK);
    add_word(call, 0);
    finish(call);
}

static void
callbacks_are_asked_of_the_host(void **state)
{
    (void)state;
    inside worker;
    request call;
    start(&worker, ERRAND_PROMISE_CALLBACK, 0, 0);
    if (worker.response->entry_state[QSORT] != ERRAND__ENTRY_FINE)
        fail_msg("%s", worker.response->entry_text);
    request_sort(&call, "hello", 5);
    inside_ask(&worker, QSORT, call.bytes, call.size);
    unsigned asked = 0;
    uint32_t length, status;
    while ((status = inside_answer(&worker, &length)) == ERRAND__WIRE_CALLBACK) {
        asked++;
        assert_true(length >= 24);
        assert_int_equal(word_at(&worker, 0) >> 32, 3); /* the parameter */
        /* The addresses are the worker's: the host can but compare them.  A stable order. */
        uint64_t answer[2] = {FFI_WIRE_VERSION, word_at(&worker, 1) < word_at(&worker, 2)
                                                    ? (uint64_t)INT64_C(-1)
                                                    : 1};
        memcpy((unsigned char *)worker.request + worker.request->return_offset, answer,
               sizeof answer);
        worker.request->return_used = sizeof answer;
        inside_command(&worker, ERRAND__WIRE_RETURN);
    }
    if (status != ERRAND__WIRE_DONE)
        fail_msg("status %u: %.200s", status, (const char *)inside_bytes(&worker) + 8);
    assert_true(asked >= 4);
    inside_end(&worker);
}

/* Without the promise there is no page that is written and executed, and no callback. */
static void
callbacks_need_their_promise(void **state)
{
    (void)state;
    inside worker;
    request call;
    start(&worker, ERRAND_PROMISE_PURE, 0, 0);
    request_sort(&call, "hello", 5);
    inside_ask(&worker, QSORT, call.bytes, call.size);
    uint32_t length;
    assert_int_equal(inside_answer(&worker, &length), ERRAND__WIRE_ERROR);
    inside_end(&worker);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_that_are_not_there_are_told),
        cmocka_unit_test(results_of_any_size_arrive_whole),
        cmocka_unit_test(more_than_out_max_is_refused_in_the_worker),
        cmocka_unit_test(errors_come_with_code_errno_and_text),
        cmocka_unit_test(a_borrowed_region_is_read_where_it_lies),
        cmocka_unit_test(a_cancel_is_seen_by_the_call_that_it_is_for),
        cmocka_unit_test(an_order_to_exit_is_obeyed),
        cmocka_unit_test(an_order_to_exit_ends_an_unfinished_result),
        cmocka_unit_test(a_command_out_of_place_ends_it),
        cmocka_unit_test(the_first_sequence_comes_after_the_last),
        cmocka_unit_test(functions_are_called_by_their_signature),
        cmocka_unit_test(callbacks_are_asked_of_the_host),
        cmocka_unit_test(callbacks_need_their_promise),
    };
    return test_group("workers/sandbox/inside_serve", tests, NULL, NULL);
}
