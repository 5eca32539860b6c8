/*
 * The malloc family, and the events about it. See heap.h.
 *
 * The hooks run in every context there is: before the constructor, inside the loader, inside our
 * own guard, in unknown threads, after a thread's last destructor. Only writing an event needs the
 * guard; counting needs nothing.
 */
#include "heap.h"

#include "allocator.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/file.h"
#include "encoder/drain/drain.h"
#include "encoder/drain/ring.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "preload/bind/nursery.h"
#include "preload/bind/real.h"
#include "preload/bind/sanitizer.h"
#include "preload/control/process_relief.h"
#include "symbolize/elf/elf_names.h"

#define MS_NS 1000000
#define BURST_MS 1000    /* large changes: as many events at once as the rate allows in this time */
#define GOAL_EVERY_MS 10 /* HeapGoal, for the whole process */

bool gt_heap_on = true;
size_t (*gt_heap_usable)(void *p);
bool gt_heap_headers;

static struct {
    _Atomic uint64_t goal_due;
    _Atomic uint64_t goal; /* sampled, not written yet; 0: none */
    uintptr_t loader_lo, loader_hi;
} heap;

/* Events ------------------------------------------------------------------------------------- */

/*
 * Private memory that the process really has, less our event buffers: the allocator's, the threads'
 * stacks, its data. It is the one number that means the same for every allocator, and needs none of
 * an allocator's locks. 0: not known.
 */
static uint64_t memory_from_system(void)
{
    char text[128];
    unsigned long field[3] = {0}; /* size, resident, shared: in pages */
    int fd = gt_file_open("/proc/self/statm", 0);
    if (fd < 0)
        return 0;
    /*
     * pread: if the program closes our descriptor and opens its own, its file position is not
     * moved.
     */
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

/*
 * Takes the sampled goal; 0: none. From time to time starts a new sample: at once if the program
 * has one thread, else soon.
 */
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
    /* The time is read before the bytes: of two threads' events, the later one never knows less. */
    uint64_t now = gt_clock_now();
    int64_t live = exact ? gt_heap_live() : atomic_load(&gt_heap.total);
    if (gt_ev_heap_alloc(&t->w, now, live > 0 ? (uint64_t)live : 0))
        atomic_store_explicit(&gt_heap.shown, live, memory_order_relaxed);
    if (goal)
        gt_ev_heap_goal(&t->w, goal);
    gt_writer_unpin(&t->w);
}

/* Whether the slot's thread may write now; if so, its turn is used up. */
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

/*
 * At the end of a hook: writes full buffers, unless the loader called the hook, with its locks
 * held.
 */
static void check_queue(const void *caller)
{
    uintptr_t pc = (uintptr_t)caller;
    if (pc < heap.loader_lo || pc >= heap.loader_hi)
        gt_process_check_queue();
}

void gt_heap_fold(struct gt_heap_slot *s, const void *caller)
{
    gt_heap_slot_fold(s);
    if (gt_heap_slot_is_own(s) || !gt_recording() || gt_muted() || !take_turn(s))
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
    if (gt_heap_counting)
        write_event(t, true);
}

void gt_heap_thread_end(struct gt_thread *t, bool last)
{
    struct gt_heap_slot *s = gt_heap_self;
    if (s && !gt_heap_slot_is_own(s)) {
        gt_heap_self = NULL;
        gt_heap_slot_give(s);
    }
    gt_heap_late = 1;
    if (t && last)
        gt_heap_write_exact(t);
    else if (t)
        gt_heap_settle(t);
}

/* In a forked child the clock begins anew. */
void gt_heap_after_fork(void)
{
    atomic_store(&heap.goal_due, 0);
    atomic_store(&heap.goal, 0);
}

/* Whether to count --------------------------------------------------------------------------- */

static struct {
    bool free_sized, free_aligned_sized;
    bool reallocarray, posix_memalign, aligned_alloc, memalign, valloc, pvalloc, strdup, strndup;
} counted;

