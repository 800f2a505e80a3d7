/* SPDX-License-Identifier: MIT */
/* Goal: whatever a worker writes into the file that it shares with its host, the host reads nothing
 * beyond it, ends each operation once, and serves the next.  Method: workers that are nobody: the
 * fuzzer writes in their place, between the host's looks.  The first byte says how large the
 * request is; then each step is a byte and what it needs:
 *   0  a whole answer word          1  status and length under the sequence that is asked for
 *   2  bytes somewhere in the file   3  the host looks
 *   4  the header's other words     5  an answer of the last sequence
 *   6  the worker dies, so and so    7  the host changes its mind
 * The first byte's upper bits: the sequence is about to wrap; the next worker starts strangely. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "errand/config.h"
#include "workers/sandbox/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* files: of the newest worker.  Writers: the monitor.  Readers: the fuzzer. */
static _Atomic(errand__wire_response *) newest_response;
static _Atomic(const errand__wire_request *) newest_request;
static atomic_int newest_fd;
static size_t response_size, request_size;
/* strange: 0, or how the next worker starts: what it says of itself, before it dies or instead.
 * end: how workers end, as reap tells.  Writers: the fuzzer.  Readers: the monitor. */
static _Atomic uint64_t strange, end;

static struct {
    errand_runtime *runtime;
    errand_executor *executor;
    errand_lease *lease;
    unsigned ended, states;
    errand_identity identity;
    size_t request;
} host;

typedef struct input {
    const uint8_t *at, *end;
} input;

static uint64_t
take(input *from, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes && from->at < from->end; i++)
        value |= (uint64_t)*from->at++ << 8 * i;
    return value;
}

/* ---- workers that are nobody ---------------------------------------------------------------------- */

static void *
map(int fd, int protection, size_t *out_size)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        abort();
    *out_size = (size_t)status.st_size;
    void *at = mmap(NULL, *out_size, protection, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        abort();
    return at;
}

/* Mappings of workers that are gone.  The fuzzer may be writing there: it unmaps them itself. */
typedef struct gone {
    struct gone *next;
    void *at;
    size_t size;
} gone;
static gone *all_gone;
static pthread_mutex_t gone_lock = PTHREAD_MUTEX_INITIALIZER;

static void
put_aside(void *at, size_t size)
{
    gone *it = malloc(sizeof *it);

    if (it == NULL)
        abort();
    pthread_mutex_lock(&gone_lock);
    *it = (gone){all_gone, at, size};
    all_gone = it;
    pthread_mutex_unlock(&gone_lock);
}

static void
unmap_gone(void)
{
    pthread_mutex_lock(&gone_lock);
    while (all_gone != NULL) {
        gone *it = all_gone;

        all_gone = it->next;
        munmap(it->at, it->size);
        free(it);
    }
    pthread_mutex_unlock(&gone_lock);
}

/* All words that are read at a start, from one number; a worker that is never ready dies at once. */
static void
start_strangely(errand__wire_response *response, int fd)
{
    uint64_t how = atomic_exchange_explicit(&strange, 0, memory_order_acq_rel);
    const uint64_t one = 1;
    uint32_t ready = 1;

    if (how != 0) {
        ready = (how & 3) == 0 ? 1 : (uint32_t)(how >> 8) & 255;
        response->landlock_abi = (uint32_t)(how >> 16);
        response->setup_errno = (uint32_t)(how >> 24);
        if ((how & 4) != 0)
            response->layers = (uint32_t)(how >> 32);
        memset(response->setup_text, (int)(how >> 40), sizeof response->setup_text);
        memset(response->entry_text, (int)(how >> 48), sizeof response->entry_text);
        memset(response->entry_state, (int)(how >> 8), sizeof response->entry_state);
        atomic_store_explicit(&response->loading, (uint32_t)(how >> 56),
                              memory_order_relaxed);
        atomic_store_explicit(&response->answer, how & 8 ? how : 0, memory_order_relaxed);
    }
    atomic_store_explicit(&response->ready, ready, memory_order_release);
    if (ready != 1 && write(fd, &one, sizeof one) != sizeof one)
        abort();
}

