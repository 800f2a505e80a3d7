/* SPDX-License-Identifier: MIT */
/* recorder: the life of a log that is being written.
 *
 * Design notes.  A block is gathered in memory and written as a whole: when its steps end at a
 * multiple of 4096, when what belongs to them is more than a megabyte, at a sync and at the end.
 * Trouble (a full disk, no memory) ends the log and not the run: from then on nothing is written,
 * and status says since when.  The header is written when the runtime begins, because only then
 * all of it is known. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "recording/recording.h"

static void release(errand_recorder *recorder);

static char *
copy_text(const char *text)
{
    size_t size = text == NULL ? 0 : strnlen(text, ERRAND__TEXT_MAX);
    char *copy = errand__mem_alloc(NULL, size + 1);

    if (copy != NULL && size > 0)
        memcpy(copy, text, size);
    return copy;
}

static errand_status
make(const errand_recorder_config *config, errand_recorder **out_recorder)
{
    errand_recorder *recorder = errand__mem_alloc(NULL, sizeof *recorder);

    if (recorder == NULL)
        return ERRAND_ENOMEM;
    *recorder = (errand_recorder){
        .payloads = config->payloads,
        .redact = config->redact,
        .redact_arg = config->held_redact_arg,
        .build = config->build,
        .config = config->config,
        .build_text = copy_text(config->build_text),
        .config_text = copy_text(config->config_text),
        .fd = -1,
        .process = (int32_t)getpid(),
        .first = 1,
        .steps = errand__mem_alloc(NULL, ERRAND__BLOCK_STEPS * ERRAND__STEP_BYTES),
        .places = errand__mem_alloc(NULL, ERRAND__BLOCK_STEPS * ERRAND__PLACE_BYTES),
    };
    if (recorder->build_text == NULL || recorder->config_text == NULL ||
        recorder->steps == NULL || recorder->places == NULL) {
        release(recorder);
        return ERRAND_ENOMEM;
    }
    *out_recorder = recorder;
    return ERRAND_OK;
}

errand_status
errand_recorder_open(const errand_recorder_config *config, errand_recorder **out_recorder)
{
    errand_recorder *recorder = NULL;
    errand_status status;

    ERRAND_REQUIRE_ARG(config != NULL && out_recorder != NULL && config->path != NULL,
                       ERRAND_EINVAL, "config with a path and out_recorder are needed");
    ERRAND_REQUIRE_ARG(config->struct_size == sizeof *config, ERRAND_EINVAL,
                       "config->struct_size must be sizeof(errand_recorder_config)");
    ERRAND_REQUIRE_ARG(config->payloads == ERRAND_RECORD_DIGESTS ||
                           config->payloads == ERRAND_RECORD_PAYLOADS,
                       ERRAND_EINVAL, "config->payloads is unknown");
    status = make(config, &recorder);
    if (status != ERRAND_OK)
        return status;
    recorder->fd = errand__recorder_file(config->path);
    if (recorder->fd < 0) {
        int error = errno;

        release(recorder);
        errno = error;
        return ERRAND_ESYSTEM;
    }
    *out_recorder = recorder;
    return ERRAND_OK;
}

static bool
put_text(errand__bytes *bytes, const char *text)
{
    unsigned char length[4];
    size_t size = strnlen(text, ERRAND__TEXT_MAX);

    errand__write_half(length, (uint32_t)size);
    return errand__bytes_put(bytes, length, sizeof length) &&
           errand__bytes_put(bytes, text, size);
}

static bool
write_header(errand_recorder *recorder, const errand_log_header *header)
{
    errand__bytes *body = &recorder->more;
    unsigned char fixed[48], head[ERRAND__HEAD_BYTES];
    bool good;

    errand__word_write(fixed, recorder->build);
    errand__word_write(fixed + 8, recorder->config);
    errand__word_write(fixed + 16, header->seed);
    errand__word_write(fixed + 24, header->start_ns);
    errand__write_half(fixed + 32, (uint32_t)header->order);
    errand__write_half(fixed + 36, header->policy);
    errand__write_half(fixed + 40, (uint32_t)recorder->payloads);
    errand__write_half(fixed + 44, 0);
    good = errand__bytes_put(body, fixed, sizeof fixed) &&
           put_text(body, header->version) && put_text(body, recorder->build_text) &&
           put_text(body, recorder->config_text) && put_text(body, header->policy_text);
    if (!good) {
        body->size = 0;
        return false;
    }
    errand__word_write(head, ERRAND__LOG_MAGIC);
    errand__write_half(head + 8, ERRAND__LOG_FORMAT);
    errand__write_half(head + 12, (uint32_t)body->size);
    recorder->seal =
        errand__mix_bytes(errand__mix_bytes(0, head, 16), body->data, body->size);
    errand__word_write(head + 16, recorder->seal);
    errand__recorder_write(
        recorder, (errand__piece[]){{head, sizeof head}, {body->data, body->size}}, 2);
    body->size = 0;
    return true;
}

void
errand__recorder_begin(errand_recorder *recorder, const errand_log_header *header,
                       const _Atomic uintptr_t *owner)
{
    ERRAND_ASSERT(!recorder->begun);
    recorder->begun = true;
    recorder->owner = owner;
    if (!write_header(recorder, header))
        recorder->status = ERRAND_ENOMEM;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* The number of a text that has no hash yet; 0 = none or no memory. */
