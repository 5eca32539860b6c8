/* The symbols of a module's files, for addresses that DWARF does not describe. */
#pragma once

#include "image.h"

#include "encoder/base/sort.h"

enum gt_symbols_of { GT_FUNCTIONS, GT_VARIABLES };

struct gt_symbol {
    uint64_t addr;
    const char *name; /* in the image */
    uint32_t size;    /* 0: up to the next symbol */
    bool local;       /* not visible outside the file */
    bool shared;      /* another address has the name, too: see gt_symbols_find_shared */
};

struct gt_symbols {
    enum gt_symbols_of which;
    struct gt_symbol_table {
        const ElfW(Sym) * sym;
        size_t n, size;
        const char *strings;
    } table[6];
    int tables;
    bool sorted;
    uint64_t lo, hi;         /* the module's ELF addresses */
    int shift;               /* a bucket covers 2^shift bytes */
    size_t n, buckets;       /* n: all symbols, also those of the other kind */
    uint32_t *last, *before; /* last symbol of a bucket; the one before a symbol; 0: none */
    size_t names;
    struct gt_pair *by_name; /* hash of the name, and symbol; NULL: not built */
};

/* Adds the symbols of a file, of three files at most. The images must not move. */
void gt_symbols_add(struct gt_symbols *symbols, const struct gt_image *image);
void gt_symbols_free(struct gt_symbols *symbols);

/* The symbol around an ELF address; false: none. */
bool gt_symbols_find(struct gt_symbols *symbols, uint64_t addr, struct gt_symbol *out);

/* Makes gt_symbols_find set `shared` from now on: whether a symbol at another address has the name,
 * too. Called once. */
void gt_symbols_find_shared(struct gt_symbols *symbols);

/*
 * Distinguishes a variable from others of its name by a file's symbol table: returns its source
 * file, or "" for the variable that is not static. NULL: the table does not have the variable, or
 * another variable has the same source file.
 */
const char *gt_symbols_source(const struct gt_image *image, const struct gt_symbol *variable);
