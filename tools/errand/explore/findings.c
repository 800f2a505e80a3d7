/* SPDX-License-Identifier: MIT */
/* findings: failures by their fingerprints, in the order in which each was first seen. */
#include "explore/explore.h"
#include <stdlib.h>
#include <string.h>

static errand__finding *
find(const errand__findings *findings, const errand__fingerprint *wanted)
{
    for (size_t i = 0; i < findings->count; i++) {
        if (errand__fingerprint_same(&findings->list[i].fingerprint, wanted))
            return &findings->list[i];
    }
    return NULL;
}

static errand__finding *
make(errand__findings *findings, const errand__fingerprint *fingerprint)
{
    if (findings->count == findings->room) {
        size_t room = findings->room == 0 ? 8 : findings->room * 2;
        errand__finding *list = realloc(findings->list, room * sizeof *list);
        if (list == NULL)
            return NULL;
        findings->list = list;
        findings->room = room;
    }
    errand__finding *finding = &findings->list[findings->count++];
    memset(finding, 0, sizeof *finding);
    finding->fingerprint = *fingerprint;
    return finding;
}

/* In rising order, the smallest ones. */
static void
keep_seed(errand__finding *finding, uint64_t seed)
{
    size_t at = finding->seeds_count;
    while (at > 0 && finding->seeds[at - 1] > seed)
        at--;
    if (at == ERRAND__FINDING_SEEDS || (at > 0 && finding->seeds[at - 1] == seed))
        return;
    size_t moved = finding->seeds_count - at;
    if (finding->seeds_count == ERRAND__FINDING_SEEDS)
        moved--;
    else
        finding->seeds_count++;
    memmove(&finding->seeds[at + 1], &finding->seeds[at], moved * sizeof(uint64_t));
    finding->seeds[at] = seed;
}

errand__finding *
errand__findings_add(errand__findings *findings, errand__trial *trial, bool *out_new)
{
    uint64_t seed = trial->options.seed;
    errand__finding *finding = find(findings, &trial->fingerprint);
    *out_new = finding == NULL;
    findings->failed++;
    if (finding == NULL)
        finding = make(findings, &trial->fingerprint);
    if (finding == NULL)
        return NULL;
    keep_seed(finding, seed);
    if (finding->count++ == 0 || seed < finding->seed) {
        free(finding->text);
        free(finding->output);
        finding->seed = seed;
        finding->text = trial->verdict.text;
        finding->output = trial->output;
        trial->verdict.text = NULL;
        trial->output = NULL;
    }
    return finding;
}

static int
compare_seeds(const void *a, const void *b)
{
    const errand__finding *first = a, *second = b;
    return (first->seed > second->seed) - (first->seed < second->seed);
}

void
errand__findings_sort(errand__findings *findings)
{
    if (findings->count > 0)
        qsort(findings->list, findings->count, sizeof *findings->list, compare_seeds);
}

void
errand__findings_fini(errand__findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free(findings->list[i].text);
        free(findings->list[i].output);
        free(findings->list[i].minimised);
        free(findings->list[i].logs[0]);
        free(findings->list[i].logs[1]);
    }
    free(findings->list);
    memset(findings, 0, sizeof *findings);
}
