/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_OPERATIONS_HTTP_HTTP_H
#define ERRAND_OPERATIONS_HTTP_HTTP_H
/* http, inside.  Only files of this folder know libcurl.  See README.md. */
#include "errand/http.h"
#include "errand/record.h"
#include "operations/operations.h"

/* ---- uploads: their life (upload_object.c) ------------------------------------------------- */
struct errand_http_upload {
    /* refs: the host's references and those of operations.
     * Writers: whoever holds or abandons.   Readers: the same.
     * Order:   fetch_sub acq_rel.
     * Pairs:   upload-refs.
     * Why:     the last one gives up what the others used. */
    atomic_uint refs;
#if ERRAND_HAS_CURL
    struct errand__transfer
        *transfer; /* NULL: of a replay, or it was finished as a stream */
#endif
    errand__seat seat; /* who has the turn has the transfer */
    size_t lacks;      /* as left, but of what had its turn; of who has it */
    /* The owner's. */
    uint64_t limit_ns;
    size_t left; /* SIZE_UNKNOWN, or what has to come */
};
errand_http_upload *errand__http_upload_create(size_t size); /* NULL = no memory */
extern const errand_payload_codec errand__http_upload_codec;

#if ERRAND_HAS_CURL
#define CURL_DISABLE_TYPECHECK   1
#define CURL_DISABLE_DEPRECATION 1
#include <curl/curl.h>

/* ---- the library, loaded at first use (curl.c) ------------------------------------------- */
#define HTTP_CURL_TABLE(X)                                                               \
    X(curl_global_init)                                                                  \
    X(curl_easy_init)                                                                    \
    X(curl_easy_cleanup)                                                                 \
    X(curl_easy_setopt)                                                                  \
    X(curl_easy_getinfo)                                                                 \
    X(curl_easy_pause)                                                                   \
    X(curl_easy_strerror)                                                                \
    X(curl_multi_init)                                                                   \
    X(curl_multi_cleanup)                                                                \
    X(curl_multi_setopt)                                                                 \
    X(curl_multi_add_handle)                                                             \
    X(curl_multi_remove_handle)                                                          \
    X(curl_multi_socket_action)                                                          \
    X(curl_multi_socket_all)                                                             \
    X(curl_multi_info_read)                                                              \
    X(curl_slist_append)                                                                 \
    X(curl_slist_free_all)                                                               \
    X(curl_url)                                                                          \
    X(curl_url_cleanup)                                                                  \
    X(curl_url_get)                                                                      \
    X(curl_url_set)                                                                      \
    X(curl_free)
typedef struct errand__curl {
#define ERRAND_X(name) __typeof__(name) *name;
    HTTP_CURL_TABLE(ERRAND_X)
#undef ERRAND_X
} errand__curl;
const errand__curl *errand__curl_load(void); /* NULL = it is not there */
/* The parts of an url that matter here; false: it is none, or not http. */
typedef struct errand__origin {
    char host[256]; /* without brackets */
    uint16_t port;
    bool secure, numeric;
} errand__origin;
bool errand__origin_of(const char *url, errand__origin *out_origin);

/* ---- a transfer: one url, until its answer is there (transfer.c) ----------------------------- */
enum { HTTP_SOCKETS = 4 };
typedef struct errand__growing { /* a block */
    char *bytes;
    size_t used, room, max;
} errand__growing;
typedef enum errand__transfer_trouble {
    TRANSFER_WELL,
    TRANSFER_NO_MEMORY,
    TRANSFER_TOO_LARGE,
    TRANSFER_LENGTH
} errand__transfer_trouble;
typedef struct errand__framing { /* what a head has told so far of where its body ends */
    bool known, last;            /* known: length; last: by its last line */
    uint64_t length;
} errand__framing;
typedef struct errand__transfer {
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers, *resolve;
    struct {
        int fd; /* -1 = none */
        uint32_t events;
    } wants[HTTP_SOCKETS];
    int sockets[HTTP_SOCKETS]; /* that it has open; -1 = none */
    pid_t owner;               /* whose connection it is */
    uint64_t timer_at;         /* UINT64_MAX = none */
    errand__growing head, body;
    errand__framing framing;
    errand__transfer_trouble trouble;
    const errand__growing *trouble_in;
    bool streams, paused, head_open, head_done, over;
    bool forgotten; /* it waits for nothing and says no time: all is looked at then */
    bool
        apart; /* its connection is not secure yet, but will be: no loop does what is next */
    CURLcode result;
    errand__operation_shown
        shown; /* its url; may be looked at while somebody drives it */
    /* Of an upload: what libcurl may take now; there is no more; it has asked for more. */
    const char *piece;
    size_t piece_left;
    bool piece_last, starved;
} errand__transfer;
/* Everything of config is copied.  uploads: its body comes later.  NULL = no memory. */
errand__transfer *errand__transfer_create(const errand_http_config *config,
                                          const errand__origin *origin, bool uploads);
