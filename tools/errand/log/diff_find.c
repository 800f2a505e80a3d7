/* SPDX-License-Identifier: MIT */
/* diff_find: where two logs differ first.
 *
 * Design notes.  Blocks end at the same steps in both, and each has the audit's digest after it,
 * which hangs on all steps before: so the first block whose digest differs has the step, and the
 * ones before need not be read for it.  They are read once more only if there is a difference,
 * because the paths of tasks are told by their spawns.  What only messages and bytes say is not
 * compared: it is not in the digest, and may hold what differs between equal runs. */
#include "log/log_view.h"
#include <stdlib.h>
#include <string.h>

bool
errand__diff_same(const errand_step *a, const errand_step *b, bool times)
{
    const char *label_a = a->label == NULL ? "" : a->label;
    const char *label_b = b->label == NULL ? "" : b->label;
    bool timed = a->kind == ERRAND_STEP_TIMER || a->kind == ERRAND_STEP_TIME;
    return a->kind == b->kind && a->detail == b->detail && a->key == b->key &&
           (a->value == b->value || (timed && !times)) &&
           (!times || (a->time_ns == b->time_ns && a->context == b->context &&
                       a->chosen == b->chosen)) &&
           strcmp(label_a, label_b) == 0;
}

/* ---- copies of steps ------------------------------------------------------------------------------ */

static char *
put(char *at, const void *bytes, size_t size, const void *out)
{
    if (size > 0)
        memcpy(at, bytes, size);
    at[size] = '\0';
    memcpy((void *)(uintptr_t)out, &at, sizeof at);
    return at + size + 1;
}

static bool
keep(errand__diff_step *out, const errand_log_step *step)
{
    const errand_log_completion *from = step->completion;
    errand_log_completion *completion = &out->completion;
    size_t label = step->step.label == NULL ? 0 : strlen(step->step.label);
    size_t bytes = from == NULL ? step->size : from->size, more = bytes + label + 2;
    char *at;
    free(out->texts);
    if (from != NULL)
        more += strlen(from->message) + strlen(from->system_call) +
                strlen(from->payload_type) + 3;
    out->there = true;
    out->at = *step;
    out->texts = at = malloc(more);
    if (at == NULL)
        return false;
    if (step->step.label != NULL)
        at = put(at, step->step.label, label, &out->at.step.label);
    if (from == NULL) {
        if (step->bytes != NULL)
            put(at, step->bytes, step->size, &out->at.bytes);
        return true;
    }
    *completion = *from;
    out->at.completion = completion;
    at = put(at, from->message, strlen(from->message), &completion->message);
    at = put(at, from->system_call, strlen(from->system_call), &completion->system_call);
    at = put(at, from->payload_type, strlen(from->payload_type),
             &completion->payload_type);
    if (from->bytes != NULL)
        put(at, from->bytes, from->size, &completion->bytes);
    return true;
}

/* ---- finding ---------------------------------------------------------------------------------------- */

/* The first block that may differ, in which to begin. */
static uint64_t
skip_blocks(const errand__diff *diff)
{
    errand_log_block a, b;
    uint64_t index = 0;
    while (!diff->no_times && index < diff->ends[0].blocks &&
           index < diff->ends[1].blocks) {
        if (errand_log_block_read(diff->logs[0], index, &a) != ERRAND_OK ||
            errand_log_block_read(diff->logs[1], index, &b) != ERRAND_OK ||
            a.first != b.first || a.count != b.count || a.mix != b.mix ||
            a.digest != b.digest)
            break;
        index++;
    }
    return index;
}

static bool
seek(errand__diff *diff, uint64_t block)
{
    return errand_log_seek(diff->logs[0], block) == ERRAND_OK &&
           errand_log_seek(diff->logs[1], block) == ERRAND_OK;
}

/* The number of the first step that differs; false: none of those that both have does. */
static bool
find_step(errand__diff *diff, uint64_t block)
{
    errand_log_step a, b;
    bool more[2];
    errand_log_block about;
    diff->step = 0;
    if (block > 0 && errand_log_block_read(diff->logs[0], block - 1, &about) == ERRAND_OK)
        diff->step = about.first + about.count - 1;
    if (!seek(diff, block))
        return false;
    for (;;) {
        more[0] = errand_log_next(diff->logs[0], &a);
        more[1] = errand_log_next(diff->logs[1], &b);
        if (!more[0] && !more[1])
            return false;
        diff->step++;
        if (more[0] != more[1] || !errand__diff_same(&a.step, &b.step, !diff->no_times))
            return true;
    }
}

