/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_PAUSE_H
#define ERRAND_PAUSE_H
/* pause: named places where tests may stop a thread (errand_testing_pause).  Nothing in a library
 * that is installed.  The places:
 *   "claim"         a worker is about to claim a dispatch
 *   "interrupt-open"  it claimed one, and is about to let the interrupt signal in
 *   "wait-fd"       a body is about to sleep in errand_wait_fd; its token was looked at
 *   "ask-sleep"     a callback is about to sleep until it is answered
 *   "body-done"     the body returned; nothing is settled yet
 *   "settle"        the winner of the move to settled is about to put
 *   "put"           a node is about to be pushed
 *   "park"          the runtime's thread is about to say that it parks
 *   "arm"           it is about to arm the descriptor
 *   "submit-checked", "submit-counted", "submit-armed", "submit-handed"   steps of a submit
 *   "worker-sleep"  a worker is about to register as sleeping
 *   "group-taken"   a worker took a group
 *   "filer-wanted"  a loop is about to make a filer, which is counted already
 *   "filer-begins"  a filer has a request, and is about to do it
 *   "filer-wakes"   a filer slept, and is about to look what for
 *   "filer-ends"    a filer found no work for long, and will not look again
 *   "turn"          a body is about to ask for its turn
 *   "spawn", "scan", "bind"   a helper is about to do what waits for the disk
 *   "path-goes", "path-gone"   a socket's path is about to be removed; it was
 *   "file-let"      a file that nobody asks for any more is about to be closed
 *   "copy-close"    a copy has moved everything, and is about to ask for the close
 *   "monitor-sleep" a sandbox's monitor has done what there was, and is about to sleep
 *   "write-off"     the owner is about to write a worker off */
#if ERRAND_TESTING
void errand__pause(const char *place);
#define ERRAND__PAUSE(place) errand__pause(place)
#else
#define ERRAND__PAUSE(place)                                                             \
    do {                                                                                 \
    } while (0)
#endif
#endif
