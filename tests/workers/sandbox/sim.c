/* SPDX-License-Identifier: MIT */
#include "sim.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct sim_worker {
    sim *owner;
    const errand__wire_request *request;
    errand__wire_response *response;
    size_t request_size, response_size;
    unsigned char *bytes; /* where answers are written */
    int fd;               /* readable when it has ended; the launcher's */
    pthread_t thread;
    atomic_bool killed;
    uint32_t heard, pid;
    bool ended;
    int code, status; /* how it ended */
    unsigned random;
    errand__wire_waiter waiter;
} sim_worker;

static sim_worker *workers[4096]; /* by pid - 1 */
static atomic_uint worker_count;

static bool
gone(sim_worker *self)
{
    return atomic_load_explicit(&self->killed, memory_order_acquire) &&
           !atomic_load_explicit(&self->owner->deaf, memory_order_acquire);
}

static void
end_as(sim_worker *self, int code, int status)
{
    self->ended = true;
    self->code = code;
    self->status = status;
}

static uint32_t
random_next(sim_worker *self)
{
    self->random = self->random * 1664525u + 1013904223u;
    return self->random >> 8;
}

/* The next command; 0 = it was killed. */
static uint32_t
next_command(sim_worker *self)
{
    uint32_t now;

    for (;;) {
        if (gone(self))
            return 0;
        now = errand__wire_await_doorbell(&self->waiter, self->request, self->response,
                                          self->heard, UINT64_C(2000000));
        if (now != self->heard) {
            self->heard = now;
            return self->request->command;
        }
    }
}

static void
put(sim_worker *self, uint32_t status, uint32_t length)
{
    errand__wire_put(self->request, self->response,
                     errand__wire_answer(self->request->sequence, status, length));
}

static void
put_quietly(sim_worker *self, uint32_t sequence, uint32_t status, uint32_t length)
{
    atomic_store_explicit(&self->response->answer,
                          errand__wire_answer(sequence, status, length),
                          memory_order_seq_cst);
}

static void
nap(uint64_t us)
{
    struct timespec length = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};

    nanosleep(&length, NULL);
}

static void
hang(sim_worker *self)
{
    while (!gone(self))
        nap(200);
}

/* Hands length bytes over as a piece; false: no GO_ON came. */
static bool
piece(sim_worker *self, uint32_t length)
{
    put(self, ERRAND__WIRE_MORE, length);
    return next_command(self) == ERRAND__WIRE_GO_ON;
}

static void
pattern(sim_worker *self, uint64_t total)
{
    size_t most = self->request->response_size, used = 0;

    for (uint64_t i = 0; i < total; i++) {
        if (used == most) {
            if (!piece(self, (uint32_t)used))
                return;
            used = 0;
        }
        self->bytes[used++] = sim_byte(i);
    }
    put(self, ERRAND__WIRE_DONE, (uint32_t)used);
}

static void
fail(sim_worker *self, uint64_t number, uint32_t extra)
{
    int32_t own = (int32_t)(number >> 32);
    errand__wire_error error = {
        .code = (int32_t)number, .error = own != 0 ? own : ENOMEM, .text = "sim failed"};

    memcpy(self->bytes, &error, sizeof error);
    put(self, ERRAND__WIRE_ERROR, (uint32_t)sizeof error + extra);
}

static void
storm(sim_worker *self, bool stutter)
{
    while (!gone(self)) {
        if (stutter)
            put_quietly(self, (self->request->sequence - 1) & 0xffffffu,
                        random_next(self) & 0xff, 0);
        errand__wire_wake(errand__wire_futex(self->response));
    }
}

static void
scribble(sim_worker *self)
{
    _Atomic uint32_t *words = (_Atomic uint32_t *)(void *)self->response;

    while (!gone(self)) {
        for (size_t i = 0; i < 4096 / 4; i++)
            atomic_store_explicit(&words[i], random_next(self), memory_order_relaxed);
        errand__wire_wake(errand__wire_futex(self->response));
    }
}

static void
flip(sim_worker *self)
{
    _Atomic unsigned char *bytes = (_Atomic unsigned char *)self->bytes;
    uint32_t sequence = self->request->sequence;

    put(self, ERRAND__WIRE_DONE, 64);
    for (unsigned n = 0; !gone(self) && n < 200000; n++) {
        atomic_store_explicit(&bytes[n % 64], (unsigned char)random_next(self),
                              memory_order_relaxed);
        put_quietly(self, sequence, ERRAND__WIRE_DONE, n % 2 == 0 ? 64 : UINT32_MAX);
    }
    put_quietly(self, sequence, ERRAND__WIRE_DONE, 64);
}

