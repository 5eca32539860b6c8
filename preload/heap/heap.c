/*
 * The malloc family, and the events about it. See heap.h.
 *
 * The hooks run in every context there is: before the constructor, inside the loader, inside our
 * own guard, in threads nobody knows, after a thread's last destructor. Only writing an event needs
 * the guard; counting needs nothing.
 */
#include "heap.h"

#include "allocator.h"
#include "nursery.h"
#include "sanitizer.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/arena.h"
#include "encoder/base/file.h"
#include "encoder/drain.h"
#include "encoder/events.h"
#include "encoder/ring.h"
#include "preload/process.h"
#include "preload/real.h"
#include "symbolize/elf_names.h"

#define MS_NS 1000000
#define BURST_MS 1000    /* large changes: as many events at once as the rate gives in this time */
#define GOAL_EVERY_MS 10 /* HeapGoal, in the whole process */

__thread struct gt_heap_slot *gt_heap_self;
bool gt_heap_on = true;
size_t (*gt_heap_usable)(void *p);
bool gt_heap_headers;
struct gt_heap_totals gt_heap;

__thread uint32_t gt_heap_late;

enum mode { UNDECIDED, COUNTING, OFF };

static struct {
    enum mode mode;
    struct gt_freelist free;
    _Atomic(struct gt_heap_slot *) all;
    struct gt_arena arena;
    _Atomic uint64_t goal_due;
    _Atomic uint64_t goal; /* sampled, not written yet; 0: none */
    uintptr_t loader_lo, loader_hi;
} heap;

/* Allocations of the tracer end here, and are forgotten. */
static struct gt_heap_slot own;

/* Slots -------------------------------------------------------------------------------------- */

/* NULL: there is no memory. */
static struct gt_heap_slot *slot_get(void)
{
    struct gt_heap_slot *s = gt_freelist_pop(&heap.free);
    if (s || !(s = gt_arena_alloc(&heap.arena, (sizeof *s + 63) & ~63ul)))
        return s;
    s->next = atomic_load_explicit(&heap.all, memory_order_relaxed);
    /* release: pairs with the acquire of live_bytes */
    while (!atomic_compare_exchange_weak_explicit(&heap.all, &s->next, s, memory_order_release,
                                                  memory_order_relaxed))
        ;
    return s;
}

static void fold(struct gt_heap_slot *s)
{
    int64_t delta = atomic_load_explicit(&s->delta, memory_order_relaxed);
    atomic_store_explicit(&s->delta, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&gt_heap.total, delta, memory_order_relaxed);
    s->folds++;
}

static int64_t live_bytes(void)
{
    int64_t sum = atomic_load(&gt_heap.total);
    struct gt_heap_slot *s = atomic_load_explicit(&heap.all, memory_order_acquire);
    for (; s; s = s->next)
        sum += atomic_load_explicit(&s->delta, memory_order_relaxed);
    return sum;
}

/* Events ------------------------------------------------------------------------------------- */

/*
 * Private memory the process really has: the allocator's, its threads' stacks, its data; less our
 * event buffers. The one number that means the same for every allocator, and comes without its
 * locks. 0: not to be had.
 */
static uint64_t memory_from_system(void)
{
    char text[128];
    unsigned long field[3] = {0}; /* size, resident, shared: in pages */
    int fd = gt_file_open("/proc/self/statm", 0);
    if (fd < 0)
        return 0;
    /* pread: should the program close our descriptor and open its own, it loses nothing. */
    long n = gt_file_read(fd, text, sizeof text - 1, 0);
    gt_file_close(fd);
    const char *p = text;
    for (int i = 0; i < 3 && p < text + n; i++, p++) {
        for (; p < text + n && *p >= '0' && *p <= '9'; p++)
            field[i] = field[i] * 10 + (unsigned long)(*p - '0');
    }
    uint64_t bytes = (field[1] - field[2]) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t ours = gt_buffers_stats().mapped + gt_ring_memory();
    return field[1] > field[2] && bytes > ours ? bytes - ours : 0;
}

void gt_heap_sample_goal(void)
{
    atomic_store(&heap.goal, memory_from_system());
}

/* Now and then sees to it that there is a new goal: in a program of one thread now, else soon. */
static uint64_t take_goal(void)
{
    uint64_t now = gt_clock_now();
    uint64_t due = atomic_load_explicit(&heap.goal_due, memory_order_relaxed);
    if (now >= due &&
        atomic_compare_exchange_strong(&heap.goal_due, &due,
                                       now + gt_clock_units(GOAL_EVERY_MS * MS_NS)) &&
        !gt_drain_sample())
        gt_heap_sample_goal();
    return atomic_exchange(&heap.goal, 0);
}

