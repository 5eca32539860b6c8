/*
 * A call into the kernel as a slice of the trace: a system call, or a wait for the network. All
 * hooks of such calls are made of this. Nothing is written for a call shorter than
 * GOTRACE_SYSCALL_MIN, unless it is still running when the generation or the program ends.
 */
#ifndef GT_SLICE_H
#define GT_SLICE_H

#include "timeout.h"

#include "preload/real.h"
#include "preload/stacks/capture.h"
#include "preload/thread.h"

/* What a call works on, where that is not a file descriptor; or one that is a socket for certain.
 */
enum { GT_FILE = -1, GT_NOTHING = -2, GT_SYNC = -3, GT_NETWORK = -4 };
#define GT_SOCKET(fd) (GT_NETWORK - 1 - (fd))

/* A call under way, on the stack of the hook. */
struct gt_slice {
    struct gt_thread *thread; /* NULL: nothing recorded */
    uint64_t since;
    uintptr_t frame;   /* tells this call from others of the thread */
    uint64_t woken;    /* as in struct gt_wait */
    int64_t moved;     /* what it has returned, where channels.h wants to know */
    const void *bytes; /* that it has moved, or NULL; set where `moved` is */
    enum gt_hook hook;
    enum gt_reason reason;
};

/*
 * `on`: what the call works on, a file descriptor or one of the above. errno is kept by both.
 * Declare the variable with GT_SLICE: the call may be left by cancellation.
 */
#define gt_slice_begin(hook, on) gt_slice_begin_in(hook, on, GT_HERE())
void gt_slice_end(struct gt_slice *slice);

/* here: the hook, whose frame lasts as long as the call. */
struct gt_slice gt_slice_begin_in(enum gt_hook hook, int on, struct gt_here here);

/* Whether a call that returns at once need not be a slice: not all calls are shown. */
bool gt_slice_is_left_out(void);

/* It has begun, and will be over by then. */
void gt_slice_ends(struct gt_slice *slice, const struct gt_timeout *timeout);

/* It is over because its timeout is. See gt_wait_expired. */
void gt_slice_expired(struct gt_slice *slice, const struct gt_timeout *timeout);

/* Whether a call that took so long is one that GOTRACE_SYSCALL_MIN leaves out. */
bool gt_call_is_short(uint64_t units);

#define GT_SLICE(name) __attribute__((cleanup(gt_slice_end))) struct gt_slice name

#endif
