/* SPDX-License-Identifier: MIT */
/* codec: what operations give back, as bytes of a log and made of them again.
 *
 * Design notes: integers are eight bytes, the low one first; texts and bytes stand behind their
 * length.  A log's bytes are anybody's: each length is compared with what is left before it is
 * used, counts with what their entries take at least, and what is left over at the end is an error
 * too.  So what decode makes is as whole as what a body makes.  Unlike the digests these bytes hold
 * all that a program can see, also a file's time. */
#include <string.h>
#include "operations/codec.h"

uint64_t
errand__codec_read_word(errand__codec_reader *in)
{
    uint64_t word = 0;

    if (!in->good || in->left < 8) {
        in->good = false;
        return 0;
    }
    for (int i = 0; i < 8; i++)
        word |= (uint64_t)in->at[i] << (8 * i);
    in->at += 8;
    in->left -= 8;
    return word;
}

/* A word of at most max. */
uint64_t
errand__codec_read_below(errand__codec_reader *in, uint64_t max)
{
    uint64_t word = errand__codec_read_word(in);

    in->good = in->good && word <= max;
    return in->good ? word : 0;
}

/* NULL = so many are not there. */
const unsigned char *
errand__codec_read_bytes(errand__codec_reader *in, size_t size)
{
    const unsigned char *bytes = in->at;

    if (!in->good || in->left < size) {
        in->good = false;
        return NULL;
    }
    in->at += size;
    in->left -= size;
    return bytes;
}

void
errand__codec_put_bytes(errand_sink *sink, const void *bytes, size_t size)
{
    errand_sink_word(sink, size);
    errand_sink_put(sink, bytes, size);
}

/* ---- file bytes -------------------------------------------------------------------------- */

static bool
encode_bytes(const void *data, size_t size, errand_sink *sink)
{
    const errand_file_bytes *file = data;

    (void)size;
    errand_sink_put(sink, file->bytes, file->size);
    return true;
}

static errand_status
decode_bytes(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand_file_bytes *file = errand__operation_bytes_alloc(size);

    if (file == NULL)
        return ERRAND_ENOMEM;
    if (size > 0)
        memcpy(file + 1, bytes, size);
    errand__operation_payload_bytes(out_payload, file, size);
    return ERRAND_OK;
}

/* ---- those without a length of their own -------------------------------------------------- */

static bool
encode_written(const void *data, size_t size, errand_sink *sink)
{
    (void)size;
    errand_sink_word(sink, ((const errand_file_written *)data)->written);
    return true;
}

static errand_status
decode_written(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    errand_file_written *file = errand__operation_block_alloc(sizeof *file);

    if (file == NULL)
        return ERRAND_ENOMEM;
    file->written = errand__codec_read_word(&in);
    errand__operation_payload(out_payload, &errand_file_written_type, file, sizeof *file);
    return in.good && in.left == 0 ? ERRAND_OK : ERRAND_EDECODE;
}

static bool
encode_stat(const void *data, size_t size, errand_sink *sink)
{
    const errand_file_stat *file = data;

    (void)size;
    errand_sink_word(sink, file->kind);
    errand_sink_word(sink, file->mode);
    errand_sink_word(sink, file->size);
    errand_sink_word(sink, (uint64_t)file->mtime_ns);
    return true;
}

static errand_status
decode_stat(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    errand_file_stat *file = errand__operation_block_alloc(sizeof *file);

    if (file == NULL)
        return ERRAND_ENOMEM;
    file->kind = (errand_file_kind)errand__codec_read_below(&in, ERRAND_FILE_OTHER);
    file->mode = (uint32_t)errand__codec_read_below(&in, 07777);
    file->size = errand__codec_read_word(&in);
    file->mtime_ns = (int64_t)errand__codec_read_word(&in);
    errand__operation_payload(out_payload, &errand_file_stat_type, file, sizeof *file);
    return in.good && in.left == 0 ? ERRAND_OK : ERRAND_EDECODE;
}

static bool
encode_hash(const void *data, size_t size, errand_sink *sink)
{
    const errand_hash *hash = data;

    (void)size;
    errand_sink_word(sink, hash->value);
    errand_sink_word(sink, hash->size);
    return true;
}

