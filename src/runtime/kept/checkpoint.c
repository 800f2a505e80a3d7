/* SPDX-License-Identifier: MIT */
/* Design notes: an ended run as bytes.
 *
 * A checkpoint is the list below of 64-bit words, then the latency models, two words each, then a
 * hash of all before.  In memory it is kept as these words, so what is saved is what there is.  A
 * word is never moved or given another meaning: what is added goes behind, with a new version.
 *
 * Draws need no state of their own: each is a function of the seed and of a key.  What is carried
 * is what the keys of later roots, submissions and passes count from, so that a recovered run draws
 * other numbers than the run before (D85). */
#include <string.h>
#include "runtime/kept/checkpoint.h"

#define MAGIC         UINT64_C(0x31746e6970646e65) /* "endpint1" */
#define VERSION       UINT64_C(1)
#define LATENCIES_MAX (UINT64_C(1) << 20)

enum word {
    WORD_MAGIC,
    WORD_VERSION,
    WORD_ORDER,
    WORD_FLAGS,
    WORD_SEED,
    WORD_NOW,
    WORD_DEADLINE,
    WORD_GRACE,
    WORD_WATCHDOG,
    WORD_OPERATIONS_MAX,
    WORD_MESSAGES,
    WORD_HELD_MAX,
    WORD_TIMES,
    WORD_CYCLE,
    WORD_MIX,
    WORD_STEPS,
    WORD_CHOSEN,
    WORD_ROOT_SPAWNS,
    WORD_ROOT_CONTEXTS,
    WORD_SUBMISSIONS,
    WORD_NEXT_TASK,
    WORD_NODES,
    WORD_SPAWNED,
    WORD_REGISTRATIONS,
    WORD_PASSES,
    WORD_VISITS,
    WORD_PICKS,
    WORD_POLICY,
    WORD_DEPTH,
    WORD_POLICY_STEPS,
    WORD_LATENCIES, /* how many follow */
    WORDS
};

struct errand_checkpoint {
    uint64_t *words;
    size_t count; /* the hash included */
    bool spent;
};

static uint64_t
hash_of(const uint64_t *words, size_t count)
{
    uint64_t mix = VERSION;

    for (size_t i = 0; i < count; i++) {
        unsigned char bytes[8];

        for (unsigned j = 0; j < 8; j++)
            bytes[j] = (unsigned char)(words[i] >> (8 * j));
        mix = errand__mix_bytes(mix, bytes, sizeof bytes);
    }
    return mix;
}

static errand_status
make(size_t count, errand_checkpoint **out_checkpoint)
{
    errand_checkpoint *checkpoint = errand__mem_alloc(NULL, sizeof *checkpoint);

    if (checkpoint == NULL)
        return ERRAND_ENOMEM;
    checkpoint->count = count;
    checkpoint->words = errand__mem_alloc(NULL, count * sizeof *checkpoint->words);
    if (checkpoint->words == NULL) {
        errand__mem_free(NULL, checkpoint, sizeof *checkpoint);
        return ERRAND_ENOMEM;
    }
    *out_checkpoint = checkpoint;
    return ERRAND_OK;
}

void
errand_checkpoint_abandon(errand_checkpoint **take_checkpoint)
{
    errand_checkpoint *checkpoint;

    if (take_checkpoint == NULL || *take_checkpoint == NULL)
        return;
    checkpoint = *take_checkpoint;
    *take_checkpoint = NULL;
    errand__mem_free(NULL, checkpoint->words,
                     checkpoint->count * sizeof *checkpoint->words);
    errand__mem_free(NULL, checkpoint, sizeof *checkpoint);
}

static void
take_settings(const errand_runtime *runtime, uint64_t *words)
{
    const errand_runtime_config *config = &runtime->config;

    words[WORD_ORDER] = config->order;
    words[WORD_FLAGS] = config->flags;
    words[WORD_SEED] = config->seed;
    words[WORD_DEADLINE] = config->deadline_ns;
    words[WORD_GRACE] = config->grace_ns;
    words[WORD_WATCHDOG] = config->watchdog_ns;
    words[WORD_OPERATIONS_MAX] = config->operations_max;
    words[WORD_MESSAGES] = config->messages;
    words[WORD_HELD_MAX] = config->held_max;
    words[WORD_TIMES] = config->times;
}

