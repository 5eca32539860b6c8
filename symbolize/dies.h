/*
 * The DIEs of a unit one after the other, as far as a walk asks: where each is, what it is, where
 * the next one begins. For that libdw looks at each attribute of each; here an abbreviation says
 * once how much is to be passed over. Most of a large program's units are types, which no walk
 * wants.
 *
 * Nothing that the sections say is believed: no DIE lies outside its unit, or before the last one.
 */
#ifndef GT_DIES_H
#define GT_DIES_H

#include "encoder/base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What an abbreviation says of all DIEs that have it. Mostly no value of theirs varies in size, or
 * one does: a location.
 */
struct gt_shape {
    uint32_t specs; /* where in the section its attributes begin; 0: there is none such */
    uint16_t tag;
    uint16_t size;       /* of all attributes, but for a varying one, or GT_SIZE_VARIES */
    uint16_t sibling_at; /* behind so many bytes of them, in four; or GT_SIZE_VARIES */
    uint16_t varying;    /* the form of the one that varies; 0: none does */
    uint16_t varying_at; /* behind so many bytes of them */
    bool parent;         /* children follow */
    bool declares, inlined, has_code;
};

enum { GT_SIZE_VARIES = UINT16_MAX };

struct gt_section {
    const uint8_t *at;
    size_t size;
};

/* A unit: set all but the shapes. */
struct gt_dies {
    struct gt_section unit;   /* from its header on */
    struct gt_section abbrev; /* all of them */
    uint64_t abbrevs;         /* where its own begin */
    uint16_t version;
    uint8_t address_size, offset_size;
    struct gt_shape *shape; /* by code, up to */
    size_t shapes;
};

struct gt_die {
    const uint8_t *at, *attributes;
    const struct gt_shape *shape;
};

/* Reads the abbreviations. false: damaged, or no memory. */
bool gt_dies_open(struct gt_dies *dies, struct gt_arena *arena);

/* The DIE so far from the unit's start; false: none. */
bool gt_die_at(const struct gt_dies *dies, size_t offset, struct gt_die *die);

/* The first one in it; false: none. */
bool gt_die_child(const struct gt_dies *dies, const struct gt_die *die, struct gt_die *child);

/* Moves on to its sibling; false: it was the last. */
bool gt_die_next(const struct gt_dies *dies, struct gt_die *die);

#endif
