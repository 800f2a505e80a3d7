/* SPDX-License-Identifier: MIT */
/* diff: errand diff A B: two logs, and the first event that differs, for people or as JSON.
 *
 * The answer goes to standard output, what is wrong with a log to standard error.  Exit codes are
 * those of diff: 0 equal, 1 different, 2 cannot be told. */
#include "log/log_view.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EQUAL = 0, DIFFERENT = 1, TROUBLE = 2, COLUMN = 38 };

/* ---- what is said of the logs themselves ------------------------------------------------------------ */

static bool
is_whole(const errand_log_end *end)
{
    return end->state == ERRAND_LOG_ENDED;
}

typedef struct header_line {
    const char *name;
    char texts[2][160];
} header_line;

/* What differs between the headers, at most 6 lines. */
static size_t
compare_headers(const errand__diff *diff, header_line *lines)
{
    const errand_log_header *headers[2];
    const char *const names[] = {"errand", "build", "config", "order", "seed", "policy"};
    size_t count = 0;
    for (size_t i = 0; i < 6; i++) {
        header_line *line = &lines[count];
        line->name = names[i];
        for (int k = 0; k < 2; k++) {
            const errand_log_header *h = headers[k] = errand_log_header_of(diff->logs[k]);
            char *out = line->texts[k];
            size_t size = sizeof line->texts[k];
            if (i == 0)
                snprintf(out, size, "%s", h->version);
            else if (i == 1)
                snprintf(out, size, "%016" PRIx64 " %s", h->build, h->build_text);
            else if (i == 2)
                snprintf(out, size, "%016" PRIx64 " %s", h->config, h->config_text);
            else if (i == 3)
                snprintf(out, size, "%s", errand__log_order(h->order));
            else if (i == 4)
                snprintf(out, size, "%" PRIu64, h->seed);
            else
                errand__log_policy(h, out, size);
        }
        count += strcmp(line->texts[0], line->texts[1]) != 0;
    }
    return count;
}

/* ---- for people ----------------------------------------------------------------------------------------- */

typedef struct colours {
    const char *bold, *mark, *faint, *off;
} colours;

static colours
look_of_output(void)
{
    const char *term = getenv("TERM");
    if (!isatty(STDOUT_FILENO) || getenv("NO_COLOR") != NULL || term == NULL ||
        strcmp(term, "dumb") == 0)
        return (colours){"", "", "", ""};
    return (colours){"\033[1m", "\033[1;31m", "\033[2m", "\033[0m"};
}

/* Is it of what is not compared in arrival order, since it is another in each run? */
static bool
is_of_real_time(const char *name)
{
    static const char *const names[] = {"time", "to", "deadline", "ready set", "chosen"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

/* Control characters are escaped; cut with a mark at a column's width. */
static void
print_cell(const char *text, int width)
{
    char cell[512];
    size_t used = 0, columns = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        used += (size_t)snprintf(cell + used, sizeof cell - used,
                                 *c < 0x20 || *c == 0x7f ? "\\x%02x" : "%c", *c);
        columns += (*c & 0xc0) != 0x80;
        if (used > sizeof cell - 8)
            break;
    }
    fputs(cell, stdout);
    for (; (int)columns < width; columns++)
        putchar(' ');
}

static void
print_row(const colours *look, const char *name, const char *a, const char *b,
          bool counts, bool compared)
{
    bool differ = compared && strcmp(a, b) != 0;
    const char *mark = differ && counts ? look->mark : differ ? look->bold : "";
    printf("%s%c %-13s", mark, differ ? '*' : ' ', name);
    if ((int)strlen(a) < COLUMN) {
        print_cell(a, COLUMN);
        print_cell(b, 0);
    } else { /* below each other */
        print_cell(a, 0);
        printf("\n%c %-13s%*s", differ ? '*' : ' ', "", COLUMN, "");
        print_cell(b, 0);
    }
    printf("%s\n", differ ? look->off : "");
}

static const char *
text_of(const errand__field *fields, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i].name, name) == 0)
            return fields[i].text;
    }
    return NULL;
}

