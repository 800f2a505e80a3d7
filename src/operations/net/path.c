/* SPDX-License-Identifier: MIT */
/* path: the file that a bind makes, and that goes with its socket.
 *
 * Design notes: a path lies on a disk, so a helper thread makes it and removes it.  The removal is not
 * waited for by who let the socket go, but by whoever binds to the same path next: a socket whose
 * path is to go stands in a list of the process, and who binds there removes it first.  A file that
 * took the path's place is somebody else's, and stays. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/pause.h"
#include "operations/net/net.h"

static errand__lock lock;
static errand__socket *going; /* guarded by lock: those whose paths are to go */
/* gone: how many of them have gone.
 * Writers: whoever removed one, with lock.   Readers: who binds where one goes.
 * Order:   release, acquire.
 * Pairs:   path-gone.
 * Why:     the file must be gone. */
static atomic_uint gone;

bool
errand__name_is_path(const errand__name *name, socklen_t size)
{
    return size > offsetof(struct sockaddr_un, sun_path) &&
           name->any.sa_family == AF_UNIX && name->path.sun_path[0] != 0;
}

int32_t
errand__net_call(errand_job *job, errand__wait *wait, bool looks_up,
                 int32_t (*function)(void *arg), void *arg)
{
    if (looks_up)
        return errand__wait_call(job, wait, function, arg);
    wait->io = (errand_io){.kind = ERRAND_IO_CALL, .result = function(arg), .done = true};
    wait->asked = true;
    return 0;
}

static void
remove_file(errand__socket *socket)
{
    errand_endpoint local = errand__socket_local(socket);
    char path[sizeof local.path + 1] = "";
    struct stat now;

    memcpy(path, local.path, local.path_size);
    if (lstat(path, &now) == 0 && now.st_dev == socket->device &&
        now.st_ino == socket->inode)
        unlink(path);
}

/* Of one that was marked as begun. */
static void
go(errand__socket *socket)
{
    errand__socket **at = &going;

    ERRAND__PAUSE("path-goes");
    remove_file(socket);
    errand__lock_acquire(&lock);
    while (*at != socket)
        at = &(*at)->next_going;
    *at = socket->next_going;
    atomic_fetch_add_explicit(&gone, 1, memory_order_release); /* Pairs: path-gone */
    errand__lock_release(&lock);
    errand__futex_wake(&gone, INT32_MAX);
    errand__socket_end(socket);
}

/* arg names the socket, which may be gone by now, by whoever wanted its path. */
static int32_t
go_if_there(void *arg)
{
    errand__socket *socket;

    errand__lock_acquire(&lock);
    for (socket = going; socket != NULL; socket = socket->next_going)
        if (socket == arg && !socket->goes)
            break;
    if (socket != NULL)
        socket->goes = true;
    errand__lock_release(&lock);
    if (socket != NULL)
        go(socket);
    return 0;
}

void
errand__path_let(errand__socket *socket)
{
    errand_helpers *helpers = socket->helpers;

    socket->helpers = NULL;
    errand__lock_acquire(&lock);
    socket->next_going = going;
    going = socket;
    errand__lock_release(&lock);
    errand_helpers_call(helpers, go_if_there, socket);
    errand_helpers_abandon(&helpers);
}

/* With the lock.  The socket keeps its path as its local name, so nobody is asked. */
static errand__socket *
goes_from(const errand__name *name)
{
    for (errand__socket *socket = going; socket != NULL; socket = socket->next_going) {
        errand_endpoint local = errand__socket_local(socket);
        size_t size = local.path_size;

        if (strncmp(name->path.sun_path, local.path, size) == 0 &&
            (size == sizeof local.path || name->path.sun_path[size] == 0))
            return socket;
    }
    return NULL;
}

void
errand__path_await(const errand__name *name, socklen_t size)
{
    if (!errand__name_is_path(name, size))
        return;
    for (;;) {
        errand__lock_acquire(&lock);
        unsigned before =
            atomic_load_explicit(&gone, memory_order_acquire); /* Pairs: path-gone */
        errand__socket *socket = goes_from(name);
        bool mine = socket != NULL && !socket->goes;
        if (mine)
            socket->goes = true;
        errand__lock_release(&lock);
        if (socket == NULL)
            return;
        if (mine)
            go(socket);
        else
            errand__futex_wait(&gone, before, UINT64_MAX);
    }
}

errand__socket *
errand__path_create(int fd, const errand__name *peer, socklen_t peer_size,
                    const errand__name *local, socklen_t local_size)
{
    bool is_path = errand__name_is_path(local, local_size);
    errand__socket *made =
        errand__socket_create(fd, peer, peer_size, local, is_path ? local_size : 0);
    struct stat now;

    if (made == NULL || !is_path || lstat(local->path.sun_path, &now) != 0)
        return made;
    made->unlinks = true;
    made->device = now.st_dev;
    made->inode = now.st_ino;
    return made;
}

errand__socket *
errand__path_take(errand__wait *wait, errand__socket **take_socket)
{
    errand__socket *made = *take_socket;

    *take_socket = NULL;
    if (made != NULL && made->unlinks) {
        made->helpers = wait->helpers;
        wait->helpers = NULL;
    }
    return made;
}
