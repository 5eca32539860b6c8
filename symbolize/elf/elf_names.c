/* See elf_names.h. As a rule gt_real_resolve calls this while the process has one thread. */
#include "elf_names.h"

#include "gnu_hash.h"
#include "libc_names.h"

#include "encoder/base/glibc.h"
#include "encoder/base/libc.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden"))); /* ours */

struct table {
    ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *sysv_hash;
    const ElfW(Versym) * versions;
};

/* all: reads the versions, too, which come last. Not otherwise, since a process looks up some 300
 * names before it begins. */
static struct table read_table(const struct link_map *map, bool all)
{
    struct table t = {0};
    const ElfW(Dyn) *dyn = map->l_ld;
    for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
        if (!all && t.symbols && t.strings && t.gnu_hash)
            break;
        /* glibc relocates these addresses in place, but not those of the vDSO. */
        bool relocated = dyn->d_un.d_ptr >= map->l_addr;
        void *p = (void *)(dyn->d_un.d_ptr + (relocated ? 0 : map->l_addr));
        switch (dyn->d_tag) {
        case DT_SYMTAB: t.symbols = p; break;
        case DT_STRTAB: t.strings = p; break;
        case DT_GNU_HASH: t.gnu_hash = p; break;
        case DT_HASH: t.sysv_hash = p; break;
        case DT_VERSYM: t.versions = p; break;
        }
    }
    return t;
}

bool gt_elf_are_same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static bool is_named(const struct table *t, const ElfW(Sym) * symbol, const char *name)
{
    return gt_elf_are_same(t->strings + symbol->st_name, name);
}

uint32_t gt_elf_hash(const char *name)
{
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (uint8_t)*name;
    return h;
}

/* Never NULL: the compiler then leaves out what gt_gnu_find does about that. */
static const void *in_our_memory(const void *module, uintptr_t address, size_t size)
{
    (void)module, (void)size;
    if (!address)
        __builtin_unreachable();
    return (const void *)address;
}

/* hash: gt_elf_hash(name). last: NULL, or the previous result, to find the next version. */
static ElfW(Sym) *
    find(const struct table *t, const char *name, uint32_t hash, const ElfW(Sym) * last)
{
    if (!t->symbols || !t->strings)
        return NULL;
    uint32_t i = last ? (uint32_t)(last - t->symbols) + 1 : 1;
    if (t->gnu_hash) {
        const struct gt_gnu_hash its = {(uintptr_t)t->gnu_hash, (uintptr_t)t->symbols,
                                        (uintptr_t)t->strings};
        i = gt_gnu_find(&its, in_our_memory, NULL, name, hash, i, UINT32_MAX);
        return i ? &t->symbols[i] : NULL;
    }
    for (; t->sysv_hash && i < t->sysv_hash[1]; i++) {
        if (is_named(t, &t->symbols[i], name))
            return &t->symbols[i];
    }
    return NULL;
}

/* Walks the loader's list once, while we are loaded: later another thread may unload modules. */
struct link_map *gt_elf_ours(void)
{
    static _Atomic(struct link_map *) ours;
    struct link_map *map = atomic_load_explicit(&ours, memory_order_relaxed);
    if (map)
        return map;
    map = _r_debug.r_map;
    while (map && map->l_ld != _DYNAMIC)
        map = map->l_next;
    atomic_store_explicit(&ours, map, memory_order_relaxed);
    return map;
}

/* Whether it is a definition. An undefined symbol may have a value, too: in an executable that
 * takes the function's address. */
static bool is_defined(const ElfW(Sym) * symbol)
{
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
           ELF64_ST_BIND(symbol->st_info) != STB_LOCAL;
}

static ElfW(Sym) * definition(const struct link_map *map, const char *name, uint32_t hash)
{
    struct table t = read_table(map, false);
    ElfW(Sym) *symbol = find(&t, name, hash, NULL);
    return symbol && is_defined(symbol) ? symbol : NULL;
}

ElfW(Sym) * gt_elf_definition(const struct link_map *map, const char *name)
{
    return definition(map, name, gt_elf_hash(name));
}

static ElfW(Sym) * default_version(const struct table *t, const char *name, uint32_t hash)
{
    enum { HIDDEN = 0x8000 }; /* a version that only references with that version find */
    ElfW(Sym) *symbol = find(t, name, hash, NULL);
    while (symbol && t->versions && t->versions[symbol - t->symbols] & HIDDEN)
        symbol = find(t, name, hash, symbol);
    return symbol && is_defined(symbol) ? symbol : NULL;
}

