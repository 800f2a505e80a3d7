/* SPDX-License-Identifier: MIT */
/* ring: io_uring's two queues as this back end wants them, and whether the kernel gives them. */
#include <errno.h>
#include <sys/mman.h>
#include "workers/reactor/uring.h"

#define SPARE_COMPLETIONS 8 /* entries of the completion queue for each of the other */

#if defined(__SANITIZE_THREAD__)
#define WATCHED_BY_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WATCHED_BY_TSAN 1
#endif
#endif

#ifdef WATCHED_BY_TSAN
/* liburing maps the queues by system calls that ThreadSanitizer does not see: to it they are still
 * what another thread had at those addresses before.  Mapped anew, by a call that it sees, they
 * are new; the kernel does not let that be at the same address. */
static ptrdiff_t
map_again(void *at, size_t size, int fd, off_t what)
{
    char *anew =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);

    ERRAND_ASSERT(anew != MAP_FAILED && munmap(at, size) == 0);
    return anew - (char *)at;
}

#define MOVE(pointer, by) ((pointer) = (void *)((char *)(pointer) + (by)))

static void
show_tsan(struct io_uring *ring)
{
    struct io_uring_sq *sq = &ring->sq;
    struct io_uring_cq *cq = &ring->cq;
    bool one = cq->ring_ptr == sq->ring_ptr;
    ptrdiff_t by =
        map_again(sq->ring_ptr, sq->ring_sz, ring->ring_fd, IORING_OFF_SQ_RING);

    MOVE(sq->ring_ptr, by);
    MOVE(sq->khead, by);
    MOVE(sq->ktail, by);
    MOVE(sq->kring_mask, by);
    MOVE(sq->kring_entries, by);
    MOVE(sq->kflags, by);
    MOVE(sq->kdropped, by);
    MOVE(sq->array, by);
    if (!one)
        by = map_again(cq->ring_ptr, cq->ring_sz, ring->ring_fd, IORING_OFF_CQ_RING);
    MOVE(cq->ring_ptr, by);
    MOVE(cq->khead, by);
    MOVE(cq->ktail, by);
    MOVE(cq->kring_mask, by);
    MOVE(cq->kring_entries, by);
    MOVE(cq->kflags, by);
    MOVE(cq->koverflow, by);
    MOVE(cq->cqes, by);
    by = map_again(sq->sqes, sq->ring_entries * sizeof(struct io_uring_sqe),
                   ring->ring_fd, IORING_OFF_SQES);
    MOVE(sq->sqes, by);
}
#else
static void
show_tsan(struct io_uring *ring)
{
    (void)ring;
}
#endif

int
errand__ring_make(struct io_uring *ring, uint32_t entries, bool *out_deferred)
{
    static const unsigned flags[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
            IORING_SETUP_TASKRUN_FLAG,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0};
    int error = 0;

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        struct io_uring_params parameters = {.flags = flags[i] | IORING_SETUP_CQSIZE |
                                                      IORING_SETUP_CLAMP,
                                             .cq_entries = entries * SPARE_COMPLETIONS};

        error = -io_uring_queue_init_params(entries, ring, &parameters);
        *out_deferred = i == 0;
        if (error != EINVAL)
            break;
    }
    if (error == 0)
        show_tsan(ring);
    return error;
}

/* A filter may permit to make rings and not to use them.  An errno, or 0. */
static int
try_enter(struct io_uring *ring)
{
    int answer;

    io_uring_prep_nop(io_uring_get_sqe(ring));
    answer = io_uring_submit(ring);
    return answer >= 0 || answer == -EAGAIN || answer == -EINTR ? 0 : -answer;
}

/* The newest that is needed: without it nothing of the rest is worth it. */
static int
probe(void)
{
    static const int needed[] = {IORING_OP_SHUTDOWN, IORING_OP_RENAMEAT,
                                 IORING_OP_UNLINKAT, IORING_OP_MKDIRAT, IORING_OP_SPLICE};
    struct io_uring ring;
    struct io_uring_probe *answers;
    bool deferred;
    int error = errand__ring_make(&ring, 4, &deferred);

    if (error != 0)
        return error;
    answers = io_uring_get_probe_ring(&ring);
    if (answers == NULL || (ring.features & IORING_FEAT_NODROP) == 0 ||
        (ring.features & IORING_FEAT_EXT_ARG) == 0)
        error = EOPNOTSUPP;
    for (size_t i = 0; error == 0 && i < sizeof needed / sizeof needed[0]; i++)
        if (!io_uring_opcode_supported(answers, needed[i]))
            error = EOPNOTSUPP;
    if (answers != NULL)
        io_uring_free_probe(answers);
    if (error == 0)
        error = try_enter(&ring);
    io_uring_queue_exit(&ring);
    return error;
}

int
errand__uring_refused(void)
{
    return probe();
}
