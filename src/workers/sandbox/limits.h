/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_LIMITS_H
#define ERRAND_SANDBOX_LIMITS_H
/* limits: how long things may take where nobody says anything, in real time. */

/* A worker that is not ready by then is ended. */
#define ERRAND__READY_NS UINT64_C(10000000000)
/* Of a job.  With two starts that took as long as they may it is over before a runtime's watchdog is,
 * so that a seeded run hears of the job's limit, and goes on. */
#define ERRAND__DEADLINE_DEFAULT_NS UINT64_C(25000000000)

#endif
