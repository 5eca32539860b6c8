/*
 * Finds what a stopped thread waits for: by its system call, by libc's function that made the call,
 * and by the memory there. Memory that is not as glibc would leave it belongs to no lock of glibc.
 * Such a wait stays one for a futex with an unknown owner.
 */
#include "system_calls.h"
#include "elsewhere.h"
#include "holders.h"
#include "still.h"

#include "encoder/read/need.h"
#include "encoder/base/glibc.h"
#include "encoder/base/libc.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct waiting {
    const struct gt_still *still;
    const struct gt_still_thread *task;
    const struct gt_call_row *row;
    struct gt_thread_wait *wait;
    uint32_t word; /* the futex's value */
};

/* Owners ------------------------------------------------------------------------------------- */

/*
 * Sets the owner by its id in the process's PID namespace. foreign: it may be in another process.
 */
static void set_owner(struct waiting *w, uint32_t own, bool foreign)
{
    const struct gt_still_thread *owner = own ? gt_still_own(w->still, (pid_t)own) : NULL;
    w->wait->owned = owner     ? GT_OWNER_THREAD
                     : !own    ? GT_OWNER_UNKNOWN
                     : foreign ? GT_OWNER_FOREIGN
                               : gt_forked_owner(w->still, (pid_t)own);
    if (!owner && w->wait->owned == GT_OWNER_THREAD)
        owner = gt_still_task(w->still, w->still->pid);
    w->wait->owner = owner ? owner->tid : (pid_t)own;
    w->wait->certain = own && !w->wait->timed && w->wait->owned != GT_OWNER_FOREIGN &&
                       w->wait->owned != GT_OWNER_FORKED;
}

/* glibc's ------------------------------------------------------------------------------------ */

/* Reads the part of a lock that holds its state. False: it was not copied. */
#define READ_LOCK(w, at, lock) gt_still_read((w)->still, at, lock, sizeof *(lock))

/*
 * The owner of the mutex at that address, if it is one with priority inheritance and held; else 0.
 */
static uint32_t refused_owner(const struct waiting *w, uint64_t at)
{
    pthread_mutex_t m;
    if (at % 8 || !READ_LOCK(w, at, &m) || gt_glibc_mutex_kind(&m) & ~GT_MUTEX_ALL ||
        !(gt_glibc_mutex_kind(&m) & GT_MUTEX_PRIO_INHERIT))
        return 0;
    return gt_glibc_mutex_owner(&m);
}

/*
 * Recognizes a wait for ever after a refusal. The kernel has told glibc that waiting would be a
 * deadlock, or that the owner has ended. glibc then makes the thread wait for ever for a word on
 * its own stack, which is 0 and is expected to be 0. A mutex on the stack that has just been
 * unlocked is 0, too, but its waiter expects another value. A register still has the address of the
 * mutex, or of its kind, which was read last.
 */
static bool mutex_refused(struct waiting *w)
{
    uint64_t saved[GT_SAVED_REGISTERS], found = 0;
    uint64_t sp = gt_registers_sp(&w->task->registers), at = w->wait->address;
    unsigned n = gt_registers_saved(&w->task->registers, saved);
    if (at - sp > 4096 || w->word != 0 || (uint32_t)w->task->call.argument[2] != 0 ||
        w->wait->timed)
        return false;
    w->wait->refused = true;
    w->wait->address = 0;
    for (unsigned i = 0; i < 2 * n; i++) {
        uint64_t candidate = saved[i / 2] - (i % 2 ? GT_MUTEX_AT_KIND : 0);
        if (!refused_owner(w, candidate) || candidate == found)
            continue;
        if (found)
            return true; /* two candidates: not known */
        found = candidate;
    }
    if (found) {
        w->wait->address = found;
        set_owner(w, refused_owner(w, found), false);
    }
    return true;
}

