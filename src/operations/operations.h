/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_OPERATIONS_OPERATIONS_H
#define ERRAND_OPERATIONS_OPERATIONS_H
/* operations, inside: what the ready-made bodies share.  See README.md.
 *
 * Threads: an errand_spec_* function may run anywhere; a body runs on a worker, or on the
 * runtime's thread in inline order; drops and hooks run on the runtime's thread. */
#include <dirent.h>
#include <sys/types.h>
#include "core/core.h"
#include "errand/io.h"
#include "errand/operations.h"
#include "errand/source.h"

enum { OPERATION_PIECE = 1024 * 1024 }; /* bytes between two looks at the token */

/* ---- blocks: memory that knows its size, for states and payloads (block.c) ------------- */
void *
errand__operation_block_alloc(size_t size); /* zeroed, 16-aligned; NULL without memory */
void *errand__operation_block_alloc_bare(size_t size); /* the same, not zeroed */
/* The first part zeroed, not the bytes behind it, which the caller writes. */
void *errand__operation_block_alloc_for(size_t front, size_t bytes);
/* Moves to a larger one; on NULL the old block is untouched. */
void *errand__operation_block_grow(void *block, size_t new_size);
void errand__operation_block_free(void *block); /* NULL-safe; the drop of most states */

/* A writer through a block that was measured before: states are one block with their texts. */
typedef struct errand__operation_cursor {
    char *at;
} errand__operation_cursor;
char *errand__operation_copy(errand__operation_cursor *cursor, const void *bytes,
                             size_t size);

/* ---- failures (failure.c) ---------------------------------------------------------------- */
enum { OPERATION_SHOWN = 128 };
/* A name as messages show it: cut at 127 bytes, between two characters. */
typedef struct errand__operation_shown {
    char text[OPERATION_SHOWN];
} errand__operation_shown;
errand__operation_shown errand__operation_show(const char *name);
/* A length of time, in a unit that fits: "3000 ms". */
errand__operation_shown errand__operation_length(uint64_t ns);
/* Which code an errno is. */
int32_t errand__operation_code(int error);
/* Fails the job: "<format>: <errno's text>; <mend>".  Answers the code for the body. */
int32_t errand__operation_refused(errand_job *job, int error, const char *system_call,
                                  const char *format, ...) ERRAND_PRINTF(4, 5);
/* The same with a code chosen by the caller. */
int32_t errand__operation_refused_as(errand_job *job, int32_t code, int error,
                                     const char *system_call, const char *format, ...)
    ERRAND_PRINTF(5, 6);
/* Fails the job without a system call: "<format>; <mend>". */
int32_t errand__operation_failed(errand_job *job, int32_t code, const char *format, ...)
    ERRAND_PRINTF(3, 4);
/* For MEMORY: room for so many bytes. */
int32_t errand__operation_no_memory(errand_job *job, size_t size);
int32_t errand__operation_no_reactor(errand_job *job);
int32_t errand__operation_no_position(errand_job *job); /* of a file */

/* ---- descriptors (descriptor.c) ------------------------------------------------------------ */
/* All are close-on-exec and above 2, also when the host closed its own 0, 1 or 2.
 * -1 and errno on failure. */
int errand__operation_fd_open(const char *path, int flags, uint32_t mode);
int errand__operation_fd_raise(int fd); /* takes fd, also on failure */
bool errand__operation_fd_pipe(int out_ends[2]);
void errand__operation_fd_close(int *take_fd); /* -1 is none; keeps errno */

/* ---- stop: how a cancel wakes a body that sleeps in poll (stop.c) ---------------------------- */
typedef struct errand__stop errand__stop;
extern const errand_hook_type errand__operation_stop_hook; /* hook_data: the stop */
errand__stop *errand__operation_stop_create(void);   /* two holders: state and hook */
void errand__operation_stop_let(errand__stop *stop); /* one holder less; NULL-safe */
/* A body's side.  begin: false if no descriptor could be made (errno).  asked: was it asked to
 * end, before or after begin?  fd: readable once it was.  end: nothing of it is left. */
bool errand__operation_stop_begin(errand__stop *stop);
bool errand__operation_stop_asked(errand__stop *stop);
int errand__operation_stop_fd(const errand__stop *stop);
void errand__operation_stop_end(errand__stop *stop);

/* ---- specs (spec.c) ---------------------------------------------------------------------------- */
void errand__operation_spec_fill(errand_spec *out_spec, uint32_t kind,
                                 const errand_job_type *held_job, void *state);

/* ---- payloads (payload.c) ------------------------------------------------------------------------ */
/* own_block becomes the payload: size is what counts of it. */
void errand__operation_payload(errand_payload *out_payload,
                               const errand_payload_type *type, void *own_block,
                               size_t size);
/* bytes: a block with room for so many behind an errand_file_bytes, and a 0.  payload_bytes: with size of
 * them it becomes the payload. */
void *errand__operation_bytes_alloc(size_t room);
void errand__operation_payload_bytes(errand_payload *out_payload, void *own_block,
                                     size_t size);
