/*
 * Names for the addresses of a Go 1.5 trace, from the line table that file/v1/elf.c wrote beside
 * it.
 */
#pragma once

#include "bytes.h"
#include "contents.h"

struct gt_v1_lines {
    struct gt_bytes table; /* empty: there is none */
    uint64_t n;            /* functions in the table */
};

void gt_v1_lines_open(struct gt_v1_lines *lines, const char *trace);

/* Fills in the function, file and line of frame->pc; without a table the address is the name. */
void gt_v1_lines_find(const struct gt_v1_lines *lines, struct gt_contents *contents,
                      struct gt_where *frame);
