/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_REACTOR_CALLS_H
#define ERRAND_WORKERS_REACTOR_CALLS_H
/* calls: system calls for each kind: tries that do not block, and what filers do (calls.c,
 * blocking.c).  A result, -errno, or one of ERRAND__TRY_. */
#include "workers/reactor/reactor.h"

int32_t errand__try_poll(errand_io *io);
int32_t errand__try_filer(errand_io *io);
int32_t errand__try_close(errand_io *io);
int32_t errand__try_read(errand_io *io);
int32_t errand__try_write(errand_io *io);
int32_t errand__try_splice(errand_io *io);
int32_t errand__try_socket(errand_io *io);
int32_t errand__try_connect(errand_io *io);
int32_t errand__try_accept(errand_io *io);
int32_t errand__try_recv(errand_io *io);
int32_t errand__try_send(errand_io *io);
int32_t errand__try_recvmsg(errand_io *io);
int32_t errand__try_sendmsg(errand_io *io);
int32_t errand__try_shutdown(errand_io *io);
int32_t errand__try_accept_many(errand_io *io);
int32_t errand__try_recv_many(errand_io *io);
int32_t errand__block_open(errand_io *io);
int32_t errand__block_close(errand_io *io);
int32_t errand__block_read(errand_io *io);
int32_t errand__block_write(errand_io *io);
int32_t errand__block_sync(errand_io *io);
int32_t errand__block_stat(errand_io *io);
int32_t errand__block_rename(errand_io *io);
int32_t errand__block_unlink(errand_io *io);
int32_t errand__block_mkdir(errand_io *io);
int32_t errand__block_splice(errand_io *io);
ssize_t errand__splice_now(const errand_io *io); /* as splice, waits for no pipe */
int32_t errand__block_truncate(errand_io *io);
int32_t errand__block_call(errand_io *io);
int32_t errand__block_connect(errand_io *io);
int32_t errand__block_sendmsg(errand_io *io);
/* Does it look a path up, beside those that always do? */
bool errand__looks_up(const errand_io *io);
bool errand__is_slow(int fd); /* a disk is behind it */
/* What it is (S_IFMT), without asking whoever holds it, who may be far away; 0 = not known. */
uint32_t errand__what_is(int fd);
/* A FIFO that nobody opens for writing was opened meanwhile: the descriptor that waits, closed. */
void errand__fifo_forget(errand_io *io);
/* The kernel opened a FIFO without waiting for the other side, as io_uring does where it needs not
 * wait for the path: the result, or LATER. */
int32_t errand__fifo_check(errand_io *io, int32_t result);
/* Where the next bytes of a RECV_MANY go, and how many have room there. */
static inline char *
errand__ring_tail(const errand_io *io, size_t *out_room)
{
    uint64_t tail = ((uint64_t)io->first + io->ready) % io->length;
    size_t room = io->length - io->ready, until_end = io->length - tail;

    *out_room = room < until_end ? room : until_end;
    return (char *)io->buffer + tail;
}
#define ERRAND__RECV_FLAGS(io) ((int)(io)->flags & ~(MSG_WAITALL | MSG_DONTWAIT))
#define ERRAND__SEND_FLAGS(io)                                                           \
    (((int)(io)->flags & ~(MSG_WAITALL | MSG_DONTWAIT)) | MSG_NOSIGNAL)
#endif
