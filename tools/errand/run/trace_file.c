/* SPDX-License-Identifier: MIT */
/* trace_file: every step of a run as a line of text, so that two runs can be compared by diff. */
#include "program.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* stdio forgets why a write failed. */
static void
keep_error(errand__trace_file *trace)
{
    if (trace->error == 0 && ferror(trace->file))
        trace->error = errno != 0 ? errno : EIO;
}

bool
errand__trace_file_init(errand__trace_file *trace, const char *path)
{
    trace->path = path;
    trace->file = NULL;
    trace->error = 0;
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
    errno = 0;
    fprintf(trace->file,
            "%" PRIu64 "\t%" PRIu64 "\t%s\t%" PRIu32 "\t%016" PRIx64 "\t%016" PRIx64 "\t",
            step->step, step->time_ns, errand_step_name(step->kind), step->detail,
            step->key, step->value);
    errand__progress_text(trace->file, step->label != NULL ? step->label : "-");
    fputc('\n', trace->file);
    keep_error(trace);
}

bool
errand__trace_file_fini(errand__trace_file *trace)
{
    if (trace->file == NULL)
        return true;
    errno = 0;
    fflush(trace->file);
    keep_error(trace);
    errno = 0;
    if (fclose(trace->file) != 0 && trace->error == 0)
        trace->error = errno != 0 ? errno : EIO;
    trace->file = NULL;
    if (trace->error != 0)
        errand__help_problem("--trace %s: the trace is not complete: %s: %s", trace->path,
                             strerror(trace->error), errand__output_mend(trace->error));
    return trace->error == 0;
}