static void
take_progress(const errand_runtime *runtime, uint64_t *words)
{
    const errand__scheduler *scheduler = &runtime->scheduler;

    words[WORD_NOW] = scheduler->now;
    words[WORD_CYCLE] = scheduler->cycle;
    words[WORD_MIX] = scheduler->audit.mix;
    words[WORD_STEPS] = scheduler->audit.steps;
    words[WORD_CHOSEN] = scheduler->audit.chosen;
    words[WORD_ROOT_SPAWNS] = scheduler->root_spawns;
    words[WORD_ROOT_CONTEXTS] = scheduler->root_contexts;
    words[WORD_SUBMISSIONS] = runtime->submissions;
    words[WORD_NEXT_TASK] = scheduler->next_task;
    words[WORD_NODES] = scheduler->nodes;
    words[WORD_SPAWNED] = scheduler->spawned;
    words[WORD_REGISTRATIONS] = scheduler->registrations;
    words[WORD_PASSES] = scheduler->passes;
    words[WORD_VISITS] = scheduler->visits;
    words[WORD_PICKS] = scheduler->policy.picks;
    words[WORD_POLICY] = scheduler->policy.kind;
    words[WORD_DEPTH] = scheduler->policy.depth;
    words[WORD_POLICY_STEPS] = scheduler->policy.steps;
    words[WORD_LATENCIES] = scheduler->latency_count;
}

errand_status
errand_runtime_checkpoint(errand_runtime *runtime, errand_checkpoint **out_checkpoint)
{
    const errand__scheduler *scheduler;
    uint64_t *word;
    errand_status status;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_checkpoint != NULL, ERRAND_EINVAL, "out_checkpoint is NULL");
    scheduler = &runtime->scheduler;
    if (!errand__seeded(runtime))
        return errand__misuse(ERRAND_EUNSUPPORTED, __func__,
                              "in arrival order time goes on by itself");
    if (scheduler->live != 0 || runtime->wait_count != 0 || runtime->draining ||
        runtime->driving)
        return errand__misuse(ERRAND_EBUSY, __func__,
                              "the run has not ended: there are tasks or waits");
    status = make(WORDS + 2 * scheduler->latency_count + 1, out_checkpoint);
    if (status != ERRAND_OK)
        return status;
    word = (*out_checkpoint)->words;
    word[WORD_MAGIC] = MAGIC;
    word[WORD_VERSION] = VERSION;
    take_settings(runtime, word);
    take_progress(runtime, word);
    word += WORDS;
    for (size_t i = 0; i < scheduler->latency_count; i++) {
        *word++ = scheduler->latencies[i].kind;
        *word++ = scheduler->latencies[i].estimate;
    }
    *word = hash_of((*out_checkpoint)->words, (*out_checkpoint)->count - 1);
    return ERRAND_OK;
}

/* ---- bytes -------------------------------------------------------------------------------------- */

errand_status
errand_checkpoint_read(const errand_checkpoint *checkpoint,
                       errand_checkpoint_view *out_view)
{
    errand__audit audit = {.seeded = true};
    const uint64_t *words;

    ERRAND_REQUIRE_ARG(checkpoint != NULL && out_view != NULL, ERRAND_EINVAL,
                       "checkpoint and out_view are needed");
    words = checkpoint->words;
    audit.mix = words[WORD_MIX];
    audit.chosen = words[WORD_CHOSEN];
    *out_view = (errand_checkpoint_view){
        .seed = words[WORD_SEED],
        .now_ns = words[WORD_NOW],
        .digest = errand__audit_digest(&audit),
        .steps = words[WORD_STEPS],
        .deadline_ns = words[WORD_DEADLINE],
        .flags = (uint32_t)words[WORD_FLAGS],
        .spent = checkpoint->spent,
    };
    return ERRAND_OK;
}

size_t
errand_checkpoint_save(const errand_checkpoint *checkpoint, void *out, size_t size)
{
    unsigned char *to = out;
    size_t needed;

    if (checkpoint == NULL || checkpoint->spent)
        return 0;
    needed = checkpoint->count * 8;
    if (out == NULL || size < needed)
        return needed;
    for (size_t i = 0; i < needed; i++)
        to[i] = (unsigned char)(checkpoint->words[i / 8] >> (8 * (i % 8)));
    return needed;
}

static bool
is_checkpoint(const uint64_t *words, size_t count)
{
    if (words[WORD_MAGIC] != MAGIC || words[WORD_VERSION] != VERSION ||
        words[WORD_LATENCIES] > LATENCIES_MAX ||
        count != WORDS + 2 * words[WORD_LATENCIES] + 1 ||
        words[count - 1] != hash_of(words, count - 1) || words[WORD_CYCLE] == 0 ||
        words[WORD_CYCLE] > ERRAND__CYCLE_MAX)
        return false;
    for (size_t i = WORDS; i < count - 1; i += 2)
        if (words[i] == 0 || words[i] > UINT32_MAX || words[i + 1] == 0 ||
            words[i + 1] > ERRAND__LATENCY_MAX)
            return false;
    return true;
}

