/* See registry.h. */
#include "registry.h"

#include "encoder/base/clock.h"
#include "encoder/base/fetch.h"
#include "encoder/base/push.h"
#include "encoder/base/sparse.h"
#include "encoder/thread/events.h"

#include <string.h>

#define SHARDS 1024u

_Atomic uint64_t gt_registry_count[GT_REGISTRY_SLOTS] GT_SPARSE;

/* Waiters, those to be woken first in front. */
struct line {
    struct gt_waiter *first, *last;
};

/*
 * A shard has two lines. A thread that looks for a sleeping waiter so does not pass thousands that
 * were woken and have not run yet: waking all waiters at an address takes linear time.
 */
static struct shard {
    struct gt_lock lock;
    _Atomic(struct gt_waiter *) arrived; /* in no line yet; linked by `next`, newest first */
    uint64_t turns;                      /* given to waiters so far, see struct gt_waiter */
    struct line asleep;                  /* not woken */
    struct line woken;                   /* in the order of their wake-ups */
    const void *counted;                 /* the address whose waiters `sleepers` counts */
    uint32_t sleepers;
} shards[SHARDS] GT_SPARSE;

static _Atomic bool used; /* a thread has waited */

/* A slot is a part of a shard, and is changed under the shard's lock, but for its keeper. */
static struct slot {
    _Atomic uint32_t keeper; /* see gt_registry_keep */
    _Atomic uint64_t again;  /* when a waiter that was woken may sleep again, or earlier */
} slots[GT_REGISTRY_SLOTS] GT_SPARSE;

static struct shard *shard_of(const void *addr)
{
    return &shards[gt_registry_slot(addr) % SHARDS];
}

static struct line *line_of(struct shard *s, const struct gt_waiter *w)
{
    return w->woken ? &s->woken : &s->asleep;
}

static void append_locked(struct shard *s, struct gt_waiter *w)
{
    struct line *line = line_of(s, w);
    w->turn = ++s->turns;
    w->in_line = true;
    w->next = NULL;
    w->prev = line->last;
    if (line->last)
        line->last->next = w;
    else
        line->first = w;
    line->last = w;
}

/* Puts w before all others of both lines. */
static void prepend_locked(struct shard *s, struct gt_waiter *w)
{
    struct line *line = line_of(s, w);
    w->turn = 0;
    w->prev = NULL;
    w->next = line->first;
    if (line->first)
        line->first->prev = w;
    else
        line->last = w;
    line->first = w;
}

static void unlink_locked(struct shard *s, struct gt_waiter *w)
{
    struct line *line = line_of(s, w);
    if (w->prev)
        w->prev->next = w->next;
    else
        line->first = w->next;
    if (w->next)
        w->next->prev = w->prev;
    else
        line->last = w->prev;
}

/*
 * Puts the waiters that have arrived since the last look into the line of those asleep, in the
 * order in which they came. Called first by each thread that takes the shard's lock.
 */
static void admit_locked(struct shard *s)
{
    if (!atomic_load_explicit(&s->arrived, memory_order_relaxed))
        return;
    /* acquire: pairs with gt_registry_add */
    struct gt_waiter *newest = atomic_exchange_explicit(&s->arrived, NULL, memory_order_acquire);
    struct gt_waiter *first = NULL, *next;
    for (struct gt_waiter *w = newest; w; w = next) {
        next = w->next;
        w->next = first;
        first = w;
    }
    for (struct gt_waiter *w = first; w; w = next) {
        next = w->next;
        append_locked(s, w);
        s->sleepers += s->counted == w->addr;
    }
}

static bool lock_shard(struct shard *s, int64_t patience_ns)
{
    bool locked = gt_lock_within(&s->lock, GT_RANK_SHARD, patience_ns);
    if (locked)
        admit_locked(s);
    return locked;
}

/* For hooks. A failure is counted (gt_lost). */
static bool lock_within(struct shard *s)
{
    bool locked = lock_shard(s, GT_HOOK_PATIENCE_NS);
    if (!locked)
        gt_lost();
    return locked;
}

static struct slot *slot_of(const void *addr)
{
    return &slots[gt_registry_slot(addr)];
}

