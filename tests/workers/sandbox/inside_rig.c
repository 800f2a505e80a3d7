/* SPDX-License-Identifier: MIT */
/* inside_rig: see the header.
 *
 * Design notes: every wait is bounded; a worker that ended is seen by waitid with WNOHANG between
 * short waits for its answer, so no pidfd is needed. */
/* The SCMP_A macros leave out what their comparison does not need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#include "inside_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core/core.h"
#include "workers/sandbox/landlock.h"
#include "reach.h"

enum { NOBODY = 65534, PATIENCE_S = 20, TICK_MS = 2 };
#define TICK_NS (UINT64_C(1000000) * TICK_MS)

errand_sandbox_policy
inside_policy(uint32_t promises)
{
    static errand_entry hostile_entry = {.symbol = "probe"};

    hostile_entry.library = test_reachable(ERRAND_TEST_HOSTILE);
    return (errand_sandbox_policy){.struct_size = sizeof(errand_sandbox_policy),
                                   .promises = promises,
                                   .entries = &hostile_entry,
                                   .entry_count = 1};
}

static int
file_create(const char *name, size_t size)
{
    int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, (off_t)size), 0);
    assert_int_equal(posix_fallocate(file, 0, (off_t)size), 0);
    return file;
}

static void *
file_map(int file, size_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_ptr_not_equal(bytes, MAP_FAILED);
    return bytes;
}

static size_t
pages(size_t size)
{
    return (size + ERRAND__WIRE_PAGE - 1) & ~(size_t)(ERRAND__WIRE_PAGE - 1);
}

/* The request file's layout and everything that is written before the start. */
static int
write_request(inside *self, const inside_start_how *how, const errand__policy *policy)
{
    const errand_entry *entries = how->entries ? how->entries : policy->values.entries;
    size_t count = how->entries ? how->entry_count : policy->values.entry_count;
    size_t setup_size = errand__setup_size(policy, entries, count);
    size_t body = pages(how->body_bytes != 0 ? how->body_bytes : 64 * 1024);
    size_t at_setup = pages(sizeof *self->request),
           at_body = at_setup + pages(setup_size);
    size_t at_return = at_body + body;
    self->request_size = at_return + ERRAND__WIRE_PAGE;
    int file = file_create("request", self->request_size);
    self->request = file_map(file, self->request_size);
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    seals |= how->unsealed ? 0 : 0x0010; /* F_SEAL_FUTURE_WRITE */
    assert_int_equal(fcntl(file, F_ADD_SEALS, seals), 0);
    errand__wire_request *request = self->request;
    request->magic = ERRAND__WIRE_MAGIC;
    request->version = ERRAND__WIRE_VERSION + how->other_version;
    request->struct_size = sizeof *request;
    snprintf(request->library_version, sizeof request->library_version, "%s",
             errand_version());
    request->request_file_size = self->request_size;
    request->response_file_size = self->response_size;
    request->input_file_size = self->input_size;
    request->setup_offset = at_setup;
    request->setup_size = setup_size;
    request->body_offset = at_body;
    request->body_size = body;
    request->return_offset = at_return;
    request->return_size = ERRAND__WIRE_PAGE;
    request->response_offset = pages(sizeof *self->response);
    request->response_size = self->response_size - request->response_offset;
    errand__setup_write(policy, entries, count, (uint32_t)getpid() + how->other_parent,
                        (unsigned char *)request + at_setup);
    return file;
}

/* Answers -1 where none is wanted. */
static int
make_input(inside *self, const inside_start_how *how)
{
    if (how->input_bytes == 0)
        return -1;
    self->input_size = pages(how->input_bytes);
    int file = file_create("input", self->input_size);
    self->input = file_map(file, self->input_size);
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    seals |= how->input_unsealed ? 0 : 0x0010; /* F_SEAL_FUTURE_WRITE */
    assert_int_equal(fcntl(file, F_ADD_SEALS, seals), 0);
    return file;
}