static uint32_t
left_over(sim_worker *self, size_t used)
{
    const unsigned char *body =
        (const unsigned char *)self->request + self->request->body_offset;
    uint32_t found = 0;

    for (size_t i = used; i < self->request->body_size; i++)
        found |= body[i];
    for (size_t i = 0; i < self->request->response_size; i++)
        found |= self->bytes[i];
    return found != 0;
}

static void
ask(sim_worker *self, const unsigned char *from, size_t size)
{
    memcpy(self->bytes, from, size);
    put(self, ERRAND__WIRE_CALLBACK, (uint32_t)size);
    if (next_command(self) != ERRAND__WIRE_RETURN)
        return;
    memcpy(self->bytes,
           (const unsigned char *)self->request + self->request->return_offset,
           self->request->return_used);
    put(self, ERRAND__WIRE_DONE, (uint32_t)self->request->return_used);
}

static void
answer_badly(sim_worker *self, const sim_request *head)
{
    uint32_t sequence = self->request->sequence;

    switch (head->act) {
    case SIM_LENGTH:
        put(self, ERRAND__WIRE_DONE, (uint32_t)head->number);
        hang(self);
        break;
    case SIM_STATUS:
        put(self, (uint32_t)head->number, 0);
        hang(self);
        break;
    case SIM_LARGE:
        put(self, ERRAND__WIRE_LARGE, (uint32_t)head->number);
        break;
    case SIM_SEQUENCE:
        errand__wire_put(
            self->request, self->response,
            errand__wire_answer(sequence + (uint32_t)head->number, ERRAND__WIRE_DONE, 0));
        hang(self);
        break;
    case SIM_TWICE:
        self->bytes[0] = 1;
        put(self, ERRAND__WIRE_DONE, 1);
        put_quietly(self, sequence, ERRAND__WIRE_ERROR,
                    4); /* the host may be one further */
        break;
    case SIM_AHEAD:
        put(self, ERRAND__WIRE_DONE, 0);
        while (!gone(self) &&
               atomic_load_explicit(&self->owner->ahead, memory_order_acquire) != 1)
            nap(100);
        put_quietly(self, sequence + 1, ERRAND__WIRE_DONE, 0);
        atomic_store_explicit(&self->owner->ahead, 2, memory_order_release);
        break;
    case SIM_EMPTY_PIECES:
        while (piece(self, 0)) {
        }
        break;
    case SIM_PIECES:
        while (piece(self, 4096)) {
        }
        break;
    case SIM_BIG_ERROR:
        fail(self, 5, 1);
        hang(self);
        break;
    default:
        put(self, ERRAND__WIRE_DONE, 0);
    }
}

/* Ends, one way or the other. */
static void
die(sim_worker *self, const sim_request *head)
{
    switch (head->act) {
    case SIM_DIE:
        end_as(self, (int)(head->number >> 8), (int)(head->number & 0xff));
        break;
    case SIM_DONE_DIE:
        put(self, ERRAND__WIRE_DONE, 0);
        end_as(self, CLD_KILLED, SIGSEGV);
        break;
    case SIM_DONE_DIE_QUIET:
        put_quietly(self, self->request->sequence, ERRAND__WIRE_DONE, 0);
        end_as(self, CLD_KILLED, SIGSEGV);
        break;
    default:
        memset(self->bytes, 1, 100);
        if (piece(self, 100))
            end_as(self, CLD_KILLED, SIGBUS);
    }
}

/* Answers late, or not at all. */
static void
wait_first(sim_worker *self, const sim_request *head)
{
    switch (head->act) {
    case SIM_HANG:
        hang(self);
        break;
    case SIM_OBEY:
        while (!gone(self) &&
               atomic_load_explicit(&self->request->cancelled, memory_order_relaxed) == 0)
            nap(100);
        if (!gone(self))
            fail(self, 7, 0);
        break;
    case SIM_SCRIBBLE:
        scribble(self);
        break;
    case SIM_FLIP:
        flip(self);
        break;
    default:
        storm(self, head->act == SIM_STUTTER);
    }
}

static void
serve_one(sim_worker *self)
{
    const unsigned char *body =
        (const unsigned char *)self->request + self->request->body_offset;
    size_t size = self->request->body_used;
    sim_request head = {.act = 0};

    memcpy(&head, body, size < sizeof head ? size : sizeof head);
    switch (head.act) {
    case SIM_SLOW:
        nap(head.number);
        __attribute__((fallthrough));
    case SIM_ECHO:
        memcpy(self->bytes, body + sizeof head, size - sizeof head);
        put(self, ERRAND__WIRE_DONE, (uint32_t)(size - sizeof head));
        break;
    case SIM_PATTERN:
        pattern(self, head.number);
        break;
    case SIM_FAIL:
        fail(self, head.number, 0);
        break;
    case SIM_DIE:
    case SIM_DONE_DIE:
    case SIM_DONE_DIE_QUIET:
    case SIM_PIECE_DIE:
        die(self, &head);
        break;
    case SIM_HANG:
    case SIM_OBEY:
    case SIM_SCRIBBLE:
    case SIM_FLIP:
    case SIM_STORM:
    case SIM_STUTTER:
        wait_first(self, &head);
        break;
    case SIM_NO_WAKE:
        nap(head.number);
        put_quietly(self, self->request->sequence, ERRAND__WIRE_DONE, 0);
        break;
    case SIM_PEEK:
        self->bytes[0] = (unsigned char)left_over(self, size);
        put(self, ERRAND__WIRE_DONE, 1);
        break;
    case SIM_ASK:
        ask(self, body + sizeof head, size - sizeof head);
        break;
    default:
        answer_badly(self, &head);
    }
}

