/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_SUPPORT_DESCRIPTORS_H
#define ERRAND_TESTS_SUPPORT_DESCRIPTORS_H
/* descriptors: how many this process has open, to be compared with an earlier answer (a few are the
 * count's own). */
int test_count_descriptors(void);

#endif
