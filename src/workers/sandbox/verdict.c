/* SPDX-License-Identifier: MIT */
/* Design notes: what an operation without an answer says.
 *
 * Why the host ended its worker comes first: then how the worker looks at its end is nobody's
 * business (a deadline is seen as SIGKILL, or as whatever came first).  Else the system's word for
 * its end decides.  What the worker itself wrote about it (the number of a denied call, the address
 * of a fault) only fills in what the system does not tell. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include "workers/sandbox/filter.h"
#include "workers/sandbox/sandbox.h"

typedef struct verdict {
    errand_outcome outcome;
    errand_code code;
    int32_t number; /* job_code */
    int signal_number;
    bool retry;
    char call[44];
    char text[ERRAND__SANDBOX_TEXT];
} verdict;

static void
judge(verdict *out, errand_code code, const char *text)
{
    out->code = code;
    errand__text_format(out->text, sizeof out->text, "%s", text);
}

/* A limit of the policy, by its name. */
static void
beyond(verdict *out, errand_code code, const char *what, const char *field,
       uint64_t limit)
{
    out->code = code;
    errand__text_format(out->text, sizeof out->text, "%s %s of the policy, %llu", what,
                        field, (unsigned long long)limit);
}

uint32_t
errand__verdict_ms(uint64_t ns)
{
    uint64_t ms = ns / 1000000 + (ns % 1000000 != 0);

    return ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}

/* What the host did. */
static void
by_intent(const errand__sandbox_slot *slot, errand__slot_intent intent, verdict *out)
{
    const errand__sandbox_place *place = slot->lease->impl;
    const errand_sandbox_policy *policy = &slot->pool->policy.values;
    uint64_t ms = (errand__clock_now() - slot->began_ns) / 1000000;
    const errand__sandbox_job *job = &place->jobs[slot->record->slot];
    bool own = job->deadline_ns ==
               atomic_load_explicit(&slot->deadline_ns, memory_order_relaxed);

    out->outcome = ERRAND_FAILED;
    switch (intent) {
    case ERRAND__INTENT_DEADLINE:
        out->code = ERRAND_CODE_DEADLINE;
        errand__text_format(
            out->text, sizeof out->text,
            own ? "its deadline of %u ms passed, counted from its submit (its worker had "
                  "it for %llu ms); its worker was ended"
                : "its deadline of %u ms passed, the policy's (its worker had it for "
                  "%llu "
                  "ms); its worker was ended",
            (unsigned)(own ? job->deadline_ms : errand__verdict_ms(policy->deadline_ns)),
            (unsigned long long)ms);
        return;
    case ERRAND__INTENT_CANCEL:
        judge(out, ERRAND_CODE_CANCELLED,
              "it was cancelled while it ran; its worker was ended");
        return;
    case ERRAND__INTENT_PROTOCOL:
        out->outcome = ERRAND_CRASHED;
        judge(out, ERRAND_CODE_PROTOCOL,
              "its worker broke the protocol and was ended; do not trust this job");
        return;
    case ERRAND__INTENT_OUTPUT:
        out->outcome = ERRAND_CRASHED;
        beyond(out, ERRAND_CODE_OUTPUT, "its result is larger than", "out_bytes",
               policy->out_bytes);
        return;
    default:
        judge(out, ERRAND_CODE_CANCELLED,
              "its lease was shut while it ran; its worker was ended");
        return;
    }
}

static void
denied(const errand__sandbox_slot *slot, errand_sandbox_outcome *outcome, verdict *out)
{
    uint32_t call =
        atomic_load_explicit(&slot->response->denied_call, memory_order_relaxed);

    out->code = ERRAND_CODE_POLICY;
    if (call == 0 || call > 4096) {
        judge(out, ERRAND_CODE_POLICY, "its policy forbids a system call that it made");
        return;
    }
    outcome->denied_call = (int32_t)call - 1;
    errand__filter_call_name(outcome->denied_call, out->call, sizeof out->call);
    errand__text_format(out->text, sizeof out->text,
                        "its policy forbids the system call %s (%d)", out->call,
                        (int)outcome->denied_call);
}

static void
add_memory_hint(const errand__sandbox_slot *slot, errand_sandbox_outcome *outcome,
                verdict *out)
{
    if (atomic_load_explicit(&slot->response->short_of_memory, memory_order_relaxed) == 0)
        return;
    outcome->memory_hint = true;
    errand__text_append(out->text, sizeof out->text,
                        "; it seems to have run out of memory (memory_bytes is %llu)",
                        (unsigned long long)slot->pool->policy.values.memory_bytes);
}