static void write_event(struct gt_thread *t, bool exact)
{
    if (gt_muted())
        return;
    uint64_t goal = take_goal();
    if (!gt_writer_pin(&t->w))
        return;
    /* The time first, then the bytes: of two threads' events the later never knows less. */
    uint64_t now = gt_clock_now();
    int64_t live = exact ? live_bytes() : atomic_load(&gt_heap.total);
    if (gt_ev_heap_alloc(&t->w, now, live > 0 ? (uint64_t)live : 0))
        atomic_store_explicit(&gt_heap.shown, live, memory_order_relaxed);
    if (goal)
        gt_ev_heap_goal(&t->w, goal);
    gt_writer_unpin(&t->w);
}

/* Whether the slot's thread may write now; if so, it has. */
static bool take_turn(struct gt_heap_slot *s)
{
    int64_t shown = atomic_load_explicit(&gt_heap.shown, memory_order_relaxed);
    int64_t change = atomic_load_explicit(&gt_heap.total, memory_order_relaxed) - shown;
    change = change < 0 ? -change : change;
    bool large = change >= GT_HEAP_FOLD && change >= shown / 64;
    uint64_t now = gt_clock_now(), ms = gt_clock_units(MS_NS);
    if (s->due > now + (large ? BURST_MS * ms : 0))
        return false;
    s->due = (s->due > now ? s->due : now) + ms;
    return true;
}

/* A hook ends: full buffers are written, unless the loader called it, which has locks. */
static void check_queue(const void *caller)
{
    uintptr_t pc = (uintptr_t)caller;
    if (pc < heap.loader_lo || pc >= heap.loader_hi)
        gt_process_check_queue();
}

void gt_heap_fold(struct gt_heap_slot *s, const void *caller)
{
    if (s == &own) {
        atomic_store_explicit(&s->delta, 0, memory_order_relaxed);
        return;
    }
    fold(s);
    if (!gt_recording() || gt_muted() || !take_turn(s))
        return;
    GT_KEEP_ERRNO;
    struct gt_thread *t = gt_thread_enter();
    if (t) {
        write_event(t, false);
        gt_thread_leave(t);
        check_queue(caller);
    }
}

void gt_heap_settle_slow(struct gt_thread *t)
{
    GT_KEEP_ERRNO;
    write_event(t, false);
}

void gt_heap_write_exact(struct gt_thread *t)
{
    if (heap.mode == COUNTING)
        write_event(t, true);
}

void gt_heap_thread_end(struct gt_thread *t, bool last)
{
    struct gt_heap_slot *s = gt_heap_self;
    if (s && s != &own) {
        gt_heap_self = NULL;
        fold(s);
        gt_freelist_push(&heap.free, &s->free);
    }
    gt_heap_late = 1;
    if (t && last)
        gt_heap_write_exact(t);
    else if (t)
        gt_heap_settle(t);
}

/* The clock begins anew. */
void gt_heap_after_fork(void)
{
    for (struct gt_heap_slot *s = atomic_load(&heap.all); s; s = s->next)
        s->due = 0;
    atomic_store(&heap.goal_due, 0);
    atomic_store(&heap.goal, 0);
}

/* Before the real functions are known -------------------------------------------------------- */

static void *early_realloc(void *p, size_t size)
{
    void *fresh = gt_nursery_alloc(size);
    if (p && fresh)
        memcpy(fresh, p, size < gt_nursery_size(p) ? size : gt_nursery_size(p));
    return fresh;
}

static void early_free(void *p)
{
    (void)p;
}

void gt_heap_resolve_begin(void)
{
    static _Atomic bool begun;
    if (atomic_exchange(&begun, true))
        return;
    gt_real.malloc = gt_nursery_alloc;
    gt_real.calloc = gt_nursery_calloc;
    gt_real.realloc = early_realloc;
    gt_real.free = early_free;
}

/* Whether to count --------------------------------------------------------------------------- */

static struct {
    bool free_sized, free_aligned_sized;
    bool reallocarray, posix_memalign, aligned_alloc, memalign, valloc, pvalloc, strdup, strndup;
} counted;

/*
 * Whether p's header says what malloc_usable_size does: chunk size and flags, since 1996. Before
 * another allocator's block there may be no memory.
 */
static bool has_header(void *p, size_t size)
{
    if (!GT_ARCH_HEAP_HEADERS || !gt_allocator_is_libc())
        return false;
    size_t header = gt_heap_header((uintptr_t)p);
    return !(header & GT_HEAP_HEADER_MMAPPED) &&
           (header & ~(size_t)GT_HEAP_HEADER_FLAGS) - sizeof header == size;
}

