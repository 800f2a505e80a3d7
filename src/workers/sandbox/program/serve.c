/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Results are written where the host copies them from; only when that place is full and more
 *   comes are they handed over as a piece.
 * - A host that says what the conversation has no place for is of another version: the end.
 * - There is nobody to tell when the host is gone: the kernel ends this process then. */
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "foreign/foreign.h"

#define LOOK_NS UINT64_C(3600000000000) /* an idle worker looks once an hour */

typedef struct serving { /* one call */
    errand_plugin_call call;
    errand__worker *worker;
    errand__reply reply; /* the same for functions with a signature */
    uint32_t sequence;   /* of the CALL */
    size_t used;         /* bytes of the piece at hand */
    uint64_t total;      /* of all pieces */
    char text[sizeof((errand__wire_error *)NULL)->text];
} serving;

static errand__wire_waiter waiter;
static uint32_t heard; /* the doorbell, as last seen */

/* Waits for the next command; an order to end is obeyed here. */
static uint32_t
next_command(errand__worker *self)
{
    uint32_t now;
    do {
        now = errand__wire_await_doorbell(&waiter, self->request, self->response, heard,
                                          LOOK_NS);
    } while (now == heard);
    heard = now;
    /* Most often small, and one line each: they are on their way while the command is read. */
    __builtin_prefetch(self->request_bytes + self->request->body_offset);
    __builtin_prefetch(self->response_bytes, 1);
    if (self->request->command == ERRAND__WIRE_EXIT)
        _exit(0);
    return self->request->command;
}

/* Hands over what is written, and waits until that command answers it. */
static void
hand_over(serving *self, uint32_t status, size_t size, uint32_t command)
{
    errand__worker *worker = self->worker;
    uint64_t answer =
        errand__wire_answer(worker->request->sequence, status, (uint32_t)size);
    errand__wire_put(worker->request, worker->response, answer);
    if (next_command(worker) != command)
        _exit(ERRAND__SETUP_WIRE);
}

static bool
write_bytes(errand_plugin_call *call, const void *bytes, size_t size)
{
    serving *self = (serving *)(void *)call;
    errand__worker *worker = self->worker;
    uint64_t most = worker->request->out_max;
    if (size > most || self->total > most - size)
        return false;
    const unsigned char *from = bytes;
    size_t left = size;
    while (left > 0) {
        if (self->used == worker->response_size) {
            hand_over(self, ERRAND__WIRE_MORE, self->used, ERRAND__WIRE_GO_ON);
            self->used = 0;
        }
        size_t room = worker->response_size - self->used;
        size_t part = left < room ? left : room;
        memcpy(worker->response_bytes + self->used, from, part);
        self->used += part;
        from += part;
        left -= part;
    }
    self->total += size;
    return true;
}

static serving *
of_reply(errand__reply *reply)
{
    return (serving *)(void *)((char *)(void *)reply - offsetof(serving, reply));
}

static bool
write_reply(errand__reply *reply, const void *bytes, size_t size)
{
    return write_bytes(&of_reply(reply)->call, bytes, size);
}

/* Asks the host; what was written before is handed over first. */
static bool
ask_host(errand__reply *reply, const void *question, size_t size, const void **out_answer,
         size_t *out_size)
{
    serving *self = of_reply(reply);
    errand__worker *worker = self->worker;
    if (size > worker->response_size)
        return false;
    if (self->used > 0)
        hand_over(self, ERRAND__WIRE_MORE, self->used, ERRAND__WIRE_GO_ON);
    self->used = 0;
    memcpy(worker->response_bytes, question, size);
    hand_over(self, ERRAND__WIRE_CALLBACK, size, ERRAND__WIRE_RETURN);
    const errand__wire_request *request = worker->request;
    if (request->return_used > request->return_size)
        return false;
    *out_answer = worker->request_bytes + request->return_offset;
    *out_size = request->return_used;
    return request->return_used != 0;
}

static void
keep_message(errand_plugin_call *call, const char *text)
{
    serving *self = (serving *)(void *)call;
    snprintf(self->text, sizeof self->text, "%s", text == NULL ? "" : text);
}

static bool
is_cancelled(errand_plugin_call *call)
{
    const serving *self = (const serving *)(const void *)call;
    return atomic_load_explicit(&self->worker->request->cancelled,
                                memory_order_relaxed) == self->sequence;
}

static void
answer_error(serving *self, int32_t code, int32_t error)
{
    errand__worker *worker = self->worker;
    errand__wire_error *out = (void *)worker->response_bytes;
    out->code = code;
    out->error = error;
    size_t length = strnlen(self->text, sizeof self->text);
    memcpy(out->text, self->text, length);
    size_t size = offsetof(errand__wire_error, text) + length;
    errand__wire_put(worker->request, worker->response,
                     errand__wire_answer(worker->request->sequence, ERRAND__WIRE_ERROR,
                                         (uint32_t)size));
}

static int32_t
call_function(serving *self, const errand__loaded *entry)
{
    const errand__wire_request *request = self->worker->request;
    const unsigned char *body = self->worker->request_bytes + request->body_offset;
    const unsigned char *input = self->worker->input;
    bool borrowed = input != NULL && request->input_size != 0;
    if (entry->plugin != NULL) {
        self->call.input = borrowed ? input + request->input_offset : body;
        self->call.input_size = borrowed ? request->input_size : request->body_used;
        return entry->plugin(&self->call);
    }
    errand_ffi_error error = {0};
    int32_t code = errand__callee_serve(entry->callee, body, request->body_used, input,
                                        request->input_file_size, &self->reply, &error);
    if (code != 0)
        keep_message(&self->call, error.text);
    return code;
}

static void
answer_call(errand__worker *worker)
{
    const errand__wire_request *request = worker->request;
    serving self; /* its text is long: not set to 0 for each call */
    self.worker = worker;
    self.sequence = request->sequence;
    self.used = 0;
    self.total = 0;
    self.text[0] = '\0';
    errand__report_begin();
    const errand__loaded *entry = errand__worker_entry(request->entry);
    if (entry == NULL || entry->state != ERRAND__ENTRY_FINE) {
        const char *why = entry == NULL ? "there is no such entry" : entry->why;

        /* The numbers of states are those of errand_ffi_code. */
        snprintf(self.text, sizeof self.text, "%s", why == NULL ? "out of memory" : why);
        answer_error(&self, entry == NULL ? ENOENT : entry->state, 0);
        return;
    }
    self.reply = (errand__reply){.write = write_reply, .ask = ask_host};
    self.call = (errand_plugin_call){.struct_size = sizeof self.call,
                                     .write = write_bytes,
                                     .message = keep_message,
                                     .cancelled = is_cancelled};
    errno = 0;
    int32_t code = call_function(&self, entry);
    int error = errno;
    if (code == ERRAND_FFI_CODE_OUTPUT && entry->plugin == NULL) {
        errand__wire_put(request, worker->response,
                         errand__wire_answer(request->sequence, ERRAND__WIRE_LARGE, 0));
        return;
    }
    if (code != 0) {
        answer_error(&self, code, error);
        return;
    }
    errand__wire_put(
        request, worker->response,
        errand__wire_answer(request->sequence, ERRAND__WIRE_DONE, (uint32_t)self.used));
}

void
errand__worker_serve(errand__worker *self)
{
    errand__wire_waiter_init(&waiter, self->processors);
    for (;;) {
        if (next_command(self) != ERRAND__WIRE_CALL)
            _exit(ERRAND__SETUP_WIRE);
        answer_call(self);
    }
}
