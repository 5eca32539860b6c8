/* See herds.h. */
#include "herds.h"

#include "encoder/read/need.h"

#include <stdlib.h>

enum { SLACK_NS = 100000 }; /* a hold may begin and end so much off */

/* The end of another thread's wait. */
struct post {
    uint32_t by;
    uint64_t at;
};

struct posts {
    struct post *at;
    size_t n, room;
};

static int by_poster(const void *a, const void *b)
{
    const struct post *x = a, *y = b;
    if (x->by != y->by)
        return x->by < y->by ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* All but the ends of waits for locks and of waits at that spot, which a holder's unlock ends, too.
 */
static struct posts find_posts(const struct gt_graph *graph, uint32_t spot)
{
    struct posts posts = {0};
    for (uint32_t i = 0; i < graph->lanes; i++) {
        struct gt_cursor c = {.graph = graph, .thread = i};
        for (const struct gt_step *s; (s = gt_cursor_next(&c));) {
            if (s->by == GT_NOBODY || s->spot == spot || gt_graph_is_lock_wait(graph, s))
                continue;
            posts.at = gt_need_room(posts.at, posts.n, &posts.room, sizeof *posts.at);
            posts.at[posts.n++] = (struct post){s->by, s->to};
        }
        gt_cursor_close(&c);
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

/* Whether the thread held one lock all the time. */
static bool held(const struct gt_lane *lane, uint64_t from, uint64_t to)
{
    struct gt_hold_walk walk = {0};
    const struct gt_hold *h;
    while ((h = gt_lane_next_hold(lane, from, &walk)) &&
           (h->from > from + SLACK_NS || h->to + SLACK_NS < to))
        ;
    return h;
}

static void look_at_thread(struct gt_herd *herd, const struct gt_graph *graph, uint32_t thread,
                           uint32_t spot, const struct posts *posts)
{
    struct gt_cursor c = {.graph = graph, .thread = thread};
    uint64_t since = 0; /* when the thread went on after it was woken there; 0: it was not */
    for (const struct gt_step *s; (s = gt_cursor_next(&c));) {
        if (s->spot != spot)
            continue;
        bool waits = s->kind == GT_SYNC && !s->relocks;
        if (waits && since && s->from > since) {
            herd->wakes++;
            herd->vain += !posted(posts, thread, since, s->from) &&
                          held(&graph->lane[thread], since, s->from);
        }
        if (s->relocks) {
            herd->queued_ns += s->to - s->from;
            herd->lock = s->lock;
        }
        since = waits && s->by == GT_NOBODY ? 0 : s->to;
    }
    gt_cursor_close(&c);
}

struct gt_herd gt_herd_of(const struct gt_graph *graph, uint32_t spot)
{
    struct gt_herd herd = {.lock = GT_NOBODY};
    struct posts posts = find_posts(graph, spot);
    for (uint32_t i = 0; i < graph->lanes; i++)
        look_at_thread(&herd, graph, i, spot, &posts);
    free(posts.at);
    return herd;
}
