/*
 * The generation that is written now: what threads queue of it, and its end, when all of them move
 * on to the next one (switch.h) and it is put into the file or kept by the flight recorder. Drain
 * side only.
 */
#ifndef GT_GENERATION_H
#define GT_GENERATION_H

#include "drain.h"
#include "ring.h"

/* The first one. mute: nothing is recorded yet. config: of all, valid until there are none. */
void gt_generation_init(const struct gt_drain_config *config, bool mute);

/* From here on writers can be entered. */
void gt_generation_open(void);

/* From a mute one to one that is written, to a file that is open or for the flight recorder. */
void gt_generation_begin(void);

/* From a mute one to another, for renewal.h. */
void gt_generation_renew(void);

/* From a mute one to none: threads are not followed any more. */
void gt_generation_leave(void);

/* What comes after one that is written. */
enum gt_successor {
    GT_SUCCESSOR_WRITTEN,
    GT_SUCCESSOR_MUTE, /* the recording ends */
    GT_SUCCESSOR_NONE, /* and threads are not followed any more */
};

/* Closes it and opens the next: the file is complete up to now. 0 or -errno. */
int gt_generation_write(enum gt_successor next);

/* The same into the flight recorder's ring. What the ring cannot take is forgotten. */
void gt_generation_keep(enum gt_successor next);

/* What is queued of it up to now, into the file; in v2 alone that is possible. */
void gt_generation_write_queued(void);

/* One that was kept, into the file. 0 or -errno. */
int gt_generation_write_kept(const struct gt_kept *kept);

/* In a forked child: there is none. */
void gt_generation_after_fork(void);

#endif
