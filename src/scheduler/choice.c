/* SPDX-License-Identifier: MIT */
/* Design notes: the one place where a seeded run is decided.
 *
 * Whoever needs a decision says where it stands (site), what it hangs on (key) and the how many-th
 * of that key it is (ordinal), never how many there were before it anywhere else.  So one decision
 * more or less shifts no other one (D52), and a tape is looked up, not played (D145).  A fuzzer's
 * bytes and an enumerator's path are positional; with a record they become a tape.
 *
 * The common case, a seed and no record, is one branch and the draw.  What was chosen is folded
 * into a word that the next audit step takes along. */
#include "scheduler/scheduler.h"

static uint64_t from_seed(const errand__scheduler *scheduler, const errand_choice *asked);
static uint64_t from_given(errand__scheduler *scheduler, const errand_choice *asked);

const char *
errand_site_name(errand_site site)
{
    static const char *const names[] = {
        "unknown",  "latency", "begin", "tie",    "fate",     "place",      "pick",
        "priority", "change",  "delay", "starve", "workload", "application"};

    return (unsigned)site >= sizeof names / sizeof names[0] ? names[0] : names[site];
}

const char *
errand__choice_fault(const errand_choice *choice)
{
    if (!errand__site_known(choice->site))
        return "there is no such site";
    if (choice->n == 1)
        return "n = 1 is no choice: leave it out";
    if (choice->n != 0 && choice->value >= choice->n)
        return "the value must be below n";
    return NULL;
}

errand_status
errand__choices_check(const errand_choices *choices, const char **out_text)
{
    const char *text = NULL;

    if (choices->struct_size != sizeof *choices)
        text = "choices->struct_size must be sizeof(errand_choices)";
    else if (choices->provider > ERRAND_PROVIDER_ENUMERATE)
        text = "choices->provider is unknown";
    else if (choices->policy > ERRAND_POLICY_STARVE)
        text = "choices->policy is unknown";
    else if (choices->depth > ERRAND_DEPTH_MAX)
        text = "choices->depth is at most ERRAND_DEPTH_MAX";
    else if (choices->steps > UINT64_MAX / 2)
        text = "choices->steps is at most 2^63 - 1";
    else if (choices->provider == ERRAND_PROVIDER_TAPE && choices->held_tape == NULL)
        text = "the tape provider needs held_tape";
    else if (choices->held_record != NULL && choices->held_record == choices->held_tape)
        text = "held_record must be another tape than held_tape";
    else if (choices->provider == ERRAND_PROVIDER_BYTES && choices->held_bytes == NULL &&
             choices->bytes_size != 0)
        text = "the bytes provider needs held_bytes";
    else if (choices->provider == ERRAND_PROVIDER_ENUMERATE &&
             choices->held_enumerator == NULL)
        text = "the enumerating provider needs held_enumerator";
    *out_text = text;
    return text == NULL ? ERRAND_OK : ERRAND_EINVAL;
}

void
errand__chooser_init(errand__scheduler *scheduler, const errand_choices *choices)
{
    errand__chooser *chooser = &scheduler->chooser;

    *chooser = (errand__chooser){.plain = true};
    if (choices == NULL)
        return;
    chooser->given = *choices;
    chooser->plain =
        choices->provider == ERRAND_PROVIDER_SEED && choices->held_record == NULL;
}

void
errand__chooser_branch(errand__scheduler *scheduler, uint64_t seed)
{
    errand__chooser *chooser = &scheduler->chooser;

    scheduler->seed = seed;
    chooser->given.provider = ERRAND_PROVIDER_SEED;
    chooser->plain = chooser->given.held_record == NULL;
    errand__policy_branch(scheduler);
}

