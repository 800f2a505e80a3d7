/* SPDX-License-Identifier: MIT */
/* Design notes: the place of one worker.
 *
 * - Its two files are mapped at addresses that stay the slot's for the pool's life.  A new worker
 *   gets new files there; when one is gone, zeroed memory takes their place.  So whoever still
 *   looks at a word of a dead worker reads something harmless.
 * - The request file is sealed against writable mappings after the host has made its own; both
 *   are allocated whole and sealed against shrinking, so that no access can fail.
 * - Everything that decides is kept beside the files: sequences, sizes, addresses. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "workers/sandbox/sandbox.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* Puts another mapping where one is.  Asked of the kernel itself: ThreadSanitizer takes the library's
 * call for a write of all of it, but whoever still looks at a word there may see either. */
static bool
map_over(void *address, size_t size, int flags, int fd)
{
    const long protection = PROT_READ | PROT_WRITE, fixed = flags | MAP_FIXED;

    return syscall(SYS_mmap, address, size, protection, fixed, (long)fd, 0L) != -1;
}

int
errand__sandbox_map_file(const char *name, void *address, size_t size, int seals,
                         int *out_fd)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error;

    if (fd < 0)
        return errno;
    if (fallocate(fd, 0, 0, (off_t)size) != 0 ||
        !map_over(address, size, MAP_SHARED, fd)) {
        error = errno;
        close(fd);
        return error;
    }
    (void)madvise(address, size, MADV_DONTFORK);
    if (fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        error = errno;
        close(fd);
        return error;
    }
    *out_fd = fd;
    return 0;
}

void
errand__sandbox_sign(errand__wire_request *request)
{
    request->magic = ERRAND__WIRE_MAGIC;
    request->version = ERRAND__WIRE_VERSION;
    request->struct_size = sizeof *request;
    errand__text_format(request->library_version, sizeof request->library_version, "%s",
                        errand_version());
}

static void
fill_request(errand__sandbox_slot *slot, size_t setup_size)
{
    const errand__sandbox *pool = slot->pool;
    errand__wire_request *request = slot->request;
    size_t setup = errand__whole_pages(sizeof *request);

    errand__sandbox_sign(request);
    request->request_file_size = slot->mapped_request;
    request->response_file_size = slot->mapped_response;
    request->input_file_size =
        pool->region != NULL ? errand__region_size(pool->region) : 0;
    request->setup_offset = setup;
    request->setup_size = setup_size;
    request->body_offset = setup + errand__whole_pages(setup_size);
    request->body_size = pool->body_size;
    request->return_offset = request->body_offset + pool->body_size;
    request->return_size = pool->reply_size;
    request->response_offset = errand__whole_pages(sizeof *slot->response);
    request->response_size = pool->response_size;
    request->input_offset = request->input_size = 0;
    request->out_max = pool->policy.values.out_bytes; /* the same for all jobs */
    request->group = slot->group.folder >= 0;
    request->group_error = (uint32_t)pool->groups.error;
    slot->body = (unsigned char *)request + request->body_offset;
    slot->reply = (unsigned char *)request + request->return_offset;
    slot->response_bytes = (unsigned char *)slot->response + request->response_offset;
}

/* It may have none: then the worker says whether it goes on without. */
static void
make_group(errand__sandbox_slot *slot, errand__worker_files *out_files)
{
    errand__sandbox *pool = slot->pool;

    out_files->join_fd = -1;
    slot->group.folder = -1;
    if (pool->groups.place >= 0)
        pool->groups.error =
            errand__group_create(&pool->groups, pool->policy.values.memory_bytes,
                                 &slot->group, &out_files->join_fd);
}

