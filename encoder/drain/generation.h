/*
 * The generation that is written now: the buffers that threads queue, and its end. At its end all
 * threads move on to the next generation (switch.h), and it goes to the file or the flight
 * recorder. Drain side only.
 */
#pragma once

#include "encoder/file/kept_generation.h"

/*
 * The number before the first generation's: 0, or in a forked child the parent's last. Called
 * before gt_generation_init.
 */
uint32_t gt_generation_past(void);

/* Prepares the first generation. mute: nothing is recorded yet. */
void gt_generation_init(bool mute);

/* From here on writers can be entered. */
void gt_generation_open(void);

/* From a mute generation to one that is written to a file or kept by the flight recorder. */
void gt_generation_begin(void);

/* From a mute generation to another mute one, for renewal.h. */
void gt_generation_renew(void);

/* From a mute generation to none: threads are not followed any more. */
void gt_generation_stop(void);

/* What follows a generation that is written. */
enum gt_successor {
    GT_SUCCESSOR_WRITTEN,
    GT_SUCCESSOR_ELSEWHERE, /* to another file */
    GT_SUCCESSOR_MUTE,      /* the recording ends */
    GT_SUCCESSOR_NONE,      /* and threads are not followed any more */
};

/*
 * Looks up names that the generation written now needs, as long as has_time. Closing it is faster
 * after that; at the program's end the trace ends where it is closed.
 */
void gt_generation_look_ahead(bool (*has_time)(void));

/*
 * Closes the generation and opens the next. The closed one must be written before the next is
 * closed.
 */
void gt_generation_close(enum gt_successor next);

/*
 * Looks up all names that the closed generation needs. Called before a file is made, so that the
 * file is complete at once.
 */
void gt_generation_look_up(void);

/*
 * Writes the closed generation: the file is complete up to its end. whole: marks the file as
 * missing nothing, should nothing follow. 0 or -errno.
 */
int gt_generation_write(bool whole);

/*
 * Writes the closed generation as a file's last one, and the file's end. next: the path of the
 * file that follows.
 */
int gt_generation_write_last(const char *next);

/*
 * Writes the end of a file: threads that wait now have waited until now, and nothing is missing.
 * Called after the last generation was written, or for a flight recorder that goes on, after all
 * that it holds. 0 or -errno.
 */
int gt_generation_write_end(bool goes_on);

/* After the end: forgets the statuses with which the next generation would have begun. */
void gt_generation_forget(void);

/*
 * Closes the generation and puts it into the flight recorder's ring. What the ring cannot take is
 * forgotten.
 */
void gt_generation_keep(enum gt_successor next);

/* Writes the buffers that are queued so far to the file; possible in v2 only. */
void gt_generation_write_queued(void);

/*
 * Writes a kept generation to the file. 0 or -errno. gt_generation_look_up_kept looks up its names
 * before: see gt_generation_look_up.
 */
int gt_generation_write_kept(const struct gt_kept *kept);
void gt_generation_look_up_kept(const struct gt_kept *kept);

/* Events written so far, in all recordings. Any thread. */
uint64_t gt_generation_events(void);

/* In a forked child: there is no generation. */
void gt_generation_after_fork(void);