static inline _Atomic uint64_t *word_of(const void *addr)
{
    return &gt_registry_count[gt_registry_slot(addr)];
}

/* What a waiter adds to its slot's word: one that was woken, and one that was not. */
#define WOKEN UINT64_C(1)
#define SLEEPER (GT_REGISTRY_ASLEEP + 1)

static inline void add_to(const void *addr, uint64_t by)
{
    atomic_fetch_add_explicit(word_of(addr), by, memory_order_relaxed);
}

/* `by` more waiters at addr were not woken: keeps gt_registry_asleep's count. s is locked. */
static inline void count_sleepers(struct shard *s, const void *addr, uint32_t by)
{
    if (s->counted == addr)
        s->sleepers += by;
}

/* w leaves its slot. The shard is locked. */
static void discount(struct shard *s, const struct gt_waiter *w)
{
    add_to(w->addr, w->woken ? -WOKEN : -SLEEPER);
    if (!w->woken)
        count_sleepers(s, w->addr, -1u);
}

static void begin(struct gt_waiter *w, const void *addr, uint64_t now)
{
    __atomic_store_n(&w->addr, addr, __ATOMIC_RELAXED); /* see gt_registry_has */
    w->since = now;
    w->woken = 0;
    w->outrun = w->in_line = false;
    if (!atomic_load_explicit(&used, memory_order_relaxed))
        atomic_store_explicit(&used, true, memory_order_relaxed);
}

void gt_registry_keep(const void *mutex, uint32_t tid)
{
    _Atomic uint64_t *word = word_of(mutex);
    atomic_store_explicit(&slot_of(mutex)->keeper, tid, memory_order_relaxed);
    /* release: pairs with gt_registry_keeps */
    if (!(atomic_load_explicit(word, memory_order_relaxed) & GT_REGISTRY_KEPT))
        atomic_fetch_or_explicit(word, GT_REGISTRY_KEPT, memory_order_release);
}

bool gt_registry_keeps(const void *mutex, uint32_t tid)
{
    /* acquire: pairs with gt_registry_keep */
    uint64_t word = atomic_load_explicit(word_of(mutex), memory_order_acquire);
    return word & GT_REGISTRY_KEPT &&
           atomic_load_explicit(&slot_of(mutex)->keeper, memory_order_relaxed) == tid;
}

bool gt_registry_ends_keep(const void *mutex)
{
    _Atomic uint64_t *word = word_of(mutex);
    if (!(atomic_load_explicit(word, memory_order_relaxed) & GT_REGISTRY_KEPT))
        return false;
    atomic_fetch_and_explicit(word, ~GT_REGISTRY_KEPT, memory_order_relaxed);
    return true;
}

void gt_registry_add_locked(struct gt_waiter *w, const void *addr, uint64_t now)
{
    struct shard *s = shard_of(addr);
    begin(w, addr, now);
    append_locked(s, w);
    add_to(addr, SLEEPER);
    count_sleepers(s, addr, 1);
}

/*
 * How long a wake-up may take: tens of microseconds. Beyond that the bound grows with the wait so
 * far. A long wait stays exact to 1 %, and its number of spurious wake-ups in the trace grows only
 * with the logarithm of its length.
 */
#define WAKING_NS 50000

/* When a woken waiter that is still here must have gone back to sleep. */
static uint64_t asleep_again_at(const struct gt_waiter *w)
{
    if (w->outrun)
        return 0;
    if (w->final)
        return UINT64_MAX;
    uint64_t waited = w->woken > w->since ? w->woken - w->since : 0;
    uint64_t waking = gt_clock_units(WAKING_NS);
    return w->woken + (waited / 127 > waking ? waited / 127 : waking);
}

/* Puts w, which is in no line, at the end of the line of woken waiters. */
static void append_woken(struct shard *s, struct gt_waiter *w, uint64_t now)
{
    struct slot *slot = slot_of(w->addr);
    w->woken = now;
    w->outrun = false;
    append_locked(s, w);
    uint64_t at = asleep_again_at(w);
    bool alone = !s->asleep.first && s->woken.first == s->woken.last;
    if (alone || at < atomic_load_explicit(&slot->again, memory_order_relaxed))
        atomic_store_explicit(&slot->again, at, memory_order_relaxed);
}

