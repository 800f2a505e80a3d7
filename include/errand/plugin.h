/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_PLUGIN_H
#define ERRAND_PLUGIN_H
/* plugin: what an object includes whose functions are called with bytes, by a sandbox's worker
 * or by a pool of threads (errand_spec_plugin).  It links nothing of the library.
 *
 *     int32_t
 *     reverse(errand_plugin_call *call)
 *     {
 *         for (size_t i = call->input_size; i > 0; i--) {
 *             if (!call->write(call, call->input + i - 1, 1))
 *                 return EFBIG;
 *         }
 *         return 0;
 *     }
 */
#include "errand/base.h"
ERRAND_BEGIN

typedef struct errand_plugin_call errand_plugin_call;
struct errand_plugin_call {
    uint32_t struct_size;
    uint32_t reserved;
    const unsigned char *input; /* read only; valid until the function returns */
    size_t input_size;
    /* Adds bytes to the result, which are copied.  Answers false where the result would be larger
     * than out_bytes of the policy: then nothing was added. */
    bool (*write)(errand_plugin_call *call, const void *bytes, size_t size);
    /* Says why the function is about to fail; the last text counts, its first 247 bytes. */
    void (*message)(errand_plugin_call *call, const char *text);
    /* Was it asked to end?  For functions that take long and want to stop by themselves. */
    bool (*cancelled)(errand_plugin_call *call);
};

/* What a plug-in's function looks like.  It answers 0, and what it wrote is the result; or a code
 * of its own, and what it wrote is dropped: the operation FAILED with that code. */
typedef int32_t errand_plugin_fn(errand_plugin_call *call);

ERRAND_END
#endif
