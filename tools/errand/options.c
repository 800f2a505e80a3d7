/* SPDX-License-Identifier: MIT */
/* options: the command line.
 *
 * Design notes.  getopt_long finds options among the other words; a script's own words that
 * begin with "-" stand behind "--".  Every message names the word that was wrong and the mend. */
#include "program.h"
#include <getopt.h>
#include <string.h>

enum {
    OPTION_ORDER = 256,
    OPTION_SEED,
    OPTION_WORKERS,
    OPTION_REACTOR,
    OPTION_DEADLINE,
    OPTION_NO_CATCH,
    OPTION_TRACE,
    OPTION_POLICY,
    OPTION_TAPE,
    OPTION_SAVE_TAPE,
    OPTION_RECORD,
    OPTION_RECORD_PAYLOADS,
    OPTION_REPLAY,
    OPTION_JSON,
    OPTION_BYTES,
    OPTION_STATS,
    OPTION_TRAPS,
    OPTION_QUIET,
    OPTION_TREE,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option table[] = {
    {"order", required_argument, NULL, OPTION_ORDER},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"workers", required_argument, NULL, OPTION_WORKERS},
    {"reactor", required_argument, NULL, OPTION_REACTOR},
    {"deadline", required_argument, NULL, OPTION_DEADLINE},
    {"no-catch", no_argument, NULL, OPTION_NO_CATCH},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"tape", required_argument, NULL, OPTION_TAPE},
    {"save-tape", required_argument, NULL, OPTION_SAVE_TAPE},
    {"record", required_argument, NULL, OPTION_RECORD},
    {"record-payloads", no_argument, NULL, OPTION_RECORD_PAYLOADS},
    {"replay", required_argument, NULL, OPTION_REPLAY},
    {"json", no_argument, NULL, OPTION_JSON},
    {"bytes", no_argument, NULL, OPTION_BYTES},
    {"stats", no_argument, NULL, OPTION_STATS},
    {"traps", required_argument, NULL, OPTION_TRAPS},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"tree", required_argument, NULL, OPTION_TREE},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

/* What only a seeded run has, and what it means for the order. */
static bool
settle_order(errand__options *options, bool ordered)
{
    const char *seeded = options->policy != NULL           ? "--policy"
                         : options->tape_path != NULL      ? "--tape"
                         : options->save_tape_path != NULL ? "--save-tape"
                                                           : NULL;
    if ((options->has_seed || seeded != NULL) && !ordered)
        options->order = ERRAND_ORDER_PACED;
    if (seeded == NULL || options->order != ERRAND_ORDER_ARRIVAL)
        return true;
    errand__help_problem(
        "%s: in arrival order real workers decide: use --order inline or paced", seeded);
    return false;
}

/* A log knows all that. */
static bool
settle_replay(const errand__options *options, bool ordered)
{
    const char *given = ordered                   ? "--order"
                        : options->has_seed       ? "--seed"
                        : options->policy != NULL ? "--policy"
                                                  : NULL;
    if (options->replay_path == NULL || given == NULL)
        return true;
    errand__help_problem("--replay: leave out %s: it is the log's", given);
    return false;
}

/* ---- words -------------------------------------------------------------------------------- */

/* "--se" is short for several: names them.  false = it is short for none. */
static bool
explain_short(const struct option *known, const char *word)
{
    char names[128] = "";
    size_t length = strcspn(word, "="), count = 0;
    if (length < 2 || strncmp(word, "--", 2) != 0)
        return false;
    for (const struct option *option = known; option->name != NULL; option++) {
        if (strncmp(option->name, word + 2, length - 2) != 0)
            continue;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s--%s", count++ == 0 ? "" : ", ",
                 option->name);
    }
    if (count > 0)
        errand__help_problem("%.*s is short for several options: write one of %s",
                             (int)length, word, names);
    return count > 0;
}

bool
errand__options_explain(const struct option *known, int problem, char **argv)
{
    const char *word = argv[optind - 1];
    const char *name = "";
    for (const struct option *option = known; option->name != NULL; option++) {
        if (option->val == optopt)
            name = option->name;
    }
    if (problem == ':' && *name != '\0')
        errand__help_problem("--%s needs a value: see errand help", name);
    else if (*name != '\0')
        errand__help_problem("--%s takes no value: leave out what follows the =", name);
    else if (optopt != 0)
        errand__help_problem(
            "there is no option -%c: see errand help; words for the script "
            "that begin with - stand behind --",
            optopt);
    else if (!explain_short(known, word))
        errand__help_problem("there is no option %s: see errand help; words for the "
                             "script that begin with - stand behind --",
                             word);
    return false;
}

typedef struct option_state {
    errand__options *options;
    bool ordered, help, version;
} option_state;

