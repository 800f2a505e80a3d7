/* SPDX-License-Identifier: MIT */
/* payload: the types of what operations give back, and how each enters the audit digest. */
#include <string.h>
#include "operations/codec.h"

static void drop_block(void *data, size_t size);

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
    for (size_t table = 0; table < errand__codec_tables; table++)
        for (const errand__codec_row *row = errand__codec_table[table]; row->type != NULL;
             row++) {
            errand_status status = errand_audit_payload(runtime, row->type, row->digest);

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

void *
errand__operation_bytes_alloc(size_t room)
{
    return errand__operation_block_alloc_for(sizeof(errand_file_bytes), room + 1);
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

int32_t
errand__operation_written(errand_job *job, uint64_t written, errand_payload *out_payload)
{
    errand_file_written *made = errand__operation_block_alloc(sizeof *made);

    if (made == NULL)
        return errand__operation_no_memory(job, sizeof *made);
    made->written = written;
    errand__operation_payload(out_payload, &errand_file_written_type, made, sizeof *made);
    return 0;
}

uint64_t
errand_file_bytes_digest(const void *data, size_t size)
{
    const errand_file_bytes *file = data;

    (void)size;
    return errand__digest_plain(file->bytes, file->size);
}

uint64_t
errand_file_written_digest(const void *data, size_t size)
{
    const errand_file_written *file = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, file->written);
    return errand__digest_end(&mix);
}

uint64_t
errand_dir_list_digest(const void *data, size_t size)
{
    const errand_dir_list *list = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, list->count);
    for (size_t i = 0; i < list->count; i++) {
        errand__digest_number(&mix, list->entries[i].kind);
        errand__digest_bytes(&mix, list->entries[i].name, strlen(list->entries[i].name));
    }
    return errand__digest_end(&mix);
}

uint64_t
errand_file_stat_digest(const void *data, size_t size)
{
    const errand_file_stat *file = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, file->kind);
    errand__digest_number(&mix, file->mode);
    errand__digest_number(&mix, file->kind == ERRAND_FILE_REGULAR ? file->size : 0);
    return errand__digest_end(&mix);
}

uint64_t
errand_hash_digest(const void *data, size_t size)
{
    const errand_hash *hash = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, hash->value);
    errand__digest_number(&mix, hash->size);
    return errand__digest_end(&mix);
}

uint64_t
errand_addresses_digest(const void *data, size_t size)
{
    const errand_addresses *list = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const errand_address *address = &list->addresses[i];
        errand__digest_number(&mix, address->family);
        errand__digest_bytes(&mix, address->bytes, address->family == 4 ? 4 : 16);
        errand__digest_number(&mix, address->port);
    }
    return errand__digest_end(&mix);
}

uint64_t
errand_command_result_digest(const void *data, size_t size)
{
    const errand_command_result *result = data;
    errand__digest mix;

    (void)size;
    errand__digest_begin(&mix);
    errand__digest_number(&mix, (uint64_t)(int64_t)result->exit_status);
    errand__digest_number(&mix, (uint64_t)(int64_t)result->signal_number);
    errand__digest_bytes(&mix, result->out, result->out_size);
    errand__digest_bytes(&mix, result->err, result->err_size);
    return errand__digest_end(&mix);
}

static void
drop_block(void *data, size_t size)
{
    (void)size;
    errand__operation_block_free(data);
}
