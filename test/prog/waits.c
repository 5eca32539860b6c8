/* Threads that wait for each other, in each way there is but those of truth.c. See rows.h. */
#include "libc.h"
#include "rows.h"

#include <linux/futex.h>
#include <threads.h>

/* Controls: what truth.c has as well ---------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

DO(mutex_hold, pthread_mutex_lock(&mutex))
CALL(mutex_wait, pthread_mutex_lock(&mutex))
DO(mutex_give, pthread_mutex_unlock(&mutex))

/* Read-write locks ----------------------------------------------------------------------------- */

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;

DO(rw_hold_write, EXPECT(pthread_rwlock_wrlock(&rw) == 0))
DO(rw_hold_read, EXPECT(pthread_rwlock_rdlock(&rw) == 0))

static void rw_hold_read_twice(void)
{
    rw_hold_read();
    rw_hold_read();
}

DO(rw_give, EXPECT(pthread_rwlock_unlock(&rw) == 0))

/* The first of two readers that leave lets no writer in. */
static void rw_give_twice(void)
{
    rw_give();
    busy(HOLD / 2);
    parties[0].woken = now();
    rw_give();
}

CALL(rw_rdlock, pthread_rwlock_rdlock(&rw))
CALL(rw_wrlock, pthread_rwlock_wrlock(&rw))

static long rw_timedrdlock(void)
{
    struct timespec late = after(CLOCK_REALTIME, 10000 * MS);
    return pthread_rwlock_timedrdlock(&rw, &late);
}

static long rw_timedwrlock(void)
{
    struct timespec late = after(CLOCK_REALTIME, 10000 * MS);
    return pthread_rwlock_timedwrlock(&rw, &late);
}

static long rw_clockrdlock(void)
{
    struct timespec late = after(CLOCK_MONOTONIC, 10000 * MS);
    return pthread_rwlock_clockrdlock(&rw, CLOCK_MONOTONIC, &late);
}

static long rw_clockwrlock(void)
{
    struct timespec late = after(CLOCK_MONOTONIC, 10000 * MS);
    return pthread_rwlock_clockwrlock(&rw, CLOCK_MONOTONIC, &late);
}

static long rw_timedwrlock_timeout(void)
{
    struct timespec soon = after(CLOCK_REALTIME, TIMEOUT);
    return pthread_rwlock_timedwrlock(&rw, &soon);
}

static long rw_clockrdlock_timeout(void)
{
    struct timespec soon = after(CLOCK_MONOTONIC, TIMEOUT);
    return pthread_rwlock_clockrdlock(&rw, CLOCK_MONOTONIC, &soon);
}

static long rw_free(void)
{
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    struct timespec past = after(CLOCK_REALTIME, 0);
    for (int i = 0; i < 1000; i++) {
        EXPECT(pthread_rwlock_rdlock(&lock) == 0);
        EXPECT(pthread_rwlock_trywrlock(&lock) == EBUSY);
        EXPECT(pthread_rwlock_tryrdlock(&lock) == 0);
        EXPECT(pthread_rwlock_unlock(&lock) == 0);
        EXPECT(pthread_rwlock_unlock(&lock) == 0);
        EXPECT(pthread_rwlock_wrlock(&lock) == 0);
        EXPECT(pthread_rwlock_tryrdlock(&lock) == EBUSY);
        EXPECT(pthread_rwlock_rdlock(&lock) == EDEADLK);
        EXPECT(pthread_rwlock_unlock(&lock) == 0);
        EXPECT(pthread_rwlock_timedwrlock(&lock, &past) == 0); /* free: the time does not matter */
        EXPECT(pthread_rwlock_unlock(&lock) == 0);
    }
    return 0;
}

/* Semaphores ----------------------------------------------------------------------------------- */

static sem_t unnamed;
static sem_t *sem = &unnamed;

static void sem_empty(void)
{
    EXPECT(sem_init(&unnamed, 0, 0) == 0);
    sem = &unnamed;
}

