/* See sched.h. */
#include "sched.h"

#include "cpus.h"
#include "samples.h"
#include "encoder/thread/stacks.h"
#include "encoder/thread/texts.h"
#include "unwatched.h"

#include "encoder/base/box.h"
#include "encoder/base/clock.h"
#include "encoder/base/debug.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { ABSENCES_MAX = 1 << 20 }; /* of one thread, in memory */

static gt_where_fn *where_now; /* NULL: CPU state is not wanted */

static struct {
    uint32_t from; /* the first generation that is completed; 0: none */
    uint64_t gaps;
    struct gt_buf *spent; /* what completed events were made from, kept for the black box */
} sched;

bool gt_sched_is_on(void)
{
    return sched.from != 0;
}

uint32_t gt_sched_cpus(void)
{
    return gt_sched_is_on() && gt_watch_is_allowed() ? gt_cpus_count() : 0;
}

bool gt_sched_covers(uint32_t gen)
{
    return sched.from && gen >= sched.from;
}

uint64_t gt_sched_gaps(void)
{
    return sched.gaps;
}

/* Absences ----------------------------------------------------------------------------------- */

static struct gt_absence *at(const struct gt_absences *a)
{
    return a->known.at;
}

static void end_absence(struct gt_absences *a, uint64_t ts, uint32_t cpu)
{
    at(a)[a->n - 1].to = ts;
    at(a)[a->n - 1].cpu = cpu;
    a->away = false;
}

/* Whether the thread left its CPU at ts with the copy of its stack at `copied`. */
static bool is_departure(uint64_t copied, uint64_t ts)
{
    enum { COPY_NS = 200000 }; /* a copy takes a few us, unless an interrupt comes in between */
    return copied && copied <= ts && ts - copied < gt_clock_units(COPY_NS);
}

static void begin_absence(struct gt_absences *a, uint64_t ts, bool preempted)
{
    if (a->n == ABSENCES_MAX || !gt_vector_reserve(&a->known, (a->n + 1) * sizeof *at(a)))
        return;
    at(a)[a->n] =
        (struct gt_absence){.from = ts, .to = GT_ABSENT, .preempted = preempted, .cpu = GT_NO_CPU};
    if (is_departure(a->departed, ts) && a->departed_in == gt_watch_generation())
        at(a)[a->n].stack = a->at;
    a->departed = 0;
    a->n++;
    a->away = true;
}

/* Forgets all absences, for want of memory. */
static void drop(struct gt_absences *a)
{
    sched.gaps++;
    a->n = 0;
    a->away = false;
}

static void note(struct gt_watch *w, const struct gt_perf_switch *s, uint64_t ts)
{
    struct gt_absences *a = &w->absences;
    sched.gaps += s->gap;
    if (s->gap && a->away) { /* its end is unknown, but an absence already written must end */
        if (at(a)[a->n - 1].from) {
            a->n--;
            a->away = false;
        } else {
            end_absence(a, ts, GT_NO_CPU);
        }
    }
    if (!s->out && a->away)
        end_absence(a, ts, s->cpu);
    else if (s->out && !a->away)
        begin_absence(a, ts, s->preempted);
}

/*
 * A thread is watched from now on. Begins an absence, which ends at once if the thread has a CPU.
 * If the kernel has recorded a switch already, the thread's state now is not known.
 */
static void note_beginning(struct gt_watch *w)
{
    struct gt_where_now where;
    uint64_t now = gt_clock_now(), birth, used;
    if (!where_now(w->thread.tid, &where))
        return;
    if (gt_account_birth(&w->thread, &birth, &used))
        gt_unwatched_note(gt_watch_generation(), w->thread.tid, birth, now, where.cpu_ns - used);
    if (gt_perf_has_more(&w->perf))
        return;
    begin_absence(&w->absences, now, !where.sleeps);
    if (where.runs && w->absences.away)
        end_absence(&w->absences, now, where.cpu);
}

static void note_end(struct gt_watch *w)
{
    if (w->absences.away)
        end_absence(&w->absences, gt_clock_now(), GT_NO_CPU);
    gt_off_cpu_want(&w->absences.off_cpu, 0, 0); /* the kernel may give the tid to another thread */
}

/*
 * Gives a stack copied at a departure to the absence that began there, or to the next absence. The
 * absence is written in this generation or in the one before, if it is known by now. An absence
 * that becomes known only in the next generation gets no stack.
 */
