/* SPDX-License-Identifier: MIT */
/* constructor: an object that does its harm while it is opened: TRIES says what. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "errand/plugin.h"

enum { FORKS = 1, CONNECTS, WRITES, KILLS, EXITS, THREAD, EXECUTES, READS, CODE };

errand_plugin_fn probe;
static char noted; /* what the constructor got */

static void *
stays(void *unused)
{
    for (;;)
        sleep(1000);
    return unused;
}

__attribute__((constructor)) static void
at_once(void)
{
    int tries = TRIES;
    pthread_t thread;
    if (tries == FORKS)
        noted = fork() < 0 ? 'n' : 'y';
    else if (tries == CONNECTS)
        noted = socket(AF_INET, SOCK_STREAM, 0) < 0 ? 'n' : 'y';
    else if (tries == WRITES)
        noted = open("/tmp/errand-constructor", O_WRONLY | O_CREAT, 0600) < 0 ? 'n' : 'y';
    else if (tries == KILLS)
        kill(getppid(), SIGKILL);
    else if (tries == EXITS)
        exit(0);
    else if (tries == THREAD)
        noted = pthread_create(&thread, NULL, stays, NULL) != 0 ? 'n' : 'y';
    else if (tries == EXECUTES)
        execl("/bin/true", "true", (char *)NULL);
    else if (tries == READS)
        noted = open("/etc/passwd", O_RDONLY) < 0 && open("/proc/self/maps", O_RDONLY) < 0
                    ? 'n'
                    : 'y';
    else if (tries == CODE)
        noted = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
                    ? 'n'
                    : 'y';
}

int32_t
probe(errand_plugin_call *call)
{
    return call->write(call, &noted, 1) ? 0 : 1;
}
