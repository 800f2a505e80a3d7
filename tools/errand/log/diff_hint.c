/* SPDX-License-Identifier: MIT */
/* diff_hint: what kind of thing made two runs differ, as far as the first different steps and the
 * ones behind them can tell. */
#include "log/log_view.h"
#include <stdlib.h>
#include <string.h>

enum { REAL_TIME_YEARS = 20, LOOK = 256 };

/* ---- words that say where they come from --------------------------------------------------------- */

/* Where user space has its heap, stacks and libraries on machines with 64 bits; but not a short text,
 * whose letters end there too. */
static bool
is_address(uint64_t word)
{
    uint64_t top = word >> 40;
    bool text = true;
    for (unsigned i = 0; i < 48; i += 8)
        text &= (word >> i & 0xff) >= 0x20 && (word >> i & 0xff) < 0x7f;
    return top >= 0x55 && top <= 0x7f && !text;
}

/* Thousandths, millionths or billionths of a second since 1970, about now. */
static bool
is_date(uint64_t word)
{
    const uint64_t from = UINT64_C(1577836800); /* 2020 */
    const uint64_t to = from + UINT64_C(31557600) * REAL_TIME_YEARS;
    for (uint64_t unit = 1000; unit <= UINT64_C(1000000000); unit *= 1000) {
        if (word >= from * unit && word < to * unit)
            return true;
    }
    return false;
}

/* "0x55f0c1a2b3c4" in a label or message. */
static bool
names_address(const char *text)
{
    for (const char *at = text; (at = strstr(at, "0x")) != NULL; at += 2) {
        char *end;
        uint64_t word = strtoull(at, &end, 16);
        if (end - at >= 12 && is_address(word))
            return true;
    }
    return false;
}

static uint64_t
word_at(const void *bytes, size_t at)
{
    const unsigned char *in = (const unsigned char *)bytes + at;
    uint64_t word = 0;
    for (unsigned i = 0; i < 8; i++)
        word |= (uint64_t)in[i] << (8 * i);
    return word;
}

typedef bool word_test(uint64_t word);

/* Does a word look like one, in whose place the other has something else? */
static bool
one_has(const void *a, size_t size_a, const void *b, size_t size_b, word_test *test)
{
    size_t size = size_a < size_b ? size_a : size_b;
    for (size_t at = 0; a != NULL && b != NULL && at + 8 <= size && at < LOOK; at += 8) {
        uint64_t word_a = word_at(a, at), word_b = word_at(b, at);
        if (word_a != word_b && (test(word_a) || test(word_b)))
            return true;
    }
    return false;
}

static bool
look_like(const errand_log_step *a, const errand_log_step *b, word_test *test)
{
    const errand_log_completion *in_a = a->completion, *in_b = b->completion;
    if (one_has(a->bytes, a->size, b->bytes, b->size, test))
        return true;
    return in_a != NULL && in_b != NULL &&
           one_has(in_a->bytes, in_a->size, in_b->bytes, in_b->size, test);
}

static bool
name_addresses(const errand_log_step *a, const errand_log_step *b)
{
    const char *label_a = a->step.label == NULL ? "" : a->step.label;
    const char *label_b = b->step.label == NULL ? "" : b->step.label;
    if (strcmp(label_a, label_b) != 0 && names_address(label_a) && names_address(label_b))
        return true;
    return a->completion != NULL && b->completion != NULL &&
           strcmp(a->completion->message, b->completion->message) != 0 &&
           names_address(a->completion->message) && names_address(b->completion->message);
}

/* ---- hints --------------------------------------------------------------------------------------------- */

static void
say(errand__diff *diff, const char *hint, const char *cause, const char *mend)
{
    diff->hint = hint;
    diff->cause = cause;
    diff->mend = mend;
}

static bool
same_label(const errand_step *a, const errand_step *b)
{
    return strcmp(a->label == NULL ? "" : a->label, b->label == NULL ? "" : b->label) ==
           0;
}