static inline void
fold(errand__audit *audit, errand_site site, uint64_t value)
{
    uint64_t chosen = audit->chosen;

    chosen = ((chosen << 29 | chosen >> 35) ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    audit->chosen = chosen + (uint64_t)site;
}

uint64_t
errand__choose(errand__scheduler *scheduler, errand_site site, uint64_t key,
               uint64_t ordinal, uint64_t n)
{
    const errand_choice asked = {site, key, ordinal, n, 0};
    uint64_t value;

    if (n == 1)
        return 0;
    value = __builtin_expect(scheduler->chooser.plain, 1) ? from_seed(scheduler, &asked)
                                                          : from_given(scheduler, &asked);
    if (scheduler->audit.seeded)
        fold(&scheduler->audit, site, value);
    return value;
}

/* Below 2^32 the high half of a draw is what errand__random_below answers: nothing is drawn again,
 * because 2^64 is a multiple.  Every operation comes by here. */
errand__operation_choices
errand__choose_operation(errand__scheduler *scheduler, uint64_t key)
{
    const uint64_t n = UINT64_C(1) << 32, seed = scheduler->seed;
    errand__audit *audit = &scheduler->audit;
    errand__operation_choices made;

    if (!scheduler->chooser.plain || !audit->seeded) {
        made.latency = errand__choose(scheduler, ERRAND_SITE_LATENCY, key, 0, n);
        made.begin = errand__choose(scheduler, ERRAND_SITE_BEGIN, key, 0, n);
        made.tie = errand__choose(scheduler, ERRAND_SITE_TIE, key, 0, n);
        made.fate = errand__choose(scheduler, ERRAND_SITE_FATE, key, 0, 0);
        return made;
    }
    made.latency = errand__random_draw(seed, ERRAND__STREAM_LATENCY, key, 0) >> 32;
    made.begin = errand__random_draw(seed, ERRAND__STREAM_BEGIN, key, 0) >> 32;
    made.tie = errand__random_draw(seed, ERRAND__STREAM_TIE, key, 0) >> 32;
    made.fate = errand__random_draw(seed, ERRAND__STREAM_FATE, key, 0);
    fold(audit, ERRAND_SITE_LATENCY, made.latency);
    fold(audit, ERRAND_SITE_BEGIN, made.begin);
    fold(audit, ERRAND_SITE_TIE, made.tie);
    fold(audit, ERRAND_SITE_FATE, made.fate);
    return made;
}

/* Each site has a stream of its own. */
static uint64_t
from_seed(const errand__scheduler *scheduler, const errand_choice *asked)
{
    static const errand__stream streams[] = {
        [ERRAND_SITE_LATENCY] = ERRAND__STREAM_LATENCY,
        [ERRAND_SITE_BEGIN] = ERRAND__STREAM_BEGIN,
        [ERRAND_SITE_TIE] = ERRAND__STREAM_TIE,
        [ERRAND_SITE_FATE] = ERRAND__STREAM_FATE,
        [ERRAND_SITE_PLACE] = ERRAND__STREAM_SCHEDULE,
        [ERRAND_SITE_PICK] = ERRAND__STREAM_PICK,
        [ERRAND_SITE_PRIORITY] = ERRAND__STREAM_PRIORITY,
        [ERRAND_SITE_CHANGE] = ERRAND__STREAM_CHANGE,
        [ERRAND_SITE_DELAY] = ERRAND__STREAM_DELAY,
        [ERRAND_SITE_STARVE] = ERRAND__STREAM_STARVE,
        [ERRAND_SITE_APPLICATION] = ERRAND__STREAM_APPLICATION,
    };

    if (asked->site == ERRAND_SITE_WORKLOAD)
        return 0;
    if (asked->n == 0)
        return errand__random_draw(scheduler->seed, streams[asked->site], asked->key,
                                   asked->ordinal);
    return errand__random_below(scheduler->seed, streams[asked->site], asked->key,
                                asked->ordinal, asked->n);
}

uint64_t
errand__choose_again(errand__scheduler *scheduler, errand_site site, uint64_t key,
                     uint64_t ordinal, uint64_t least, uint64_t n)
{
    errand_choice made = {site, key, ordinal, n - least, 0};

    if (made.n > 1)
        made.value = from_seed(scheduler, &made);
    made.value += least;
    made.n = n;
    if (scheduler->chooser.given.held_record != NULL)
        errand__tape_record(scheduler->chooser.given.held_record, &made);
    if (scheduler->audit.seeded)
        fold(&scheduler->audit, site, made.value);
    return made.value;
}

static uint64_t
from_bytes(errand__chooser *chooser, uint64_t n)
{
    const unsigned char *bytes = chooser->given.held_bytes;
    size_t width = n - 1 < (UINT64_C(1) << 8)    ? 1
                   : n - 1 < (UINT64_C(1) << 16) ? 2
                   : n - 1 < (UINT64_C(1) << 32) ? 4
                                                 : 8;
    uint64_t value = 0;

    for (size_t i = 0; i < width && chooser->bytes_used < chooser->given.bytes_size; i++)
        value |= (uint64_t)bytes[chooser->bytes_used++] << (8 * i);
    return n == 0 ? value : value % n;
}

static uint64_t
from_given(errand__scheduler *scheduler, const errand_choice *asked)
{
    errand__chooser *chooser = &scheduler->chooser;
    const errand_choices *given = &chooser->given;
    errand_choice made = *asked;

    switch (given->provider) {
    case ERRAND_PROVIDER_TAPE:
        if (!errand__tape_ask(given->held_tape, asked, &made.value))
            made.value = given->seed_missing ? from_seed(scheduler, asked) : 0;
        break;
    case ERRAND_PROVIDER_BYTES:
        if (asked->site != ERRAND_SITE_WORKLOAD)
            made.value = from_bytes(chooser, asked->n);
        break;
    case ERRAND_PROVIDER_ENUMERATE:
        made.value =
            errand__enumerator_choose(given->held_enumerator, asked->site, asked->n);
        break;
    default:
        made.value = from_seed(scheduler, asked);
        break;
    }
    if (given->held_record != NULL)
        errand__tape_record(given->held_record, &made);
    return made.value;
}
