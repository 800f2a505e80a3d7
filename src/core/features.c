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
/* Optional parts, and the build's own words on others. */
#if ERRAND_HAS_URING
#define URING_WORD " io_uring=yes"
#else
#define URING_WORD " io_uring=no"
#endif
#if ERRAND_HAS_CURL
#define HTTP_WORD " http=libcurl"
#else
#define HTTP_WORD " http=no"
#endif
#ifndef ERRAND_FEATURE_WORDS
#define ERRAND_FEATURE_WORDS ""
#endif
#define WORDS URING_WORD HTTP_WORD ERRAND_FEATURE_WORDS

const char *
errand_features(void)
{
    if (errand__mem_has_jemalloc())
        return VERSION " jemalloc=yes sanitizer=" SANITIZER
                       " arenas=jemalloc sandbox=processes" WORDS;
    return VERSION " jemalloc=no sanitizer=" SANITIZER
                   " arenas=lists sandbox=processes" WORDS;
}
