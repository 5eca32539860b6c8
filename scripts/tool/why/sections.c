/* See sections.h. */
#include "sections.h"

#include "cpu_use.h"
#include "program_code.h"
#include "cpu_samples.h"
#include "spin_loop.h"
#include "wrappers.h"

#include "scripts/tool/report/frame_code.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/roles.h"
#include "scripts/tool/report/short_name.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/hash.h"
#include "encoder/base/path.h"
#include "encoder/read/need.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The place of a call in the program's own code. No other function decides that. */
static const struct gt_where *place_of(const struct gt_sections *all,
                                       const struct gt_callers *stack)
{
    uint32_t i = gt_site_index(stack);
    unsigned callers = i ? gt_wrappers_at(all, stack, i) : 0;
    return callers ? gt_site_with(stack, callers) : gt_site_of(stack);
}

static uint64_t key_of(const struct gt_section *s)
{
    uint64_t hash = gt_hash_mix(gt_hash_mix(s->kind, 0), (uintptr_t)s->what);
    hash = gt_hash_mix(gt_hash_mix(hash, (uintptr_t)s->func), (uintptr_t)s->file);
    hash = gt_hash_mix(gt_hash_mix(hash, (uintptr_t)s->site), s->lock);
    hash = gt_hash_mix(hash, (uint64_t)s->spins << 3 | (uint64_t)s->ending << 2 |
                                 (uint64_t)s->sampled << 1 | s->woken);
    return gt_hash_mix(hash,
                       (uint64_t)!s->from_what << 1 | !s->to_what); /* first or last stretch */
}

static uint32_t section_number(struct gt_sections *all, const struct gt_section *s)
{
    uint64_t *slot = gt_need(gt_memo_at(&all->by_key, key_of(s)));
    if (!*slot) {
        *GT_ADD(all->at, all->n) = *s;
        *slot = all->n;
    }
    struct gt_section *known = &all->at[*slot - 1];
    known->mixed |= known->from_what != s->from_what || known->to_what != s->to_what;
    return (uint32_t)(*slot - 1);
}

void gt_sections_begin(struct gt_sections *all, const struct gt_graph *graph)
{
    *all = (struct gt_sections){.graph = graph};
    all->unknown = section_number(
        all,
        &(struct gt_section){
            .kind = GT_OTHER, .what = "(not recorded)", .func = "", .file = "", .lock = GT_NOBODY});
    gt_wrappers_find(all);
}

/* Running ------------------------------------------------------------------------------------- */

/* Whether the stack has code of the program that was made at run time. */
static bool has_made(const struct gt_callers *stack)
{
    uint32_t i = 1;
    while (stack && i < stack->n && !gt_frame_is_own_made(stack, i))
        i++;
    return stack && i < stack->n;
}

/*
 * Where the thread ran between two calls: the innermost function that it did not leave, at the line
 * that made the first call. A function that made both calls at different lines has left all that it
 * called first. Where all lines are equal, the calls were made in a loop, and that is not in a
 * function that waits for several callers: it may be in one with a single caller. The leaves, which
 * are the calls themselves, do not count, nor do frames between the leaf and the program's own
 * code. NULL: not known, as before a thread's interpreter has come to the program's code.
 */
static const struct gt_where *common(const struct gt_sections *all, const struct gt_callers *a,
                                     const struct gt_callers *b)
{
    uint32_t i = a ? a->n : 0, k = b ? b->n : 0, n = i;
    bool stays = true;
    while (stays && i > 1 && k > 1 && a->frame[i - 1].func == b->frame[k - 1].func) {
        i--;
        k--;
        stays = a->frame[i].line == b->frame[k].line;
    }
    uint32_t own = n ? gt_site_caller(a, 0) : 0;
    i = i < own && own < n ? own : i;
    while (stays && i < n && gt_wrappers_is_shared(all, a->frame[i].func))
        i = gt_site_caller(a, i);
    if (i >= n || gt_frame_kinds(a, i) & GT_FRAME_START)
        return NULL;
    return gt_frame_is_own_made(a, i) || has_made(a) == has_made(b) ? &a->frame[i] : NULL;
}

/*
 * Whether both calls were made at the same lines of the same functions, and `in` is not the
 * outermost of them. The loop that made the calls may be in a caller, and then the caller ran
 * between them.
 */
