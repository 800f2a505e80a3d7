/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_WIRE_H
#define ERRAND_SANDBOX_WIRE_H
/* wire: what host and worker process share: two memory files and the meaning of each word.
 *
 * request file: the host writes; the worker can only map it for reading (sealed FUTURE_WRITE,
 *   GROW, SHRINK): header, set-up, request bytes.  The host never reads it back.
 * response file: both write; nothing in it is believed.  Header, then the response bytes.
 *   Sealed GROW and SHRINK and allocated whole, so that no access can fail.
 *
 * The worker is started as  errand-worker serve  with an empty environment.  Descriptors: 0-2
 * /dev/null, 3 request file, 4 response file, 5 the lifeline (a pipe's reading end: the kernel
 * ends the worker when something is written or nobody holds the other end; the worker can
 * neither close nor change it), 6.. the policy's paths (O_PATH, in their order), and behind
 * them, where input_file_size is not 0, the input file: one for all workers of the pool, which
 * they only read (sealed as the request file is); behind that, where group is 1, the file by
 * which it joins its control group.
 *
 * Or it is started as  errand-worker template : then 3 is a request file whose set-up names no
 * entries and counts for all workers that are forked from it, 4 a socket on which it is asked for
 * them (errand__wire_ask), 5 a lifeline of its own; the rest is the same.
 *
 * One conversation: the host writes command, sequence and what belongs to it, and rings; the
 * worker writes bytes and answers with that sequence.  Each ring has a sequence of its own, so
 * that two pieces of one result differ.  CALL is answered by DONE or ERROR, or by MORE or
 * CALLBACK first; MORE is answered by GO_ON, CALLBACK by RETURN, and those by the next answer. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ERRAND__WIRE_MAGIC    UINT64_C(0x6572726e64776972)
#define ERRAND__WIRE_ARGUMENT "serve"
#define ERRAND__WIRE_TEMPLATE "template"
enum {
    ERRAND__WIRE_VERSION = 3,
    ERRAND__WIRE_PAGE = 4096,
    ERRAND__WIRE_ENTRIES = 1024,
    ERRAND__WIRE_PATHS = 64,
    ERRAND__WIRE_PORTS = 256,
    ERRAND__WIRE_TEXT = 256,
    ERRAND__WIRE_REFUSED = 8, /* calls that one job is told of */
    ERRAND__WIRE_TRAP_MASK =
        0xffff, /* a trap's data: the mask of signals; else an error + 1; 0 = none */
    ERRAND__WIRE_TGIDS = 8,          /* places in a filter that want the process id */
    ERRAND__WIRE_SEQUENCES = 1 << 24 /* a sequence is 1 .. this - 1 */
};
enum { /* descriptors of the worker */
       ERRAND__WIRE_REQUEST_FD = 3,
       ERRAND__WIRE_RESPONSE_FD = 4,
       ERRAND__WIRE_LIFELINE_FD = 5,
       ERRAND__WIRE_PATH_FD = 6
};