static void
by_exit(const errand__sandbox_slot *slot, const errand__worker_end *end,
        errand_sandbox_outcome *outcome, verdict *out)
{
    int status = end->status;

    if (status == ERRAND__EXIT_DENIED &&
        slot->pool->policy.values.on_deny == ERRAND_DENY_REPORT &&
        atomic_load_explicit(&slot->response->denied_call, memory_order_relaxed) != 0) {
        denied(slot, outcome, out);
        return;
    }
    out->code = ERRAND_CODE_EXITED;
    out->number = status;
    errand__text_format(out->text, sizeof out->text, "its process exited with status %d",
                        status);
    if (status != 0)
        add_memory_hint(slot, outcome, out);
}

/* It counts for the worker, so a job may pay for those before it. */
static void
beyond_cpu(verdict *out, const errand_sandbox_policy *policy)
{
    if (policy->cpu_seconds == 0) { /* the policy has none */
        judge(out, ERRAND_CODE_CPU,
              "it was ended by SIGXCPU: by itself, or by a limit of the host's process "
              "(RLIMIT_CPU, ulimit -t)");
        return;
    }
    beyond(out, ERRAND_CODE_CPU, "its worker used more processor time than",
           "cpu_seconds", policy->cpu_seconds);
    if (policy->reuse != 1)
        errand__text_append(out->text, sizeof out->text,
                            ", which counts for all jobs that it had (reuse)");
}

static void
by_kill(const errand__sandbox_slot *slot, const errand__worker_end *end,
        errand_sandbox_outcome *outcome, verdict *out)
{
    const errand_sandbox_policy *policy = &slot->pool->policy.values;
    uint64_t limit = (uint64_t)policy->cpu_seconds * UINT64_C(1000000000);

    if (errand__group_ran_out(&slot->pool->groups, &slot->group)) {
        outcome->memory_hint = true;
        beyond(out, ERRAND_CODE_MEMORY, "it used more memory than", "memory_bytes",
               policy->memory_bytes);
    } else if (limit != 0 && end->user_ns + end->system_ns >= limit) {
        beyond_cpu(out, policy);
    } else {
        judge(out, ERRAND_CODE_KILLED,
              "its process was killed from outside: by somebody, or for want of memory");
        out->retry = true;
    }
}

static void
by_signal(const errand__sandbox_slot *slot, const errand__worker_end *end,
          errand_sandbox_outcome *outcome, verdict *out)
{
    out->signal_number = end->status;
    switch (end->status) {
    case SIGSYS:
        denied(slot, outcome, out);
        return;
    case SIGXCPU:
        beyond_cpu(out, &slot->pool->policy.values);
        return;
    case SIGXFSZ:
        beyond(out, ERRAND_CODE_OUTPUT, "it wrote a file that is larger than",
               "file_bytes", slot->pool->policy.values.file_bytes);
        return;
    case SIGKILL:
        by_kill(slot, end, outcome, out);
        return;
    default:
        break;
    }
    outcome->address =
        atomic_load_explicit(&slot->response->fault_address, memory_order_relaxed);
    out->code = ERRAND_CODE_CRASHED;
    errand__text_format(out->text, sizeof out->text, "a fault ended its process: %s",
                        strsignal(end->status));
    if (outcome->address != 0)
        errand__text_append(out->text, sizeof out->text, " at 0x%llx",
                            (unsigned long long)outcome->address);
    if (atomic_load_explicit(&slot->response->short_of_stack, memory_order_relaxed) != 0)
        errand__text_append(out->text, sizeof out->text,
                            "; it seems to have run out of stack (stack_bytes is %llu)",
                            (unsigned long long)slot->pool->policy.values.stack_bytes);
    if (end->status != SIGFPE)
        add_memory_hint(slot, outcome, out);
}

static void
by_end(const errand__sandbox_slot *slot, const errand__worker_end *end,
       errand_sandbox_outcome *outcome, verdict *out)
{
    out->outcome = ERRAND_CRASHED;
    outcome->wait_status = end->wait_status;
    outcome->user_ns = end->user_ns;
    outcome->system_ns = end->system_ns;
    if (end->peak_bytes >
        atomic_load_explicit(&slot->response->peak_before, memory_order_relaxed))
        outcome->peak_bytes = end->peak_bytes;
    if (!end->known) {
        judge(out, ERRAND_CODE_WORKER_LOST,
              "its process has ended, and somebody else took its status");
        out->retry = true;
    } else if (end->code == CLD_EXITED) {
        by_exit(slot, end, outcome, out);
    } else {
        by_signal(slot, end, outcome, out);
    }
}

