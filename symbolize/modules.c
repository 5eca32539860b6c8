/* See modules.h. */
#include "modules.h"

#include "image.h"
#include "text.h"

#include "../encoder/arena.h"
#include "../encoder/futex.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    struct gt_lock lock;
    _Atomic(struct gt_module *) first;
    _Atomic uint64_t epoch;
    unsigned long long adds, subs; /* the loader's counters at the last snapshot */
    struct gt_arena arena;
} map;

struct snapshot {
    bool unchanged, any;
    uint64_t mark; /* entries seen in this snapshot get `seen` = mark */
};

struct entry {
    struct gt_module module; /* first: the lists are of these */
    uint64_t seen;           /* the last snapshot that met it */
    uint64_t name_hash;      /* of the loader's name */
    bool fresh;              /* added by the current snapshot */
};

static uint64_t snapshots;

static uint64_t hash_of(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return hash;
}

static char path[PATH_MAX]; /* under map.lock; the threads that get here may have small stacks */

static const char *copy_text(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = gt_arena_alloc(&map.arena, n);
    return copy ? memcpy(copy, s, n) : "";
}

/* A note's bytes are there to read only if a segment loaded them: headers can say anything. */
static bool is_loaded(const struct dl_phdr_info *info, const ElfW(Phdr) * note)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_LOAD && (ph->p_flags & PF_R) && note->p_vaddr >= ph->p_vaddr &&
            note->p_vaddr - ph->p_vaddr <= ph->p_filesz &&
            note->p_memsz <= ph->p_filesz - (note->p_vaddr - ph->p_vaddr))
            return true;
    }
    return false;
}

static void read_build_id(struct gt_module *m, const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum && !m->build_id_len; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_NOTE && is_loaded(info, ph))
            m->build_id_len = gt_build_id_in((const void *)(uintptr_t)(m->bias + ph->p_vaddr),
                                             ph->p_memsz, ph->p_align, m->build_id);
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

/* Into `path`, or elsewhere. Not getcwd of libc, which may call malloc where the kernel has no
 * answer. */
static const char *make_absolute(char out[PATH_MAX], const char *name)
{
    long n = *name == '/' ? 0 : gt_syscall(SYS_getcwd, out, PATH_MAX);
    struct gt_text t = {out + (n > 0 ? n - 1 : 0), out + PATH_MAX - 1};
    gt_text_add(&t, *name == '/' ? "" : "/");
    gt_text_add(&t, strncmp(name, "./", 2) == 0 ? name + 2 : name);
    return out;
}

/* The program may change its working directory before the file is read. Without "//", which stands
 * for more in a description. */
static const char *absolute(const char *name)
{
    char *to = path;
    for (const char *from = make_absolute(path, name); *from; from++) {
        if (from[0] != '/' || from[1] != '/')
            *to++ = *from;
    }
    *to = 0;
    return copy_text(path);
}

/* What the kernel was told to start, or the loader (see executable_path); NULL: not a path. */
static const char *told(void)
{
    const char *name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    bool by_loader = !getauxval(AT_BASE);
    return name && *name && (!by_loader || strchr(name, '/')) ? name : NULL;
}

/*
 * The executable: the file the kernel started, unless that was the loader, which then has no base
 * (`ld.so ./program`: it makes all else look as if the kernel had started that, and AT_EXECFN what
 * it was told; argv[0] may be anything, by its --argv0). Links are followed now: later they may
 * lead elsewhere.
 */
static const char *executable_path(const struct gt_module *m)
{
    static const char deleted[] = " (deleted)";
    uint64_t headers = getauxval(AT_PHDR);
    const char *name = told();
    if (!getauxval(AT_BASE))
        return !name ? "" : realpath(name, path) ? copy_text(path) : absolute(name);
    if (headers < m->lo || headers >= m->hi)
        return "";
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    size_t tail = sizeof deleted - 1;
    if (n > (ssize_t)tail && strcmp(path + n - tail, deleted) == 0)
        path[n - (ssize_t)tail] = 0;
    return copy_text(path);
}

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat s, t;
    return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

/*
 * The name by which the executable was started, if it has another one there: many programs are one
 * file (busybox, redis). NULL: it has not; or that was a script; or a name of the kernel's, of a
 * descriptor or for the process itself, which says nothing.
 */
static const char *called(const char *file)
{
    static char name[PATH_MAX];
    const char *start = told();
    if (!start || !*file || strncmp(start, "/proc/", 6) == 0 || strncmp(start, "/dev/fd/", 8) == 0)
        return NULL;
    if (strcmp(base_of(start), base_of(file)) == 0 ||
        !is_same_file(start, getauxval(AT_BASE) ? "/proc/self/exe" : file))
        return NULL;
    return make_absolute(name, start);
}

