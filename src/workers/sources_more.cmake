# SPDX-License-Identifier: MIT
errand_sources(
    async/async.c
    async/poller.c
    async/port.c
    async/roster.c
    async/thread.c
    custom/custom.c
    custom/dispatch.c
    manual/manual.c
    manual/queue.c
    manual/step.c
    thread.c)
