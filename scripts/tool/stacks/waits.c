/*
 * What a stopped thread waits for: by the system call that it is in, by the function of libc's that
 * made it, and by what the memory there says. What is not as glibc would have it is no lock of
 * glibc's, and stays a futex with an unknown owner.
 */
#include "calls.h"
#include "holders.h"
#include "still.h"

#include "encoder/base/libc.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct waiting {
    const struct gt_still *still;
    const struct gt_task *task;
    const struct gt_call_row *row;
    struct gt_wait *wait;
    uint32_t word; /* what is in the futex */
};

/* Owners ------------------------------------------------------------------------------------- */

/* Bits of a mutex's kind, beside PTHREAD_MUTEX_RECURSIVE and so on. */
enum { ROBUST = 16, INHERIT = 32, SHARED = 128, KINDS = 0x3ff };

/* The thread that the process itself calls so; `foreign`: it may be another process's. */
static void set_owner(struct waiting *w, uint32_t own, bool foreign)
{
    const struct gt_task *owner = own ? gt_still_own(w->still, (pid_t)own) : NULL;
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

#define FIELD(type, field) offsetof(type, __data.field)

/* So much of a lock as stands for it; false: that has not been copied. */
#define READ_LOCK(w, at, lock) gt_still_read((w)->still, at, lock, sizeof *(lock))

/* A mutex that inherits priority, held by somebody, at an address. */
static uint32_t refused_owner(const struct waiting *w, uint64_t at)
{
    pthread_mutex_t m;
    if (at % 8 || !READ_LOCK(w, at, &m) || m.__data.__kind & ~KINDS || !(m.__data.__kind & INHERIT))
        return 0;
    return (uint32_t)m.__data.__lock & FUTEX_TID_MASK;
}

/*
 * Told by the kernel that waiting would be a deadlock, or that the owner has ended, glibc has the
 * thread wait for a word on its own stack, for ever: one that is 0, and that it expects to be. (So
 * is a mutex there that has just come free, but who waits for that expects another value.) A
 * register still has the address of the mutex, or of its kind, which was looked at last.
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
        uint64_t candidate = saved[i / 2] - (i % 2 ? FIELD(pthread_mutex_t, __kind) : 0);
        if (!refused_owner(w, candidate) || candidate == found)
            continue;
        if (found)
            return true; /* one of two: not known */
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
    if (!READ_LOCK(w, w->wait->address, &m) || m.__data.__kind & ~KINDS)
        return false;
    int kind = m.__data.__kind;
    if (kind & ROBUST) /* when its owner ends, the kernel wakes somebody */
        set_owner(w, w->word & FUTEX_TID_MASK, true);
    else if (w->word == 1 || w->word == 2)
        set_owner(w, (uint32_t)m.__data.__owner, kind & SHARED);
    else if (w->word != 0)
        return false; /* 0: it has just come free */
    w->wait->certain &= w->word == (uint32_t)w->task->call.argument[2] &&
                        !(kind & ROBUST && w->word & FUTEX_OWNER_DIED);
    return true;
}

/*
 * One that wants to read waits for the phase of reading to begin, or, where writers go first, for
 * the number of readers; one that wants to write for the phase of writing, or for the writer before
 * it. What it expects to find there tells which of the words it is.
 */
static bool rwlock(struct waiting *w)
{
    static const uint32_t offsets[] = {
        FIELD(pthread_rwlock_t, __wrphase_futex),
        FIELD(pthread_rwlock_t, __writers_futex),
        FIELD(pthread_rwlock_t, __readers),
    };
    enum { USED = 2, READERS = 3 }; /* a bit of the first two; a shift of the last */
    uint32_t expected = (uint32_t)w->task->call.argument[2];
    bool reads = false;
    for (size_t i = 0; i < w->task->frames && i < 8; i++)
        reads |= strstr(w->task->frame[i].function, "rdlock") != NULL;
    size_t which = expected > 3 ? 2 : !reads && expected == 3 ? 1 : 0;
    uint64_t at = w->wait->address - offsets[which];
    pthread_rwlock_t lock;
    if (!READ_LOCK(w, at, &lock) || lock.__data.__wrphase_futex > 3 ||
        lock.__data.__writers_futex > 3 || (which < 2 && !(w->word & USED)))
        return false;
    w->wait->address = at;
    w->wait->readers = lock.__data.__cur_writer ? 0 : lock.__data.__readers >> READERS;
    set_owner(w, (uint32_t)lock.__data.__cur_writer, lock.__data.__shared);
    w->wait->certain &= w->word == expected;
    return true;
}

/*
 * It waits in one of two words, `signals`, that lie elsewhere since glibc 2.41. The number of those
 * that wait, before them, tells which of the addresses can be right.
 */
static bool cond(struct waiting *w)
{
    static const struct {
        uint32_t signals, references;
    } layouts[] = {{40, 36}, {44, 36}, {32, 28}, {36, 28}};
    uint64_t found = 0;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        uint64_t at = w->wait->address - layouts[i].signals, sequence[2];
        uint32_t references;
        if (at % 8 || !gt_still_read(w->still, at, sequence, sizeof sequence) ||
            !gt_still_read(w->still, at + layouts[i].references, &references, sizeof references))
            continue;
        if (references >> 3 == 0 || references >> 3 > w->still->tasks ||
            sequence[1] >> 1 > sequence[0] >> 1 || sequence[0] == 0)
            continue;
        if (found)
            return true; /* the address of the word has to do */
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
    w->wait->address -= 4; /* the word that tells the round is the second one */
    return true;
}

/*
 * The word is the id of the thread that is joined, which the kernel clears when that has ended;
 * since glibc 2.43 a state of it, a small number, which lies so far behind its id.
 */
