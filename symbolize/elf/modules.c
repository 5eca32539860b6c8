/* See modules.h. */
#include "modules.h"

#include "elf_names.h"
#include "image.h"

#include "encoder/base/arena.h"
#include "encoder/base/box.h"
#include "encoder/base/era.h"
#include "encoder/base/futex.h"
#include "encoder/base/hash.h"
#include "encoder/base/path.h"
#include "encoder/base/sparse.h"
#include "encoder/base/strbuf.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    struct gt_lock lock;
    _Atomic(struct gt_module *) first; /* list of all modules, newest first */
    _Atomic uint32_t changes;          /* counts changes of that list */
    _Atomic uint64_t epoch;
    unsigned long long adds, subs; /* the loader's counters at the last snapshot */
    struct gt_arena arena, before; /* before: the entries from before gt_modules_forget */
    struct gt_arena boxed;         /* of struct gt_boxed_module */
    struct entry *loaded, **end;   /* list of the loaded modules, in the loader's order */
    struct entry *next_met;        /* probably the next entry that a snapshot meets */
    _Atomic size_t gone;
    uint64_t forgotten_lo, forgotten_hi; /* range of the forgotten modules' addresses */
} map;

struct snapshot {
    bool unchanged, any;
    uint64_t mark; /* entries seen in this snapshot get `seen` = mark */
};

struct entry {
    struct gt_module module; /* must be first: pointers to it become pointers to the entry */
    uint64_t seen;           /* the last snapshot that met it */
    uint64_t name_hash;      /* of the loader's name */
    bool fresh;              /* added by the current snapshot */
    bool weighed;            /* counted as gone, see WEIGHT */
    struct entry *next;      /* in map.loaded */
    struct entry *copy;      /* used by gt_modules_forget */
    struct gt_boxed_module *boxed;
};

/* Bytes that a gone module counts in an era of stacks, so that the era ends early if many modules
 * are gone. After its end they can be forgotten. */
enum { WEIGHT = 4096 };

static uint64_t hash_of(const char *name)
{
    return gt_hash_bytes(name, strlen(name));
}

/* Used under map.lock. Static, because the calling threads may have small stacks. */
static char path[PATH_MAX] GT_SPARSE;

static const char *copy_text(const char *s)
{
    const char *copy = gt_arena_copy(&map.arena, s, strlen(s) + 1);
    return copy ? copy : "";
}

/* Whether a segment has loaded the note: headers can contain anything. */
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

/* Writes the absolute path to `out`. Does not use getcwd of libc, which may call malloc if the
 * kernel fails. */
static const char *make_absolute(char out[PATH_MAX], const char *name)
{
    long n = *name == '/' ? 0 : gt_syscall(SYS_getcwd, out, PATH_MAX);
    struct gt_strbuf t = {out + (n > 0 ? n - 1 : 0), out + PATH_MAX - 1};
    gt_strbuf_add(&t, *name == '/' ? "" : "/");
    gt_strbuf_add(&t, strncmp(name, "./", 2) == 0 ? name + 2 : name);
    return out;
}

/* Makes a path absolute, since the program may change its working directory before the file is
 * read. Removes "//", which has a meaning in a description. */
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

/* The path that the kernel or the loader (see executable_path) was told to start; NULL: none. */
static const char *told(void)
{
    const char *name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    bool by_loader = !getauxval(AT_BASE);
    return name && *name && (!by_loader || strchr(name, '/')) ? name : NULL;
}

/*
 * The path of the executable: the file that the kernel started, unless that was the loader
 * (`ld.so ./program`). Then AT_BASE is 0, AT_EXECFN is the loader's argument, and everything else
 * looks as if the kernel had started the program. argv[0] may be anything, by --argv0. Links are
 * followed now: later they may lead elsewhere.
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
    ssize_t n = gt_syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    size_t tail = sizeof deleted - 1;
    if (n > (ssize_t)tail && strcmp(path + n - tail, deleted) == 0)
        path[n - (ssize_t)tail] = 0;
    return copy_text(path);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat s, t;
    return gt_stat(a, &s) == 0 && gt_stat(b, &t) == 0 && s.st_dev == t.st_dev &&
           s.st_ino == t.st_ino;
}

/*
 * The name by which the executable was started, if it differs from the file's name: one file may be
 * many programs (busybox, redis). NULL if it does not differ, if the started file was a script, or
 * if the name is one in /proc or /dev/fd, which says nothing.
 */
