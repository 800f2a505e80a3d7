/* SPDX-License-Identifier: MIT */
/* plugin: a well-meaning object: what a real one would look like. */
#include "errand/plugin.h"

#include <errno.h>
#include <string.h>

errand_plugin_fn echo, grows, refuses, sums, waits;

/* Writes its input, byte for byte. */
int32_t
echo(errand_plugin_call *call)
{
    return call->write(call, call->input, call->input_size) ? 0 : EFBIG;
}

/* The first eight bytes say how many bytes to write: 0, 1, 2 ... 250, 0, ... */
int32_t
grows(errand_plugin_call *call)
{
    uint64_t wanted, done = 0;
    unsigned char part[1000];
    memcpy(&wanted, call->input, sizeof wanted);
    while (done < wanted) {
        size_t size = wanted - done < sizeof part ? (size_t)(wanted - done) : sizeof part;
        for (size_t i = 0; i < size; i++)
            part[i] = (unsigned char)((done + i) % 251);
        if (!call->write(call, part, size))
            return EFBIG;
        done += size;
    }
    return 0;
}

int32_t
refuses(errand_plugin_call *call)
{
    call->message(call, "this one is never content");
    (void)call->write(call, "some", 4);
    errno = EDOM;
    return -7;
}

int32_t
sums(errand_plugin_call *call)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < call->input_size; i++)
        sum += call->input[i];
    return call->write(call, &sum, sizeof sum) ? 0 : EFBIG;
}

int32_t
waits(errand_plugin_call *call)
{
    while (!call->cancelled(call))
        continue;
    return call->write(call, "yes", 3) ? 0 : EFBIG;
}
