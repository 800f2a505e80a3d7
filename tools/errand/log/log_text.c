/* SPDX-License-Identifier: MIT */
/* log_text: a step of a log as a line for people, as fields to compare, and as JSON. */
#include "log/log_view.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "errand/task.h"

bool
errand__log_open_named(const char *path, errand_log **out_log)
{
    char text[192];
    errand_status status = errand_log_open(path, out_log, text, sizeof text);
    if (status == ERRAND_OK)
        return true;
    if (status == ERRAND_ENOMEM)
        errand__help_problem("%s: memory ran out", path);
    else
        errand__help_problem("%s: %s; give a file that errand run --record wrote", path,
                             text);
    return false;
}

void
errand__log_policy(const errand_log_header *header, char *out, size_t size)
{
    static const char *const from[] = {
        [ERRAND_PROVIDER_SEED] = "",
        [ERRAND_PROVIDER_TAPE] = ", from a tape",
        [ERRAND_PROVIDER_BYTES] = ", from bytes",
        [ERRAND_PROVIDER_ENUMERATE] = ", enumerated",
    };
    uint32_t provider = header->policy >> 8;

    snprintf(out, size, "%s%s", header->policy_text,
             provider < sizeof from / sizeof from[0] ? from[provider] : "");
}

const char *
errand__log_order(errand_order order)
{
    return order == ERRAND_ORDER_ARRIVAL  ? "arrival"
           : order == ERRAND_ORDER_INLINE ? "inline"
           : order == ERRAND_ORDER_PACED  ? "paced"
                                          : "another";
}

void
errand__log_time(uint64_t ns, char *out, size_t size)
{
    if (ns < 1000000)
        snprintf(out, size, "%" PRIu64 ".%03" PRIu64 " us", ns / 1000, ns % 1000);
    else if (ns < UINT64_C(1000000000))
        snprintf(out, size, "%" PRIu64 ".%06" PRIu64 " ms", ns / 1000000, ns % 1000000);
    else
        snprintf(out, size, "%" PRIu64 ".%09" PRIu64 " s", ns / UINT64_C(1000000000),
                 ns % UINT64_C(1000000000));
}

static const char *
word_of(uint32_t number, const char *const *words, size_t count)
{
    return number < count && words[number] != NULL ? words[number] : "unknown";
}
#define WORD(number, words) word_of((number), (words), sizeof(words) / sizeof(words)[0])

static const char *
why_word(uint32_t why)
{
    static const char *const words[] = {
        [ERRAND_WHY_START] = "starts",
        [ERRAND_WHY_YIELDED] = "yielded",
        [ERRAND_WHY_TIME] = "its time came",
        [ERRAND_WHY_COMPLETION] = "hears of its operation",
        [ERRAND_WHY_JOINED] = "joined",
        [ERRAND_WHY_WOKEN] = "was woken",
        [ERRAND_WHY_CANCELLED] = "was cancelled",
        [ERRAND_WHY_STOPPED] = "a stop was asked for",
    };
    return WORD(why, words);
}

static const char *
end_word(uint32_t end)
{
    static const char *const words[] = {
        [ERRAND_END_DONE] = "done",
        [ERRAND_END_FAILED] = "failed",
        [ERRAND_END_CANCELLED] = "cancelled",
        [ERRAND_END_ABORTED] = "aborted",
    };
    return WORD(end, words);
}

/* ---- a line ------------------------------------------------------------------------------------- */

static void
print_completion(FILE *file, const errand_log_step *step)
{
    const errand_log_completion *completion = step->completion;
    fprintf(file, " %s", errand_outcome_name((errand_outcome)step->step.detail));
    if (completion == NULL)
        return;
    if ((completion->flags & ERRAND_LATE) != 0)
        fputs(", late", file);
    if (completion->payload != ERRAND_LOG_PAYLOAD_NONE)
        fprintf(file, ", %" PRIu64 " bytes, digest %016" PRIx64, completion->payload_size,
                completion->payload_digest);
    if (completion->code != ERRAND_CODE_NONE) {
        fprintf(file, ", code %s: ", errand_code_name(completion->code));
        errand__progress_text(file, completion->message);
    }
}

