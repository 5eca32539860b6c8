/* Flattened ranges and the tables beside them, against the slow and obvious way. */
#include "encoder/base/memo.h"
#include "symbolize/dwarf/ranges.h"

#include "check.h"

enum { BASE = 0x1000, SIZE = 2000, RANGES_MAX = 600 };

static struct range {
    uint64_t lo, hi;
} ranges[RANGES_MAX];
static uint32_t count;

/* Random ranges within ranges, an outer one always before its inner ones. */
static void nest(uint64_t lo, uint64_t hi, int depth)
{
    while (lo < hi && depth < 8 && count < RANGES_MAX) {
        uint64_t start = lo + (uint64_t)rand() % (hi - lo) / 2;
        uint64_t end = start + 1 + (uint64_t)rand() % (hi - start);
        ranges[count++] = (struct range){start, end};
        nest(start, end, depth + 1);
        lo = end + (uint64_t)rand() % 3;
    }
}

static uint32_t innermost(uint64_t addr)
{
    uint32_t found = GT_NO_ID;
    for (uint32_t i = 0; i < count; i++) {
        if (addr >= ranges[i].lo && addr < ranges[i].hi)
            found = i;
    }
    return found;
}

static void check_ranges(unsigned seed)
{
    struct gt_ranges r = {.base = BASE, .limit = BASE + SIZE};
    struct gt_spans spans = {0};
    struct gt_arena arena = {.chunk = NULL};
    srand(seed);
    count = 0;
    nest(BASE, BASE + SIZE, 0);
    for (uint32_t i = 0; i < count; i++)
        gt_ranges_add(&r, ranges[i].lo, ranges[i].hi, i);
    gt_ranges_add(&r, BASE + 5, BASE + 5, 77777); /* empty */
    gt_ranges_add(&r, 0, BASE + 9, 77777);        /* not code of this module */
    gt_ranges_add(&r, BASE, BASE + SIZE + 1, 77777);
    gt_ranges_flatten(&r, &spans, &arena);
    for (uint64_t a = BASE - 2; a < BASE + SIZE + 2; a++)
        CHECK(gt_spans_find(&spans, BASE, a) == innermost(a), "seed %u: at %" PRIu64, seed, a);
    gt_arena_free(&arena);
}

/* Any order and overlap: nothing to expect but an answer. */
static void check_damaged_ranges(unsigned seed)
{
    struct gt_ranges r = {.base = 0, .limit = UINT64_MAX};
    struct gt_spans spans = {0};
    struct gt_arena arena = {.chunk = NULL};
    srand(seed);
    for (uint32_t i = 0; i < 3000; i++) {
        uint64_t lo = (uint64_t)rand() % 5000;
        gt_ranges_add(&r, lo, lo + (uint64_t)rand() % 5000, i);
    }
    gt_ranges_flatten(&r, &spans, &arena);
    for (size_t i = 1; i < spans.n; i++)
        CHECK(spans.span[i - 1].at < spans.span[i].at, "seed %u: order", seed);
    gt_arena_free(&arena);
}

static void check_memo(void)
{
    struct gt_memo memo = {0};
    for (uint64_t key = 0; key < 20000; key++) {
        uint64_t *slot = gt_memo_at(&memo, key * 4096);
        CHECK(slot && *slot == 0, "new");
        if (key % 3)
            *slot = key + 1;
    }
    for (uint64_t key = 0; key < 20000; key++) {
        CHECK_EQ(gt_memo_find(&memo, key * 4096), key % 3 ? key + 1 : 0);
        CHECK_EQ(*gt_memo_at(&memo, key * 4096), key % 3 ? key + 1 : 0);
    }
    size_t capacity = memo.capacity;
    for (uint64_t key = 20000; key < 1000000; key++) /* a missing table takes no memory */
        CHECK_EQ(*gt_memo_at(&memo, key * 4096), 0);
    CHECK(memo.capacity <= 2 * capacity, "%zu of %zu", memo.capacity, capacity);
    gt_memo_free(&memo);
}

static void check_sort(void)
{
    static struct gt_pair pairs[10007];
    size_t n = sizeof pairs / sizeof *pairs;
    for (size_t i = 0; i < n; i++)
        pairs[i] = (struct gt_pair){(uint64_t)rand() % 500, i};
    CHECK(gt_sort(pairs, n), "memory");
    for (size_t i = 1; i < n; i++)
        CHECK(pairs[i - 1].key < pairs[i].key ||
                  (pairs[i - 1].key == pairs[i].key && pairs[i - 1].value < pairs[i].value),
              "at %zu", i);
}

int main(void)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        check_ranges(seed);
        check_damaged_ranges(seed);
    }
    check_memo();
    check_sort();
    return 0;
}
