/* See buffers.h. */
#include "buffers.h"

#include "encoder/base/arena.h"
#include "encoder/base/box.h"
#include "encoder/base/clock.h"
#include "encoder/base/futex.h"
#include "encoder/base/push.h"
#include "encoder/base/urgent.h"

/*
 * Buffers set aside for callers that cannot do without. When the system has no memory left, a
 * generation must still be closed. And an urgent thread that mapped memory, or was the first to
 * touch some, would wait in the kernel while another thread maps. Untouched buffers cost a page
 * each. At the start, which programs that run for a millisecond have to wait for, they cost only a
 * piece of address space.
 */
#define RESERVE 64u
#define PAGE 4096u
/* Buffers in the black box cost more: some are kept free only once there are urgent threads. */
#define AHEAD (16 * GT_BUF_BYTES)
/* Bytes mapped at once: a thousand new threads would queue for the lock of the mappings. */
#define MAPPED_TOGETHER (16 * GT_BUF_BYTES + PAGE)
/*
 * A thread that ends hands over a buffer of a few events, and wakes the drain side after so many
 * bytes of them. A wake-up costs the thread 10 us in a virtual machine. With four times as many
 * bytes, buffers would be cold when they are used again.
 */
#define KICK_BYTES (128 * PAGE)

/* How long threads wait for the drain side before they go on without being recorded. */
#define PATIENCE_NS 10000000000

static struct {
    struct gt_freelist free, reserve, small;
    struct gt_arena fresh, fresh_small;
    _Atomic uint32_t reserved;
    _Atomic(char *) uncut; /* RESERVE buffers; `cut` of them are cut off */
    _Atomic uint32_t cut;
    bool begun;                        /* see gt_buffers_reserve */
    _Atomic bool ahead;                /* some buffers are to be free at any time */
    _Atomic(struct gt_buf *) queue[2]; /* by parity of the generation; newest first */
    size_t limit;
    _Atomic size_t out;
    struct {
        _Atomic size_t mapped;
        _Atomic uint64_t waits, wait_ns;
    } stats;
    _Atomic uint32_t returned;    /* futex: a buffer came back */
    _Atomic uint64_t returned_ns; /* when */
    _Atomic bool stalled;         /* PATIENCE_NS have passed since, and threads want a buffer */
    _Atomic uint32_t waiters;
    _Atomic uint64_t serial;
} pool = {.limit = 256u << 20,
          .fresh = {.chunk_bytes = MAPPED_TOGETHER, .align = PAGE},
          .fresh_small = {.chunk_bytes = GT_BUF_BYTES}};

_Atomic size_t gt_buffers_queued;

/* Futex: work for the drain side. */
static _Atomic uint32_t own_pushed;
static _Atomic(_Atomic uint32_t *) pushed = &own_pushed;

/* The drain side may wait for a thread that stands; then the others have a few buffers more. */
static size_t limit_now(void)
{
    return pool.limit + (gt_any_stands() ? RESERVE * GT_BUF_BYTES : 0);
}

/* Waiting helps only if enough buffers will come back: queued ones, not those of the threads. */
static bool take_share(size_t bytes, bool force)
{
    size_t before = atomic_fetch_add_explicit(&pool.out, bytes, memory_order_relaxed);
    size_t queued = atomic_load_explicit(&gt_buffers_queued, memory_order_relaxed);
    if (force || before + bytes <= limit_now() || queued < pool.limit / 4)
        return true;
    atomic_fetch_sub_explicit(&pool.out, bytes, memory_order_relaxed);
    return false;
}

static struct gt_buf *counted(void *buf, size_t bytes)
{
    if (buf)
        atomic_fetch_add_explicit(&pool.stats.mapped, bytes, memory_order_relaxed);
    return buf;
}

static struct gt_buf *map_buffer(void)
{
    return counted(gt_box_is_open() ? gt_box_alloc_buffer(GT_BUF_BYTES)
                                    : gt_arena_alloc(&pool.fresh, GT_BUF_BYTES),
                   GT_BUF_BYTES);
}

