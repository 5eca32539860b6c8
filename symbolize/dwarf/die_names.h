/* The name of a function from its DIE: complete, and readable. */
#pragma once

#include "encoder/base/arena.h"
#include "units.h"

#include "encoder/base/memo.h"

enum { GT_NAME_MAX = 4096 };

struct gt_names {
    struct gt_arena *arena;
    struct gt_memo memo; /* address of a mangled name or of a DIE → name */
    char buf[GT_NAME_MAX], more[GT_NAME_MAX];
};

/* A symbol's name, demangled. symbol must stay where it is. */
const char *gt_names_of_symbol(struct gt_names *names, const char *symbol);

/* The name of a subprogram or inlined subroutine, or NULL. *linked: it is from a linkage name. */
const char *gt_names_of_die(struct gt_names *names, struct gt_units *units, Dwarf_Die *die,
                            bool *linked);
