/* SPDX-License-Identifier: MIT */
/* Design notes: a plug-in's function, called with bytes.
 *
 * In a sandbox the worker opens the object and calls; here the request is only the bytes, and the
 * response the bytes that it wrote; where they are many they stay where the executor put them.  On a
 * pool of threads the body does the same in this process: the object is opened for the call, and what
 * it does is what any code here can do. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include "errand/plugin.h"
#include "errand/sandbox.h"
#include "operations/operations.h"

#define RESULT_MOST ((size_t)1 << 30)

typedef struct plugin_state {
    _Alignas(16) errand_entry entry; /* so that the bytes behind are aligned, too */
    const unsigned char *bytes;
    size_t size;
    errand_ffi_buffer *buffer; /* pinned; NULL = the bytes are behind this */
} plugin_state;

typedef struct plugin_result {
    _Alignas(16) errand_plugin_bytes base; /* the bytes are behind this, or held */
    errand_payload held;
} plugin_result;

typedef struct plugin_call { /* in this process */
    errand_plugin_call base;
    errand_job *job;
    unsigned char *block; /* a plugin_result, then what was written */
    size_t room, used;
} plugin_call;

static void
drop_bytes(void *data, size_t size)
{
    plugin_result *self = data;

    (void)size;
    errand_payload_drop(&self->held);
    errand__operation_block_free(self);
}

const errand_payload_type errand_plugin_bytes_type = {.name = "plugin_bytes",
                                                      .drop = drop_bytes};

/* bytes: those that held holds, or NULL: they are behind the plugin_result. */
static void
give(errand_payload *out_payload, unsigned char *own_block, const unsigned char *bytes,
     size_t size, errand_payload held)
{
    plugin_result *result = (plugin_result *)(void *)own_block;

    result->base.bytes = bytes != NULL ? bytes : own_block + sizeof *result;
    result->base.size = size;
    result->held = held;
    errand__operation_payload(out_payload, &errand_plugin_bytes_type, &result->base,
                              sizeof result->base);
}

/* ---- in a sandbox ------------------------------------------------------------------------------ */

static const errand_entry *
plugin_entry(const void *state)
{
    return &((const plugin_state *)state)->entry;
}

static const errand_ffi_buffer *
plugin_borrowed(const void *state)
{
    errand_ffi_buffer *buffer = ((const plugin_state *)state)->buffer;

    return errand_ffi_buffer_shared(buffer) ? buffer : NULL;
}

static size_t
plugin_request_size(const void *state)
{
    return plugin_borrowed(state) != NULL ? 0 : ((const plugin_state *)state)->size;
}

static void
plugin_write_request(const void *state, unsigned char *out_bytes)
{
    const plugin_state *self = state;

    if (plugin_borrowed(state) == NULL)
        memcpy(out_bytes, self->bytes, self->size);
}

static int32_t
plugin_read_response(errand_job *job, void *state, const unsigned char *bytes,
                     size_t size, errand_payload *out_payload)
{
    errand_payload held = {.data = NULL};
    bool taken = errand_portable_take(job, &held);
    unsigned char *block =
        errand__operation_block_alloc_bare(sizeof(plugin_result) + (taken ? 0 : size));

    (void)state;
    if (block == NULL) {
        errand_payload_drop(&held);
        return errand__operation_no_memory(job, size);
    }
    if (!taken && size != 0)
        memcpy(block + sizeof(plugin_result), bytes, size);
    give(out_payload, block, taken ? bytes : NULL, size, held);
    return 0;
}

/* ---- in this process ----------------------------------------------------------------------------- */

static bool
write_bytes(errand_plugin_call *call, const void *bytes, size_t size)
{
    plugin_call *self = (plugin_call *)(void *)call;
    size_t room = self->room;

    if (size > RESULT_MOST - self->used)
        return false;
    while (room < self->used + size)
        room *= 2;
    if (room != self->room) {
        unsigned char *block =
            errand__operation_block_grow(self->block, sizeof(plugin_result) + room);

        if (block == NULL)
            return false;
        self->block = block;
        self->room = room;
    }
    if (size != 0)
        memcpy(self->block + sizeof(plugin_result) + self->used, bytes, size);
    self->used += size;
    return true;
}

static void
keep_message(errand_plugin_call *call, const char *text)
{
    errand_job_message(((plugin_call *)(void *)call)->job, "%s",
                       text != NULL ? text : "");
}

static bool
is_cancelled(errand_plugin_call *call)
{
    return errand_job_cancelled(((plugin_call *)(void *)call)->job);
}

