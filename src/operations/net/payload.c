/* SPDX-License-Identifier: MIT */
/* payload: what network operations give, in the audit digest and in logs.
 *
 * Design notes: the digest of an object says what it is, not where: ports and paths differ from run
 * to run.  A log has its addresses, and what a replay makes of it is an object without a
 * descriptor: nothing that uses it is run there. */
#include <string.h>
#include "operations/codec.h"
#include "operations/net/net.h"

static void drop_socket(void *data, size_t size);
static void drop_block(void *data, size_t size);

const errand_payload_type errand_stream_type = {"stream", drop_socket};
const errand_payload_type errand_listener_type = {"listener", drop_socket};
const errand_payload_type errand_datagram_type = {"datagram", drop_socket};
const errand_payload_type errand_parts_type = {"parts", drop_block};
const errand_payload_type errand_packet_type = {"packet", drop_block};

static void
drop_socket(void *data, size_t size)
{
    (void)size;
    errand__socket_abandon(data);
}

static void
drop_block(void *data, size_t size)
{
    (void)size;
    errand__operation_block_free(data);
}

/* ---- digests -------------------------------------------------------------------------------- */

static uint64_t
object_digest(const char *kind)
{
    errand__digest mix;

    errand__digest_begin(&mix);
    errand__digest_bytes(&mix, kind, strlen(kind));
    return errand__digest_end(&mix);
}

uint64_t
errand_stream_digest(const void *data, size_t size)
{
    (void)data;
    (void)size;
    return object_digest("stream");
}

uint64_t
errand_listener_digest(const void *data, size_t size)
{
    (void)data;
    (void)size;
    return object_digest("listener");
}

uint64_t
errand_datagram_digest(const void *data, size_t size)
{
    (void)data;
    (void)size;
    return object_digest("datagram");
}

uint64_t
errand_parts_digest(const void *data, size_t size)
{
    const errand_parts *parts = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, parts->count);
    for (size_t i = 0; i < parts->count; i++)
        errand__digest_bytes(&mix, parts->parts[i].bytes, parts->parts[i].size);
    return errand__digest_end(&mix);
}

uint64_t
errand_packet_digest(const void *data, size_t size)
{
    const errand_packet *packet = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_bytes(&mix, packet->bytes.bytes, packet->bytes.size);
    errand__digest_number(&mix, packet->cut);
    return errand__digest_end(&mix);
}

/* ---- codecs ------------------------------------------------------------------------------------ */

static void
put_endpoint(errand_sink *sink, const errand_endpoint *endpoint)
{
    errand_sink_word(sink, endpoint->family);
    errand_sink_word(sink, endpoint->scope);
    errand_sink_word(sink, endpoint->port);
    errand_sink_put(sink, endpoint->bytes, sizeof endpoint->bytes);
    errand__codec_put_bytes(sink, endpoint->path, endpoint->path_size);
}

static errand_endpoint
read_endpoint(errand__codec_reader *in)
{
    errand_endpoint endpoint = {.family = 0};
    const unsigned char *bytes;

    endpoint.family = (uint32_t)errand__codec_read_below(in, 6);
    endpoint.scope = (uint32_t)errand__codec_read_below(in, UINT32_MAX);
    endpoint.port = (uint16_t)errand__codec_read_below(in, UINT16_MAX);
    bytes = errand__codec_read_bytes(in, sizeof endpoint.bytes);
    if (bytes != NULL)
        memcpy(endpoint.bytes, bytes, sizeof endpoint.bytes);
    endpoint.path_size = (uint16_t)errand__codec_read_below(in, sizeof endpoint.path);
    bytes = errand__codec_read_bytes(in, endpoint.path_size);
    if (bytes != NULL)
        memcpy(endpoint.path, bytes, endpoint.path_size);
    return endpoint;
}

static bool
encode_socket(const void *data, size_t size, errand_sink *sink)
{
    /* Asking it for its address changes nothing of it. */
    errand__socket *socket = (errand__socket *)(uintptr_t)data;
    errand_endpoint peer = errand__socket_peer(socket);
    errand_endpoint local = errand__socket_local(socket);

    (void)size;
    put_endpoint(sink, &peer);
    put_endpoint(sink, &local);
    return true;
}

static errand_status
decode_socket(const void *bytes, size_t size, const errand_payload_type *type,
              errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    errand_endpoint peer = read_endpoint(&in), local = read_endpoint(&in);
    errand__name peer_name, local_name;

    if (!in.good || in.left != 0)
        return ERRAND_EDECODE;
    socklen_t peer_size = errand__name_fill(&peer_name, &peer);
    socklen_t local_size = errand__name_fill(&local_name, &local);
    errand__socket *made =
        errand__socket_create(-1, &peer_name, peer_size, &local_name, local_size);
    if (made == NULL)
        return ERRAND_ENOMEM;
    made->detached = true;
    errand__socket_payload(out_payload, type, made);
    return ERRAND_OK;
}

