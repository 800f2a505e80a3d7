/* SPDX-License-Identifier: MIT */
/* Design notes: an interpreter's side, and who may touch it.
 *
 * A runtime belongs to one thread, named by a word that every call compares with its own.
 * Release stores 0 there, adopt takes it by one compare-exchange, so a runtime can move to
 * another thread but never has two.  A forked child is recognised by a number that the fork
 * handler steps: one load per call (O61). */
#include <string.h>
#include "runtime/kept/checkpoint.h"
#include "runtime/runtime.h"

enum {
    OWED_DEFAULT = 16384
}; /* of a lease: ten thousand that wait, and some that work */

errand_status
errand__runtime_check(const errand_runtime *runtime, const char *function)
{
    uintptr_t owner;

    if (runtime == NULL)
        return errand__misuse(ERRAND_EINVAL, function, "the runtime is NULL");
    if (runtime->fork_epoch != errand__fork_epoch())
        return errand__misuse(ERRAND_EFORKED, function,
                              "the runtime was made by the parent");
    owner = atomic_load_explicit(&runtime->owner,
                                 memory_order_acquire); /* Pairs: runtime-owner */
    if (owner != errand__thread_self())
        return errand__misuse(ERRAND_ETHREAD, function,
                              owner == 0 ? "the runtime was released; adopt it first"
                                         : "this is not the runtime's thread");
    if (runtime->closed)
        return errand__misuse(ERRAND_ECLOSED, function, "the runtime was shut down");
    return ERRAND_OK;
}

static errand_status
config_check(const errand_runtime_config *config)
{
    const uint32_t known = ERRAND_RUNTIME_REFUSE_FOREIGN | ERRAND_RUNTIME_TEST_CLOCK |
                           ERRAND_RUNTIME_PROPAGATE;
    static const char create[] = "errand_runtime_create";
    const char *text;

    ERRAND_REQUIRE_OF(create, config->struct_size == sizeof *config, ERRAND_EINVAL,
                      "config->struct_size must be sizeof(errand_runtime_config)");
    ERRAND_REQUIRE_OF(create, (config->flags & ~known) == 0 && config->reserved_zero == 0,
                      ERRAND_EINVAL, "config->flags has unknown bits");
    ERRAND_REQUIRE_OF(
        create, config->operations_max < (1u << 24) && config->messages < (1u << 24),
        ERRAND_EINVAL, "operations_max and messages must be below 2^24");
    ERRAND_REQUIRE_OF(create, (unsigned)config->order <= ERRAND_ORDER_REPLAY,
                      ERRAND_EINVAL, "config->order is unknown");
    ERRAND_REQUIRE_OF(
        create, (config->order == ERRAND_ORDER_REPLAY) == (config->held_replay != NULL),
        ERRAND_EINVAL, "the order of replays needs held_replay, no other one takes it");
    ERRAND_REQUIRE_OF(create, config->times <= ERRAND_TIMES_NONE, ERRAND_EINVAL,
                      "config->times is unknown");
    ERRAND_REQUIRE_OF(create,
                      config->held_allocator == NULL ||
                          (config->held_allocator->alloc != NULL &&
                           config->held_allocator->free != NULL),
                      ERRAND_EINVAL, "the allocator needs alloc and free");
    ERRAND_REQUIRE_OF(create,
                      config->cycle_ns == 0 || (config->order != ERRAND_ORDER_ARRIVAL &&
                                                config->cycle_ns <= ERRAND__CYCLE_MAX),
                      ERRAND_EINVAL,
                      "config->cycle_ns is at most an hour, and for virtual time only");
    ERRAND_REQUIRE_OF(create,
                      config->held_recorder == NULL || !config->held_recorder->begun,
                      ERRAND_EINVAL, "the recorder has a runtime; open another one");
    if (config->held_replay != NULL) {
        errand_status status = errand__replay_check(config);

        if (status != ERRAND_OK)
            return status;
    }
    if (config->choices == NULL)
        return ERRAND_OK;
    if (errand__choices_check(config->choices, &text) != ERRAND_OK)
        return errand__misuse(ERRAND_EINVAL, create, text);
    ERRAND_REQUIRE_OF(create, config->order != ERRAND_ORDER_ARRIVAL, ERRAND_EUNSUPPORTED,
                      "in arrival order nothing is chosen: leave choices NULL");
    return ERRAND_OK;
}

static void
fill_defaults(errand_runtime_config *config)
{
    if (config->operations_max == 0)
        config->operations_max = 65536;
    if (config->messages == 0)
        config->messages = 256;
    if (config->held_max == 0)
        config->held_max = 64;
    /* A test clock is read, not interpolated: nothing is cheaper. */
    if ((config->flags & ERRAND_RUNTIME_TEST_CLOCK) != 0 &&
        config->times == ERRAND_TIMES_COARSE)
        config->times = ERRAND_TIMES_EXACT;
    if (config->grace_ns == 0)
        config->grace_ns = UINT64_C(1000000000);
    if (config->watchdog_ns == 0)
        config->watchdog_ns = UINT64_C(60000000000);
    /* Which failures were told before the next is real: none may go without its message. */
    if (config->order != ERRAND_ORDER_ARRIVAL &&
        config->messages < config->operations_max)
        config->messages = config->operations_max;
}

