/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_H
#define ERRAND_SANDBOX_H
/* sandbox: an executor whose workers are locked-down processes.  Conventions: errand.h.
 *
 * A thread contains mistakes, a process contains faults, and only a process contains malice.
 * A sandbox takes portable jobs alone: those that can be written down as bytes
 * (errand_spec_call of errand/ffi.h, errand_spec_plugin below, or a job type with a
 * held_portable of the host's own).  Each worker is a process that was started, locked down and
 * kept waiting before; a job is a message in memory that both share.  Nothing that a worker
 * writes is believed: it is copied once, then checked. */
#include "errand/executor.h"
#include "errand/ffi.h"
#include "errand/portable.h"
ERRAND_BEGIN

/* What a policy permits beyond computing: pledge-like promises, or-ed. */
enum {
    ERRAND_PROMISE_PURE = 0,     /* memory, clocks, its own descriptors; always there */
    ERRAND_PROMISE_RPATH = 1,    /* read below the paths of the policy */
    ERRAND_PROMISE_WPATH = 2,    /* write, create, remove below those with a right to */
    ERRAND_PROMISE_INET = 4,     /* TCP to tcp_ports, UDP to nobody */
    ERRAND_PROMISE_THREAD = 8,   /* threads of its own; no processes */
    ERRAND_PROMISE_CALLBACK = 16 /* closures: a page that is written and executed */
};
/* Layers of confinement: what was achieved stands in each completion. */
enum {
    ERRAND_LAYER_NO_NEW_PRIVS = 1,
    ERRAND_LAYER_SECCOMP = 2,
    ERRAND_LAYER_LANDLOCK = 4,
    ERRAND_LAYER_RLIMITS = 8,
    ERRAND_LAYER_UID_DROP = 16,
    ERRAND_LAYER_USER_NS = 32,
    ERRAND_LAYER_NET_NS = 64,
    ERRAND_LAYER_IPC_NS = 128,
    /* 256 is not used. */
    ERRAND_LAYER_CGROUP = 512 /* a control group of its own, with memory_bytes */
};
/* errand_promises_parse, errand_layers_parse: the same as words, in small letters, with blanks, commas
 *   or bars between: "rpath inet", "seccomp|net_ns"; "pure" and "" are PURE.
 * out_text: of size bytes, may be NULL with size 0; written on errors alone.
 * Thread: [any].   Errors: EINVAL (a word that is none: out_text says which, and which there are;
 *   the bits are untouched). */
ERRAND_API ERRAND_MUST_USE errand_status errand_promises_parse(
    const char *text, uint32_t *out_promises, char *out_text, size_t size);
ERRAND_API ERRAND_MUST_USE errand_status
errand_layers_parse(const char *text, uint32_t *out_layers, char *out_text, size_t size);

typedef enum errand_on_deny {
    ERRAND_DENY_KILL = 0, /* the kernel ends the worker at the call */
    ERRAND_DENY_REPORT =
        1 /* debugging: the call is named in the completion, then it ends; and those that
             get an error are listed in the outcome */
} errand_on_deny;

enum { ERRAND_PATH_READ = 1, ERRAND_PATH_WRITE = 2, ERRAND_PATH_EXECUTE = 4 };
typedef struct errand_sandbox_path {
    const char *path;
    uint32_t rights;
} errand_sandbox_path;