/* tcmalloc's allocates, once: a block that nobody counts, lest it be asked for that one's size. */
static size_t first_usable(void *p)
{
    struct gt_heap_slot *before = gt_heap_self;
    gt_heap_self = NULL;
    heap.mode = UNDECIDED;
    size_t size = gt_allocator_usable()(p);
    heap.mode = COUNTING;
    gt_heap_self = before;
    gt_heap_usable = gt_allocator_usable();
    gt_heap_headers = has_header(p, size);
    return size;
}

static bool counts(void *fn)
{
    return heap.mode == COUNTING && gt_allocator_has(fn);
}

void gt_heap_resolve_end(void)
{
    static _Atomic bool done;
    if (atomic_exchange(&done, true))
        return;
    gt_elf_loader_range(&heap.loader_lo, &heap.loader_hi);
    gt_heap_usable = first_usable;
    heap.mode = !gt_sanitizer_allocates() && gt_allocator_find() ? COUNTING : OFF;
    gt_heap_on = heap.mode == COUNTING;
    counted.free_sized = counts((void *)gt_real.free_sized);
    counted.free_aligned_sized = counts((void *)gt_real.free_aligned_sized);
    counted.reallocarray = counts((void *)gt_real.reallocarray);
    counted.posix_memalign = counts((void *)gt_real.posix_memalign);
    counted.aligned_alloc = counts((void *)gt_real.aligned_alloc);
    counted.memalign = counts((void *)gt_real.memalign);
    counted.valloc = counts((void *)gt_real.valloc);
    counted.pvalloc = counts((void *)gt_real.pvalloc);
    counted.strdup = !gt_allocator_is_libc() && counts((void *)gt_real.strdup);
    counted.strndup = !gt_allocator_is_libc() && counts((void *)gt_real.strndup);
    gt_operators_resolve();
}

void gt_heap_off(void)
{
    heap.mode = OFF;
    gt_heap_on = false;
    gt_heap_self = NULL;
    memset(&counted, 0, sizeof counted);
    atomic_store(&gt_heap.total, 0);
}

void gt_heap_take_stock(void)
{
    struct gt_mallinfo2 (*info)(void) =
        (struct gt_mallinfo2(*)(void))dlsym(RTLD_DEFAULT, "mallinfo2");
    if (heap.mode != COUNTING || !info)
        return;
    struct gt_mallinfo2 now = info();
    int64_t in_slots = live_bytes() - atomic_load(&gt_heap.total);
    atomic_store(&gt_heap.total, (int64_t)(now.uordblks + now.hblkhd) - in_slots);
    gt_heap_restart();
}

struct gt_heap_slot *gt_heap_own_begin(void)
{
    struct gt_heap_slot *before = gt_heap_self;
    if (heap.mode == COUNTING)
        gt_heap_self = &own;
    return before;
}

void gt_heap_own_end(struct gt_heap_slot **before)
{
    gt_heap_self = heap.mode == COUNTING ? *before : NULL;
}

#ifdef GT_DEBUG
bool gt_heap_may_be_used(void)
{
    struct gt_thread *t = gt_self;
    return !t || !t->inside || !gt_recording() || gt_heap_self == &own || gt_nursery_only ||
           gt_thread_is_interrupted(t);
}
#endif

/* A thread without a slot -------------------------------------------------------------------- */

/* Counts n; a thread's first count gives it a slot. */
static void count_slow(int64_t n)
{
    GT_KEEP_ERRNO;
    struct gt_heap_slot *s = gt_heap_late ? NULL : slot_get();
    if (s) {
        gt_heap_self = s;
        gt_heap_count(s, n);
    } else {
        atomic_fetch_add_explicit(&gt_heap.total, n, memory_order_relaxed);
        gt_heap_late += gt_heap_late != 0;
    }
}

static int64_t size_of(void *p)
{
    return p ? (int64_t)gt_heap_size(p) : 0;
}

__attribute__((cold, noinline)) void gt_heap_made_slow(void *p)
{
    if (heap.mode == COUNTING && !gt_in_nursery(p))
        count_slow(size_of(p));
}

__attribute__((cold, noinline)) void gt_heap_gone_slow(void *p)
{
    if (heap.mode == COUNTING && !gt_in_nursery(p))
        count_slow(-size_of(p));
}

void gt_heap_add(int64_t n)
{
    if (gt_heap_self)
        gt_heap_count(gt_heap_self, n);
    else
        count_slow(n);
}

/* The hooks ---------------------------------------------------------------------------------- */

