/* SPDX-License-Identifier: MIT */
/* Design notes: which of what is ready is picked, under the policies that are not fair.
 *
 * Every parameter of a policy (priorities, change points, delays, windows) is a choice of its own
 * that hangs on the item's key or on its number, and value 0 of each leaves first in, first out.
 * So a tape of such a run can be cut down choice by choice.
 *
 * Priorities as in probabilistic concurrency testing: an item runs while it is first in line; at
 * a change point the first in line becomes the last.  A rank is a number, the smallest is first:
 * a chosen priority is below 2^32, the i-th change gives 2^32 + i.  From the pick number `steps`
 * on, where none of the bounds holds any more, the oldest is taken, so that an item which is
 * always ready cannot hold up a run for ever. */
#include "scheduler/scheduler.h"

#define DEPTH_DEFAULT 3
#define STEPS_DEFAULT 1000
#define RANK_CHANGED  (UINT64_C(1) << 32)

static errand__ready *
item_at(errand__link *link)
{
    return ERRAND__CONTAINER(link, errand__ready, link);
}

static uint64_t
point(errand__scheduler *scheduler, errand_site site, uint32_t number)
{
    return errand__choose(scheduler, site, number, 0, scheduler->policy.steps + 1);
}

void
errand__policy_init(errand__scheduler *scheduler)
{
    const errand_choices *given = &scheduler->chooser.given;
    errand__policy *policy = &scheduler->policy;
    uint32_t i;

    *policy = (errand__policy){
        .kind = given->policy,
        .fair = given->policy <= ERRAND_POLICY_FIFO,
        .depth = given->depth == 0 ? DEPTH_DEFAULT : given->depth,
        .steps = given->steps == 0 ? STEPS_DEFAULT : given->steps,
    };
    switch (policy->kind) {
    case ERRAND_POLICY_PCT:
        for (i = 1; i < policy->depth; i++)
            policy->points[i - 1].first = point(scheduler, ERRAND_SITE_CHANGE, i);
        break;
    case ERRAND_POLICY_DELAY:
        for (i = 1; i <= policy->depth; i++)
            policy->points[i - 1].first = point(scheduler, ERRAND_SITE_DELAY, i);
        break;
    case ERRAND_POLICY_STARVE:
        for (i = 1; i <= policy->depth; i++) {
            policy->points[i - 1].first = point(scheduler, ERRAND_SITE_STARVE, i);
            policy->points[i - 1].length = errand__choose(scheduler, ERRAND_SITE_STARVE,
                                                          i, 1, policy->steps / 4 + 2);
        }
        break;
    default:
        break;
    }
}

/* A point that was reached stands; another one will be reached later than now, so that a run from
 * the start with the new value is the same up to here. */
void
errand__policy_branch(errand__scheduler *scheduler)
{
    errand__policy *policy = &scheduler->policy;
    uint64_t least = policy->picks + 1, n = policy->steps + 1;
    errand_site site = policy->kind == ERRAND_POLICY_PCT     ? ERRAND_SITE_CHANGE
                       : policy->kind == ERRAND_POLICY_DELAY ? ERRAND_SITE_DELAY
                                                             : ERRAND_SITE_STARVE;
    uint32_t count = policy->depth - (policy->kind == ERRAND_POLICY_PCT);

    if (policy->fair || policy->kind == ERRAND_POLICY_PICK || least >= n)
        return;
    for (uint32_t i = 0; i < count; i++) {
        if (policy->points[i].first != 0 && policy->points[i].first < least)
            continue;
        policy->points[i].first =
            errand__choose_again(scheduler, site, i + 1, 0, least, n);
        if (policy->kind == ERRAND_POLICY_STARVE)
            policy->points[i].length =
                errand__choose_again(scheduler, site, i + 1, 1, 0, policy->steps / 4 + 2);
    }
}

