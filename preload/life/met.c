/* See met.h. */
#include "met.h"

#include "births.h"

#include "encoder/base/arena.h"
#include "encoder/base/strbuf.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/states.h"
#include "encoder/thread/switch.h"
#include "preload/bind/real.h"
#include "preload/process/read_usage.h"
#include "preload/registry/park.h"
#include "preload/shared/lock_kind.h"
#include "preload/thread/capture.h"
#include "preload/thread/thread.h"
#include "symbolize/elf/modules.h"

/* A met thread. The drain thread and the met thread itself use it in turn, under the lock. */
struct met {
    struct gt_lock lock;
    struct gt_thread *thread; /* NULL: the thread writes its own events, or has ended */
    uint32_t tid;
    bool stood, waits; /* it stood in `call` when it was met; as far as known it still does */
    struct gt_call_now call;
    struct gt_wait_for what;
    struct gt_usage usage; /* its usage when it was last seen in `call` */
    uint64_t seen;         /* the time of that, in trace time */
};

static struct {
    const struct gt_picture *picture;
    struct met *all;
    uint32_t n;
    uint32_t ours; /* TID of the drain thread */
    _Atomic uint32_t done;
} met;

/* What a thread does now --------------------------------------------------------------------- */

enum doing { UNKNOWN, RUNS, WAITS };

/* Reads the number at *p, decimal or 0x…, and moves *p behind it. */
static bool number(const char **p, uint64_t *value)
{
    char *end;
    *value = strtoul(*p, &end, 0);
    bool any = end != *p;
    *p = end;
    return any;
}

static enum doing read_call(uint32_t tid, struct gt_call_now *call)
{
    char text[256];
    const char *p = text;
    uint64_t id;
    if (!gt_usage_read_file(text, sizeof text, tid, "/syscall"))
        return UNKNOWN;
    if (*text < '0' || *text > '9') /* "running", or -1: blocked outside of a system call */
        return RUNS;
    bool whole = number(&p, &id);
    for (int i = 0; i < 6; i++)
        whole = whole && number(&p, &call->argument[i]);
    call->number = (int64_t)id;
    return whole && number(&p, &call->sp) && number(&p, &call->pc) ? WAITS : UNKNOWN;
}

/* Whether both are the same call. An interrupted call continues as SYS_restart_syscall. */
static bool is_same_call(const struct gt_call_now *a, const struct gt_call_now *b)
{
    return a->sp == b->sp && a->pc == b->pc &&
           memcmp(a->argument, b->argument, sizeof a->argument) == 0 &&
           (a->number == b->number || a->number == SYS_restart_syscall ||
            b->number == SYS_restart_syscall);
}

/* Whether all return addresses are still in place. Reads by a system call, since the thread may end
 * at any moment, and its stack with it. */
static bool has_words(const struct gt_pictured *p)
{
    const uint64_t *words = p->more + p->frames;
    uint64_t pid = (uint64_t)gt_syscall(SYS_getpid), now;
    for (uint32_t i = 0; i < p->words; i++) {
        struct iovec to = {&now, sizeof now}, from = {(void *)words[2 * i], sizeof now};
        if (gt_syscall(SYS_process_vm_readv, pid, &to, 1, &from, 1, 0) != sizeof now ||
            now != words[2 * i + 1])
            return false;
    }
    return true;
}

/* Its goroutine ------------------------------------------------------------------------------ */

/* The thread's stack as a hook would have captured it: the leaf, which is the function of libc that
 * the program called, then the program's frames. */
static struct gt_stack *stack_of(const struct gt_pictured *p)
{
    uint64_t pcs[GT_FRAMES_MAX];
    uint32_t leaf = 0, first = 0, n = 0;
    for (uint32_t i = 0; i < p->of_libc; i++) {
        enum gt_hook hook = gt_real_around(p->more[i]);
        leaf = hook ? hook : leaf;
        first = hook ? i + 1 : first;
    }
    if (!leaf && p->leaf) {
        leaf = p->leaf;
        first = p->of_libc;
    }
    if (leaf)
        pcs[n++] = leaf;
    for (uint32_t i = first; i < p->frames && n < GT_FRAMES_MAX; i++)
        pcs[n++] = p->more[i];
    return n ? gt_stacks_get(pcs, n, (uint32_t)gt_modules_epoch()) : NULL;
}