typedef struct errand_sandbox_policy {
    uint32_t struct_size;
    uint32_t promises;
    uint32_t want_layers;    /* tried; 0 = all but the namespaces and the cgroup */
    uint32_t require_layers; /* without one of these no worker starts; 0 = NO_NEW_PRIVS,
                                SECCOMP and RLIMITS */
    const errand_sandbox_path *paths;
    size_t path_count;
    const uint16_t *tcp_ports;
    size_t port_count;
    const errand_entry
        *entries; /* known from the start; others are added when first used */
    size_t entry_count;
    bool entries_fixed;    /* others are refused (EUNSUPPORTED) instead */
    uint64_t memory_bytes; /* address space, rings apart; 0 = 512 MiB */
    uint64_t stack_bytes;  /* 0 = 8 MiB */
    uint64_t in_bytes;     /* of one request; 0 = 1 MiB; at most 1 GiB */
    uint64_t
        shared_in_bytes;  /* of all buffers of errand_sandbox_buffer together, in whole
                                 pages; 0 = none; at most 64 GiB */
    uint64_t out_bytes;   /* of one result; 0 = 16 MiB; at most 1 GiB */
    uint64_t file_bytes;  /* of a file that it writes; 0 = none with PURE, else 1 GiB */
    uint32_t descriptors; /* 0 = 64 */
    uint32_t cpu_seconds; /* of one worker, between two recycles; 0 = no limit */
    /* Of jobs that bring none; 0 = 25 s.  In a seeded order it is told first if it is below the
     * runtime's watchdog_ns (60 s) by more than a worker needs to start, as 25 s is. */
    uint64_t deadline_ns;
    uint64_t grace_ns; /* between a cancel and the kill; 0 = at once */
    uint32_t reuse;    /* jobs per worker: 0 = no limit, 1 = a fresh one for each */
    errand_on_deny on_deny;
    uint64_t tenant; /* a name for the report; a sandbox serves one tenant */
} errand_sandbox_policy;

enum {                                /* flags of a sandbox */
       ERRAND_SANDBOX_NO_TEMPLATE = 1 /* each worker is a program of its own: see below */
};
typedef struct errand_sandbox_config {
    uint32_t struct_size;
    uint32_t workers_min;                /* kept ready; 0 = 1 */
    uint32_t workers_max;                /* 0 = processors; at most 256 */
    uint32_t flags;                      /* ERRAND_SANDBOX_..., or-ed */
    const errand_sandbox_policy *policy; /* copied; NULL = PURE with all defaults */
    const char *worker_path; /* of errand-worker; NULL: see errand_sandbox_create */
    uint32_t
        crash_limit; /* crashes within crash_window_ns that open the breaker; 0 = 8 */
    uint64_t crash_window_ns; /* 0 = 1 s */
    uint64_t breaker_ns;      /* how long it stays open; 0 = 1 s */
} errand_sandbox_config;
#ifndef ERRAND_BUILDING
/* Where this header lay when a program with the static library was compiled: the library finds by it the
 * worker that was installed with it.  Not to be set or read by hosts. */
extern const char errand_sandbox_header[] __attribute__((weak));
const char errand_sandbox_header[] = __FILE__;
#endif
/* errand_sandbox_create: a pool of worker processes.  Starts workers_min of them and waits
 * for the first.  Attach it like any executor; what it takes:
 *   Jobs: portable ones (held_portable), blocking, in the main lane; others answer
 *     EUNSUPPORTED at submit, a request above in_bytes EINVAL.
 *   Queue: leases in turn; within a lease high before normal before low, but for every 16th.
 *     A request that finds no free worker is written down at once, into memory of its own.
 *   Deadline: the spec's deadline_ns, counted from submit; else the policy's, from the moment
 *     the worker is asked.  FAILED with DEADLINE at once; the worker is killed.  In seeded
 *     orders the spec's is virtual, and the policy's still ends a job that never would.
 *   Cancel: queued, as everywhere.  Running: the worker is asked, and killed after grace_ns:
 *     FAILED with CANCELLED.  What it answers before counts as its result.
 *   Breaker: crash_limit crashes, or failed starts, within crash_window_ns stop all starts for
 *     breaker_ns.  What is queued while no worker lives that could run it, and none can be
 *     started, fails with SPAWN; nothing waits for ever.
 *   Libraries: a worker opens those of all entries when it starts.  One that ended two starts
 *     in a row, or held each up for 10 s, is left out from then on: its jobs FAILED with JOB,
 *     the text says so; those of others only wait longer.
 *   Template: once a worker had to be replaced, a process stands by that has loaded the program and
 *     nothing else; later workers are forked from it, which takes about two thirds of the time, and confine
 *     themselves as started ones do, by the policy as it was at first.  They have the address layout
 *     and the guard of saved pointers in common with each other (on x86-64 not that of stacks): who learns
 *     one worker's addresses knows those of the next.  Where it fails, hangs (0.5 s) or may not be had,
 *     workers are started without.  NO_TEMPLATE: never.
 *   Reserve: while there is a template, one worker more than there are to be is kept ready and given no job
 *     (not with 256).  It takes the place of the next that ends, at once; then another is started.  So only
 *     one that ends right after another has to be waited for.  NO_TEMPLATE: none.
 *   Workers above workers_min, once started, stay until they are recycled.
 *   The program: worker_path; if NULL, libexec/errand-worker in the folder of the file that holds
 *     this code (the library, or the program that it was linked into) and in the four above it; then, with
 *     the static library, that of the installation whose header was compiled (errand_sandbox_header); then
 *     where it was to be installed.  Links are followed once.  Of the found ones one is taken only where nobody
 *     but root, this user and that first folder's owner can put something else at its name or at that of
 *     a folder above; else out_text names it.  Never by PATH, argv[0] or the current folder.  errand.pc
 *     has errand_workerdir, the CMake package ERRAND_WORKER_PATH, for hosts that want to say it.
 * Thread: [any].   Errors: ENOMEM · EINVAL (the policy: out_text says which field and why) ·
 *   EUNSUPPORTED (a required layer is not to be had here: out_text names it) · ESYSTEM (the
 *   worker program cannot be started: out_text says which file, or where it was looked for) · ENOTHREAD.
 * out_text: of size bytes, may be NULL with size 0; written on errors alone. */
