/* SPDX-License-Identifier: MIT */
/* features: what this build can do, as one line of words. */
#include "core/core.h"

#define AS_TEXT(number)     AS_TEXT_NOW(number)
#define AS_TEXT_NOW(number) #number
#define VERSION                                                                          \
    AS_TEXT(ERRAND_VERSION_MAJOR)                                                        \
    "." AS_TEXT(ERRAND_VERSION_MINOR) "." AS_TEXT(ERRAND_VERSION_PATCH)
#if !ERRAND_SANITIZED
#define SANITIZER "none"
#elif defined(__SANITIZE_THREAD__)
#define SANITIZER "thread"
#elif defined(__has_feature) && !defined(__SANITIZE_ADDRESS__)
#if __has_feature(thread_sanitizer)
#define SANITIZER "thread"
#endif
#endif
#ifndef SANITIZER
#define SANITIZER "address"
#endif
/* The build's own words on optional parts, for example " io_uring=yes". */
#ifndef ERRAND_FEATURE_WORDS
#define ERRAND_FEATURE_WORDS ""
#endif

const char *
errand_features(void)
{
    if (errand__mem_has_jemalloc())
        return VERSION " jemalloc=yes sanitizer=" SANITIZER
                       " arenas=jemalloc sandbox=processes" ERRAND_FEATURE_WORDS;
    return VERSION " jemalloc=no sanitizer=" SANITIZER
                   " arenas=lists sandbox=processes" ERRAND_FEATURE_WORDS;
}
