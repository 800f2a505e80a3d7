/* SPDX-License-Identifier: MIT */
/* Design notes: merge sort from below, on the links themselves: bin i holds nothing or a sorted run
 * of 2^i links, so no memory is needed and equal ones keep their order. */
#include "core/core.h"

#define BINS 64 /* a list of 2^64 links is not to be feared */

typedef bool before_fn(const errand__link *a, const errand__link *b);

/* Both end in NULL. */
static errand__link *
merge(errand__link *older, errand__link *newer, before_fn *before)
{
    errand__link head, *last = &head;

    while (older != NULL && newer != NULL) {
        errand__link **from = before(newer, older) ? &newer : &older;

        last->next = *from;
        last = *from;
        *from = last->next;
    }
    last->next = older != NULL ? older : newer;
    return head.next;
}

void
errand__list_sort(errand__link *head, before_fn *before)
{
    errand__link *bins[BINS] = {NULL}, *list = NULL, *next;

    if (errand__list_empty(head))
        return;
    head->previous->next = NULL;
    for (errand__link *link = head->next; link != NULL; link = next) {
        size_t bin = 0;

        next = link->next;
        link->next = NULL;
        for (; bins[bin] != NULL; bin++) {
            link = merge(bins[bin], link, before);
            bins[bin] = NULL;
        }
        bins[bin] = link;
    }
    for (size_t bin = 0; bin < BINS; bin++) {
        if (bins[bin] != NULL)
            list = merge(bins[bin], list, before);
    }
    errand__list_init(head);
    for (; list != NULL; list = next) {
        next = list->next;
        errand__list_append(head, list);
    }
}
