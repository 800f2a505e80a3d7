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

bool
errand__recording_init(errand__recording *recording, const errand__options *options,
                       const errand__script *script)
{
    char build[128], text[256] = "";
    errand_recorder_config config = {
        .struct_size = sizeof config,
        .payloads =
            options->record_payloads ? ERRAND_RECORD_PAYLOADS : ERRAND_RECORD_DIGESTS,
        .path = options->record_path,
        .build_text = build,
        .config_text = text,
    };
    size_t used = 0;
    *recording = (errand__recording){.path = options->record_path};
    if (recording->path == NULL)
        return true;
    config.build = hash(HASH_BEGIN, script->text, script->size);
    config.build = hash(config.build, errand_version(), strlen(errand_version()));
    snprintf(build, sizeof build, "%s", script->chunk + (script->chunk[0] == '@'));
    config.config = HASH_BEGIN;
    for (int i = 0; i < options->argc; i++) {
        config.config =
            hash(config.config, options->argv[i], strlen(options->argv[i]) + 1);
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                     i == 0 ? "" : " ", options->argv[i]);
    }
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
