/* See ranges.h. */
#include "ranges.h"

void gt_ranges_add(struct gt_ranges *r, uint64_t lo, uint64_t hi, uint32_t id)
{
    if (lo >= hi || lo < r->base || hi > r->limit || hi - r->base > UINT32_MAX)
        return;
    struct gt_pair *pairs = gt_pages_grow(r->pairs, r->n, &r->capacity, sizeof *pairs);
    if (!pairs)
        return;
    r->pairs = pairs;
    /* Sorted by start. If several ranges start together, the longest, the outermost, is first. */
    uint64_t start = lo - r->base, end = hi - r->base;
    r->pairs[r->n++] = (struct gt_pair){start << 32 | (UINT32_MAX - end), id};
}

/* A sweep over the ranges. `open` has the ranges around its present point, outermost first. */
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
    out->span[out->n++] = (struct gt_pc_span){at, id};
}

static void close_until(struct sweep *s, uint32_t at)
{
    while (s->depth && s->open[s->depth - 1].end <= at) {
        uint32_t end = s->open[--s->depth].end;
        /* Ranges that overlap without nesting are damage: do not reopen one that has ended. */
        while (s->depth && s->open[s->depth - 1].end <= end)
            s->depth--;
        emit(s->out, end, s->depth ? s->open[s->depth - 1].id : GT_NO_ID);
    }
}

/* Makes room for two spans a range: one where it begins and one where it ends. */
static bool make_room(struct gt_ranges *r)
{
    while (r->spans_capacity < 2 * r->n) {
        struct gt_pc_span *spans =
            gt_pages_grow(r->spans, r->spans_capacity, &r->spans_capacity, sizeof *spans);
        if (!spans)
            return false;
        r->spans = spans;
    }
    return true;
}

void gt_ranges_flatten(struct gt_ranges *r, struct gt_spans *out, struct gt_arena *arena)
{
    struct sweep s = {.out = out};
    size_t n = r->n && make_room(r) && gt_sort(r->pairs, r->n) ? r->n : 0;
    *out = (struct gt_spans){.span = r->spans};
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
    out->span = out->n ? gt_arena_copy(arena, r->spans, out->n * sizeof *r->spans) : NULL;
    out->n = out->span ? out->n : 0;
    r->n = 0;
}

void gt_ranges_free(struct gt_ranges *r)
{
    gt_pages_free(r->pairs, r->capacity * sizeof *r->pairs);
    gt_pages_free(r->spans, r->spans_capacity * sizeof *r->spans);
    *r = (struct gt_ranges){.base = r->base, .limit = r->limit};
}

uint32_t gt_spans_find(const struct gt_spans *spans, uint64_t base, uint64_t addr)
{
    if (addr < base || addr - base > UINT32_MAX)
        return GT_NO_ID;
    size_t n = gt_count_up_to(spans->span, spans->n, sizeof *spans->span, 4, addr - base);
    return n ? spans->span[n - 1].id : GT_NO_ID;
}