static void note_departure(void *arg, uint64_t ns, struct gt_stack *stack)
{
    struct gt_watch *w = arg;
    struct gt_absences *a = &w->absences;
    uint64_t ts = gt_watch_time(ns);
    size_t i = a->n;
    uint32_t gen = gt_watch_generation();
    gt_stack_use(stack, gen - 1);
    a->at = gt_stack_use(stack, gen);
    while (i && at(a)[i - 1].from >= ts)
        i--;
    a->departed = i < a->n ? 0 : ts;
    a->departed_in = gen;
    if (i < a->n && is_departure(ts, at(a)[i].from))
        at(a)[i].stack = a->at;
}

static void note_off_cpu(struct gt_watch *w)
{
    gt_off_cpu_read(&w->absences.off_cpu, note_departure, w);
}

static void forget(struct gt_watch *w)
{
    gt_off_cpu_want(&w->absences.off_cpu, 0, 0);
    gt_vector_empty(&w->absences.told);
    gt_vector_empty(&w->absences.known);
}

/* A thread that ended before the drain thread met it was never watched. */
static void note_unwatched(uint32_t tid, uint64_t g, uint64_t birth, uint64_t end, uint64_t cpu_ns)
{
    const struct gt_watch *w = gt_watch_of(tid);
    if (gt_sched_is_on() && (!w || w->thread.g != g))
        gt_unwatched_note(gt_watch_generation(), tid, birth, end, cpu_ns);
}

struct gt_watch_switches gt_sched_init(gt_where_fn *where)
{
    static const struct gt_account_cpus cpus = {gt_sched_cpus, note_unwatched};
    where_now = where;
    gt_account_set_cpus(&cpus);
    gt_samples_set_cpus(gt_sched_cpus);
    gt_cpus_init((uint32_t)sysconf(_SC_NPROCESSORS_CONF));
    return (struct gt_watch_switches){note_beginning, note_end, note, note_off_cpu, forget};
}

/* Recordings --------------------------------------------------------------------------------- */

void gt_sched_open(void)
{
    sched.from = 0;
    sched.gaps = 0;
    gt_merge_reset(&gt_merge_for_sched);
    gt_cpus_reset();
    gt_off_cpu_open();
    gt_unwatched_forget();
}

void gt_sched_close(void)
{
    sched.from = 0;
}

void gt_sched_next(uint32_t gen, bool waits)
{
    GT_ASSERT_DRAIN_SIDE();
    if (!sched.from && where_now && gt_watch_is_on())
        sched.from = waits ? gen - 1 : gen;
}

/* A generation's ------------------------------------------------------------------------------ */

/*
 * Moves a thread's absences in the generation that is over from `known` to `told`. They are apart
 * there, because the rings are read while that generation is written. An absence that goes on is
 * in both.
 */
static void divide(struct gt_watch *w)
{
    struct gt_absences *a = &w->absences;
    size_t n = 0;
    while (n < a->n && at(a)[n].from < w->end)
        n++;
    a->n_told = 0;
    if (!n)
        return;
    uint64_t until = at(a)[n - 1].to;
    bool goes_on = until > w->end || until == GT_ABSENT;
    size_t before = goes_on ? n - 1 : n;
    struct gt_vector known = a->told;
    if (!gt_vector_reserve(&known, (a->n - before + 1) * sizeof *at(a))) {
        drop(a);
        return;
    }
    memcpy(known.at, at(a) + before, (a->n - before) * sizeof *at(a));
    a->told = a->known;
    a->n_told = n;
    a->known = known;
    a->n -= before;
    if (goes_on) {
        ((struct gt_absence *)a->told.at)[n - 1].to = GT_ABSENT;
        at(a)->from = 0;
        at(a)->stack = 0; /* its number is of the generation that is over */
    }
}

static const struct gt_absence *recorded_absences_of(uint32_t m, size_t *n)
{
    const struct gt_watch *w = gt_watch_of(m);
    *n = w ? w->absences.n_told : 0;
    return w ? w->absences.told.at : NULL;
}

static uint64_t end_of(uint32_t m)
{
    const struct gt_watch *w = gt_watch_of(m);
    return w ? w->end : UINT64_MAX;
}

/* The absence of thread m that has not ended at the file's end, if there is one. */
static const struct gt_absence *absences_at_end(uint32_t m, size_t *n)
{
    static const struct gt_absence away[] = {
        {.to = GT_ABSENT, .preempted = false, .cpu = GT_NO_CPU},
        {.to = GT_ABSENT, .preempted = true, .cpu = GT_NO_CPU}};
    const struct gt_watch *w = gt_watch_of(m);
    *n = w && w->absences.n && !at(&w->absences)->from;
    return *n ? &away[at(&w->absences)->preempted] : NULL;
}

