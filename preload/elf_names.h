/*
 * Names in the dynamic symbol tables of loaded modules, read without the loader's help: it would
 * count an executable's reference to a function as its definition, and take locks.
 */
#ifndef GT_ELF_NAMES_H
#define GT_ELF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* The executable, or a library preloaded before this one, defines `name`: ours is not called. */
bool gt_elf_defined_before_us(const char *name);

/*
 * From now on no symbol look-up finds our definitions of these names. Modules bound to them keep
 * them. Nothing happens when the symbol table cannot be made writable.
 */
void gt_elf_hide_ours(const char *const *names, int n);

/* Where the dynamic loader's own code is. */
void gt_elf_loader_range(uintptr_t *lo, uintptr_t *hi);

#endif
