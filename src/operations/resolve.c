/* SPDX-License-Identifier: MIT */
/* resolve: the system's name lookup, quarantined.
 *
 * Design notes: getaddrinfo follows the system's own configuration (files, mDNS, LDAP), which is
 * why it is used, and cannot be stopped, which is why it has a deadline.  It answers in an
 * order of its own (RFC 6724, round robin): the result is sorted, so that equal sets are equal.
 * A body that comes back after its deadline has touched only its own state.
 * It takes "65616" and "+80" for port 80, and calls a name unknown when it could not open its files
 * to look: neither is passed on. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "errand/traps.h"
#include "operations/operations.h"

static const uint64_t timeout_default_ns = 30000000000u;

typedef struct resolve_state {
    const char *host, *service; /* service may be NULL */
    errand__operation_shown shown;
} resolve_state;

static int32_t resolve_run(errand_job *job, void *state, errand_payload *out_payload);
static int32_t refuse(errand_job *job, const resolve_state *lookup, int answer,
                      int error);
static bool is_port(const char *service);
static bool is_number(const char *service);
static int32_t give(errand_job *job, const struct addrinfo *found,
                    errand_payload *out_payload);
static bool fill(errand_address *address, const struct addrinfo *from);
static int by_value(const void *left, const void *right);

static const errand_job_type resolve_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "resolve",
    .run = resolve_run,
    .drop = errand__operation_block_free,
};

errand_status
errand_spec_resolve(errand_spec *out_spec, const char *host, const char *service,
                    uint64_t timeout_ns)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && host != NULL && host[0] != 0, ERRAND_EINVAL,
                       "out_spec or host is missing");
    ERRAND_REQUIRE_ARG(service == NULL || service[0] != 0, ERRAND_EINVAL,
                       "service is empty");
    size_t host_size = strlen(host) + 1;
    size_t service_size = service == NULL ? 0 : strlen(service) + 1;
    resolve_state *state =
        errand__operation_block_alloc(sizeof *state + host_size + service_size);
    if (state == NULL)
        return ERRAND_ENOMEM;
    errand__operation_cursor cursor = {(char *)(state + 1)};
    state->host = errand__operation_copy(&cursor, host, host_size);
    if (service != NULL)
        state->service = errand__operation_copy(&cursor, service, service_size);
    state->shown = errand__operation_show(host);
    errand__operation_spec_fill(out_spec, ERRAND_KIND_RESOLVE, &resolve_job, state);
    out_spec->flags = ERRAND_SPEC_EFFECT_FREE;
    out_spec->resource_class = ERRAND_QUARANTINED_BLOCKING;
    out_spec->deadline_ns = timeout_ns == 0 ? timeout_default_ns : timeout_ns;
    out_spec->quarantine_ns = out_spec->deadline_ns;
    return ERRAND_OK;
}

static int32_t
resolve_run(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_job_impure(job);
    const resolve_state *lookup = state;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    if (lookup->service != NULL && !is_port(lookup->service))
        return refuse(job, lookup, EAI_SERVICE, 0);
    errno = 0;
    int answer = getaddrinfo(lookup->host, lookup->service, &hints, &found);
    if (answer != 0)
        return refuse(job, lookup, answer, errno);
    int32_t code = give(job, found, out_payload);
    freeaddrinfo(found);
    return code;
}

/* 0 to 65535, or what is no number at all: a name. */
static bool
is_port(const char *service)
{
    const char *at = service + strspn(service, " \t\n\v\f\r+");
    size_t zeros = strspn(at, "0");

    if (at[strspn(at, "0123456789")] != 0 || *at == 0)
        return true;
    return at == service && strlen(at + zeros) <= 5 && atoi(at + zeros) <= UINT16_MAX;
}

/* As somebody writes one who means a port, be it one or not. */
static bool
is_number(const char *service)
{
    const char *at = service + strspn(service, " \t\n\v\f\r+-");

    return *at != 0 && at[strspn(at, "0123456789")] == 0;
}

static int32_t
refuse(errand_job *job, const resolve_state *lookup, int answer, int error)
{
    const char *host = lookup->shown.text;

    if (error == EMFILE || error == ENFILE)
        answer = EAI_SYSTEM;
    switch (answer) {
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
#ifdef EAI_ADDRFAMILY
    case EAI_ADDRFAMILY:
#endif
        return errand__operation_failed(job, ERRAND_OPERATION_NOT_FOUND,
                                        "no address is known for host '%s'", host);
    case EAI_SERVICE:
        return errand__operation_failed(
            job, ERRAND_OPERATION_NOT_FOUND, "no service '%.60s' is known (host '%s')%s",
            lookup->service, host,
            is_number(lookup->service) ? ": ports are the numbers from 0 to 65535" : "");
    case EAI_AGAIN:
        return errand__operation_failed(job, ERRAND_OPERATION_AGAIN,
                                        "the name server did not answer for host '%s'",
                                        host);
    case EAI_MEMORY:
        return errand__operation_failed(job, ERRAND_OPERATION_MEMORY,
                                        "no memory to look up host '%s'", host);
    case EAI_SYSTEM:
        return errand__operation_refused(job, error, "getaddrinfo",
                                         "cannot look up host '%s'", host);
    default:
        return errand__operation_failed(job, ERRAND_OPERATION_IO,
                                        "cannot look up host '%s' (resolver's answer %d)",
                                        host, answer);
    }
}

static int32_t
give(errand_job *job, const struct addrinfo *found, errand_payload *out_payload)
{
    size_t count = 0;

    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
        count++;
    size_t size = sizeof(errand_addresses) + count * sizeof(errand_address);
    errand_addresses *result = errand__operation_block_alloc(size);
    if (result == NULL)
        return errand__operation_no_memory(job, size);
    errand_address *addresses = (errand_address *)(void *)(result + 1);
    count = 0;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
        if (fill(&addresses[count], at))
            count++;
    qsort(addresses, count, sizeof *addresses, by_value);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || by_value(&addresses[kept - 1], &addresses[i]) != 0)
            addresses[kept++] = addresses[i];
    result->addresses = addresses;
    result->count = kept;
    errand__operation_payload(out_payload, &errand_addresses_type, result,
                              sizeof *result + kept * sizeof *addresses);
    return 0;
}

/* False for families that have no place here. */
static bool
fill(errand_address *address, const struct addrinfo *from)
{
    memset(address, 0, sizeof *address);
    if (from->ai_family == AF_INET) {
        struct sockaddr_in four;
        memcpy(&four, from->ai_addr, sizeof four);
        address->family = 4;
        address->port = ntohs(four.sin_port);
        memcpy(address->bytes, &four.sin_addr, 4);
    } else if (from->ai_family == AF_INET6) {
        struct sockaddr_in6 six;
        memcpy(&six, from->ai_addr, sizeof six);
        address->family = 6;
        address->port = ntohs(six.sin6_port);
        address->scope = six.sin6_scope_id;
        memcpy(address->bytes, &six.sin6_addr, 16);
    } else {
        return false;
    }
    return inet_ntop(from->ai_family, address->bytes, address->text,
                     sizeof address->text) != NULL;
}

static int
by_value(const void *left, const void *right)
{
    const errand_address *one = left, *other = right;

    if (one->family != other->family)
        return one->family < other->family ? -1 : 1;
    int order = memcmp(one->bytes, other->bytes, sizeof one->bytes);
    if (order != 0)
        return order;
    if (one->port != other->port)
        return one->port < other->port ? -1 : 1;
    return (one->scope > other->scope) - (one->scope < other->scope);
}
