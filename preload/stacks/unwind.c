/* See unwind.h. */
#include "unwind.h"

#include "code_layouts.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/hash.h"
#include "encoder/thread/stacks.h"

#include <dlfcn.h>
#include <pthread.h>

#define PAGE 4096u

static struct {
    uintptr_t own_start, own_size;
    uintptr_t main_lo, main_hi; /* the main thread's stack */
} unwind;

static inline bool is_ours(uint64_t pc)
{
    return pc - unwind.own_start < unwind.own_size;
}

/* Memory ------------------------------------------------------------------------------------- */

/* The part of a stack that can be read: [lo, hi). */
struct range {
    uintptr_t lo, hi;
    bool whole;     /* hi is the stack's end; else more may be readable */
    bool copied;    /* the stack is a copy, which ends there */
    uintptr_t away; /* how far the copy is from the stack */
};

/*
 * Whether [r->lo, end) can be read, which extends r. A frame too big on a stack of unknown size is
 * given up.
 */
__attribute__((noinline)) static bool extend(struct range *r, uintptr_t end)
{
    enum { PAGES_MAX = 64 };
    if (r->whole || end - r->hi > PAGES_MAX * PAGE)
        return false;
    while (r->hi < end) {
        if (!gt_page_readable(r->hi))
            return false;
        r->hi += PAGE;
    }
    return true;
}

static inline bool can_read(struct range *r, uintptr_t at, size_t size)
{
    return at >= r->lo && at <= UINTPTR_MAX - size && (at + size <= r->hi || extend(r, at + size));
}

#define RED_ZONE 128 /* bytes below sp that signals spare */

static inline uintptr_t page_of(uintptr_t address)
{
    return address & ~(uintptr_t)(PAGE - 1);
}

/* The stack from sp upward, with the red zone as far as it is in the same page. */
static inline struct range range_at(const struct gt_trail *t, uintptr_t sp)
{
    uintptr_t page = page_of(sp), lo = sp - page < RED_ZONE ? page : sp - RED_ZONE;
    if (sp - t->stack_lo < t->stack_hi - t->stack_lo)
        return (struct range){lo, t->stack_hi, true, false, 0};
    return (struct range){lo, sp > page ? page + PAGE : page, false, false, 0};
}

static inline uintptr_t word_at(uintptr_t address)
{
    return *(const uintptr_t *)address;
}

static inline uintptr_t word_in(const struct range *r, uintptr_t address)
{
    return word_at(address + r->away);
}

/* Steps -------------------------------------------------------------------------------------- */

struct state {
    uintptr_t pc;   /* return address, or one more than an interrupted instruction's address */
    uintptr_t look; /* the address to look up the layout for */
    uintptr_t sp, fp;
    uintptr_t fp_at;   /* where fp was read; 0: the frame before has the same */
    uintptr_t ra;      /* from a register of interrupted code, perhaps; 0: not interrupted */
    uint32_t ra_below; /* where pc was read, as in struct gt_step */
    struct range r;
    bool interrupted; /* pc is not a call's return address */
    bool plain;       /* only words of the stack decided: the frames can be remembered */
};

/* CUT: the stack may go on, but the copy ends. */
enum outcome { GO_ON, END, BROKEN, ODD_FRAME, CUT };

static inline enum outcome out_of(const struct range *r)
{
    return r->copied ? CUT : BROKEN;
}

/* How far below sp the pc was read. Where this is the same for all frames, it is not noted. */
static inline uintptr_t ra_below(uint32_t noted)
{
    return GT_ARCH_RA_BELOW ? GT_ARCH_RA_BELOW : noted;
}

static inline enum outcome return_to(struct state *s, uintptr_t below)
{
    uintptr_t in_register = s->ra;
    s->ra = 0;
    if (!below && !in_register)
        return BROKEN;
    s->pc = gt_arch_code(below ? word_in(&s->r, s->sp - below) : in_register);
    s->ra_below = (uint32_t)below;
    s->look = s->pc - 1;
    return s->pc ? GO_ON : END;
}