static bool mutex(struct waiting *w)
{
    pthread_mutex_t m;
    if (mutex_refused(w))
        return true;
    if (!READ_LOCK(w, w->wait->address, &m) || gt_glibc_mutex_kind(&m) & ~GT_MUTEX_ALL)
        return false;
    bool robust = gt_glibc_mutex_kind(&m) & GT_MUTEX_ROBUST;
    if (!robust && w->word > GT_LLL_AWAITED)
        return false;
    /* When the owner of a robust mutex ends, the kernel wakes a waiter. */
    set_owner(w, gt_glibc_mutex_owner(&m), robust || gt_glibc_mutex_is_shared(&m));
    w->wait->certain &=
        w->word == (uint32_t)w->task->call.argument[2] && !(robust && w->word & FUTEX_OWNER_DIED);
    return true;
}

/*
 * A reader waits for the read phase or, if writers go first, for a change of the number of readers.
 * A writer waits for the write phase, or for the writer before it. The value that the call expects
 * tells which word of the lock the futex is.
 */
static bool rwlock(struct waiting *w)
{
    static const uint32_t offsets[] = {GT_RWLOCK_AT_PHASE, GT_RWLOCK_AT_WRITERS,
                                       GT_RWLOCK_AT_READERS};
    uint32_t expected = (uint32_t)w->task->call.argument[2];
    bool reads = false;
    for (size_t i = 0; i < w->task->frames && i < 8; i++)
        reads |= strstr(w->task->frame[i].function, "rdlock") != NULL;
    size_t which = expected > GT_RWLOCK_FUTEX_MOST              ? 2
                   : !reads && expected == GT_RWLOCK_FUTEX_MOST ? 1
                                                                : 0;
    uint64_t at = w->wait->address - offsets[which];
    pthread_rwlock_t lock;
    if (!READ_LOCK(w, at, &lock) || !gt_glibc_rwlock_is_sound(&lock) ||
        (which < 2 && !(w->word & GT_RWLOCK_FUTEX_USED)))
        return false;
    w->wait->address = at;
    uint32_t writer = gt_glibc_rwlock_writer(&lock);
    w->wait->readers = writer ? 0 : gt_glibc_rwlock_readers(&lock);
    set_owner(w, writer, gt_glibc_rwlock_is_shared(&lock));
    w->wait->certain &= w->word == expected;
    return true;
}

/* The number of waiters tells which of the addresses that the variable may have can be right. */
static bool cond(struct waiting *w)
{
    enum { LAYOUTS = sizeof gt_glibc_cond_layouts / sizeof *gt_glibc_cond_layouts };
    uint64_t found = 0;
    for (size_t i = 0; i < 2 * LAYOUTS; i++) {
        uint64_t offset = gt_glibc_cond_layouts[i / 2].signals + i % 2 * sizeof w->word;
        uint64_t at = w->wait->address - offset, sequence[2];
        uint32_t flags;
        if (at % 8 || !gt_still_read(w->still, at, sequence, sizeof sequence) ||
            !gt_still_read(w->still, at + gt_glibc_cond_layouts[i / 2].flags, &flags, sizeof flags))
            continue;
        uint32_t waiters = flags >> GT_COND_WAITERS_SHIFT;
        if (waiters == 0 || waiters > w->still->tasks || sequence[1] >> 1 > sequence[0] >> 1 ||
            sequence[0] == 0)
            continue;
        if (found)
            return true; /* ambiguous: keeps the futex's address */
        found = at;
    }
    w->wait->address = found ? found : w->wait->address;
    return true;
}

static bool plain(struct waiting *w)
{
    (void)w;
    return true;
}

static bool barrier(struct waiting *w)
{
    w->wait->address -= offsetof(struct gt_barrier, round);
    return true;
}

/*
 * The futex is the id of the joined thread, which the kernel clears at its end. Since glibc 2.43 it
 * is a small number, the thread's state.
 */
static bool join(struct waiting *w)
{
    uint32_t id = w->word, before;
    if (!w->word || w->word != (uint32_t)w->task->call.argument[2])
        return true;
    if (id <= GT_TCB_STATE_MOST &&
        gt_still_read(w->still, w->wait->address - GT_TCB_STATE, &before, sizeof before) &&
        gt_still_own(w->still, (pid_t)before))
        id = before;
    set_owner(w, id, false);
    w->wait->certain &= w->wait->owned == GT_OWNER_THREAD;
    return true;
}

