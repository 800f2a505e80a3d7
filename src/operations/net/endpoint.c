/* SPDX-License-Identifier: MIT */
/* endpoint: addresses as text, as values, and as the system has them. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "operations/net/net.h"

static bool parse_number(const char *text, uint32_t max, uint32_t *out_number);
static bool parse_unix(const char *name, errand_endpoint *out);
static bool parse_four(const char *text, errand_endpoint *out);
static bool parse_six(const char *text, errand_endpoint *out);

errand_status
errand_endpoint_parse(const char *text, errand_endpoint *out_endpoint)
{
    errand_endpoint parsed = {.family = 0};
    bool good;

    ERRAND_REQUIRE_ARG(text != NULL && out_endpoint != NULL, ERRAND_EINVAL,
                       "text or out_endpoint is NULL");
    if (strncmp(text, "unix:", 5) == 0)
        good = parse_unix(text + 5, &parsed);
    else if (text[0] == '[')
        good = parse_six(text, &parsed);
    else
        good = parse_four(text, &parsed);
    if (!good)
        return ERRAND_EINVAL;
    *out_endpoint = parsed;
    return ERRAND_OK;
}

static bool
parse_number(const char *text, uint32_t max, uint32_t *out_number)
{
    uint64_t number = 0;

    if (*text == 0)
        return false;
    for (; *text != 0; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = number * 10 + (uint64_t)(*text - '0');
        if (number > max)
            return false;
    }
    *out_number = (uint32_t)number;
    return true;
}

static bool
parse_unix(const char *name, errand_endpoint *out)
{
    size_t size = strlen(name);

    /* A path needs room for its 0. */
    if (size > sizeof out->path - (name[0] == '@' ? 0 : 1))
        return false;
    out->family = ERRAND_ENDPOINT_UNIX;
    out->path_size = (uint16_t)size;
    memcpy(out->path, name, size);
    if (name[0] == '@')
        out->path[0] = 0;
    return true;
}

static bool
parse_four(const char *text, errand_endpoint *out)
{
    const char *colon = strrchr(text, ':');
    char host[INET_ADDRSTRLEN];
    uint32_t port;

    if (colon == NULL || (size_t)(colon - text) >= sizeof host ||
        !parse_number(colon + 1, UINT16_MAX, &port))
        return false;
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = 0;
    out->family = 4;
    out->port = (uint16_t)port;
    return inet_pton(AF_INET, host, out->bytes) == 1;
}

static bool
parse_six(const char *text, errand_endpoint *out)
{
    const char *end = strchr(text, ']');
    char host[INET6_ADDRSTRLEN + 12];
    uint32_t port;

    if (end == NULL || end[1] != ':' || (size_t)(end - text) > sizeof host ||
        !parse_number(end + 2, UINT16_MAX, &port))
        return false;
    memcpy(host, text + 1, (size_t)(end - text) - 1);
    host[end - text - 1] = 0;
    char *scope = strchr(host, '%');
    if (scope != NULL) {
        *scope = 0;
        if (!parse_number(scope + 1, UINT32_MAX, &out->scope))
            return false;
    }
    out->family = 6;
    out->port = (uint16_t)port;
    return inet_pton(AF_INET6, host, out->bytes) == 1;
}

size_t
errand_endpoint_print(const errand_endpoint *endpoint, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN], scope[16] = "";

    if (endpoint == NULL || out == NULL || size == 0)
        return 0;
    if (endpoint->family == ERRAND_ENDPOINT_UNIX) {
        size_t length = endpoint->path_size;
        char path[sizeof endpoint->path + 1] = "";

        if (length > sizeof endpoint->path)
            length = sizeof endpoint->path;
        memcpy(path, endpoint->path, length);
        if (length > 0 && path[0] == 0)
            path[0] = '@';
        return errand__text_format(out, size, "unix:%s", path);
    }
    if (endpoint->family != 4 && endpoint->family != 6) {
        out[0] = 0;
        return 0;
    }
    if (inet_ntop(endpoint->family == 4 ? AF_INET : AF_INET6, endpoint->bytes, host,
                  sizeof host) == NULL)
        host[0] = 0;
    if (endpoint->family == 4)
        return errand__text_format(out, size, "%s:%u", host, endpoint->port);
    if (endpoint->scope != 0)
        errand__text_format(scope, sizeof scope, "%%%u", endpoint->scope);
    return errand__text_format(out, size, "[%s%s]:%u", host, scope, endpoint->port);
}

errand_endpoint
errand_endpoint_of(const errand_address *address)
{
    errand_endpoint endpoint = {.family = 0};

    if (address == NULL || (address->family != 4 && address->family != 6))
        return endpoint;
    endpoint.family = address->family;
    endpoint.scope = address->scope;
    endpoint.port = address->port;
    memcpy(endpoint.bytes, address->bytes, address->family == 4 ? 4 : 16);
    return endpoint;
}

socklen_t
errand__name_fill(errand__name *out_name, const errand_endpoint *endpoint)
{
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)out_name;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)out_name;

    memset(out_name, 0, sizeof *out_name);
    switch (endpoint->family) {
    case 4:
        four->sin_family = AF_INET;
        four->sin_port = htons(endpoint->port);
        memcpy(&four->sin_addr, endpoint->bytes, 4);
        return sizeof *four;
    case 6:
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(endpoint->port);
        six->sin6_scope_id = endpoint->scope;
        memcpy(&six->sin6_addr, endpoint->bytes, 16);
        return sizeof *six;
    case ERRAND_ENDPOINT_UNIX:
        if (endpoint->path_size > sizeof out_name->path.sun_path)
            return 0;
        out_name->path.sun_family = AF_UNIX;
        memcpy(out_name->path.sun_path, endpoint->path, endpoint->path_size);
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + endpoint->path_size +
                           (endpoint->path_size > 0 && endpoint->path[0] != 0));
    default:
        return 0;
    }
}

errand_endpoint
errand__name_endpoint(const errand__name *name, socklen_t size)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)name;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)name;
    errand_endpoint endpoint = {.family = 0};

    if (size >= sizeof *four && name->any.sa_family == AF_INET) {
        endpoint.family = 4;
        endpoint.port = ntohs(four->sin_port);
        memcpy(endpoint.bytes, &four->sin_addr, 4);
    } else if (size >= sizeof *six && name->any.sa_family == AF_INET6) {
        endpoint.family = 6;
        endpoint.port = ntohs(six->sin6_port);
        endpoint.scope = six->sin6_scope_id;
        memcpy(endpoint.bytes, &six->sin6_addr, 16);
    } else if (size >= sizeof name->any.sa_family && name->any.sa_family == AF_UNIX) {
        size_t length = size - offsetof(struct sockaddr_un, sun_path);

        endpoint.family = ERRAND_ENDPOINT_UNIX;
        if (length > sizeof endpoint.path)
            length = sizeof endpoint.path;
        if (length > 0 && name->path.sun_path[0] != 0)
            length = strnlen(name->path.sun_path, length);
        endpoint.path_size = (uint16_t)length;
        memcpy(endpoint.path, name->path.sun_path, length);
    }
    return endpoint;
}

errand__name_shown
errand__name_show(const errand_endpoint *endpoint)
{
    errand__name_shown shown;

    if (errand_endpoint_print(endpoint, shown.text, sizeof shown.text) == 0)
        errand__text_format(shown.text, sizeof shown.text, "a socket without a name");
    return shown;
}

int
errand__name_socket(const errand__name *name, int type)
{
    return errand__operation_fd_raise(
        socket(name->any.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}
