/* SPDX-License-Identifier: MIT */
/* Design notes: the ready list and its snapshots.
 *
 * What is readied while a pass runs waits for the next one, so no busy task stops others (D3, D6).
 * In seeded orders a snapshot of two or more is permuted: each item draws a number under (pass,
 * place), and the items are sorted by it.  Sorting a list by independent draws is as uniform as
 * swapping in an array, and needs no array: a pass must not fail because memory ran out, and must
 * not depend on how much of it there was. */
#include "scheduler/scheduler.h"

#define BINS 64 /* a list of 2^64 items is not to be feared */

static errand__link *merge(errand__link *older, errand__link *newer);
static void permute(errand__scheduler *scheduler);

void
errand__ready_append(errand__scheduler *scheduler, errand__ready *ready)
{
    ERRAND_ASSERT(!errand__list_linked(&ready->link));
    errand__list_append(&scheduler->ready, &ready->link);
}

/* The same for the same set, in whatever order it lies. */
static uint64_t
hash_of(const errand__link *head)
{
    uint64_t sum = 0;

    for (const errand__link *link = head->next; link != head; link = link->next) {
        uint64_t name = ERRAND__CONTAINER(link, const errand__ready, link)->name;

        sum += errand__key_operation(name, 0); /* a sum of keys would take any two for
                                                * any other two of that sum */
    }
    return sum;
}

void
errand__pass_begin(errand__scheduler *scheduler)
{
    errand__link *head = &scheduler->ready;

    ERRAND_ASSERT(errand__list_empty(&scheduler->pass));
    scheduler->passes++;
    if (errand__list_empty(head))
        return;
    if (errand__audit_listens(&scheduler->audit))
        scheduler->audit.ready = hash_of(head);
    scheduler->pass = *head;
    scheduler->pass.next->previous = scheduler->pass.previous->next = &scheduler->pass;
    errand__list_init(head);
    if (scheduler->order != ERRAND_ORDER_ARRIVAL &&
        scheduler->pass.next != scheduler->pass.previous)
        permute(scheduler);
}

errand__ready *
errand__pass_next(errand__scheduler *scheduler)
{
    errand__link *first = scheduler->pass.next;

    if (first == &scheduler->pass)
        return NULL;
    errand__list_unlink(first);
    return ERRAND__CONTAINER(first, errand__ready, link);
}

static uint64_t
place_of(const errand__link *link)
{
    return ERRAND__CONTAINER(link, const errand__ready, link)->key;
}

/* Both end in NULL; equal draws keep their order. */
static errand__link *
merge(errand__link *older, errand__link *newer)
{
    errand__link head, *last = &head;

    while (older != NULL && newer != NULL) {
        errand__link **from = place_of(newer) < place_of(older) ? &newer : &older;

        last->next = *from;
        last = *from;
        *from = last->next;
    }
    last->next = older != NULL ? older : newer;
    return head.next;
}

static void
permute(errand__scheduler *scheduler)
{
    errand__link *bins[BINS] = {NULL}, *head = &scheduler->pass, *list, *next;
    uint64_t place = 0;

    head->previous->next = NULL;
    for (list = head->next; list != NULL; list = next) {
        size_t bin = 0;

        next = list->next;
        list->next = NULL;
        ERRAND__CONTAINER(list, errand__ready, link)->key = errand__random_draw(
            scheduler->seed, ERRAND__STREAM_SCHEDULE, scheduler->passes, place++);
        for (; bins[bin] != NULL; bin++) {
            list = merge(bins[bin], list);
            bins[bin] = NULL;
        }
        bins[bin] = list;
    }
    list = NULL;
    for (size_t bin = 0; bin < BINS; bin++) {
        if (bins[bin] != NULL)
            list = merge(bins[bin], list);
    }
    errand__list_init(head);
    for (; list != NULL; list = next) {
        next = list->next;
        errand__list_append(head, list);
    }
}
