/* See file_locks.h. */
#include "file_locks.h"

#include "hot.h"

#include "encoder/base/hash.h"
#include "encoder/base/sparse.h"
#include "preload/bind/file_lock_names.h"
#include "preload/bind/real.h"
#include "preload/process/process_state.h"
#include "preload/shared/options.h"
#include "preload/stacks/code_layouts.h"
#include "preload/stacks/python_stack.h"
#include "preload/thread/thread.h"

/* A lock that this process holds. */
enum { HELD_MAX = 32, FLOCK = -1 /* the start of flock's lock, which is no record */ };
static struct held {
    _Atomic int fd;   /* 1 + the descriptor; 0: free; BUSY: a thread reads or writes the rest */
    bool waited, own; /* own: this process has opened the file */
    int64_t start;    /* of the record; or FLOCK */
    uint64_t since;
    uintptr_t pc;
} held[HELD_MAX] GT_SPARSE;
enum { BUSY = -1 };

/* Whether a place was ever taken: if not, the table's pages are not touched. */
static _Atomic bool used;

/* Until when all but the shortest holds are logged: a thread has waited for a file's lock. */
static _Atomic uint64_t hot_until;
#define HOT_NS UINT64_C(10000000000)

/* Shorter holds and waits explain nothing. */
enum { SHORT_NS = 10000 };

static struct held *place_of(int fd, int64_t start)
{
    return &held[gt_hash_mix((uint64_t)fd, (uint64_t)start) % HELD_MAX];
}

/* Makes the place the caller's. */
static bool claim(struct held *h, int from)
{
    return atomic_compare_exchange_strong(&h->fd, &from, BUSY);
}

/* Whether the lock is already held, and the call only asked for it again. */
static bool is_known(struct held *h, int fd, int64_t start, bool locked, bool waited)
{
    return locked && !waited && atomic_load(&h->fd) == fd + 1 && h->start == start;
}

static void take(int fd, int64_t start, uint64_t since, const void *pc)
{
    enum gt_fd_kind kind = fd < GT_FDS ? gt_fd_known(fd) : GT_FD_SOCKET;
    if (kind == GT_FD_NAMED || kind == GT_FD_SOCKET || gt_muted() || !gt_recording())
        return;
    uint64_t now = gt_clock_now(), wait = since && since < now ? now - since : 0;
    bool waited = wait >= gt_clock_units(SHORT_NS);
    struct held *h = place_of(fd, start);
    atomic_store(&used, true);
    if (waited)
        atomic_store_explicit(&hot_until, now + gt_clock_units(HOT_NS), memory_order_relaxed);
    int was = atomic_load(&h->fd);
    if (is_known(h, fd, start, kind >= GT_FD_LOCKED, waited) || (was && was != fd + 1) ||
        !claim(h, was))
        return;
    h->start = start;
    h->waited = waited;
    h->own = kind == GT_FD_NEW || kind == GT_FD_LOCKED_NEW;
    h->since = now;
    h->pc = (uintptr_t)gt_python_taker(pc);
    atomic_store(&h->fd, fd + 1);
    gt_fd_set(fd, h->own ? GT_FD_LOCKED_NEW : GT_FD_LOCKED);
}

static bool is_worth_a_log(const struct held *h)
{
    uint64_t now = gt_clock_now(), units = now - h->since;
    bool hot = now < atomic_load_explicit(&hot_until, memory_order_relaxed);
    return !gt_muted() && (h->waited || units >= gt_clock_units(gt_options.hold_min) ||
                           (hot && units >= gt_clock_units(SHORT_NS)));
}

static void tell(struct gt_thread *t, enum gt_hook hook, int fd, const struct held *h)
{
    const char *name = gt_file_lock_name(fd, h->start == FLOCK, h->start);
    if (name)
        gt_hot_tell(
            t, hook,
            &(struct gt_hold){.lock = name, .since = h->since, .shared = true, .pc = h->pc});
}

/* A child of vfork has our memory, but the parent's lock stays when the child closes the file. */
static __attribute__((noinline)) void enter_and_tell(enum gt_hook hook, int fd,
                                                     const struct held *h)
{
    GT_KEEP_ERRNO;
    struct gt_thread *t = gt_process_is_ours() ? gt_thread_enter() : NULL;
    if (!t)
        return;
    tell(t, hook, fd, h);
    gt_thread_leave(t);
}

