/* SPDX-License-Identifier: MIT */
/* directory: list a directory in a canonical order, and look at one name.
 *
 * Design notes: a directory stream has no order, so names are collected, then sorted by their
 * bytes; never by a locale.  Names go into one growing text, entries count by offset until
 * nothing moves any more.  An entry that vanishes while it is looked at is left out. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "errand/traps.h"
#include "operations/operations.h"

enum { LIST_DEFAULT = 1 << 20, LOOK_EVERY = 256, FIRST_TEXT = 4096 };

typedef struct dir_state {
    const char *path;
    errand__operation_shown shown;
    size_t max;
    bool follow;
} dir_state;

static dir_state *dir_state_create(const char *path);
static int32_t list_run(errand_job *job, void *state, errand_payload *out_payload);
static bool add(errand__dir_names *list, errand_file_kind kind, const char *name);
static int by_name(const void *left, const void *right);
static int32_t stat_run(errand_job *job, void *state, errand_payload *out_payload);
static errand_file_kind kind_of_entry(int fd, const struct dirent *entry);

static const errand_job_type list_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "list_dir",
    .run = list_run,
    .drop = errand__operation_block_free,
};
static const errand_job_type stat_job = {
    .struct_size = sizeof(errand_job_type),
    .name = "stat_file",
    .run = stat_run,
    .drop = errand__operation_block_free,
};

errand_status
errand_spec_list_dir(errand_spec *out_spec, const char *path, size_t max)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && path != NULL && path[0] != 0, ERRAND_EINVAL,
                       "out_spec or path is missing");
    dir_state *state = dir_state_create(path);
    if (state == NULL)
        return ERRAND_ENOMEM;
    state->max = max == 0 ? LIST_DEFAULT : max;
    errand__operation_spec_fill(out_spec, ERRAND_KIND_LIST_DIR, &list_job, state);
    out_spec->flags = ERRAND_SPEC_EFFECT_FREE;
    return ERRAND_OK;
}

errand_status
errand_spec_stat_file(errand_spec *out_spec, const char *path, bool follow)
{
    ERRAND_REQUIRE_ARG(out_spec != NULL && path != NULL && path[0] != 0, ERRAND_EINVAL,
                       "out_spec or path is missing");
    dir_state *state = dir_state_create(path);
    if (state == NULL)
        return ERRAND_ENOMEM;
    state->follow = follow;
    errand__operation_spec_fill(out_spec, ERRAND_KIND_STAT_FILE, &stat_job, state);
    out_spec->flags = ERRAND_SPEC_EFFECT_FREE;
    return ERRAND_OK;
}

const char *
errand_file_kind_name(errand_file_kind kind)
{
    static const char *const kinds[] = {"other", "regular", "directory",  "link",
                                        "fifo",  "socket",  "characters", "blocks"};

    return (unsigned)kind < sizeof kinds / sizeof kinds[0] ? kinds[kind] : kinds[0];
}

static dir_state *
dir_state_create(const char *path)
{
    size_t length = strlen(path) + 1;
    dir_state *state = errand__operation_block_alloc(sizeof *state + length);

    if (state == NULL)
        return NULL;
    errand__operation_cursor cursor = {(char *)(state + 1)};
    state->path = errand__operation_copy(&cursor, path, length);
    state->shown = errand__operation_show(path);
    return state;
}

static int32_t
list_run(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_job_impure(job);
    const dir_state *dir = state;
    errand__dir_names list = {.text = NULL};
    int32_t answer = ERRAND__DIR_MORE, code = 0;

    DIR *stream = errand__dir_open(dir->path);
    if (stream == NULL)
        return errand__operation_refused(job, errno, "open", "cannot open directory '%s'",
                                         dir->shown.text);
    while (answer == ERRAND__DIR_MORE && code == 0) {
        if (errand_job_cancelled(job))
            code = errand__operation_failed(job, ERRAND_OPERATION_STOPPED,
                                            "listing '%s' was cancelled after %zu names",
                                            dir->shown.text, list.count);
        else
            answer = errand__dir_read(stream, dir->max, &list);
    }
    closedir(stream);
    if (code == 0 && answer != ERRAND__DIR_END)
        code = errand__dir_refused(job, answer, dir->shown.text, dir->max, &list);
    if (code == 0)
        code = errand__dir_give(job, &list, out_payload);
    errand__operation_block_free(list.text);
    return code;
}

DIR *
errand__dir_open(const char *path)
{
    int fd = errand__operation_fd_open(path, O_RDONLY | O_DIRECTORY, 0);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);

    if (stream == NULL)
        errand__operation_fd_close(&fd);
    return stream;
}

int32_t
errand__dir_read(DIR *stream, size_t max, errand__dir_names *list)
{
    for (unsigned seen = 0; seen < LOOK_EVERY; seen++) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == NULL)
            return errno != 0 ? -errno : ERRAND__DIR_END;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        errand_file_kind kind = kind_of_entry(dirfd(stream), entry);
        if (kind == 0)
            continue;
        if (list->count == max)
            return ERRAND__DIR_FULL;
        if (!add(list, kind, entry->d_name))
            return ERRAND__DIR_NO_MEMORY;
    }
    return ERRAND__DIR_MORE;
}

int32_t
errand__dir_refused(errand_job *job, int32_t answer, const char *shown, size_t max,
                    const errand__dir_names *list)
{
    if (answer == ERRAND__DIR_FULL)
        return errand__operation_failed(job, ERRAND_OPERATION_TOO_LARGE,
                                        "'%s' has more than the %zu names allowed", shown,
                                        max);
    if (answer == ERRAND__DIR_NO_MEMORY)
        return errand__operation_no_memory(job, 2 * list->room);
    return errand__operation_refused(job, -answer, "getdents64",
                                     "cannot read directory '%s'", shown);
}

static bool
add(errand__dir_names *list, errand_file_kind kind, const char *name)
{
    size_t length = strlen(name) + 2;

    if (list->room - list->used < length) {
        size_t room = list->room == 0 ? FIRST_TEXT : 2 * list->room;
        char *text = list->text == NULL ? errand__operation_block_alloc(room)
                                        : errand__operation_block_grow(list->text, room);
        if (text == NULL)
            return false;
        list->text = text;
        list->room = room;
    }
    list->text[list->used] = (char)kind;
    memcpy(list->text + list->used + 1, name, length - 1);
    list->used += length;
    list->count++;
    return true;
}

int32_t
errand__dir_give(errand_job *job, const errand__dir_names *list,
                 errand_payload *out_payload)
{
    size_t entries_size = list->count * sizeof(errand_dir_entry);
    size_t size = sizeof(errand_dir_list) + entries_size + list->used;
    errand_dir_list *result = errand__operation_block_alloc(size);

    if (result == NULL)
        return errand__operation_no_memory(job, size);
    errand_dir_entry *entries = (errand_dir_entry *)(void *)(result + 1);
    errand__operation_cursor cursor = {(char *)(entries + list->count)};
    const char *text = errand__operation_copy(&cursor, list->text, list->used);
    for (size_t i = 0; i < list->count; i++) {
        entries[i].kind = (errand_file_kind)text[0];
        entries[i].name = text + 1;
        text += strlen(text + 1) + 2;
    }
    qsort(entries, list->count, sizeof *entries, by_name);
    result->entries = entries;
    result->count = list->count;
    errand__operation_payload(out_payload, &errand_dir_list_type, result, size);
    return 0;
}

static int
by_name(const void *left, const void *right)
{
    const errand_dir_entry *one = left, *other = right;

    return strcmp(one->name, other->name);
}

static int32_t
stat_run(errand_job *job, void *state, errand_payload *out_payload)
{
    errand_job_impure(job);
    const dir_state *dir = state;
    struct stat status;

    if (fstatat(AT_FDCWD, dir->path, &status, dir->follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
        return errand__operation_refused(job, errno, "stat", "cannot look at '%s'",
                                         dir->shown.text);
    errand_file_stat *result = errand__operation_block_alloc(sizeof *result);
    if (result == NULL)
        return errand__operation_no_memory(job, sizeof *result);
    result->kind = errand__file_kind(status.st_mode);
    result->mode = status.st_mode & 07777;
    result->size = (uint64_t)status.st_size;
    result->mtime_ns =
        (int64_t)status.st_mtim.tv_sec * 1000000000 + (int64_t)status.st_mtim.tv_nsec;
    errand__operation_payload(out_payload, &errand_file_stat_type, result,
                              sizeof *result);
    return 0;
}

errand_file_kind
errand__file_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return ERRAND_FILE_REGULAR;
    case S_IFDIR:
        return ERRAND_FILE_DIRECTORY;
    case S_IFLNK:
        return ERRAND_FILE_LINK;
    case S_IFIFO:
        return ERRAND_FILE_FIFO;
    case S_IFSOCK:
        return ERRAND_FILE_SOCKET;
    case S_IFCHR:
        return ERRAND_FILE_CHARACTERS;
    case S_IFBLK:
        return ERRAND_FILE_BLOCKS;
    default:
        return ERRAND_FILE_OTHER;
    }
}

/* 0 if it has vanished. */
static errand_file_kind
kind_of_entry(int fd, const struct dirent *entry)
{
    struct stat status;

    if (entry->d_type != DT_UNKNOWN)
        return errand__file_kind(DTTOIF(entry->d_type));
    if (fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return errand__file_kind(status.st_mode);
    return errno == ENOENT ? (errand_file_kind)0 : ERRAND_FILE_OTHER;
}