static void sem_named(void)
{
    char name[64];
    snprintf(name, sizeof name, "/gotrace-waits-%d", main_tid);
    sem = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    EXPECT(sem != SEM_FAILED);
    EXPECT(sem_unlink(name) == 0);
}

CALL(sem_wait_once, sem_wait(sem))

static long sem_timedwait_once(void)
{
    struct timespec late = after(CLOCK_REALTIME, 10000 * MS);
    return sem_timedwait(sem, &late);
}

static long sem_clockwait_once(void)
{
    struct timespec late = after(CLOCK_MONOTONIC, 10000 * MS);
    return sem_clockwait(sem, CLOCK_MONOTONIC, &late);
}

static long sem_timedwait_timeout(void)
{
    struct timespec soon = after(CLOCK_REALTIME, TIMEOUT);
    return sem_timedwait(sem, &soon);
}

static long sem_clockwait_timeout(void)
{
    struct timespec soon = after(CLOCK_MONOTONIC, TIMEOUT);
    return sem_clockwait(sem, CLOCK_MONOTONIC, &soon);
}

DO(sem_post_once, EXPECT(sem_post(sem) == 0))

static void sem_post_thrice(void)
{
    for (int i = 0; i < 3; i++)
        sem_post_once();
}

static long sem_free(void)
{
    sem_t s;
    int value;
    struct timespec past = after(CLOCK_REALTIME, 0);
    EXPECT(sem_init(&s, 0, 0) == 0);
    for (int i = 0; i < 1000; i++) {
        EXPECT(sem_trywait(&s) == -1 && errno == EAGAIN);
        EXPECT(sem_post(&s) == 0);
        EXPECT(sem_getvalue(&s, &value) == 0 && value == 1);
        EXPECT(sem_wait(&s) == 0);
        EXPECT(sem_post(&s) == 0 && sem_post(&s) == 0);
        EXPECT(sem_trywait(&s) == 0);
        EXPECT(sem_timedwait(&s, &past) == 0);
    }
    errno = 0;
    return 0;
}

static void ignore(int sig)
{
    (void)sig;
}

static void sem_interruptible(void)
{
    struct sigaction sa = {.sa_handler = ignore};
    sem_empty();
    EXPECT(sigaction(SIGUSR1, &sa, NULL) == 0);
}

DO(interrupt, RAW(SYS_tgkill, getpid(), parties[0].tid, SIGUSR1))
DO(cancel, EXPECT(pthread_cancel(parties[0].thread) == 0))

/* Another process, which the trace does not have, posts. */
static struct shared {
    sem_t sem;
    int go[2];
} * shared;
static pid_t child;

static void sem_of_processes(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(shared != MAP_FAILED && pipe(shared->go) == 0);
    sem = &shared->sem;
    EXPECT(sem_init(sem, 1, 0) == 0);
    child = fork();
    if (child == 0) {
        char byte;
        RAW(SYS_read, shared->go[0], &byte, 1);
        _exit(sem_post(sem));
    }
}

DO(tell_child, RAW(SYS_write, shared->go[1], "x", 1))

static void child_ends(void)
{
    int status = -1;
    EXPECT(RAW(SYS_wait4, child, &status, 0, 0) == child && status == 0);
}

/* Barriers ------------------------------------------------------------------------------------- */

static pthread_barrier_t barrier;

DO(barrier_of_four, EXPECT(pthread_barrier_init(&barrier, NULL, 4) == 0))

static int serial; /* which of them learns it is chance */

static long barrier_wait(void)
{
    int r = pthread_barrier_wait(&barrier);
    if (r == PTHREAD_BARRIER_SERIAL_THREAD)
        serial++;
    return r == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : r;
}

DO(barrier_last, EXPECT(barrier_wait() == 0))

static void barrier_over(void)
{
    EXPECT(serial == row->rounds);
    serial = 0;
    EXPECT(pthread_barrier_destroy(&barrier) == 0);
}

