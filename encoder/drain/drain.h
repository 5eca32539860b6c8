/*
 * The drain side: starts and stops recordings (recording.h), closes generations (generation.h),
 * and turns filled buffers and the tables into a file. The drain thread is the drain side, in
 * gt_drain_run. A program that never had a second thread has no drain thread. There the thread
 * that fills a buffer, or asks for something, acts in its place.
 *
 * From gt_drain_open to gt_drain_finish threads are followed. While nothing is recorded, they are
 * in a mute generation (writer.h). Each recording is a file of its own.
 */
#pragma once

#include "drain_config.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * From here on writers can be entered; recording begins, unless config->times say otherwise.
 */
void gt_drain_open(const struct gt_drain_config *config);

enum gt_drain_command {
    GT_DRAIN_START,  /* -EALREADY: a recording is under way; else why the file cannot be made */
    GT_DRAIN_STOP,   /* -EALREADY: nothing is recorded */
    GT_DRAIN_TOGGLE, /* stops a recording, or starts one */
    /*
     * Writes what the flight recorder holds to a file: `path`, which must not exist; NULL: the
     * next path. Without a flight recorder the file becomes complete up to now, and a path is
     * -ENOTSUP. -EALREADY: nothing is recorded.
     */
    GT_DRAIN_SNAPSHOT,
    /*
     * Files may be out of reach from now on: opens the file of the recording under way, unless it
     * is the flight recorder, and reads what names need. -EALREADY: nothing is recorded.
     */
    GT_DRAIN_SETTLE,
    /*
     * Takes CPU samples from here on; the path says in digits how many in a second of CPU time.
     * Begins a recording if there is none (see GT_DRAIN_START). The samples end with the
     * recording, or with gt_recording_end_samples.
     */
    GT_DRAIN_SAMPLE,
    GT_DRAIN_PASS,  /* does nothing: waits until the drain side is done with what it was doing */
    GT_DRAIN_LEAVE, /* see gt_drain_leave */
};

/*
 * Has the drain side execute a command, and waits until it is done. Any thread but the drain
 * thread, not in signal handlers. 0 or -errno. -ESHUTDOWN: before the beginning or after the end.
 * -ETIMEDOUT: 20 s were not enough, or nothing could be written for 10 s; a command that was begun
 * may yet be done.
 */
int gt_drain_command(enum gt_drain_command command, const char *path);

/* Executes a command at once. For the drain side itself, from `serve`. */
int gt_drain_execute(enum gt_drain_command command, const char *path);

/* Has the drain side execute GT_DRAIN_TOGGLE soon. Async-signal-safe. */
void gt_drain_toggle(void);

/*
 * In a program without drain thread: gt_drain_attend does what gt_drain_toggle or a client of
 * `serve` has asked for, or what is due by the clock. The program calls it while
 * gt_drain_unattended is not 0. A client that waits to be served may set it to
 * GT_UNATTENDED_WORK, also from another process, and again until it is served. GT_UNATTENDED_HOLD
 * is for all threads of the program, and for good: see preload/control/process_relief.h. It is in
 * another byte, so that a client in another process, which can only store, does not clear it.
 */
enum { GT_UNATTENDED_WORK = 1, GT_UNATTENDED_HOLD = 1 << 8 };
extern _Atomic uint32_t gt_drain_unattended;
void gt_drain_attend(void);

/*
 * In a program without drain thread: buffers are full, so the caller writes them. anywhere: the
 * caller is in a signal handler, which may have interrupted the allocator or the loader.
 */
void gt_drain_relieve(bool anywhere);

/*
 * The body of the drain thread; returns after gt_drain_finish. gt_drain_set_threaded is called
 * first.
 */
void gt_drain_run(void);
void gt_drain_set_threaded(void);
void gt_drain_set_unthreaded(void); /* it could not be created */
bool gt_drain_is_threaded(void);    /* any thread */

/*
 * The end: threads are not followed any more; a recording is completed. Any thread, once. Later
 * calls, and calls of other threads, wait for the first. If a drain thread runs, waits for it as
 * long as gt_drain_command does. false: the user knows of all recordings already.
 */
bool gt_drain_finish(void);

/* From here on gt_drain_finish waits for ns at most, because the process dies. Any context. */
void gt_drain_hurry(int64_t ns);

/*
 * Has the drain thread call config.sample soon: whatever needs a descriptor is read there, where
 * it takes no number of the program's. false: there is no drain thread. Any thread.
 */
bool gt_drain_sample(void);

/*
 * The process may become another program in a moment (exec). All that is recorded is in the file
 * then, also what the flight recorder holds, and the black box is gone. If the exec fails,
 * recording goes on, without a black box. 0 or -errno, as gt_drain_command.
 */
int gt_drain_leave(void);

/* In a forked child: no trace is open, nothing queued, all locks free. */
void gt_drain_after_fork(void);
