/* See threads.h. */
#include "threads.h"

#include "account_rows.h"
#include "need.h"
#include "polled.h"

#include <stdlib.h>
#include <string.h>

const char *const gt_kind_names[GT_KINDS] = {"running", "sched", "sync",  "network",
                                             "syscall", "sleep", "other", "unseen"};

/* Kinds as the profiles of `go tool trace` distinguish them. */
static enum gt_kind kind_of_reason(const char *reason)
{
    if (strcmp(reason, "network") == 0)
        return GT_NETWORK;
    if (strcmp(reason, "sleep") == 0)
        return GT_SLEEP;
    if (strcmp(reason, GT_UNSEEN_TEXT) == 0)
        return GT_UNSEEN;
    return strstr(reason, "sync") || strstr(reason, "chan") || strstr(reason, "select") ? GT_SYNC
                                                                                        : GT_OTHER;
}

static enum gt_kind recent_kind_of_reason(struct gt_threads *all, const char *reason)
{
    size_t i = (uintptr_t)reason / 16 % (sizeof all->recent / sizeof *all->recent);
    if (all->recent[i].reason != reason) {
        all->recent[i].reason = reason;
        all->recent[i].kind = kind_of_reason(reason);
    }
    return all->recent[i].kind;
}

/*
 * The kind of a wait that began before the trace: it has a stack, but no reason. A system call
 * that is not a wait is another state.
 */
static enum gt_kind kind_of_call(const char *call)
{
    static const struct {
        enum gt_kind kind;
        const char *begins[10];
    } kinds[] = {
        {GT_SLEEP, {"sleep", "usleep", "nanosleep", "clock_nanosleep", "thrd_sleep"}},
        {GT_SYNC,
         {"pthread_", "sem_", "mtx_", "cnd_", "thrd_join", "call_once", "futex", "GOMP_", "omp"}},
        {GT_NETWORK, {"read", "write", "recv", "send", "connect", "accept", "poll"}},
        {GT_NETWORK, {"ppoll", "select", "pselect", "epoll_"}},
    };
    call += strspn(call, "_");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (const char *const *begins = kinds[i].begins; *begins; begins++) {
            if (strncmp(call, *begins, strlen(*begins)) == 0)
                return kinds[i].kind;
        }
    }
    return GT_OTHER;
}

enum gt_kind gt_kind_of(const struct gt_thread_state *t)
{
    switch (t->state) {
    case GT_G_RUNNABLE: return GT_SCHED;
    case GT_G_RUNNING: return GT_RUNNING;
    case GT_G_SYSCALL: return GT_SYSCALL;
    default: return t->waits_as;
    }
}

struct gt_thread_state *gt_threads_find(const struct gt_threads *all, uint64_t g)
{
    return g ? (void *)(uintptr_t)gt_memo_find(&all->by_g, g) : NULL;
}

static struct gt_thread_state *get(struct gt_threads *all, uint64_t g, uint64_t ns)
{
    struct gt_thread_state *t = gt_threads_find(all, g);
    if (t || !g)
        return t;
    t = gt_need(calloc(1, sizeof *t));
    *t = (struct gt_thread_state){.g = g,
                                  .number = (uint32_t)all->n,
                                  .thread = GT_NO_THREAD,
                                  .name = "",
                                  .routine = g == 1 ? "main" : "", /* our writers number it so */
                                  .reason = "",
                                  .waits_as = GT_OTHER,
                                  .begin = ns,
                                  .since = ns,
                                  .shares = {.until = ns, .runs = true}};
    *(uint64_t *)gt_need(gt_memo_at(&all->by_g, g)) = (uintptr_t)t;
    *all->last = t;
    all->last = &t->next;
    all->n++;
    return t;
}

struct ending { /* members as in struct gt_span */
    const struct gt_thread_state *by;
    const struct gt_callers *waker;
    uint64_t waker_off, p;
    bool ended;
};

/*
 * Whether the thread has slept in its wait, which has lasted until ns: a sleep takes a few us.
 * Calls that are not waits do not count: a long one may have computed.
 */