ERRAND_API ERRAND_MUST_USE errand_status errand_sandbox_create(
    const errand_sandbox_config *config, errand_executor **out_executor, char *out_text,
    size_t size);

/* errand_sandbox_check: would create refuse this config for what it says?  Starts nothing, opens no path
 * and looks for no program: what the machine lacks is found by create alone.
 * Thread: [any].   Errors: EINVAL (out_text, as of create, says which field and why). */
ERRAND_API ERRAND_MUST_USE errand_status
errand_sandbox_check(const errand_sandbox_config *config, char *out_text, size_t size);

/* errand_sandbox_buffer: a buffer whose bytes this sandbox's workers read where they lie, uncopied,
 * as bytes of a call (errand_ffi_buffer_value) or input of errand_spec_plugin_buffer; as out bytes
 * or inout bytes it is copied like any other, on a pool of threads it is like any other.  No worker
 * can write it.  Every worker can read every one of them at any time: what is in there is the
 * tenant's.  It lives on when the sandbox is gone; what it took of shared_in_bytes is free again
 * when it was abandoned and its last call drained.  A child of fork has not got its memory.
 * Thread: [any].   Errors: ENOMEM (also: there is no such gap in shared_in_bytes) · EINVAL (size
 *   0, or no sandbox) · EUNSUPPORTED (shared_in_bytes is 0) · EFORKED. */
ERRAND_API ERRAND_MUST_USE errand_status errand_sandbox_buffer(
    errand_executor *executor, size_t size, errand_ffi_buffer **out_buffer);

/* What a completion of a sandboxed job can tell beside its code.
 * FAILED: JOB (the job's own; errno with ENOMEM) · DEADLINE · CANCELLED · SPAWN (no worker could
 *   be started) · MEMORY (this process had none for its request or result) · OUTPUT (of
 *   errand_spec_call: the result would be larger than out_bytes; the worker goes on).
 * CRASHED: EXITED (job_code: status) · POLICY (system call's number and name) · CRASHED
 *   (signal, address) · CPU · OUTPUT (a larger result or file was written) · MEMORY · KILLED ·
 *   PROTOCOL · WORKER_LOST (it ended, and somebody else took its status). */