/* Fills a zeroed runtime whose id, config and block are set. */
static void
runtime_init(errand_runtime *runtime)
{
    errand__block *block = runtime->block;
    uint64_t now = errand__clock_now();

    block->epoch_ns = now;
    block->times = runtime->config.times;
    block->virtual_time = errand__seeded(runtime);
    if (block->virtual_time)
        errand__traps_offer();
    block->test_time = (runtime->config.flags & ERRAND_RUNTIME_TEST_CLOCK) != 0;
    atomic_store_explicit(&block->test_clock, runtime->config.start_ns,
                          memory_order_release); /* Pairs: test-clock */
    block->records[0].wait = runtime;
    runtime->fork_epoch = errand__fork_epoch();
    runtime->hand_rest = true;
    runtime->foreign_fd = -1;
    runtime->key = errand__key_child(0, "runtime", 0); /* the same with every seed */
    runtime->clock_ns = now;
    runtime->clock_cycles = errand__cycles();
    runtime->ns_per_cycle = 1000.0 / (double)errand__cycles_per_us();
    errand__registrar_init(&runtime->registrar, block->records, block->record_count - 1,
                           runtime->allocator, runtime->id);
    errand__list_init(&runtime->waits);
    errand__list_init(&runtime->cleanups);
    errand__heap_init(&runtime->deadlines, NULL);
    errand__scheduler_init(&runtime->scheduler, &runtime->config, runtime->allocator,
                           &runtime->registrar, &errand__tasks_outside, runtime);
    if (runtime->config.held_replay != NULL)
        errand__replay_begin(runtime);
    errand__record_begin(runtime);
    runtime->config.choices = NULL; /* copied */
    atomic_store_explicit(&runtime->owner, errand__thread_self(), memory_order_release);
}

errand_status
errand_runtime_create(const errand_runtime_config *config, errand_runtime **out_runtime)
{
    errand_runtime_config chosen = {.struct_size = sizeof chosen};
    errand_choices choices = {.struct_size = sizeof choices};
    const errand_allocator *allocator;
    errand_runtime *runtime;
    errand_status status;

    ERRAND_REQUIRE_ARG(out_runtime != NULL, ERRAND_EINVAL, "out_runtime is NULL");
    if (config != NULL) {
        ERRAND_REQUIRE_ARG(config->struct_size == sizeof *config, ERRAND_EINVAL,
                           "config->struct_size must be sizeof(errand_runtime_config)");
        chosen = *config;
        status = errand__checkpoint_configure(&chosen, &choices, __func__);
        if (status == ERRAND_OK)
            status = config_check(&chosen);
        if (status != ERRAND_OK)
            return status;
    }
    fill_defaults(&chosen);
    if (chosen.held_replay != NULL)
        errand__replay_config(&chosen, &choices);
    allocator = chosen.held_allocator;
    runtime = errand__mem_alloc(allocator, sizeof *runtime);
    if (runtime == NULL)
        return ERRAND_ENOMEM;
    runtime->config = chosen;
    runtime->id = errand__registrar_runtime_id();
    if (allocator != NULL) {
        runtime->allocator_copy = *allocator;
        runtime->allocator = &runtime->allocator_copy;
    }
    if (runtime->id == 0) {
        errand__mem_free(allocator, runtime, sizeof *runtime);
        return ERRAND_EEXHAUSTED;
    }
    runtime->block =
        errand__block_create(runtime->id, chosen.operations_max, chosen.messages);
    if (runtime->block == NULL) {
        errand__mem_free(allocator, runtime, sizeof *runtime);
        return ERRAND_ENOMEM;
    }
    runtime_init(runtime);
    if (chosen.held_checkpoint != NULL &&
        errand__checkpoint_apply(runtime) != ERRAND_OK) {
        status = errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL);
        ERRAND_ASSERT(status == ERRAND_OK);
        return ERRAND_ENOMEM;
    }
    *out_runtime = runtime;
    return ERRAND_OK;
}

errand_status
errand_runtime_release(errand_runtime *runtime)
{
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(!runtime->draining && !runtime->driving, ERRAND_EBUSY,
                       "a drain or drive is in progress");
    ERRAND_REQUIRE_ARG(errand__leases_leave(runtime), ERRAND_EBUSY,
                       "requests are under way on this thread");
    runtime->block->cpus = 0; /* the next owner may run elsewhere */
    atomic_store_explicit(&runtime->owner, 0,
                          memory_order_release); /* Pairs: runtime-owner */
    return ERRAND_OK;
}

