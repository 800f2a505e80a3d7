/* SPDX-License-Identifier: MIT */
/* Design notes
 * - One function lays everything out, once to count and once to write, so that the two cannot
 *   differ. */
#include "workers/sandbox/policy.h"

#include <linux/filter.h>
#include <string.h>
#include "core/core.h"

enum { NOBODY = 65534 };

typedef struct layout {
    unsigned char *bytes; /* NULL: count only */
    size_t used;
} layout;

/* Answers where size bytes stand, aligned. */
static uint32_t
place(layout *self, const void *bytes, size_t size, size_t align)
{
    self->used = (self->used + align - 1) & ~(align - 1);
    size_t at = self->used;
    if (self->bytes != NULL && size != 0 && bytes != NULL)
        memcpy(self->bytes + at, bytes, size);
    self->used += size;
    return (uint32_t)at;
}

static uint32_t
place_text(layout *self, const char *text)
{
    return text == NULL ? 0 : place(self, text, strlen(text) + 1, 1);
}

static void
describe(const errand__policy *policy, uint32_t parent_pid, errand__wire_setup *out)
{
    const errand_sandbox_policy *values = &policy->values;
    *out = (errand__wire_setup){
        .struct_size = sizeof *out,
        .promises = values->promises,
        .want_layers = values->want_layers,
        .require_layers = values->require_layers,
        .on_deny = (uint32_t)values->on_deny,
        .parent_pid = parent_pid,
        .memory_bytes = values->memory_bytes,
        .stack_bytes = values->stack_bytes,
        .file_bytes = values->file_bytes,
        .descriptors = values->descriptors,
        .cpu_soft = values->cpu_seconds,
        .cpu_hard = values->cpu_seconds == 0 ? 0 : values->cpu_seconds + 1,
        .uid = NOBODY,
        .gid = NOBODY,
        .path_count = (uint32_t)values->path_count,
        .port_count = (uint32_t)values->port_count};
}

static size_t
lay_out(const errand__policy *policy, const errand_entry *entries, size_t count,
        uint32_t parent_pid, unsigned char *bytes)
{
    const errand_sandbox_policy *values = &policy->values;
    layout self = {.bytes = bytes};
    errand__wire_setup setup;
    describe(policy, parent_pid, &setup);
    setup.entry_count = (uint32_t)count;
    place(&self, NULL, sizeof setup, 8);
    for (int stage = 0; stage < 2; stage++) {
        const errand__filter *filter = &policy->filters[stage];
        setup.filter[stage] =
            place(&self, filter->program, filter->length * sizeof *filter->program, 8);
        setup.filter_length[stage] = filter->length;
        setup.tgid_count[stage] = filter->tgid_count;
        memcpy(setup.tgid_patch[stage], filter->tgid_patch, sizeof filter->tgid_patch);
    }
    setup.ports = place(&self, values->tcp_ports,
                        values->port_count * sizeof *values->tcp_ports, 8);
    setup.paths = place(&self, NULL, values->path_count * sizeof(errand__wire_path), 8);
    setup.entries = place(&self, NULL, count * sizeof(errand__wire_entry), 8);
    for (size_t i = 0; i < values->path_count; i++) {
        errand__wire_path item = {.text = place_text(&self, values->paths[i].path),
                                  .rights = values->paths[i].rights};
        if (bytes != NULL)
            memcpy(bytes + setup.paths + i * sizeof item, &item, sizeof item);
    }
    for (size_t i = 0; i < count; i++) {
        errand__wire_entry item = {.library = place_text(&self, entries[i].library),
                                   .symbol = place_text(&self, entries[i].symbol),
                                   .signature = place_text(&self, entries[i].signature)};
        if (bytes != NULL)
            memcpy(bytes + setup.entries + i * sizeof item, &item, sizeof item);
    }
    if (bytes != NULL)
        memcpy(bytes, &setup, sizeof setup);
    return (self.used + 7) & ~(size_t)7;
}

size_t
errand__setup_size(const errand__policy *policy, const errand_entry *entries,
                   size_t count)
{
    return lay_out(policy, entries, count, 0, NULL);
}

void
errand__setup_write(const errand__policy *policy, const errand_entry *entries,
                    size_t count, uint32_t parent_pid, unsigned char *out_bytes)
{
    size_t size = lay_out(policy, entries, count, parent_pid, NULL);
    memset(out_bytes, 0, size);
    lay_out(policy, entries, count, parent_pid, out_bytes);
}
