/* SPDX-License-Identifier: MIT */
/* policy_text: policies as words, and the portfolio. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scheduler/scheduler.h"

static const struct {
    const char *name;
    bool has_depth;
} policies[ERRAND_POLICIES] = {
    [ERRAND_POLICY_SHUFFLE] = {"shuffle", false},
    [ERRAND_POLICY_FIFO] = {"fifo", false},
    [ERRAND_POLICY_PICK] = {"pick", false},
    [ERRAND_POLICY_PCT] = {"pct", true},
    [ERRAND_POLICY_DELAY] = {"delay", true},
    [ERRAND_POLICY_STARVE] = {"starve", true},
};

/* Which bug needs which policy is not known, so each gets its share of the seeds. */
errand_status
errand_choices_portfolio(errand_choices *choices, uint64_t seed, uint64_t steps)
{
    static const errand_policy turns[] = {
        ERRAND_POLICY_SHUFFLE, ERRAND_POLICY_PCT,  ERRAND_POLICY_PICK,
        ERRAND_POLICY_DELAY,   ERRAND_POLICY_PCT,  ERRAND_POLICY_STARVE,
        ERRAND_POLICY_SHUFFLE, ERRAND_POLICY_FIFO,
    };
    const uint64_t count = sizeof turns / sizeof turns[0];

    ERRAND_REQUIRE_ARG(choices != NULL, ERRAND_EINVAL, "choices is NULL");
    ERRAND_REQUIRE_ARG(steps <= UINT64_MAX / 2, ERRAND_EINVAL,
                       "steps is at most 2^63 - 1");
    choices->policy = turns[seed % count];
    choices->depth = 0;
    choices->steps = steps;
    if (choices->policy == ERRAND_POLICY_PCT)
        choices->depth =
            2 + (uint32_t)errand__random_below(seed, ERRAND__STREAM_PORTFOLIO, 1, 0, 4);
    else if (policies[choices->policy].has_depth)
        choices->depth =
            1 + (uint32_t)errand__random_below(seed, ERRAND__STREAM_PORTFOLIO, 1, 0, 8);
    return ERRAND_OK;
}

/* "" = absent; ":12" and what follows it. */
static bool
read_part(const char **at, uint64_t max, uint64_t *out_number)
{
    char *end;

    if (**at == '\0')
        return true;
    if ((*at)[0] != ':' || (*at)[1] < '0' || (*at)[1] > '9')
        return false;
    errno = 0;
    *out_number = strtoull(*at + 1, &end, 10);
    *at = end;
    return errno == 0 && *out_number >= 1 && *out_number <= max;
}

static errand_status
refuse(char *message, size_t room, const char *text)
{
    if (message != NULL && room > 0)
        errand__text_format(
            message, room,
            "there is no policy '%s': use shuffle, fifo, pick, pct:DEPTH[:STEPS], "
            "delay:DEPTH[:STEPS], starve:DEPTH[:STEPS] or portfolio[:STEPS], with a "
            "depth of 1 to %d",
            text, ERRAND_DEPTH_MAX);
    return ERRAND_EINVAL;
}

errand_status
errand_choices_parse(errand_choices *choices, const char *text, uint64_t seed,
                     char *message, size_t room)
{
    uint64_t depth = 0, steps;
    const char *rest;
    size_t length;

    ERRAND_REQUIRE_ARG(choices != NULL && text != NULL, ERRAND_EINVAL,
                       "choices and text are needed");
    steps = choices->steps;
    length = strcspn(text, ":");
    rest = text + length;
    if (length == strlen("portfolio") && strncmp(text, "portfolio", length) == 0) {
        if (!read_part(&rest, UINT64_MAX / 2, &steps) || *rest != '\0')
            return refuse(message, room, text);
        return errand_choices_portfolio(choices, seed, steps);
    }
    for (int i = 0; i < ERRAND_POLICIES; i++) {
        if (strlen(policies[i].name) != length ||
            strncmp(policies[i].name, text, length) != 0)
            continue;
        if (policies[i].has_depth && (!read_part(&rest, ERRAND_DEPTH_MAX, &depth) ||
                                      !read_part(&rest, UINT64_MAX / 2, &steps)))
            break;
        if (*rest != '\0')
            break;
        choices->policy = (errand_policy)i;
        choices->depth = (uint32_t)depth;
        choices->steps = steps;
        return ERRAND_OK;
    }
    return refuse(message, room, text);
}

size_t
errand_choices_print(const errand_choices *choices, char *out, size_t size)
{
    char text[64];
    int length;

    if (choices == NULL || (unsigned)choices->policy >= ERRAND_POLICIES)
        return 0;
    length = snprintf(text, sizeof text, "%s", policies[choices->policy].name);
    if (policies[choices->policy].has_depth &&
        (choices->depth != 0 || choices->steps != 0))
        length += snprintf(text + length, sizeof text - (size_t)length, ":%" PRIu32,
                           choices->depth == 0 ? 3 : choices->depth);
    if (policies[choices->policy].has_depth && choices->steps != 0)
        length += snprintf(text + length, sizeof text - (size_t)length, ":%" PRIu64,
                           choices->steps);
    if (out != NULL && size > 0)
        snprintf(out, size, "%s", text);
    return (size_t)length;
}
