/* SPDX-License-Identifier: MIT */
/* response: what a server answered, as a payload, a source, a digest and bytes of a log. */
#include <poll.h>
#include <string.h>
#include <strings.h>
#include "operations/codec.h"
#include "operations/http/http.h"

static void drop_response(void *data, size_t size);

const errand_payload_type errand_http_response_type = {"http response", drop_response};

static void
drop_response(void *data, size_t size)
{
    errand_http_response *response = data;

    (void)size;
    errand_source_abandon(&response->pieces);
    errand__operation_block_free(response);
}

#if ERRAND_HAS_CURL
static int32_t take_piece(errand_job *job, void *thing, size_t chunk_max,
                          errand_payload *out_item);
static int piece_fd(void *thing);
static uint32_t piece_events(void *thing);
static void let_transfer(void *thing);

static const errand__source_type pieces_type = {
    .name = "http body",
    .take = take_piece,
    .fd = piece_fd,
    .events = piece_events,
    .let = let_transfer,
};

/* Lines "Name: value\r\n" become texts with zeros behind them. */
static size_t
split(char *text, size_t size, errand_http_header *headers)
{
    size_t count = 0;

    for (char *line = text, *end = text + size; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        char *next = stop == NULL ? end : stop + 1;
        char *colon = memchr(line, ':', (size_t)(next - line));

        if (colon != NULL) {
            char *value = colon + 1, *last = next;

            while (value < last && (*value == ' ' || *value == '\t'))
                value++;
            while (last > value && (last[-1] == '\n' || last[-1] == '\r' ||
                                    last[-1] == ' ' || last[-1] == '\t'))
                last--;
            if (headers != NULL) {
                *colon = 0;
                *last = 0;
                headers[count] = (errand_http_header){line, value};
            }
            count++;
        }
        line = next;
    }
    return count;
}

int32_t
errand__http_give(errand_job *job, errand__transfer **take_transfer, const char *location,
                  errand_payload *out_payload)
{
    errand__transfer *transfer = *take_transfer;
    const char *url = errand__transfer_url(transfer);
    size_t url_size = strlen(url) + 1;
    size_t location_size = location == NULL ? 0 : strlen(location) + 1;
    size_t head = transfer->head.used, body = transfer->streams ? 0 : transfer->body.used;
    size_t count = head == 0 ? 0 : split(transfer->head.bytes, head, NULL);
    size_t size = sizeof(errand_http_response) + count * sizeof(errand_http_header) +
                  url_size + location_size + head + 1 + body + 1;
    errand_http_response *response = errand__operation_block_alloc(size);

    if (response == NULL)
        return errand__operation_no_memory(job, size);
    errand_http_header *headers = (errand_http_header *)(void *)(response + 1);
    errand__operation_cursor cursor = {(char *)(headers + count)};
    response->status = errand__transfer_status(transfer);
    response->url = errand__operation_copy(&cursor, url, url_size);
    if (location != NULL)
        response->location = errand__operation_copy(&cursor, location, location_size);
    char *text = errand__operation_copy(&cursor, transfer->head.bytes, head);
    errand__operation_copy(&cursor, "", 1);
    response->headers = headers;
    response->header_count = split(text, head, headers);
    response->body.bytes =
        (unsigned char *)errand__operation_copy(&cursor, transfer->body.bytes, body);
    response->body.size = body;
    if (transfer->streams) {
        const errand_status status = errand__source_create(
            "errand_spec_http", &pieces_type, transfer, NULL, NULL, &response->pieces);

        if (status != ERRAND_OK) {
            errand__operation_block_free(response);
            return errand__operation_no_memory(job, size);
        }
        *take_transfer = NULL;
    }
    errand__operation_payload(out_payload, &errand_http_response_type, response, size);
    return 0;
}

/* ---- a streamed body --------------------------------------------------------------------------- */

static int32_t
give_piece(errand_job *job, errand__transfer *transfer, size_t max,
           errand_payload *out_item)
{
    errand__growing *body = &transfer->body;
    size_t size = body->used < max ? body->used : max;
    char *block = errand__operation_bytes_alloc(size);

    if (block == NULL)
        return errand__operation_no_memory(job, size);
    memcpy(block + sizeof(errand_file_bytes), body->bytes, size);
    memmove(body->bytes, body->bytes + size, body->used - size);
    body->used -= size;
    errand__operation_payload_bytes(out_item, block, size);
    return 0;
}