static int
start(void *arg, const errand__worker_files *files, int32_t *out_pid, int *out_fd)
{
    const errand__wire_request *request =
        map(files->request_fd, PROT_READ, &request_size);
    errand__wire_response *response =
        map(files->response_fd, PROT_READ | PROT_WRITE, &response_size);

    (void)arg;
    *out_pid = 1;
    *out_fd = eventfd(0, EFD_CLOEXEC);
    response->layers = UINT32_MAX;
    start_strangely(response, *out_fd);
    atomic_store_explicit(&newest_fd, *out_fd, memory_order_release);
    atomic_store_explicit(&newest_request, request, memory_order_release);
    atomic_store_explicit(&newest_response, response, memory_order_release);
    return 0;
}

static void
kill_worker(void *arg, int32_t pid, int fd)
{
    const uint64_t one = 1;

    (void)arg;
    (void)pid;
    if (write(fd, &one, sizeof one) != sizeof one)
        abort();
}

static void
reap(void *arg, int32_t pid, int fd, errand__worker_end *out_end)
{
    (void)arg;
    (void)pid;
    put_aside(atomic_exchange_explicit(&newest_response, NULL, memory_order_acq_rel),
              response_size);
    put_aside((void *)(uintptr_t)atomic_exchange_explicit(&newest_request, NULL,
                                                          memory_order_acq_rel),
              request_size);
    uint64_t how = atomic_exchange_explicit(&end, 0, memory_order_acq_rel);
    out_end->known = (how & 1) == 0;
    out_end->code = (how & 2) != 0 ? CLD_EXITED : CLD_KILLED;
    out_end->status = (int)(how >> 8) & 255;
    out_end->user_ns = how >> 16;
    out_end->peak_bytes = how >> 8;
    close(fd);
}

/* ---- the job ------------------------------------------------------------------------------------------ */

static const errand_entry *
entry_of(const void *state)
{
    static const errand_entry entry = {"/nobody.so", "answer", NULL};

    (void)state;
    return &entry;
}

static size_t
size_of(const void *state)
{
    (void)state;
    return host.request;
}

static void
write_request(const void *state, unsigned char *out_bytes)
{
    (void)state;
    memset(out_bytes, 0x5a, host.request);
}

static int32_t
read_response(errand_job *job, void *state, const unsigned char *bytes, size_t size,
              errand_payload *out_payload)
{
    unsigned char *copy = errand_payload_alloc(job, size, out_payload);

    (void)state;
    if (copy == NULL)
        return 12;
    memcpy(copy, bytes, size);
    return 0;
}

static size_t
answer(errand_job *job, void *state, const unsigned char *question, size_t size,
       unsigned char *out_answer, size_t room)
{
    (void)job;
    (void)state;
    if (size > room)
        return 0;
    memcpy(out_answer, question, size);
    return size;
}

static int32_t
run(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)state;
    (void)out_payload;
    abort();
}

static void
drop(void *state)
{
    (void)state;
    host.states--;
}

static const errand_portable_type portable = {sizeof portable, entry_of,      size_of,
                                              write_request,   read_response, answer};
static const errand_job_type type = {
    .struct_size = sizeof type,
    .name = "ring",
    .run = run,
    .drop = drop,
    .held_portable = &portable,
};

static void
hear(void *arg, errand_completion *completion)
{
    (void)arg;
    (void)completion;
    host.ended++;
}

static void
look(void)
{
    size_t count;

    if (errand_drain(host.runtime, SIZE_MAX, hear, NULL, &count) != ERRAND_OK)
        abort();
}

static void
make_host(void)
{
    errand__launcher launcher = {start, kill_worker, reap, NULL, NULL};
    errand_sandbox_policy policy = {
        .struct_size = sizeof policy,
        .in_bytes = 4096,
        .out_bytes = 40000,
        .entries = entry_of(NULL),
        .entry_count = 1,
    };
    errand_sandbox_config config = {
        .struct_size = sizeof config,
        .workers_max = 1,
        .policy = &policy,
        .crash_window_ns = 1,
    };
    char text[256];

    if (errand__sandbox_make(&config, &launcher, &host.executor, text, sizeof text) !=
            ERRAND_OK ||
        errand_runtime_create(NULL, &host.runtime) != ERRAND_OK ||
        errand_attach(host.runtime, host.executor, 0, &host.lease) != ERRAND_OK)
        abort();
}