static void
print_what(FILE *file, const errand_log_step *log_step)
{
    const errand_step *step = &log_step->step;
    char time[48];
    errand__log_time(step->value, time, sizeof time);
    switch (step->kind) {
    case ERRAND_STEP_SUBMIT:
        if (step->value != 0)
            fprintf(file, " due %s", time);
        break;
    case ERRAND_STEP_COMPLETION:
        print_completion(file, log_step);
        break;
    case ERRAND_STEP_TASK:
        fprintf(file, " %s", why_word(step->detail));
        break;
    case ERRAND_STEP_END:
        fprintf(file, " %s", end_word(step->detail));
        break;
    case ERRAND_STEP_CANCEL:
        fprintf(file, " %s", errand_reason_name((errand_reason)step->detail));
        break;
    case ERRAND_STEP_DRAW:
        fprintf(file, " number %" PRIu64 " is %016" PRIx64, step->context + 1,
                step->value);
        break;
    case ERRAND_STEP_NOTE:
        fprintf(file, " %" PRIu64 " bytes, digest %016" PRIx64, step->context,
                step->value);
        break;
    case ERRAND_STEP_TIMER:
        fprintf(file, " deadline %s", time);
        break;
    default:
        break;
    }
}

static bool
has_who(errand_step_kind kind)
{
    return kind != ERRAND_STEP_TIME && kind != ERRAND_STEP_NOTE &&
           kind != ERRAND_STEP_COMMAND && kind != ERRAND_STEP_STOP;
}

void
errand__log_line(FILE *file, const errand__names *names, const errand_log_step *log_step)
{
    const errand_step *step = &log_step->step;
    const char *name = errand_step_name(step->kind);
    bool named = has_who(step->kind) || step->label != NULL;
    char time[48], path[160];
    errand__log_time(step->time_ns, time, sizeof time);
    fprintf(file, "%8" PRIu64 "  %17s  %s%*s", step->step, time, name,
            named ? 11 - (int)strlen(name) : 0, "");
    if (has_who(step->kind)) {
        errand__names_path(names, step->key, path, sizeof path);
        errand__progress_text(file, path);
    } else if (step->label != NULL) {
        errand__progress_text(file, step->label);
    }
    if (step->kind != ERRAND_STEP_TIME && step->kind != ERRAND_STEP_SPAWN)
        fputc(':', file);
    print_what(file, log_step);
}

/* ---- fields --------------------------------------------------------------------------------------- */

typedef struct field_list {
    errand__field *fields;
    size_t count;
} field_list;

static void ERRAND_PRINTF(4, 5)
    add(field_list *list, const char *name, bool counts, const char *format, ...)
{
    errand__field *field = &list->fields[list->count];
    va_list arguments;
    if (list->count == ERRAND__FIELDS)
        return;
    list->count++;
    field->name = name;
    field->counts = counts;
    va_start(arguments, format);
    vsnprintf(field->text, sizeof field->text, format, arguments);
    va_end(arguments);
}

static void
add_time(field_list *list, const char *name, uint64_t ns)
{
    char text[48];
    errand__log_time(ns, text, sizeof text);
    add(list, name, true, "%s", text);
}

static void
add_bytes(field_list *list, const void *bytes, size_t size, size_t around)
{
    char text[ERRAND__LOG_WINDOW];
    if (bytes == NULL)
        return;
    errand__log_window(bytes, size, around, text);
    add(list, "bytes", false, "%s", text);
}

static void
add_payload(field_list *list, const errand_log_completion *completion, size_t around)
{
    static const char *const forms[] = {"none", "only its digest", "recorded", "left out",
                                        "of a type without digest"};
    if (completion->payload == ERRAND_LOG_PAYLOAD_NONE)
        return;
    add(list, "payload", false, "%s (%s)", completion->payload_type,
        WORD((uint32_t)completion->payload, forms));
    add(list, "size", true, "%" PRIu64, completion->payload_size);
    add(list, "digest", true, "%016" PRIx64, completion->payload_digest);
    add_bytes(list, completion->bytes, completion->size, around);
}

