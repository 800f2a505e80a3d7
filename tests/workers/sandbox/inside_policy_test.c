/* SPDX-License-Identifier: MIT */
/* Goal: a policy that cannot mean what it says is refused with its field's name; a good one is copied,
 * filled in, and written down so that a worker finds everything.
 * Method: a table of bad policies; the set-up's bytes are read back as a worker would. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "core/core.h"
#include "inside_rig.h"

static const errand_sandbox_path reads = {"/tmp", ERRAND_PATH_READ};
static const errand_sandbox_path writes = {"/tmp", ERRAND_PATH_WRITE};
static const errand_sandbox_path relative = {"tmp", ERRAND_PATH_READ};
static const errand_sandbox_path nothing = {"/tmp", 0};
static const errand_sandbox_path nowhere = {NULL, ERRAND_PATH_READ};
static const uint16_t ports[] = {80, 443};
static const uint16_t no_port = 0;
static const errand_entry fine = {"libz.so.1", "crc32", "u64(u64, bytes, u32)"};
static const errand_entry unnamed = {"libz.so.1", NULL, NULL};
static const errand_entry homeless = {NULL, "probe", NULL};
static const errand_entry beside = {"lib/x.so", "probe", NULL};
static const errand_entry empty = {"", "probe", NULL};

typedef struct bad {
    const char *field; /* with which the text begins */
    errand_sandbox_policy policy;
} bad;
#define POLICY(...)                                                                      \
    {                                                                                    \
        .struct_size = sizeof(errand_sandbox_policy), __VA_ARGS__                        \
    }
static const bad bads[] = {
    {"struct_size", {.struct_size = 8}},
    {"promises", POLICY(.promises = 64)},
    {"want_layers", POLICY(.want_layers = 1u << 20)},
    {"require_layers", POLICY(.require_layers = 1u << 20)},
    {"want_layers", POLICY(.promises = ERRAND_PROMISE_INET, .tcp_ports = ports,
                           .port_count = 2, .want_layers = ERRAND_LAYER_NET_NS)},
    {"paths:", POLICY(.path_count = 1)},
    {"paths:", POLICY(.promises = ERRAND_PROMISE_RPATH)},
    {"paths:", POLICY(.promises = ERRAND_PROMISE_WPATH)},
    {"paths:", POLICY(.promises = ERRAND_PROMISE_RPATH | ERRAND_PROMISE_WPATH,
                      .paths = &reads, .path_count = 1)},
    {"path_count",
     POLICY(.promises = ERRAND_PROMISE_RPATH, .paths = &reads, .path_count = 65)},
    {"paths[0].path",
     POLICY(.promises = ERRAND_PROMISE_RPATH, .paths = &relative, .path_count = 1)},
    {"paths[0].path",
     POLICY(.promises = ERRAND_PROMISE_RPATH, .paths = &nowhere, .path_count = 1)},
    {"paths[0].rights",
     POLICY(.promises = ERRAND_PROMISE_RPATH, .paths = &nothing, .path_count = 1)},
    {"paths[0].rights", POLICY(.paths = &reads, .path_count = 1)},
    {"paths[0].rights",
     POLICY(.promises = ERRAND_PROMISE_RPATH, .paths = &writes, .path_count = 1)},
    {"tcp_ports", POLICY(.promises = ERRAND_PROMISE_INET)},
    {"tcp_ports", POLICY(.tcp_ports = ports, .port_count = 2)},
    {"tcp_ports", POLICY(.port_count = 2)},
    {"tcp_ports[0]",
     POLICY(.promises = ERRAND_PROMISE_INET, .tcp_ports = &no_port, .port_count = 1)},
    {"port_count",
     POLICY(.promises = ERRAND_PROMISE_INET, .tcp_ports = ports, .port_count = 257)},
    {"entries:", POLICY(.entry_count = 1)},
    {"entry_count", POLICY(.entries = &fine, .entry_count = 1025)},
    {"entries_fixed", POLICY(.entries_fixed = true)},
    {"entries[0].symbol", POLICY(.entries = &unnamed, .entry_count = 1)},
    {"entries[0].library", POLICY(.entries = &homeless, .entry_count = 1)},
    {"entries[0].library", POLICY(.entries = &beside, .entry_count = 1)},
    {"entries[0].library", POLICY(.entries = &empty, .entry_count = 1)},
    {"memory_bytes", POLICY(.memory_bytes = 1000)},
    {"stack_bytes", POLICY(.stack_bytes = 1000)},
    {"stack_bytes", POLICY(.memory_bytes = 32u << 20, .stack_bytes = 17u << 20)},
    {"in_bytes", POLICY(.in_bytes = (UINT64_C(1) << 30) + 1)},
    {"out_bytes", POLICY(.out_bytes = (UINT64_C(1) << 30) + 1)},
    {"file_bytes", POLICY(.file_bytes = 1)},
    {"descriptors", POLICY(.descriptors = 3)},
    {"cpu_seconds", POLICY(.cpu_seconds = 2000000000)},
    {"on_deny", POLICY(.on_deny = (errand_on_deny)7)},
};