static bool has_slept(const struct gt_thread_state *t, uint64_t ns)
{
    enum { SLEEP_NS = 4000 };
    return t->state == GT_G_WAITING && ns > t->since + SLEEP_NS;
}

/*
 * What the thread's wait, which ends now, was for. Of some locks the holder is known only when it
 * gives the lock up.
 */
static const struct gt_wanted *wanted_of(struct gt_thread_state *t)
{
    struct gt_wanted *wanted = &t->wanted;
    if (t->state != GT_G_WAITING || !wanted->lock)
        return NULL;
    const struct gt_thread_state *holder =
        wanted->holder || *wanted->who ? NULL : gt_locks_holder_at(wanted->lock, t->since);
    if (holder && holder != t)
        wanted->holder = holder->g;
    return wanted;
}

static void tell_span(struct gt_threads *all, struct gt_thread_state *t, uint64_t ns,
                      struct ending end)
{
    if (t->state == GT_G_NONE)
        return;
    const struct gt_span span = {
        .thread = t,
        .kind = gt_kind_of(t),
        .from = t->since,
        .ns = ns - t->since,
        .began = t->state == GT_G_WAITING ? t->began : t->since,
        .stack = t->stack,
        .by = end.by,
        .waker = end.waker,
        .waker_off = end.waker_off,
        .wanted = wanted_of(t),
        .p = end.p,
        .again = t->state == GT_G_WAITING && t->again,
        .ended = end.ended,
    };
    if (all->keep_history)
        gt_history_add(&t->history, &(struct gt_past){t->since, ns, span.kind, t->stack});
    t->ns[span.kind] += span.ns;
    t->count[span.kind] += span.ended;
    t->slept += has_slept(t, ns);
    /* In some formats a call is followed by a state that lasts no time: not a wait for a CPU. */
    if (!all->span || (span.kind == GT_SCHED && span.ns == 0))
        return;
    bool sleeps = t->state == GT_G_WAITING && t->polls;
    if (!(sleeps || t->polled) || !gt_polled_keeps(all, t, &span, sleeps))
        all->span(all->arg, &span);
}

static void enter(struct gt_threads *all, struct gt_thread_state *t, enum gt_g_state state,
                  uint64_t p, uint64_t ns)
{
    tell_span(all, t, ns, (struct ending){.p = p, .ended = true});
    t->state = state;
    t->since = ns;
}

uint64_t gt_threads_doing(const struct gt_thread_state *t, uint64_t from, uint64_t to,
                          gt_past_fn *fn, void *arg)
{
    uint64_t known = gt_history_between(&t->history, from, to, fn, arg);
    uint64_t since = gt_history_until(&t->history, t->since);
    struct gt_past now = {since > from ? since : from, to, gt_kind_of(t), t->stack};
    if (t->state == GT_G_NONE || now.from >= to)
        return known;
    fn(arg, &now);
    return known + to - now.from;
}

/* Events ------------------------------------------------------------------------------------- */

static bool possible(void *arg, const struct gt_happening *h)
{
    struct gt_threads *all = arg;
    enum gt_g_state state;
    switch (h->type) {
    case GT_EV_GO_START: state = GT_G_RUNNABLE; break;
    case GT_EV_GO_UNBLOCK: state = GT_G_WAITING; break;
    case GT_EV_GO_SYSCALL_END_BLOCKED: /* v1 by Go does not say where the call began */
        if (all->trace->ours && h->on->thread != GT_NO_THREAD)
            return true;
        if (!h->g)
            return gt_memo_find(&all->lent, h->on->p + 1) != (uintptr_t)h->on;
        state = GT_G_SYSCALL;
        break;
    default: return true;
    }
    const struct gt_thread_state *t = gt_threads_find(all, h->g);
    return t && t->state == state &&
           (!h->seq || (h->seq == t->seq + 1 && t->generation == all->trace->generations));
}

