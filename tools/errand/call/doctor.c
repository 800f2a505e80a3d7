/* SPDX-License-Identifier: MIT */
/* doctor: errand doctor, what this machine offers and what follows. */
#include "call/call.h"
#include "errand/doctor.h"
#include <getopt.h>

typedef struct page {
    bool json;
    size_t count, missing;
} page;

static void
print_fact(void *arg, const errand_doctor_fact *fact)
{
    page *self = arg;

    if (self->json) {
        fputs(self->count == 0 ? "\n  {\"name\": " : ",\n  {\"name\": ", stdout);
        errand__json_text(stdout, fact->name);
        printf(", \"available\": %s, \"value\": ", fact->available ? "true" : "false");
        errand__json_text(stdout, fact->value);
        fputs(", \"advice\": ", stdout);
        errand__json_text(stdout, fact->advice);
        fputc('}', stdout);
    } else {
        printf("%-4s %-20s %s\n", fact->available ? "yes" : "no", fact->name,
               fact->value != NULL ? fact->value : "");
        if (fact->advice != NULL && fact->advice[0] != '\0')
            printf("     %-20s %s\n", "", fact->advice);
    }
    self->count++;
    self->missing += !fact->available;
}

int
errand__doctor_main(int argc, char **argv)
{
    static const struct option table[] = {
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    page self = {.json = false};
    int option;

    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
        if (option == 'h') {
            (void)errand__help_print(stdout, "doctor");
            return errand__output_code(ERRAND__EXIT_GOOD);
        }
        if (option != 'j') {
            (void)errand__options_explain(table, option, argv);
            return ERRAND__EXIT_USAGE;
        }
        self.json = true;
    }
    if (optind < argc) {
        errand__help_problem("doctor takes no '%s': only --json", argv[optind]);
        return ERRAND__EXIT_USAGE;
    }
    if (self.json)
        fputs("{\"facts\": [", stdout);
    errand_status status = errand_doctor(print_fact, &self);
    if (self.json)
        fputs("\n]}\n", stdout);
    else if (status == ERRAND_OK)
        printf("%zu of %zu are there; what is missing makes sandboxes weaker or slower, "
               "as each line says\n",
               self.count - self.missing, self.count);
    if (status != ERRAND_OK) {
        errand__help_problem("doctor: %s", errand_status_text(status));
        return ERRAND__EXIT_REFUSED;
    }
    return errand__output_code(ERRAND__EXIT_GOOD);
}
