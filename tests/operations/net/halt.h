/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_OPERATIONS_NET_HALT_H
#define ERRAND_TESTS_OPERATIONS_NET_HALT_H
/* halt: a loop that stands still in a job of the test's own, so that nothing on it can begin or leave;
 * where the reactor has no thread nothing does before its owner drives.
 *
 *     halt *halted = halt_begin(rig);
 *     ... cancel, make the next one, start it ...
 *     halt_end(rig, halted);                    it goes on */
#include "gate.h"
#include "net_rig.h"

typedef struct halt {
    bool threaded;
    test_gate gate;
    net_result result;
} halt;

halt *halt_begin(net_rig *rig);
void halt_end(net_rig *rig, halt *halted);
#endif