static bool is_of_rust(const char *function)
{
    static const char *const crates[] = {"std", "core", "alloc", "__rust"};
    function += strspn(function, "<&");
    for (size_t i = 0; i < sizeof crates / sizeof *crates; i++) {
        size_t n = strlen(crates[i]);
        if (strncmp(function, crates[i], n) == 0 && strchr(":[_", function[n]))
            return true;
    }
    return false;
}

/*
 * Rust begins all threads in one function of its own. The thread's routine is the outermost
 * function of a complete stack that is not of Rust's libraries.
 */
static void look_behind_rust(struct gt_thread_state *t, const struct gt_callers *stack)
{
    uint32_t i = stack->n;
    while (i > 1 && strcmp(stack->frame[i - 1].func, t->routine) != 0)
        i--;
    while (i > 1 && is_of_rust(stack->frame[i - 1].func))
        i--;
    if (i > 1) {
        t->routine = stack->frame[i - 1].func;
        t->begins_in_rust = false;
    }
}

static void begin_at(struct gt_thread_state *t, const struct gt_callers *its)
{
    t->its = its;
    if (!its || !its->n)
        return;
    t->routine = its->frame[0].func;
    t->begins_in_rust = is_of_rust(t->routine) && strstr(t->routine, "::thread_start");
}

static void create(struct gt_threads *all, struct gt_thread_state *t, const struct gt_happening *h,
                   uint64_t ns)
{
    t->maker = gt_threads_find(all, h->on->g);
    t->state = h->type == GT_EV_GO_CREATE ? GT_G_RUNNABLE : GT_G_WAITING;
    t->since = ns;
    t->seq = 0;
    t->generation = all->trace->generations;
    t->stack = h->its;
    begin_at(t, h->its);
}

/* A C thread calls Go: the goroutine that is created is in a call on that thread. */
static void create_in_call(struct gt_threads *all, struct gt_thread_state *t,
                           const struct gt_happening *h, uint64_t ns)
{
    t->state = GT_G_SYSCALL;
    t->since = ns;
    t->seq = 0;
    t->generation = all->trace->generations;
    t->call = h->on;
    h->on->g = t->g;
    if (h->on->thread != GT_NO_THREAD)
        t->thread = h->on->thread;
}

static void note_running(struct gt_threads *all, uint64_t p, const struct gt_thread_state *t,
                         uint64_t ns)
{
    if (all->keep_running && p != GT_NO_P)
        gt_running_note(&all->running, p, t, ns);
}

/* The outermost function of a complete stack that is not libc's; "": not known. */
static const char *routine_of(const struct gt_callers *stack)
{
    static const char *const below[] = {"start_thread", "clone",        "__clone", "__GI___clone",
                                        "_start",       "__libc_start", "libc.so"};
    for (uint32_t i = (uint32_t)stack->n; i-- > 1;) {
        size_t k = 0, n = sizeof below / sizeof *below;
        while (k < n && strncmp(stack->frame[i].func, below[k], strlen(below[k])) != 0)
            k++;
        if (k == n)
            return i + 1 < stack->n ? stack->frame[i].func : "";
    }
    return "";
}

/*
 * A thread waits already at its status. The status does not name its thread, if the thread wrote
 * it itself: then the status of its P comes right before.
 */
static void waits_already(struct gt_thread_state *t, const struct gt_happening *h)
{
    if (h->on->says_p && t->thread == GT_NO_THREAD)
        t->thread = h->on->thread;
    if (*t->reason || !t->stack || !t->stack->n)
        return;
    t->waits_as = kind_of_call(t->stack->frame[0].func);
}

