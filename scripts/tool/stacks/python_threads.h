/* Functions of Python in the stacks of a process or a core file. */
#pragma once

#include "loaded.h"

/*
 * Looks for a Python in a running process, whose files' beginnings have been copied, or in a core
 * file, and for the threads that it knows.
 */
void gt_python_open(struct gt_still *still);
void gt_python_open_core(struct gt_still *still, const struct gt_loaded *loaded, size_t n);

/* Looks again for the threads that Python knows. */
void gt_python_meet_threads(void);

/* Copies the frames of a thread that does not run now. Its stack is copied already. */
void gt_python_copy(struct gt_still_thread *task);

/*
 * The holders of locks that are one byte. First gt_python_want for each waiter, with the address of
 * its lock's byte. Then gt_python_find_holders looks at the `with` blocks of all threads, as they
 * are now, or were when the core file was written; it may be called again. Then gt_python_holder
 * returns the one thread that is in a block of the lock and does not wait for it. NULL: no thread
 * is, or several.
 */
void gt_python_want(const struct gt_still_thread *waiter, uint64_t lock);
void gt_python_find_holders(void);
const struct gt_still_thread *gt_python_holder(uint64_t lock);

/*
 * Puts the functions of Python into the thread's stack, in place of the interpreter's function that
 * executes them; at most `max` frames. gt_python_begin_names: before, once.
 */
void gt_python_begin_names(void);
void gt_python_add_frames(struct gt_still_thread *task, size_t max);
