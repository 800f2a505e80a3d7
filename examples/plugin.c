/* SPDX-License-Identifier: MIT */
/* plugin: an object whose functions take bytes and give bytes, for contained.c or any host with
 * errand_spec_plugin.  It links nothing of errand.
 *     cc -shared -fPIC plugin.c -o plugin.so $(pkg-config --cflags errand)
 * The worker of root runs as another user: let everybody read the object. */
#include <errno.h>
#include <errand/plugin.h>

errand_plugin_fn reverse, overrun;

int32_t
reverse(errand_plugin_call *call)
{
    for (size_t i = call->input_size; i > 0; i--) {
        if (call->cancelled(call))
            return ECANCELED;
        if (!call->write(call, call->input + i - 1, 1)) {
            call->message(call, "the reversed bytes are more than the policy allows");
            return EFBIG; /* a code of our own: the operation failed with it */
        }
    }
    return 0;
}

/* The input is read only: who writes to it ends the process, and nothing else. */
int32_t
overrun(errand_plugin_call *call)
{
    *(volatile unsigned char *)(uintptr_t)call->input = 0;
    return 0;
}
