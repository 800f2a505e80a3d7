/* SPDX-License-Identifier: MIT */
/* call_options: the command line of errand call.
 *
 * Design notes.  Options come before LIB, so that arguments may begin with "-".  Options of the
 * sandbox ask for it: they are refused with --isolation thread. */
#include "call/call.h"
#include <errno.h>
#include <limits.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_ISOLATION = 256,
    OPTION_PROMISE,
    OPTION_PATH,
    OPTION_PORT,
    OPTION_MEMORY,
    OPTION_CPU,
    OPTION_INPUT,
    OPTION_OUTPUT,
    OPTION_DEADLINE,
    OPTION_WORKER,
    OPTION_REPORT,
    OPTION_HELP
};
static const struct option table[] = {
    {"isolation", required_argument, NULL, OPTION_ISOLATION},
    {"promise", required_argument, NULL, OPTION_PROMISE},
    {"path", required_argument, NULL, OPTION_PATH},
    {"port", required_argument, NULL, OPTION_PORT},
    {"memory", required_argument, NULL, OPTION_MEMORY},
    {"cpu", required_argument, NULL, OPTION_CPU},
    {"input", required_argument, NULL, OPTION_INPUT},
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"deadline", required_argument, NULL, OPTION_DEADLINE},
    {"worker", required_argument, NULL, OPTION_WORKER},
    {"report-denied", no_argument, NULL, OPTION_REPORT},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static bool
read_promises(errand__call_options *options, const char *text)
{
    char why[256];
    uint32_t promises = 0;

    if (errand_promises_parse(text, &promises, why, sizeof why) != ERRAND_OK) {
        errand__help_problem("--promise: %s", why);
        return false;
    }
    options->policy.promises |= promises;
    return true;
}

/* "64M": bytes, or with K, M, G. */
static bool
read_size(const char *option, const char *text, uint64_t *out_bytes)
{
    static const char units[] = "KMG";
    char number[32];
    size_t length = strlen(text);
    const char *unit =
        length > 0 && length < sizeof number ? strchr(units, text[length - 1]) : NULL;

    memset(number, 0, sizeof number);
    if (length < sizeof number)
        memcpy(number, text, unit != NULL ? length - 1 : length);
    unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
    if (!errand__options_number(number, UINT64_C(1) << (40 - shift), out_bytes) ||
        *out_bytes == 0) {
        errand__help_problem(
            "--%s %s: give a number of bytes, as 64M or 1048576, at most 1024G", option,
            text);
        return false;
    }
    *out_bytes <<= shift;
    return true;
}

/* PATH or PATH=rw */
static bool
read_path(errand__call_options *options, char *text)
{
    size_t at = options->policy.path_count;
    char *rights = strrchr(text, '=');
    uint32_t bits = ERRAND_PATH_READ;
    bool given = false;

    if (at == sizeof options->paths / sizeof options->paths[0]) {
        errand__help_problem("--path: at most 16");
        return false;
    }
    if (rights != NULL && rights[1] != '\0' &&
        rights[1 + strspn(rights + 1, "rwx")] == '\0') {
        bits = (strchr(rights + 1, 'r') != NULL ? ERRAND_PATH_READ : 0) |
               (strchr(rights + 1, 'w') != NULL ? ERRAND_PATH_WRITE : 0) |
               (strchr(rights + 1, 'x') != NULL ? ERRAND_PATH_EXECUTE : 0);
        *rights = '\0';
        given = true;
    }
    /* A worker has another folder, and the library takes whole paths alone. */
    static char places[sizeof options->paths / sizeof options->paths[0]][PATH_MAX];
    char *whole = text[0] == '/' ? text : realpath(text, places[at]);
    if (whole == NULL) {
        errand__help_problem("--path %s: %s", text, strerror(errno));
        return false;
    }
    options->paths[at] = (errand_sandbox_path){whole, bits};
    options->path_words[at] = text;
    options->path_rights[at] = given ? rights + 1 : NULL;
    options->policy.paths = options->paths;
    options->policy.path_count = at + 1;
    return true;
}

static bool
read_port(errand__call_options *options, const char *text)
{
    size_t at = options->policy.port_count;
    uint64_t port;

    if (at == sizeof options->ports / sizeof options->ports[0] ||
        !errand__options_number(text, 65535, &port) || port == 0) {
        errand__help_problem("--port %s: a number from 1 to 65535, at most 16 of them",
                             text);
        return false;
    }
    options->ports[at] = (uint16_t)port;
    options->policy.tcp_ports = options->ports;
    options->policy.port_count = at + 1;
    return true;
}

static bool
read_option(errand__call_options *options, int option, char *text)
{
    uint64_t number;

    switch (option) {
    case OPTION_PROMISE:
        return read_promises(options, text);
    case OPTION_PATH:
        return read_path(options, text);
    case OPTION_PORT:
        return read_port(options, text);
    case OPTION_MEMORY:
        return read_size("memory", text, &options->policy.memory_bytes);
    case OPTION_INPUT:
        return read_size("input", text, &options->policy.in_bytes);
    case OPTION_OUTPUT:
        return read_size("output", text, &options->policy.out_bytes);
    case OPTION_CPU:
        if (!errand__options_number(text, 1000000, &number) || number == 0) {
            errand__help_problem("--cpu %s: give whole seconds", text);
            return false;
        }
        options->policy.cpu_seconds = (uint32_t)number;
        return true;
    case OPTION_WORKER:
        options->sandbox.worker_path = text;
        return true;
    case OPTION_REPORT:
        options->policy.on_deny = ERRAND_DENY_REPORT;
        return true;
    default:
        return errand__options_seconds("deadline", text, &options->deadline_ns);
    }
}

