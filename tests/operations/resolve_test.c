/* SPDX-License-Identifier: MIT */
/* Goal: addresses come back in one canonical form, every refusal has its code, and a resolver
 * that hangs costs a worker and nothing else.
 * Method: numeric hosts and /etc/hosts for the real resolver; for the rest the linker puts this
 * file's getaddrinfo in front of it.  No network is needed. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include "gate.h"
#include "rig.h"

static int fake_answer, fake_error;
static atomic_int freed;
static test_gate gate;

int __real_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out_found);
void __real_freeaddrinfo(struct addrinfo *found);
int __wrap_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out_found);
void __wrap_freeaddrinfo(struct addrinfo *found);

enum { MANY = 9 };
static struct addrinfo many[MANY];
static struct sockaddr_storage storage[MANY];

static void
put_address(int i, const char *text, uint16_t port, uint32_t scope)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = scope};

    if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
        memcpy(&storage[i], &four, sizeof four);
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
        memcpy(&storage[i], &six, sizeof six);
    }
    many[i].ai_family = storage[i].ss_family;
    many[i].ai_addr = (struct sockaddr *)&storage[i];
    many[i].ai_next = i + 1 < MANY ? &many[i + 1] : NULL;
}

int
__wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                   struct addrinfo **out_found)
{
    if (strcmp(host, "hanging.invalid") == 0) {
        gate_wait(&gate);
        return EAI_AGAIN;
    }
    if (strcmp(host, "failing.invalid") == 0) {
        errno = fake_error;
        return fake_answer;
    }
    if (strcmp(host, "many.invalid") != 0)
        return __real_getaddrinfo(host, service, hints, out_found);
    put_address(0, "fe80::1", 1, 2);
    put_address(1, "10.0.0.1", 2, 0);
    put_address(2, "2001:db8::1", 1, 0);
    put_address(3, "10.0.0.1", 1, 0);
    put_address(4, "fe80::1", 1, 1);
    put_address(5, "9.0.0.1", 1, 0);
    put_address(6, "10.0.0.1", 1, 0);
    put_address(7, "2001:db8::1", 1, 0);
    put_address(8, "10.0.0.1", 1, 0);
    many[8].ai_family = AF_UNIX; /* no family of ours */
    *out_found = many;
    return 0;
}

void
__wrap_freeaddrinfo(struct addrinfo *found)
{
    if (found == many)
        atomic_fetch_add_explicit(&freed, 1, memory_order_acq_rel);
    else
        __real_freeaddrinfo(found);
}

static const errand_addresses *
resolve(test_rig *rig, const char *host, const char *service)
{
    errand_spec spec;

    assert_int_equal(errand_spec_resolve(&spec, host, service, 0), ERRAND_OK);
    rig_run(rig, &spec);
    return rig->result.outcome == ERRAND_COMPLETED
               ? rig_payload(rig, &errand_addresses_type)
               : NULL;
}

static void
a_numeric_host_gives_its_one_address(void **state)
{
    test_rig *rig = *state;
    const errand_addresses *found = resolve(rig, "127.0.0.2", "8080");

    assert_non_null(found);
    assert_int_equal(found->count, 1);
    assert_int_equal(found->addresses[0].family, 4);
    assert_int_equal(found->addresses[0].port, 8080);
    assert_memory_equal(found->addresses[0].bytes, "\x7f\x00\x00\x02", 4);
    assert_string_equal(found->addresses[0].text, "127.0.0.2");
    found = resolve(rig, "2001:db8::1", NULL);
    assert_non_null(found);
    assert_int_equal(found->count, 1);
    assert_int_equal(found->addresses[0].family, 6);
    assert_int_equal(found->addresses[0].port, 0);
    assert_string_equal(found->addresses[0].text, "2001:db8::1");
}

static void
addresses_are_sorted_and_each_is_there_once(void **state)
{
    test_rig *rig = *state;
    const errand_addresses *found = resolve(rig, "localhost", "80");

    assert_non_null(found);
    assert_true(found->count >= 1);
    for (size_t i = 1; i < found->count; i++) {
        const errand_address *one = &found->addresses[i - 1],
                             *next = &found->addresses[i];
        assert_true(one->family < next->family ||
                    (one->family == next->family &&
                     memcmp(one->bytes, next->bytes, sizeof one->bytes) < 0));
    }
}

static void
an_unknown_host_or_service_is_a_failure_that_names_it(void **state)
{
    test_rig *rig = *state;

    assert_null(resolve(rig, "no-such-host.invalid", NULL));
    if (rig->result.job_code == ERRAND_OPERATION_AGAIN) /* no name server here */
        rig_assert_failed(rig, ERRAND_OPERATION_AGAIN, 0);
    else
        rig_assert_failed(rig, ERRAND_OPERATION_NOT_FOUND, 0);
    rig_assert_says(rig, "host 'no-such-host.invalid'");
    assert_null(resolve(rig, "127.0.0.1", "no-such-service"));
    rig_assert_failed(rig, ERRAND_OPERATION_NOT_FOUND, 0);
    rig_assert_says(rig, "no service 'no-such-service' is known (host '127.0.0.1')");
    assert_null(strstr(rig->result.message, "65535"));
}

