/* Changes what calls between modules were bound to, by symbol tables, when those were loaded. */
#ifndef GT_ELF_BIND_H
#define GT_ELF_BIND_H

#include <link.h>
#include <stdbool.h>

struct gt_elf_binding {
    const char *name;
    void *from, *to;
    const struct link_map *in; /* which defines it, for who wants to redefine it */
};

/*
 * Where a module has bound one of these names to `from`, it is bound to `to`; the modules `not[0]`
 * and `not[1]` are left as they are, unless that is NULL. What is not bound yet (lazily, or loaded
 * later) is a matter of gt_elf_hide and gt_elf_redefine. false: not all of them could be changed.
 *
 * No module may be relocated meanwhile: its pages would be read-only too early. So it is called
 * while the process starts, as a rule with one thread, or by the loader (attach.c).
 */
bool gt_elf_rebind(const struct gt_elf_binding *bindings, int n, struct link_map *const not [2]);

#endif
