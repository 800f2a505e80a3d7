/* SPDX-License-Identifier: MIT */
/* isolation_peers: what a host would write without a library, unconfined: a process for each call;
 * processes that were forked before and read from sockets; and two lower bounds, a pair of words in
 * shared memory on which both sides sleep, or spin.  None of them checks what the other side says, none
 * survives its end. */
#include "isolation.h"
#include "sample.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT = 120 };

bool
isolation_pin(int process, int nth)
{
    static cpu_set_t all;
    cpu_set_t one;
    if (CPU_COUNT(&all) == 0 && sched_getaffinity(0, sizeof all, &all) != 0)
        return false;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &all) && nth-- == 0)
            CPU_SET(i, &one);
    }
    return CPU_COUNT(&one) == 1 && sched_setaffinity(process, sizeof one, &one) == 0;
}

static void *
failed(char *text, const char *what)
{
    snprintf(text, TEXT, "%s failed", what);
    return NULL;
}

/* ---- a process for each call ----------------------------------------------------------------- */

static void *
fork_open(const isolation_plan *plan, char *text)
{
    static int world;
    if (plan->apart && !isolation_pin(0, 0))
        return failed(text, "sched_setaffinity");
    world = plan->apart;
    return &world;
}

static bool
fork_trip(void *world, uint64_t number, uint64_t *out_answer, char *text)
{
    int fds[2], status;
    if (pipe(fds) != 0)
        return failed(text, "pipe") != NULL;
    pid_t child = fork();
    if (child == 0) {
        if (*(int *)world)
            isolation_pin(0, 1);
        uint64_t answer = isolation_turn(number);
        _exit(write(fds[1], &answer, sizeof answer) == sizeof answer ? 0 : 1);
    }
    close(fds[1]);
    bool good = child > 0 &&
                read(fds[0], out_answer, sizeof *out_answer) == sizeof *out_answer &&
                waitpid(child, &status, 0) == child && status == 0;
    close(fds[0]);
    if (!good)
        failed(text, "fork");
    return good;
}

extern char **environ;

static bool
fork_refill(void *world, uint64_t *out_ns, char *text)
{
    char name[] = "true";
    char *arguments[] = {name, NULL};
    pid_t child;
    int status;
    (void)world;
    uint64_t start = bench_now();
    if (posix_spawnp(&child, "true", NULL, NULL, arguments, environ) != 0 ||
        waitpid(child, &status, 0) != child || status != 0)
        return failed(text, "posix_spawnp") != NULL;
    *out_ns = bench_now() - start;
    return true;
}

static bool
fork_crash(void *world, char *text)
{
    int status;
    (void)world;
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSEGV);
        _exit(1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
        return failed(text, "fork") != NULL;
    return true;
}

const isolation_peer isolation_fork = {.name = "fork per call",
                                       .open = fork_open,
                                       .trip = fork_trip,
                                       .refill = fork_refill,
                                       .crash = fork_crash};

/* ---- sockets ------------------------------------------------------------------------------------ */

typedef struct sockets {
    isolation_plan plan;
    int fds[ISOLATION_WORKERS_MAX];
} sockets;