static void
a_number_beyond_the_largest_port_is_no_service(void **state)
{
    static const char *const bad[] = {"65536", "70000", "99999999999999999999",
                                      "+80",   " 80",   "-1"};
    test_rig *rig = *state;
    const errand_addresses *found;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_null(resolve(rig, "127.0.0.1", bad[i]));
        rig_assert_failed(rig, ERRAND_OPERATION_NOT_FOUND, 0);
        rig_assert_says(rig, "no service");
        rig_assert_says(rig, ": ports are the numbers from 0 to 65535");
    }
    found = resolve(rig, "127.0.0.1", "065535");
    assert_non_null(found);
    assert_int_equal(found->addresses[0].port, 65535);
}

static void
a_lookup_is_quarantined_with_a_bound(void **state)
{
    errand_spec spec;

    (void)state;
    assert_int_equal(errand_spec_resolve(&spec, "x", NULL, 0), ERRAND_OK);
    assert_int_equal(spec.resource_class, ERRAND_QUARANTINED_BLOCKING);
    assert_int_equal(spec.quarantine_ns, 30000000000u);
    assert_int_equal(spec.deadline_ns, 30000000000u);
    assert_null(spec.held_hook);
    errand_spec_abandon(&spec);
    assert_int_equal(errand_spec_resolve(&spec, "x", "y", 5), ERRAND_OK);
    assert_int_equal(spec.quarantine_ns, 5);
    errand_spec_abandon(&spec);
    assert_int_equal(errand_spec_resolve(&spec, "", NULL, 0), ERRAND_EINVAL);
    assert_int_equal(errand_spec_resolve(&spec, "x", "", 0), ERRAND_EINVAL);
}

static void
what_the_resolver_answers_comes_back_sorted_and_once(void **state)
{
    static const char *const expected[] = {"9.0.0.1",     "10.0.0.1", "10.0.0.1",
                                           "2001:db8::1", "fe80::1",  "fe80::1"};
    const uint16_t ports[] = {1, 1, 2, 1, 1, 1};
    test_rig *rig = *state;
    const errand_addresses *found = resolve(rig, "many.invalid", "1");

    assert_non_null(found);
    assert_int_equal(found->count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(found->addresses[i].text, expected[i]);
        assert_int_equal(found->addresses[i].port, ports[i]);
        assert_int_equal(found->addresses[i].scope, i == 4 ? 1 : i == 5 ? 2 : 0);
    }
    assert_int_equal(rig->result.payload.size,
                     sizeof *found + 6 * sizeof found->addresses[0]);
    assert_int_equal(atomic_load_explicit(&freed, memory_order_acquire), 1);
}

static void
each_answer_of_the_resolver_has_its_code(void **state)
{
    static const struct {
        int answer, error;
        errand_operation_code code;
    } rows[] = {
        {EAI_NONAME, 0, ERRAND_OPERATION_NOT_FOUND},
        {EAI_AGAIN, 0, ERRAND_OPERATION_AGAIN},
        {EAI_MEMORY, 0, ERRAND_OPERATION_MEMORY},
        {EAI_FAIL, 0, ERRAND_OPERATION_IO},
        {EAI_SYSTEM, EMFILE, ERRAND_OPERATION_LIMIT},
        {EAI_NONAME, EMFILE, ERRAND_OPERATION_LIMIT},
        {EAI_AGAIN, ENFILE, ERRAND_OPERATION_LIMIT},
    };
    test_rig *rig = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_answer = rows[i].answer;
        fake_error = rows[i].error;
        assert_null(resolve(rig, "failing.invalid", NULL));
        rig_assert_failed(rig, rows[i].code, rows[i].error);
        rig_assert_says(rig, "host 'failing.invalid'");
    }
}

/* O45 */
static void
a_lookup_that_hangs_is_settled_at_its_deadline(void **state)
{
    test_rig *rig = *state;
    errand_spec spec;

    gate_init(&gate, "resolver");
    assert_int_equal(errand_spec_resolve(&spec, "hanging.invalid", NULL, 50000000),
                     ERRAND_OK);
    rig_run(rig, &spec);
    assert_int_equal(rig->result.code, ERRAND_CODE_DEADLINE);
    assert_true((rig->result.flags & ERRAND_HELD) != 0);
    gate_await_arrival(&gate);
    gate_open(&gate);
    rig_await_held(rig);
    gate_fini(&gate);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_numeric_host_gives_its_one_address,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(addresses_are_sorted_and_each_is_there_once,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(
            an_unknown_host_or_service_is_a_failure_that_names_it, rig_setup_manual,
            rig_teardown),
        cmocka_unit_test_setup_teardown(a_number_beyond_the_largest_port_is_no_service,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(a_lookup_is_quarantined_with_a_bound,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(
            what_the_resolver_answers_comes_back_sorted_and_once, rig_setup_manual,
            rig_teardown),
        cmocka_unit_test_setup_teardown(each_answer_of_the_resolver_has_its_code,
                                        rig_setup_manual, rig_teardown),
        cmocka_unit_test_setup_teardown(a_lookup_that_hangs_is_settled_at_its_deadline,
                                        rig_setup_threads, rig_teardown),
    };
    return test_group("operations/resolve", tests, NULL, NULL);
}
