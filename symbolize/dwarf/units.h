/*
 * An index over a module's DWARF: finds the functions around an address, inlined ones included.
 *
 * A unit is walked when an address in it is first looked up, and so is the inside of a function.
 * The walk keeps a few bytes for each DIE of interest; libdw keeps the rest. gt_units_forget gives
 * back the memory of the walks. A unit that is asked for again is walked again.
 */
#pragma once

#include "dies.h"
#include "symbolize/elf/elfutils.h"
#include "lines.h"
#include "symbolize/elf/packed.h"
#include "ranges.h"

/* The result of a walk of a unit, or of a function in the unit. */
struct gt_inside {
    const struct gt_inside *outer; /* the result for the unit; NULL: this is it */
    uint32_t of;                   /* the node or scope in `outer` that was walked */
    struct gt_spans spans;         /* of nodes */
    struct gt_node *node;
    struct gt_scope *scope;
    uint32_t nodes, scopes;
};

struct gt_unit {
    Dwarf_Off start, end; /* in .debug_info; end 0: its header has not been read */
    Dwarf_Off die;
    bool good;           /* the header is valid and the abbreviations are present */
    bool walked, whole;  /* whole: the insides of its functions, too */
    bool forgotten;      /* it was walked before the last gt_units_forget */
    bool qualifies;      /* names of the unit's language have a path: C++, Rust, D…, not C */
    struct gt_dies dies; /* valid once walked */
    struct gt_inside all;
    struct gt_lines lines; /* valid once looked up */
};

/* A function with code, or a place where one was inlined. */
struct gt_node {
    uint32_t offset;          /* of its DIE, from the unit's start */
    uint32_t parent;          /* the node it is inlined into; GT_NO_ID: a function, or see `of` */
    struct gt_inside *inside; /* its nodes, if it was walked separately; or NULL */
};

/* A DIE that may contain named DIEs. Offsets count from the unit's start; scopes are in order. */
struct gt_scope {
    uint32_t start, end; /* end 0: where the parent ends */
    uint32_t parent;
    bool closed;              /* a function that has not been walked */
    struct gt_inside *inside; /* its scopes, if it was walked separately; or NULL */
};

/* A node or a scope. `in` is NULL if there is none. */
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

/* A list that a walk fills, before it is copied to an array of its final size. */
struct gt_list {
    void *items;
    size_t n, capacity, item;
};

struct gt_units {
    const struct gt_elfutils *dw;
    Dwarf *dwarf;
    struct gt_arena *arena; /* for the units and the names of their files */
    struct gt_arena *walks; /* for what gt_units_forget gives back */
    struct gt_packed_sections *packed;
    struct gt_dwarf_section info, abbrev;
    uint64_t base, limit;  /* ELF addresses of the module */
    struct gt_unit **unit; /* by offset */
    size_t n;
    bool all; /* `unit` has all units, not only those in .debug_aranges */
    struct gt_spans spans;
    Dwarf_Off seen;                  /* headers before this offset have been read */
    size_t again;                    /* walks of forgotten units since the last gt_units_forget */
    const struct gt_image *image[2]; /* of dwarf, and of its common part */
    size_t touched;                  /* bytes of mapped images since the last gt_image_cool */
    struct gt_list nodes, scopes;    /* room for the walks, reused by each */
    struct gt_ranges ranges;         /* room for the walks, reused by each */
};

/*
 * The caller has set dw, dwarf, packed, arena, walks, info, abbrev, base and limit. aranges: the
 * contents of .debug_aranges, or NULL.
 */
void gt_units_init(struct gt_units *units, const void *aranges, size_t size);
void gt_units_free(struct gt_units *units);

enum {
    GT_TOUCHED_BY_PAGE = 64 << 10
}; /* the kernel maps so many bytes around a page (6.1: fault_around_bytes) */

/*
 * Says that so many bytes of debug information have been read. Gives mapped images' memory back now
 * and then: what was read is seldom read again.
 */
void gt_units_touch(struct gt_units *units, size_t bytes);

/*
 * Forgets all walks and line tables, so that the caller may free the arena `walks`. Results of
 * look-ups become invalid, but for names of files.
 */
void gt_units_forget(struct gt_units *units);

/* Unpacks all units. Must be called before libdw follows a reference out of a unit. false: the
 * sections are damaged. */
bool gt_units_need_all(struct gt_units *units);

/* The unit with code at addr, or NULL. */
struct gt_unit *gt_units_find(struct gt_units *units, uint64_t addr);

/* The innermost node at addr, which is in the unit. Walks the unit if it is not walked. */
struct gt_found gt_units_node(struct gt_units *units, struct gt_unit *unit, uint64_t addr);

/* The innermost scope that contains the DIE at offset (in .debug_info) but is not that DIE. */
struct gt_unit *gt_units_scope_of(struct gt_units *units, Dwarf_Off offset, struct gt_found *scope);
