/* SPDX-License-Identifier: MIT */
/* source: items, each an operation of its own.
 *
 * Design notes: the body of an item takes what is there from the system, one for itself and, where the
 * kind of source has more at once, some for those behind it.  It never waits with something
 * in its hands: it asks for readiness, and what came with a cancel is still there for the next
 * item.  What is buffered is in a ring that bodies fill and the owner empties when it closes,
 * under the source's lock; payloads are dropped outside of it. */
#include <poll.h>
#include "operations/operations.h"

enum { ITEMS_DEFAULT = 16, ITEMS_MAX = 4096, CHUNK_DEFAULT = 65536 };

struct errand_source {
    /* refs: the host's references and those of items.
     * Writers: whoever holds or abandons.   Readers: the same.
     * Order:   fetch_sub acq_rel.
     * Pairs:   source-refs.
     * Why:     the last one gives up what the others used. */
    atomic_uint refs;
    /* Immutable. */
    const errand__source_type *type;
    void *thing;
    errand__seat *outer;
    uint32_t outer_ticket;
    uint32_t room;
    size_t chunk_max;
    errand__seat seat; /* of its items */
    errand__lock lock;
    /* Guarded by lock. */
    uint32_t first, count;
    bool closed;
    errand_payload items[];
};

typedef struct next_state {
    errand__wait wait;
    errand_source *source;
} next_state;

static int32_t next_poll(errand_job *job, void *state, errand_payload *out_payload);
static int32_t take_one(errand_job *job, errand_source *source,
                        errand_payload *out_payload);
static void fill(errand_job *job, errand_source *source);
static bool pop(errand_source *source, errand_payload *out_item);
static bool push(errand_source *source, const errand_payload *item);
static void next_drop(void *state);

errand_status
errand__source_create(const char *function, const errand__source_type *held_type,
                      void *own_thing, errand__seat *outer,
                      const errand_source_config *config, errand_source **out_source)
{
    uint32_t room =
        config == NULL || config->items_max == 0 ? ITEMS_DEFAULT : config->items_max;
    errand_source *made;

    ERRAND_REQUIRE_OF(
        function,
        config == NULL || (config->struct_size == sizeof *config && config->flags == 0),
        ERRAND_EINVAL, "struct_size must be sizeof(errand_source_config), flags 0");
    ERRAND_REQUIRE_OF(function,
                      config == NULL || (config->items_max <= ITEMS_MAX &&
                                         config->chunk_max <= ERRAND_RECEIVE_MAX),
                      ERRAND_EINVAL, "items_max or chunk_max is beyond its bound");
    if (!held_type->buffers)
        room = 0;
    made = errand__operation_block_alloc(sizeof *made + room * sizeof(errand_payload));
    if (made == NULL)
        return ERRAND_ENOMEM;
    if (outer != NULL && !errand__seat_take(outer, &made->outer_ticket)) {
        errand__operation_block_free(made);
        return ERRAND_EBUSY;
    }
    atomic_init(&made->refs, 1);
    made->type = held_type;
    made->thing = own_thing;
    made->outer = outer;
    made->room = room;
    made->chunk_max =
        config == NULL || config->chunk_max == 0 ? CHUNK_DEFAULT : config->chunk_max;
    *out_source = made;
    return ERRAND_OK;
}

errand_source *
errand_source_hold(errand_source *source)
{
    if (source != NULL)
        atomic_fetch_add_explicit(&source->refs, 1, memory_order_relaxed);
    return source;
}

size_t
errand_source_buffered(errand_source *source)
{
    size_t count;

    if (source == NULL)
        return 0;
    errand__lock_acquire(&source->lock);
    count = source->count;
    errand__lock_release(&source->lock);
    return count;
}

size_t
errand_source_close(errand_source *source)
{
    errand_payload item;
    size_t count = 0;

    if (source == NULL)
        return 0;
    errand__lock_acquire(&source->lock);
    source->closed = true;
    errand__lock_release(&source->lock);
    errand__seat_close(&source->seat, ERRAND__SEAT_CLOSED);
    if (source->outer != NULL) /* no item begins to use it any more */
        errand__seat_told(source->outer, source->outer_ticket);
    for (; pop(source, &item); count++)
        errand_payload_drop(&item);
    return count;
}