static struct gt_buf *cut_off(void)
{
    char *all = atomic_load_explicit(&pool.uncut, memory_order_acquire);
    if (!all || atomic_load_explicit(&pool.cut, memory_order_relaxed) >= RESERVE)
        return NULL;
    size_t i = atomic_fetch_add_explicit(&pool.cut, 1, memory_order_relaxed);
    return i < RESERVE ? (struct gt_buf *)(all + i * GT_BUF_BYTES) : NULL;
}

static struct gt_buf *take_reserve(void)
{
    struct gt_buf *buf = gt_freelist_pop(&pool.reserve);
    if (!buf)
        buf = cut_off();
    if (buf)
        atomic_fetch_sub_explicit(&pool.reserved, 1, memory_order_relaxed);
    return counted(buf, GT_BUF_BYTES);
}

static bool is_whole(struct gt_buf *buf)
{
    if (!buf->whole)
        buf->whole = gt_box_fill(buf, GT_BUF_BYTES);
    return buf->whole;
}

bool gt_buffers_have_room(struct gt_buf *buf, const uint8_t *at, ptrdiff_t bytes)
{
    const uint8_t *begin = (const uint8_t *)buf;
    if (begin + (ptrdiff_t)gt_buffers_bytes(buf) - at < bytes)
        return false;
    return at + bytes <= begin + PAGE || is_whole(buf);
}

/* Puts into the reserve first. Threads that come together may overfill the reserve a little. */
static void put(struct gt_buf *buf)
{
    __atomic_store_n(&buf->gen, 0, __ATOMIC_RELEASE);
    if (buf->small) {
        gt_freelist_push(&pool.small, &buf->free);
        return;
    }
    bool reserve = atomic_load_explicit(&pool.reserved, memory_order_relaxed) < RESERVE;
    if (reserve) {
        atomic_fetch_add_explicit(&pool.reserved, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&pool.stats.mapped, GT_BUF_BYTES, memory_order_relaxed);
    }
    gt_freelist_push(reserve ? &pool.reserve : &pool.free, &buf->free);
}

/* A buffer that an urgent thread need not map. With a black box, some are free from now on. */
static struct gt_buf *take_urgently(void)
{
    if (!gt_urgent())
        return NULL;
    if (!gt_box_is_open())
        return take_reserve();
    atomic_store_explicit(&pool.ahead, true, memory_order_relaxed);
    return NULL;
}

static void map_ahead(void)
{
    struct gt_buf *buf;
    while (atomic_load_explicit(&pool.ahead, memory_order_relaxed) &&
           pool.stats.mapped < pool.out + AHEAD && (buf = map_buffer())) {
        is_whole(buf); /* an urgent thread takes no disk space */
        gt_freelist_push(&pool.free, &buf->free);
    }
}

void gt_buffers_reserve(void)
{
    struct gt_buf *buf;
    char *all;
    map_ahead();
    bool first = !pool.begun;
    pool.begun = true;
    if (!atomic_load_explicit(&pool.uncut, memory_order_relaxed)) {
        if ((all = gt_pages_alloc(RESERVE * GT_BUF_BYTES))) {
            atomic_fetch_add_explicit(&pool.reserved, RESERVE, memory_order_relaxed);
            atomic_store_explicit(&pool.uncut, all, memory_order_release);
        }
        return;
    }
    if (first)
        return; /* a forked child has what its parent had */
    while ((buf = cut_off()))
        gt_freelist_push(&pool.reserve, &buf->free);
    while (atomic_load_explicit(&pool.reserved, memory_order_relaxed) < RESERVE &&
           (buf = gt_pages_alloc(GT_BUF_BYTES))) {
        atomic_fetch_add_explicit(&pool.reserved, 1, memory_order_relaxed);
        gt_freelist_push(&pool.reserve,
                         &buf->free); /* never into pool.free: it is not in the box */
    }
}

/* NULL: there is no memory. */
static struct gt_buf *take_large(bool force)
{
    struct gt_buf *buf = gt_freelist_pop(&pool.free);
    if (!buf)
        buf = take_urgently();
    if (!buf)
        buf = map_buffer();
    return buf || !force ? buf : take_reserve();
}

