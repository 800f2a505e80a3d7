/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_OPERATIONS_NET_NET_H
#define ERRAND_OPERATIONS_NET_NET_H
/* net, inside: what streams, listeners and datagrams share.  See README.md. */
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include "errand/net.h"
#include "operations/operations.h"

typedef union errand__name { /* as the system calls have it */
    struct sockaddr any;
    struct sockaddr_storage storage;
    struct sockaddr_un path;
} errand__name;

enum {
    NET_SCRATCH = 16384
}; /* bytes on a stack, before it is known how many there are */

/* All three kinds of object are one of these. */
typedef struct errand__socket errand__socket;
enum errand__path { /* of a file that a bind made */
                    ERRAND__PATH_NONE = 0,
                    ERRAND__PATH_MADE = 1,
                    ERRAND__PATH_LISTED = 2, /* it is to go */
                    ERRAND__PATH_GOES = 3,   /* somebody removes it */
                    ERRAND__PATH_GONE = 4
};
struct errand__socket {
    /* refs: the host's references and those of operations.
     * Writers: whoever holds or abandons.   Readers: the same.
     * Order:   fetch_sub acq_rel.
     * Pairs:   socket-refs.
     * Why:     the last one closes what the others used. */
    atomic_uint refs;
    /* fd: -1 = closed by a close operation, or of a replay (detached).
     * Writers: the close operation's body, when no other has begun.   Readers: bodies that have
     *          begun, the owner.
     * Order:   relaxed.
     * Pairs:   none.
     * Why:     the seats order it for bodies; the owner may see either. */
    atomic_int fd;
    bool detached;         /* immutable */
    uint64_t limits_ns[2]; /* owner's: of the source, of the sink */
    errand__seat source, sink;
    /* The owner does nothing with fd outside of it, and a close operation closes fd inside. */
    errand__lock lock;
    bool closed; /* guarded by lock */
    /* Of a path.  Immutable: file, owner; helpers: of the last reference. */
    dev_t device;
    ino_t inode;
    pid_t owner;             /* the process that made it */
    errand_helpers *helpers; /* those that remove it: a reference, or NULL */
    /* Guarded by the lock of path.c, once it is listed. */
    errand__socket *next_going;
    enum errand__path path;
    bool let; /* the last reference is gone: whoever removes the path ends the socket */
    socklen_t peer_size, local_size; /* of names; local_size 0 = ask the system */
    unsigned char names[];           /* the peer's, then the local one */
};
struct errand_stream {
    errand__socket socket;
};
struct errand_listener {
    errand__socket socket;
};
struct errand_datagram {
    errand__socket socket;
};

/* ---- names (endpoint.c) -------------------------------------------------------------------- */
/* Answers the name's size; 0 = the endpoint is none. */
socklen_t errand__name_fill(errand__name *out_name, const errand_endpoint *endpoint);
errand_endpoint errand__name_endpoint(const errand__name *name, socklen_t size);
typedef struct errand__name_shown {
    char text[ERRAND_ENDPOINT_TEXT];
} errand__name_shown;
errand__name_shown errand__name_show(const errand_endpoint *endpoint);
/* A socket for it: non-blocking, close-on-exec, above 2; -1 and errno. */
int errand__name_socket(const errand__name *name, int type);

/* ---- objects (socket.c) ----------------------------------------------------------------------- */
/* Takes fd, if there is memory.  names may be NULL. */
errand__socket *errand__socket_create(int fd, const errand__name *peer,
                                      socklen_t peer_size, const errand__name *local,
                                      socklen_t local_size);
errand__socket *errand__socket_hold(errand__socket *socket);
void errand__socket_abandon(errand__socket *socket);
void errand__socket_close(errand__socket *socket);
errand_endpoint errand__socket_local(errand__socket *socket);
errand_endpoint errand__socket_peer(const errand__socket *socket);
int errand__socket_fd(const errand__socket *socket);
void errand__socket_tune(int fd,
                         const errand__name *name); /* NODELAY, where there is one */
void errand__socket_end(errand__socket *socket);    /* the descriptor and the memory */
/* A state that holds the socket and a place in the seat (NULL = none): OK, ENOMEM or EBUSY. */
typedef struct errand__net_state {
    errand__wait wait;
    errand__socket *socket;
} errand__net_state;
errand_status errand__net_create(errand__socket *socket, errand__seat *seat,
                                 uint64_t limit_ns, size_t front, size_t bytes,
                                 void **out_state);
void errand__net_drop(void *state);
/* Fails the job, naming the peer or the local end. */
int32_t errand__net_refused(errand_job *job, int32_t code, int error, const char *call,
                            errand__socket *socket, const char *what);
void errand__socket_payload(errand_payload *out_payload, const errand_payload_type *type,
                            void *own_socket);

/* ---- paths of Unix sockets (path.c) ------------------------------------------------------------ */
bool errand__name_is_path(const errand__name *name, socklen_t size);
/* A body's: as errand__wait_call, but here if nothing is looked up. */
int32_t errand__net_call(errand_job *job, errand__wait *wait, bool looks_up,
                         int32_t (*function)(void *arg), void *arg);
/* bind: false and errno; what a socket left there that was let go goes first.  undo: removes what a good
 * bind made.  create: as errand__socket_create, after a bind: a path goes with the socket.  All where
 * one may wait for a disk; nothing special happens if the name is none. */
bool errand__path_bind(int fd, const errand__name *name, socklen_t size);
void errand__path_undo(const errand__name *name, socklen_t size);
errand__socket *errand__path_create(int fd, const errand__name *peer, socklen_t peer_size,
                                    const errand__name *local, socklen_t local_size);
/* What a state begins with that makes a socket and binds it. */
typedef struct errand__bind {
    errand__wait wait;
    const char *refused;  /* which call was; NULL: memory was, or a helper */
    errand__socket *made; /* until it is given */
} errand__bind;
/* refused: fails the job, whose call answered less than 0: "what end".  take: what was made, with the
 * helpers that its path needs. */
int32_t errand__bind_refused(errand_job *job, const errand__bind *bind, const char *what,
                             const errand_endpoint *end);
errand__socket *errand__bind_take(errand__bind *bind);
void errand__bind_drop(void *state);
/* close: it is in nobody's way any more.  let: the same, and it goes, and the socket ends. */
void errand__path_close(errand__socket *socket);
void errand__path_let(errand__socket *socket);

/* ---- what operations and sources both do (listen.c, receive.c) ------------------------------------ */
/* Takes a connection that is there: 0, PENDING = none is, or a failure. */
int32_t errand__net_accept(errand_job *job, errand__socket *listener,
                           errand__socket **out_socket);
/* Takes what is there, at most max bytes: a block as of errand__operation_payload_bytes; 0, PENDING
 * = nothing is, or a failure.  Size 0 = the end. */
int32_t errand__net_take(errand_job *job, errand__socket *socket, size_t max,
                         void **out_block, size_t *out_size);
#endif