static bool loops(const struct gt_spot *spot, uint32_t in)
{
    const struct gt_callers *a = spot->stack, *b = spot->after;
    if (!b || a->n != b->n || gt_site_caller(a, in) >= a->n)
        return false;
    uint32_t i = in;
    while (i < a->n && a->frame[i].func == b->frame[i].func && a->frame[i].line == b->frame[i].line)
        i++;
    return i == a->n;
}

/* A thread's share of an OpenMP region, whatever calls of the library lie around it. */
static struct gt_section in_region(const struct gt_callers *call)
{
    const struct gt_where *where = gt_omp_place(call);
    return (struct gt_section){.kind = GT_RUNNING,
                               .func = where->func,
                               .file = where->file,
                               .line = where->line,
                               .from_what = "",
                               .to_what = "",
                               .mixed = true};
}

static struct gt_section between(const struct gt_sections *all, uint32_t thread,
                                 const struct gt_spot *spot)
{
    const struct gt_callers *stack = spot->stack;
    const struct gt_where *in = common(all, stack, spot->after);
    uint32_t i = in ? (uint32_t)(in - stack->frame) : 0;
    if (!in && spot->region)
        return in_region(spot->region);
    struct gt_section s = {.kind = GT_RUNNING, .file = ""};
    s.site = in ? gt_site_of_running(stack, i, gt_wrappers_at(all, stack, i)) : NULL;
    s.func = in ? in->func : all->graph->lane[thread].thread->routine;
    s.file = in ? in->file : "";
    if (in) {
        uint32_t outer = stack->n - i; /* as many frames are common to both stacks */
        const struct gt_callers *after = spot->after;
        bool both = after && outer <= after->n && after->frame[after->n - outer].func == in->func;
        s.loops = loops(spot, i) && !spot->spins;
        s.line = in->line;
        s.line_to = both ? after->frame[after->n - outer].line : 0;
    }
    s.spins = spot->spins;
    s.from_what = spot->stack ? gt_leaf_of(spot->stack) : NULL;
    s.to_what = spot->after ? gt_leaf_of(spot->after) : NULL;
    return s;
}

static struct gt_section call_of(const struct gt_sections *all, const struct gt_spot *spot)
{
    const struct gt_where *where = place_of(all, spot->stack);
    const char *what = gt_leaf_of(spot->stack);
    return (struct gt_section){.what = gt_omp_is_start(what) ? GT_OMP_THREAD : what,
                               .func = where ? where->func : "",
                               .file = where ? where->file : "",
                               .line = where ? where->line : 0,
                               .site = where};
}

static uint32_t section_of_spot(struct gt_sections *all, uint32_t thread,
                                const struct gt_lane_step *step, const struct gt_lock_hold *hold)
{
    const struct gt_spot *spot = &all->graph->spot[step->spot];
    bool of_routine = spot->runs; /* the routine may stand in for an unknown function */
    uint64_t key = ((uint64_t)step->spot << 4 | step->ending << 3 | step->kind) + 1;
    if (hold || of_routine) /* mixed again, so that it equals no key without a hold */
        key = gt_hash_mix(gt_hash_mix(key, 0), of_routine ? thread + 1u : 0);
    if (hold)
        key = gt_hash_mix(gt_hash_mix(key, hold->lock + 1u), hold->place);
    uint64_t *slot = gt_need(gt_memo_at(&all->by_spot, key));
    if (*slot)
        return (uint32_t)(*slot - 1);
    struct gt_section s = spot->runs ? between(all, thread, spot) : call_of(all, spot);
    const char *taker = hold ? all->graph->text[hold->place] : "";
    s.kind = step->kind;
    s.ending = step->ending;
    s.woken = step->kind == GT_SCHED && !spot->runs && !spot->yields;
    s.starts = s.woken && strcmp(s.what, all->graph->lane[thread].thread->routine) == 0;
    s.rest = step->kind == GT_NETWORK && gt_graph_is_idle(all->graph, step);
    s.lock = hold ? hold->lock : GT_NOBODY;
    if (spot->runs && *taker && strcmp(taker, s.func) != 0) {
        s.func = taker;
        s.file = "";
        s.line = s.line_to = 0;
        s.site = NULL;
        s.loops = false;
    }
    uint32_t number = section_number(all, &s);
    *slot = number + 1u;
    return number;
}

uint32_t gt_sections_of(struct gt_sections *all, uint32_t thread, const struct gt_lane_step *step)
{
    return section_of_spot(all, thread, step, NULL);
}

