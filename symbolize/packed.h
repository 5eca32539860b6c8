/*
 * Debug sections compressed by zlib, read and unpacked as far as they are needed: of libc's 9 MB a
 * program asks for a few units. They get room behind the file in its image; libelf takes them for
 * sections that never were compressed.
 *
 * libdw knows nothing of this: whoever calls it asks here first for all that it will read.
 */
#ifndef GT_PACKED_H
#define GT_PACKED_H

#include "image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Three that are unpacked piece by piece, and more that are small or read all over. */
enum gt_packed_section {
    GT_PACKED_INFO,
    GT_PACKED_ABBREV,
    GT_PACKED_LINE,
    GT_PACKED_REST,
    GT_PACKED_SECTIONS = 11,
};

struct gt_packed {
    const struct gt_image *image;
    struct gt_unpacking {
        uint8_t *to; /* NULL: the section is not compressed, or libelf's affair */
        size_t size, done;
        uint64_t at, end; /* what is left in the file */
        uint8_t *held;    /* NULL, or that part of the file, from held_at to end */
        uint64_t held_at;
        bool failed;
        struct gt_window *window; /* while not all is done */
    } section[GT_PACKED_SECTIONS];
};

/*
 * Prepares an image for libelf, which must not have seen it: it moves. Unpacks nothing. False: it
 * is damaged, there is no debug information.
 */
bool gt_packed_open(struct gt_packed *packed, struct gt_image *image);
void gt_packed_close(struct gt_packed *packed);

/* Reads what is left in the file, as it is: the file may be out of reach from now on. */
void gt_packed_hold(struct gt_packed *packed);

/* From now on the section can be read up to the offset; SIZE_MAX: to its end. False: damaged. */
bool gt_packed_need(struct gt_packed *packed, enum gt_packed_section section, size_t upto);

/* The same of all sections from one on, to their ends. GT_PACKED_REST before libdw sees any. */
bool gt_packed_need_from(struct gt_packed *packed, enum gt_packed_section first);

/* The table of abbreviations at the offset, which ends with an entry 0. */
bool gt_packed_need_abbrevs(struct gt_packed *packed, size_t offset);

#endif
