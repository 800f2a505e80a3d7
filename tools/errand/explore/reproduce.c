/* SPDX-License-Identifier: MIT */
/* reproduce: the command line that shows a failure again, and the proof that it does. */
#include "explore/explore.h"
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_WORDS 20
#define WORD_SIZE    64

typedef struct word_list {
    char **words;
    char *room; /* for words that are made here, WORD_SIZE each */
    size_t count;
} word_list;

static void
add(word_list *list, const char *word)
{
    list->words[list->count++] = (char *)(uintptr_t)word;
}

static void ERRAND_PRINTF(2, 3) add_made(word_list *list, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(list->room, WORD_SIZE, format, arguments);
    va_end(arguments);
    add(list, list->room);
    list->room += WORD_SIZE;
}

static void
add_options(word_list *list, const errand__explore *explore, uint64_t seed,
            const errand_choices *choices, errand__reproduce with)
{
    const errand__options *run = &explore->run;
    add(list, "--order");
    add(list, run->order == ERRAND_ORDER_PACED ? "paced" : "inline");
    const char *tape = with.tape != NULL ? with.tape : explore->tape_path;
    if (tape != NULL) {
        add(list, "--tape");
        add(list, tape);
    } else {
        add(list, "--seed");
        add_made(list, "%" PRIu64, seed);
    }
    char policy[WORD_SIZE];
    errand_choices_print(choices, policy, sizeof policy);
    add(list, "--policy");
    add_made(list, "%s", policy);
    if (with.record != NULL) {
        add(list, "--record");
        add(list, with.record);
    }
    if (run->workers != 0) {
        add(list, "--workers");
        add_made(list, "%" PRIu32, run->workers);
    }
    if (run->reactor != ERRAND_REACTOR_ANY) {
        add(list, "--reactor");
        add(list, run->reactor == ERRAND_REACTOR_URING ? "io_uring" : "epoll");
    }
    if (run->deadline_ns != 0) {
        add(list, "--deadline");
        add(list, explore->deadline);
    }
}

char **
errand__reproduce_words(const errand__explore *explore, uint64_t seed,
                        const errand_choices *choices, errand__reproduce with)
{
    const errand__options *run = &explore->run;
    size_t pointers = OPTION_WORDS + (size_t)run->argc;
    char **words = malloc(pointers * sizeof *words + (size_t)OPTION_WORDS * WORD_SIZE);
    if (words == NULL)
        return NULL;
    word_list list = {words, (char *)(words + pointers), 0};
    add(&list, errand__program_name);
    add(&list, "run");
    add_options(&list, explore, seed, choices, with);
    bool dashes = run->script[0] == '-';
    for (int i = 0; i < run->argc; i++)
        dashes = dashes || run->argv[i][0] == '-';
    if (dashes)
        add(&list, "--");
    add(&list, run->script);
    for (int i = 0; i < run->argc; i++)
        add(&list, run->argv[i]);
    words[list.count] = NULL;
    return words;
}

/* As a shell takes it: plain, or in single quotes. */
static void
print_word(FILE *file, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-./:=,+@%";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        fputs(word, file);
        return;
    }
    fputc('\'', file);
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            fputs("'\\''", file);
        else
            fputc(*word, file);
    }
    fputc('\'', file);
}

char *
errand__reproduce_line(char *const *words)
{
    char *line = NULL;
    size_t size;
    FILE *file = open_memstream(&line, &size);
    if (file == NULL)
        return NULL;
    for (size_t i = 0; words[i] != NULL; i++) {
        if (i > 0)
            fputc(' ', file);
        print_word(file, words[i]);
    }
    if (fclose(file) == 0)
        return line;
    free(line);
    return NULL;
}

void
errand__keep_name(const errand__explore *explore, uint64_t seed, char *name, size_t size)
{
    const char *slash = strrchr(explore->run.script, '/');
    const char *script = slash != NULL ? slash + 1 : explore->run.script;
    size_t length = strlen(script);
    if (length > 4 && strcmp(script + length - 4, ".lua") == 0)
        length -= 4;
    bool here = strcmp(explore->keep, ".") == 0;
    snprintf(name, size, "%s%s%.*s-seed%" PRIu64, here ? "" : explore->keep,
             here ? "" : "/", (int)length, script, seed);
}

bool
errand__reproduce_prove(const errand__explore *explore, char **words,
                        const errand__fingerprint *wanted)
{
    errand__trial trial = {.words = words, .timeout_ns = explore->timeout_ns};
    if (!errand__trial_start(&trial))
        return false;
    while (trial.running) {
        errand__trial_wait(&trial, 1, errand__trial_now() + 1000000000U);
        if (errand__explore_signal() != 0)
            errand__trial_kill(&trial);
    }
    bool same = !trial.timed_out &&
                errand__fingerprint_in(wanted, trial.output, trial.wait_status);
    errand__trial_sweep(&trial, 1);
    if (trial.timed_out)
        same = wanted->class == ERRAND__CLASS_TIMEOUT;
    errand__trial_fini(&trial);
    return same;
}
