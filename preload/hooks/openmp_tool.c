/*
 * OpenMP of LLVM, and of other libraries with OMPT. The library reports to a tool what its threads
 * do, if the program has not brought a tool of its own. The threads themselves make the callbacks,
 * which come in pairs. `code` is where the program called the library, if it did.
 */
#include "ompt.h"
#include "openmp.h"

#include "encoder/base/arena.h"
#include "encoder/base/freelist.h"
#include "encoder/base/sparse.h"
#include "preload/bind/real.h"
#include "preload/life/process_start.h"
#include "preload/process/process_state.h"
#include "preload/shared/lock_kind.h"
#include "preload/thread/thread.h"

static struct {
    struct gt_arena arena;
    struct gt_freelist teams, waits;
} memory;

struct team {
    struct gt_free free;
    struct gt_omp_team team;
    struct gt_omp_wait end; /* the master's */
};

struct wait {
    struct gt_free free;
    struct gt_omp_wait wait;
};

static void *take(struct gt_freelist *list, size_t size)
{
    void *item = gt_freelist_pop(list);
    return item ? item : gt_arena_alloc(&memory.arena, size);
}

/* Regions -------------------------------------------------------------------------------------- */

static void parallel_begin(ompt_data_t *task, const void *frame, ompt_data_t *region,
                           unsigned threads, int flags, const void *code)
{
    (void)task, (void)frame, (void)threads, (void)flags;
    struct team *t = gt_recording() ? take(&memory.teams, sizeof *t) : NULL;
    region->ptr = t;
    if (!t)
        return;
    /* The library does not report what the threads run; `code` is in the same source line. */
    t->team =
        (struct gt_omp_team){.hook = GT_OMP_PARALLEL, .call = code, .fn = (const char *)code - 1};
    t->end = (struct gt_omp_wait){.what.whole = true};
    gt_omp_team_begin(&t->team);
}

static void parallel_end(ompt_data_t *region, ompt_data_t *task, int flags, const void *code)
{
    (void)task, (void)flags, (void)code;
    struct team *t = region->ptr;
    if (!t)
        return;
    gt_omp_wait_end(&t->end);
    gt_omp_team_end(&t->team);
    gt_freelist_push(&memory.teams, &t->free);
}

/*
 * task->ptr: the team that the thread had before. A worker's share ends when it begins the next
 * one.
 */
static void implicit_task(int endpoint, ompt_data_t *region, ompt_data_t *task, unsigned threads,
                          unsigned number, int flags)
{
    (void)number;
    if (flags & ompt_task_initial)
        return;
    if (endpoint == ompt_scope_begin) {
        struct team *t = region ? region->ptr : NULL;
        task->ptr = gt_omp_self.team;
        gt_omp_self.team = NULL;
        if (t)
            gt_omp_share_begin(&t->team, threads);
    } else if (endpoint == ompt_scope_end) {
        gt_omp_self.team = task->ptr;
    }
}

static void thread_end(ompt_data_t *thread)
{
    (void)thread;
    gt_omp_worker_goes_on();
}

/* Waits ---------------------------------------------------------------------------------------- */

static struct gt_omp_wait *new_wait(enum gt_hook hook, const void *addr, const void *code)
{
    struct wait *w = take(&memory.waits, sizeof *w);
    if (!w)
        return NULL;
    w->wait = (struct gt_omp_wait){.what = {.hook = hook,
                                            .reason = GT_REASON_SYNC,
                                            .addr = addr,
                                            .kind = addr ? GT_LOCK_OTHER : GT_LOCK_NONE,
                                            .whole = true,
                                            .from = code}};
    return &w->wait;
}

static void free_wait(struct gt_omp_wait *wait)
{
    struct wait *w = (struct wait *)((char *)wait - offsetof(struct wait, wait));
    gt_freelist_push(&memory.waits, &w->free);
}

