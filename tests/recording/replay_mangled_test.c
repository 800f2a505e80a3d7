/* SPDX-License-Identifier: MIT */
/* Goal: whatever a log says, its replay ends with a status, runs no job and leaks nothing.
 * Method: a good log is written again with one step changed, dropped, doubled or moved, sealed as if it
 * had been recorded so, and replayed. */
#include <unistd.h>
#include "recording/recording.h"
#include "replay_rig.h"

enum { STEPS = 256 };

typedef struct mangler {
    uint64_t state;
    errand__record_step steps[STEPS];
    unsigned char bytes[STEPS][ERRAND__STEP_BYTES];
    errand_log_completion completions[STEPS];
    size_t count;
} mangler;

static uint64_t
draw(mangler *self, uint64_t below)
{
    self->state = self->state * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (self->state >> 33) % below;
}

/* The whole log, which stays open, because the texts are its own: it has one block. */
static void
read_all(mangler *self, errand_log *log)
{
    errand_log_step step;

    for (self->count = 0; errand_log_next(log, &step); self->count++) {
        size_t i = self->count;
        unsigned char *out = self->bytes[i];

        assert_true(i < STEPS);
        errand__word_write(out + 8, step.step.time_ns);
        errand__word_write(out + 16, (uint64_t)step.step.kind << 32 | step.step.detail);
        errand__word_write(out + 24, step.step.key);
        errand__word_write(out + 32, step.step.value);
        errand__word_write(out + 48, step.step.chosen);
        errand__word_write(out + 56, step.step.context);
        self->steps[i] = (errand__record_step){
            .bytes = out,
            .label = step.step.label,
            .label_hash = errand__label_hash(step.step.label),
        };
        if (step.completion != NULL) {
            self->completions[i] = *step.completion;
            self->steps[i].completion = &self->completions[i];
        }
    }
}

static void
mangle_completion(mangler *self, errand_log_completion *completion)
{
    switch (draw(self, 6)) {
    case 0:
        completion->outcome = (errand_outcome)draw(self, 9);
        break;
    case 1:
        completion->code = (errand_code)draw(self, 300);
        break;
    case 2:
        completion->flags = (uint32_t)draw(self, 64);
        break;
    case 3:
        completion->payload = (errand_log_payload)draw(self, 5);
        break;
    case 4:
        completion->size = draw(self, completion->size + 1);
        break;
    default:
        completion->payload_size = draw(self, UINT32_MAX);
        break;
    }
}

static void
mangle(mangler *self)
{
    size_t at = draw(self, self->count), to = draw(self, self->count);
    errand__record_step step = self->steps[at];

    switch (draw(self, 5)) {
    case 0: /* one bit of its eight words */
        self->bytes[at][8 + draw(self, ERRAND__STEP_BYTES - 8)] ^=
            (unsigned char)(1U << draw(self, 8));
        break;
    case 1: /* dropped */
        for (self->count--; at < self->count; at++)
            self->steps[at] = self->steps[at + 1];
        break;
    case 2: /* in another one's place */
        self->steps[at] = self->steps[to];
        self->steps[to] = step;
        break;
    case 3: /* instead of another one */
        self->steps[to] = step;
        break;
    default:
        while (self->steps[at].completion == NULL)
            at = (at + 1) % self->count;
        mangle_completion(
            self, &self->completions[self->steps[at].completion - self->completions]);
        break;
    }
}

/* Writes it as a log of its own, in the place of the first. */
static void
write_all(mangler *self, replay_rig *rig, const errand_log_header *header)
{
    const errand_recorder_config config = {
        .struct_size = sizeof config,
        .path = rig->path,
        .payloads = header->payloads,
        .build = header->build,
        .config = header->config,
    };
    errand_recorder *recorder = NULL;

    assert_int_equal(errand_recorder_open(&config, &recorder), ERRAND_OK);
    errand__recorder_begin(recorder, header, NULL);
    for (size_t i = 0; i < self->count; i++) {
        unsigned char bytes[ERRAND__STEP_BYTES];
        errand__record_step step = self->steps[i];
        uint64_t kind = errand__read_word(step.bytes + 16) >> 32;

        if ((step.completion != NULL) != (kind == ERRAND_STEP_COMPLETION))
            continue; /* no reader would take it */
        memcpy(bytes, step.bytes, sizeof bytes);
        errand__word_write(bytes, recorder->first + recorder->count);
        step.bytes = bytes;
        step.step = recorder->first + recorder->count;
        errand__recorder_step(recorder, &step);
    }
    errand__recorder_end(recorder, &(errand_log_end){.run = ERRAND_OK});
    assert_int_equal(errand_recorder_close(&recorder), ERRAND_OK);
}

static void
replay_mangled(replay_rig *rig, errand_order order, uint64_t seed)
{
    static mangler self;
    errand_log *log = NULL;
    errand_status status;

    rig_record(rig, order, ERRAND_RECORD_PAYLOADS);
    assert_int_equal(rig_actors(rig), ERRAND_OK);
    rig_recorded(rig);
    assert_int_equal(errand_log_open(rig->path, &log, NULL, 0), ERRAND_OK);
    unlink(rig->path); /* it stays open */
    self = (mangler){.state = seed};
    read_all(&self, log);
    for (uint64_t times = 1 + draw(&self, 3); times > 0; times--)
        mangle(&self);
    write_all(&self, rig, errand_log_header_of(log));
    errand_log_close(&log);
    rig_replay(rig);
    status = rig_actors(rig);
    if (status != ERRAND_OK && status != ERRAND_EREPRODUCE)
        fail_msg("status %d, seed %llu", status, (unsigned long long)seed);
    rig_replayed(rig);
    assert_int_equal(rig->ran, 0);
}

static void
a_log_that_somebody_made_up_ends_with_a_status(void **state)
{
    const uint64_t count = test_scaled(2000);

    for (uint64_t seed = 1; seed <= count; seed++)
        replay_mangled(*state, seed % 2 == 0 ? ERRAND_ORDER_ARRIVAL : ERRAND_ORDER_INLINE,
                       seed);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_log_that_somebody_made_up_ends_with_a_status,
                                        rig_setup, rig_teardown),
    };

    return test_group("recording/replay_mangled", tests, NULL, NULL);
}
