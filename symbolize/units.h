/*
 * An index over a module's DWARF: from an address to the functions around it, the inlined ones
 * included. A unit is walked once, when an address in it is first asked for; its DIEs of interest
 * are kept in a few bytes each, the rest stays in libdw.
 */
#ifndef GT_UNITS_H
#define GT_UNITS_H

#include "elfutils.h"
#include "lines.h"
#include "ranges.h"

struct gt_unit {
    Dwarf_Off start, end; /* in .debug_info */
    Dwarf_Off die;
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
    struct gt_pool *pool;
    uint64_t base, limit; /* ELF addresses of the module */
    struct gt_unit *unit; /* by offset */
    size_t n;
    struct gt_spans spans;
};

void gt_units_init(struct gt_units *units, const struct gt_elfutils *dw, Dwarf *dwarf,
                   uint64_t base, uint64_t limit, struct gt_pool *pool);

/* The unit with code at addr, walked, or NULL. *node: the innermost one there, or GT_NO_ID. */
struct gt_unit *gt_units_find(struct gt_units *units, uint64_t addr, uint32_t *node);

/* The innermost scope that contains the DIE at offset (in .debug_info) but is not that DIE. */
struct gt_unit *gt_units_scope_of(struct gt_units *units, Dwarf_Off offset, uint32_t *scope);

#endif
