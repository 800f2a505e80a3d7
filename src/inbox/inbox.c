/* SPDX-License-Identifier: MIT */
/* Design notes: a list in one word.
 *
 * head is a node (the newest of a chain linked to older ones) or, while the list is empty, what
 * the consumer is doing.  Because both stand in one word, a put that finds PARKED and the park
 * that says so cannot miss each other, and no fence or second word is needed (O66).
 *
 * A put links its node completely before the compare-exchange that publishes it, so that the
 * consumer never waits for a producer (O65).  It costs one compare-exchange; only a put that
 * replaced PARKED makes a system call.  DOZING is a sleep of at most 4 ms: a worker that replaces
 * it may go on with its group and ring at the end, which spares a switch per job on one
 * processor; if it blocks meanwhile, which its short jobs did not let expect, the consumer looks
 * by itself.  (A much shorter sleep costs microseconds: the kernel sets a timer for it.)
 *
 * Hints: a chain comes from another processor's memory, one line after the other, and which is
 * next stands in the line itself.  So a worker puts into the unused high bits of a link where
 * the record lies that it put eight puts ago, and the consumer fetches that meanwhile.  A hint
 * that is wrong costs a fetch and nothing else.
 *
 * The descriptor (O67): a drain that leaves the list empty stores ARMED; whoever replaces ARMED
 * writes once; the consumer reads it back when it arms again.  A write may come long after the
 * replacing, so the consumer counts what it is owed (fd_writes): while a write is out it reads
 * again, else a late one would keep an idle host's descriptor readable for ever. */
#include <sys/eventfd.h>
#include <unistd.h>
#include <fcntl.h>
#include <errno.h>
#include "core/pause.h"
#include "inbox/inbox.h"

/* Only where links have bits to spare. */
#if defined(__x86_64__)
#define HINTS      1
#define HINT_SHIFT 48
#else
#define HINTS      0
#define HINT_SHIFT 16
#endif

uintptr_t *
errand__node_next(uintptr_t link)
{
    void *object = errand__node_pointer(link);

    switch (errand__node_tag(link)) {
    case ERRAND__NODE_COMPLETION:
        return &((errand__record *)object)->node;
    case ERRAND__NODE_POSTED:
        return &((errand__record *)object)->post;
    default:
        return (uintptr_t *)(void *)&((errand_command *)object)->library[0];
    }
}

static ERRAND_COLD void
write_fd(int fd)
{
    const uint64_t one = 1;
    int saved = errno;
    ssize_t written;

    do
        written = write(fd, &one, sizeof one);
    while (written < 0 && errno == EINTR);
    errno = saved;
}

void
errand__inbox_ring(errand__block *block)
{
    uintptr_t head = ERRAND__INBOX_ARMED;

    atomic_fetch_add_explicit(&block->bell, 1, memory_order_release); /* Pairs: bell */
    errand__futex_wake(&block->bell, 1);
    if (atomic_compare_exchange_strong_explicit(
            &block->head, &head, ERRAND__INBOX_EMPTY, memory_order_seq_cst,
            memory_order_seq_cst)) /* Pairs: interrupted */
        write_fd(block->wake_fd);
}

/* How far from this record the one lies that the same thread put eight puts ago, in records, for
 * the high bits of its link. */
static uintptr_t
hint_make(errand__putter *putter, const void *object)
{
    const char *before = putter->recent[putter->at];
    ptrdiff_t far =
        ((intptr_t)before - (intptr_t)object) / (ptrdiff_t)sizeof(errand__record);

    putter->recent[putter->at] = object;
    putter->at = (putter->at + 1) % 8;
    return (uintptr_t)(uint16_t)far << HINT_SHIFT;
}

/* What a put owes that found no list but what the consumer does. */
static ERRAND_COLD void
put_wake(errand__block *block, uintptr_t state, errand__putter *putter)
{
    if (state == ERRAND__INBOX_ARMED) {
        write_fd(block->wake_fd);
    } else if (state == ERRAND__INBOX_DOZING && putter != NULL) {
        putter->owes = true;
    } else {
        atomic_fetch_add_explicit(&block->bell, 1,
                                  memory_order_release); /* Pairs: bell */
        errand__futex_wake(&block->bell, 1);
    }
}

bool
errand__inbox_put(errand__block *block, void *object, unsigned tag,
                  errand__putter *putter)
{
    uintptr_t self = (uintptr_t)object | tag;
    uintptr_t hint = putter != NULL && HINTS ? hint_make(putter, object) : 0;
    uintptr_t *next = errand__node_next(self);
    uintptr_t head = atomic_load_explicit(&block->head, memory_order_relaxed);

    ERRAND__PAUSE("put");
    do {
        if (head == ERRAND__INBOX_CLOSED) {
            /* The caller drops now what the owner used before it closed. */
            atomic_load_explicit(&block->head,
                                 memory_order_acquire); /* Pairs: inbox-put */
            return false;
        }
        *next = head <= ERRAND__INBOX_SPECIAL ? 0 : head;
        if (HINTS && *next >> HINT_SHIFT == 0)
            *next |= hint;
    } while (!atomic_compare_exchange_weak_explicit(
        &block->head, &head, self, memory_order_acq_rel, /* Pairs: inbox-put */
        memory_order_relaxed));
    if (head <= ERRAND__INBOX_SPECIAL && head != ERRAND__INBOX_EMPTY)
        put_wake(block, head, putter);
    return true;
}

