/* SPDX-License-Identifier: MIT */
/* Goal: for every set of promises the two programs never grant what nothing may grant, promises only
 * add, the final program only narrows the first, and other machine modes have no way in.
 * Method: the programs are run by an interpreter (bpf_run) on calls with drawn arguments. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "bpf_run.h"
#include "inside_rig.h"
#include "workers/sandbox/filter.h"

enum { SETS = 32, CALLS = 480, DRAWS = 24, ME = 4242 };

static errand__filter filters[SETS][2];

static int
filters_make(void **state)
{
    (void)state;
    char text[128] = "";
    for (uint32_t set = 0; set < SETS; set++) {
        for (int stage = 0; stage < 2; stage++) {
            errand__filter *filter = &filters[set][stage];
            if (errand__filter_create(set, ERRAND_DENY_KILL, (errand__filter_stage)stage,
                                      filter, text, sizeof text) != ERRAND_OK)
                return -1;
            for (uint32_t i = 0; i < filter->tgid_count; i++)
                filter->program[filter->tgid_patch[i]].k = ME;
        }
    }
    return 0;
}

static int
filters_destroy(void **state)
{
    (void)state;
    for (uint32_t set = 0; set < SETS; set++) {
        errand__filter_destroy(&filters[set][0]);
        errand__filter_destroy(&filters[set][1]);
    }
    return 0;
}

static uint32_t
run(const errand__filter *filter, const struct seccomp_data *data)
{
    return bpf_run(filter->program, filter->length, data);
}

static struct seccomp_data
call_of(int number)
{
    return (struct seccomp_data){.nr = number, .arch = BPF_MACHINE};
}

/* A small generator of its own: the same calls in each run. */
static uint64_t
draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    uint64_t word = *state >> 11;
    static const uint64_t likely[] = {
        0,  1, 2, 3,          4,    7,     0x22,   0x241, 0x3d0f00,   0x11,
        ME, 6, 9, 0x20000000, 0x80, 0x101, 0x4000, 10,    UINT64_MAX, UINT64_C(1) << 32};
    if (word % 4 != 0)
        return likely[(word >> 3) % (sizeof likely / sizeof likely[0])];
    return word;
}

/* Calls drawn for every number: promises only add, and the last stage only narrows. */
static void
promises_only_add_and_stages_only_narrow(void **state)
{
    (void)state;
    uint64_t seed = 1, allowed = 0;
    for (int number = 0; number < CALLS; number++) {
        for (int i = 0; i < DRAWS; i++) {
            struct seccomp_data data = call_of(number);
            uint32_t said[SETS];
            for (int j = 0; j < 6; j++)
                data.args[j] = draw(&seed);
            for (uint32_t set = 0; set < SETS; set++) {
                said[set] = run(&filters[set][1], &data);
                allowed += said[set] == SECCOMP_RET_ALLOW;
                if (said[set] == SECCOMP_RET_ALLOW &&
                    run(&filters[set][0], &data) != SECCOMP_RET_ALLOW)
                    fail_msg("promises %u: call %d is denied at first, granted later",
                             set, number);
            }
            for (uint32_t set = 0; set < SETS; set++) {
                for (uint32_t bit = 1; bit < SETS; bit *= 2) {
                    if (said[set] == SECCOMP_RET_ALLOW &&
                        said[set | bit] != SECCOMP_RET_ALLOW)
                        fail_msg("call %d is granted by %u, not by %u", number, set,
                                 set | bit);
                }
            }
        }
    }
    assert_true(allowed > 1000);
}

/* What no promise grants, with any arguments, in either stage. */
static void
some_calls_are_never_granted(void **state)
{
    (void)state;
    static const int never[] = {SYS_execve,
                                SYS_execveat,
                                SYS_ptrace,
                                SYS_process_vm_readv,
                                SYS_process_vm_writev,
                                SYS_mount,
                                SYS_umount2,
                                SYS_pivot_root,
                                SYS_chroot,
                                SYS_bpf,
                                SYS_perf_event_open,
                                SYS_keyctl,
                                SYS_add_key,
                                SYS_request_key,
                                SYS_userfaultfd,
                                SYS_io_uring_setup,
                                SYS_io_uring_enter,
                                SYS_io_uring_register,
                                SYS_kexec_load,
                                SYS_pidfd_getfd,
                                SYS_pidfd_open,
                                SYS_open_by_handle_at,
                                SYS_clone3,
                                SYS_openat2,
                                SYS_unshare,
                                SYS_setns,
                                SYS_kill,
                                SYS_tkill,
                                SYS_setsid,
                                SYS_prctl,
                                SYS_prlimit64,
                                SYS_setuid,
                                SYS_memfd_create,
                                SYS_init_module,
                                SYS_ioctl,
                                SYS_shmget,
                                SYS_sendfile,
                                SYS_process_madvise,
                                SYS_fchmodat,
                                SYS_fchownat,
                                SYS_mknodat,
                                SYS_symlinkat,
                                SYS_linkat};
    uint64_t seed = 2;
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        for (int j = 0; j < 200; j++) {
            struct seccomp_data data = call_of(never[i]);
            for (int k = 0; k < 6; k++)
                data.args[k] = draw(&seed);
            for (uint32_t set = 0; set < SETS; set++) {
                for (int stage = 0; stage < 2; stage++) {
                    if (run(&filters[set][stage], &data) == SECCOMP_RET_ALLOW)
                        fail_msg("promises %u grant call %d", set, never[i]);
                }
            }
        }
    }
}

