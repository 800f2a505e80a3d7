/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Libraries are opened in the order of the entries, confined by the first stage: their
 *   constructors can do what the final filter permits, and no more than read libraries beside.
 * - An entry that is not there is no reason to end: it is told to the host, which refuses that job
 *   alone.
 * - Before a library is opened its name and number are written where the host looks when this process
 *   ends early: a constructor that ends it is then named, and skipped by the workers that come. */
#include "program.h"

#include <dlfcn.h>
#include <ffi.h>
#include <iconv.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "foreign/foreign.h"

enum { CLOSURES = 64 };
static errand__loaded loaded[ERRAND__WIRE_ENTRIES];
static uint32_t loaded_count;

/* Has libffi make the page for closures, which is written and executed: nothing that is confined
 * may make one.  It keeps the page for those that follow. */
static void
reserve_closures(void)
{
    static void *closures[CLOSURES];
    void *code;
    for (int i = 0; i < CLOSURES; i++)
        closures[i] = ffi_closure_alloc(sizeof(ffi_closure), &code);
    for (int i = 0; i < CLOSURES; i++) {
        if (closures[i] != NULL)
            ffi_closure_free(closures[i]);
    }
}

void
errand__worker_preload(const errand__worker *self)
{
    /* pthread_exit, backtraces and exceptions need it. */
    (void)dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_GLOBAL);
    tzset();
    iconv_t tables = iconv_open("UTF-16LE", "UTF-8");
    if (tables != (iconv_t)-1)
        iconv_close(tables);
    if ((self->setup->promises & ERRAND_PROMISE_CALLBACK) != 0)
        reserve_closures();
}

/* Tells the host what is wrong with an entry; the first text stays. */
static void
refuse(errand__worker *self, uint32_t index, uint8_t state, const char *text)
{
    self->response->entry_state[index] = state;
    loaded[index].state = state;
    loaded[index].why = strdup(text);
    if (self->response->entry_text[0] == '\0')
        snprintf(self->response->entry_text, sizeof self->response->entry_text, "%s",
                 text);
}

/* A function that is called by its signature. */
static void
describe(errand__worker *self, uint32_t index, void *address, const char *signature)
{
    errand_ffi_error error = {0};
    errand__callee *callee = errand__callee_create(address, signature, &error);
    bool closures = (self->setup->promises & ERRAND_PROMISE_CALLBACK) != 0;
    if (callee != NULL && closures && !errand__callee_ready(callee, &error)) {
        errand__callee_destroy(callee);
        callee = NULL;
    }
    if (callee == NULL)
        refuse(self, index, ERRAND__ENTRY_SIGNATURE, error.text);
    loaded[index].callee = callee;
}

/* Why a library did not open.  As root's worker is another user, it may lack a right that the host
 * has. */
static void
tell_why(const errand__worker *self, const char *library, char *out_text, size_t size)
{
    const char *why = dlerror();

    if (why == NULL)
        why = library;
    if (self->user == self->setup->uid && strstr(why, "Permission denied") != NULL)
        snprintf(out_text, size,
                 "%s (the worker is user %u: let everybody read the file and search its "
                 "folders)",
                 why, (unsigned)self->user);
    else
        snprintf(out_text, size, "%s", why);
}

static void
load_entry(errand__worker *self, uint32_t index)
{
    const errand__wire_entry *entry = &self->entries[index];
    const char *library = errand__worker_text(self, entry->library);
    const char *symbol = errand__worker_text(self, entry->symbol);
    const char *signature = errand__worker_text(self, entry->signature);
    char text[ERRAND__WIRE_TEXT];
    void *handle = RTLD_DEFAULT;
    if (library != NULL && entry->skip != 0) {
        snprintf(text, sizeof text, "%s: workers that opened it ended, or hung", library);
        refuse(self, index, ERRAND__ENTRY_NO_LIBRARY, text);
        return;
    }
    if (library != NULL) {
        atomic_store_explicit(&self->response->loading, index + 1, memory_order_relaxed);
        snprintf(self->response->setup_text, sizeof self->response->setup_text,
                 "ended while it opened %s", library);
        handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        errand__worker_check_threads(self);
        atomic_store_explicit(&self->response->loading, 0, memory_order_relaxed);
        if (handle == NULL) {
            tell_why(self, library, text, sizeof text);
            refuse(self, index, ERRAND__ENTRY_NO_LIBRARY, text);
            return;
        }
    }
    void *address = symbol == NULL ? NULL : dlsym(handle, symbol);
    if (address == NULL) {
        snprintf(text, sizeof text, "%s: no symbol %s",
                 library == NULL ? "libc" : library, symbol == NULL ? "(none)" : symbol);
        refuse(self, index, ERRAND__ENTRY_NO_SYMBOL, text);
        return;
    }
    if (signature == NULL)
        memcpy(&loaded[index].plugin, &address, sizeof address);
    else
        describe(self, index, address, signature);
}

void
errand__worker_load(errand__worker *self)
{
    for (uint32_t i = 0; i < self->entry_count; i++)
        load_entry(self, i);
    loaded_count = self->entry_count;
}

const errand__loaded *
errand__worker_entry(uint32_t index)
{
    return index < loaded_count ? &loaded[index] : NULL;
}
