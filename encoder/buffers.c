/* See buffers.h. */
#include "buffers.h"

#include "arena.h"
#include "clock.h"
#include "futex.h"

/*
 * Kept for those that cannot do without: when the system has no memory left, a generation must
 * still be closed. Untouched, they cost nothing.
 */
#define RESERVE 64u
/* A thread that ends hands over a buffer of a few events: so many of them are worth a wake-up. */
#define KICK 16

static struct {
    struct gt_lock lock;
    struct gt_buf *free;
    struct gt_buf *reserve;
    uint32_t reserved;
    struct {
        struct gt_buf *first, *last;
    } queue[2]; /* by parity of the generation */
    size_t limit, out;
    struct gt_buffers_stats stats;
    _Atomic uint32_t returned; /* futex: a buffer came back */
    _Atomic uint32_t waiters;
} pool = {.limit = 256u << 20};

_Atomic uint32_t gt_buffers_queued;

/* Futex: work for the drain side. */
static _Atomic uint32_t own_pushed;
static _Atomic(_Atomic uint32_t *) pushed = &own_pushed;

static struct gt_buf *pop(struct gt_buf **list)
{
    struct gt_buf *buf = *list;
    if (buf)
        *list = buf->next;
    return buf;
}

static struct gt_buf *get_locked(bool force)
{
    if (!force && pool.out + GT_BUF_BYTES > pool.limit)
        return NULL;
    struct gt_buf *buf = pop(&pool.free);
    if (!buf && (buf = gt_pages_alloc(GT_BUF_BYTES)))
        pool.stats.mapped += GT_BUF_BYTES;
    if (!buf && force && (buf = pop(&pool.reserve)))
        pool.reserved--;
    if (buf)
        pool.out += GT_BUF_BYTES;
    return buf;
}

static void put_locked(struct gt_buf *buf)
{
    struct gt_buf **list = pool.reserved < RESERVE ? &pool.reserve : &pool.free;
    pool.reserved += list == &pool.reserve;
    buf->next = *list;
    *list = buf;
}

void gt_buffers_reserve(void)
{
    struct gt_buf *buf;
    gt_lock(&pool.lock);
    while (pool.reserved < RESERVE && (buf = gt_pages_alloc(GT_BUF_BYTES)))
        put_locked(buf);
    gt_unlock(&pool.lock);
}

struct gt_buf *gt_buffers_get(bool force)
{
    int saved = errno;
    gt_lock(&pool.lock);
    struct gt_buf *buf = get_locked(force);
    gt_unlock(&pool.lock);
    errno = saved;
    if (buf) {
        buf->next = NULL;
        buf->used = 0;
    }
    return buf;
}

void gt_buffers_wait(void)
{
    int saved = errno;
    uint32_t seen = atomic_load_explicit(&pool.returned, memory_order_acquire);
    uint64_t start = gt_clock_monotonic_raw();
    atomic_fetch_add(&pool.waiters, 1);
    gt_buffers_kick();
    gt_futex_wait(&pool.returned, seen, 10000000);
    atomic_fetch_sub(&pool.waiters, 1);
    gt_lock(&pool.lock);
    pool.stats.waits++;
    pool.stats.wait_ns += gt_clock_monotonic_raw() - start;
    gt_unlock(&pool.lock);
    errno = saved;
}

void gt_buffers_put(struct gt_buf *buf)
{
    gt_lock(&pool.lock);
    put_locked(buf);
    pool.out -= GT_BUF_BYTES;
    gt_unlock(&pool.lock);
    atomic_fetch_add_explicit(&pool.returned, 1, memory_order_release);
    if (atomic_load(&pool.waiters))
        gt_futex_wake(&pool.returned, INT_MAX);
}

bool gt_buffers_crowded(void)
{
    size_t queued = atomic_load_explicit(&gt_buffers_queued, memory_order_relaxed);
    return queued * GT_BUF_BYTES > pool.limit / 8;
}

void gt_buffers_push(struct gt_buf *buf)
{
    int saved = errno;
    buf->next = NULL;
    gt_lock(&pool.lock);
    struct gt_buf **first = &pool.queue[buf->gen & 1].first;
    struct gt_buf **last = &pool.queue[buf->gen & 1].last;
    if (*first)
        (*last)->next = buf;
    else
        *first = buf;
    *last = buf;
    uint32_t before = atomic_fetch_add_explicit(&gt_buffers_queued, 1, memory_order_relaxed);
    bool worth = before + 1 >= KICK || buf->used > GT_BUF_ROOM / 2;
    gt_unlock(&pool.lock);
    if (worth)
        gt_buffers_kick();
    errno = saved;
}

struct gt_buf *gt_buffers_take(uint32_t gen)
{
    gt_lock(&pool.lock);
    struct gt_buf *first = pool.queue[gen & 1].first;
    pool.queue[gen & 1].first = NULL;
    for (struct gt_buf *buf = first; buf; buf = buf->next)
        atomic_fetch_sub_explicit(&gt_buffers_queued, 1, memory_order_relaxed);
    gt_unlock(&pool.lock);
    return first;
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

struct gt_buffers_stats gt_buffers_stats(void)
{
    gt_lock(&pool.lock);
    struct gt_buffers_stats stats = pool.stats;
    gt_unlock(&pool.lock);
    return stats;
}

void gt_buffers_after_fork(void)
{
    pool.lock = (struct gt_lock){0};
    own_pushed = pool.waiters = pool.returned = 0;
    pushed = &own_pushed;
    gt_buffers_queued = 0;
    pool.stats.waits = pool.stats.wait_ns = 0;
    for (int i = 0; i < 2; i++) {
        while (pool.queue[i].first) {
            struct gt_buf *buf = pool.queue[i].first;
            pool.queue[i].first = buf->next;
            gt_buffers_put(buf);
        }
    }
}
