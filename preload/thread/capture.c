/* See capture.h. */
#include "capture.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/log.h"
#include "encoder/base/urgent.h"
#include "encoder/format/format.h"
#include "encoder/thread/room.h"
#include "encoder/thread/states.h"
#include "preload/stacks/code_layouts.h"
#include "preload/stacks/python_stack.h"
#include "preload/stacks/routine.h"
#include "preload/stacks/unwind.h"
#include "symbolize/elf/elf_names.h"
#include "symbolize/elf/modules.h"

#include <string.h>

/* The walker of unwind.h works. */
static bool walks;

/* Our own code, whose frames are left out of stacks. */
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

static __attribute__((noinline)) uintptr_t find_python(struct gt_thread *t, struct gt_here here)
{
    uint64_t *pcs = t->trail.fresh_pcs;
    uint32_t epoch = (uint32_t)gt_modules_epoch(), n = 0;
    int saved = errno;
    if (gt_python_may_go)
        n = gt_unwind_hook(&t->trail, epoch, here.frame, here.within, pcs, NULL);
    errno = saved;
    return gt_python_has(pcs, n) ? gt_python_thread() : 0;
}

static inline bool python_runs(void)
{
    if (__builtin_expect(!atomic_load_explicit(&gt_python_runs, memory_order_relaxed), 1))
        return false;
    atomic_thread_fence(memory_order_acquire); /* pairs with set_runs in python_stack.c */
    return walks;
}

__attribute__((noinline)) uintptr_t gt_capture_python(struct gt_thread *t)
{
    return python_runs() ? find_python(t, GT_HERE()) : 0;
}

bool gt_capture_later(struct gt_thread *t, enum gt_hook hook, struct gt_here here)
{
    t->call.hook = hook;
    t->call.fp = here.frame[0];
    t->call.pc = here.frame[1];
    t->call.within = here.within;
    t->call.python = python_runs() ? find_python(t, here) : 0;
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

/*
 * Whether the noted hook is still under way. A hook's frame is not deeper than the frames of the
 * functions that it calls, and only the hook writes there.
 */
static bool still_there(const struct gt_thread *t, const uintptr_t *frame)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bool left = gt_self == t && gt_trail_covers(&t->trail, here) && here > (uintptr_t)frame &&
                !gt_thread_on_signal_stack(); /* a signal stack may be part of the thread's own */
    return !left && frame[0] == t->call.fp && frame[1] == t->call.pc;
}

/* Walks from a hook's frame outward, with the functions of Python. */
static __attribute__((noinline)) uint32_t walk_python(const struct gt_trail *t, uint32_t epoch,
                                                      struct gt_here here, uintptr_t python,
                                                      bool own, uint64_t *pcs)
{
    uint64_t native[GT_TRAIL_MAX];
    uintptr_t sp[GT_TRAIL_MAX];
    uint32_t n = gt_unwind_hook(t, epoch, here.frame, here.within, native, sp);
    return (own ? gt_python_merge : gt_python_merge_other)(python, native, sp, n, pcs,
                                                           GT_TRAIL_MAX);
}

static uint32_t walk_noted(const struct gt_thread *t, uint32_t epoch, uint64_t *pcs)
{
    struct gt_here here = {atomic_load(&t->call.frame), t->call.within};
    if (!walks || !gt_trail_covers(&t->trail, (uintptr_t)here.frame) || !still_there(t, here.frame))
        return 0;
    return t->call.python ? walk_python(&t->trail, epoch, here, t->call.python, t == gt_self, pcs)
                          : gt_unwind_hook(&t->trail, epoch, here.frame, here.within, pcs, NULL);
}

static struct gt_stack *get_noted(const struct gt_thread *t, uint32_t epoch, uint64_t *pcs,
                                  uint32_t n)
{
    const struct gt_stack *routine = t->w.g.routine;
    if (n == 0 && routine) {
        pcs[++n] = routine->pcs[0] + 1; /* PCs except the leaf are taken for return addresses */
        epoch = routine->epoch;
    }
    pcs[0] = t->call.hook;
    return gt_stacks_get(pcs, n + 1, epoch);
}

/*
 * The stack of another thread's call. Either that thread sees, when it leaves, that it is looked
 * at, or this thread sees that the other one has left.
 */
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
    /*
     * The call's own thread may be short of stack; another thread must not write what belongs to
     * it.
     */
    uint64_t *own = t->trail.fresh_pcs;
    struct gt_stack *s = t == gt_self ? get_noted(t, epoch, own, walk_noted(t, epoch, own + 1))
                                      : stack_of_other(t, epoch);
    errno = saved;
    return s;
}

static const struct gt_module *module_at(uintptr_t pc)
{
    const struct gt_module *m = gt_modules_now(pc);
    if (m)
        return m;
    gt_modules_refresh();
    return gt_modules_now(pc);
}

