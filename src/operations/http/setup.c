/* SPDX-License-Identifier: MIT */
/* setup: what libcurl is told of a request before it begins.
 *
 * Design notes: it is told all addresses, so that it never looks a name up, which it would do on a
 * thread; and everything that it would do by itself and nobody asked for is switched off. */
#include <string.h>
#include <strings.h>
#include "operations/http/http.h"

#if ERRAND_HAS_CURL
static const long connect_default_ms = 10000;

static bool
append(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = errand__curl_load()->curl_slist_append(*list, text);

    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

/* "host:port:address,address": what libcurl would have looked up. */
static bool
add_addresses(errand__transfer *transfer, const errand_http_config *config,
              const errand__origin *origin)
{
    const errand_addresses *all = config->addresses;
    size_t room =
        sizeof origin->host + 16 + all->count * (sizeof all->addresses[0].text + 3);
    char *entry = errand__operation_block_alloc(room);
    size_t used;
    bool done;

    if (entry == NULL)
        return false;
    used = errand__text_format(entry, room, "%s:%u:", origin->host, origin->port);
    for (size_t i = 0; i < all->count; i++) {
        bool six = all->addresses[i].family == 6;

        used +=
            errand__text_format(entry + used, room - used, "%s%s%s%s", i > 0 ? "," : "",
                                six ? "[" : "", all->addresses[i].text, six ? "]" : "");
    }
    done = append(&transfer->resolve, entry);
    errand__operation_block_free(entry);
    return done;
}

/* Without a value libcurl would take it for "leave this header out". */
static bool
add_header(errand__transfer *transfer, const char *header)
{
    size_t name = strcspn(header, ":");
    bool empty = header[name + 1 + strspn(header + name + 1, " \t")] == 0;
    char *bare = empty ? errand__operation_block_alloc(name + 2) : NULL;
    bool done;

    if (bare != NULL) {
        memcpy(bare, header, name);
        bare[name] = ';';
    }
    done = (!empty || bare != NULL) && append(&transfer->headers, empty ? bare : header);
    errand__operation_block_free(bare);
    return done;
}

static bool
set_up_safety(errand__transfer *transfer, const errand_http_config *config)
{
    const errand__curl *curl = errand__curl_load();
    CURL *easy = transfer->easy;
    bool checks = (config->flags & ERRAND_HTTP_UNCHECKED) == 0;

    curl->curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl->curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl->curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_NONE); /* of the url */
    curl->curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl->curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, checks ? 1L : 0L);
    curl->curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, checks ? 2L : 0L);
    curl->curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
    if (curl->curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK)
        return false;
#endif
    return config->ca_file == NULL ||
           curl->curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file) == CURLE_OK;
}

/* As libcurl's own syntax has it: "Name:" leaves that header out. */
static bool
leave_out(errand__transfer *transfer, const char *header)
{
    return append(&transfer->headers, header);
}

static bool
has_header(const errand_http_config *config, const char *name)
{
    bool found = false;

    for (size_t i = 0; config->headers != NULL && config->headers[i] != NULL; i++)
        found = found || strncasecmp(config->headers[i], name, strlen(name)) == 0;
    return found;
}

/* What libcurl says of the body by itself is true of forms, and forms are posted. */
static bool
set_up_method(errand__transfer *transfer, const errand_http_config *config, bool body)
{
    const errand__curl *curl = errand__curl_load();

    if (config->method == NULL)
        return true;
    if (strcmp(config->method, "HEAD") == 0)
        return curl->curl_easy_setopt(transfer->easy, CURLOPT_NOBODY, 1L) == CURLE_OK;
    if (body && strcmp(config->method, "POST") != 0 &&
        !has_header(config, "Content-Type:") && !leave_out(transfer, "Content-Type:"))
        return false;
    return curl->curl_easy_setopt(transfer->easy, CURLOPT_CUSTOMREQUEST,
                                  config->method) == CURLE_OK;
}

/* "Expect" makes a server that does not know it wait for a second: only who asks for it has it. */
static bool
set_up_upload(errand__transfer *transfer, const errand_http_config *config)
{
    const errand__curl *curl = errand__curl_load();
    CURL *easy = transfer->easy;
    bool unknown = config->body_size == ERRAND_HTTP_SIZE_UNKNOWN;

    curl->curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                           unknown ? (curl_off_t)-1 : (curl_off_t)config->body_size);
    return (has_header(config, "Expect:") || leave_out(transfer, "Expect:")) &&
           (!unknown || add_header(transfer, "Transfer-Encoding: chunked"));
}

static bool
set_up_body(errand__transfer *transfer, const errand_http_config *config)
{
    const errand__curl *curl = errand__curl_load();

    curl->curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                           (curl_off_t)config->body_size);
    return curl->curl_easy_setopt(transfer->easy, CURLOPT_COPYPOSTFIELDS,
                                  config->body == NULL ? "" : config->body) == CURLE_OK;
}

bool
errand__transfer_set_up(errand__transfer *transfer, const errand_http_config *config,
                        const errand__origin *origin, bool uploads)
{
    const errand__curl *curl = errand__curl_load();
    CURL *easy = transfer->easy;
    uint64_t ms = config->connect_limit_ns / 1000000;

    if (!set_up_safety(transfer, config))
        return false;
    for (size_t i = 0; config->headers != NULL && config->headers[i] != NULL; i++)
        if (!add_header(transfer, config->headers[i]))
            return false;
    bool posts = (config->flags & ERRAND_HTTP_POST) != 0;
    if (uploads ? !set_up_upload(transfer, config)
                : posts && !set_up_body(transfer, config))
        return false;
    if (!set_up_method(transfer, config, uploads || posts))
        return false;
    if (!origin->numeric && !add_addresses(transfer, config, origin))
        return false;
    curl->curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl->curl_easy_setopt(easy, CURLOPT_RESOLVE, transfer->resolve);
    curl->curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                           ms == 0          ? connect_default_ms
                           : ms > INT32_MAX ? (long)INT32_MAX
                                            : (long)ms);
    return curl->curl_easy_setopt(easy, CURLOPT_URL, config->url) == CURLE_OK;
}
#endif