ElfW(Sym) * gt_elf_newest(const struct link_map *map, const char *name)
{
    struct table t = read_table(map, true);
    return default_version(&t, name, gt_elf_hash(name));
}

static const char *file_of(const char *path)
{
    const char *file = path;
    for (; *path; path++)
        file = *path == '/' ? path + 1 : file;
    return file;
}

const char *gt_elf_soname(const struct link_map *map)
{
    struct table t = read_table(map, false);
    for (const ElfW(Dyn) *dyn = map->l_ld; dyn && dyn->d_tag != DT_NULL; dyn++) {
        if (dyn->d_tag == DT_SONAME && t.strings)
            return t.strings + dyn->d_un.d_val;
    }
    return file_of(map->l_name);
}

bool gt_elf_needs(const struct link_map *map, const struct link_map *library)
{
    struct table t = read_table(map, false);
    const char *name = gt_elf_soname(library);
    for (const ElfW(Dyn) *dyn = map->l_ld; dyn && dyn->d_tag != DT_NULL; dyn++) {
        if (dyn->d_tag == DT_NEEDED && t.strings &&
            gt_elf_are_same(file_of(t.strings + dyn->d_un.d_val), name))
            return true;
    }
    return false;
}

void *gt_elf_function(const struct link_map *map, const char *name)
{
    const ElfW(Sym) *symbol = gt_elf_newest(map, name);
    bool is = symbol && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
    return is ? (void *)(map->l_addr + symbol->st_value) : NULL;
}

struct link_map *gt_elf_definer(const char *name)
{
    const struct link_map *ours = gt_elf_ours();
    struct link_map *map = _r_debug.r_map;
    while (map && (map == ours || !gt_elf_definition(map, name)))
        map = map->l_next;
    return map;
}

struct link_map *gt_elf_definer_before_us(const char *name)
{
    struct link_map *ours = gt_elf_ours(), *map = ours;
    uint32_t hash = gt_elf_hash(name);
    while (map && map->l_prev)
        map = map->l_prev;
    while (map && map != ours && !definition(map, name, hash))
        map = map->l_next;
    return map == ours ? NULL : map;
}

/* Looks once: the order of libc and our library never changes. */
bool gt_elf_is_late(void)
{
    enum { IN_TIME = 1, LATE };
    static _Atomic int known;
    int is = atomic_load_explicit(&known, memory_order_relaxed);
    if (!is) {
        const struct link_map *map = gt_libc_map(), *ours = gt_elf_ours();
        while (map && map != ours)
            map = map->l_next;
        is = map ? LATE : IN_TIME;
        atomic_store_explicit(&known, is, memory_order_relaxed);
    }
    return is == LATE;
}

/* Searches from the last module on: libc, which defines almost all names, is among the last. */
bool gt_elf_is_defined_after_us(const char *name)
{
    struct link_map *ours = gt_elf_ours(), *map = ours;
    uint32_t hash = gt_elf_hash(name);
    while (map && map->l_next)
        map = map->l_next;
    while (map != ours && !definition(map, name, hash))
        map = map->l_prev;
    return map != ours || !ours || gt_elf_is_late();
}

/*
 * Leaves out the kernel's module, which no look-up searches. Stops at a module without a GNU hash
 * table: it may define any name, so the modules behind it must not be used.
 */
void gt_elf_next_begin(struct gt_elf_next *next)
{
    const struct link_map *map = gt_elf_ours();
    ElfW(Addr) kernels = getauxval(AT_SYSINFO_EHDR);
    next->n = 0;
    while (map && (map = map->l_next) && next->n < GT_ELF_NEXT_MODULES) {
        if (kernels && map->l_addr == kernels)
            continue;
        struct table t = read_table(map, true);
        if (!t.symbols || !t.strings || !t.gnu_hash)
            return;
        next->module[next->n++] =
            (struct gt_elf_module){map->l_addr, t.symbols, t.strings, t.gnu_hash, t.versions};
    }
}

static const ElfW(Sym) * defined_in(const struct gt_elf_module *m, const char *name, uint32_t hash)
{
    struct table t = {(ElfW(Sym) *)m->symbols, m->strings, m->gnu_hash, NULL, m->versions};
    return default_version(&t, name, hash);
}

