/* SPDX-License-Identifier: MIT */
/* Design notes: a run goes on in a forked child.
 *
 * The child of a process with one thread has everything that the parent had, in the same state: no
 * lock is held by a thread that is not there, and nothing is in another thread's hands.  So all
 * objects stay good, not only this runtime, and the child is given the parent's place in the
 * count of forks (O61).  What would be shared by the two, because the system keeps it by
 * descriptor and not by process, is refused: a log that is written or read, the wake descriptor. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "errand/snapshot.h"
#include "runtime/runtime.h"

/* 0 = it cannot be told. */
static unsigned
count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    unsigned count = 0;

    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static bool
has_threads(const errand_runtime *runtime)
{
    for (uint32_t i = 0; i < errand__lease_count(runtime); i++) {
        const errand_lease *lease = runtime->leases[i];

        if (!lease->closed && lease->executor->ops->step == NULL)
            return true;
    }
    return false;
}

/* NULL = nothing is in the way. */
static const char *
find_obstacle(const errand_runtime *runtime)
{
    if (runtime->config.order != ERRAND_ORDER_INLINE)
        return "only a run in inline order can be forked: in the others time or threads "
               "go on outside it";
    if (has_threads(runtime))
        return "an executor has threads of its own, which a fork does not copy: fork "
               "before it is there";
    if (runtime->config.held_recorder != NULL)
        return "two processes cannot write one log: leave the recorder out";
    if (runtime->config.held_replay != NULL)
        return "two processes cannot read one log: go on from the run that made it";
    if (runtime->block->wake_fd >= 0)
        return "two processes cannot share the wake descriptor: do without it";
    switch (count_threads()) {
    case 0:
        return "how many threads there are cannot be told: /proc is missing";
    case 1:
        return NULL;
    default:
        return "the process has another thread, which a fork does not copy";
    }
}

errand_status
errand_snapshot_fork(errand_runtime *runtime, char *message, size_t room,
                     int64_t *out_child)
{
    uint32_t epoch = errand__fork_epoch();
    const char *obstacle;
    pid_t child;

    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(out_child != NULL && (message != NULL || room == 0), ERRAND_EINVAL,
                       "out_child, and a message that has room, are needed");
    if (errand__on_worker()) {
        errand__text_format(message, room, "a job cannot be forked in its middle");
        return errand__misuse(ERRAND_EBUSY, __func__,
                              "a job cannot be forked in its middle: call it outside");
    }
    obstacle = find_obstacle(runtime);
    if (obstacle != NULL) {
        errand__text_format(message, room, "%s", obstacle);
        return ERRAND_EUNSUPPORTED;
    }
    child = fork();
    if (child < 0) {
        errand__text_format(message, room, "the system refuses a process: errno %d",
                            errno);
        return ERRAND_ESYSTEM;
    }
    if (child == 0)
        errand__fork_adopt(epoch);
    *out_child = child;
    return ERRAND_OK;
}

errand_status
errand_snapshot_branch(errand_runtime *runtime, uint64_t seed)
{
    ERRAND__ENTER(runtime);
    if (!errand__seeded(runtime))
        return errand__misuse(ERRAND_EUNSUPPORTED, __func__,
                              "in arrival order no seed decides");
    if (runtime->config.held_replay != NULL)
        return errand__misuse(ERRAND_EUNSUPPORTED, __func__, "the log decides a replay");
    runtime->config.seed = seed;
    errand__chooser_branch(&runtime->scheduler, seed);
    return ERRAND_OK;
}
