/* See blocked.h. */
#include "blocked.h"

#include "shared.h"

#include "encoder/base/arena.h"
#include "encoder/base/debug.h"
#include "encoder/base/file.h"
#include "encoder/base/memo.h"
#include "encoder/base/strbuf.h"
#include "encoder/switch.h"
#include "preload/names.h"
#include "preload/stacks/layouts.h"
#include "preload/thread.h"
#include "symbolize/modules.h"

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

/* The lock of the registry is held: the thread is still in the wait, and what it waits for there.
 */
static void note(const struct gt_waiter *waiter)
{
    const struct gt_writer *w =
        (const struct gt_writer *)((uintptr_t)waiter->g - offsetof(struct gt_writer, g));
    const void *lock = gt_lock_at(waiter->addr);
    bool owned = waiter->kind >= GT_LOCK_MUTEX;
    if (!owned || !gt_vector_reserve(&all.memory, (all.n + 1) * sizeof(struct gt_blocked)))
        return;
    bool readable = is_readable(waiter, lock);
    *at(all.n++) = (struct gt_blocked){.g = waiter->g->id,
                                       .since = waiter->since,
                                       .tid = w->m,
                                       .kind = waiter->kind,
                                       .timed = waiter->timed,
                                       .again = waiter->again,
                                       .lock = lock,
                                       .holder = readable ? gt_owner_of(waiter->kind, lock) : 0,
                                       .shared = readable && gt_shared_is(waiter->kind, lock),
                                       .stack = waiter->g->wait_stack};
}

/* A thread is known by its pthread_t only to its own struct. */
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

/* The first thread that has ended is there as long as others are. */
static bool is_zombie(uint32_t tid)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%u/stat", tid);
    int fd = gt_file_open(path, 0);
    if (fd < 0)
        return false;
    gt_file_read(fd, text, sizeof text - 1, 0);
    gt_file_close(fd);
    const char *name_ends = strrchr(text, ')');
    return name_ends && strncmp(name_ends, ") Z", 3) == 0;
}

/* By numbers as the kernel has them here: there may be no /proc, or one of another namespace. */
static bool is_gone(uint32_t tid)
{
    return has_task((uint32_t)gt_syscall(SYS_gettid)) && (!has_task(tid) || is_zombie(tid));
}

/*
 * Whether the kernel has the thread wait for a futex: one that has just got a lock stands in the
 * registry until it runs, as what waits for itself. Where the kernel does not tell, others sleep.
 */
static bool sleeps(const struct gt_blocked *b)
{
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%u/syscall", b->tid);
    int fd = gt_file_open(path, 0);
    if (fd < 0)
        return b->holder != b->tid;
    ssize_t n = gt_file_read(fd, text, sizeof text - 1, 0);
    gt_file_close(fd);
    return n <= 0 || strtoul(text, NULL, 10) == SYS_futex;
}

/*
 * What was read of each at its own moment is true of all together if it still is: then between the
 * two readings all waited, and those who held something were among them, or had ended.
 */
static void confirm(const struct gt_waiter *waiter)
{
    const void *lock = gt_lock_at(waiter->addr);
    for (size_t i = 0; i < all.n; i++) {
        struct gt_blocked *b = at(i);
        if ((b->cycle < 0 && !b->gone) || b->g != waiter->g->id || b->since != waiter->since ||
            b->lock != lock)
            continue;
        b->confirmed = waiter->kind == GT_LOCK_JOIN ||
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
    /* A cycle is one if all of it is. */
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

/* From i on; where that comes back to i, all on the way are a cycle. */
static void find_cycle(int32_t i)
{
    int32_t j = i, least = i;
    for (size_t steps = 0; steps <= all.n; steps++) {
        if (j < 0 || at((size_t)j)->timed)
            return;
        least = j < least ? j : least;
        j = at((size_t)j)->next;
        if (j == i)
            at((size_t)i)->cycle = least;
        if (j == i)
            return;
    }
}

/* One that has to get its mutex back after a condition variable is the later entry. */
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
        b->gone =
            known && b->next < 0 && b->kind != GT_LOCK_JOIN && !b->shared && is_gone(b->holder);
    }
    gt_memo_free(&by_tid);
    for (size_t i = 0; i < all.n; i++)
        find_cycle((int32_t)i);
}

struct gt_blocked *gt_blocked_now(size_t *n)
{
    GT_ASSERT_DRAIN_SIDE();
    all.n = 0;
    gt_registry_each(note);
    gt_switch_each(resolve_joins, NULL);
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
        struct gt_strbuf t = gt_strbuf_start(text, sizeof text);
        uint64_t holder_g = b->next >= 0 ? at((size_t)b->next)->g : 0;
        gt_strbuf_add(&t, GT_BLOCKED);
        put_number(&t, b->g);
        put_number(&t, holder_g ? holder_g : gt_held_g(b->holder));
        put_number(&t, b->holder);
        put_number(&t, (uint64_t)b->timed | (uint64_t)b->gone << 1 | (uint64_t)b->again << 2 |
                           (uint64_t)(b->cycle >= 0) << 3);
        put_number(&t, b->since);
        if (b->kind != GT_LOCK_JOIN) /* who ends has no name that a lock has */
            gt_strbuf_add(
                &t, gt_names_lock((uintptr_t)b->lock, (uint32_t)gt_modules_epoch(), b->shared));
        tell(text, (uint32_t)(t.pos - text));
    }
}
