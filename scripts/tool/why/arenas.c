/* See arenas.h. Names are those of glibc: malloc/malloc.c, nptl/lowlevellock.c. */
#include "arenas.h"

#include "cpu_samples.h"

#include "encoder/read/need.h"

#include <string.h>

struct look {
    const struct gt_sections *sections;
    struct gt_arenas found;
    struct gt_memo by_caller;
    uint64_t most;
};

static bool is_lock(const char *function)
{
    return strstr(function, "lll_lock_wait") || strstr(function, "lll_lock_wake") ||
           strcmp(function, "futex_wait") == 0;
}

static bool is_malloc(const char *function)
{
    static const char *const names[] = {
        "malloc",
        "free",
        "calloc",
        "realloc",
        "memalign",
        "aligned_alloc",
        "posix_memalign",
        "__libc_malloc",
        "__libc_free",
        "__libc_calloc",
        "__libc_realloc",
        "_mid_memalign",
        "_int_malloc",
        "_int_free",
        "_int_realloc",
        "__GI___libc_free",
        "__GI___libc_malloc",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(function, names[i]) == 0)
            return true;
    }
    return false;
}

/* The function that called malloc or free, if the stack is in the lock of an arena; else NULL. */
static const char *caller_of(const struct gt_callers *stack)
{
    enum { FRAMES_MOST = 8 };
    const char *caller = NULL;
    bool lock = false, inside = false;
    for (uint32_t i = 0; stack && i < stack->n && i < FRAMES_MOST && !caller; i++) {
        const char *function = stack->frame[i].func;
        lock |= !inside && is_lock(function);
        if (is_malloc(function))
            inside = true;
        else if (inside)
            caller = function;
    }
    return lock ? caller : NULL;
}

static void add_sample(struct look *l, const struct gt_why_sample *sample)
{
    const char *caller = caller_of(l->sections->graph->stack[sample->stack]);
    if (!caller)
        return;
    uint64_t *n = gt_need(gt_memo_at(&l->by_caller, (uintptr_t)caller));
    if (!l->found.locked++)
        l->found.at = sample->at;
    if (++*n > l->most) {
        l->most = *n;
        l->found.caller = caller;
    }
}

static void add_part(void *arg, const struct gt_section_part *part)
{
    struct look *l = arg;
    if (l->sections->at[part->section].kind == GT_UNSEEN)
        l->found.unseen_ns += part->to - part->from;
}

static void add_unseen(struct look *l, struct gt_sections *sections, uint32_t thread, uint64_t from,
                       uint64_t to)
{
    GT_EACH_STEP_IN(s, sections->graph, thread, from, to) {
        if (s->kind == GT_RUNNING || s->kind == GT_UNSEEN)
            gt_sections_split(sections, thread, s, s->from > from ? s->from : from,
                              s->to < to ? s->to : to, add_part, l);
    }
}

struct gt_arenas gt_arenas_find(struct gt_sections *sections, uint64_t from, uint64_t to)
{
    struct look l = {.sections = sections};
    for (uint32_t i = 0; i < sections->graph->lanes; i++) {
        const struct gt_lane *lane = &sections->graph->lane[i];
        size_t first = lane->samples ? gt_lane_sample_from(lane, from) : 0;
        size_t end = lane->samples ? gt_lane_sample_from(lane, to) : 0;
        uint64_t before = l.found.locked;
        for (size_t k = first; k < end; k++)
            add_sample(&l, &lane->sample[k]);
        if (l.found.locked == before)
            continue;
        l.found.threads++;
        l.found.samples += end - first;
        add_unseen(&l, sections, i, from, to);
    }
    gt_memo_free(&l.by_caller);
    return l.found;
}
