/* See select.h. */
#include "select.h"

#include "call_places.h"
#include "frame_code.h"
#include "idle.h"
#include "reading.h"
#include "short_name.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/tool.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char gt_select_help[] =
    "  --thread=REGEX  only of threads whose name or routine matches\n"
    "  --focus=REGEX   only with a matching function on the stack\n"
    "  --from=TIME     only after TIME: 1.5s or 200ms from the beginning of the trace\n"
    "  --to=TIME       only before TIME\n"
    "  --task=NAME     only in annotated tasks and regions of that name\n"
    "  --idle=REGEX    waits in matching functions count as idle, too; none: no wait\n"
    "                  counts as idle\n"
    "  --skip=CODE     never a place: a module (libfoo.so.1), or functions by a\n"
    "                  regular expression\n"
    "  --frames=N      show N callers of the program's own (default: 1)\n"
    "  --wide          all columns, and whole names of functions";

struct stretch {
    uint64_t g, from, to;
};

static struct {
    const char *focus, *thread, *task;
    regex_t focus_pattern, thread_pattern;
    uint64_t from, to;       /* ns; to 0: the end */
    struct gt_memo focused;  /* by the stack's number: 1 no, 2 yes */
    struct gt_memo threads;  /* by goroutine: 1 no, 2 yes */
    struct gt_memo regions;  /* by goroutine: the stack that woke it last from its rest; or NULL */
    struct stretch *stretch; /* of the tasks, sorted by thread and time */
    size_t stretches;
} wanted;

/* Options ------------------------------------------------------------------------------------- */

static void compile(regex_t *pattern, const char *text, const char *option)
{
    char why[128];
    int error = regcomp(pattern, text, REG_EXTENDED | REG_NOSUB);
    if (!error)
        return;
    regerror(error, pattern, why, sizeof why);
    gt_fail(GT_EXIT_USAGE, "%s=%s: %s", option, text, why);
}

static void read_frames(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*end || *text < '1' || *text > '9' || n > 64)
        gt_fail(GT_EXIT_USAGE, "--frames=%s: must be a number of callers from 1 to 64", text);
    gt_place_frames = (unsigned)n;
}

size_t gt_read_rows(const char *command, const char *value)
{
    char *end;
    unsigned long n = strtoul(value, &end, 10);
    if (*end || *value < '1' || *value > '9')
        gt_fail(GT_EXIT_USAGE, "%s: -n %s: must be a number of rows, 1 or more", command, value);
    return n;
}

bool gt_select_option(int option, const char *value)
{
    switch (option) {
    case GT_OPTION_FRAMES: read_frames(value); break;
    case GT_OPTION_SKIP: gt_frames_rule(GT_FRAME_SKIP, value, "--skip"); break;
    case GT_OPTION_FOCUS: compile(&wanted.focus_pattern, wanted.focus = value, "--focus"); break;
    case GT_OPTION_THREAD:
        compile(&wanted.thread_pattern, wanted.thread = value, "--thread");
        break;
    case GT_OPTION_FROM: wanted.from = gt_read_time("--from", value, NULL); break;
    case GT_OPTION_TO: wanted.to = gt_read_time("--to", value, NULL); break;
    case GT_OPTION_TASK: wanted.task = value; break;
    case GT_OPTION_WIDE: gt_wide_names = true; break;
    case GT_OPTION_IDLE: gt_idle_option(value); break;
    default: return false;
    }
    if (wanted.to && wanted.from >= wanted.to)
        gt_fail_reversed(wanted.from, wanted.to);
    return true;
}

bool gt_select_more_than_threads(void)
{
    return wanted.focus || wanted.task || wanted.from || wanted.to;
}

bool gt_select_any(void)
{
    return wanted.thread || gt_select_more_than_threads();
}

/* Before -------------------------------------------------------------------------------------- */

/* The time between the first and the last event of one thread about a task, or a region. */
struct said {
    struct said *next;
    uint64_t g, from, to;
    uint64_t open; /* regions */
};

static struct {
    struct gt_memo roots;        /* task → root */
    struct gt_memo said, region; /* said: by root task and thread; region: the last by thread */
    struct said *all;
    size_t n;
} before;

static struct said *said_of(struct gt_memo *memo, uint64_t key, uint64_t g, uint64_t ns)
{
    uint64_t *slot = gt_need(gt_memo_at(memo, key));
    if (*slot)
        return (void *)(uintptr_t)*slot;
    struct said *s = gt_need(malloc(sizeof *s));
    *s = (struct said){.next = before.all, .g = g, .from = ns, .to = ns};
    before.all = s;
    before.n++;
    *slot = (uintptr_t)s;
    return s;
}