int
errand__slot_prepare(errand__sandbox_slot *slot, errand__worker_files *out_files)
{
    errand__sandbox *pool = slot->pool;
    size_t setup = errand__whole_pages(sizeof(errand__wire_request)), setup_size;
    const errand__wire_setup *written;
    int error, ends[2];

    errand__lock_acquire(&pool->lock);
    slot->entry_count = pool->entry_count; /* those do not change any more */
    errand__lock_release(&pool->lock);
    setup_size = errand__setup_size(&pool->policy, pool->entries, slot->entry_count);
    slot->mapped_request =
        setup + errand__whole_pages(setup_size) + pool->body_size + pool->reply_size;
    slot->mapped_response =
        errand__whole_pages(sizeof *slot->response) + pool->response_size;
    if (slot->mapped_request > pool->request_room)
        return E2BIG;
    out_files->response_fd = -1;
    error =
        errand__sandbox_map_file("errand-request", slot->request, slot->mapped_request,
                                 F_SEAL_FUTURE_WRITE, &out_files->request_fd);
    if (error != 0)
        return error;
    error = errand__sandbox_map_file("errand-response", slot->response,
                                     slot->mapped_response, 0, &out_files->response_fd);
    if (error != 0) {
        close(out_files->request_fd);
        return error;
    }
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        error = errno;
        close(out_files->request_fd);
        close(out_files->response_fd);
        return error;
    }
    out_files->lifeline_fd = ends[0];
    slot->lifeline = ends[1];
    make_group(slot, out_files);
    fill_request(slot, setup_size);
    errand__setup_write(&pool->policy, pool->entries, slot->entry_count,
                        (uint32_t)getpid(), (unsigned char *)slot->request + setup);
    written =
        (const errand__wire_setup *)(void *)((unsigned char *)slot->request + setup);
    errand__entries_skip(pool, slot->entry_count,
                         (errand__wire_entry *)(void *)((unsigned char *)slot->request +
                                                        setup + written->entries));
    out_files->path_fds = pool->path_fds;
    out_files->path_count = pool->path_count;
    out_files->template = false;
    out_files->input_fd = pool->region != NULL ? errand__region_fd(pool->region) : -1;
    slot->sequence = slot->previous = slot->call_sequence = 0;
    slot->jobs = slot->layers = slot->landlock_abi = 0;
    slot->intent = slot->kill_intent = ERRAND__INTENT_NONE;
    slot->asked = slot->dirty = slot->gathered.used = 0;
    slot->pid = -1;
    slot->fd = -1;
    slot->ticket = 0;
    slot->died = slot->killed = slot->settled = slot->borrowed = slot->reserve = false;
    return 0;
}

static void
map_nothing(void *address, size_t size)
{
    if (size != 0 &&
        !map_over(address, size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1))
        memset(address, 0,
               size); /* its files stay until the next worker's take their place */
}

void
errand__lifeline_cut(int *lifeline)
{
    if (*lifeline < 0)
        return;
    (void)!write(*lifeline, "", 1);
    close(*lifeline);
    *lifeline = -1;
}

void
errand__slot_cut(errand__sandbox_slot *slot)
{
    errand__lifeline_cut(&slot->lifeline);
}

/* A large response that nobody took. */
static void
forget_gathered(errand__sandbox_slot *slot)
{
    if (slot->gathered.room < ERRAND__KEEP_LEAST)
        return;
    errand__mem_free(NULL, slot->gathered.bytes, slot->gathered.room);
    slot->gathered.bytes = NULL;
    slot->gathered.room = 0;
}

void
errand__slot_clear(errand__sandbox_slot *slot)
{
    errand__slot_cut(slot);
    errand__group_destroy(&slot->pool->groups, &slot->group);
    map_nothing(slot->request, slot->mapped_request);
    map_nothing(slot->response, slot->mapped_response);
    forget_gathered(slot);
}

/* ---- one job ---------------------------------------------------------------------------------- */

bool
errand__slot_take(errand__sandbox_slot *slot)
{
    unsigned busy = ERRAND__SLOT_BUSY;

    return atomic_load_explicit(&slot->phase, memory_order_relaxed) ==
               ERRAND__SLOT_BUSY &&
           atomic_compare_exchange_strong_explicit(
               &slot->phase, &busy, ERRAND__SLOT_HELD,
               memory_order_acq_rel, /* Pairs: slot-phase */
               memory_order_relaxed);
}

void
errand__slot_put_back(errand__sandbox_slot *slot, const errand__sandbox_hand *hand)
{
    errand__sandbox *pool = slot->pool;
    const errand__sandbox_place *place = slot->lease->impl;
    unsigned watched = atomic_load_explicit(&place->watched, memory_order_seq_cst) |
                       atomic_load_explicit(&slot->foreign, memory_order_relaxed);
    const unsigned all = ERRAND__LOOKOUT_ALL;

    atomic_store_explicit(&slot->phase, ERRAND__SLOT_BUSY,
                          memory_order_seq_cst); /* Pairs: slot-phase */
    if (hand->cell != ERRAND__CELL_WATCHER &&
        (watched != 0 ||
         atomic_load_explicit(&pool->lookout, memory_order_seq_cst) == all))
        errand__watcher_wake(pool); /* Pairs: sandbox-bell */
}

bool
errand__slot_is_quiet(const errand__sandbox_slot *slot)
{
    uint64_t answer = atomic_load_explicit(&slot->response->answer, memory_order_relaxed);

    return errand__wire_answer_sequence(answer) == slot->sequence;
}

void
errand__slot_ring(errand__sandbox_slot *slot, uint32_t command)
{
    uint64_t answer = atomic_load_explicit(&slot->response->answer, memory_order_relaxed);

    slot->previous = slot->sequence;
    slot->sequence = errand__wire_sequence_next(slot->sequence);
    atomic_store_explicit(&slot->quiet, (unsigned)(answer >> 32), memory_order_relaxed);
    atomic_store_explicit(&slot->wakes, 0, memory_order_relaxed);
    slot->request->command = command;
    slot->request->sequence = slot->sequence;
    errand__wire_ring(slot->request, slot->response);
}

