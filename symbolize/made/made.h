/*
 * Functions that a program makes at run time: which function was at an address, and when.
 *
 * Such code is moved, freed and replaced at the same place. So each entry has the two moments
 * (CLOCK_MONOTONIC, ns) between which the function came; in a jitdump both are equal. A later entry
 * replaces an earlier one for the addresses that both have. If it is not known which of several
 * functions was at an address, all of them are named, or none: never only the wrong one.
 *
 * One thread at a time.
 */
#pragma once

#include "encoder/base/arena.h"

#include <stdatomic.h>
#include <stdint.h>

struct gt_sym_frame;

struct gt_made_lines {
    uint32_t n;
    struct gt_made_line {
        uint32_t at, line; /* `line` begins at this offset in the function */
        const char *file;
    } line[];
};

struct gt_made_code {
    uint64_t lo, hi;
    uint64_t since, known;             /* the function came between these times */
    const char *name;                  /* NULL: nothing is there from then on */
    const struct gt_made_lines *lines; /* by `at`, ascending; or NULL */
};

struct gt_made_functions {
    struct gt_vector codes; /* struct gt_made_code, in the order in which they came */
    size_t n, room;         /* once n reaches room, replaced entries are dropped */
    struct gt_vector index; /* of the first `indexed` entries */
    size_t indexed;
    uint64_t dropped_ns; /* entries of code that was there before this time may be missing */
    size_t gone;         /* the first `gone` entries are not there any more, */
    uint64_t gone_ns;    /* at the latest from this time on */
    bool broken;         /* there was no memory for an entry: no function is known any more */
    _Atomic bool changing;
    char text[512];
    struct gt_arena arena; /* names and lines */
};

/* Called before and after additions. gt_made_begin may move all entries, and drops those that
 * others have replaced. */
void gt_made_begin(struct gt_made_functions *made);
void gt_made_end(struct gt_made_functions *made);

/* Marks all entries as gone, at the latest now. The caller then adds all functions that there are.
 */
void gt_made_all_gone(struct gt_made_functions *made, uint64_t now_ns);

/*
 * Adds an entry, the latest one. Copies its name, which has `length` bytes. Its lines are in the
 * arena, or NULL. Leaves out an entry whose addresses cannot be code of a program.
 */
void gt_made_add(struct gt_made_functions *made, const struct gt_made_code *code, size_t length);

/*
 * The function at the address in that time. false: there was none, or it is not known. Strings live
 * until the next call, or gt_made_begin.
 */
bool gt_made_find(struct gt_made_functions *made, uint64_t pc, uint64_t begin_ns, uint64_t end_ns,
                  struct gt_sym_frame *frame);

/* The newest entry that begins at `lo` and is still named, or NULL. Valid as long as the strings of
 * gt_made_find. */
const struct gt_made_code *gt_made_at(struct gt_made_functions *made, uint64_t lo);

/* Forgets all entries. */
void gt_made_clear(struct gt_made_functions *made);

/* Called in a forked child, which has its parent's code. */
void gt_made_inherit(struct gt_made_functions *made);