static bool
take_option(option_state *state, int option)
{
    errand__options *options = state->options;
    switch (option) {
    case OPTION_ORDER:
        state->ordered = true;
        return errand__options_order(options, optarg);
    case OPTION_SEED:
        return errand__options_seed(options, optarg);
    case OPTION_WORKERS:
        return errand__options_workers(options, optarg);
    case OPTION_REACTOR:
        return errand__options_reactor(options, optarg);
    case OPTION_DEADLINE:
        return errand__options_seconds("deadline", optarg, &options->deadline_ns);
    case OPTION_NO_CATCH:
        options->no_catch = true;
        break;
    case OPTION_TRACE:
        options->trace_path = optarg;
        break;
    case OPTION_POLICY:
        return errand__options_policy(options, optarg);
    case OPTION_TAPE:
    case OPTION_SAVE_TAPE:
        *(option == OPTION_TAPE ? &options->tape_path : &options->save_tape_path) =
            optarg;
        break;
    case OPTION_RECORD:
        options->record_path = optarg;
        break;
    case OPTION_RECORD_PAYLOADS:
        options->record_payloads = true;
        break;
    case OPTION_REPLAY:
        options->replay_path = optarg;
        break;
    case OPTION_JSON:
    case OPTION_BYTES:
        *(option == OPTION_JSON ? &options->json : &options->bytes) = true;
        break;
    case OPTION_STATS:
        options->stats = true;
        break;
    case OPTION_TRAPS:
        return errand__options_traps(options, optarg);
    case OPTION_TREE:
        options->tree = optarg;
        break;
    case OPTION_QUIET:
    case 'q':
        options->quiet = true;
        break;
    case OPTION_HELP:
    case 'h':
        state->help = true;
        break;
    case OPTION_VERSION:
        state->version = true;
        break;
    }
    return true;
}

static bool
read_command(errand__options *options, const char *word)
{
    static const struct {
        const char *name;
        errand__command command;
    } commands[] = {
        {"run", ERRAND__COMMAND_RUN},   {"tour", ERRAND__COMMAND_TOUR},
        {"help", ERRAND__COMMAND_HELP}, {"version", ERRAND__COMMAND_VERSION},
        {"log", ERRAND__COMMAND_LOG},   {"diff", ERRAND__COMMAND_DIFF},
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(word, commands[i].name) == 0) {
            options->command = commands[i].command;
            return true;
        }
    }
    size_t length = strlen(word);
    if (length > 4 && strcmp(word + length - 4, ".lua") == 0)
        errand__help_problem("there is no command '%s': to run a script, errand run %s",
                             word, word);
    else
        errand__help_problem(
            "there is no command '%s': use run, explore, tour, log, diff, "
            "call, doctor, help or version",
            word);
    return false;
}

static bool
read_logs(errand__options *options, int count, char **words)
{
    int needed = options->command == ERRAND__COMMAND_LOG ? 1 : 2;
    if (count != needed) {
        errand__help_problem(needed == 1 ? "log needs one log: errand log FILE"
                                         : "diff needs two logs: errand diff A B");
        return false;
    }
    for (int i = 0; i < count; i++)
        options->logs[i] = words[i];
    return true;
}

/* What is left when the options are out: the command and its words. */
static bool
read_words(errand__options *options, int count, char **words)
{
    const char *command = count > 0 ? words[0] : "";
    switch (options->command) {
    case ERRAND__COMMAND_RUN:
        if (count < 2) {
            errand__help_problem("run needs a script: errand run SCRIPT [ARGUMENTS], or "
                                 "errand tour to see one");
            return false;
        }
        if (options->tree != NULL) {
            errand__help_problem(
                "--tree belongs to errand tour: cd to the folder instead");
            return false;
        }
        options->script = words[1];
        options->argc = count - 2;
        options->argv = words + 2;
        return true;
    case ERRAND__COMMAND_LOG:
    case ERRAND__COMMAND_DIFF:
        return read_logs(options, count - 1, words + 1);
    case ERRAND__COMMAND_HELP:
        options->topic = count > 1 ? words[1] : NULL;
        if (count <= 2)
            return true;
        break;
    default:
        if (count <= 1)
            return true;
        break;
    }
    errand__help_problem("%s takes no '%s': see errand help %s", command,
                         words[count - 1], command);
    return false;
}

bool
errand__options_read(int argc, char **argv, errand__options *out_options)
{
    memset(out_options, 0, sizeof *out_options);
    option_state state = {.options = out_options};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":hq", table, NULL)) != -1;) {
        if (option == '?' || option == ':')
            return errand__options_explain(table, option, argv);
        if (!take_option(&state, option))
            return false;
    }
    if (!settle_replay(out_options, state.ordered) ||
        !settle_order(out_options, state.ordered))
        return false;
    if (out_options->record_payloads && out_options->record_path == NULL) {
        errand__help_problem("--record-payloads needs --record FILE");
        return false;
    }
    int count = argc - optind;
    char **words = argv + optind;
    if (state.help || state.version) {
        out_options->command =
            state.help ? ERRAND__COMMAND_HELP : ERRAND__COMMAND_VERSION;
        out_options->topic = state.help && count > 0 ? words[0] : NULL;
        return true;
    }
    if (count == 0) {
        errand__help_problem(
            "no command was given: try errand tour, errand run SCRIPT or "
            "errand help");
        return false;
    }
    return read_command(out_options, words[0]) && read_words(out_options, count, words);
}
