/* SPDX-License-Identifier: MIT */
/* Goal: what other threads do at each step of a submit finds the operation counted before it is armed,
 * and ends it once (O18, O44).
 * Method: pause points call another thread in the middle of the submit. */
#include <pthread.h>
#include <string.h>
#include "one_worker.h"

typedef struct look { /* what a snapshot of another thread shows at each step */
    world *world;
    unsigned seen;
    uint64_t accepted[4];
} look;

static void *
take_snapshot(void *arg)
{
    look *self = arg;
    errand_snapshot snapshot;
    errand_runtime *runtime = self->world->runtime;

    if (errand_runtime_snapshot(runtime, &snapshot) == ERRAND_OK &&
        snapshot.accepted == snapshot.queued + snapshot.running + snapshot.undrained +
                                 snapshot.drained + snapshot.undeliverable)
        self->accepted[self->seen] = snapshot.accepted;
    /* Nobody but the owner may end it meanwhile. */
    if (errand_runtime_shutdown(&runtime, 0, ERRAND_SHUTDOWN_QUIET, NULL) !=
        ERRAND_ETHREAD)
        self->accepted[self->seen] = 99;
    return NULL;
}

static void
look_from_outside(void *arg, const char *place)
{
    static const char *const places[] = {"submit-checked", "submit-counted",
                                         "submit-armed", "submit-handed"};
    look *self = arg;
    pthread_t thread;

    if (strncmp(place, "submit-", 7) != 0 || /* a worker's place */
        self->seen == 4 || strcmp(place, places[self->seen]) != 0 ||
        pthread_create(&thread, NULL, take_snapshot, self) != 0)
        return;
    pthread_join(thread, NULL);
    self->seen++;
}

static void
operation_is_counted_before_it_is_armed(void **state)
{
    /* O18 */
    static world self;
    look looks = {.world = &self};

    (void)state;
    world_open(&self);
    errand_testing_pause(look_from_outside, &looks);
    start(&self);
    errand_testing_pause(NULL, NULL);
    assert_int_equal(looks.seen, 4);
    assert_int_equal(looks.accepted[0], 0);
    for (int i = 1; i < 4; i++)
        assert_int_equal(looks.accepted[i], 1);
    shut(&self, errand_deadline_in(UINT64_C(20000000000)));
    assert_true(self.report.clean);
    world_close(&self, 1);
}

typedef struct poster { /* another thread asks to cancel at one step of the submit */
    const char *place;
    errand_inbox *inbox;
    errand_identity identity;
    bool done;
} poster;

static void *
post_cancel(void *arg)
{
    poster *self = arg;

    self->done = errand_post_cancel(self->inbox, &self->identity) == ERRAND_OK;
    return NULL;
}

static void
post_from_outside(void *arg, const char *place)
{
    poster *self = arg;
    pthread_t thread;

    if (strncmp(place, "submit-", 7) != 0 || /* a worker's place */
        strcmp(place, self->place) != 0 || self->done ||
        pthread_create(&thread, NULL, post_cancel, self) != 0)
        return;
    pthread_join(thread, NULL);
}

static void
posted_cancel_meets_a_submit_at_each_of_its_steps(void **state)
{
    /* O18, O44 */
    static const char *const places[] = {"submit-checked", "submit-counted",
                                         "submit-armed", "submit-handed"};
    static world self;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        poster other = {.place = places[i]};
        errand_submission submission;
        errand_prepared prepared;
        errand_binding binding;
        errand_wait wait;
        errand_spec spec;

        world_open(&self);
        spec = spec_of(&self);
        assert_int_equal(errand_inbox_open(self.runtime, &other.inbox), ERRAND_OK);
        assert_int_equal(errand_prepare(self.runtime, &spec, &prepared), ERRAND_OK);
        assert_int_equal(errand_issue(self.runtime, 1, NULL, &other.identity), ERRAND_OK);
        assert_int_equal(errand_bind(self.runtime, &other.identity, &prepared, &binding),
                         ERRAND_OK);
        assert_int_equal(errand_split(&binding, &wait, &submission), ERRAND_OK);
        errand_wait_abandon(&wait);
        errand_testing_pause(post_from_outside, &other);
        assert_int_equal(errand_submit(self.lease, &submission), ERRAND_OK);
        errand_testing_pause(NULL, NULL);
        assert_true(other.done);
        shut(&self, errand_deadline_in(UINT64_C(20000000000)));
        assert_true(self.report.clean);
        errand_inbox_abandon(&other.inbox);
        world_close(&self, 1);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(operation_is_counted_before_it_is_armed),
        cmocka_unit_test(posted_cancel_meets_a_submit_at_each_of_its_steps),
    };

    return test_group("stress/submit_steps", tests, NULL, NULL);
}
