/*
 * Functions that a program makes at run time: who was at an address, and when. Such code is moved,
 * freed and replaced at the same place, so each entry has the two moments (CLOCK_MONOTONIC, ns)
 * between which it came; of a jitdump they are one. A later entry replaces an earlier one for the
 * addresses that both have. Where it is not known who of several it was, all are named, or none:
 * never just the wrong one. One thread at a time.
 */
#ifndef GT_MADE_H
#define GT_MADE_H

#include "encoder/base/arena.h"

#include <stdatomic.h>
#include <stdint.h>

struct gt_sym_frame;

struct gt_made_lines {
    uint32_t n;
    struct gt_made_line {
        uint32_t at, line; /* from the function's beginning + at on */
        const char *file;
    } line[];
};

struct gt_made_code {
    uint64_t lo, hi;
    uint64_t since, known;             /* it came between these */
    const char *name;                  /* NULL: from then on nothing is there */
    const struct gt_made_lines *lines; /* by `at`, ascending; or NULL */
};

struct gt_made {
    struct gt_vector codes; /* struct gt_made_code, as they came */
    size_t n, room;         /* room: with so many, those that are replaced are dropped */
    struct gt_vector index; /* of the first so many */
    size_t indexed;
    uint64_t dropped_ns; /* of what was there before, something may be missing */
    size_t gone;         /* the first so many are not there any more, */
    uint64_t gone_ns;    /* at the latest from then on */
    bool broken;         /* there was no memory for an entry: nothing is known any more */
    _Atomic bool changing;
    char text[512];
    struct gt_arena arena; /* names and lines */
};

/* Around additions. The first may move all that is there, and drops what others have replaced. */
void gt_made_begin(struct gt_made *made);
void gt_made_end(struct gt_made *made);

/* What there is so far is gone, at the latest now: what follows is all that there is. */
void gt_made_all_gone(struct gt_made *made, uint64_t now_ns);

/*
 * Adds one that came last. Its name, `length` bytes, is copied; lines are in the arena, or NULL.
 * What can be no code of a program's is left out.
 */
void gt_made_add(struct gt_made *made, const struct gt_made_code *code, size_t length);

/*
 * Who was at the address in that time. false: nobody, or that is not known. Strings live until the
 * next call, or gt_made_begin.
 */
bool gt_made_find(struct gt_made *made, uint64_t pc, uint64_t begin_ns, uint64_t end_ns,
                  struct gt_sym_frame *frame);

/* The newest one that begins there and is still named, or NULL; valid as long. */
const struct gt_made_code *gt_made_at(struct gt_made *made, uint64_t lo);

/* Forgets all. */
void gt_made_clear(struct gt_made *made);

/* In a forked child, which has the code as well. */
void gt_made_inherit(struct gt_made *made);

#endif
