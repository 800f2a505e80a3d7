/* SPDX-License-Identifier: MIT */
/* Design notes: a seeded lease's job on its owner's thread, without the queue.
 *
 * One job of such a lease runs at a time, and the one that wants it run is the one that would
 * wait for it.  So nothing is queued, put or collected: the body is claimed, entered and settled
 * by the functions that do it elsewhere, and the runtime takes the record back in its hand. */
#include "workers/manual/manual.h"

bool
errand__manual_run_here(errand_lease *lease, errand__record *record)
{
    errand__manual_lease *mine = lease->impl;
    errand__hands *hands = &mine->own.hands;

    hands->epoch = lease->epoch;
    hands->here = true;
    if (ERRAND__CATCH(&hands->frame))
        errand__hands_panicked(hands, hands->frame.message);
    else
        errand__hands_execute_here(hands, lease->block, record,
                                   (uint32_t)record->generation, &lease->cells[0]);
    errand__frame_leave(&hands->frame);
    if (__builtin_expect(hands->leaked != 0, 0))
        errand__hands_tell(hands, lease->block);
    if (hands->here) { /* somebody else settled it meanwhile, and put it */
        hands->here = false;
        return false;
    }
    return true;
}