bool gt_elf_next_end_at_libc(struct gt_elf_next *next)
{
    const struct link_map *libc = gt_libc_map();
    int i = 0;
    while (i < next->n && (!libc || next->module[i].base != libc->l_addr))
        i++;
    bool found = i < next->n;
    next->n = found ? i + 1 : next->n;
    return found;
}

void *gt_elf_next_function(const struct gt_elf_next *next, const char *name)
{
    uint32_t hash = gt_elf_hash(name);
    for (const struct gt_elf_module *m = next->module; m < next->module + next->n; m++) {
        const ElfW(Sym) *symbol = defined_in(m, name, hash);
        if (symbol) {
            bool plain = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
            return plain ? (void *)(m->base + symbol->st_value) : NULL;
        }
    }
    return NULL;
}

struct search {
    uintptr_t address;
    const void *found;
    bool code; /* the address lies in a segment with code */
};

static int is_in_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *search = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_LOAD || search->address - info->dlpi_addr - ph->p_vaddr >= ph->p_memsz)
            continue;
        search->found = info->dlpi_phdr;
        search->code = ph->p_flags & PF_X;
    }
    return search->found != NULL;
}

/* Changes the protection of symbols. Keeps them executable if need be: old linkers put symbols and
 * code into one segment. */
static bool protect(const ElfW(Sym) * first, const ElfW(Sym) * last, int how)
{
    uintptr_t lo = (uintptr_t)first & -(uintptr_t)sysconf(_SC_PAGESIZE);
    struct search search = {.address = (uintptr_t)first};
    gt_elf_each_module(is_in_module, &search);
    return mprotect((void *)lo, (uintptr_t)(last + 1) - lo, how | (search.code ? PROT_EXEC : 0)) ==
           0;
}

bool gt_elf_hide(const struct link_map *map, const char *const *names, int n)
{
    ElfW(Sym) * symbol[n + 1], *first = NULL, *last = NULL;
    for (int i = 0; i < n; i++) {
        symbol[i] = map ? gt_elf_definition(map, names[i]) : NULL;
        if (symbol[i] && (!first || symbol[i] < first))
            first = symbol[i];
        if (symbol[i] > last)
            last = symbol[i];
    }
    if (!first || !protect(first, last, PROT_READ | PROT_WRITE))
        return !first;
    for (int i = 0; i < n; i++) {
        if (symbol[i]) /* look-ups of glibc skip undefined symbols with value 0 */
            symbol[i]->st_value = 0, symbol[i]->st_shndx = SHN_UNDEF;
    }
    protect(first, last, PROT_READ);
    return true;
}

bool gt_elf_redefine(const struct link_map *map, const char *name, const void *from,
                     void (*to)(void))
{
    struct table t = read_table(map, false);
    uint32_t hash = gt_elf_hash(name);
    ElfW(Sym) *symbol = NULL;
    bool done = false;
    while ((symbol = find(&t, name, hash, symbol))) {
        if (from && map->l_addr + symbol->st_value != (uintptr_t)from)
            continue;
        if (!protect(symbol, symbol, PROT_READ | PROT_WRITE))
            return false;
        __atomic_store_n(&symbol->st_value, (uintptr_t)to - map->l_addr, __ATOMIC_RELAXED);
        protect(symbol, symbol, PROT_READ);
        done = true;
    }
    return done;
}

void gt_elf_each_module(int (*visit)(struct dl_phdr_info *info, size_t size, void *arg), void *arg)
{
    static __typeof__(&dl_iterate_phdr) libcs;
    __typeof__(&dl_iterate_phdr) found = __atomic_load_n(&libcs, __ATOMIC_RELAXED);
    if (!found) {
        void *own = gt_libc_function("dl_iterate_phdr");
        found = own ? (__typeof__(found))own : dl_iterate_phdr;
        __atomic_store_n(&libcs, found, __ATOMIC_RELAXED);
    }
    found(visit, arg);
}

/* The loader's lock ---------------------------------------------------------------------------- */

static bool is_recursive(const pthread_mutex_t *mutex)
{
    return gt_glibc_mutex_kind(mutex) == PTHREAD_MUTEX_RECURSIVE_NP;
}

static bool has(const pthread_mutex_t *mutex, pid_t thread)
{
    return gt_glibc_mutex_owner(mutex) == (uint32_t)thread && gt_glibc_mutex_count(mutex);
}

