/* SPDX-License-Identifier: MIT */
/* Design notes: workers that are forked: what the template is asked for, and what it says.
 *
 * - A question is a packet with the worker's files and a ticket, which stands in the slot until the answer:
 *   a process, and a pidfd of it.
 * - The template is no better than a worker: what it names must be a child of ours that the pidfd is of, and
 *   that is of its group still.  Whatever else it says breaks it. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "workers/sandbox/sandbox.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

bool
errand__template_owes(const errand__sandbox_slot *slot)
{
    return slot->ticket != 0 && errand__slot_phase_of(slot) == ERRAND__SLOT_STARTING;
}

bool
errand__pidfd_is_child(int fd)
{
    siginfo_t info;

    return waitid((idtype_t)P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void
errand__template_uncount(errand__sandbox *pool)
{
    errand__lock_acquire(&pool->lock);
    pool->counts.started--;
    errand__lock_release(&pool->lock);
}

/* ---- answers ------------------------------------------------------------------------------------------ */

/* Which slot's worker it is, or NULL. */
static errand__sandbox_slot *
find_asked(errand__sandbox *pool, uint32_t ticket)
{
    for (uint32_t i = 0; i < pool->slot_count; i++)
        if (ticket != 0 && pool->slots[i].ticket == ticket &&
            errand__template_owes(&pool->slots[i]))
            return &pool->slots[i];
    return NULL;
}

/* Takes a worker that was forked.  False: that makes no sense; the descriptor is the caller's then. */
static bool
take_worker(errand__sandbox *pool, const errand__wire_birth *birth, int fd)
{
    errand__template *self = &pool->template;
    errand__sandbox_slot *slot = find_asked(pool, birth->ticket);

    /* The last fails for a child that is a program of its own. */
    if (slot == NULL || birth->error != 0 || fd < 0 || birth->pid <= 0 ||
        !errand__pidfd_names(fd, birth->pid) || !errand__pidfd_is_child(fd) ||
        setpgid(birth->pid, birth->pid) != 0)
        return false;
    slot->pid = birth->pid;
    slot->fd = fd;
    slot->ticket = 0;
    self->answered++;
    if (!errand__sandbox_heed_worker(slot, pool->launcher.program)) {
        errand__template_uncount(pool);
        return true;
    }
    errand__lock_acquire(&pool->lock);
    pool->counts.forked++;
    errand__lock_release(&pool->lock);
    return true;
}

/* One packet.  False: there is none, or no sense in it. */
static bool
listen_once(errand__sandbox *pool)
{
    errand__template *self = &pool->template;
    errand__wire_birth birth;
    struct iovec part = {&birth, sizeof birth};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } more;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &more,
                             .msg_controllen = sizeof more.room};
    ssize_t size;
    int fd = -1;
    bool sense;

    do
        size = recvmsg(self->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    if (size > 0 && CMSG_FIRSTHDR(&message) != NULL &&
        more.head.cmsg_level == SOL_SOCKET && more.head.cmsg_type == SCM_RIGHTS &&
        more.head.cmsg_len == CMSG_LEN(sizeof fd))
        memcpy(&fd, CMSG_DATA(&more.head), sizeof fd);
    sense = size == (ssize_t)sizeof birth &&
            (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) == 0;
    if (sense && self->phase == ERRAND__TEMPLATE_LOADING) {
        sense = birth.ticket == 0 && birth.error == 0 && fd < 0;
        if (sense)
            self->phase = ERRAND__TEMPLATE_THERE;
    } else if (sense) {
        sense = take_worker(pool, &birth, fd);
        fd = sense ? -1 : fd;
    }
    if (fd >= 0)
        close(fd);
    self->broken = self->broken || !sense;
    return sense;
}

void
errand__template_listen(errand__sandbox *pool)
{
    while (listen_once(pool)) {
    }
}

bool
errand__template_hear(errand__sandbox *pool, uint32_t event)
{
    errand__template *self = &pool->template;

    if (event != ERRAND__TEMPLATE_SAYS && event != ERRAND__TEMPLATE_ENDED)
        return false;
    if (self->phase == ERRAND__TEMPLATE_ENDING) {
        (void)epoll_ctl(pool->poll_fd, EPOLL_CTL_DEL, self->fd, NULL);
    } else if (event == ERRAND__TEMPLATE_ENDED) {
        self->broken = true;
        (void)epoll_ctl(pool->poll_fd, EPOLL_CTL_DEL, self->fd, NULL);
    } else {
        errand__template_listen(pool);
    }
    return true;
}

/* ---- questions ---------------------------------------------------------------------------------------- */

bool
errand__template_ask(errand__sandbox_slot *slot, const errand__worker_files *files)
{
    errand__template *self = &slot->pool->template;
    errand__wire_ask ask = {.ticket = ++self->ticket, .group = files->join_fd >= 0};
    int fds[ERRAND__WIRE_ASKED] = {files->request_fd, files->response_fd,
                                   files->lifeline_fd, files->join_fd};
    const size_t used = sizeof(int) * (3 + ask.group);
    struct iovec part = {&ask, sizeof ask};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof fds)];
    } more = {.room = {0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &more,
                             .msg_controllen = CMSG_SPACE(used)};

    if (self->phase != ERRAND__TEMPLATE_THERE || self->broken)
        return false;
    if (ask.ticket == 0)
        ask.ticket = ++self->ticket;
    more.head = (struct cmsghdr){CMSG_LEN(used), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&more.head), fds, used);
    if (sendmsg(self->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) !=
        (ssize_t)sizeof ask) {
        self->broken = true;
        return false;
    }
    slot->ticket = ask.ticket;
    return true;
}