/* Turns a chain round, newest-first to oldest-first, and takes the hints off its links. */
static uintptr_t
reverse(uintptr_t link)
{
    uintptr_t done = 0;

    while (link != 0) {
        uintptr_t *next = errand__node_next(link);
        uintptr_t older = *next;

        if (HINTS && errand__node_tag(link) == ERRAND__NODE_COMPLETION) {
            ptrdiff_t far = (int16_t)(older >> HINT_SHIFT);

            errand__prefetch_own((const char *)link +
                                 far * (ptrdiff_t)sizeof(errand__record));
            older &= ((uintptr_t)1 << HINT_SHIFT) - 1;
        }
        *next = done;
        done = link;
        link = older;
    }
    return done;
}

bool
errand__inbox_put_own(errand__block *block, void *object, unsigned tag)
{
    uintptr_t self = (uintptr_t)object | tag;

    if (atomic_load_explicit(&block->head, memory_order_relaxed) != ERRAND__INBOX_EMPTY)
        return errand__inbox_put(block, object, tag, NULL);
    *errand__node_next(self) = 0;
    if (block->own == 0)
        block->own = self;
    else
        *errand__node_next(block->own_last) = self;
    block->own_last = self;
    return true;
}

/* The owner's chain, with what came later behind it. */
static uintptr_t
own_take(errand__block *block, uintptr_t later)
{
    uintptr_t own = block->own;

    if (own == 0)
        return later;
    block->own = 0;
    *errand__node_next(block->own_last) = later;
    return own;
}

uintptr_t
errand__inbox_take(errand__block *block, uintptr_t *out_last)
{
    uintptr_t head = atomic_load_explicit(&block->head, memory_order_relaxed);

    if (head <= ERRAND__INBOX_SPECIAL) {
        *out_last = block->own_last;
        return own_take(block, 0);
    }
    head = atomic_exchange_explicit(&block->head, ERRAND__INBOX_EMPTY,
                                    memory_order_acq_rel); /* Pairs: inbox-put */
    *out_last = head;
    return own_take(block, reverse(head));
}

errand_status
errand__inbox_open_fd(errand__block *block)
{
    int fd;

    if (block->wake_fd >= 0)
        return ERRAND_OK;
    fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd >= 0 && fd <= 2) { /* keep clear of the standard descriptors (O62) */
        int higher = fcntl(fd, F_DUPFD_CLOEXEC, 3);

        close(fd);
        fd = higher;
    }
    if (fd < 0)
        return ERRAND_ESYSTEM;
    block->wake_fd = fd;
    return ERRAND_OK;
}

/* What stands in the word now; whoever took ARMED away owes a write. */
static uintptr_t
look(errand__block *block)
{
    uintptr_t head = atomic_load_explicit(&block->head, memory_order_acquire);

    if (block->fd_armed && head != ERRAND__INBOX_ARMED) {
        block->fd_armed = false;
        block->fd_writes++;
    }
    return head;
}

static void
make_readable(errand__block *block)
{
    if (block->fd_writes > 0)
        return; /* it is, or is about to be */
    write_fd(block->wake_fd);
    block->fd_writes++;
}

void
errand__inbox_arm(errand__block *block)
{
    uintptr_t head = look(block);
    uint64_t count;

    if (block->fd_writes > 0 &&
        (head == ERRAND__INBOX_EMPTY || head == ERRAND__INBOX_ARMED)) {
        if (read(block->wake_fd, &count, sizeof count) == (ssize_t)sizeof count)
            block->fd_writes -= (int64_t)count;
        head = look(block); /* ARMED may be gone, and its write have been read */
    }
    if (head == ERRAND__INBOX_ARMED)
        return;
    ERRAND__PAUSE("arm");
    if (head == ERRAND__INBOX_EMPTY && atomic_compare_exchange_strong_explicit(
                                           &block->head, &head, ERRAND__INBOX_ARMED,
                                           memory_order_seq_cst, memory_order_acquire)) {
        block->fd_armed = true;
        if (atomic_load_explicit(&block->interrupted, memory_order_seq_cst) !=
            0) /* Pairs: interrupted.  It came before ARMED was there to be seen. */
            errand__inbox_signal(block);
    } else {
        make_readable(block); /* something came meanwhile */
    }
}

void
errand__inbox_signal(errand__block *block)
{
    uintptr_t head = ERRAND__INBOX_ARMED;

    if (atomic_compare_exchange_strong_explicit(&block->head, &head, ERRAND__INBOX_EMPTY,
                                                memory_order_acq_rel,
                                                memory_order_acquire))
        block->fd_armed = false;
    look(block);
    make_readable(block);
}

void
errand__inbox_disarm(errand__block *block)
{
    uintptr_t head = ERRAND__INBOX_ARMED;

    if (block->fd_armed && atomic_compare_exchange_strong_explicit(
                               &block->head, &head, ERRAND__INBOX_EMPTY,
                               memory_order_acq_rel, memory_order_acquire))
        block->fd_armed = false;
}

bool
errand__inbox_watch(errand__block *block, bool *out_was_armed)
{
    *out_was_armed = block->fd_armed;
    if (!errand__inbox_empty(block) ||
        atomic_load_explicit(&block->interrupted, memory_order_acquire) != 0)
        return false;
    errand__inbox_arm(block);
    return errand__inbox_empty(block);
}

void
errand__inbox_unwatch(errand__block *block, bool was_armed)
{
    if (!was_armed)
        errand__inbox_disarm(block);
}

uintptr_t
errand__inbox_close(errand__block *block)
{
    uintptr_t head = atomic_exchange_explicit(
        &block->head, ERRAND__INBOX_CLOSED, memory_order_acq_rel); /* Pairs: inbox-put */

    return own_take(block, head <= ERRAND__INBOX_SPECIAL ? 0 : reverse(head));
}
