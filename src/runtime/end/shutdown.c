/* SPDX-License-Identifier: MIT */
/* Design notes: the end, which always comes (O73).
 *
 * Admission stops first.  Tasks and waits are cancelled in key order, hooks run, queued
 * operations are settled as cancelled.  Then the owner drains until nothing is unsettled or the
 * deadline has come: running bodies may still end.  What is left after that is outstanding: the
 * inbox is closed, the block is told how many puts it will still refuse, decoders and hooks are
 * dropped here, and the report names the number.  Nothing of the runtime is touched afterwards
 * but its block. */
#include <unistd.h>
#include "runtime/runtime.h"

/* One round of news; true if there was any. */
static bool
take_news(errand_runtime *runtime, errand_shutdown_mode mode)
{
    errand_completion_fn *fn =
        mode == ERRAND_SHUTDOWN_RUN ? runtime->config.on_completion : NULL;
    bool any = false;

    errand__hand_finish(runtime);
    errand__deadlines_fire(runtime, runtime->deadlines.count);
    errand__collect(runtime);
    while (errand__deliver_next(runtime, fn, runtime->config.held_on_completion_arg) !=
           ERRAND__ITEM_NONE)
        any = true;
    return any;
}

/* A lease's end tells nobody: what came stays buffered for the next drain, in order. */
static void
keep_news(errand_runtime *runtime)
{
    errand__deadlines_fire(runtime, runtime->deadlines.count);
    errand__collect(runtime);
}

/* Is there nothing to wait for?  Of a lease: nothing is unsettled.  Of all (NULL): nothing is owed,
 * because an operation counts as settled a moment before its completion is put. */
static bool
at_rest(const errand_runtime *runtime, const errand_lease *only)
{
    uint32_t count = atomic_load_explicit(&runtime->lease_count, memory_order_relaxed);
    errand_snapshot snapshot = {.accepted = 0};
    uint64_t owed = 0;

    if (only != NULL) {
        errand__lease_account(only, &snapshot);
        return snapshot.queued + snapshot.running == 0;
    }
    for (uint32_t i = 0; i < count; i++)
        owed += runtime->leases[i]->owed;
    return owed == 0;
}

/* Asks everything armed to end, in slot order within key order of the waits before. */
static void
cancel_armed(errand_runtime *runtime, const errand_lease *only, bool queued_only)
{
    for (uint32_t slot = 1; slot <= runtime->registrar.fresh; slot++) {
        errand__record *record = &runtime->registrar.records[slot];
        unsigned state;
        uint64_t control;

        if (record->phase != ERRAND__PHASE_ARMED || record == runtime->hand ||
            (only != NULL && runtime->leases[record->lease] != only))
            continue;
        state = errand__input_state(runtime, record, &control);
        if (state == ERRAND__SETTLED || (queued_only && state != ERRAND__QUEUED))
            continue;
        errand__cancel_record(runtime, record, ERRAND_REASON_SHUTDOWN);
    }
}

/* Until nothing of the lease is unsettled, or the deadline.  NULL = of any: drains meanwhile. */
static void
settle_all(errand_runtime *runtime, const errand_lease *only, uint64_t deadline_ns,
           errand_shutdown_mode mode)
{
    for (;;) {
        uint64_t now;

        if (only == NULL)
            take_news(runtime, mode);
        else
            keep_news(runtime);
        if (at_rest(runtime, only) || (only != NULL && runtime->unhanded))
            break; /* nobody has what a replay's log will tell of */
        now = errand__clock_now();
        if (now >= deadline_ns)
            break;
        for (uint32_t i = 0; i < errand__lease_count(runtime); i++) {
            errand_lease *lease = runtime->leases[i];

            if (!lease->closed && (only == NULL || only == lease) &&
                lease->executor->ops->step != NULL)
                lease->executor->ops->step(
                    lease); /* woken async jobs of a manual executor */
        }
        errand__flush_all(runtime);
        if (errand__inbox_empty(runtime->block))
            errand__sleep_at_most(runtime, deadline_ns - now < UINT64_C(10000000)
                                               ? deadline_ns - now
                                               : UINT64_C(10000000));
    }
    if (only == NULL)
        take_news(runtime, mode);
}

static void
lease_end(errand_lease *lease, uint64_t deadline_ns)
{
    if (lease->closed)
        return;
    lease->closed = true;
    lease->executor->ops->detach(lease, deadline_ns);
    if (lease->executor->ops->collect != NULL)
        ((errand_runtime *)lease->runtime)->collectors--;
}

