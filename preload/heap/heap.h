/*
 * Live bytes of the program's heap, as HeapAlloc, and what it has from the system, as HeapGoal.
 *
 * COUNTING. Every allocation adds malloc_usable_size of its block, every free takes it away again,
 * so the two agree whatever happened between. A thread counts in a slot of its own: no atomic
 * read-modify-write, no lock. When a slot has moved by GT_HEAP_FOLD it is folded into one total.
 *  1. The live bytes are the total plus all slots. Slots stay in their list for ever (a thread that
 *     ends gives its to the next one), so the sum may be read at any time, by any thread. It is
 *     exact when nobody allocates meanwhile.
 *  2. Counting needs neither recording nor a known thread: it begins with the first allocation of
 *     the process, and goes on in a forked child.
 *  3. What the tracer allocates for itself is not the program's: see GT_HEAP_OWN.
 *  4. Only memory of the allocator whose malloc_usable_size we call is counted; a program whose
 *     malloc is not reached through us is not counted at all.
 *
 * WRITING. Events follow the total to within GT_HEAP_FOLD for each thread. Between two events of
 * one thread lies a millisecond, or a change of a 64th: in any second a thread writes at most
 * 2,000.
 *
 * A signal handler that calls free (which it must not) may lose a count.
 */
#ifndef GT_HEAP_H
#define GT_HEAP_H

#include "preload/thread.h"

#define GT_HEAP_FOLD (64 << 10)

struct gt_heap_slot {
    struct gt_free free;
    _Atomic int64_t delta; /* the owner writes, anybody reads */
    uint64_t due;          /* when it may write its next event */
    uint32_t folds;
    struct gt_heap_slot *next; /* all slots */
};

/* Where the thread counts; NULL: it has not yet, it has ended, or nothing is counted at all. */
extern __thread struct gt_heap_slot *gt_heap_self __attribute__((tls_model("initial-exec")));

/* Not 0 in a thread that has given its slot back: it counts in the total. Grows with each count. */
extern __thread uint32_t gt_heap_late __attribute__((tls_model("initial-exec")));

/* False: nothing is counted, ever. True as long as that is not known. */
extern bool gt_heap_on;

extern size_t (*gt_heap_usable)(void *p);

/* The allocator is glibc's, and its header before a block says what malloc_usable_size says. */
extern bool gt_heap_headers;

#define GT_HEAP_HEADER_MMAPPED 2
#define GT_HEAP_HEADER_FLAGS 7

static inline size_t gt_heap_header(uintptr_t p)
{
    return *(const size_t *)(p - sizeof(size_t));
}

/* malloc_usable_size of a block, for a fifth of what the call costs. */
static inline size_t gt_heap_size(void *p)
{
    if (__builtin_expect(gt_heap_headers, 1)) {
        size_t header = gt_heap_header((uintptr_t)p);
        if (__builtin_expect(!(header & GT_HEAP_HEADER_MMAPPED), 1))
            return (header & ~(size_t)GT_HEAP_HEADER_FLAGS) - sizeof header;
    }
    return gt_heap_usable(p);
}

extern struct gt_heap_totals {
    _Atomic int64_t total;
    _Atomic int64_t shown; /* by the last HeapAlloc */
} gt_heap;

/* The slot has reached GT_HEAP_FOLD. errno is kept. caller: of the hook. */
void gt_heap_fold(struct gt_heap_slot *s, const void *caller);

/* As made and gone below, for a thread without a slot. */
void gt_heap_made_slow(void *p);
void gt_heap_gone_slow(void *p);

static inline void gt_heap_count(struct gt_heap_slot *s, int64_t n)
{
    n += atomic_load_explicit(&s->delta, memory_order_relaxed);
    atomic_store_explicit(&s->delta, n, memory_order_relaxed);
    if (__builtin_expect((uint64_t)(n + GT_HEAP_FOLD) > 2 * GT_HEAP_FOLD, 0))
        gt_heap_fold(s, __builtin_return_address(0));
}

/* The same whatever the thread counts in. */
void gt_heap_add(int64_t n);