enum { ERRAND_SANDBOX_REFUSALS = 8 };
typedef struct errand_sandbox_refusal {
    uint16_t call,
        error; /* the system call's number, the errno that it was answered with */
} errand_sandbox_refusal;
typedef struct errand_sandbox_outcome {
    uint32_t struct_size;
    uint32_t layers;       /* achieved by the worker that ran it; 0 = none did */
    uint32_t landlock_abi; /* 0 = none */
    int32_t pid;           /* of that worker; -1 = none */
    int32_t wait_status;   /* raw, of a worker that ended; else -1 */
    int32_t
        denied_call; /* number, with POLICY; else -1; the name is completion->system_call */
    uint64_t address; /* with CRASHED, where it is known */
    bool
        memory_hint; /* MEMORY; or it crashed or exited with its memory nearly used up, or
                         after it was refused some: then it is the worker's own word */
    bool retry_hint; /* the same may work when tried again; the library never does */
    uint64_t user_ns, system_ns,
        peak_bytes; /* of a worker that ended; else 0.  The peak is
                                                0 also where it was below the host's own */
    /* With ERRAND_DENY_REPORT: calls that the policy answered with an error, each once, the first
     * REFUSALS of them in their order; the first job of a worker is told of its libraries', too.
     * The worker's own word.  What landlock refuses is not among them. */
    uint32_t refused_count;
    errand_sandbox_refusal refused[ERRAND_SANDBOX_REFUSALS];
} errand_sandbox_outcome;
/* errand_sandbox_outcome_read: of the completion in hand; it is kept until the runtime submits
 * another operation in the same place, so a task should read it right after its wait.
 * Thread: [owner], inside handler, decoder or task.   Errors: EINVAL (it did not run in a
 *   sandbox, or it was kept no longer). */
ERRAND_API ERRAND_MUST_USE errand_status errand_sandbox_outcome_read(
    const errand_completion *completion, errand_sandbox_outcome *out_outcome);

/* errand_sandbox_call_name: "openat", or "call 999", into out, of size bytes.
 * Thread: [any]. */
ERRAND_API void errand_sandbox_call_name(int32_t call, char *out, size_t size);

/* The pool's own figures. */
typedef struct errand_sandbox_snapshot {
    uint32_t struct_size;
    uint32_t ready, busy, starting, dying; /* workers now */
    uint64_t started, recycled, crashed, killed, refused_starts, protocol_breaches;
    uint32_t layers, landlock_abi; /* of the newest ready worker */
    uint32_t degraded;             /* wanted layers that are missing */
    bool breaker_open;
    char text[256];  /* why: of the last start that failed, or of degraded */
    uint64_t forked; /* of started: by the template */
    uint32_t
        reserve; /* 1: a worker stands by to take the place of the next one that ends */
} errand_sandbox_snapshot;
/* Thread: [any].   Errors: EINVAL (NULL, struct_size, or no sandbox) · EFORKED. */
ERRAND_API ERRAND_MUST_USE errand_status errand_sandbox_snapshot_read(
    errand_executor *executor, errand_sandbox_snapshot *out_snapshot);

/* ---- plug-ins ------------------------------------------------------------------------- */
enum { ERRAND_KIND_PLUGIN = 0x0E000021 }; /* of errand_spec_plugin */
/* errand_spec_plugin: call a plug-in's function with bytes, which are copied; the result is an
 * errand_plugin_bytes.  On a pool of threads the object is opened in this process.  A sandbox
 * takes, here and of errand_spec_call, a name without a folder, as for dlopen, or a path that
 * begins with /: submit answers EINVAL to another one.
 * Thread: [any].   Errors: ENOMEM · EINVAL. */
typedef struct errand_plugin_bytes {
    const unsigned char *bytes;
    size_t size;
} errand_plugin_bytes;
ERRAND_API extern const errand_payload_type errand_plugin_bytes_type;
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_plugin(
    errand_spec *out_spec, const char *library, const char *symbol, const void *bytes,
    size_t size);
/* errand_spec_plugin_buffer: the same with a buffer's bytes, which is pinned (see errand/ffi.h):
 * uncopied on a pool of threads, and in the sandbox that it is of; copied where
 * it is of errand_ffi_buffer_create.
 * Thread: [any].   Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_plugin_buffer(
    errand_spec *out_spec, const char *library, const char *symbol,
    errand_ffi_buffer *buffer);

ERRAND_END
#endif