static long barrier_of_one(void)
{
    pthread_barrier_t one;
    EXPECT(pthread_barrier_init(&one, NULL, 1) == 0);
    for (int i = 0; i < 1000; i++)
        EXPECT(pthread_barrier_wait(&one) == PTHREAD_BARRIER_SERIAL_THREAD);
    return 0;
}

/* Once ----------------------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static once_flag flag = ONCE_FLAG_INIT;
static void (*routine)(void);
static int calls;

static void run_routine(void)
{
    calls++;
    routine();
}

static void in_once(void (*body)(void))
{
    routine = body;
    EXPECT(pthread_once(&once, run_routine) == 0);
}

static void in_call_once(void (*body)(void))
{
    routine = body;
    call_once(&flag, run_routine);
}

static long once_wait(void)
{
    pthread_once(&once, run_routine);
    return calls;
}

static long call_once_wait(void)
{
    call_once(&flag, run_routine);
    return calls;
}

DO(reset_calls, calls = 0)

static void nothing(void)
{
}

static long once_free(void)
{
    for (int i = 0; i < 1000; i++) {
        pthread_once_t o = PTHREAD_ONCE_INIT;
        once_flag f = ONCE_FLAG_INIT;
        EXPECT(pthread_once(&o, nothing) == 0 && pthread_once(&o, nothing) == 0);
        call_once(&f, nothing);
        call_once(&f, nothing);
    }
    return 0;
}

/* C11 ------------------------------------------------------------------------------------------ */

static mtx_t mtx;
static cnd_t cnd;
static int ready;

static void mtx_new(void)
{
    EXPECT(mtx_init(&mtx, mtx_timed) == thrd_success && cnd_init(&cnd) == thrd_success);
    ready = 0;
}

static void mtx_hold(void)
{
    mtx_new();
    EXPECT(mtx_lock(&mtx) == thrd_success);
}

DO(mtx_give, EXPECT(mtx_unlock(&mtx) == thrd_success))
CALL(mtx_lock_once, mtx_lock(&mtx))

static long mtx_timedlock_once(void)
{
    struct timespec late = after(CLOCK_REALTIME, 10000 * MS);
    return mtx_timedlock(&mtx, &late);
}

static long mtx_timedlock_timeout(void)
{
    struct timespec soon = after(CLOCK_REALTIME, TIMEOUT);
    return mtx_timedlock(&mtx, &soon) == thrd_timedout;
}

static long mtx_free(void)
{
    mtx_t m;
    struct timespec past = after(CLOCK_REALTIME, 0);
    EXPECT(mtx_init(&m, mtx_timed) == thrd_success);
    for (int i = 0; i < 1000; i++) {
        EXPECT(mtx_lock(&m) == thrd_success && mtx_trylock(&m) == thrd_busy);
        EXPECT(mtx_unlock(&m) == thrd_success && mtx_trylock(&m) == thrd_success);
        EXPECT(mtx_unlock(&m) == thrd_success && mtx_timedlock(&m, &past) == thrd_success);
        EXPECT(mtx_unlock(&m) == thrd_success);
    }
    return 0;
}

static long cnd_wait_once(void)
{
    mtx_lock(&mtx);
    starting();
    while (!ready)
        EXPECT(cnd_wait(&cnd, &mtx) == thrd_success);
    return 0;
}

static long cnd_timedwait_once(void)
{
    struct timespec late = after(CLOCK_REALTIME, 10000 * MS);
    mtx_lock(&mtx);
    starting();
    while (!ready)
        EXPECT(cnd_timedwait(&cnd, &mtx, &late) == thrd_success);
    return 0;
}

static long cnd_timedwait_timeout(void)
{
    mtx_lock(&mtx);
    starting();
    struct timespec soon = after(CLOCK_REALTIME, TIMEOUT);
    while (!ready)
        if (cnd_timedwait(&cnd, &mtx, &soon) == thrd_timedout)
            return 1;
    return 0;
}

