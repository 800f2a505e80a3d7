/* SPDX-License-Identifier: MIT */
/* asker: callbacks of the host's, where the function runs apart from it.
 *
 * Design notes: such a callback is a trampoline of the callee: it writes down its arguments, asks
 * through the reply, and gives back what the answer says; on any other thread than the one that serves,
 * and where nobody answers, it gives 0. */
#include <string.h>
#include "foreign/foreign.h"

enum { QUESTION_MAX = 1024 * 1024 };

typedef struct asker {
    errand__callee *callee;
    uint32_t parameter;
} asker;

static void ask_host(void *owner, void *result, void **arguments);

bool
errand__callee_calls_back(const errand__callee *callee)
{
    const errand_ffi_signature *view = &callee->signature->view;

    for (uint32_t i = 0; i < view->count; i++)
        if (view->parameters[i].kind == ERRAND_FFI_CALLBACK)
            return true;
    return false;
}

static errand__trampoline *
make_asker(errand__callee *callee, uint32_t i, errand_ffi_error *out_error)
{
    const errand_ffi_type *type = &callee->signature->view.parameters[i];
    errand_ffi_signature view = {.struct_size = sizeof view,
                                 .result = type->items[0],
                                 .parameters = type->items + 1,
                                 .count = type->count};
    asker *owner = errand__mem_alloc(NULL, sizeof *owner);
    errand__trampoline *made;
    bool no_exec;

    if (owner == NULL) {
        errand__ffi_refuse(out_error, i + 1, "no memory for the callback");
        return NULL;
    }
    *owner = (asker){callee, i};
    made = errand__trampoline_create(&view, NULL, ask_host, owner, out_error, &no_exec);
    if (made == NULL)
        errand__mem_free(NULL, owner, sizeof *owner);
    return made;
}

bool
errand__callee_ready(errand__callee *callee, errand_ffi_error *out_error)
{
    const errand_ffi_signature *view = &callee->signature->view;

    if (!errand__callee_calls_back(callee) || callee->trampolines != NULL)
        return true;
    callee->trampolines =
        errand__mem_alloc(NULL, view->count * sizeof *callee->trampolines);
    if (callee->trampolines == NULL)
        return errand__ffi_refuse(out_error, 0, "no memory for the callbacks");
    for (uint32_t i = 0; i < view->count; i++) {
        if (view->parameters[i].kind != ERRAND_FFI_CALLBACK)
            continue;
        callee->trampolines[i] = make_asker(callee, i, out_error);
        if (callee->trampolines[i] == NULL) {
            errand__callee_unready(callee);
            return false;
        }
    }
    return true;
}

void
errand__callee_unready(errand__callee *callee)
{
    const uint32_t count = callee->signature->view.count;

    for (uint32_t i = 0; i < count; i++) {
        if (callee->trampolines[i] == NULL)
            continue;
        errand__mem_free(NULL, callee->trampolines[i]->owner, sizeof(asker));
        errand__trampoline_destroy(callee->trampolines[i]);
    }
    errand__mem_free(NULL, callee->trampolines, count * sizeof *callee->trampolines);
    callee->trampolines = NULL;
}

/* The answer's word; false: it is none. */
static bool
read_answer(const errand_ffi_type *result, const void *bytes, size_t size,
            uint64_t *out_word)
{
    errand__wire in = {.base = bytes, .size = size, .good = true};
    uint32_t version, zero;

    errand__wire_head(&in, &version, &zero);
    *out_word = result->kind == ERRAND_FFI_VOID ? 0 : errand__wire_word(&in);
    return errand__wire_end(&in) && version == FFI_WIRE_VERSION && zero == 0;
}

static void
ask_host(void *owner, void *result, void **arguments)
{
    const asker *self = owner;
    const errand__current *current = errand__current_call;
    const errand__trampoline *trampoline = self->callee->trampolines[self->parameter];
    errand__memory_reply question;
    const void *answer;
    size_t size;
    uint64_t word;
    bool good;

    if (current == NULL || current->callee != self->callee || current->reply->ask == NULL)
        return;
    errand__memory_reply_init(&question, QUESTION_MAX);
    good = errand__wire_put_head(&question.reply, FFI_WIRE_VERSION, self->parameter);
    for (uint32_t i = 0; i < trampoline->view.count && good; i++)
        good = errand__wire_put_result(&question.reply, &trampoline->view.parameters[i],
                                       arguments[i]);
    if (good &&
        current->reply->ask(current->reply, question.bytes, question.size, &answer,
                            &size) &&
        read_answer(&trampoline->view.result, answer, size, &word))
        errand__trampoline_answer(trampoline, result, word);
    errand__memory_reply_fini(&question);
}
