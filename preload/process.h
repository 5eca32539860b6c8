/* The life of the process as the tracer sees it: start, second thread, exec, end. */
#ifndef GT_PROCESS_H
#define GT_PROCESS_H

#include "encoder/base/era.h"
#include "encoder/buffers.h"
#include "encoder/samples.h"

#include <limits.h>

/* Whether this process is the traced one, no child of vfork's, which has its memory. Anywhere. */
bool gt_process_is_ours(void);

/*
 * The program is about to have a second thread: starts the drain thread (and in a forked child
 * the recording). A single-threaded program never gets a thread from us.
 */
void gt_process_second_thread(void);

/* Whether there was to be a second thread, ever. */
bool gt_process_had_threads(void);

/*
 * In a process that we were loaded into late, by a thread that is none of the program's: threads
 * are followed from here on, mute, and our own one is made. 0 or -errno.
 */
int gt_process_attach(const char *settings);

/* Another pattern for what is recorded from here on, numbered anew. false: too long. */
bool gt_process_set_output(const char *pattern);

/* A thread is about to be made: if our constructor has not run, what it does is done now. */
void gt_process_start_early(void);

/* A single-threaded program has filled a buffer, and writes it. */
void gt_process_relieve(void);

/* In a single-threaded process that is not followed: follows it, mute. Whether that worked. */
bool gt_process_begin(void);

/*
 * After what may have made a stack or a name: threads make new ones faster than old ones can be
 * given back, and should wait for that. Not inside the guard; errno is kept.
 */
void gt_process_wait_for_memory(void);
static inline void gt_process_check_memory(void)
{
    if (__builtin_expect(atomic_load_explicit(&gt_era_full, memory_order_relaxed), 0))
        gt_process_wait_for_memory();
}

/* After an event: the buffer of a single-threaded program may be full. Not inside the guard. */
static inline void gt_process_check_queue(void)
{
    if (__builtin_expect(atomic_load_explicit(&gt_buffers_queued, memory_order_relaxed) ||
                             atomic_load_explicit(&gt_samples_crowded, memory_order_relaxed),
                         0))
        gt_process_relieve();
    gt_process_check_memory();
}

/* The only thread begins a call that may block: does what gt_drain_unattended announces. */
void gt_process_attend(void);

/*
 * The program closes stderr, as many do at their end: xz before it calls exit(3), the GNU project's
 * in a function that exit calls. The exit line still goes there. But should the program go on after
 * all, nothing of ours keeps it open: from its next call that may block, or when it forks.
 */
void gt_process_keep_stderr(void);

/* Whether this process, or the one that it was forked from, is followed. Anywhere. */
bool gt_process_is_followed(void);

/* Whether it is decided that nothing of this process is to be followed: hooks only forward. */
bool gt_process_is_left_alone(void);

/* In a forked child that is to be followed, before all else and after it. */
void gt_process_after_fork(void);
void gt_process_begin_child(void);

/* Finishes the trace and prints the exit line. Any number of times, from any thread. */
void gt_process_end(void);

/*
 * The same by the program's last thread; ours is gone afterwards. libc counts it, and would have it
 * do what the last one does: flush stdio, which it cannot, and call what atexit was given. And the
 * kernel takes the status of whichever ends last.
 */
void gt_process_end_last(void);

/* The same in the handler of a deadly signal: amid anything, malloc and the loader included. */
void gt_process_crash(void);

/*
 * The same for a process that lives on, but must make none of our system calls from here on, and
 * neither must its children. Not inside the guard.
 */
void gt_process_withdraw(void);

/* For its forked children only, and later images (exec), from here on. */
void gt_process_abandon_children(void);

/*
 * The calling thread is about to give up access to files, or all threads are: what recording needs
 * of them is opened first. Not inside the guard; errno is kept.
 */
void gt_process_confines(bool all);

/*
 * If there is a drain thread: what it was at is over, and it heeds what it was told before; unless
 * that took as long as gt_drain_command waits. Not inside the guard; errno is kept.
 */
void gt_process_await_drain(void);

/* What was recorded is complete in the file; should exec fail, recording goes on. errno is kept. */
void gt_process_before_exec(void);

/* A function that ends the process has failed, after gt_process_end. */
void gt_process_stays(void);

#endif
