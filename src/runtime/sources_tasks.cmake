# SPDX-License-Identifier: MIT
errand_sources(
    deadlines.c
    domain.c
    drive.c
    drive_seeded.c
    due.c
    due_here.c
    order.c
    paced.c
    run.c
    task_resume.c
    task_waits.c
    tasks.c
    tree.c
    tree_waits.c
    watchdog.c)
