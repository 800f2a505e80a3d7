/* SPDX-License-Identifier: MIT */
/* Design notes: as calls_runtime.c, for errand/choice.h.  Tapes and enumerators are made by each
 * call for itself: they belong to no runtime. */
#include <string.h>
#include "errand/choice.h"
#include "calls.h"

static const errand_choice a_choice = {ERRAND_SITE_PICK, 1, 2, 3, 2};

static errand_tape *
make_tape(void)
{
    errand_tape *tape = NULL;

    if (errand_tape_create(&tape) == ERRAND_OK &&
        errand_tape_put(tape, &a_choice) != ERRAND_OK)
        errand_tape_abandon(&tape);
    return tape;
}

static errand_status
call_tape_create(stage *self, int broken)
{
    errand_tape *tape = NULL;
    errand_status status = errand_tape_create(N(1, &tape));

    (void)self;
    errand_tape_abandon(&tape);
    return status;
}

static errand_status
call_tape_put(stage *self, int broken)
{
    errand_tape *tape = make_tape();
    errand_status status = errand_tape_put(N(1, tape), N(2, &a_choice));

    (void)self;
    errand_tape_abandon(&tape);
    return status;
}

static errand_status
call_tape_remove(stage *self, int broken)
{
    errand_tape *tape = make_tape();
    errand_status status = errand_tape_remove(N(1, tape), a_choice.site, 1, 2);

    (void)self;
    errand_tape_abandon(&tape);
    return status;
}

static errand_status
call_tape_find(stage *self, int broken)
{
    errand_tape *tape = make_tape();
    errand_choice found;
    errand_status status =
        errand_tape_find(N(1, tape), a_choice.site, 1, 2, N(2, &found));

    (void)self;
    errand_tape_abandon(&tape);
    return status;
}

static errand_status
call_tape_parse(stage *self, int broken)
{
    static const char text[] = "errand tape 1\n";
    errand_tape *tape = NULL;
    errand_status status =
        errand_tape_parse(N(1, text), strlen(text), N(2, &tape), NULL, 0);

    (void)self;
    errand_tape_abandon(&tape);
    return status;
}

static errand_status
call_tape_write(stage *self, int broken)
{
    errand_tape *tape = make_tape();
    errand_status status = errand_tape_write(N(1, tape), N(2, "/dev/null"));

    (void)self;
    errand_tape_abandon(&tape);
    return status;
}

/* Which there is not: ESYSTEM is no misuse. */
static errand_status
call_tape_read(stage *self, int broken)
{
    errand_tape *tape = NULL;
    errand_status status = errand_tape_read(N(1, "/nowhere"), N(2, &tape), NULL, 0);

    (void)self;
    return status == ERRAND_ESYSTEM ? ERRAND_OK : status;
}

static errand_status
call_enumerator_create(stage *self, int broken)
{
    errand_enumerator *enumerator = NULL;
    errand_status status = errand_enumerator_create(NULL, N(1, &enumerator));

    (void)self;
    errand_enumerator_abandon(&enumerator);
    return status;
}

static errand_status
call_choices_portfolio(stage *self, int broken)
{
    errand_choices choices = ERRAND_CHOICES_INIT;

    (void)self;
    return errand_choices_portfolio(N(1, &choices), 1, 0);
}

static errand_status
call_choices_parse(stage *self, int broken)
{
    errand_choices choices = ERRAND_CHOICES_INIT;

    (void)self;
    return errand_choices_parse(N(1, &choices), N(2, "pct:3"), 1, NULL, 0);
}

static errand_status
call_workload_keeps(stage *self, int broken)
{
    (void)errand_workload_keeps(N(1, RUNTIME), N(2, "items"), 0);
    return told(self);
}

static errand_status
call_runtime_picks(stage *self, int broken)
{
    (void)broken;
    (void)errand_runtime_picks(RUNTIME);
    return told(self);
}

#define ANYWHERE ERRAND_OK, ERRAND_OK, ERRAND_OK, ERRAND_OK, ERRAND_OK
#define OWNERS   ERRAND_ETHREAD, ERRAND_EFORKED, ERRAND_OK, ERRAND_OK, ERRAND_OK

const public_call choice_calls[] = {
    {"errand_tape_create", call_tape_create, PLACE_PLAIN, 1, ANYWHERE},
    {"errand_tape_put", call_tape_put, PLACE_PLAIN, 2, ANYWHERE},
    {"errand_tape_remove", call_tape_remove, PLACE_PLAIN, 1, ANYWHERE},
    {"errand_tape_find", call_tape_find, PLACE_PLAIN, 2, ANYWHERE},
    {"errand_tape_parse", call_tape_parse, PLACE_PLAIN, 2, ANYWHERE},
    {"errand_tape_write", call_tape_write, PLACE_PLAIN, 2, ANYWHERE},
    {"errand_tape_read", call_tape_read, PLACE_PLAIN, 2, ANYWHERE},
    {"errand_enumerator_create", call_enumerator_create, PLACE_PLAIN, 1, ANYWHERE},
    {"errand_choices_portfolio", call_choices_portfolio, PLACE_PLAIN, 1, ANYWHERE},
    {"errand_choices_parse", call_choices_parse, PLACE_PLAIN, 2, ANYWHERE},
    {"errand_workload_keeps", call_workload_keeps, PLACE_PLAIN, 2, OWNERS},
    {"errand_runtime_picks", call_runtime_picks, PLACE_PLAIN, 0, OWNERS},
};
const size_t choice_call_count = sizeof choice_calls / sizeof choice_calls[0];