/* NULL: there is no memory, or the caller must not map some. */
static struct gt_buf *take_small(void)
{
    struct gt_buf *buf = gt_freelist_pop(&pool.small);
    if (buf || gt_urgent())
        return buf;
    buf = counted(gt_arena_alloc(&pool.fresh_small, GT_BUF_SMALL), GT_BUF_SMALL);
    if (buf)
        buf->small = true;
    return buf;
}

/* Makes a buffer ready whose bytes have been counted as out; NULL: there is none. */
static struct gt_buf *start(struct gt_buf *buf, size_t bytes)
{
    if (buf) {
        buf->next = NULL;
        buf->pos = NULL;
        buf->used = buf->cuts = 0;
    } else {
        atomic_fetch_sub_explicit(&pool.out, bytes, memory_order_relaxed);
    }
    return buf;
}

static struct gt_buf *get(size_t bytes, bool force)
{
    int saved = errno;
    if (!take_share(bytes, force))
        return NULL;
    struct gt_buf *buf = bytes == GT_BUF_SMALL ? take_small() : take_large(force);
    errno = saved;
    return start(buf, bytes);
}

struct gt_buf *gt_buffers_get_begun(bool force)
{
    return get(GT_BUF_BYTES, force);
}

struct gt_buf *gt_buffers_get_first(bool force)
{
    struct gt_buf *buf = gt_box_is_open() ? NULL : get(GT_BUF_SMALL, force);
    return buf ? buf : get(GT_BUF_BYTES, force);
}

struct gt_buf *gt_buffers_get(bool force)
{
    struct gt_buf *buf = gt_buffers_get_begun(force);
    if (!buf || is_whole(buf))
        return buf;
    put(buf); /* the disk is full */
    return start(counted(gt_box_alloc_outside(GT_BUF_BYTES), GT_BUF_BYTES), GT_BUF_BYTES);
}

void gt_buffers_claim(struct gt_buf *buf, uint32_t gen, uint32_t m, uint64_t ts)
{
    buf->serial = atomic_fetch_add_explicit(&pool.serial, 1, memory_order_relaxed);
    buf->m = m;
    buf->ts = ts;
    /* release: a reader of the black box that finds `gen` finds the rest of the buffer, too. */
    __atomic_store_n(&buf->gen, gen, __ATOMIC_RELEASE);
}

/* Whether the threads' patience has ended, both since `since` and since a buffer came back. */
static bool in_vain(uint64_t since)
{
    uint64_t now = gt_clock_monotonic_raw(), last = atomic_load(&pool.returned_ns);
    uint64_t patience = gt_any_stands() ? GT_STANDING_PATIENCE_NS : PATIENCE_NS;
    return now - since > patience && (last > now || now - last > patience);
}

bool gt_buffers_wait(uint64_t *since)
{
    int saved = errno;
    uint32_t seen = atomic_load_explicit(&pool.returned, memory_order_acquire);
    uint64_t start = gt_clock_monotonic_raw();
    if (!*since)
        *since = start;
    if (atomic_load(&pool.stalled) || in_vain(*since)) {
        atomic_store(&pool.stalled, true);
        return false;
    }
    atomic_fetch_add(&pool.waiters, 1);
    gt_buffers_kick();
    gt_futex_wait(&pool.returned, seen, 10000000);
    atomic_fetch_sub(&pool.waiters, 1);
    atomic_fetch_add_explicit(&pool.stats.waits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool.stats.wait_ns, gt_clock_monotonic_raw() - start,
                              memory_order_relaxed);
    errno = saved;
    return true;
}

void gt_buffers_put(struct gt_buf *buf)
{
    size_t bytes = gt_buffers_bytes(buf);
    put(buf);
    atomic_fetch_sub_explicit(&pool.out, bytes, memory_order_relaxed);
    atomic_store_explicit(&pool.returned_ns, gt_clock_monotonic_raw(), memory_order_relaxed);
    atomic_store_explicit(&pool.stalled, false, memory_order_relaxed);
    atomic_fetch_add(&pool.returned, 1); /* then the load: gt_buffers_wait does the reverse */
    if (atomic_load(&pool.waiters))
        gt_futex_wake(&pool.returned, 1); /* one: all would compete; others look in 10 ms */
}

