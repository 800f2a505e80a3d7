/* SPDX-License-Identifier: MIT */
/* Design notes: a tape, an array of choices in the order they were first put, and an index over
 * (site, key, ordinal): open addressing, at most half full.
 *
 * A choice that was removed stays as a hole (site 0), which no search takes for its own, until the
 * array is read by index or half of it is holes; then the holes are squeezed out.  So taking out
 * many one by one, as a minimiser does, costs no move each. */
#include <string.h>
#include "scheduler/scheduler.h"

#define ROOM_FIRST 64

enum { UNUSED = 0, USED = 1, CHANGED = 2 };

typedef struct entry {
    errand_choice choice; /* site 0 = a hole */
    int use;
} entry;

struct errand_tape {
    entry *entries;
    size_t count, room; /* holes count */
    size_t holes;
    uint32_t *slots; /* 2 * room of them; 0 = free, else an entry's index + 1 */
    uint64_t lost;   /* choices that found no memory */
};

errand_status
errand_tape_create(errand_tape **out_tape)
{
    errand_tape *tape;

    ERRAND_REQUIRE_ARG(out_tape != NULL, ERRAND_EINVAL, "out_tape is NULL");
    tape = errand__mem_alloc(NULL, sizeof *tape);
    if (tape == NULL)
        return ERRAND_ENOMEM;
    *out_tape = tape;
    return ERRAND_OK;
}

void
errand_tape_abandon(errand_tape **take_tape)
{
    errand_tape *tape = take_tape == NULL ? NULL : *take_tape;

    if (tape == NULL)
        return;
    *take_tape = NULL;
    errand__mem_free(NULL, tape->entries, tape->room * sizeof *tape->entries);
    errand__mem_free(NULL, tape->slots, 2 * tape->room * sizeof *tape->slots);
    errand__mem_free(NULL, tape, sizeof *tape);
}

/* Where a search for these begins; room is a power of two. */
static size_t
slot_first(const errand_tape *tape, errand_site site, uint64_t key, uint64_t ordinal)
{
    uint64_t hash = (key ^ (uint64_t)site << 56) * UINT64_C(0x9e3779b97f4a7c15);

    hash = (hash ^ hash >> 32 ^ ordinal) * UINT64_C(0xd6e8feb86659fd93);
    return (size_t)(hash ^ hash >> 32) & (2 * tape->room - 1);
}

static entry *
find(const errand_tape *tape, errand_site site, uint64_t key, uint64_t ordinal)
{
    if (tape->room == 0)
        return NULL;
    for (size_t slot = slot_first(tape, site, key, ordinal); tape->slots[slot] != 0;
         slot = (slot + 1) & (2 * tape->room - 1)) {
        entry *found = &tape->entries[tape->slots[slot] - 1];

        if (found->choice.site == site && found->choice.key == key &&
            found->choice.ordinal == ordinal)
            return found;
    }
    return NULL;
}

static void
index_entry(errand_tape *tape, size_t place)
{
    const errand_choice *choice = &tape->entries[place].choice;
    size_t slot = slot_first(tape, choice->site, choice->key, choice->ordinal);

    while (tape->slots[slot] != 0)
        slot = (slot + 1) & (2 * tape->room - 1);
    tape->slots[slot] = (uint32_t)place + 1;
}

static void
index_all(errand_tape *tape)
{
    memset(tape->slots, 0, 2 * tape->room * sizeof *tape->slots);
    for (size_t i = 0; i < tape->count; i++)
        index_entry(tape, i);
}

static void
squeeze(errand_tape *tape)
{
    size_t kept = 0;

    if (tape->holes == 0)
        return;
    for (size_t i = 0; i < tape->count; i++) {
        if (tape->entries[i].choice.site != 0)
            tape->entries[kept++] = tape->entries[i];
    }
    tape->count = kept;
    tape->holes = 0;
    index_all(tape);
}

static bool
make_room(errand_tape *tape)
{
    size_t room = tape->room == 0 ? ROOM_FIRST : 2 * tape->room;
    entry *entries;
    uint32_t *slots;

    if (tape->count < tape->room)
        return true;
    if (tape->holes > tape->count / 2) {
        squeeze(tape);
        return true;
    }
    if (room > UINT32_MAX / 2)
        return false;
    slots = errand__mem_alloc(NULL, 2 * room * sizeof *slots);
    if (slots == NULL)
        return false;
    entries = errand__mem_grow(NULL, tape->entries, tape->room * sizeof *entries,
                               room * sizeof *entries);
    if (entries == NULL) {
        errand__mem_free(NULL, slots, 2 * room * sizeof *slots);
        return false;
    }
    errand__mem_free(NULL, tape->slots, 2 * tape->room * sizeof *tape->slots);
    tape->entries = entries;
    tape->slots = slots;
    tape->room = room;
    index_all(tape);
    return true;
}

