/* SPDX-License-Identifier: MIT */
/* trace_file: every step of a run as a line of text, so that two runs can be compared by diff. */
#include "program.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char *
kind_name(errand_step_kind kind)
{
    static const char *const names[] = {
        [ERRAND_STEP_SUBMIT] = "submit",   [ERRAND_STEP_COMPLETION] = "completion",
        [ERRAND_STEP_TASK] = "task",       [ERRAND_STEP_SPAWN] = "spawn",
        [ERRAND_STEP_END] = "end",         [ERRAND_STEP_TIMER] = "timer",
        [ERRAND_STEP_CANCEL] = "cancel",   [ERRAND_STEP_DRAW] = "draw",
        [ERRAND_STEP_COMMAND] = "command", [ERRAND_STEP_NOTE] = "note",
        [ERRAND_STEP_TIME] = "time",
    };
    size_t number = (size_t)kind;
    if (number >= sizeof names / sizeof names[0] || names[number] == NULL)
        return "unknown";
    return names[number];
}

bool
errand__trace_file_init(errand__trace_file *trace, const char *path)
{
    trace->path = path;
    trace->file = NULL;
    if (path == NULL)
        return true;
    trace->file = fopen(path, "we");
    if (trace->file == NULL) {
        errand__help_problem("--trace %s: %s: give a file that can be written", path,
                             strerror(errno));
        return false;
    }
    fputs("# errand trace 1\n# step\ttime_ns\tkind\tdetail\tkey\tvalue\tlabel\n",
          trace->file);
    return true;
}

void
errand__trace_file_step(errand__trace_file *trace, const errand_step *step)
{
    if (trace->file == NULL)
        return;
    fprintf(trace->file,
            "%" PRIu64 "\t%" PRIu64 "\t%s\t%" PRIu32 "\t%016" PRIx64 "\t%016" PRIx64 "\t",
            step->step, step->time_ns, kind_name(step->kind), step->detail, step->key,
            step->value);
    errand__progress_text(trace->file, step->label != NULL ? step->label : "-");
    fputc('\n', trace->file);
}

bool
errand__trace_file_fini(errand__trace_file *trace)
{
    if (trace->file == NULL)
        return true;
    bool good = fflush(trace->file) == 0 && !ferror(trace->file);
    int error = errno;
    good = fclose(trace->file) == 0 && good;
    trace->file = NULL;
    if (!good)
        errand__help_problem("--trace %s: the trace is not complete: %s", trace->path,
                             strerror(error));
    return good;
}
