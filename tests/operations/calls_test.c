/* SPDX-License-Identifier: MIT */
/* Goal: a system call that does less than it was asked for, is interrupted, or takes long while
 * a cancel comes, is handled between any two pieces.
 * Method: the linker puts this file's read, write and syscall in front of the C library's; they
 * cut, interrupt, hold or refuse what the plan says and leave all else alone. */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "gate.h"
#include "rig.h"

typedef enum call_plan {
    PLAN_NONE = 0,
    PLAN_CUT = 1,       /* odd little pieces */
    PLAN_INTERRUPT = 2, /* every other call answers EINTR */
    PLAN_HOLD = 3,      /* the second call on a regular file waits in the gate first */
    PLAN_OLD = 4        /* a kernel without pidfd_open */
} call_plan;

static atomic_int the_plan, calls, interrupted;
static test_gate gate;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);

/* 0 = go on with *size bytes, else an errno. */
static int
interfere(int fd, size_t *size)
{
    struct stat status;
    int plan = atomic_load_explicit(&the_plan, memory_order_acquire);

    if (plan == PLAN_NONE || plan == PLAN_OLD || fd < 3 || fstat(fd, &status) != 0)
        return 0;
    if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
        return 0;
    int call = atomic_fetch_add_explicit(&calls, 1, memory_order_acq_rel);
    if (plan == PLAN_CUT && *size > 1)
        *size = 1 + (size_t)call * 37 % (*size < 5000 ? *size : 5000);
    if (plan == PLAN_INTERRUPT && call % 2 == 0) {
        atomic_fetch_add_explicit(&interrupted, 1, memory_order_acq_rel);
        return EINTR;
    }
    if (plan == PLAN_HOLD && call == 1)
        gate_wait(&gate);
    return 0;
}

ssize_t
__wrap_read(int fd, void *bytes, size_t size)
{
    int error = interfere(fd, &size);

    if (error == 0)
        return __real_read(fd, bytes, size);
    errno = error;
    return -1;
}

ssize_t
__wrap_write(int fd, const void *bytes, size_t size)
{
    int error = interfere(fd, &size);

    if (error == 0)
        return __real_write(fd, bytes, size);
    errno = error;
    return -1;
}

long
__wrap_syscall(long number, ...)
{
    long words[6];
    va_list arguments;

    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_pidfd_open &&
        atomic_load_explicit(&the_plan, memory_order_acquire) == PLAN_OLD) {
        atomic_fetch_add_explicit(&calls, 1, memory_order_acq_rel);
        errno = ENOSYS;
        return -1;
    }
    return __real_syscall(number, words[0], words[1], words[2], words[3], words[4],
                          words[5]);
}

static void
set(call_plan plan)
{
    atomic_store_explicit(&calls, 0, memory_order_release);
    atomic_store_explicit(&interrupted, 0, memory_order_release);
    atomic_store_explicit(&the_plan, (int)plan, memory_order_release);
}

/* Writes, appends, reads, hashes and prints the same bytes under a plan. */
static void
carry(test_rig *rig, call_plan plan)
{
    enum { SIZE = 300000 };
    const char *argv[] = {"cat", NULL};
    char *bytes = malloc(SIZE);
    errand_command_config config = {
        .struct_size = sizeof config, .argv = argv, .input = bytes, .input_size = SIZE};
    errand_spec spec;

    assert_non_null(bytes);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 31 + i / 1009);
    set(plan);
    assert_int_equal(errand_spec_write_file(&spec, rig_path(rig, "f"), bytes, 200000, 0),
                     ERRAND_OK);
    rig_run(rig, &spec);
    rig_payload(rig, &errand_file_written_type);
    assert_int_equal(errand_spec_append_file(&spec, rig_path(rig, "f"), bytes + 200000,
                                             SIZE - 200000, 0),
                     ERRAND_OK);
    rig_run(rig, &spec);
    const errand_file_written *written = rig_payload(rig, &errand_file_written_type);
    assert_int_equal(written->written, SIZE - 200000);
    assert_int_equal(errand_spec_hash_file(&spec, rig_path(rig, "f")), ERRAND_OK);
    rig_run(rig, &spec);
    errand_hash hash = *(const errand_hash *)rig_payload(rig, &errand_hash_type);
    assert_int_equal(errand_spec_read_file(&spec, rig_path(rig, "f"), 0), ERRAND_OK);
    rig_run(rig, &spec);
    const errand_file_bytes *file = rig_payload(rig, &errand_file_bytes_type);
    assert_int_equal(file->size, SIZE);
    assert_memory_equal(file->bytes, bytes, SIZE);
    assert_true(hash.value ==
                errand_file_bytes_digest(file, sizeof *file)); /* XXH3 too */
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_OK);
    rig_run(rig, &spec);
    const errand_command_result *result = rig_payload(rig, &errand_command_result_type);
    assert_int_equal(atomic_load_explicit(&interrupted, memory_order_acquire) > 10,
                     plan == PLAN_INTERRUPT);
    assert_true(atomic_load_explicit(&calls, memory_order_acquire) > 20);
    set(PLAN_NONE);
    assert_int_equal(result->out_size, SIZE);
    assert_memory_equal(result->out, bytes, SIZE);
    free(bytes);
}

