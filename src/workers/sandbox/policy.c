/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Everything that could be noticed only in a worker, or not at all, is refused here: a promise
 *   without its means (INET without ports), means without their promise, a layer that would be
 *   missing where a promise rests on it.
 * - Promises that open files or sockets rest on landlock, which says which ones; so they require
 *   it, whatever require_layers says. */
#include "workers/sandbox/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "core/core.h"

#define MIB UINT64_C(0x100000)
#define GIB UINT64_C(0x40000000)
enum {
    NAMESPACES = ERRAND_LAYER_USER_NS | ERRAND_LAYER_NET_NS | ERRAND_LAYER_IPC_NS,
    LAYERS_WANTED = ERRAND_LAYER_NO_NEW_PRIVS | ERRAND_LAYER_SECCOMP |
                    ERRAND_LAYER_LANDLOCK | ERRAND_LAYER_RLIMITS | ERRAND_LAYER_UID_DROP,
    LAYERS_ALL = LAYERS_WANTED | NAMESPACES | ERRAND_LAYER_CGROUP,
    LAYERS_REQUIRED =
        ERRAND_LAYER_NO_NEW_PRIVS | ERRAND_LAYER_SECCOMP | ERRAND_LAYER_RLIMITS,
    PROMISES_FILES = ERRAND_PROMISE_RPATH | ERRAND_PROMISE_WPATH,
    PROMISES_ALL = PROMISES_FILES | ERRAND_PROMISE_INET | ERRAND_PROMISE_THREAD |
                   ERRAND_PROMISE_CALLBACK,
    RIGHTS_ALL = ERRAND_PATH_READ | ERRAND_PATH_WRITE | ERRAND_PATH_EXECUTE,
    DESCRIPTORS_MIN = 16,
    DESCRIPTORS_MAX = 4096,
    TEXT_MAX = 4096 /* bytes of one path, symbol or library; a signature may be longer */
};

typedef struct refusal { /* where to say what is wrong */
    char *text;
    size_t size;
} refusal;
#define REFUSE(refusal, ...)                                                             \
    (errand__text_format((refusal).text, (refusal).size, __VA_ARGS__), ERRAND_EINVAL)

static errand_status
check_counts(const errand_sandbox_policy *given, refusal out)
{
    if (given->path_count != 0 && given->paths == NULL)
        return REFUSE(out, "paths: is NULL, but path_count is %zu", given->path_count);
    if (given->port_count != 0 && given->tcp_ports == NULL)
        return REFUSE(out, "tcp_ports: is NULL, but port_count is %zu",
                      given->port_count);
    if (given->entry_count != 0 && given->entries == NULL)
        return REFUSE(out, "entries: is NULL, but entry_count is %zu",
                      given->entry_count);
    if (given->path_count > ERRAND__WIRE_PATHS)
        return REFUSE(out, "path_count: %zu is more than %d; name a folder above them",
                      given->path_count, ERRAND__WIRE_PATHS);
    if (given->port_count > ERRAND__WIRE_PORTS)
        return REFUSE(out, "port_count: %zu is more than %d", given->port_count,
                      ERRAND__WIRE_PORTS);
    if (given->entry_count > ERRAND__WIRE_ENTRIES)
        return REFUSE(out, "entry_count: %zu is more than %d; use several sandboxes",
                      given->entry_count, ERRAND__WIRE_ENTRIES);
    if (given->entries_fixed && given->entry_count == 0)
        return REFUSE(out, "entries_fixed: nothing could ever run without entries; "
                           "give some, or leave it false");
    return ERRAND_OK;
}

