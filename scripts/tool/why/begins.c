/* See begins.h. */
#include "begins.h"

#include "encoder/read/need.h"

#include <stdlib.h>

enum {
    POSTS_MOST = 200000, /* wake-ups that are looked at */
    TIMES = 2,           /* one order is so many times as frequent as the other */
};

/* A thread ended another one's wait, at that place, about when a rough hold of it begins. */
struct post {
    uint64_t at;
    uint32_t by, spot;
};

/* How often such posts came before and after the lock was taken. */
struct order {
    uint32_t before, after;
};

/* The rough holds of a thread: see gt_hold_is_rough. */
struct rough {
    struct gt_lock_hold **at;
    size_t n;
};

struct look {
    struct gt_graph *graph;
    struct rough *rough; /* by thread */
    bool any;            /* there is one */
    struct post *post;
    size_t posts;
    struct gt_memo index; /* by lock and place: index in `order` + 1 */
    struct order *order;
    size_t orders;
    struct gt_cursor *cursor; /* of each thread */
};

static void find_rough(struct look *l)
{
    l->rough = gt_need(calloc(l->graph->lanes + 1, sizeof *l->rough));
    for (size_t i = 0; i < l->graph->lanes; i++) {
        const struct gt_lane *lane = &l->graph->lane[i];
        struct rough *its = &l->rough[i];
        for (size_t k = 0; k < lane->holds; k++) {
            if (!gt_hold_is_rough(&lane->hold[k]))
                continue;
            *GT_ADD(its->at, its->n) = &lane->hold[k];
            l->any = true;
        }
    }
}

/* The rough hold that begins about when the post comes, or NULL. */
static struct gt_lock_hold *hold_about(const struct look *l, const struct post *p)
{
    const struct rough *its = &l->rough[p->by];
    size_t low = 0, high = its->n;
    while (low < high) { /* the number of those that are over then */
        size_t middle = low + (high - low) / 2;
        if (its->at[middle]->to <= p->at)
            low = middle + 1;
        else
            high = middle;
    }
    struct gt_lock_hold *h = low < its->n ? its->at[low] : NULL;
    uint64_t off = !h ? 0 : h->from > p->at ? h->from - p->at : p->at - h->from;
    return h && off <= 2 * gt_hold_slack(h) ? h : NULL;
}

static void find_posts(struct look *l)
{
    const struct gt_graph *graph = l->graph;
    for (uint32_t i = 0; i < graph->lanes; i++) {
        GT_CURSOR(c, graph, i);
        const struct gt_lane_step *s = graph->lane[i].woken ? gt_cursor_next(&c) : NULL;
        for (; s && l->posts < POSTS_MOST; s = gt_cursor_next(&c)) {
            struct post post = {s->to, s->by, s->spot};
            if (s->by == GT_NOBODY || !hold_about(l, &post) || gt_graph_is_lock_wait(graph, s))
                continue;
            *GT_ADD(l->post, l->posts) = post;
        }
    }
}

static struct order *order_of(struct look *l, uint32_t lock, uint32_t spot)
{
    uint64_t *slot = gt_need(gt_memo_at(&l->index, (lock + UINT64_C(1)) << 32 | spot));
    if (!*slot) {
        *GT_ADD(l->order, l->orders) = (struct order){0, 0};
        *slot = l->orders;
    }
    return &l->order[*slot - 1];
}

/*
 * Whether the thread waited for the lock, just before the post (1) or just after (-1). 0: it did
 * not wait.
 */
static int waited(const struct look *l, const struct post *p, const struct gt_lock_hold *h)
{
    struct gt_cursor *c = &l->cursor[p->by];
    uint64_t slack = 2 * gt_hold_slack(h);
    const struct gt_lane_step *s = gt_cursor_seek(c, p->at);
    for (int i = 0; s && i < 4 && s->from < p->at + slack; i++, s = gt_cursor_next(c)) {
        if (s->from >= p->at && gt_graph_is_lock_wait(l->graph, s) && s->lock == h->lock)
            return -1;
    }
    s = gt_cursor_seek(c, p->at);
    for (int i = 0; s && i < 4 && s->to + slack > p->at; i++, s = gt_cursor_seek(c, s->from)) {
        if (s->to <= p->at && gt_graph_is_lock_wait(l->graph, s) && s->lock == h->lock)
            return 1;
    }
    return 0;
}

static void learn(struct look *l, const struct post *p)
{
    const struct gt_lock_hold *h = hold_about(l, p);
    int way = h ? waited(l, p, h) : 0;
    if (way > 0)
        order_of(l, h->lock, p->spot)->after++;
    else if (way < 0)
        order_of(l, h->lock, p->spot)->before++;
}

static void settle(struct look *l, const struct post *p)
{
    struct gt_lock_hold *h = hold_about(l, p);
    struct order order = h ? *order_of(l, h->lock, p->spot) : (struct order){0, 0};
    if (h && h->from >= p->at && p->at && order.after > TIMES * order.before)
        h->from = p->at - 1;
    else if (h && h->from <= p->at && p->at + 1 < h->to && order.before > TIMES * order.after)
        h->from = p->at + 1;
}

void gt_begins_settle(struct gt_graph *graph)
{
    struct look l = {.graph = graph};
    find_rough(&l);
    if (l.any)
        find_posts(&l);
    l.cursor = gt_cursors_open(graph);
    for (size_t i = 0; i < l.posts; i++)
        learn(&l, &l.post[i]);
    for (size_t i = 0; i < l.posts && l.orders; i++)
        settle(&l, &l.post[i]);
    for (uint32_t i = 0; i < graph->lanes; i++)
        free(l.rough[i].at);
    gt_cursors_close(l.cursor);
    gt_memo_free(&l.index);
    free(l.rough);
    free(l.order);
    free(l.post);
}