static struct gt_stack *routine_of(const struct gt_pictured *p)
{
    bool known = p->routine < p->frames;
    return known ? gt_stacks_get(&p->more[p->routine], 1, (uint32_t)gt_modules_epoch()) : NULL;
}

/* The thread's own name; NULL: its name is the program's. */
static struct gt_string *label_of(uint32_t tid)
{
    char name[32], program[32];
    size_t n = gt_usage_read_file(name, sizeof name, tid, "/comm");
    size_t m =
        gt_usage_read_file(program, sizeof program, (uint32_t)gt_syscall(SYS_getpid), "/comm");
    if (!n || strcmp(name, program) == 0 || !m)
        return NULL;
    name[n - 1] = 0; /* the end of its line */
    return gt_strings_intern(name);
}

/* Whether a woken waiter does not sleep again before the next waiter is woken. */
static bool is_final(enum gt_lock_kind kind)
{
    return kind != GT_LOCK_MUTEX && kind != GT_LOCK_RWLOCK && kind != GT_LOCK_SEM;
}

/* The wait in which the thread was met. known: false if its call began after the picture. */
static struct gt_wait_for wait_of(const struct gt_pictured *p, bool known)
{
    return (struct gt_wait_for){.reason = known ? p->reason : GT_REASON_UNSEEN,
                                .addr = known ? (const void *)p->lock : NULL,
                                .kind = p->kind,
                                .timed = p->timed,
                                .final = is_final(p->kind)};
}

/* Shows the thread in its call, from now on. */
static void stand(struct met *m, struct gt_stack *stack)
{
    struct gt_thread *t = m->thread;
    m->what.since = gt_clock_now();
    m->waits = true;
    if (!gt_writer_pin_at_once(&t->w))
        return;
    gt_writer_unpin(&t->w); /* there is room, so gt_park does not wait for it */
    if (m->what.reason) {
        gt_park(&t->w, &t->parking, &m->what, stack);
    } else if (gt_writer_pin(&t->w)) {
        gt_call_write(&t->w, m->what.since, GT_REASON_NONE, stack);
        gt_writer_unpin(&t->w);
    }
}

static void meet(struct met *m, const struct gt_pictured *p)
{
    m->tid = p->tid;
    m->seen = gt_clock_now();
    if (!gt_usage_read(m->tid, GT_KNOWN_ALL, &m->usage) || !(m->usage.known & GT_KNOWN_CPU))
        return;
    enum doing doing = read_call(m->tid, &m->call);
    if (doing == UNKNOWN)
        return;
    bool known = is_same_call(&m->call, &p->call) && has_words(p);
    m->thread = gt_thread_meet(m->tid, (pthread_t)p->self, routine_of(p), label_of(m->tid));
    m->stood = m->thread && doing == WAITS;
    m->what = wait_of(p, known);
    if (m->stood)
        stand(m, known ? stack_of(p) : routine_of(p));
}

/* The end of its wait ------------------------------------------------------------------------ */

/* What a thread has used since it was last seen waiting. */
struct since {
    uint64_t ns; /* CPU time, plus run-queue delay where that is known */
    bool awake;  /* the thread has certainly not waited again */
    bool whole;  /* awake, and ns is all of the time since its wait ended */
};

/* The text of a log about an unknown end. units: time from the last look to the shown end. */
static struct gt_string *doubt(uint64_t units)
{
    enum { US_PER_MS = 1000, NS_PER_MS = 1000000 };
    char text[96];
    struct gt_strbuf s = gt_strbuf_start(text, sizeof text);
    gt_strbuf_add(&s, "it went on unseen, up to ");
    gt_strbuf_decimal(&s, units * US_PER_MS / gt_clock_units(NS_PER_MS) + 1);
    gt_strbuf_add(&s, "us before it does here");
    return gt_strings_intern(text);
}

static void log_doubt(struct gt_writer *w, uint64_t units)
{
    struct gt_string *category = gt_strings_intern("attached"), *text = doubt(units);
    uint32_t gen = gt_writer_gen(w);
    if (category && text)
        gt_ev_user(w, GT_EV_USER_LOG,
                   (uint64_t[]){0, gt_string_use(category, gen), gt_string_use(text, gen)}, NULL);
}

