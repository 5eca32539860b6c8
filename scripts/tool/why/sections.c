/* See sections.h. */
#include "sections.h"

#include "wrappers.h"

#include "scripts/tool/report/frames.h"
#include "scripts/tool/report/places.h"
#include "scripts/tool/report/short_name.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Where a call is in the program's own code: the one place where that is decided. */
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
    return gt_hash_mix(hash, (uint64_t)s->sampled << 1 | s->woken);
}

static uint32_t section_number(struct gt_sections *all, const struct gt_section *s)
{
    uint64_t *slot = gt_need(gt_memo_at(&all->by_key, key_of(s)));
    if (!*slot) {
        all->at = gt_need_room(all->at, all->n, &all->room, sizeof *all->at);
        all->at[all->n] = *s;
        *slot = ++all->n;
    }
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

/*
 * What ran between two calls: the innermost function that is on both stacks, at the place in it
 * that the first call was made from. Leaves, the calls themselves, do not count, nor does what only
 * stands between them and the program's own code.
 */
static const struct gt_where *common(const struct gt_callers *a, const struct gt_callers *b)
{
    uint32_t i = a ? a->n : 0, k = b ? b->n : 0, own = 1, all = i;
    while (i > 1 && k > 1 && a->frame[i - 1].func == b->frame[k - 1].func) {
        i--;
        k--;
    }
    while (own < all && !gt_frame_is_own(a, own))
        own++;
    i = i < own && own < all ? own : i;
    return i == all || gt_frame_kinds(a, i) & GT_FRAME_START ? NULL : &a->frame[i];
}

static struct gt_section between(const struct gt_sections *all, uint32_t thread,
                                 const struct gt_spot *spot)
{
    const struct gt_callers *stack = spot->stack;
    const struct gt_where *in = common(stack, spot->after);
    uint32_t i = in ? (uint32_t)(in - stack->frame) : 0;
    struct gt_section s = {.kind = GT_RUNNING, .file = ""};
    s.site = in ? gt_site_of_running(stack, i, gt_wrappers_at(all, stack, i)) : NULL;
    s.func = in ? in->func : all->graph->lane[thread].thread->routine;
    s.file = in ? in->file : "";
    s.from = place_of(all, stack);
    s.to = place_of(all, spot->after);
    s.from_what = spot->stack ? gt_leaf_of(spot->stack) : NULL;
    s.to_what = spot->after ? gt_leaf_of(spot->after) : NULL;
    return s;
}

static struct gt_section call_of(const struct gt_sections *all, const struct gt_spot *spot)
{
    const struct gt_where *where = place_of(all, spot->stack);
    return (struct gt_section){.what = gt_leaf_of(spot->stack),
                               .func = where ? where->func : "",
                               .file = where ? where->file : "",
                               .line = where ? where->line : 0,
                               .site = where};
}

static uint32_t section_of_spot(struct gt_sections *all, uint32_t thread,
                                const struct gt_step *step, const struct gt_hold *hold)
{
    const struct gt_spot *spot = &all->graph->spot[step->spot];
    bool of_routine = spot->runs; /* it may stand for what has no other name */
    uint64_t key = ((uint64_t)step->spot << 3 | step->kind) + 1;
    if (hold || of_routine) /* the rest of the key is spread: it is not like one without */
        key = gt_hash_mix(gt_hash_mix(key, 0), of_routine ? thread + 1u : 0);
    if (hold)
        key = gt_hash_mix(gt_hash_mix(key, hold->lock + 1u), hold->place);
    uint64_t *slot = gt_need(gt_memo_at(&all->by_spot, key));
    if (*slot)
        return (uint32_t)(*slot - 1);
    struct gt_section s = spot->runs ? between(all, thread, spot) : call_of(all, spot);
    const char *taker = hold ? all->graph->text[hold->place] : "";
    s.kind = step->kind;
    s.woken = step->kind == GT_SCHED && !spot->runs && !spot->yields;
    s.lock = hold ? hold->lock : GT_NOBODY;
    if (spot->runs && *taker && strcmp(taker, s.func) != 0) {
        s.func = taker;
        s.file = "";
        s.site = NULL;
    }
    uint32_t number = section_number(all, &s);
    *slot = number + 1u;
    return number;
}

uint32_t gt_sections_of(struct gt_sections *all, uint32_t thread, const struct gt_step *step)
{
    return section_of_spot(all, thread, step, NULL);
}

static uint32_t section_of_sample(struct gt_sections *all, uint32_t stack,
                                  const struct gt_hold *hold)
{
    const struct gt_callers *callers = all->graph->stack[stack];
    uint64_t key = (uint64_t)stack << 32 | (hold ? hold->lock + 1u : 0);
    uint64_t *slot = gt_need(gt_memo_at(&all->by_sample, key));
    if (*slot)
        return (uint32_t)(*slot - 1);
    struct gt_section s = {.kind = GT_RUNNING, .sampled = true, .func = gt_leaf_of(callers)};
    s.file = callers && callers->n ? callers->frame[0].file : "";
    s.lock = hold ? hold->lock : GT_NOBODY;
    uint32_t number = section_number(all, &s);
    *slot = number + 1u;
    return number;
}

/* Parts --------------------------------------------------------------------------------------- */

enum { HOLDS_AT_ONCE = 8 };

/* The lock that was taken last of those held at that time, and until when that is so. */
static const struct gt_hold *hold_at(const struct gt_lane *lane, size_t first, uint64_t at,
                                     uint64_t *until)
{
    const struct gt_hold *found = NULL;
    for (size_t i = first; i < lane->holds && i < first + HOLDS_AT_ONCE; i++) {
        const struct gt_hold *h = &lane->hold[i];
        if (h->to <= at)
            continue;
        if (h->from <= at && !found) {
            found = h;
            *until = h->to < *until ? h->to : *until;
        } else if (h->from > at && h->from < *until) {
            *until = h->from;
        }
    }
    return found;
}

/* Samples stand for equal parts of what ran. */
static bool split_by_samples(struct gt_sections *all, uint32_t thread,
                             const struct gt_section_part *part, const struct gt_hold *hold,
                             gt_part_fn *fn, void *arg)
{
    const struct gt_lane *lane = &all->graph->lane[thread];
    size_t first = lane->samples ? gt_lane_sample_from(lane, part->from) : 0;
    size_t end = lane->samples ? gt_lane_sample_from(lane, part->to) : 0;
    uint64_t n = end - first, ns = part->to - part->from;
    if (first == end)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        struct gt_section_part its = {part->from + ns / n * i,
                                      i + 1 < n ? part->from + ns / n * (i + 1) : part->to,
                                      section_of_sample(all, lane->sample[first + i].stack, hold)};
        if (its.from < its.to)
            fn(arg, &its);
    }
    return true;
}

