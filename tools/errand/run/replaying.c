/* SPDX-License-Identifier: MIT */
/* replaying: --replay FILE.  The log says in which order, from which seed and by which policy; the
 * script must be the one that was recorded, with the same arguments. */
#include "program.h"
#include <errno.h>
#include <string.h>

static const char *
mend_of(errand_status status)
{
    return status == ERRAND_EREPRODUCE
               ? "give the script and the arguments that were recorded"
               : "give a file that errand run --record wrote";
}

bool
errand__replaying_init(errand__options *options, const errand__script *script,
                       errand_replay **out_replay)
{
    char text[400] = "";
    errand__identity identity;
    *out_replay = NULL;
    if (options->replay_path == NULL)
        return true;
    errand__recording_identity(options, script, &identity);
    errand_replay_config config = {
        .struct_size = sizeof config,
        .path = options->replay_path,
        .build = identity.build,
        .config = identity.config,
        .build_text = identity.build_text,
        .config_text = identity.config_text,
    };
    errand_status status = errand_replay_open(&config, out_replay, text, sizeof text);
    if (status == ERRAND_OK) {
        const errand_log_header *header = errand_replay_header_of(*out_replay);
        bool taped = header->policy >> 8 == ERRAND_PROVIDER_TAPE;
        if (taped != (options->tape_path != NULL)) {
            errand__help_problem("--replay %s: its choices came from %s: %s --tape",
                                 options->replay_path, taped ? "a tape" : "its seed",
                                 taped ? "give it again with" : "leave out");
            return false;
        }
        if (errand_lua_replay_lacks_results(*out_replay, options->replay_path)) {
            errand__help_problem("--replay %s: it was recorded without "
                                 "--record-payloads, so it has no results to give: "
                                 "record it again with it",
                                 options->replay_path);
            return false;
        }
        if (header->order != ERRAND_ORDER_ARRIVAL)
            options->policy = header->policy_text;
        options->order = header->order;
        options->seed = header->seed;
        options->has_seed = true;
        return true;
    }
    if (text[0] == '\0')
        snprintf(text, sizeof text, "%s",
                 status == ERRAND_ENOMEM ? "memory ran out" : strerror(errno));
    errand__help_problem("--replay %s: %s; %s", options->replay_path, text,
                         mend_of(status));
    return false;
}
