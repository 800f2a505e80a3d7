/* SPDX-License-Identifier: MIT */
/* Design notes: records of tasks, their names and their tree.
 *
 * A task's number is its name; its record's slot is only where to look.  Records stay mapped while
 * the runtime lives and are used again when their task has ended and nobody holds it, so an old
 * name is recognised by its number, and a million short children need the memory of those that
 * lived at one time (D13, D64).
 *
 * A task's key hangs on its parent's key, its label and how many children that parent had, so that
 * one task more elsewhere shifts no draw of it.
 *
 * Walks follow links up and down: trees may be deeper than the stack is (D63). */
#include <string.h>
#include "scheduler/scheduler.h"

static errand_task *take_record(errand__scheduler *scheduler);
static void join_tree(errand_task *task, errand__scheduler *scheduler,
                      errand_task *parent);
static uint32_t chunk_of(uint32_t slot, uint32_t *out_place);

static void
write_label(errand_task *task, const char *label)
{
    size_t size = strnlen(label, sizeof task->label) + 1;

    if (size <= sizeof task->label)
        memcpy(task->label, label, size);
    else /* cut at a character's end */
        errand__text_format(task->label, sizeof task->label, "%s", label);
}

errand_status
errand__task_spawn(errand__scheduler *scheduler, errand_task *parent, uint64_t root_key,
                   const errand_task_spec *spec, errand_task **out_task)
{
    uint64_t *spawns = parent == NULL ? &scheduler->root_spawns : &parent->spawns;
    errand_task *task;

    if (scheduler->next_task == 0)
        return ERRAND_EEXHAUSTED;
    if (!errand__timers_reserve(scheduler, 2 * (scheduler->live + 1)))
        return ERRAND_ENOMEM;
    task = take_record(scheduler);
    if (task == NULL)
        return ERRAND_ENOMEM;
    join_tree(task, scheduler, parent);
    errand__counter_take(&scheduler->next_task, &task->number);
    write_label(task, spec->label == NULL ? "task" : spec->label);
    task->key = errand__key_child(parent == NULL ? root_key : parent->key, task->label,
                                  (*spawns)++);
    task->label_hash = errand__label_hash(task->label);
    task->fn = spec->fn;
    task->state = spec->state;
    task->on_end = spec->held_on_end;
    task->drop = spec->held_drop;
    task->trace = spec->held_trace;
    if (task->root == NULL) {
        task->root = task;
        task->propagates =
            (spec->flags & ERRAND_TASK_PROPAGATE) != 0 ||
            (scheduler->propagates && (spec->flags & ERRAND_TASK_CATCH) == 0);
    }
    scheduler->live++;
    scheduler->spawned++;
    scheduler->undecided++;
    task->phase = ERRAND_TASK_READY;
    task->why = ERRAND_WHY_START;
    task->ready.visit = errand__task_visit;
    task->ready.task = task;
    errand__audit_event(scheduler,
                        &(errand_step){
                            .kind = ERRAND_STEP_SPAWN,
                            .key = task->key,
                            .value = task->number,
                            .context = parent == NULL ? 0 : parent->key,
                            .label = task->label,
                        },
                        task->label_hash);
    errand__ready_append(scheduler, &task->ready);
    if (parent != NULL && parent->node == ERRAND__NODE_CONTEXT)
        parent->spent = task->consumes = true;
    *out_task = task;
    return ERRAND_OK;
}

errand_task *
errand__node_make(errand__scheduler *scheduler, errand__node node, errand_task *parent,
                  uint64_t root_key, const char *label)
{
    uint64_t *ordinal = parent == NULL ? &scheduler->root_contexts : &parent->contexts;
    errand_task *task = take_record(scheduler);

    if (task == NULL)
        return NULL;
    join_tree(task, scheduler, parent);
    task->node = (uint8_t)node;
    task->number = ERRAND__NODE_BIT | ++scheduler->nodes;
    write_label(task, label);
    task->key = errand__key_child(~(parent == NULL ? root_key : parent->key), task->label,
                                  (*ordinal)++);
    task->phase = ERRAND_TASK_WAITING;
    if (node == ERRAND__NODE_CONTEXT)
        scheduler->contexts++;
    return task;
}