static errand_status
check_promises(const errand_sandbox_policy *given, refusal out)
{
    uint32_t promises = given->promises;
    uint32_t layers = given->want_layers | given->require_layers;
    if ((promises & ~(uint32_t)PROMISES_ALL) != 0)
        return REFUSE(out,
                      "promises: 0x%x is none that is known; or ERRAND_PROMISE_ values",
                      (unsigned)(promises & ~(uint32_t)PROMISES_ALL));
    if ((layers & ~(uint32_t)LAYERS_ALL) != 0)
        return REFUSE(out, "%s: 0x%x is none that is known; or ERRAND_LAYER_ values",
                      (given->want_layers & ~(uint32_t)LAYERS_ALL) != 0
                          ? "want_layers"
                          : "require_layers",
                      (unsigned)(layers & ~(uint32_t)LAYERS_ALL));
    if ((promises & ERRAND_PROMISE_INET) != 0 && given->port_count == 0)
        return REFUSE(out, "tcp_ports: with ERRAND_PROMISE_INET name those that may be "
                           "connected to");
    if ((promises & ERRAND_PROMISE_INET) == 0 && given->port_count != 0)
        return REFUSE(out, "tcp_ports: mean nothing without ERRAND_PROMISE_INET");
    if ((promises & ERRAND_PROMISE_INET) != 0 && (layers & ERRAND_LAYER_NET_NS) != 0)
        return REFUSE(out,
                      "want_layers: a network of its own (NET_NS) reaches nothing; leave "
                      "it out, or ERRAND_PROMISE_INET");
    return ERRAND_OK;
}

static errand_status
check_paths(const errand_sandbox_policy *given, refusal out)
{
    uint32_t rights = 0;
    for (size_t i = 0; i < given->path_count; i++) {
        const errand_sandbox_path *item = &given->paths[i];
        if (item->path == NULL || item->path[0] != '/')
            return REFUSE(out, "paths[%zu].path: must begin with /, not '%.80s'", i,
                          item->path == NULL ? "NULL" : item->path);
        if (strlen(item->path) >= TEXT_MAX)
            return REFUSE(out, "paths[%zu].path: is longer than %d bytes", i,
                          TEXT_MAX - 1);
        if (item->rights == 0 || (item->rights & ~(uint32_t)RIGHTS_ALL) != 0)
            return REFUSE(out,
                          "paths[%zu].rights: 0x%x must be ERRAND_PATH_ values, or-ed", i,
                          (unsigned)item->rights);
        if ((item->rights & ERRAND_PATH_READ) != 0 &&
            (given->promises & ERRAND_PROMISE_RPATH) == 0)
            return REFUSE(out,
                          "paths[%zu].rights: ERRAND_PATH_READ means nothing without "
                          "ERRAND_PROMISE_RPATH",
                          i);
        if ((item->rights & ERRAND_PATH_WRITE) != 0 &&
            (given->promises & ERRAND_PROMISE_WPATH) == 0)
            return REFUSE(out,
                          "paths[%zu].rights: ERRAND_PATH_WRITE means nothing without "
                          "ERRAND_PROMISE_WPATH",
                          i);
        rights |= item->rights;
    }
    for (size_t i = 0; i < given->port_count; i++) {
        if (given->tcp_ports[i] == 0)
            return REFUSE(out, "tcp_ports[%zu]: 0 is no port", i);
    }
    if ((given->promises & ERRAND_PROMISE_RPATH) != 0 && (rights & ERRAND_PATH_READ) == 0)
        return REFUSE(out, "paths: with ERRAND_PROMISE_RPATH give at least one with "
                           "ERRAND_PATH_READ");
    if ((given->promises & ERRAND_PROMISE_WPATH) != 0 &&
        (rights & ERRAND_PATH_WRITE) == 0)
        return REFUSE(out, "paths: with ERRAND_PROMISE_WPATH give at least one with "
                           "ERRAND_PATH_WRITE");
    return ERRAND_OK;
}

const char *
errand__entry_reason(const errand_entry *entry)
{
    if (entry->symbol == NULL || entry->symbol[0] == '\0')
        return "symbol: is missing";
    if (strlen(entry->symbol) >= TEXT_MAX)
        return "symbol: is too long";
    if (entry->library == NULL)
        return entry->signature == NULL ? "library: a plug-in's function has one" : NULL;
    if (entry->library[0] == '\0')
        return "library: is empty; NULL means the C library";
    if (strlen(entry->library) >= TEXT_MAX)
        return "library: is too long";
    if (entry->library[0] != '/' && strchr(entry->library, '/') != NULL)
        return "library: must be a name without a folder, or begin with /";
    return NULL;
}

static errand_status
check_range(const char *field, uint64_t value, uint64_t least, uint64_t most, refusal out)
{
    if (value >= least && value <= most)
        return ERRAND_OK;
    return REFUSE(out, "%s: %llu must be from %llu to %llu", field,
                  (unsigned long long)value, (unsigned long long)least,
                  (unsigned long long)most);
}

