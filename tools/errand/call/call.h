/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TOOLS_CALL_H
#define ERRAND_TOOLS_CALL_H
/* call: errand call, one foreign call from the command line; errand doctor. */
#include "program.h"
#include "errand/executor.h"
#include "errand/ffi.h"
#include "errand/operations.h"
#include "errand/sandbox.h"

/* What the command line of errand call says. */
typedef struct errand__call_options {
    bool process, json;
    errand_sandbox_policy policy;
    errand_sandbox_config sandbox;
    errand_sandbox_path paths[16];
    const char *path_words[16], *path_rights[16]; /* as written; rights NULL: none */
    uint16_t ports[16];
    uint64_t deadline_ns;
    const char *library, *symbol, *signature;
    char **arguments;
    int count;
} errand__call_options;

/* ---- call_options.c ------------------------------------------------------------------------ */
/* argv[0] is "call".  False: it was wrong, and a message has said why. */
bool errand__call_options_read(int argc, char **argv, errand__call_options *out_options);
/* Bytes of a file as an argument: of a sandbox those of its requests. */
size_t errand__call_file_max(const errand__call_options *options);

/* ---- call_values.c -------------------------------------------------------------------------- */
/* Reads one argument for a parameter of this type; what it points to lives until fini.  False: a
 * message has said why. */
typedef struct errand__call_values {
    size_t file_max; /* bytes that @FILE may give */
    bool sandboxed;
    errand_ffi_value values[64];
    void *kept[256];
    size_t kept_count;
} errand__call_values;
bool errand__call_values_read(errand__call_values *values, uint32_t at,
                              const errand_ffi_type *type, const char *text);
void errand__call_values_fini(errand__call_values *values);
/* Prints a result in the same notation, on one line. */
void errand__call_values_print(FILE *file, const errand_ffi_value *value);
void errand__call_bytes_print(FILE *file, const unsigned char *bytes, size_t size);

#endif
