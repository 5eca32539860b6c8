/*
 * unwindcheck.so, preloaded: at every call of the functions below it walks the stack with our
 * walker and with libunwind, and complains when they disagree. At the end it prints
 *   unwindcheck: <compared> compared, <different> different, <odd> odd, <cut> beyond the end
 * on stderr. Whatever program is at hand becomes a test of the walker that way.
 *
 * Two differences are meant, and accounted for: the address of an interrupted instruction is one
 * higher with us (readers of stacks take one off all), and frames of this library are left out.
 */
#include "preload/stacks/code_layouts.h"
#include "preload/stacks/unwind.h"

#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <errno.h>
#include <libunwind.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define TLS __thread __attribute__((tls_model("initial-exec")))
#define STRINGIFY(x) #x
#define NAME_OF(x) STRINGIFY(x)

enum { THEIRS_MAX = GT_TRAIL_MAX + 8, REPORTS_MAX = 20 };

static int (*backtrace_fn)(void **pcs, int max);
static uintptr_t own_start, own_end;
static _Atomic uint64_t compared, different, odd, beyond;
static uint64_t limit = UINT64_MAX;
static TLS struct gt_trail *trail;
static TLS bool inside;
static bool ready;

static void complain(const char *why, const uint64_t *ours, uint32_t n, const uint64_t *theirs,
                     uint32_t m)
{
    if (atomic_fetch_add(&different, 1) >= REPORTS_MAX)
        return;
    fprintf(stderr, "unwindcheck: %s: ours %u, libunwind's %u frames\n", why, n, m);
    for (uint32_t i = 0; i < n || i < m; i++) {
        Dl_info info = {0};
        uint64_t pc = i < m ? theirs[i] : ours[i];
        dladdr((void *)(uintptr_t)pc, &info);
        fprintf(stderr, "  %c %2u %16llx %16llx %s+%llx %s\n",
                i < n && i < m && ours[i] == theirs[i] ? ' ' : '*', i,
                i < n ? (unsigned long long)ours[i] : 0, i < m ? (unsigned long long)theirs[i] : 0,
                info.dli_fname ? info.dli_fname : "?",
                (unsigned long long)(pc - (uintptr_t)info.dli_fbase),
                info.dli_sname ? info.dli_sname : "");
    }
}

static bool ours(uint64_t pc)
{
    return pc - own_start < own_end - own_start;
}

/* libunwind's frames without this library's. */
__attribute__((noinline)) static uint32_t their_frames(uint64_t *pcs)
{
    void *raw[THEIRS_MAX];
    int total = backtrace_fn(raw, THEIRS_MAX);
    uint32_t n = 0;
    for (int i = 0; i < total && raw[i]; i++) {
        if (!ours((uintptr_t)raw[i]))
            pcs[n++] = (uintptr_t)raw[i];
    }
    return n;
}

static void new_trail(void)
{
    pthread_attr_t attr;
    void *stack;
    size_t size = 0;
    trail = mmap(NULL, sizeof *trail, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* Not of the main thread, whose lock may be held: gt_trail_begin knows that one. */
    if (syscall(SYS_gettid) != getpid() && pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &stack, &size);
        pthread_attr_destroy(&attr);
    }
    gt_trail_begin(trail, size);
}

/* From the procedure linkage table of aarch64, which has no information, libunwind goes astray. */
static bool is_their_guess(uint64_t pc)
{
    return !GT_ARCH_RA_BELOW && gt_layout_kind(gt_layout_lookup(pc - 1)) == GT_FRAME_UNKNOWN;
}

static bool equal(const uint64_t *a, uint32_t n, const uint64_t *b, uint32_t m)
{
    for (uint32_t i = 0; i < n && i < m; i++) {
        /* Theirs may be of an interrupted instruction. */
        if (a[i] != b[i] && a[i] != b[i] + 1)
            return false;
        if (is_their_guess(a[i]))
            return true;
    }
    /* On aarch64 they tell some outermost frames twice, one less the second time. */
    bool twice = m == n + 1 && n && b[n] == b[n - 1] - 1;
    return n == m || (n == GT_TRAIL_MAX && m > n) || twice;
}

/* As our thread would walk it, later, from a copy; where the stack's end is known. */
__attribute__((noinline)) static void compare_copy(const uint64_t *pcs, uint32_t n)
{
    enum { ROOM = 256 << 10 };
    static TLS uint64_t *copy;
    const uintptr_t *frame = __builtin_frame_address(0);
    struct gt_arch_registers here = {
        .pc = gt_arch_code(frame[1]), .sp = (uintptr_t)__builtin_dwarf_cfa(), .fp = frame[0]};
    size_t size = trail->stack_hi - here.sp;
    uint64_t again[GT_FRAMES_MAX];
    bool cut;
    if (!gt_trail_covers(trail, here.sp) || size > ROOM)
        return;
    if (!copy)
        copy = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(copy, (const void *)here.sp, size);
    uint32_t k = gt_unwind_copy(&here, copy, size, 1, again, &cut);
    if (k)
        again[0]++; /* of an instruction, not of a call */
    if (k < n || memcmp(again, pcs, n * sizeof *pcs) != 0)
        complain("from a copy", again, k, pcs, n);
}

