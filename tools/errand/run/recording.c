/* SPDX-License-Identifier: MIT */
/* recording: --record FILE.  What a log is of: the script's text and the errand that ran it; what it
 * was started with: the script's arguments.  Paths of this machine are no part of either number. */
#include "program.h"
#include <errno.h>
#include <string.h>

static uint64_t
hash(uint64_t from, const void *bytes, size_t size)
{
    const unsigned char *in = bytes;
    for (size_t i = 0; i < size; i++)
        from = (from ^ in[i]) * UINT64_C(1099511628211);
    return from;
}
#define HASH_BEGIN UINT64_C(14695981039346656037)

void
errand__recording_identity(const errand__options *options, const errand__script *script,
                           errand__identity *out_identity)
{
    errand__identity *self = out_identity;
    size_t used = 0;
    self->build = hash(HASH_BEGIN, script->text, script->size);
    self->build = hash(self->build, errand_version(), strlen(errand_version()));
    snprintf(self->build_text, sizeof self->build_text, "%s",
             script->chunk + (script->chunk[0] == '@'));
    self->config = HASH_BEGIN;
    self->config_text[0] = '\0';
    if (options->deadline_ns != 0) {
        self->config =
            hash(self->config, &options->deadline_ns, sizeof options->deadline_ns);
        used = (size_t)snprintf(self->config_text, sizeof self->config_text,
                                "--deadline %g ", (double)options->deadline_ns / 1e9);
    }
    for (int i = 0; i < options->argc; i++) {
        self->config = hash(self->config, options->argv[i], strlen(options->argv[i]) + 1);
        if (used < sizeof self->config_text)
            used += (size_t)snprintf(self->config_text + used,
                                     sizeof self->config_text - used, "%s%s",
                                     i == 0 ? "" : " ", options->argv[i]);
    }
}

bool
errand__recording_init(errand__recording *recording, const errand__options *options,
                       const errand__script *script)
{
    errand__identity identity;
    errand_recorder_config config = {
        .struct_size = sizeof config,
        .payloads =
            options->record_payloads ? ERRAND_RECORD_PAYLOADS : ERRAND_RECORD_DIGESTS,
        .path = options->record_path,
    };
    *recording = (errand__recording){.path = options->record_path};
    if (recording->path == NULL)
        return true;
    errand__recording_identity(options, script, &identity);
    config.build = identity.build;
    config.config = identity.config;
    config.build_text = identity.build_text;
    config.config_text = identity.config_text;
    errand_status status = errand_recorder_open(&config, &recording->recorder);
    if (status == ERRAND_OK)
        return true;
    errand__help_problem("--record %s: %s: give a file that can be written",
                         recording->path,
                         status == ERRAND_ENOMEM ? "memory ran out" : strerror(errno));
    return false;
}

bool
errand__recording_fini(errand__recording *recording)
{
    if (recording->recorder == NULL)
        return true;
    errand_status status = errand_recorder_close(&recording->recorder);
    if (status == ERRAND_OK)
        return true;
    int error = errno;
    errand__help_problem("--record %s: the log is not complete: %s: %s", recording->path,
                         status == ERRAND_ENOMEM ? "memory ran out" : strerror(error),
                         errand__output_mend(status == ERRAND_ENOMEM ? 0 : error));
    return false;
}
