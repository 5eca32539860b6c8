/*
 * Met threads: threads that existed before `gotrace attach` loaded the library. Each appears in the
 * trace in the call in which it stands, although no hook of ours is on its stack.
 *
 * Until a met thread first calls a hook, the drain thread writes the events of its goroutine. If a
 * waker ends the thread's wait through a hook, the trace shows the waker as usual. Otherwise the
 * kernel's accounting shows when the wait ended: a thread that has not waited again has been on the
 * CPU or in a run queue all the time since. If the thread may have waited again, the computed time
 * is only the latest possible end of its wait, and a log on the thread's row says so.
 */
#pragma once

#include "preload/shared/picture.h"

struct gt_thread;

/*
 * Announces the threads of this picture, which the drain thread meets when it starts. No thread is
 * met where the drain thread has no descriptor table of its own, or /proc belongs to another
 * namespace. NULL: there is no picture.
 */
void gt_met_expect(const struct gt_picture *picture);

/* Meets the announced threads. Called by the drain thread as soon as it can read /proc. */
void gt_met_all(void);

/* Waits until gt_met_all is done. Called before a thread of the program can call a hook. */
void gt_met_await(void);

/*
 * Hands the goroutine of a met thread over to that thread, the caller, which has not called a hook
 * before: from here on it writes its own events. Returns its struct, or NULL if the caller is no
 * met thread. NULL with *now false: the caller cannot be recorded at the moment, because a signal
 * handler has interrupted the call in which it was met.
 */
struct gt_thread *gt_met_claim(bool *now);

/* Called in a forked child, which has no met threads. */
void gt_met_after_fork(void);
