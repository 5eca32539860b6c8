/* The frames of stacks. Each PC is symbolized once in an era. Drain side only. */
#pragma once

#include "encoder/base/memo.h"
#include "encoder/format/format.h"
#include "encoder/thread/stacks.h"

#include <stdbool.h>
#include <stdint.h>

struct gt_frame {
    const char *func, *file; /* valid until the next call of resolve */
    uint32_t line;
    /*
     * The address to show, for the outermost frame at an address; else 0. In this process no other
     * code has ever had that address.
     */
    uint64_t pc;
    bool passing; /* at this address there may be other code at another time */
    /*
     * NULL, or what a reader has to know to find that code again. It is in the table of strings,
     * and no event refers to it.
     */
    const char *module;
};

/*
 * Names for addresses: implemented by the library (preload/process/process_names.c) and by commands
 * that write a trace. The drain side calls them. All but resolve may be NULL.
 */
struct gt_frame_names {
    /*
     * Finds the frames at s->pcs[index], innermost inlined function first. Fills at most max,
     * returns their number, at least 1.
     */
    int (*resolve)(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max);
    /*
     * From here on resolve is asked for stacks of that time, CLOCK_MONOTONIC; or NULL. 0, 0: of a
     * time that is not over, for which code that may be replaced at another time is not wanted.
     */
    void (*of_time)(uint64_t begin_ns, uint64_t end_ns);
    /* Whether pc has the same code, and so the same frames, in both epochs; NULL: never known. */
    bool (*same)(uint64_t pc, uint32_t one, uint32_t other);
};

struct gt_named_frame {
    uint64_t pc;                            /* differs from that of every other frame */
    struct gt_string *func, *file, *module; /* module may be NULL */
    uint32_t line;
    uint32_t entry;   /* v1/elf.c: its number in the line table; 0: not in it */
    uint32_t routine; /* v1/tables.c, Go 1.5's format: trace in which a goroutine began here */
};

/* From here on `names`, valid for ever, is asked. later: the reader of the file looks names
 * up. */
void gt_frames_init(const struct gt_frame_names *names, bool later);

bool gt_frames_named_later(void);

/* Stacks passed from here on are of that time: see gt_frame_names.of_time. */
void gt_frames_of_time(uint64_t begin_ns, uint64_t end_ns);

/* Finds the frames of s, leaf first, valid until gt_frames_forget. Returns their number. */
uint32_t gt_frames_of(const struct gt_stack *s, struct gt_named_frame *out[GT_FRAMES_MAX]);

/* Adds to `wanted` the addresses of s that are not symbolized yet. Zero-initialised at first. */
void gt_frames_want(struct gt_memo *wanted, const struct gt_stack *s);

/*
 * Symbolizes the wanted addresses for later, as long as goes_on, and empties `wanted`. The order is
 * that of addresses: the symbolizer needs the debug information of one source file at a time.
 */
void gt_frames_look_up(struct gt_memo *wanted, bool (*goes_on)(void));

/* An era has begun: forgets all frames. */
void gt_frames_forget(void);