static void give_up(enum gt_hook hook, int fd, struct held *h)
{
    if (!claim(h, fd + 1))
        return;
    struct held copy = *h;
    atomic_store(&h->fd, 0);
    if (is_worth_a_log(&copy))
        enter_and_tell(hook, fd, &copy);
}

static bool has_locks(int fd)
{
    return fd >= 0 && gt_fd_known(fd) >= GT_FD_LOCKED;
}

/* flock ------------------------------------------------------------------------------------- */

void gt_file_lock_flocked(int fd, uint64_t since, const void *pc)
{
    take(fd, FLOCK, since, pc);
}

void gt_file_lock_unflock(enum gt_hook hook, int fd)
{
    if (has_locks(fd))
        give_up(hook, fd, place_of(fd, FLOCK));
}

/* Records ----------------------------------------------------------------------------------- */

/* Where the record begins; a negative number: not known. */
static int64_t start_of(int fd, const struct flock *what)
{
    if (what->l_len < 0 || what->l_whence == SEEK_END)
        return -1;
    int64_t from = what->l_whence == SEEK_CUR ? gt_file_lock_position(fd) : 0;
    return from < 0 ? from : from + what->l_start;
}

/* Whether the descriptor's lock begins in [from, to). */
static bool is_between(struct held *h, int fd, int64_t from, int64_t to)
{
    return atomic_load(&h->fd) == fd + 1 && h->start >= from && h->start < to;
}

/* Calls fn for each lock of the descriptor that begins there. */
static void each_between(enum gt_hook hook, int fd, int64_t from, int64_t to,
                         void (*fn)(enum gt_hook hook, int fd, struct held *h))
{
    for (struct held *h = held; h < held + HELD_MAX; h++) {
        if (is_between(h, fd, from, to))
            fn(hook, fd, h);
    }
}

static void unrecord(enum gt_hook hook, int fd, const struct flock *what,
                     void (*fn)(enum gt_hook hook, int fd, struct held *h))
{
    int64_t from = start_of(fd, what);
    if (from >= 0)
        each_between(hook, fd, from, what->l_len ? from + what->l_len : INT64_MAX, fn);
}

static void drop(enum gt_hook hook, int fd, struct held *h)
{
    (void)hook;
    atomic_compare_exchange_strong(&h->fd, &(int){fd + 1}, 0);
}

void gt_file_lock_recorded(enum gt_hook hook, int fd, const struct flock *what, uint64_t since,
                           const void *pc)
{
    if (what->l_type == F_UNLCK) {
        if (has_locks(fd))
            unrecord(hook, fd, what, drop);
        return;
    }
    int64_t start = start_of(fd, what);
    if (start >= 0)
        take(fd, start, since, pc);
}

/* Only a hold that is worth a log is worth asking whether the program's words can be read. */
void gt_file_lock_unrecord(enum gt_hook hook, int fd, const struct flock *what)
{
    bool any = false;
    if (!has_locks(fd))
        return;
    for (struct held *h = held; h < held + HELD_MAX && !any; h++)
        any = is_between(h, fd, 0, INT64_MAX) && is_worth_a_log(h);
    if (any && gt_can_read(what, sizeof *what) && what->l_type == F_UNLCK)
        unrecord(hook, fd, what, give_up);
}

/* ------------------------------------------------------------------------------------------- */

void gt_file_lock_close_slow(enum gt_hook hook, int fd)
{
    if (has_locks(fd))
        each_between(hook, fd, FLOCK, INT64_MAX, give_up);
}

void gt_file_locks_end(struct gt_thread *t)
{
    if (!atomic_load(&used))
        return;
    for (struct held *h = held; h < held + HELD_MAX; h++) {
        int fd = atomic_load(&h->fd) - 1;
        if (fd >= 0 && h->own && is_worth_a_log(h) && claim(h, fd + 1)) {
            tell(t, GT_HOOK__exit, fd, h);
            atomic_store(&h->fd, 0);
        }
    }
}

void gt_file_locks_after_fork(void)
{
    if (!atomic_exchange(&used, false))
        return;
    for (struct held *h = held; h < held + HELD_MAX; h++)
        atomic_store(&h->fd, 0);
}