static void
settle(errand__sandbox_slot *slot, const errand__sandbox_hand *hand, const verdict *said)
{
    errand__hands *hands = hand->hands;

    errand__hands_read(hands);
    errand__hands_at(hands, &slot->job, slot->lease->block,
                     errand__hand_cell(hand, slot->lease));
    errand_job_fail(&slot->job, 0, said->signal_number,
                    said->call[0] != '\0' ? said->call : NULL, "%s", said->text);
    errand__hands_back(&slot->job, said->outcome, said->code, said->number);
    errand__hands_ring(hands, slot->lease->block);
}

void
errand__slot_fail(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                  errand__slot_intent intent, const errand__worker_end *end)
{
    errand_sandbox_outcome *outcome = errand__outcome_begin(slot);
    verdict said = {.outcome = ERRAND_CRASHED, .code = ERRAND_CODE_NONE};

    if (intent != ERRAND__INTENT_NONE)
        by_intent(slot, intent, &said);
    else
        by_end(slot, end, outcome, &said);
    outcome->retry_hint = said.retry;
    settle(slot, hand, &said);
}

void
errand__slot_settle(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                    errand_outcome outcome, errand_code code, const char *text)
{
    verdict said = {.outcome = outcome};

    errand__outcome_begin(slot)->retry_hint = true;
    judge(&said, code, text);
    settle(slot, hand, &said);
}

void
errand__verdict_limit(const errand__sandbox *pool, int error, char *out_text, size_t size)
{
    const errand_sandbox_policy *policy = &pool->policy.values;

    out_text[0] = '\0';
    if (error == EMFILE)
        errand__text_format(out_text, size, " (descriptors of the policy is %u)",
                            (unsigned)policy->descriptors);
    else if (error == EFBIG && policy->file_bytes != 0)
        errand__text_format(out_text, size, " (file_bytes of the policy is %llu)",
                            (unsigned long long)policy->file_bytes);
}

/* ---- before it was ready -------------------------------------------------------------------------- */

errand_status
errand__verdict_start(const errand__sandbox_slot *slot, const errand__worker_end *end,
                      char *out_text, size_t size)
{
    char said[ERRAND__WIRE_TEXT + 1];
    int status = end->known && end->code == CLD_EXITED ? end->status : -1;

    memcpy(said, slot->response->setup_text, ERRAND__WIRE_TEXT);
    said[ERRAND__WIRE_TEXT] = '\0';
    for (char *at = said; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
            *at = '?';
    if (slot->intent == ERRAND__INTENT_START)
        errand__text_format(out_text, size, "a worker was not ready in time");
    else if (status >= ERRAND__SETUP_WIRE && status <= ERRAND__SETUP_MEMORY)
        errand__text_format(out_text, size, "a worker could not be set up: %s",
                            said[0] != '\0' ? said : "it did not say why");
    else if (status >= 0)
        errand__text_format(out_text, size,
                            "a worker exited with status %d before it was ready%s%s",
                            status, said[0] != '\0' ? ": " : "", said);
    else if (!end->known)
        errand__text_format(out_text, size,
                            "a worker ended before it was ready, and somebody else took "
                            "its status");
    else
        errand__text_format(out_text, size,
                            "a worker was ended by signal %d before it was ready",
                            end->status);
    return status == ERRAND__SETUP_LAYER || status == ERRAND__SETUP_FILTER
               ? ERRAND_EUNSUPPORTED
               : ERRAND_ESYSTEM;
}

void
errand__verdict_why(const errand__sandbox_slot *slot, const errand__worker_end *end,
                    char *out_text, size_t size)
{
    errand_sandbox_outcome outcome = {.denied_call = -1};
    verdict said = {.outcome = ERRAND_CRASHED};
    bool exited = end->known && end->code == CLD_EXITED;
    bool reported = exited && end->status == ERRAND__EXIT_DENIED;

    if (slot->intent == ERRAND__INTENT_START)
        errand__text_format(out_text, size, "hung");
    else if (!end->known)
        errand__text_format(out_text, size, "ended");
    else if (reported || (!exited && end->status == SIGSYS))
        denied(slot, &outcome, &said);
    else if (exited)
        errand__text_format(out_text, size, "exited with status %d", end->status);
    else
        errand__text_format(out_text, size, "was ended by signal %d (%s)", end->status,
                            strsignal(end->status));
    if (said.code != ERRAND_CODE_POLICY)
        return;
    if (outcome.denied_call >= 0)
        errand__text_format(out_text, size, "made the forbidden system call %s (%d)",
                            said.call, (int)outcome.denied_call);
    else
        errand__text_format(out_text, size,
                            "made a forbidden system call, which reporting names");
}
