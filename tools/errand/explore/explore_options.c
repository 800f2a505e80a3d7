/* SPDX-License-Identifier: MIT */
/* explore_options: the command line of errand explore. */
#include "explore/explore.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPTION_ORDER = 256,
    OPTION_WORKERS,
    OPTION_REACTOR,
    OPTION_DEADLINE,
    OPTION_SEEDS,
    OPTION_JOBS,
    OPTION_POLICY,
    OPTION_MINIMISE,
    OPTION_BUDGET,
    OPTION_REPORT,
    OPTION_STOP_AFTER,
    OPTION_TIMEOUT,
    OPTION_REPEAT,
    OPTION_KEEP,
    OPTION_SEED,
    OPTION_TAPE,
    OPTION_FROM_STEP,
    OPTION_BRANCHES,
    OPTION_QUIET,
    OPTION_HELP
};

static const struct option table[] = {
    {"order", required_argument, NULL, OPTION_ORDER},
    {"workers", required_argument, NULL, OPTION_WORKERS},
    {"reactor", required_argument, NULL, OPTION_REACTOR},
    {"deadline", required_argument, NULL, OPTION_DEADLINE},
    {"seeds", required_argument, NULL, OPTION_SEEDS},
    {"jobs", required_argument, NULL, OPTION_JOBS},
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"minimise", no_argument, NULL, OPTION_MINIMISE},
    {"budget", required_argument, NULL, OPTION_BUDGET},
    {"report", required_argument, NULL, OPTION_REPORT},
    {"stop-after", required_argument, NULL, OPTION_STOP_AFTER},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"repeat", required_argument, NULL, OPTION_REPEAT},
    {"keep", required_argument, NULL, OPTION_KEEP},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"tape", required_argument, NULL, OPTION_TAPE},
    {"from-step", required_argument, NULL, OPTION_FROM_STEP},
    {"branches", required_argument, NULL, OPTION_BRANCHES},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

/* "1000" is 1..1000; "17..17" is one. */
static bool
read_seeds(errand__explore *explore, const char *text)
{
    char first[32] = "1";
    const char *dots = strstr(text, ".."), *last = text;
    if (dots != NULL) {
        snprintf(first, sizeof first, "%.*s", (int)(dots - text), text);
        last = dots + 2;
    }
    if (errand__options_number(first, UINT64_MAX, &explore->first) &&
        errand__options_number(last, UINT64_MAX, &explore->last) &&
        explore->first <= explore->last)
        return true;
    errand__help_problem("--seeds %s: give how many (1000 are the seeds 1 to 1000), or "
                         "the first and the last as 17..42",
                         text);
    return false;
}

static bool
read_count(const char *option, const char *text, uint64_t max, uint64_t *out)
{
    if (errand__options_number(text, max, out) && *out != 0)
        return true;
    errand__help_problem("--%s %s: give a whole number from 1 to %llu", option, text,
                         (unsigned long long)max);
    return false;
}

static bool
read_seed(errand__explore *explore, const char *text)
{
    if (errand__options_number(text, UINT64_MAX, &explore->first)) {
        explore->last = explore->first;
        return true;
    }
    errand__help_problem("--seed %s: a seed is a whole number", text);
    return false;
}

static bool
read_from_step(errand__explore *explore, const char *text)
{
    explore->from_step = ERRAND__FROM_STEP_AUTO;
    if (strcmp(text, "auto") == 0 ||
        (errand__options_number(text, UINT64_MAX - 1, &explore->from_step) &&
         explore->from_step >= 2))
        return true;
    errand__help_problem("--from-step %s: give auto, or the number of a step from 2 on, "
                         "as errand log prints them",
                         text);
    return false;
}

static bool
read_tape(errand__explore *explore, const char *path)
{
    char text[400] = "memory ran out";
    explore->tape_path = path;
    errand_tape_abandon(&explore->tape);
    if (errand_tape_read(path, &explore->tape, text, sizeof text) == ERRAND_OK)
        return true;
    errand__help_problem(
        "--tape %s: %s: give a file that --save-tape or --minimise wrote", path, text);
    return false;
}

static bool
take_values(errand__explore *explore, int option)
{
    uint64_t number = 0;
    bool good = true;
    switch (option) {
    case OPTION_SEEDS:
        return read_seeds(explore, optarg);
    case OPTION_JOBS:
        good = read_count("jobs", optarg, ERRAND__TRIALS_MAX, &number);
        explore->jobs = (uint32_t)number;
        return good;
    case OPTION_REPEAT:
        good = read_count("repeat", optarg, 2, &number);
        explore->repeat = (uint32_t)number;
        return good;
    case OPTION_SEED:
        return read_seed(explore, optarg);
    case OPTION_FROM_STEP:
        return read_from_step(explore, optarg);
    case OPTION_TAPE:
        return read_tape(explore, optarg);
    case OPTION_BRANCHES:
        return read_count("branches", optarg, 10000, &explore->branches);
    case OPTION_STOP_AFTER:
        return read_count("stop-after", optarg, UINT32_MAX, &explore->stop_after);
    case OPTION_BUDGET:
        return errand__options_seconds("budget", optarg, &explore->budget_ns);
    case OPTION_TIMEOUT:
        return errand__options_seconds("timeout", optarg, &explore->timeout_ns);
    case OPTION_DEADLINE:
        explore->deadline = optarg;
        return errand__options_seconds("deadline", optarg, &explore->run.deadline_ns);
    case OPTION_WORKERS:
        return errand__options_workers(&explore->run, optarg);
    case OPTION_REACTOR:
        return errand__options_reactor(&explore->run, optarg);
    default:
        return errand__options_order(&explore->run, optarg);
    }
}