static inline enum outcome step_to(struct state *s, uintptr_t cfa, uintptr_t below,
                                   uintptr_t fp_below)
{
    if (__builtin_expect(cfa < s->sp + below || cfa & 7, 0))
        return BROKEN;
    if (__builtin_expect(cfa > s->r.hi, 0) && !extend(&s->r, cfa))
        return out_of(&s->r);
    if (__builtin_expect(fp_below > cfa - s->sp, 0)) {
        /*
         * Interrupted between restoring fp and returning: compilers do not say that fp is back. In
         * a copy, which has no red zone, the register has it.
         */
        if (s->r.copied)
            fp_below = 0;
        else if (fp_below > cfa - s->r.lo)
            return BROKEN;
        s->plain = false;
    }
    s->interrupted = false;
    s->fp_at = 0;
    if (fp_below) {
        s->fp_at = cfa - fp_below;
        s->fp = word_in(&s->r, s->fp_at);
    }
    s->sp = cfa;
    return return_to(s, below);
}

/*
 * The step for code that calls a function, then frees its frame and returns at once, as Python's
 * trampolines do: its own instructions tell its frame.
 */
static enum outcome step_returning(struct state *s)
{
    struct gt_arch_frame frame;
    const uint8_t *code = (const uint8_t *)s->pc;
    if (s->interrupted || !gt_can_read(code, GT_ARCH_RETURN_MAX) || !gt_arch_return(code, &frame))
        return END;
    return step_to(s, s->sp + frame.size, sizeof(uintptr_t), frame.fp_below);
}

/*
 * The step where nothing is known, as in the procedure linkage table of aarch64. An interrupted
 * function may have its return address in the register. If the register still has that of a call
 * which the function made, the function appears twice. Otherwise fp may be a frame pointer:
 * libunwind's conditions.
 */
static enum outcome step_guess(struct state *s)
{
    enum { FAR = 0x4000 };
    if (s->ra)
        return step_to(s, s->sp, 0, 0);
    if (s->fp < s->sp || s->fp - s->sp > FAR)
        return step_returning(s);
    return step_to(s, s->fp + 2 * sizeof(uintptr_t), sizeof(uintptr_t), 2 * sizeof(uintptr_t));
}

static enum outcome step_realigned(struct state *s, uint64_t word)
{
    uintptr_t at = s->fp + gt_layout_cfa(word);
    s->plain = false;
    if (s->fp & 7)
        return BROKEN;
    if (!can_read(&s->r, s->fp, 8) || !can_read(&s->r, at, 8))
        return out_of(&s->r);
    uintptr_t fp = word_in(&s->r, s->fp);
    enum outcome outcome = step_to(s, word_in(&s->r, at), gt_layout_ra(word), 0);
    s->fp = fp;
    return outcome;
}

/*
 * The range at an interrupted instruction. The instruction may just have read registers from the
 * page below, or may have run off its stack.
 */
static struct range range_interrupted(const struct gt_trail *t, uintptr_t sp)
{
    if (!gt_page_readable(page_of(sp)))
        return (struct range){sp, sp, true, false, 0};
    struct range r = range_at(t, sp);
    if (r.lo > sp - RED_ZONE && gt_page_readable(page_of(sp - RED_ZONE)))
        r.lo = sp - RED_ZONE;
    return r;
}

/* Goes on at the interrupted instruction, with the range that can be read there. */
static enum outcome resume_at(struct state *s, const struct gt_arch_registers *regs, struct range r)
{
    s->plain = false;
    s->interrupted = true;
    s->fp = regs->fp;
    s->sp = regs->sp;
    s->ra = regs->ra;
    s->look = regs->pc;
    s->pc = s->look + 1; /* like a return address: readers of stacks subtract 1 again */
    s->r = r;
    /* If the handler has a stack of its own, the interrupted stack is in no copy. */
    bool elsewhere = r.copied && s->sp - r.lo > r.hi - r.lo;
    return elsewhere || s->sp & 7 ? BROKEN : GO_ON;
}

/* The step through a signal's frame, the kernel's struct rt_sigframe. */
static enum outcome step_signal(const struct gt_trail *t, struct state *s)
{
    uintptr_t context = s->sp + GT_ARCH_SIGNAL_CONTEXT;
    if (!can_read(&s->r, context, GT_ARCH_CONTEXT_SIZE))
        return out_of(&s->r);
    struct gt_arch_registers regs = gt_arch_interrupted((const void *)(context + s->r.away));
    return resume_at(s, &regs, s->r.copied ? s->r : range_interrupted(t, regs.sp));
}

