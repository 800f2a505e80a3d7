# SPDX-License-Identifier: MIT
errand_sources(
    drive.c
    drive_seeded.c
    deadlines.c
    domain.c
    due.c
    due_here.c
    order.c
    paced.c
    run.c
    task_resume.c
    task_waits.c
    tasks.c
    tree.c
    watchdog.c)
