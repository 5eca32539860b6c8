/*
 * Where and when a trace was recorded. It says which process of which boot of which host has
 * recorded. It also says what the counter behind the trace's clock, CLOCK_MONOTONIC and the time of
 * day were at one moment. `gotrace merge` uses it to put traces of several processes on one
 * timeline.
 *
 * It stands in a file once, with the first generation. No event refers to it. In v2 it is a string
 * that begins with GT_ORIGIN. In v1 it is the numbers of a stack with the id 0: first GT_V1_ORIGIN,
 * then the numbers of struct gt_origin as LEB128.
 */
#pragma once

#include "encoder/base/varint.h"

#include <stdint.h>

#define GT_ORIGIN "gotrace-origin "
#define GT_V1_ORIGIN 0x6e696769726fu /* "origin" */

enum { GT_ORIGIN_WORDS = 4 };

/* Numbers alone, in the order in which they stand in a file. */
struct gt_origin {
    uint64_t boot[2];                  /* the kernel's boot id; 0: not known */
    uint64_t hardware;                 /* 1: the CPUs' counter, which all processes share */
    uint64_t counter, units;           /* at one moment; units: of the trace's clock */
    uint64_t ticks;                    /* ticks of the counter in a unit, times 2^32 */
    uint64_t mono_ns, wall_s, wall_ns; /* at the same moment */
    uint64_t pid;                      /* 0: of several processes, or not known */
    uint64_t parent, forker, forked;   /* process and thread that forked it, counter then; else 0 */
    uint64_t program[GT_ORIGIN_WORDS], host[GT_ORIGIN_WORDS]; /* their bytes, filled up with 0 */
};

enum { GT_ORIGIN_NUMBERS = sizeof(struct gt_origin) / sizeof(uint64_t) };
enum { GT_ORIGIN_MAX = sizeof GT_ORIGIN + GT_ORIGIN_NUMBERS * GT_VARINT_MAX };

/* From here on this process records. program: its name, or NULL. */
void gt_origin_open(const char *program);

/* The origin of this process. */
struct gt_origin gt_origin_here(void);

/* Writes GT_ORIGIN and the origin of this process, or that of gt_origin_use. Returns the length. */
uint32_t gt_origin_text(uint8_t text[GT_ORIGIN_MAX]);

/*
 * Sets the origin to write, for a program that writes what another recorded. NULL: it is unknown.
 */
void gt_origin_use(const struct gt_origin *origin);

/*
 * In a forked child. gt_origin_forked_by then names the parent's thread that forked, by its kernel
 * id, and the counter while that thread still ran: it may be waiting for the child already. counter
 * 0: about now.
 */
void gt_origin_after_fork(void);
void gt_origin_forked_by(uint32_t tid, uint64_t counter);

/* The thread that has made this process, and the counter then; zeros: not known. */
struct gt_maker {
    uint64_t process, thread, counter;
};
struct gt_maker gt_origin_maker(void);

/* For a process that has called exec: the program before has left this maker. */
void gt_origin_made_by(const struct gt_maker *maker);
