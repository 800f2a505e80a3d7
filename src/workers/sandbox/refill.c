/* SPDX-License-Identifier: MIT */
/* Design notes: how many workers are started, and when.
 *
 * - As many as there are to be at least; one for each queued job that no idle worker can take, up to
 *   the most; and one that knows more functions in the place of an idle one that knows fewer.
 * - A start asks the template, where there is one, and else makes a process; nobody waits for either.
 * - While there is a template, one more worker is kept in reserve: started when nobody waits, ready, and
 *   given no job.  It takes the place of the next one that ends, at once, and another is started.  One
 *   that does not know the newest functions, or was started as another user, is exchanged.  The breaker
 *   holds it back as it does any start.
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

/* As whom workers are started. */
static uint64_t
user_now(void)
{
    return (uint64_t)getuid() << 32 | getgid();
}

static void
start_worker(errand__sandbox_slot *slot, bool reserve, uint64_t now)
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
    slot->reserve = reserve;
    slot->user = user_now();
    errand__lock_acquire(&slot->pool->lock);
    slot->pool->counts.started++;
    errand__lock_release(&slot->pool->lock);
    errand__slot_move(slot, ERRAND__SLOT_STARTING);
    errand__watcher_wake(slot->pool);
}

/* ---- how many ------------------------------------------------------------------------------------------ */

typedef struct census {
    uint32_t live, starting, idle;
    uint32_t entries;              /* the most that a live one knows */
    errand__sandbox_slot *old;     /* the idle one that knows the fewest */
    errand__sandbox_slot *reserve; /* ready or starting; it is in none of the counts */
} census;

typedef struct shortage {
    uint32_t starts; /* workers to start now */
    bool stuck;      /* somebody waits for one */
    uint32_t known; /* jobs of entries from here on have no worker that lives or starts */
    bool calm;      /* nobody waits, and all who are to be there are */
    bool stale;     /* the reserve is to be exchanged */
    errand__sandbox_slot *reserve; /* NULL = none */
} shortage;

