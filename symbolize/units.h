/*
 * An index over a module's DWARF: from an address to the functions around it, the inlined ones
 * included. A unit is walked once, when an address in it is first asked for, and so is the inside
 * of a function; the DIEs of interest are kept in a few bytes each, the rest stays in libdw.
 */
#ifndef GT_UNITS_H
#define GT_UNITS_H

#include "dies.h"
#include "elfutils.h"
#include "lines.h"
#include "packed.h"
#include "ranges.h"

/* What a walk has found within a unit, or within a function that is in one. */
struct gt_inside {
    const struct gt_inside *outer; /* the unit's; NULL: this is it */
    uint32_t of;                   /* the node or scope there that this is inside of */
    struct gt_spans spans;         /* of nodes */
    struct gt_node *node;
    struct gt_scope *scope;
    uint32_t nodes, scopes;
};

struct gt_unit {
    Dwarf_Off start, end; /* in .debug_info; end 0: its header has not been read */
    Dwarf_Off die;
    bool good;           /* its header has been read and makes sense, its abbreviations are there */
    bool walked, whole;  /* whole: with all that is in its functions */
    bool qualifies;      /* names of this unit's language have a path: C++, Rust, D… not C */
    struct gt_dies dies; /* once walked */
    struct gt_inside all;
    struct gt_lines lines; /* once asked for */
};

/* A function with code, or a place where one was inlined. */
struct gt_node {
    uint32_t offset;          /* of its DIE, from the unit's start */
    uint32_t parent;          /* the node it is inlined into; GT_NO_ID: a function, or see `of` */
    struct gt_inside *inside; /* nodes alone; NULL: not walked by itself */
};

/* A DIE that may contain named things: offsets from the unit's start, in order. */
struct gt_scope {
    uint32_t start, end; /* end 0: where the parent ends */
    uint32_t parent;
    bool closed;              /* a function that has not been walked */
    struct gt_inside *inside; /* scopes alone; or NULL */
};

/* A node or a scope. in NULL: none. */
struct gt_found {
    const struct gt_inside *in;
    uint32_t id;
};

static inline struct gt_found gt_found_around(struct gt_found at, uint32_t parent)
{
    if (parent != GT_NO_ID)
        return (struct gt_found){at.in, parent};
    return (struct gt_found){at.in->outer, at.in->of};
}

static inline struct gt_found gt_node_around(struct gt_found node)
{
    return gt_found_around(node, node.in->node[node.id].parent);
}

static inline struct gt_found gt_scope_around(struct gt_found scope)
{
    return gt_found_around(scope, scope.in->scope[scope.id].parent);
}

/* What a walk collects before it is copied to its final size. */
struct gt_list {
    void *items;
    size_t n, capacity, item;
};

struct gt_units {
    const struct gt_elfutils *dw;
    Dwarf *dwarf;
    struct gt_arena *arena;
    struct gt_packed *packed;
    struct gt_section info, abbrev;
    uint64_t base, limit;  /* ELF addresses of the module */
    struct gt_unit **unit; /* by offset */
    size_t n;
    bool all; /* else only those that .debug_aranges tells of */
    struct gt_spans spans;
    Dwarf_Off seen;               /* headers before this offset have been looked at */
    struct gt_list nodes, scopes; /* room for what walks find, one after the other */
    struct gt_ranges ranges;      /* the same */
};

/*
 * With dw, dwarf, packed, arena, info, abbrev, base and limit set. aranges: the contents of that
 * section, or NULL.
 */
void gt_units_init(struct gt_units *units, const void *aranges, size_t size);
void gt_units_free(struct gt_units *units);

/* To be called before libdw follows a reference out of a unit. False: the sections are damaged. */
bool gt_units_need_all(struct gt_units *units);

/* The unit with code at addr, walked, or NULL. *node: the innermost one there. */
struct gt_unit *gt_units_find(struct gt_units *units, uint64_t addr, struct gt_found *node);

/* The innermost scope that contains the DIE at offset (in .debug_info) but is not that DIE. */
struct gt_unit *gt_units_scope_of(struct gt_units *units, Dwarf_Off offset, struct gt_found *scope);

#endif