/* Ends the thread's innermost wait, and frees it unless it belongs to a region. */
static void end_wait(void)
{
    struct gt_omp_wait *w = gt_omp_self.wait;
    if (!w)
        return;
    gt_omp_wait_end(w);
    bool of_region = w->what.hook == GT_OMP_PARALLEL || w->what.hook == GT_OMP_IDLE;
    if (!of_region)
        free_wait(w);
}

static void begin_barrier(const void *code)
{
    struct gt_omp_wait *w = new_wait(GT_OMP_BARRIER, NULL, code);
    if (!w)
        return;
    gt_omp_barrier(GT_OMP_BARRIER, code, w);
    if (gt_omp_self.wait != w)
        free_wait(w);
}

static void begin_wait(enum gt_hook hook, const void *addr, const void *code)
{
    struct gt_omp_wait *w = new_wait(hook, addr, code);
    if (w)
        gt_omp_wait_begin(w);
}

static void end_share(void)
{
    struct gt_omp_team *team = gt_omp_self.team;
    struct team *t = (struct team *)((char *)team - offsetof(struct team, team));
    if (team && !atomic_load(&team->over))
        gt_omp_share_end(team, &t->end);
}

/*
 * Whether the barrier is the end of a region. LLVM's library before version 15 has one kind for
 * that and for the ends of loops, which are called by the program.
 */
static bool is_end_of_region(int kind, const void *code)
{
    return kind == ompt_sync_region_barrier_implicit_parallel ||
           (kind == ompt_sync_region_barrier_implicit && gt_omp_self.team &&
            (!code || code == gt_omp_self.team->call));
}

static void sync_region_wait(int kind, int endpoint, ompt_data_t *region, ompt_data_t *task,
                             const void *code)
{
    (void)region, (void)task;
    if (endpoint != ompt_scope_begin) {
        end_wait();
        return;
    }
    if (is_end_of_region(kind, code)) {
        end_share();
        return;
    }
    switch (kind) {
    case ompt_sync_region_taskwait: begin_wait(GT_OMP_TASKWAIT, NULL, code); break;
    case ompt_sync_region_taskgroup: begin_wait(GT_OMP_TASKGROUP, NULL, code); break;
    case ompt_sync_region_reduction: begin_wait(GT_OMP_REDUCTION, NULL, code); break;
    default: begin_barrier(code);
    }
}

/* Locks ---------------------------------------------------------------------------------------- */

/*
 * For each hash of a lock: how many threads hold the lock or want it. Only a thread that finds
 * others there may have to wait.
 */
enum { LOCKS = 1024 };
static _Atomic uint32_t takers[LOCKS] GT_SPARSE;

static _Atomic uint32_t *takers_of(uint64_t lock)
{
    return &takers[lock * 0x9e3779b97f4a7c15u >> 54];
}

static bool is_test(int kind)
{
    return kind == ompt_mutex_test_lock || kind == ompt_mutex_test_nest_lock;
}

static enum gt_hook leaf_of(int kind)
{
    switch (kind) {
    case ompt_mutex_critical: return GT_OMP_CRITICAL;
    case ompt_mutex_atomic: return GT_OMP_ATOMIC;
    case ompt_mutex_ordered: return GT_OMP_ORDERED;
    default: return GT_OMP_LOCK;
    }
}

/* The lock that the thread is about to take; 0: none, or the thread only tries to. */
static __thread uint64_t wanted __attribute__((tls_model("initial-exec")));

static void mutex_acquire(int kind, unsigned hint, unsigned how, uint64_t lock, const void *code)
{
    (void)hint, (void)how;
    wanted = is_test(kind) ? 0 : lock;
    if (!wanted)
        return;
    bool free = atomic_fetch_add(takers_of(lock), 1) == 0;
    if (!free || kind == ompt_mutex_ordered)
        begin_wait(leaf_of(kind), (const void *)lock, code);
}