/* A job's end: 0 with an errand_file_written as payload, or MEMORY. */
int32_t errand__operation_written(errand_job *job, uint64_t written,
                                  errand_payload *out_payload);

/* ---- directories (directory.c) -------------------------------------------------------------------------- */
typedef struct errand__dir_names {
    char *text; /* a block: one kind as a byte, a name, a 0; again and again */
    size_t used, room, count;
} errand__dir_names;
/* open: a folder; NULL and errno.  read: some more entries of a stream into list; waits for the disk,
 * and may run where no job's body does.  refused: fails the job for what either answered.  give:
 * the payload, of a list that stays the caller's. */
enum { /* answers of read, beside -errno */
       ERRAND__DIR_MORE = 0,
       ERRAND__DIR_END = 1,
       ERRAND__DIR_FULL = 2,     /* there are more than max */
       ERRAND__DIR_NO_MEMORY = 3 /* for twice the list's room */
};
DIR *errand__dir_open(const char *path);
int32_t errand__dir_read(DIR *stream, size_t max, errand__dir_names *list);
int32_t errand__dir_refused(errand_job *job, int32_t answer, const char *shown,
                            size_t max, const errand__dir_names *list);
int32_t errand__dir_give(errand_job *job, const errand__dir_names *list,
                         errand_payload *out_payload);
errand_file_kind errand__file_kind(mode_t mode);

/* ---- seats: a thing's place for one operation (seat.c) ---------------------------------------------- */
enum { /* errand__seat.gone */
       ERRAND__SEAT_OPEN = 0,
       ERRAND__SEAT_POISONED = 1, /* a failure, or a cancel of what had begun */
       ERRAND__SEAT_ENDED = 2,    /* shut down */
       ERRAND__SEAT_CLOSED = 3
};
/* A body's, while it waits for its turn or watches: a part of its state.  next NULL = it does not. */
typedef struct errand__seat_place {
    struct errand__seat_place *next; /* in a ring, in the order in which they came */
    errand_waker *waker;             /* a reference */
    uint32_t ticket;
} errand__seat_place;
typedef struct errand__seat {
    errand__lock lock;
    /* Guarded by lock. */
    uint32_t tickets; /* the last one that was given */
    uint32_t
        taken; /* of the operation that the owner waits for; 0 = the next may be made */
    uint32_t turn;            /* of the one whose body has the turn; 0 = nobody's */
    uint8_t gone;             /* what comes now fails as CLOSED */
    errand_waker *waker;      /* of the body that has the turn and waits: a reference */
    errand__seat_place *last; /* of those that wait for their turn */
    errand__seat_place *last_watcher; /* of those that are woken when that one has left */
} errand__seat;
typedef enum errand__seat_answer {
    ERRAND__SEAT_HAS = 0,   /* it is its turn */
    ERRAND__SEAT_WAITS = 1, /* it stands in its place, and is woken */
    ERRAND__SEAT_GONE = 2
} errand__seat_answer;
/* Owner.  take: false: taken.  told: by told of the job's type: the owner waits for it no longer.
 * close: what has the turn or waits for it is woken, and finds it gone; answers if one has it.
 * is_left: it was shut down or closed, and nobody has the turn. */
bool errand__seat_take(errand__seat *seat, uint32_t *out_ticket);
void errand__seat_told(errand__seat *seat, uint32_t ticket);
bool errand__seat_close(errand__seat *seat, uint8_t gone);
uint8_t errand__seat_gone(errand__seat *seat);
bool errand__seat_is_left(errand__seat *seat);
void errand__seat_fini(errand__seat *seat);
/* A body's.  enter: at each poll until it has the turn; bears: what gone may be at most.  wait: before
 * each PENDING of one that has the turn; a close wakes from here on; false: it is gone.  leave: has
 * it the turn, it goes to the next one, and the seat is poisoned if poison is; place: NULL once it
 * is used for something else.  watch: true: nobody has the turn; else the job is woken when that one
 * has left.  unwatch: it waits for that no longer. */
errand__seat_answer errand__seat_enter(errand__seat *seat, errand__seat_place *place,
                                       uint32_t ticket, uint8_t bears, errand_job *job);
bool errand__seat_wait(errand__seat *seat, uint32_t ticket, errand_job *job);
void errand__seat_leave(errand__seat *seat, errand__seat_place *place, uint32_t ticket,
                        bool poison);
bool errand__seat_watch(errand__seat *seat, errand__seat_place *place, errand_job *job);
void errand__seat_unwatch(errand__seat *seat, errand__seat_place *place);

/* ---- waits: what every state begins with whose body waits on a reactor (wait.c) ------------------------- */
typedef struct errand__wait {
    errand__seat *seat;  /* NULL = none */
    errand__seat *outer; /* an item's: of what its source is of; NULL = none */
    uint32_t ticket, outer_ticket;
    bool begun, in, turned; /* in: it has seat's turn.  turned: all that it needs */
    bool seated, timed, left;
    bool keeps; /* a failure poisons nothing */
    bool acts;  /* a cancel before its turn is no reason to do nothing */
    bool item; /* of a source: a cancel poisons nothing, a close of the source stops it */
    bool asked;              /* io was handed over */
    errand_helpers *helpers; /* NULL = none were asked for, or no reactor is there */
    uint64_t limit_ns;
    union {
        errand__seat_place place; /* until it has its turn */
        errand_io io;
    };
    errand_io *limit; /* NULL = none */
} errand__wait;
/* A state of front bytes that begins with an errand__wait, zeroed; behind it bytes that the caller writes,
 * and its limit, if any. */
