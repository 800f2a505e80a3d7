/* SPDX-License-Identifier: MIT */
/* Design notes: the ready list and its passes.
 *
 * Fair policies: what is readied while a pass runs waits for the next one, so no busy task stops
 * others (D3, D6).  A snapshot of two or more is permuted by shuffle: for each item a number is
 * chosen that hangs on the item's key and its visits so far, and the items are sorted by it.
 * Sorting a list by independent draws is as uniform as swapping in an array, needs no array (a
 * pass must not fail because memory ran out), and taking one item out leaves the others' numbers
 * as they were (D52).
 *
 * Unfair policies: a pass is a number of picks, each among all that is ready then.  There are as
 * many as items were ready at the pass's begin, and one more for each that is readied again at
 * once (a deadline that passed already), which happens a bounded number of times: so the pass
 * ends, and time moves on, whatever the items do. */
#include "scheduler/scheduler.h"

static bool by_place(const errand__link *a, const errand__link *b);

errand__ready *
errand__ready_item(errand__ready *ready)
{
    return ready->task != NULL ? &ready->task->ready : ready;
}

static void
append(errand__scheduler *scheduler, errand__link *list, errand__ready *ready)
{
    ERRAND_ASSERT(!errand__list_linked(&ready->link));
    if (ready->task != NULL)
        ready->key = ready->task->key;
    ready->ordinal = errand__ready_item(ready)->visits++;
    errand__list_append(list, &ready->link);
    if (!scheduler->policy.fair)
        errand__policy_readied(scheduler, ready);
}

void
errand__ready_append(errand__scheduler *scheduler, errand__ready *ready)
{
    append(scheduler, &scheduler->ready, ready);
}

void
errand__ready_append_soon(errand__scheduler *scheduler, errand__ready *ready)
{
    append(scheduler, scheduler->policy.fair ? &scheduler->pass : &scheduler->ready,
           ready);
    if (!scheduler->policy.fair)
        scheduler->policy.left++;
}

static void
permute(errand__scheduler *scheduler)
{
    errand__link *head = &scheduler->pass;

    for (errand__link *link = head->next; link != head; link = link->next) {
        errand__ready *ready = ERRAND__CONTAINER(link, errand__ready, link);

        ready->place = errand__choose(scheduler, ERRAND_SITE_PLACE, ready->key,
                                      ready->ordinal, UINT64_C(1) << 32);
    }
    errand__list_sort(head, by_place);
}

/* The same for the same set, in whatever order it lies. */
static uint64_t
hash_of(const errand__link *head)
{
    uint64_t sum = 0;

    for (const errand__link *link = head->next; link != head; link = link->next) {
        uint64_t name = ERRAND__CONTAINER(link, const errand__ready, link)->key;

        /* Keys are hashes already; a plain sum would take any two for any others of that sum. */
        name *= UINT64_C(0x9e3779b97f4a7c15);
        sum += name ^ name >> 32;
    }
    return sum;
}

void
errand__pass_begin(errand__scheduler *scheduler)
{
    errand__link *head = &scheduler->ready;

    ERRAND_ASSERT(errand__list_empty(&scheduler->pass));
    scheduler->passes++;
    scheduler->policy.left = 0;
    if (!scheduler->policy.fair) {
        for (const errand__link *link = head->next; link != head; link = link->next)
            scheduler->policy.left++;
        return;
    }
    if (errand__audit_listens(&scheduler->audit))
        scheduler->audit.ready = hash_of(head);
    if (errand__list_empty(head))
        return;
    scheduler->pass = *head;
    scheduler->pass.next->previous = scheduler->pass.previous->next = &scheduler->pass;
    errand__list_init(head);
    if (scheduler->order != ERRAND_ORDER_ARRIVAL &&
        scheduler->policy.kind == ERRAND_POLICY_SHUFFLE &&
        scheduler->pass.next != scheduler->pass.previous)
        permute(scheduler);
}

errand__ready *
errand__pass_next(errand__scheduler *scheduler)
{
    errand__ready *ready;

    if (!errand__pass_pending(scheduler))
        return NULL;
    if (scheduler->policy.fair) {
        ready = ERRAND__CONTAINER(scheduler->pass.next, errand__ready, link);
    } else {
        if (errand__audit_listens(&scheduler->audit))
            scheduler->audit.ready = hash_of(&scheduler->ready);
        ready = errand__policy_pick(scheduler);
        scheduler->policy.left--;
    }
    errand__list_unlink(&ready->link);
    scheduler->visits++;
    return ready;
}

bool
errand__pass_pending(const errand__scheduler *scheduler)
{
    return !errand__list_empty(&scheduler->pass) ||
           (scheduler->policy.left != 0 && !errand__list_empty(&scheduler->ready));
}

static bool
by_place(const errand__link *a, const errand__link *b)
{
    return ERRAND__CONTAINER(a, const errand__ready, link)->place <
           ERRAND__CONTAINER(b, const errand__ready, link)->place;
}
