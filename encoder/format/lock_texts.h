/*
 * Words by which a trace says which lock a thread waits for, which thread holds the lock, and which
 * thread ends the wait (encoder/thread/held.h).
 */
#pragma once

/*
 * The log of a wait at a condition variable whose thread was at that variable before, and has kept
 * the mutex since.
 */
#define GT_WAITS_AGAIN_TEXT "waits again for"

/* In the log of a hold, behind the time: the hold began before the tracer looked. */
#define GT_HELD_LONGER " or longer"

/* The log of a waker. all: the waker ends every wait there, not only one. */
#define GT_WAKES_TEXT "wakes at"
#define GT_WAKES_ALL_TEXT "wakes all at"

/*
 * Begins a string that describes a thread that waits when the trace ends. No event uses the string.
 * It lists
 *
 * - The goroutine that waits.
 * - The goroutine that then holds the lock, or 0.
 * - The lock holder's thread, or 0.
 * - A sum: 1 if the wait has a timeout; 2 if the holder's thread has ended; 4 if the wait is for
 *   the mutex after a condition variable; 8 if the wait can never end.
 * - When the wait began.
 * - The name of the lock, or nothing if the thread waits for the end of another thread.
 */
#define GT_BLOCKED "gotrace-waits "

/*
 * Begins a string about the signals of a condition variable: how many, how many without a waiter,
 * by which function, from where, and which condition variable.
 * "gotrace-signals 12 3 pthread_cond_signal put (queue.c:12), not_empty"
 */
#define GT_SIGNALS "gotrace-signals "

/*
 * Begins a string about the waits for a lock that were too brief for an event: how many, their time
 * in ns, and which lock. "gotrace-brief 12 3400 cache_lock"
 */
#define GT_BRIEF "gotrace-brief "

/*
 * Begins a string that says that this thread (the kernel's id) has called exec. If exec succeeds,
 * the trace ends there.
 */
#define GT_EXEC "gotrace-exec "

/*
 * Begins the name of a lock in memory that processes share. "shared 0:19:4711+0x40" is at that
 * offset in the file with inode 4711 on device 0:19, as /proc/self/maps numbers them.
 */
#define GT_SHARED "shared "

/*
 * Begin the names of locks on files, by flock(2) and by fcntl(2) or lockf(3). The file's path
 * follows, and "+" and the record's first byte if that is not 0.
 */
#define GT_FLOCK "flock "
#define GT_FCNTL "fcntl "

/*
 * The name of Python's interpreter lock. Behind it may stand a space and the number of the lock, if
 * that is a subinterpreter's, or "(mutex)": the mutex inside the lock.
 */
#define GT_GIL "GIL"

/* Special values of a holder, beside the kernel's ids of threads. */
enum gt_holder {
    GT_HOLDER_UNKNOWN = 0,
    GT_HOLDER_READERS = 1 << 30, /* of a read-write lock; the kernel's ids are lower */
    GT_HOLDER_SELF,              /* the thread itself, see gt_held_hold */
    GT_HOLDER_WAKER,             /* a log that belongs to no wait: the one of a waker */
    GT_HOLDER_WAKER_OF_ALL,
    GT_HOLDER_KEPT, /* not known, and GT_WAITS_AGAIN_TEXT */
};