static const char *path_of(const struct gt_module *m, const char *name)
{
    uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (vdso && vdso >= m->lo && vdso < m->hi)
        return "[vdso]";
    return *name ? absolute(name) : executable_path(m);
}

static bool is_at(const struct gt_module *m, const struct gt_module *found)
{
    return m->unloaded == UINT64_MAX && m->lo == found->lo && m->hi == found->hi &&
           m->bias == found->bias;
}

/*
 * The entry of a module known already. One library may have taken the very place of another since
 * the last snapshot: the loader's record of its name is then another, and so is the build ID.
 */
static struct entry *find_current(const struct gt_module *found, const char *name)
{
    struct gt_module *m = atomic_load_explicit(&map.first, memory_order_relaxed);
    while (m && !(is_at(m, found) && ((struct entry *)m)->name_hash == hash_of(name) &&
                  m->build_id_len == found->build_id_len &&
                  memcmp(m->build_id, found->build_id, found->build_id_len) == 0))
        m = m->next;
    return (struct entry *)m;
}

/* Addresses that no other module was shown at, now or before. */
static uint64_t shown_for(const struct gt_module *found)
{
    static uint64_t next = GT_MODULES_ELSEWHERE;
    enum { PAGE = 4096 };
    for (struct gt_module *m = map.first; m; m = m->next) {
        if (found->lo < m->hi && m->lo < found->hi) {
            uint64_t start = next;
            next += (found->hi - found->lo + 2 * PAGE - 1) & ~(uint64_t)(PAGE - 1);
            return start;
        }
    }
    return found->lo;
}

static void add_locked(const struct gt_module *found, const char *name, uint64_t mark)
{
    struct entry *e = gt_arena_alloc(&map.arena, sizeof *e);
    if (!e)
        return;
    e->module = *found;
    e->module.path = path_of(found, name);
    if (!*name && e->module.path[0] == '/')
        e->module.called = called(e->module.path);
    e->module.shown = shown_for(found);
    e->name_hash = hash_of(name);
    e->seen = mark;
    e->fresh = true;
    e->module.unloaded = UINT64_MAX;
    e->module.loaded = UINT64_MAX; /* until retire_locked knows */
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
    read_build_id(&found, info);
    struct entry *known = find_current(&found, info->dlpi_name);
    if (known)
        known->seen = snap->mark;
    else
        add_locked(&found, info->dlpi_name, snap->mark);
    return 0;
}

/* Whether the place of a module that is gone was taken by m, in the same snapshot. */
static bool takes_place(const struct entry *m, uint64_t mark)
{
    for (struct gt_module *old = map.first; old; old = old->next) {
        if (old->unloaded == UINT64_MAX && ((struct entry *)old)->seen != mark &&
            old->lo < m->module.hi && m->module.lo < old->hi)
            return true;
    }
    return false;
}

/*
 * Modules the snapshot did not meet are gone; their addresses may be somebody else's from now on.
 * A new module that has taken the place of an old one begins where that ends, so that addresses
 * recorded before this snapshot go to the old one. Others begin an epoch earlier: code of theirs
 * may already have been recorded.
 */
static void retire_locked(uint64_t mark)
{
    uint64_t now = atomic_load_explicit(&map.epoch, memory_order_relaxed), next = now + 1;
    bool any = false;
    for (struct gt_module *m = map.first; m; m = m->next) {
        struct entry *e = (struct entry *)m;
        if (e->fresh)
            __atomic_store_n(&m->loaded, takes_place(e, mark) ? next : now, __ATOMIC_RELAXED);
        e->fresh = false;
    }
    for (struct gt_module *m = map.first; m; m = m->next) {
        if (m->unloaded == UINT64_MAX && ((struct entry *)m)->seen != mark) {
            __atomic_store_n(&m->unloaded, next, __ATOMIC_RELAXED);
            any = true;
        }
    }
    if (any)
        atomic_store_explicit(&map.epoch, next, memory_order_release);
}

/*
 * A collector that stops its threads with signals looks for its roots by dl_iterate_phdr too: it
 * would wait for ever for the loader's lock, were this thread stopped with it.
 */
uint64_t gt_modules_refresh(void)
{
    int saved = errno;
    uint64_t signals = gt_signals_hold();
    if (!gt_lock_within(&map.lock, GT_LOCK_PATIENCE_NS)) {
        gt_signals_release(signals);
        return gt_modules_epoch();
    }
    if (!map.epoch)
        atomic_store(&map.epoch, 1);
    struct snapshot snap = {.mark = ++snapshots};
    dl_iterate_phdr(visit, &snap);
    if (!snap.unchanged)
        retire_locked(snap.mark);
    uint64_t epoch = map.epoch;
    gt_unlock(&map.lock);
    gt_signals_release(signals);
    errno = saved;
    return epoch;
}

