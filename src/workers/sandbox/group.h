/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_GROUP_H
#define ERRAND_SANDBOX_GROUP_H
/* group: a control group for each worker, so that its memory is counted as a whole. */
#include <stdbool.h>
#include <stdint.h>

typedef struct errand__groups { /* where a pool makes them */
    int place;                  /* a folder; -1 = none */
    bool unified;               /* version 2 */
    int error;                  /* an errno: why there is none */
} errand__groups;
typedef struct errand__group {
    int folder; /* -1 = none */
    char name[56];
} errand__group;

/* Below the group of this process, or beside it, where one can be made; errors: see error. */
void errand__groups_init(errand__groups *groups, bool wanted);
void errand__groups_fini(errand__groups *groups);
/* A group of that size.  *out_join: whoever writes "0" there is in it.  An errno. */
int errand__group_create(const errand__groups *groups, uint64_t memory_bytes,
                         errand__group *out_group, int *out_join);
/* Has the kernel ended somebody in it for want of memory? */
bool errand__group_ran_out(const errand__groups *groups, const errand__group *group);
/* Nobody is in it any more. */
void errand__group_destroy(const errand__groups *groups, errand__group *group);

#endif
