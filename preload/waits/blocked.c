/* See blocked.h. */
#include "blocked.h"

#include "shared.h"

#include "encoder/base/arena.h"
#include "encoder/base/cycle.h"
#include "encoder/base/debug.h"
#include "encoder/base/file.h"
#include "encoder/base/memo.h"
#include "encoder/base/strbuf.h"
#include "encoder/format/lock_texts.h"
#include "encoder/thread/switch.h"
#include "preload/process/fatal.h"
#include "preload/process/process_names.h"
#include "preload/registry/owner.h"
#include "preload/stacks/code_layouts.h"
#include "preload/stacks/pymutex.h"
#include "preload/stacks/python_stack.h"
#include "preload/thread/thread.h"
#include "symbolize/elf/modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct {
    struct gt_vector memory; /* of struct gt_blocked */
    size_t n;
} all;

static struct gt_blocked *at(size_t i)
{
    return (struct gt_blocked *)all.memory.at + i;
}

/* Collecting --------------------------------------------------------------------------------- */

static bool is_readable(const struct gt_waiter *waiter, const void *lock)
{
    return waiter->kind != GT_LOCK_JOIN && gt_can_read(lock, sizeof(pthread_rwlock_t));
}

/* The registry is locked: the waiter is still in its wait, and so is what is on its stack. */
static const void *lock_of(const struct gt_waiter *waiter)
{
    bool pythons = waiter->kind == GT_LOCK_PYMUTEX || waiter->kind == GT_LOCK_PYRLOCK;
    return pythons ? gt_pymutex_of(waiter->addr) : gt_lock_at(waiter->addr);
}

/*
 * A thread that waits for a Python lock that it holds itself waits for another thread's signal, as
 * in a condition variable. It is no waiter for a holder.
 */
static enum gt_lock_kind kind_of(const struct gt_waiter *waiter, const void *lock, uint32_t tid)
{
    uint32_t owner = waiter->kind == GT_LOCK_SEM ? gt_owner_of(GT_LOCK_PYSEM, lock) : 0;
    return owner && owner != tid ? GT_LOCK_PYSEM : waiter->kind;
}

static struct gt_writer *writer_of(const struct gt_waiter *waiter)
{
    return (struct gt_writer *)((uintptr_t)waiter->g - offsetof(struct gt_writer, g));
}

/*
 * Notes a waiter. The registry is locked: the waiter's thread is still in its wait, and what it
 * waits for exists.
 */
static void note(const struct gt_waiter *waiter)
{
    const struct gt_writer *w = writer_of(waiter);
    const void *lock = lock_of(waiter);
    enum gt_lock_kind kind = kind_of(waiter, lock, w->m);
    bool owned = kind >= GT_LOCK_PYMUTEX || (kind == GT_LOCK_SEM && gt_owner_of(kind, lock));
    if (!owned || !gt_vector_reserve(&all.memory, (all.n + 1) * sizeof(struct gt_blocked)))
        return;
    bool readable = is_readable(waiter, lock);
    *at(all.n++) = (struct gt_blocked){
        .g = waiter->g->id,
        .since = waiter->since,
        .tid = w->m,
        .kind = kind,
        .timed = waiter->timed,
        .again = waiter->again,
        .lock = lock,
        .holder = readable && kind != GT_LOCK_PYMUTEX ? gt_owner_of(kind, lock) : 0,
        .shared = readable && gt_shared_is(waiter->kind, lock),
        .stack = waiter->g->wait_stack};
}

static bool waits_for(uint32_t tid, uintptr_t pymutex)
{
    for (size_t i = 0; i < all.n; i++) {
        const struct gt_blocked *b = at(i);
        if (b->tid == tid && b->kind == GT_LOCK_PYMUTEX && (uintptr_t)b->lock == pymutex)
            return true;
    }
    return false;
}

/*
 * Notes who holds a lock of Python's that is one byte: the thread in a `with` block of it. A thread
 * that waits for the lock does not hold it. Of several such threads nothing is known.
 */
static void hold(void *tid, uintptr_t lock)
{
    const uint32_t *holder = tid;
    if (waits_for(*holder, lock))
        return;
    for (size_t i = 0; i < all.n; i++) {
        struct gt_blocked *b = at(i);
        if (b->kind == GT_LOCK_PYMUTEX && (uintptr_t)b->lock == lock)
            b->holder = b->holder && b->holder != *holder ? GT_HOLDER_READERS : *holder;
    }
}