void
errand__slot_ask(errand__sandbox_slot *slot, const errand__sandbox_hand *hand,
                 const unsigned char *bytes)
{
    errand__sandbox *pool = slot->pool;
    const errand__sandbox_place *place = slot->lease->impl;
    const errand__sandbox_job *job = &place->jobs[slot->record->slot];
    errand__wire_request *request = slot->request;
    const size_t size = job->size;
    uint64_t deadline;

    if (bytes != NULL)
        memcpy(slot->body, bytes, job->size);
    else if (job->size != 0)
        slot->record->job->held_portable->write_request(slot->record->state, slot->body);
    if (slot->asked >
        job->size) /* of the job before; it was left for this one to overwrite */
        memset(slot->body + job->size, 0, slot->asked - job->size);
    slot->asked = job->size;
    slot->gathered.used = 0;
    slot->settled = false;
    slot->began_ns = hand->hands->now_ns;
    slot->began_cycles = hand->hands->cycles;
    request->entry = job->entry;
    request->body_used = job->size;
    if (job->input_size != 0 || slot->borrowed) {
        request->input_offset = job->input_offset;
        request->input_size = job->input_size;
        slot->borrowed = job->input_size != 0;
    }
    atomic_store_explicit(&request->cancelled, 0, memory_order_relaxed);
    atomic_store_explicit(&request->host_cpu,
                          hand->only != NULL && !errand__place_crowded(place)
                              ? errand__cpu_current() + 1
                              : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&slot->asks, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->foreign, hand->only == NULL, memory_order_relaxed);
    deadline = job->deadline_ns;
    if (deadline == 0)
        deadline = pool->policy.values.deadline_ns > UINT64_MAX - slot->began_ns
                       ? UINT64_MAX
                       : slot->began_ns + pool->policy.values.deadline_ns;
    atomic_store_explicit(&slot->deadline_ns, deadline, memory_order_seq_cst);
    slot->call_sequence = errand__wire_sequence_next(slot->sequence);
    errand__slot_ring(slot, ERRAND__WIRE_CALL);
    errand__slot_put_back(slot, hand);
    errand__sandbox_monitor_heed(pool, deadline);
    errand__sandbox_monitor_keep(pool, size, hand->hands->now_ns);
}

void
errand__slot_scrub(errand__sandbox_slot *slot)
{
    memset(slot->response_bytes, 0, slot->dirty);
    slot->dirty = 0;
}

void
errand__slot_release(errand__sandbox_slot *slot, errand__slot_intent intent)
{
    errand__sandbox *pool = slot->pool;
    errand_lease *lease = slot->lease;
    errand__sandbox_place *place = lease->impl;
    errand__sandbox_job *job;
    uint32_t reuse = pool->policy.values.reuse;
    bool closing = atomic_load_explicit(&pool->closing, memory_order_relaxed);

    slot->jobs++;
    if (intent == ERRAND__INTENT_NONE && reuse != 0 && slot->jobs >= reuse)
        intent = ERRAND__INTENT_RECYCLE;
    if (intent == ERRAND__INTENT_NONE && closing)
        intent = ERRAND__INTENT_CLOSE;
    if (intent == ERRAND__INTENT_NONE)
        errand__slot_scrub(slot);
    forget_gathered(slot);
    if (slot->intent == ERRAND__INTENT_NONE)
        slot->intent = intent;
    slot->record = NULL;
    atomic_store_explicit(&slot->deadline_ns, UINT64_MAX, memory_order_relaxed);
    errand__lock_acquire(&pool->lock);
    errand__sandbox_served_locked(pool, errand__cycles() - slot->began_cycles);
    job = &place->jobs[slot->job_slot];
    if (job->slot == slot->index + 1 && job->generation == slot->generation)
        job->slot = 0; /* else its record carries another operation by now */
    slot->lease = NULL;
    atomic_fetch_and_explicit(&place->busy[slot->index / 64],
                              ~(UINT64_C(1) << slot->index % 64),
                              memory_order_release); /* Pairs: place-busy */
    if (intent == ERRAND__INTENT_NONE) {
        errand__list_prepend(&pool->idle, &slot->idle);
        errand__slot_move(slot, ERRAND__SLOT_IDLE);
    } else {
        errand__slot_move(slot, ERRAND__SLOT_DYING);
    }
    errand__lock_release(&pool->lock);
    errand__lease_let(lease);
    if (intent != ERRAND__INTENT_NONE)
        errand__sandbox_monitor_kick(pool);
}