errand_status
errand_runtime_adopt(errand_runtime *runtime)
{
    uintptr_t nobody = 0;

    ERRAND_REQUIRE_ARG(runtime != NULL, ERRAND_EINVAL, "the runtime is NULL");
    ERRAND_REQUIRE_ARG(runtime->fork_epoch == errand__fork_epoch(), ERRAND_EFORKED,
                       "the runtime was made by the parent");
    if (!atomic_compare_exchange_strong_explicit(
            &runtime->owner, &nobody, errand__thread_self(),
            memory_order_acq_rel, /* Pairs: runtime-owner */
            memory_order_relaxed))
        return errand__misuse(ERRAND_EMISUSE, __func__, "the runtime has an owner");
    if (runtime->fd_wanted && runtime->collectors != 0) { /* descriptors are new */
        int fd;

        (void)errand__leases_descriptor(runtime, &fd);
    }
    return ERRAND_OK;
}

uint64_t
errand__runtime_time(const errand_runtime *runtime)
{
    return runtime->scheduler.real_clock ? errand__clock_now() : runtime->scheduler.now;
}

uint64_t
errand__runtime_read(errand_runtime *runtime)
{
    return runtime->scheduler.audit.inputs ? errand__scheduler_read(&runtime->scheduler)
                                           : errand__runtime_time(runtime);
}

uint64_t
errand_runtime_now(const errand_runtime *runtime)
{
    if (runtime == NULL)
        return 0;
    /* Only its owner's readings can be told apart; a runtime is never made const. */
    if (runtime->scheduler.audit.inputs &&
        atomic_load_explicit(&runtime->owner, memory_order_relaxed) ==
            errand__thread_self())
        return errand__runtime_read((errand_runtime *)(uintptr_t)runtime);
    return errand__runtime_time(runtime);
}

uint64_t
errand_runtime_id(const errand_runtime *runtime)
{
    return runtime == NULL ? 0 : runtime->id;
}

errand_status
errand_attach(errand_runtime *runtime, errand_executor *executor, uint32_t owed_max,
              errand_lease **out_lease)
{
    uint32_t count;
    errand_lease *lease;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(executor != NULL && out_lease != NULL, ERRAND_EINVAL,
                       "executor and out_lease are needed");
    ERRAND_REQUIRE_ARG(owed_max < (1u << 24), ERRAND_EINVAL,
                       "owed_max must be below 2^24");
    ERRAND_REQUIRE_ARG(executor->fork_epoch == errand__fork_epoch(), ERRAND_EFORKED,
                       "the executor was made by the parent");
    if (runtime->closing)
        return errand__misuse(ERRAND_ECLOSED, __func__, "the runtime is being shut down");
    count = atomic_load_explicit(&runtime->lease_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        if (runtime->leases[i]->executor == executor && !runtime->leases[i]->closed)
            return errand__misuse(ERRAND_EDUPLICATE, __func__,
                                  "this runtime is attached to this executor already");
    if (executor->ops->sleep != NULL && runtime->fd_wanted)
        return errand__misuse(ERRAND_EBUSY, __func__,
                              "its work is this thread's own: attach it before the wake "
                              "descriptor is asked for");
    if (count == ERRAND__LEASES_MAX)
        return errand__misuse(ERRAND_EFULL, __func__, "a runtime may attach 255 times");
    status = errand__lease_create(executor, runtime->block, runtime,
                                  owed_max == 0 ? OWED_DEFAULT : owed_max,
                                  errand__seeded(runtime), &lease);
    if (status != ERRAND_OK)
        return status;
    lease->index = (uint8_t)count;
    runtime->leases[count] = lease;
    atomic_store_explicit(&runtime->lease_count, count + 1,
                          memory_order_release); /* Pairs: lease-count */
    if (executor->ops->collect != NULL)
        runtime->collectors++;
    *out_lease = lease;
    return ERRAND_OK;
}

errand_status
errand_runtime_unwound(errand_runtime *runtime)
{
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(!(runtime->closing && runtime->draining && runtime->driving),
                       ERRAND_EMISUSE, "this part of a shutdown cannot be left");
    ERRAND_REQUIRE_ARG(runtime->draining || runtime->driving, ERRAND_EMISUSE,
                       "no drain or drive is in progress");
    errand__frame_unwind(runtime->frame); /* what is deeper is gone */
    errand__scheduler_unwound(&runtime->scheduler);
    errand__visit_finish(runtime);
    runtime->draining = runtime->driving = false;
    runtime->turn = NULL;
    errand__virtual_enter(false);
    errand__flush_all(runtime);
    errand__fd_news(runtime);
    return ERRAND_OK;
}

bool
errand__calls_begin(errand_runtime *runtime)
{
    if (runtime->draining || runtime->driving)
        return false;
    runtime->frame = errand__frame_innermost();
    runtime->draining = true;
    return true;
}

void
errand__calls_end(errand_runtime *runtime, bool begun)
{
    if (!begun)
        return;
    runtime->draining = false;
    errand__flush_all(runtime);
    errand__fd_news(runtime);
}

uint64_t
errand_deadline_in(uint64_t ns)
{
    uint64_t now = errand__clock_now();

    return ns > UINT64_MAX - now ? UINT64_MAX : now + ns;
}

const char *
errand_reason_name(errand_reason reason)
{
    static const char *const names[] = {"none", "explicit",  "timeout",       "owner",
                                        "root", "host stop", "resource lost", "shutdown"};

    if ((unsigned)reason >= sizeof names / sizeof names[0])
        return "unknown";
    return names[reason];
}
