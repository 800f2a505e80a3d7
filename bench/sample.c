/* SPDX-License-Identifier: MIT */
/* sample: fork, pin, measure, tell, end.  A process that does not answer in time is ended; that
 * sample is a fault, and the report says so. */
#include "sample.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 20000, WARM_NS = 8000000 };

const bench_peer *const bench_peers[BENCH_PEERS] = {&bench_peer_errand, &bench_peer_libuv,
                                                    &bench_peer_glib, &bench_peer_mutex,
                                                    &bench_peer_yardstick};

static const char slow_text[] =
    "no answer in 20 s: an operation was lost, or the machine is busy";

static int tell_fd = -1; /* in a new process: where its answer goes */

/* pin: to the first processors of those that we may use. */
static bool
pin(uint32_t processors)
{
    cpu_set_t all, some;
    CPU_ZERO(&some);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return false;
    for (uint32_t i = 0; i < CPU_SETSIZE && processors > 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &some);
            processors--;
        }
    }
    return processors == 0 && sched_setaffinity(0, sizeof some, &some) == 0;
}

bool
bench_sample_part(void)
{
    cpu_set_t all, ours, theirs;
    CPU_ZERO(&ours);
    CPU_ZERO(&theirs);
    DIR *folder = opendir("/proc/self/task");
    if (folder == NULL || sched_getaffinity(0, sizeof all, &all) != 0)
        return false;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &all))
            CPU_SET(i, CPU_COUNT(&ours) == 0 ? &ours : &theirs);
    }
    bool good = CPU_COUNT(&theirs) == 1 && sched_setaffinity(0, sizeof ours, &ours) == 0;
    for (struct dirent *entry; good && (entry = readdir(folder)) != NULL;) {
        pid_t task = (pid_t)strtol(entry->d_name, NULL, 10);
        if (task > 0 && task != getpid())
            good = sched_setaffinity(task, sizeof theirs, &theirs) == 0;
    }
    closedir(folder);
    return good;
}

static void
fault(bench_sample *sample, const char *text)
{
    if (sample->fault.text[0] == '\0')
        snprintf(sample->fault.text, sizeof sample->fault.text, "%s", text);
}

static void
write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t wrote = write(fd, at, size);
        if (wrote < 0 && errno != EINTR)
            _exit(3);
        if (wrote > 0) {
            at += wrote;
            size -= (size_t)wrote;
        }
    }
}

/* read_answer: false: the process ended or did not answer in time. */
static bool
read_answer(int fd, void *data, size_t size, const char **out_why)
{
    char *at = data;
    uint64_t limit = bench_now() + (uint64_t)LIMIT_MS * 1000000u;
    while (size > 0) {
        uint64_t now = bench_now();
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        if (now >= limit || poll(&entry, 1, (int)((limit - now) / 1000000u) + 1) == 0) {
            *out_why = slow_text;
            return false;
        }
        ssize_t got = read(fd, at, size);
        if (got == 0) {
            *out_why = "the process ended without an answer";
            return false;
        }
        if (got > 0) {
            at += got;
            size -= (size_t)got;
        }
    }
    return true;
}

bool
bench_sample_take(const bench_peer *peer, const bench_config *config, bench_sample_fn *fn,
                  bench_watch_fn *watch, bench_sample *out_sample)
{
    *out_sample = (bench_sample){.checked = 0};
    int fds[2];
    fflush(NULL);
    if (pipe(fds) != 0) {
        fault(out_sample, "pipe failed");
        return false;
    }
    pid_t process = fork();
    if (process == 0) {
        close(fds[0]);
        tell_fd = fds[1];
        if (!pin(config->processors))
            fault(out_sample, "fewer processors than asked for");
        else
            fn(peer, config, out_sample);
        write_all(tell_fd, out_sample, sizeof *out_sample);
        _exit(0);
    }
    close(fds[1]);
    if (process < 0) {
        close(fds[0]);
        fault(out_sample, "fork failed");
        return false;
    }
    bench_sample watched = {.checked = 0};
    if (watch != NULL)
        watch(process, fds[0], &watched);
    const char *why = NULL;
    bench_sample answer;
    if (read_answer(fds[0], &answer, sizeof answer, &why)) {
        *out_sample = answer;
    } else {
        fault(out_sample, why);
        kill(process, SIGKILL);
    }
    if (watch != NULL) {
        memcpy(out_sample->values, watched.values, sizeof watched.values);
        if (watched.fault.text[0] != '\0')
            fault(out_sample, watched.fault.text);
    }
    close(fds[0]);
    int status = 0;
    waitpid(process, &status, 0);
    if (why != NULL && why != slow_text && WIFSIGNALED(status))
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text,
                 "the process was ended by signal %d", WTERMSIG(status));
    return bench_sample_valid(out_sample);
}