static const char *called(const char *file)
{
    static char name[PATH_MAX] GT_SPARSE;
    const char *start = told();
    if (!start || !*file || strncmp(start, "/proc/", 6) == 0 || strncmp(start, "/dev/fd/", 8) == 0)
        return NULL;
    if (strcmp(gt_path_name(start), gt_path_name(file)) == 0 ||
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

static bool is_it(const struct entry *e, const struct gt_module *found, uint64_t name_hash)
{
    const struct gt_module *m = &e->module;
    return m->lo == found->lo && m->hi == found->hi && m->bias == found->bias &&
           e->name_hash == name_hash && m->build_id_len == found->build_id_len &&
           memcmp(m->build_id, found->build_id, found->build_id_len) == 0;
}

/*
 * The entry of a module that is known already. A library may have taken exactly the place of
 * another one since the last snapshot: then the loader's name and the build ID differ.
 */
static struct entry *find_loaded(const struct gt_module *found, uint64_t name_hash)
{
    struct entry *e = map.next_met;
    if (!e || !is_it(e, found, name_hash))
        for (e = map.loaded; e && !is_it(e, found, name_hash);)
            e = e->next;
    map.next_met = e ? e->next : NULL;
    return e;
}

/* The newest entry of the same module at the same place, which is gone. */
static struct entry *find_gone(const struct gt_module *found, uint64_t name_hash)
{
    struct gt_module *m = atomic_load(&map.gone) ? map.first : NULL;
    while (m && !(m->unloaded != UINT64_MAX && is_it((struct entry *)m, found, name_hash)))
        m = m->next;
    return (struct entry *)m;
}

static bool overlap(const struct gt_module *a, const struct gt_module *b)
{
    return a->lo < b->hi && b->lo < a->hi;
}

/* Whether no other module has been at the gone module's place since. */
static bool may_revive(const struct gt_module *gone)
{
    struct gt_module *m = map.first;
    while (m && !(m != gone && overlap(m, gone) && m->unloaded > gone->unloaded))
        m = m->next;
    return !m;
}

static void append_loaded(struct entry *e)
{
    if (!map.loaded)
        map.end = &map.loaded;
    e->next = NULL;
    *map.end = e;
    map.end = &e->next;
}

/* The shown addresses of a module: its own, unless another module was shown there. */
static uint64_t shown_for(const struct gt_module *found, const struct entry *before)
{
    static uint64_t next = GT_MODULES_ELSEWHERE;
    enum { PAGE = 4096 };
    if (before)
        return before->module.shown;
    bool taken = found->lo < map.forgotten_hi && map.forgotten_lo < found->hi;
    for (struct gt_module *m = map.first; m && !taken; m = m->next)
        taken = overlap(m, found);
    uint64_t start = next;
    next += taken ? (found->hi - found->lo + 2 * PAGE - 1) & ~(uint64_t)(PAGE - 1) : 0;
    return taken ? start : found->lo;
}

static void add_locked(const struct gt_module *found, const char *name, uint64_t mark)
{
    uint64_t name_hash = hash_of(name);
    struct entry *before = find_gone(found, name_hash);
    if (before && may_revive(&before->module)) {
        __atomic_store_n(&before->module.unloaded, UINT64_MAX, __ATOMIC_RELAXED);
        before->seen = mark;
        map.gone--;
        append_loaded(before);
        return;
    }
    struct entry *e = gt_arena_alloc(&map.arena, sizeof *e);
    if (!e)
        return;
    *e = (struct entry){.module = *found, .name_hash = name_hash, .seen = mark, .fresh = true};
    e->module.path = path_of(found, name);
    e->module.is_program = !*name && e->module.path[0] == '/';
    if (e->module.is_program)
        e->module.called = called(e->module.path);
    e->module.shown = shown_for(found, before);
    e->module.unloaded = UINT64_MAX;
    e->module.loaded = UINT64_MAX; /* until retire_locked sets it */
    e->module.next = atomic_load_explicit(&map.first, memory_order_relaxed);
    /* release: pairs with gt_modules_find's acquire */
    atomic_store_explicit(&map.first, &e->module, memory_order_release);
    atomic_fetch_add_explicit(&map.changes, 1, memory_order_release);
    append_loaded(e);
}

static void box_locked(struct entry *e)
{
    static char description[2 * PATH_MAX] GT_SPARSE;
    if (!gt_box_is_open() || !gt_modules_describe(&e->module, description, sizeof description))
        return;
    size_t length = strlen(description) + 1;
    struct gt_boxed_module *m = gt_arena_alloc(&map.boxed, sizeof *m + length);
    if (!m)
        return;
    memcpy(m->description, description, length);
    m->lo = e->module.lo;
    m->hi = e->module.hi;
    m->loaded = e->module.loaded;
    e->boxed = m;
    gt_box_push(GT_BOX_MODULES, m, &m->next);
}

static void box_all_locked(void)
{
    if (!gt_box_is_open())
        return;
    gt_box_set_root(GT_BOX_MODULES, NULL);
    gt_arena_free(&map.boxed);
    map.boxed.boxed = true;
    for (struct gt_module *m = map.first; m; m = m->next)
        box_locked((struct entry *)m);
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
    gt_elf_span(info, &found.lo, &found.hi);
    if (found.lo >= found.hi)
        return 0;
    read_build_id(&found, info);
    struct entry *known = find_loaded(&found, hash_of(info->dlpi_name));
    if (known)
        known->seen = snap->mark;
    else
        add_locked(&found, info->dlpi_name, snap->mark);
    return 0;
}

/* Whether m has taken the place of a module that is gone in the same snapshot. */
static bool takes_place(const struct entry *m, uint64_t mark)
{
    struct entry *old = map.loaded;
    while (old && !(old->seen != mark && overlap(&old->module, &m->module)))
        old = old->next;
    return old;
}

/*
 * Ends the modules that the snapshot did not meet: they are gone, and their addresses may belong to
 * other modules from now on. A new module that has taken the place of an old one begins in the next
 * epoch, so that addresses recorded before this snapshot belong to the old one. All other new
 * modules begin in the present epoch: their code may already have been recorded.
 */
static void retire_locked(uint64_t mark)
{
    uint64_t now = atomic_load_explicit(&map.epoch, memory_order_relaxed), next = now + 1;
    bool any = false;
    for (struct entry *e = map.loaded; e; e = e->next) {
        if (e->fresh)
            __atomic_store_n(&e->module.loaded, takes_place(e, mark) ? next : now,
                             __ATOMIC_RELAXED);
        if (e->fresh)
            box_locked(e);
        e->fresh = false;
    }
    for (struct entry **link = &map.loaded; *link;) {
        struct entry *e = *link;
        if (e->seen == mark) {
            link = &e->next;
            map.end = link;
            continue;
        }
        *link = e->next;
        __atomic_store_n(&e->module.unloaded, next, __ATOMIC_RELAXED);
        gt_modules_left(&e->module);
        if (!e->weighed)
            gt_era_count(WEIGHT);
        e->weighed = true;
        map.gone++;
        any = true;
    }
    if (any)
        atomic_store_explicit(&map.epoch, next, memory_order_release);
}

/*
 * Blocks signals meanwhile. A garbage collector that stops its threads with signals also calls
 * dl_iterate_phdr, to find its roots. If it stopped this thread while that holds the loader's lock,
 * it would wait for the lock for ever.
 */
uint64_t gt_modules_refresh(void)
{
    static uint64_t snapshots;
    int saved = errno;
    uint64_t signals = gt_signals_hold();
    if (!gt_lock_within(&map.lock, GT_RANK_MODULES, GT_LOCK_PATIENCE_NS)) {
        gt_signals_release(signals);
        return gt_modules_epoch();
    }
    if (!map.epoch)
        atomic_store(&map.epoch, 1);
    struct snapshot snap = {.mark = ++snapshots};
    map.next_met = map.loaded;
    gt_elf_each_module(visit, &snap);
    if (!snap.unchanged)
        retire_locked(snap.mark);
    uint64_t epoch = map.epoch;
    gt_unlock(&map.lock);
    gt_signals_release(signals);
    errno = saved;
    return epoch;
}

void gt_modules_box(void)
{
    uint64_t signals = gt_signals_hold();
    if (gt_lock_within(&map.lock, GT_RANK_MODULES, GT_LOCK_PATIENCE_NS)) {
        box_all_locked();
        gt_unlock(&map.lock);
    }
    gt_signals_release(signals);
}

uint64_t gt_modules_epoch(void)
{
    return atomic_load_explicit(&map.epoch, memory_order_acquire);
}

/* Only `loaded` and `unloaded` change, and never the answer for an epoch that is over. */
static bool was_loaded(const struct gt_module *m, uint64_t epoch)
{
    return __atomic_load_n(&m->loaded, __ATOMIC_RELAXED) <= epoch &&
           epoch < __atomic_load_n(&m->unloaded, __ATOMIC_RELAXED);
}

void gt_modules_age(void)
{
    bool locked = gt_lock_within(&map.lock, GT_RANK_MODULES, GT_LOCK_PATIENCE_NS);
    atomic_fetch_add(&map.epoch, 1);
    if (locked)
        gt_unlock(&map.lock);
}

size_t gt_modules_gone(void)
{
    return atomic_load_explicit(&map.gone, memory_order_relaxed);
}

/* The reading side --------------------------------------------------------------------------- */

/* The index of the modules by address. Several may have been at one place, one after the other. */
static struct {
    struct slot {
        uint64_t lo, reach; /* reach: the last end of this and all before */
        const struct gt_module *module;
    } * slots;
    size_t n;
    uint32_t changes; /* map.changes when the index was made */
    bool valid;
} by_address;

static void drop_index(void)
{
    by_address.valid = false;
    gt_pages_free(by_address.slots, by_address.n * sizeof *by_address.slots);
    by_address.slots = NULL;
    by_address.n = 0;
}

static size_t list_modules(struct gt_pair *pairs, size_t room)
{
    size_t n = 0;
    struct gt_module *m = atomic_load_explicit(&map.first, memory_order_acquire);
    for (; m; m = m->next, n++) {
        if (n < room)
            pairs[n] = (struct gt_pair){m->lo, (uint64_t)(uintptr_t)m};
    }
    return n;
}

static bool fill_index(struct gt_pair *pairs, size_t n)
{
    if (list_modules(pairs, n) != n || !gt_sort(pairs, n))
        return false; /* another module was added just now, or no memory */
    by_address.slots = gt_pages_alloc(n * sizeof *by_address.slots);
    if (!by_address.slots)
        return false;
    by_address.n = n;
    uint64_t reach = 0;
    for (size_t i = 0; i < n; i++) {
        const struct gt_module *m = (const void *)(uintptr_t)pairs[i].value;
        reach = m->hi > reach ? m->hi : reach;
        by_address.slots[i] = (struct slot){m->lo, reach, m};
    }
    return true;
}

/* Makes the index if it is outdated. false: there is none. */
static bool has_index(void)
{
    uint32_t changes = atomic_load_explicit(&map.changes, memory_order_acquire);
    if (by_address.valid && by_address.changes == changes)
        return true;
    drop_index();
    size_t n = list_modules(NULL, 0);
    struct gt_pair *pairs = n ? gt_pages_alloc(n * sizeof *pairs) : NULL;
    by_address.valid = pairs && fill_index(pairs, n);
    by_address.changes = changes;
    gt_pages_free(pairs, n * sizeof *pairs);
    return by_address.valid;
}

static bool held(const struct gt_module *m, uint64_t epoch, uint64_t pc)
{
    return pc >= m->lo && pc < m->hi && was_loaded(m, epoch);
}

static const struct gt_module *find_in_index(uint64_t epoch, uint64_t pc)
{
    size_t from = gt_count_up_to(by_address.slots, by_address.n, sizeof(struct slot), 8, pc);
    for (; from && by_address.slots[from - 1].reach > pc; from--) {
        if (held(by_address.slots[from - 1].module, epoch, pc))
            return by_address.slots[from - 1].module;
    }
    return NULL;
}

const struct gt_module *gt_modules_find(uint64_t epoch, uint64_t pc)
{
    if (has_index())
        return find_in_index(epoch, pc);
    const struct gt_module *m = atomic_load_explicit(&map.first, memory_order_acquire);
    while (m && !held(m, epoch, pc))
        m = m->next;
    return m;
}

const struct gt_module *gt_modules_now(uint64_t pc)
{
    const struct gt_module *m = atomic_load_explicit(&map.first, memory_order_acquire);
    while (m && !(pc >= m->lo && pc < m->hi &&
                  __atomic_load_n(&m->unloaded, __ATOMIC_RELAXED) == UINT64_MAX))
        m = m->next;
    return m;
}

const struct gt_module *gt_modules_last(void)
{
    return atomic_load_explicit(&map.first, memory_order_acquire);
}

static bool is_needed(const struct gt_module *m, const struct gt_memo *epochs)
{
    if (m->unloaded == UINT64_MAX)
        return true;
    for (size_t i = 0; i < epochs->capacity; i++) {
        if (epochs->slots[i].value && was_loaded(m, epochs->slots[i].key))
            return true;
    }
    return false;
}

static void note_forgotten(const struct gt_module *m)
{
    bool any = map.forgotten_hi;
    map.forgotten_lo = any && map.forgotten_lo < m->lo ? map.forgotten_lo : m->lo;
    map.forgotten_hi = map.forgotten_hi > m->hi ? map.forgotten_hi : m->hi;
    map.gone--;
}

/* Copies the needed modules of the list from m on to `arena`. */
static bool copy_needed(struct gt_arena *arena, struct gt_module *m, const struct gt_memo *epochs,
                        struct gt_module **link)
{
    for (; m; m = m->next) {
        ((struct entry *)m)->copy = NULL;
        if (!is_needed(m, epochs))
            continue;
        size_t length = strlen(m->path) + 1;
        struct entry *copy = gt_arena_alloc(arena, sizeof *copy + length);
        if (!copy)
            return false;
        *copy = *(struct entry *)m;
        copy->module.path = memcpy(copy + 1, m->path, length); /* `called` is static */
        copy->module.next = NULL;
        ((struct entry *)m)->copy = copy;
        *link = &copy->module;
        link = &copy->module.next;
    }
    return true;
}

static void use_copies_locked(struct gt_arena *arena, struct gt_module *first)
{
    struct gt_chunk *old = map.arena.chunk;
    for (struct gt_module *m = map.first; m; m = m->next) {
        if (!((struct entry *)m)->copy)
            note_forgotten(m);
    }
    for (struct entry **link = &map.loaded; *link; link = &(*link)->next) {
        *link = (*link)->copy;
        map.end = &(*link)->next;
    }
    gt_arena_free(&map.before);
    atomic_store_explicit(&map.first, first, memory_order_release);
    map.arena.chunk = arena->chunk;
    map.before.chunk = old; /* last, so that a forked child does not free what it still uses */
    atomic_fetch_add(&map.changes, 1);
    drop_index();
    box_all_locked();
}

bool gt_modules_forget(const struct gt_memo *epochs)
{
    struct gt_arena arena = {.chunk = NULL};
    struct gt_module *first = NULL;
    uint64_t signals = gt_signals_hold();
    bool done = false;
    if (gt_lock_within(&map.lock, GT_RANK_MODULES, GT_LOCK_PATIENCE_NS)) {
        done = copy_needed(&arena, map.first, epochs, &first);
        if (done)
            use_copies_locked(&arena, first);
        gt_unlock(&map.lock);
    }
    gt_signals_release(signals);
    if (!done)
        gt_arena_free(&arena);
    return done;
}

/* Another process's ------------------------------------------------------------------------- */

const struct gt_module *gt_modules_add(const char *description)
{
    struct gt_module m;
    const char *module_path = gt_modules_parse(description, &m);
    struct entry *e = module_path ? gt_arena_alloc(&map.arena, sizeof *e) : NULL;
    if (!e)
        return NULL;
    const char *second = m.is_program ? strstr(module_path, "//") : NULL;
    m.path = copy_text(module_path);
    if (second && *m.path) {
        m.called = m.path + (second - module_path) + 1;
        ((char *)m.path)[second - module_path] = 0;
    }
    m.next = atomic_load_explicit(&map.first, memory_order_relaxed);
    e->module = m;
    atomic_store_explicit(&map.first, &e->module, memory_order_release);
    atomic_fetch_add_explicit(&map.changes, 1, memory_order_release);
    return &e->module;
}

bool gt_modules_fork_begin(void)
{
    return gt_lock_within(&map.lock, GT_RANK_MODULES, GT_LOCK_PATIENCE_NS);
}

void gt_modules_fork_end(void)
{
    gt_unlock(&map.lock);
}

/* Adds an entry to the list of loaded modules, or counts it as gone. */
static void sort_in(struct entry *e)
{
    uint64_t unloaded = e->module.unloaded;
    if (unloaded != UINT64_MAX) {
        map.gone++;
        if (unloaded > map.epoch)
            map.epoch = unloaded;
        return;
    }
    e->next = map.loaded;
    if (!map.loaded)
        map.end = &e->next;
    map.loaded = e;
}

/*
 * Rebuilds the lists from the list of all modules, which is always complete. A fork that was not
 * announced may have come in the middle of a snapshot or of gt_modules_forget.
 */
void gt_modules_after_fork(void)
{
    map.lock = (struct gt_lock){0};
    map.adds = map.subs = 0;
    map.loaded = NULL;
    map.boxed.chunk = NULL;
    map.gone = 0;
    for (struct gt_module *m = map.first; m; m = m->next)
        sort_in((struct entry *)m);
    by_address.valid = false; /* the parent's reading side may have been changing it */
    by_address.slots = NULL;
}