/* The innermost frame that is not inlined: inlined ones have no address. */
static uint32_t first_with_address(const struct gt_callers *stack)
{
    uint32_t i = 0;
    while (i < stack->n && stack->frame[i].pc >= GT_ARCH_USER_END)
        i++;
    return i;
}

/* Whether the thread was interrupted in code that can only wait. */
static bool is_spinning(const struct gt_sections *all, const struct gt_callers *stack)
{
    struct gt_code code;
    uint32_t i = first_with_address(stack);
    return i < stack->n && gt_program_code(&all->graph->trace, stack->frame[i].pc, &code) &&
           code.machine == EM_X86_64 && gt_spin_loop_at(code.at, code.size, code.pc);
}

/* The name that programs call: "write" of "__GI___libc_write". */
static const char *name_in_libc(const char *function)
{
    static const char *const before[] = {"__GI_", "__libc_", "__"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        size_t n = strlen(before[i]);
        function += strncmp(function, before[i], n) == 0 ? n : 0;
    }
    return function;
}

/*
 * The thread was interrupted in libc, in a function that the frame called; 0: it was in other code.
 */
static uint32_t called_in_libc(const struct gt_callers *stack)
{
    static const char *const libc[] = {"libc.so", "libc-2.", "libpthread", NULL};
    uint32_t from = first_with_address(stack), i = from;
    for (; i < stack->n; i++) {
        const char *module = gt_frame_module(stack, i);
        if (!module || !gt_begins_with(gt_path_name(module), libc))
            break;
    }
    return i > from && i < stack->n && gt_site_index(stack) ? i : 0;
}

static uint32_t section_of_sample(struct gt_sections *all, uint32_t stack,
                                  const struct gt_lock_hold *hold)
{
    const struct gt_callers *callers = all->graph->stack[stack];
    uint64_t key = (uint64_t)stack << 32 | (hold ? hold->lock + 1u : 0);
    uint64_t *slot = gt_need(gt_memo_at(&all->by_sample, key));
    if (*slot)
        return (uint32_t)(*slot - 1);
    struct gt_section s = {.kind = GT_RUNNING, .sampled = true, .func = gt_leaf_of(callers)};
    uint32_t called = callers ? called_in_libc(callers) : 0;
    s.file = callers && callers->n && !called ? callers->frame[0].file : "";
    if (called) {
        s.func = name_in_libc(callers->frame[called - 1].func);
        s.site = place_of(all, callers);
    }
    s.spins = callers && is_spinning(all, callers);
    s.lock = hold ? hold->lock : GT_NOBODY;
    uint32_t number = section_number(all, &s);
    *slot = number + 1u;
    return number;
}

/* Parts --------------------------------------------------------------------------------------- */

/*
 * Of the locks held at `at`, the one that was taken last. *until: how long that stays so, and a
 * static is initialised or not. An interpreter's lock says nothing about what a thread does.
 */
static const struct gt_lock_hold *hold_at(const struct gt_lane *lane, uint64_t at, uint64_t *until)
{
    const struct gt_lock_hold *found = NULL;
    struct gt_hold_walk walk = {0};
    for (const struct gt_lock_hold *h; (h = gt_lane_next_hold(lane, at, &walk));) {
        if (h->gil)
            continue;
        if (h->from <= at && h->once) {
            *until = h->to < *until ? h->to : *until;
        } else if (h->from <= at && !found) {
            found = h;
            *until = h->to < *until ? h->to : *until;
        } else if (h->from > at && h->from < *until) {
            *until = h->from;
        }
    }
    return found;
}

/*
 * Divides the time on a CPU, which is up to `ran`, among the samples of the whole part: each stands
 * for an equal share. Most stretches between calls are too short to have a sample.
 */
