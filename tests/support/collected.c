/* SPDX-License-Identifier: MIT */
/* Design notes: two halves and a scan of what was copied, so that a collection needs no memory. */
#include "collected.h"

#include <string.h>
#include "errand/testing.h"
#include "group.h"

#define MAGIC UINT64_C(0x600d0b7ec7a11e5e)

void
collected_init(collected_heap *heap)
{
    memset(heap, 0, sizeof *heap);
}

collected_object *
collected_new(collected_heap *heap, int number)
{
    collected_object *object = &heap->halves[heap->half][heap->used++];

    assert_true(heap->used <= COLLECTED_MAX);
    *object = (collected_object){.magic = MAGIC, .number = number};
    return object;
}

void
collected_check(const collected_object *object, int number)
{
    assert_non_null(object);
    assert_true(object->magic == MAGIC);
    assert_int_equal(object->number, number);
}

static collected_object *
move(collected_heap *heap, collected_object *object)
{
    collected_object *to;

    if (object == NULL)
        return NULL;
    assert_true(object->magic == MAGIC);
    if (object->moved_to != NULL)
        return object->moved_to;
    to = &heap->halves[heap->half][heap->used++];
    *to = *object;
    object->moved_to = to;
    return to;
}

static bool
visit_slot(errand_visitor *visitor, void **slot)
{
    collected_heap *heap = visitor->arg;

    if (*slot == NULL)
        return false;
    if (heap->visits < COLLECTED_MAX)
        heap->seen[heap->visits] = ((collected_object *)*slot)->number;
    heap->visits++;
    *slot = move(heap, *slot);
    return false;
}

size_t
collected_collect(collected_heap *heap, errand_runtime *runtime)
{
    errand_visitor visitor = {.visit = visit_slot, .arg = heap};
    int old = heap->half;

    heap->half = 1 - old;
    heap->used = heap->visits = 0;
    (void)errand_testing_fail_allocation(0);
    assert_false(errand_runtime_trace(runtime, &visitor));
    heap->allocations += errand_testing_fail_allocation(0);
    for (size_t i = 0; i < heap->used; i++)
        heap->halves[heap->half][i].next = move(heap, heap->halves[heap->half][i].next);
    memset(heap->halves[old], 0xdd, sizeof heap->halves[old]);
    return heap->used;
}