errand_task *
errand__task_find(const errand__scheduler *scheduler, const errand_task_id *id)
{
    uint32_t chunk, place;
    errand_task *task;

    if (id->task == 0 || id->slot == 0 || id->slot > scheduler->tasks.fresh)
        return NULL;
    chunk = chunk_of(id->slot, &place);
    task = &scheduler->tasks.chunks[chunk][place];
    return task->number == id->task ? task : NULL;
}

errand_task_id
errand__task_id(const errand_task *task)
{
    return (errand_task_id){
        .runtime = task->scheduler->registrar->runtime_id,
        .task = task->number,
        .slot = task->slot,
    };
}

void
errand__task_release(errand_task *task)
{
    errand__scheduler *scheduler = task->scheduler;
    uint32_t slot = task->slot;

    if (!task->finished || task->holds != 0)
        return;
    errand__list_unlink(&task->all);
    errand__cause_forget(task);
    *task = (errand_task){.slot = slot, .scheduler = scheduler};
    task->next_free = scheduler->tasks.free_first;
    scheduler->tasks.free_first = task;
}

errand_task *
errand__task_following(const errand_task *task, const errand_task *top)
{
    if (!errand__list_empty(&task->children))
        return ERRAND__CONTAINER(task->children.next, errand_task, sibling);
    return errand__task_passing(task, top);
}

errand_task *
errand__task_passing(const errand_task *task, const errand_task *top)
{
    for (; task != top; task = task->parent) {
        const errand__link *head =
            task->parent == NULL ? &task->scheduler->roots : &task->parent->children;

        if (task->sibling.next != head)
            return ERRAND__CONTAINER(task->sibling.next, errand_task, sibling);
    }
    return NULL;
}

static void
join_tree(errand_task *task, errand__scheduler *scheduler, errand_task *parent)
{
    task->scheduler = scheduler;
    task->parent = parent;
    task->root = parent == NULL ? NULL : parent->root;
    errand__list_init(&task->children);
    errand__list_init(&task->joiners);
    errand__list_append(parent == NULL ? &scheduler->roots : &parent->children,
                        &task->sibling);
    errand__list_append(&scheduler->all, &task->all);
}

/* Slots 1 .. 64 are chunk 0, 65 .. 192 chunk 1, and so on. */
static uint32_t
chunk_of(uint32_t slot, uint32_t *out_place)
{
    uint32_t shifted = slot - 1 + (1U << ERRAND__TASK_CHUNK_FIRST);
    uint32_t top = 31U - (uint32_t)__builtin_clz(shifted);

    *out_place = shifted - (1U << top);
    return top - ERRAND__TASK_CHUNK_FIRST;
}

static errand_task *
take_record(errand__scheduler *scheduler)
{
    errand__task_table *tasks = &scheduler->tasks;
    errand_task *task = tasks->free_first;
    uint32_t chunk, place;

    if (task != NULL) {
        tasks->free_first = task->next_free;
        task->next_free = NULL;
        return task;
    }
    chunk = chunk_of(tasks->fresh + 1, &place);
    if (chunk >= ERRAND__TASK_CHUNKS)
        return NULL;
    if (tasks->chunks[chunk] == NULL) {
        tasks->chunks[chunk] = errand__mem_alloc(
            scheduler->allocator, sizeof *task << (chunk + ERRAND__TASK_CHUNK_FIRST));
        if (tasks->chunks[chunk] == NULL)
            return NULL;
    }
    task = &tasks->chunks[chunk][place];
    task->slot = ++tasks->fresh;
    return task;
}
