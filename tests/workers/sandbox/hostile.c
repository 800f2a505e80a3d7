/* SPDX-License-Identifier: MIT */
/* hostile: see the header.  Each probe answers what the call answered and leaves errno. */
#include "hostile.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "errand/plugin.h"

typedef struct trial {
    errand_plugin_call *call;
    const hostile_request *request;
    hostile_response *response;
} trial;
typedef int64_t probe_fn(const trial *now);

errand_plugin_fn probe;

static char scratch[4096];

/* ---- the C library under the filter (C-L1, C-L2, C-L3) */
static int64_t
ordinary(const trial *now)
{
    (void)now;
    size_t size = 100u << 20;
    char *bytes = malloc(size);
    if (bytes == NULL)
        return -1;
    memset(bytes, 7, size);
    unsigned char random[16];
    struct timespec clock;
    bool fine = getentropy(random, sizeof random) == 0 &&
                clock_gettime(CLOCK_REALTIME, &clock) == 0 && bytes[size - 1] == 7;
    free(bytes);
    printf("%s %d %f\n", "spoken to nobody", 1, 1.5);
    fflush(stdout);
    struct tm parts;
    time_t second = clock.tv_sec;
    char text[32];
    qsort(random, sizeof random, 1, (int (*)(const void *, const void *))strcmp);
    return fine && localtime_r(&second, &parts) != NULL &&
                   snprintf(text, sizeof text, "%g", 1e300) > 0
               ? 0
               : -2;
}
static int64_t
speak(const trial *now)
{
    (void)now;
    static char line[4096];
    memset(line, 'x', sizeof line);
    for (int i = 0; i < 256; i++) {
        fwrite(line, 1, sizeof line, stdout);
        fwrite(line, 1, sizeof line, stderr);
    }
    return fflush(stdout);
}
static int64_t
exit_with(const trial *now)
{
    exit((int)now->request->number);
}
static int64_t
exit_at_once(const trial *now)
{
    _exit((int)now->request->number);
}
static int64_t
ends_thread(const trial *now)
{
    (void)now;
    pthread_exit(NULL);
}
/* ---- time */
static int64_t
burn(const trial *now)
{
    volatile uint64_t count = 0;
    if (now->request->number != 0)
        signal(SIGXCPU, SIG_IGN);
    while (now->call != NULL)
        count++;
    return 0;
}
static int64_t
burn_deaf(const trial *now)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_IGN);
    return burn(now);
}
static int64_t
sleeps(const trial *now)
{
    struct timespec time = {.tv_sec = now->request->number};
    return nanosleep(&time, NULL);
}
static int64_t
until_cancelled(const trial *now)
{
    while (!now->call->cancelled(now->call)) {
        struct timespec time = {.tv_nsec = 1000000};
        nanosleep(&time, NULL);
    }
    return 77;
}
/* ---- memory */
static int64_t
memory_checked(const trial *now)
{
    int64_t got = 0;
    while (got < now->request->number) {
        if (malloc(1u << 20) == NULL)
            return got;
        got++;
    }
    return got;
}
static int64_t
memory_unchecked(const trial *now)
{
    while (now->call != NULL) {
        char *bytes = malloc(1u << 20);
        bytes[0] = 1;
    }
    return 0;
}
/* What is left of the number: 0 write to address 0, 1 abort, 2 exit.  From 10 on what it had was
 * touched, and errno does not tell. */