static void cnd_signal_one(void)
{
    mtx_lock(&mtx);
    ready = 1;
    mtx_unlock(&mtx);
    EXPECT(cnd_signal(&cnd) == thrd_success);
}

static void cnd_broadcast_all(void)
{
    mtx_lock(&mtx);
    ready = 1;
    mtx_unlock(&mtx);
    EXPECT(cnd_broadcast(&cnd) == thrd_success);
}

static thrd_t thrd;
static _Atomic int thrd_tid, thrd_go;

static int ends_when_told(void *arg)
{
    (void)arg;
    thrd_tid = tid();
    while (!thrd_go)
        ;
    return 42;
}

static void thrd_new(void)
{
    thrd_tid = thrd_go = 0;
    EXPECT(thrd_create(&thrd, ends_when_told, NULL) == thrd_success);
    while (!thrd_tid)
        ;
}

static long thrd_join_once(void)
{
    int result = 0;
    EXPECT(thrd_join(thrd, &result) == thrd_success);
    return result;
}

static void thrd_end(void)
{
    parties[0].waker = thrd_tid;
    thrd_go = 1;
}

/* Spin locks ----------------------------------------------------------------------------------- */

static pthread_spinlock_t spin;

DO(spin_hold, EXPECT(pthread_spin_init(&spin, 0) == 0 && pthread_spin_lock(&spin) == 0))
DO(spin_give, EXPECT(pthread_spin_unlock(&spin) == 0))
CALL(spin_wait, pthread_spin_lock(&spin))

static long spin_free(void)
{
    pthread_spinlock_t lock;
    EXPECT(pthread_spin_init(&lock, 0) == 0);
    for (int i = 0; i < 1000; i++) {
        EXPECT(pthread_spin_lock(&lock) == 0 && pthread_spin_trylock(&lock) == EBUSY);
        EXPECT(pthread_spin_unlock(&lock) == 0 && pthread_spin_trylock(&lock) == 0);
        EXPECT(pthread_spin_unlock(&lock) == 0);
    }
    return 0;
}

/* Futexes through syscall(2) ------------------------------------------------------------------- */

static int word, other;

static long futex(int *addr, int op, int value, void *timeout, int *addr2, int value3)
{
    return syscall(SYS_futex, addr, op, value, timeout, addr2, value3);
}

DO(futex_clear, word = other = 0)
CALL(futex_wait, futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0))
CALL(futex_wait_shared, futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0))

static long futex_wait_timeout(void)
{
    struct timespec rel = {0, TIMEOUT};
    return futex(&word, FUTEX_WAIT_PRIVATE, 0, &rel, NULL, 0);
}

CALL(futex_wait_bitset, futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 4))

static long futex_wait_bitset_timeout(void)
{
    struct timespec soon = after(CLOCK_MONOTONIC, TIMEOUT);
    return futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &soon, NULL, 4);
}

/* The first thread waits at the one word, the second at the other. */
CALL(futex_wait_at_two, futex(self->index ? &other : &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0))
DO(futex_wake, EXPECT(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1))
DO(futex_wake_all, EXPECT(futex(&word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0) == 3))
DO(futex_wake_shared, EXPECT(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0) == 1))

/* The first wake-up means others. */
static void futex_wake_bitset(void)
{
    EXPECT(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 8) == 0);
    busy(HOLD / 2);
    parties[0].woken = now();
    EXPECT(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 12) == 1);
}

/* Sets the other word to 1 and wakes there as well when it was 0. */
static void futex_wake_op(void)
{
    long max2 = 1;
    int op = FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0);
    EXPECT(futex(&word, FUTEX_WAKE_OP_PRIVATE, 1, (void *)max2, &other, op) == 2);
    EXPECT(other == 1);
}