/* gt_layouts_find by the module map. A module's headers are in its first page, if anywhere. */
static bool find_in_modules(uintptr_t pc, struct gt_layout_object *found)
{
    enum { PAGE = 4096 };
    const struct gt_module *m = module_at(pc);
    if (!m)
        return false;
    *found = (struct gt_layout_object){.start = m->lo, .bias = m->bias};
    const ElfW(Ehdr) *header = (const void *)(uintptr_t)m->lo;
    const ElfW(Phdr) *ph = (const void *)(uintptr_t)(m->lo + header->e_phoff);
    bool has = memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_phoff <= PAGE &&
               header->e_phoff + header->e_phnum * sizeof *ph <= PAGE;
    for (int i = 0; has && i < header->e_phnum; i++) {
        if (ph[i].p_type == PT_GNU_EH_FRAME)
            found->hdr = m->bias + ph[i].p_vaddr;
    }
    return true;
}

void gt_capture_init(void)
{
    gt_elf_each_module(find_own, NULL);
    gt_layouts_find = find_in_modules;
    walks = gt_unwind_init(own_start, own_end);
    gt_modules_refresh();
    if (!walks)
        gt_log("no stacks: they cannot be walked here");
    gt_call_stack = stack_of_call;
    gt_stacks_same_code = gt_modules_same;
    gt_routine_init();
    gt_python_init();
}

/*
 * The stack of a thread that runs Python. The trail has its native frames only: they are the same
 * for all functions of Python that the interpreter executes there.
 */
static __attribute__((noinline)) struct gt_stack *
capture_python(struct gt_thread *t, enum gt_hook hook, uintptr_t python)
{
    uint64_t native[GT_TRAIL_MAX], *pcs = t->trail.fresh_pcs;
    uintptr_t sp[GT_TRAIL_MAX];
    uint32_t epoch = (uint32_t)gt_modules_epoch(), n;
    int saved = errno;
    if (gt_unwind(&t->trail, epoch, &n) <= GT_WALK_TRAIL) {
        gt_trail_last(&t->trail)->leaf = GT_HOOKS_END + 1; /* its `stack` is none of Python */
        n = gt_trail_frames(&t->trail, native, sp);
        n = gt_python_merge(python, native, sp, n, pcs + 1, GT_TRAIL_MAX);
    } else {
        n = walk_python(&t->trail, epoch, GT_HERE(), python, true, pcs + 1);
    }
    pcs[0] = hook;
    errno = saved;
    return gt_stacks_get(pcs, n + 1, epoch);
}

struct gt_stack *gt_capture(struct gt_thread *t, enum gt_hook hook)
{
    struct gt_trail *trail = &t->trail;
    uint32_t epoch = (uint32_t)gt_modules_epoch(), n = 0;
    if (python_runs() && (t->python = gt_capture_python(t)))
        return capture_python(t, hook, t->python);
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
    trail->fresh_pcs[0] = hook;
    errno = saved;
    return gt_stacks_get(trail->fresh_pcs, n + 1, epoch);
}

uint32_t gt_capture_interrupted(const struct gt_thread *t, uint32_t epoch, const void *context,
                                uint64_t *pcs, uint64_t *native, uintptr_t *sp)
{
    bool runs = python_runs();
    uint32_t n = gt_unwind_context(&t->trail, epoch, context, runs ? native : pcs, sp);
    uintptr_t python = runs && gt_python_has(native, n) ? gt_python_thread() : 0;
    if (python)
        return gt_python_merge(python, native, sp, n, pcs, GT_FRAMES_MAX);
    if (runs)
        memcpy(pcs, native, n * sizeof *pcs);
    return n;
}

static struct gt_stack *just_leaf(enum gt_hook hook)
{
    uint64_t pc = hook;
    return gt_stacks_get(&pc, 1, (uint32_t)gt_modules_epoch());
}

struct gt_stack *gt_capture_from_slow(struct gt_thread *t, enum gt_hook hook, const void *from)
{
    struct gt_stack *s = from == GT_NOWHERE ? just_leaf(hook) : gt_capture(t, hook);
    uint64_t pcs[GT_FRAMES_MAX], pc = (uintptr_t)from;
    uint32_t at = 1;
    if (!s || from == GT_NOWHERE || (s->n > 1 && s->pcs[1] == pc))
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

/*
 * The stack whose innermost frame is at the head: the address of the call itself, not of its
 * return.
 */
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
        errno = saved;
        return get_call(trail->fresh_pcs + 1, n, epoch);
    }
    struct gt_path *p = gt_trail_last(trail);
    if (walked != GT_WALK_SAME || p->leaf != GT_HOOKS_END) {
        p->leaf = GT_HOOKS_END; /* there is no leaf */
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