static void
fill_in(errand_sandbox_policy *self)
{
    bool writes = (self->promises & ERRAND_PROMISE_WPATH) != 0;
    if (self->want_layers == 0)
        self->want_layers = LAYERS_WANTED;
    if (self->require_layers == 0)
        self->require_layers = LAYERS_REQUIRED;
    if ((self->promises & (PROMISES_FILES | ERRAND_PROMISE_INET)) != 0)
        self->require_layers |= ERRAND_LAYER_LANDLOCK;
    self->want_layers |= self->require_layers;
    self->memory_bytes = self->memory_bytes == 0 ? 512 * MIB : self->memory_bytes;
    self->stack_bytes = self->stack_bytes == 0 ? 8 * MIB : self->stack_bytes;
    self->in_bytes = self->in_bytes == 0 ? MIB : self->in_bytes;
    self->out_bytes = self->out_bytes == 0 ? 16 * MIB : self->out_bytes;
    self->file_bytes = self->file_bytes == 0 && writes ? GIB : self->file_bytes;
    self->descriptors = self->descriptors == 0 ? 64 : self->descriptors;
    self->deadline_ns =
        self->deadline_ns == 0 ? ERRAND__DEADLINE_DEFAULT_NS : self->deadline_ns;
}

static errand_status
check_amounts(const errand_sandbox_policy *self, refusal out)
{
    errand_status status =
        check_range("memory_bytes", self->memory_bytes, 32 * MIB, UINT64_C(1) << 44, out);
    if (status == ERRAND_OK)
        status = check_range("stack_bytes", self->stack_bytes, 64 * 1024, 64 * MIB, out);
    if (status == ERRAND_OK && self->stack_bytes > self->memory_bytes / 2)
        status = REFUSE(out, "stack_bytes: is more than half of memory_bytes");
    if (status == ERRAND_OK)
        status = check_range("in_bytes", self->in_bytes, 1, GIB, out);
    if (status == ERRAND_OK)
        status = check_range("shared_in_bytes", self->shared_in_bytes, 0, 64 * GIB, out);
    if (status == ERRAND_OK)
        status = check_range("out_bytes", self->out_bytes, 1, GIB, out);
    if (status == ERRAND_OK)
        status = check_range("file_bytes", self->file_bytes, 0, INT64_MAX, out);
    if (status == ERRAND_OK)
        status = check_range("descriptors", self->descriptors, DESCRIPTORS_MIN,
                             DESCRIPTORS_MAX, out);
    if (status == ERRAND_OK)
        status = check_range("cpu_seconds", self->cpu_seconds, 0, 1000000000, out);
    if (status == ERRAND_OK && self->on_deny != ERRAND_DENY_KILL &&
        self->on_deny != ERRAND_DENY_REPORT)
        status = REFUSE(out,
                        "on_deny: %d is none that is known; ERRAND_DENY_KILL or "
                        "ERRAND_DENY_REPORT",
                        (int)self->on_deny);
    if (status == ERRAND_OK && self->file_bytes != 0 &&
        (self->promises & ERRAND_PROMISE_WPATH) == 0)
        status = REFUSE(out, "file_bytes: means nothing without ERRAND_PROMISE_WPATH");
    return status;
}

static size_t
text_size(const char *text)
{
    return text == NULL ? 0 : strlen(text) + 1;
}

/* Copies text to *at, which moves behind it. */
static const char *
copy_text(char **at, const char *text)
{
    if (text == NULL)
        return NULL;
    char *copy = *at;
    size_t size = text_size(text);
    memcpy(copy, text, size);
    *at += size;
    return copy;
}