static enum outcome step_rare(const struct gt_trail *t, struct state *s, uint64_t word)
{
    switch (gt_layout_kind(word)) {
    case GT_FRAME_OUTERMOST: return END;
    case GT_FRAME_UNKNOWN: return step_guess(s);
    case GT_FRAME_REALIGNED: return step_realigned(s, word);
    case GT_FRAME_SIGNAL: return step_signal(t, s);
    default: return ODD_FRAME;
    }
}

static inline enum outcome step(const struct gt_trail *t, struct state *s, uint64_t word)
{
    if (__builtin_expect(gt_layout_kind(word) == GT_FRAME_SP, 1))
        return step_to(s, s->sp + gt_layout_cfa(word), gt_layout_ra(word), gt_layout_fp(word));
    if (gt_layout_kind(word) == GT_FRAME_FP)
        return step_to(s, s->fp + gt_layout_cfa(word), gt_layout_ra(word), gt_layout_fp(word));
    return step_rare(t, s, word);
}

/* The trail ---------------------------------------------------------------------------------- */

/*
 * The first remembered frame outward of i that has changed; i's own registers are as now. The
 * frames are unchanged if the words that the walk read are: a walk depends on nothing else.
 */
static inline uint32_t changed_after(const struct gt_path *p, uint32_t i)
{
    const struct gt_step *step = &p->step[i + 1], *end = &p->step[GT_TRAIL_MAX];
    const uint64_t *pc = &p->pcs[i + 2];
    while (step < end && gt_arch_code(word_at(step->sp - ra_below(step->ra_below))) == *pc &&
           word_at(step->fp_at) == step->fp) {
        step++;
        pc++;
    }
    return (uint32_t)(step - p->step);
}

/* Checks that all frames can be read, then calls changed_after. GT_TRAIL_MAX + 1: not all can. */
static uint32_t verify(const struct gt_path *p, uint32_t i, struct range *r)
{
    if (p->step[GT_TRAIL_MAX - 1].sp > r->hi && !extend(r, p->step[GT_TRAIL_MAX - 1].sp))
        return GT_TRAIL_MAX + 1;
    return changed_after(p, i);
}

static bool same_state(const struct gt_path *p, uint32_t i, const struct state *s)
{
    const struct gt_step *step = &p->step[i];
    return step->sp == s->sp && p->pcs[i + 1] == s->pc && !((step->fp ^ s->fp) & step->fp_mask);
}

/* Notes that the frame's fp was read at `at`; 0: it was not read, or makes no difference. */
static void set_fp_at(struct gt_step *step, uintptr_t at)
{
    step->fp_at = at && step->fp_mask ? at : (uintptr_t)&step->fp;
}

/*
 * Remembers n fresh frames; they end where the remembered frame `join` goes on, at s. s NULL: they
 * are all.
 */
static void remember(struct gt_trail *t, struct gt_path *p, uint32_t n, uint32_t join,
                     const struct state *s)
{
    uintptr_t needed = 0;
    uint64_t hash = GT_STACKS_SEED;
    bool ours = false;
    if (join < GT_TRAIL_MAX) {
        set_fp_at(&p->step[join], s->fp_at);
        p->step[join].ra_below = s->ra_below;
        needed = p->step[join].fp_mask;
        hash = p->step[join].hash;
        ours = p->step[join].ours;
    }
    for (uint32_t k = n; k-- > 0;) {
        const struct gt_fresh *f = &t->fresh[k];
        struct gt_step *step = &p->step[join - n + k];
        if (f->uses_fp)
            needed = UINTPTR_MAX;
        else if (f->saves_fp)
            needed = 0;
        if (__builtin_expect(is_ours(t->fresh_pcs[k + 1]), 0))
            ours = true;
        else
            hash = gt_hash_mix(hash, t->fresh_pcs[k + 1]);
        step->sp = f->sp;
        step->fp = f->fp;
        step->fp_mask = needed;
        set_fp_at(step, f->fp_at);
        step->ra_below = f->ra_below;
        step->hash = hash;
        step->ours = ours;
        p->pcs[join - n + k + 1] = t->fresh_pcs[k + 1];
    }
    p->frames = GT_TRAIL_MAX - (join - n);
}

