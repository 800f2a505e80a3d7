/* SPDX-License-Identifier: MIT */
/* path: the file that a bind makes, and that goes with its socket.
 *
 * Design notes
 * - A path lies on a disk, so a helper thread makes it and removes it.  The removal is not waited for
 *   by who let the socket go, but by whoever finds the file in the way of a bind, by whatever name: a
 *   socket that was closed or let go stands in a list of the process until its path has gone, and who
 *   binds there removes it first, whoever still has the socket.
 * - A file that took the path's place is somebody else's, and stays.
 * - In a forked child nothing of this is owed: the list is empty there, and what was inherited is
 *   closed alone.  The lock is held over the fork, so that it is free on both sides. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/pause.h"
#include "operations/net/net.h"

static pthread_once_t followed = PTHREAD_ONCE_INIT;
static errand__lock lock;     /* free again on both sides of a fork */
static errand__socket *going; /* guarded by lock: those whose paths are to go */
/* gone: how many of them have gone.
 * Writers: whoever removed one, with lock.   Readers: who binds where one goes.
 * Order:   release, acquire.
 * Pairs:   path-gone.
 * Why:     the file must be gone. */
static atomic_uint gone;

static void
before_fork(void) ERRAND_ACQUIRES(lock)
{
    errand__lock_acquire(&lock);
}

static void
after_fork(void) ERRAND_RELEASES(lock)
{
    errand__lock_release(&lock);
}

static void
after_fork_in_child(void) ERRAND_RELEASES(lock)
{
    going = NULL;
    errand__lock_release(&lock);
}

static void
follow_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

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

static bool
is_of(const errand__socket *socket, const struct stat *file)
{
    return socket->device == file->st_dev && socket->inode == file->st_ino;
}

typedef struct whole {
    char text[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1];
} whole;

/* The longest has no 0 at its end. */
static whole
whole_path(const errand__name *name)
{
    whole path = {""};

    memcpy(path.text, name->path.sun_path, sizeof path.text - 1);
    return path;
}

static bool
look(const errand__name *name, struct stat *out_file)
{
    return lstat(whole_path(name).text, out_file) == 0;
}

static void
remove_file(const errand__socket *socket)
{
    errand__name name = {.path = {.sun_family = AF_UNSPEC}};
    struct stat now;

    memcpy(&name, socket->names + socket->peer_size, socket->local_size);
    if (look(&name, &now) && is_of(socket, &now))
        unlink(whole_path(&name).text);
}

/* Of one that was marked as begun.  Its descriptor is open until the file is gone: as long as it is, no other
 * file has the same number. */
static void
go(errand__socket *socket)
{
    errand__socket **at = &going;

    ERRAND__PAUSE("path-goes");
    remove_file(socket);
    ERRAND__PAUSE("path-gone");
    errand__lock_acquire(&lock);
    while (*at != socket)
        at = &(*at)->next_going;
    *at = socket->next_going;
    socket->path = ERRAND__PATH_GONE;
    bool ends = socket->let;
    atomic_fetch_add_explicit(&gone, 1, memory_order_release); /* Pairs: path-gone */
    errand__lock_release(&lock);
    errand__futex_wake(&gone, INT32_MAX);
    if (ends)
        errand__socket_end(socket);
}

/* arg names the socket, which may be gone by now, by whoever wanted its path. */
static int32_t
go_if_there(void *arg)
{
    errand__socket *socket;

    errand__lock_acquire(&lock);
    for (socket = going; socket != NULL; socket = socket->next_going)
        if (socket == arg && socket->path == ERRAND__PATH_LISTED)
            break;
    if (socket != NULL)
        socket->path = ERRAND__PATH_GOES;
    errand__lock_release(&lock);
    if (socket != NULL)
        go(socket);
    return 0;
}

/* With the lock. */
static void
list(errand__socket *socket)
{
    if (socket->path != ERRAND__PATH_MADE)
        return;
    socket->path = ERRAND__PATH_LISTED;
    socket->next_going = going;
    going = socket;
}

void
errand__path_close(errand__socket *socket)
{
    if (socket->owner != getpid())
        return; /* or it has none */
    errand__lock_acquire(&lock);
    list(socket);
    errand__lock_release(&lock);
}

