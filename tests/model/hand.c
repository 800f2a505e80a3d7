/* SPDX-License-Identifier: MIT */
/* Design notes: a second thread that is never left to itself.
 *
 * It steps an executor and stops in the body that it enters, or before it claims an operation;
 * meanwhile the first thread makes its calls.  Only one of the two moves at a time, so what happens
 * is the program's choice and not the scheduler's.  The exception is a park: the hand goes on when
 * the first thread has fallen asleep, and does nothing but wake it; whoever is first then, what
 * is there afterwards is the same. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "play.h"

enum { LOOKS_MAX = 2000, NAPS_MAX = 1 };
enum { HAND_STEP, HAND_POST, HAND_INTERRUPT, HAND_QUIT };

static _Thread_local bool is_hand;

static void
wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

bool
play_is_hand(void)
{
    return is_hand;
}

/* Does the first thread sleep?  Waits for that as long as it may take, then goes on. */
static void
await_sleep(const play_hand *hand)
{
    char path[64], text[256];

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", hand->first);
    for (int i = 0; i < LOOKS_MAX; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        text[size > 0 ? size : 0] = '\0';
        const char *name_end = strrchr(text, ')');
        if (name_end != NULL && name_end[1] == ' ' && name_end[2] == 'S')
            return;
        sched_yield();
    }
}

static void
act(play *p)
{
    play_hand *hand = &p->hand;

    if (hand->act == HAND_STEP) {
        hand->status = errand_manual_step(p->executor[hand->executor], 1, &hand->count);
        return;
    }
    wait_for(&hand->opened);
    if (hand->slept)
        await_sleep(hand);
    if (hand->act == HAND_POST)
        hand->status = errand_post(p->inbox[hand->runtime], &hand->node->command);
    else
        errand_interrupt(p->inbox[hand->runtime]);
}

static void *
work(void *arg)
{
    play *p = arg;
    play_hand *hand = &p->hand;

    is_hand = true;
    for (;;) {
        wait_for(&hand->begun);
        if (hand->act == HAND_QUIT)
            return NULL;
        act(p);
        hand->busy = false;
        sem_post(&hand->arrived);
    }
}

/* Answers when it has ended, or stopped. */
static void
let_act(play *p, int what)
{
    play_hand *hand = &p->hand;

    if (!hand->started) {
        if (sem_init(&hand->begun, 0, 0) != 0 || sem_init(&hand->arrived, 0, 0) != 0 ||
            sem_init(&hand->opened, 0, 0) != 0 ||
            pthread_create(&hand->thread, NULL, work, p) != 0)
            abort();
        hand->started = true;
        hand->first = (int)syscall(SYS_gettid);
    }
    hand->act = what;
    hand->busy = what != HAND_QUIT;
    sem_post(&hand->begun);
}

static void
stop(play_hand *hand)
{
    hand->stop = PLAY_STOP_NOWHERE;
    sem_post(&hand->arrived);
    wait_for(&hand->opened);
    if (hand->slept)
        await_sleep(hand);
}

void
play_stop_in_body(play_op *op)
{
    if (!is_hand)
        return;
    op->play->hand.op = op->index;
    if (op->play->hand.stop == PLAY_STOP_BODY)
        stop(&op->play->hand);
}

/* It has come back from its step. */
static void
check_step(play *p)
{
    play_hand *hand = &p->hand;
    int op = hand->op;

    if (hand->status != ERRAND_OK || hand->count != hand->entered || hand->count > 1)
        play_fail(p, "the hand's step answers %s and %zu, not %zu",
                  errand_status_name(hand->status), hand->count, hand->entered);
    if (hand->count == 0)
        PLAY_MODEL(p, model_stepped(&p->model, hand->executor, true));
    hand->op = -1;
    p->model.picked = 0;
    if (op >= 0 && p->op[op].outlives)
        play_check_ended(p, &p->op[op]);
    play_said(p, "the hand's step", hand->status, hand->count);
}

void
play_hold(play *p, unsigned a, unsigned b, unsigned c)
{
    play_hand *hand = &p->hand;

    (void)c;
    if (!p->judged || p->depth > 0)
        return;
    if (hand->busy) {
        play_let(p);
        return;
    }
    hand->executor = a & 1;
    hand->stop = b % 3 == 0 ? PLAY_STOP_CLAIM : PLAY_STOP_BODY;
    hand->entered = hand->count = 0;
    hand->op = -1;
    hand->slept = false;
    p->model.picked = hand->stop == PLAY_STOP_CLAIM ? p->model.orders : 0;
    let_act(p, HAND_STEP);
    wait_for(&hand->arrived);
    play_event(p, "hold", hand->op, hand->busy);
    if (!hand->busy)
        check_step(p);
}

void
play_let(play *p)
{
    if (!p->hand.busy)
        return;
    sem_post(&p->hand.opened);
    wait_for(&p->hand.arrived);
    check_step(p);
}

void
play_end_hand(play *p)
{
    play_hand *hand = &p->hand;

    play_let(p);
    if (!hand->started)
        return;
    let_act(p, HAND_QUIT);
    pthread_join(hand->thread, NULL);
    sem_destroy(&hand->begun);
    sem_destroy(&hand->arrived);
    sem_destroy(&hand->opened);
    hand->started = false;
}