/*
 * Whether the stack, remembered from frame `join` on, with n frames before it, is cut where it was.
 */
static bool fits(const struct gt_path *p, uint32_t n, uint32_t join)
{
    return p->cut ? n == join : n <= join;
}

/* Copies pcs without ours. Returns how many remain. */
static uint32_t without_ours(uint64_t *to, const uint64_t *pcs, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_ours(pcs[i]))
            to[kept++] = pcs[i];
    }
    return kept;
}

uint64_t *gt_trail_pcs(struct gt_trail *t, uint32_t *n)
{
    struct gt_path *p = gt_trail_last(t);
    uint32_t first = gt_path_first(p);
    *n = p->frames;
    if (__builtin_expect(!p->frames || !p->step[first].ours, 1))
        return &p->pcs[first + 1];
    *n = without_ours(t->fresh_pcs + 1, &p->pcs[first + 1], *n);
    return t->fresh_pcs + 1;
}

uint32_t gt_trail_frames(struct gt_trail *t, uint64_t *pcs, uintptr_t *sp)
{
    const struct gt_path *p = gt_trail_last(t);
    uint32_t kept = 0;
    for (uint32_t i = gt_path_first(p); i < GT_TRAIL_MAX; i++) {
        pcs[kept] = p->pcs[i + 1];
        sp[kept] = p->step[i].sp;
        kept += !is_ours(p->pcs[i + 1]);
    }
    return kept;
}

/* The end of the frame that begins at `frame`. 0: the frame's function has no information. */
static uintptr_t end_of_frame(const uintptr_t *frame, uintptr_t within)
{
    uintptr_t fp_below = GT_ARCH_RA_BELOW ? GT_ARCH_RA_BELOW + sizeof *frame
                                          : gt_layout_fp(gt_layout_lookup(within - 1));
    return fp_below ? (uintptr_t)frame + fp_below : 0;
}

/* The registers when the outermost of our functions returns; sp 0: not known. */
struct begin {
    uintptr_t pc, sp, fp;
    uint32_t ra_below;
};

/* Finds where the hook returns to the program. All our functions on the way keep frame pointers. */
static inline struct begin begin_at(const uintptr_t *frame, uintptr_t within)
{
    enum { OURS_MAX = 16 };
    uintptr_t caller = gt_arch_code(frame[1]);
    for (int i = 0; is_ours(caller); i++) {
        if (i == OURS_MAX || frame[0] <= (uintptr_t)frame)
            return (struct begin){.sp = 0};
        frame = (const uintptr_t *)frame[0];
        within = caller;
        caller = gt_arch_code(frame[1]);
    }
    uintptr_t sp = end_of_frame(frame, within);
    return (struct begin){caller, sp, frame[0], (uint32_t)(sp - (uintptr_t)(frame + 1))};
}

static bool start(const struct gt_trail *t, struct state *s, const struct begin *at)
{
    *s = (struct state){.pc = at->pc,
                        .look = at->pc - 1,
                        .sp = at->sp,
                        .fp = at->fp,
                        .ra_below = at->ra_below,
                        .r = range_at(t, at->sp),
                        .plain = true};
    return s->sp && !(s->sp & 7);
}

/*
 * The path that begins where s is; else the path before the last, as that stack may well come
 * again.
 */
static struct gt_path *choose(struct gt_trail *t, const struct state *s)
{
    struct gt_path *p = gt_trail_last(t);
    uint32_t first = t->used ? gt_path_first(p) : GT_TRAIL_MAX;
    if (first < GT_TRAIL_MAX && p->step[first].sp == s->sp && p->pcs[first + 1] == s->pc)
        return p;
    t->last ^= 1;
    p = gt_trail_last(t);
    if (t->used < 2) { /* its pages are first written, not read: so they are mapped at once */
        p->frames = 0;
        t->used++;
    }
    return p;
}

/*
 * Whether path i is the whole stack of the hook that returns to `at`, on a stack whose end is
 * known.
 */
