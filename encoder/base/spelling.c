/* See spelling.h. */
#include "spelling.h"

#include <string.h>

enum { LONGEST = 40 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/*
 * Optimal string alignment, with a row for each letter of a. Three rows are kept: for the letter
 * before last, for the last one, and for this one.
 */
unsigned gt_spelling_distance(const char *a, const char *b)
{
    unsigned rows[3][LONGEST + 1] = {0}, *before = rows[0], *last = rows[1], *now = rows[2];
    size_t m = strlen(a), n = strlen(b);
    if (m > LONGEST || n > LONGEST)
        return GT_SPELLING_FAR;
    for (unsigned j = 0; j <= n; j++)
        last[j] = j;
    for (unsigned i = 1; i <= m; i++) {
        now[0] = i;
        for (unsigned j = 1; j <= n; j++) {
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
        unsigned *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return least(last[n], GT_SPELLING_FAR);
}
