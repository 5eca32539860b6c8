/*
 * Where and when a trace was recorded: by which process, of which boot of which host; and what the
 * counter behind its clock, CLOCK_MONOTONIC and the time of day were at one moment. By that traces
 * of several processes are put on one timeline (gotrace merge).
 *
 * It stands in a file once, with the first generation, where no event refers to it: in v2 as a
 * string that begins with GT_ORIGIN, in v1 as the numbers of a stack with the id 0, the first of
 * which is GT_V1_ORIGIN; the others are those of struct gt_origin, as LEB128.
 */
#ifndef GT_ORIGIN_H
#define GT_ORIGIN_H

#include "encoder/base/varint.h"

#include <stdint.h>

#define GT_ORIGIN "gotrace-origin "
#define GT_V1_ORIGIN 0x6e696769726fu /* "origin" */

enum { GT_ORIGIN_WORDS = 4 };

/* Numbers alone, in the order in which they stand in a file. */
struct gt_origin {
    uint64_t boot[2];                  /* the kernel's id of that; 0: not known */
    uint64_t hardware;                 /* 1: the CPUs' counter, which all processes share */
    uint64_t counter, units;           /* at the same moment; units: of the trace's clock */
    uint64_t ticks;                    /* of the counter, in a unit, times 2 to the 32 */
    uint64_t mono_ns, wall_s, wall_ns; /* at that moment */
    uint64_t pid;                      /* 0: of several processes, or not known */
    uint64_t parent, forker, forked;   /* whose thread forked it, and the counter then; else 0 */
    uint64_t program[GT_ORIGIN_WORDS], host[GT_ORIGIN_WORDS]; /* their bytes, filled up with 0 */
};

enum { GT_ORIGIN_NUMBERS = sizeof(struct gt_origin) / sizeof(uint64_t) };
enum { GT_ORIGIN_MAX = sizeof GT_ORIGIN + GT_ORIGIN_NUMBERS * GT_VARINT_MAX };

/* From here on this process records, which is called so, or NULL. */
void gt_origin_open(const char *program);

/* What is true of this process. */
struct gt_origin gt_origin_here(void);

/* GT_ORIGIN, and what is true of this process; or what was given. Returns its length. */
uint32_t gt_origin_text(uint8_t text[GT_ORIGIN_MAX]);

/* What is written instead, by who writes what another process recorded; NULL: nothing is known. */
void gt_origin_use(const struct gt_origin *origin);

/*
 * In a forked child; and by which thread of the parent's, as the kernel numbers them, and what the
 * counter was when that still ran: it may wait for the child already. 0: about now.
 */
void gt_origin_after_fork(void);
void gt_origin_forked_by(uint32_t tid, uint64_t counter);

/* Whose thread has made this process, and the counter then; zeros: not known. */
struct gt_maker {
    uint64_t process, thread, counter;
};
struct gt_maker gt_origin_maker(void);

/* Who is told that by another program, which this process was. */
void gt_origin_made_by(const struct gt_maker *maker);

#endif