void gt_sections_split(struct gt_sections *all, uint32_t thread, const struct gt_step *step,
                       uint64_t from, uint64_t to, gt_part_fn *fn, void *arg)
{
    const struct gt_lane *lane = &all->graph->lane[thread];
    size_t first = lane->holds ? gt_lane_hold_after(lane, from) : 0;
    while (from < to) {
        uint64_t until = to;
        const struct gt_hold *hold = lane->holds ? hold_at(lane, first, from, &until) : NULL;
        struct gt_section_part part = {from, until, 0};
        if (step->kind != GT_RUNNING || !split_by_samples(all, thread, &part, hold, fn, arg)) {
            part.section = section_of_spot(all, thread, step, hold);
            fn(arg, &part);
        }
        from = until;
    }
}

/* Words --------------------------------------------------------------------------------------- */

const char *gt_section_verb(const struct gt_section *s)
{
    switch (s->kind) {
    case GT_RUNNING: return "runs";
    case GT_SCHED: return s->what && !s->woken ? "yields" : "no CPU";
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
    if (!*t->name)
        return gt_name_of_function(*t->routine ? t->routine : "(no name)");
    snprintf(own.text, sizeof own.text, "%s", t->name);
    return own;
}

/* "append (journal.c:53-56)": between which of its own calls. */
static void put_running(FILE *out, const struct gt_section *s)
{
    uint64_t a = s->from && s->from->func == s->func ? s->from->line : 0;
    uint64_t b = s->to && s->to->func == s->func ? s->to->line : 0;
    const char *file = basename(s->file);
    gt_put_function(out, *s->func ? s->func : "(function not known)");
    if (*file && a && b && a != b)
        fprintf(out, " (%s:%" PRIu64 "-%" PRIu64 ")", file, a < b ? a : b, a < b ? b : a);
    else if (*file && (a || b))
        fprintf(out, " (%s:%" PRIu64 ")", file, a ? a : b);
    else if (*file)
        fprintf(out, " (%s)", file);
    if (s->site)
        gt_put_callers(out, s->site);
}

const char *gt_section_name(const struct gt_sections *all, uint32_t section)
{
    static char text[4096];
    const struct gt_section *s = &all->at[section];
    FILE *out = gt_need(fmemopen(text, sizeof text, "w"));
    if (s->what && s->woken)
        fputs("woken from ", out);
    if (s->what)
        gt_put_place(out, s->what, s->site);
    else
        put_running(out, s);
    if (s->lock != GT_NOBODY)
        fprintf(out, ", holding %s", all->graph->lock[s->lock]->name);
    fclose(out);
    return text;
}
