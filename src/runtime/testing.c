/* SPDX-License-Identifier: MIT */
/* Design notes: what only tests need of a runtime; see errand/testing.h. */
#include "errand/testing.h"
#include "runtime/runtime.h"

errand_status
errand_testing_clock(errand_runtime *runtime, uint64_t ns)
{
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG((runtime->config.flags & ERRAND_RUNTIME_TEST_CLOCK) != 0 &&
                           !errand__seeded(runtime),
                       ERRAND_EUNSUPPORTED, "the runtime has no test clock");
    ERRAND_REQUIRE_ARG(ns <= UINT64_MAX - runtime->scheduler.now, ERRAND_EINVAL,
                       "the clock would overflow");
    runtime->scheduler.now += ns;
    atomic_store_explicit(&runtime->block->test_clock, runtime->scheduler.now,
                          memory_order_release); /* Pairs: test-clock */
    return ERRAND_OK;
}

errand_status
errand_testing_counters(errand_runtime *runtime, uint64_t next_wait,
                        uint64_t next_generation, uint64_t next_operation)
{
    ERRAND__ENTER(runtime);
    if (next_wait != 0)
        runtime->registrar.next_wait = next_wait;
    if (next_generation != 0)
        runtime->registrar.next_generation = next_generation;
    if (next_operation != 0)
        runtime->registrar.next_operation = next_operation;
    return ERRAND_OK;
}

/* A forged completion takes the way of O46: only all five fields of an active wait wake it. */
errand_status
errand_testing_deliver(errand_runtime *runtime, const errand_identity *identity,
                       errand_outcome outcome, errand_payload payload, bool *out_woke)
{
    errand__record *record;
    errand__resume *resume;
    bool calling;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(identity != NULL && out_woke != NULL, ERRAND_EINVAL,
                       "identity and out_woke are needed");
    record = errand__registrar_find(&runtime->registrar, identity);
    resume = record == NULL ? NULL : record->resume;
    *out_woke = resume != NULL;
    if (resume == NULL) {
        errand__count(&runtime->stale);
        calling = errand__calls_begin(runtime);
        errand_payload_drop(&payload);
        errand__calls_end(runtime, calling);
        return ERRAND_OK;
    }
    resume->completion = (errand_completion){.identity = *identity,
                                             .wait = record->wait,
                                             .outcome = outcome,
                                             .payload = payload,
                                             .operation = errand__record_name(record),
                                             .message = ""};
    errand__wait_complete(runtime, resume);
    calling = errand__calls_begin(runtime);
    errand__leak_count(runtime, errand__record_drop_decoder(record));
    errand__calls_end(runtime, calling);
    return ERRAND_OK;
}