static void
print_fields(const errand__diff *diff, const colours *look)
{
    errand__field fields[2][ERRAND__FIELDS];
    size_t counts[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        if (diff->steps[i][0].there)
            counts[i] = errand__log_fields(&diff->names[i], &diff->steps[i][0].at,
                                           diff->around, fields[i]);
    }
    printf("%s  %-13sA                                     B%s\n", look->faint, "",
           look->off);
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < counts[i]; k++) {
            const errand__field *field = &fields[i][k];
            const char *other = text_of(fields[1 - i], counts[1 - i], field->name);
            if (i == 1 && other != NULL)
                continue; /* A's row was printed */
            if (other == NULL)
                other = diff->steps[1 - i][0].there ? "-" : "(the log ends before)";
            print_row(look, field->name, i == 0 ? field->text : other,
                      i == 0 ? other : field->text, field->counts,
                      !diff->no_times || !is_of_real_time(field->name));
        }
    }
}

static void
print_wrapped(const char *before, const char *text)
{
    size_t column = strlen(before), indent = column;
    fputs(before, stdout);
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (column + length > 88 && column > indent) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        }
        fwrite(text, 1, length, stdout);
        column += length + 1;
        text += length;
        if (*text == ' ') {
            text++;
            if (column + strcspn(text, " ") <= 88)
                putchar(' ');
        }
    }
    putchar('\n');
}

/* Does the last note come before the steps that are printed anyway? */
static bool
note_is_farther(const errand__diff *diff)
{
    return diff->note.there && diff->common_count > 0 &&
           diff->note.at.step.step < diff->common[0].at.step.step;
}

static void
print_difference(const errand__diff *diff)
{
    colours look = look_of_output();
    char time[48];
    int with = diff->steps[0][0].there ? 0 : 1;
    if (note_is_farther(diff)) {
        printf("%sthe last note, which is equal in both:%s\n  ", look.faint, look.off);
        errand__log_line(stdout, &diff->names[0], &diff->note.at);
        puts("\n");
    }
    if (diff->common_count > 0)
        printf("%sthe last %zu steps that are equal in both:%s\n", look.faint,
               diff->common_count, look.off);
    for (size_t i = 0; i < diff->common_count; i++) {
        fputs("  ", stdout);
        errand__log_line(stdout, &diff->names[0], &diff->common[i].at);
        putchar('\n');
    }
    errand__log_time(diff->steps[with][0].at.step.time_ns, time, sizeof time);
    printf("%s%sthe runs differ first at step %" PRIu64 ", at %s%s\n",
           diff->common_count > 0 ? "\n" : "", look.bold, diff->step, time, look.off);
    print_fields(diff, &look);
    printf("\n%s", look.bold);
    print_wrapped("hint: ", diff->cause);
    fputs(look.off, stdout);
    print_wrapped("mend: ", diff->mend);
}

/* ---- as JSON ---------------------------------------------------------------------------------------------- */

static void
json_pair(const char *before, const char *name, const char *text)
{
    fputs(before, stdout);
    errand__json_text(stdout, name);
    fputs(": ", stdout);
    errand__json_text(stdout, text);
}

static void
print_json(const errand__diff *diff, const char *answer, const header_line *lines,
           size_t count)
{
    json_pair("{", "answer", answer);
    printf(", \"steps_compared\": %" PRIu64, diff->differs ? diff->step - 1 : diff->step);
    fputs(", \"headers\": [", stdout);
    for (size_t i = 0; i < count; i++) {
        json_pair(i == 0 ? "{" : ", {", "name", lines[i].name);
        json_pair(", ", "a", lines[i].texts[0]);
        json_pair(", ", "b", lines[i].texts[1]);
        putchar('}');
    }
    putchar(']');
    for (int i = 0; i < 2; i++)
        json_pair(", ", i == 0 ? "log_a" : "log_b", diff->ends[i].text);
    if (diff->differs) {
        printf(", \"step\": %" PRIu64, diff->step);
        json_pair(", ", "hint", diff->hint);
        json_pair(", ", "cause", diff->cause);
        json_pair(", ", "mend", diff->mend);
        for (int i = 0; i < 2; i++) {
            fputs(i == 0 ? ", \"a\": " : ", \"b\": ", stdout);
            if (diff->steps[i][0].there)
                errand__log_json_step(stdout, &diff->names[i], &diff->steps[i][0].at,
                                      diff->around);
            else
                fputs("null", stdout);
        }
        fputs(", \"common\": [", stdout);
        for (size_t i = 0; i < diff->common_count; i++) {
            fputs(i == 0 ? "" : ", ", stdout);
            errand__log_json_step(stdout, &diff->names[0], &diff->common[i].at, 0);
        }
        fputs("], \"note\": ", stdout);
        if (diff->note.there)
            errand__log_json_step(stdout, &diff->names[0], &diff->note.at, 0);
        else
            fputs("null", stdout);
    }
    puts("}");
}

