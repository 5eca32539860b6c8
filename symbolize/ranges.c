/* See ranges.h. */
#include "ranges.h"

#include "encoder/base/arena.h"

#include <string.h>

static bool make_room(struct gt_ranges *r)
{
    void *p =
        r->n < r->capacity ? r->pairs : gt_pages_grow(r->pairs, &r->capacity, sizeof *r->pairs);
    if (p)
        r->pairs = p;
    return p;
}

void gt_ranges_add(struct gt_ranges *r, uint64_t lo, uint64_t hi, uint32_t id)
{
    if (lo >= hi || lo < r->base || hi > r->limit || hi - r->base > UINT32_MAX || !make_room(r))
        return;
    /* By start; of those that start together the longest, which is the outermost, first. */
    uint64_t start = lo - r->base, end = hi - r->base;
    r->pairs[r->n++] = (struct gt_pair){start << 32 | (UINT32_MAX - end), id};
}

void gt_ranges_free(struct gt_ranges *r)
{
    if (r->pairs)
        gt_pages_free(r->pairs, r->capacity * sizeof *r->pairs);
    r->pairs = NULL;
    r->n = r->capacity = 0;
}

/* The ranges around the point the sweep is at, outermost first. */
struct sweep {
    struct gt_spans *out;
    struct {
        uint32_t end, id;
    } open[256];
    size_t depth;
};

static void emit(struct gt_spans *out, uint32_t at, uint32_t id)
{
    if (out->n && out->span[out->n - 1].at == at)
        out->n--;
    out->span[out->n++] = (struct gt_span){at, id};
}

static void close_until(struct sweep *s, uint32_t at)
{
    while (s->depth && s->open[s->depth - 1].end <= at) {
        uint32_t end = s->open[--s->depth].end;
        /* Ranges that overlap without nesting are damage; what has ended already stays closed. */
        while (s->depth && s->open[s->depth - 1].end <= end)
            s->depth--;
        emit(s->out, end, s->depth ? s->open[s->depth - 1].id : GT_NO_ID);
    }
}

void gt_ranges_flatten(struct gt_ranges *r, struct gt_spans *out, struct gt_arena *arena)
{
    struct sweep s = {.out = out};
    size_t n = r->n;
    r->n = 0;
    out->n = 0;
    if (!n || !gt_sort(r->pairs, n))
        return;
    struct gt_span *spans = gt_pages_alloc(2 * n * sizeof *spans);
    if (!spans)
        return;
    out->span = spans;
    for (size_t i = 0; i < n; i++) {
        uint32_t start = (uint32_t)(r->pairs[i].key >> 32);
        uint32_t end = UINT32_MAX - (uint32_t)r->pairs[i].key;
        close_until(&s, start);
        if (s.depth == sizeof s.open / sizeof *s.open)
            continue;
        s.open[s.depth].end = end;
        s.open[s.depth++].id = (uint32_t)r->pairs[i].value;
        emit(out, start, (uint32_t)r->pairs[i].value);
    }
    close_until(&s, UINT32_MAX);
    out->span = gt_arena_alloc(arena, out->n * sizeof *spans);
    if (out->span)
        memcpy(out->span, spans, out->n * sizeof *spans);
    else
        out->n = 0;
    gt_pages_free(spans, 2 * n * sizeof *spans);
}

uint32_t gt_spans_find(const struct gt_spans *spans, uint64_t base, uint64_t addr)
{
    size_t lo = 0, hi = spans->n;
    if (addr < base || addr - base > UINT32_MAX)
        return GT_NO_ID;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (spans->span[mid].at <= addr - base)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? spans->span[lo - 1].id : GT_NO_ID;
}
