/* See openmp.h. */
#include "openmp.h"

#include "annotate.h"

#include "encoder/base/arena.h"
#include "preload/thread/thread.h"

__thread struct gt_omp_member gt_omp_self;

/*
 * The address where the master's workers are idle; and where the master waits for the end of its
 * team.
 */
static const void *dock_of(const struct gt_omp_team *team)
{
    return team->master;
}

static const void *end_of(const struct gt_omp_team *team)
{
    return &team->over;
}

/* The place of the region in the caller's stack, after the region's function has returned. */
static const void *place_in(const struct gt_omp_team *team)
{
    return team->master == &gt_omp_self ? team->call : (const char *)team->fn + 1;
}

/* Waits ---------------------------------------------------------------------------------------- */

void gt_omp_wait_begin(struct gt_omp_wait *w)
{
    if (w->brief)
        w->slice = gt_slice_begin_in(w->what.hook, GT_SYNC, w->here);
    else
        w->wait = gt_wait_begin_for(&w->what);
    gt_omp_self.wait = w;
}

static void suspend(struct gt_omp_wait *w)
{
    if (w->brief)
        gt_slice_end(&w->slice);
    else
        gt_wait_end(&w->wait);
}

void gt_omp_wait_end(struct gt_omp_wait *w)
{
    if (gt_omp_self.wait != w)
        return;
    suspend(w);
    gt_omp_self.wait = NULL;
}

/* The calling worker's record of its wait for a region's end, and of its idleness after that. NULL:
 * the thread records nothing. */
static struct gt_omp_wait *workers_wait(void)
{
    static struct gt_arena arena;
    struct gt_thread *t = gt_self;
    if (!t || t == &gt_nobody)
        return NULL;
    if (!t->omp_wait)
        t->omp_wait = gt_arena_alloc(&arena, sizeof *t->omp_wait);
    return t->omp_wait;
}

void gt_omp_worker_goes_on(void)
{
    struct gt_omp_wait *w = workers_wait();
    if (w)
        gt_omp_wait_end(w);
}

static void be_idle(const struct gt_omp_team *team)
{
    struct gt_omp_wait *w = workers_wait();
    if (!w)
        return;
    w->what = (struct gt_wait_for){.hook = GT_OMP_IDLE,
                                   .reason = GT_REASON_SYNC,
                                   .addr = dock_of(team),
                                   .whole = true,
                                   .from = GT_NOWHERE};
    gt_omp_wait_begin(w);
}

/* Barriers ------------------------------------------------------------------------------------- */

static void wake(enum gt_hook hook, const void *addr, const void *from)
{
    if (gt_registry_any(addr))
        gt_wake_slow(
            &(struct gt_wake){.hook = hook, .addr = addr, .max = UINT32_MAX, .from = from});
}

/* Whether the caller's last step completes the barrier under way. true for one caller only. */
static bool completes(struct gt_omp_team *team)
{
    uint32_t all = atomic_load(&team->threads);
    return atomic_load(&team->tasks) == 0 &&
           atomic_compare_exchange_strong(&team->arrived, &all, 0);
}

/* Ends the waits at a complete barrier. A thread that registers later sees `over`. */
static void complete(struct gt_omp_team *team, enum gt_hook hook, const void *from)
{
    if (!atomic_load(&team->ending)) {
        wake(hook, team, from);
        return;
    }
    atomic_store(&team->over, true);
    gt_wake_pass(&(struct gt_wake){.hook = hook, .addr = team, .from = from}, GT_OMP_IDLE,
                 dock_of(team));
    wake(hook, end_of(team), from);
}

static bool is_alone(const struct gt_omp_team *team)
{
    return !team || atomic_load_explicit(&team->threads, memory_order_relaxed) < 2;
}

/* The caller arrives at a barrier. Returns whether it waits there. */
static bool arrive(struct gt_omp_team *team, enum gt_hook hook, const void *from)
{
    atomic_fetch_add(&team->arrived, 1);
    bool last = completes(team);
    if (last)
        complete(team, hook, from);
    return !last;
}

void gt_omp_barrier(enum gt_hook hook, const void *call, struct gt_omp_wait *w)
{
    struct gt_omp_team *team = gt_omp_self.team;
    if (is_alone(team) || !arrive(team, hook, call))
        return;
    w->what = (struct gt_wait_for){.hook = hook,
                                   .reason = GT_REASON_SYNC,
                                   .addr = team,
                                   .final = true,
                                   .whole = true,
                                   .from = call};
    gt_omp_wait_begin(w);
}

/* Teams ---------------------------------------------------------------------------------------- */

void gt_omp_team_begin(struct gt_omp_team *team)
{
    team->master = &gt_omp_self;
    if (!gt_omp_self.team)
        team->region = gt_region_begin(0, "omp parallel");
    wake((enum gt_hook)team->hook, dock_of(team), team->call);
}

void gt_omp_team_end(struct gt_omp_team *team)
{
    if (!is_alone(team) && !atomic_load(&team->over)) { /* the library left out some barriers */
        atomic_store(&team->ending, true);
        complete(team, (enum gt_hook)team->hook, team->call);
    }
    if (team->region)
        gt_region_end(team->region);
}

void gt_omp_share_begin(struct gt_omp_team *team, uint32_t threads)
{
    if (team->master != &gt_omp_self)
        gt_omp_worker_goes_on();
    atomic_store(&team->threads, threads);
    gt_omp_self.team = team;
}

static void worker_waits(struct gt_omp_team *team)
{
    struct gt_omp_wait *w = workers_wait();
    if (!w)
        return;
    w->what = (struct gt_wait_for){.hook = team->hook,
                                   .reason = GT_REASON_SYNC,
                                   .addr = team,
                                   .whole = true,
                                   .from = place_in(team)};
    gt_omp_wait_begin(w);
    if (atomic_load(&team->over)) {
        gt_omp_wait_end(w);
        be_idle(team);
    }
}

void gt_omp_share_end(struct gt_omp_team *team, struct gt_omp_wait *wait)
{
    bool worker = team->master != &gt_omp_self;
    atomic_store(&team->ending, true);
    bool waits = !is_alone(team) && arrive(team, (enum gt_hook)team->hook, place_in(team));
    if (worker && waits) {
        worker_waits(team);
    } else if (worker) {
        be_idle(team);
    } else if (waits) {
        wait->what = (struct gt_wait_for){.hook = team->hook,
                                          .reason = GT_REASON_SYNC,
                                          .addr = end_of(team),
                                          .final = true,
                                          .whole = true,
                                          .from = team->call};
        gt_omp_wait_begin(wait);
    }
}

/* Tasks ---------------------------------------------------------------------------------------- */

void gt_omp_task_made(void)
{
    if (gt_omp_self.team)
        atomic_fetch_add(&gt_omp_self.team->tasks, 1);
}

struct gt_omp_wait *gt_omp_task_begin(bool made)
{
    struct gt_omp_wait *w = gt_omp_self.wait;
    if (!made)
        gt_omp_task_made();
    if (w)
        suspend(w);
    gt_omp_self.wait = NULL;
    return w;
}

void gt_omp_task_end(struct gt_omp_wait *interrupted)
{
    struct gt_omp_team *team = gt_omp_self.team;
    if (team && atomic_fetch_sub(&team->tasks, 1) == 1 && completes(team))
        complete(team, GT_OMP_GOMP_task, NULL);
    if (!interrupted)
        return;
    interrupted->brief = interrupted->here.frame;
    gt_omp_wait_begin(interrupted);
}