static void
bad_policies_are_refused_by_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        char text[256] = "";
        errand__policy made = {0};
        errand_status status =
            errand__policy_create(&bads[i].policy, &made, text, sizeof text);
        if (status != ERRAND_EINVAL ||
            strncmp(text, bads[i].field, strlen(bads[i].field)) != 0)
            fail_msg("%zu (%s): status %d, text \"%s\"", i, bads[i].field, (int)status,
                     text);
        assert_null(made.block);
        assert_null(made.filters[0].program);
        /* Nobody need listen. */
        assert_int_equal(errand__policy_create(&bads[i].policy, &made, NULL, 0),
                         ERRAND_EINVAL);
    }
}

static void
defaults_are_filled_in(void **state)
{
    (void)state;
    errand__policy made;
    assert_int_equal(errand__policy_create(NULL, &made, NULL, 0), ERRAND_OK);
    const errand_sandbox_policy *values = &made.values;
    assert_int_equal(values->want_layers,
                     ERRAND_LAYER_NO_NEW_PRIVS | ERRAND_LAYER_SECCOMP |
                         ERRAND_LAYER_LANDLOCK | ERRAND_LAYER_RLIMITS |
                         ERRAND_LAYER_UID_DROP);
    assert_int_equal(values->require_layers, ERRAND_LAYER_NO_NEW_PRIVS |
                                                 ERRAND_LAYER_SECCOMP |
                                                 ERRAND_LAYER_RLIMITS);
    assert_int_equal(values->memory_bytes, 512u << 20);
    assert_int_equal(values->stack_bytes, 8u << 20);
    assert_int_equal(values->in_bytes, 1u << 20);
    assert_int_equal(values->out_bytes, 16u << 20);
    assert_int_equal(values->file_bytes, 0);
    assert_int_equal(values->descriptors, 64);
    assert_int_equal(values->deadline_ns, UINT64_C(25000000000));
    errand__policy_destroy(&made);
    errand__policy_destroy(&made); /* nothing is left */
}

static void
promises_on_files_and_ports_require_landlock(void **state)
{
    (void)state;
    const errand_sandbox_policy policies[] = {
        POLICY(.promises = ERRAND_PROMISE_RPATH, .paths = &reads, .path_count = 1),
        POLICY(.promises = ERRAND_PROMISE_WPATH, .paths = &writes, .path_count = 1),
        POLICY(.promises = ERRAND_PROMISE_INET, .tcp_ports = ports, .port_count = 2,
               .want_layers = ERRAND_LAYER_SECCOMP,
               .require_layers = ERRAND_LAYER_SECCOMP)};
    for (size_t i = 0; i < 3; i++) {
        errand__policy made;
        assert_int_equal(errand__policy_create(&policies[i], &made, NULL, 0), ERRAND_OK);
        assert_true((made.values.require_layers & ERRAND_LAYER_LANDLOCK) != 0);
        assert_true((made.values.want_layers & ERRAND_LAYER_LANDLOCK) != 0);
        errand__policy_destroy(&made);
    }
}

