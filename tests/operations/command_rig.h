/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_OPERATIONS_COMMAND_RIG_H
#define ERRAND_TESTS_OPERATIONS_COMMAND_RIG_H
/* command_rig: a command that is run to its end, and what came of it. */
#include "rig.h"

/* NULL: it did not complete. */
static inline const errand_command_result *
run(test_rig *rig, errand_command_config *config)
{
    errand_spec spec;

    config->struct_size = sizeof *config;
    assert_int_equal(errand_spec_command(&spec, config), ERRAND_OK);
    rig_run(rig, &spec);
    return rig->result.outcome == ERRAND_COMPLETED
               ? rig_payload(rig, &errand_command_result_type)
               : NULL;
}

/* It must complete. */
static inline const errand_command_result *
shell(test_rig *rig, const char *text)
{
    const char *argv[] = {"sh", "-c", text, NULL};
    errand_command_config config = {.argv = argv};
    const errand_command_result *result = run(rig, &config);

    if (result == NULL)
        fail_msg("%s", rig->result.message);
    return result;
}

#endif