static bool split_by_samples(struct gt_sections *all, uint32_t thread, uint32_t spot,
                             const struct gt_section_part *part, uint64_t ran,
                             const struct gt_lock_hold *hold, gt_part_fn *fn, void *arg)
{
    const struct gt_lane *lane = &all->graph->lane[thread];
    size_t first = lane->samples ? gt_lane_sample_from(lane, part->from) : 0;
    size_t end = lane->samples ? gt_lane_sample_from(lane, part->to) : 0;
    uint64_t n = end - first, ns = ran - part->from;
    const struct gt_why_sample *sample = n ? &lane->sample[first] : NULL;
    if (!n && lane->samples)
        sample = gt_lane_sample_alike(lane, spot, part->from);
    if (!sample)
        return false;
    n = n ? n : 1;
    for (uint64_t i = 0; i < n; i++) {
        struct gt_section_part its = {part->from + ns / n * i,
                                      i + 1 < n ? part->from + ns / n * (i + 1) : ran,
                                      section_of_sample(all, sample[i].stack, hold)};
        if (its.from < its.to)
            fn(arg, &its);
    }
    return true;
}

/* A part of a stretch of running in which the thread did not run. */
static void split_off(struct gt_sections *all, uint32_t thread, struct gt_lane_step step,
                      enum gt_kind kind, uint64_t from, uint64_t to,
                      const struct gt_lock_hold *hold, gt_part_fn *fn, void *arg)
{
    step.kind = kind;
    if (from < to)
        fn(arg, &(struct gt_section_part){from, to, section_of_spot(all, thread, &step, hold)});
}

/*
 * Divides a stretch of running: the thread's account tells how much of it was on a CPU, unless the
 * kernel's record has told that already. The rest is put after it, as the order is not known.
 */
static void split_running(struct gt_sections *all, uint32_t thread, const struct gt_lane_step *step,
                          const struct gt_section_part *part, const struct gt_lock_hold *hold,
                          gt_part_fn *fn, void *arg)
{
    struct gt_cpu_parts parts = gt_cpu_parts_of(all->graph, thread);
    double ns = (double)(part->to - part->from);
    uint64_t ran = part->from + (uint64_t)(parts.ran * ns);
    uint64_t waited = ran + (uint64_t)(parts.unseen * ns);
    struct gt_section_part its = {part->from, ran, 0};
    bool spins = all->graph->spot[step->spot].spins; /* samples know only its calls */
    if (its.from < its.to &&
        (spins || !split_by_samples(all, thread, step->spot, part, ran, hold, fn, arg))) {
        its.section = section_of_spot(all, thread, step, hold);
        fn(arg, &its);
    }
    waited = waited + 1 < part->to ? waited : part->to; /* parts are rounded */
    split_off(all, thread, *step, GT_UNSEEN, ran, waited, hold, fn, arg);
    split_off(all, thread, *step, GT_SCHED, waited, part->to, hold, fn, arg);
}

void gt_sections_split(struct gt_sections *all, uint32_t thread, const struct gt_lane_step *step,
                       uint64_t from, uint64_t to, gt_part_fn *fn, void *arg)
{
    const struct gt_lane *lane = &all->graph->lane[thread];
    while (from < to) {
        uint64_t until = to;
        const struct gt_lock_hold *hold = hold_at(lane, from, &until);
        struct gt_section_part part = {from, until, 0};
        if (step->kind == GT_RUNNING) {
            split_running(all, thread, step, &part, hold, fn, arg);
        } else {
            part.section = section_of_spot(all, thread, step, hold);
            fn(arg, &part);
        }
        from = until;
    }
}

bool gt_section_is_at(const struct gt_section *a, const struct gt_section *b)
{
    return a->what == b->what && a->func == b->func && a->file == b->file && a->site == b->site &&
           a->lock == b->lock && a->spins == b->spins;
}

/* Whether both are the first stretch of a thread, its last one, or lie between calls. */
static bool is_as_far(const struct gt_section *a, const struct gt_section *b)
{
    return !a->from_what == !b->from_what && !a->to_what == !b->to_what;
}

uint32_t gt_section_delay_of(const struct gt_sections *all, uint32_t section)
{
    const struct gt_section *runs = &all->at[section];
    for (uint32_t i = 0; runs->kind == GT_RUNNING && !runs->sampled && i < all->n; i++) {
        if (all->at[i].kind == GT_SCHED && !all->at[i].woken && is_as_far(&all->at[i], runs) &&
            gt_section_is_at(&all->at[i], runs))
            return i;
    }
    return section;
}

static bool is_wait(const struct gt_section *s)
{
    return s->what && s->kind != GT_RUNNING && s->kind != GT_SCHED;
}

bool gt_section_waits_for_child(const struct gt_section *s)
{
    return is_wait(s) && gt_waits_for_child(s->what);
}

bool gt_section_waits_for_signal(const struct gt_section *s)
{
    return is_wait(s) && gt_waits_for_signal(s->kind, s->what);
}

