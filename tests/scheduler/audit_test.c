/* SPDX-License-Identifier: MIT */
/* Goal: the digest is changed by any change of any field of any step, and by nothing else.
 * Method: the same steps twice, with one field flipped. */
#include <string.h>
#include "scheduler_rig.h"

typedef struct fields {
    errand_step_kind kind;
    uint32_t detail;
    uint64_t key, value, time;
    const char *label;
    unsigned steps_before;
    uint64_t chosen, context;
} fields;

static uint64_t
digest_of(scheduler_rig *rig, const fields *step)
{
    rig_restart(rig, ERRAND_ORDER_INLINE, 1);
    for (unsigned i = 0; i < step->steps_before; i++)
        errand__audit_step(&rig->scheduler, ERRAND_STEP_NOTE, 0, 0, 0, NULL);
    rig->scheduler.now = step->time;
    rig->scheduler.audit.chosen = step->chosen;
    errand__audit_event(&rig->scheduler,
                        &(errand_step){
                            .kind = step->kind,
                            .detail = step->detail,
                            .key = step->key,
                            .value = step->value,
                            .context = step->context,
                            .label = step->label,
                        },
                        errand__label_hash(step->label));
    return rig->scheduler.audit.mix;
}

static void
flipping_any_bit_of_any_field_changes_the_digest(void **state)
{
    /* D41, D45 */
    const fields plain = {ERRAND_STEP_TASK, 1, 2, 3, 4, "label", 1, 5, 6};
    uint64_t digest = digest_of(*state, &plain);

    assert_int_equal(digest_of(*state, &plain), digest);
    for (unsigned bit = 0; bit < 64; bit++) {
        fields flipped[5] = {plain, plain, plain, plain, plain};

        flipped[0].key ^= UINT64_C(1) << bit;
        flipped[1].value ^= UINT64_C(1) << bit;
        flipped[2].time ^= UINT64_C(1) << bit;
        flipped[3].chosen ^= UINT64_C(1) << bit;
        flipped[4].context ^= UINT64_C(1) << bit;
        for (unsigned i = 0; i < 5; i++)
            assert_int_not_equal(digest_of(*state, &flipped[i]), digest);
    }
    for (unsigned bit = 0; bit < 32; bit++) {
        fields flipped = plain;

        flipped.detail ^= UINT32_C(1) << bit;
        assert_int_not_equal(digest_of(*state, &flipped), digest);
    }
}

static void
kind_label_and_place_count_too(void **state)
{
    const fields plain = {ERRAND_STEP_TASK, 1, 2, 3, 4, "label", 1, 0, 0};
    fields flipped[6] = {plain, plain, plain, plain, plain, plain};

    flipped[0].kind = ERRAND_STEP_SPAWN;
    flipped[1].label = "labem";
    flipped[2].label = "label ";
    flipped[3].label = "";
    flipped[4].label = NULL;
    flipped[5].steps_before = 2;
    for (unsigned i = 0; i < 6; i++) {
        assert_int_not_equal(digest_of(*state, &flipped[i]), digest_of(*state, &plain));
        for (unsigned j = 0; j < i; j++)
            assert_int_not_equal(digest_of(*state, &flipped[i]),
                                 digest_of(*state, &flipped[j]));
    }
}

static errand_step seen;
static unsigned seen_count;

static void
note(void *arg, const errand_step *step)
{
    assert_ptr_equal(arg, &seen);
    seen = *step;
    seen_count++;
}