/* Workers that live; under the lock, so that none is on its way from a list to a hand. */
static census
count_locked(errand__sandbox *pool)
{
    census found = {.live = 0};

    for (uint32_t i = 0; i < pool->slot_count; i++) {
        errand__sandbox_slot *slot = &pool->slots[i];
        unsigned phase = errand__slot_phase_of(slot);

        if (phase == ERRAND__SLOT_EMPTY || phase == ERRAND__SLOT_DYING)
            continue;
        if (slot->reserve) {
            found.reserve = slot;
            continue;
        }
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

/* It is one worker among the others. */
static void
enlist_locked(errand__sandbox *pool, census *found)
{
    errand__sandbox_slot *slot = found->reserve;

    slot->reserve = false;
    found->reserve = NULL;
    found->live++;
    if (slot->entry_count > found->entries)
        found->entries = slot->entry_count;
    if (errand__slot_phase_of(slot) == ERRAND__SLOT_STARTING) {
        found->starting++;
        return;
    }
    found->idle++;
    errand__list_append(&pool->idle, &slot->idle);
    errand__slot_move(slot, ERRAND__SLOT_IDLE);
}

/* How many workers to start now.  An old one makes room for one that knows more. */
static shortage
decide(errand__sandbox *pool, uint64_t now)
{
    struct errand__spare *free_later = NULL;
    uint32_t queued, entries, starts = 0;
    census found;
    shortage out;
    bool same_user;

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
    same_user = found.reserve != NULL && found.reserve->user == user_now();
    if (starts > 0 && same_user && found.reserve->entry_count >= entries &&
        now >= pool->open_until_ns) {
        enlist_locked(pool, &found);
        starts--;
    }
    if (found.starting == 0 && starts == 0 && found.old != NULL &&
        found.old->entry_count < entries) {
        errand__list_unlink(&found.old->idle);
        found.old->intent = ERRAND__INTENT_RECYCLE;
        errand__slot_move(found.old, ERRAND__SLOT_DYING);
        pool->tick = true;
    }
    pool->full = found.live == pool->workers_max;
    pool->full_entries = found.entries;
    out = (shortage){.starts = starts,
                     .stuck = queued != 0 && (found.live == 0 || entries > found.entries),
                     .known = found.entries,
                     .calm = queued == 0 && starts == 0 && found.starting == 0,
                     .stale =
                         found.reserve != NULL &&
                         (!same_user || found.reserve->entry_count < pool->entry_count),
                     .reserve = found.reserve};
    errand__lock_release(&pool->lock);
    errand__spares_free(free_later);
    return out;
}

void
errand__sandbox_step_in(errand__sandbox *pool, uint64_t now)
{
    bool dying = false, there = false;

    for (uint32_t i = 0; i < pool->slot_count; i++) {
        dying |= errand__slot_phase_of(&pool->slots[i]) == ERRAND__SLOT_DYING;
        there |= errand__slot_phase_of(&pool->slots[i]) == ERRAND__SLOT_RESERVE;
    }
    if (dying && there)
        (void)decide(pool, now);
}

/* Starts one where nobody waits for anything; exchanges one that is old. */
static void
tend_reserve(errand__sandbox *pool, const shortage *need, uint64_t now)
{
    errand__sandbox_slot *reserve = need->reserve;

    if (!need->calm || pool->slot_count == pool->workers_max ||
        pool->template.phase != ERRAND__TEMPLATE_THERE || pool->template.broken)
        return;
    if (reserve == NULL) {
        for (uint32_t i = 0; i < pool->slot_count; i++)
            if (errand__slot_phase_of(&pool->slots[i]) == ERRAND__SLOT_EMPTY) {
                start_worker(&pool->slots[i], true, now);
                return;
            }
    } else if (need->stale && errand__slot_phase_of(reserve) == ERRAND__SLOT_RESERVE) {
        reserve->intent = ERRAND__INTENT_RECYCLE;
        errand__slot_move(reserve, ERRAND__SLOT_DYING);
        pool->tick = true;
    }
}

/* What is to be said of jobs that no worker can be started for. */
static void
say_why(errand__sandbox *pool, bool open, char *out_text, size_t size)
{
    errand__lock_acquire(&pool->lock);
    pool->counts.breaker_open = open;
    errand__text_format(out_text, size, "%s%s%s",
                        open ? "too many workers crashed, none is started for a while "
                               "(breaker_ns; raise crash_limit where crashes are usual)"
                             : "",
                        open && pool->counts.text[0] != '\0' ? "; " : "",
                        pool->counts.text);
    errand__lock_release(&pool->lock);
}

void
errand__sandbox_refill(errand__sandbox *pool, uint64_t now)
{
    char text[ERRAND__SANDBOX_TEXT];
    bool failed = false, open = now < pool->open_until_ns;
    bool barred = open || now < pool->retry_ns;
    shortage need = decide(pool, now);

    say_why(pool, open, text, sizeof text);
    for (uint32_t i = 0; i < pool->slot_count && need.starts > 0 && !barred; i++) {
        if (errand__slot_phase_of(&pool->slots[i]) != ERRAND__SLOT_EMPTY)
            continue;
        need.starts--;
        start_worker(&pool->slots[i], false, now);
        now = errand__clock_now();
        failed = errand__slot_phase_of(&pool->slots[i]) == ERRAND__SLOT_EMPTY;
        need.stuck = need.stuck && failed;
        if (failed) {
            errand__text_format(text, sizeof text, "%s", pool->counts.text);
            break;
        }
    }
    if (!barred && !failed)
        tend_reserve(pool, &need, now);
    /* Else they wait for a place, and a worker's end wakes the monitor. */
    pool->wants = failed || (need.starts != 0 && barred);
    if (need.stuck && (failed || barred))
        errand__sandbox_fail_queued(pool, need.known, text);
}