/* How far behind the difference the other log has this step; 0 = nowhere near.  What is submitted or
 * spawned in another order has other keys: by_label finds it too. */
static size_t
find_ahead(const errand__diff *diff, int in, const errand_step *step, bool by_label)
{
    by_label =
        by_label && (step->kind == ERRAND_STEP_SUBMIT || step->kind == ERRAND_STEP_SPAWN);
    for (size_t k = 1; k <= ERRAND__DIFF_AHEAD && diff->steps[in][k].there; k++) {
        const errand_step *other = &diff->steps[in][k].at.step;
        if (by_label ? other->kind == step->kind && other->detail == step->detail &&
                           same_label(other, step)
                     : errand__diff_same(other, step, false))
            return k;
    }
    return 0;
}

static void
say_run(errand__diff *diff, const errand_step *a, const errand_step *b)
{
    if (a->context != b->context)
        say(diff, "ready-set",
            "another set of tasks was ready when this pass was taken: a task was woken "
            "(or not) by something that the log has no event of",
            "look for a wake that hangs on real time, threads or chance, among what the "
            "tasks of the two steps wait for");
    else if (a->key != b->key)
        say(diff, "other-task", "the same tasks were ready, and another one was chosen",
            "look at the seed, the policy and the tape; and at what changed the order of "
            "the ready tasks without changing the set");
    else
        say(diff, "other-event", "the same task ran for another reason",
            "look at what it waited for");
}

/* Are there results whose bytes were not asked for? */
static bool
lacks_bytes(const errand__diff *diff)
{
    for (int i = 0; i < 2; i++) {
        const errand_log_completion *completion = diff->steps[i][0].at.completion;
        if (completion != NULL && completion->payload == ERRAND_LOG_PAYLOAD_DIGEST)
            return true;
    }
    return false;
}

static void
say_completion(errand__diff *diff, const errand_step *a, const errand_step *b)
{
    if (a->key == b->key)
        say(diff, "result",
            "the same operation ended with another result: its job is not a function of "
            "what it was given",
            lacks_bytes(diff)
                ? "look at what the job reads: files, other jobs' state, time, memory "
                  "that was never written; --record-payloads shows the bytes that differ"
                : "look at what the job reads: files, other jobs' state, time, memory "
                  "that was never written");
    else
        say(diff, "order", "another operation came first",
            diff->no_times ? "in arrival order that is what happens; compare seeded runs"
                           : "look at kinds, latency models and ties of the two");
}

static void
say_same_kind(errand__diff *diff, const errand_step *a, const errand_step *b)
{
    switch (a->kind) {
    case ERRAND_STEP_TASK:
        say_run(diff, a, b);
        break;
    case ERRAND_STEP_COMPLETION:
        say_completion(diff, a, b);
        break;
    case ERRAND_STEP_TIME:
    case ERRAND_STEP_TIMER:
        say(diff, "time",
            "time went on to another moment: somebody waits for a length that is not the "
            "same in both, for example one read from a real clock",
            "look at who sleeps or has a limit here, and take times from "
            "errand_runtime_now");
        break;
    case ERRAND_STEP_DRAW:
        say(diff, "draw", "another random number was drawn",
            "compare the seeds, and how many numbers this task drew before");
        break;
    case ERRAND_STEP_NOTE:
        say(diff, "value", "the program noted another value of its own",
            "look at where the noted value comes from; --record-payloads shows its "
            "bytes");
        break;
    default:
        say(diff, "other-event", "another event happened",
            "look at what the running task did before it, and on what that hangs");
        break;
    }
}

