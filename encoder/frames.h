/* The frames of stacks, each PC symbolized once in an era. Drain side only. */
#ifndef GT_FRAMES_H
#define GT_FRAMES_H

#include "drain.h"
#include "format.h"

struct gt_named_frame {
    uint64_t pc;                            /* differs from that of every other frame */
    struct gt_string *func, *file, *module; /* module: or NULL */
    uint32_t line;
    uint32_t entry;   /* v1/elf.c: number in the line table, 0: not in it */
    uint32_t routine; /* v1/tables.c: trace in which a goroutine began here, in Go 1.5's format */
};

/* config: what to ask from here on. */
void gt_frames_init(const struct gt_drain_config *config);

/* Whether names are for who reads the file to look up: config->names_later. */
bool gt_frames_named_later(void);

/* Stacks that are asked for from here on are of that time: see config->of_time. */
void gt_frames_of_time(uint64_t begin_ns, uint64_t end_ns);

/* The frames of s, leaf first, valid until gt_frames_forget. Returns how many. */
uint32_t gt_frames_of(const struct gt_stack *s, struct gt_named_frame *out[GT_FRAMES_MAX]);

/* Looks them up for later, as long as there is time. */
void gt_frames_look_ahead(const struct gt_stack *s, bool (*has_time)(void));

/* An era has begun. */
void gt_frames_forget(void);

#endif
