/* SPDX-License-Identifier: MIT */
/* Design notes: a worker that has not begun, from which others are forked.
 *
 * - It has done what is the same for all workers of a pool and takes most of a start: the loader,
 *   its own libraries, what must be opened once.  It opens no library of the policy and runs
 *   nothing foreign; a forked worker confines itself by the same code as a started one, in the same order.
 * - What workers may do is the set-up that it was started with.  Who asks later brings files and
 *   entries, and cannot have a worker that may do more.  It answers its host alone, as the kernel
 *   names who sends, and only while the host still is the user that started it.
 * - A forked worker is the host's child, not its own, so that the host hears of its end and the kernel
 *   ends it with the host's thread, as with a started one.
 * - The bare call is made, as the C library's fork cannot do that.  What that would put right
 *   in the child, the kernel is told, or is done here: the thread's id, the list of robust locks.  Where it
 *   cannot be known where the id is kept, there is no template.
 * - All share where things lie, and the guard of saved pointers.  The guard of stacks is drawn
 *   anew for each where it lies in the thread's own block (x86-64); no frame from before returns. */
#include "program.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif
#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif
#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define UNGUARDED __attribute__((no_stack_protector))
#endif
#endif
#ifndef UNGUARDED
#define UNGUARDED
#endif

_Static_assert(sizeof ERRAND__WIRE_ARGUMENT <= sizeof ERRAND__WIRE_TEMPLATE, "its room");
enum { SOCKET = ERRAND__WIRE_RESPONSE_FD };

typedef struct template
{
    errand__worker *worker;
    char *word;
    int join; /* the number by which a worker joins its group */
    pid_t *tid;
    void *robust;
    size_t robust_size;
    uintptr_t guard; /* of the next worker's stack */
}
template;

typedef struct asked { /* for a worker */
    errand__wire_ask ask;
    int files[ERRAND__WIRE_ASKED];
    int count;
} asked;

/* ---- the process ---------------------------------------------------------------------------- */

/* Where the C library keeps the thread's id, and its robust locks. */
static bool
know_thread(template *self)
{
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
    return prctl(PR_GET_TID_ADDRESS, &self->tid, 0, 0, 0) == 0 && self->tid != NULL &&
           *self->tid == (pid_t)syscall(SYS_gettid) &&
           syscall(SYS_get_robust_list, 0, &self->robust, &self->robust_size) == 0;
#else
    (void)self;
    return false;
#endif
}

static pid_t
fork_for_host(const template *self, int *out_pidfd)
{
    const unsigned long flags =
        CLONE_PARENT | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
#if defined(__x86_64__)
    return (pid_t)syscall(SYS_clone, flags, NULL, out_pidfd, self->tid, NULL);
#else
    return (pid_t)syscall(SYS_clone, flags, NULL, out_pidfd, NULL, self->tid);
#endif
}

/* A guard for a stack; its lowest byte is 0, as a text's end.  0, or an errno. */
static int
draw_guard(uintptr_t *out_guard)
{
#if defined(__x86_64__) && defined(__LP64__)
    ssize_t got;
    do
        got = getrandom(out_guard, sizeof *out_guard, 0);
    while (got < 0 && errno == EINTR);
    if (got != sizeof *out_guard)
        return got < 0 ? errno : EIO;
    *out_guard &= ~(uintptr_t)0xff;
#else
    *out_guard = 0; /* it is a variable that nobody may write any more */
#endif
    return 0;
}

/* In the child.  No frame that is there by now returns. */
UNGUARDED __attribute__((noinline)) _Noreturn static void
become_worker(const template *self, const asked *from)
{
#if defined(__x86_64__) && defined(__LP64__)
    __asm__ __volatile__("movq %0, %%fs:0x28" : : "r"(self->guard) : "memory");
#endif
    (void)syscall(SYS_set_robust_list, self->robust, self->robust_size);
    if (dup2(from->files[0], ERRAND__WIRE_REQUEST_FD) < 0 ||
        dup2(from->files[1], ERRAND__WIRE_RESPONSE_FD) < 0 ||
        dup2(from->files[2], ERRAND__WIRE_LIFELINE_FD) < 0 ||
        (from->ask.group != 0 && dup2(from->files[3], self->join) < 0))
        _exit(ERRAND__SETUP_WIRE);
    errand__worker_close((unsigned)self->join + 1, ~0u);
    strcpy(self->word, ERRAND__WIRE_ARGUMENT); /* it is the shorter one */
    errand__worker_live(self->worker);
}

