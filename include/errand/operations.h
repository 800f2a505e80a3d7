/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_OPERATIONS_H
#define ERRAND_OPERATIONS_H
/* operations: work that every host wants, ready made: files, name lookup, child
 * processes.  Conventions: errand.h.
 *
 *     errand_spec spec;
 *     status = errand_spec_read_file(&spec, "notes.txt", 0);
 *     spec.kind = MY_KIND;                             change what you like
 *     if (status == ERRAND_OK && (status = errand_start(lease, &spec, wait, NULL)) !=
 *     ERRAND_OK)
 *         errand_spec_abandon(&spec);                  a refusal leaves the state with
 *           you
 *
 * Each errand_spec_* fills the whole of *out_spec; all strings and bytes are copied, so
 * nothing has to outlive the call.  Relative paths count from the directory that the
 * process is in when the body runs.
 * All functions are [any] unless they say otherwise.   Errors of errand_spec_*: ENOMEM ·
 * EINVAL (NULL, an empty path or name, unknown flag bits).  Then *out_spec is
 * untouched. */
#include "errand.h"
ERRAND_BEGIN

/* ---- what all have in common ------------------------------------------------------- */

/* The kinds that they declare, unless the host writes its own number into spec.kind. */
enum {
    ERRAND_KIND_NOTHING = 0x0E000001,
    ERRAND_KIND_ECHO = 0x0E000002,
    ERRAND_KIND_SLEEP = 0x0E000003,
    ERRAND_KIND_READ_FILE = 0x0E000004,
    ERRAND_KIND_WRITE_FILE = 0x0E000005,
    ERRAND_KIND_APPEND_FILE = 0x0E000006,
    ERRAND_KIND_LIST_DIR = 0x0E000007,
    ERRAND_KIND_STAT_FILE = 0x0E000008,
    ERRAND_KIND_HASH_FILE = 0x0E000009,
    ERRAND_KIND_RESOLVE = 0x0E00000A,
    ERRAND_KIND_COMMAND = 0x0E00000B,
    /* errand/net.h */
    ERRAND_KIND_CONNECT = 0x0E000010,
    ERRAND_KIND_LISTEN = 0x0E000011,
    ERRAND_KIND_ACCEPT = 0x0E000012,
    ERRAND_KIND_RECEIVE = 0x0E000013,
    ERRAND_KIND_PEEK = 0x0E000014,
    ERRAND_KIND_SEND = 0x0E000015,
    ERRAND_KIND_SHUTDOWN = 0x0E000016,
    ERRAND_KIND_CLOSE = 0x0E000017,
    ERRAND_KIND_DATAGRAM = 0x0E000018,
    ERRAND_KIND_RECEIVE_PACKET = 0x0E000019,
    ERRAND_KIND_SEND_PACKET = 0x0E00001A,
    /* 0x0E000020 on: errand/ffi.h, errand/sandbox.h */
    ERRAND_KIND_NEXT = 0x0E000060,  /* errand/source.h */
    ERRAND_KIND_TIMER = 0x0E000061, /* errand/waits.h */
    ERRAND_KIND_WAIT_FD = 0x0E000062,
    /* errand/files.h */
    ERRAND_KIND_OPEN = 0x0E000030,
    ERRAND_KIND_READ_AT = 0x0E000031,
    ERRAND_KIND_WRITE_AT = 0x0E000032,
    ERRAND_KIND_SYNC = 0x0E000033,
    ERRAND_KIND_FILE_CLOSE = 0x0E000034,
    ERRAND_KIND_STAT = 0x0E000035,
    ERRAND_KIND_RENAME = 0x0E000036,
    ERRAND_KIND_UNLINK = 0x0E000037,
    ERRAND_KIND_MKDIR = 0x0E000038,
    ERRAND_KIND_SCAN = 0x0E000039,
    ERRAND_KIND_COPY = 0x0E00003A,
    ERRAND_KIND_SEEK = 0x0E00003B,
    ERRAND_KIND_TRUNCATE = 0x0E00003C,
    /* errand/process.h */
    ERRAND_KIND_SPAWN = 0x0E000040,
    ERRAND_KIND_PROCESS_WAIT = 0x0E000041,
    ERRAND_KIND_PROCESS_WRITE = 0x0E000042,
    ERRAND_KIND_HTTP = 0x0E000050, /* errand/http.h */
    ERRAND_KIND_HTTP_UPLOAD = 0x0E000051,
    ERRAND_KIND_HTTP_SEND = 0x0E000052,
    ERRAND_KIND_HTTP_FINISH = 0x0E000053
};

