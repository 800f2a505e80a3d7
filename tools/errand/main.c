/* SPDX-License-Identifier: MIT */
/* main: the command-line program: errand run, tour, explore, call, doctor, help,
 * --version. */
#include "program.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A standard stream that was closed stays one that cannot be written, or that has nothing to read:
 * else the next file that is opened would get its number, and what is printed. */
static void
hold_streams(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDONLY);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

const char *errand__program_name = "errand";

int
main(int argc, char **argv)
{
    errand__options options;
    hold_streams();
    if (argc > 0 && strchr(argv[0], '/') != NULL)
        errand__program_name = argv[0];
    signal(SIGXFSZ,
           SIG_IGN); /* a limit on file sizes is told as EFBIG, and ends nothing */
    if (argc > 1 && strcmp(argv[1], "explore") == 0)
        return errand__explore_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "call") == 0)
        return errand__call_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "doctor") == 0)
        return errand__doctor_main(argc - 1, argv + 1);
    if (!errand__options_read(argc, argv, &options))
        return ERRAND__EXIT_USAGE;
    switch (options.command) {
    case ERRAND__COMMAND_HELP:
        if (!errand__help_print(stdout, options.topic)) {
            errand__help_problem(
                "there is no help about '%s': try run, explore, tour, log, diff, call, "
                "doctor, help, version or codes",
                options.topic);
            return ERRAND__EXIT_USAGE;
        }
        break;
    case ERRAND__COMMAND_VERSION:
        errand__help_version(stdout);
        break;
    case ERRAND__COMMAND_LOG:
    case ERRAND__COMMAND_DIFF: {
        int code = options.command == ERRAND__COMMAND_LOG ? errand__log_run(&options)
                                                          : errand__diff_run(&options);
        return errand__output_code(code);
    }
    case ERRAND__COMMAND_RUN:
    case ERRAND__COMMAND_TOUR:
        return errand__run_script(&options);
    }
    int error = errand__output_error();
    if (error != 0) {
        errand__help_problem("standard output cannot be written: %s: %s", strerror(error),
                             errand__output_mend(error));
        return ERRAND__EXIT_OUTPUT;
    }
    return ERRAND__EXIT_GOOD;
}