/* In the child: descriptors 0 .. 5 + paths, and nothing else is promised. */
static void
become_worker(const inside_start_how *how, int request, int response, int lifeline,
              const int *paths, size_t path_count, int input)
{
    int from[7 + ERRAND__WIRE_PATHS];
    from[0] = from[1] = from[2] = fcntl(open("/dev/null", O_RDWR), F_DUPFD, 200);
    from[3] = fcntl(request, F_DUPFD, 200);
    from[4] = fcntl(response, F_DUPFD, 200);
    from[5] = fcntl(lifeline, F_DUPFD, 200);
    for (size_t i = 0; i < path_count; i++)
        from[6 + i] = fcntl(paths[i], F_DUPFD, 200);
    size_t count = 6 + path_count;
    if (input >= 0)
        from[count++] = fcntl(input, F_DUPFD, 200);
    for (size_t i = 0; i < count; i++) {
        if (dup2(from[i], (int)i) < 0)
            _exit(98);
    }
    if (how->prepare != NULL)
        how->prepare(how->prepare_arg);
    const char *words[16] = {NULL};
    size_t used = 0;
    for (; how->before != NULL && how->before[used] != NULL; used++)
        words[used] = how->before[used];
    words[used++] = test_reachable(ERRAND_TEST_WORKER);
    words[used++] = ERRAND__WIRE_ARGUMENT;
    char *const none[] = {NULL};
    execve(words[0], (char *const *)(void *)words, none);
    _exit(99);
}

void
inside_start(inside *self, const inside_start_how *how)
{
    errand__policy policy;
    errand_sandbox_policy usual = inside_policy(ERRAND_PROMISE_PURE);
    char text[256] = "";
    errand_status status = errand__policy_create(how->policy ? how->policy : &usual,
                                                 &policy, text, sizeof text);
    if (status != ERRAND_OK)
        fail_msg("policy: %s", text);
    memset(self, 0, sizeof *self);
    self->wait_status = -1;
    errand__wire_waiter_init(&self->waiter, errand__cpus_allowed());
    self->response_size =
        pages(sizeof *self->response) +
        pages(how->response_bytes != 0 ? how->response_bytes : 64 * 1024);
    int response = file_create("response", self->response_size);
    assert_int_equal(
        fcntl(response, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    self->response = file_map(response, self->response_size);
    int input = make_input(self, how);
    int request = write_request(self, how, &policy);
    int paths[ERRAND__WIRE_PATHS];
    if (errand__policy_open_paths(&policy, paths, text, sizeof text) != ERRAND_OK)
        fail_msg("paths: %s", text);
    int lifeline[2];
    assert_int_equal(pipe2(lifeline, O_CLOEXEC), 0);
    self->lifeline = lifeline[1];
    fflush(NULL);
    self->pid = fork();
    assert_true(self->pid >= 0);
    if (self->pid == 0)
        become_worker(how, request, response, lifeline[0], paths,
                      policy.values.path_count, input);
    if (input >= 0)
        close(input);
    for (size_t i = 0; i < policy.values.path_count; i++)
        close(paths[i]);
    close(request);
    close(response);
    close(lifeline[0]);
    errand__policy_destroy(&policy);
}

/* Has it ended?  Reaps it then. */
static bool
ended(inside *self)
{
    if (self->wait_status == -1) {
        int status;
        if (waitpid(self->pid, &status, WNOHANG) == self->pid)
            self->wait_status = status;
    }
    return self->wait_status != -1;
}

static uint64_t
deadline(const inside *self)
{
    unsigned patience = self->patience_s == 0 ? PATIENCE_S : self->patience_s;
    return errand__clock_now() + patience * UINT64_C(1000000000);
}

uint32_t
inside_ready(inside *self)
{
    for (uint64_t end = deadline(self); errand__clock_now() < end;) {
        bool gone = ended(self);
        uint32_t ready =
            atomic_load_explicit(&self->response->ready, memory_order_acquire);
        if (ready != 0 || gone)
            return ready;
        errand__wire_sleep(&self->response->ready, 0, TICK_NS);
    }
    fail_msg("the worker is neither ready nor gone");
    return 0;
}

void
inside_start_ready(inside *self, const inside_start_how *how)
{
    inside_start(self, how);
    uint32_t ready = inside_ready(self);
    if (ready != 1)
        fail_msg("not ready: %u (%s), status 0x%x", ready, self->response->setup_text,
                 (unsigned)self->wait_status);
}

void
inside_command(inside *self, uint32_t command)
{
    self->sequence = errand__wire_sequence_next(self->sequence);
    self->request->command = command;
    self->request->sequence = self->sequence;
    errand__wire_ring(self->request, self->response);
}

void
inside_ask(inside *self, uint32_t entry, const void *bytes, size_t size)
{
    errand__wire_request *request = self->request;
    assert_true(size <= request->body_size);
    if (size != 0)
        memcpy((unsigned char *)request + request->body_offset, bytes, size);
    request->entry = entry;
    request->body_used = size;
    if (request->out_max == 0)
        request->out_max = UINT64_C(1) << 30;
    inside_command(self, ERRAND__WIRE_CALL);
}

uint32_t
inside_answer(inside *self, uint32_t *out_length)
{
    for (uint64_t end = deadline(self); errand__clock_now() < end;) {
        bool gone = ended(self);
        uint64_t now = errand__wire_await_answer(
            &self->waiter, self->request, self->response, self->seen, gone ? 0 : TICK_NS);
        self->seen = now;
        if (errand__wire_answer_sequence(now) == self->sequence && self->sequence != 0) {
            if (out_length != NULL)
                *out_length = errand__wire_answer_length(now);
            return errand__wire_answer_status(now);
        }
        if (gone)
            return 0;
    }
    fail_msg("the worker neither answers nor ends");
    return 0;
}

const unsigned char *
inside_bytes(const inside *self)
{
    return (const unsigned char *)self->response + self->request->response_offset;
}

int
inside_wait(inside *self)
{
    for (uint64_t end = deadline(self); !ended(self);) {
        if (errand__clock_now() > end)
            fail_msg("the worker does not end");
        struct timespec tick = {.tv_nsec = 1000000};
        nanosleep(&tick, NULL);
    }
    return self->wait_status;
}

void
inside_end(inside *self)
{
    if (!ended(self)) {
        kill(self->pid, SIGKILL);
        inside_wait(self);
    }
    munmap(self->request, self->request_size);
    munmap(self->response, self->response_size);
    close(self->lifeline);
    if (self->input != NULL)
        munmap(self->input, self->input_size);
    memset(self, 0, sizeof *self);
}

void
inside_become_nobody(void *unused)
{
    (void)unused;
    if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) != 0)
        _exit(97);
}