static int64_t
out_of_memory(const trial *now)
{
    volatile size_t size = SIZE_MAX / 4;
    char *bytes = malloc(size);
    if (now->request->number >= 10) {
        while ((bytes = malloc(1u << 20)) != NULL)
            memset(bytes, 1, 1u << 20);
        errno = 0;
    }
    switch (now->request->number % 10) {
    case 0:
        bytes[0] = 1;
        break;
    case 1:
        abort();
    default:
        exit(3);
    }
    return 0;
}
__attribute__((noinline)) static int64_t
deeper(volatile char *above)
{
    volatile char frame[4096];
    frame[0] = above[0];
    return frame[0] == 0 ? 0 : deeper(frame) + frame[1];
}
static int64_t
stack_bomb(const trial *now)
{
    (void)now;
    char start = 1;
    return deeper(&start);
}
static int64_t
write_null(const trial *now)
{
    volatile int *at = (volatile int *)(uintptr_t)now->request->number;
    *at = 1;
    return 0;
}
static int64_t
divides(const trial *now)
{
    volatile int zero = (int)now->request->number;
    return 70 / zero;
}
static int64_t
illegal(const trial *now)
{
    (void)now;
#if defined(__x86_64__)
    __asm__ volatile("ud2");
#else
    __builtin_trap();
#endif
    return 0;
}
static int64_t
write_request(const trial *now)
{
    ((volatile unsigned char *)(uintptr_t)now->request)[0] = 1;
    return 0;
}
static int64_t
aborts(const trial *now)
{
    (void)now;
    abort();
}
static int64_t
double_free(const trial *now)
{
    (void)now;
    /* Larger than what the thread's own cache takes: the C library notices, and says so. */
    void *volatile block = malloc(4000);
    void *volatile between = malloc(4000);
    free(block);
    free(block);
    free(between);
    return 0;
}
static sigjmp_buf again;
static void
caught(int number)
{
    (void)number;
    siglongjmp(again, 1);
}
static int64_t
catch_own(const trial *now)
{
    signal(SIGSEGV, caught);
    while (now->call != NULL) {
        if (sigsetjmp(again, 1) == 0)
            *(volatile int *)(uintptr_t)8 = 1;
    }
    return 0;
}
static int64_t
map_code(const trial *now)
{
    int protection = PROT_READ | PROT_EXEC | (now->request->number != 0 ? PROT_WRITE : 0);
    void *at = mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? -1 : 0;
}
static int64_t
protect_code(const trial *now)
{
    (void)now;
    void *at =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mprotect(at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}
static int64_t
protect_request(const trial *now)
{
    uintptr_t page = (uintptr_t)now->request & ~(uintptr_t)4095;
    return mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
}
static int64_t
grow_request(const trial *now)
{
    uintptr_t page = (uintptr_t)now->request & ~(uintptr_t)4095;
    char *at = mremap((void *)page, 4096, 1 << 20, MREMAP_MAYMOVE);
    if (at == MAP_FAILED)
        return -1;
    at[(1 << 20) - 1] = 1; /* read-only, or past the end of the file */
    return 0;
}
/* ---- processes and threads */
static int64_t
forks(const trial *now)
{
    (void)now;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child < 0 ? -1 : 0;
}
static int64_t
fork_bomb(const trial *now)
{
    (void)now;
    int made = 0;
    for (int i = 0; i < 1000; i++)
        made += fork() >= 0;
    errno = EAGAIN;
    return made;
}
static void *
nothing(void *value)
{
    return value;
}
static int64_t
starts_thread(const trial *now)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, nothing, (void *)(uintptr_t)now->request);
    errno = error;
    if (error != 0)
        return -1;
    void *value = NULL;
    error = pthread_join(thread, &value);
    return error == 0 && value == now->request ? 0 : -2;
}
static int64_t
signals_state(const trial *now)
{
    (void)now;
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    int64_t count = 0;
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0)
            count += action.sa_handler == SIG_IGN;
        count += sigismember(&blocked, number) == 1;
    }
    return count;
}
/* What guards this thread's stack, where it can be read; else 0. */
static int64_t
stack_guard(const trial *now)
{
    int64_t guard = 0;
    (void)now;
#if defined(__x86_64__) && defined(__LP64__)
    __asm__ __volatile__("movq %%fs:0x28, %0" : "=r"(guard));
#endif
    return guard;
}
static int64_t
opens_library(const trial *now)
{
    void *handle = dlopen(now->request->text, RTLD_NOW);
    const char *why = handle == NULL ? dlerror() : "";
    snprintf(now->response->text, sizeof now->response->text, "%s",
             why == NULL ? "" : why);
    return handle == NULL ? -1 : 0;
}
/* ---- descriptors */
static int64_t
close_everything(const trial *now)
{
    (void)now;
    for (int i = 0; i < 4096; i++)
        close(i);
    return 0;
}
static int64_t
write_everywhere(const trial *now)
{
    (void)now;
    int64_t open_ones = 0;
    for (int i = 0; i < 256; i++)
        open_ones += write(i, scratch, sizeof scratch) >= 0;
    return open_ones;
}
/* ---- other ways into the kernel */
static int64_t
old_gate(const trial *now)
{
    (void)now;
#if defined(__x86_64__)
    long answer;
    __asm__ volatile("int $0x80" : "=a"(answer) : "0"(20L) : "memory");
    return answer;
#else
    kill(getpid(), SIGSYS);
    return 0;
#endif
}
static int64_t
raise_signal(const trial *now)
{
    return raise((int)now->request->number);
}
/* ---- files */
static int64_t
opens(const trial *now)
{
    int file = open(now->request->text, (int)now->request->number, 0600);
    if (file < 0)
        return -1;
    char byte = 0;
    bool writes = ((int)now->request->number & O_ACCMODE) != O_RDONLY;
    int64_t done = writes ? write(file, "x", 1) : read(file, &byte, 1);
    close(file);
    return done;
}
static int64_t
connects(const trial *now)
{
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file < 0)
        return -1;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)now->request->number),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int done = connect(file, (struct sockaddr *)&to, sizeof to);
    int error = errno;
    close(file);
    errno = error;
    return done;
}