static bool
is_clean(const errand_report *report)
{
    return report->live_waits == 0 && report->live_tasks == 0 && report->entries == 0 &&
           report->undeliverable == 0 && report->held == 0 &&
           report->posts_dropped == 0 && report->running == 0;
}

errand_status
errand_lease_shutdown(errand_lease **take_lease, uint64_t deadline_ns,
                      errand_report *out_report)
{
    errand_report report = {.clean = false};
    errand_runtime *runtime;
    errand_lease *lease;

    ERRAND_REQUIRE_ARG(take_lease != NULL && *take_lease != NULL, ERRAND_EINVAL,
                       "take_lease is NULL, or spent");
    lease = *take_lease;
    runtime = lease->runtime;
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(!errand__on_worker(), ERRAND_EDEADLOCK,
                       "a job may not shut a lease");
    if (runtime->draining || runtime->driving)
        return errand__misuse(ERRAND_EBUSY, __func__, "a drain or drive is in progress");
    if (lease->closed)
        return errand__misuse(ERRAND_ESPENT, __func__, "the lease was shut already");
    runtime->frame = errand__frame_innermost();
    runtime->draining = true;
    lease->refusing = true;
    cancel_armed(runtime, lease, true);
    settle_all(runtime, lease, deadline_ns, ERRAND_SHUTDOWN_RUN);
    lease_end(lease, deadline_ns);
    runtime->draining = false;
    if (runtime->fd_wanted)
        errand__fd_update(runtime);
    errand__lease_account(lease, &report.accounts);
    report.accounts.owed = report.accounts.accepted - report.accounts.drained;
    report.running = report.accounts.running;
    report.undeliverable = report.accounts.undeliverable;
    report.clean = is_clean(&report);
    if (out_report != NULL)
        *out_report = report;
    *take_lease = NULL;
    return ERRAND_OK;
}

/* ---- the runtime -------------------------------------------------------------------------------- */

/* Waits and generations are issued together: one is enough to tell their order. */
static bool
key_before(const errand__link *a, const errand__link *b)
{
    return ERRAND__CONTAINER(a, errand__resume, waiting)->generation <
           ERRAND__CONTAINER(b, errand__resume, waiting)->generation;
}

/* Every wait in key order: told (RUN) or dropped (QUIET). */
static void
end_waits(errand_runtime *runtime, errand_shutdown_mode mode)
{
    errand__list_sort(&runtime->waits, key_before);
    while (!errand__list_empty(&runtime->waits)) {
        errand__resume *resume =
            ERRAND__CONTAINER(runtime->waits.next, errand__resume, waiting);

        if (mode == ERRAND_SHUTDOWN_RUN)
            errand__cancel_record(runtime, resume->record, ERRAND_REASON_SHUTDOWN);
        else
            errand__wait_forget(runtime, resume);
    }
}

/* Seeded: what was cancelled after its begin and heard nothing is asked to end now. */
static void
ask_unheard(errand_runtime *runtime)
{
    for (uint32_t slot = 1; slot <= runtime->registrar.fresh; slot++) {
        errand__record *record = &runtime->registrar.records[slot];

        if (record->phase == ERRAND__PHASE_ARMED && record->reason != 0 &&
            record != runtime->hand)
            errand__cancel_record(runtime, record, ERRAND_REASON_SHUTDOWN);
    }
}

/* RUN: tasks and continuations get their turn until they have ended or the deadline. */
static void
run_down(errand_runtime *runtime, uint64_t deadline_ns)
{
    errand_turn turn;
    bool calling = errand__calls_begin(runtime);

    errand__tasks_cancel_all(runtime, ERRAND_REASON_SHUTDOWN);
    end_waits(runtime, ERRAND_SHUTDOWN_RUN);
    if (errand__seeded(runtime))
        ask_unheard(runtime);
    errand__calls_end(runtime, calling);
    while (errand__clock_now() < deadline_ns) {
        if (errand_drive(runtime, NULL, &turn) != ERRAND_OK)
            break;
        if (turn.kind == ERRAND_TURN_PROGRESS)
            continue;
        if (turn.kind != ERRAND_TURN_IDLE || errand__tasks_live(runtime) == 0)
            break;
        if (!turn.inbox_needed && turn.next_deadline_ns == UINT64_MAX)
            break;
        if ((runtime->config.flags & ERRAND_RUNTIME_TEST_CLOCK) != 0 &&
            !turn.inbox_needed)
            break; /* nobody moves that clock now */
        if (errand_park(runtime, turn.next_deadline_ns) != ERRAND_OK)
            break;
    }
}