static int32_t
take_piece(errand_job *job, void *thing, size_t chunk_max, errand_payload *out_item)
{
    errand__transfer *transfer = thing;

    if (transfer->body.used == 0 && !transfer->over) {
        if (transfer->paused) {
            transfer->paused = false;
            errand__curl_load()->curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
        }
        if (piece_fd(transfer) >= 0)
            errand__transfer_act(transfer, piece_fd(transfer), POLLIN);
        errand__transfer_timers(transfer);
    }
    if (transfer->body.used > 0)
        return give_piece(job, transfer, chunk_max, out_item);
    return transfer->over ? errand__transfer_result(job, transfer) : ERRAND_PENDING;
}

static int
piece_fd(void *thing)
{
    const errand__transfer *transfer = thing;

    for (size_t i = 0; i < HTTP_SOCKETS; i++)
        if (transfer->wants[i].fd >= 0)
            return transfer->wants[i].fd;
    return -1;
}

/* It wants to go on at once: nearly every socket can be written to. */
static uint32_t
piece_events(void *thing)
{
    const errand__transfer *transfer = thing;

    return transfer->timer_at <= errand__clock_now() ? POLLIN | POLLOUT : POLLIN;
}

static void
let_transfer(void *thing)
{
    errand__transfer_destroy(thing);
}
#endif

/* ---- digest and codec --------------------------------------------------------------------------- */

uint64_t
errand_http_response_digest(const void *data, size_t size)
{
    const errand_http_response *response = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, response->status);
    for (size_t i = 0; i < response->header_count; i++) {
        const errand_http_header *header = &response->headers[i];

        if (strcasecmp(header->name, "date") == 0)
            continue;
        errand__digest_bytes(&mix, header->name, strlen(header->name));
        errand__digest_bytes(&mix, header->value, strlen(header->value));
    }
    errand__digest_bytes(&mix, response->body.bytes, response->body.size);
    return errand__digest_end(&mix);
}

static bool
encode_response(const void *data, size_t size, errand_sink *sink)
{
    const errand_http_response *response = data;
    const char *location = response->location == NULL ? "" : response->location;

    (void)size;
    if (response->pieces != NULL)
        return false;
    errand_sink_word(sink, response->status);
    errand_sink_word(sink, response->header_count);
    errand__codec_put_bytes(sink, response->url, strlen(response->url) + 1);
    errand__codec_put_bytes(sink, location, strlen(location) + 1);
    for (size_t i = 0; i < response->header_count; i++) {
        const errand_http_header *header = &response->headers[i];

        errand__codec_put_bytes(sink, header->name, strlen(header->name) + 1);
        errand__codec_put_bytes(sink, header->value, strlen(header->value) + 1);
    }
    errand__codec_put_bytes(sink, response->body.bytes, response->body.size);
    return true;
}

/* A text with its 0, or bad. */
static const char *
read_text(errand__codec_reader *in, errand__operation_cursor *cursor)
{
    size_t size = (size_t)errand__codec_read_below(in, in->left);
    const unsigned char *bytes = errand__codec_read_bytes(in, size);

    in->good = in->good && size > 0 && memchr(bytes, 0, size) == bytes + size - 1;
    return in->good ? errand__operation_copy(cursor, bytes, size) : "";
}

static errand_status
decode_response(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    uint32_t status = (uint32_t)errand__codec_read_below(&in, 999);
    size_t count = (size_t)errand__codec_read_below(&in, size / 16);
    errand_http_response *response = errand__operation_block_alloc(
        sizeof *response + count * sizeof(errand_http_header) + size + 1);

    if (response == NULL)
        return ERRAND_ENOMEM;
    errand_http_header *headers = (errand_http_header *)(void *)(response + 1);
    errand__operation_cursor cursor = {(char *)(headers + count)};
    response->status = status;
    response->url = read_text(&in, &cursor);
    response->location = read_text(&in, &cursor);
    if (response->location[0] == 0)
        response->location = NULL;
    for (size_t i = 0; i < count && in.good; i++) {
        headers[i].name = read_text(&in, &cursor);
        headers[i].value = read_text(&in, &cursor);
    }
    size_t body = (size_t)errand__codec_read_below(&in, in.left);
    const unsigned char *from = errand__codec_read_bytes(&in, body);
    if (!in.good || in.left != 0) {
        errand__operation_block_free(response);
        return ERRAND_EDECODE;
    }
    response->headers = headers;
    response->header_count = count;
    response->body.bytes = (unsigned char *)errand__operation_copy(&cursor, from, body);
    response->body.size = body;
    errand__operation_payload(out_payload, &errand_http_response_type, response,
                              (size_t)(cursor.at - (char *)response));
    return ERRAND_OK;
}

static const errand_payload_codec response_codec = {sizeof response_codec,
                                                    encode_response, decode_response};
const errand__codec_row errand__http_rows[] = {
    {&errand_http_response_type, errand_http_response_digest, &response_codec},
    {&errand_http_upload_type, errand_http_upload_digest, &errand__http_upload_codec},
    {NULL, NULL, NULL},
};