/* ---- request file, at its start ---------------------------------------------------------- */
typedef struct errand__wire_request {
    /* Written before the start, never again. */
    uint64_t magic;
    uint32_t version, struct_size;
    char library_version[16];
    uint64_t request_file_size, response_file_size;
    uint64_t input_file_size; /* 0 = there is none */
    uint32_t group; /* 1 = it has a group to join; 0 = none, and group_error why */
    uint32_t group_error;
    uint64_t setup_offset, setup_size;   /* errand__wire_setup and what it points to */
    uint64_t body_offset, body_size;     /* where requests are written */
    uint64_t return_offset, return_size; /* where answers of callbacks are written */
    uint64_t response_offset,
        response_size; /* in the response file: where bytes come back */
    /* doorbell: the futex word on which the worker waits; grows by one for each command.
     * Writers: the host.  Readers: the worker.  Order: seq_cst, acquire.
     * Pairs: wire-doorbell, wire-worker-sleeps.  Why: the fields of the command are read after
     *   it; and host and worker each store one word, then look at the other's (store, load). */
    _Alignas(64) _Atomic uint32_t doorbell;
    /* host_sleeps: 1 while the host sleeps on the answer, so that the worker wakes it.
     * Writers: the host.  Readers: the worker.  Order: seq_cst.
     * Pairs: wire-host-sleeps.  Why: as with doorbell; a lost wake would cost a whole bound. */
    _Atomic uint32_t host_sleeps;
    /* host_cpu: processor of the host's waiting thread + 1; 0 = unknown.
     * Writers: the host.  Readers: the worker.  Order: relaxed.
     * Pairs: none.  Why: a hint; the worker spins only where it differs from its own. */
    _Atomic uint32_t host_cpu;
    /* cancelled: sequence of the CALL that is asked to end early (grace); 0 = none.
     * Writers: the host.  Readers: the worker.  Order: relaxed.
     * Pairs: none.  Why: a flag that is looked at now and then; it publishes nothing. */
    _Atomic uint32_t cancelled;
    /* The command; stable until it is answered. */
    uint32_t command;     /* ERRAND__WIRE_CALL ... */
    uint32_t sequence;    /* of this command: 24 bits, never 0 */
    uint32_t entry;       /* CALL: index into the set-up's entries */
    uint64_t body_used;   /* CALL: bytes of the request, from body_offset */
    uint64_t return_used; /* RETURN: bytes of the answer, from return_offset */
    uint64_t input_offset,
        input_size; /* CALL: borrowed bytes of the input file; size 0 = none */
    /* CALL: bytes that all pieces together may have.  Alone on a line that both sides keep, as it is
     * written once. */
    _Alignas(64) uint64_t out_max;
} errand__wire_request;
enum { /* command */
       ERRAND__WIRE_CALL = 1,
       ERRAND__WIRE_GO_ON = 2,  /* the piece was taken */
       ERRAND__WIRE_RETURN = 3, /* of a callback */
       ERRAND__WIRE_EXIT = 4    /* end with exit code 0; not answered */
};

