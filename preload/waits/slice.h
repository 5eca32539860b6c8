/*
 * A call into the kernel as a slice of the trace: a system call, or a wait for the network. All
 * hooks of such calls use this. A call shorter than GOTRACE_SYSCALL_MIN is not written, unless it
 * is still running when the generation or the program ends.
 *
 * A short accept or connect is written, too, if it succeeds, as a call that did not wait: readers
 * need to know that the thread is a server or a client. For the same reason the bind of a datagram
 * socket to an address that the program chose is written, once it is over: others can send to that
 * address first. The bind of a stream socket says nothing: only an accept shows that a client came.
 * A thread writes at most one short call of each of these kinds a millisecond.
 */
#pragma once

#include "timeout.h"

#include "preload/thread/capture.h"
#include "preload/thread/thread.h"

/*
 * What a call works on, if not a file descriptor; and GT_SOCKET, a descriptor that is certainly a
 * socket.
 */
enum { GT_FILE = -1, GT_NOTHING = -2, GT_SYNC = -3, GT_TIME = -4, GT_NETWORK = -5 };
#define GT_SOCKET(fd) (GT_NETWORK - 1 - (fd))

/* How a call has made a connection, or lets others reach the program: index in gt_thread.next_made.
 */
enum gt_made { GT_MADE_ACCEPT, GT_MADE_CONNECT, GT_MADE_BIND };

/* A call under way, on the stack of the hook. */
struct gt_slice {
    struct gt_thread *thread; /* NULL: nothing recorded */
    bool stands;              /* see gt_thread_stand */
    uint64_t since;
    uintptr_t frame;   /* tells this call from the thread's other calls */
    uint64_t due;      /* as in struct gt_wait */
    uint64_t woken;    /* as in struct gt_wait */
    int64_t moved;     /* the call's result, where channels.h needs it */
    const void *bytes; /* the bytes that it moved, or NULL; set where `moved` is */
    enum gt_hook hook;
    enum gt_reason reason;
};

/*
 * Begin and end a slice. `on`: what the call works on, a file descriptor or one of the above. Both
 * keep errno. Declare the variable with GT_SLICE: cancellation may leave the call.
 */
#define gt_slice_begin(hook, on) gt_slice_begin_in(hook, on, GT_HERE())
void gt_slice_end(struct gt_slice *slice);

/* here: the hook, whose frame lasts as long as the call. */
struct gt_slice gt_slice_begin_in(enum gt_hook hook, int on, struct gt_here here);

/* The call has succeeded as in gt_made, and does nothing more. Ends and writes the slice if the
 * call was short and the thread's last such call is long ago. Keeps errno. */
void gt_slice_made(struct gt_slice *slice, enum gt_made how);

/* Whether a call that returns at once needs no slice, because not all calls are shown. */
bool gt_slice_is_left_out(void);

/* The slice has begun, and the call will be over when its timeout is. */
void gt_slice_ends(struct gt_slice *slice, const struct gt_timeout *timeout);

/* The call is over because its timeout is. See gt_wait_expired. */
void gt_slice_expired(struct gt_slice *slice, const struct gt_timeout *timeout);

/* Whether GOTRACE_SYSCALL_MIN leaves out a call that took so long. */
bool gt_call_is_short(uint64_t units);

/* Writes that the caller has forked, and did nothing else since that time of the trace, if that
 * took long. */
void gt_slice_of_fork(uint64_t since);

#define GT_SLICE(name) __attribute__((cleanup(gt_slice_end))) struct gt_slice name
