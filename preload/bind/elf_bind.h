/* Rebinds calls between modules, and binds this library's own calls to libc. */
#pragma once

#include <link.h>
#include <stdbool.h>

struct gt_elf_binding {
    const char *name;
    void *from, *to;
    const struct link_map *in; /* the module that defines it, for gt_elf_redefine */
};

/*
 * Binds each of the names to its `to` in all modules that have it bound to `from`, except in the
 * modules not[0] and not[1] (a null `not` excepts none). Does not change names that are not bound
 * yet, because of lazy binding or because the module is loaded later: see gt_elf_hide and
 * gt_elf_redefine. false: not all of them could be changed.
 *
 * No module may be relocated meanwhile: its pages would become read-only too early. So this is
 * called while the process starts, as a rule with one thread, or by the loader (attach.c).
 */
bool gt_elf_rebind(const struct gt_elf_binding *bindings, int n, struct link_map *const not [2]);

/*
 * Binds what this library imports from libc to libc's own functions, but for the n names in `but`.
 * The loader has bound it to the program's functions, or another preload's, where these define the
 * name: such a function may wait for a lock that the caller of our hook holds, or call our hooks.
 * Takes no lock, and calls nothing by name. Called before all else that we do in the process.
 */
void gt_elf_bind_imports(const char *const *but, int n);
