/*
 * Holds of locks on files: flock(2), lockf(3) and the record locks of fcntl(2). A process that
 * waits for such a lock cannot be told which one has it. So each holder leaves a log when it gives
 * the lock up, as holders of hot locks do (hot.h): "[held flock /var/lock/app, taken in commit]
 * 20.13ms". A reader of the trace finds the waits that these holds explain
 * (scripts/tool/why/relock.h).
 *
 * A hold is logged if it was waited for or is long: GOTRACE_HOLD_MIN, or 10 us for some time after
 * a wait for any file lock. A process that ends with the lock of a file that it has opened gives it
 * up then. If it did not open the file, another process may keep the lock, and no hold is logged.
 *
 * A descriptor with such a lock has the kind GT_FD_LOCKED, or GT_FD_LOCKED_NEW if this process made
 * it. So a close costs one comparison. Any
 * context.
 */
#pragma once

#include "fds.h"

#include "preload/shared/leaves.h"

#include <fcntl.h>

struct gt_thread;

/* A call that began at `since` has taken fd's lock by flock, at pc. */
void gt_file_lock_flocked(int fd, uint64_t since, const void *pc);

/*
 * A call inside `hook` has locked, as gt_file_lock_flocked says, or unlocked the record that it has
 * read from *what. An unlock was told before by gt_file_lock_unrecord.
 */
void gt_file_lock_recorded(enum gt_hook hook, int fd, const struct flock *what, uint64_t since,
                           const void *pc);

/*
 * The caller is about to give up, inside `hook`, flock's lock; the records in *what, which may be
 * unreadable, or take others; all of fd's locks.
 */
void gt_file_lock_unflock(enum gt_hook hook, int fd);
void gt_file_lock_unrecord(enum gt_hook hook, int fd, const struct flock *what);
void gt_file_lock_close_slow(enum gt_hook hook, int fd);

static inline void gt_file_lock_close(enum gt_hook hook, int fd)
{
    if (__builtin_expect(fd >= 0 && gt_fd_known(fd) >= GT_FD_LOCKED, 0))
        gt_file_lock_close_slow(hook, fd);
}

/* The process ends, by t's thread, inside the guard. */
void gt_file_locks_end(struct gt_thread *t);

/* In a forked child: flock's locks are the parent's, too, and the others the parent's alone. */
void gt_file_locks_after_fork(void);
