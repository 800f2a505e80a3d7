/* SPDX-License-Identifier: MIT */
/* log_names: who is who in a log.  A key says nothing to people; the path of the tasks above, as
 * their spawns tell it, does.  A second task of one label below one parent is label#2. */
#include "log/log_view.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static size_t
place_of(uint64_t key, size_t room)
{
    key ^= key >> 29;
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15)) & (room - 1);
}

static errand__name *
find(const errand__names *names, uint64_t key)
{
    size_t place;
    if (names->room == 0)
        return NULL;
    place = place_of(key, names->room);
    while (names->slots[place].label != NULL && names->slots[place].key != key)
        place = (place + 1) & (names->room - 1);
    return &names->slots[place];
}

static bool
grow(errand__names *names)
{
    errand__names grown = {.room = names->room == 0 ? 256 : names->room * 2};
    grown.slots = calloc(grown.room, sizeof *grown.slots);
    if (grown.slots == NULL)
        return false;
    for (size_t i = 0; i < names->room; i++) {
        if (names->slots[i].label != NULL)
            *find(&grown, names->slots[i].key) = names->slots[i];
    }
    free(names->slots);
    names->slots = grown.slots;
    names->room = grown.room;
    return true;
}

static struct errand__name_count *
find_count(struct errand__name_count *counts, size_t room, uint64_t above, uint64_t label)
{
    size_t place = place_of(above ^ label, room);
    while (counts[place].count != 0 &&
           (counts[place].above != above || counts[place].label != label))
        place = (place + 1) & (room - 1);
    return &counts[place];
}

/* How many of that label came before it there; -1 = no memory. */
static int64_t
count_label(errand__names *names, uint64_t above, const char *label)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    struct errand__name_count *found;
    for (const char *c = label; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    if (names->counts_count >= names->counts_room / 2) {
        size_t room = names->counts_room == 0 ? 256 : names->counts_room * 2;
        struct errand__name_count *grown = calloc(room, sizeof *grown);
        if (grown == NULL)
            return -1;
        for (size_t i = 0; i < names->counts_room; i++) {
            const struct errand__name_count *old = &names->counts[i];
            if (old->count != 0)
                *find_count(grown, room, old->above, old->label) = *old;
        }
        free(names->counts);
        names->counts = grown;
        names->counts_room = room;
    }
    found = find_count(names->counts, names->counts_room, above, hash);
    if (found->count == 0) {
        names->counts_count++;
        found->above = above;
        found->label = hash;
    }
    return found->count++;
}

bool
errand__names_learn(errand__names *names, const errand_step *step)
{
    const char *label = step->label != NULL ? step->label : "?";
    char text[128];
    int64_t before;
    errand__name *slot;
    if (step->kind != ERRAND_STEP_SPAWN && step->kind != ERRAND_STEP_SUBMIT)
        return true;
    if (names->count >= names->room / 2 && !grow(names))
        return false;
    slot = find(names, step->key);
    if (slot->label != NULL)
        return true;
    before =
        step->kind == ERRAND_STEP_SPAWN ? count_label(names, step->context, label) : 0;
    if (before < 0)
        return false;
    if (before == 0)
        snprintf(text, sizeof text, "%s", label);
    else
        snprintf(text, sizeof text, "%s#%" PRId64, label, before + 1);
    *slot = (errand__name){.key = step->key,
                           .above = step->context,
                           .label = strdup(text),
                           .operation = step->kind == ERRAND_STEP_SUBMIT};
    names->count += slot->label != NULL;
    return slot->label != NULL;
}

/* From the end: deep paths lose their beginning. */
void
errand__names_path(const errand__names *names, uint64_t key, char *out, size_t size)
{
    char text[512];
    size_t at = sizeof text - 1, depth = 0;
    text[at] = '\0';
    if (key == 0) {
        snprintf(out, size, "runtime");
        return;
    }
    for (;;) {
        const errand__name *name = find(names, key);
        size_t length;
        if (name == NULL || name->label == NULL) {
            if (at == sizeof text - 1)
                snprintf(out, size, "%016" PRIx64, key);
            else
                snprintf(out, size, "%s", text + at);
            return;
        }
        length = strlen(name->label);
        if (length + 5 > at || ++depth > 64) {
            snprintf(out, size, "...%s", text + at);
            return;
        }
        if (text[at] != '\0')
            text[--at] = '/';
        at -= length;
        memcpy(text + at, name->label, length);
        if (name->above == 0) {
            snprintf(out, size, "%s", text + at);
            return;
        }
        key = name->above;
    }
}

void
errand__names_fini(errand__names *names)
{
    for (size_t i = 0; i < names->room; i++)
        free(names->slots[i].label);
    free(names->slots);
    free(names->counts);
    *names = (errand__names){.room = 0};
}