GT_EXPORT void *malloc(size_t size)
{
    void *p;
    if (__builtin_expect(gt_nursery_only, 0) && (p = gt_nursery_alloc(size)))
        return p;
    if (!gt_heap_on)
        return gt_real.malloc(size);
    p = gt_real.malloc(size);
    gt_heap_made(p);
    return p;
}

GT_EXPORT void *calloc(size_t n, size_t size)
{
    void *p;
    if (__builtin_expect(gt_nursery_only, 0) && (p = gt_nursery_calloc(n, size)))
        return p;
    if (!gt_heap_on)
        return gt_real.calloc(n, size);
    p = gt_real.calloc(n, size);
    gt_heap_made(p);
    return p;
}

static inline void give_back(void *p)
{
    if (__builtin_expect(gt_in_nursery(p), 0))
        return;
    if (gt_heap_on)
        gt_heap_gone(p);
    gt_real.free(p);
}

GT_EXPORT void free(void *p)
{
    give_back(p);
}

void gt_heap_free_sized(void *p, size_t size)
{
    (void)size;
    give_back(p);
}

void gt_heap_free_aligned_sized(void *p, size_t alignment, size_t size)
{
    (void)alignment, (void)size;
    give_back(p);
}

/* glibc's call free, other allocators' do not. */
#define FREE_SIZED(name, parameters, arguments)         \
    GT_EXPORT void name parameters                      \
    {                                                   \
        if (__builtin_expect(gt_in_nursery(p), 0))      \
            return;                                     \
        int64_t had = counted.name ? size_of(p) : 0;    \
        struct gt_heap_mark before = gt_heap_mark();    \
        gt_real.name arguments;                         \
        if (had != 0 && !gt_heap_counted_since(before)) \
            gt_heap_add(-had);                          \
    }

FREE_SIZED(free_sized, (void *p, size_t size), (p, size))
FREE_SIZED(free_aligned_sized, (void *p, size_t alignment, size_t size), (p, alignment, size))

static void *move_from_nursery(void *old, size_t size)
{
    void *p = malloc(size);
    if (p)
        memcpy(p, old, size < gt_nursery_size(old) ? size : gt_nursery_size(old));
    return p;
}

/*
 * Counted after it is done, in one step: what the block has, less what it had. A result of NULL
 * means failure and an untouched block, but with a size of 0 it is how the block was freed.
 */
GT_EXPORT void *realloc(void *old, size_t size)
{
    if (__builtin_expect(gt_in_nursery(old), 0))
        return move_from_nursery(old, size);
    if (__builtin_expect(gt_nursery_only && !old, 0))
        return malloc(size);
    if (heap.mode != COUNTING)
        return gt_real.realloc(old, size);
    int64_t had = size_of(old);
    void *p = gt_real.realloc(old, size);
    if (p || size == 0)
        gt_heap_add(size_of(p) - had);
    return p;
}

/* glibc's calls realloc, other allocators' do not. */
GT_EXPORT void *reallocarray(void *old, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_expect(gt_in_nursery(old), 0) && !__builtin_mul_overflow(n, size, &bytes))
        return move_from_nursery(old, bytes);
    if (!counted.reallocarray)
        return gt_real.reallocarray(old, n, size);
    struct gt_heap_mark before = gt_heap_mark();
    int64_t had = size_of(old);
    void *p = gt_real.reallocarray(old, n, size);
    if ((p || n == 0 || size == 0) && !gt_heap_counted_since(before))
        gt_heap_add(size_of(p) - had);
    return p;
}

GT_EXPORT int posix_memalign(void **p, size_t alignment, size_t size)
{
    struct gt_heap_mark before = gt_heap_mark();
    int r = gt_real.posix_memalign(p, alignment, size);
    if (r == 0 && counted.posix_memalign && !gt_heap_counted_since(before))
        gt_heap_made(*p);
    return r;
}

#define MADE(result, name, parameters, arguments)           \
    GT_EXPORT result name parameters                        \
    {                                                       \
        struct gt_heap_mark before = gt_heap_mark();        \
        result p = gt_real.name arguments;                  \
        if (counted.name && !gt_heap_counted_since(before)) \
            gt_heap_made(p);                                \
        return p;                                           \
    }

MADE(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
MADE(void *, memalign, (size_t alignment, size_t size), (alignment, size))
MADE(void *, valloc, (size_t size), (size))
MADE(void *, pvalloc, (size_t size), (size))
/* libc's call malloc; mimalloc has its own, which do not. */
MADE(char *, strdup, (const char *s), (s))
MADE(char *, strndup, (const char *s, size_t n), (s, n))