static uint32_t
add_text(errand_recorder *recorder, const char *text)
{
    uint32_t number;

    if (text == NULL || text[0] == '\0')
        return 0;
    number = errand__strings_add(&recorder->strings, text, errand__label_hash(text));
    if (number == 0)
        recorder->status = ERRAND_ENOMEM;
    return number;
}

static void
write_completion(errand_recorder *recorder, unsigned char *out,
                 const errand_log_completion *completion)
{
    errand__write_half(out, (uint32_t)completion->outcome);
    errand__write_half(out + 4, (uint32_t)completion->code);
    errand__write_half(out + 8, completion->flags);
    errand__write_half(out + 12, (uint32_t)completion->job_code);
    errand__write_half(out + 16, (uint32_t)completion->sys_errno);
    errand__write_half(out + 20, (uint32_t)completion->signal_number);
    errand__write_half(out + 24, add_text(recorder, completion->message));
    errand__write_half(out + 28, add_text(recorder, completion->system_call));
    errand__write_half(out + 32, add_text(recorder, completion->payload_type));
    errand__write_half(out + 36, (uint32_t)completion->payload);
    errand__word_write(out + 40, completion->operation);
    errand__word_write(out + 48, completion->trace_id);
    errand__word_write(out + 56, completion->t_submit_ns);
    errand__word_write(out + 64, completion->t_start_ns);
    errand__word_write(out + 72, completion->t_end_ns);
    errand__word_write(out + 80, completion->payload_size);
    errand__word_write(out + 88, completion->payload_digest);
    errand__word_write(out + 96, 0);
}

/* Where what belongs to the step stands in more, plus one; 0 = there is none, or no memory. */
static uint32_t
add_more(errand_recorder *recorder, const errand__record_step *step)
{
    unsigned char fixed[ERRAND__MORE_BYTES + ERRAND__COMPLETION_BYTES];
    const errand_log_completion *completion = step->completion;
    size_t fixed_size = completion == NULL ? ERRAND__MORE_BYTES : sizeof fixed;
    const void *bytes = completion == NULL ? step->more : completion->bytes;
    size_t size = completion == NULL ? step->more_size : completion->size;
    uint32_t at = (uint32_t)recorder->more.size;

    if (completion == NULL && size == 0)
        return 0;
    errand__write_half(fixed, (uint32_t)(fixed_size + size));
    errand__write_half(fixed + 4,
                       completion == NULL ? ERRAND__MORE_PLAIN : ERRAND__MORE_COMPLETION);
    if (completion != NULL)
        write_completion(recorder, fixed + ERRAND__MORE_BYTES, completion);
    if (!errand__bytes_reserve(&recorder->more, fixed_size + size)) {
        recorder->status = ERRAND_ENOMEM;
        return 0;
    }
    (void)errand__bytes_put(&recorder->more, fixed, fixed_size);
    (void)errand__bytes_put(&recorder->more, bytes, size);
    return at + 1;
}

void
errand__recorder_step(errand_recorder *recorder, const errand__record_step *step)
{
    unsigned char *place;
    uint32_t label = 0, more;

    if (recorder->status != ERRAND_OK)
        return;
    if (step->label != NULL) {
        label = errand__strings_add(&recorder->strings, step->label, step->label_hash);
        if (label == 0)
            recorder->status = ERRAND_ENOMEM;
    }
    more = add_more(recorder, step);
    if (recorder->status != ERRAND_OK) {
        errand_status trouble = recorder->status; /* the steps before are written yet */

        recorder->status = ERRAND_OK;
        errand__recorder_flush(recorder);
        if (recorder->status == ERRAND_OK)
            recorder->status = trouble;
        return;
    }
    place = recorder->places + (size_t)recorder->count * ERRAND__PLACE_BYTES;
    errand__write_half(place, label);
    errand__write_half(place + 4, more);
    memcpy(recorder->steps + (size_t)recorder->count * ERRAND__STEP_BYTES, step->bytes,
           ERRAND__STEP_BYTES);
    if (recorder->count++ == 0)
        recorder->first = step->step;
    recorder->mix = step->mix;
    if (step->step % ERRAND__BLOCK_STEPS == 0 ||
        recorder->more.size + recorder->strings.text.size > ERRAND__MORE_FULL)
        errand__recorder_flush(recorder);
}

void
errand__recorder_flush(errand_recorder *recorder)
{
    size_t steps = (size_t)recorder->count * ERRAND__STEP_BYTES;

    if (recorder->count == 0 || recorder->status != ERRAND_OK)
        return;
    errand__recorder_frame(
        recorder, ERRAND__BLOCK_OF_STEPS, errand__mix_bytes(0, recorder->steps, steps),
        (errand__piece[]){
            {recorder->steps, steps},
            {recorder->places, (size_t)recorder->count * ERRAND__PLACE_BYTES},
            {recorder->strings.text.data, recorder->strings.text.size},
            {recorder->more.data, recorder->more.size},
        },
        4);
    if (recorder->status == ERRAND_OK)
        recorder->last = recorder->first + recorder->count - 1;
    recorder->first += recorder->count;
    recorder->count = 0;
    recorder->more.size = 0;
    errand__strings_clear(&recorder->strings);
}