/* One of them happens in the other log too, only later. */
static bool
say_shifted(errand__diff *diff, const errand_step *a, const errand_step *b)
{
    size_t in_b = find_ahead(diff, 1, a, false), in_a = find_ahead(diff, 0, b, false);
    if (in_a == 0 && in_b == 0) {
        in_b = find_ahead(diff, 1, a, true);
        in_a = find_ahead(diff, 0, b, true);
    }
    if (in_a != 0 && in_b != 0)
        say(diff, "order",
            "the same events happened in another order: what the program goes through "
            "has no order of its own, such as addresses, a hash table or a folder",
            "sort by a key of your own before you go through it");
    else if (in_b != 0)
        say(diff, "extra",
            "B has an event more: something happened that A has nothing of",
            "look at what the running task did: input that errand does not manage");
    else if (in_a != 0)
        say(diff, "missing", "B lacks an event: something did not happen that A has",
            "look at what the running task did: input that errand does not manage");
    else
        return false;
    return true;
}

static void
say_one_sided(errand__diff *diff)
{
    if (diff->steps[1][0].there)
        say(diff, "extra", "A has ended here; B goes on",
            "look at what the event of B hangs on");
    else
        say(diff, "missing", "B has ended here; A goes on",
            "look at what the event of A hangs on");
}

static void
say_events(errand__diff *diff)
{
    const errand_log_step *log_a = &diff->steps[0][0].at, *log_b = &diff->steps[1][0].at;
    const errand_step *a = &log_a->step, *b = &log_b->step;
    bool one_runs = (a->kind == ERRAND_STEP_TASK) != (b->kind == ERRAND_STEP_TASK);
    if (errand__diff_same(a, b, false) && a->time_ns == b->time_ns &&
        a->context == b->context && a->chosen != b->chosen)
        say(diff, "choice",
            "something else was chosen before this step, by seed, policy or tape; "
            "nothing "
            "else shows it yet",
            "look at what the running task did: one choice more, or one less");
    else if (look_like(log_a, log_b, is_address) || name_addresses(log_a, log_b))
        say(diff, "address",
            "a value looks like an address: where something lies in "
            "memory "
            "decides what happens",
            "use a number or name of your own in place of the address");
    else if (look_like(log_a, log_b, is_date))
        say(diff, "time", "a value looks like a real time",
            "take times from errand_runtime_now");
    else if (errand__diff_same(a, b, false) && a->time_ns != b->time_ns)
        say(diff, "time", "the same event happened at another time",
            "look at what time this event hangs on");
    else if (a->kind == b->kind &&
             (a->kind == ERRAND_STEP_TASK || a->kind == ERRAND_STEP_COMPLETION ||
              (a->key == b->key && same_label(a, b))))
        say_same_kind(diff, a, b);
    else if (one_runs)
        say(diff, "ready-set",
            a->kind == ERRAND_STEP_TASK
                ? "A has a task that runs here and B has not: a wake did not happen in B"
                : "B has a task that runs here and A has not: something woke it in B",
            "look for a wake that hangs on real time, threads or chance, among what that "
            "task waits for");
    else if (!say_shifted(diff, a, b))
        say(diff, "other-event", "another event happened",
            "look at what the running task did before it, and on what that hangs");
}

void
errand__diff_hint(errand__diff *diff)
{
    const errand_log_header *a = errand_log_header_of(diff->logs[0]);
    const errand_log_header *b = errand_log_header_of(diff->logs[1]);
    if (a->build != b->build || a->config != b->config ||
        strcmp(a->version, b->version) != 0)
        say(diff, "build",
            "the logs were made by another build, or with another configuration",
            "compare runs of one program that were started in the same way");
    else if (diff->no_times && a->order == b->order && a->seed != b->seed)
        say(diff, "arrival",
            "in arrival order completions come as they happen to end, and without --seed "
            "each run draws another: two runs are not meant to be equal",
            "compare runs of --order paced with one --seed");
    else if (a->seed != b->seed || a->order != b->order || a->policy != b->policy ||
             strcmp(a->policy_text, b->policy_text) != 0)
        say(diff, "seed", "the runs have another seed, order or policy",
            "compare runs of one seed");
    else if (!diff->steps[0][0].there || !diff->steps[1][0].there)
        say_one_sided(diff);
    else
        say_events(diff);
}
