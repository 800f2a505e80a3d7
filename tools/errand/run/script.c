/* SPDX-License-Identifier: MIT */
/* script: a script's text, from a file, from standard input, or built in.
 *
 * Design notes.  The program reads the file itself, because Lua's own loader would take a
 * directory or an empty file for a script that does nothing. */
#include "program.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE_MAX_BYTES ((size_t)64 << 20)

static bool
read_all(int fd, errand__script *script)
{
    size_t room = 0;
    for (;;) {
        if (script->size == room) {
            room = room == 0 ? 65536 : room * 2;
            char *text = room > SIZE_MAX_BYTES ? NULL : realloc(script->text, room);
            if (text == NULL) {
                errno = room > SIZE_MAX_BYTES ? EFBIG : ENOMEM;
                return false;
            }
            script->text = text;
        }
        ssize_t got = read(fd, script->text + script->size, room - script->size);
        if (got == 0)
            return true;
        if (got < 0 && errno != EINTR)
            return false;
        if (got > 0)
            script->size += (size_t)got;
    }
}

/* Says why a file cannot be read, and the mend. */
static void
explain(const char *path, int error)
{
    const char *mend = "see that it can be read";
    if (error == ENOENT)
        mend = "check the path; it counts from the current folder";
    else if (error == EISDIR)
        mend = "give a Lua file in it";
    else if (error == EACCES)
        mend = "see that you may read it";
    else if (error == EFBIG)
        mend = "a script may have 64 MiB";
    errand__help_problem("%s: %s: %s", path, strerror(error), mend);
}

static bool
read_path(const char *path, errand__script *script)
{
    bool standard_input = strcmp(path, "-") == 0;
    int fd = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat info;
    if (fd < 0) {
        explain(path, errno);
        return false;
    }
    bool good = fstat(fd, &info) == 0;
    if (good && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        good = false;
    }
    good = good && read_all(fd, script);
    if (!good)
        explain(standard_input ? "standard input" : path, errno);
    if (!standard_input)
        close(fd);
    return good;
}

/* A first line that begins with # is for the system; it becomes blank, so that lines keep their
 * numbers. */
static void
blank_first_line(errand__script *script)
{
    size_t at = script->size >= 3 && memcmp(script->text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    memset(script->text, ' ', at);
    if (at < script->size && script->text[at] == '#') {
        for (; at < script->size && script->text[at] != '\n'; at++)
            script->text[at] = ' ';
    }
}

static bool
is_blank(const errand__script *script)
{
    size_t at = 0;
    while (at < script->size && strchr(" \t\r\n\f\v", script->text[at]) != NULL &&
           script->text[at] != '\0')
        at++;
    return at == script->size;
}

bool
errand__script_init(errand__script *script, const errand__options *options)
{
    memset(script, 0, sizeof *script);
    if (options->command == ERRAND__COMMAND_TOUR) {
        script->text = (char *)(uintptr_t)errand__tour_text;
        script->size = errand__tour_size;
        script->chunk = "@examples/tour.lua";
        script->built_in = true;
        return true;
    }
    const char *path = options->script;
    bool standard_input = strcmp(path, "-") == 0;
    size_t length = strlen(path);
    script->own_chunk = malloc(length + 2);
    if (script->own_chunk == NULL) {
        explain(path, ENOMEM);
        return false;
    }
    script->own_chunk[0] = '@';
    memcpy(script->own_chunk + 1, path, length + 1);
    script->chunk = standard_input ? "=stdin" : script->own_chunk;
    if (!read_path(path, script)) {
        errand__script_fini(script);
        return false;
    }
    blank_first_line(script);
    if (script->size > 0 && script->text[0] == LUA_SIGNATURE[0]) {
        errand__help_problem(
            "%s: this is a compiled (binary) chunk: give the text that it was "
            "made from",
            path);
        errand__script_fini(script);
        return false;
    }
    if (is_blank(script)) {
        errand__help_problem("%s:1: the script is empty: write Lua into it, such as "
                             "print(require 'errand'.read_file('notes.txt'))",
                             standard_input ? "stdin" : path);
        errand__script_fini(script);
        return false;
    }
    return true;
}

void
errand__script_fini(errand__script *script)
{
    if (!script->built_in)
        free(script->text);
    free(script->own_chunk);
    memset(script, 0, sizeof *script);
}
