/* See elf_bind.h. */
#include "elf_bind.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/libc.h"
#include "symbolize/elf/elf_names.h"
#include "symbolize/elf/libc_names.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

struct job {
    const struct gt_elf_binding *bindings;
    int n;
    struct link_map *const * not ; /* NULL: no module is left out */
    bool failed;
};

struct module {
    ElfW(Addr) base;
    const ElfW(Dyn) * dynamic;
    ElfW(Addr) relro_lo, relro_hi; /* whole pages, read-only since the module was relocated */
    bool opened;                   /* these pages are writable for now */
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * table, *plt;
    size_t table_bytes, plt_bytes;
};

/* glibc relocates the addresses in a module's dynamic section, but not in that of the vDSO. */
static const void *address(const struct module *m, const ElfW(Dyn) * dyn)
{
    ElfW(Addr) p = dyn->d_un.d_ptr;
    return (const void *)(p >= m->base ? p : p + m->base);
}

static struct module read_module(ElfW(Addr) base, const ElfW(Phdr) * headers, int n)
{
    struct module m = {.base = base};
    ElfW(Addr) pages = -(ElfW(Addr))gt_libc_auxval(AT_PAGESZ);
    for (int i = 0; i < n; i++) {
        const ElfW(Phdr) *ph = &headers[i];
        if (ph->p_type == PT_DYNAMIC)
            m.dynamic = (const void *)(m.base + ph->p_vaddr);
        if (ph->p_type == PT_GNU_RELRO) {
            m.relro_lo = (m.base + ph->p_vaddr) & pages;
            m.relro_hi = (m.base + ph->p_vaddr + ph->p_memsz) & pages;
        }
    }
    for (const ElfW(Dyn) *dyn = m.dynamic; dyn && dyn->d_tag != DT_NULL; dyn++) {
        switch (dyn->d_tag) {
        case DT_SYMTAB: m.symbols = address(&m, dyn); break;
        case DT_STRTAB: m.strings = address(&m, dyn); break;
        case DT_RELA: m.table = address(&m, dyn); break;
        case DT_RELASZ: m.table_bytes = dyn->d_un.d_val; break;
        case DT_JMPREL: m.plt = address(&m, dyn); break;
        case DT_PLTRELSZ: m.plt_bytes = dyn->d_un.d_val; break;
        }
    }
    return m;
}

static bool protect_relro(const struct module *m, long how)
{
    return gt_syscall(SYS_mprotect, m->relro_lo, m->relro_hi - m->relro_lo, how) == 0;
}

static bool open_relro(struct module *m)
{
    m->opened = protect_relro(m, PROT_READ | PROT_WRITE);
    return m->opened;
}

/* Sets the slot unless the program has stored a pointer of its own there meanwhile. */
static bool set_slot(struct module *m, void **slot, void *from, void *to)
{
    bool read_only = (uintptr_t)slot >= m->relro_lo && (uintptr_t)slot < m->relro_hi;
    if (read_only && !m->opened && !open_relro(m))
        return false;
    __atomic_compare_exchange_n(slot, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return true;
}

/* Rebinds one slot of a module, to which the loader has written a symbol's address. */
typedef void rebind(void *arg, struct module *m, void **slot, const ElfW(Sym) * symbol);

static void rebind_table(struct module *m, const ElfW(Rela) * rela, size_t bytes, rebind *each,
                         void *arg)
{
    for (const ElfW(Rela) *end = rela + bytes / sizeof *rela; rela < end; rela++) {
        uint32_t type = ELF64_R_TYPE(rela->r_info);
        if (type == GT_ARCH_JUMP_SLOT || type == GT_ARCH_GLOB_DAT ||
            (type == GT_ARCH_ADDRESS && rela->r_addend == 0))
            each(arg, m, (void **)(m->base + rela->r_offset),
                 &m->symbols[ELF64_R_SYM(rela->r_info)]);
    }
}

static void rebind_tables(struct module *m, rebind *each, void *arg)
{
    rebind_table(m, m->table, m->table ? m->table_bytes : 0, each, arg);
    rebind_table(m, m->plt, m->plt ? m->plt_bytes : 0, each, arg);
    if (m->opened)
        protect_relro(m, PROT_READ);
}

static void rebind_to_hook(void *arg, struct module *m, void **slot, const ElfW(Sym) * symbol)
{
    struct job *job = arg;
    const char *name = m->strings + symbol->st_name;
    for (int i = 0; i < job->n; i++) {
        const struct gt_elf_binding *b = &job->bindings[i];
        if (*slot == b->from && strcmp(b->name, name) == 0) {
            job->failed |= !set_slot(m, slot, b->from, b->to);
            return;
        }
    }
}

static bool is_left_out(const struct job *job, const struct module *m)
{
    return job->not &&(m->dynamic == job->not [0] -> l_ld ||
                                                         m -> dynamic == job -> not [1] -> l_ld);
}

static int rebind_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct job *job = arg;
    struct module m = read_module(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
    if (m.symbols && m.strings && !is_left_out(job, &m))
        rebind_tables(&m, rebind_to_hook, job);
    return 0;
}

bool gt_elf_rebind(const struct gt_elf_binding *bindings, int n, struct link_map *const not [2])
{
    struct job job = {bindings, n, not, false};
    gt_elf_each_module(rebind_module, &job);
    return !job.failed;
}

struct imports {
    const char *const *but;
    int n;
};

static bool is_listed(const struct imports *imports, const char *name)
{
    int i = 0;
    while (i < imports->n && !gt_elf_are_same(imports->but[i], name))
        i++;
    return i < imports->n;
}

static void rebind_to_libc(void *arg, struct module *m, void **slot, const ElfW(Sym) * symbol)
{
    const char *name = m->strings + symbol->st_name;
    if (symbol->st_shndx != SHN_UNDEF || gt_libc_has(*slot) || is_listed(arg, name))
        return;
    void *libcs = gt_libc_function(name);
    if (libcs)
        set_slot(m, slot, *slot, libcs);
}

void gt_elf_bind_imports(const char *const *but, int n)
{
    extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden"))); /* ours */
    struct imports imports = {but, n};
    const struct link_map *ours = gt_elf_ours();
    const char *begin = (const char *)&__ehdr_start;
    if (!ours)
        return;
    struct module m = read_module(ours->l_addr, (const void *)(begin + __ehdr_start.e_phoff),
                                  __ehdr_start.e_phnum);
    rebind_tables(&m, rebind_to_libc, &imports);
}