static void
the_set_up_says_everything(void **state)
{
    (void)state;
    char library[] = "libz.so.1", path[] = "/tmp";
    errand_entry entries[] = {{library, "crc32", "u64(u64, bytes, u32)"},
                              {NULL, "labs", "i64(i64)"}};
    errand_sandbox_path paths[] = {{path, ERRAND_PATH_READ}};
    errand_sandbox_policy given =
        POLICY(.promises = ERRAND_PROMISE_RPATH | ERRAND_PROMISE_INET, .paths = paths,
               .path_count = 1, .tcp_ports = ports, .port_count = 2, .entries = entries,
               .entry_count = 2, .cpu_seconds = 5);
    errand__policy made;
    assert_int_equal(errand__policy_create(&given, &made, NULL, 0), ERRAND_OK);
    library[0] = path[1] = 'X'; /* it was copied */
    memset(entries, 0, sizeof entries);
    const errand_entry *kept = made.values.entries;
    size_t size = errand__setup_size(&made, kept, 2);
    unsigned char *bytes = errand__mem_alloc(NULL, size + 8);
    bytes[size] = 0xee;
    errand__setup_write(&made, kept, 2, 77, bytes);
    assert_int_equal(bytes[size], 0xee);
    const errand__wire_setup *setup = (const void *)bytes;
    assert_int_equal(setup->struct_size, sizeof *setup);
    assert_int_equal(setup->parent_pid, 77);
    assert_int_equal(setup->cpu_soft, 5);
    assert_int_equal(setup->cpu_hard, 6);
    assert_int_equal(setup->entry_count, 2);
    const errand__wire_entry *wired = (const void *)(bytes + setup->entries);
    assert_string_equal(bytes + wired[0].library, "libz.so.1");
    assert_string_equal(bytes + wired[0].symbol, "crc32");
    assert_string_equal(bytes + wired[0].signature, "u64(u64, bytes, u32)");
    assert_int_equal(wired[1].library, 0);
    assert_string_equal(bytes + wired[1].symbol, "labs");
    const errand__wire_path *wired_paths = (const void *)(bytes + setup->paths);
    assert_string_equal(bytes + wired_paths[0].text, "/tmp");
    assert_int_equal(wired_paths[0].rights, ERRAND_PATH_READ);
    assert_memory_equal(bytes + setup->ports, ports, sizeof ports);
    for (int stage = 0; stage < 2; stage++) {
        assert_int_equal(setup->filter[stage] % 8, 0);
        assert_int_equal(setup->filter_length[stage], made.filters[stage].length);
        assert_int_equal(setup->tgid_count[stage], made.filters[stage].tgid_count);
    }
    errand__mem_free(NULL, bytes, size + 8);
    errand__policy_destroy(&made);
}

static void
paths_that_cannot_be_opened_are_named(void **state)
{
    (void)state;
    const errand_sandbox_path paths[] = {{"/tmp", ERRAND_PATH_READ},
                                         {"/no/such/folder", ERRAND_PATH_READ}};
    errand_sandbox_policy given =
        POLICY(.promises = ERRAND_PROMISE_RPATH, .paths = paths, .path_count = 2);
    errand__policy made;
    int opened[2] = {-1, -1};
    char text[128] = "";
    assert_int_equal(errand__policy_create(&given, &made, NULL, 0), ERRAND_OK);
    assert_int_equal(errand__policy_open_paths(&made, opened, text, sizeof text),
                     ERRAND_EINVAL);
    assert_non_null(strstr(text, "paths[1]"));
    assert_non_null(strstr(text, "/no/such/folder"));
    assert_int_equal(fcntl(opened[0], F_GETFD), -1); /* closed again */
    made.values.path_count = 1;
    assert_int_equal(errand__policy_open_paths(&made, opened, text, sizeof text),
                     ERRAND_OK);
    assert_int_equal(fcntl(opened[0], F_GETFD), FD_CLOEXEC);
    close(opened[0]);
    errand__policy_destroy(&made);
}

/* Where memory runs out, nothing is made and nothing is lost (O10). */
static void
memory_that_runs_out_makes_nothing(void **state)
{
    (void)state;
    errand_sandbox_policy given = POLICY(.entries = &fine, .entry_count = 1);
    int64_t before = errand__mem_live_bytes();
    unsigned refused = 0;
    for (uint64_t n = 1;; n++) {
        errand__policy made;
        errand__mem_fail_nth(n);
        errand_status status = errand__policy_create(&given, &made, NULL, 0);
        errand__mem_fail_nth(0);
        if (status == ERRAND_OK) {
            errand__policy_destroy(&made);
            break;
        }
        assert_int_equal(status, ERRAND_ENOMEM);
        assert_int_equal(errand__mem_live_bytes(), before);
        refused++;
    }
    assert_true(refused >= 3);
    assert_int_equal(errand__mem_live_bytes(), before);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_policies_are_refused_by_field),
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(promises_on_files_and_ports_require_landlock),
        cmocka_unit_test(the_set_up_says_everything),
        cmocka_unit_test(paths_that_cannot_be_opened_are_named),
        cmocka_unit_test(memory_that_runs_out_makes_nothing),
    };
    return test_group("workers/sandbox/inside_policy", tests, NULL, NULL);
}
