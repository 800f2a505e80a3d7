/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_TEMPLATE_H
#define ERRAND_SANDBOX_TEMPLATE_H
/* template: a process of a pool's own from which workers are forked, which is faster than to start them. */
#include <stdbool.h>
#include <stdint.h>

struct errand__sandbox;
struct errand__sandbox_slot;
struct errand__worker_files;

typedef enum errand__template_phase {
    ERRAND__TEMPLATE_NONE = 0,
    ERRAND__TEMPLATE_LOADING = 1, /* started; it has not said that it is there */
    ERRAND__TEMPLATE_THERE = 2,
    ERRAND__TEMPLATE_ENDING = 3 /* killed; it, or what it has forked, is not reaped yet */
} errand__template_phase;
enum { /* numbers of events */
       ERRAND__TEMPLATE_SAYS = UINT32_MAX - 1,
       ERRAND__TEMPLATE_ENDED = UINT32_MAX - 2
};

typedef struct errand__template { /* all the monitor's */
    errand__template_phase phase;
    bool off;    /* the pool has none */
    bool wanted; /* a worker has ended since one was started */
    bool broken; /* it has ended, or what it said makes no sense */
    int32_t pid;
    int fd, socket, lifeline; /* -1 = none */
    uint32_t ticket;          /* the last that was given out */
    uint32_t answered;        /* asks, since it was started */
    uint64_t since_ns;        /* of this phase */
    uint64_t retry_ns, backoff_ns;
    uint64_t again_ns; /* ENDING: when it is looked at again */
} errand__template;

void errand__template_init(errand__template *self, bool off);
/* Asks for the slot's worker; false: there is none to ask.  The answer comes later, and
 * sets pid and fd; until then the slot has a ticket.  Where none comes the slot gets free. */
bool errand__template_ask(struct errand__sandbox_slot *slot,
                          const struct errand__worker_files *files);
/* births.c, for template.c.  owes: does the slot wait for it?  uncount: one that was asked for did not start.
 * listen: takes what it has said so far. */
bool errand__template_owes(const struct errand__sandbox_slot *slot);
void errand__template_uncount(struct errand__sandbox *pool);
void errand__template_listen(struct errand__sandbox *pool);
/* False: the event is not of the template. */
bool errand__template_hear(struct errand__sandbox *pool, uint32_t event);
/* When it is to be tended at the latest, beside what wakes the monitor anyway. */
uint64_t errand__template_moment(const struct errand__sandbox *pool);
/* Ends it if it is time, and reaps it.  consider: starts one if one is wanted, after all else. */
void errand__template_tend(struct errand__sandbox *pool, uint64_t now, bool closing);
void errand__template_consider(struct errand__sandbox *pool, uint64_t now);

#endif