/* job_code of a completion that failed with ERRAND_CODE_JOB: X(name, number, sentence).
 * The message names path or command and the mend; sys_errno and system_call are set when
 * a system call refused.  Numbers are never reused. */
#define ERRAND_OPERATION_TABLE(X)                                                        \
    X(NOT_FOUND, 1, "there is no such file, directory, command or host")                 \
    X(PERMISSION, 2, "the operating system does not permit it")                          \
    X(IS_DIRECTORY, 3, "it is a directory")                                              \
    X(NOT_DIRECTORY, 4, "it, or a part of its path, is not a directory")                 \
    X(NOT_REGULAR, 5, "it is neither a regular file nor a directory")                    \
    X(TOO_LARGE, 6, "it is larger than the limit that was given")                        \
    X(OUTPUT, 7, "the command wrote more than output_max and was ended")                 \
    X(STOPPED, 8, "it was asked to end while it ran, and did")                           \
    X(NO_SPACE, 9, "the disk or a quota is full")                                        \
    X(LIMIT, 10, "no descriptor or process is left")                                     \
    X(MEMORY, 11, "memory ran out")                                                      \
    X(EXEC, 12, "the command's file cannot be executed")                                 \
    X(AGAIN, 13, "it failed for now; the same may work later")                           \
    X(LOST, 14, "the command ran, but somebody else took its exit status")               \
    X(IO, 15, "the operating system reported another error; see sys_errno")              \
    X(CLOSED, 16, "it is closed, or an earlier failure or cancel ended that half of it") \
    X(TIMEOUT, 17, "its limit passed first")                                             \
    X(BIND_FAILED, 18, "the address cannot be listened at or bound")                     \
    X(CONNECTION_FAILED, 19, "nobody could be reached at the address")                   \
    X(ACCEPT_FAILED, 20, "no connection could be taken")                                 \
    X(RECEIVE_FAILED, 21, "the peer ended or reset before all was received")             \
    X(SEND_FAILED, 22, "the peer is gone; how much it has is not known")                 \
    X(UNSUPPORTED, 23, "its executor, this system or what was opened cannot do it")      \
    X(EXISTS, 24, "there is something of that name already")                             \
    X(PROTOCOL, 25, "the peer does not keep to the protocol")                            \
    X(CERTIFICATE, 26, "the peer's certificate does not prove who it is")                \
    X(REDIRECTS, 27, "it was sent elsewhere too often, or where it may not go")
typedef enum errand_operation_code {
#define ERRAND_X(name, number, sentence) ERRAND_OPERATION_##name = number,
    ERRAND_OPERATION_TABLE(ERRAND_X)
#undef ERRAND_X
} errand_operation_code;
/* "NOT_FOUND"; an unknown number gets "unknown".   Thread: [any]. */
ERRAND_API const char *errand_operation_code_name(int32_t job_code);

/* errand_spec_abandon: drop a spec that was never started: its state, decoder and hook
 * data, each once; *spec is zeroed.  NULL-safe, safe on a zeroed spec.
 * Thread: [owner]. */
ERRAND_API void errand_spec_abandon(errand_spec *spec);

/* errand_audit_operations: errand_audit_payload for every type below and of the headers that
 * build on this one (errand/net.h ...), with its digest.
 * These digests hold contents, never process ids, times, inode numbers or paths.
 * Thread: [owner].   Errors: those of errand_audit_payload. */
ERRAND_API ERRAND_MUST_USE errand_status errand_audit_operations(errand_runtime *runtime);
/* errand_operations_codecs: the same, and errand_record_codec for each of them: for logs
 *   with payloads, and their replay.  Their bytes hold all that the payload does.
 * Thread: [owner].   Errors: those of errand_record_codec. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_operations_codecs(errand_runtime *runtime);

/* Payloads are one block each: the struct is data, and what it points to lies behind it.
 * errand_completion_take and errand_payload_drop as usual.  Each type has a digest of its
 * own (data, size as in the payload). */