static bool
check_policy(const char *text)
{
    errand_choices choices = ERRAND_CHOICES_INIT;
    char message[160] = "";
    if (errand_choices_parse(&choices, text, 0, message, sizeof message) == ERRAND_OK)
        return true;
    errand__help_problem("--policy %s: %s", text, message);
    return false;
}

static bool
take_option(errand__explore *explore, int option)
{
    switch (option) {
    case OPTION_POLICY:
        explore->policy = optarg;
        return check_policy(optarg);
    case OPTION_MINIMISE:
        explore->minimise = true;
        return true;
    case OPTION_REPORT:
        explore->report_path = optarg;
        return true;
    case OPTION_KEEP:
        explore->keep = optarg;
        return true;
    case OPTION_QUIET:
    case 'q':
        explore->quiet = true;
        return true;
    case OPTION_HELP:
    case 'h':
        explore->help = true;
        return true;
    default:
        return take_values(explore, option);
    }
}

/* What the options say together. */
static bool
check(const errand__explore *explore, int words)
{
    if (words == 0)
        errand__help_problem("explore needs a script: errand explore SCRIPT [ARGUMENTS]");
    else if (strcmp(explore->run.script, "-") == 0)
        errand__help_problem("explore needs a script that is a file, because its lines "
                             "name it: save it first");
    else if (explore->run.order == ERRAND_ORDER_ARRIVAL)
        errand__help_problem("--order arrival: real time decides there, and no seed "
                             "repeats it; use inline or paced");
    else if (explore->from_step != 0 && explore->run.order != ERRAND_ORDER_INLINE)
        errand__help_problem("--from-step: only a run in inline order can be forked");
    else if (explore->tape != NULL && explore->repeat + explore->minimise > 1)
        errand__help_problem("--tape: --repeat and --minimise go through seeds");
    else
        return true;
    return false;
}

/* What is written at the end can be, and takes the place of nothing that is read. */
static bool
check_places(const errand__explore *explore)
{
    const char *path = explore->report_path;
    struct stat kept;
    if (stat(explore->keep, &kept) != 0 || !S_ISDIR(kept.st_mode)) {
        errand__help_problem("--keep %s: there is no such folder: give one",
                             explore->keep);
        return false;
    }
    if (path == NULL)
        return true;
    if (!errand__paths_apart("--report", path, "the script", explore->run.script) ||
        !errand__paths_apart("--report", path, "--tape", explore->tape_path))
        return false;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        errand__help_problem("--report %s: %s: give a file that can be written", path,
                             strerror(errno));
        return false;
    }
    close(fd);
    return true;
}

/* What a tape, or --from-step, means for the rest. */
static void
settle(errand__explore *explore)
{
    if (explore->policy == NULL)
        explore->policy = explore->tape != NULL ? "shuffle" : "portfolio";
    if (explore->tape != NULL)
        explore->last = explore->first;
    if (explore->from_step != 0 && explore->stop_after == 0)
        explore->stop_after = 1;
}

errand_choices
errand__explore_choices(const errand__explore *explore, uint64_t seed)
{
    errand_choices choices = ERRAND_CHOICES_INIT;
    choices.steps = explore->steps;
    if (explore->tape != NULL) {
        choices.provider = ERRAND_PROVIDER_TAPE;
        choices.held_tape = explore->tape;
    }
    errand_status status = errand_choices_parse(&choices, explore->policy, seed, NULL, 0);
    (void)status; /* it was checked when it was read */
    return choices;
}

bool
errand__explore_options_read(int argc, char **argv, errand__explore *out)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    memset(out, 0, sizeof *out);
    out->run.command = ERRAND__COMMAND_RUN;
    out->run.order = ERRAND_ORDER_INLINE;
    out->run.has_seed = true;
    out->run.quiet = true;
    out->first = 1;
    out->last = 1000;
    out->jobs =
        processors > 0 && processors < ERRAND__TRIALS_MAX ? (uint32_t)processors : 1;
    out->repeat = 1;
    out->budget_ns = 60U * 1000000000ULL;
    out->timeout_ns = 60U * 1000000000ULL;
    out->keep = ".";
    out->branches = 20;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":hq", table, NULL)) != -1;) {
        if (option == '?' || option == ':')
            return errand__options_explain(table, option, argv);
        if (!take_option(out, option))
            return false;
    }
    int count = argc - optind;
    if (count > 0) {
        out->run.script = argv[optind];
        out->run.argc = count - 1;
        out->run.argv = argv + optind + 1;
    }
    settle(out);
    return out->help || (check(out, count) && check_places(out));
}