static bool
read_whole(int fd, void *data, size_t size)
{
    for (char *at = data; size > 0;) {
        ssize_t got = read(fd, at, size);
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static bool
write_whole(int fd, const void *data, size_t size)
{
    for (const char *at = data; size > 0;) {
        ssize_t put = write(fd, at, size);
        if (put <= 0)
            return false;
        at += put;
        size -= (size_t)put;
    }
    return true;
}

/* A message is a number of bytes, and these; eight bytes are a number to turn. */
static _Noreturn void
sockets_serve(int fd, size_t most)
{
    unsigned char *bytes = malloc(most < 8 ? 8 : most);
    uint64_t size, number;
    while (bytes != NULL && read_whole(fd, &size, sizeof size) && size <= most) {
        if (!read_whole(fd, bytes, size))
            break;
        if (size == sizeof number) {
            memcpy(&number, bytes, sizeof number);
            number = isolation_turn(number);
            memcpy(bytes, &number, sizeof number);
        }
        if (!write_whole(fd, bytes, size))
            break;
    }
    _exit(0);
}

static void *
sockets_open(const isolation_plan *plan, char *text)
{
    static sockets world;
    world.plan = *plan;
    for (uint32_t i = 0; i < plan->workers; i++) {
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
            return failed(text, "socketpair");
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(fds[0]);
            sockets_serve(fds[1], plan->bytes < 8 ? 8 : plan->bytes);
        }
        close(fds[1]);
        if (child < 0 ||
            (plan->apart && !(isolation_pin(child, 1) && isolation_pin(0, 0))))
            return failed(text, "fork");
        world.fds[i] = fds[0];
    }
    return &world;
}

static bool
sockets_trip(void *opaque, uint64_t number, uint64_t *out_answer, char *text)
{
    sockets *world = opaque;
    const uint64_t message[2] = {sizeof number, number};
    if (write_whole(world->fds[0], message, sizeof message) &&
        read_whole(world->fds[0], out_answer, sizeof *out_answer))
        return true;
    return failed(text, "a socket") != NULL;
}

/* Answers of one worker come in the order of its questions. */
static uint64_t
sockets_pump(void *opaque, uint64_t total, char *text)
{
    sockets *world = opaque;
    uint32_t workers = world->plan.workers, most = world->plan.in_flight / workers;
    uint64_t sent[ISOLATION_WORKERS_MAX] = {0}, heard[ISOLATION_WORKERS_MAX] = {0};
    uint64_t messages[ISOLATION_WINDOW_MAX][2], answers[ISOLATION_WINDOW_MAX];
    uint64_t each = total / workers, right = 0;
    struct pollfd entries[ISOLATION_WORKERS_MAX];
    while (heard[0] < each || heard[workers - 1] < each) {
        for (uint32_t w = 0; w < workers; w++) {
            uint32_t count = 0;
            while (sent[w] < each && sent[w] - heard[w] < most) {
                messages[count][0] = sizeof sent[w];
                messages[count++][1] = sent[w]++;
            }
            if (count > 0 && !write_whole(world->fds[w], messages, count * 16))
                return failed(text, "a socket") != NULL;
            entries[w] = (struct pollfd){.fd = world->fds[w], .events = POLLIN};
        }
        if (poll(entries, workers, -1) <= 0)
            return failed(text, "poll") != NULL;
        for (uint32_t w = 0; w < workers; w++) {
            if (entries[w].revents == 0)
                continue;
            ssize_t got = read(world->fds[w], answers, sizeof answers);
            if (got <= 0 || got % 8 != 0)
                return failed(text, "a socket") != NULL;
            for (ssize_t i = 0; i < got / 8; i++)
                right += answers[i] == isolation_turn(heard[w]++);
        }
    }
    return right;
}

static bool
sockets_echo(void *opaque, const unsigned char *bytes, size_t size,
             unsigned char *out_bytes, char *text)
{
    sockets *world = opaque;
    uint64_t head = size;
    if (write_whole(world->fds[0], &head, sizeof head) &&
        write_whole(world->fds[0], bytes, size) &&
        read_whole(world->fds[0], out_bytes, size))
        return true;
    return failed(text, "a socket") != NULL;
}

const isolation_peer isolation_sockets = {.name = "socketpair",
                                          .open = sockets_open,
                                          .trip = sockets_trip,
                                          .pump = sockets_pump,
                                          .echo = sockets_echo};

/* ---- words in shared memory --------------------------------------------------------------------- */

typedef struct words {
    _Alignas(128) _Atomic uint32_t asked; /* host: how many questions */
    uint64_t question;
    _Alignas(128) _Atomic uint32_t answered; /* worker: how many answers */
    uint64_t answer;
    _Alignas(128) bool spins; /* constant */
} words;

static void
words_await(words *self, _Atomic uint32_t *word, uint32_t seen)
{
    while (atomic_load_explicit(word, memory_order_acquire) == seen) {
        if (!self->spins)
            (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
#if defined(__x86_64__)
        else
            __builtin_ia32_pause();
#endif
    }
}

static void
words_tell(words *self, _Atomic uint32_t *word, uint32_t count)
{
    atomic_store_explicit(word, count, memory_order_release);
    if (!self->spins)
        (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void *
words_open(const isolation_plan *plan, char *text, bool spins)
{
    words *self = mmap(NULL, sizeof *self, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (self == MAP_FAILED)
        return failed(text, "mmap");
    self->spins = spins;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (uint32_t n = 0;; n++) {
            words_await(self, &self->asked, n);
            self->answer = isolation_turn(self->question);
            words_tell(self, &self->answered, n + 1);
        }
    }
    if (child < 0 || (plan->apart && !(isolation_pin(child, 1) && isolation_pin(0, 0))))
        return failed(text, "fork");
    return self;
}

static void *
futexes_open(const isolation_plan *plan, char *text)
{
    return words_open(plan, text, false);
}

static void *
spins_open(const isolation_plan *plan, char *text)
{
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return failed(text, "spinning on one processor");
    return words_open(plan, text, true);
}

static bool
words_trip(void *opaque, uint64_t number, uint64_t *out_answer, char *text)
{
    words *self = opaque;
    uint32_t count = atomic_load_explicit(&self->asked, memory_order_relaxed);
    (void)text;
    self->question = number;
    words_tell(self, &self->asked, count + 1);
    words_await(self, &self->answered, count);
    *out_answer = self->answer;
    return true;
}

const isolation_peer isolation_futexes = {
    .name = "bare futex pair", .open = futexes_open, .trip = words_trip};
const isolation_peer isolation_spins = {
    .name = "bare spinning pair", .open = spins_open, .trip = words_trip};