static void put(const struct gt_merge_event *ev)
{
    gt_watch_meanwhile();
    struct gt_watch *w = ev->added && ev->type == GT_EV_GO_BLOCK ? gt_watch_of(ev->m) : NULL;
    if (w)
        w->absences.unseen++;
    gt_cpus_put(ev);
}

/* Encodes the events of generation gen anew, with absences. 0 or -errno. */
static int rewrite(uint32_t gen, const struct gt_buf *packed, const struct gt_buf *plain,
                   gt_absences_fn *away, struct gt_packed *to)
{
    if (!gt_cpus_begin(gen, gt_merge_streams(packed, plain)))
        return -ENOMEM;
    int error = gt_merge(&gt_merge_for_sched, gen, packed, plain, away, put);
    bool whole = gt_cpus_end(to);
    return error ? error : whole ? 0 : -ENOMEM;
}

/*
 * Gives back a buffer of events that were completed. With a black box the buffer is kept until the
 * completed events are written: if the process dies before, it is all that is left of them.
 */
static void spend(struct gt_buf *buf)
{
    if (!gt_box_is_open()) {
        gt_buffers_put(buf);
        return;
    }
    buf->next = sched.spent;
    sched.spent = buf;
}

/* Gives back the buffers of events and returns the others, which hold texts. */
static struct gt_buf *spend_events(struct gt_buf *bufs)
{
    struct gt_buf *texts = NULL, **link = &texts;
    for (struct gt_buf *next; bufs; bufs = next) {
        next = bufs->next;
        bufs->next = NULL;
        if (gt_texts_in(bufs)) {
            *link = bufs;
            link = &bufs->next;
        } else {
            spend(bufs);
        }
    }
    return texts;
}

/*
 * Decides whether the kernel copies a thread's stack when it loses its CPU. The copies are for
 * threads that wait for what no hook sees. They cost more than they tell if the thread loses its
 * CPU much more often for other reasons: half a microsecond each time, also where no stack is
 * copied. A thread that loses its CPU too often in a generation has no copies, and others have
 * about 1,000 at most.
 */
static void want_off_cpu(struct gt_watch *w)
{
    enum { SWITCHES_EACH = 20, SWITCHES_MOST = 5000, COPIES = 1000 };
    struct gt_absences *a = &w->absences;
    bool wanted = a->unseen && a->n_told <= (size_t)SWITCHES_EACH * a->unseen &&
                  a->n_told <= SWITCHES_MOST && !w->ended && gt_watch_is_allowed();
    uint32_t every = 1 + (uint32_t)(a->n_told / COPIES);
    gt_off_cpu_want(&a->off_cpu, w->thread.tid, wanted ? every : 0);
    a->unseen = 0;
}

int gt_sched_complete(uint32_t gen, struct gt_buf **packed, struct gt_buf **plain)
{
    GT_ASSERT_DRAIN_SIDE();
    if (!gt_sched_covers(gen))
        return 0;
    struct gt_packed completed = {0};
    gt_watch_each(divide);
    gt_unwatched_infer(gen, *packed, *plain, recorded_absences_of, end_of);
    int error = rewrite(gen, *packed, *plain, gt_unwatched_absences, &completed);
    gt_watch_each(want_off_cpu);
    if (error) {
        gt_buffers_put_all(completed.first);
        return error;
    }
    spend_events(*packed);
    *packed = completed.first;
    *plain = spend_events(*plain);
    return 0;
}

void gt_sched_written(void)
{
    GT_ASSERT_DRAIN_SIDE();
    gt_buffers_put_all(sched.spent);
    sched.spent = NULL;
}

struct gt_buf *gt_sched_end(uint32_t gen, struct gt_buf *packed)
{
    GT_ASSERT_DRAIN_SIDE();
    struct gt_packed completed = {0};
    if (rewrite(gen, packed, NULL, absences_at_end, &completed) == 0)
        return completed.first;
    gt_buffers_put_all(completed.first);
    return NULL;
}

void gt_sched_resume(void)
{
    sched.from = 1;
    gt_cpus_go_on();
}

int gt_sched_follow(uint32_t gen, const struct gt_buf *packed, const struct gt_buf *plain)
{
    return gt_merge(&gt_merge_for_sched, gen, packed, plain, NULL, gt_cpus_stood);
}

int gt_sched_go_on(uint32_t gen, const struct gt_buf *packed, const struct gt_buf *plain,
                   struct gt_packed *completed)
{
    return rewrite(gen, packed, plain, NULL, completed);
}

/* In a forked child: the events belong to the parent. */
void gt_sched_after_fork(void)
{
    memset(&sched, 0, sizeof sched);
    gt_cpus_reset();
}
