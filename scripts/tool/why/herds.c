/* See herds.h. */
#include "herds.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>

/* The end of another thread's wait. */
struct post {
    uint32_t by;
    uint64_t at;
};

struct posts {
    struct post *at;
    size_t n;
};

GT_ORDER(by_poster, struct post, GT_UP(by) ?: GT_UP(at))

/* The condition variable of the waits at that spot. */
static uint32_t variable_of(const struct gt_graph *graph, uint32_t spot)
{
    uint32_t found = GT_NOBODY;
    for (uint32_t i = 0; i < graph->lanes && found == GT_NOBODY; i++) {
        GT_CURSOR(c, graph, i);
        for (const struct gt_lane_step *s; found == GT_NOBODY && (s = gt_cursor_next(&c));)
            found = s->spot == spot && s->kept ? s->lock : GT_NOBODY;
    }
    return found;
}

/*
 * All but the ends of waits for locks, and of waits for that variable, which are ended by an unlock
 * of its mutex, too.
 */
static struct posts find_posts(const struct gt_graph *graph, uint32_t variable)
{
    struct posts posts = {0};
    for (uint32_t i = 0; i < graph->lanes; i++) {
        GT_EACH_STEP(s, graph, i) {
            if (s->by == GT_NOBODY || s->lock == variable || gt_graph_is_lock_wait(graph, s))
                continue;
            *GT_ADD(posts.at, posts.n) = (struct post){s->by, s->to};
        }
    }
    if (posts.n)
        qsort(posts.at, posts.n, sizeof *posts.at, by_poster);
    return posts;
}

static bool posted(const struct posts *posts, uint32_t thread, uint64_t from, uint64_t to)
{
    size_t low = 0, high = posts->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct post *p = &posts->at[middle];
        if (p->by < thread || (p->by == thread && p->at < from))
            low = middle + 1;
        else
            high = middle;
    }
    return low < posts->n && posts->at[low].by == thread && posts->at[low].at <= to;
}

static void look_at_thread(struct gt_herd *herd, const struct gt_graph *graph, uint32_t thread,
                           uint32_t spot, const struct posts *posts)
{
    uint64_t since = 0; /* when the thread went on after it was woken there; 0: it was not */
    GT_EACH_STEP(s, graph, thread) {
        if (s->spot != spot)
            continue;
        bool waits = s->kind == GT_SYNC && !s->relocks;
        if (waits && since && s->anew) {
            herd->wakes++;
            herd->vain += s->kept && !posted(posts, thread, since, s->from);
        }
        if (s->relocks) {
            herd->queued_ns += s->to - s->from;
            herd->lock = s->lock;
        }
        since = waits && s->by == GT_NOBODY ? 0 : s->to;
    }
}

struct gt_herd gt_herd_of(const struct gt_graph *graph, uint32_t spot)
{
    struct gt_herd herd = {.lock = GT_NOBODY};
    struct posts posts = find_posts(graph, variable_of(graph, spot));
    for (uint32_t i = 0; i < graph->lanes; i++)
        look_at_thread(&herd, graph, i, spot, &posts);
    free(posts.at);
    return herd;
}