static void *
run(void *arg)
{
    sim_worker *self = arg;
    const uint64_t one = 1;
    int status = atomic_load_explicit(&self->owner->setup_status, memory_order_acquire);

    errand__wire_waiter_init(&self->waiter, 1);
    if (atomic_load_explicit(&self->owner->never_ready, memory_order_acquire)) {
        hang(self);
    } else if (status != 0) {
        memcpy(self->response->setup_text, "sim has no landlock", 20);
        atomic_store_explicit(&self->response->ready, (uint32_t)status,
                              memory_order_release);
        end_as(self, CLD_EXITED, status);
    } else {
        self->response->layers = UINT32_MAX;
        atomic_store_explicit(&self->response->ready, 1, memory_order_release);
        errand__wire_wake(&self->response->ready);
    }
    while (!self->ended && !gone(self) && status == 0) {
        uint32_t command = next_command(self);

        if (command == ERRAND__WIRE_CALL)
            serve_one(self);
        else if (command != 0)
            end_as(self, CLD_EXITED, command == ERRAND__WIRE_EXIT ? 0 : 90);
    }
    if (!self->ended)
        end_as(self, CLD_KILLED, SIGKILL);
    if (write(self->fd, &one, sizeof one) != sizeof one)
        abort();
    return NULL;
}

static void *
map(int fd, int protection, size_t *out_size)
{
    struct stat status;
    void *at;

    if (fstat(fd, &status) != 0)
        abort();
    *out_size = (size_t)status.st_size;
    at = mmap(NULL, *out_size, protection, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        abort();
    return at;
}

static int
start(void *arg, const errand__worker_files *files, int32_t *out_pid, int *out_fd)
{
    sim *self = arg;
    int error = atomic_load_explicit(&self->start_error, memory_order_acquire);
    sim_worker *worker;

    atomic_fetch_add_explicit(&self->starts, 1, memory_order_relaxed);
    if (error != 0)
        return error;
    worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return ENOMEM;
    worker->owner = self;
    worker->request = map(files->request_fd, PROT_READ, &worker->request_size);
    worker->response =
        map(files->response_fd, PROT_READ | PROT_WRITE, &worker->response_size);
    worker->bytes = (unsigned char *)worker->response + worker->request->response_offset;
    worker->fd = eventfd(0, EFD_CLOEXEC);
    worker->pid = 1 + atomic_fetch_add_explicit(&worker_count, 1, memory_order_relaxed) %
                          (sizeof workers / sizeof workers[0]);
    worker->random = worker->pid * 2654435761u;
    workers[worker->pid - 1] = worker;
    atomic_fetch_add_explicit(&self->living, 1, memory_order_relaxed);
    if (pthread_create(&worker->thread, NULL, run, worker) != 0)
        abort();
    *out_pid = (int32_t)worker->pid;
    *out_fd = worker->fd;
    return 0;
}

static void
kill_worker(void *arg, int32_t pid, int fd)
{
    sim *self = arg;

    (void)fd;
    atomic_fetch_add_explicit(&self->kills, 1, memory_order_relaxed);
    atomic_store_explicit(&workers[pid - 1]->killed, true, memory_order_release);
}

static void
reap(void *arg, int32_t pid, int fd, errand__worker_end *out_end)
{
    sim *self = arg;
    sim_worker *worker = workers[pid - 1];

    pthread_join(worker->thread, NULL);
    atomic_fetch_add_explicit(&self->reaps, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&self->living, 1, memory_order_relaxed);
    out_end->known = !atomic_load_explicit(&self->thief, memory_order_relaxed);
    out_end->code = worker->code;
    out_end->status = worker->status;
    munmap((void *)(uintptr_t)worker->request, worker->request_size);
    munmap(worker->response, worker->response_size);
    close(fd);
    free(worker);
}

errand__launcher
sim_launcher(sim *self)
{
    return (errand__launcher){start, kill_worker, reap, NULL, self, NULL, false};
}