static errand_status
decode_hash(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    errand_hash *hash = errand__operation_block_alloc(sizeof *hash);

    if (hash == NULL)
        return ERRAND_ENOMEM;
    hash->value = errand__codec_read_word(&in);
    hash->size = errand__codec_read_word(&in);
    errand__operation_payload(out_payload, &errand_hash_type, hash, sizeof *hash);
    return in.good && in.left == 0 ? ERRAND_OK : ERRAND_EDECODE;
}

/* ---- directories --------------------------------------------------------------------------- */

static bool
encode_list(const void *data, size_t size, errand_sink *sink)
{
    const errand_dir_list *list = data;

    (void)size;
    errand_sink_word(sink, list->count);
    for (size_t i = 0; i < list->count; i++) {
        errand_sink_word(sink, list->entries[i].kind);
        errand__codec_put_bytes(sink, list->entries[i].name,
                                strlen(list->entries[i].name));
    }
    return true;
}

static errand_status
decode_list(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    size_t count = (size_t)errand__codec_read_below(&in, size / 16);
    /* Each entry's kind and length take 16 bytes, so the names and their zeros fit into size. */
    size_t room = sizeof(errand_dir_list) + count * sizeof(errand_dir_entry) + size;
    errand_dir_list *list = errand__operation_block_alloc(room);
    errand_dir_entry *entries;
    errand__operation_cursor text;

    if (list == NULL)
        return ERRAND_ENOMEM;
    entries = (errand_dir_entry *)(void *)(list + 1);
    text.at = (char *)(entries + count);
    for (size_t i = 0; i < count && in.good; i++) {
        entries[i].kind =
            (errand_file_kind)errand__codec_read_below(&in, ERRAND_FILE_OTHER);
        size_t length = (size_t)errand__codec_read_below(&in, size);
        const unsigned char *name = errand__codec_read_bytes(&in, length);
        in.good = in.good && memchr(name, 0, length) == NULL;
        if (!in.good)
            break;
        entries[i].name = errand__operation_copy(&text, name, length);
        errand__operation_copy(&text, "", 1);
    }
    list->entries = entries;
    list->count = count;
    errand__operation_payload(out_payload, &errand_dir_list_type, list,
                              (size_t)(text.at - (char *)list) +
                                  count); /* the body's too:
                                                                   * each name's kind */
    return in.good && in.left == 0 ? ERRAND_OK : ERRAND_EDECODE;
}

/* ---- addresses ------------------------------------------------------------------------------ */

enum { ADDRESS_BYTES = 3 * 8 + 16 + 46 };

static bool
encode_addresses(const void *data, size_t size, errand_sink *sink)
{
    const errand_addresses *list = data;

    (void)size;
    errand_sink_word(sink, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const errand_address *address = &list->addresses[i];
        char text[sizeof address->text] = "";

        memcpy(text, address->text, strlen(address->text));
        errand_sink_word(sink, address->family);
        errand_sink_word(sink, address->scope);
        errand_sink_word(sink, address->port);
        errand_sink_put(sink, address->bytes, sizeof address->bytes);
        errand_sink_put(sink, text, sizeof text);
    }
    return true;
}

static errand_status
decode_addresses(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    size_t count = (size_t)errand__codec_read_below(&in, size / ADDRESS_BYTES);
    size_t room = sizeof(errand_addresses) + count * sizeof(errand_address);
    errand_addresses *list = errand__operation_block_alloc(room);
    errand_address *addresses;

    if (list == NULL)
        return ERRAND_ENOMEM;
    addresses = (errand_address *)(void *)(list + 1);
    for (size_t i = 0; i < count && in.good; i++) {
        errand_address *address = &addresses[i];
        const unsigned char *number, *text;

        address->family = (uint32_t)errand__codec_read_below(&in, 6);
        address->scope = (uint32_t)errand__codec_read_below(&in, UINT32_MAX);
        address->port = (uint16_t)errand__codec_read_below(&in, UINT16_MAX);
        number = errand__codec_read_bytes(&in, sizeof address->bytes);
        text = errand__codec_read_bytes(&in, sizeof address->text);
        in.good = in.good && text[sizeof address->text - 1] == 0;
        if (!in.good)
            break;
        memcpy(address->bytes, number, sizeof address->bytes);
        memcpy(address->text, text, sizeof address->text);
    }
    list->addresses = addresses;
    list->count = count;
    errand__operation_payload(out_payload, &errand_addresses_type, list, room);
    return in.good && in.left == 0 ? ERRAND_OK : ERRAND_EDECODE;
}