/* ---- for tests and first steps ----------------------------------------------------- */

/* errand_spec_nothing: completes, without a payload.
 * errand_spec_echo: gives the bytes back, as errand_file_bytes.
 * errand_spec_sleep: occupies its worker for so many real ns, then completes without a
 *   payload; ends early as STOPPED when it is cancelled.
 * Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_nothing(errand_spec *out_spec);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_echo(errand_spec *out_spec, const void *bytes, size_t size);
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_sleep(errand_spec *out_spec, uint64_t ns);

/* ---- files ------------------------------------------------------------------------- */
/* All are interruptible: they work in pieces of at most 1 MiB and look at their token
 * between two.  Only regular files are read, written and hashed; anything else is refused
 * at once (NOT_REGULAR, IS_DIRECTORY), so that a FIFO nobody writes to cannot hold a
 * worker. */

typedef struct errand_file_bytes {
    const unsigned char *bytes; /* a 0 stands behind the last one */
    size_t size;
} errand_file_bytes;
ERRAND_API extern const errand_payload_type errand_file_bytes_type;
ERRAND_API uint64_t errand_file_bytes_digest(const void *data, size_t size);
/* errand_spec_read_file: the whole file, TOO_LARGE beyond max bytes (0 = 64 MiB).
 * Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_read_file(errand_spec *out_spec, const char *path, size_t max);

typedef struct errand_file_written {
    uint64_t written; /* bytes, by this operation */
} errand_file_written;
ERRAND_API extern const errand_payload_type errand_file_written_type;
ERRAND_API uint64_t errand_file_written_digest(const void *data, size_t size);
/* errand_spec_write_file: make the file hold these bytes; created with mode (0 = 0666)
 *   and the process's umask, an existing one keeps its mode.  It is written in place:
 *   emptied, then filled.  A failure or cancel on the way leaves the pieces that were
 *   written: to have all or nothing, write to another name and rename.
 * errand_spec_append_file: the same at the end of the file, nothing emptied.
 * Errors: ENOMEM · EINVAL (mode beyond 07777, too). */
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_write_file(
    errand_spec *out_spec, const char *path, const void *bytes, size_t size,
    uint32_t mode);
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_append_file(
    errand_spec *out_spec, const char *path, const void *bytes, size_t size,
    uint32_t mode);

typedef enum errand_file_kind {
    ERRAND_FILE_REGULAR = 1,
    ERRAND_FILE_DIRECTORY = 2,
    ERRAND_FILE_LINK = 3, /* symbolic */
    ERRAND_FILE_FIFO = 4,
    ERRAND_FILE_SOCKET = 5,
    ERRAND_FILE_CHARACTERS = 6, /* a device */
    ERRAND_FILE_BLOCKS = 7,     /* a device */
    ERRAND_FILE_OTHER = 8
} errand_file_kind;
/* "regular", "directory", "link", "fifo", "socket", "characters", "blocks", "other". */
ERRAND_API const char *errand_file_kind_name(errand_file_kind kind);

typedef struct errand_dir_entry {
    const char *name;
    errand_file_kind kind; /* of the entry itself: links are not followed */
} errand_dir_entry;
typedef struct errand_dir_list {
    const errand_dir_entry *entries; /* sorted by the bytes of their names */
    size_t count;                    /* without "." and ".." */
} errand_dir_list;
ERRAND_API extern const errand_payload_type errand_dir_list_type;
ERRAND_API uint64_t errand_dir_list_digest(const void *data, size_t size);
/* errand_spec_list_dir: TOO_LARGE beyond max entries (0 = 2^20).
 * Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_list_dir(errand_spec *out_spec, const char *path, size_t max);

/* Its digest: kind, mode, and the size of a regular file. */
typedef struct errand_file_stat {
    errand_file_kind kind;
    uint32_t mode;    /* permission bits, 07777 */
    uint64_t size;    /* bytes */
    int64_t mtime_ns; /* since 1970 */
} errand_file_stat;
ERRAND_API extern const errand_payload_type errand_file_stat_type;
ERRAND_API uint64_t errand_file_stat_digest(const void *data, size_t size);
/* errand_spec_stat_file: follow = of what a symbolic link points to.
 * Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_stat_file(errand_spec *out_spec, const char *path, bool follow);

typedef struct errand_hash {
    uint64_t value; /* XXH3, 64 bits, seed 0, of the bytes: fast, not cryptographic */
    uint64_t size;  /* bytes hashed */
} errand_hash;
ERRAND_API extern const errand_payload_type errand_hash_type;
ERRAND_API uint64_t errand_hash_digest(const void *data, size_t size);
/* errand_spec_hash_file: reads a file of any size in pieces, holding one of them.
 * Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_hash_file(errand_spec *out_spec, const char *path);

/* ---- name lookup ------------------------------------------------------------------- */