/* A status at the beginning of the trace; or of a generation, where it repeats what is known. */
static void status(struct gt_threads *all, struct gt_thread_state *t, const struct gt_happening *h,
                   uint64_t ns)
{
    t->seq = h->seq;
    t->generation = all->trace->generations;
    bool fresh = t->state == GT_G_NONE;
    if (fresh || h->seq) { /* v1 creates the goroutine before, and numbers the status */
        t->state = h->state;
        t->stack = h->stack;
        t->begin = t->since = t->shares.until = 0; /* the state began before the recording */
        t->shares.runs = false;
    }
    if (h->thread != GT_NO_THREAD)
        t->thread = h->thread;
    if (h->state == GT_G_WAITING && all->trace->ours)
        waits_already(t, h);
    bool away = h->state == GT_G_WAITING || h->state == GT_G_SYSCALL;
    const struct gt_callers *began = all->trace->ours && fresh && !away ? h->stack : NULL;
    if (h->its || began)
        begin_at(t, h->its ? h->its : began);
    else if (all->trace->ours && !*t->routine && t->stack)
        t->routine = routine_of(t->stack);
    if (h->state == GT_G_SYSCALL)
        t->call = h->on;
    if (h->state == GT_G_RUNNING || h->state == GT_G_SYSCALL) {
        h->on->g = t->g;
        note_running(all, h->on->p, t, ns);
    }
}

enum { LOG_NS = 1000 }; /* a wait begins right after the log of what it is for */

/*
 * Whether a thread only reached the end of a v1 page, between the log of what a wait is for and
 * the wait. lost: when it seems to have lost its CPU; 0: it has not.
 */
static bool between_log_and_wait(const struct gt_thread_state *t, uint64_t lost)
{
    return lost && t->wanted.lock && t->wanted_at <= lost && lost <= t->wanted_at + LOG_NS;
}

static void start(struct gt_threads *all, struct gt_thread_state *t, const struct gt_happening *h,
                  uint64_t ns)
{
    enter(all, t, GT_G_RUNNING, h->on->p, ns);
    if (all->keep_running && t->lost && ns > t->lost)
        gt_stretches_add(&t->off, t->lost, ns, NULL);
    if (!between_log_and_wait(t, t->lost))
        t->woke = ns;
    t->lost = 0;
    t->seq += !h->part;
    t->stack = NULL;
    if (h->on->thread != GT_NO_THREAD)
        t->thread = h->on->thread;
    if (h->names)
        t->name = h->text;
    h->on->g = t->g;
    note_running(all, h->on->p, t, ns);
}

/*
 * In Go's own traces a thread in a call has its P until the P stops there or another thread steals
 * it.
 */
static void lend(struct gt_threads *all, uint64_t p, const struct gt_stream *to)
{
    if (!all->trace->ours && p != GT_NO_P)
        *(uint64_t *)gt_need(gt_memo_at(&all->lent, p + 1)) = (uintptr_t)to;
}

/*
 * Whether a sleep is a part of a wait for another thread: libc++ up to version 21 waits at a
 * std::barrier, and up to LLVM 22 for a semaphore with a timeout, by sleeping until it is over.
 */
static bool sleeps_in_wait(const struct gt_callers *stack)
{
    enum { NEAR = 4 };
    bool of_cxx = stack->n > 1 && strncmp(stack->frame[1].func, "std::", 5) == 0;
    for (uint32_t i = 1; of_cxx && i < stack->n && i <= NEAR; i++) {
        if (strstr(stack->frame[i].func, "::__libcpp_timed_backoff_policy"))
            return true;
    }
    return false;
}

/*
 * Whether the wait that begins is a further sleep in the call of the thread's last wait. The log of
 * a lock confirms that, except in formats without logs, whose traces name no locks.
 */
static bool sleeps_on(const struct gt_threads *all, const struct gt_thread_state *t,
                      const struct gt_callers *stack)
{
    return all->trace->ours && t->again && gt_kind_of(t) == GT_SYNC && stack == t->stopped_at &&
           (t->wanted.lock || !all->locks.by_name.used);
}