/* The comparison fails: it wakes at the first word only. */
static void futex_wake_op_half(void)
{
    long max2 = 1;
    int op = FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 7);
    EXPECT(futex(&word, FUTEX_WAKE_OP_PRIVATE, 1, (void *)max2, &other, op) == 1);
    busy(HOLD / 2);
    parties[1].woken = now();
    EXPECT(futex(&other, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
}

static void wake_at_other(int threads)
{
    busy(HOLD / 2);
    for (int i = 0; i < threads; i++)
        parties[row->threads ? row->threads - 1 - i : 0].woken = now();
    EXPECT(futex(&other, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0) == threads);
}

static void futex_requeue(void)
{
    long move = INT_MAX;
    EXPECT(futex(&word, FUTEX_REQUEUE_PRIVATE, 0, (void *)move, &other, 0) == 1);
    wake_at_other(1);
}

/* Wakes the oldest and moves the rest. */
static void futex_cmp_requeue(void)
{
    long move = INT_MAX;
    EXPECT(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)move, &other, 7) == -1);
    EXPECT(errno == EAGAIN);
    EXPECT(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)move, &other, 0) == 3);
    wake_at_other(2);
}

static void futex_pi_hold(void)
{
    futex_clear();
    EXPECT(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
}

CALL(futex_pi_wait, futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0))
DO(futex_pi_give, EXPECT(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0))

/* Linux 6.7: one system call each. Words of 32 bits, for one process. */
enum { WORDS = 2 | FUTEX_PRIVATE_FLAG };

static void futex2_clear(void)
{
    futex_clear();
    if (syscall(SYS_futex_wake, &word, 1L, 0, WORDS) < 0)
        skipped = "the kernel has no futex_wake";
}

CALL(futex2_wait, syscall(SYS_futex_wait, &word, 0L, 4L, WORDS, NULL, CLOCK_MONOTONIC))

static long futex2_wait_timeout(void)
{
    struct timespec soon = after(CLOCK_MONOTONIC, TIMEOUT);
    return syscall(SYS_futex_wait, &word, 0L, 4L, WORDS, &soon, CLOCK_MONOTONIC);
}

/* The first wake-up means no waiter, the second one others. */
static void futex2_wake(void)
{
    EXPECT(syscall(SYS_futex_wake, &word, 4L, 0, WORDS) == 0);
    EXPECT(syscall(SYS_futex_wake, &word, 8L, 1, WORDS) == 0);
    busy(HOLD / 2);
    parties[0].woken = now();
    EXPECT(syscall(SYS_futex_wake, &word, 12L, 1, WORDS) == 1);
}

/* As <linux/futex.h> has it since Linux 5.16. */
struct waited_futex {
    uint64_t value, address;
    uint32_t flags, reserved;
};
#define TWO                                \
    {                                      \
        {0, (uintptr_t)&word, WORDS, 0},   \
        {                                  \
            0, (uintptr_t)&other, WORDS, 0 \
        }                                  \
    }

static void futex2_requeue(void)
{
    struct waited_futex two[] = TWO;
    EXPECT(syscall(SYS_futex_requeue, two, 0, 1, INT_MAX) == 3);
    wake_at_other(2);
}

static long futex_waitv(void)
{
    struct waited_futex two[] = TWO;
    return syscall(SYS_futex_waitv, two, 2, 0, NULL, CLOCK_MONOTONIC) == 1 ? 0 : -1;
}

static long futex_waitv_timeout(void)
{
    struct waited_futex two[] = TWO;
    struct timespec soon = after(CLOCK_MONOTONIC, TIMEOUT);
    return syscall(SYS_futex_waitv, two, 2, 0, &soon, CLOCK_MONOTONIC);
}

static void futex_waitv_clear(void)
{
    futex_clear();
    if (syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) < 0 && errno == ENOSYS)
        skipped = "the kernel has no futex_waitv";
}