void
inside_need_root(void)
{
    if (geteuid() != 0)
        test_skip("needs root");
}

/* In a child: can nobody run the program at all? */
void
inside_need_nobody(void)
{
    inside_need_root();
    const char *worker = test_reachable(ERRAND_TEST_WORKER);
    const char *object = test_reachable(ERRAND_TEST_HOSTILE);
    pid_t child = fork();
    if (child == 0) {
        inside_become_nobody(NULL);
        bool can = access(worker, X_OK) == 0 && access(object, R_OK) == 0;
        _exit(can ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        test_skip("the build folder cannot be read by other users");
}

void
inside_refuse_call(void *refusal)
{
    const inside_refusal *what = refusal;
    scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);
    struct scmp_arg_cmp argument = {
        .arg = what->argument, .op = SCMP_CMP_EQ, .datum_a = what->equals};
    int added = seccomp_rule_add_array(context, SCMP_ACT_ERRNO((uint32_t)what->error),
                                       seccomp_syscall_resolve_name(what->call),
                                       what->equals != 0, &argument);
    /* Where root does it without, the worker must set it by itself. */
    seccomp_attr_set(context, SCMP_FLTATR_CTL_NNP, geteuid() != 0);
    if (added != 0 || seccomp_load(context) != 0)
        _exit(96);
    seccomp_release(context);
}

int
inside_landlock_abi(void)
{
    int abi = errand__landlock_abi();
    return abi < 0 ? 0 : abi > ERRAND__LANDLOCK_ABI_MAX ? ERRAND__LANDLOCK_ABI_MAX : abi;
}

void
inside_need_layer(uint32_t layer)
{
    inside worker;
    errand_sandbox_policy policy = inside_policy(ERRAND_PROMISE_PURE);
    policy.want_layers = ERRAND_LAYER_NO_NEW_PRIVS | ERRAND_LAYER_SECCOMP |
                         ERRAND_LAYER_RLIMITS | ERRAND_LAYER_UID_DROP | layer;
    inside_start(&worker, &(inside_start_how){.policy = &policy});
    bool there = inside_ready(&worker) == 1 && (worker.response->layers & layer) == layer;
    inside_end(&worker);
    if (!there)
        test_skip("this machine does not offer that layer");
}