void
errand__path_let(errand__socket *socket)
{
    errand_helpers *helpers = socket->helpers;
    bool ends = socket->owner != getpid(), waits = false;

    socket->helpers = NULL;
    if (!ends) {
        (void)shutdown(errand__socket_fd(socket),
                       SHUT_RDWR); /* nobody can connect any more */
        errand__lock_acquire(&lock);
        list(socket);
        ends = socket->path == ERRAND__PATH_GONE;
        waits = socket->path == ERRAND__PATH_LISTED;
        socket->let = true; /* else it is who removes the path that ends it */
        errand__lock_release(&lock);
    }
    if (ends)
        errand__socket_end(socket);
    if (waits)
        errand_helpers_call(helpers, go_if_there, socket);
    errand_helpers_abandon(&helpers);
}

/* With the lock. */
static errand__socket *
going_as(const struct stat *file)
{
    errand__socket *socket = going;

    while (socket != NULL && !is_of(socket, file))
        socket = socket->next_going;
    return socket;
}

static bool
has_changed(const errand__name *name, const struct stat *before)
{
    struct stat now;

    return look(name, &now) ? now.st_dev != before->st_dev || now.st_ino != before->st_ino
                            : errno == ENOENT;
}

/* Has a file that was in the way gone? */
static bool
await_file(const errand__name *name)
{
    struct stat file;

    if (!look(name, &file))
        return errno == ENOENT;
    for (bool found = false;; found = true) {
        errand__lock_acquire(&lock);
        unsigned before =
            atomic_load_explicit(&gone, memory_order_acquire); /* Pairs: path-gone */
        errand__socket *socket = going_as(&file);
        bool mine = socket != NULL && socket->path == ERRAND__PATH_LISTED;
        if (mine)
            socket->path = ERRAND__PATH_GOES;
        errand__lock_release(&lock);
        if (socket == NULL) /* or it went after the first look */
            return found || has_changed(name, &file);
        if (mine)
            go(socket);
        else
            errand__futex_wait(&gone, before, UINT64_MAX);
    }
}

bool
errand__path_bind(int fd, const errand__name *name, socklen_t size)
{
    while (bind(fd, &name->any, size) != 0) {
        int error = errno;

        if (error != EADDRINUSE || !errand__name_is_path(name, size) ||
            !await_file(name)) {
            errno = error;
            return false;
        }
    }
    return true;
}

void
errand__path_undo(const errand__name *name, socklen_t size)
{
    struct stat file;

    if (errand__name_is_path(name, size) && look(name, &file) && S_ISSOCK(file.st_mode))
        unlink(whole_path(name).text);
}

errand__socket *
errand__path_create(int fd, const errand__name *peer, socklen_t peer_size,
                    const errand__name *local, socklen_t local_size)
{
    bool is_path = errand__name_is_path(local, local_size);
    errand__socket *made =
        errand__socket_create(fd, peer, peer_size, local, is_path ? local_size : 0);
    struct stat now;

    if (made == NULL || !is_path || !look(local, &now))
        return made;
    (void)pthread_once(&followed, follow_forks);
    made->path = ERRAND__PATH_MADE;
    made->owner = getpid();
    made->device = now.st_dev;
    made->inode = now.st_ino;
    return made;
}

int32_t
errand__bind_refused(errand_job *job, const errand__bind *bind, const char *what,
                     const errand_endpoint *end)
{
    int error = -bind->wait.io.result;
    int32_t code = ERRAND_OPERATION_BIND_FAILED;
    errand__name_shown shown = errand__name_show(end);

    if (bind->refused == NULL && error == ENOMEM)
        return errand__operation_no_memory(job, sizeof(errand__socket));
    if (bind->refused == NULL)
        return errand__operation_refused(
            job, error, "the reactor", "no helper could be asked to bind %s", shown.text);
    if (strcmp(bind->refused, "socket") == 0)
        code = errand__operation_code(error);
    else if (strcmp(bind->refused, "connect") == 0)
        code = ERRAND_OPERATION_CONNECTION_FAILED;
    return errand__operation_refused_as(job, code, error, bind->refused, "%s %s", what,
                                        shown.text);
}

errand__socket *
errand__bind_take(errand__bind *bind)
{
    errand__socket *made = bind->made;

    bind->made = NULL;
    if (made != NULL && made->path != ERRAND__PATH_NONE) {
        made->helpers = bind->wait.helpers;
        bind->wait.helpers = NULL;
    }
    return made;
}

void
errand__bind_drop(void *state)
{
    errand__bind *bind = state;

    errand__socket_abandon(errand__bind_take(bind));
    errand__wait_fini(&bind->wait);
    errand__operation_block_free(state);
}
