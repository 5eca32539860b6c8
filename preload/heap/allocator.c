/* See allocator.h. */
#include "allocator.h"

#include "preload/bind/elf_bind.h"
#include "preload/bind/real.h"
#include "symbolize/elf/elf_names.h"

#include <gnu/libc-version.h>

static struct {
    struct link_map *before_us; /* NULL: the allocator comes after us */
    const void *module;         /* load address */
    size_t (*usable)(void *p);
} allocator;

/* The first four functions of `family` make an allocator; they must all be its own. */
enum { REQUIRED = 4 };

static const struct {
    const char *name;
    void **real;
} family[] = {
    {"malloc", (void **)&gt_real.malloc},
    {"calloc", (void **)&gt_real.calloc},
    {"realloc", (void **)&gt_real.realloc},
    {"free", (void **)&gt_real.free},
    {"reallocarray", (void **)&gt_real.reallocarray},
    {"free_sized", (void **)&gt_real.free_sized},
    {"free_aligned_sized", (void **)&gt_real.free_aligned_sized},
    {"posix_memalign", (void **)&gt_real.posix_memalign},
    {"aligned_alloc", (void **)&gt_real.aligned_alloc},
    {"memalign", (void **)&gt_real.memalign},
    {"valloc", (void **)&gt_real.valloc},
    {"pvalloc", (void **)&gt_real.pvalloc},
    {"strdup", (void **)&gt_real.strdup},
    {"strndup", (void **)&gt_real.strndup},
};
enum { FAMILY = sizeof family / sizeof *family };

static const void *module_of(const void *fn)
{
    return fn ? gt_elf_module_of(fn) : NULL;
}

/*
 * Looks up a function of the allocator. Not by dlsym, which needs a handle: dlopen allocates to
 * give one, and the allocator may be initializing.
 */
static void *function(const char *name)
{
    if (!allocator.before_us)
        return gt_real_next(name);
    const ElfW(Sym) *symbol = gt_elf_definition(allocator.before_us, name);
    bool indirect = symbol && ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
    return symbol && !indirect ? (void *)(allocator.before_us->l_addr + symbol->st_value) : NULL;
}

/*
 * Finds which module the allocator is in. false: the executable (which has no name), or several.
 * Where libc comes before us nothing is hidden: libc cannot do without its own names (gt_elf_hide).
 */
static bool find_place(void)
{
    if (gt_elf_is_late())
        return module_of(gt_real_next(family[0].name)) == module_of((void *)gnu_get_libc_version);
    allocator.before_us = gt_elf_definer_before_us(family[0].name);
    for (int i = 1; i < REQUIRED; i++) {
        if (gt_elf_definer_before_us(family[i].name) != allocator.before_us)
            return false;
    }
    return !allocator.before_us || *allocator.before_us->l_name;
}

static bool find_module(void)
{
    allocator.usable = (size_t(*)(void *))function("malloc_usable_size");
    allocator.module = module_of((const void *)allocator.usable);
    for (int i = 0; i < REQUIRED; i++) {
        if (!gt_allocator_has(function(family[i].name)))
            allocator.module = NULL;
    }
    return allocator.module;
}

static bool take_over_family(void)
{
    const char *names[FAMILY];
    int n = 0;
    for (int i = 0; i < FAMILY; i++) {
        void *fn = function(family[i].name);
        if (gt_allocator_has(fn)) {
            *family[i].real = fn;
            names[n++] = family[i].name;
        }
    }
    return gt_allocator_take_over(names, n);
}

bool gt_allocator_find(void)
{
    if (!find_place() || !find_module())
        return false;
    if (take_over_family())
        return true;
    allocator.module = NULL;
    return false;
}

size_t (*gt_allocator_usable(void))(void *)
{
    return allocator.usable;
}

bool gt_allocator_is_libc(void)
{
    return gt_allocator_has((const void *)gnu_get_libc_version);
}

bool gt_allocator_has(const void *fn)
{
    return allocator.module && module_of(fn) == allocator.module;
}

void *gt_allocator_function(const char *name)
{
    void *fn = function(name);
    return gt_allocator_has(fn) || !allocator.before_us ? fn : gt_real_next(name);
}

bool gt_allocator_take_over(const char *const *names, int n)
{
    struct link_map *ours = gt_elf_ours();
    struct gt_elf_binding bindings[n + 1];
    if (!allocator.before_us)
        return true;
    for (int i = 0; i < n; i++) {
        const ElfW(Sym) *hook = ours ? gt_elf_definition(ours, names[i]) : NULL;
        if (!hook)
            return false;
        bindings[i] = (struct gt_elf_binding){.name = names[i],
                                              .from = function(names[i]),
                                              .to = (void *)(ours->l_addr + hook->st_value)};
    }
    /* The names are hidden first: calls that are bound meanwhile are bound to us already. */
    return gt_elf_hide(allocator.before_us, names, n) &&
           gt_elf_rebind(bindings, n, (struct link_map *[]){ours, allocator.before_us});
}
