/*
 * Loaded modules and the names in their dynamic symbol tables, read without the loader's help: it
 * would count an executable's reference to a function as its definition, and take locks.
 */
#ifndef GT_ELF_NAMES_H
#define GT_ELF_NAMES_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* This library, as the loader knows it. NULL: it cannot be found. */
struct link_map *gt_elf_ours(void);

/* The definition of `name` in a module. NULL: it has none. */
ElfW(Sym) * gt_elf_definition(const struct link_map *map, const char *name);

/* The same, of the version that a reference without one would mean. */
ElfW(Sym) * gt_elf_newest(const struct link_map *map, const char *name);

/* The same of a function: where it is. */
void *gt_elf_function(const struct link_map *map, const char *name);

/* Whether the module says that it needs a library of that name. */
bool gt_elf_needs(const struct link_map *map, const struct link_map *library);

/* The first module but ours that defines `name`. NULL: there is none. */
struct link_map *gt_elf_definer(const char *name);

/*
 * The executable, or the library preloaded before this one, that defines `name`: ours is not
 * called. NULL: there is none.
 */
struct link_map *gt_elf_definer_before_us(const char *name);

/*
 * Whether dlsym(RTLD_NEXT) would find `name`, as far as can be told: a look-up that fails allocates
 * its error. In doubt, true.
 */
bool gt_elf_is_defined_after_us(const char *name);

/*
 * The modules behind ours, in the order in which the loader searches them, for many look-ups one
 * after the other: dlsym(RTLD_NEXT) takes four times as long. On the caller's stack.
 */
enum { GT_ELF_NEXT_MODULES = 64 };
struct gt_elf_next {
    int n; /* there may be more */
    struct gt_elf_module {
        ElfW(Addr) base;
        const ElfW(Sym) * symbols;
        const char *strings;
        const uint32_t *gnu_hash;
        const ElfW(Versym) * versions;
    } module[GT_ELF_NEXT_MODULES];
};
void gt_elf_next_begin(struct gt_elf_next *next);

/* What dlsym(RTLD_NEXT, name) finds since glibc 2.36, the default version, if that is a plain
 * function. NULL: it may be anything else, or nothing. */
void *gt_elf_next_function(const struct gt_elf_next *next, const char *name);

/* Whether even libc comes before us, which dlopen has loaded: the program's calls do not come. */
bool gt_elf_is_late(void);

/*
 * From now on no symbol look-up finds a module's definitions of these names. Modules bound to them
 * keep them. false: nothing happened, the symbol table cannot be made writable.
 */
bool gt_elf_hide(const struct link_map *map, const char *const *names, int n);

/*
 * From now on a symbol look-up in this module finds `to`, in those versions of `name` in which it
 * found `from`, NULL: in whatever version. false: not in all of them.
 */
bool gt_elf_redefine(const struct link_map *map, const char *name, const void *from,
                     void (*to)(void));

/*
 * libc's dl_iterate_phdr: programs have their own (Seastar's keeps a list of its own), which may
 * call our hooks, before they know what to forward to.
 */
void gt_elf_each_module(int (*visit)(struct dl_phdr_info *info, size_t size, void *arg), void *arg);

/*
 * The lock that the loader has while it loads a library, and while that one's constructors run,
 * which may take as long as the program. It is recursive: dlopen(3) takes it again. 0, or EBUSY:
 * another thread has it, and has had it for `ns`. Where its place is not known, 0, and nothing is
 * taken.
 */
int gt_elf_loader_enter(uint64_t ns);
void gt_elf_loader_leave(void);

/* Whether the calling thread has it: a constructor's, in dlopen. */
bool gt_elf_loader_is_ours(void);

/*
 * What tells the module that contains the address from others, or NULL. dladdr, which also looks
 * for a symbol, takes a hundred times as long. Takes the loader's lock.
 */
const void *gt_elf_module_of(const void *code);

/* From where to where a module's segments reach; *lo > *hi: it has none. */
void gt_elf_span(const struct dl_phdr_info *info, uint64_t *lo, uint64_t *hi);

/* Where the dynamic loader's own code is. */
void gt_elf_loader_range(uintptr_t *lo, uintptr_t *hi);

#endif
