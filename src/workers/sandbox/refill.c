/* SPDX-License-Identifier: MIT */
/* Design notes: how many workers are started, and when.
 *
 * - As many as there are to be at least; one for each queued job that no idle worker can take, up to
 *   the most; and one that knows more functions in the place of an idle one that knows fewer.
 * - A start asks the template, where there is one, and else makes a process; nobody waits for either.
 * - What is queued while nothing can be started, with no worker alive for it, ends. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "workers/sandbox/sandbox.h"

/* ---- one start ---------------------------------------------------------------------------------------- */

/* The slot is free again. */
static void
fail_start(errand__sandbox_slot *slot, const char *what, int error, const char *program)
{
    char text[ERRAND__SANDBOX_TEXT];

    errand__sandbox_monitor_bury(slot);
    errand__text_format(text, sizeof text, "a worker could not be started: %s: %s%s%s",
                        what, strerror(error), program != NULL ? ": " : "",
                        program != NULL ? program : "");
    /* It may have taken longer than the pause that follows. */
    errand__sandbox_monitor_start_failed(slot->pool, ERRAND_ESYSTEM, text,
                                         errand__clock_now());
}

bool
errand__sandbox_heed_worker(errand__sandbox_slot *slot, const char *program)
{
    errand__sandbox *pool = slot->pool;
    errand__worker_end end;

    if (errand__sandbox_listen(pool, slot->fd, slot->index))
        return true;
    int error = errno;
    pool->launcher.kill(pool->launcher.arg, slot->pid, slot->fd);
    errand__slot_cut(slot);
    pool->launcher.reap(pool->launcher.arg, slot->pid, slot->fd, &end);
    fail_start(slot, "its process could not be started", error, program);
    return false;
}

/* A process of its own, where the template is not asked. */
static bool
launch(errand__sandbox_slot *slot, const errand__worker_files *files)
{
    errand__launcher *launcher = &slot->pool->launcher;
    int error = launcher->start(launcher->arg, files, &slot->pid, &slot->fd);

    if (error == 0)
        return errand__sandbox_heed_worker(slot, launcher->program);
    fail_start(slot, "its process could not be started", error, launcher->program);
    return false;
}

static void
start_worker(errand__sandbox_slot *slot, uint64_t now)
{
    errand__worker_files files;
    int error = errand__slot_prepare(slot, &files);
    bool started;

    if (error != 0) {
        fail_start(slot, "its memory could not be made", error, NULL);
        return;
    }
    started = errand__template_ask(slot, &files) || launch(slot, &files);
    close(files.request_fd);
    close(files.response_fd);
    close(files.lifeline_fd);
    if (files.join_fd >= 0)
        close(files.join_fd);
    if (!started)
        return;
    slot->started_ns = now;
    errand__lock_acquire(&slot->pool->lock);
    slot->pool->counts.started++;
    errand__lock_release(&slot->pool->lock);
    errand__slot_move(slot, ERRAND__SLOT_STARTING);
    errand__watcher_wake(slot->pool);
}

/* ---- how many ------------------------------------------------------------------------------------------ */

typedef struct census {
    uint32_t live, starting, idle;
    uint32_t entries;          /* the most that a live one knows */
    errand__sandbox_slot *old; /* the idle one that knows the fewest */
} census;

/* Workers that live; under the lock, so that none is on its way from a list to a hand. */
static census
count_locked(errand__sandbox *pool)
{
    census found = {.live = 0};

    for (uint32_t i = 0; i < pool->workers_max; i++) {
        errand__sandbox_slot *slot = &pool->slots[i];
        unsigned phase = errand__slot_phase_of(slot);

        if (phase == ERRAND__SLOT_EMPTY || phase == ERRAND__SLOT_DYING)
            continue;
        found.live++;
        found.starting += phase == ERRAND__SLOT_STARTING;
        found.idle += phase == ERRAND__SLOT_IDLE;
        if (slot->entry_count > found.entries)
            found.entries = slot->entry_count;
        if (phase == ERRAND__SLOT_IDLE &&
            (found.old == NULL || slot->entry_count < found.old->entry_count))
            found.old = slot;
    }
    return found;
}