/*
 * Notes an event of a task of that name, or of one of its subtasks. The thread's stretch begins
 * with its first such event.
 */
static void note_task(const struct gt_happening *h, uint64_t g, uint64_t ns)
{
    if (h->type == GT_EV_USER_TASK_BEGIN) {
        uint64_t root = gt_memo_find(&before.roots, h->parent);
        root = root ? root : strcmp(h->text, wanted.task) == 0 ? h->task : 0;
        if (root)
            *(uint64_t *)gt_need(gt_memo_at(&before.roots, h->task)) = root;
    }
    uint64_t root = h->task ? gt_memo_find(&before.roots, h->task) : 0;
    if (!root)
        return;
    struct said *s = said_of(&before.said, root << 24 ^ g, g, ns);
    s->to = ns;
    s->open += h->type == GT_EV_USER_REGION_BEGIN;
    s->open -= h->type == GT_EV_USER_REGION_END && s->open;
}

/*
 * Notes a region of that name. Each is a stretch of its own; a region inside another adds nothing.
 */
static void note_region(const struct gt_happening *h, uint64_t g, uint64_t ns)
{
    if (strcmp(h->text, wanted.task) != 0)
        return;
    uint64_t *slot = gt_need(gt_memo_at(&before.region, g));
    struct said *s = (void *)(uintptr_t)*slot;
    if (h->type == GT_EV_USER_REGION_BEGIN) {
        if (!s || !s->open) {
            *slot = 0;
            s = said_of(&before.region, g, g, ns);
        }
        s->open++;
    } else if (s && s->open) {
        s->open--;
        s->to = ns;
    }
}

static void note_event(void *arg, const struct gt_happening *h, const struct gt_thread_state *t,
                       uint64_t ns)
{
    (void)arg;
    bool region = h->type == GT_EV_USER_REGION_BEGIN || h->type == GT_EV_USER_REGION_END;
    if (!t || !(region || h->type == GT_EV_USER_TASK_BEGIN || h->type == GT_EV_USER_TASK_END ||
                (h->type == GT_EV_USER_LOG && h->task)))
        return;
    note_task(h, t->g, ns);
    if (region)
        note_region(h, t->g, ns);
}

GT_ORDER(by_time, struct stretch, GT_UP(g) ?: GT_UP(from))

/* Sorts the stretches, and merges overlapping ones. */
static void keep_stretches(uint64_t end)
{
    struct stretch *s = wanted.stretch = gt_need(calloc(before.n + 1, sizeof *s));
    size_t n = 0, kept = 0;
    for (const struct said *it = before.all; it; it = it->next)
        s[n++] = (struct stretch){it->g, it->from, it->open ? end : it->to};
    qsort(s, n, sizeof *s, by_time);
    for (size_t i = 0; i < n; i++) {
        if (kept && s[kept - 1].g == s[i].g && s[i].from <= s[kept - 1].to)
            s[kept - 1].to = s[i].to > s[kept - 1].to ? s[i].to : s[kept - 1].to;
        else
            s[kept++] = s[i];
    }
    wanted.stretches = kept;
}

bool gt_select_named(const struct gt_thread_state *t)
{
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)t->thread);
    return !wanted.thread || strcmp(number, wanted.thread) == 0 ||
           regexec(&wanted.thread_pattern, t->name, 0, NULL, 0) == 0 ||
           regexec(&wanted.thread_pattern, t->routine, 0, NULL, 0) == 0;
}

bool gt_select_names_none(const struct gt_threads *threads)
{
    const char *path = threads->trace->path;
    bool none = wanted.thread;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        bool named = gt_select_named(t);
        *(uint64_t *)gt_need(gt_memo_at(&wanted.threads, t->g)) = named ? 2 : 1;
        none &= !named;
    }
    if (none)
        gt_say("%s: no thread has the name, routine or number %s; gotrace info %s lists them", path,
               wanted.thread, gt_to_type(path));
    return none;
}

void gt_select_prepare(const char *path)
{
    if (!wanted.thread && !wanted.task)
        return;
    struct gt_trace trace;
    struct gt_threads threads = {.event = wanted.task ? note_event : NULL};
    gt_open_trace(&trace, path);
    gt_threads_read(&threads, &trace);
    gt_select_names_none(&threads);
    if (wanted.task)
        keep_stretches(trace.ns);
    if (wanted.task && !wanted.stretches)
        gt_say("%s: there is no task and no region called %s", path, wanted.task);
}

