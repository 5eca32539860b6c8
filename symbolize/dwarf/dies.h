/*
 * Walks the DIEs of a unit: finds where each DIE is, what it is, and where the next one begins.
 *
 * libdw reads each attribute of each DIE for that. Here the size of a DIE's attributes is computed
 * once for each abbreviation, and then skipped. Most of a large program's units are types, which no
 * walk wants.
 *
 * The sections may be damaged: no DIE is taken that lies outside its unit or before the last DIE.
 */
#pragma once

#include "encoder/base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The common properties of all DIEs of one abbreviation. In most abbreviations at most one
 * attribute varies in size: a location.
 */
struct gt_shape {
    uint32_t specs; /* offset of its attributes in .debug_abbrev; 0: no such abbreviation */
    uint16_t tag;
    uint16_t size;       /* of all attributes without the varying one, or GT_SIZE_VARIES */
    uint16_t sibling_at; /* offset of the four-byte sibling attribute, or GT_SIZE_VARIES */
    uint16_t varying;    /* form of the varying attribute; 0: none varies */
    uint16_t varying_at; /* offset of the varying attribute */
    bool parent;         /* children follow */
    bool declares, inlined, has_code;
};

enum { GT_SIZE_VARIES = UINT16_MAX };

struct gt_dwarf_section {
    const uint8_t *at;
    size_t size;
};

/* A unit. The caller sets all fields but the shapes. */
struct gt_dies {
    struct gt_dwarf_section unit;   /* from its header on */
    struct gt_dwarf_section abbrev; /* the abbreviations of all units */
    uint64_t abbrevs;               /* offset of the unit's own abbreviations */
    uint16_t version;
    uint8_t address_size, offset_size;
    struct gt_shape *shape; /* by abbreviation code */
    size_t shapes;          /* number of elements */
};

struct gt_die {
    const uint8_t *at, *attributes;
    const struct gt_shape *shape;
};

/* Reads the abbreviations. false: damaged, or no memory. */
bool gt_dies_open(struct gt_dies *dies, struct gt_arena *arena);

/* The DIE at an offset from the unit's start; false: none. */
bool gt_die_at(const struct gt_dies *dies, size_t offset, struct gt_die *die);

/* The first child of a DIE; false: none. */
bool gt_die_child(const struct gt_dies *dies, const struct gt_die *die, struct gt_die *child);

/* Moves on to the next sibling; false: it was the last. */
bool gt_die_next(const struct gt_dies *dies, struct gt_die *die);
