/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Two rulesets: one for the time in which libraries are opened (their folders, and what the
 *   policy names), one from then on (what the policy names).  Both are made before anything is
 *   confined, since making them opens files.
 * - A kernel that refuses what its ABI promises is asked for one less, down to the first.
 * - Rights of folders cannot be given to a file: they are left out there. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "workers/sandbox/landlock.h"

enum {
    READS = ERRAND__LANDLOCK_READ_FILE | ERRAND__LANDLOCK_READ_DIR,
    EXECUTES = READS | ERRAND__LANDLOCK_EXECUTE,
    WRITES = ERRAND__LANDLOCK_WRITE_FILE | ERRAND__LANDLOCK_REMOVE_DIR |
             ERRAND__LANDLOCK_REMOVE_FILE | ERRAND__LANDLOCK_MAKE_DIR |
             ERRAND__LANDLOCK_MAKE_REG | ERRAND__LANDLOCK_REFER |
             ERRAND__LANDLOCK_TRUNCATE,
    OF_FILES = ERRAND__LANDLOCK_EXECUTE | ERRAND__LANDLOCK_WRITE_FILE |
               ERRAND__LANDLOCK_READ_FILE | ERRAND__LANDLOCK_TRUNCATE |
               ERRAND__LANDLOCK_IOCTL_DEV
};
/* Where loaders look; those that do not exist are left out. */
static const char *const loader_places[] = {"/lib",
                                            "/lib64",
                                            "/usr/lib",
                                            "/usr/lib64",
                                            "/usr/local/lib",
                                            "/etc/ld.so.cache",
                                            "/etc/ld-musl-x86_64.path",
                                            "/etc/ld-musl-aarch64.path"};

static uint64_t
files_of(int abi)
{
    uint64_t files = ERRAND__LANDLOCK_FILES_1;
    files |= abi >= 2 ? ERRAND__LANDLOCK_REFER : 0;
    files |= abi >= 3 ? ERRAND__LANDLOCK_TRUNCATE : 0;
    files |= abi >= 5 ? ERRAND__LANDLOCK_IOCTL_DEV : 0;
    return files;
}

/* An empty ruleset of that ABI; -1: errno says why not. */
static int
ruleset_open(int abi)
{
    errand__landlock_ruleset all = {
        .files = files_of(abi),
        .network =
            abi >= 4 ? ERRAND__LANDLOCK_BIND_TCP | ERRAND__LANDLOCK_CONNECT_TCP : 0,
        .scoped = abi >= 6 ? ERRAND__LANDLOCK_SCOPE_ABSTRACT_UNIX |
                                 ERRAND__LANDLOCK_SCOPE_SIGNAL
                           : 0};
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    return (int)syscall(SYS_landlock_create_ruleset, &all, size, 0);
}

static bool
allow_descriptor(int ruleset, int abi, int descriptor, uint64_t rights)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return false;
    if (!S_ISDIR(status.st_mode))
        rights &= OF_FILES;
    errand__landlock_path rule = {.allowed = rights & files_of(abi),
                                  .descriptor = descriptor};
    if (rule.allowed == 0)
        return true;
    return syscall(SYS_landlock_add_rule, ruleset, ERRAND__LANDLOCK_RULE_PATH, &rule,
                   0) == 0;
}

/* A place that is not there needs no right. */
static bool
allow_place(int ruleset, int abi, const char *place)
{
    int descriptor = open(place, O_PATH | O_CLOEXEC);
    if (descriptor < 0)
        return true;
    bool done = allow_descriptor(ruleset, abi, descriptor, EXECUTES);
    close(descriptor);
    return done;
}