/* While reading ------------------------------------------------------------------------------- */

bool gt_select_thread(const struct gt_thread_state *t)
{
    return !wanted.thread || gt_memo_find(&wanted.threads, t->g) == 2;
}

void gt_select_check(const struct gt_trace *trace)
{
    if (wanted.from && wanted.from >= trace->ns)
        gt_fail_late(trace->path, wanted.from, trace->ns);
}

static bool matches(const struct gt_callers *stack)
{
    for (uint32_t i = 0; i < stack->n; i++) {
        if (regexec(&wanted.focus_pattern, stack->frame[i].func, 0, NULL, 0) == 0)
            return true;
    }
    return false;
}

static bool is_focused(const struct gt_callers *stack)
{
    if (!wanted.focus)
        return true;
    if (!stack)
        return false;
    uint64_t *slot = gt_need(gt_memo_at(&wanted.focused, stack->number));
    if (!*slot)
        *slot = matches(stack) ? 2 : 1;
    return *slot == 2;
}

uint64_t gt_select_clip(uint64_t *from, uint64_t to)
{
    *from = *from > wanted.from ? *from : wanted.from;
    to = wanted.to && to > wanted.to ? wanted.to : to;
    return to > *from ? to - *from : 0;
}

/* Index of the thread's first stretch that ends after `ns`. */
static size_t stretch_at(uint64_t g, uint64_t ns)
{
    size_t low = 0, high = wanted.stretches;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct stretch *s = &wanted.stretch[middle];
        if (s->g < g || (s->g == g && s->to <= ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Passes on the part of a span between `from` and `to`. */
static void tell_piece(const struct gt_span *span, uint64_t from, uint64_t to, gt_select_fn *fn,
                       void *arg)
{
    struct gt_span piece = *span;
    uint64_t ns = gt_select_clip(&from, to);
    if (!ns && (span->ns || gt_select_more_than_threads()))
        return;
    piece.from = from;
    piece.ns = ns;
    piece.ended |= from + ns < span->from + span->ns;
    if (ns < span->ns && span->by)
        piece.waker_off = gt_stretches_between(&span->by->off, from, from + ns, NULL, NULL);
    fn(arg, &piece);
}

/*
 * The stack that says what the span belongs to. A thread of OpenMP rests without a caller; once it
 * is woken, it belongs to the region that woke it.
 */
static const struct gt_callers *stack_of(const struct gt_span *span)
{
    if (!span->stack || !gt_is_parked(gt_leaf_of(span->stack)))
        return span->stack;
    uint64_t *region = gt_need(gt_memo_at(&wanted.regions, span->thread->g));
    if (span->kind != GT_SCHED)
        *region = (uintptr_t)span->waker;
    return span->kind == GT_SCHED && *region ? (void *)(uintptr_t)*region : span->stack;
}

void gt_select_span(const struct gt_span *its, gt_select_fn *fn, void *arg)
{
    struct gt_span span = *its;
    uint64_t end = span.from + span.ns, g = span.thread->g;
    span.stack = stack_of(its);
    if (!gt_select_thread(span.thread) || !is_focused(span.stack))
        return;
    if (!wanted.task) {
        tell_piece(&span, span.from, end, fn, arg);
        return;
    }
    for (size_t i = stretch_at(g, span.from); i < wanted.stretches; i++) {
        const struct stretch *s = &wanted.stretch[i];
        if (s->g != g || s->from >= end)
            return;
        tell_piece(&span, s->from > span.from ? s->from : span.from, s->to < end ? s->to : end, fn,
                   arg);
    }
}

static bool is_in_task(uint64_t g, uint64_t ns)
{
    size_t i = wanted.task ? stretch_at(g, ns) : 0;
    return !wanted.task ||
           (i < wanted.stretches && wanted.stretch[i].g == g && wanted.stretch[i].from <= ns);
}

bool gt_select_sample(const struct gt_thread_state *t, const struct gt_callers *stack, uint64_t ns)
{
    return gt_select_thread(t) && is_focused(stack) && ns >= wanted.from &&
           (!wanted.to || ns < wanted.to) && is_in_task(t->g, ns);
}

bool gt_select_waiting(const struct gt_thread_state *t)
{
    return gt_select_thread(t) && is_focused(t->stack) && (!wanted.to || wanted.to >= t->end) &&
           (!t->end || is_in_task(t->g, t->end - 1));
}