/* ---- the socket ----------------------------------------------------------------------------- */

/* Answers, with a descriptor where there is one. */
static void
tell(const errand__wire_birth *birth, int pidfd)
{
    errand__wire_birth bytes = *birth;
    struct iovec part = {&bytes, sizeof bytes};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } more = {.room = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (pidfd >= 0) {
        message.msg_control = &more;
        message.msg_controllen = sizeof more.room;
        more.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&more.head), &pidfd, sizeof pidfd);
    }
    if (sendmsg(SOCKET, &message, MSG_NOSIGNAL) != (ssize_t)sizeof bytes)
        _exit(0); /* the host does not want it any more */
}

/* Is it the host that started this process, and still the same user? */
static bool
is_host(const template *self, const struct ucred *sender)
{
    return (uint32_t)sender->pid == self->worker->setup->parent_pid &&
           sender->uid == getuid() && sender->gid == getgid();
}

/* False: the end of the conversation. */
static bool
hear(const template *self, asked *out)
{
    struct iovec part = {&out->ask, sizeof out->ask};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int) * ERRAND__WIRE_ASKED) +
                  CMSG_SPACE(sizeof(struct ucred))];
    } more;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &more,
                             .msg_controllen = sizeof more.room};
    struct ucred sender = {.pid = 0};
    ssize_t size;
    out->count = 0;
    do
        size = recvmsg(SOCKET, &message, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    if (size != (ssize_t)sizeof out->ask || (message.msg_flags & MSG_CTRUNC) != 0)
        return false;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at != NULL;
         at = CMSG_NXTHDR(&message, at)) {
        size_t length = at->cmsg_len - CMSG_LEN(0);
        if (at->cmsg_level != SOL_SOCKET)
            continue;
        if (at->cmsg_type == SCM_RIGHTS && length <= sizeof out->files) {
            memcpy(out->files, CMSG_DATA(at), length);
            out->count = (int)(length / sizeof(int));
        } else if (at->cmsg_type == SCM_CREDENTIALS && length == sizeof sender) {
            memcpy(&sender, CMSG_DATA(at), length);
        }
    }
    return is_host(self, &sender) && out->ask.ticket != 0 &&
           out->count == 3 + (out->ask.group != 0);
}

static void
answer(template *self, const asked *from)
{
    errand__wire_birth birth = {.ticket = from->ask.ticket, .pid = -1};
    int pidfd = -1, error = draw_guard(&self->guard);
    if (error == 0) {
        birth.pid = fork_for_host(self, &pidfd);
        if (birth.pid == 0)
            become_worker(self, from);
        error = birth.pid < 0 ? errno : 0;
    }
    birth.error = (uint32_t)error;
    tell(&birth, pidfd);
    if (pidfd >= 0)
        close(pidfd);
    for (int i = 0; i < from->count; i++)
        close(from->files[i]);
}

/* What workers are given by number is taken, so that nothing received gets such a number. */
static void
take_numbers(template *self)
{
    bool input = self->worker->request->input_file_size != 0;
    int last = ERRAND__WIRE_PATH_FD + (int)self->worker->setup->path_count;
    if (input && dup2(0, last++) < 0)
        _exit(ERRAND__SETUP_WIRE);
    self->join = last;
    if (dup2(0, last) < 0)
        _exit(ERRAND__SETUP_WIRE);
    errand__worker_close((unsigned)last + 1, ~0u);
}

void
errand__template_serve(errand__worker *worker, char *word)
{
    const errand__wire_birth here = {.ticket = 0, .pid = getpid()};
    template self = {.worker = worker, .word = word};
    const int on = 1;
    asked from;
    errand__worker_follow(worker);
    take_numbers(&self);
    if (!know_thread(&self) ||
        setsockopt(SOCKET, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
        _exit(ERRAND__SETUP_WIRE);
    errand__worker_preload(worker);
    worker->preloaded = true;
    tell(&here, -1);
    while (hear(&self, &from))
        answer(&self, &from);
    _exit(0);
}
