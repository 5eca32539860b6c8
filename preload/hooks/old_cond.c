/* See old_cond.h. */
#include "old_cond.h"

#include "encoder/base/futex.h"
#include "preload/real.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#define OLD_VERSION "GLIBC_2.2.5"

struct gt_old_cond gt_old_cond;
_Atomic bool gt_old_cond_users;

static struct {
    struct gt_lock lock;
    struct {
        uintptr_t lo, hi;
    } user[16];
    _Atomic uint32_t n;
} users;

/* The parts of a module's dynamic section that say which versions it asks for. */
struct dynamic {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Half) * versions;
    const char *needs;
    size_t needs_n;
    const char *relocations;
    size_t relocations_bytes;
};

static bool read_dynamic(const struct dl_phdr_info *info, struct dynamic *d)
{
    const ElfW(Dyn) *dyn = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dyn = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
        /* glibc relocates some of these addresses in place, and none of the vDSO's. */
        bool relocated = dyn->d_un.d_ptr >= info->dlpi_addr;
        const void *p = (const void *)(dyn->d_un.d_ptr + (relocated ? 0 : info->dlpi_addr));
        switch (dyn->d_tag) {
        case DT_SYMTAB: d->symbols = p; break;
        case DT_STRTAB: d->strings = p; break;
        case DT_VERSYM: d->versions = p; break;
        case DT_VERNEED: d->needs = p; break;
        case DT_VERNEEDNUM: d->needs_n = dyn->d_un.d_val; break;
        case DT_JMPREL: d->relocations = p; break;
        case DT_PLTRELSZ: d->relocations_bytes = dyn->d_un.d_val; break;
        }
    }
    return d->symbols && d->strings && d->versions && d->needs;
}

/* The index under which the module's symbols refer to the old version; 0: it does not. */
static unsigned old_version_index(const struct dynamic *d)
{
    const char *need = d->needs;
    for (size_t i = 0; i < d->needs_n; i++) {
        const ElfW(Verneed) *n = (const void *)need;
        const char *aux = need + n->vn_aux;
        for (unsigned k = 0; k < n->vn_cnt; k++) {
            const ElfW(Vernaux) *a = (const void *)aux;
            if (strcmp(d->strings + a->vna_name, OLD_VERSION) == 0)
                return a->vna_other & 0x7fff;
            aux += a->vna_next;
        }
        need += n->vn_next;
    }
    return 0;
}

static bool calls_old_cond(const struct dynamic *d)
{
    unsigned old = old_version_index(d);
    if (!old)
        return false;
    const ElfW(Rela) *r = (const void *)d->relocations;
    for (size_t i = 0; i < d->relocations_bytes / sizeof *r; i++) {
        size_t symbol = ELF64_R_SYM(r[i].r_info);
        const char *name = d->strings + d->symbols[symbol].st_name;
        if ((d->versions[symbol] & 0x7fff) == old && strncmp(name, "pthread_cond_", 13) == 0 &&
            !strstr(name, "_init") && !strstr(name, "_destroy"))
            return true;
    }
    return false;
}

static void remember(const struct dl_phdr_info *info)
{
    uintptr_t lo = UINTPTR_MAX, hi = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        lo = start < lo ? start : lo;
        hi = start + info->dlpi_phdr[i].p_memsz > hi ? start + info->dlpi_phdr[i].p_memsz : hi;
    }
    uint32_t n = atomic_load(&users.n);
    for (uint32_t i = 0; i < n; i++) {
        if (users.user[i].lo == lo)
            return;
    }
    if (n == sizeof users.user / sizeof *users.user)
        return;
    users.user[n].lo = lo;
    users.user[n].hi = hi;
    atomic_store_explicit(&users.n, n + 1, memory_order_release);
    atomic_store(&gt_old_cond_users, true);
}

static int visit(struct dl_phdr_info *info, size_t size, void *unused)
{
    struct dynamic d = {0};
    (void)size;
    (void)unused;
    if (read_dynamic(info, &d) && calls_old_cond(&d))
        remember(info);
    return 0;
}

void gt_old_cond_scan(void)
{
    if (!*GT_ARCH_COND_VERSION)
        return;
    gt_lock(&users.lock, GT_RANK_OLD_COND);
    if (!gt_old_cond.wait) {
        gt_old_cond.timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", OLD_VERSION);
        gt_old_cond.signal = dlvsym(RTLD_NEXT, "pthread_cond_signal", OLD_VERSION);
        gt_old_cond.broadcast = dlvsym(RTLD_NEXT, "pthread_cond_broadcast", OLD_VERSION);
        gt_old_cond.wait = dlvsym(RTLD_NEXT, "pthread_cond_wait", OLD_VERSION);
    }
    if (gt_old_cond.wait)
        dl_iterate_phdr(visit, NULL);
    gt_unlock(&users.lock);
}

bool gt_old_cond_calls_slow(const void *caller)
{
    uintptr_t pc = (uintptr_t)caller;
    uint32_t n = atomic_load_explicit(&users.n, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        if (pc >= users.user[i].lo && pc < users.user[i].hi)
            return true;
    }
    return false;
}
