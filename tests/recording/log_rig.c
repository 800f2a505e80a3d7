/* SPDX-License-Identifier: MIT */
/* Design notes: see log_rig.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "errand/testing.h"
#include "log_rig.h"

int
log_setup(void **state)
{
    static log_rig rig;
    const errand_log_header header = {
        .version = "9.8.7",
        .order = ERRAND_ORDER_INLINE,
        .seed = 77,
        .start_ns = 5,
        .policy = 3,
        .policy_text = "shuffle",
    };
    errand_recorder_config config = {
        .struct_size = sizeof config,
        .payloads = ERRAND_RECORD_PAYLOADS,
        .build = 11,
        .config = 12,
        .build_text = "the build",
        .config_text = "the config",
    };
    int fd;

    rig = (log_rig){.path = "/tmp/errand-log-XXXXXX", .mix = 99};
    rig.live = errand_testing_live_bytes();
    fd = mkstemp(rig.path);
    assert_true(fd >= 0);
    close(fd);
    config.path = rig.path;
    assert_int_equal(errand_recorder_open(&config, &rig.recorder), ERRAND_OK);
    errand__recorder_begin(rig.recorder, &header, NULL);
    *state = &rig;
    return 0;
}

int
log_teardown(void **state)
{
    log_rig *rig = *state;

    if (rig->recorder != NULL)
        assert_int_equal(errand_recorder_close(&rig->recorder), ERRAND_OK);
    free(rig->bytes);
    unlink(rig->path);
    assert_int_equal(errand_testing_live_bytes(), rig->live);
    return 0;
}

void
log_step(log_rig *rig, errand_step_kind kind, uint64_t value, const char *label,
         const errand_log_completion *completion, const void *more, size_t size)
{
    unsigned char bytes[ERRAND__STEP_BYTES];
    uint64_t n = ++rig->steps;

    errand__word_write(bytes, n);
    errand__word_write(bytes + 8, n * 10);
    errand__word_write(bytes + 16, (uint64_t)kind << 32 | (n & 7));
    errand__word_write(bytes + 24, n * n);
    errand__word_write(bytes + 32, value);
    errand__word_write(bytes + 40, errand__label_hash(label));
    errand__word_write(bytes + 48, n + 1);
    errand__word_write(bytes + 56, n + 2);
    rig->mix = errand__mix_bytes(rig->mix, bytes, sizeof bytes);
    errand__recorder_step(rig->recorder, &(errand__record_step){
                                             .bytes = bytes,
                                             .step = n,
                                             .label_hash = errand__label_hash(label),
                                             .mix = rig->mix,
                                             .label = label,
                                             .completion = completion,
                                             .more = more,
                                             .more_size = size,
                                         });
}

static const char *
label_of(uint64_t n, char *out, size_t size)
{
    if (n % 3 == 0)
        return NULL;
    snprintf(out, size, "label %d", (int)(n % 100));
    return out;
}

static errand_log_completion
completion_of(uint64_t n)
{
    return (errand_log_completion){
        .outcome = ERRAND_FAILED,
        .code = ERRAND_CODE_JOB,
        .flags = (uint32_t)n,
        .job_code = 3,
        .sys_errno = 4,
        .signal_number = 5,
        .message = n % 2 == 0 ? "it failed" : "",
        .system_call = "",
        .operation = n,
        .trace_id = 1,
        .t_submit_ns = 2,
        .t_start_ns = 3,
        .t_end_ns = 4,
        .payload = ERRAND_LOG_PAYLOAD_BYTES,
        .payload_type = "some type",
        .payload_size = 8,
        .payload_digest = n * 7,
        .bytes = "payload",
        .size = n % 8,
    };
}

void
log_fill(log_rig *rig, uint64_t steps)
{
    char text[32];

    for (uint64_t i = 0; i < steps; i++) {
        uint64_t n = rig->steps + 1;
        errand_log_completion completion = completion_of(n);
        const char *label = label_of(n, text, sizeof text);

        if (n % 5 == 0)
            log_step(rig, ERRAND_STEP_COMPLETION, n, label, &completion, NULL, 0);
        else if (n % 7 == 0)
            log_step(rig, ERRAND_STEP_NOTE, n, label, NULL, "a note", n % 6);
        else
            log_step(rig, ERRAND_STEP_TASK, n, label, NULL, NULL, 0);
    }
}

static bool
is_completion(const errand_log_completion *is, const errand_log_completion *wanted)
{
    return is != NULL && is->outcome == wanted->outcome && is->code == wanted->code &&
           is->flags == wanted->flags && is->job_code == wanted->job_code &&
           is->sys_errno == wanted->sys_errno &&
           is->signal_number == wanted->signal_number &&
           strcmp(is->message, wanted->message) == 0 &&
           strcmp(is->system_call, wanted->system_call) == 0 &&
           is->operation == wanted->operation && is->trace_id == wanted->trace_id &&
           is->t_submit_ns == wanted->t_submit_ns &&
           is->t_start_ns == wanted->t_start_ns && is->t_end_ns == wanted->t_end_ns &&
           is->payload == wanted->payload &&
           strcmp(is->payload_type, wanted->payload_type) == 0 &&
           is->payload_size == wanted->payload_size &&
           is->payload_digest == wanted->payload_digest && is->size == wanted->size &&
           memcmp(is->bytes, wanted->bytes, wanted->size) == 0;
}

bool
log_is_filled(uint64_t n, const errand_log_step *step)
{
    char text[32];
    const char *label = label_of(n, text, sizeof text);
    errand_log_completion completion = completion_of(n);
    bool completed = n % 5 == 0, noted = !completed && n % 7 == 0;

    return step->step.step == n && step->step.time_ns == n * 10 &&
           step->step.kind == (completed ? ERRAND_STEP_COMPLETION
                               : noted   ? ERRAND_STEP_NOTE
                                         : ERRAND_STEP_TASK) &&
           step->step.detail == (n & 7) && step->step.key == n * n &&
           step->step.value == n && step->step.chosen == n + 1 &&
           step->step.context == n + 2 &&
           (label == NULL
                ? step->step.label == NULL
                : step->step.label != NULL && strcmp(step->step.label, label) == 0) &&
           (completed ? is_completion(step->completion, &completion)
                      : step->completion == NULL) &&
           step->size == (noted ? n % 6 : 0) &&
           (step->size == 0 || memcmp(step->bytes, "a note", step->size) == 0);
}

void
log_end(log_rig *rig)
{
    errand__recorder_end(rig->recorder, &(errand_log_end){
                                            .digest = rig->mix,
                                            .time_ns = rig->steps * 10,
                                            .run = ERRAND_ETIMEOUT,
                                            .clean = true,
                                        });
    log_close(rig);
}

void
log_close(log_rig *rig)
{
    assert_int_equal(errand_recorder_close(&rig->recorder), ERRAND_OK);
    assert_null(rig->recorder);
}

void
log_read(log_rig *rig)
{
    FILE *file = fopen(rig->path, "rb");

    assert_non_null(file);
    free(rig->bytes);
    fseek(file, 0, SEEK_END);
    rig->size = (size_t)ftell(file);
    rewind(file);
    rig->bytes = malloc(rig->size + 1);
    assert_non_null(rig->bytes);
    assert_int_equal(fread(rig->bytes, 1, rig->size, file), rig->size);
    fclose(file);
}