/* ---- parks ------------------------------------------------------------------------------------ */
/* Is there surely nothing that a park would return for? */
static bool
is_quiet(const play *p, int runtime)
{
    const model_runtime *r = &p->model.runtime[runtime];

    if (r->head < r->tail || r->hand != 0 || r->left || p->interrupted[runtime])
        return false;
    for (int i = 0; i < p->model.ops; i++)
        if (p->model.op[i].runtime == runtime &&
            (p->model.op[i].wait == MODEL_READY || p->model.op[i].entry ||
             p->model.op[i].phase == MODEL_DOOMED))
            return false;
    for (int i = 0; i < p->model.names; i++)
        if (p->model.name[i].runtime == runtime && p->model.name[i].later)
            return false;
    return true;
}

/* A real clock, and a sleep of some ms in which nothing happens. */
static void
nap(play *p, int runtime, unsigned ms)
{
    bool quiet = is_quiet(p, runtime);
    uint64_t until = errand_runtime_now(p->runtime[runtime]) + ms * UINT64_C(1000000);
    errand_status status = ERRAND_OK;

    if (p->naps++ >= NAPS_MAX)
        return;
    for (int i = 0; i < 2 && status == ERRAND_OK; i++) /* a signal may cut it short */
        status = errand_park(p->runtime[runtime], until);
    if (status != ERRAND_OK)
        play_fail(p, "a nap answers %s", errand_status_name(status));
    if (quiet && errand_runtime_now(p->runtime[runtime]) < until)
        play_fail(p, "a nap ends for nothing");
    play_said(p, "nap", status, quiet);
}

/* Sleeps until the hand wakes it, or does not sleep at all.  completes: with a completion. */
static void
sleep_long(play *p, int runtime, bool completes)
{
    const model_runtime *r = &p->model.runtime[runtime];
    bool news = r->head < r->tail;
    errand_snapshot seen = {0};

    /* With a real clock a hook that said PENDING is asked again after some ms.  From then on each
     * park returns at once, however long the hand takes: that says nothing about its wake. */
    completes &= is_quiet(p, runtime);

    p->hand.slept = false;
    p->opens = true;
    errand_status status = errand_park(p->runtime[runtime], UINT64_MAX);
    if (p->opens) /* it did not sleep */
        sem_post(&p->hand.opened);
    p->opens = false;
    /* A wake more is none of its business: it sleeps again. */
    for (int i = 0; i < 20 && p->hand.slept && completes && seen.undrained == 0; i++)
        if ((i > 0 && errand_park(p->runtime[runtime], UINT64_MAX) != ERRAND_OK) ||
            errand_runtime_snapshot(p->runtime[runtime], &seen) != ERRAND_OK)
            play_fail(p, "no park, or no snapshot");
    wait_for(&p->hand.arrived);
    if (status != ERRAND_OK)
        play_fail(p, "a park answers %s", errand_status_name(status));
    completes &= !model_posted(&p->model, runtime); /* its body did, before its end */
    if (p->hand.slept && (news || (completes && seen.undrained == 0)))
        play_fail(p, news ? "a park sleeps beside news" : "a park ends for nothing");
}

void
play_park(play *p, unsigned a, unsigned b, unsigned c)
{
    int runtime = a & 1, op = p->hand.op;
    play_hand *hand = &p->hand;

    if (!p->judged || p->depth > 0)
        return;
    if (hand->busy) { /* its body ends and its completion wakes the runtime */
        if (op < 0 || p->model.op[op].runtime != runtime || p->model.op[op].held ||
            p->model.op[op].phase != MODEL_RUNNING)
            return;
        sleep_long(p, runtime, true);
        check_step(p);
        return;
    }
    if (p->real_clock && c & 1) {
        nap(p, runtime, b & 7);
        return;
    }
    if (!p->posts)
        return;
    hand->runtime = runtime;
    hand->node = &p->node[runtime][b % PLAY_NODES];
    hand->status = ERRAND_OK;
    let_act(p, c & 2 ? HAND_POST : HAND_INTERRUPT);
    sleep_long(p, runtime, false);
    p->interrupted[runtime] |= !(c & 2);
    if (c & 2)
        PLAY_MODEL(p,
                   model_post(&p->model, runtime, -1, hand->node->index, hand->status));
    play_said(p, c & 2 ? "post to a sleeper" : "interrupt a sleeper", hand->status, 0);
}

/* ---- pause points ------------------------------------------------------------------------------- */
/* Another thread's post, or interrupt, just before the descriptor is armed. */
static void
spring(play *p, int runtime)
{
    play_node *node = &p->node[runtime][p->trap % PLAY_NODES];

    if (p->trap & 64) {
        errand_interrupt(p->inbox[runtime]);
        p->interrupted[runtime] = true;
    } else {
        errand_status status = errand_post(p->inbox[runtime], &node->command);
        PLAY_MODEL(p, model_post(&p->model, runtime, -1, node->index, status));
        play_said(p, "post meanwhile", status, (uint64_t)node->index);
    }
    p->trap = 0;
}

void
play_paused(void *arg, const char *place)
{
    play *p = arg;

    if (is_hand) {
        if (p->hand.stop == PLAY_STOP_CLAIM && strcmp(place, "claim") == 0)
            stop(&p->hand);
    } else if (p->opens && strcmp(place, "park") == 0) {
        p->opens = false;
        p->hand.slept = true;
        sem_post(&p->hand.opened);
    } else if (p->trap != 0 && p->arming >= 0 && strcmp(place, "arm") == 0) {
        spring(p, p->arming);
    }
}

void
play_set_trap(play *p, unsigned a, unsigned b, unsigned c)
{
    (void)a, (void)c;
    if (p->judged && p->posts)
        p->trap = 128 | b;
}