static void
add_completion(field_list *list, const errand_log_step *step, size_t around)
{
    const errand_log_completion *completion = step->completion;
    add(list, "outcome", true, "%s",
        errand_outcome_name((errand_outcome)step->step.detail));
    if (completion == NULL)
        return;
    add(list, "code", true, "%s", errand_code_name(completion->code));
    if (completion->code == ERRAND_CODE_JOB)
        add(list, "job code", true, "%" PRId32, completion->job_code);
    add(list, "flags", true, "%s%s%s%s%s", completion->flags == 0 ? "none" : "",
        (completion->flags & ERRAND_LATE) != 0 ? "late " : "",
        (completion->flags & ERRAND_HELD) != 0 ? "held " : "",
        (completion->flags & ERRAND_CANCEL_REQUESTED) != 0 ? "cancel-requested " : "",
        (completion->flags & ERRAND_MESSAGE_LOST) != 0 ? "message-lost" : "");
    if (completion->message[0] != '\0')
        add(list, "message", false, "%s", completion->message);
    if (completion->sys_errno != 0)
        add(list, "errno", false, "%s", strerror(completion->sys_errno));
    add_payload(list, completion, around);
}

static void
add_kind(field_list *list, const errand__names *names, const errand_log_step *log_step,
         size_t around)
{
    const errand_step *step = &log_step->step;
    char path[160];
    switch (step->kind) {
    case ERRAND_STEP_SUBMIT:
        if (step->value != 0)
            add_time(list, "due", step->value);
        add(list, "kind", true, "%" PRIu32, step->detail);
        break;
    case ERRAND_STEP_COMPLETION:
        add_completion(list, log_step, around);
        break;
    case ERRAND_STEP_TASK:
        add(list, "why", true, "%s", why_word(step->detail));
        add(list, "ready set", true, "%016" PRIx64, step->context);
        break;
    case ERRAND_STEP_SPAWN:
        errand__names_path(names, step->context, path, sizeof path);
        add(list, "parent", true, "%s", step->context == 0 ? "none" : path);
        break;
    case ERRAND_STEP_END:
        add(list, "end", true, "%s", end_word(step->detail));
        break;
    case ERRAND_STEP_CANCEL:
        add(list, "reason", true, "%s", errand_reason_name((errand_reason)step->detail));
        break;
    case ERRAND_STEP_DRAW:
        add(list, "draws before", true, "%" PRIu64, step->context);
        add(list, "number", true, "%016" PRIx64, step->value);
        break;
    case ERRAND_STEP_NOTE:
        add(list, "size", true, "%" PRIu64, step->context);
        add(list, "digest", true, "%016" PRIx64, step->value);
        add_bytes(list, log_step->bytes, log_step->size, around);
        break;
    case ERRAND_STEP_TIMER:
        add_time(list, "deadline", step->value);
        break;
    case ERRAND_STEP_TIME:
        add_time(list, "to", step->value);
        break;
    default:
        add(list, "value", true, "%016" PRIx64, step->value);
        break;
    }
}

size_t
errand__log_fields(const errand__names *names, const errand_log_step *log_step,
                   size_t around, errand__field *out_fields)
{
    const errand_step *step = &log_step->step;
    field_list list = {.fields = out_fields};
    char path[160];
    add(&list, "event", true, "%s", errand_step_name(step->kind));
    add_time(&list, "time", step->time_ns);
    if (has_who(step->kind)) {
        errand__names_path(names, step->key, path, sizeof path);
        add(&list,
            step->kind == ERRAND_STEP_SUBMIT || step->kind == ERRAND_STEP_COMPLETION
                ? "operation"
                : "task",
            true, "%s", path);
        add(&list, "key", true, "%016" PRIx64, step->key);
    }
    if (step->label != NULL && !has_who(step->kind))
        add(&list, "label", true, "%s", step->label);
    add_kind(&list, names, log_step, around);
    if (step->chosen != 0)
        add(&list, "chosen", true, "%016" PRIx64, step->chosen);
    return list.count;
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

void
errand__log_json_step(FILE *file, const errand__names *names, const errand_log_step *step,
                      size_t around)
{
    errand__field fields[ERRAND__FIELDS];
    size_t count = errand__log_fields(names, step, 0, fields);
    fprintf(file, "{\"step\": %" PRIu64 ", \"time_ns\": %" PRIu64, step->step.step,
            step->step.time_ns);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i].name, "time") == 0)
            continue;
        fputs(", ", file);
        errand__json_text(file, fields[i].name);
        fputs(": ", file);
        if (strcmp(fields[i].name, "bytes") == 0)
            errand__log_json_bytes(file, step, around);
        else
            errand__json_text(file, fields[i].text);
    }
    fputc('}', file);
}