/*
 * Whether the header before p says what malloc_usable_size says: chunk size and flags. Before
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

/*
 * The first call of the allocator's malloc_usable_size. tcmalloc's allocates, once. That block is
 * not counted, as counting it would ask for its size again.
 */
static size_t first_usable(void *p)
{
    struct gt_heap_slot *before = gt_heap_self;
    gt_heap_self = NULL;
    gt_heap_counting = false;
    size_t size = gt_allocator_usable()(p);
    gt_heap_counting = true;
    gt_heap_self = before;
    gt_heap_usable = gt_allocator_usable();
    gt_heap_headers = has_header(p, size);
    return size;
}

static bool counts(void *fn)
{
    return gt_heap_counting && gt_allocator_has(fn);
}

void gt_heap_resolved(void)
{
    gt_elf_loader_range(&heap.loader_lo, &heap.loader_hi);
    gt_heap_usable = first_usable;
    gt_heap_counting = !gt_sanitizer_allocates() && gt_allocator_find();
    gt_heap_on = gt_heap_counting;
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
}

void gt_heap_off(void)
{
    gt_heap_counting = false;
    gt_heap_on = false;
    gt_heap_self = NULL;
    memset(&counted, 0, sizeof counted);
    atomic_store(&gt_heap.total, 0);
}

void gt_heap_take_stock(void)
{
    struct gt_mallinfo2 (*info)(void) =
        (struct gt_mallinfo2(*)(void))dlsym(RTLD_DEFAULT, "mallinfo2");
    if (!gt_heap_counting || !info)
        return;
    struct gt_mallinfo2 now = info();
    int64_t in_slots = gt_heap_live() - atomic_load(&gt_heap.total);
    atomic_store(&gt_heap.total, (int64_t)(now.uordblks + now.hblkhd) - in_slots);
    gt_heap_restart();
}

#ifdef GT_DEBUG
bool gt_heap_may_be_used(void)
{
    struct gt_thread *t = gt_self;
    return !t || !t->inside || !gt_recording() || gt_heap_slot_is_own(gt_heap_self) ||
           gt_nursery_only || gt_thread_is_interrupted(t);
}
#endif

/* A thread without a slot -------------------------------------------------------------------- */

/* Counts n; a thread's first count gives it a slot. */
static void count_slow(int64_t n)
{
    GT_KEEP_ERRNO;
    struct gt_heap_slot *s = gt_heap_late ? NULL : gt_heap_slot_get();
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
    if (gt_heap_counting && !gt_in_nursery(p))
        count_slow(size_of(p));
}

__attribute__((cold, noinline)) void gt_heap_gone_slow(void *p)
{
    if (gt_heap_counting && !gt_in_nursery(p))
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
    if (gt_heap_on && p) /* libc frees NULL a dozen times when a thread ends */
        gt_heap_gone(p);
    gt_real.free(p);
}

GT_EXPORT void free(void *p)
{
    give_back(p);
}

void gt_heap_free(void *p)
{
    give_back(p);
}

/* glibc's functions call free, other allocators' do not. */
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
 * realloc counts after it is done, in one step: the block's new size less the old one. A result of
 * NULL means failure and an untouched block; but with a size of 0, that the block was freed.
 */
GT_EXPORT void *realloc(void *old, size_t size)
{
    if (__builtin_expect(gt_in_nursery(old), 0))
        return move_from_nursery(old, size);
    if (__builtin_expect(gt_nursery_only && !old, 0))
        return malloc(size);
    if (!gt_heap_counting)
        return gt_real.realloc(old, size);
    int64_t had = size_of(old);
    void *p = gt_real.realloc(old, size);
    if (p || size == 0)
        gt_heap_add(size_of(p) - had);
    return p;
}

/* glibc's function calls realloc, other allocators' do not. */
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
/* libc's functions call malloc; mimalloc's own do not. */
MADE(char *, strdup, (const char *s), (s))
MADE(char *, strndup, (const char *s, size_t n), (s, n))