/* ---- the end ---------------------------------------------------------------------------------- */

void
errand__recorder_end(errand_recorder *recorder, const errand_log_end *end)
{
    unsigned char body[ERRAND__END_BYTES];

    recorder->owner = NULL;
    errand__recorder_flush(recorder);
    if (recorder->status != ERRAND_OK)
        return;
    errand__word_write(body, recorder->first - 1);
    errand__word_write(body + 8, end->digest);
    errand__word_write(body + 16, end->time_ns);
    errand__word_write(body + 24, (uint64_t)end->run);
    errand__word_write(body + 32, end->clean);
    errand__recorder_frame(recorder, ERRAND__BLOCK_OF_END, 0,
                           &(errand__piece){body, sizeof body}, 1);
    recorder->ended = recorder->status == ERRAND_OK;
}

/* May this thread of this process use it? */
static errand_status
enter(const errand_recorder *recorder, const char *function)
{
    if (recorder == NULL)
        return errand__misuse(ERRAND_EINVAL, function, "the recorder is NULL");
    if (recorder->process != (int32_t)getpid())
        return errand__misuse(ERRAND_EFORKED, function,
                              "the recorder was opened by the parent");
    if (recorder->owner != NULL &&
        atomic_load_explicit(recorder->owner,
                             memory_order_acquire) != /* Pairs: runtime-owner */
            errand__thread_self())
        return errand__misuse(ERRAND_ETHREAD, function,
                              "this is not the thread of the recorder's runtime");
    return ERRAND_OK;
}

errand_status
errand_recorder_sync(errand_recorder *recorder)
{
    errand_status status = enter(recorder, __func__);

    if (status != ERRAND_OK)
        return status;
    errand__recorder_flush(recorder);
    /* A pipe or terminal has nothing to keep (EINVAL). */
    if (recorder->status == ERRAND_OK && fdatasync(recorder->fd) != 0 &&
        errno != EINVAL && errno != EROFS) {
        recorder->status = ERRAND_ESYSTEM;
        recorder->error = errno;
    }
    if (recorder->status == ERRAND_ESYSTEM)
        errno = recorder->error;
    return recorder->status;
}

errand_status
errand_recorder_status(const errand_recorder *recorder, char *out_text, size_t size)
{
    errand_status status = enter(recorder, __func__);

    if (status != ERRAND_OK)
        return status;
    if (out_text != NULL && size > 0) {
        if (recorder->status == ERRAND_OK)
            out_text[0] = '\0';
        else
            errand__text_format(out_text, size, "the log ends after step %llu: %s",
                                (unsigned long long)recorder->last,
                                recorder->status == ERRAND_ENOMEM
                                    ? "memory ran out"
                                    : strerror(recorder->error));
    }
    if (recorder->status == ERRAND_ESYSTEM)
        errno = recorder->error;
    return recorder->status;
}

errand_status
errand_recorder_close(errand_recorder **take_recorder)
{
    errand_recorder *recorder;
    errand_status status;
    int error;

    ERRAND_REQUIRE_ARG(take_recorder != NULL, ERRAND_EINVAL, "take_recorder is NULL");
    recorder = *take_recorder;
    if (recorder == NULL)
        return ERRAND_OK;
    status = enter(recorder, __func__);
    if (status != ERRAND_OK)
        return status;
    if (recorder->owner != NULL)
        return errand__misuse(ERRAND_EBUSY, __func__,
                              "its runtime has not ended; shut it down first");
    status = recorder->status;
    error = recorder->error;
    if (close(recorder->fd) != 0 && errno != EINTR && status == ERRAND_OK) {
        status = ERRAND_ESYSTEM;
        error = errno;
    }
    recorder->fd = -1;
    release(recorder);
    *take_recorder = NULL;
    if (status == ERRAND_ESYSTEM)
        errno = error;
    return status;
}

static void
release(errand_recorder *recorder)
{
    errand__mem_free(NULL, recorder->steps, ERRAND__BLOCK_STEPS * ERRAND__STEP_BYTES);
    errand__mem_free(NULL, recorder->places, ERRAND__BLOCK_STEPS * ERRAND__PLACE_BYTES);
    if (recorder->build_text != NULL)
        errand__mem_free(NULL, recorder->build_text, strlen(recorder->build_text) + 1);
    if (recorder->config_text != NULL)
        errand__mem_free(NULL, recorder->config_text, strlen(recorder->config_text) + 1);
    errand__strings_fini(&recorder->strings);
    errand__bytes_fini(&recorder->more);
    errand__bytes_fini(&recorder->scratch);
    errand__mem_free(NULL, recorder, sizeof *recorder);
}
