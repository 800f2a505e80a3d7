/* SPDX-License-Identifier: MIT */
/* verdict: how a run ended, as the child that ran it tells its parent.
 *
 * Design notes.  One record goes through the pipe: a header and two texts.  Both ends are the
 * same program in the same memory image, so the header is a struct.  A child that crashes or
 * leaves by os.exit sends none, or a torn one; the parent then goes by how the process ended. */
#include "explore/explore.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC 0x65767264U

typedef struct verdict_head {
    uint32_t magic, class;
    uint64_t digest, elapsed_ns, picks, text_size, tape_size;
} verdict_head;

const char *
errand__class_name(errand__class class)
{
    static const char *const names[] = {
        [ERRAND__CLASS_GOOD] = "good",
        [ERRAND__CLASS_ERROR] = "error",
        [ERRAND__CLASS_STALL] = "stall",
        [ERRAND__CLASS_DEADLINE] = "deadline",
        [ERRAND__CLASS_PANIC] = "panic",
        [ERRAND__CLASS_CRASH] = "crash",
        [ERRAND__CLASS_TIMEOUT] = "timeout",
        [ERRAND__CLASS_EXIT] = "exit",
        [ERRAND__CLASS_DIFFERS] = "nondeterministic",
        [ERRAND__CLASS_REFUSED] = "refused",
        [ERRAND__CLASS_EXTERNAL] = "external",
    };
    return names[class];
}

static errand__class
class_of(const errand__progress *progress, const errand_lua_result *result)
{
    static const errand__class classes[] = {
        [ERRAND_LUA_OK] = ERRAND__CLASS_GOOD,
        [ERRAND_LUA_SCRIPT_ERROR] = ERRAND__CLASS_ERROR,
        [ERRAND_LUA_STALL] = ERRAND__CLASS_STALL,
        [ERRAND_LUA_DEADLINE] = ERRAND__CLASS_DEADLINE,
        [ERRAND_LUA_STOPPED] = ERRAND__CLASS_EXIT,
        [ERRAND_LUA_REFUSED] = ERRAND__CLASS_REFUSED,
        [ERRAND_LUA_EXTERNAL] = ERRAND__CLASS_EXTERNAL,
        [ERRAND_LUA_DEPARTED] = ERRAND__CLASS_EXIT,
    };
    if (result->kind == ERRAND_LUA_SCRIPT_ERROR && progress->panic[0] != '\0' &&
        result->message != NULL && strstr(result->message, progress->panic) != NULL)
        return ERRAND__CLASS_PANIC;
    return classes[result->kind];
}

/* The text of what was recorded, for free(); NULL and 0 = nothing. */
static char *
print_tape(errand_tape *tape, uint64_t *out_size)
{
    if (tape == NULL)
        return NULL;
    size_t size = errand_tape_print(tape, NULL, 0);
    char *text = malloc(size + 1);
    *out_size = text != NULL ? size : 0;
    if (text != NULL)
        errand_tape_print(tape, text, size + 1);
    return text;
}

void
errand__verdict_send(const errand__options *options, const errand__progress *progress,
                     const errand_lua_result *result)
{
    if (options->verdict_fd == 0)
        return;
    const char *text = result->message != NULL ? result->message : "";
    verdict_head head = {
        .magic = MAGIC,
        .class = (uint32_t)class_of(progress, result),
        .digest = result->digest,
        .elapsed_ns = result->elapsed_ns,
        .picks = result->picks,
        .text_size = strlen(text),
    };
    char *tape = print_tape(options->held_choices->held_record, &head.tape_size);
    errand__output_write(options->verdict_fd, (const char *)&head, sizeof head);
    errand__output_write(options->verdict_fd, text, head.text_size);
    if (tape != NULL)
        errand__output_write(options->verdict_fd, tape, head.tape_size);
    free(tape);
}

/* A copy that is ended by 0. */
static char *
copy(const char *bytes, size_t size)
{
    char *text = malloc(size + 1);
    if (text != NULL) {
        memcpy(text, bytes, size);
        text[size] = '\0';
    }
    return text;
}

bool
errand__verdict_read(const char *bytes, size_t size, errand__verdict *out_verdict)
{
    verdict_head head;
    memset(out_verdict, 0, sizeof *out_verdict);
    if (size < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (head.magic != MAGIC || head.class > ERRAND__CLASS_EXTERNAL ||
        head.text_size > size - sizeof head ||
        head.tape_size != size - sizeof head - head.text_size)
        return false;
    const char *text = bytes + sizeof head;
    out_verdict->text = copy(text, head.text_size);
    if (head.tape_size != 0)
        out_verdict->tape = copy(text + head.text_size, head.tape_size);
    if (out_verdict->text == NULL || (head.tape_size != 0 && out_verdict->tape == NULL)) {
        errand__verdict_fini(out_verdict);
        return false;
    }
    out_verdict->sent = true;
    out_verdict->class = (errand__class)head.class;
    out_verdict->digest = head.digest;
    out_verdict->elapsed_ns = head.elapsed_ns;
    out_verdict->picks = head.picks;
    out_verdict->tape_size = head.tape_size;
    return true;
}

void
errand__verdict_fini(errand__verdict *verdict)
{
    free(verdict->text);
    free(verdict->tape);
    memset(verdict, 0, sizeof *verdict);
}
