/* SPDX-License-Identifier: MIT */
/* Goal: one delivery goes to decoder, handler and continuation, in this order, and a payload that one
 * of them took is not there for those behind.
 * Method: each of the three writes itself down and, if told so, takes the payload or reads it. */
#include <string.h>
#include "world.h"

typedef struct delivery {
    char order[8];
    char taker; /* which of the three takes the payload; 0 = nobody */
    errand_status read[128];
    char message[256];
    errand_payload taken;
} delivery;

static delivery heard;
static const errand_payload_type another = {.name = "another"};

static void
write_down(char who, errand_completion *completion)
{
    void *data;

    heard.order[strlen(heard.order)] = who;
    heard.read[(int)who] =
        errand_completion_read(completion, &world_payload_type, &data, NULL);
    if (heard.read[(int)who] == ERRAND_EDECODE)
        strcpy(heard.message, completion->message);
    if (heard.taker == who)
        heard.taken = errand_completion_take(completion);
}

static void
decode(void *own_data, errand_completion *completion, errand_verdict *out_verdict)
{
    (void)own_data;
    (void)out_verdict;
    write_down('d', completion);
}

static void
handle(void *arg, errand_completion *completion)
{
    (void)arg;
    write_down('h', completion);
}

static void
resume(void *own_data, errand_runtime *runtime, const errand_news *news)
{
    errand_completion completion = *news->completion;

    (void)own_data;
    (void)runtime;
    write_down('c', &completion);
}

static const errand_decoder_type decoder = {.struct_size = sizeof decoder,
                                            .decode = decode};

/* One operation with all three, until the continuation was resumed. */
static void
deliver(test_world *world, world_job *job, char taker)
{
    const errand_continuation continuation = {.resume = resume};
    errand_spec spec = world_spec(job);
    errand_prepared prepared;
    errand_identity identity;
    errand_binding binding;
    errand_submission submission;
    errand_wait wait;

    heard = (delivery){.taker = taker};
    spec.held_decoder = &decoder;
    assert_int_equal(errand_prepare(world->runtime, &spec, &prepared), ERRAND_OK);
    assert_int_equal(errand_issue(world->runtime, 1, NULL, &identity), ERRAND_OK);
    assert_int_equal(errand_bind(world->runtime, &identity, &prepared, &binding),
                     ERRAND_OK);
    assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
    assert_int_equal(errand_await(&wait, &continuation), ERRAND_OK);
    assert_int_equal(errand_submit(world->lease, &submission), ERRAND_OK);
    world_step(world, 1);
    assert_int_equal(errand_drain(world->runtime, 1, handle, NULL, NULL), ERRAND_OK);
    assert_string_equal(heard.order, "dh");
    assert_int_equal(job->dropped, 1);
    assert_int_equal(errand_drive(world->runtime, NULL, NULL), ERRAND_OK);
    assert_string_equal(heard.order, "dhc");
}

static void
decoder_handler_and_continuation_hear_in_this_order(void **state)
{
    /* O23, O32 */
    world_job job = {.give_payload = true};

    deliver(*state, &job, 0);
    assert_int_equal(heard.read['d'], ERRAND_OK);
    assert_int_equal(heard.read['h'], ERRAND_OK);
    assert_int_equal(heard.read['c'], ERRAND_OK);
    assert_int_equal(job.payload_dropped, 1);
}

static void
a_payload_that_the_handler_took_is_gone_for_the_continuation(void **state)
{
    world_job job = {.give_payload = true};

    deliver(*state, &job, 'h');
    assert_int_equal(heard.read['h'], ERRAND_OK);
    assert_int_equal(heard.read['c'], ERRAND_EDECODE);
    assert_non_null(strstr(heard.message, "taken before"));
    assert_int_equal(job.payload_dropped, 0);
    errand_payload_drop(&heard.taken);
    assert_int_equal(job.payload_dropped, 1);
}

static void
a_payload_that_the_decoder_took_is_gone_for_both(void **state)
{
    world_job job = {.give_payload = true};

    deliver(*state, &job, 'd');
    assert_int_equal(heard.read['d'], ERRAND_OK);
    assert_int_equal(heard.read['h'], ERRAND_EDECODE);
    assert_int_equal(heard.read['c'], ERRAND_EDECODE);
    errand_payload_drop(&heard.taken);
    assert_int_equal(job.payload_dropped, 1);
}

static void
what_cannot_be_read_says_why(void **state)
{
    world_job failing = {.answer = 5}, giving = {.give_payload = true};
    errand_completion completion = {.operation = "it", .outcome = ERRAND_COMPLETED};
    void *data;

    deliver(*state, &failing, 0);
    assert_int_equal(heard.read['h'], ERRAND_EDECODE);
    assert_non_null(strstr(heard.message, "did not complete"));
    deliver(*state, &giving, 0);
    completion.payload = (errand_payload){&world_payload_type, &giving, sizeof giving};
    assert_int_equal(errand_completion_read(&completion, &another, &data, NULL),
                     ERRAND_EDECODE);
    assert_non_null(strstr(completion.message, "not 'another'"));
}

#define WITH_WORLD(test)                                                                 \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(decoder_handler_and_continuation_hear_in_this_order),
        WITH_WORLD(a_payload_that_the_handler_took_is_gone_for_the_continuation),
        WITH_WORLD(a_payload_that_the_decoder_took_is_gone_for_both),
        WITH_WORLD(what_cannot_be_read_says_why),
    };
    return test_group("runtime/delivery", tests, NULL, NULL);
}
