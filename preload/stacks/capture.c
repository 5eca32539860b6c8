/* See capture.h. */
#include "capture.h"

#include "unwind.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/log.h"
#include "encoder/base/urgent.h"
#include "encoder/call.h"
#include "encoder/format.h"
#include "symbolize/elf_names.h"
#include "symbolize/modules.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

/* The walker of unwind.h works here. */
static bool walks;

/*
 * Where it does not, libunwind; loaded by name, never linked. Not for the odd frame that the walker
 * cannot follow either: libunwind tests memory by writing to a pipe whose two descriptors it keeps,
 * and goes on doing that when the program has closed them and has files of its own there.
 */
static int (*backtrace_fn)(void **pcs, int max);

/* Our own code: its frames are left out of stacks. */
static uintptr_t own_start, own_end;

bool gt_capture_walks(void)
{
    return walks;
}

bool gt_capture_in_handler(struct gt_thread *t)
{
    int saved = errno;
    bool in = t->frame || gt_thread_on_signal_stack() ||
              (walks && gt_unwind_meets_signal(&t->trail, (uint32_t)gt_modules_epoch()));
    errno = saved;
    return in;
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
            return 1;
        }
    }
    return 0;
}

#define STRINGIFY(x) #x
#define NAME_OF(x) STRINGIFY(x)

static void load_libunwind(void)
{
    void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        gt_log("no stacks: %s", dlerror());
        return;
    }
    /* No cache shared between threads: its lock is held while the loader's is taken. */
    int (*policy)(unw_addr_space_t, unw_caching_policy_t) =
        dlsym(lib, NAME_OF(unw_set_caching_policy));
    unw_addr_space_t *local = dlsym(lib, NAME_OF(unw_local_addr_space));
    if (policy && local)
        policy(*local, UNW_CACHE_NONE);
    backtrace_fn = dlsym(lib, "unw_backtrace");
}

bool gt_capture_later(struct gt_thread *t, enum gt_hook hook, struct gt_here here)
{
    t->call.hook = hook;
    t->call.fp = here.frame[0];
    t->call.pc = here.frame[1];
    t->call.within = here.within;
    atomic_store_explicit(&t->call.frame, here.frame, memory_order_relaxed);
    return walks && gt_trail_covers(&t->trail, (uintptr_t)here.frame);
}

static bool is_looked_at(struct gt_thread *t)
{
    return atomic_load(&t->call.looked_at);
}

static void await_look_awake(struct gt_thread *t)
{
    enum { TIMES = 10000 };
    gt_urgent_lend();
    for (int i = 0; i < TIMES && is_looked_at(t); i++)
        gt_arch_pause();
}

void gt_capture_close(struct gt_thread *t)
{
    enum { SLICES = 10 };
    int saved = errno;
    atomic_store(&t->call.frame, NULL); /* then the load: see stack_of_other */
    if (is_looked_at(t) && !gt_writer_waits(&t->w))
        await_look_awake(t);
    else
        for (int i = 0; i < SLICES && is_looked_at(t); i++)
            gt_futex_wait(&t->call.looked_at, 1, GT_LOCK_PATIENCE_NS / SLICES);
    errno = saved;
}

/* A hook's frame is not deeper than those that it calls; and nobody writes there but it. */
static bool still_there(const struct gt_thread *t, const uintptr_t *frame)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bool left = gt_self == t && gt_trail_covers(&t->trail, here) && here > (uintptr_t)frame &&
                !gt_thread_on_signal_stack(); /* which may be part of the thread's own */
    return !left && frame[0] == t->call.fp && frame[1] == t->call.pc;
}

static uint32_t walk_noted(const struct gt_thread *t, uint32_t epoch, uint64_t *pcs)
{
    const uintptr_t *frame = atomic_load(&t->call.frame);
    if (!walks || !gt_trail_covers(&t->trail, (uintptr_t)frame) || !still_there(t, frame))
        return 0;
    return gt_unwind_hook(&t->trail, epoch, frame, t->call.within, pcs);
}

static struct gt_stack *get_noted(const struct gt_thread *t, uint32_t epoch, uint64_t *pcs,
                                  uint32_t n)
{
    const struct gt_stack *routine = t->w.g.routine;
    if (n == 0 && routine) {
        pcs[++n] = routine->pcs[0] + 1; /* but for the leaf, PCs are taken for return addresses */
        epoch = routine->epoch;
    }
    pcs[0] = t->call.hook;
    return gt_stacks_get(pcs, n + 1, epoch);
}

/* Either its thread sees, leaving, that it is looked at, or it is seen here to have left. */
static __attribute__((noinline)) struct gt_stack *stack_of_other(struct gt_thread *t,
                                                                 uint32_t epoch)
{
    uint64_t pcs[GT_FRAMES_MAX];
    atomic_store(&t->call.looked_at, 1);
    uint32_t n = walk_noted(t, epoch, pcs + 1);
    atomic_store(&t->call.looked_at, 0);
    gt_futex_wake(&t->call.looked_at, 1);
    return get_noted(t, epoch, pcs, n);
}

static struct gt_stack *stack_of_call(struct gt_writer *w)
{
    struct gt_thread *t = gt_thread_of(w);
    uint32_t epoch = (uint32_t)gt_modules_epoch();
    int saved = errno;
    /* Its own thread may be short of stack; what is its another one must not write. */
    uint64_t *own = t->trail.fresh_pcs;
    struct gt_stack *s = t == gt_self ? get_noted(t, epoch, own, walk_noted(t, epoch, own + 1))
                                      : stack_of_other(t, epoch);
    errno = saved;
    return s;
}

