/* SPDX-License-Identifier: MIT */
/* A library that faults while it is loaded. */
static volatile int zero;

__attribute__((constructor)) static void
fault(void)
{
    *(volatile int *)(long)zero = 1;
}
