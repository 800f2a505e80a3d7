/* SPDX-License-Identifier: MIT */
/* sources: of a listener's connections and a stream's pieces. */
#include "operations/net/net.h"

static int32_t take_connection(errand_job *job, void *thing, size_t chunk_max,
                               errand_payload *out_item);
static int32_t take_piece(errand_job *job, void *thing, size_t chunk_max,
                          errand_payload *out_item);
static int socket_fd(void *thing);
static void let_socket(void *thing);

static const errand__source_type accept_type = {
    .name = "accept",
    .take = take_connection,
    .fd = socket_fd,
    .let = let_socket,
    .buffers = true,
    .keeps = true,
};
static const errand__source_type receive_type = {
    .name = "receive",
    .take = take_piece,
    .fd = socket_fd,
    .let = let_socket,
};

static errand_status
create(const char *function, const errand__source_type *type, errand__socket *socket,
       const errand_source_config *config, errand_source **out_source)
{
    errand_status status = errand__source_create(
        function, type, errand__socket_hold(socket), &socket->source, config, out_source);

    if (status != ERRAND_OK)
        errand__socket_abandon(socket);
    return status;
}

errand_status
errand_source_accept(errand_listener *listener, const errand_source_config *config,
                     errand_source **out_source)
{
    ERRAND_REQUIRE_ARG(listener != NULL && out_source != NULL, ERRAND_EINVAL,
                       "listener or out_source is NULL");
    return create(__func__, &accept_type, &listener->socket, config, out_source);
}

errand_status
errand_source_receive(errand_stream *stream, const errand_source_config *config,
                      errand_source **out_source)
{
    ERRAND_REQUIRE_ARG(stream != NULL && out_source != NULL, ERRAND_EINVAL,
                       "stream or out_source is NULL");
    return create(__func__, &receive_type, &stream->socket, config, out_source);
}

static int32_t
take_connection(errand_job *job, void *thing, size_t chunk_max, errand_payload *out_item)
{
    errand__socket *made;
    int32_t code = errand__net_accept(job, thing, &made);

    (void)chunk_max;
    if (code == 0)
        errand__socket_payload(out_item, &errand_stream_type, made);
    return code;
}

static int32_t
take_piece(errand_job *job, void *thing, size_t chunk_max, errand_payload *out_item)
{
    void *block;
    size_t size;
    int32_t code = errand__net_take(job, thing, chunk_max, &block, &size);

    if (code == 0 && size == 0)
        errand__operation_block_free(block);
    else if (code == 0)
        errand__operation_payload_bytes(out_item, block, size);
    return code;
}

static int
socket_fd(void *thing)
{
    return errand__socket_fd(thing);
}

static void
let_socket(void *thing)
{
    errand__socket_abandon(thing);
}
