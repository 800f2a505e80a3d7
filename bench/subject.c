/* SPDX-License-Identifier: MIT */
/* subject: what is called by description, and a plug-in, for the cases call and isolation. */
#include "errand/plugin.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>

uint64_t bench_turn(uint64_t number);
double bench_mix(int32_t whole, float half, double part);
errand_plugin_fn bench_echo, bench_crash;

uint64_t
bench_turn(uint64_t number)
{
    return number * 3 + 1;
}

double
bench_mix(int32_t whole, float half, double part)
{
    return (double)whole + (double)half + part;
}

int32_t
bench_echo(errand_plugin_call *call)
{
    return call->write(call, call->input, call->input_size) ? 0 : EFBIG;
}

int32_t
bench_crash(errand_plugin_call *call)
{
    (void)call;
    return raise(SIGSEGV);
}
