/* SPDX-License-Identifier: MIT */
/* Design notes: the process from which workers are forked (its inside: program/template.c).
 *
 * - It is started when the first worker that was ready has ended: a pool that loses none needs
 *   none.  Only one that has said that it is there is asked, and nobody waits for its answer: the slot
 *   is STARTING meanwhile.
 * - An answer that does not come in ASK_NS, makes no sense or says no ends the template; what it was
 *   asked for is started as without one, and the next template is tried later and later.
 *   So no start fails for its sake.
 * - What it forks is in its process group until the host has heard of it, and is then moved to one of
 *   its own.  So after its end those that nobody has heard of can be told from all others: they are
 *   killed, cut and reaped by that group before anything else happens to their slots.
 * - The group's number cannot be another's while one of it is not reaped, and the host's other
 *   threads may reap: it is looked whether the template is there still before the group is signalled. */
#include "workers/sandbox/template.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "workers/sandbox/sandbox.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#define LOAD_NS     UINT64_C(10000000000) /* until it is there; nobody waits for that */
#define ASK_NS      UINT64_C(500000000)   /* a busy machine is no hung template */
#define BACKOFF_MIN UINT64_C(100000000)
#define BACKOFF_MAX UINT64_C(60000000000)
#define AGAIN_MIN   UINT64_C(1000000) /* between two looks whether its group has ended */
#define AGAIN_MAX   UINT64_C(100000000)
#define PROVEN      16 /* answers after which an end is no reason to wait longer */

void
errand__template_init(errand__template *self, bool off)
{
    *self = (errand__template){.off = off, .fd = -1, .socket = -1, .lifeline = -1};
}

/* ---- start ------------------------------------------------------------------------------------------- */

/* The file with what all its workers may do.  An errno. */
static int
make_request(const errand__sandbox *pool, int *out_fd)
{
    size_t at = errand__whole_pages(sizeof(errand__wire_request));
    size_t setup = errand__setup_size(&pool->policy, NULL, 0);
    size_t size = at + errand__whole_pages(setup);
    void *bytes = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int error;

    if (bytes == MAP_FAILED)
        return errno;
    error = errand__sandbox_map_file("errand-template", bytes, size, F_SEAL_FUTURE_WRITE,
                                     out_fd);
    if (error == 0) {
        errand__wire_request *request = bytes;

        errand__sandbox_sign(request);
        request->request_file_size = size;
        request->input_file_size =
            pool->region != NULL ? errand__region_size(pool->region) : 0;
        request->setup_offset = at;
        request->setup_size = setup;
        errand__setup_write(&pool->policy, NULL, 0, (uint32_t)getpid(),
                            (unsigned char *)bytes + at);
    }
    munmap(bytes, size);
    return error;
}