static inline bool is_same(const struct gt_trail *t, uint32_t i, uint32_t epoch,
                           const struct begin *at)
{
    const struct gt_path *p = &t->path[i];
    uint32_t first = gt_path_first(p);
    const struct gt_step *step = &p->step[first];
    return p->frames && step->sp == at->sp && p->pcs[first + 1] == at->pc &&
           !((step->fp ^ at->fp) & step->fp_mask) && p->epoch == epoch &&
           gt_trail_covers(t, at->sp) && p->step[GT_TRAIL_MAX - 1].sp <= t->stack_hi &&
           changed_after(p, first) == GT_TRAIL_MAX;
}

static __attribute__((noinline)) enum gt_walked walk(struct gt_trail *t, uint32_t epoch,
                                                     const struct begin *at, uint32_t *n)
{
    struct state s;
    if (!start(t, &s, at))
        return GT_WALK_FRESH;
    struct gt_path *p = choose(t, &s);
    uint32_t join = p->epoch == epoch ? gt_path_first(p) : GT_TRAIL_MAX, count = 0;
    enum outcome outcome = GO_ON;
    for (;;) {
        while (join < GT_TRAIL_MAX && p->step[join].sp < s.sp)
            join++;
        if (join < GT_TRAIL_MAX && s.plain && same_state(p, join, &s)) {
            uint32_t differs = verify(p, join, &s.r);
            if (differs == GT_TRAIL_MAX && fits(p, count, join)) {
                if (count == 0 && join == gt_path_first(p))
                    return GT_WALK_SAME;
                remember(t, p, count, join, &s);
                return GT_WALK_TRAIL;
            }
            join = differs < GT_TRAIL_MAX ? differs : GT_TRAIL_MAX;
        }
        if (count == GT_TRAIL_MAX)
            break;
        uint64_t word = gt_layout_lookup(s.look);
        t->fresh[count] = (struct gt_fresh){s.sp,
                                            s.fp,
                                            s.fp_at,
                                            s.ra_below,
                                            gt_layout_kind(word) == GT_FRAME_FP ||
                                                gt_layout_kind(word) == GT_FRAME_UNKNOWN,
                                            gt_layout_fp(word) != 0};
        t->fresh_pcs[++count] = s.pc;
        outcome = step(t, &s, word);
        if (outcome != GO_ON)
            break;
    }
    if (outcome == ODD_FRAME || outcome == BROKEN || !s.plain) {
        *n = without_ours(t->fresh_pcs + 1, t->fresh_pcs + 1, count);
        return outcome == ODD_FRAME ? GT_WALK_ODD : GT_WALK_FRESH;
    }
    remember(t, p, count, GT_TRAIL_MAX, NULL);
    p->epoch = epoch;
    p->cut = outcome == GO_ON;
    return GT_WALK_TRAIL;
}

__attribute__((noinline)) enum gt_walked gt_unwind(struct gt_trail *t, uint32_t epoch, uint32_t *n)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    struct begin at = begin_at(frame, gt_arch_within(frame));
    *n = 0;
    gt_layouts_are_of(epoch);
    for (uint32_t i = 0; i < t->used; i++) {
        if (is_same(t, t->last ^ i, epoch, &at)) {
            t->last ^= i;
            return GT_WALK_SAME;
        }
    }
    return walk(t, epoch, &at, n);
}

/*
 * Walks from s on without the trail: at most `max` return addresses, and where their frames begin.
 * *last: why there are no more.
 */
static uint32_t walk_on(const struct gt_trail *t, uint32_t epoch, struct state *s, uint64_t *pcs,
                        uintptr_t *sp, uint32_t max, enum outcome *last)
{
    uint32_t n = 0;
    *last = GO_ON;
    gt_layouts_are_of(epoch);
    for (; *last == GO_ON && n < max; *last = step(t, s, gt_layout_lookup(s->look))) {
        if (is_ours(s->look))
            continue;
        if (sp)
            sp[n] = s->sp;
        pcs[n++] = s->pc;
    }
    return n;
}

