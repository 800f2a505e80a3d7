/* SPDX-License-Identifier: MIT */
/* option_values: what stands behind an option, of run and explore. */
#include "program.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool
errand__options_number(const char *text, uint64_t max, uint64_t *out_number)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    errno = 0;
    unsigned long long number = strtoull(text, &end, hex ? 16 : 10);
    if (errno != 0 || *end != '\0' || end == text || number > max)
        return false;
    *out_number = number;
    return true;
}

bool
errand__options_order(errand__options *options, const char *text)
{
    if (strcmp(text, "arrival") == 0) {
        options->order = ERRAND_ORDER_ARRIVAL;
    } else if (strcmp(text, "inline") == 0) {
        options->order = ERRAND_ORDER_INLINE;
    } else if (strcmp(text, "paced") == 0) {
        options->order = ERRAND_ORDER_PACED;
    } else {
        errand__help_problem(
            "--order %s: there is no such order; use arrival, inline or paced", text);
        return false;
    }
    return true;
}

bool
errand__options_seed(errand__options *options, const char *text)
{
    if (!errand__options_number(text, UINT64_MAX, &options->seed)) {
        errand__help_problem("--seed %s: a seed is a whole number from 0 to "
                             "18446744073709551615, or 0x and hex digits",
                             text);
        return false;
    }
    options->has_seed = true;
    return true;
}

bool
errand__options_reactor(errand__options *options, const char *text)
{
    if (strcmp(text, "io_uring") == 0)
        options->reactor = ERRAND_REACTOR_URING;
    else if (strcmp(text, "epoll") == 0)
        options->reactor = ERRAND_REACTOR_EPOLL;
    else
        errand__help_problem("--reactor %s: write io_uring or epoll", text);
    return options->reactor != ERRAND_REACTOR_ANY;
}

bool
errand__options_workers(errand__options *options, const char *text)
{
    uint64_t number;
    if (!errand__options_number(text, 1024, &number) || number == 0) {
        errand__help_problem("--workers %s: give a whole number from 1 to 1024", text);
        return false;
    }
    options->workers = (uint32_t)number;
    return true;
}

bool
errand__options_seconds(const char *option, const char *text, uint64_t *out_ns)
{
    char *end;
    double seconds = strtod(text, &end);
    if (*end != '\0' || end == text || !isfinite(seconds) || seconds < 1e-9 ||
        seconds > 9e9) {
        errand__help_problem("--%s %s: give seconds above 0, such as 30 or 0.5", option,
                             text);
        return false;
    }
    *out_ns = (uint64_t)(seconds * 1e9);
    return true;
}

bool
errand__options_traps(errand__options *options, const char *text)
{
    static const char *const names[] = {"refuse", "warn", "off"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            options->traps = (errand_traps_mode)i;
            return true;
        }
    }
    errand__help_problem("--traps %s: give refuse, warn or off", text);
    return false;
}

bool
errand__options_policy(errand__options *options, const char *text)
{
    errand_choices choices = ERRAND_CHOICES_INIT;
    char said[400];
    options->policy = text;
    if (errand_choices_parse(&choices, text, 0, said, sizeof said) == ERRAND_OK)
        return true;
    errand__help_problem("--policy: %s", said);
    return false;
}