static void
arguments_decide_for_every_set(void **state)
{
    (void)state;
    for (uint32_t set = 0; set < SETS; set++) {
        for (int stage = 0; stage < 2; stage++) {
            const errand__filter *filter = &filters[set][stage];
            for (unsigned operation = 0; operation < 32; operation++) {
                struct seccomp_data data = call_of(SYS_futex);
                bool waits =
                    operation == 0 || operation == 1 || operation == 9 || operation == 10;
                data.args[1] = operation | (operation % 2 == 0 ? 128 : 0) |
                               (operation % 3 == 0 ? 256 : 0);
                assert_int_equal(run(filter, &data) == SECCOMP_RET_ALLOW, waits);
            }
            struct seccomp_data data = call_of(SYS_tgkill);
            data.args[0] = ME, data.args[2] = 6;
            assert_int_equal(run(filter, &data), SECCOMP_RET_ALLOW);
            data.args[2] = 9;
            assert_int_equal(run(filter, &data), SECCOMP_RET_KILL_PROCESS);
            data.args[0] = ME + 1, data.args[2] = 6;
            assert_int_equal(run(filter, &data), SECCOMP_RET_KILL_PROCESS);
            data = call_of(SYS_mprotect);
            data.args[2] = PROT_READ | PROT_WRITE;
            assert_int_equal(run(filter, &data), SECCOMP_RET_ALLOW);
            data.args[2] = PROT_EXEC;
            assert_int_equal(run(filter, &data), SECCOMP_RET_ERRNO | EACCES);
            data = call_of(SYS_mmap);
            data.args[2] = PROT_READ | PROT_WRITE | PROT_EXEC;
            for (uint64_t flags = 0; flags < 64; flags++) {
                data.args[3] = flags;
                assert_int_not_equal(run(filter, &data), SECCOMP_RET_ALLOW);
            }
            data.args[2] = PROT_READ;
            data.args[3] = MAP_SHARED;
            assert_int_equal(run(filter, &data), SECCOMP_RET_KILL_PROCESS);
        }
    }
}

static void
other_machines_have_no_way_in(void **state)
{
    (void)state;
    for (uint32_t set = 0; set < SETS; set++) {
        for (int number = 0; number < 440; number++) {
            struct seccomp_data data = call_of(number);
            data.arch = AUDIT_ARCH_I386;
            assert_int_equal(run(&filters[set][1], &data), SECCOMP_RET_KILL_PROCESS);
            data = call_of(number | 0x40000000);
            assert_int_equal(run(&filters[set][1], &data), SECCOMP_RET_KILL_PROCESS);
        }
        struct seccomp_data data = call_of(1000);
        assert_int_equal(run(&filters[set][1], &data), SECCOMP_RET_ERRNO | ENOSYS);
        data = call_of(-1);
        assert_int_equal(run(&filters[set][1], &data), SECCOMP_RET_KILL_PROCESS);
    }
}

static void
reporting_traps_what_would_kill_or_fail(void **state)
{
    (void)state;
    errand__filter report;
    char text[128];
    assert_int_equal(errand__filter_create(0, ERRAND_DENY_REPORT, ERRAND__FILTER_SERVING,
                                           &report, text, sizeof text),
                     ERRAND_OK);
    for (uint32_t i = 0; i < report.tgid_count; i++)
        report.program[report.tgid_patch[i]].k = ME;
    for (int number = 0; number < CALLS; number++) {
        struct seccomp_data data = call_of(number);
        uint32_t kills = run(&filters[0][1], &data), reports = run(&report, &data);
        if (number == SYS_rt_sigprocmask)
            assert_int_equal(reports, SECCOMP_RET_TRAP | ERRAND__WIRE_TRAP_MASK);
        else if ((kills & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
            assert_int_equal(reports,
                             SECCOMP_RET_TRAP | ((kills & SECCOMP_RET_DATA) + 1));
        else
            assert_int_equal(reports, kills == SECCOMP_RET_KILL_PROCESS ? SECCOMP_RET_TRAP
                                                                        : kills);
    }
    errand__filter_destroy(&report);
    errand_sandbox_call_name(SYS_openat, text, sizeof text);
    assert_string_equal(text, "openat");
    errand__filter_call_name(99999, text, sizeof text);
    assert_string_equal(text, "call 99999");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(promises_only_add_and_stages_only_narrow),
        cmocka_unit_test(some_calls_are_never_granted),
        cmocka_unit_test(arguments_decide_for_every_set),
        cmocka_unit_test(other_machines_have_no_way_in),
        cmocka_unit_test(reporting_traps_what_would_kill_or_fail),
    };
    return test_group("workers/sandbox/inside_filter", tests, filters_make,
                      filters_destroy);
}
