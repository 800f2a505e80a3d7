/* SPDX-License-Identifier: MIT */
/* Design notes: panics.
 *
 * errand_panic jumps to the innermost frame of its thread.  A worker has one frame for its whole
 * loop, so containment costs a job nothing; destructors, decoders and hooks get a frame each,
 * because what comes after them has to go on (O76).  The jump crosses only frames of the body. */
#include <stdio.h>
#include <stdlib.h>
#include "dispatch/hands.h"

/* innermost: the thread's own; no other thread looks at it. */
static _Thread_local errand__frame *innermost;

void
errand__frame_enter(errand__frame *frame)
{
    frame->outer = innermost;
    innermost = frame;
}

void
errand__frame_leave(errand__frame *frame)
{
    innermost = frame->outer; /* also if a callback said that it was left, and was not */
}

void
errand__frame_unwind(errand__frame *frame)
{
    innermost = frame;
}

errand__frame *
errand__frame_innermost(void)
{
    return innermost;
}

errand_job *
errand__frame_job(void)
{
    for (const errand__frame *frame = innermost; frame != NULL; frame = frame->outer)
        if (frame->hands != NULL && frame->hands->job != NULL)
            return frame->hands->job;
    return NULL;
}

bool
errand__on_worker(void)
{
    return errand__frame_job() != NULL;
}

bool
errand__contained(void (*fn)(void *arg), void *arg, char *text, size_t size)
{
    errand__frame frame;

    frame.hands = NULL;
    if (ERRAND__CATCH(&frame)) {
        errand__frame_leave(&frame);
        errand__text_format(text, size, "%s", frame.message);
        return true;
    }
    errand__lock_none_held();
    fn(arg);
    errand__frame_leave(&frame);
    return false;
}

void
errand_panic(const char *format, ...)
{
    errand__frame *frame = innermost;
    va_list arguments;

    va_start(arguments, format);
    if (frame == NULL) {
        char text[256];

        errand__text_vformat(text, sizeof text, format, arguments);
        fprintf(stderr, "errand: panic outside a job, destructor, decoder or hook: %s\n",
                text);
        abort();
    }
    errand__text_vformat(frame->message, sizeof frame->message, format, arguments);
    va_end(arguments);
    longjmp(frame->jump, 1);
}