/* Moves w to the end of the line of woken waiters. */
static void set_woken(struct shard *s, struct gt_waiter *w, uint64_t now)
{
    unlink_locked(s, w);
    if (!w->woken) {
        add_to(w->addr, -GT_REGISTRY_ASLEEP);
        count_sleepers(s, w->addr, -1u);
    }
    append_woken(s, w, now);
}

void gt_registry_add(struct gt_waiter *w, const void *addr, uint64_t now)
{
    _Atomic(struct gt_waiter *) *arrived = &shard_of(addr)->arrived;
    begin(w, addr, now);
    /* Counted first, because a thread that finds w may take w out at once. */
    add_to(addr, SLEEPER);
    /* release: pairs with admit_locked */
    GT_PUSH(arrived, w, &w->next);
}

/*
 * Locks the shard where w is; meanwhile gt_registry_move may move w to another shard, and
 * gt_registry_release may take it out. false: the lock could not be taken. *s: NULL if w is out.
 */
static bool lock_shard_of(struct gt_waiter *w, int64_t patience_ns, struct shard **s)
{
    while (gt_registry_has(w)) {
        const void *addr = __atomic_load_n(&w->addr, __ATOMIC_RELAXED);
        *s = shard_of(addr);
        if (!lock_shard(*s, patience_ns))
            return false;
        if (w->addr == addr)
            return true;
        gt_unlock(&(*s)->lock);
    }
    *s = NULL;
    return true;
}

static bool slept(const struct gt_waiter *w)
{
    return gt_clock_now() > w->since + gt_clock_units(WAKING_NS);
}

/*
 * Whether w has got what it waited for although no wake-up was written for it. A lock may be taken
 * by a waiter that has not slept, which is no mistake of ours: the woken one finds out, and goes
 * back to sleep. A signal of a condition variable is taken but once.
 */
static bool took_anothers(const struct gt_waiter *w)
{
    return (!w->woken || w->outrun) && (w->relock || slept(w));
}

/*
 * Takes w's second entry out: w still sleeps, and does not wait for its mutex. The mutex's shard is
 * a second lock, as in await_mutex: if it is not free, the entry stays.
 */
static void forget_mutex(struct shard *held, struct gt_waiter *w)
{
    struct gt_waiter *relock = w->relock;
    if (!relock || !gt_registry_has(relock))
        return;
    struct shard *s = shard_of(w->mutex);
    if (s != held && !gt_trylock(&s->lock, GT_RANK_SHARD))
        return;
    admit_locked(s);
    if (relock->addr == w->mutex) {
        unlink_locked(s, relock);
        discount(s, relock);
        __atomic_store_n(&relock->addr, NULL, __ATOMIC_RELEASE);
    }
    if (s != held)
        gt_unlock(&s->lock);
}

/* A woken waiter sleeps: it becomes the first in line, or the last, if it has run meanwhile. */
static void outrun(struct shard *s, struct gt_waiter *w, bool has_run)
{
    unlink_locked(s, w);
    w->outrun = true;
    if (has_run)
        append_locked(s, w);
    else
        prepend_locked(s, w);
    atomic_store_explicit(&slot_of(w->addr)->again, 0, memory_order_relaxed);
}

/*
 * Puts the waiter that was woken last back to sleep, also in the trace: it was taken for w. If w
 * has not slept, the kernel woke that waiter indeed, but w was faster.
 */
static void hand_back(struct shard *s, const struct gt_waiter *w)
{
    struct gt_waiter *last = s->woken.last;
    while (last && (last->addr != w->addr || last->outrun))
        last = last->prev;
    if (!last || last->woken < w->since)
        return;
    outrun(s, last, !slept(w));
    forget_mutex(s, last);
    gt_ev_go_sleep_on(last->g);
}