/* Replaces what values points to by copies in one block. */
static errand_status
copy_lists(errand__policy *self)
{
    errand_sandbox_policy *values = &self->values;
    size_t size = values->entry_count * sizeof *values->entries +
                  values->path_count * sizeof *values->paths +
                  values->port_count * sizeof *values->tcp_ports;
    for (size_t i = 0; i < values->path_count; i++)
        size += text_size(values->paths[i].path);
    for (size_t i = 0; i < values->entry_count; i++)
        size += text_size(values->entries[i].library) +
                text_size(values->entries[i].symbol) +
                text_size(values->entries[i].signature);
    if (size == 0)
        return ERRAND_OK;
    self->block = errand__mem_alloc(NULL, size);
    if (self->block == NULL)
        return ERRAND_ENOMEM;
    self->block_size = size;
    errand_entry *entries = self->block;
    errand_sandbox_path *paths = (void *)(entries + values->entry_count);
    uint16_t *ports = (void *)(paths + values->path_count);
    char *at = (void *)(ports + values->port_count);
    for (size_t i = 0; i < values->entry_count; i++) {
        const errand_entry *from = &values->entries[i];
        entries[i].library = copy_text(&at, from->library);
        entries[i].symbol = copy_text(&at, from->symbol);
        entries[i].signature = copy_text(&at, from->signature);
    }
    for (size_t i = 0; i < values->path_count; i++) {
        paths[i].path = copy_text(&at, values->paths[i].path);
        paths[i].rights = values->paths[i].rights;
    }
    for (size_t i = 0; i < values->port_count; i++)
        ports[i] = values->tcp_ports[i];
    values->entries = entries;
    values->paths = paths;
    values->tcp_ports = ports;
    return ERRAND_OK;
}

static errand_status
check_all(const errand_sandbox_policy *given, refusal out)
{
    errand_status status = check_counts(given, out);
    if (status == ERRAND_OK)
        status = check_promises(given, out);
    if (status == ERRAND_OK)
        status = check_paths(given, out);
    for (size_t i = 0; status == ERRAND_OK && i < given->entry_count; i++) {
        const char *reason = errand__entry_reason(&given->entries[i]);
        if (reason != NULL)
            status = REFUSE(out, "entries[%zu].%s", i, reason);
    }
    return status;
}

/* The values of policy, checked and filled in, which point into what it points to. */
static errand_status
take_values(const errand_sandbox_policy *policy, errand_sandbox_policy *out_values,
            refusal out)
{
    *out_values = (errand_sandbox_policy){.struct_size = sizeof *out_values};
    if (policy != NULL) {
        if (policy->struct_size != sizeof *policy)
            return REFUSE(out, "struct_size: must be sizeof(errand_sandbox_policy)");
        *out_values = *policy;
    }
    errand_status status = check_all(out_values, out);
    if (status != ERRAND_OK)
        return status;
    fill_in(out_values);
    return check_amounts(out_values, out);
}

errand_status
errand__policy_check(const errand_sandbox_policy *policy, char *out_text, size_t size)
{
    errand_sandbox_policy values;

    return take_values(policy, &values, (refusal){out_text, size});
}

errand_status
errand__policy_create(const errand_sandbox_policy *policy, errand__policy *out_policy,
                      char *out_text, size_t size)
{
    errand__policy made = {.block = NULL};
    errand_status status = take_values(policy, &made.values, (refusal){out_text, size});
    if (status == ERRAND_OK)
        status = copy_lists(&made);
    for (int stage = 0; status == ERRAND_OK && stage < 2; stage++)
        status = errand__filter_create(made.values.promises, made.values.on_deny,
                                       (errand__filter_stage)stage, &made.filters[stage],
                                       out_text, size);
    if (status != ERRAND_OK) {
        errand__policy_destroy(&made);
        return status;
    }
    *out_policy = made;
    return ERRAND_OK;
}

void
errand__policy_destroy(errand__policy *policy)
{
    errand__filter_destroy(&policy->filters[0]);
    errand__filter_destroy(&policy->filters[1]);
    if (policy->block != NULL)
        errand__mem_free(NULL, policy->block, policy->block_size);
    *policy = (errand__policy){0};
}

errand_status
errand__policy_open_paths(const errand__policy *policy, int *out_descriptors,
                          char *out_text, size_t size)
{
    const errand_sandbox_policy *values = &policy->values;
    for (size_t i = 0; i < values->path_count; i++) {
        out_descriptors[i] = open(values->paths[i].path, O_PATH | O_CLOEXEC);
        if (out_descriptors[i] >= 0)
            continue;
        int error = errno;
        errand__text_format(out_text, size, "paths[%zu].path: %s: %s", i,
                            values->paths[i].path, strerror(error));
        while (i-- > 0)
            close(out_descriptors[i]);
        return error == EMFILE || error == ENFILE || error == ENOMEM ? ERRAND_ESYSTEM
                                                                     : ERRAND_EINVAL;
    }
    return ERRAND_OK;
}