void
errand_source_abandon(errand_source **take_source)
{
    if (take_source == NULL || *take_source == NULL)
        return;
    errand_source *source = *take_source;
    *take_source = NULL;
    /* Pairs: source-refs */
    if (atomic_fetch_sub_explicit(&source->refs, 1, memory_order_acq_rel) != 1)
        return;
    errand_source_close(source);
    source->type->let(source->thing);
    errand__seat_fini(&source->seat);
    errand__operation_block_free(source);
}

static const errand_job_type next_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "next",
    .poll = next_poll,
    .drop = next_drop,
    .told = errand__wait_told,
};

errand_status
errand_source_next(errand_source *source, errand_spec *out_spec)
{
    ERRAND_REQUIRE_ARG(source != NULL && out_spec != NULL, ERRAND_EINVAL,
                       "source or out_spec is NULL");
    next_state *state = errand__wait_create(sizeof *state, 0, 0);
    if (state == NULL)
        return ERRAND_ENOMEM;
    if (!errand__seat_take(&source->seat, &state->wait.ticket)) {
        errand__operation_block_free(state);
        return ERRAND_EBUSY;
    }
    state->wait.seat = &source->seat;
    state->wait.outer = source->outer;
    state->wait.outer_ticket = source->outer_ticket;
    state->wait.item = true;
    state->wait.keeps = source->type->keeps;
    state->source = errand_source_hold(source);
    errand__wait_spec(out_spec, ERRAND_KIND_NEXT, &next_job, state);
    out_spec->held_name = source->type->name;
    return ERRAND_OK;
}

static int32_t
next_poll(errand_job *job, void *state, errand_payload *out_payload)
{
    next_state *next = state;
    errand_source *source = next->source;
    const errand__source_type *type = source->type;
    int32_t code = errand__wait_ready(job, &next->wait);

    if (code == 0) {
        code = take_one(job, source, out_payload);
        if (code == ERRAND_PENDING)
            code = errand__wait_poll(job, &next->wait, type->fd(source->thing),
                                     type->events == NULL ? POLLIN
                                                          : type->events(source->thing));
    }
    return errand__wait_done(&next->wait, code);
}

static int32_t
take_one(errand_job *job, errand_source *source, errand_payload *out_payload)
{
    int32_t code = 0;

    if (!pop(source, out_payload)) {
        code = source->type->take(job, source->thing, source->chunk_max, out_payload);
        if (code == 0 && source->type->buffers)
            fill(job, source);
    }
    return code;
}

/* Takes what else is there.  A failure is met again by the item that it belongs to. */
static void
fill(errand_job *job, errand_source *source)
{
    while (errand_source_buffered(source) < source->room) {
        errand_payload item = {.data = NULL};

        if (source->type->take(job, source->thing, source->chunk_max, &item) != 0)
            return;
        if (!push(source, &item)) {
            errand_payload_drop(&item);
            return;
        }
    }
}

static bool
pop(errand_source *source, errand_payload *out_item)
{
    bool some;

    errand__lock_acquire(&source->lock);
    some = source->count > 0;
    if (some) {
        *out_item = source->items[source->first];
        source->first = (source->first + 1) % source->room;
        source->count--;
    }
    errand__lock_release(&source->lock);
    return some;
}

/* False: it was closed meanwhile. */
static bool
push(errand_source *source, const errand_payload *item)
{
    bool open;

    errand__lock_acquire(&source->lock);
    open = !source->closed;
    if (open) {
        source->items[(source->first + source->count) % source->room] = *item;
        source->count++;
    }
    errand__lock_release(&source->lock);
    return open;
}

static void
next_drop(void *state)
{
    next_state *next = state;

    errand__wait_fini(&next->wait);
    errand_source_abandon(&next->source);
    errand__operation_block_free(next);
}