uint64_t gt_modules_epoch(void)
{
    return atomic_load_explicit(&map.epoch, memory_order_acquire);
}

/* Only these two fields change, and never for an epoch that is over. */
static bool was_loaded(const struct gt_module *m, uint64_t epoch)
{
    return __atomic_load_n(&m->loaded, __ATOMIC_RELAXED) <= epoch &&
           epoch < __atomic_load_n(&m->unloaded, __ATOMIC_RELAXED);
}

const struct gt_module *gt_modules_find(uint64_t epoch, uint64_t pc)
{
    const struct gt_module *m = atomic_load_explicit(&map.first, memory_order_acquire);
    while (m && !(pc >= m->lo && pc < m->hi && was_loaded(m, epoch)))
        m = m->next;
    return m;
}

const struct gt_module *gt_modules_last(void)
{
    return atomic_load_explicit(&map.first, memory_order_acquire);
}

/* Descriptions ------------------------------------------------------------------------------- */

static const char head[] = "gotrace-module ";

bool gt_modules_describe(const struct gt_module *m, char *text, size_t size)
{
    struct gt_text t = gt_text_start(text, size);
    const uint64_t numbers[] = {m->shown, m->hi - m->lo, m->lo - m->bias};
    gt_text_add(&t, head);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        gt_text_hex(&t, numbers[i]);
        gt_text_add(&t, " ");
    }
    gt_text_hex_bytes(&t, m->build_id, m->build_id_len);
    gt_text_add(&t, m->build_id_len ? " " : "- ");
    gt_text_add(&t, m->path);
    if (m->called && t.pos + 1 + strlen(m->called) < t.last) {
        gt_text_add(&t, "/");
        gt_text_add(&t, m->called);
    }
    return t.pos < t.last;
}

static int digit(char c)
{
    const char *found = c ? strchr("0123456789abcdef", c) : NULL;
    return found ? (int)(found - "0123456789abcdef") : -1;
}

/* Reads hexadecimal digits and the space behind them. */
static bool take_number(const char **s, uint64_t *value)
{
    const char *start = *s;
    for (*value = 0; digit(**s) >= 0; ++*s)
        *value = *value << 4 | (uint64_t)digit(**s);
    return *s > start && *(*s)++ == ' ';
}

static bool take_build_id(const char **s, struct gt_module *m)
{
    if (**s == '-')
        ++*s;
    for (; digit((*s)[0]) >= 0 && digit((*s)[1]) >= 0; *s += 2) {
        if (m->build_id_len == sizeof m->build_id)
            return false;
        m->build_id[m->build_id_len++] = (uint8_t)(digit((*s)[0]) << 4 | digit((*s)[1]));
    }
    return *(*s)++ == ' ';
}

const struct gt_module *gt_modules_add(const char *s)
{
    struct gt_module m = {.loaded = 0, .unloaded = UINT64_MAX};
    uint64_t size, address;
    if (strncmp(s, head, sizeof head - 1) != 0)
        return NULL;
    s += sizeof head - 1;
    if (!take_number(&s, &m.lo) || !take_number(&s, &size) || !take_number(&s, &address) ||
        !take_build_id(&s, &m))
        return NULL;
    struct entry *e = gt_arena_alloc(&map.arena, sizeof *e);
    if (!e)
        return NULL;
    m.shown = m.lo;
    m.hi = m.lo + size;
    m.bias = m.lo - address;
    const char *second = *s == '/' ? strstr(s, "//") : NULL;
    m.path = copy_text(s);
    if (second && *m.path) {
        m.called = m.path + (second - s) + 1;
        ((char *)m.path)[second - s] = 0;
    }
    m.next = atomic_load_explicit(&map.first, memory_order_relaxed);
    e->module = m;
    atomic_store_explicit(&map.first, &e->module, memory_order_release);
    return &e->module;
}

bool gt_modules_fork_begin(void)
{
    return gt_lock_within(&map.lock, GT_LOCK_PATIENCE_NS);
}

void gt_modules_fork_end(void)
{
    gt_unlock(&map.lock);
}

/* A fork that was not held off may have come in the middle of a snapshot: the next one is whole. */
void gt_modules_after_fork(void)
{
    map.lock = (struct gt_lock){0};
    map.adds = map.subs = 0;
    for (struct gt_module *m = map.first; m; m = m->next) {
        if (m->unloaded != UINT64_MAX && m->unloaded > map.epoch)
            map.epoch = m->unloaded;
    }
}
