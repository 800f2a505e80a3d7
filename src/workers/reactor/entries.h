/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_WORKERS_REACTOR_ENTRIES_H
#define ERRAND_WORKERS_REACTOR_ENTRIES_H
/* entries: what io_uring's queue gets for each kind (entries.c). */
#include "workers/reactor/reactor.h"

void errand__entry_poll(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_open(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_close(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_read(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_write(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_readv(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_writev(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_sync(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_stat(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_rename(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_unlink(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_mkdir(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_splice(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_connect(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_accept(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_recv(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_send(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_recvmsg(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_sendmsg(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_shutdown(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_accept_many(struct io_uring_sqe *entry, errand_io *io);
void errand__entry_recv_many(struct io_uring_sqe *entry, errand_io *io);
#endif
