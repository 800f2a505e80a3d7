/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_SUPPORT_GATE_H
#define ERRAND_TESTS_SUPPORT_GATE_H
/* gate: where a job's body stands still until the test lets it go on; no sleeps.
 *
 *     body: gate_wait(&gate);                 the body arrives and waits
 *     test: gate_await_arrival(&gate);        now it is certain that the body runs
 *           gate_open(&gate);                 it goes on
 *
 * Opening before anybody arrived is remembered.  Each opening lets one through.
 * A wait of more than half the watchdog's time, 30 s by default (gate_seconds to change it),
 * prints the gate's name and the test's and aborts.  Any thread may call anything; init and fini
 * when no other thread uses it. */
#include <semaphore.h>

typedef struct test_gate {
    const char *name;
    sem_t arrived;
    sem_t opened;
} test_gate;

void gate_init(test_gate *gate, const char *name);
void gate_fini(test_gate *gate);

/* A body's side. */
void gate_wait(test_gate *gate);

/* The test's side.  gate_await_arrival waits for one more arrival each time it is called. */
void gate_await_arrival(test_gate *gate);
void gate_open(test_gate *gate);
void gate_open_many(test_gate *gate, unsigned times);

/* How long any gate waits before it gives up; for the whole program. */
void gate_seconds(unsigned seconds);

#endif
