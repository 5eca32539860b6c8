/*
 * OpenMP of gcc. libgomp makes its futex calls itself, so no hook sees them: all we see of it are
 * the program's calls of libgomp.
 */
#include "openmp.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/sparse.h"
#include "preload/bind/foreign.h"
#include "preload/bind/real.h"
#include "preload/thread/thread.h"

/* The real functions, for each caller: see foreign.h. */
struct functions {
#define GT_OMP(how, result, name, parameters, arguments) result(*name) parameters;
#define GT_OMP_ASKED(result, name, parameters) result(*name) parameters;
#define GT_OMP_LEAF(id, text)
#include "preload/tables/openmp.def"
    void (*__kmpc_fork_call)(void); /* the mark of LLVM's library, which has these functions, too */
};

#define REAL() ((const struct functions *)gt_foreign_of(&gt_gomp, GT_CALLER()))

/* Whether we must follow the library's calls: LLVM's reports what it does. */
static bool is_followed(const struct functions *real)
{
    return gt_recording() && !real->__kmpc_fork_call;
}

#define WAIT(name) \
    __attribute__((cleanup(gt_omp_wait_end))) struct gt_omp_wait name = {.here = GT_HERE()}

/* Parallel regions ----------------------------------------------------------------------------- */

/* The real function gets this as the data of the region. */
struct region {
    uintptr_t first; /* first word of the program's data: libgomp reads it for reductions */
    void (*fn)(void *);
    void *data;
    const struct functions *real;
    struct gt_omp_wait *end; /* the master's */
    struct gt_omp_team team;
};

static void run_share(void *arg)
{
    struct region *r = arg;
    struct gt_omp_team *outer = gt_omp_self.team;
    gt_omp_share_begin(&r->team, (uint32_t)r->real->omp_get_num_threads());
    r->fn(r->data);
    gt_omp_share_end(&r->team, r->end);
    gt_omp_self.team = outer;
}

static struct region begin_region(const struct functions *real, enum gt_hook hook,
                                  void (*fn)(void *), void *data, const void *call)
{
    return (struct region){
        .first = hook == GT_OMP_GOMP_parallel_reductions ? *(uintptr_t *)data : 0,
        .fn = fn,
        .data = data,
        .real = real,
        .team = {.hook = hook, .call = call, .fn = (const void *)fn},
    };
}

static void end_region(struct region *r)
{
    gt_omp_wait_end(r->end);
    gt_omp_team_end(&r->team);
}