/*
 * Writes the end of the thread's wait. A thread that was woken through a hook and has not waited
 * again has been runnable since the wake-up. If the end of that run-queue delay is not known, the
 * trace shows the thread as running since the wake-up.
 */
static void write_end(struct gt_writer *w, const struct since *since, uint64_t seen)
{
    bool woken = w->g.state == GT_G_RUNNABLE && since->awake && !since->whole;
    uint64_t at = woken ? w->g.changed : gt_clock_now() - gt_clock_units(since->ns);
    bool sure = (woken || since->whole) && at >= w->last; /* events already written stay */
    at = at > w->last ? at : w->last;
    gt_ev_go_resume_since(w, w->g.wait_stack, at);
    if (!sure && at > seen)
        log_doubt(w, at - seen);
}

/* Ends the thread's wait in the trace. m is locked. false: the thread could not be taken out of the
 * registry, or nothing could be written, for now. */
static bool go_on(struct met *m, const struct since *since)
{
    struct gt_thread *t = m->thread;
    if (!gt_park_forget(&t->parking, GT_HOOK_PATIENCE_NS) || !gt_writer_pin_at_once(&t->w))
        return false;
    write_end(&t->w, since, m->seen);
    gt_writer_unpin(&t->w);
    m->waits = false;
    return true;
}

static uint64_t more(const struct met *m, const struct gt_usage *now, enum gt_usage_number which)
{
    bool known = m->usage.known & now->known & gt_used_bit(which);
    return known && now->of[which] > m->usage.of[which] ? now->of[which] - m->usage.of[which] : 0;
}

static bool is_known_none(const struct met *m, const struct gt_usage *now,
                          enum gt_usage_number which)
{
    return (m->usage.known & now->known & gt_used_bit(which)) && more(m, now, which) == 0;
}

/* Whether the thread's CPU clock advances. A thread in a run queue does not pass: its current delay
 * there is not counted yet. */
static bool is_on_a_cpu(const struct met *m, const struct gt_usage *before)
{
    struct gt_usage now = {0};
    return gt_usage_read(m->tid, GT_KNOWN_CPU, &now) &&
           now.of[GT_USED_CPU] > before->of[GT_USED_CPU];
}

/* Ends the wait of a thread that is no longer in its call. Called by the drain thread. */
static void find_end(struct met *m)
{
    struct gt_usage now = {0};
    if (!gt_usage_read(m->tid, GT_KNOWN_ALL, &now))
        return;
    struct since since = {.ns = more(m, &now, GT_USED_CPU) + more(m, &now, GT_USED_QUEUE),
                          .awake = is_known_none(m, &now, GT_USED_VOLUNTARY)};
    since.whole = since.awake && (now.known & GT_KNOWN_QUEUE) && is_on_a_cpu(m, &now);
    go_on(m, &since);
}

/* What the thread does. WAITS: it is in the call in which it was met, or back in it. */
static enum doing find_doing(const struct met *m)
{
    struct gt_call_now call;
    enum doing doing = read_call(m->tid, &call);
    return doing == WAITS && !is_same_call(&call, &m->call) ? RUNS : doing;
}

/* Looks at a thread that has used CPU time. It may have left its call. Or it is still or again in
 * its call, after a signal handler or a spurious wake-up. */
static void look_again(struct met *m)
{
    uint64_t seen = gt_clock_now();
    struct gt_usage now = {0};
    gt_usage_read(m->tid, GT_KNOWN_ALL, &now);
    enum doing doing = find_doing(m);
    if (doing == UNKNOWN)
        return;
    bool there = doing == WAITS;
    if (!there && m->waits)
        find_end(m);
    if (there && !m->waits)
        stand(m, m->thread->w.g.wait_stack);
    if (there || !m->waits)
        m->usage = now;
    if (there)
        m->seen = seen;
}

static void look_at(struct met *m)
{
    struct gt_usage now = {0};
    uint64_t seen = gt_clock_now();
    if (!gt_usage_read(m->tid, GT_KNOWN_CPU, &now)) {
        if (!m->waits || go_on(m, &(struct since){.ns = 0})) {
            gt_thread_gone(m->thread);
            m->thread = NULL;
        }
    } else if (m->stood && now.of[GT_USED_CPU] != m->usage.of[GT_USED_CPU]) {
        look_again(m);
    } else if (m->waits) {
        m->seen = seen;
    }
}