DO(futex_wake_other, EXPECT(futex(&other, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1))
DO(futex_wake_both, EXPECT(futex(&other, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0) == 2))

static long futex_free(void)
{
    int w = 1, w2 = 0;
    for (int i = 0; i < 1000; i++) {
        EXPECT(futex(&w, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == -1 && errno == EAGAIN);
        EXPECT(futex(&w, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0);
        EXPECT(futex(&w2, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
        EXPECT(futex(&w2, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
        EXPECT(syscall(SYS_gettid) == self->tid);
    }
    errno = 0;
    return 0;
}

/* clang-format off: a row is a line */
#define S(...)                       \
    {                                \
        __VA_ARGS__, .class = "sync" \
    }
#define C(...)                       \
    {                                \
        __VA_ARGS__, .class = "cond" \
    }
static const struct row table[] = {
    S("mutex", "pthread_mutex_lock", mutex_hold, mutex_wait, mutex_give, .release = mutex_give),
    S("rdlock", "pthread_rwlock_rdlock", rw_hold_write, rw_rdlock, rw_give, .release = rw_give,
      .threads = 3),
    S("wrlock", "pthread_rwlock_wrlock", rw_hold_write, rw_wrlock, rw_give, .release = rw_give),
    S("wrlock-reader", "pthread_rwlock_wrlock", rw_hold_read, rw_wrlock, rw_give,
      .release = rw_give),
    S("wrlock-two-readers", "pthread_rwlock_wrlock", rw_hold_read_twice, rw_wrlock, rw_give_twice,
      .release = rw_give),
    S("timedrdlock", "pthread_rwlock_timedrdlock", rw_hold_write, rw_timedrdlock, rw_give,
      .release = rw_give),
    S("timedwrlock", "pthread_rwlock_timedwrlock", rw_hold_read, rw_timedwrlock, rw_give,
      .release = rw_give),
    S("clockrdlock", "pthread_rwlock_clockrdlock", rw_hold_write, rw_clockrdlock, rw_give,
      .release = rw_give),
    S("clockwrlock", "pthread_rwlock_clockwrlock", rw_hold_write, rw_clockwrlock, rw_give,
      .release = rw_give),
    S("timedwrlock-timeout", "pthread_rwlock_timedwrlock", rw_hold_read, rw_timedwrlock_timeout,
      .after = rw_give),
    S("clockrdlock-timeout", "pthread_rwlock_clockrdlock", rw_hold_write, rw_clockrdlock_timeout,
      .after = rw_give),
    S("rwlock-free", "", NULL, rw_free, .kind = QUIET),
    S("sem_wait", "sem_wait", sem_empty, sem_wait_once, sem_post_once),
    S("sem_wait-three", "sem_wait", sem_empty, sem_wait_once, sem_post_thrice, .threads = 3),
    S("sem_wait-named", "sem_wait", sem_named, sem_wait_once, sem_post_once),
    S("sem_timedwait-named", "sem_timedwait", sem_named, sem_timedwait_once, sem_post_once),
    S("sem_timedwait", "sem_timedwait", sem_empty, sem_timedwait_once, sem_post_once),
    S("sem_clockwait", "sem_clockwait", sem_empty, sem_clockwait_once, sem_post_once),
    S("sem_timedwait-timeout", "sem_timedwait", sem_empty, sem_timedwait_timeout),
    S("sem_clockwait-timeout", "sem_clockwait", sem_empty, sem_clockwait_timeout),
    S("sem_wait-interrupted", "sem_wait", sem_interruptible, sem_wait_once, interrupt,
      .foreign = 1),
    S("sem_wait-cancelled", "sem_wait", sem_empty, sem_wait_once, cancel, .foreign = 1),
    S("sem_wait-process", "sem_wait", sem_of_processes, sem_wait_once, tell_child,
      .after = child_ends, .foreign = 1, .no_cancel = 1),
    S("sem-free", "", NULL, sem_free, .kind = QUIET),
    S("barrier", "pthread_barrier_wait", barrier_of_four, barrier_wait, barrier_last,
      .after = barrier_over, .threads = 3, .rounds = 1),
    S("barrier-rounds", "pthread_barrier_wait", barrier_of_four, barrier_wait, barrier_last,
      .after = barrier_over, .threads = 3, .rounds = 3),
    S("barrier-free", "", NULL, barrier_of_one, .kind = QUIET),
    S("once", "pthread_once", reset_calls, once_wait, .around = in_once, .threads = 3),
    S("call_once", "call_once", reset_calls, call_once_wait, .around = in_call_once, .threads = 3),
    S("once-free", "", NULL, once_free, .kind = QUIET),
    S("mtx_lock", "mtx_lock", mtx_hold, mtx_lock_once, mtx_give, .release = mtx_give),
    S("mtx_timedlock", "mtx_timedlock", mtx_hold, mtx_timedlock_once, mtx_give,
      .release = mtx_give),
    S("mtx_timedlock-timeout", "mtx_timedlock", mtx_hold, mtx_timedlock_timeout),
    S("mtx-free", "", NULL, mtx_free, .kind = QUIET),
    C("cnd_wait", "cnd_wait", mtx_new, cnd_wait_once, cnd_signal_one, .release = mtx_give),
    C("cnd_wait-all", "cnd_wait", mtx_new, cnd_wait_once, cnd_broadcast_all, .release = mtx_give,
      .threads = 3),
    C("cnd_timedwait", "cnd_timedwait", mtx_new, cnd_timedwait_once, cnd_signal_one,
      .release = mtx_give),
    C("cnd_timedwait-timeout", "cnd_timedwait", mtx_new, cnd_timedwait_timeout,
      .release = mtx_give),
    S("thrd_join", "thrd_join", thrd_new, thrd_join_once, thrd_end),
    S("spin", "pthread_spin_lock", spin_hold, spin_wait, spin_give, .release = spin_give,
      .spins = 1),
    S("spin-free", "", NULL, spin_free, .kind = QUIET),
    S("futex", "futex wait", futex_clear, futex_wait, futex_wake),
    S("futex-all", "futex wait", futex_clear, futex_wait, futex_wake_all, .threads = 3),
    S("futex-shared", "futex wait", futex_clear, futex_wait_shared, futex_wake_shared),
    S("futex-timeout", "futex wait", futex_clear, futex_wait_timeout),
    S("futex-bitset", "futex wait", futex_clear, futex_wait_bitset, futex_wake_bitset),
    S("futex-bitset-timeout", "futex wait", futex_clear, futex_wait_bitset_timeout),
    S("futex-wake_op", "futex wait", futex_clear, futex_wait_at_two, futex_wake_op, .threads = 2),
    S("futex-wake_op-half", "futex wait", futex_clear, futex_wait_at_two, futex_wake_op_half,
      .threads = 2),
    S("futex-requeue", "futex wait", futex_clear, futex_wait, futex_requeue),
    S("futex-cmp_requeue", "futex wait", futex_clear, futex_wait, futex_cmp_requeue, .threads = 3),
    S("futex-pi", "futex lock", futex_pi_hold, futex_pi_wait, futex_pi_give,
      .release = futex_pi_give),
    S("futex2", "futex wait", futex2_clear, futex2_wait, futex2_wake),
    S("futex2-timeout", "futex wait", futex2_clear, futex2_wait_timeout),
    S("futex2-old-wake", "futex wait", futex2_clear, futex2_wait, futex_wake),
    S("futex2-requeue", "futex wait", futex2_clear, futex2_wait, futex2_requeue, .threads = 3),
    S("futex-waitv", "futex waitv", futex_waitv_clear, futex_waitv, futex_wake_other),
    S("futex-waitv-two", "futex waitv", futex_waitv_clear, futex_waitv, futex_wake_both,
      .threads = 2),
    S("futex-waitv-timeout", "futex waitv", futex_waitv_clear, futex_waitv_timeout),
    S("futex-free", "", NULL, futex_free, .kind = QUIET),
    {.name = NULL},
};
/* clang-format on */

int main(int argc, char **argv)
{
    return rows_main(table, argc, argv);
}
