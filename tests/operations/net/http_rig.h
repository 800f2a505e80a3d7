/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_TESTS_OPERATIONS_NET_HTTP_RIG_H
#define ERRAND_TESTS_OPERATIONS_NET_HTTP_RIG_H
/* http_rig: a net_rig with a web server of its own for each test. */
#include "errand/http.h"
#include "net_rig.h"

enum {
    HTTP_LARGE = 3000000, /* bytes of "/large" */
    HTTP_UNCLEAR =
        13 /* answers of "/unclear/0" and so on: where they end hangs on who reads */
};

/* A net_rig and a socket that listens on the loopback, whose connections the test answers itself;
 * skips where libcurl is missing.  The socket is the test's to close. */
int http_listen_setup(void **state, int *out_fd, uint16_t *out_port);
int http_setup(void **state);
int http_teardown(void **state);
uint16_t http_port(void);
/* An url of the server's, until the next call; a config for it. */
const char *http_url_of(const char *path);
errand_http_config http_config_of(const char *path);
/* Its answer, until the result is cleared; NULL: the result says why. */
const errand_http_response *http_request(net_rig *rig, const errand_http_config *config,
                                         net_result *result);
/* NULL: there is no such header. */
const char *http_header_of(const errand_http_response *response, const char *name);

#endif
