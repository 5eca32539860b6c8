/*
 * The trace file. Drain side only, one thread at a time.
 *
 * If the drain thread could not get a descriptor table of its own, the descriptor lives in the
 * program's table, where the program may close or replace it. So before every write we check that
 * the descriptor still refers to our file, and reopen the file if not. The file is locked with
 * flock(2) while it is written. After gt_output_commit the file on disk is a readable trace; a
 * failed write cuts the file back to the last commit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Creates the file, with mode 0600; it appears under its name at the first commit. An existing
 * file is overwritten only if no other user can have placed it. -ELOOP: it is a symbolic link.
 * -EPERM: it is a file or FIFO of another user. -EMLINK: it has other names. Waits 1 s for a
 * FIFO's reader (-ENXIO). fresh: the path must not exist (-EEXIST). 0 or -errno.
 */
int gt_output_open(const char *path, bool fresh);

/*
 * Opens the file that follows the open one, as gt_output_open does. The open one stays the one
 * that is written: when it is closed, gt_output_open with this path goes on in the prepared file.
 */
int gt_output_prepare(const char *path);

/* Allocates the memory that writing needs, once. false: no memory. */
bool gt_output_reserve(void);

/* The path that is really used: .<pid> is appended when `path` is another process's. */
const char *gt_output_path(void);

/* The file's device and inode; 0, 0: none, or no regular file. */
void gt_output_identify(uint64_t *device, uint64_t *inode);

/* The file's descriptor in the caller's table, or -1. */
int gt_output_descriptor(void);

/*
 * The file stays at or below this size (0: no limit): writes beyond it fail with -EFBIG, and the
 * file is cut back to what was committed. Call before gt_output_open.
 */
void gt_output_set_limit(uint64_t bytes);

/*
 * From now on gt_output_open does not overwrite a regular file that is not empty and was changed at
 * since_ns (time of day) or later, unless it is our own last file: another process of this run may
 * have written it. It takes another name. 0: such files are overwritten, too.
 */
void gt_output_spare(uint64_t since_ns);

/* Whether a write has failed because of the limit. */
bool gt_output_limited(void);

/*
 * Sets a function that is called now and then while the output takes nothing more (a FIFO whose
 * reader stands still). If it returns true, writing fails with -ETIMEDOUT. NULL: waits for ever.
 */
void gt_output_set_patience(bool (*in_vain)(void));

/* How long a write has been waiting; 0: none waits. Any thread. */
uint64_t gt_output_stands_ns(void);

/* Appends to the file; 0 or the first -errno, which sticks. */
int gt_output_write(const void *data, size_t size);

/* Sets an error, which sticks: what follows would be wrong. */
void gt_output_fail(int error);

/* Everything written so far is a readable trace. 0 or -errno. */
int gt_output_commit(void);

/* Empties the file and clears the error. -ESPIPE: it is not a regular file, and stays as it is. */
int gt_output_rewind(void);

/* Cuts the file back to the last commit and closes it; removes it if there was no commit. */
void gt_output_close(void);

/*
 * Makes a file beside the trace, or replaces it at once. Its name is the trace's with `suffix`
 * appended. Does nothing if the trace is not a regular file. 0 or -errno.
 */
int gt_output_beside(const char *suffix, const void *data, size_t size);

uint64_t gt_output_size(void);        /* committed bytes */
uint64_t gt_output_uncommitted(void); /* bytes since the last commit */

/* In a forked child: the file belongs to the parent. */
void gt_output_after_fork(void);