/*
 * Finds _dl_load_lock. In all versions of glibc it stands before _dl_load_write_lock in the
 * loader's data (ldsodefs.h). While libc calls this function, the calling thread holds the second
 * of them, and perhaps the first one, too.
 */
static int find_loaders_lock(struct dl_phdr_info *info, size_t size, void *arg)
{
    pthread_mutex_t **found = arg;
    pid_t self = (pid_t)gt_syscall(SYS_gettid);
    const struct link_map *loader = gt_elf_definer("_rtld_global");
    const ElfW(Sym) *data = loader ? gt_elf_definition(loader, "_rtld_global") : NULL;
    (void)info, (void)size;
    if (!data)
        return 1;
    char *begin = (char *)(loader->l_addr + data->st_value), *end = begin + data->st_size;
    for (char *p = begin; p + 2 * sizeof **found <= end; p += sizeof(void *)) {
        pthread_mutex_t *pair = (void *)p;
        if (has(&pair[1], self) && is_recursive(&pair[1]) && is_recursive(&pair[0]))
            *found = pair;
    }
    return 1;
}

/* The loader's lock, and libc's own functions for it, not those that the program would call. */
static struct {
    pthread_mutex_t *_Atomic lock; /* written last */
    __typeof__(&pthread_mutex_trylock) try;
    __typeof__(&pthread_mutex_clocklock) wait;
    __typeof__(&pthread_mutex_unlock) leave;
} loaders;

/* Whether the loader's lock was found. Not before glibc 2.34, where libpthread is separate. */
static bool knows_loader(void)
{
    pthread_mutex_t *lock = NULL;
    if (atomic_load(&loaders.lock))
        return true;
    const struct link_map *map = gt_libc_map();
    if (!map)
        return false;
    loaders.try = (__typeof__(loaders.try))gt_elf_function(map, "pthread_mutex_trylock");
    loaders.wait = (__typeof__(loaders.wait))gt_elf_function(map, "pthread_mutex_clocklock");
    loaders.leave = (__typeof__(loaders.leave))gt_elf_function(map, "pthread_mutex_unlock");
    if (loaders.try && loaders.wait && loaders.leave)
        gt_elf_each_module(find_loaders_lock, &lock);
    atomic_store(&loaders.lock, lock);
    return lock;
}

int gt_elf_loader_enter(uint64_t ns)
{
    struct timespec until;
    if (!knows_loader() || loaders.try(loaders.lock) == 0)
        return 0;
    if (!ns)
        return EBUSY;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t at = (uint64_t)until.tv_nsec + ns;
    until.tv_sec += (time_t)(at / 1000000000);
    until.tv_nsec = (long)(at % 1000000000);
    return loaders.wait(loaders.lock, CLOCK_MONOTONIC, &until) == 0 ? 0 : EBUSY;
}

void gt_elf_loader_leave(void)
{
    if (knows_loader())
        loaders.leave(loaders.lock);
}

bool gt_elf_loader_is_ours(void)
{
    return knows_loader() && has(loaders.lock, (pid_t)gt_syscall(SYS_gettid));
}

const void *gt_elf_module_of(const void *code)
{
    struct search search = {.address = (uintptr_t)code};
    gt_elf_each_module(is_in_module, &search);
    return search.found;
}

void gt_elf_span(const struct dl_phdr_info *info, uint64_t *lo, uint64_t *hi)
{
    *lo = UINT64_MAX;
    *hi = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type != PT_LOAD)
            continue;
        *lo = start < *lo ? start : *lo;
        *hi = start + ph->p_memsz > *hi ? start + ph->p_memsz : *hi;
    }
}

void gt_elf_image_range(const ElfW(Ehdr) * image, uintptr_t *lo, uintptr_t *hi)
{
    *lo = *hi = (uintptr_t)image;
    if (!image) /* the loader was started as the program */
        return;
    const ElfW(Phdr) *ph = (const void *)((const char *)image + image->e_phoff);
    for (int i = 0; i < image->e_phnum; i++) {
        if (ph[i].p_type == PT_LOAD)
            *hi = *lo + ph[i].p_vaddr + ph[i].p_memsz;
    }
}

void gt_elf_loader_range(uintptr_t *lo, uintptr_t *hi)
{
    gt_elf_image_range((const void *)getauxval(AT_BASE), lo, hi);
}