/* ---- the command -------------------------------------------------------------------------------------------- */

static void
print_headers(const header_line *lines, size_t count)
{
    colours look = look_of_output();
    for (size_t i = 0; i < count; i++)
        print_row(&look, lines[i].name, lines[i].texts[0], lines[i].texts[1], true, true);
    if (count > 0)
        putchar('\n');
}

/* Nothing differs in what both have: are they equal, then? */
static int
judge_rest(const errand__diff *diff, const char **out_answer)
{
    const errand_log_end *a = &diff->ends[0], *b = &diff->ends[1];
    *out_answer = "unknown";
    if (!is_whole(a) || !is_whole(b))
        return TROUBLE;
    *out_answer = "equal";
    if (a->run == b->run &&
        (diff->in_shutdown ||
         (a->clean == b->clean && (diff->no_times || a->digest == b->digest))))
        return EQUAL;
    *out_answer = "different end";
    return DIFFERENT;
}

static void
print_rest(const errand__diff *diff, int code)
{
    const errand_log_end *a = &diff->ends[0], *b = &diff->ends[1];
    if (code == EQUAL && diff->in_shutdown)
        printf("equal: %" PRIu64 " steps, to the end of the runs; how their shutdowns "
               "ended what was still out is decided by no seed\n",
               diff->step);
    else if (code == EQUAL)
        printf("equal: %" PRIu64 " steps, digest %016" PRIx64 "\n", diff->step,
               a->digest);
    else if (code == DIFFERENT)
        printf("all %" PRIu64 " steps are equal, but the runs ended differently: %s and "
               "%s; %s and %s\n",
               diff->step, errand_status_name(a->run), errand_status_name(b->run),
               a->clean ? "clean" : "not clean", b->clean ? "clean" : "not clean");
    else
        printf("equal as far as both can be read, which is step %" PRIu64 "\n",
               diff->step);
}

/* A difference that is only that a broken log ends tells nothing. */
static bool
is_cut(const errand__diff *diff)
{
    for (int i = 0; i < 2; i++) {
        if (diff->differs && !diff->steps[i][0].there && !is_whole(&diff->ends[i]))
            return true;
    }
    return false;
}

static int
compare(errand__diff *diff, bool json)
{
    header_line lines[7];
    const char *answer = "different";
    size_t count;
    int code = DIFFERENT;
    if (!errand__diff_find(diff))
        return TROUBLE;
    for (int i = 0; i < 2; i++) {
        if (!is_whole(&diff->ends[i]))
            errand__help_problem("%s: %s", diff->paths[i], diff->ends[i].text);
    }
    if (diff->no_times && !json)
        errand__help_problem("a log is of arrival order: times are not compared");
    if (is_cut(diff)) {
        diff->differs = false;
        diff->step--;
    }
    if (diff->differs)
        errand__diff_hint(diff);
    else
        code = judge_rest(diff, &answer);
    count = compare_headers(diff, lines);
    if (json) {
        print_json(diff, answer, lines, count);
        return code;
    }
    print_headers(lines, count);
    if (diff->differs)
        print_difference(diff);
    else
        print_rest(diff, code);
    return code;
}

int
errand__diff_run(const errand__options *options)
{
    errand__diff *diff = calloc(1, sizeof *diff);
    int code = TROUBLE;
    if (diff == NULL) {
        errand__help_problem("memory ran out");
        return TROUBLE;
    }
    for (int i = 0; i < 2; i++)
        diff->paths[i] = options->logs[i];
    if (errand__log_open_named(diff->paths[0], &diff->logs[0]) &&
        errand__log_open_named(diff->paths[1], &diff->logs[1]))
        code = compare(diff, options->json);
    errand__diff_fini(diff);
    free(diff);
    return code;
}
