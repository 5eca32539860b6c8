/*
 * What the black box (base/box.h) says of the recording: all that `gotrace recover` needs besides
 * the memory in the box. Drain side only.
 *
 * A generation is committed when it is in the trace's file, or kept by the flight recorder. Its
 * buffers are given back after that. So at any moment all that threads have written is in the file
 * or in the box, and it is known which. Each pair below has two versions: the one with the later
 * number is valid, and the number is written last.
 */
#pragma once

#include "encoder/base/box.h"
#include "encoder/base/clock.h"
#include "encoder/format/origin.h"
#include "encoder/format/setup.h"

#include <limits.h>

struct gt_live {
    uint64_t pid;
    char format[16];
    uint8_t sched; /* 1: CPU state is wanted, Ps are CPUs; any byte if the box is damaged */
    struct gt_origin origin;
    char setup[GT_SETUP_MAX]; /* without the CPU's model */
    _Atomic uint64_t hz;      /* of the trace's clock */
    struct gt_live_begun {
        _Atomic uint32_t gen; /* 0: this version is not valid */
        struct gt_clock_snapshot snapshot;
        uint64_t from; /* no event is earlier */
        uint32_t procs;
    } begun[2]; /* by parity */
    struct gt_live_whole {
        _Atomic uint32_t gen; /* up to this generation all is in the file */
        uint64_t bytes;       /* the file's length then; 0: there is no file yet */
        uint64_t device, inode;
        char path[PATH_MAX];
    } whole[2];
};
_Static_assert(sizeof(struct gt_live) <= GT_BOX_LIVE, "its place");

#define GT_LIVE_SUFFIX ".live"

/*
 * A hash of the layout of structures in a box; names: a hash of the names that low numbers in a
 * stack stand for.
 */
uint64_t gt_live_layout(uint64_t names);

/*
 * Opens a box with room for `memory` bytes of buffers. If a killed process has left a box at that
 * path, that box and its trace are renamed, with the process's number. If there can be no box,
 * says why. past: the generation before the first one; in a forked child it has a number of the
 * parent's.
 */
struct gt_drain_config;
void gt_live_open(const struct gt_drain_config *config, size_t memory, uint32_t past);

/* Generation gen begins. */
void gt_live_begin(uint32_t gen, const struct gt_clock_snapshot *snapshot);

/*
 * All up to generation gen is in the file now. path NULL: the file stays. "": the flight recorder
 * has kept what it keeps. Else the path of the file that comes next.
 */
void gt_live_commit(uint32_t gen, const char *path);

/* The process ends in an orderly way: removes the box. */
void gt_live_remove(void);

/* In a forked child: the box belongs to the parent. */
void gt_live_after_fork(void);
