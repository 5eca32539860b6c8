/*
 * `gotrace top --holders` and `--by-lock`: which threads held contended locks, and what they did.
 */
#pragma once

#include "encoder/read/threads.h"

/* Adds a wait of the trace that is being read, with gt_threads.keep_history. */
void gt_top_locks_add(const struct gt_threads *threads, const struct gt_span *span, bool by_lock);

/*
 * Locks on files: no event says that a call waits for one. note_call: the thread has made that
 * call. note_hold: the hold of a lock is over; if a call had taken the lock, the call was a wait
 * for it.
 */
void gt_top_locks_note_call(const struct gt_span *span);
void gt_top_locks_note_hold(const struct gt_threads *threads, const struct gt_lock_state *lock,
                            const struct gt_hold_state *hold, bool by_lock);

/* Prints at most `most` rows. */
void gt_top_locks_print(const struct gt_threads *threads, bool by_lock, size_t most);