errand_status
errand_checkpoint_load(const void *bytes, size_t size, errand_checkpoint **out_checkpoint)
{
    const unsigned char *from = bytes;
    errand_checkpoint *checkpoint;
    errand_status status;

    ERRAND_REQUIRE_ARG(bytes != NULL && out_checkpoint != NULL, ERRAND_EINVAL,
                       "bytes and out_checkpoint are needed");
    if (size % 8 != 0 || size / 8 <= WORDS)
        return ERRAND_EINVAL;
    status = make(size / 8, &checkpoint);
    if (status != ERRAND_OK)
        return status;
    for (size_t i = 0; i < size; i++)
        checkpoint->words[i / 8] |= (uint64_t)from[i] << (8 * (i % 8));
    if (!is_checkpoint(checkpoint->words, checkpoint->count)) {
        errand_checkpoint_abandon(&checkpoint);
        return ERRAND_EINVAL;
    }
    *out_checkpoint = checkpoint;
    return ERRAND_OK;
}

/* ---- recover ------------------------------------------------------------------------------------ */

static void
fill(uint32_t *setting, uint64_t word)
{
    if (*setting == 0)
        *setting = (uint32_t)word;
}

errand_status
errand__checkpoint_configure(errand_runtime_config *config, errand_choices *out_choices,
                             const char *function)
{
    const errand_checkpoint *checkpoint = config->held_checkpoint;
    const uint64_t *words;

    if (checkpoint == NULL)
        return ERRAND_OK;
    words = checkpoint->words;
    if (checkpoint->spent)
        return errand__misuse(ERRAND_ESPENT, function,
                              "a runtime was made of this checkpoint already");
    if ((config->order != 0 && config->order != words[WORD_ORDER]) ||
        (config->seed != 0 && config->seed != words[WORD_SEED]) || config->start_ns != 0)
        return errand__misuse(ERRAND_EINVAL, function,
                              "order, seed and start_ns are the checkpoint's: leave 0");
    config->order = (errand_order)words[WORD_ORDER];
    config->seed = words[WORD_SEED];
    config->start_ns = words[WORD_NOW];
    config->flags |= (uint32_t)words[WORD_FLAGS];
    if (config->times == ERRAND_TIMES_COARSE)
        config->times = (errand_times)words[WORD_TIMES];
    if (config->deadline_ns == 0)
        config->deadline_ns = words[WORD_DEADLINE];
    if (config->grace_ns == 0)
        config->grace_ns = words[WORD_GRACE];
    if (config->cycle_ns == 0)
        config->cycle_ns = words[WORD_CYCLE];
    if (config->watchdog_ns == 0)
        config->watchdog_ns = words[WORD_WATCHDOG];
    fill(&config->operations_max, words[WORD_OPERATIONS_MAX]);
    fill(&config->messages, words[WORD_MESSAGES]);
    fill(&config->held_max, words[WORD_HELD_MAX]);
    if (config->choices == NULL) {
        *out_choices = (errand_choices){.struct_size = sizeof *out_choices,
                                        .policy = (errand_policy)words[WORD_POLICY],
                                        .depth = (uint32_t)words[WORD_DEPTH],
                                        .steps = words[WORD_POLICY_STEPS]};
        config->choices = out_choices;
    }
    return ERRAND_OK;
}

errand_status
errand__checkpoint_apply(errand_runtime *runtime)
{
    errand_checkpoint *checkpoint = runtime->config.held_checkpoint;
    errand__scheduler *scheduler = &runtime->scheduler;
    const uint64_t *words = checkpoint->words, *latency = words + WORDS;

    for (uint64_t i = 0; i < words[WORD_LATENCIES]; i++, latency += 2) {
        errand_status status =
            errand__latency_set(scheduler, (uint32_t)latency[0], latency[1]);

        if (status != ERRAND_OK)
            return status;
    }
    scheduler->audit.mix = words[WORD_MIX];
    scheduler->audit.steps = words[WORD_STEPS];
    scheduler->audit.chosen = words[WORD_CHOSEN];
    scheduler->root_spawns = words[WORD_ROOT_SPAWNS];
    scheduler->root_contexts = words[WORD_ROOT_CONTEXTS];
    runtime->submissions = words[WORD_SUBMISSIONS];
    scheduler->next_task = words[WORD_NEXT_TASK];
    scheduler->nodes = words[WORD_NODES];
    scheduler->spawned = words[WORD_SPAWNED];
    scheduler->registrations = words[WORD_REGISTRATIONS];
    scheduler->passes = words[WORD_PASSES];
    scheduler->visits = words[WORD_VISITS];
    scheduler->policy.picks = words[WORD_PICKS];
    checkpoint->spent = true;
    runtime->config.held_checkpoint = NULL;
    return ERRAND_OK;
}