/* Functions of libc, by the beginnings of their names without underscores. */
static const struct role {
    const char *name;
    enum gt_wait_kind kind;
    bool (*look)(struct waiting *w); /* NULL: called by another of these; look further */
} roles[] = {
    {"pthread_mutex_", GT_WAIT_MUTEX, mutex},
    {"mtx_", GT_WAIT_MUTEX, mutex},
    {"pthread_rwlock_", GT_WAIT_RWLOCK, rwlock},
    {"pthread_cond_", GT_WAIT_COND, cond},
    {"cnd_", GT_WAIT_COND, cond},
    {"sem_", GT_WAIT_SEMAPHORE, plain},
    {"new_sem_", GT_WAIT_SEMAPHORE, plain},
    {"pthread_barrier_", GT_WAIT_BARRIER, barrier},
    {"pthread_once", GT_WAIT_ONCE, plain},
    {"call_once", GT_WAIT_ONCE, plain},
    {"pthread_join", GT_WAIT_JOIN, join},
    {"pthread_clockjoin", GT_WAIT_JOIN, join},
    {"pthread_timedjoin", GT_WAIT_JOIN, join},
    {"thrd_join", GT_WAIT_JOIN, join},
    {"lll_", GT_WAIT_NONE, NULL},
    {"futex_", GT_WAIT_NONE, NULL},
    {"do_futex_wait", GT_WAIT_NONE, NULL},
    {"internal_syscall_cancel", GT_WAIT_NONE, NULL},
    {"syscall_cancel", GT_WAIT_NONE, NULL},
};

static const struct role *role_of_name(const char *name)
{
    name = gt_still_plain(name);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strncmp(name, roles[i].name, strlen(roles[i].name)) == 0)
            return &roles[i];
    }
    return NULL;
}

/*
 * The function that waits: the first on the stack with a role, after functions that it calls, which
 * may have no names. NULL: none, for instance a caller of syscall(2).
 */
static const struct role *role_of(const struct gt_still_thread *t)
{
    enum { DEPTH = 10 };
    for (size_t i = 0; i < t->frames && i < DEPTH; i++) {
        const struct gt_place *f = &t->frame[i];
        const struct role *role = role_of_name(f->function);
        if (role && role->look)
            return role;
        if (!role && !(strstr(f->function, "+0x") && strstr(f->module, "/libc.so")))
            return NULL;
    }
    return NULL;
}

/* Futexes ------------------------------------------------------------------------------------ */

static void futex(struct waiting *w)
{
    const struct gt_system_call *c = &w->task->call;
    int operation = (int)c->argument[1] & FUTEX_CMD_MASK;
    uint64_t at = c->argument[0];
    w->wait->kind = GT_WAIT_FUTEX;
    w->wait->address = at;
    bool known = gt_still_read(w->still, at, &w->word, sizeof w->word);
    const struct role *role = known ? role_of(w->task) : NULL;
    if (known && (operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2)) {
        w->wait->kind = GT_WAIT_MUTEX;
        set_owner(w, w->word & FUTEX_TID_MASK, true); /* the kernel wakes a dead owner's waiter */
        w->wait->certain &= (w->word & FUTEX_WAITERS) != 0;
    } else if (role && (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) && role->look(w))
        w->wait->kind = role->kind;
    else if (operation == FUTEX_WAIT_REQUEUE_PI)
        w->wait->kind = GT_WAIT_COND;
}

/* Descriptors -------------------------------------------------------------------------------- */

enum { FDS_MAX = 64 };

static void add_fd(struct waiting *w, int number)
{
    if (number >= 0 && w->wait->fds < FDS_MAX)
        GT_ADD(w->wait->fd, w->wait->fds)->number = number;
}

static void of_descriptor(struct waiting *w)
{
    w->wait->kind = GT_WAIT_DESCRIPTOR;
    add_fd(w, (int)w->task->call.argument[0]);
}