bool gt_section_reads(const struct gt_section *s)
{
    return s->what && (gt_is_poll(s->what) || gt_is_read(s->what));
}

bool gt_section_writes(const struct gt_section *s)
{
    static const char *const calls[] = {"write",   "send",     "fwrite",  "fflush",
                                        "fprintf", "vfprintf", "puts",    "printf",
                                        "fput",    "putc",     "vprintf", NULL};
    return s->what && gt_begins_with(s->what + strspn(s->what, "_"), calls);
}

bool gt_section_yields(const struct gt_section *s)
{
    return s->kind == GT_SCHED && s->what && !s->woken;
}

/* Words --------------------------------------------------------------------------------------- */

const char *gt_section_verb(const struct gt_section *s)
{
    switch (s->kind) {
    case GT_RUNNING: return s->spins ? "spins" : "runs";
    case GT_SCHED: return gt_section_yields(s) ? "yields" : "no CPU";
    case GT_SYSCALL: return "calls";
    case GT_SLEEP: return "sleeps";
    case GT_NETWORK: return "input";
    case GT_UNSEEN: return "unseen";
    default: return "waits";
    }
}

struct gt_name gt_name_of_function(const char *function)
{
    enum { MOST = 60 };
    struct gt_name name, buf;
    snprintf(name.text, sizeof name.text, "%s",
             gt_short_name(function, buf.text, sizeof buf.text, MOST));
    return name;
}

struct gt_name gt_name_of_thread(const struct gt_graph *graph, uint32_t thread)
{
    const struct gt_thread_state *t = graph->lane[thread].thread;
    struct gt_name own;
    if (!*t->name && gt_omp_is_worker(t))
        return (struct gt_name){GT_OMP_THREAD};
    if (!*t->name)
        return gt_name_of_function(*t->routine ? t->routine : "(no name)");
    snprintf(own.text, sizeof own.text, "%s", t->name);
    return own;
}

static bool is_only_one(const struct gt_graph *graph, uint32_t thread)
{
    const char *name = gt_name_or_routine(graph->lane[thread].thread);
    for (uint32_t i = 0; i < graph->lanes; i++) {
        if (i != thread && strcmp(gt_name_or_routine(graph->lane[i].thread), name) == 0)
            return false;
    }
    return true;
}

struct gt_name gt_name_of_one(const struct gt_graph *graph, uint32_t thread)
{
    const struct gt_thread_state *t = graph->lane[thread].thread;
    struct gt_name name = gt_name_of_thread(graph, thread), one;
    if (t->thread == GT_NO_THREAD || is_only_one(graph, thread))
        return name;
    snprintf(one.text, sizeof one.text, "%" PRIu64 " (%.1000s)", t->thread, name.text);
    return one;
}

/* "append (journal.c:53-56)": the function, and the lines of its calls before and after. */
static void put_running(FILE *out, const struct gt_section *s)
{
    uint64_t a = s->line, b = s->line_to;
    const char *file = gt_path_name(s->file);
    if (s->sampled && s->site) {
        gt_put_place(out, s->func, s->site);
        return;
    }
    gt_put_function(out, *s->func ? s->func : "(function not known)");
    if (*file && a && b && a != b)
        fprintf(out, " (%s:%" PRIu64 "-%" PRIu64 ")", file, a < b ? a : b, a < b ? b : a);
    else if (*file && (a || b))
        fprintf(out, " (%s:%" PRIu64 ")", file, a ? a : b);
    else if (*file)
        fprintf(out, " (%s)", file);
    if (s->site)
        gt_put_callers(out, s->site);
    if (s->loops)
        fputs(" or a caller", out);
}

const char *gt_section_name(const struct gt_sections *all, uint32_t section)
{
    static char text[4096];
    const struct gt_section *s = &all->at[section];
    FILE *out = gt_need(fmemopen(text, sizeof text, "w"));
    if (s->what && s->woken)
        fputs(s->starts ? "at the start of " : "woken from ", out);
    if (s->what)
        gt_put_place(out, s->what, s->site);
    else
        put_running(out, s);
    if (s->lock != GT_NOBODY)
        fprintf(out, ", holding %s", all->graph->lock[s->lock]->name);
    if (s->ending)
        fputs(", after the child's last event", out);
    fclose(out);
    return text;
}
