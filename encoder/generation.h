/*
 * The generation that is written now: what threads queue of it, and its end, when all of them move
 * on to the next one (switch.h) and it goes to the file or the flight recorder. Drain side only.
 */
#ifndef GT_GENERATION_H
#define GT_GENERATION_H

#include "drain.h"
#include "ring.h"

/* The number before the first one's: 0, or in a forked child another. Before gt_generation_init. */
uint32_t gt_generation_past(void);

/* The first one. mute: nothing is recorded yet. */
void gt_generation_init(bool mute);

/* From here on writers can be entered. */
void gt_generation_open(void);

/* From a mute one to one that is written, to a file or for the flight recorder. */
void gt_generation_begin(void);

/* From a mute one to another, for renewal.h. */
void gt_generation_renew(void);

/* From a mute one to none: threads are not followed any more. */
void gt_generation_stop(void);

/* What comes after one that is written. */
enum gt_successor {
    GT_SUCCESSOR_WRITTEN,
    GT_SUCCESSOR_ELSEWHERE, /* to another file */
    GT_SUCCESSOR_MUTE,      /* the recording ends */
    GT_SUCCESSOR_NONE,      /* and threads are not followed any more */
};

/*
 * Looks up names that the one written now needs, as long as there is time: it is closed all the
 * sooner after that, and when it is the program's end, the trace ends there.
 */
void gt_generation_look_ahead(bool (*has_time)(void));

/* Closes it and opens the next. Before the next one is closed it is to be written. */
void gt_generation_close(enum gt_successor next);

/* Looks up all names that the closed one needs: before a file is made, which is whole at once. */
void gt_generation_look_up(void);

/*
 * Writes the closed one: the file is complete up to then. whole: it says that nothing is missing,
 * should nothing follow. 0 or -errno.
 */
int gt_generation_write(bool whole);

/* The same for a file's last one, and the end; next: the path of the file that follows. */
int gt_generation_write_last(const char *next);

/*
 * The end of a file: what waits now, has waited until now, and nothing is missing. After the last
 * one was written; or for a flight recorder that goes on, with all that it has. 0 or -errno.
 */
int gt_generation_write_end(bool goes_on);

/* After the end: what the next one would have begun with is not wanted any more. */
void gt_generation_forget(void);

/* The same into the flight recorder's ring. What the ring cannot take is forgotten. */
void gt_generation_keep(enum gt_successor next);

/* What is queued of it up to now, into the file; in v2 alone that is possible. */
void gt_generation_write_queued(void);

/* One that was kept, into the file. 0 or -errno. Its names before: see gt_generation_look_up. */
int gt_generation_write_kept(const struct gt_kept *kept);
void gt_generation_look_up_kept(const struct gt_kept *kept);

/* Events written so far, in all recordings. Any thread. */
uint64_t gt_generation_events(void);

/* In a forked child: there is none. */
void gt_generation_after_fork(void);

#endif
