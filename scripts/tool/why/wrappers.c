/* See wrappers.h. */
#include "wrappers.h"

#include "encoder/base/hash.h"
#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 3, /* wrappers may wrap wrappers */
    SPREAD_PERCENT =
        150,           /* how much longer one caller's shortest call is than an average elsewhere */
    LEAST_NS = 20000,  /* average: shorter calls explain nothing */
    MOST_PERCENT = 50, /* of a function's waits: a caller with so much of them explains it */
};

/* The waits of one function, for one caller of it. */
struct pair {
    const char *function;
    uint64_t count, ns, least;
};

/* In gt_sections.wrappers: a function with one caller, or one whose waits depend on its caller. */
enum { HAS_ONE_CALLER = 1, DEPENDS };

static bool is_wrapper(const struct gt_sections *all, const char *function)
{
    return gt_memo_find(&all->wrappers, (uintptr_t)function);
}

bool gt_wrappers_is_shared(const struct gt_sections *all, const char *function)
{
    return gt_memo_find(&all->wrappers, (uintptr_t)function) == DEPENDS;
}

unsigned gt_wrappers_at(const struct gt_sections *all, const struct gt_callers *stack,
                        uint32_t frame)
{
    unsigned n = 0;
    for (; frame < stack->n && is_wrapper(all, stack->frame[frame].func); n++)
        frame = gt_site_caller(stack, frame);
    return n;
}

/* Whether the frame has a function's name: a bare address is only one place in a function. */
static bool is_function(const struct gt_callers *stack, uint32_t i)
{
    return i < stack->n && !strstr(stack->frame[i].func, "+0x");
}

/* The innermost function that waits there and is no wrapper, and its caller. */
static bool find_pair(const struct gt_sections *all, const struct gt_callers *stack,
                      const char **function, const char **caller)
{
    uint32_t i = gt_site_index(stack);
    if (!i)
        return false;
    for (unsigned n = gt_wrappers_at(all, stack, i); n; n--)
        i = gt_site_caller(stack, i);
    uint32_t next = i < stack->n ? gt_site_caller(stack, i) : stack->n;
    if (!is_function(stack, i) || !is_function(stack, next))
        return false;
    *function = stack->frame[i].func;
    *caller = stack->frame[next].func;
    return true;
}

/* Notes from where the function at that frame calls. `calls`: 1 + the place; 1: several. */
static void note_call(struct gt_memo *calls, const struct gt_callers *stack, uint32_t i)
{
    if (!i || i >= stack->n)
        return;
    uint64_t place = gt_hash_mix(stack->frame[i].pc, stack->frame[i].line) | 2;
    uint64_t *slot = gt_need(gt_memo_at(calls, (uintptr_t)stack->frame[i].func));
    *slot = *slot && *slot != place ? 1 : place;
}

/* Finds which functions make all of their calls at one place: they may only wrap it. */
static struct gt_memo find_calls(const struct gt_graph *graph)
{
    struct gt_memo calls = {0};
    for (size_t i = 0; i < graph->spots; i++) {
        const struct gt_callers *stack = graph->spot[i].stack;
        uint32_t site = !graph->spot[i].runs && stack ? gt_site_index(stack) : 0;
        if (!site)
            continue;
        note_call(&calls, stack, site);
        note_call(&calls, stack, gt_site_caller(stack, site));
    }
    return calls;
}

static size_t find_pairs(const struct gt_sections *all, struct pair *pair)
{
    const struct gt_graph *graph = all->graph;
    struct gt_memo by_names = {0};
    size_t n = 0;
    for (size_t i = 0; i < graph->spots; i++) {
        const struct gt_spot *spot = &graph->spot[i];
        const char *function, *caller;
        if (spot->runs || spot->yields || !spot->alone ||
            !find_pair(all, spot->stack, &function, &caller))
            continue;
        uint64_t key = gt_hash_mix(gt_hash_mix(0, (uintptr_t)function), (uintptr_t)caller);
        uint64_t *slot = gt_need(gt_memo_at(&by_names, key));
        if (!*slot) {
            pair[n] = (struct pair){.function = function, .least = UINT64_MAX};
            *slot = ++n;
        }
        struct pair *its = &pair[*slot - 1];
        its->count += spot->alone;
        its->ns += spot->alone_ns;
        its->least = spot->alone_least < its->least ? spot->alone_least : its->least;
    }
    gt_memo_free(&by_names);
    return n;
}

GT_ORDER(by_function, struct pair, gt_compare_pointers(x->function, y->function))

/*
 * Whether the caller explains the function's waits: they differ in length between callers, or most
 * of their time is one caller's of several.
 */
static bool depends_on_caller(const struct pair *pair, size_t n)
{
    uint64_t shortest = UINT64_MAX, longest = 0, most = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t average = pair[i].ns / pair[i].count;
        if (average < LEAST_NS)
            continue;
        shortest = average < shortest ? average : shortest;
        longest = pair[i].least > longest ? pair[i].least : longest;
        most = pair[i].ns > most ? pair[i].ns : most;
        sum += pair[i].ns;
    }
    return n > 1 &&
           (most * 100 >= sum * MOST_PERCENT || longest * 100 >= shortest * SPREAD_PERCENT) && sum;
}

/* calls: see find_calls; NULL: a function with one caller is no wrapper. */
static bool find_more(struct gt_sections *all, const struct gt_memo *calls)
{
    struct pair *pair = gt_need(calloc(all->graph->spots + 1, sizeof *pair));
    size_t n = find_pairs(all, pair);
    bool found = false;
    if (n)
        qsort(pair, n, sizeof *pair, by_function);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && pair[end].function == pair[i].function;)
            end++;
        bool only_wraps = end - i == 1 && calls &&
                          gt_memo_find(calls, (uintptr_t)pair[i].function) > 1 &&
                          pair[i].ns >= pair[i].count * LEAST_NS;
        if (!only_wraps && !depends_on_caller(pair + i, end - i))
            continue;
        *(uint64_t *)gt_need(gt_memo_at(&all->wrappers, (uintptr_t)pair[i].function)) =
            only_wraps ? HAS_ONE_CALLER : DEPENDS;
        found = true;
    }
    free(pair);
    return found;
}

void gt_wrappers_find(struct gt_sections *all)
{
    struct gt_memo calls = find_calls(all->graph);
    bool more = find_more(all, &calls);
    for (int i = 1; i < ROUNDS && more; i++)
        more = find_more(all, NULL);
    gt_memo_free(&calls);
}
