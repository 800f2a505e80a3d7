/* SPDX-License-Identifier: MIT */
/* curl: libcurl, loaded when somebody first asks for it.
 *
 * Design notes: it brings two dozen libraries with it, which a program that makes no requests should
 * neither need nor load.  It stays loaded: its threads' data and its global state have no
 * good moment to go. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "operations/http/http.h"

#if ERRAND_HAS_CURL
static pthread_once_t once = PTHREAD_ONCE_INIT;
static errand__curl table;
static bool loaded;
/* present: the library is in this process.
 * Writers, Readers: whoever asks for it.
 * Order:   release stores, acquire loads.  Pairs: curl-present.
 * Why:     not to be there may be for now only (no descriptor is left), so that is asked again. */
static _Atomic bool present;

static void
load(void)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return;
#define ERRAND_X(name)                                                                   \
    *(void **)(&table.name) = dlsym(library, #name);                                     \
    if (table.name == NULL)                                                              \
        return;
    HTTP_CURL_TABLE(ERRAND_X)
#undef ERRAND_X
    loaded = table.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

const errand__curl *
errand__curl_load(void)
{
    if (!atomic_load_explicit(&present, memory_order_acquire)) { /* Pairs: curl-present */
        if (dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL) == NULL)
            return NULL;
        atomic_store_explicit(&present, true,
                              memory_order_release); /* Pairs: curl-present */
    }
    pthread_once(&once, load);
    return loaded ? &table : NULL;
}

static bool
fill(const errand__curl *curl, CURLU *parsed, errand__origin *out)
{
    char *scheme = NULL, *host = NULL, *port = NULL;
    struct in6_addr address;
    bool good = curl->curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                curl->curl_url_get(parsed, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                curl->curl_url_get(parsed, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ==
                    CURLUE_OK;

    if (good) {
        size_t length = strlen(host);
        const char *from = host;

        out->secure = strcmp(scheme, "https") == 0;
        good = out->secure || strcmp(scheme, "http") == 0;
        if (length > 2 && host[0] == '[') {
            from = host + 1;
            length -= 2;
        }
        good = good && length > 0 && length < sizeof out->host;
        if (good) {
            memcpy(out->host, from, length);
            out->host[length] = 0;
            out->port = (uint16_t)strtoul(port, NULL, 10);
            out->numeric = host[0] == '[' || inet_pton(AF_INET, out->host, &address) == 1;
        }
    }
    curl->curl_free(scheme);
    curl->curl_free(host);
    curl->curl_free(port);
    return good;
}

bool
errand__origin_of(const char *url, errand__origin *out_origin)
{
    const errand__curl *curl = errand__curl_load();
    CURLU *parsed = curl->curl_url();
    bool good = parsed != NULL &&
                curl->curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK &&
                fill(curl, parsed, out_origin);

    if (parsed != NULL)
        curl->curl_url_cleanup(parsed);
    return good;
}

errand_status
errand_http_origin(const char *url, char *out_host, size_t host_size, uint16_t *out_port)
{
    errand__origin origin;

    ERRAND_REQUIRE_ARG(url != NULL && out_host != NULL && out_port != NULL, ERRAND_EINVAL,
                       "url, out_host or out_port is NULL");
    if (errand__curl_load() == NULL)
        return ERRAND_EUNSUPPORTED;
    if (!errand__origin_of(url, &origin) || strlen(origin.host) >= host_size)
        return ERRAND_EINVAL;
    memcpy(out_host, origin.host, strlen(origin.host) + 1);
    *out_port = origin.port;
    return ERRAND_OK;
}
#else
errand_status
errand_http_origin(const char *url, char *out_host, size_t host_size, uint16_t *out_port)
{
    ERRAND_REQUIRE_ARG(url != NULL && out_host != NULL && out_port != NULL, ERRAND_EINVAL,
                       "url, out_host or out_port is NULL");
    (void)host_size;
    return ERRAND_EUNSUPPORTED;
}
#endif
