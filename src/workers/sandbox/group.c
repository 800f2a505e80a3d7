/* SPDX-License-Identifier: MIT */
/* Design notes: control groups, of version 1 (its memory hierarchy) and 2.
 *
 * - A group is made below the host's own, so that what limits the host limits its workers, too.  In
 *   version 2 a group with processes gives no memory controller to those below it: there it may
 *   also be made beside the host's own, where somebody delegated that.
 * - The worker joins by itself, through a descriptor that it gets, before it opens anything foreign:
 *   nothing of it is counted elsewhere, and nobody can be mistaken for it.
 * - Where the own group is not seen under the mount (a container shows only a part), the mount's root
 *   is the nearest that is. */
#include "workers/sandbox/group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/core.h"

/* made: groups of this process so far.
 * Writers, Readers: whoever makes one.
 * Order:   relaxed.
 * Pairs:   none.
 * Why:     no two have the same name. */
static atomic_uint made;

static bool
write_text(int folder, const char *name, const char *text)
{
    int file = openat(folder, name, O_WRONLY | O_CLOEXEC), error;
    ssize_t written;

    if (file < 0)
        return false;
    written = write(file, text, strlen(text));
    error = errno;
    close(file);
    errno = error;
    return written == (ssize_t)strlen(text);
}

static bool
write_number(int folder, const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return write_text(folder, name, text);
}

/* The number behind key in a file of lines; 0 = it is not there. */
static uint64_t
read_number(int folder, const char *name, const char *key)
{
    char text[1024];
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
    const char *at = text;
    ssize_t size;

    if (file < 0)
        return 0;
    size = read(file, text, sizeof text - 1);
    close(file);
    text[size > 0 ? size : 0] = '\0';
    while (at != NULL && strncmp(at, key, strlen(key)) != 0) {
        at = strchr(at, '\n');
        at = at == NULL ? NULL : at + 1;
    }
    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

static bool
limit(int folder, bool unified, uint64_t memory_bytes)
{
    if (unified) {
        (void)write_text(folder, "memory.swap.max", "0");
        return write_number(folder, "memory.max", memory_bytes);
    }
    if (!write_number(folder, "memory.limit_in_bytes", memory_bytes))
        return false;
    (void)write_number(folder, "memory.memsw.limit_in_bytes", memory_bytes);
    return true;
}

/* ---- where ----------------------------------------------------------------------------------------- */

/* The group of this process; controller NULL: that of version 2. */
static bool
find_own(const char *controller, char *out, size_t size)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");

    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *names = strchr(line, ':'),
             *path = names == NULL ? NULL : strchr(names + 1, ':');

        if (path == NULL)
            continue;
        *names++ = *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found =
            controller == NULL ? strcmp(line, "0") == 0 : strcmp(names, controller) == 0;
        if (found)
            snprintf(out, size, "%s", path);
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* Can a group be made there that counts memory, and be joined? */
static bool
try_place(errand__groups *groups, const char *path, bool unified)
{
    errand__group group;
    int join;

    groups->place = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    groups->unified = unified;
    groups->error = errno;
    if (groups->place < 0)
        return false;
    groups->error = errand__group_create(groups, UINT64_C(64) << 20, &group, &join);
    if (groups->error == 0) {
        close(join);
        errand__group_destroy(groups, &group);
        return true;
    }
    close(groups->place);
    groups->place = -1;
    return false;
}

static bool
try_mount(errand__groups *groups, const char *mount, const char *controller)
{
    char own[512], path[640];
    char *slash;
    bool unified = controller == NULL;

    if (!find_own(controller, own, sizeof own)) {
        groups->error = ENOENT;
        return false;
    }
    snprintf(path, sizeof path, "%s%s", mount, own);
    if (access(path, F_OK) != 0)
        snprintf(path, sizeof path, "%s", mount);
    if (try_place(groups, path, unified))
        return true;
    slash = strrchr(path, '/');
    if (!unified || slash == NULL || (size_t)(slash - path) < strlen(mount))
        return false;
    *slash = '\0';
    return try_place(groups, path, unified);
}

void
errand__groups_init(errand__groups *groups, bool wanted)
{
    *groups = (errand__groups){.place = -1, .error = ENOENT};
    if (wanted && !try_mount(groups, "/sys/fs/cgroup/memory", "memory") &&
        !try_mount(groups, "/sys/fs/cgroup/unified", NULL))
        (void)try_mount(groups, "/sys/fs/cgroup", NULL);
}

void
errand__groups_fini(errand__groups *groups)
{
    if (groups->place >= 0)
        close(groups->place);
    groups->place = -1;
}

/* ---- one of them ------------------------------------------------------------------------------------ */

static int
open_group(const errand__groups *groups, uint64_t memory_bytes, errand__group *group,
           int *out_join)
{
    group->folder =
        openat(groups->place, group->name, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (group->folder < 0 || !limit(group->folder, groups->unified, memory_bytes))
        return errno;
    *out_join = openat(group->folder, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    return *out_join < 0 ? errno : 0;
}

int
errand__group_create(const errand__groups *groups, uint64_t memory_bytes,
                     errand__group *out_group, int *out_join)
{
    errand__group group = {.folder = -1};
    int error;

    snprintf(group.name, sizeof group.name, "errand-worker-%ld-%u", (long)getpid(),
             atomic_fetch_add_explicit(&made, 1, memory_order_relaxed));
    if (mkdirat(groups->place, group.name, 0755) != 0)
        return errno;
    error = open_group(groups, memory_bytes, &group, out_join);
    if (error != 0) {
        errand__group_destroy(groups, &group);
        return error;
    }
    *out_group = group;
    return 0;
}

bool
errand__group_ran_out(const errand__groups *groups, const errand__group *group)
{
    return group->folder >= 0 &&
           read_number(group->folder,
                       groups->unified ? "memory.events" : "memory.oom_control",
                       "oom_kill ") != 0;
}

void
errand__group_destroy(const errand__groups *groups, errand__group *group)
{
    if (group->folder >= 0)
        close(group->folder);
    if (group->name[0] != '\0')
        (void)unlinkat(groups->place, group->name, AT_REMOVEDIR);
    *group = (errand__group){.folder = -1};
}
