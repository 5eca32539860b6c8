/* See libc_names.h. */
#include "libc_names.h"

#include "elf_names.h"

#include <gnu/lib-names.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/auxv.h>

/* The libraries that ours needs. For libgotrace.so these are libraries of glibc, and stay. */
enum { LIBRARIES = 16 };
static struct library {
    const struct link_map *map;
    uintptr_t lo, hi;
} library[LIBRARIES];
static _Atomic int libraries;

/* Two threads that do this at the same time write the same. */
static int find_libraries(void)
{
    int n = atomic_load_explicit(&libraries, memory_order_acquire);
    if (n)
        return n;
    const struct link_map *ours = gt_elf_ours(), *map = ours ? _r_debug.r_map : NULL;
    for (; map && n < LIBRARIES; map = map->l_next) {
        struct library *at = &library[n];
        if (map == ours || !gt_elf_needs(ours, map))
            continue;
        at->map = map;
        /* the first segment of a library begins with its ELF header */
        gt_elf_image_range((const void *)map->l_addr, &at->lo, &at->hi);
        n++;
    }
    /* release: pairs with the acquire above */
    atomic_store_explicit(&libraries, n, memory_order_release);
    return n;
}

const struct link_map *gt_libc_map(void)
{
    int n = find_libraries(), i = 0;
    while (i < n && !gt_elf_are_same(gt_elf_soname(library[i].map), LIBC_SO))
        i++;
    return i < n ? library[i].map : NULL;
}

bool gt_libc_has(const void *address)
{
    int n = find_libraries(), i = 0;
    while (i < n && (uintptr_t)address - library[i].lo >= library[i].hi - library[i].lo)
        i++;
    return i < n;
}

/*
 * Asks an IFUNC resolver for the function that suits this CPU, with the arguments that AArch64's
 * procedure call standard has for it (sys/ifunc.h). Those of x86-64 have none, and ignore them.
 */
static void *choose(void *resolver)
{
    enum { HAS_ARGUMENT = 62 }; /* _IFUNC_ARG_HWCAP, a bit */
    struct {
        unsigned long size, hwcap, hwcap2;
    } cpu = {sizeof cpu, gt_libc_auxval(AT_HWCAP), gt_libc_auxval(AT_HWCAP2)};
    void *(*call)(unsigned long, const void *) = (void *(*)(unsigned long, const void *))resolver;
    return call(cpu.hwcap | 1ul << HAS_ARGUMENT, &cpu);
}

void *gt_libc_function(const char *name)
{
    int n = find_libraries();
    for (int i = 0; i < n; i++) {
        const ElfW(Sym) *symbol = gt_elf_newest(library[i].map, name);
        void *at = symbol ? (void *)(library[i].map->l_addr + symbol->st_value) : NULL;
        switch (symbol ? ELF64_ST_TYPE(symbol->st_info) : STT_NOTYPE) {
        case STT_FUNC: return at;
        case STT_GNU_IFUNC: return choose(at);
        }
    }
    return NULL;
}

unsigned long gt_libc_auxval(unsigned long type)
{
    unsigned long (*libcs)(unsigned long) =
        (unsigned long (*)(unsigned long))gt_libc_function("getauxval");
    return libcs ? libcs(type) : 0;
}

/* The loader lists the vDSO with the modules. */
void *gt_libc_vdso_function(const char *name)
{
    ElfW(Addr) base = gt_libc_auxval(AT_SYSINFO_EHDR);
    const struct link_map *map = base ? _r_debug.r_map : NULL;
    while (map && map->l_addr != base)
        map = map->l_next;
    return map ? gt_elf_function(map, name) : NULL;
}
