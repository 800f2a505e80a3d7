/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_CXX_HPP
#define ERRAND_CXX_HPP
/* cxx: bodies and callbacks in C++ that may throw.  Conventions: errand.h.
 *
 * An exception that leaves a function which C called ends the process (std::terminate), so
 * each one has to end inside.  Here it becomes what a mistake of a body is: a panic with
 * the exception's words, or, where the host asks for it, a failure with a code of its own.
 *
 * errand_panic itself jumps, and runs no destructor on its way: in C++ throw
 * errand::panic instead.  Nor does a caught fault (errand/faults.h) run any.  The end of a
 * thread (pthread_exit) passes through and is contained by its worker (O75).
 *
 * Needs C++11; errand::body and errand::body_or_fail need C++17. */
#include <cstdint>
#include <cstdio>
#include <cxxabi.h>
#include <exception>
#include <stdexcept>
#include <string>
#include "errand.h"

namespace errand
{

/* Thrown by a body in place of a call of errand_panic. */
class panic : public std::runtime_error
{
  public:
    explicit panic(const std::string &words) : std::runtime_error(words)
    {
    }
};

namespace detail
{

/* As long as a message may be; plain memory, for nothing may be destroyed by a jump. */
struct words {
    bool thrown;
    char text[256];
};

/* Calls fn; what it throws ends here and leaves its words.  The unwinding of a thread has
 * no object behind its reference, which a sanitizer would take for a mistake. */
template <class Function>
__attribute__((no_sanitize("null"))) void
run(words &caught, Function &fn)
{
    caught.thrown = false;
    try {
        fn();
    } catch (abi::__forced_unwind &) {
        throw; /* the thread ends: nobody may stop that */
    } catch (const std::exception &exception) {
        caught.thrown = true;
        std::snprintf(caught.text, sizeof caught.text, "%s", exception.what());
    } catch (...) {
        caught.thrown = true;
        std::snprintf(
            caught.text, sizeof caught.text, "an exception that is no std::exception");
    }
}

template <class Function> struct answering {
    Function &fn;
    std::int32_t answer;
    void
    operator()()
    {
        answer = fn();
    }
};

} /* namespace detail */

/* contain: call fn(), which answers nothing; what it throws becomes errand_panic: the end
 * of the body, or of the drop, decoder or hook, that this is called in.
 * Thread: [any] that errand_panic may be called on. */
template <class Function>
void
contain(Function &&fn)
{
    detail::words caught;

    detail::run(caught, fn);
    if (caught.thrown)
        errand_panic("%s", caught.text);
}

/* contain_body: call fn(), which answers as a body does (0, or a code of its own from 1).
 * What it throws becomes a panic; with a code, a failure with that code, which is 1 or
 * more.   Thread: [worker]. */
template <class Function>
std::int32_t
contain_body(Function &&fn)
{
    detail::words caught;
    detail::answering<Function> call = {fn, 0};

    detail::run(caught, call);
    if (caught.thrown)
        errand_panic("%s", caught.text);
    return call.answer;
}
template <class Function>
std::int32_t
contain_body(errand_job *job, std::int32_t code, Function &&fn)
{
    detail::words caught;
    detail::answering<Function> call = {fn, 0};

    detail::run(caught, call);
    if (!caught.thrown)
        return call.answer;
    errand_job_message(job, "%s", caught.text);
    return code;
}

#if __cplusplus >= 201703L
/* body<&function>: for errand_job_type.run, from a function of the same shape that may
 * throw: a panic.  body_or_fail<&function, code>: a failure with that code. */
template <auto function>
std::int32_t
body(errand_job *job, void *state, errand_payload *out_payload)
{
    return contain_body([&] { return function(job, state, out_payload); });
}
template <auto function, std::int32_t code>
std::int32_t
body_or_fail(errand_job *job, void *state, errand_payload *out_payload)
{
    static_assert(code >= 1, "codes below 1 are the library's");
    return contain_body(job, code, [&] { return function(job, state, out_payload); });
}
#endif

} /* namespace errand */
#endif