void
bench_sample_tell(void)
{
    write_all(tell_fd, "r", 1);
}

bool
bench_sample_valid(const bench_sample *sample)
{
    return sample->checked != 0 && sample->fault.wrong == 0 && sample->fault.lost == 0 &&
           sample->fault.text[0] == '\0';
}

bool
bench_sample_run(const bench_peer *peer, void *world, uint64_t total, bench_run *run,
                 bench_sample *sample)
{
    run->total = run->left = total;
    run->delivered = 0;
    run->last_cycles = bench_cycles();
    if (peer->fill(world, run) && peer->collect(world, run))
        return true;
    fault(sample, run->fault.text);
    return false;
}

void
bench_sample_check(const bench_peer *peer, void *world, const bench_config *config,
                   const bench_run *run, bench_sample *sample)
{
    uint64_t ran = 0, heard = 0;
    for (uint32_t i = 0; i < config->plan.in_flight; i++) {
        const bench_slot *slot = peer->slot(world, i);
        ran += slot->ran;
        heard += slot->heard;
        if (slot->ran != slot->done)
            sample->fault.wrong++;
    }
    sample->fault.wrong += run->fault.wrong;
    if (ran + run->cancelled != heard)
        sample->fault.lost++;
    if (run->fault.text[0] != '\0')
        fault(sample, run->fault.text);
    if (peer->settled != NULL && !peer->settled(world, heard))
        fault(sample, "its own accounts differ, or there was one more completion");
    sample->checked += heard;
}

bench_sample *
bench_table_at(const bench_table *table, uint32_t config, uint32_t peer, uint32_t sample)
{
    return &table->samples[((size_t)config * BENCH_PEERS + peer) * table->sample_count +
                           sample];
}

bench_table *
bench_table_fill(const char *title, const bench_config *configs, uint32_t config_count,
                 uint32_t sample_count, bench_sample_fn *fn, bench_watch_fn *watch,
                 uint32_t skip)
{
    bench_table *table = calloc(1, sizeof *table);
    size_t count = (size_t)config_count * BENCH_PEERS * sample_count;
    bench_sample *samples = calloc(count, sizeof *samples);
    if (table == NULL || samples == NULL)
        abort();
    *table = (bench_table){.configs = configs,
                           .config_count = config_count,
                           .sample_count = sample_count,
                           .samples = samples};
    uint32_t hung = 0; /* peers: one hang costs enough */
    bool shown = isatty(STDERR_FILENO) != 0;
    uint64_t done = 0;
    for (uint32_t s = 0; s < sample_count; s++) {
        for (uint32_t c = 0; c < config_count; c++) {
            for (uint32_t p = 0; p < BENCH_PEERS; p++, done++) {
                bench_sample *sample = bench_table_at(table, c, p, s);
                sample->absent = (skip >> p & 1) != 0;
                if (shown)
                    fprintf(stderr, "\r%-12s %3u %%", title,
                            (unsigned)(done * 100 / count));
                if (sample->absent)
                    continue;
                if ((hung >> p & 1) != 0) {
                    fault(sample,
                          "not taken: an earlier sample of this case had no answer");
                    continue;
                }
                bench_sample_take(bench_peers[p], &configs[c], fn, watch, sample);
                if (strcmp(sample->fault.text, slow_text) == 0)
                    hung |= 1u << p;
            }
        }
    }
    if (shown)
        fprintf(stderr, "\r%*s\r", 20, "");
    return table;
}

void
bench_table_destroy(bench_table *table)
{
    free(table->samples);
    free(table);
}

void
bench_sample_rate(const bench_peer *peer, const bench_config *config,
                  bench_sample *out_sample)
{
    bench_set_job(config->job_ns);
    void *world = peer->open(&config->plan);
    if (world == NULL) {
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text, "open failed");
        return;
    }
    bench_run run = {.total = 0};
    uint64_t total = 2 * (uint64_t)config->plan.in_flight, took;
    for (;; total *= 2) {
        uint64_t from = bench_now();
        if (!bench_sample_run(peer, world, total, &run, out_sample))
            return;
        took = bench_now() - from;
        if (took >= WARM_NS)
            break;
    }
    if (config->apart && !bench_sample_part()) {
        snprintf(out_sample->fault.text, sizeof out_sample->fault.text,
                 "cannot be kept apart");
        return;
    }
    total = (uint64_t)((double)total * config->measure_ms * 1e6 / (double)took) + 1;
    uint64_t from = bench_now();
    if (!bench_sample_run(peer, world, total, &run, out_sample))
        return;
    took = bench_now() - from;
    out_sample->values[0] = (double)total / ((double)took / 1000);
    bench_sample_check(peer, world, config, &run, out_sample);
}
