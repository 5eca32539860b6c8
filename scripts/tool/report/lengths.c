/* See lengths.h. */
#include "lengths.h"

#include "encoder/read/need.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

enum { SHARES = 64 }; /* classes of lengths between a number and its double: 0.8 % */

static uint64_t class_of(uint64_t ns)
{
    unsigned above = ns < SHARES ? 0 : 63 - 6 - (unsigned)__builtin_clzll(ns);
    return ns < SHARES ? ns : (above + 1) * SHARES + (ns >> above) % SHARES;
}

/* The middle of a class. */
static uint64_t length_of(uint64_t i)
{
    unsigned above = i < SHARES ? 0 : (unsigned)(i / SHARES) - 1;
    return i < SHARES ? i : ((SHARES + i % SHARES) << above) + (UINT64_C(1) << above) / 2;
}

uint64_t gt_lengths_decade(size_t decade)
{
    uint64_t ns = decade ? 1000 : 0;
    for (size_t i = 1; i < decade; i++)
        ns *= 10;
    return ns;
}

static size_t decade_of(uint64_t ns)
{
    size_t i = 0;
    for (uint64_t least = 1000; i + 1 < GT_DECADES && ns >= least; least *= 10)
        i++;
    return i;
}

static struct gt_length_class *class_at(struct gt_lengths *l, uint64_t index)
{
    if (l->last < l->n && l->at[l->last].index == index)
        return &l->at[l->last];
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->at[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == l->n || l->at[low].index != index) {
        (void)GT_ADD(l->at, l->n);
        memmove(&l->at[low + 1], &l->at[low], (l->n - 1 - low) * sizeof *l->at);
        l->at[low] = (struct gt_length_class){index, 0};
    }
    l->last = low;
    return &l->at[low];
}

void gt_lengths_add(struct gt_lengths *l, uint64_t ns)
{
    class_at(l, class_of(ns))->count++;
    l->decade[decade_of(ns)]++;
    l->count++;
    l->longest = ns > l->longest ? ns : l->longest;
}

void gt_lengths_join(struct gt_lengths *to, const struct gt_lengths *from)
{
    for (size_t i = 0; i < from->n; i++)
        class_at(to, from->at[i].index)->count += from->at[i].count;
    for (size_t i = 0; i < GT_DECADES; i++)
        to->decade[i] += from->decade[i];
    to->count += from->count;
    to->longest = from->longest > to->longest ? from->longest : to->longest;
}

uint64_t gt_lengths_percentile(const struct gt_lengths *l, uint64_t per_thousand)
{
    uint64_t left = l->count * per_thousand / 1000;
    for (size_t i = 0; i < l->n; i++) {
        uint64_t length = length_of(l->at[i].index);
        if (left < l->at[i].count)
            return length < l->longest ? length : l->longest;
        left -= l->at[i].count;
    }
    return l->longest;
}

uint64_t gt_lengths_long(const struct gt_lengths *l, uint64_t *ns, uint64_t *least)
{
    enum { TIMES = 20, LEAST_NS = 1000000 };
    uint64_t from = gt_lengths_percentile(l, 500) * TIMES, n = 0;
    *ns = *least = 0;
    for (size_t i = l->n; i--;) {
        uint64_t length = length_of(l->at[i].index);
        if (length < from || length < LEAST_NS)
            break;
        n += l->at[i].count;
        *ns += l->at[i].count * length;
        *least = length < l->longest ? length : l->longest;
    }
    return n;
}

bool gt_bars_are_utf8(void)
{
    static bool asked, utf8;
    if (!asked) {
        utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
        setlocale(LC_CTYPE, "C");
        asked = true;
    }
    return utf8;
}

const char *gt_bar(double value, double most, bool utf8)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[] = {" ", ".", ".", ":", "-", "=", "+", "*", "#"};
    int i = most > 0 ? (int)(value / most * 8 + 0.5) : 0;
    i = i > 8 ? 8 : !i && value > 0.02 * most ? 1 : i;
    return (utf8 ? blocks : letters)[i];
}

const char *gt_lengths_bars(const struct gt_lengths *l)
{
    static char text[4 * GT_DECADES + 1];
    bool utf8 = gt_bars_are_utf8();
    uint64_t most = 0;
    *text = '\0';
    for (size_t i = 0; i < GT_DECADES; i++)
        most = l->decade[i] > most ? l->decade[i] : most;
    for (size_t i = 0; i < GT_DECADES; i++) {
        bool any = l->decade[i] && l->decade[i] * 50 <= most; /* a few are to be seen, too */
        strcat(text, gt_bar(any ? 0.05 : (double)l->decade[i], any ? 1 : (double)most, utf8));
    }
    return text;
}