void *errand__wait_create(size_t front, size_t bytes, uint64_t limit_ns);
/* ready: at the begin of each poll: 0 = go on (at first: nothing was asked; later: io is done), else
 * the answer.  ask: io was filled in; answers PENDING, or a failure.  poll: the same for POLL.
 * done: passes PENDING on, and leaves the seat with any other code.  told: of job types whose state
 * begins with one. */
int32_t errand__wait_ready(errand_job *job, errand__wait *wait);
int32_t errand__wait_ask(errand_job *job, errand__wait *wait);
int32_t errand__wait_poll(errand_job *job, errand__wait *wait, int fd, uint32_t events);
int32_t errand__wait_done(errand__wait *wait, int32_t code);
void errand__wait_told(void *state);
/* call: what waits for a disk: function(arg) on a helper thread, as of a CALL; answers as ask, and 0
 * without a reactor, where it was called here.  helpers: those that end what the state holds when it
 * is dropped; by a body, before it holds anything; call does it, too. */
int32_t errand__wait_call(errand_job *job, errand__wait *wait,
                          int32_t (*function)(void *arg), void *arg);
void errand__wait_helpers(errand_job *job, errand__wait *wait);
void errand__wait_fini(errand__wait *wait); /* by the state's drop */
void errand__wait_spec(errand_spec *out_spec, uint32_t kind,
                       const errand_job_type *held_job, void *state);

/* ---- sources (source.c) -------------------------------------------------------------------------------- */
typedef struct errand__source_type {
    const char *name; /* of its items' operations */
    /* A body's: one that is there: 0, PENDING = none is, or a failure.  Without a payload: the end. */
    int32_t (*take)(errand_job *job, void *thing, size_t chunk_max,
                    errand_payload *out_item);
    int (*fd)(void *thing);
    uint32_t (*events)(void *thing); /* of poll, that say of more; NULL = POLLIN */
    void (*let)(void *thing);
    bool buffers, keeps; /* more than one at once; a failure ends nothing */
} errand__source_type;
/* function: the public one that was called.  thing: what let gives up.  outer: its seat, of which the source takes the place; or NULL. */
errand_status errand__source_create(const char *function,
                                    const errand__source_type *held_type, void *own_thing,
                                    errand__seat *outer,
                                    const errand_source_config *config,
                                    errand_source **out_source);

/* ---- children (child.c) ------------------------------------------------------------------------------ */
/* What to run; everything is borrowed. */
typedef struct errand__child_plan {
    char *const *argv;
    char *const *env;
    const char *cwd;         /* NULL = the process's */
    const char *search_path; /* PATH's value or NULL */
    const void *input;
    size_t input_size;
    /* Streamed: stdin is a pipe, if pipe_in; else as above.  Outputs that are not wanted go to
     * /dev/null. */
    bool pipe_in, no_out, no_err, together;
} errand__child_plan;
typedef struct errand__child {
    int32_t pid;             /* also its group; 0 = none */
    int pidfd, out, err, in; /* -1 = none; in: non-blocking, too */
} errand__child;
/* Why it did not start, for whoever tells the job: "<before>'<name>'<after>". */
typedef struct errand__child_failure {
    int32_t code; /* 0 = the errno's */
    int error;    /* 0 = no system call was refused */
    const char *call, *before, *name, *after;
} errand__child_failure;
/* Starts it; false: *out_failure says why.  Waits for the disk, and may run where no job's body does.
 * job and stop, asked, stop it early; both may be NULL where there is no input. */
bool errand__child_start(errand_job *job, errand__stop *stop,
                         const errand__child_plan *plan, errand__child *out_child,
                         errand__child_failure *out_failure);
int32_t errand__child_refused(errand_job *job, const errand__child_failure *failure);
/* Has it ended?  Or was it reaped by somebody else.  For kernels without pidfd_open, where
 * pidfd is -1: ask now and then. */
bool errand__child_ended(const errand__child *child);
/* A signal to its whole group; nothing once somebody else has reaped it. */
void errand__child_signal(const errand__child *child, int signal_number);
/* Copies of a config's lists: their sizes, and the copying (command.c). */
size_t errand__child_list_size(const char *const *texts, size_t *out_count);
char **errand__child_list_copy(errand__operation_cursor *table,
                               errand__operation_cursor *text, const char *const *texts);
const char *errand__child_search_path(char *const *env);
/* Reaps it (it has ended, or will: waits), closes everything.  False: somebody else did. */
bool errand__child_reap(errand__child *child, int32_t *out_status, int32_t *out_signal);

#endif
