/* SPDX-License-Identifier: MIT */
/* Design notes: the first of several, and the others aborted.
 *
 * A group is a node that joins its members.  The choice is made at the visit of the task that
 * waits: then the first in the list that has ended wins, whichever of them ended first, and the
 * others are aborted before the task's function is entered (D67, D149).  Aborting calls foreign
 * code, which may leave by longjmp: so the choice is written down, and the task stands in the
 * ready list again, before the first of these calls.
 *
 * A group that ends, because it is closed or the task that opened it has ended, aborts every member
 * that has not. */
#include "scheduler/scheduler.h"

errand_task *
errand__select_make(errand__scheduler *scheduler, size_t count)
{
    errand__join *joins = NULL;
    errand_task *group;

    if (count > SIZE_MAX / sizeof *joins)
        return NULL;
    if (count > 0) {
        joins = errand__mem_alloc(scheduler->allocator, count * sizeof *joins);
        if (joins == NULL)
            return NULL;
    }
    group = errand__node_make(scheduler, ERRAND__NODE_SELECT, scheduler->running, 0,
                              "select");
    if (group == NULL) {
        errand__mem_free(scheduler->allocator, joins, count * sizeof *joins);
        return NULL;
    }
    group->joins = joins;
    group->join_count = group->join_room = count;
    group->winner = SIZE_MAX;
    group->decided = count == 0;
    return group;
}

void
errand__select_add(errand_task *group, size_t index, errand_task *member)
{
    errand__join *join = &group->joins[index];

    *join = (errand__join){.joiner = group, .record = member, .target = member->number};
    if (member->finished)
        errand__join_ended(join, member);
    else
        errand__list_append(&member->joiners, &join->link);
}

bool
errand__select_ready(const errand_task *group)
{
    bool ready = group->decided;

    for (size_t i = 0; i < group->join_count && !ready; i++)
        ready = group->joins[i].ended;
    return ready;
}

void
errand__select_begin(errand_task *task, errand_task *group)
{
    task->selects = true;
    task->group = group;
    group->group = task;
}

void
errand__select_leave(errand_task *task)
{
    if (task->group != NULL)
        task->group->group = NULL;
    task->group = NULL;
    task->selects = false;
}

/* Marks the losers; calls nothing foreign. */
static void
choose(errand_task *group)
{
    group->decided = true;
    for (size_t i = 0; i < group->join_count; i++) {
        if (group->joins[i].ended && group->winner == SIZE_MAX)
            group->winner = i;
    }
    for (size_t i = 0; i < group->join_count; i++) {
        if (!group->joins[i].ended)
            errand__task_end(group->joins[i].record, ERRAND_END_ABORTED);
    }
}

bool
errand__select_decide(errand_task *task, size_t *out_index)
{
    errand__scheduler *scheduler = task->scheduler;
    errand_task *group = task->group;
    uint64_t number = task->number;
    size_t winner;

    *out_index = SIZE_MAX;
    if (group == NULL)
        return true; /* it was closed meanwhile */
    if (!group->decided)
        choose(group);
    winner = group->winner;
    if (!task->ending) /* as it is if it stands below a loser */
        errand__ready_append(scheduler, &task->ready);
    errand__endings_run(scheduler);
    if (task->number != number || task->ending)
        return false;
    errand__list_unlink(&task->ready.link);
    *out_index = winner;
    return true;
}

/* One member of a group that ends; false: there is none left. */
bool
errand__select_drop(errand_task *group)
{
    errand__join *join;

    if (group->join_count == 0)
        return false;
    join = &group->joins[--group->join_count];
    errand__list_unlink(&join->link);
    if (!join->ended && !group->decided)
        errand__task_end(join->record, ERRAND_END_ABORTED);
    return true;
}