/* The folder in which a library lies, and that to which links lead. */
static bool
allow_library(int ruleset, int abi, const char *library)
{
    char place[PATH_MAX];
    const char *names[] = {library, realpath(library, place)};
    for (int i = 0; i < 2; i++) {
        char folder[PATH_MAX];
        const char *end = names[i] == NULL ? NULL : strrchr(names[i], '/');
        if (end == NULL || (size_t)(end - names[i]) >= sizeof folder)
            continue;
        size_t size = (size_t)(end - names[i]);
        memcpy(folder, names[i], size);
        folder[size] = '\0';
        if (!allow_place(ruleset, abi, size == 0 ? library : folder))
            return false;
    }
    return true;
}

/* What the policy names. */
static bool
allow_policy(const errand__worker *self, int ruleset, int abi, bool loading)
{
    const errand__wire_setup *setup = self->setup;
    const errand__wire_path *paths = (const void *)(self->setup_bytes + setup->paths);
    const uint16_t *ports = (const void *)(self->setup_bytes + setup->ports);
    for (uint32_t i = 0; i < setup->path_count; i++) {
        uint64_t rights = (paths[i].rights & ERRAND_PATH_READ) != 0 ? READS : 0;
        rights |= (paths[i].rights & ERRAND_PATH_WRITE) != 0 ? WRITES : 0;
        if (loading)
            rights |= (paths[i].rights & ERRAND_PATH_EXECUTE) != 0 ? EXECUTES : 0;
        if (!allow_descriptor(ruleset, abi, ERRAND__WIRE_PATH_FD + (int)i, rights))
            return false;
    }
    for (uint32_t i = 0; abi >= 4 && i < setup->port_count; i++) {
        errand__landlock_port rule = {.allowed = ERRAND__LANDLOCK_CONNECT_TCP,
                                      .port = ports[i]};
        if (syscall(SYS_landlock_add_rule, ruleset, ERRAND__LANDLOCK_RULE_PORT, &rule,
                    0) != 0)
            return false;
    }
    return true;
}

static bool
allow_loading(const errand__worker *self, int ruleset, int abi)
{
    const errand__wire_entry *entries = self->entries;
    for (size_t i = 0; i < sizeof loader_places / sizeof loader_places[0]; i++) {
        if (!allow_place(ruleset, abi, loader_places[i]))
            return false;
    }
    for (uint32_t i = 0; i < self->entry_count; i++) {
        const char *library = errand__worker_text(self, entries[i].library);
        if (library == NULL || library[0] != '/')
            continue;
        const char *before =
            i == 0 ? NULL : errand__worker_text(self, entries[i - 1].library);
        if (before != NULL && strcmp(before, library) == 0)
            continue;
        if (!allow_library(ruleset, abi, library))
            return false;
    }
    return true;
}

bool
errand__rulesets_create(errand__worker *self)
{
    int abi = errand__landlock_abi();
    if (abi < 1)
        return false;
    if (abi > ERRAND__LANDLOCK_ABI_MAX)
        abi = ERRAND__LANDLOCK_ABI_MAX;
    int first = ruleset_open(abi);
    while (first < 0 && abi > 1 && (errno == EINVAL || errno == E2BIG))
        first = ruleset_open(--abi);
    if (first < 0)
        return false;
    int second = ruleset_open(abi);
    bool made = second >= 0 && allow_loading(self, first, abi) &&
                allow_policy(self, first, abi, true) &&
                allow_policy(self, second, abi, false);
    if (!made) {
        int error = errno;
        close(first);
        if (second >= 0)
            close(second);
        errno = error;
        return false;
    }
    self->rulesets[0] = first;
    self->rulesets[1] = second;
    self->landlock_abi = (uint32_t)abi;
    return true;
}

bool
errand__ruleset_enforce(errand__worker *self, int stage, bool all_threads)
{
    int flags =
        all_threads && self->landlock_abi >= 8 ? ERRAND__LANDLOCK_RESTRICT_TSYNC : 0;
    bool done =
        syscall(SYS_landlock_restrict_self, self->rulesets[stage], (uint32_t)flags) == 0;
    int error = errno;
    close(self->rulesets[stage]);
    self->rulesets[stage] = -1;
    errno = error;
    return done;
}
