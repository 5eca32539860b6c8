/* See busiest.h. */
#include "busiest.h"

#include "scripts/tool/report/reading.h"

#include "encoder/read/need.h"
#include "encoder/read/seek.h"

#include <stdlib.h>

enum { BIN_NS = 1000000, SECOND = 1000000000 / BIN_NS, LARGE = 1 << 30, LOOKS = 256 };
enum { EVENT_BYTES = 5 }; /* events are hardly ever smaller */

/* Events by time ------------------------------------------------------------------------------- */

static struct {
    uint32_t *at;
    size_t n;
    uint64_t events;
} bins;

static void count(void *arg, const struct gt_happening *h, uint64_t ns)
{
    (void)arg;
    (void)h;
    for (size_t i = ns / BIN_NS; bins.n <= i;) {
        *GT_ADD(bins.at, bins.n) = 0;
    }
    bins.at[ns / BIN_NS]++;
    bins.events++;
}

/* Of all stretches of at most a second, and at most `most` events, finds the fullest. */
static void find_fullest(uint64_t most, uint64_t *from, uint64_t *to)
{
    uint64_t sum = 0, best = 0;
    for (size_t first = 0, end = 0; end < bins.n;) {
        sum += bins.at[end++];
        while (end - first > SECOND || (sum > most && end - first > 1))
            sum -= bins.at[first++];
        if (sum <= best)
            continue;
        best = sum;
        *from = first * (uint64_t)BIN_NS;
        *to = end * (uint64_t)BIN_NS;
    }
}

/* Grows the part from time `at` to both sides, up to a second or `most` events. */
static void find_about(uint64_t most, uint64_t at, uint64_t *from, uint64_t *to)
{
    size_t first = at / BIN_NS < bins.n ? at / BIN_NS : bins.n - 1, end = first + 1;
    uint64_t sum = bins.at[first];
    while (end - first < SECOND && (first || end < bins.n)) {
        sum += first ? bins.at[first - 1] : 0;
        sum += end < bins.n ? bins.at[end] : 0;
        if (sum > most)
            break;
        first -= first > 0;
        end += end < bins.n;
    }
    *from = first * (uint64_t)BIN_NS;
    *to = end * (uint64_t)BIN_NS;
}

/* A large file --------------------------------------------------------------------------------- */

/* Compares the bytes per ns between generations; with a time `about`, takes the part around it. */
static void find_densest(const struct gt_trace *trace, uint64_t most, uint64_t about,
                         uint64_t *from, uint64_t *to)
{
    struct gt_place_in_file before, at;
    double best = 0;
    if (!gt_seek(trace, 0, &before))
        return;
    for (size_t i = 1; i < LOOKS; i++) {
        if (!gt_seek_offset(trace, trace->size / LOOKS * i, &at))
            break;
        double bytes = (double)(at.start - before.start);
        double density = at.ns > before.ns ? bytes / (double)(at.ns - before.ns) : 0;
        if (density > best && (about == GT_WHEREVER || before.ns <= about)) {
            double enough = (double)most * EVENT_BYTES / density; /* ns */
            uint64_t length = (uint64_t)(enough < 1e9 ? enough : 1e9);
            bool there = about != GT_WHEREVER;
            best = there ? 0 : density;
            *from = !there ? before.ns : about > length / 2 ? about - length / 2 : 0;
            *to = *from + length;
        }
        before = at;
    }
}

bool gt_busiest(const char *path, uint64_t most, uint64_t at, uint64_t *from, uint64_t *to)
{
    static const struct gt_audience audience = {.tell = count};
    struct gt_trace trace;
    gt_open_trace(&trace, path);
    *from = *to = 0;
    if (trace.size / EVENT_BYTES <= most)
        return false;
    if (!trace.format->v1 && trace.size >= LARGE) {
        find_densest(&trace, most, at, from, to);
        return *to > 0;
    }
    trace.progress = NULL;
    gt_trace_read(&trace, &audience);
    if (bins.events <= most)
        return false;
    if (at == GT_WHEREVER)
        find_fullest(most, from, to);
    else
        find_about(most, at, from, to);
    return true;
}
