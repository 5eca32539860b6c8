/*
 * Files and lines of a unit's code. libdw keeps at least 40 bytes for each row of a line table
 * until its handle is closed. We copy the rows in 12 bytes each, and close handles in between.
 */
#pragma once

#include "symbolize/elf/elfutils.h"

struct gt_lines {
    struct gt_line {
        uint32_t at, line, file; /* for base + at up to the next row; file UINT32_MAX: a gap */
    } * row;
    const char **file;
    size_t n, files;
    bool read;
};

struct gt_line_reader {
    struct gt_units *units; /* its handle, the caller's, is used first */
    Elf *elf;
    Dwarf *alt;   /* the caller's: dwz's common part, or NULL */
    Dwarf *dwarf; /* the handle that is open now */
    size_t rows;  /* rows read through that handle */
};

/* Reads the table of the unit whose DIE is at the offset: the rows, and the files unless they are
 * known. */
void gt_lines_read(struct gt_lines *lines, struct gt_line_reader *reader, Dwarf_Off unit_die);

/* Closes the reader's handle. */
void gt_line_reader_close(struct gt_line_reader *reader);

/* The row for an ELF address, or NULL. */
const struct gt_line *gt_lines_find(const struct gt_lines *lines, uint64_t base, uint64_t addr);

/* The name of a file by its number in the unit, or NULL. */
const char *gt_lines_file(const struct gt_lines *lines, uint64_t number);
