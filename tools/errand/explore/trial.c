/* SPDX-License-Identifier: MIT */
/* trial: one run in a child, its output captured, its verdict read from a pipe.
 *
 * Design notes.  The parent has one thread and no runtime, so fork is a clean start.  A child
 * leads a process group of its own: the terminal's Ctrl-C does not reach it, and what it
 * leaves in the group is killed with it.  Commands have groups of their own; the parent is a
 * subreaper, so they become its children when their parent dies, and the sweep kills them.
 * A child's end is seen by its pidfd, and it is killed by PDEATHSIG if the parent dies first. */
#include "explore/marks.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_KEPT ((size_t)16384)
#define SENT_MAX    ((size_t)256 << 20)
/* Reads in a row: what a killed trial may have left in a pipe, and no more, since who holds the
 * pipe may write faster than this process reads. */
#define READS_MAX  128
#define SWEEPS_MAX 256 /* deeper trees are made on purpose */

uint64_t
errand__trial_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* ---- the child's side ------------------------------------------------------------------------- */

static void
become_child(errand__trial *trial, int verdict_fd, int output_fd)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    if (getppid() == 1)
        _exit(ERRAND__EXIT_REFUSED); /* the parent died before PDEATHSIG was set */
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        signal(numbers[i], SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(output_fd, STDOUT_FILENO) < 0 || dup2(output_fd, STDERR_FILENO) < 0)
        _exit(ERRAND__EXIT_REFUSED);
    close(nothing);
    close(output_fd);
    if (trial->words != NULL) {
        execv("/proc/self/exe", trial->words);
        _exit(ERRAND__EXIT_REFUSED);
    }
    trial->options.verdict_fd = verdict_fd;
    trial->options.held_choices = &trial->choices;
    exit(errand__run_script(&trial->options));
}

/* ---- the parent's side -------------------------------------------------------------------------- */