/* Readied resumes that no turn visits any more. */
static void
forget_ready(errand_runtime *runtime, errand__link *head)
{
    errand__link *link = head->next;

    while (link != head) {
        errand__ready *ready = ERRAND__CONTAINER(link, errand__ready, link);

        link = link->next;
        if (ready->visit == errand__resume_visit)
            errand__wait_forget(runtime, ERRAND__CONTAINER(ready, errand__resume, ready));
    }
}

/* Named but never submitted: dropped in silence. */
static void
abandon_unarmed(errand_runtime *runtime)
{
    for (uint32_t slot = 1; slot <= runtime->registrar.fresh; slot++) {
        errand__record *record = &runtime->registrar.records[slot];

        if (record->phase == ERRAND__PHASE_ISSUED ||
            record->phase == ERRAND__PHASE_BOUND ||
            record->phase == ERRAND__PHASE_SPLIT || record->phase == ERRAND__PHASE_DOOMED)
            errand__record_abandon(runtime, record);
    }
    for (errand__prepared *prepared = runtime->registrar.prepared_all; prepared != NULL;
         prepared = prepared->next_all)
        if (prepared->taken) {
            errand_prepared token = {prepared, prepared->stamp};

            errand_prepared_abandon(&token);
        }
}

static void
drop_follows(errand_runtime *runtime)
{
    while (runtime->follow_first != 0) {
        errand__follow *follow = (errand__follow *)runtime->follow_first;

        runtime->follow_first = follow->next;
        errand__leak_count(runtime, errand__spec_drop(&follow->spec));
        errand__mem_free(NULL, follow, sizeof *follow);
    }
}

/* A posted node was left: there is nobody to cancel for any more. */
static void
drop_posted(errand_runtime *runtime, errand__record *record)
{
    atomic_fetch_and_explicit(&record->control,
                              ~(ERRAND__FLAG_POSTED | ERRAND__FLAG_ASKED),
                              memory_order_acq_rel); /* Pairs: control-post */
    if (record->phase == ERRAND__PHASE_LINGER)
        errand__registrar_recycle(&runtime->registrar, record);
}

/* Closes the inbox; what had been put is still delivered, posts are dropped.  From the close on
 * the extra of an operation that is out is its worker's, which frees it when its put is refused:
 * no deadline stands in it any more, and no call reaches it. */
static void
close_inbox(errand_runtime *runtime, errand_report *report)
{
    errand__heap_entry *first;
    uintptr_t link;

    while ((first = errand__heap_first(&runtime->deadlines)) != NULL)
        errand__heap_remove(&runtime->deadlines, first);
    errand__domains_empty(&runtime->registrar);
    runtime->closed = true;
    link = errand__inbox_close(runtime->block);

    while (link != 0) {
        uintptr_t next = *errand__node_next(link);
        void *object = errand__node_pointer(link);

        if (errand__node_tag(link) == ERRAND__NODE_COMMAND) {
            errand_command *command = object;
            void (*drop)(void *) = command->drop;
            void *arg = command->arg;

            command->library[1] = NULL;
            report->posts_dropped++;
            if (drop != NULL)
                drop(arg);
        } else if (errand__node_tag(link) == ERRAND__NODE_POSTED) {
            drop_posted(runtime, object);
        } else {
            runtime->pending = link;
            *errand__node_next(link) = 0;
            errand__deliver_next(runtime, NULL, NULL);
        }
        link = next;
    }
}

/* What will still come, or never: decoder and hook go here, the rest with its late put. */
static uint64_t
count_outstanding(errand_runtime *runtime, errand_report *report)
{
    uint64_t outstanding = 0;

    for (uint32_t slot = 1; slot <= runtime->registrar.fresh; slot++) {
        errand__record *record = &runtime->registrar.records[slot];

        if (record->phase == ERRAND__PHASE_HELD) {
            report->held++;
            outstanding++;
        } else if (record->phase == ERRAND__PHASE_ARMED) {
            errand_lease *lease = runtime->leases[record->lease];

            errand__leak_count(runtime, errand__record_drop_decoder(record));
            errand__leak_count(runtime, errand__record_drop_hook(record));
            errand__count(&lease->undeliverable);
            report->undeliverable++;
            report->running++;
            outstanding++;
        }
    }
    return outstanding;
}

