/*
 * Copies of threads' stacks, as the kernel makes them for us (perf.h): how much memory their rings
 * may take, and walking them, but not while code is unloaded.
 */
#ifndef GT_COPIES_H
#define GT_COPIES_H

#include "perf.h"

/*
 * The stack of a sample into pcs, at most GT_FRAMES_MAX, as gt_stacks_get wants it with *epoch; how
 * many. Without callers just what was interrupted. *cut: the copy does not tell it all.
 */
typedef uint32_t gt_walk_fn(const struct gt_perf_sample *sample, bool callers, uint64_t *pcs,
                            uint32_t *epoch, bool *cut);

/* walk: NULL: no copies are wanted. */
void gt_copies_init(gt_walk_fn *walk);
bool gt_copies_are_walked(void);

/* Of a stack so much is copied: the less, the more rings. With what is beside it in a record. */
enum { GT_COPY_MOST = 32 << 10, GT_COPY_LEAST = 8 << 10 };

/* Bytes that another ring should take, at most; and whether there is room for one of so many. */
size_t gt_copies_share(void);
bool gt_copies_have_room(size_t bytes);

/* A ring of so many bytes has begun; or, less than 0, ended. */
void gt_copies_count(int64_t bytes);

/* See gt_walk_fn. Drain side. */
uint32_t gt_copies_walk(const struct gt_perf_sample *sample, uint64_t *pcs, uint32_t *epoch,
                        bool *cut);

/*
 * Around an unloading of code: samples of it are walked before, unless our thread takes more than
 * 0.1 s; and meanwhile none is walked: they are told without callers. Waits for a walk that is
 * under way, 1 s at most. Any thread, not in signal handlers.
 */
void gt_copies_hold(void);
void gt_copies_go_on(void);

/* For that: the rings are to be emptied; and those of this request and all before are. */
bool gt_copies_are_awaited(void);
uint32_t gt_copies_request(void);
void gt_copies_serve(uint32_t request);

/* In a forked child: rings are the parent's. */
void gt_copies_after_fork(void);

#endif