typedef struct errand_address {
    uint32_t family;         /* 4 or 6 */
    uint32_t scope;          /* of a link-local address of family 6; not in the digest */
    unsigned char bytes[16]; /* network order; family 4 uses the first four */
    uint16_t port;           /* of the service; 0 = none was asked for */
    char text[46];           /* as inet_ntop writes it */
} errand_address;
typedef struct errand_addresses {
    const errand_address *addresses; /* sorted by family, bytes, port, scope; each once */
    size_t count;
} errand_addresses;
ERRAND_API extern const errand_payload_type errand_addresses_type;
ERRAND_API uint64_t errand_addresses_digest(const void *data, size_t size);
/* errand_spec_resolve: the stream addresses of a host (a name or a number) and a service
 * (a name, a port number, or NULL), as the system's resolver knows them.  That call
 * cannot be stopped: the operation is quarantined, timeout_ns (0 = 30 s) is its deadline
 * from submit and its hard deadline from a cancel; beyond it its worker is written off
 * and replaced.
 * Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status errand_spec_resolve(
    errand_spec *out_spec, const char *host, const char *service, uint64_t timeout_ns);

/* ---- child processes --------------------------------------------------------------- */

typedef struct errand_command_config {
    uint32_t struct_size;
    uint32_t flags;          /* none yet; must be 0 */
    const char *const *argv; /* ends in NULL; argv[0] is the command */
    const char *const *env;  /* "NAME=value", ends in NULL; NULL = this process's now */
    const char *cwd;         /* NULL = the process's */
    const void *input;       /* what the command reads from stdin */
    size_t input_size;       /* 0 = /dev/null */
    size_t output_max;       /* of stdout and of stderr, each; 0 = 16 MiB */
    uint64_t term_ns;        /* between SIGTERM and SIGKILL; 0 = 200 ms */
} errand_command_config;
typedef struct errand_command_result {
    const unsigned char *out, *err; /* a 0 stands behind the last byte of each */
    size_t out_size, err_size;
    int32_t exit_status;   /* 0 .. 255, or -1 when a signal ended it */
    int32_t signal_number; /* 0 when it exited */
} errand_command_result;
ERRAND_API extern const errand_payload_type errand_command_result_type;
ERRAND_API uint64_t errand_command_result_digest(const void *data, size_t size);
/* errand_spec_command: run a command, without a shell, to its end.
 *
 * A status other than 0 and a signal are results, not failures.  argv[0] without a "/" is
 * looked for in the absolute directories of PATH (of env, if given).  The command leads a
 * process group of its own, with default signal actions, no blocked signals and no
 * descriptor but 0, 1, 2.  stdin is a sealed file in memory (seekable, never blocks,
 * raises no SIGPIPE).  Cancelled, or beyond output_max: SIGTERM to the group, SIGKILL to
 * it after term_ns or when its leader has ended, whichever is first; answers STOPPED or
 * OUTPUT, no bytes.  When the command has ended while descendants still hold its stdout
 * or stderr: what they write within 50 ms of silence, 500 ms at most, is read, then they
 * are left alone.
 * Errors: ENOMEM · EINVAL. */
ERRAND_API ERRAND_MUST_USE errand_status
errand_spec_command(errand_spec *out_spec, const errand_command_config *config);

ERRAND_END
#endif
