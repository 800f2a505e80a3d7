/* SPDX-License-Identifier: MIT */
/* net: echo and accepts on one thread, over the loopback, beside libuv and liburing alone.  The load
 * is a process of its own on the second processor, the same for all. */
#include "net.h"
#include "report.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ECHOES = 3, CONFIGS = 4, LIBUV = 1, RING = 4, RATE = 0, TIME = 1 };
static const uint32_t connections[ECHOES] = {1, 64, 1024};

static uint64_t
processor_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Onto the first or the second of the processors that we have. */
static void
keep_on(int which)
{
    cpu_set_t all, one;

    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        return;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && which-- == 0)
            CPU_SET(i, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static int
open_listener(uint16_t *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 4096) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return -1;
    *out_port = ntohs(address.sin_port);
    return fd;
}

/* One sample: the listener, the load's process, and where that writes its answer. */
typedef struct scene {
    const bench_config *config;
    bench_sample *out;
    int listener, ends[2];
    uint64_t total; /* accepts */
    pid_t load;
} scene;

static bool
begin(scene *self)
{
    struct rlimit files;
    uint16_t port;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    self->listener = open_listener(&port);
    if (self->listener < 0 || pipe(self->ends) != 0 || (self->load = fork()) < 0)
        return false;
    keep_on(self->load == 0 ? 1 : 0);
    if (self->load != 0) {
        close(self->ends[1]);
        return true;
    }
    net_answer answer = {.ns = 0};
    if (self->total == 0)
        net_load_echo(port, self->config->plan.in_flight, self->config->measure_ms,
                      &answer);
    else
        net_load_accepts(port, self->total, &answer);
    _exit(write(self->ends[1], &answer, sizeof answer) == sizeof answer ? 0 : 1);
}

static void
end(scene *self, uint64_t served, uint64_t wrong, uint64_t used_ns)
{
    net_answer answer = {.ns = 0};
    bool heard = read(self->ends[0], &answer, sizeof answer) == sizeof answer;

    waitpid(self->load, NULL, 0);
    if (!heard || answer.ns == 0 || answer.total == 0) {
        snprintf(self->out->fault.text, sizeof self->out->fault.text,
                 "the load did not answer");
        return;
    }
    self->out->values[RATE] = (double)answer.counted * 1000 / (double)answer.ns;
    self->out->values[TIME] = (double)used_ns / (double)answer.total;
    self->out->checked = answer.total;
    self->out->fault.wrong = answer.wrong + wrong;
    self->out->fault.lost =
        served > answer.total ? served - answer.total : answer.total - served;
}

static void
sample_echo(scene *self, net_echo_fn *serve)
{
    static int fds[NET_CONNECTIONS_MAX];
    const int one = 1;
    net_echo echo = {.fds = fds, .count = self->config->plan.in_flight};

    for (uint32_t i = 0; i < echo.count; i++) {
        fds[i] = accept(self->listener, NULL, NULL);
        if (fds[i] < 0)
            return;
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    uint64_t before = processor_ns();
    if (serve(&echo, self->out->fault.text, sizeof self->out->fault.text))
        end(self, echo.bytes / NET_MESSAGE, echo.wrong, processor_ns() - before);
}

static void
sample_accepts(scene *self, net_accepts_fn *serve)
{
    net_accepts accepts = {.listener = self->listener, .left = self->total};
    uint64_t before = processor_ns();

    if (serve(&accepts, self->out->fault.text, sizeof self->out->fault.text))
        end(self, accepts.done, accepts.wrong, processor_ns() - before);
}

static void
sample(const bench_peer *peer, const bench_config *config, bench_sample *out)
{
    bool accepts = config->plan.workers == 0;
    scene self = {.config = config,
                  .out = out,
                  .total = accepts ? config->measure_ms * (uint64_t)40 : 0};
    net_echo_fn *echo = peer == &bench_peer_errand  ? net_echo_errand
                        : peer == &bench_peer_libuv ? net_echo_libuv
                                                    : net_echo_ring;
    net_accepts_fn *accept = peer == &bench_peer_errand  ? net_accepts_errand
                             : peer == &bench_peer_libuv ? net_accepts_libuv
                                                         : net_accepts_ring;

    if (!begin(&self))
        snprintf(out->fault.text, sizeof out->fault.text, "no listener, or no process");
    else if (accepts)
        sample_accepts(&self, accept);
    else
        sample_echo(&self, echo);
}

static void
add_row(bench_report *report, const bench_table *table, uint32_t config, uint32_t peer,
        uint32_t value)
{
    bench_pairing pairing = {.table = table,
                             .errand_config = config,
                             .peer_config = config,
                             .peer = peer,
                             .value = value,
                             .more_is_better = value == RATE};
    const char *work = value == RATE     ? table->configs[config].work
                       : config < ECHOES ? "echo, processor time"
                                         : "accepts, processor time";
    bench_row *row =
        bench_report_pair(report, "net", work, value == RATE ? "M/s" : "ns", &pairing);

    if (row == NULL)
        return;
    row->workers = 0;
    if (peer == RING)
        snprintf(row->peer, sizeof row->peer, "liburing");
    bench_row_aim(row, BENCH_AIM_RATIO, peer == RING ? 0.8 : 1.0);
}

void
bench_case_net(const bench_options *options, bench_report *report)
{
    static bench_config configs[CONFIGS];
    uint32_t samples = options->samples != 0 ? options->samples : options->quick ? 3 : 7;

    for (uint32_t c = 0; c < CONFIGS; c++)
        configs[c] = (bench_config){
            .work = c < ECHOES ? "echo of 64 bytes" : "accepts",
            .plan = {.workers = c < ECHOES,
                     .in_flight = c < ECHOES ? connections[c] : NET_WINDOW},
            .processors = 2,
            .measure_ms = options->quick ? 300 : 1000};
    bench_table *table = bench_table_fill("net", configs, CONFIGS, samples, sample, NULL,
                                          ~(1u | 1u << LIBUV | 1u << RING));
    for (uint32_t c = 0; c < CONFIGS; c++) {
        for (uint32_t value = RATE; value <= TIME; value++) {
            add_row(report, table, c, LIBUV, value);
            add_row(report, table, c, RING, value);
        }
    }
    bench_table_destroy(table);
}