/* The highest entry that a lease's next job wants, + 1; how many wait. */
static uint32_t
wanted_locked(errand__sandbox *pool, uint32_t *out_entries,
              struct errand__spare **free_later)
{
    errand__link *link = pool->turns.next;

    *out_entries = 0;
    while (link != &pool->turns) {
        errand__sandbox_place *place =
            ERRAND__CONTAINER(link, errand__sandbox_place, turn);
        const errand__sandbox_job *job = errand__job_head_locked(place, free_later);

        if (job == NULL) {
            link = pool->turns.next;
            continue;
        }
        if (job->entry >= *out_entries)
            *out_entries = job->entry + 1;
        link = link->next;
    }
    return atomic_load_explicit(&pool->waiting, memory_order_relaxed);
}

/* How many workers to start now.  An old one makes room for one that knows more.  *out_stuck: somebody
 * waits for one; *out_known: jobs of entries from here on have none that lives or starts. */
static uint32_t
decide(errand__sandbox *pool, bool *out_stuck, uint32_t *out_known)
{
    struct errand__spare *free_later = NULL;
    uint32_t queued, entries, starts = 0;
    census found;

    errand__lock_acquire(&pool->lock);
    queued = wanted_locked(pool, &entries, &free_later);
    found = count_locked(pool);
    if (found.live < pool->workers_min)
        starts = pool->workers_min - found.live;
    if (queued > found.starting && queued - found.starting > starts &&
        (found.idle == 0 || entries > found.entries))
        starts = queued - found.starting;
    if (starts > pool->workers_max - found.live)
        starts = pool->workers_max - found.live;
    if (found.starting == 0 && starts == 0 && found.old != NULL &&
        found.old->entry_count < entries) {
        errand__list_unlink(&found.old->idle);
        found.old->intent = ERRAND__INTENT_RECYCLE;
        errand__slot_move(found.old, ERRAND__SLOT_DYING);
        pool->tick = true;
    }
    pool->full = found.live == pool->workers_max;
    pool->full_entries = found.entries;
    errand__lock_release(&pool->lock);
    errand__spares_free(free_later);
    *out_stuck = queued != 0 && (found.live == 0 || entries > found.entries);
    *out_known = found.entries;
    return starts;
}

void
errand__sandbox_refill(errand__sandbox *pool, uint64_t now)
{
    char text[ERRAND__SANDBOX_TEXT];
    bool stuck, failed = false, open = now < pool->open_until_ns;
    uint32_t known, starts = decide(pool, &stuck, &known);

    errand__lock_acquire(&pool->lock);
    pool->counts.breaker_open = open;
    errand__text_format(text, sizeof text, "%s%s%s",
                        open ? "too many workers crashed, none is started for a while "
                               "(breaker_ns; raise crash_limit where crashes are usual)"
                             : "",
                        open && pool->counts.text[0] != '\0' ? "; " : "",
                        pool->counts.text);
    errand__lock_release(&pool->lock);
    for (uint32_t i = 0; i < pool->workers_max && starts > 0; i++) {
        if (open || now < pool->retry_ns)
            break;
        if (errand__slot_phase_of(&pool->slots[i]) != ERRAND__SLOT_EMPTY)
            continue;
        starts--;
        start_worker(&pool->slots[i], now);
        now = errand__clock_now();
        failed = errand__slot_phase_of(&pool->slots[i]) == ERRAND__SLOT_EMPTY;
        stuck = stuck && failed;
        if (failed) {
            errand__text_format(text, sizeof text, "%s", pool->counts.text);
            break;
        }
    }
    /* Else they wait for a place, and a worker's end wakes the monitor. */
    pool->wants = failed || (starts != 0 && (open || now < pool->retry_ns));
    if (stuck && (failed || open || now < pool->retry_ns))
        errand__sandbox_fail_queued(pool, known, text);
}