static void end_taking(uint64_t lock)
{
    const struct gt_omp_wait *w = gt_omp_self.wait;
    if (wanted == lock && w && w->what.addr == (const void *)lock)
        end_wait();
    wanted = 0;
}

static void mutex_acquired(int kind, uint64_t lock, const void *code)
{
    (void)code;
    if (is_test(kind))
        atomic_fetch_add(takers_of(lock), 1);
    end_taking(lock);
}

/* A thread takes a nested lock that it holds already. */
static void nest_lock(int endpoint, uint64_t lock, const void *code)
{
    (void)code;
    if (endpoint != ompt_scope_begin || wanted != lock)
        return;
    atomic_fetch_sub(takers_of(lock), 1);
    end_taking(lock);
}

static void mutex_released(int kind, uint64_t lock, const void *code)
{
    (void)kind;
    const void *addr = (const void *)lock;
    atomic_fetch_sub(takers_of(lock), 1);
    if (gt_registry_any(addr))
        gt_wake_slow(
            &(struct gt_wake){.hook = GT_OMP_RELEASE, .addr = addr, .max = 1, .from = code});
}

/* Tasks ---------------------------------------------------------------------------------------- */

static void task_create(ompt_data_t *by, const void *frame, ompt_data_t *task, int flags,
                        int depends, const void *code)
{
    (void)by, (void)frame, (void)depends, (void)code;
    task->ptr = NULL;
    if (flags & ompt_task_explicit)
        gt_omp_task_made();
}

/* A task's ptr: the wait that its thread interrupts for it. */
static void task_schedule(ompt_data_t *prior, int why, ompt_data_t *next)
{
    bool done = why == ompt_task_complete || why == ompt_task_cancel || why == ompt_task_detach;
    if (done)
        gt_omp_task_end(prior->ptr);
    else if (next)
        next->ptr = gt_omp_task_begin(true);
}

/* Beginning ------------------------------------------------------------------------------------ */

static int initialize(void (*(*lookup)(const char *name))(void), int device, ompt_data_t *data)
{
    static const struct {
        int event;
        void (*callback)(void);
    } callbacks[] = {
        {ompt_callback_thread_end, (void (*)(void))thread_end},
        {ompt_callback_parallel_begin, (void (*)(void))parallel_begin},
        {ompt_callback_parallel_end, (void (*)(void))parallel_end},
        {ompt_callback_task_create, (void (*)(void))task_create},
        {ompt_callback_task_schedule, (void (*)(void))task_schedule},
        {ompt_callback_implicit_task, (void (*)(void))implicit_task},
        {ompt_callback_sync_region_wait, (void (*)(void))sync_region_wait},
        {ompt_callback_mutex_released, (void (*)(void))mutex_released},
        {ompt_callback_mutex_acquire, (void (*)(void))mutex_acquire},
        {ompt_callback_mutex_acquired, (void (*)(void))mutex_acquired},
        {ompt_callback_nest_lock, (void (*)(void))nest_lock},
    };
    (void)device, (void)data;
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    for (size_t i = 0; set && i < sizeof callbacks / sizeof *callbacks; i++)
        set(callbacks[i].event, callbacks[i].callback);
    return set != NULL;
}

static void finalize(ompt_data_t *data)
{
    (void)data;
}

/*
 * The library has one tool. Another tool comes first: one found behind us, or one that
 * OMP_TOOL_LIBRARIES names.
 */
GT_EXPORT ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *library)
{
    static ompt_start_tool_result_t ours = {.initialize = initialize, .finalize = finalize};
    const char *named = getenv("OMP_TOOL_LIBRARIES");
    __typeof__(&ompt_start_tool) next = gt_real_next("ompt_start_tool");
    ompt_start_tool_result_t *others = next ? next(version, library) : NULL;
    gt_process_start_early();
    if (others || (named && named[0]) || !gt_process_is_followed())
        return others;
    return &ours;
}