/* Its settings; false = no memory (setup.c). */
bool errand__transfer_set_up(errand__transfer *transfer, const errand_http_config *config,
                             const errand__origin *origin, bool uploads);
void errand__transfer_destroy(errand__transfer *transfer); /* NULL-safe */
/* Another url with the same settings; repeats false = GET, without a body, from now on. */
bool errand__transfer_again(errand__transfer *transfer, const char *url, bool secure,
                            bool repeats);
/* More of it; false: the trouble is noted. */
bool errand__transfer_grow(errand__transfer *transfer, errand__growing *into,
                           const char *bytes, size_t size);
/* sockets.c.  watch: from here on it is known which it has, and what for.  close: what libcurl has left. */
void errand__transfer_watch_sockets(errand__transfer *transfer);
void errand__transfer_close_sockets(errand__transfer *transfer);
/* A line of the head, or behind the body (head.c). */
size_t errand__transfer_on_head(char *bytes, size_t size, size_t count, void *arg);
/* There is something at a socket (events of poll), or its time has come (fd -1). */
void errand__transfer_act(errand__transfer *transfer, int fd, uint32_t events);
/* Does what is due, but not for ever. */
void errand__transfer_timers(errand__transfer *transfer);
/* libcurl gets what piece says: after it has asked for more, or before. */
void errand__transfer_feed(errand__transfer *transfer);
/* 0, or fails the job. */
int32_t errand__transfer_result(errand_job *job, const errand__transfer *transfer);
uint32_t errand__transfer_status(const errand__transfer *transfer);
/* Where it was sent to; NULL = nowhere. */
const char *errand__transfer_location(const errand__transfer *transfer);
const char *errand__transfer_url(const errand__transfer *transfer);

/* ---- a body that waits for what a transfer waits for (drive.c) ------------------------------------- */
typedef struct errand__http_drive {
    uint64_t limit_ns, until;
    errand_io polls[HTTP_SOCKETS], timer, call;
    struct {
        int fd;
        uint32_t events;        /* 0 = none */
    } news[HTTP_SOCKETS];       /* of what was polled; the call's while it is out */
    errand__transfer *transfer; /* the call's */
    bool begun, polling[HTTP_SOCKETS], timing;
    bool calling; /* a helper has the transfer */
    bool waiting; /* libcurl works when what was polled is back */
} errand__http_drive;
/* At the begin of each poll: 0; PENDING: nobody may look at the transfer now; or it is to end:
 * cancelled, or beyond its limit, which is looked at where the transfer still has something to do. */
int32_t errand__http_drive_turn(errand_job *job, errand__http_drive *drive,
                                errand__transfer *transfer);
/* Passes on what came, and what is due.  Answers as turn. */
int32_t errand__http_drive_hear(errand_job *job, errand__http_drive *drive,
                                errand__transfer *transfer);
/* PENDING, or fails the job: no reactor, or it took too long. */
int32_t errand__http_drive_wait(errand_job *job, errand__http_drive *drive,
                                errand__transfer *transfer);
static inline uint64_t
errand__http_limit(const errand_http_config *config)
{
    return config->limit_ns == 0 ? UINT64_C(60000000000) : config->limit_ns;
}
/* What a config must be; OK, or the answer of the function. */
errand_status errand__http_check(const errand_http_config *config,
                                 errand__origin *out_origin, const char *function);

/* ---- its answer (response.c) -------------------------------------------------------------------- */
/* take_transfer: becomes the source's, if it streams. */
int32_t errand__http_give(errand_job *job, errand__transfer **take_transfer,
                          const char *location, errand_payload *out_payload);
#endif
#endif
