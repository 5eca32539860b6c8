/* See modules.h. */
#include "modules.h"

#include "../encoder/arena.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static struct {
    struct gt_lock lock;
    _Atomic(struct gt_module *) first;
    _Atomic uint64_t epoch;
    unsigned long long adds, subs; /* the loader's counters at the last snapshot */
    struct gt_arena arena;
    char exe[4096];
} map;

struct snapshot {
    bool unchanged, any;
    uint64_t mark; /* entries seen in this snapshot get `seen` = mark */
};

/* An entry and whether the current snapshot has met it. */
struct entry {
    struct gt_module module;
    uint64_t seen;
};

static uint64_t snapshots;

static const char *copy_text(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = gt_arena_alloc(&map.arena, n);
    return copy ? memcpy(copy, s, n) : "";
}

static void read_build_id(struct gt_module *m, const ElfW(Phdr) * ph)
{
    const char *p = (const char *)(uintptr_t)(m->bias + ph->p_vaddr);
    const char *end = p + ph->p_memsz;
    size_t align = ph->p_align == 8 ? 8 : 4;
    while (p + sizeof(ElfW(Nhdr)) <= end && !m->build_id_len) {
        const ElfW(Nhdr) *n = (const void *)p;
        const char *name = p + sizeof *n;
        const char *desc = name + ((n->n_namesz + align - 1) & ~(align - 1));
        if (desc + n->n_descsz > end)
            return;
        if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
            n->n_descsz <= sizeof m->build_id) {
            memcpy(m->build_id, desc, n->n_descsz);
            m->build_id_len = (uint8_t)n->n_descsz;
        }
        p = desc + ((n->n_descsz + align - 1) & ~(align - 1));
    }
}

static void span(struct gt_module *m, const struct dl_phdr_info *info)
{
    m->lo = UINT64_MAX;
    m->hi = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uint64_t start = m->bias + ph->p_vaddr;
        if (ph->p_type != PT_LOAD)
            continue;
        m->lo = start < m->lo ? start : m->lo;
        m->hi = start + ph->p_memsz > m->hi ? start + ph->p_memsz : m->hi;
    }
}

static const char *path_of(const struct gt_module *m, const char *name)
{
    uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (vdso && vdso >= m->lo && vdso < m->hi)
        return "[vdso]";
    if (*name)
        return copy_text(name);
    if (!map.exe[0] && readlink("/proc/self/exe", map.exe, sizeof map.exe - 1) < 0)
        map.exe[0] = 0;
    return map.exe;
}

static struct entry *find_current(uint64_t lo, uint64_t hi, uint64_t bias)
{
    struct gt_module *m = atomic_load_explicit(&map.first, memory_order_relaxed);
    while (m && !(m->unloaded == UINT64_MAX && m->lo == lo && m->hi == hi && m->bias == bias))
        m = m->next;
    return (struct entry *)m;
}

static void add_locked(const struct gt_module *found, const struct dl_phdr_info *info,
                       uint64_t mark)
{
    struct entry *e = gt_arena_alloc(&map.arena, sizeof *e);
    if (!e)
        return;
    e->module = *found;
    e->module.path = path_of(found, info->dlpi_name);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            read_build_id(&e->module, &info->dlpi_phdr[i]);
    }
    e->seen = mark;
    e->module.unloaded = UINT64_MAX;
    e->module.loaded = atomic_load_explicit(&map.epoch, memory_order_relaxed);
    e->module.next = atomic_load_explicit(&map.first, memory_order_relaxed);
    /* release: pairs with gt_modules_find's acquire */
    atomic_store_explicit(&map.first, &e->module, memory_order_release);
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct snapshot *snap = arg;
    (void)size;
    if (!snap->any && map.adds == info->dlpi_adds && map.subs == info->dlpi_subs) {
        snap->unchanged = true;
        return 1;
    }
    snap->any = true;
    map.adds = info->dlpi_adds;
    map.subs = info->dlpi_subs;
    struct gt_module found = {.bias = info->dlpi_addr};
    span(&found, info);
    if (found.lo >= found.hi)
        return 0;
    struct entry *known = find_current(found.lo, found.hi, found.bias);
    if (known)
        known->seen = snap->mark;
    else
        add_locked(&found, info, snap->mark);
    return 0;
}

/* Modules the snapshot did not meet are gone; their addresses may be somebody else's from now on,
 * including those of modules that this same snapshot found in their place. */
static void retire_locked(uint64_t mark)
{
    uint64_t next = atomic_load_explicit(&map.epoch, memory_order_relaxed) + 1;
    bool any = false;
    for (struct gt_module *m = map.first; m; m = m->next) {
        if (m->unloaded == UINT64_MAX && ((struct entry *)m)->seen != mark) {
            m->unloaded = next;
            any = true;
        }
    }
    if (any)
        atomic_store_explicit(&map.epoch, next, memory_order_release);
}

uint64_t gt_modules_refresh(void)
{
    int saved = errno;
    gt_lock(&map.lock);
    if (!map.epoch)
        atomic_store(&map.epoch, 1);
    struct snapshot snap = {.mark = ++snapshots};
    dl_iterate_phdr(visit, &snap);
    if (!snap.unchanged)
        retire_locked(snap.mark);
    uint64_t epoch = map.epoch;
    gt_unlock(&map.lock);
    errno = saved;
    return epoch;
}

uint64_t gt_modules_epoch(void)
{
    return atomic_load_explicit(&map.epoch, memory_order_acquire);
}

const struct gt_module *gt_modules_find(uint64_t epoch, uint64_t pc)
{
    const struct gt_module *m = atomic_load_explicit(&map.first, memory_order_acquire);
    while (m && !(pc >= m->lo && pc < m->hi && m->loaded <= epoch && epoch < m->unloaded))
        m = m->next;
    return m;
}

void gt_modules_after_fork(void)
{
    map.lock = map.arena.lock = (struct gt_lock){0};
}
