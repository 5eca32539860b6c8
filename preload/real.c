/* See real.h. */
#include "real.h"

#include "encoder/base/futex.h"
#include "encoder/base/sparse.h"
#include "preload/heap/heap.h"
#include "preload/hooks/foreign.h"
#include "symbolize/elf_names.h"
#include "symbolize/symbolize.h"

#include <gnu/libc-version.h>

static void resolve_for(enum gt_hook hook);

/* What a hook calls when it runs before gt_real_resolve: resolves, then forwards. */
#define GT_HOOK(name, result, parameters, arguments, version) \
    static result resolve_##name parameters                   \
    {                                                         \
        resolve_for(GT_HOOK_##name);                          \
        return gt_real.name arguments;                        \
    }
#include "preload/hooks/hooks.def"

struct gt_real gt_real = {
#define GT_HOOK(name, result, parameters, arguments, version) \
    .name = (__typeof__(&name))(void (*)(void))resolve_##name,
#include "preload/hooks/hooks.def"
};

static const struct row {
    const char *name, *version;
    void **slot;
} rows[GT_HOOKS_END] = {
#define GT_HOOK(name, result, parameters, arguments, version) \
    [GT_HOOK_##name] = {#name, version, (void **)&gt_real.name},
#include "preload/hooks/hooks.def"
};

/* Before glibc 2.34 threads are a library of their own. */
static bool from_libc(const void *fn)
{
    const void *module = gt_elf_module_of(fn);
    return module == gt_elf_module_of((const void *)gnu_get_libc_version) ||
           module == gt_elf_module_of((const void *)sem_getvalue);
}

/* Loaded late we are behind what the program calls. */
static void *find_definer(const char *name)
{
    const struct link_map *definer = gt_elf_definer(name);
    return definer ? gt_elf_function(definer, name) : NULL;
}

/*
 * Before glibc 2.34 the first dlsym makes a key, for dlerror, and every other one waits until it
 * has; and a thread's first one allocates: an allocator that was preloaded before us may call us
 * with its locks held, and would wait for these then. So such calls come without.
 */
static bool may_be_within_dlsym(enum gt_hook hook)
{
    return hook == GT_HOOK___pthread_key_create || gt_elf_definer_before_us("malloc");
}

static void resolve_for(enum gt_hook hook)
{
    const struct row *row = &rows[hook];
    void *found = NULL;
    if (may_be_within_dlsym(hook) && !gt_elf_definer_before_us(row->name))
        found = find_definer(row->name);
    if (found)
        *row->slot = found;
    else
        gt_real_resolve();
}

void *gt_real_next(const char *name)
{
    if (gt_elf_is_late())
        return find_definer(name);
    return gt_elf_is_defined_after_us(name) ? dlsym(RTLD_NEXT, name) : NULL;
}

static int no_epoll_pwait2(int fd, struct epoll_event *events, int n,
                           const struct timespec *timeout, const sigset_t *mask)
{
    return (int)gt_syscall(SYS_epoll_pwait2, fd, events, n, timeout, mask, _NSIG / 8);
}

static int no_pidfd_spawn(int *fd, const char *path, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    (void)fd, (void)path, (void)actions, (void)attr, (void)argv, (void)envp;
    return ENOSYS;
}

static int no_execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
    return (int)gt_syscall(SYS_execveat, dir, path, argv, envp, flags);
}

static int no_close_range(unsigned first, unsigned last, int flags)
{
    return (int)gt_syscall(SYS_close_range, first, last, flags);
}

/* Linux 5.9 knows the range. */
static void no_closefrom(int first)
{
    GT_KEEP_ERRNO;
    if (no_close_range((unsigned)first, ~0u, 0) == 0)
        return;
    for (long fd = first; fd < sysconf(_SC_OPEN_MAX); fd++)
        gt_syscall(SYS_close, fd);
}

static int no_openat2(int dir, const char *path, const struct open_how *how, size_t n)
{
    return (int)gt_syscall(SYS_openat2, dir, path, how, n);
}

/* What the headers made of these before 2.33. */
#define NO_STAT(name, version_of, parameters, ...)                    \
    static int no_##name parameters                                   \
    {                                                                 \
        return gt_real.version_of(GT_ARCH_STAT_VERSION, __VA_ARGS__); \
    }
NO_STAT(stat, __xstat, (const char *path, struct stat *st), path, st)
NO_STAT(stat64, __xstat64, (const char *path, struct stat64 *st), path, st)
NO_STAT(lstat, __lxstat, (const char *path, struct stat *st), path, st)
NO_STAT(lstat64, __lxstat64, (const char *path, struct stat64 *st), path, st)
NO_STAT(fstat, __fxstat, (int fd, struct stat *st), fd, st)
NO_STAT(fstat64, __fxstat64, (int fd, struct stat64 *st), fd, st)
NO_STAT(fstatat, __fxstatat, (int dir, const char *path, struct stat *st, int flags), dir, path, st,
        flags)
NO_STAT(fstatat64, __fxstatat64, (int dir, const char *path, struct stat64 *st, int flags), dir,
        path, st, flags)

/* Hooks of the forms with arguments call those with a list. */
#define NO_SCANF(name, parameters, arguments)     \
    static int no_isoc23_##name parameters        \
    {                                             \
        return gt_real.__isoc99_##name arguments; \
    }
NO_SCANF(vscanf, (const char *format, va_list ap), (format, ap))
NO_SCANF(vwscanf, (const wchar_t *format, va_list ap), (format, ap))
NO_SCANF(vfscanf, (FILE * file, const char *format, va_list ap), (file, format, ap))
NO_SCANF(vfwscanf, (FILE * file, const wchar_t *format, va_list ap), (file, format, ap))

/*
 * What not every libc has (glibc 2.31 has all others). Where nobody has it the program shall not
 * find it; who has bound to ours already, by a weak reference, gets what it would do.
 */
static const struct {
    enum gt_hook hook;
    void (*otherwise)(void);
} optional[] = {
    {GT_HOOK_stat, (void (*)(void))no_stat},                                 /* 2.33 */
    {GT_HOOK_stat64, (void (*)(void))no_stat64},                             /* 2.33 */
    {GT_HOOK_lstat, (void (*)(void))no_lstat},                               /* 2.33 */
    {GT_HOOK_lstat64, (void (*)(void))no_lstat64},                           /* 2.33 */
    {GT_HOOK_fstat, (void (*)(void))no_fstat},                               /* 2.33 */
    {GT_HOOK_fstat64, (void (*)(void))no_fstat64},                           /* 2.33 */
    {GT_HOOK_fstatat, (void (*)(void))no_fstatat},                           /* 2.33 */
    {GT_HOOK_fstatat64, (void (*)(void))no_fstatat64},                       /* 2.33 */
    {GT_HOOK__Fork, (void (*)(void))fork},                                   /* 2.34 */
    {GT_HOOK_close_range, (void (*)(void))no_close_range},                   /* 2.34 */
    {GT_HOOK_closefrom, (void (*)(void))no_closefrom},                       /* 2.34 */
    {GT_HOOK_execveat, (void (*)(void))no_execveat},                         /* 2.34 */
    {GT_HOOK_epoll_pwait2, (void (*)(void))no_epoll_pwait2},                 /* 2.35 */
    {GT_HOOK___isoc23_scanf, (void (*)(void))no_isoc23_vscanf},              /* 2.38 */
    {GT_HOOK___isoc23_wscanf, (void (*)(void))no_isoc23_vwscanf},            /* 2.38 */
    {GT_HOOK___isoc23_fscanf, (void (*)(void))no_isoc23_vfscanf},            /* 2.38 */
    {GT_HOOK___isoc23_fwscanf, (void (*)(void))no_isoc23_vfwscanf},          /* 2.38 */
    {GT_HOOK___isoc23_vscanf, (void (*)(void))no_isoc23_vscanf},             /* 2.38 */
    {GT_HOOK___isoc23_vwscanf, (void (*)(void))no_isoc23_vwscanf},           /* 2.38 */
    {GT_HOOK___isoc23_vfscanf, (void (*)(void))no_isoc23_vfscanf},           /* 2.38 */
    {GT_HOOK___isoc23_vfwscanf, (void (*)(void))no_isoc23_vfwscanf},         /* 2.38 */
    {GT_HOOK_pidfd_spawn, (void (*)(void))no_pidfd_spawn},                   /* 2.39 */
    {GT_HOOK_pidfd_spawnp, (void (*)(void))no_pidfd_spawn},                  /* 2.39 */
    {GT_HOOK_openat2, (void (*)(void))no_openat2},                           /* 2.43 */
    {GT_HOOK_free_sized, (void (*)(void))gt_heap_free_sized},                /* 2.43 */
    {GT_HOOK_free_aligned_sized, (void (*)(void))gt_heap_free_aligned_sized} /* 2.43 */
};
enum { OPTIONAL = sizeof optional / sizeof *optional };

static bool is_optional(const struct row *row)
{
    int i = 0;
    while (i < OPTIONAL && row != &rows[optional[i].hook])
        i++;
    return i < OPTIONAL;
}

static bool is_of_heap(enum gt_hook hook)
{
    return hook >= GT_HOOK_malloc && hook <= GT_HOOK_strndup;
}

static void set(enum gt_hook hook, void *fn)
{
    if (fn)
        *rows[hook].slot = fn;
}

static void *find_at_once(const struct gt_elf_next *next, enum gt_hook hook)
{
    return rows[hook].version[0] ? NULL : gt_elf_next_function(next, rows[hook].name);
}

/* What others interpose (a sanitizer, another preload) usually has no version: it comes first. */
static void *find(const struct row *row)
{
    if (gt_elf_is_late() && (is_optional(row) || find_definer(row->name)))
        return find_definer(row->name);
    void *fn = is_optional(row) ? gt_real_next(row->name) : dlsym(RTLD_NEXT, row->name);
    void *versioned = row->version[0] && (!fn || from_libc(fn))
                          ? dlvsym(RTLD_NEXT, row->name, row->version)
                          : NULL;
    return versioned ? versioned : fn;
}

static void do_without(void)
{
    for (int i = 0; i < OPTIONAL; i++)
        *rows[optional[i].hook].slot = (void *)optional[i].otherwise;
}

/* Not before it is known whose allocator the program uses: that may have what libc has not. */
static void hide_missing(void)
{
    const char *names[OPTIONAL];
    int n = 0;
    for (int i = 0; i < OPTIONAL; i++) {
        const struct row *row = &rows[optional[i].hook];
        if (*row->slot == (void *)optional[i].otherwise)
            names[n++] = row->name;
    }
    gt_elf_hide(gt_elf_ours(), names, n);
}

#ifdef GT_ARCH_COND_OLD_VERSION
struct gt_real_old gt_real_old;
#endif

/* Not when they are called: a thread in dlopen, which has the loader's lock, may wait for that. */
static void find_old(void)
{
#ifdef GT_ARCH_COND_OLD_VERSION
#define FIND(name) gt_real_old.name = dlvsym(RTLD_NEXT, #name, GT_ARCH_COND_OLD_VERSION)
    FIND(pthread_cond_wait);
    FIND(pthread_cond_timedwait);
    FIND(pthread_cond_signal);
    FIND(pthread_cond_broadcast);
#endif
}

/* An auditor is told of look-ups, and may answer otherwise. */
static bool is_audited(void)
{
    return environ && getenv("LD_AUDIT");
}

/*
 * First what needs no dlsym: before glibc 2.34 its first call makes a key, and what that hook calls
 * would wait for the same call to be over, were it not known by then. The heap's are known as late
 * as ever: until then blocks come from the nursery.
 */
static void find_all(void)
{
    struct gt_elf_next next = {0};
    bool known[GT_HOOKS_END] = {false};
    if (!gt_elf_is_late() && !is_audited())
        gt_elf_next_begin(&next);
    for (int i = 1; i < GT_HOOKS_END; i++) {
        void *fn = is_of_heap(i) ? NULL : find_at_once(&next, i);
        known[i] = fn != NULL;
        set(i, fn);
    }
    gt_syscall = gt_real.syscall;
    for (int i = 1; i < GT_HOOKS_END; i++) {
        void *fn = known[i] || !is_of_heap(i) ? NULL : find_at_once(&next, i);
        if (!known[i])
            set(i, fn ? fn : find(&rows[i]));
    }
}

static _Atomic bool resolved;

bool gt_real_is_resolved(void)
{
    return atomic_load(&resolved);
}

void gt_real_resolve(void)
{
    if (gt_real_is_resolved())
        return;
    gt_heap_resolve_begin();
    do_without();
    find_all();
    find_old();
    gt_foreign_init();
    gt_syscall = gt_real.syscall;
    gt_stat = gt_real.stat;
    gt_lstat = gt_real.lstat;
    gt_fstat = gt_real.fstat;
    gt_symbolize_jump = gt_real.longjmp;
    gt_heap_resolve_end();
    hide_missing();
    atomic_store(&resolved, true);
}

void gt_real_clear_dlerror(void)
{
    /* One that succeeds forgets the error before. No tail call: RTLD_NEXT is after the caller. */
    void *volatile found = dlsym(RTLD_NEXT, "malloc");
    (void)found;
}

/* What forwards to another function than its own. */
static const char *const forwarding[] = {"prctl", "execl", "execlp", "execle"};
enum { FORWARDING = sizeof forwarding / sizeof *forwarding };
_Static_assert(GT_HOOKS_END + FORWARDING + GT_FOREIGN_BINDINGS <= GT_BINDINGS_MAX, "room for all");

/* What the program or another library has in libc's place is theirs. */
static void add_binding(struct gt_elf_binding *out, int *n, const char *name)
{
    const struct link_map *in = gt_elf_definer(name);
    void *real = find_definer(name), *hook = gt_elf_function(gt_elf_ours(), name);
    if (real && hook && from_libc(real))
        out[(*n)++] = (struct gt_elf_binding){name, real, hook, in};
}

int gt_real_bindings(struct gt_elf_binding out[GT_BINDINGS_MAX], bool heap)
{
    int n = 0;
    for (int i = 1; i < GT_HOOKS_END; i++) {
        if (heap || !is_of_heap(i))
            add_binding(out, &n, rows[i].name);
    }
    for (int i = 0; i < FORWARDING; i++)
        add_binding(out, &n, forwarding[i]);
    return n;
}

/* Where these functions are. Finding each takes half a microsecond. */
static struct code {
    uintptr_t at, size;
} codes[GT_HOOKS_END] GT_SPARSE;

void gt_real_find_code(void)
{
    for (int i = 1; i < GT_HOOKS_END; i++) {
        const struct link_map *in = gt_elf_definer(rows[i].name);
        const ElfW(Sym) *symbol = in ? gt_elf_newest(in, rows[i].name) : NULL;
        if (symbol)
            codes[i] = (struct code){in->l_addr + symbol->st_value, symbol->st_size};
    }
}

enum gt_hook gt_real_around(uintptr_t pc)
{
    int i = 1;
    while (i < GT_HOOKS_END && pc - codes[i].at >= codes[i].size)
        i++;
    return i < GT_HOOKS_END ? (enum gt_hook)i : GT_HOOK_NONE;
}
