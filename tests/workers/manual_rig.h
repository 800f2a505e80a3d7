/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_WORKERS_MANUAL_RIG_H
#define ERRAND_TESTS_WORKERS_MANUAL_RIG_H
/* manual_rig: a manual executor in a scene, and jobs that write down who they are. */
#include "scene.h"

static char notes[4096];
static size_t note_count;

typedef struct noter {
    char name;
} noter;

static inline int32_t
note(errand_job *job, void *state, errand_payload *out_payload)
{
    (void)job;
    (void)out_payload;
    assert_true(note_count < sizeof notes - 1);
    notes[note_count++] = ((noter *)state)->name;
    notes[note_count] = '\0';
    return 0;
}
static const errand_job_type note_job = {
    .struct_size = sizeof(errand_job_type), .name = "note", .run = note};

static inline void
manual_open(scene *world, int runtimes, const errand_manual_config *config)
{
    errand_executor *executor;

    note_count = 0;
    notes[0] = '\0';
    scene_begin(world);
    assert_int_equal(errand_manual_create(config, &executor), ERRAND_OK);
    scene_open(world, executor, runtimes, NULL, 0);
}

#endif