/* ---- commands -------------------------------------------------------------------------------- */

static bool
encode_command(const void *data, size_t size, errand_sink *sink)
{
    const errand_command_result *result = data;

    (void)size;
    errand_sink_word(sink, (uint64_t)(int64_t)result->exit_status);
    errand_sink_word(sink, (uint64_t)(int64_t)result->signal_number);
    errand__codec_put_bytes(sink, result->out, result->out_size);
    errand__codec_put_bytes(sink, result->err, result->err_size);
    return true;
}

static errand_status
decode_command(const void *bytes, size_t size, errand_payload *out_payload)
{
    errand__codec_reader in = {bytes, size, true};
    errand_command_result *result =
        errand__operation_block_alloc(sizeof *result + size + 2);
    errand__operation_cursor text;
    const unsigned char *out, *err;

    if (result == NULL)
        return ERRAND_ENOMEM;
    text.at = (char *)(result + 1);
    result->exit_status = (int32_t)(int64_t)errand__codec_read_word(&in);
    result->signal_number = (int32_t)(int64_t)errand__codec_read_word(&in);
    result->out_size = (size_t)errand__codec_read_below(&in, size);
    out = errand__codec_read_bytes(&in, result->out_size);
    result->err_size = (size_t)errand__codec_read_below(&in, size);
    err = errand__codec_read_bytes(&in, result->err_size);
    in.good = in.good && in.left == 0;
    if (in.good) {
        result->out =
            (unsigned char *)errand__operation_copy(&text, out, result->out_size);
        errand__operation_copy(&text, "", 1);
        result->err =
            (unsigned char *)errand__operation_copy(&text, err, result->err_size);
        errand__operation_copy(&text, "", 1);
    }
    errand__operation_payload(out_payload, &errand_command_result_type, result,
                              (size_t)(text.at - (char *)result));
    return in.good ? ERRAND_OK : ERRAND_EDECODE;
}

/* ---- all of them ------------------------------------------------------------------------------- */

/* decode_... leave what they made in out_payload, also with EDECODE: taken back here. */
static errand_status
decoded(errand_status status, errand_payload *made, errand_payload *out_payload)
{
    if (status == ERRAND_OK)
        *out_payload = *made;
    else if (made->data != NULL)
        errand__operation_block_free(made->data);
    return status;
}

#define CODEC(what)                                                                      \
    static errand_status checked_##what(const void *bytes, size_t size,                  \
                                        errand_payload *out_payload)                     \
    {                                                                                    \
        errand_payload made = {.data = NULL};                                            \
                                                                                         \
        return decoded(decode_##what(bytes, size, &made), &made, out_payload);           \
    }                                                                                    \
    static const errand_payload_codec what##_codec = {sizeof what##_codec,               \
                                                      encode_##what, checked_##what};
CODEC(bytes)
CODEC(written)
CODEC(list)
CODEC(stat)
CODEC(hash)
CODEC(addresses)
CODEC(command)

static const errand__codec_row operation_rows[] = {
    {&errand_file_bytes_type, errand_file_bytes_digest, &bytes_codec},
    {&errand_file_written_type, errand_file_written_digest, &written_codec},
    {&errand_dir_list_type, errand_dir_list_digest, &list_codec},
    {&errand_file_stat_type, errand_file_stat_digest, &stat_codec},
    {&errand_hash_type, errand_hash_digest, &hash_codec},
    {&errand_addresses_type, errand_addresses_digest, &addresses_codec},
    {&errand_command_result_type, errand_command_result_digest, &command_codec},
    {NULL, NULL, NULL},
};
const errand__codec_row *const errand__codec_table[] = {
    operation_rows,     errand__net_rows,     errand__signal_rows, errand__waits_rows,
    errand__files_rows, errand__process_rows, errand__http_rows,
};
const size_t errand__codec_tables =
    sizeof errand__codec_table / sizeof errand__codec_table[0];

errand_status
errand_operations_codecs(errand_runtime *runtime)
{
    errand_status status = errand_audit_operations(runtime);

    for (size_t table = 0; table < errand__codec_tables; table++)
        for (const errand__codec_row *row = errand__codec_table[table];
             row->type != NULL && status == ERRAND_OK; row++)
            status = errand_record_codec(runtime, row->type, row->type->name, row->codec);
    return status;
}