static void
close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* A socket and a lifeline, with its ends for the template in files. */
static bool
make_ends(errand__template *self, errand__worker_files *files)
{
    int sockets[2], pipes[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
        return false;
    self->socket = sockets[0];
    files->response_fd = sockets[1];
    if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    files->lifeline_fd = pipes[0];
    self->lifeline = pipes[1];
    return true;
}

static bool
start(errand__sandbox *pool)
{
    errand__template *self = &pool->template;
    errand__worker_files files = {
        .request_fd = -1,
        .response_fd = -1,
        .lifeline_fd = -1,
        .path_fds = pool->path_fds,
        .path_count = pool->path_count,
        .input_fd = pool->region != NULL ? errand__region_fd(pool->region) : -1,
        .join_fd = -1,
        .template = true};
    bool started =
        make_request(pool, &files.request_fd) == 0 && make_ends(self, &files) &&
        pool->launcher.start(pool->launcher.arg, &files, &self->pid, &self->fd) == 0;

    close_one(&files.request_fd);
    close_one(&files.response_fd);
    close_one(&files.lifeline_fd);
    return started;
}

/* ---- end --------------------------------------------------------------------------------------------- */

static void
fail(errand__template *self, uint64_t now)
{
    if (self->answered >= PROVEN || self->backoff_ns == 0)
        self->backoff_ns = BACKOFF_MIN;
    else
        self->backoff_ns =
            self->backoff_ns * 2 > BACKOFF_MAX ? BACKOFF_MAX : self->backoff_ns * 2;
    self->retry_ns = now + self->backoff_ns;
}

/* Everything that is in its group and that it may be told by. */
static void
kill_group(errand__sandbox *pool)
{
    errand__template *self = &pool->template;

    pool->launcher.kill(pool->launcher.arg, self->pid, self->fd);
    if (errand__pidfd_is_child(self->fd))
        (void)kill(-self->pid, SIGKILL);
    errand__lifeline_cut(&self->lifeline);
    for (uint32_t i = 0; i < pool->slot_count; i++)
        if (errand__template_owes(&pool->slots[i]))
            errand__slot_cut(&pool->slots[i]);
}

static void
begin_end(errand__sandbox *pool, uint64_t now, bool failed)
{
    errand__template *self = &pool->template;

    errand__template_listen(pool); /* what it has forked is known, as far as it said so */
    if (failed)
        fail(self, now);
    kill_group(pool);
    /* A copy of this process may keep it open. */
    (void)epoll_ctl(pool->poll_fd, EPOLL_CTL_DEL, self->socket, NULL);
    close_one(&self->socket);
    self->phase = ERRAND__TEMPLATE_ENDING;
    self->since_ns = now;
    self->again_ns = now + AGAIN_MIN;
}

/* Is nothing of its group left? */
static bool
reap_group(const errand__template *self)
{
    siginfo_t info;

    for (;;) {
        info.si_pid = 0;
        if (waitid(P_PGID, (id_t)self->pid, &info, WEXITED | WNOHANG) == 0) {
            if (info.si_pid == 0)
                return false;
        } else if (errno != EINTR) {
            return true;
        }
    }
}

static void
free_slots(errand__sandbox *pool)
{
    for (uint32_t i = 0; i < pool->slot_count; i++)
        if (errand__template_owes(&pool->slots[i])) {
            errand__sandbox_monitor_bury(&pool->slots[i]);
            errand__template_uncount(pool);
        }
}

static void
finish_end(errand__sandbox *pool, uint64_t now)
{
    errand__template *self = &pool->template;

    if (reap_group(self)) {
        (void)epoll_ctl(pool->poll_fd, EPOLL_CTL_DEL, self->fd, NULL);
        close_one(&self->fd);
        self->phase = ERRAND__TEMPLATE_NONE;
        free_slots(pool);
        return;
    }
    if (now >=
        self->again_ns) { /* the host may have got back a right that it had given up */
        uint64_t pace = (now - self->since_ns) / 4;

        kill_group(pool);
        pace = pace < AGAIN_MIN ? AGAIN_MIN : pace;
        self->again_ns = now + (pace > AGAIN_MAX ? AGAIN_MAX : pace);
    }
    if (now - self->since_ns > ASK_NS)
        free_slots(pool); /* who still dies holds files that nobody looks at any more */
}

uint64_t
errand__template_moment(const errand__sandbox *pool)
{
    const errand__template *self = &pool->template;

    return self->phase == ERRAND__TEMPLATE_ENDING ? self->again_ns : UINT64_MAX;
}

/* ---- its life ----------------------------------------------------------------------------------------- */

/* Has somebody waited too long for an answer? */
static bool
is_late(errand__sandbox *pool, uint64_t now)
{
    for (uint32_t i = 0; i < pool->slot_count; i++)
        if (errand__template_owes(&pool->slots[i]) &&
            now - pool->slots[i].started_ns > ASK_NS && now > pool->slots[i].started_ns)
            return true;
    return false;
}

void
errand__template_tend(errand__sandbox *pool, uint64_t now, bool closing)
{
    errand__template *self = &pool->template;
    bool loading = self->phase == ERRAND__TEMPLATE_LOADING;

    if (loading || self->phase == ERRAND__TEMPLATE_THERE) {
        bool failed = self->broken || (loading && now - self->since_ns > LOAD_NS) ||
                      is_late(pool, now);

        if (failed || closing)
            begin_end(pool, now, failed);
    }
    if (self->phase == ERRAND__TEMPLATE_ENDING)
        finish_end(pool, now);
}

void
errand__template_consider(errand__sandbox *pool, uint64_t now)
{
    errand__template *self = &pool->template;
    bool ready = false;

    if (self->off || !self->wanted || self->phase != ERRAND__TEMPLATE_NONE ||
        now < self->retry_ns || now < pool->open_until_ns || now < pool->retry_ns)
        return;
    for (uint32_t i = 0; i < pool->slot_count; i++) {
        unsigned phase = errand__slot_phase_of(&pool->slots[i]);

        if (phase == ERRAND__SLOT_STARTING)
            return; /* first those for whom somebody may wait */
        ready = ready || phase == ERRAND__SLOT_IDLE || phase == ERRAND__SLOT_BUSY ||
                phase == ERRAND__SLOT_HELD;
    }
    if (!ready)
        return; /* the program may be none */
    self->wanted = self->broken = false;
    self->answered = 0;
    self->since_ns = now;
    if (start(pool)) {
        self->phase = ERRAND__TEMPLATE_LOADING;
        self->broken = !errand__sandbox_listen(pool, self->fd, ERRAND__TEMPLATE_ENDED) ||
                       !errand__sandbox_listen(pool, self->socket, ERRAND__TEMPLATE_SAYS);
        pool->tick = pool->tick || self->broken;
        return;
    }
    fail(self, now);
    close_one(&self->socket);
    close_one(&self->lifeline);
}
