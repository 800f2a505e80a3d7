/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_MODEL_MODEL_H
#define ERRAND_TESTS_MODEL_MODEL_H
/* model: what docs/promises.md says of runtimes, leases and the manual executor, in arrival
 * order and on one thread.  It runs nothing: each function hears what the library answered or
 * did, notes in why if that is not allowed, and follows it.  Where several causes of refusal
 * hold, each of their statuses is allowed; where no promise decides, both ways are. */
#include "errand.h"

enum {
    MODEL_OPS = 256,
    MODEL_NEWS = 2048,
    MODEL_RUNTIMES = 2,
    MODEL_LEASES = 4,
    MODEL_NODES = 4
};
typedef enum model_phase {
    MODEL_PREPARED = 1,
    MODEL_BOUND,
    MODEL_SPLIT,
    MODEL_DOOMED,  /* abandoned by the next drain or drive */
    MODEL_FOLLOWS, /* handed on by a job that has not been drained */
    MODEL_QUEUED,
    MODEL_RUNNING,
    MODEL_SETTLED,
    MODEL_DELIVERED,
    MODEL_GONE /* abandoned */
} model_phase;
typedef enum model_stage { /* what due_ns is */
                           MODEL_NO_LIMIT,
                           MODEL_OWN, /* the operation's deadline */
                           MODEL_GRACE, /* asked to end: then it is settled without its body */
                           MODEL_WORK /* beyond its finite work */
} model_stage;
typedef enum model_wait {
    MODEL_NO_WAIT,
    MODEL_OUT,
    MODEL_REGISTERED,
    MODEL_READY,
    MODEL_ENDED
} model_wait;
typedef struct model_name {
    int runtime, op; /* op < 0: issued only */
    uint32_t kind;
    bool over, posted, asks,
        later; /* asks: what is posted is a cancel; later: its cancel waits for a drain or drive */
    errand_reason reason; /* that it was cancelled with */
} model_name;
typedef struct model_op {
    int runtime, lease, name, parent;
    errand_spec spec;
    model_phase phase;
    model_wait wait;
    bool asked, hooked, entry, pending, woken,
        vague; /* vague: its end is nobody's promise */
    /* held: it ended without its body; back: that returned; freed: and its state may go */
    bool held, back, freed, beyond;
    bool overdue; /* its deadline was the first that asked it to end */
    model_stage stage;
    uint64_t order, due_ns, due_order, submit_ns, start_ns, end_ns;
    errand_outcome outcome;
    errand_code code;
} model_op;
typedef struct model_runtime {
    bool closing, driving, left, posted[MODEL_NODES]; /* left: by longjmp */
    int hand;                                         /* op that is being heard, + 1 */
    uint64_t now_ns, numbers_left;
    uint32_t names_max;
    size_t head, tail, end, budget, count,
        commands; /* of inbox; of the drain in progress */
    struct {
        int op, name, node;
    } inbox[MODEL_NEWS];
    errand_snapshot sums;
} model_runtime;
typedef struct model_lease {
    int runtime, executor, since_bypass;
    bool open;
    uint32_t owed_max;
    errand_snapshot sums;
} model_lease;
typedef struct model {
    const char *why;
    uint64_t wanted, orders, grace_ns;
    uint64_t
        picked; /* what came later was not there when a step chose; 0 = it chooses now */
    bool times, messages; /* completions have them; there are blocks for all */
    int ops, names;
    model_runtime runtime[MODEL_RUNTIMES];
    model_lease lease[MODEL_LEASES + 1]; /* the last: of those that are closed */
    model_op op[MODEL_OPS];
    model_name name[MODEL_OPS];
} model;

/* Calls.  name < 0: an identity that nobody issued; op < 0: a zeroed token; lease < 0: NULL. */
void model_issue(model *m, int runtime, uint32_t kind, errand_status got);
void model_retire(model *m, int runtime, int name, errand_status got);
void model_prepare(model *m, int runtime, const errand_spec *spec, errand_status got);
void model_bind(model *m, int runtime, int name, int op, errand_status got);
void model_split(model *m, int op, errand_status got);
void model_await(model *m, int op, errand_status got);
void model_abandon(model *m, int op,
                   model_phase stage); /* MODEL_FOLLOWS: the wait's half */
void model_submit(model *m, int lease, int op, errand_status got);
void model_start(model *m, int lease, const errand_spec *spec, errand_status got);
void model_cancel(model *m, int runtime, int name, errand_reason reason,
                  errand_status got, errand_cancel_answer answer);
void model_post(model *m, int runtime, int name, int node, errand_status got);
void model_cancel_later(model *m, int runtime, int name, errand_status got);
void model_abandon_later(model *m, int op, errand_status got);
void model_enter(model *m, int runtime, size_t budget, bool drive);
/* Is the order of deadlines and posted cancels in a drive of the essence? */
bool model_posted(const model *m, int runtime);
bool model_tangled(const model *m, int runtime);
/* What a drive did unseen so far: deadlines and posted cancels, told by the accounts. */
void model_meanwhile(model *m, int runtime, const errand_snapshot *now);
void model_leave(model *m, int runtime, size_t count, size_t commands, bool nothing_left);
/* A turn found nothing to do. */
void model_rests(model *m, int runtime, bool quiescent, bool inbox_needed,
                 uint64_t next_ns);
void model_stepped(model *m, int executor, bool budget_left);
void model_detach(model *m, int lease, bool before);
void model_closing(model *m, int runtime);
void model_closed(model *m, int runtime, const errand_report *report);
/* What happens meanwhile.  model_ended: answer as of a body, INT32_MIN = it panicked. */
void model_began(model *m, int op);
void model_polled(model *m, int op);
void model_ended(model *m, int op, int32_t answer);
void model_hooked(model *m, int op, bool reap, errand_hook_answer answer);
/* A poll answers that it is not ready; true if that ends the job. */
bool model_pends(model *m, int op);
void model_beyond(model *m, int op); /* it reported more work than it declared */
void model_followed(model *m, int parent, const errand_spec *spec, errand_status got);
void model_heard(model *m, int op, const errand_completion *completion);
void model_command(model *m, int runtime, int node);
void model_resumed(model *m, int op, errand_reason reason);
/* Accounts of a runtime (lease < 0) or lease. */
errand_snapshot model_accounts(const model *m, int runtime, int lease);
#endif