/* Looks at all met threads. Called before the next generation begins with the state of all threads.
 */
static void look(void)
{
    if ((uint32_t)gt_syscall(SYS_gettid) != met.ours)
        return; /* the process ends, by one of its own threads */
    for (struct met *m = met.all; m < met.all + met.n; m++) {
        if (!gt_trylock(&m->lock, GT_RANK_MET))
            continue; /* the thread is claiming its goroutine in gt_met_claim */
        if (m->thread)
            look_at(m);
        gt_unlock(&m->lock);
    }
}

/* A thread of its own ------------------------------------------------------------------------ */

/*
 * Ends the calling thread's own wait. All CPU time since it was last seen waiting was used after
 * the call ended. The run-queue delay is not known here, so `whole` requires that the thread was
 * not preempted. The delay right after the wake-up counts as part of the wait, as in other waits.
 */
static bool end_own(struct met *m)
{
    struct gt_usage now = {0};
    gt_usage_read(0, GT_KNOWN_CPU | GT_KNOWN_SWITCHES, &now);
    struct since since = {.ns = more(m, &now, GT_USED_CPU),
                          .awake = is_known_none(m, &now, GT_USED_VOLUNTARY)};
    since.whole =
        since.awake && (now.known & GT_KNOWN_CPU) && is_known_none(m, &now, GT_USED_INVOLUNTARY);
    return go_on(m, &since);
}

static struct gt_thread *claim_locked(struct met *m, bool *now)
{
    struct gt_thread *t = m->thread;
    if (!t ||
        (t->self && t->self != pthread_self())) /* a new thread with the TID of one that ended */
        return NULL;
    gt_thread_become(t);
    *now = !(m->stood && gt_capture_in_handler(t)) && (!m->waits || end_own(m));
    if (!*now) {
        gt_thread_forget_self();
        return NULL;
    }
    m->thread = NULL;
    gt_thread_became(t);
    return t;
}

struct gt_thread *gt_met_claim(bool *now)
{
    *now = true;
    if (!met.n)
        return NULL;
    uint32_t tid = (uint32_t)gt_syscall(SYS_gettid);
    struct met *m = met.all, *end = met.all + met.n;
    while (m < end && m->tid != tid)
        m++;
    if (m == end)
        return NULL;
    *now = gt_lock_within(&m->lock, GT_RANK_MET, GT_HOOK_PATIENCE_NS);
    if (!*now)
        return NULL;
    struct gt_thread *t = claim_locked(m, now);
    gt_unlock(&m->lock);
    return t;
}

/* The beginning ------------------------------------------------------------------------------ */

static bool is_own_proc(void)
{
    char link[16], own[16];
    struct gt_strbuf s = gt_strbuf_start(own, sizeof own);
    gt_strbuf_decimal(&s, (uint64_t)gt_syscall(SYS_getpid));
    ssize_t n = gt_syscall(SYS_readlinkat, AT_FDCWD, "/proc/self", link, sizeof link);
    return n == s.pos - own && memcmp(link, own, (size_t)n) == 0;
}

static void meet_all(const struct gt_picture *picture)
{
    struct met *all = gt_pages_alloc((picture->n + 1) * sizeof *all);
    const struct gt_pictured *p = picture->first;
    if (!all)
        return;
    for (uint32_t i = 0; i < picture->n; i++, p = gt_pictured_after(p))
        meet(&all[i], p);
    met.ours = (uint32_t)gt_syscall(SYS_gettid);
    met.all = all;
    met.n = picture->n;
    gt_switch_before = look;
}

void gt_met_expect(const struct gt_picture *picture)
{
    met.picture = picture && picture->leaves == gt_real_names() ? picture : NULL;
}

void gt_met_all(void)
{
    if (met.picture && gt_usage_is_apart() && is_own_proc())
        meet_all(met.picture);
    met.picture = NULL;
    atomic_store(&met.done, 1);
    gt_futex_wake(&met.done, INT_MAX);
}

void gt_met_await(void)
{
    while (!atomic_load(&met.done))
        gt_futex_wait(&met.done, 0, GT_LOCK_PATIENCE_NS);
}

void gt_met_after_fork(void)
{
    met.n = 0;
    atomic_store(&met.done, 0);
    gt_switch_before = NULL;
}
