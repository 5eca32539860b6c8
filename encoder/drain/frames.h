/* The frames of stacks. Each PC is symbolized once in an era. Drain side only. */
#pragma once

#include "drain_config.h"
#include "encoder/base/memo.h"
#include "encoder/format/format.h"

struct gt_named_frame {
    uint64_t pc;                            /* differs from that of every other frame */
    struct gt_string *func, *file, *module; /* module may be NULL */
    uint32_t line;
    uint32_t entry;   /* v1/elf.c: its number in the line table; 0: not in it */
    uint32_t routine; /* v1/tables.c, Go 1.5's format: trace in which a goroutine began here */
};

/* config: the functions to ask from here on. */
void gt_frames_init(const struct gt_drain_config *config);

/* Whether the reader of the file looks names up: config->names_later. */
bool gt_frames_named_later(void);

/* Stacks passed from here on are of that time: see config->of_time. */
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
