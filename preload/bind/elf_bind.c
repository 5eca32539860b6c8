/* See elf_bind.h. */
#include "elf_bind.h"

#include "encoder/base/arch/arch.h"
#include "symbolize/elf/elf_names.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static struct module read_module(const struct dl_phdr_info *info)
{
    struct module m = {.base = info->dlpi_addr};
    ElfW(Addr) pages = -(ElfW(Addr))sysconf(_SC_PAGESIZE);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
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

static bool open_relro(struct module *m)
{
    m->opened =
        mprotect((void *)m->relro_lo, m->relro_hi - m->relro_lo, PROT_READ | PROT_WRITE) == 0;
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

static void rebind_slot(struct job *job, struct module *m, const ElfW(Rela) * rela)
{
    const char *name = m->strings + m->symbols[ELF64_R_SYM(rela->r_info)].st_name;
    void **slot = (void **)(m->base + rela->r_offset);
    for (int i = 0; i < job->n; i++) {
        const struct gt_elf_binding *b = &job->bindings[i];
        if (*slot == b->from && strcmp(b->name, name) == 0) {
            job->failed |= !set_slot(m, slot, b->from, b->to);
            return;
        }
    }
}

static void rebind_table(struct job *job, struct module *m, const ElfW(Rela) * rela, size_t bytes)
{
    for (const ElfW(Rela) *end = rela + bytes / sizeof *rela; rela < end; rela++) {
        uint32_t type = ELF64_R_TYPE(rela->r_info);
        if (type == GT_ARCH_JUMP_SLOT || type == GT_ARCH_GLOB_DAT ||
            (type == GT_ARCH_ADDRESS && rela->r_addend == 0))
            rebind_slot(job, m, rela);
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
    struct module m = read_module(info);
    if (!m.symbols || !m.strings || is_left_out(job, &m))
        return 0;
    rebind_table(job, &m, m.table, m.table ? m.table_bytes : 0);
    rebind_table(job, &m, m.plt, m.plt ? m.plt_bytes : 0);
    if (m.opened)
        mprotect((void *)m.relro_lo, m.relro_hi - m.relro_lo, PROT_READ);
    return 0;
}

bool gt_elf_rebind(const struct gt_elf_binding *bindings, int n, struct link_map *const not [2])
{
    struct job job = {bindings, n, not, false};
    gt_elf_each_module(rebind_module, &job);
    return !job.failed;
}
