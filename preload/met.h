/*
 * Threads that were there before the library: a program was attached. Each is in the trace from
 * then on, in the call that it stands in, though nothing of ours is on its stack.
 *
 * Until a thread first calls a hook its goroutine is in the hands of our thread. Who ends its wait
 * by a hook is seen, as ever. Where nobody does, no hook is called on the way out; then it is the
 * kernel's account of the thread that tells when it went on: a thread that has not waited again
 * since has run, or stood in a run queue, all the time since then. Where it may have waited again
 * that is not the end of its wait but the latest that it can have been, and a log on the thread's
 * row says so.
 */
#ifndef GT_MET_H
#define GT_MET_H

#include "picture.h"

struct gt_thread;

/*
 * The threads of this picture are to be met: by our thread, which begins with that. Not where it
 * has no descriptors of its own, or /proc is that of another namespace: then nobody is. NULL: there
 * is no picture.
 */
void gt_met_expect(const struct gt_picture *picture);
void gt_met_all(void); /* our thread; as soon as it can read /proc */

/* Waits until that is done. Before the first hook can be called. */
void gt_met_await(void);

/*
 * The calling thread, of which nobody knows yet, if it is one of these: from here on it writes its
 * own events. *now: false, it cannot be recorded at the moment: a signal's handler has interrupted
 * the call that it stands in.
 */
struct gt_thread *gt_met_claim(bool *now);

/* In a forked child: of the others none is there. */
void gt_met_after_fork(void);

#endif