static void
trace_hears_each_step_and_changes_no_digest(void **state)
{
    scheduler_rig *rig = *state;
    const fields plain = {ERRAND_STEP_CANCEL, 6, 2, 3, 4, "label", 0, 0, 0};
    uint64_t digest = digest_of(rig, &plain);

    rig_restart(rig, ERRAND_ORDER_INLINE, 1);
    rig->scheduler.audit.trace = note;
    rig->scheduler.audit.trace_arg = &seen;
    rig->scheduler.now = 4;
    seen_count = 0;
    errand__audit_step(&rig->scheduler, ERRAND_STEP_CANCEL, 6, 2, 3, "label");
    assert_int_equal(seen_count, 1);
    assert_int_equal(seen.step, 1);
    assert_int_equal(seen.time_ns, 4);
    assert_int_equal(seen.kind, ERRAND_STEP_CANCEL);
    assert_int_equal(seen.detail, 6);
    assert_int_equal(seen.key, 2);
    assert_int_equal(seen.value, 3);
    assert_string_equal(seen.label, "label");
    assert_int_equal(rig->scheduler.audit.mix, digest);
}

static void
arrival_order_traces_but_has_no_digest(void **state)
{
    scheduler_rig *rig = *state;

    assert_int_equal(rig->scheduler.audit.mix, 0);
    rig->scheduler.audit.trace = note;
    rig->scheduler.audit.trace_arg = &seen;
    seen_count = 0;
    errand__audit_step(&rig->scheduler, ERRAND_STEP_NOTE, 0, 0, 0, NULL);
    assert_int_equal(seen_count, 1);
    assert_int_equal(rig->scheduler.audit.mix, 0);
}

static void
a_step_changes_every_digest_that_follows(void **state)
{
    /* D41: also where the later steps are the same. */
    scheduler_rig *rig = *state;
    uint64_t digests[2];

    for (uint64_t run = 0; run < 2; run++) {
        rig_restart(rig, ERRAND_ORDER_INLINE, 1);
        errand__audit_step(&rig->scheduler, ERRAND_STEP_NOTE, 0, 0, run, NULL);
        for (unsigned i = 0; i < 10; i++)
            errand__audit_step(&rig->scheduler, ERRAND_STEP_NOTE, 0, 0, 9, "same");
        digests[run] = rig->scheduler.audit.mix;
    }
    assert_int_not_equal(digests[0], digests[1]);
}

static void
a_label_is_no_part_of_what_stands_beside_it(void **state)
{
    /* D42: ("a", "bc") and ("ab", "c"), also where the bytes could be read as one. */
    const fields steps[] = {
        {ERRAND_STEP_NOTE, 0, 0, errand__mix_bytes(2, "bc", 2), 0, "a", 0, 0, 2},
        {ERRAND_STEP_NOTE, 0, 0, errand__mix_bytes(1, "c", 1), 0, "ab", 0, 0, 1},
        {ERRAND_STEP_NOTE, 0, 0, errand__mix_bytes(0, "", 0), 0, "abc", 0, 0, 0},
        {ERRAND_STEP_NOTE, 0, 0, errand__mix_bytes(3, "abc", 3), 0, "", 0, 0, 3},
    };

    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < i; j++)
            assert_int_not_equal(digest_of(*state, &steps[i]),
                                 digest_of(*state, &steps[j]));
}

static void
every_kind_of_step_has_a_name_of_its_own(void **state)
{
    (void)state;
    assert_string_equal(errand_step_name((errand_step_kind)0), "unknown");
    assert_string_equal(errand_step_name((errand_step_kind)1000), "unknown");
    for (int i = ERRAND_STEP_SUBMIT; i <= ERRAND_STEP_TIME; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(errand_step_name((errand_step_kind)i),
                                    errand_step_name((errand_step_kind)j));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(flipping_any_bit_of_any_field_changes_the_digest,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(kind_label_and_place_count_too, rig_setup_inline,
                                        rig_teardown),
        cmocka_unit_test_setup_teardown(a_label_is_no_part_of_what_stands_beside_it,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(a_step_changes_every_digest_that_follows,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test(every_kind_of_step_has_a_name_of_its_own),
        cmocka_unit_test_setup_teardown(trace_hears_each_step_and_changes_no_digest,
                                        rig_setup_inline, rig_teardown),
        cmocka_unit_test_setup_teardown(arrival_order_traces_but_has_no_digest,
                                        rig_setup_arrival, rig_teardown),
    };
    return test_group("scheduler/audit", tests, NULL, NULL);
}