static void stop(struct gt_threads *all, struct gt_thread_state *t, const struct gt_happening *h,
                 enum gt_g_state state, uint64_t ns)
{
    enter(all, t, state, h->on->p, ns);
    /* After a spurious wake-up a thread waits for the same thing again: it runs for no time. */
    bool again = t->wanted_at < t->woke;
    t->again = again && t->woke == ns;
    t->waits_as = recent_kind_of_reason(all, h->text); /* interned */
    t->polls = t->waits_as == GT_SLEEP && h->stack && sleeps_in_wait(h->stack);
    if (t->polls)
        t->waits_as = GT_SYNC;
    else if (t->polled)
        gt_polled_end(all, t);
    t->reason = h->text;
    bool page_ends = state == GT_G_RUNNABLE && between_log_and_wait(t, ns);
    enum gt_kind kind = gt_kind_of(t);
    bool sleeps = kind == GT_SLEEP; /* also for a lock that it tries for: that is said each time */
    if (again ? t->woke < ns || sleeps : t->wanted_at + LOG_NS < ns || (kind != GT_SYNC && !sleeps))
        t->wanted.lock = page_ends ? t->wanted.lock : NULL;
    if (again) { /* the holder of then has released the lock */
        t->wanted.holder = 0;
        t->wanted.who = "";
    }
    if (state != GT_G_RUNNABLE) { /* the end of a v1 page stops a thread, whose wait goes on */
        t->began = sleeps_on(all, t, h->stack) ? t->began : ns;
        t->stopped_at = h->stack;
    }
    t->stack = h->stack;
    if (t->begins_in_rust && t->stack)
        look_behind_rust(t, t->stack);
    if (state == GT_G_SYSCALL) {
        t->call = h->on;
        lend(all, h->on->p, h->on);
    } else {
        h->on->g = 0;
    }
    bool waits = state != GT_G_RUNNABLE && gt_kind_of(t) != GT_UNSEEN;
    t->lost = waits ? 0 : ns;
    if (!waits && !t->stack)
        t->stack = t->its;
}

static void destroy(struct gt_threads *all, struct gt_thread_state *t, const struct gt_happening *h,
                    uint64_t ns)
{
    enter(all, t, GT_G_NONE, h->on->p, ns);
    gt_polled_end(all, t);
    t->end = ns;
    t->ended = true;
    h->on->g = 0;
}

static void end_call(struct gt_threads *all, struct gt_thread_state *t,
                     const struct gt_happening *h, uint64_t ns)
{
    if (h->type == GT_EV_GO_SYSCALL_END) {
        lend(all, h->on->p, NULL);
        enter(all, t, GT_G_RUNNING, h->on->p, ns);
        t->stack = NULL;
        return;
    }
    enter(all, t, GT_G_RUNNABLE, h->on->p, ns);
    t->seq += h->g != 0; /* v1 numbers it */
    struct gt_stream *on = t->call ? t->call : h->on;
    on->g = on->g == t->g ? 0 : on->g;
}

static void unblock(struct gt_threads *all, struct gt_thread_state *t, const struct gt_happening *h,
                    uint64_t ns)
{
    /* A wait that times out is ended by its own thread, on which no goroutine runs then. */
    const struct gt_thread_state *waker = gt_threads_find(all, h->on->g);
    struct ending end = {
        .by = waker, .waker = waker ? h->stack : NULL, .p = GT_NO_P, .ended = true};
    if (waker)
        end.waker_off = gt_stretches_between(&waker->off, t->since, ns, NULL, NULL);
    tell_span(all, t, ns, end);
    t->state = GT_G_RUNNABLE;
    t->since = ns;
    t->seq++;
}

static void log_of(struct gt_threads *all, struct gt_thread_state *t, const struct gt_happening *h,
                   uint64_t ns)
{
    if (h->task)
        return; /* the program's own */
    const struct gt_lock_state *held;
    if (gt_locks_read_wanted(&all->locks, h->text, h->more, &t->wanted))
        t->wanted_at = ns;
    else if ((held = gt_locks_note_hold(&all->locks, h->text, h->more, t, ns)) && all->hold)
        all->hold(all->arg, held, gt_locks_last_hold(held));
}

/*
 * Notes an event of a P. If a thread starts on a P, its goroutine may be in a call, or not exist
 * yet.
 */
