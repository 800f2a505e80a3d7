/* SPDX-License-Identifier: MIT */
/* Design notes: the end, which always comes (O73).
 *
 * Admission stops first.  Queued operations are settled as cancelled, tasks and waits are
 * cancelled in key order, hooks run.  Then the owner drains until nothing is unsettled or the
 * deadline has come: running bodies may still end.  What is left after that is outstanding: the
 * inbox is closed, the block is told how many puts it will still refuse, decoders and hooks are
 * dropped here, and the report names the number.  Nothing of the runtime is touched afterwards
 * but its block. */
#include <unistd.h>
#include "runtime/end/end.h"

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

    if (!errand__seeded(runtime)) { /* there virtual time says what has begun */
        runtime->driving = true;    /* no domain goes on */
        errand__end_queued(runtime, true);
        runtime->driving = false;
    }
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
    for (int brief = 0; brief < 2; brief++)
        for (errand__extra *extra = runtime->registrar.free_extras[brief]; extra != NULL;
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
    errand__end_queued(runtime, false);
    errand__tasks_abort_all(runtime);
    report.live_waits = mode == ERRAND_SHUTDOWN_RUN ? runtime->wait_count : 0;
    errand__asked_release(runtime);
    if (errand__paced(runtime))
        errand__paced_release(runtime);
    end_waits(runtime, ERRAND_SHUTDOWN_QUIET);
    errand__end_cancel(runtime, NULL, false);
    errand__end_settle(runtime, NULL, deadline_ns, mode);
    for (uint32_t i = 0; i < errand__lease_count(runtime); i++) {
        errand__end_lease(runtime->leases[i], deadline_ns);
        errand__end_news(runtime, mode);
    }
    errand__follows_fini(runtime);
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
    report.clean = errand__end_clean(&report);
    errand__block_close_account(runtime->block, outstanding);
    errand__record_end(runtime, report.clean);
    free_all(runtime);
    if (out_report != NULL)
        *out_report = report;
    *take_runtime = NULL;
    return ERRAND_OK;
}