/* A step that is equal in both. */
static bool
keep_common(errand__diff *diff, uint64_t number, const errand_log_step *step)
{
    if (step->step.kind == ERRAND_STEP_NOTE && !keep(&diff->note, step))
        return false;
    if (number + ERRAND__DIFF_COMMON < diff->step)
        return true;
    return keep(&diff->common[diff->common_count++], step);
}

/* Both logs once more from the beginning, up to what follows the step. */
static bool
gather(errand__diff *diff)
{
    errand_log_step step;
    if (!seek(diff, 0))
        return false;
    for (int i = 0; i < 2; i++) {
        uint64_t number = 0;
        while (number < diff->step + ERRAND__DIFF_AHEAD &&
               errand_log_next(diff->logs[i], &step)) {
            bool good = errand__names_learn(&diff->names[i], &step.step);
            number++;
            if (diff->closing[i] == 0 && step.step.kind == ERRAND_STEP_CANCEL &&
                step.step.detail == ERRAND_REASON_SHUTDOWN)
                diff->closing[i] = number;
            if (good && number >= diff->step)
                good = keep(&diff->steps[i][number - diff->step], &step);
            else if (good && i == 0)
                good = keep_common(diff, number, &step);
            if (!good)
                return false;
        }
    }
    return true;
}

/* What is out when a seeded run has ended is ended by its shutdown, in real time: no seed decides
 * those steps, so no difference among them counts. */
static void
leave_shutdown_out(errand__diff *diff)
{
    uint64_t first = diff->closing[0];
    if (diff->no_times || first == 0 || first != diff->closing[1] || first > diff->step)
        return;
    diff->differs = false;
    diff->in_shutdown = true;
    diff->step = first - 1;
}

/* The first byte of the two that differs. */
static void
find_byte(errand__diff *diff)
{
    size_t sizes[2], at = 0;
    const unsigned char *bytes[2];
    for (int i = 0; i < 2; i++) {
        if (!diff->steps[i][0].there)
            return;
        bytes[i] = errand__log_bytes(&diff->steps[i][0].at, &sizes[i]);
    }
    if (bytes[0] == NULL || bytes[1] == NULL)
        return;
    while (at < sizes[0] && at < sizes[1] && bytes[0][at] == bytes[1][at])
        at++;
    if (at < sizes[0] || at < sizes[1])
        diff->around = at;
}

bool
errand__diff_find(errand__diff *diff)
{
    bool found;
    for (int i = 0; i < 2; i++) {
        errand_status status = errand_log_end_read(diff->logs[i], &diff->ends[i]);
        (void)status; /* there is a log */
        diff->no_times |=
            errand_log_header_of(diff->logs[i])->order == ERRAND_ORDER_ARRIVAL;
    }
    found = find_step(diff, skip_blocks(diff));
    for (int i = 0; i < 2; i++) {
        errand_status status = errand_log_end_read(diff->logs[i], &diff->ends[i]);
        (void)status;
        if (diff->ends[i].state == ERRAND_LOG_UNREADABLE) {
            errand__help_problem("%s: %s; try again", diff->paths[i], diff->ends[i].text);
            return false;
        }
    }
    if (!found)
        return true;
    if (!gather(diff)) {
        errand__help_problem("memory ran out");
        return false;
    }
    diff->differs = true;
    find_byte(diff);
    leave_shutdown_out(diff);
    return true;
}

void
errand__diff_fini(errand__diff *diff)
{
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k <= ERRAND__DIFF_AHEAD; k++)
            free(diff->steps[i][k].texts);
        errand__names_fini(&diff->names[i]);
        errand_log_close(&diff->logs[i]);
    }
    for (size_t k = 0; k < ERRAND__DIFF_COMMON; k++)
        free(diff->common[k].texts);
    free(diff->note.texts);
}
