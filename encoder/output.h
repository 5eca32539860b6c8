/*
 * The trace file. Drain side only, one thread at a time.
 *
 * Where the drain thread could not get a descriptor table of its own, the descriptor lives in the
 * program's, which may close or replace it: before every write the file behind it is checked to be
 * ours, and reopened if it is not. The file is locked with flock(2) while it is written. What is on
 * disk after gt_output_commit is a readable trace; a failed write cuts the file back to that.
 */
#ifndef GT_OUTPUT_H
#define GT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Creates the file (mode 0600; it is seen from the first commit on), or overwrites what is there
 * when nobody else can have placed it: never through a symbolic link (-ELOOP), no file or FIFO that
 * is not ours (-EPERM), no file with other names (-EMLINK). A FIFO's reader is awaited for a second
 * (-ENXIO). fresh: nothing must be there (-EEXIST). 0 or -errno.
 */
int gt_output_open(const char *path, bool fresh);

/*
 * The same for the file after the one that is open now, which stays that: when it is closed,
 * gt_output_open with this path goes on there.
 */
int gt_output_prepare(const char *path);

/* Takes the memory that writing needs, if it has not. false: there is none. */
bool gt_output_reserve(void);

/* Where it really went: `path` with .<pid> appended when another process is writing there. */
const char *gt_output_path(void);

/* Which file it is; 0, 0: none, or no regular one. */
void gt_output_identify(uint64_t *device, uint64_t *inode);

/* Its descriptor in the caller's table, or -1. */
int gt_output_descriptor(void);

/*
 * The file stays at or below this size (0: any size): writes beyond it fail with -EFBIG, and the
 * file is cut back to what was committed. Call before gt_output_open.
 */
void gt_output_set_limit(uint64_t bytes);

/* Whether that has happened. */
bool gt_output_limited(void);

/*
 * Asked every now and then while what the trace goes to takes nothing more (a FIFO whose reader
 * stands still): whether it will do without, with -ETIMEDOUT. NULL: it waits for ever.
 */
void gt_output_set_patience(bool (*in_vain)(void));

/* How long nothing could be written that was to be; 0: that is not so. Any thread. */
uint64_t gt_output_stands_ns(void);

/* Appends; 0 or the first -errno, which sticks. */
int gt_output_write(const void *data, size_t size);

/* What follows would be wrong: the error sticks. */
void gt_output_fail(int error);

/* Everything written so far forms a whole. 0 or -errno. */
int gt_output_commit(void);

/* The file is empty again, and so is the error. -ESPIPE: no regular file, which stays as it is. */
int gt_output_rewind(void);

/* Cuts back to what was committed, and closes; nothing was: removes it. */
void gt_output_close(void);

/*
 * Makes a file beside the trace, named as it with `suffix` appended, or replaces that at once.
 * Nothing is made beside what is no regular file. 0 or -errno.
 */
int gt_output_beside(const char *suffix, const void *data, size_t size);

uint64_t gt_output_size(void);        /* committed bytes */
uint64_t gt_output_uncommitted(void); /* bytes since */

/* In a forked child: the file is the parent's. */
void gt_output_after_fork(void);

#endif