void gt_buffers_put_all(struct gt_buf *buf)
{
    while (buf) {
        struct gt_buf *next = buf->next;
        gt_buffers_put(buf);
        buf = next;
    }
}

bool gt_buffers_crowded(void)
{
    size_t queued = atomic_load_explicit(&gt_buffers_queued, memory_order_relaxed);
    return queued > pool.limit / 8;
}

/* Whole pages, unless it is small: thousands of threads hand over a few events each. */
static size_t taken_by(const struct gt_buf *buf)
{
    if (buf->small)
        return GT_BUF_SMALL;
    return (offsetof(struct gt_buf, data) + buf->used + PAGE - 1) / PAGE * PAGE;
}

void gt_buffers_push(struct gt_buf *buf)
{
    if (!buf->used) {
        gt_buffers_put(buf);
        return;
    }
    int saved = errno;
    _Atomic(struct gt_buf *) *queue = &pool.queue[buf->gen & 1];
    bool worth = buf->used > GT_BUF_WORTH; /* read before the buffer is queued */
    size_t bytes = taken_by(buf);
    size_t before = atomic_fetch_add_explicit(&gt_buffers_queued, bytes, memory_order_relaxed);
    /* release: pairs with gt_buffers_take */
    GT_PUSH(queue, buf, &buf->next);
    if (worth || before / KICK_BYTES != (before + bytes) / KICK_BYTES)
        gt_buffers_kick();
    errno = saved;
}

struct gt_buf *gt_buffers_take(uint32_t gen)
{
    struct gt_buf *newest =
        atomic_exchange_explicit(&pool.queue[gen & 1], NULL, memory_order_acquire);
    struct gt_buf *oldest = NULL;
    while (newest) {
        struct gt_buf *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        atomic_fetch_sub_explicit(&gt_buffers_queued, taken_by(newest), memory_order_relaxed);
        newest = next;
    }
    return oldest;
}

void gt_buffers_sleep(int64_t timeout_ns)
{
    /* Waits for a change from 0; gt_buffers_kick's store and wake pair with this exchange. */
    _Atomic uint32_t *word = atomic_load(&pushed);
    struct timespec ts = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    if (atomic_exchange(word, 0) == 0)
        gt_syscall(SYS_futex, word, FUTEX_WAIT, 0, timeout_ns < 0 ? NULL : &ts);
    atomic_store(word, 0);
}

void gt_buffers_kick(void)
{
    _Atomic uint32_t *word = atomic_load(&pushed);
    if (atomic_exchange(word, 1) == 0)
        gt_syscall(SYS_futex, word, FUTEX_WAKE, 1);
}

void gt_buffers_sleep_on(_Atomic uint32_t *word)
{
    atomic_store(&pushed, word ? word : &own_pushed);
}

void gt_buffers_set_limit(size_t bytes)
{
    pool.limit = bytes;
}

size_t gt_buffers_limit(void)
{
    return pool.limit;
}

struct gt_buffers_stats gt_buffers_stats(void)
{
    return (struct gt_buffers_stats){
        .mapped = pool.stats.mapped,
        .waits = pool.stats.waits,
        .wait_ns = pool.stats.wait_ns,
    };
}

/* The child has not the buffers in its parent's black box: the lists of buffers are empty. */
void gt_buffers_forget(void)
{
    atomic_store(&pool.free.top, 0);
    atomic_store(&pool.reserve.top, 0);
    pool.reserved = 0;
    pool.stats.mapped = 0;
    pool.queue[0] = pool.queue[1] = NULL;
}

void gt_buffers_after_fork(void)
{
    own_pushed = pool.waiters = pool.returned = 0;
    pushed = &own_pushed;
    pool.stalled = pool.begun = false;
    pool.stats.waits = pool.stats.wait_ns = 0;
    for (uint32_t gen = 0; gen < 2; gen++)
        gt_buffers_put_all(gt_buffers_take(gen));
    gt_buffers_queued = 0;
    pool.out = 0; /* buffers that other threads had are lost */
}
