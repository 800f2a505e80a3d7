/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_MODEL_RULES_H
#define ERRAND_TESTS_MODEL_RULES_H
/* rules: what the two halves of the model share: model.c (calls) and news.c (what comes). */
#include "model.h"

/* A set of statuses: this one if it holds, else none. */
#define CAUSE(holds, status) ((holds) ? UINT64_C(1) << (ERRAND_##status) : 0)

void model_rule(model *m, bool holds, const char *why);
/* Is got one of the refusals that have a cause, or OK where none has?  may: allowed besides.
 * True if it is OK and nothing was against the model so far. */
bool model_answered(model *m, const char *call, uint64_t causes, uint64_t may,
                    errand_status got);
bool model_is_bad(const errand_spec *s); /* nothing accepts such a spec */
model_op *model_op_at(model *m, int op, model_phase phase); /* NULL: it is elsewhere */
uint64_t model_name_causes(const model *m, int runtime, uint64_t *out_may);
int model_new_name(model *m, int runtime, uint32_t kind, int op);
int model_new_op(model *m, int runtime, const errand_spec *spec, model_phase phase);
/* Its runtime's (0) or lease's (1). */
errand_snapshot *model_sums_of(model *m, const model_op *o, int which);
void model_admit(model *m, int lease, int op);
void model_settle(model *m, int op, errand_outcome outcome, errand_code code);
void model_put(model_runtime *r, int op, int name, int node);
/* In the place of a node: a body that is back is news, too. */
static inline int
model_back_node(int op)
{
    return -2 - op;
}
/* late.c.  The operation whose deadline comes first, if that has passed; else -1. */
int model_next_due(const model *m, int runtime);
bool model_is_due(const model *m, const model_op *o);
void model_fire(model *m, int op); /* its deadline */
void model_fire_all(model *m, int runtime);
void model_limit(model *m, int op, model_stage stage,
                 uint64_t in_ns);   /* the first counts */
void model_back(model *m, int op);  /* the body of one that ended without it */
void model_freed(model *m, int op); /* and nothing is left of it */
errand_cancel_answer model_change(model *m, int name, errand_reason reason,
                                  errand_cancel_answer hint);

#endif
