/*
 * What the black box (base/box.h) says of the recording: all that `gotrace recover` needs beside
 * the memory that is in it. Drain side only.
 *
 * A generation is in the trace's file, or kept by the flight recorder, from a commit on; its
 * buffers are given back after that. So at any moment what threads have written is in the file or
 * in the box, and it is known what is where: of each pair below the one with the later number is
 * true, and the number is written last.
 */
#ifndef GT_LIVE_H
#define GT_LIVE_H

#include "format.h"
#include "origin.h"

#include "encoder/base/box.h"
#include "encoder/base/clock.h"

#include <limits.h>

struct gt_live {
    uint64_t pid;
    char format[16];
    uint8_t sched; /* 1: CPU state is wanted, Ps are CPUs in the file; a damaged box has any byte */
    struct gt_origin origin;
    _Atomic uint64_t hz; /* of the trace's clock */
    struct gt_live_begun {
        _Atomic uint32_t gen; /* 0: nothing of it is written */
        struct gt_clock_snapshot snapshot;
        uint64_t from; /* no event is from before that */
        uint32_t procs;
    } begun[2]; /* by parity */
    struct gt_live_whole {
        _Atomic uint32_t gen; /* up to here it is in the file */
        uint64_t bytes;       /* which is so long then; 0: there is none yet */
        uint64_t device, inode;
        char path[PATH_MAX];
    } whole[2];
};
_Static_assert(sizeof(struct gt_live) <= GT_BOX_LIVE, "its place");

#define GT_LIVE_SUFFIX ".live"

/* Of the structures that are in a box; names: of what low numbers in a stack are called. */
uint64_t gt_live_layout(uint64_t names);

/*
 * Opens a box, for so much memory of buffers. What a killed process has left in that place gets
 * another name, with its number, and so does its trace. Where there can be none, why is said.
 * past: the generation before the first one, which in a forked child has a number of its parent's.
 */
struct gt_drain_config;
void gt_live_open(const struct gt_drain_config *config, size_t memory, uint32_t past);

/* Generation gen begins. */
void gt_live_begin(uint32_t gen, const struct gt_clock_snapshot *snapshot);

/*
 * Up to generation gen all is in the file now; path: where it will be, or NULL: where it is, or
 * "": the flight recorder has kept what it keeps.
 */
void gt_live_commit(uint32_t gen, const char *path);

/* The process ends well. */
void gt_live_remove(void);

/* In a forked child: the box is the parent's. */
void gt_live_after_fork(void);

#endif