bool gt_registry_asleep_again(struct gt_waiter *w, uintptr_t futex)
{
    enum { OBJECT = 48 }; /* bytes of a condition variable; other objects are not much larger */
    const void *addr = __atomic_load_n(&w->addr, __ATOMIC_ACQUIRE);
    struct shard *s = shard_of(addr);
    if (!addr || futex - (uintptr_t)addr >= OBJECT || !gt_trylock(&s->lock, GT_RANK_SHARD))
        return false;
    admit_locked(s);
    bool was_woken = w->addr == addr && w->woken;
    if (was_woken && !w->outrun)
        outrun(s, w, false);
    if (was_woken)
        forget_mutex(s, w);
    gt_unlock(&s->lock);
    return was_woken;
}

bool gt_registry_remove(struct gt_waiter *w, bool took, int64_t patience_ns)
{
    struct shard *s;
    if (!lock_shard_of(w, patience_ns, &s))
        return false;
    if (!s)
        return true;
    if (!w->in_line) { /* a signal handler has jumped out of gt_registry_add */
        __atomic_store_n(&w->addr, NULL, __ATOMIC_RELAXED);
        gt_unlock(&s->lock);
        return true;
    }
    unlink_locked(s, w);
    discount(s, w);
    if (took && took_anothers(w))
        hand_back(s, w);
    __atomic_store_n(&w->addr, NULL, __ATOMIC_RELAXED);
    /* w's thread may have the mutex now; its unlock will look at these waiters first. */
    gt_fetch(s->woken.first, sizeof *w);
    gt_fetch(s->asleep.first, sizeof *w);
    gt_unlock(&s->lock);
    return true;
}

bool gt_registry_renew(struct gt_waiter *w)
{
    struct shard *s;
    if (!lock_shard_of(w, GT_LOCK_PATIENCE_NS, &s) || !s)
        return false;
    bool asleep = !w->woken;
    if (asleep) {
        unlink_locked(s, w);
        append_locked(s, w);
    }
    gt_unlock(&s->lock);
    return asleep;
}

/* Locks two shards, in the order of their addresses. */
static bool lock_both(struct shard *a, struct shard *b)
{
    struct shard *first = a < b ? a : b, *second = a < b ? b : a;
    if (!lock_within(first))
        return false;
    if (a == b || lock_within(second))
        return true;
    gt_unlock(&first->lock);
    return false;
}

void gt_registry_move(const void *from, const void *to, uint32_t max)
{
    struct shard *source = shard_of(from), *target = shard_of(to);
    if (!lock_both(source, target))
        return;
    struct gt_waiter *next, *last = source->asleep.last;
    for (struct gt_waiter *w = source->asleep.first; w && max; w = next) {
        next = w == last ? NULL : w->next;
        if (w->addr != from)
            continue;
        unlink_locked(source, w);
        discount(source, w);
        __atomic_store_n(&w->addr, to, __ATOMIC_RELAXED);
        append_locked(target, w);
        add_to(to, SLEEPER);
        count_sleepers(target, to, 1);
        max--;
    }
    if (source != target)
        gt_unlock(&source->lock);
    gt_unlock(&target->lock);
}

bool gt_registry_lock(const void *addr)
{
    return lock_within(shard_of(addr));
}

void gt_registry_unlock(const void *addr)
{
    gt_unlock(&shard_of(addr)->lock);
}

bool gt_registry_all_woken(const void *addr)
{
    return gt_registry_word(addr) < GT_REGISTRY_ASLEEP;
}

static bool is_time_for_another(const void *addr, uint64_t now)
{
    return now >= atomic_load_explicit(&slot_of(addr)->again, memory_order_relaxed);
}

bool gt_registry_may_sleep_again(const void *addr, uint64_t *now)
{
    uint64_t word = gt_registry_word(addr);
    if ((word & GT_REGISTRY_WAITERS) <= word / GT_REGISTRY_ASLEEP)
        return false;
    *now = *now ? *now : gt_clock_now();
    return is_time_for_another(addr, *now);
}

bool gt_registry_reaches(const void *addr)
{
    return !gt_registry_all_woken(addr) || is_time_for_another(addr, gt_clock_now());
}

/* No woken waiter of the slot sleeps now. Sets the time when the next one may. */
static void set_again(const struct shard *s, uint32_t slot)
{
    uint64_t again = UINT64_MAX;
    for (const struct gt_waiter *w = s->woken.first; w; w = w->next) {
        uint64_t at = asleep_again_at(w);
        if (gt_registry_slot(w->addr) == slot && at < again)
            again = at;
    }
    atomic_store_explicit(&slots[slot].again, again, memory_order_relaxed);
}

