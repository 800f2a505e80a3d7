/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_PROGRAM_H
#define ERRAND_SANDBOX_PROGRAM_H
/* program: the worker process of a sandbox, from its start to its last request.
 *
 * Its life is the order of the files: main, confine (with ruleset), load, serve; report is about its
 * sudden ends.  A template is a worker
 * that has not begun: template forks from it.  It has one thread and one set of globals: it is one worker. */
#include "errand/plugin.h"
#include "errand/sandbox.h"
#include "workers/sandbox/wire.h"

#define ERRAND__WORKER_PRINTF(a, b) __attribute__((format(printf, a, b)))

typedef struct errand__worker {
    const errand__wire_request *request; /* the request file, read only */
    const unsigned char *request_bytes;
    const unsigned char *input; /* the input file, read only; NULL = none */
    errand__wire_response *response;
    unsigned char *response_bytes; /* where results go; response_size of them */
    size_t response_size;
    /* What it may do: the first set-up that this process was given counts for good. */
    const errand__wire_setup *setup;
    const unsigned char *setup_bytes;
    /* What it is to open, of the set-up that came with its files. */
    const errand__wire_entry *entries;
    uint32_t entry_count;
    const unsigned char *entry_bytes;
    bool preloaded;  /* what must be opened once was, by the template */
    uint32_t layers; /* achieved */
    uint32_t user;   /* who it is, once it is confined: the filter answers 0 to all */
    uint32_t landlock_abi; /* of the rulesets; 0 = none */
    uint32_t processors;   /* that it may run on */
    int rulesets[2];       /* -1 = none */
    int tasks;             /* /proc/self/task, -1 = none: how many threads there are */
} errand__worker;

/* ---- main.c */
/* Ends the program: code is ERRAND__SETUP_..., error an errno or 0. */
_Noreturn void errand__worker_fail(errand__worker *self, uint32_t code, int error,
                                   const char *format, ...) ERRAND__WORKER_PRINTF(4, 5);
/* A text of an entry. */
static inline const char *
errand__worker_text(const errand__worker *self, uint32_t offset)
{
    return offset == 0 ? NULL : (const char *)self->entry_bytes + offset;
}
/* Its files are descriptors 3 and 4: from there to the end. */
_Noreturn void errand__worker_live(errand__worker *self);

/* ---- confine.c */
/* Its end follows the host's: by its parent's death, and by its lifeline. */
void errand__worker_follow(errand__worker *self);
/* Descriptors from first to last. */
void errand__worker_close(unsigned first, unsigned last);
/* Before libraries are opened: everything but the last filter and ruleset. */
void errand__worker_confine(errand__worker *self);
/* After that: the rest.  Fails if it has threads that it was not promised. */
void errand__worker_seal(errand__worker *self);
/* Fails if a library has started threads that it was not promised. */
void errand__worker_check_threads(errand__worker *self);

/* ---- ruleset.c */
/* Both rulesets, while files can still be opened; sets rulesets and landlock_abi.  False: there is
 * no landlock here, errno says why. */
bool errand__rulesets_create(errand__worker *self);
bool errand__ruleset_enforce(errand__worker *self, int stage, bool all_threads);

/* ---- load.c */
/* What the C library would open later, when it no longer can. */
void errand__worker_preload(const errand__worker *self);
void errand__worker_load(errand__worker *self);
/* How an entry is called: the function of a plug-in, or a description of a foreign one. */
struct errand__callee;
typedef struct errand__loaded {
    errand_plugin_fn *plugin;
    struct errand__callee *callee;
    uint8_t state;   /* ERRAND__ENTRY_... */
    const char *why; /* it cannot be called; NULL with FINE */
} errand__loaded;
const errand__loaded *errand__worker_entry(uint32_t index); /* NULL = no such number */

/* ---- serve.c */
_Noreturn void errand__worker_serve(errand__worker *self);

/* ---- template.c */
/* Forks workers for its host, until that is gone.  word: of its command line; workers have another. */
_Noreturn void errand__template_serve(errand__worker *self, char *word);

/* ---- report.c */
/* All signals do what they do by default and none is blocked; then handlers that note faults and denied calls in response, and then let them end the process. */
void errand__report_init(errand__wire_response *response, bool denied_too);
/* What it may have is limited to that from now on. */
void errand__report_limit(uint64_t memory_bytes);
/* A request begins: what was refused to those before it is forgotten; the first is told of libraries, too. */
void errand__report_begin(void);

#endif