static bool join(struct waiting *w)
{
    enum { STATE_MOST = 8 };
    uint32_t id = w->word, before;
    if (!w->word || w->word != (uint32_t)w->task->call.argument[2])
        return true;
    if (id <= STATE_MOST &&
        gt_still_read(w->still, w->wait->address - GT_JOINED_ID, &before, sizeof before) &&
        gt_still_own(w->still, (pid_t)before))
        id = before;
    set_owner(w, id, false);
    w->wait->certain &= w->wait->owned == GT_OWNER_THREAD;
    return true;
}

/* Functions of libc's by how their names begin, but for underscores. */
static const struct role {
    const char *name;
    enum gt_wait_kind kind;
    bool (*look)(struct waiting *w); /* NULL: called by one of the others; go on */
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
    name += strspn(name, "_");
    if (strncmp(name, "GI_", 3) == 0)
        name += 3 + strspn(name + 3, "_");
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strncmp(name, roles[i].name, strlen(roles[i].name)) == 0)
            return &roles[i];
    }
    return NULL;
}

/*
 * The function that waits: the first on the stack that has a role, after what it calls, which may
 * have no names. NULL: another one does, by syscall(2), say.
 */
static const struct role *role_of(const struct gt_task *t)
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
    const struct gt_call *c = &w->task->call;
    int operation = (int)c->argument[1] & FUTEX_CMD_MASK;
    uint64_t at = c->argument[0];
    w->wait->kind = GT_WAIT_FUTEX;
    w->wait->address = at;
    bool known = gt_still_read(w->still, at, &w->word, sizeof w->word);
    const struct role *role = known ? role_of(w->task) : NULL;
    if (known && (operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2)) {
        w->wait->kind = GT_WAIT_MUTEX;
        set_owner(w, w->word & FUTEX_TID_MASK, true); /* the kernel wakes who waits for the dead */
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
        GT_MORE(w->wait->fd, w->wait->fds)->number = number;
}

static void of_descriptor(struct waiting *w)
{
    w->wait->kind = GT_WAIT_DESCRIPTOR;
    add_fd(w, (int)w->task->call.argument[0]);
}

static void of_poll(struct waiting *w)
{
    const struct gt_call *c = &w->task->call;
    struct pollfd p;
    w->wait->kind = GT_WAIT_POLL;
    for (uint64_t i = 0; i < c->argument[1] && i < FDS_MAX; i++) {
        if (gt_still_read(w->still, c->argument[0] + i * sizeof p, &p, sizeof p))
            add_fd(w, p.fd);
    }
}

static void of_select(struct waiting *w)
{
    const struct gt_call *c = &w->task->call;
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
    const struct gt_call *c = &w->task->call;
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
 * Times that count from the call on, when they are known. Who stops a sleeper has the kernel write
 * what is left where the call asked for that: sleep(3) does so over the time itself.
 */
static void find_timeout(struct waiting *w)
{
    const struct gt_call *c = &w->task->call;
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

/* Of syscall(2), which makes any: only the arguments tell. A futex's second one is its operation.
 */
static const struct gt_call_row *row_of_any(const struct gt_task *t)
{
    const uint64_t *a = t->call.argument;
    int operation = (int)a[1] & FUTEX_CMD_MASK;
    bool flags =
        (a[1] & ~(uint64_t)(FUTEX_CMD_MASK | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)) == 0;
    bool waits = operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
    enum { CLOCKS = 4096, ALIGNED = 4 }; /* clock_nanosleep begins with the number of a clock */
    bool futex = flags && waits && a[0] >= CLOCKS && a[0] % ALIGNED == 0 && a[3] >= CLOCKS;
    return futex ? gt_call_row(SYS_futex) : NULL;
}

/*
 * A call that the kernel goes on with after a stop: which one it was, its function tells. None that
 * is not gone on with: the thread began in clone3.
 */
static const struct gt_call_row *row_of_restarted(const struct gt_task *t)
{
    const struct gt_call_row *row = NULL;
    for (size_t i = 0; i < t->frames && i < 6 && !row; i++) {
        const char *name = t->frame[i].function;
        if (strstr(name, "syscall_cancel")) /* makes any call, since glibc 2.41 */
            continue;
        if (role_of_name(name))
            return gt_call_row(SYS_futex);
        name += strspn(name, "_");
        name += strncmp(name, "GI___", 5) == 0 ? 5 : 0;
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
 * Whether only a thread of the process can end the wait, and no handler of a signal: these may
 * post semaphores, and wake futexes, but not what stands on conditions or std::future.
 */
static bool is_within(const struct gt_task *t)
{
    const struct gt_wait *w = &t->wait;
    bool ours = t->call.number == SYS_futex && t->call.argument[1] & FUTEX_PRIVATE_FLAG;
    switch (w->kind) {
    case GT_WAIT_FUTURE: return !w->timed; /* libstdc++ does not call it private */
    case GT_WAIT_RWLOCK: return !w->timed && ours && w->readers;
    case GT_WAIT_COND:
    case GT_WAIT_BARRIER:
    case GT_WAIT_ONCE: return !w->timed && ours;
    default: return false;
    }
}

/* std::future's wait, which libstdc++ makes by syscall(2). */
static bool is_future(const struct gt_task *t)
{
    return t->wait.kind == GT_WAIT_FUTEX && t->frames > 1 &&
           strstr(t->frame[1].function, "__atomic_futex_unsigned_base");
}

void gt_find_wait(const struct gt_still *still, struct gt_task *t)
{
    struct waiting w = {still, t, gt_call_row(t->call.number), &t->wait, 0};
    free(t->wait.fd);
    t->wait = (struct gt_wait){0};
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
    for (size_t i = 0; i < still->tasks; i++)
        gt_find_holder(still, &still->task[i]);
}
