/* See unwatched.h. */
#include "unwatched.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/debug.h"
#include "encoder/base/sort.h"

#include <string.h>

/* A stretch of a thread's time in which it was not watched. */
struct stretch {
    uint32_t m, gen;
    uint64_t from, until, cpu; /* trace time; cpu: how long it was on a CPU */
    uint64_t since;            /* by its events the thread runs since then; 0: it does not run */
    uint64_t ran;              /* how long it ran by its events */
    size_t first, last;        /* of its runs that are not brief; 0: none */
};

/* A time between two consecutive events of a thread in which it runs. */
struct run {
    uint64_t from, to;
    size_t next; /* of this stretch; 0: none */
};

/*
 * SLACK_NS: within a stretch the clocks of threads and events differ by less. BRIEF_NS: in a run
 * that is shorter the thread had its CPU all the time.
 */
enum { SLACK_NS = 2000, BRIEF_NS = 1000 };
enum { STRETCHES_MAX = 1 << 17, RUNS_MAX = 1 << 20 };

/* Items of one type, in a vector that grows. */
struct list {
    struct gt_vector v;
    size_t n;
};

static struct {
    struct list noted;    /* stretches; sorted by thread while a generation is over */
    struct list runs;     /* item 0 is not used */
    struct list absences; /* of threads, one after the other */
    struct list threads;  /* struct gt_pair: where the absences of thread `key` begin */
    gt_absences_fn *watched;
    gt_stream_end_fn *end_of;
} un;

static void *add(struct list *list, size_t bytes, size_t most)
{
    if (list->n == most || !gt_vector_reserve(&list->v, (list->n + 1) * bytes))
        return NULL;
    return memset((char *)list->v.at + list->n++ * bytes, 0, bytes);
}

static struct stretch *stretch_at(size_t i)
{
    return (struct stretch *)un.noted.v.at + i;
}

static struct run *run_at(size_t i)
{
    return (struct run *)un.runs.v.at + i;
}

static struct gt_pair *thread_at(size_t i)
{
    return (struct gt_pair *)un.threads.v.at + i;
}

void gt_unwatched_note(uint32_t gen, uint32_t m, uint64_t from, uint64_t until, uint64_t cpu_ns)
{
    GT_ASSERT_DRAIN_SIDE();
    struct stretch *s = until > from ? add(&un.noted, sizeof *s, STRETCHES_MAX) : NULL;
    if (s)
        *s = (struct stretch){
            .m = m, .gen = gen, .from = from, .until = until, .cpu = gt_clock_units(cpu_ns)};
}

/* What a thread ran by its events ------------------------------------------------------------ */

static bool sort_by_thread(void)
{
    struct gt_vector pairs = {0}, before = un.noted.v, sorted = {0};
    bool done = gt_vector_reserve(&pairs, un.noted.n * sizeof(struct gt_pair)) &&
                gt_vector_reserve(&sorted, un.noted.n * sizeof(struct stretch));
    struct gt_pair *pair = pairs.at;
    for (size_t i = 0; done && i < un.noted.n; i++)
        pair[i] = (struct gt_pair){stretch_at(i)->m, i};
    done = done && gt_sort(pair, un.noted.n);
    for (size_t i = 0; done && i < un.noted.n; i++)
        ((struct stretch *)sorted.at)[i] = *stretch_at(pair[i].value);
    un.noted.v = done ? sorted : before;
    gt_vector_empty(done ? &before : &sorted);
    gt_vector_empty(&pairs);
    return done;
}

/* The number of stretches of threads up to m, which come first. */
static size_t behind(uint64_t m)
{
    return gt_count_up_to(un.noted.v.at, un.noted.n, sizeof(struct stretch), 4, m);
}

/* The thread of s ran from s->since to its event at `to`. */
static void note_run(struct stretch *s, uint64_t to)
{
    uint64_t from = s->since > s->from ? s->since : s->from;
    to = to < s->until ? to : s->until;
    if (!s->since || to <= from)
        return;
    s->ran += to - from;
    struct run *r =
        to - from > gt_clock_units(BRIEF_NS) ? add(&un.runs, sizeof *r, RUNS_MAX) : NULL;
    if (!r)
        return;
    size_t i = un.runs.n - 1;
    *r = (struct run){.from = from, .to = to};
    if (s->last)
        run_at(s->last)->next = i;
    else
        s->first = i;
    s->last = i;
}

/* Whether a thread runs after its own event of that type; `ran`: whether it ran before. */
static bool runs_behind(enum gt_event_type type, const uint64_t arg[], bool ran)
{
    switch (type) {
    case GT_EV_GO_START:
    case GT_EV_GO_SYSCALL_END: return true;
    case GT_EV_GO_STATUS:
    case GT_EV_GO_STATUS_STACK: return ran || arg[2] == GT_G_RUNNING;
    case GT_EV_GO_STOP:
    case GT_EV_GO_BLOCK:
    case GT_EV_GO_DESTROY:
    case GT_EV_GO_DESTROY_SYSCALL:
    case GT_EV_GO_SYSCALL_BEGIN:
    case GT_EV_GO_SYSCALL_END_BLOCKED: return false;
    default: return ran;
    }
}

