/* The symbols of a module's files, for addresses DWARF knows nothing of. */
#ifndef GT_SYMBOLS_H
#define GT_SYMBOLS_H

#include "image.h"

#include "encoder/base/sort.h"

enum gt_symbols_of { GT_FUNCTIONS, GT_VARIABLES };

struct gt_symbol {
    uint64_t addr;
    const char *name; /* in the image */
    uint32_t size;    /* 0: up to the next symbol */
    bool local;       /* nobody outside the file knows it */
    bool shared;      /* the name: see gt_symbols_find_shared */
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
    uint64_t lo, hi;         /* the ELF addresses that the module has */
    int shift;               /* a bucket has 2^shift bytes of them */
    size_t n, buckets;       /* n: with those that are not asked for */
    uint32_t *last, *before; /* one of each bucket, and one more of each one's; 0: no more */
    size_t names;
    struct gt_pair *by_name; /* its hash, and the symbol; NULL: not asked for */
};

/* Of three files at most; the images must not move. */
void gt_symbols_add(struct gt_symbols *symbols, const struct gt_image *image);
void gt_symbols_free(struct gt_symbols *symbols);

/* The symbol around an ELF address; false: none. */
bool gt_symbols_find(struct gt_symbols *symbols, uint64_t addr, struct gt_symbol *out);

/* Once: from then on it is told whether a symbol at another address has the name, too. */
void gt_symbols_find_shared(struct gt_symbols *symbols);

/*
 * What tells such a variable from the others, by a file's symbol table: its source file, "" for the
 * one that is not static. NULL: that table does not know it, or another one has that in common,
 * too.
 */
const char *gt_symbols_source(const struct gt_image *image, const struct gt_symbol *variable);

#endif
