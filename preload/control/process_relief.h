/* Work of the drain side that threads of the program do: where there is no drain thread, or when
 * stacks and names take too much memory. */
#pragma once

#include "encoder/base/era.h"
#include "encoder/cpu/samples.h"
#include "encoder/drain/drain.h"
#include "encoder/thread/buffers.h"

#include <stdbool.h>

struct gt_thread;

/* Writes the full buffer of a single-threaded program, in the program's thread. */
void gt_process_relieve(void);

/*
 * Wait while stacks and names take too much memory: threads can make new ones faster than old ones
 * are freed. Called after hooks that may have made a stack or a name. Not inside the guard; errno
 * is kept.
 */
void gt_process_wait_for_memory(void);
static inline void gt_process_check_memory(void)
{
    if (__builtin_expect(atomic_load_explicit(&gt_era_full, memory_order_relaxed), 0))
        gt_process_wait_for_memory();
}

/* Writes the buffer of a single-threaded program if it is full. Called after events, not inside the
 * guard. */
static inline void gt_process_check_queue(void)
{
    if (__builtin_expect(atomic_load_explicit(&gt_buffers_queued, memory_order_relaxed) >
                                 GT_BUF_WORTH ||
                             atomic_load_explicit(&gt_samples_crowded, memory_order_relaxed),
                         0))
        gt_process_relieve();
    gt_process_check_memory();
}

/* Does the work that gt_drain_unattended announces. Called when the only thread begins a call that
 * may block, or, at the process's end, by any thread that does. */
void gt_process_attend(void);

/*
 * Holds the calling thread back while gt_process_end works in another one. By then the program may
 * have freed what its remaining threads use: bare, the kernel ends them a moment later. Called
 * before and after waits and calls, with no lock of ours, not inside the guard. errno is kept.
 */
void gt_process_hold(void);

/* Ends the hold for all threads. */
void gt_process_hold_no_longer(void);

/* A filter forbids to look at the ending thread: the clock alone ends holds. Any thread. */
void gt_process_hold_by_clock(void);

/* The CPU time of a thread of this process; 0: not known. */
uint64_t gt_process_cpu_of(uint32_t tid);

static inline void gt_process_check_hold(void)
{
    if (__builtin_expect(gt_drain_unattended, 0))
        gt_process_hold();
}

/* Whether t's thread may have been interrupted in any code, the loader included. */
bool gt_process_is_anywhere(struct gt_thread *t);

/*
 * Runs `what` in a thread of the program, in the drain thread's place: inside the guard, and
 * without the program's allocator, in the middle of which the thread may be.
 */
void gt_process_act(struct gt_thread *t, void (*what)(struct gt_thread *t));