#define PARALLEL(result, name, parameters, arguments)                 \
    GT_EXPORT result name parameters                                  \
    {                                                                 \
        const struct functions *real = REAL();                        \
        if (!is_followed(real))                                       \
            return real->name arguments;                              \
        struct gt_omp_wait wait = {.here = GT_HERE()};                \
        __attribute__((cleanup(end_region))) struct region region =   \
            begin_region(real, GT_OMP_##name, fn, data, GT_CALLER()); \
        region.end = &wait;                                           \
        gt_omp_team_begin(&region.team);                              \
        fn = run_share;                                               \
        data = &region;                                               \
        return real->name arguments;                                  \
    }

/* Barriers, and waits that are over when nobody else does anything -------------------------------
 */

#define BARRIER(result, name, parameters, arguments)           \
    GT_EXPORT result name parameters                           \
    {                                                          \
        const struct functions *real = REAL();                 \
        WAIT(wait);                                            \
        if (is_followed(real))                                 \
            gt_omp_barrier(GT_OMP_##name, GT_CALLER(), &wait); \
        return real->name arguments;                           \
    }

/* A function that waits, runs tasks, or returns at once. */
#define PERHAPS(result, name, parameters, arguments) \
    GT_EXPORT result name parameters                 \
    {                                                \
        const struct functions *real = REAL();       \
        WAIT(wait);                                  \
        if (is_followed(real))                       \
            perhaps(GT_OMP_##name, &wait);           \
        return real->name arguments;                 \
    }

static void perhaps(enum gt_hook hook, struct gt_omp_wait *wait)
{
    wait->what.hook = hook;
    wait->brief = true;
    gt_omp_wait_begin(wait);
}

/* Tasks ---------------------------------------------------------------------------------------- */

/*
 * The library calls one of these entries in place of the program's function; the entry's position
 * in the table says which function that is. (The library copies the data and looks into it, so the
 * data stay as they are.) For a loop, the number of tasks that it makes is not known.
 */
enum { TASKS = 256, OF_LOOP = 1 };
static _Atomic uintptr_t tasks[TASKS] GT_SPARSE; /* twice the function's address, plus OF_LOOP */

extern char gt_omp_tasks[] __attribute__((visibility("hidden")));
GT_ARCH_NUMBERED_ENTRIES(gt_omp_tasks, gt_omp_run_task, 256);

__attribute__((used, visibility("hidden"))) void gt_omp_run_task(void *data, unsigned number)
{
    uintptr_t task = atomic_load_explicit(&tasks[number], memory_order_relaxed);
    struct gt_omp_wait *interrupted = gt_omp_task_begin(!(task & OF_LOOP));
    ((void (*)(void *))(task / 2))(data);
    gt_omp_task_end(interrupted);
}

/*
 * The entry for the library in place of the program's function fn; fn itself if the table is full.
 */
static void (*entry_of(void (*fn)(void *), uintptr_t kind))(void *)
{
    uintptr_t task = (uintptr_t)fn * 2 + kind, hash = task * 0x9e3779b97f4a7c15u >> 32;
    for (uint32_t i = 0; i < TASKS; i++) {
        uint32_t at = (uint32_t)(hash + i) % TASKS;
        uintptr_t there = atomic_load_explicit(&tasks[at], memory_order_relaxed);
        if (!there && atomic_compare_exchange_strong(&tasks[at], &there, task))
            there = task;
        if (there == task)
            return (void (*)(void *))(gt_omp_tasks + at * GT_ARCH_ENTRY_BYTES);
    }
    return fn;
}

/* A task that is not deferred is run, or waited for, before this returns. */
GT_EXPORT void GOMP_task(void (*fn)(void *), void *data, void (*copy)(void *, void *), long size,
                         long align, bool deferred, unsigned flags, void **depend, int priority,
                         void *detach)
{
    const struct functions *real = REAL();
    WAIT(wait);
    if (is_followed(real)) {
        void (*entry)(void *) = entry_of(fn, 0);
        if (entry != fn)
            gt_omp_task_made();
        if (!deferred)
            perhaps(GT_OMP_GOMP_task, &wait);
        fn = entry;
    }
    real->GOMP_task(fn, data, copy, size, align, deferred, flags, depend, priority, detach);
}

#define TASKLOOP(result, name, parameters, arguments) \
    GT_EXPORT result name parameters                  \
    {                                                 \
        const struct functions *real = REAL();        \
        WAIT(wait);                                   \
        if (is_followed(real)) {                      \
            fn = entry_of(fn, OF_LOOP);               \
            perhaps(GT_OMP_##name, &wait);            \
        }                                             \
        real->name arguments;                         \
    }

/* Locks ---------------------------------------------------------------------------------------- */

/* The library's two global locks. This struct says which thread holds one and how many want it. */
struct turn {
    uint32_t holder;         /* the kernel's id of the holder: GT_LOCK_PI */
    _Atomic uint32_t number; /* of threads that hold it or want it */
};
static struct turn critical, atomic;

static void take(struct turn *turn, enum gt_hook hook, void (*real)(void))
{
    struct gt_timeout never = gt_timeout_none();
    if (atomic_fetch_add_explicit(&turn->number, 1, memory_order_relaxed) == 0) {
        real();
    } else {
        GT_WAIT(wait) = gt_wait_begin_lock(hook, GT_LOCK_PI, &turn->holder, &never);
        real();
    }
    turn->holder = gt_self ? gt_self->w.m : 0;
}

static void give_up(struct turn *turn, enum gt_hook hook, void (*real)(void))
{
    turn->holder = 0;
    if (atomic_fetch_sub_explicit(&turn->number, 1, memory_order_relaxed) != 1)
        gt_wake_one(hook, &turn->holder);
    real();
}

#define TURN(turn, start, end)                      \
    GT_EXPORT void start(void)                      \
    {                                               \
        const struct functions *real = REAL();      \
        take(&(turn), GT_OMP_##start, real->start); \
    }                                               \
    GT_EXPORT void end(void)                        \
    {                                               \
        const struct functions *real = REAL();      \
        give_up(&(turn), GT_OMP_##end, real->end);  \
    }

TURN(critical, GOMP_critical_start, GOMP_critical_end)
TURN(atomic, GOMP_atomic_start, GOMP_atomic_end)

/* As in sync_mutex.c: a thread that gets the lock at once does not wait. */
#define LOCK(set, test, last, unset)                                                   \
    GT_EXPORT void set(void *lock)                                                     \
    {                                                                                  \
        const struct functions *real = REAL();                                         \
        if (!is_followed(real)) {                                                      \
            real->set(lock);                                                           \
            return;                                                                    \
        }                                                                              \
        if (real->test(lock))                                                          \
            return;                                                                    \
        struct gt_timeout never = gt_timeout_none();                                   \
        GT_WAIT(wait) = gt_wait_begin_lock(GT_OMP_##set, GT_LOCK_OTHER, lock, &never); \
        real->set(lock);                                                               \
    }                                                                                  \
    GT_EXPORT void unset(void *lock)                                                   \
    {                                                                                  \
        const struct functions *real = REAL();                                         \
        if (gt_registry_any(lock) && (last))                                           \
            gt_wake_one(GT_OMP_##unset, lock);                                         \
        real->unset(lock);                                                             \
    }

/* libgomp's omp_nest_lock_t: the lock, how often its owner has locked it, the owner. */
static bool held_once(const void *lock)
{
    return ((const int *)lock)[1] == 1;
}

LOCK(omp_set_lock, omp_test_lock, true, omp_unset_lock)
LOCK(omp_set_lock_, omp_test_lock_, true, omp_unset_lock_)
LOCK(omp_set_nest_lock, omp_test_nest_lock, held_once(lock), omp_unset_nest_lock)
/* In Fortran the lock is behind a pointer. */
LOCK(omp_set_nest_lock_, omp_test_nest_lock_, held_once(*(void **)lock), omp_unset_nest_lock_)

/* The program's word for a named critical section is a gomp_mutex_t, as omp_lock_t is. */
GT_EXPORT void GOMP_critical_name_start(void **lock)
{
    const struct functions *real = REAL();
    if (!is_followed(real)) {
        real->GOMP_critical_name_start(lock);
        return;
    }
    if (real->omp_test_lock(lock))
        return;
    struct gt_timeout never = gt_timeout_none();
    GT_WAIT(wait) =
        gt_wait_begin_lock(GT_OMP_GOMP_critical_name_start, GT_LOCK_OTHER, lock, &never);
    real->GOMP_critical_name_start(lock);
}

GT_EXPORT void GOMP_critical_name_end(void **lock)
{
    const struct functions *real = REAL();
    gt_wake_one(GT_OMP_GOMP_critical_name_end, lock);
    real->GOMP_critical_name_end(lock);
}

/* The rest ------------------------------------------------------------------------------------- */

#define BY_HAND(result, name, parameters, arguments)
#define GT_OMP(how, result, name, parameters, arguments) how(result, name, parameters, arguments)
#define GT_OMP_ASKED(result, name, parameters)
#define GT_OMP_LEAF(id, text)
#include "preload/tables/openmp.def"
#include "preload/shared/lock_kind.h"