static void tell_p(struct gt_threads *all, const struct gt_happening *h, uint64_t ns)
{
    bool starts = h->type == GT_EV_PROC_START || h->type == GT_EV_PROC_STATUS;
    if (h->type == GT_EV_PROC_STEAL) {
        lend(all, h->arg[0], NULL);
        return;
    }
    if (starts && h->p == GT_NO_P)
        return; /* a thread says that the P is idle */
    if (starts)
        h->on->p = h->p;
    bool in_call = h->type == GT_EV_PROC_STATUS && h->arg[1] == GT_P_SYSCALL;
    lend(all, h->on->p, in_call ? h->on : NULL);
    note_running(all, h->on->p, starts ? gt_threads_find(all, h->on->g) : NULL, ns);
}

static bool is_of_p(enum gt_event_type type)
{
    return type == GT_EV_PROC_START || type == GT_EV_PROC_STATUS || type == GT_EV_PROC_STOP ||
           type == GT_EV_PROC_STEAL;
}

static void change(struct gt_threads *all, struct gt_thread_state *t, const struct gt_happening *h,
                   uint64_t ns)
{
    switch (h->type) {
    case GT_EV_GO_CREATE:
    case GT_EV_GO_CREATE_BLOCKED: create(all, t, h, ns); break;
    case GT_EV_GO_CREATE_SYSCALL: create_in_call(all, t, h, ns); break;
    case GT_EV_GO_STATUS:
    case GT_EV_GO_STATUS_STACK: status(all, t, h, ns); break;
    case GT_EV_GO_START: start(all, t, h, ns); break;
    case GT_EV_GO_DESTROY:
    case GT_EV_GO_DESTROY_SYSCALL: destroy(all, t, h, ns); break;
    case GT_EV_GO_STOP: stop(all, t, h, GT_G_RUNNABLE, ns); break;
    case GT_EV_GO_BLOCK: stop(all, t, h, GT_G_WAITING, ns); break;
    case GT_EV_GO_UNBLOCK: unblock(all, t, h, ns); break;
    case GT_EV_GO_SYSCALL_BEGIN: stop(all, t, h, GT_G_SYSCALL, ns); break;
    case GT_EV_GO_SYSCALL_END:
    case GT_EV_GO_SYSCALL_END_BLOCKED: end_call(all, t, h, ns); break;
    case GT_EV_GO_LABEL: t->name = h->text; break;
    case GT_EV_USER_LOG: log_of(all, t, h, ns); break;
    default: break;
    }
}

static void tell(void *arg, const struct gt_happening *h, uint64_t ns)
{
    struct gt_threads *all = arg;
    if (h->type == GT_EV_PROCS_CHANGE && h->arg[0] > all->machine_cpus)
        all->machine_cpus = h->arg[0];
    if (is_of_p(h->type)) {
        tell_p(all, h, ns);
        h->on->says_p = h->type == GT_EV_PROC_STATUS;
        return;
    }
    bool names = h->type == GT_EV_GO_CREATE || h->type == GT_EV_GO_STATUS ||
                 h->type == GT_EV_GO_STATUS_STACK || h->type == GT_EV_GO_START ||
                 h->type == GT_EV_GO_UNBLOCK;
    /* The goroutine that the event is done to, or the one that runs there. */
    struct gt_thread_state *t = get(all, names || h->g ? h->g : h->on->g, ns);
    if (t)
        change(all, t, h, ns);
    h->on->says_p = false;
    if (all->event)
        all->event(all->arg, h, t, ns);
}

static void sample(void *arg, const struct gt_cpu_sample *s, uint64_t ns)
{
    struct gt_threads *all = arg;
    const struct gt_thread_state *t = gt_threads_find(all, s->g);
    if (all->sample && t && s->stack)
        all->sample(all->arg, t, s->stack, ns);
}

/* The account -------------------------------------------------------------------------------- */

/* Divides a thread's time up to `at`, which is before its last event only if clocks differ. */
static void settle(struct gt_thread_state *t, uint64_t at, const struct gt_usage *used)
{
    uint64_t ns[GT_KINDS];
    memcpy(ns, t->ns, sizeof ns);
    if (t->state != GT_G_NONE && at > t->since)
        ns[gt_kind_of(t)] += at - t->since;
    gt_shares_add(&t->shares, at, ns, t->slept + has_slept(t, at), used);
}

