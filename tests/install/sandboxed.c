/* SPDX-License-Identifier: MIT */
/* sandboxed: a user's program that is linked with the static library and lies elsewhere than it.
 * Without a word it must be told where errand-worker was looked for; with its path a sandbox is
 * made. */
#include <stdio.h>
#include <string.h>
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
    if (argc > 1)
        return status == ERRAND_OK ? 0 : 1;
    return status == ERRAND_ESYSTEM &&
                   strstr(text, "libexec/errand-worker in /") != NULL &&
                   strstr(text, "worker_path") != NULL
               ? 0
               : 1;
}