void gt_capture_init(void)
{
    gt_elf_each_module(find_own, NULL);
    walks = gt_unwind_init(own_start, own_end);
    gt_modules_refresh();
    if (!walks)
        load_libunwind();
    gt_call_stack = stack_of_call;
    gt_stacks_same_code = gt_modules_same;
}

/*
 * libunwind's walk, into pcs from index 1; returns the total. Without room for it on the thread's
 * stack, or not knowing that, the n that there are.
 */
static uint32_t walk_odd(struct gt_thread *t, uint64_t *pcs, uint32_t n)
{
    enum { ROOM = 12 << 10 };
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bool known = gt_trail_covers(&t->trail, here);
    if (!backtrace_fn || (known && here - t->trail.stack_lo < ROOM))
        return n + 1;
    int total = backtrace_fn((void **)pcs + 1, GT_FRAMES_MAX - 1);
    n = 1;
    for (int i = 1; i <= total && pcs[i]; i++) {
        if (pcs[i] - own_start >= own_end - own_start)
            pcs[n++] = pcs[i];
    }
    return n;
}

struct gt_stack *gt_capture(struct gt_thread *t, enum gt_hook hook)
{
    struct gt_trail *trail = &t->trail;
    uint32_t epoch = (uint32_t)gt_modules_epoch(), n = 0;
    int saved = errno;
    enum gt_walked walked = walks ? gt_unwind(trail, epoch, &n) : GT_WALK_ODD;
    if (walked <= GT_WALK_TRAIL) {
        struct gt_path *p = gt_trail_last(trail);
        if (walked != GT_WALK_SAME || p->leaf != hook) {
            uint64_t *pcs = gt_trail_pcs(trail, &n) - 1;
            p->leaf = hook;
            pcs[0] = hook;
            p->stack = gt_stacks_get_hashed(pcs, n + 1, epoch, gt_path_hash(p));
        }
        errno = saved;
        return p->stack;
    }
    n = walked == GT_WALK_ODD ? walk_odd(t, trail->fresh_pcs, n) : n + 1;
    trail->fresh_pcs[0] = hook;
    errno = saved;
    return gt_stacks_get(trail->fresh_pcs, n, epoch);
}

static struct gt_stack *just_leaf(enum gt_hook hook)
{
    uint64_t pc = hook;
    return gt_stacks_get(&pc, 1, (uint32_t)gt_modules_epoch());
}

struct gt_stack *gt_capture_from(struct gt_thread *t, enum gt_hook hook, const void *from)
{
    struct gt_stack *s = from == GT_NOWHERE ? just_leaf(hook) : gt_capture(t, hook);
    uint64_t pcs[GT_FRAMES_MAX], pc = (uintptr_t)from;
    uint32_t at = 1;
    if (!s || !from || from == GT_NOWHERE || (s->n > 1 && s->pcs[1] == pc))
        return s;
    while (at < s->n && s->pcs[at] != pc)
        at++;
    uint32_t rest = at < s->n ? at + 1 : 1, n = s->n - rest;
    if (n > GT_FRAMES_MAX - 2)
        n = GT_FRAMES_MAX - 2;
    pcs[0] = hook;
    pcs[1] = pc;
    memcpy(pcs + 2, s->pcs + rest, n * sizeof *pcs);
    return gt_stacks_get(pcs, n + 2, gt_stack_epoch(s));
}

/* The innermost frame as it stands at the head of a stack: the call itself. */
static struct gt_stack *get_call(uint64_t *pcs, uint32_t n, uint32_t epoch)
{
    uint64_t leaf = n ? pcs[0]-- : 0;
    struct gt_stack *s = leaf ? gt_stacks_get(pcs, n, epoch) : NULL;
    pcs[0] = leaf;
    return s;
}

struct gt_stack *gt_capture_caller(struct gt_thread *t)
{
    struct gt_trail *trail = &t->trail;
    uint32_t epoch = (uint32_t)gt_modules_epoch(), n = 0;
    int saved = errno;
    enum gt_walked walked = walks ? gt_unwind(trail, epoch, &n) : GT_WALK_ODD;
    if (walked > GT_WALK_TRAIL) {
        n = walked == GT_WALK_ODD ? walk_odd(t, trail->fresh_pcs, n) : n + 1;
        errno = saved;
        return get_call(trail->fresh_pcs + 1, n - 1, epoch);
    }
    struct gt_path *p = gt_trail_last(trail);
    if (walked != GT_WALK_SAME || p->leaf != GT_HOOKS_END) {
        p->leaf = GT_HOOKS_END; /* for none */
        uint64_t *pcs = gt_trail_pcs(trail, &n);
        p->stack = get_call(pcs, n, epoch);
    }
    errno = saved;
    return p->stack;
}

struct gt_stack *gt_capture_routine(const void *entry)
{
    uint64_t pc = (uintptr_t)entry;
    return gt_stacks_get(&pc, 1, (uint32_t)gt_modules_epoch());
}

struct gt_stack *gt_capture_bottom(struct gt_thread *t)
{
    struct gt_stack *s = gt_capture(t, GT_HOOK_NONE);
    /* Below the program's outermost function lie libc's start_thread and clone. */
    uint64_t pc = s && s->n > 3 ? s->pcs[s->n - 3] : s && s->n > 1 ? s->pcs[s->n - 1] : 0;
    return pc ? gt_stacks_get(&pc, 1, s->epoch) : NULL;
}