/* As walk_on, from an interrupted instruction on. */
static uint32_t walk_interrupted(const struct gt_trail *t, uint32_t epoch, struct state *s,
                                 uint64_t *pcs, uintptr_t *sp, enum outcome *last)
{
    uint32_t n = walk_on(t, epoch, s, pcs, sp, GT_FRAMES_MAX, last);
    if (n)
        pcs[0]--; /* the instruction's own address */
    return n;
}

__attribute__((noinline)) bool gt_unwind_meets_signal(const struct gt_trail *t, uint32_t epoch)
{
    struct state s;
    enum { DEPTH = 1000 }; /* frames of a handler */
    const uintptr_t *frame = __builtin_frame_address(0);
    gt_layouts_are_of(epoch);
    struct begin at = begin_at(frame, gt_arch_within(frame));
    enum outcome outcome = start(t, &s, &at) ? GO_ON : BROKEN;
    for (int i = 0; outcome == GO_ON && i < DEPTH; i++) {
        uint64_t word = gt_layout_lookup(s.look);
        if (gt_layout_kind(word) == GT_FRAME_SIGNAL)
            return true;
        outcome = step(t, &s, word);
    }
    return false;
}

uint32_t gt_unwind_context(const struct gt_trail *t, uint32_t epoch, const void *context,
                           uint64_t *pcs, uintptr_t *sp)
{
    struct state s = {.fp_at = 0};
    struct gt_arch_registers regs = gt_arch_interrupted(context);
    enum outcome last = resume_at(&s, &regs, range_interrupted(t, regs.sp));
    return last == GO_ON ? walk_interrupted(t, epoch, &s, pcs, sp, &last) : 0;
}

uint32_t gt_unwind_copy(const struct gt_arch_registers *regs, const void *copy, size_t size,
                        uint32_t epoch, uint64_t *pcs, bool *cut)
{
    struct state s = {.fp_at = 0};
    struct range r = {regs->sp, regs->sp + size, true, true, (uintptr_t)copy - regs->sp};
    bool known = regs->pc && r.hi >= r.lo;
    enum outcome last = known ? resume_at(&s, regs, r) : BROKEN;
    uint32_t n = last == GO_ON ? walk_interrupted(NULL, epoch, &s, pcs, NULL, &last) : 0;
    *cut = last == CUT;
    return n;
}

uint32_t gt_unwind_hook(const struct gt_trail *t, uint32_t epoch, const uintptr_t *frame,
                        uintptr_t within, uint64_t *pcs, uintptr_t *sp)
{
    struct state s;
    enum outcome last;
    struct begin at = begin_at(frame, within);
    gt_layouts_are_of(epoch);
    return start(t, &s, &at) ? walk_on(t, epoch, &s, pcs, sp, GT_TRAIL_MAX, &last) : 0;
}

/* Beginning ---------------------------------------------------------------------------------- */

void gt_trail_begin(struct gt_trail *t, size_t size)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t end = (uintptr_t)pthread_self(); /* libc keeps it at the end of a thread's stack */
    t->last = t->used = 0;
    t->stack_lo = t->stack_hi = 0;
    if (here - unwind.main_lo < unwind.main_hi - unwind.main_lo) {
        t->stack_lo = unwind.main_lo;
        t->stack_hi = unwind.main_hi;
    } else if (here < end && end - here < size) {
        t->stack_lo = end - size;
        t->stack_hi = end & ~(uintptr_t)7;
    }
}

/*
 * How much the kernel keeps free of mappings below the end of the main thread's stack, so that any
 * address in there is that stack's. (mmap_base in arch/x86/mm/mmap.c, as arm64's, leaves at least
 * 128 MiB.)
 */
#define MAIN_STACK (64u << 20)

bool gt_unwind_init(uintptr_t start_of_ours, uintptr_t end_of_ours)
{
    unwind.own_start = start_of_ours;
    unwind.own_size = end_of_ours - start_of_ours;
    /*
     * The stack pointer at the program's first instruction: argc, and above it only more of the
     * stack.
     */
    uintptr_t *stack_end = dlsym(RTLD_DEFAULT, "__libc_stack_end");
    if (stack_end) {
        unwind.main_hi = *stack_end & ~(uintptr_t)7;
        unwind.main_lo = unwind.main_hi - MAIN_STACK;
    }
    return gt_layouts_init();
}