/* The registry is locked: the waiter stands still, with all its frames. */
static void resolve_blocks(const struct gt_waiter *waiter)
{
    const struct gt_thread *t = gt_thread_of(writer_of(waiter));
    uint32_t tid = t->w.m;
    if (t->python)
        gt_python_each_block(t->python, hold, &tid);
}

static void resolve_pymutexes(void)
{
    bool any = false;
    for (size_t i = 0; i < all.n; i++)
        any |= at(i)->kind == GT_LOCK_PYMUTEX;
    if (any)
        gt_registry_each(resolve_blocks);
}

/* Finds the threads that joins wait for. Only a thread's own struct knows its pthread_t. */
static void resolve_joins(void *unused, struct gt_writer *w)
{
    (void)unused;
    pthread_t self = gt_thread_of(w)->self;
    for (size_t i = 0; i < all.n; i++) {
        struct gt_blocked *b = at(i);
        if (b->kind == GT_LOCK_JOIN && b->lock == (const void *)self && w->g.state != GT_G_NONE)
            b->holder = w->m;
    }
}

static bool has_task(uint32_t tid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/self/task/%u", tid);
    return gt_stat(path, &st) == 0;
}

/*
 * Whether the thread has ended, by /proc. false if /proc does not show the calling thread: it may
 * be missing, or belong to another pid namespace. The first thread of a process stays as a zombie
 * after its end, as long as there are other threads.
 */
static bool is_gone(uint32_t tid)
{
    return has_task((uint32_t)gt_syscall(SYS_gettid)) &&
           (!has_task(tid) || gt_thread_state(tid) == 'Z');
}

/*
 * Whether the thread sleeps on a futex. A thread that has just got a lock stays in the registry
 * until it runs, as if it waited for itself. Without an answer from the kernel, a thread sleeps
 * unless it is the holder. A deadly signal may have woken the thread, but not ended its wait.
 */
static bool sleeps(const struct gt_blocked *b)
{
    char path[64], text[32] = "";
    if (gt_fatal_has_ended(b->tid))
        return true;
    snprintf(path, sizeof path, "/proc/self/task/%u/syscall", b->tid);
    int fd = gt_file_open(path, 0);
    if (fd < 0)
        return b->holder != b->tid;
    ssize_t n = gt_file_read(fd, text, sizeof text - 1, 0);
    gt_file_close(fd);
    return n <= 0 || strtoul(text, NULL, 10) == SYS_futex;
}

/*
 * Reads again each wait that is in a cycle, or whose holder has ended. Each wait was first read at
 * its own moment. If the second reading finds the same, all of these waits existed together between
 * the two readings. Their holders were among the waiting threads, or had ended.
 */
static void confirm(const struct gt_waiter *waiter)
{
    const void *lock = lock_of(waiter);
    for (size_t i = 0; i < all.n; i++) {
        struct gt_blocked *b = at(i);
        if ((b->cycle < 0 && !b->gone) || b->g != waiter->g->id || b->since != waiter->since ||
            b->lock != lock)
            continue;
        /* The holder of a PYMUTEX waits for something else, and stands in its block as long as its
         * own wait is the one read first. */
        b->confirmed = waiter->kind == GT_LOCK_JOIN || waiter->kind == GT_LOCK_PYMUTEX ||
                       (is_readable(waiter, lock) && gt_owner_of(b->kind, lock) == b->holder);
    }
}

static void confirm_all(void)
{
    bool any = false;
    for (size_t i = 0; i < all.n; i++)
        any |= at(i)->cycle >= 0 || at(i)->gone;
    if (any)
        gt_registry_each(confirm);
    for (size_t i = 0; i < all.n; i++) {
        struct gt_blocked *b = at(i);
        b->confirmed = b->confirmed && sleeps(b);
        b->gone = b->gone && b->confirmed;
    }
    /* A cycle is confirmed only if all its waits are. */
    for (size_t i = 0; i < all.n; i++) {
        for (size_t k = 0; !at(i)->confirmed && at(i)->cycle >= 0 && k < all.n; k++) {
            if (k != i && at(k)->cycle == at(i)->cycle)
                at(k)->confirmed = false;
        }
    }
    for (size_t i = 0; i < all.n; i++) {
        if (!at(i)->confirmed)
            at(i)->cycle = -1;
    }
}