/* ---- response file, at its start ---------------------------------------------------------- */
typedef struct errand__wire_response {
    /* answer: {sequence:24 | status:8 | length:32} in one word, so that it cannot be torn.
     * Writers: the worker, which is trusted with nothing.  Readers: the host, once per look.
     * Order: seq_cst (x86: release, and a locked operation), acquire.  Pairs: wire-answer,
     *   wire-host-sleeps.
     * Why: the bytes are copied after it; and it is one half of a store-load pair. */
    _Alignas(64) _Atomic uint64_t answer;
    /* worker_sleeps: 1 while the worker sleeps on the doorbell, so that a ring wakes it.
     * Writers: the worker.  Readers: the host.  Order: seq_cst.
     * Pairs: wire-worker-sleeps.  Why: as with host_sleeps.  A lie hurts the liar alone. */
    _Atomic uint32_t worker_sleeps;
    /* worker_cpu: processor of the worker + 1; 0 = unknown.
     * Writers: the worker.  Readers: the host.  Order: relaxed.
     * Pairs: none.  Why: a hint, as host_cpu. */
    _Atomic uint32_t worker_cpu;
    /* ready: 0 = not yet, 1 = ready, else ERRAND__SETUP_...: why it is about to exit with that
     * code.  A futex word: woken when it is stored.
     * Writers: the worker, once.  Readers: the host.  Order: release, acquire.
     * Pairs: wire-ready.  Why: the fields below are written before it. */
    _Alignas(64) _Atomic uint32_t ready;
    uint32_t setup_errno;
    uint32_t layers, landlock_abi; /* achieved */
    /* loading: number + 1 of the entry whose library is being opened; 0 = none.
     * Writers: the worker.  Readers: the host, when it has died.  Order: relaxed.
     * Pairs: none.  Why: its death is seen after it; who lies accuses its own tenant. */
    _Atomic uint32_t loading;
    char setup_text[ERRAND__WIRE_TEXT]; /* why not ready; ends with 0, maybe not */
    char entry_text[ERRAND__WIRE_TEXT]; /* about the first entry that is not fine */
    uint8_t entry_state[ERRAND__WIRE_ENTRIES]; /* ERRAND__ENTRY_... */
    /* denied_call: number + 1 of the system call that was denied (ERRAND_DENY_REPORT).
     * Writers: the worker.  Readers: the host, when it has died.  Order: relaxed.
     * Pairs: none.  Why: its death is seen after it; a hint, no evidence. */
    _Alignas(64) _Atomic uint32_t denied_call;
    /* refused: calls that were answered with an error, in the order of their first time: number + 1,
     * and the error in the upper half (ERRAND_DENY_REPORT); 0 = no more.
     * Writers: the worker.  Readers: the host.  Order: relaxed.
     * Pairs: none.  Why: an answer or the death comes after it; a hint, no evidence. */
    _Atomic uint32_t refused[ERRAND__WIRE_REFUSED];
    /* fault_signal: the signal of which the worker is about to die; 0 = unknown.
     * Writers: the worker.  Readers: the host, when it has died.  Order: relaxed.
     * Pairs: none.  Why: as denied_call. */
    _Atomic uint32_t fault_signal;
    /* fault_address: the address of that fault.
     * Writers: the worker.  Readers: the host, when it has died.  Order: relaxed.
     * Pairs: none.  Why: as denied_call. */
    _Atomic uint64_t fault_address;
    /* short_of_memory: 1 = memory was refused, or nearly used up, when it was about to end.
     * Writers: the worker.  Readers: the host, when it has died.  Order: relaxed.
     * Pairs: none.  Why: as denied_call. */
    _Atomic uint32_t short_of_memory;
    /* short_of_stack: 1 = the fault's address is just below what its thread's stack pointer says.
     * Writers: the worker.  Readers: the host, when it has died.  Order: relaxed.
     * Pairs: none.  Why: as denied_call. */
    _Atomic uint32_t short_of_stack;
    /* peak_before: bytes that the kernel counted as its peak when it began.
     * Writers: the worker.  Readers: the host, when it has died.  Order: relaxed.
     * Pairs: none.  Why: as denied_call. */
    _Atomic uint64_t peak_before;
} errand__wire_response;
enum {                        /* status, in answer */
       ERRAND__WIRE_DONE = 1, /* length bytes are the (rest of the) response */
       ERRAND__WIRE_MORE = 2, /* length bytes are a piece; waits for GO_ON */
       ERRAND__WIRE_CALLBACK =
           3, /* length bytes ask for a call of the host's; waits for RETURN */
       ERRAND__WIRE_ERROR =
           4, /* length bytes are an errand__wire_error: the job's own error */
       ERRAND__WIRE_LARGE = 5 /* the response would be larger than out_max; length 0 */
};
typedef struct errand__wire_error {
    int32_t code;  /* never 0 */
    int32_t error; /* errno, 0 = none */
    char text[ERRAND__WIRE_TEXT - 8];
} errand__wire_error;
enum { /* entry_state */
       ERRAND__ENTRY_FINE = 0,
       ERRAND__ENTRY_NO_LIBRARY = 1,
       ERRAND__ENTRY_NO_SYMBOL = 2,
       ERRAND__ENTRY_SIGNATURE = 3
};

/* ---- set-up ------------------------------------------------------------------------------- */
/* Offsets count from setup_offset; strings end with 0.  Written by the host, read by a worker
 * that is not confined yet. */
typedef struct errand__wire_setup {
    uint32_t struct_size, promises, want_layers, require_layers, on_deny;
    uint32_t parent_pid;
    uint64_t memory_bytes, stack_bytes, file_bytes;
    uint32_t descriptors,
        processes;               /* processes: threads beyond the first, with THREAD */
    uint32_t cpu_soft, cpu_hard; /* seconds; 0 = no limit */
    uint32_t uid, gid;           /* to drop to if it is root; 0 = stay */
    uint32_t path_count, port_count, entry_count;
    uint32_t
        paths; /* offset of errand__wire_path[]; the n-th is descriptor PATH_FD + n */
    uint32_t ports;   /* of uint16_t[] */
    uint32_t entries; /* of errand__wire_entry[] */
    /* Two seccomp programs (struct sock_filter[]): [0] while libraries are opened, [1] from then
     * on.  tgid_patch: indexes of the instructions whose k is to be the worker's process id. */
    uint32_t filter[2], filter_length[2];
    uint32_t tgid_count[2], tgid_patch[2][ERRAND__WIRE_TGIDS];
} errand__wire_setup;
typedef struct errand__wire_path {
    uint32_t text;   /* offset of its name, for messages */
    uint32_t rights; /* ERRAND_PATH_... */
} errand__wire_path;
typedef struct errand__wire_entry {
    uint32_t library, symbol, signature; /* offsets of strings; 0 = NULL */
    uint32_t skip; /* 1 = its library is not opened: it has ended workers before */
} errand__wire_entry;

