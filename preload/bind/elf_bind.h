/* Rebinds calls between modules that the loader bound by symbol tables. */
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
