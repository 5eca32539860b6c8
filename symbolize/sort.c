/* See sort.h: a bottom-up merge sort. */
#include "sort.h"

#include "../encoder/arena.h"

#include <string.h>

static void merge(const struct gt_pair *a, const struct gt_pair *a_end, const struct gt_pair *b,
                  const struct gt_pair *b_end, struct gt_pair *out)
{
    while (a < a_end && b < b_end)
        *out++ = b->key < a->key ? *b++ : *a++;
    memcpy(out, a, (size_t)(a_end - a) * sizeof *a);
    memcpy(out + (a_end - a), b, (size_t)(b_end - b) * sizeof *b);
}

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool is_sorted(const struct gt_pair *pairs, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (pairs[i].key < pairs[i - 1].key)
            return false;
    }
    return true;
}

bool gt_sort(struct gt_pair *pairs, size_t n)
{
    if (is_sorted(pairs, n))
        return true;
    struct gt_pair *scratch = gt_pages_alloc(n * sizeof *scratch);
    if (!scratch)
        return false;
    struct gt_pair *from = pairs, *to = scratch;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width) {
            size_t mid = at_most(i + width, n), end = at_most(i + 2 * width, n);
            merge(from + i, from + mid, from + mid, from + end, to + i);
        }
        struct gt_pair *swap = from;
        from = to;
        to = swap;
    }
    if (from != pairs)
        memcpy(pairs, from, n * sizeof *pairs);
    gt_pages_free(scratch, n * sizeof *scratch);
    return true;
}
