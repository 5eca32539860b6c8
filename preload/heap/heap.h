/*
 * Live bytes of the program's heap, as HeapAlloc, and the memory that it has from the system, as
 * HeapGoal.
 *
 * COUNTING. Every allocation adds malloc_usable_size of its block, every free subtracts it again,
 * so the two agree whatever happened between. A thread counts in a slot of its own: no atomic
 * read-modify-write, no lock. When a slot has moved by GT_HEAP_FOLD it is folded into one total.
 *  1. The live bytes are the total plus all slots. Slots stay in their list for ever (a thread that
 *     ends gives its slot to the next one), so any thread may read the sum at any time. It is exact
 *     when no thread allocates meanwhile.
 *  2. Counting needs neither recording nor a known thread: it begins with the first allocation of
 *     the process, and goes on in a forked child.
 *  3. The tracer's own allocations are not the program's: see GT_HEAP_OWN.
 *  4. Only memory of the allocator whose malloc_usable_size we call is counted. If the program's
 *     malloc is not reached through us, nothing is counted.
 *
 * WRITING. Events follow the total to within GT_HEAP_FOLD for each thread. Between two events of
 * one thread lies a millisecond, or a change of a 64th: in any second a thread writes at most
 * 2,000.
 *
 * A signal handler that calls free (which it must not) may lose a count.
 */
#pragma once

#include "encoder/base/glibc.h"
#include "preload/thread/heap_slots.h"
#include "preload/thread/thread.h"

/* false: nothing is ever counted. true as long as that is not known. */
extern bool gt_heap_on;

extern size_t (*gt_heap_usable)(void *p);

/* The allocator is glibc's, and its header before a block says what malloc_usable_size says. */
extern bool gt_heap_headers;

static inline size_t gt_heap_header(uintptr_t p)
{
    return *(const size_t *)(p - sizeof(size_t));
}

/* malloc_usable_size of a block, at a fifth of the call's cost. */
static inline size_t gt_heap_size(void *p)
{
    if (__builtin_expect(gt_heap_headers, 1)) {
        size_t header = gt_heap_header((uintptr_t)p);
        if (__builtin_expect(!(header & GT_HEAP_HEADER_MMAPPED), 1))
            return (header & ~(size_t)GT_HEAP_HEADER_FLAGS) - sizeof header;
    }
    return gt_heap_usable(p);
}

/* The slot has reached GT_HEAP_FOLD. errno is kept. caller: the hook's caller. */
void gt_heap_fold(struct gt_heap_slot *s, const void *caller);

/* As gt_heap_made and gt_heap_gone, for a thread without a slot. */
void gt_heap_made_slow(void *p);
void gt_heap_gone_slow(void *p);

static inline void gt_heap_count(struct gt_heap_slot *s, int64_t n)
{
    n += atomic_load_explicit(&s->delta, memory_order_relaxed);
    atomic_store_explicit(&s->delta, n, memory_order_relaxed);
    if (__builtin_expect((uint64_t)(n + GT_HEAP_FOLD) > 2 * GT_HEAP_FOLD, 0))
        gt_heap_fold(s, __builtin_return_address(0));
}

/* Counts n, in the thread's slot or in the total. */
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
 * A function may do its work through another hook, which counts. So a hook takes a mark before it
 * calls such a function. If the thread has counted nothing since the mark, the hook counts.
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

/* The real functions are known: decides whether to count. Called once. */
void gt_heap_resolved(void);

/* The hook of free(3), for our own code. */
void gt_heap_free(void *p);

/* Nothing is counted from here on. Constructor only. */
void gt_heap_off(void);

/* Counting begins now, or again: glibc itself says how much it has given out so far. */
void gt_heap_take_stock(void);

/* Finds HeapGoal for the next event. Called by the drain thread, which gt_drain_sample asks. */
void gt_heap_sample_goal(void);

/* Writes the exact live bytes now, if the thread may write. Inside the guard. */
void gt_heap_write_exact(struct gt_thread *t);

/* t is about to wait: writes the event that was kept back because of the rate. Inside the guard. */
void gt_heap_settle_slow(struct gt_thread *t);

static inline void gt_heap_settle(struct gt_thread *t)
{
    int64_t kept = atomic_load_explicit(&gt_heap.total, memory_order_relaxed) -
                   atomic_load_explicit(&gt_heap.shown, memory_order_relaxed);
    if (__builtin_expect((uint64_t)(kept + GT_HEAP_FOLD) > 2 * GT_HEAP_FOLD, 0) && !gt_muted())
        gt_heap_settle_slow(t);
}

/* Recording has started, and no event has shown the heap yet. */
static inline void gt_heap_restart(void)
{
    atomic_store_explicit(&gt_heap.shown, INT64_MIN / 2, memory_order_relaxed);
}

/*
 * The calling thread ends. last: it is the last one in the trace. t NULL: it can write nothing.
 * Inside the guard.
 */
void gt_heap_thread_end(struct gt_thread *t, bool last);

void gt_heap_after_fork(void);