static void of_poll(struct waiting *w)
{
    const struct gt_system_call *c = &w->task->call;
    struct pollfd p;
    w->wait->kind = GT_WAIT_POLL;
    for (uint64_t i = 0; i < c->argument[1] && i < FDS_MAX; i++) {
        if (gt_still_read(w->still, c->argument[0] + i * sizeof p, &p, sizeof p))
            add_fd(w, p.fd);
    }
}

static void of_select(struct waiting *w)
{
    const struct gt_system_call *c = &w->task->call;
    w->wait->kind = GT_WAIT_POLL;
    for (int fd = 0; fd < (int)c->argument[0] && fd < 1024; fd++) {
        for (int set = 1; set <= 3; set++) {
            uint8_t byte;
            uint64_t at = c->argument[set];
            if (at && gt_still_read(w->still, at + (uint64_t)fd / 8, &byte, 1) &&
                byte >> fd % 8 & 1) {
                add_fd(w, fd);
                break;
            }
        }
    }
}

static void of_epoll(struct waiting *w)
{
    int epoll = (int)w->task->call.argument[0];
    w->wait->kind = GT_WAIT_POLL;
    add_fd(w, epoll);
    if (!w->still->core)
        gt_add_watched(w->still->alive, epoll, w->wait);
}

/* The rest ----------------------------------------------------------------------------------- */

static void of_sleep(struct waiting *w)
{
    w->wait->kind = GT_WAIT_SLEEP;
}

static void of_child(struct waiting *w)
{
    const struct gt_system_call *c = &w->task->call;
    bool waitid = strcmp(w->row->name, "waitid") == 0;
    w->wait->kind = GT_WAIT_CHILD;
    w->wait->child = !waitid               ? (pid_t)c->argument[0]
                     : c->argument[0] == 1 ? (pid_t)c->argument[1]
                                           : -1;
}

static void of_other(struct waiting *w)
{
    w->wait->kind = GT_WAIT_CALL;
}

static void (*const classes[])(struct waiting *) = {
    [GT_CALL_OTHER] = of_other, [GT_CALL_FUTEX] = futex,      [GT_CALL_FD] = of_descriptor,
    [GT_CALL_POLL] = of_poll,   [GT_CALL_SELECT] = of_select, [GT_CALL_EPOLL] = of_epoll,
    [GT_CALL_SLEEP] = of_sleep, [GT_CALL_CHILD] = of_child,   [GT_CALL_SIGNAL] = of_other,
};

/*
 * Finds a timeout that counts from the call on, if it is known. When a sleeper is stopped, the
 * kernel writes the rest of the time where the call asked for it. sleep(3) has it overwrite the
 * time itself.
 */
static void find_timeout(struct waiting *w)
{
    const struct gt_system_call *c = &w->task->call;
    struct timespec t;
    if (w->row->timeout < 0)
        return;
    uint64_t value = c->argument[w->row->timeout & ~GT_CALL_MS];
    bool absolute = c->number == SYS_clock_nanosleep && c->argument[1] & TIMER_ABSTIME;
    if (w->row->timeout & GT_CALL_MS) {
        w->wait->timed = (int)value >= 0;
        w->wait->ns = w->wait->timed ? value * 1000000 : 0;
        return;
    }
    w->wait->timed = value != 0;
    if (w->row->class == GT_CALL_SLEEP && !absolute && gt_still_read(w->still, value, &t, sizeof t))
        w->wait->ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    w->wait->left = w->wait->ns && value == c->argument[w->row->timeout + 1];
}

/*
 * The call that syscall(2) made, which may be any: only the arguments tell. A futex's second
 * argument is its operation.
 */
static const struct gt_call_row *row_of_any(const struct gt_still_thread *t)
{
    const uint64_t *a = t->call.argument;
    int operation = (int)a[1] & FUTEX_CMD_MASK;
    bool flags =
        (a[1] & ~(uint64_t)(FUTEX_CMD_MASK | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)) == 0;
    bool waits = operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
    enum { CLOCKS = 4096, ALIGNED = 4 }; /* clock_nanosleep's first argument is a small number */
    bool futex = flags && waits && a[0] >= CLOCKS && a[0] % ALIGNED == 0 && a[3] >= CLOCKS;
    return futex ? gt_call_row(SYS_futex) : NULL;
}

