/* The symbols of a module's files in one table, for addresses DWARF knows nothing of. */
#ifndef GT_SYMBOLS_H
#define GT_SYMBOLS_H

#include "image.h"

#include "encoder/base/sort.h"

struct gt_symbols {
    struct gt_symbol {
        uint64_t addr;
        const char *name; /* in the image */
        uint32_t size;    /* 0: up to the next symbol */
        uint16_t rank;    /* of several at one address the highest names it */
        bool local;       /* nobody outside the file knows it */
        bool shared;      /* the name: see gt_symbols_find_shared */
    } * symbol;           /* sorted by address */
    size_t n, capacity;
    bool finished;
};

/* Adds a file's symbols, of functions or variables; then, once, finish. The image must not move. */
enum gt_symbols_of { GT_FUNCTIONS, GT_VARIABLES };
void gt_symbols_add(struct gt_symbols *symbols, const struct gt_image *image,
                    enum gt_symbols_of which);
void gt_symbols_finish(struct gt_symbols *symbols);
void gt_symbols_free(struct gt_symbols *symbols);

/* The symbol around an ELF address, or NULL. */
const struct gt_symbol *gt_symbols_find(const struct gt_symbols *symbols, uint64_t addr);

/* Once, when they are finished: marks those whose name another one at another address has, too. */
void gt_symbols_find_shared(struct gt_symbols *symbols);

/*
 * What tells such a variable from the others, by a file's symbol table: its source file, "" for the
 * one that is not static. NULL: that table does not know it, or another one has that in common,
 * too.
 */
const char *gt_symbols_source(const struct gt_image *image, const struct gt_symbol *variable);

#endif
