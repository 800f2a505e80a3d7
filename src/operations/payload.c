/* SPDX-License-Identifier: MIT */
/* payload: the types of what operations give back, and how each enters the audit digest.
 *
 * Design notes: a digest goes over fields in a fixed order, integers as eight little-endian
 * bytes, texts and bytes after their length, so that neither padding nor pointers nor the
 * machine's byte order show in it.  XXH3 comes from libxxhash's header alone. */
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "errand/order.h"
#include "operations/operations.h"

static void drop_block(void *data, size_t size);
static void add_number(XXH3_state_t *mix, uint64_t number);
static void add_bytes(XXH3_state_t *mix, const void *bytes, size_t size);

const errand_payload_type errand_file_bytes_type = {"file bytes", drop_block};
const errand_payload_type errand_file_written_type = {"file written", drop_block};
const errand_payload_type errand_dir_list_type = {"directory list", drop_block};
const errand_payload_type errand_file_stat_type = {"file status", drop_block};
const errand_payload_type errand_hash_type = {"hash", drop_block};
const errand_payload_type errand_addresses_type = {"addresses", drop_block};
const errand_payload_type errand_command_result_type = {"command result", drop_block};

errand_status
errand_audit_operations(errand_runtime *runtime)
{
    static const struct {
        const errand_payload_type *type;
        uint64_t (*digest)(const void *data, size_t size);
    } rows[] = {
        {&errand_file_bytes_type, errand_file_bytes_digest},
        {&errand_file_written_type, errand_file_written_digest},
        {&errand_dir_list_type, errand_dir_list_digest},
        {&errand_file_stat_type, errand_file_stat_digest},
        {&errand_hash_type, errand_hash_digest},
        {&errand_addresses_type, errand_addresses_digest},
        {&errand_command_result_type, errand_command_result_digest},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        errand_status status =
            errand_audit_payload(runtime, rows[i].type, rows[i].digest);
        if (status != ERRAND_OK)
            return status;
    }
    return ERRAND_OK;
}

void
errand__operation_payload(errand_payload *out_payload, const errand_payload_type *type,
                          void *own_block, size_t size)
{
    out_payload->held_type = type;
    out_payload->data = own_block;
    out_payload->size = size;
}

void
errand__operation_payload_bytes(errand_payload *out_payload, void *own_block, size_t size)
{
    errand_file_bytes *file = own_block;
    unsigned char *bytes = (unsigned char *)(file + 1);

    bytes[size] = 0;
    file->bytes = bytes;
    file->size = size;
    errand__operation_payload(out_payload, &errand_file_bytes_type, file,
                              sizeof *file + size);
}

uint64_t
errand_file_bytes_digest(const void *data, size_t size)
{
    const errand_file_bytes *file = data;

    (void)size;
    return XXH3_64bits(file->bytes, file->size);
}

uint64_t
errand_file_written_digest(const void *data, size_t size)
{
    const errand_file_written *file = data;
    XXH3_state_t mix;

    (void)size;
    XXH3_64bits_reset(&mix);
    add_number(&mix, file->written);
    return XXH3_64bits_digest(&mix);
}

uint64_t
errand_dir_list_digest(const void *data, size_t size)
{
    const errand_dir_list *list = data;
    XXH3_state_t mix;

    (void)size;
    XXH3_64bits_reset(&mix);
    add_number(&mix, list->count);
    for (size_t i = 0; i < list->count; i++) {
        add_number(&mix, list->entries[i].kind);
        add_bytes(&mix, list->entries[i].name, strlen(list->entries[i].name));
    }
    return XXH3_64bits_digest(&mix);
}

uint64_t
errand_file_stat_digest(const void *data, size_t size)
{
    const errand_file_stat *file = data;
    XXH3_state_t mix;

    (void)size;
    XXH3_64bits_reset(&mix);
    add_number(&mix, file->kind);
    add_number(&mix, file->mode);
    add_number(&mix, file->kind == ERRAND_FILE_REGULAR ? file->size : 0);
    return XXH3_64bits_digest(&mix);
}

uint64_t
errand_hash_digest(const void *data, size_t size)
{
    const errand_hash *hash = data;
    XXH3_state_t mix;

    (void)size;
    XXH3_64bits_reset(&mix);
    add_number(&mix, hash->value);
    add_number(&mix, hash->size);
    return XXH3_64bits_digest(&mix);
}

uint64_t
errand_addresses_digest(const void *data, size_t size)
{
    const errand_addresses *list = data;
    XXH3_state_t mix;

    (void)size;
    XXH3_64bits_reset(&mix);
    add_number(&mix, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const errand_address *address = &list->addresses[i];
        add_number(&mix, address->family);
        add_bytes(&mix, address->bytes, address->family == 4 ? 4 : 16);
        add_number(&mix, address->port);
    }
    return XXH3_64bits_digest(&mix);
}

uint64_t
errand_command_result_digest(const void *data, size_t size)
{
    const errand_command_result *result = data;
    XXH3_state_t mix;

    (void)size;
    XXH3_64bits_reset(&mix);
    add_number(&mix, (uint64_t)(int64_t)result->exit_status);
    add_number(&mix, (uint64_t)(int64_t)result->signal_number);
    add_bytes(&mix, result->out, result->out_size);
    add_bytes(&mix, result->err, result->err_size);
    return XXH3_64bits_digest(&mix);
}

static void
drop_block(void *data, size_t size)
{
    (void)size;
    errand__operation_block_free(data);
}

static void
add_number(XXH3_state_t *mix, uint64_t number)
{
    unsigned char bytes[8];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(number >> (8 * i));
    XXH3_64bits_update(mix, bytes, sizeof bytes);
}

static void
add_bytes(XXH3_state_t *mix, const void *bytes, size_t size)
{
    add_number(mix, size);
    XXH3_64bits_update(mix, bytes, size);
}
