/* SPDX-License-Identifier: MIT */
/* Bodies that throw; cxx_test.c runs them. */
#include "errand/cxx.hpp"
#include <cstdlib>
#include <cstring>
#include <memory>
#include <pthread.h>
#include "cxx_bodies.h"

int cxx_destroyed;

namespace {

struct counted {
    ~counted() { cxx_destroyed++; }
};

std::int32_t
throw_words(errand_job *, void *, errand_payload *)
{
    counted one;
    throw std::runtime_error("the words");
}

std::int32_t
throw_panic(errand_job *, void *, errand_payload *)
{
    counted one;
    throw errand::panic("a panic");
}

std::int32_t
throw_number(errand_job *, void *, errand_payload *)
{
    counted one;
    throw 7;
}

std::int32_t
throw_long(errand_job *, void *, errand_payload *)
{
    throw std::runtime_error(std::string(1000, 'x'));
}

std::int32_t
answer(errand_job *, void *, errand_payload *)
{
    counted one;
    return 9;
}

std::int32_t
end_thread(errand_job *, void *, errand_payload *)
{
    counted one;
    pthread_exit(nullptr);
}

std::int32_t
throw_in_defer(errand_job *job, void *, errand_payload *)
{
    errand_status status = errand_job_defer(
        job,
        [](void *) { errand::contain([] { throw std::runtime_error("in a cleanup"); }); },
        nullptr);

    return status == ERRAND_OK ? 0 : 1;
}

errand_job_type
type_of(std::int32_t (*run)(errand_job *, void *, errand_payload *))
{
    errand_job_type type;

    std::memset(&type, 0, sizeof type);
    type.struct_size = sizeof type;
    type.name = "cxx";
    type.run = run;
    return type;
}

} /* namespace */

extern "C" const errand_job_type *
cxx_body(cxx_case which)
{
    static const errand_job_type types[] = {
        type_of(errand::body<throw_words>),
        type_of(errand::body<throw_panic>),
        type_of(errand::body<throw_number>),
        type_of(errand::body<throw_long>),
        type_of(errand::body<answer>),
        type_of(errand::body<end_thread>),
        type_of(errand::body<throw_in_defer>),
        type_of(errand::body_or_fail<throw_words, 5>),
    };

    return &types[which];
}