static bool
put(errand_tape *tape, const errand_choice *choice)
{
    entry *found = find(tape, choice->site, choice->key, choice->ordinal);

    if (found != NULL) {
        found->choice = *choice;
        return true;
    }
    if (!make_room(tape))
        return false;
    tape->entries[tape->count] = (entry){.choice = *choice};
    index_entry(tape, tape->count++);
    return true;
}

errand_status
errand_tape_put(errand_tape *tape, const errand_choice *choice)
{
    const char *fault;

    ERRAND_REQUIRE_ARG(tape != NULL && choice != NULL, ERRAND_EINVAL,
                       "tape and choice are needed");
    fault = errand__choice_fault(choice);
    if (fault != NULL)
        return errand__misuse(ERRAND_EINVAL, __func__, fault);
    return put(tape, choice) ? ERRAND_OK : ERRAND_ENOMEM;
}

errand_status
errand_tape_remove(errand_tape *tape, errand_site site, uint64_t key, uint64_t ordinal)
{
    entry *found;

    ERRAND_REQUIRE_ARG(tape != NULL, ERRAND_EINVAL, "the tape is NULL");
    ERRAND_REQUIRE_ARG(errand__site_known(site), ERRAND_EINVAL, "there is no such site");
    found = find(tape, site, key, ordinal);
    if (found == NULL)
        return ERRAND_EUNKNOWN;
    found->choice.site = 0;
    tape->holes++;
    return ERRAND_OK;
}

errand_status
errand_tape_find(const errand_tape *tape, errand_site site, uint64_t key,
                 uint64_t ordinal, errand_choice *out_choice)
{
    const entry *found;

    ERRAND_REQUIRE_ARG(tape != NULL && out_choice != NULL, ERRAND_EINVAL,
                       "tape and out_choice are needed");
    ERRAND_REQUIRE_ARG(errand__site_known(site), ERRAND_EINVAL, "there is no such site");
    found = find(tape, site, key, ordinal);
    if (found == NULL)
        return ERRAND_EUNKNOWN;
    *out_choice = found->choice;
    return ERRAND_OK;
}

size_t
errand_tape_count(const errand_tape *tape)
{
    return tape == NULL ? 0 : tape->count - tape->holes;
}

bool
errand_tape_at(errand_tape *tape, size_t index, errand_choice *out_choice)
{
    if (tape == NULL || out_choice == NULL || index >= errand_tape_count(tape))
        return false;
    squeeze(tape);
    *out_choice = tape->entries[index].choice;
    return true;
}

static bool
at_use(errand_tape *tape, int use, size_t index, errand_choice *out_choice)
{
    if (tape == NULL || out_choice == NULL)
        return false;
    for (size_t i = 0; i < tape->count; i++) {
        const entry *looked = &tape->entries[i];

        if (looked->choice.site != 0 && looked->use == use && index-- == 0) {
            *out_choice = looked->choice;
            return true;
        }
    }
    return false;
}

bool
errand_tape_unused(errand_tape *tape, size_t index, errand_choice *out_choice)
{
    return at_use(tape, UNUSED, index, out_choice);
}

bool
errand_tape_changed(errand_tape *tape, size_t index, errand_choice *out_choice)
{
    return at_use(tape, CHANGED, index, out_choice);
}

void
errand_tape_rewind(errand_tape *tape)
{
    for (size_t i = 0; tape != NULL && i < tape->count; i++)
        tape->entries[i].use = UNUSED;
}

/* ---- for a run ---------------------------------------------------------------------------------- */

bool
errand__tape_ask(errand_tape *tape, const errand_choice *asked, uint64_t *out_value)
{
    entry *found = find(tape, asked->site, asked->key, asked->ordinal);

    if (found == NULL)
        return false;
    if (found->choice.n != asked->n)
        found->use = CHANGED;
    else if (found->use == UNUSED)
        found->use = USED;
    *out_value = asked->n == 0 ? found->choice.value : found->choice.value % asked->n;
    return true;
}

void
errand__tape_record(errand_tape *tape, const errand_choice *choice)
{
    if (!put(tape, choice))
        tape->lost++;
}

bool
errand__tape_has_lost(const errand_tape *tape)
{
    return tape->lost != 0;
}
