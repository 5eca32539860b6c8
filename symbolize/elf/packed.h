/*
 * Debug sections that zlib has compressed, read and unpacked only as far as needed: of libc's 9 MB
 * a program needs a few units. The sections get room behind the file in its image; libelf takes
 * them for sections that never were compressed.
 *
 * libdw knows nothing of this: its caller must first call gt_packed_need for all that libdw will
 * read.
 */
#pragma once

#include "image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Three sections are unpacked piece by piece; the rest are small, or read all over. */
enum gt_packed_section {
    GT_PACKED_INFO,
    GT_PACKED_ABBREV,
    GT_PACKED_LINE,
    GT_PACKED_REST,
    GT_PACKED_SECTIONS = 11,
};

struct gt_packed_sections {
    const struct gt_image *image;
    struct gt_unpacking {
        uint8_t *to; /* NULL: the section is not compressed, or libelf unpacks it */
        size_t size, done;
        uint64_t at, end; /* the part of the file that is not unpacked yet */
        uint8_t *held;    /* a copy of the file from held_at to end, or NULL */
        uint64_t held_at;
        bool failed;
        struct gt_window *window; /* until the section is unpacked */
    } section[GT_PACKED_SECTIONS];
};

/*
 * Prepares an image for libelf, which must not have read it yet, since the image moves. Unpacks
 * nothing. false: the image is damaged and offers no debug information.
 */
bool gt_packed_open(struct gt_packed_sections *packed, struct gt_image *image);
void gt_packed_close(struct gt_packed_sections *packed);

/* Reads the rest of the sections without unpacking it: the file may be out of reach from now on. */
void gt_packed_hold(struct gt_packed_sections *packed);

/* Unpacks a section up to the offset; SIZE_MAX: to its end. false: damaged. */
bool gt_packed_need(struct gt_packed_sections *packed, enum gt_packed_section section, size_t upto);

/* Unpacks all sections from `first` on, to their ends. Called with GT_PACKED_REST before libdw sees
 * any section. */
bool gt_packed_need_from(struct gt_packed_sections *packed, enum gt_packed_section first);

/* Unpacks the table of abbreviations at the offset, which ends with an entry 0. */
bool gt_packed_need_abbrevs(struct gt_packed_sections *packed, size_t offset);