/* ---- a template --------------------------------------------------------------------------- */
/* Packets of a socket.  The template says that it is there by a birth whose ticket is 0.  Each ask
 * brings the files of one worker (request, response, lifeline and, with group, the one to join by) and is
 * answered by one birth, which brings the worker's pidfd, or an error. */
typedef struct errand__wire_ask {
    uint32_t ticket; /* never 0 */
    uint32_t group;  /* 1 = the fourth file is there */
} errand__wire_ask;
typedef struct errand__wire_birth {
    uint32_t ticket;
    uint32_t error; /* an errno; 0 = there is one */
    int32_t pid;
} errand__wire_birth;
enum { ERRAND__WIRE_ASKED = 4 }; /* files that an ask may bring */

/* Exit codes of the worker: meant as set-up failures only before ready. */
enum {
    ERRAND__SETUP_WIRE = 90,   /* files, version, set-up bytes */
    ERRAND__SETUP_PARENT = 91, /* the host is gone */
    ERRAND__SETUP_LAYER = 92,  /* a required layer */
    ERRAND__SETUP_LIBRARY =
        93, /* a library made threads without that promise, or ended it */
    ERRAND__SETUP_FILTER = 94,
    ERRAND__SETUP_MEMORY = 95,
    ERRAND__EXIT_DENIED = 159 /* ERRAND_DENY_REPORT: denied_call says which */
};

/* ---- both sides --------------------------------------------------------------------------- */
static inline uint64_t
errand__wire_answer(uint32_t sequence, uint32_t status, uint32_t length)
{
    return (uint64_t)(sequence & 0xffffffu) << 40 | (uint64_t)(status & 0xffu) << 32 |
           length;
}
static inline uint32_t
errand__wire_answer_sequence(uint64_t answer)
{
    return (uint32_t)(answer >> 40);
}
static inline uint32_t
errand__wire_answer_status(uint64_t answer)
{
    return (uint32_t)(answer >> 32) & 0xffu;
}
static inline uint32_t
errand__wire_answer_length(uint64_t answer)
{
    return (uint32_t)answer;
}
/* The sequence after this one. */
static inline uint32_t
errand__wire_sequence_next(uint32_t sequence)
{
    return sequence + 1 < ERRAND__WIRE_SEQUENCES ? sequence + 1 : 1;
}
/* The half of answer on which a host may wait: it holds sequence and status. */
static inline _Atomic uint32_t *
errand__wire_futex(errand__wire_response *response)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (_Atomic uint32_t *)(void *)&response->answer + 1;
#else
    return (_Atomic uint32_t *)(void *)&response->answer;
#endif
}

/* How one side waits for the other: looks a number of times that follows what helped so far,
 * then sleeps.  It never spins where both are on one processor. */
typedef struct errand__wire_waiter {
    uint32_t processors; /* that this side may use */
    uint32_t spins;      /* now */
} errand__wire_waiter;
void errand__wire_waiter_init(errand__wire_waiter *waiter, uint32_t processors);
/* Host: waits until the answer is not seen; answers what it is, seen after timeout_ns.  What it
 * says (its sequence too) is the host's to check. */
uint64_t errand__wire_await_answer(errand__wire_waiter *waiter,
                                   errand__wire_request *request,
                                   errand__wire_response *response, uint64_t seen,
                                   uint64_t timeout_ns);
/* Worker: waits until doorbell is not seen; answers it, or seen after timeout_ns. */
uint32_t errand__wire_await_doorbell(errand__wire_waiter *waiter,
                                     const errand__wire_request *request,
                                     errand__wire_response *response, uint32_t seen,
                                     uint64_t timeout_ns);
/* Host: the command's fields are written. */
void errand__wire_ring(errand__wire_request *request, errand__wire_response *response);
/* Worker: the bytes are written. */
void errand__wire_put(const errand__wire_request *request,
                      errand__wire_response *response, uint64_t answer);
/* Futex calls on words that processes share.  wait answers after a wake, a change, a signal or
 * timeout_ns. */
void errand__wire_sleep(const _Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns);
void errand__wire_wake(const _Atomic uint32_t *word);

#endif