static void read_strand(const struct gt_strand *strand)
{
    size_t end = behind(strand->m), first = strand->m ? behind(strand->m - 1u) : 0;
    struct gt_strand rest = *strand;
    uint64_t arg[GT_EVENT_ARGS_MAX];
    while (first < end && rest.pos < rest.end) {
        enum gt_event_type type = gt_strand_next(&rest, arg);
        for (size_t i = first; i < end; i++) {
            struct stretch *s = stretch_at(i);
            note_run(s, rest.ts);
            s->since = runs_behind(type, arg, s->since != 0) ? rest.ts : 0;
        }
    }
}

/* The absences in that ----------------------------------------------------------------------- */

/* The sum of what the runs of s have beyond `most`. */
static uint64_t beyond(const struct stretch *s, uint64_t most)
{
    uint64_t sum = 0;
    for (size_t i = s->first; i; i = run_at(i)->next) {
        uint64_t length = run_at(i)->to - run_at(i)->from;
        sum += length > most ? length - most : 0;
    }
    return sum;
}

/*
 * The longest time that a run of s was on a CPU, such that all runs together have lost `missing`.
 */
static uint64_t longest_on_cpu(const struct stretch *s, uint64_t missing)
{
    return GT_COUNT_FIRST(s->until - s->from, most, beyond(s, most) > missing);
}

static bool add_absence(struct gt_absence absence)
{
    struct gt_absence *a = add(&un.absences, sizeof *a, SIZE_MAX);
    if (a)
        *a = absence;
    return a;
}

/*
 * Adds the absences inferred in s, from `begin` to `end`, where the kernel's records begin. false:
 * no memory.
 */
static bool add_inferred(const struct stretch *s, uint64_t begin, uint64_t end)
{
    if (!s->first || s->ran <= s->cpu + gt_clock_units(SLACK_NS))
        return true;
    bool added = true;
    uint64_t most = longest_on_cpu(s, s->ran - s->cpu);
    for (size_t i = s->first; i && added; i = run_at(i)->next) {
        uint64_t from = run_at(i)->from + most, to = run_at(i)->to;
        to = to < end ? to : end;
        if (from >= begin && from < to)
            added = add_absence(
                (struct gt_absence){.from = from, .to = to, .preempted = true, .cpu = GT_NO_CPU});
    }
    return added;
}

/*
 * Adds the absences of the thread with these stretches. Without memory it has only the recorded
 * ones.
 */
static void add_thread(size_t first, size_t end)
{
    size_t n, n_before = un.absences.n;
    uint32_t m = stretch_at(first)->m;
    const struct gt_absence *watched = un.watched(m, &n);
    struct gt_pair *thread = add(&un.threads, sizeof *thread, STRETCHES_MAX);
    bool added = thread;
    uint64_t begin = 0;                  /* of the next stretch */
    for (size_t i = first; i < end; i++) /* a generation has no event at its end */
        note_run(stretch_at(i), un.end_of(m));
    for (size_t i = first; i < end && added; begin = stretch_at(i++)->until)
        added = add_inferred(stretch_at(i), begin, n ? watched[0].from : UINT64_MAX);
    for (size_t i = 0; i < n && added; i++)
        added = add_absence(watched[i]);
    if (added)
        *thread = (struct gt_pair){m, n_before};
    else if (thread)
        un.threads.n--;
    un.absences.n = added ? un.absences.n : n_before;
}

/*
 * Keeps stretches that were noted in the next generation: they may have events there, and what this
 * generation has not used of the CPU time.
 */
static void drop_stretches(uint32_t gen)
{
    size_t kept = 0;
    for (size_t i = 0; i < un.noted.n; i++) {
        struct stretch s = *stretch_at(i);
        s.cpu = s.cpu > s.ran ? s.cpu - s.ran : 0;
        s.since = s.ran = s.first = s.last = 0;
        if (s.gen > gen)
            *stretch_at(kept++) = s;
    }
    un.noted.n = kept;
}

void gt_unwatched_infer(uint32_t gen, const struct gt_buf *packed, const struct gt_buf *plain,
                        gt_absences_fn *watched, gt_stream_end_fn *end_of)
{
    GT_ASSERT_DRAIN_SIDE();
    un.watched = watched;
    un.end_of = end_of;
    un.runs.n = un.absences.n = un.threads.n = 0;
    if (!un.noted.n || !sort_by_thread() || !add(&un.runs, sizeof(struct run), RUNS_MAX))
        return;
    gt_strands_each(packed, plain, read_strand);
    for (size_t i = 0, end; i < un.noted.n; i = end) {
        end = behind(stretch_at(i)->m);
        add_thread(i, end);
    }
    drop_stretches(gen);
}

const struct gt_absence *gt_unwatched_absences(uint32_t m, size_t *n)
{
    size_t i = gt_count_up_to(un.threads.v.at, un.threads.n, sizeof(struct gt_pair), 8, m);
    if (!i || thread_at(i - 1)->key != m)
        return un.watched(m, n);
    size_t first = thread_at(i - 1)->value;
    *n = (i < un.threads.n ? thread_at(i)->value : un.absences.n) - first;
    return (struct gt_absence *)un.absences.v.at + first;
}

void gt_unwatched_forget(void)
{
    un.noted.n = un.threads.n = 0;
}

/* In a forked child: the parent's drain side may have been in the middle of a change. */
void gt_unwatched_after_fork(void)
{
    memset(&un, 0, sizeof un);
}