static bool is_at(const struct gt_waiter *w, const void *addr, uint32_t bits)
{
    return w->addr == addr && (!w->bits || w->bits & bits);
}

/* The first woken waiter that must have gone back to sleep. */
static struct gt_waiter *first_asleep_again(const void *addr, uint32_t bits, uint64_t now)
{
    const struct shard *s = shard_of(addr);
    if (now < atomic_load_explicit(&slot_of(addr)->again, memory_order_relaxed))
        return NULL;
    struct gt_waiter *w = s->woken.first;
    while (w && (!is_at(w, addr, bits) || now < asleep_again_at(w)))
        w = w->next;
    if (!w)
        set_again(s, gt_registry_slot(addr));
    return w;
}

struct gt_waiter *gt_registry_next(const void *addr, uint32_t bits, uint64_t now)
{
    struct gt_waiter *w = shard_of(addr)->asleep.first, *again;
    while (w && !is_at(w, addr, bits))
        w = w->next;
    again = first_asleep_again(addr, bits, now);
    return again && (!w || again->turn < w->turn) ? again : w;
}

struct gt_waiter *gt_registry_after(const void *addr, struct gt_waiter *last)
{
    struct gt_waiter *w = last ? last->next : shard_of(addr)->asleep.first;
    while (w && w->addr != addr)
        w = w->next;
    return w;
}

uint32_t gt_registry_asleep(const void *addr)
{
    struct shard *s = shard_of(addr);
    if (s->counted != addr) {
        s->counted = addr;
        s->sleepers = 0;
        for (struct gt_waiter *w = NULL; (w = gt_registry_after(addr, w));)
            s->sleepers++;
    }
    return s->sleepers;
}

void gt_registry_each(void (*fn)(const struct gt_waiter *waiter))
{
    enum { PATIENCE_NS = 1000000 };
    if (!atomic_load_explicit(&used, memory_order_relaxed))
        return;
    for (struct shard *s = shards; s < shards + SHARDS; s++) {
        bool any = s->asleep.first || s->woken.first || atomic_load(&s->arrived);
        if (!any || !lock_shard(s, PATIENCE_NS))
            continue;
        for (const struct gt_waiter *w = s->asleep.first; w; w = w->next)
            fn(w);
        for (const struct gt_waiter *w = s->woken.first; w; w = w->next)
            fn(w);
        gt_unlock(&s->lock);
    }
}

/*
 * Makes a woken waiter of a condition variable a waiter of its mutex. The mutex's shard is a second
 * lock, in no order with the first: if it is not free, the waiter stays "runnable".
 */
static void await_mutex(struct shard *held, struct gt_waiter *w, uint64_t now)
{
    struct shard *s = shard_of(w->mutex);
    if (w->relock->addr || (s != held && !gt_trylock(&s->lock, GT_RANK_SHARD)))
        return;
    admit_locked(s);
    w->relock->g = w->g;
    begin(w->relock, w->mutex, now);
    append_woken(s, w->relock, now);
    add_to(w->mutex, WOKEN);
    if (s != held)
        gt_unlock(&s->lock);
}

void gt_registry_woken(struct gt_waiter *w, uint64_t now)
{
    struct shard *s = shard_of(w->addr);
    set_woken(s, w, now);
    if (w->relock)
        await_mutex(s, w, now);
}

void gt_registry_release(struct gt_waiter *w, uint64_t now)
{
    struct shard *s = shard_of(w->addr);
    unlink_locked(s, w);
    discount(s, w);
    if (w->relock)
        await_mutex(s, w, now);
    /* release: w's thread, which reads it without the lock, has w to itself from now on. */
    __atomic_store_n(&w->addr, NULL, __ATOMIC_RELEASE);
}

void gt_registry_after_fork(void)
{
    if (!atomic_load(&used))
        return;
    memset(shards, 0, sizeof shards);
    memset((void *)gt_registry_count, 0, sizeof gt_registry_count);
    memset(slots, 0, sizeof slots);
}