void
errand__policy_readied(errand__scheduler *scheduler, errand__ready *ready)
{
    errand__ready *item = errand__ready_item(ready);

    if (scheduler->policy.kind != ERRAND_POLICY_PCT)
        return;
    if (item->rank == 0)
        item->rank = 1 + errand__choose(scheduler, ERRAND_SITE_PRIORITY, ready->key, 0,
                                        UINT64_C(1) << 32);
}

/* ---- pct ---------------------------------------------------------------------------------------- */

static errand__ready *
first_in_line(errand__scheduler *scheduler)
{
    errand__link *head = &scheduler->ready;
    errand__ready *first = item_at(head->next);

    for (errand__link *link = head->next->next; link != head; link = link->next) {
        if (errand__ready_item(item_at(link))->rank < errand__ready_item(first)->rank)
            first = item_at(link);
    }
    return first;
}

static errand__ready *
pick_pct(errand__scheduler *scheduler)
{
    const errand__policy *policy = &scheduler->policy;

    for (uint32_t i = 0; i + 1 < policy->depth; i++) {
        if (policy->points[i].first == policy->picks)
            errand__ready_item(first_in_line(scheduler))->rank = RANK_CHANGED + 1 + i;
    }
    return first_in_line(scheduler);
}

/* ---- delay -------------------------------------------------------------------------------------- */

static errand__ready *
pick_delayed(errand__scheduler *scheduler)
{
    const errand__policy *policy = &scheduler->policy;
    errand__link *head = &scheduler->ready;

    for (uint32_t i = 0; i < policy->depth; i++) {
        errand__link *oldest = head->next;

        if (policy->points[i].first != policy->picks)
            continue;
        errand__list_unlink(oldest);
        errand__list_append(head, oldest);
    }
    return item_at(head->next);
}

/* ---- pick, starve --------------------------------------------------------------------------------- */

static bool
starves(errand__scheduler *scheduler, errand__ready *ready)
{
    const errand__policy *policy = &scheduler->policy;
    errand__ready *item = errand__ready_item(ready);
    uint32_t now = 0;

    if (policy->kind != ERRAND_POLICY_STARVE || policy->picks >= policy->steps)
        return false;
    for (uint32_t i = 0; i < policy->depth; i++) {
        uint32_t bit = UINT32_C(1) << i;

        if (policy->points[i].first == 0 || policy->picks < policy->points[i].first ||
            policy->picks - policy->points[i].first >= policy->points[i].length)
            continue;
        if ((item->asked & bit) == 0 &&
            errand__choose(scheduler, ERRAND_SITE_STARVE, ready->key, 2 + i, 2) == 1)
            item->starves |= bit;
        item->asked |= bit;
        now |= bit;
    }
    return (item->starves & now) != 0;
}

/* Any of those that do not starve; of all, if all do. */
static errand__ready *
pick_any(errand__scheduler *scheduler)
{
    errand__link *head = &scheduler->ready, *link;
    uint64_t count = 0, fed = 0, chosen;
    bool all;

    for (link = head->next; link != head; link = link->next) {
        count++;
        fed += !starves(scheduler, item_at(link));
    }
    all = fed == 0;
    chosen = errand__choose(scheduler, ERRAND_SITE_PICK, 0, scheduler->policy.picks - 1,
                            all ? count : fed);
    for (link = head->next; link->next != head; link = link->next) {
        if ((all || !starves(scheduler, item_at(link))) && chosen-- == 0)
            break;
    }
    return item_at(link);
}

errand__ready *
errand__policy_pick(errand__scheduler *scheduler)
{
    errand__policy *policy = &scheduler->policy;

    policy->picks++;
    if (policy->kind == ERRAND_POLICY_PICK)
        return pick_any(scheduler);
    if (policy->picks > policy->steps)
        return item_at(scheduler->ready.next);
    switch (policy->kind) {
    case ERRAND_POLICY_PCT:
        return pick_pct(scheduler);
    case ERRAND_POLICY_DELAY:
        return pick_delayed(scheduler);
    default:
        return pick_any(scheduler);
    }
}