/* Its next sequences are the last ones and the first. */
static void
go_near_the_wrap(uint32_t left)
{
    errand__sandbox *pool = errand__sandbox_of(host.executor);
    errand__sandbox_slot *slot = &pool->slots[0];

    errand__lock_acquire(&pool->lock);
    if (atomic_load_explicit(&slot->phase, memory_order_acquire) == ERRAND__SLOT_IDLE &&
        errand__slot_is_quiet(slot)) {
        slot->sequence = ERRAND__WIRE_SEQUENCES - 1 - left;
        atomic_store_explicit(&slot->response->answer,
                              errand__wire_answer(slot->sequence, ERRAND__WIRE_DONE, 0),
                              memory_order_release);
    }
    errand__lock_release(&pool->lock);
}

static void
step(input *from, errand__wire_response *response, uint32_t sequence)
{
    unsigned char *bytes = (unsigned char *)response;

    switch (take(from, 1) % 8) {
    case 0:
        atomic_store_explicit(&response->answer, take(from, 8), memory_order_seq_cst);
        break;
    case 1: {
        uint32_t status = (uint32_t)take(from, 1);

        atomic_store_explicit(
            &response->answer,
            errand__wire_answer(sequence, status, (uint32_t)take(from, 3)),
            memory_order_seq_cst);
        break;
    }
    case 2: {
        size_t at = take(from, 2) % response_size, length = take(from, 1);

        for (size_t i = 0; i < length && at + i < response_size; i++)
            bytes[at + i] = (unsigned char)take(from, 1);
        break;
    }
    case 3:
        look();
        break;
    case 4:
        atomic_store_explicit(&response->worker_sleeps, (uint32_t)take(from, 1),
                              memory_order_relaxed);
        atomic_store_explicit(&response->worker_cpu, (uint32_t)take(from, 4),
                              memory_order_relaxed);
        break;
    case 7:
        if (errand_cancel(host.runtime, &host.identity, ERRAND_REASON_EXPLICIT, NULL) !=
            ERRAND_OK)
            abort();
        break;
    default:
        atomic_store_explicit(&response->answer,
                              errand__wire_answer(sequence - 1, (uint32_t)take(from, 1),
                                                  (uint32_t)take(from, 4)),
                              memory_order_seq_cst);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input from = {data, data + size};
    errand_spec spec = ERRAND_SPEC_INIT;
    unsigned before = host.ended;

    if (host.runtime == NULL)
        make_host();
    unmap_gone();
    uint64_t first = take(&from, 1);
    host.request = first % 64 * 64;
    if (first >= 192)
        atomic_store_explicit(&strange, take(&from, 8), memory_order_release);
    else if (first >= 128)
        go_near_the_wrap((uint32_t)first % 4);
    spec.kind = 1;
    spec.resource_class = ERRAND_INTERRUPTIBLE_BLOCKING;
    spec.held_job = &type;
    host.states++;
    if (errand_start(host.lease, &spec, NULL, &host.identity) != ERRAND_OK)
        abort();
    while (atomic_load_explicit(&errand__sandbox_of(host.executor)->waiting,
                                memory_order_seq_cst) != 0)
        sched_yield(); /* its worker is being replaced */
    while (from.at < from.end && host.ended == before) {
        errand__wire_response *response =
            atomic_load_explicit(&newest_response, memory_order_acquire);
        const errand__wire_request *request =
            atomic_load_explicit(&newest_request, memory_order_acquire);

        if (response == NULL || request == NULL)
            break;
        if (*from.at % 8 == 6) { /* it is not touched any more then */
            const uint64_t one = 1;

            take(&from, 1);
            atomic_store_explicit(&end, take(&from, 8), memory_order_release);
            if (write(atomic_load_explicit(&newest_fd, memory_order_acquire), &one,
                      sizeof one) != sizeof one)
                abort();
            break;
        }
        step(&from, response, request->sequence);
    }
    look();
    if (host.ended == before && errand_cancel(host.runtime, &host.identity,
                                              ERRAND_REASON_EXPLICIT, NULL) != ERRAND_OK)
        abort();
    while (host.ended == before) {
        if (errand_park(host.runtime, UINT64_MAX) != ERRAND_OK)
            abort();
        look();
    }
    if (host.ended != before + 1 || host.states != 0)
        abort();
    return 0;
}
