# SPDX-License-Identifier: MIT
errand_sources(
    drive.c
    drive_seeded.c
    due.c
    due_here.c
    order.c
    run.c
    task_resume.c
    task_waits.c
    tasks.c
    tree.c)