/* A right of a path that no promise stands for; other: the other right has its promise. */
static void
tell_unpromised(const errand__call_options *options, size_t at, const char *mark,
                const char *promise, bool other)
{
    const char *word = options->path_words[at], *rights = options->path_rights[at];
    const char *rest = *mark == 'r' ? "w" : "r";

    if (rights == NULL)
        errand__help_problem("--path %s means %s=r, which needs --promise rpath%s%s%s",
                             word, word, other ? "; for writing alone give --path " : "",
                             other ? word : "", other ? "=w" : "");
    else
        errand__help_problem("--path %s=%s: its %s needs --promise %s%s%s%s", word,
                             rights, mark, promise, other ? "; or give =" : "",
                             other ? rest : "", other ? " alone" : "");
}

/* --path has promises of its own, and --port has one: what the library would refuse in its own words. */
static bool
promises_fit(const errand__call_options *options)
{
    const errand_sandbox_policy *policy = &options->policy;
    static const struct {
        uint32_t promise, right;
        const char *name, *mark;
    } kinds[] = {{ERRAND_PROMISE_RPATH, ERRAND_PATH_READ, "rpath", "r"},
                 {ERRAND_PROMISE_WPATH, ERRAND_PATH_WRITE, "wpath", "w"}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        size_t at = 0;
        while (at < policy->path_count &&
               (policy->paths[at].rights & kinds[k].right) == 0)
            at++;
        bool promised = (policy->promises & kinds[k].promise) != 0;
        if (at < policy->path_count && !promised) {
            tell_unpromised(options, at, kinds[k].mark, kinds[k].name,
                            (policy->promises & kinds[1 - k].promise) != 0);
            return false;
        }
        if (at == policy->path_count && promised) {
            errand__help_problem("--promise %s needs --path PATH=%s: below what",
                                 kinds[k].name, kinds[k].mark);
            return false;
        }
    }
    if (((policy->promises & ERRAND_PROMISE_INET) != 0) != (policy->port_count != 0)) {
        errand__help_problem(policy->port_count != 0 ? "--port needs --promise inet"
                                                     : "--promise inet needs --port N");
        return false;
    }
    return true;
}

static bool
sizes_fit(const errand__call_options *options)
{
    const errand_sandbox_policy *policy = &options->policy;
    const uint64_t mib = 1 << 20;
    if (policy->memory_bytes != 0 && policy->memory_bytes < 32 * mib) {
        errand__help_problem("--memory: at least 32M; the number alone counts bytes");
        return false;
    }
    if (policy->memory_bytes > UINT64_C(1) << 44 || policy->in_bytes > 1024 * mib ||
        policy->out_bytes > 1024 * mib) {
        errand__help_problem(
            "--%s: at most %s",
            policy->in_bytes > 1024 * mib    ? "input"
            : policy->out_bytes > 1024 * mib ? "output"
                                             : "memory",
            policy->in_bytes > 1024 * mib || policy->out_bytes > 1024 * mib ? "1G"
                                                                            : "16384G");
        return false;
    }
    return true;
}

static bool
read_isolation(errand__call_options *options, const char *text)
{
    options->process = strcmp(text, "process") == 0;
    if (options->process || strcmp(text, "thread") == 0)
        return true;
    errand__help_problem("--isolation %s: use thread or process", text);
    return false;
}

bool
errand__call_options_read(int argc, char **argv, errand__call_options *out_options)
{
    const char *sandboxed = NULL;
    bool thread = false;
    int option, which = 0;

    memset(out_options, 0, sizeof *out_options);
    out_options->process = true;
    out_options->policy.struct_size = sizeof(errand_sandbox_policy);
    out_options->sandbox.struct_size = sizeof(errand_sandbox_config);
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:h", table, &which)) != -1) {
        if (option == '?' || option == ':')
            return errand__options_explain(table, option, argv);
        if (option == 'h' || option == OPTION_HELP)
            return true; /* without a library: help is printed */
        if (option == OPTION_ISOLATION) {
            if (!read_isolation(out_options, optarg))
                return false;
            thread = !out_options->process;
            continue;
        }
        if (option != OPTION_DEADLINE)
            sandboxed = table[which].name;
        if (!read_option(out_options, option, optarg))
            return false;
    }
    if (thread && sandboxed != NULL) {
        errand__help_problem("--%s needs --isolation process: a thread cannot confine",
                             sandboxed);
        return false;
    }
    if (!promises_fit(out_options) || !sizes_fit(out_options))
        return false;
    if (argc - optind < 3) {
        errand__help_problem(
            "call: give LIB SYMBOL SIGNATURE and the arguments, as in  "
            "errand call libz.so.1 crc32 'u64 (u64, bytes, u32)' 0 hello 5");
        return false;
    }
    out_options->library = argv[optind];
    out_options->symbol = argv[optind + 1];
    out_options->signature = argv[optind + 2];
    out_options->arguments = argv + optind + 3;
    out_options->count = argc - optind - 3;
    return true;
}

size_t
errand__call_file_max(const errand__call_options *options)
{
    if (!options->process)
        return (size_t)256 << 20;
    if (options->policy.in_bytes == 0)
        return (size_t)1 << 20;
    return options->policy.in_bytes < 1 << 30 ? (size_t)options->policy.in_bytes
                                              : (size_t)1 << 30;
}