static errand_status
decode_stream(const void *bytes, size_t size, errand_payload *out_payload)
{
    return decode_socket(bytes, size, &errand_stream_type, out_payload);
}

static errand_status
decode_listener(const void *bytes, size_t size, errand_payload *out_payload)
{
    return decode_socket(bytes, size, &errand_listener_type, out_payload);
}

static errand_status
decode_datagram(const void *bytes, size_t size, errand_payload *out_payload)
{
    return decode_socket(bytes, size, &errand_datagram_type, out_payload);
}

static bool
encode_parts(const void *data, size_t size, errand_sink *sink)
{
    const errand_parts *parts = data;

    (void)size;
    errand_sink_word(sink, parts->count);
    for (size_t i = 0; i < parts->count; i++)
        errand__codec_put_bytes(sink, parts->parts[i].bytes, parts->parts[i].size);
    return true;
}

static errand_status
decode_parts(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    size_t count = (size_t)errand__codec_read_below(&in, size / 8);
    /* Each part's length takes 8 bytes of size, so the zeros fit. */
    errand_parts *parts = errand__operation_block_alloc(
        sizeof *parts + count * sizeof(errand_file_bytes) + size);

    if (parts == NULL)
        return ERRAND_ENOMEM;
    errand_file_bytes *part = (errand_file_bytes *)(void *)(parts + 1);
    errand__operation_cursor cursor = {(char *)(part + count)};
    for (size_t i = 0; i < count && in.good; i++) {
        size_t length = (size_t)errand__codec_read_below(&in, size);
        const unsigned char *from = errand__codec_read_bytes(&in, length);

        if (!in.good)
            break;
        part[i].size = length;
        part[i].bytes = (unsigned char *)errand__operation_copy(&cursor, from, length);
        errand__operation_copy(&cursor, "", 1);
    }
    if (!in.good || in.left != 0) {
        errand__operation_block_free(parts);
        return ERRAND_EDECODE;
    }
    parts->parts = part;
    parts->count = count;
    errand__operation_payload(out_payload, &errand_parts_type, parts,
                              (size_t)(cursor.at - (char *)parts));
    return ERRAND_OK;
}

static bool
encode_packet(const void *data, size_t size, errand_sink *sink)
{
    const errand_packet *packet = data;

    (void)size;
    put_endpoint(sink, &packet->from);
    errand_sink_word(sink, packet->cut);
    errand_sink_put(sink, packet->bytes.bytes, packet->bytes.size);
    return true;
}

static errand_status
decode_packet(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    errand_endpoint from = read_endpoint(&in);
    bool cut = errand__codec_read_below(&in, 1) != 0;

    if (!in.good)
        return ERRAND_EDECODE;
    errand_packet *packet = errand__operation_block_alloc(sizeof *packet + in.left + 1);
    if (packet == NULL)
        return ERRAND_ENOMEM;
    packet->from = from;
    packet->cut = cut;
    if (in.left > 0)
        memcpy(packet + 1, in.at, in.left);
    packet->bytes = (errand_file_bytes){.bytes = (unsigned char *)(packet + 1), in.left};
    errand__operation_payload(out_payload, &errand_packet_type, packet,
                              sizeof *packet + in.left);
    return ERRAND_OK;
}

static const errand_payload_codec stream_codec = {sizeof stream_codec, encode_socket,
                                                  decode_stream};
static const errand_payload_codec listener_codec = {sizeof listener_codec, encode_socket,
                                                    decode_listener};
static const errand_payload_codec datagram_codec = {sizeof datagram_codec, encode_socket,
                                                    decode_datagram};
static const errand_payload_codec parts_codec = {sizeof parts_codec, encode_parts,
                                                 decode_parts};
static const errand_payload_codec packet_codec = {sizeof packet_codec, encode_packet,
                                                  decode_packet};

const errand__codec_row errand__net_rows[] = {
    {&errand_stream_type, errand_stream_digest, &stream_codec},
    {&errand_listener_type, errand_listener_digest, &listener_codec},
    {&errand_datagram_type, errand_datagram_digest, &datagram_codec},
    {&errand_parts_type, errand_parts_digest, &parts_codec},
    {&errand_packet_type, errand_packet_digest, &packet_codec},
    {NULL, NULL, NULL},
};