static void
free_all(errand_runtime *runtime)
{
    const errand_allocator *allocator = runtime->config.held_allocator;
    errand__block *block = runtime->block;

    errand__tasks_fini(runtime);
    errand__cleanups_fini(runtime);
    for (errand__extra *extra = runtime->registrar.free_extras; extra != NULL;
         extra = extra->next_free)
        errand_waker_abandon(&extra->waker);
    while (runtime->resumes_free != NULL) {
        errand__resume *resume = runtime->resumes_free;

        runtime->resumes_free = resume->next_free;
        errand__mem_free(runtime->allocator, resume, sizeof *resume);
    }
    for (uint32_t i = 0; i < errand__lease_count(runtime); i++)
        errand__lease_let(runtime->leases[i]);
    if (runtime->foreign_fd >= 0)
        close(runtime->foreign_fd);
    errand__heap_fini(&runtime->deadlines);
    errand__scheduler_fini(&runtime->scheduler);
    errand__registrar_fini(&runtime->registrar);
    errand__order_fini(runtime);
    errand__stall_forget(runtime);
    errand__block_let(block);
    errand__mem_free(allocator, runtime, sizeof *runtime);
}

errand_status
errand_runtime_shutdown(errand_runtime **take_runtime, uint64_t deadline_ns,
                        errand_shutdown_mode mode, errand_report *out_report)
{
    errand_report report = {.clean = false};
    errand_runtime *runtime;
    uint64_t outstanding;

    ERRAND_REQUIRE_ARG(take_runtime != NULL, ERRAND_EINVAL, "take_runtime is NULL");
    runtime = *take_runtime;
    ERRAND__ENTER(runtime);
    ERRAND_REQUIRE_ARG(mode == ERRAND_SHUTDOWN_RUN || mode == ERRAND_SHUTDOWN_QUIET,
                       ERRAND_EINVAL, "mode is RUN or QUIET");
    ERRAND_REQUIRE_ARG(!errand__on_worker(), ERRAND_EDEADLOCK,
                       "a job may not end a runtime");
    if (runtime->draining || runtime->driving)
        return errand__misuse(ERRAND_EBUSY, __func__, "a drain or drive is in progress");
    errand__replay_over(runtime);
    runtime->closing = true;
    runtime->stop_ns = deadline_ns;
    if (mode == ERRAND_SHUTDOWN_RUN)
        run_down(runtime, deadline_ns);
    runtime->frame = errand__frame_innermost();
    runtime->draining = runtime->driving = true; /* no host code may drain or drive now */
    report.live_tasks = errand__tasks_live(runtime);
    errand__tasks_abort_all(runtime);
    report.live_waits = mode == ERRAND_SHUTDOWN_RUN ? runtime->wait_count : 0;
    if (errand__paced(runtime))
        errand__paced_release(runtime);
    end_waits(runtime, ERRAND_SHUTDOWN_QUIET);
    cancel_armed(runtime, NULL, false);
    settle_all(runtime, NULL, deadline_ns, mode);
    for (uint32_t i = 0; i < errand__lease_count(runtime); i++) {
        lease_end(runtime->leases[i], deadline_ns);
        take_news(runtime, mode);
    }
    drop_follows(runtime);
    abandon_unarmed(runtime);
    forget_ready(runtime, &runtime->scheduler.ready);
    forget_ready(runtime, &runtime->scheduler.pass);
    for (size_t left = runtime->cleanup_count; left > 0; left--) /* each once */
        if (!errand__cleanup_visit(runtime))
            break;
    report.entries = runtime->cleanup_count;
    close_inbox(runtime, &report);
    outstanding = count_outstanding(runtime, &report);
    errand__runtime_account(runtime, &report.accounts);
    /* Each that was not drained is counted undeliverable, wherever its body or its put is now. */
    report.accounts.queued = report.accounts.running = report.accounts.undrained = 0;
    report.running = report.undeliverable;
    report.clean = is_clean(&report);
    errand__block_close_account(runtime->block, outstanding);
    errand__record_end(runtime, report.clean);
    free_all(runtime);
    if (out_report != NULL)
        *out_report = report;
    *take_runtime = NULL;
    return ERRAND_OK;
}
