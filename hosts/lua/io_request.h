/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_LUA_IO_REQUEST_H
#define ERRAND_LUA_IO_REQUEST_H
/* io_request: what the files about requests to web servers share: a call's stack, which holds
 * all that its steps need. */
#include "io.h"

#define ERRAND__LUA_UPLOAD "errand.upload"

enum {
    REQUEST_URL = 1,  /* where the next one goes */
    REQUEST_BODY = 2, /* a string; a file; what gives pieces when it is called; or nil */
    REQUEST_OPTIONS = 3,
    REQUEST_KEPT = 4, /* an errand__lua_request */
    REQUEST_AUTHORITIES = 5,
    REQUEST_TEXTS = 6,
    REQUEST_HEADERS = 7,
    REQUEST_UPLOAD = 8 /* once its body is sent in pieces */
};

typedef struct errand__lua_request {
    const char *name; /* of the verb */
    uint32_t flags;
    char method[ERRAND_HTTP_METHOD_ROOM]; /* "" = as flags say */
    uint64_t until, limit_ns,
        connect_ns; /* until: on the run's clock; 0 = the library's limit */
    uint64_t body_max, redirects, redirects_max;
    char host[256];
    uint16_t port;
    bool secure;
    bool pieces;           /* the body is sent in pieces */
    bool sized;            /* and so many bytes: */
    uint64_t size, offset; /* offset: of a file, what comes next */
} errand__lua_request;

/* io_http.c: asks at the url, looking its name up first. */
int errand__lua_request_go(lua_State *L, errand__lua_task *task);
/* What the server answered, in the completion at hand: results, or where to go on. */
int errand__lua_request_answered(lua_State *L, int status, lua_KContext context);
/* Of the request at hand. */
errand_http_config errand__lua_request_config(lua_State *L, const errand__lua_run *run,
                                              const errand_addresses *addresses);

/* io_message.c: pushes the texts, "Name: value" each, and the sorted array of pointers to them, of the
 * table on top, which goes; raises. */
void errand__lua_request_headers(lua_State *L, const char *operation);
/* Takes out those that are for the origin that they were given for. */
void errand__lua_request_forget(lua_State *L);
/* Pushes the table of an answer. */
int errand__lua_request_push(lua_State *L, const errand__lua_request *self,
                             const errand_http_response *response);

/* io_upload.c: raises unless the body can be sent; says whether it comes in pieces. */
void errand__lua_upload_check(lua_State *L, errand__lua_request *request);
/* Before the request: how large is it? */
int errand__lua_upload_measure(lua_State *L, errand__lua_task *task);
/* Sends it, then goes on with errand__lua_request_answered. */
int errand__lua_upload_begin(lua_State *L, errand__lua_task *task,
                             const errand_addresses *addresses);
void errand__lua_upload_open(lua_State *L);
#endif