/* `make debug`: whether the caller is the program, or our code where it may allocate. */
bool gt_heap_may_be_used(void);
#define GT_ASSERT_HEAP() GT_ASSERT("our code calls no hook of ours: malloc", gt_heap_may_be_used())

/* The allocator has given out p; NULL is fine. */
static inline void gt_heap_made(void *p)
{
    GT_ASSERT_HEAP();
    struct gt_heap_slot *s = gt_heap_self;
    if (__builtin_expect(!s, 0))
        gt_heap_made_slow(p);
    else if (p)
        gt_heap_count(s, (int64_t)gt_heap_size(p));
}

/* The allocator is about to get p back; NULL is fine. */
static inline void gt_heap_gone(void *p)
{
    GT_ASSERT_HEAP();
    struct gt_heap_slot *s = gt_heap_self;
    if (__builtin_expect(!s, 0))
        gt_heap_gone_slow(p);
    else if (p)
        gt_heap_count(s, -(int64_t)gt_heap_size(p));
}

/*
 * A function may do its work through another hook, which counts. Take a mark before calling it; if
 * the thread has counted nothing since, the caller does.
 */
struct gt_heap_mark {
    struct gt_heap_slot *slot;
    int64_t delta;
    uint32_t folds;
};

static inline struct gt_heap_mark gt_heap_mark(void)
{
    struct gt_heap_slot *s = gt_heap_self;
    if (!s)
        return (struct gt_heap_mark){NULL, 0, gt_heap_late};
    return (struct gt_heap_mark){s, atomic_load_explicit(&s->delta, memory_order_relaxed),
                                 s->folds};
}

static inline bool gt_heap_counted_since(struct gt_heap_mark before)
{
    struct gt_heap_mark now = gt_heap_mark();
    return now.slot != before.slot || now.delta != before.delta || now.folds != before.folds;
}

/* Around the look-up of the real functions: until they are known a small arena serves. */
void gt_heap_resolve_begin(void);
void gt_heap_resolve_end(void);

/* C++'s operators new and delete, when the allocator is known: operators.c. */
void gt_operators_resolve(void);

/* What free_sized and free_aligned_sized do where nobody has them. */
void gt_heap_free_sized(void *p, size_t size);
void gt_heap_free_aligned_sized(void *p, size_t alignment, size_t size);

/* Nothing is counted from here on. Constructor only. */
void gt_heap_off(void);

/* Counting begins now, or again: what glibc has given out until now is told by itself. */
void gt_heap_take_stock(void);

/* Until the end of the block, or for the rest of the thread, allocations are the tracer's own. */
struct gt_heap_slot *gt_heap_own_begin(void);
void gt_heap_own_end(struct gt_heap_slot **before);
#define GT_HEAP_OWN(name)                                                         \
    __attribute__((cleanup(gt_heap_own_end), unused)) struct gt_heap_slot *name = \
        gt_heap_own_begin()

/* Finds out what HeapGoal is, for the next event. The drain thread, asked by gt_drain_sample. */
void gt_heap_sample_goal(void);

/* Writes the exact live bytes now, if the thread may write. Inside the guard. */
void gt_heap_write_exact(struct gt_thread *t);

/* t is about to wait: what it kept back for the sake of the rate is written. Inside the guard. */
void gt_heap_settle_slow(struct gt_thread *t);

static inline void gt_heap_settle(struct gt_thread *t)
{
    int64_t kept = atomic_load_explicit(&gt_heap.total, memory_order_relaxed) -
                   atomic_load_explicit(&gt_heap.shown, memory_order_relaxed);
    if (__builtin_expect((uint64_t)(kept + GT_HEAP_FOLD) > 2 * GT_HEAP_FOLD, 0) && !gt_muted())
        gt_heap_settle_slow(t);
}

/* Recording has started: whatever the heap is, it has not been shown. */
static inline void gt_heap_restart(void)
{
    atomic_store_explicit(&gt_heap.shown, INT64_MIN / 2, memory_order_relaxed);
}

/* The thread ends, the last in the trace or not; t NULL: it can write nothing. Inside the guard. */
void gt_heap_thread_end(struct gt_thread *t, bool last);

void gt_heap_after_fork(void);

#endif
