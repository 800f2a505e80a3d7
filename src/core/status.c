/* SPDX-License-Identifier: MIT */
/* status: names and sentences of everything that errand answers, and its version.
 *
 * Design notes: the tables stand in include/errand/base.h as X-macros and are unfolded here
 * into switches, so that a number with no entry is caught by the default and a number that
 * is used twice does not compile.  No state; callable anywhere, also after a fork. */
#include "errand/base.h"

#define TEXT(x)                      #x
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)
#define UNKNOWN                      "unknown"

const char *
errand_status_name(errand_status status)
{
    switch (status) {
#define NAME(name, number, sentence)                                                     \
    case number:                                                                         \
        return #name;
        ERRAND_STATUS_TABLE(NAME)
#undef NAME
    }
    return UNKNOWN;
}

const char *
errand_status_text(errand_status status)
{
    switch (status) {
#define SENTENCE(name, number, sentence)                                                 \
    case number:                                                                         \
        return sentence;
        ERRAND_STATUS_TABLE(SENTENCE)
#undef SENTENCE
    }
    return UNKNOWN;
}

const char *
errand_code_name(errand_code code)
{
    switch (code) {
#define NAME(name, number, sentence)                                                     \
    case number:                                                                         \
        return #name;
        ERRAND_CODE_TABLE(NAME)
#undef NAME
    }
    return UNKNOWN;
}

const char *
errand_code_text(errand_code code)
{
    switch (code) {
#define SENTENCE(name, number, sentence)                                                 \
    case number:                                                                         \
        return sentence;
        ERRAND_CODE_TABLE(SENTENCE)
#undef SENTENCE
    }
    return UNKNOWN;
}

const char *
errand_outcome_name(errand_outcome outcome)
{
    switch (outcome) {
    case ERRAND_COMPLETED:
        return "completed";
    case ERRAND_FAILED:
        return "failed";
    case ERRAND_CANCELLED:
        return "cancelled";
    case ERRAND_PANICKED:
        return "panicked";
    case ERRAND_CRASHED:
        return "crashed";
    }
    return UNKNOWN;
}

const char *
errand_version(void)
{
    return VERSION(ERRAND_VERSION_MAJOR, ERRAND_VERSION_MINOR, ERRAND_VERSION_PATCH);
}