static int32_t
call_opened(errand_job *job, const plugin_state *self, errand_plugin_fn *function,
            errand_payload *out_payload)
{
    plugin_call call = {
        .base = {.struct_size = sizeof call.base,
                 .input = self->bytes,
                 .input_size = self->size,
                 .write = write_bytes,
                 .message = keep_message,
                 .cancelled = is_cancelled},
        .job = job,
        .room = 256,
    };
    int32_t answer;

    call.block = errand__operation_block_alloc(sizeof(plugin_result) + call.room);
    if (call.block == NULL)
        return errand__operation_no_memory(job, call.room);
    answer = function(&call.base);
    if (answer == 0)
        give(out_payload, call.block, NULL, call.used, (errand_payload){.data = NULL});
    else
        errand__operation_block_free(call.block);
    return answer;
}

static int32_t
plugin_run(errand_job *job, void *state, errand_payload *out_payload)
{
    const plugin_state *self = state;
    void *library = dlopen(self->entry.library, RTLD_NOW | RTLD_LOCAL);
    errand_plugin_fn *function;
    int32_t answer;
    void *address = library != NULL ? dlsym(library, self->entry.symbol) : NULL;

    if (address == NULL) {
        const char *why = dlerror();

        errand_job_fail(job, ENOENT, 0, NULL, "%s",
                        why != NULL ? why : "it is not there");
        if (library != NULL)
            dlclose(library);
        return ENOENT;
    }
    memcpy(&function, &address, sizeof function);
    answer = call_opened(job, self, function, out_payload);
    dlclose(library);
    return answer;
}

static void
plugin_drop(void *state)
{
    plugin_state *self = state;

    errand_ffi_buffer_unpin(self->buffer);
    errand__operation_block_free(self);
}

static const errand_portable_type plugin_portable = {
    .struct_size = sizeof plugin_portable,
    .entry = plugin_entry,
    .request_size = plugin_request_size,
    .write_request = plugin_write_request,
    .read_response = plugin_read_response,
    .borrowed = plugin_borrowed,
};
static const errand_job_type plugin_job = {
    .struct_size = sizeof plugin_job,
    .name = "plugin",
    .run = plugin_run,
    .drop = plugin_drop,
    .held_portable = &plugin_portable,
};

/* A state with copies of the names and size bytes. */
static plugin_state *
make_state(const char *library, const char *symbol, const void *bytes, size_t size)
{
    size_t library_size = strlen(library) + 1, symbol_size = strlen(symbol) + 1;
    plugin_state *state = errand__operation_block_alloc_bare(sizeof *state + size +
                                                             library_size + symbol_size);

    if (state == NULL)
        return NULL;
    *state = (plugin_state){.size = 0};
    errand__operation_cursor cursor = {(char *)(state + 1)};
    state->bytes = (unsigned char *)errand__operation_copy(&cursor, bytes, size);
    state->size = size;
    state->entry.library = errand__operation_copy(&cursor, library, library_size);
    state->entry.symbol = errand__operation_copy(&cursor, symbol, symbol_size);
    return state;
}

errand_status
errand_spec_plugin(errand_spec *out_spec, const char *library, const char *symbol,
                   const void *bytes, size_t size)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && library != NULL && symbol != NULL,
                       ERRAND_EINVAL, "out_spec, library and symbol are needed");
    ERRAND_REQUIRE_ARG(bytes != NULL || size == 0, ERRAND_EINVAL, "bytes is NULL");
    if (size > RESULT_MOST)
        return ERRAND_ENOMEM;
    plugin_state *state = make_state(library, symbol, bytes, size);
    if (state == NULL)
        return ERRAND_ENOMEM;
    errand__operation_spec_fill(out_spec, ERRAND_KIND_PLUGIN, &plugin_job, state);
    return ERRAND_OK;
}

errand_status
errand_spec_plugin_buffer(errand_spec *out_spec, const char *library, const char *symbol,
                          errand_ffi_buffer *buffer)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && library != NULL && symbol != NULL &&
                           buffer != NULL,
                       ERRAND_EINVAL, "out_spec, library, symbol and buffer are needed");
    plugin_state *state = make_state(library, symbol, NULL, 0);
    if (state == NULL)
        return ERRAND_ENOMEM;
    errand_ffi_buffer_pin(buffer);
    state->buffer = buffer;
    state->bytes = errand_ffi_buffer_data(buffer);
    state->size = errand_ffi_buffer_size(buffer);
    errand__operation_spec_fill(out_spec, ERRAND_KIND_PLUGIN, &plugin_job, state);
    return ERRAND_OK;
}
