/*
 * Files and lines of a unit's code. libdw keeps 40 bytes and more for each row of a line table for
 * as long as its handle lives: the rows are taken over in 12 and handles given back in between.
 */
#ifndef GT_LINES_H
#define GT_LINES_H

#include "elfutils.h"
#include "encoder/base/arena.h"

struct gt_lines {
    struct gt_line {
        uint32_t at, line, file; /* from base + at up to the next row; the file UINT32_MAX: a gap */
    } * row;
    const char **file;
    size_t n, files;
    bool read;
};

struct gt_line_reader {
    const struct gt_units *units; /* with the caller's handle, the first */
    Elf *elf;
    Dwarf *alt;   /* dwz's common part or NULL, the caller's */
    Dwarf *dwarf; /* open now, with so many rows read through it */
    size_t rows;
};

/* Reads the table of the unit whose DIE is at the offset. */
void gt_lines_read(struct gt_lines *lines, struct gt_line_reader *reader, Dwarf_Off unit_die);

/* Gives the reader's handle back. */
void gt_line_reader_close(struct gt_line_reader *reader);

/* The row for an ELF address, or NULL. */
const struct gt_line *gt_lines_find(const struct gt_lines *lines, uint64_t base, uint64_t addr);

/* The name of a file by its number in the unit, or NULL. */
const char *gt_lines_file(const struct gt_lines *lines, uint64_t number);

#endif