static void
close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* A child that nobody could wait for. */
static void
give_up(const errand__trial *trial)
{
    int error = errno;
    kill(trial->pid, SIGKILL);
    while (waitpid(trial->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    errno = error;
}

bool
errand__trial_start(errand__trial *trial)
{
    int verdict[2] = {-1, -1}, output[2] = {-1, -1};
    trial->process_fd = -1;
    trial->output = malloc(2 * OUTPUT_KEPT + 1);
    if (trial->output == NULL || pipe2(verdict, O_CLOEXEC) != 0 ||
        pipe2(output, O_CLOEXEC) != 0)
        goto refused;
    trial->output_size = 0;
    trial->sent_size = 0;
    trial->deadline_ns = errand__trial_now() + trial->timeout_ns;
    fflush(stdout);
    if (trial->from != NULL)
        trial->pid = errand__marks_wake(trial->from, trial->mark, trial->options.seed,
                                        verdict[1], output[1]);
    else
        trial->pid = fork();
    if (trial->pid == 0)
        become_child(trial, verdict[1], output[1]);
    if (trial->pid < 0)
        goto refused;
    setpgid(trial->pid, trial->pid);
    close_fd(&verdict[1]);
    close_fd(&output[1]);
    trial->process_fd = pidfd_open(trial->pid, 0);
    if (trial->process_fd < 0) {
        give_up(trial);
        goto refused;
    }
    trial->verdict_fd = verdict[0];
    trial->output_fd = output[0];
    fcntl(verdict[0], F_SETFL, O_NONBLOCK);
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    trial->running = true;
    return true;
refused:
    errand__help_problem("another process could not be started: %s: use fewer --jobs",
                         strerror(errno));
    for (int i = 0; i < 2; i++) {
        close_fd(&verdict[i]);
        close_fd(&output[i]);
    }
    free(trial->output);
    trial->output = NULL;
    return false;
}

/* Keeps the last OUTPUT_KEPT bytes at least. */
static void
read_output(errand__trial *trial)
{
    for (int i = 0; i < READS_MAX; i++) {
        if (trial->output_size == 2 * OUTPUT_KEPT) {
            memmove(trial->output, trial->output + OUTPUT_KEPT, OUTPUT_KEPT);
            trial->output_size = OUTPUT_KEPT;
        }
        ssize_t got = read(trial->output_fd, trial->output + trial->output_size,
                           2 * OUTPUT_KEPT - trial->output_size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            close_fd(&trial->output_fd);
        if (got <= 0)
            return;
        trial->output_size += (size_t)got;
    }
}

static void
read_verdict(errand__trial *trial)
{
    for (;;) {
        if (trial->sent_size == trial->sent_room) {
            size_t room = trial->sent_room == 0 ? 4096 : trial->sent_room * 2;
            char *sent = room > SENT_MAX ? NULL : realloc(trial->sent, room);
            if (sent == NULL) { /* the child gets EPIPE, and the verdict is torn */
                close_fd(&trial->verdict_fd);
                return;
            }
            trial->sent = sent;
            trial->sent_room = room;
        }
        ssize_t got = read(trial->verdict_fd, trial->sent + trial->sent_size,
                           trial->sent_room - trial->sent_size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            close_fd(&trial->verdict_fd);
        if (got <= 0)
            return;
        trial->sent_size += (size_t)got;
    }
}

/* The last line that is not empty. */
static const char *
last_line(char *text)
{
    size_t end = strlen(text);
    while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '))
        end--;
    text[end] = '\0';
    const char *line = strrchr(text, '\n');
    return line != NULL ? line + 1 : text;
}

/* What a crash printed last is shown as it is; as a message its digits are #. */
static void
keep_output(errand__trial *trial)
{
    const char *line = last_line(trial->output);
    char *text = NULL;
    if (line[0] == '\0' || asprintf(&text, "the last line that it printed: %s", line) < 0)
        return;
    free(trial->verdict.text);
    trial->verdict.text = text;
}

/* How a trial ended that left no verdict, or crashed after it. */
static void
judge_process(errand__trial *trial)
{
    errand__fingerprint *found = &trial->fingerprint, said;
    errand__fingerprint_ended(trial->wait_status, found);
    if (trial->timed_out) {
        memset(found, 0, sizeof *found);
        found->class = ERRAND__CLASS_TIMEOUT;
        snprintf(found->message, sizeof found->message,
                 "the run took more real time than --timeout allows");
    } else if (found->class == ERRAND__CLASS_CRASH) {
        errand__fingerprint_make(found->class, last_line(trial->output), &said);
        snprintf(found->message, sizeof found->message, "%s", said.message);
        keep_output(trial);
    } else if (found->class == ERRAND__CLASS_EXIT) {
        snprintf(found->message, sizeof found->message, "the script left by os.exit");
    }
}

static void
judge(errand__trial *trial)
{
    int status = trial->wait_status;
    trial->output[trial->output_size] = '\0';
    bool read = errand__verdict_read(trial->sent, trial->sent_size, &trial->verdict);
    if (!read || trial->timed_out || WIFSIGNALED(status) ||
        trial->verdict.class == ERRAND__CLASS_EXIT)
        judge_process(trial);
    else
        errand__fingerprint_make(trial->verdict.class, trial->verdict.text,
                                 &trial->fingerprint);
}

static void
end(errand__trial *trial)
{
    kill(-trial->pid, SIGKILL); /* what is left of its group; it still holds the number */
    while (waitpid(trial->pid, &trial->wait_status, 0) < 0 && errno == EINTR)
        continue;
    if (trial->output_fd >= 0)
        read_output(trial);
    if (trial->verdict_fd >= 0)
        read_verdict(trial);
    close_fd(&trial->process_fd);
    close_fd(&trial->output_fd);
    close_fd(&trial->verdict_fd);
    trial->running = false;
    judge(trial);
}

void
errand__trial_kill(errand__trial *trial)
{
    if (trial->running) {
        kill(-trial->pid, SIGKILL);
        kill(trial->pid, SIGKILL);
    }
}

/* What is waited for: the open descriptors alone, since ppoll refuses more entries than a process
 * may have open. */
typedef struct watched {
    struct pollfd fds[3 * ERRAND__TRIALS_MAX];
    size_t count;
} watched;

static void
watch_fd(watched *list, int fd)
{
    if (fd >= 0)
        list->fds[list->count++] = (struct pollfd){fd, POLLIN, 0};
}

static bool
is_ready(const watched *list, int fd)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->fds[i].fd == fd)
            return list->fds[i].revents != 0;
    return false;
}

/* Returns when the first trial runs out of time. */
static uint64_t
gather_fds(errand__trial *trials, size_t count, watched *list, uint64_t until_ns)
{
    uint64_t now = errand__trial_now();
    list->count = 0;
    for (size_t i = 0; i < count; i++) {
        errand__trial *trial = &trials[i];
        bool running = trial->running;
        if (running && now >= trial->deadline_ns && !trial->timed_out) {
            trial->timed_out = true;
            errand__trial_kill(trial);
        }
        if (running && !trial->timed_out && trial->deadline_ns < until_ns)
            until_ns = trial->deadline_ns;
        if (!running)
            continue;
        watch_fd(list, trial->process_fd);
        watch_fd(list, trial->output_fd);
        watch_fd(list, trial->verdict_fd);
    }
    return until_ns;
}

errand__trial *
errand__trial_wait(errand__trial *trials, size_t count, uint64_t until_ns)
{
    watched list;
    for (;;) {
        uint64_t now = errand__trial_now();
        uint64_t until = gather_fds(trials, count, &list, until_ns);
        uint64_t left = until > now ? until - now : 0;
        struct timespec wait = {(time_t)(left / 1000000000U), (long)(left % 1000000000U)};
        sigset_t
            none; /* explore.c blocks its signals elsewhere, so that none is missed */
        sigemptyset(&none);
        int ready = ppoll(list.fds, list.count, &wait, &none);
        for (size_t i = 0; ready > 0 && i < count; i++) {
            if (!trials[i].running)
                continue;
            if (is_ready(&list, trials[i].output_fd))
                read_output(&trials[i]);
            if (is_ready(&list, trials[i].verdict_fd))
                read_verdict(&trials[i]);
            if (is_ready(&list, trials[i].process_fd)) {
                end(&trials[i]);
                return &trials[i];
            }
        }
        if (ready < 0 || (ready == 0 && now >= until_ns))
            return NULL;
    }
}

void
errand__trial_fini(errand__trial *trial)
{
    errand__verdict_fini(&trial->verdict);
    free(trial->output);
    free(trial->sent);
    memset(trial, 0, sizeof *trial);
}

/* Returns how many were killed. */
static size_t
sweep_once(const errand__trial *trials, size_t count)
{
    FILE *file = fopen("/proc/thread-self/children", "re");
    size_t killed = 0;
    int pid;
    while (file != NULL && fscanf(file, "%d", &pid) == 1) {
        bool known = false;
        for (size_t i = 0; i < count; i++)
            known = known || (trials[i].running && trials[i].pid == pid);
        if (!known && kill(pid, SIGKILL) == 0) {
            waitpid(pid, NULL, 0);
            killed++;
        }
    }
    if (file != NULL)
        fclose(file);
    return killed;
}

void
errand__trial_sweep(const errand__trial *trials, size_t count)
{
    /* The children of who is killed become this process's, so it looks again. */
    for (int i = 0; i < SWEEPS_MAX && sweep_once(trials, count) > 0; i++)
        continue;
}
