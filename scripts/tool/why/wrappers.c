/* See wrappers.h. */
#include "wrappers.h"

#include "scripts/tool/report/places.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 3, /* wrappers of wrappers */
    SPREAD_PERCENT =
        150,          /* the longest call of one caller, on average, to the shortest of another */
    LEAST_NS = 20000, /* on average: what is shorter is no reason for anything */
};

/* What a function waits for one that calls it. */
struct pair {
    const char *function;
    uint64_t count, ns, least;
};

static bool is_wrapper(const struct gt_sections *all, const char *function)
{
    return gt_memo_find(&all->wrappers, (uintptr_t)function);
}

unsigned gt_wrappers_at(const struct gt_sections *all, const struct gt_callers *stack,
                        uint32_t frame)
{
    unsigned n = 0;
    for (; frame < stack->n && is_wrapper(all, stack->frame[frame].func); n++)
        frame = gt_site_caller(stack, frame);
    return n;
}

/* A function has a name: an address is one place in it. */
static bool is_function(const struct gt_callers *stack, uint32_t i)
{
    return i < stack->n && !strstr(stack->frame[i].func, "+0x");
}

/* Which function, of those that are no wrappers, waits there, and who calls it. */
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

static int by_function(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return gt_compare_pointers(x->function, y->function);
}

static bool depends_on_caller(const struct pair *pair, size_t n)
{
    uint64_t shortest = UINT64_MAX, longest = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t average = pair[i].ns / pair[i].count;
        if (average < LEAST_NS)
            continue;
        shortest = average < shortest ? average : shortest;
        longest = pair[i].least > longest ? pair[i].least : longest;
    }
    return shortest < longest && longest * 100 >= shortest * SPREAD_PERCENT;
}

static bool find_more(struct gt_sections *all)
{
    struct pair *pair = gt_need(calloc(all->graph->spots + 1, sizeof *pair));
    size_t n = find_pairs(all, pair);
    bool found = false;
    if (n)
        qsort(pair, n, sizeof *pair, by_function);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && pair[end].function == pair[i].function;)
            end++;
        if (!depends_on_caller(pair + i, end - i))
            continue;
        *(uint64_t *)gt_need(gt_memo_at(&all->wrappers, (uintptr_t)pair[i].function)) = 1;
        found = true;
    }
    free(pair);
    return found;
}

void gt_wrappers_find(struct gt_sections *all)
{
    for (int i = 0; i < ROUNDS && find_more(all); i++)
        ;
}
