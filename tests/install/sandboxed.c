/* SPDX-License-Identifier: MIT */
/* sandboxed: a user's program that is linked with the static library and lies elsewhere than it: a
 * sandbox is made and serves, whether it is told where errand-worker is or finds it itself. */
#include <stdio.h>
#include <errand/sandbox.h>

int
main(int argc, char **argv)
{
    errand_sandbox_config config = {.struct_size = sizeof config};
    errand_executor *sandbox = NULL;
    char text[512] = "";
    errand_status status;

    config.worker_path = argc > 1 ? argv[1] : NULL;
    status = errand_sandbox_create(&config, &sandbox, text, sizeof text);
    errand_executor_abandon(&sandbox);
    printf("%s: %s\n", errand_status_name(status), text);
    return status == ERRAND_OK ? 0 : 1;
}
