/* The name of a function from its DIE: complete, and readable. */
#ifndef GT_NAMES_H
#define GT_NAMES_H

#include "encoder/base/arena.h"
#include "units.h"

#include "encoder/base/memo.h"

enum { GT_NAME_MAX = 4096 };

struct gt_names {
    struct gt_arena *arena;
    struct gt_memo memo; /* from the address of a mangled name or of a DIE */
    char buf[GT_NAME_MAX], more[GT_NAME_MAX];
};

/* A symbol's name, demangled. symbol must stay where it is. */
const char *gt_names_of_symbol(struct gt_names *names, const char *symbol);

/* The name of a subprogram or an inlined one, or NULL; *linked: it came from a linkage name. */
const char *gt_names_of_die(struct gt_names *names, struct gt_units *units, Dwarf_Die *die,
                            bool *linked);

#endif
