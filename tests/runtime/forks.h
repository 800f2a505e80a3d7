/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_RUNTIME_FORKS_H
#define ERRAND_TESTS_RUNTIME_FORKS_H
/* forks: for tests whose process is forked in its middle. */
#include <sys/wait.h>
#include "group.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZED 1
#endif
#endif
#ifndef THREAD_SANITIZED
#define THREAD_SANITIZED 0
#endif

/* A test that forks. */
static inline void
need_one_thread(void)
{
    if (THREAD_SANITIZED)
        test_skip("this sanitizer has a thread of its own, so nothing can be forked");
}

/* It must have ended well. */
static inline void
await_child(int64_t child)
{
    int status = -1;

    assert_int_equal(waitpid((pid_t)child, &status, 0), child);
    assert_int_equal(status, 0);
}

#endif