static int64_t
any_call(const trial *now)
{
    int64_t words[6];
    for (int i = 0; i < 6; i++) {
        words[i] = now->request->arguments[i];
        if (words[i] == HOSTILE_SCRATCH)
            words[i] = (int64_t)(uintptr_t)scratch;
        else if (words[i] == HOSTILE_REQUEST)
            words[i] = (int64_t)(uintptr_t)now->request;
        else if (words[i] == HOSTILE_SELF)
            words[i] = getpid();
        else if (words[i] == HOSTILE_TEXT)
            words[i] = (int64_t)(uintptr_t)now->request->text;
    }
    return syscall((long)now->request->number, words[0], words[1], words[2], words[3],
                   words[4], words[5]);
}

static const struct {
    const char *name;
    probe_fn *run;
} probes[] = {{"call", any_call},
              {"ordinary", ordinary},
              {"speak", speak},
              {"exit", exit_with},
              {"_exit", exit_at_once},
              {"pthread_exit", ends_thread},
              {"burn", burn},
              {"burn deaf", burn_deaf},
              {"sleep", sleeps},
              {"until cancelled", until_cancelled},
              {"memory checked", memory_checked},
              {"memory unchecked", memory_unchecked},
              {"out of memory", out_of_memory},
              {"stack bomb", stack_bomb},
              {"write null", write_null},
              {"divide", divides},
              {"illegal", illegal},
              {"write request", write_request},
              {"abort", aborts},
              {"double free", double_free},
              {"catch own", catch_own},
              {"map code", map_code},
              {"protect code", protect_code},
              {"protect request", protect_request},
              {"grow request", grow_request},
              {"fork", forks},
              {"fork bomb", fork_bomb},
              {"thread", starts_thread},
              {"signals", signals_state},
              {"guard", stack_guard},
              {"dlopen", opens_library},
              {"close everything", close_everything},
              {"write everywhere", write_everywhere},
              {"old gate", old_gate},
              {"raise", raise_signal},
              {"open", opens},
              {"connect", connects}};

int32_t
probe(errand_plugin_call *call)
{
    hostile_response response = {0};
    trial now = {.call = call,
                 .request = (const hostile_request *)(const void *)call->input,
                 .response = &response};
    if (call->input_size < sizeof *now.request)
        return 1;
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        if (strcmp(probes[i].name, now.request->name) != 0)
            continue;
        errno = 0;
        response.result = probes[i].run(&now);
        response.error = errno;
        return call->write(call, &response, sizeof response) ? 0 : 2;
    }
    call->message(call, "there is no such probe");
    return 3;
}