__attribute__((noinline)) static void compare(void)
{
    uint64_t theirs[THEIRS_MAX];
    uint32_t n, m = their_frames(theirs);
    enum gt_walked walked = gt_unwind(trail, 1, &n);
    const uint64_t *pcs = &trail->fresh_pcs[1];
    if (walked <= GT_WALK_TRAIL) {
        const struct gt_path *p = gt_trail_last(trail);
        pcs = &p->pcs[gt_path_first(p) + 1];
        n = p->frames;
    }
    atomic_fetch_add(&compared, 1);
    uint64_t again[GT_TRAIL_MAX];
    const uintptr_t *frame = __builtin_frame_address(0);
    uint32_t k = gt_unwind_hook(trail, 1, frame, gt_arch_within(frame), again, NULL);
    if (k != n || memcmp(again, pcs, n * sizeof *pcs) != 0)
        complain("without the trail", again, k, pcs, n);
    compare_copy(again, k);
    if (walked == GT_WALK_ODD) {
        atomic_fetch_add(&odd, 1);
        if (n > m || !equal(pcs, n, theirs, n))
            complain("before the odd frame", pcs, n, theirs, m);
    } else if (n > m && m > 0 && equal(pcs, m, theirs, m)) {
        atomic_fetch_add(&beyond, 1); /* libunwind has given up where we have not */
        if (getenv("UNWINDCHECK_BEYOND"))
            complain("beyond", pcs, n, theirs, m);
    } else if (!equal(pcs, n, theirs, m)) {
        complain("different", pcs, n, theirs, m);
    }
}

__attribute__((noinline)) static void check(void)
{
    if (!ready || inside || atomic_load(&compared) >= limit)
        return;
    inside = true;
    int saved = errno;
    if (!trail)
        new_trail();
    compare();
    errno = saved;
    inside = false;
}

static int find_own(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = start + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)find_own >= start &&
            (uintptr_t)find_own < end) {
            own_start = start;
            own_end = end;
        }
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    inside = true;
    dl_iterate_phdr(find_own, NULL);
    void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    backtrace_fn = lib ? dlsym(lib, NAME_OF(unw_backtrace)) : NULL;
    /* No cache shared between threads: its lock is held while the loader's is taken. */
    int (*policy)(unw_addr_space_t, unw_caching_policy_t) =
        lib ? dlsym(lib, NAME_OF(unw_set_caching_policy)) : NULL;
    unw_addr_space_t *local = lib ? dlsym(lib, NAME_OF(unw_local_addr_space)) : NULL;
    if (policy && local)
        policy(*local, UNW_CACHE_PER_THREAD);
    const char *text = getenv("UNWINDCHECK_LIMIT");
    if (text)
        limit = strtoull(text, NULL, 10);
    ready = backtrace_fn && gt_unwind_init(own_start, own_end);
    if (!ready)
        fprintf(stderr, "unwindcheck: cannot work here\n");
    inside = false;
}

static void report(void)
{
    ready = false;
    fprintf(stderr, "unwindcheck: %llu compared, %llu different, %llu odd, %llu beyond the end\n",
            (unsigned long long)compared, (unsigned long long)different, (unsigned long long)odd,
            (unsigned long long)beyond);
}

__attribute__((destructor)) static void end(void)
{
    if (ready)
        report();
}

/* Where it checks ---------------------------------------------------------------------------- */

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *p);

EXPORT void *malloc(size_t size)
{
    check();
    void *p = __libc_malloc(size);
    return p;
}

EXPORT void free(void *p)
{
    check();
    __libc_free(p);
    __asm__ volatile("");
}

/* It calls free with a lock that new_trail would take again. */
EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
    static int (*real)(pthread_t, pthread_attr_t *);
    bool was = inside;
    inside = true;
    if (!real)
        real = (int (*)(pthread_t, pthread_attr_t *))dlsym(RTLD_NEXT, "pthread_getattr_np");
    int r = real(thread, attr);
    inside = was;
    return r;
}

EXPORT int sched_yield(void)
{
    check();
    return (int)syscall(SYS_sched_yield);
}

EXPORT int nanosleep(const struct timespec *time, struct timespec *left)
{
    check();
    return (int)syscall(SYS_nanosleep, time, left);
}

EXPORT ssize_t write(int fd, const void *buf, size_t n)
{
    check();
    return syscall(SYS_write, fd, buf, n);
}

EXPORT void _exit(int status)
{
    if (ready)
        report();
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}
