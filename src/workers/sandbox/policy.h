/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_POLICY_H
#define ERRAND_SANDBOX_POLICY_H
/* policy: what a sandbox permits: checked, filled in, copied, and written down for its workers. */
#include "errand/sandbox.h"
#include "workers/sandbox/filter.h"
#include "workers/sandbox/limits.h"
#include "workers/sandbox/wire.h"

typedef struct errand__policy {
    errand_sandbox_policy
        values; /* no field is 0 that has a default; points into block */
    errand__filter filters[2];
    void *block;
    size_t block_size;
} errand__policy;

/* Checks and copies policy (NULL = PURE with all defaults) and makes its filters.
 * Errors: ENOMEM · EINVAL · EUNSUPPORTED (no filter); out_text, of size bytes, then names the
 *   field, the cause and the mend. */
ERRAND_MUST_USE errand_status errand__policy_create(const errand_sandbox_policy *policy,
                                                    errand__policy *out_policy,
                                                    char *out_text, size_t size);
/* The same without copies and filters.  Errors: EINVAL. */
ERRAND_MUST_USE errand_status errand__policy_check(const errand_sandbox_policy *policy,
                                                   char *out_text, size_t size);
void errand__policy_destroy(errand__policy *policy); /* zeroed: nothing */

/* Can a worker find this entry?  NULL, or a sentence that says why not. */
const char *errand__entry_reason(const errand_entry *entry);

/* Opens the policy's paths, in their order, for the worker to inherit: out_descriptors has room
 * for path_count.  On an error none stays open.
 * Errors: EINVAL (a path cannot be opened) · ESYSTEM; out_text says which and why. */
ERRAND_MUST_USE errand_status errand__policy_open_paths(const errand__policy *policy,
                                                        int *out_descriptors,
                                                        char *out_text, size_t size);

/* The set-up of a worker: errand__wire_setup and what it points to.  entries: those that it is to
 * find, which may be more than the policy's own; at most ERRAND__WIRE_ENTRIES. */
size_t errand__setup_size(const errand__policy *policy, const errand_entry *entries,
                          size_t count);
/* out_bytes: of that size, aligned to 8.  parent_pid: whose child the worker will be. */
void errand__setup_write(const errand__policy *policy, const errand_entry *entries,
                         size_t count, uint32_t parent_pid, unsigned char *out_bytes);

#endif