static void tell_account(struct gt_threads *all, const struct gt_thread_state *t, uint64_t from,
                         uint64_t to, const struct gt_usage *used)
{
    if (all->account)
        all->account(all->arg, t, from, to, used);
}

static void account(void *arg, const struct gt_account_row *row, uint64_t ns, uint64_t length)
{
    struct gt_threads *all = arg;
    struct gt_thread_state *t = gt_threads_find(all, row->g);
    struct gt_usage used = row->used;
    all->accounts = true;
    if (!row->g) {
        tell_account(all, NULL, ns > length ? ns - length : 0, ns, &used);
        all->all_until = ns > length ? ns - length : 0;
        all->tracer_ns += used.of[GT_USED_CPU];
        all->halts.throttled += row->halts.throttled;
        all->halts.throttled_ns += row->halts.throttled_ns;
        all->halts.stopped_ns += row->halts.stopped_ns;
        all->cpus = row->cpus > all->cpus ? row->cpus : all->cpus;
    }
    if (!t)
        return;
    t->unknown = row->used.known == GT_KNOWN_NO_MORE;
    if (t->unknown)
        return;
    ns = t->ended && t->end < ns ? t->end : ns;
    if (ns < t->shares.until)
        ns = t->shares.until;
    gt_usage_cut(&used, ns - t->shares.until,
                 length); /* a part was before the trace, or the thread */
    tell_account(all, t, t->shares.until, ns, &used);
    settle(t, ns, &used);
}

/* A thread without a row has used nothing up to all_until. */
static void settle_rest(struct gt_threads *all)
{
    for (struct gt_thread_state *t = all->first; t; t = t->next) {
        uint64_t until = t->ended && t->end < all->all_until ? t->end : all->all_until;
        if (until > t->shares.until && !t->unknown)
            settle(t, until, NULL);
    }
}

enum { SLACK_NS = 1000000 };

/*
 * Notes what threads wait for when the trace ends. A lock's holder then may not be its holder when
 * the wait began.
 */
static void note_blocked(struct gt_threads *all)
{
    for (size_t i = 0; i < all->trace->n_blocked; i++) {
        const struct gt_blocked_row *row = &all->trace->blocked[i];
        struct gt_thread_state *t = gt_threads_find(all, row->g);
        if (t && row->again && t->state == GT_G_RUNNABLE) {
            t->state = GT_G_WAITING; /* it was signalled, and now waits for its mutex */
            t->again = true;
        }
        bool same = t && !t->ended && t->state == GT_G_WAITING && gt_kind_of(t) == GT_SYNC;
        /*
         * Recording may have ended before the wait began; a wait begins anew after a spurious
         * wake-up.
         */
        if (!same || row->since > t->since + SLACK_NS)
            continue;
        t->wanted = gt_locks_wanted_at_end(&all->locks, row);
        t->at_end = row;
        struct gt_thread_state *holder = gt_threads_find(all, t->wanted.holder);
        if (holder && *row->name) /* a join has no name */
            holder->awaited = true;
    }
}

bool gt_threads_read(struct gt_threads *all, struct gt_trace *trace)
{
    all->trace = trace;
    all->last = &all->first;
    all->locks.contents = &trace->contents;
    bool whole = gt_trace_read(
        trace,
        &(struct gt_audience){
            .possible = possible, .tell = tell, .sample = sample, .account = account, .arg = all});
    settle_rest(all);
    note_blocked(all);
    for (size_t i = 0; i < trace->n_brief; i++)
        gt_locks_note_brief(&all->locks, &trace->brief[i]);
    for (struct gt_thread_state *t = all->first; t; t = t->next) {
        if (!t->ended) {
            t->end = trace->ns;
            tell_span(all, t, trace->ns, (struct ending){.p = GT_NO_P});
            gt_polled_end(all, t);
        }
    }
    return whole;
}