static void
calls_that_are_cut_short_go_on(void **state)
{
    carry(*state, PLAN_CUT);
}

/* C-G7 */
static void
calls_that_are_interrupted_are_made_again(void **state)
{
    carry(*state, PLAN_INTERRUPT);
}

static void
a_command_is_watched_on_a_kernel_without_pidfd_too(void **state)
{
    test_rig *rig = *state;
    const char *argv[] = {"sh", "-c", "echo x; exec >&- 2>&-; sleep 0.02; exit 6", NULL};
    errand_command_config config = {.struct_size = sizeof config, .argv = argv};
    errand_identity identity;
    errand_spec spec;

    set(PLAN_OLD);
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_OK);
    rig_run(rig, &spec);
    const errand_command_result *result = rig_payload(rig, &errand_command_result_type);
    assert_int_equal(result->exit_status, 6);
    assert_string_equal((const char *)result->out, "x\n");
    argv[2] = "trap '' TERM; while :; do :; done";
    config.term_ns = 20000000;
    assert_int_equal(errand_spec_command(&spec, &config), ERRAND_OK);
    rig_start(rig, &spec, &identity);
    rig_await_running(rig);
    while (atomic_load_explicit(&calls, memory_order_acquire) < 2)
        continue;
    rig_cancel(rig, &identity);
    rig_await_end(rig);
    set(PLAN_NONE);
    rig_assert_failed(rig, ERRAND_OPERATION_STOPPED, 0);
}

/* Starts spec, cancels it while its second call is held, and lets go. */
static void
cancel_in_second_call(test_rig *rig, errand_spec *spec)
{
    errand_identity identity;

    set(PLAN_HOLD);
    rig_start(rig, spec, &identity);
    gate_await_arrival(&gate);
    rig_cancel(rig, &identity);
    gate_open(&gate);
    rig_await_end(rig);
    int made = atomic_load_explicit(&calls, memory_order_acquire);
    set(PLAN_NONE);
    assert_int_equal(made, 2);
    rig_assert_failed(rig, ERRAND_OPERATION_STOPPED, 0);
    assert_true((rig->result.flags & ERRAND_CANCEL_REQUESTED) != 0);
}

static void
a_cancel_ends_file_work_at_the_next_piece(void **state)
{
    enum { PIECE = 1 << 20 };
    test_rig *rig = *state;
    char *bytes = calloc(4, PIECE);
    struct stat status;
    errand_spec spec;

    assert_non_null(bytes);
    rig_put(rig, "four", bytes, (size_t)4 * PIECE);
    gate_init(&gate, "second call");
    assert_int_equal(errand_spec_read_file(&spec, rig_path(rig, "four"), 0), ERRAND_OK);
    cancel_in_second_call(rig, &spec);
    rig_assert_says(rig, "four' was cancelled after 2097152 bytes; start it again");
    assert_int_equal(errand_spec_hash_file(&spec, rig_path(rig, "four")), ERRAND_OK);
    cancel_in_second_call(rig, &spec);
    rig_assert_says(rig, "hashing '");
    assert_int_equal(
        errand_spec_write_file(&spec, rig_path(rig, "out"), bytes, (size_t)4 * PIECE, 0),
        ERRAND_OK);
    cancel_in_second_call(rig, &spec);
    rig_assert_says(rig, "out' was cancelled after 2097152 bytes");
    assert_int_equal(stat(rig_path(rig, "out"), &status), 0);
    assert_int_equal(status.st_size, 2 * PIECE);
    gate_fini(&gate);
    free(bytes);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_that_are_cut_short_go_on, rig_setup_manual,
                                        rig_teardown),
        cmocka_unit_test_setup_teardown(calls_that_are_interrupted_are_made_again,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(
            a_command_is_watched_on_a_kernel_without_pidfd_too, rig_setup_threads,
            rig_teardown),
        cmocka_unit_test_setup_teardown(a_cancel_ends_file_work_at_the_next_piece,
                                        rig_setup_threads, rig_teardown),
    };
    return test_group("operations/calls", tests, NULL, NULL);
}