/* Cycles ------------------------------------------------------------------------------------- */

/* Any thread, and any signal handler, may post to a semaphore. */
static bool only_holder_ends(const struct gt_blocked *b)
{
    return b->kind != GT_LOCK_SEM;
}

static const void *next_of(const void *unused, const void *waiter)
{
    const struct gt_blocked *b = waiter;
    (void)unused;
    return b->timed || !only_holder_ends(b) || b->next < 0 ? NULL : at((size_t)b->next);
}

static void find_cycle(struct gt_blocked *b)
{
    const struct gt_blocked *least = b, *other = b;
    if (gt_cycle_entry(next_of, NULL, b) != b)
        return;
    while ((other = next_of(NULL, other)) != b)
        least = other < least ? other : least;
    b->cycle = (int32_t)(least - at(0));
}

/*
 * Links each wait to its holder's own wait. A thread that reacquires its mutex after a condition
 * variable has two entries; the later one counts.
 */
static void link_all(void)
{
    struct gt_memo by_tid = {.slots = NULL}; /* → index + 1 */
    for (size_t i = 0; i < all.n; i++) {
        uint64_t *slot = gt_memo_at(&by_tid, at(i)->tid);
        if (slot)
            *slot = i + 1;
    }
    for (size_t i = 0; i < all.n; i++) {
        struct gt_blocked *b = at(i);
        bool known = b->holder && b->holder != GT_HOLDER_READERS;
        b->next = known ? (int32_t)gt_memo_find(&by_tid, b->holder) - 1 : -1;
        b->cycle = -1;
        b->gone = known && b->next < 0 && b->kind != GT_LOCK_JOIN && b->kind != GT_LOCK_PYSEM &&
                  only_holder_ends(b) && !b->shared && is_gone(b->holder);
    }
    gt_memo_free(&by_tid);
    for (size_t i = 0; i < all.n; i++)
        find_cycle(at(i));
}

struct gt_blocked *gt_blocked_now(size_t *n)
{
    GT_ASSERT_DRAIN_SIDE();
    all.n = 0;
    gt_registry_each(note);
    gt_switch_each(resolve_joins, NULL);
    resolve_pymutexes();
    link_all();
    confirm_all();
    *n = all.n;
    return all.n ? at(0) : NULL;
}

/* For a trace -------------------------------------------------------------------------------- */

static void put_number(struct gt_strbuf *t, uint64_t number)
{
    gt_strbuf_decimal(t, number);
    gt_strbuf_add(t, " ");
}

void gt_blocked_tell(gt_tell_fn *tell)
{
    char text[GT_STRING_MAX];
    size_t n;
    const struct gt_blocked *b = gt_blocked_now(&n);
    for (size_t i = 0; i < n; i++, b++) {
        if (b->kind == GT_LOCK_PYSEM && b->cycle < 0 && !gt_owner_of(GT_LOCK_SEM, b->lock))
            continue; /* its holder is not certain */
        if (b->kind == GT_LOCK_PYMUTEX && b->cycle < 0)
            continue;
        struct gt_strbuf t = gt_strbuf_start(text, sizeof text);
        uint64_t holder_g = b->next >= 0 ? at((size_t)b->next)->g : 0;
        gt_strbuf_add(&t, GT_BLOCKED);
        put_number(&t, b->g);
        put_number(&t, holder_g ? holder_g : gt_held_g(b->holder));
        put_number(&t, b->holder);
        put_number(&t, (uint64_t)b->timed | (uint64_t)b->gone << 1 | (uint64_t)b->again << 2 |
                           (uint64_t)(b->cycle >= 0) << 3);
        put_number(&t, b->since);
        if (b->kind != GT_LOCK_JOIN) /* a thread's end has no lock's name */
            gt_strbuf_add(
                &t, gt_names_lock((uintptr_t)b->lock, (uint32_t)gt_modules_epoch(), b->shared));
        tell(text, (uint32_t)(t.pos - text));
    }
}
