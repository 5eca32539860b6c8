/*
 * Loaded modules and the names in their dynamic symbol tables, read without the loader's help. The
 * loader would count an executable's reference to a function as its definition, and take locks.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* This library, as the loader knows it. NULL: it cannot be found. */
struct link_map *gt_elf_ours(void);

/* The module's DT_SONAME, or the name of its file. */
const char *gt_elf_soname(const struct link_map *map);

/* Compares without strcmp. The loader may have bound that to the program's, or to
 * AddressSanitizer's, which may not have found libc's yet. */
bool gt_elf_are_same(const char *a, const char *b);

/* The hash of a name in GNU hash tables. */
uint32_t gt_elf_hash(const char *name);

/* The definition of `name` in a module. NULL: the module has none. */
ElfW(Sym) * gt_elf_definition(const struct link_map *map, const char *name);

/* The definition of `name` in the version that a reference without version means. NULL: none. */
ElfW(Sym) * gt_elf_newest(const struct link_map *map, const char *name);

/* The address of the function that gt_elf_newest finds. NULL: none. */
void *gt_elf_function(const struct link_map *map, const char *name);

/* Whether the module's dynamic section lists the library as needed. */
bool gt_elf_needs(const struct link_map *map, const struct link_map *library);

/* The first module but ours that defines `name`. NULL: there is none. */
struct link_map *gt_elf_definer(const char *name);

/*
 * The executable, or the library preloaded before ours, that defines `name`, so that our definition
 * is not called. NULL: there is none.
 */
struct link_map *gt_elf_definer_before_us(const char *name);

/*
 * Whether dlsym(RTLD_NEXT) would find `name`; true in doubt. Asked first because a dlsym that fails
 * allocates its error.
 */
bool gt_elf_is_defined_after_us(const char *name);

/*
 * The modules behind ours, in the loader's search order, for many look-ups in succession:
 * dlsym(RTLD_NEXT) takes four times as long. The struct is on the caller's stack.
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

/* Leaves out the modules behind libc. false: libc is not among them. */
bool gt_elf_next_end_at_libc(struct gt_elf_next *next);

/* The plain function that dlsym(RTLD_NEXT, name) finds since glibc 2.36, in the default version.
 * NULL: there is no definition, or one of another kind. */
void *gt_elf_next_function(const struct gt_elf_next *next, const char *name);

/* Whether dlopen loaded us, so that even libc comes before us and the program's calls do not reach
 * us. */
bool gt_elf_is_late(void);

/*
 * Hides a module's definitions of these names from all later look-ups. Modules that are bound to
 * them stay so. false: nothing was hidden, because the symbol table cannot be made writable.
 */
bool gt_elf_hide(const struct link_map *map, const char *const *names, int n);

/*
 * Makes later look-ups of `name` in this module find `to`, in all versions in which they found
 * `from`; from NULL: in all versions. false: some version could not be changed.
 */
bool gt_elf_redefine(const struct link_map *map, const char *name, const void *from,
                     void (*to)(void));

/*
 * libc's dl_iterate_phdr. Programs may define their own (Seastar keeps a list of its own), which
 * may call our hooks before these are resolved.
 */
void gt_elf_each_module(int (*visit)(struct dl_phdr_info *info, size_t size, void *arg), void *arg);

/*
 * Takes the lock that the loader holds while it loads a library and runs the library's
 * constructors, which may take as long as the program. The lock is recursive: dlopen(3) takes it
 * again. 0, or EBUSY after a wait of `ns` for another holder. If the lock's address is not known,
 * 0, and nothing is taken.
 */
int gt_elf_loader_enter(uint64_t ns);
void gt_elf_loader_leave(void);

/* Whether the calling thread holds the loader's lock, as in a constructor or in dlopen. */
bool gt_elf_loader_is_ours(void);

/*
 * A pointer that identifies the module around the address, or NULL. dladdr, which also looks for a
 * symbol, takes a hundred times as long. Takes the loader's lock.
 */
const void *gt_elf_module_of(const void *code);

/* The address range of a module's segments; *lo > *hi: it has none. */
void gt_elf_span(const struct dl_phdr_info *info, uint64_t *lo, uint64_t *hi);

/* The address range of a library whose ELF header is at `image`. NULL: an empty range. */
void gt_elf_image_range(const ElfW(Ehdr) * image, uintptr_t *lo, uintptr_t *hi);

/* The address range of the dynamic loader's own code. */
void gt_elf_loader_range(uintptr_t *lo, uintptr_t *hi);