/*
 * The call that restart_syscall continues: the name of its function tells. A call that the kernel
 * never continues is not it: a thread's outermost function may be clone3, for instance.
 */
static const struct gt_call_row *row_of_restarted(const struct gt_still_thread *t)
{
    const struct gt_call_row *row = NULL;
    for (size_t i = 0; i < t->frames && i < 6 && !row; i++) {
        const char *name = t->frame[i].function;
        if (strstr(name, "syscall_cancel")) /* since glibc 2.41 it makes any call */
            continue;
        if (role_of_name(name))
            return gt_call_row(SYS_futex);
        name = gt_still_plain(name);
        bool any = strcmp(name, "syscall") == 0;
        row = any ? row_of_any(t) : gt_call_named(name);
        if (row && row->again == GT_AGAIN_NOT)
            row = NULL;
        if (any)
            break;
    }
    return row ? row : gt_call_row(SYS_restart_syscall);
}

/*
 * Whether only a thread of the process can end the wait, and no signal handler. Handlers may post
 * semaphores and wake futexes, but not the waiters of conditions or of std::future.
 */
static bool is_within(const struct gt_still_thread *t)
{
    const struct gt_thread_wait *w = &t->wait;
    bool ours = t->call.number == SYS_futex && t->call.argument[1] & FUTEX_PRIVATE_FLAG;
    switch (w->kind) {
    case GT_WAIT_FUTURE: return !w->timed; /* libstdc++ does not use FUTEX_PRIVATE_FLAG */
    case GT_WAIT_RWLOCK: return !w->timed && ours && w->readers;
    case GT_WAIT_COND:
    case GT_WAIT_BARRIER:
    case GT_WAIT_ONCE: return !w->timed && ours;
    default: return false;
    }
}

/* Whether it is a wait of std::future. libstdc++ makes it by syscall(2), which may be our hook. */
static bool is_future(const struct gt_still_thread *t)
{
    enum { DEPTH = 8 };
    bool found = false;
    for (size_t i = 1; i < t->frames && i < DEPTH; i++)
        found |= strstr(t->frame[i].function, "__atomic_futex_unsigned_base") != NULL;
    return found && t->wait.kind == GT_WAIT_FUTEX;
}

void gt_find_wait(const struct gt_still *still, struct gt_still_thread *t)
{
    struct waiting w = {still, t, gt_call_row(t->call.number), &t->wait, 0};
    free(t->wait.fd);
    free(t->wait.reader);
    t->wait = (struct gt_thread_wait){0};
    if (t->call.number < 0)
        return;
    gt_still_prefer(t);
    if (t->call.number == SYS_restart_syscall)
        w.row = row_of_restarted(t);
    t->wait.kind = GT_WAIT_CALL;
    t->wait.number = t->call.number;
    if (!w.row)
        return;
    t->wait.call = w.row->name;
    find_timeout(&w);
    classes[w.row->class](&w);
    t->wait.certain &= t->call.number == SYS_futex && !t->by_call;
    if (is_future(t))
        t->wait.kind = GT_WAIT_FUTURE;
    t->wait.within = is_within(t);
    if (t->wait.address)
        gt_unwind_symbol(t->wait.address, t->wait.name, sizeof t->wait.name);
    for (size_t i = 0; i < t->wait.fds && !still->core; i++)
        gt_describe_fd(still->alive, &t->wait.fd[i]);
}

void gt_find_waits(struct gt_still *still)
{
    for (size_t i = 0; i < still->tasks; i++)
        gt_find_wait(still, &still->task[i]);
    gt_look_for_holders(still);
    gt_elsewhere_forget();
    for (size_t i = 0; i < still->tasks; i++)
        gt_find_holder(still, &still->task[i]);
}
