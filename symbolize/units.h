/*
 * An index over a module's DWARF: from an address to the functions around it, the inlined ones
 * included. A unit is walked once, when an address in it is first asked for; its DIEs of interest
 * are kept in a few bytes each, the rest stays in libdw.
 */
#ifndef GT_UNITS_H
#define GT_UNITS_H

#include "elfutils.h"
#include "lines.h"
#include "packed.h"
#include "ranges.h"

struct gt_unit {
    Dwarf_Off start, end; /* in .debug_info; end 0: its header has not been read */
    Dwarf_Off die;
    bool good; /* its header has been read and makes sense, its abbreviations are there */
    bool walked;
    bool qualifies; /* names of this unit's language have a path: C++, Rust, D… not C */
    struct gt_spans spans;
    struct gt_node *node;
    struct gt_scope *scope;
    uint32_t nodes, scopes;
    struct gt_lines lines; /* once asked for */
};

/* A function with code, or a place where one was inlined. */
struct gt_node {
    uint32_t offset; /* of its DIE, from the unit's start */
    uint32_t parent; /* the node it is inlined into; GT_NO_ID: it is a function */
};

/* A DIE that may contain named things: offsets from the unit's start, in order. */
struct gt_scope {
    uint32_t start, end; /* end 0: where the parent ends */
    uint32_t parent;
};

struct gt_units {
    const struct gt_elfutils *dw;
    Dwarf *dwarf;
    struct gt_arena *arena;
    struct gt_packed *packed;
    uint64_t base, limit;  /* ELF addresses of the module */
    struct gt_unit **unit; /* by offset */
    size_t n;
    bool all; /* else only those that .debug_aranges tells of */
    struct gt_spans spans;
    Dwarf_Off seen; /* headers before this offset have been looked at */
};

/*
 * With dw, dwarf, packed, arena, base and limit set. aranges: the contents of that section, or
 * NULL.
 */
void gt_units_init(struct gt_units *units, const void *aranges, size_t size);

/* To be called before libdw follows a reference out of a unit. False: the sections are damaged. */
bool gt_units_need_all(struct gt_units *units);

/* The unit with code at addr, walked, or NULL. *node: the innermost one there, or GT_NO_ID. */
struct gt_unit *gt_units_find(struct gt_units *units, uint64_t addr, uint32_t *node);

/* The innermost scope that contains the DIE at offset (in .debug_info) but is not that DIE. */
struct gt_unit *gt_units_scope_of(struct gt_units *units, Dwarf_Off offset, uint32_t *scope);

#endif
