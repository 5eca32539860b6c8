/* See questions.h. */
#include "questions.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>

enum {
    SCANNED = 4096,       /* steps of a thread that tell which thread it talks to */
    ENDS_MOST = 32,       /* pairs of a place and a thread that ends waits there */
    LEAST_WAITS = 4,      /* at a place: less tell nothing */
    PARTNER_PERCENT = 90, /* of the waits at a place: ended by one thread, the partner */
    WAITED_PERCENT = 20,  /* of the questions: waited for. Else they may be sent unasked */
    STRICT_PERCENT = 95,  /* of questions waited for: an answer lies between two */
};

/* The waits of a thread at a place that one thread ended. */
struct ends {
    uint32_t spot, by, n;
};

struct talker {
    struct ends ends[ENDS_MOST];
    uint32_t n;
};

static bool is_told(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    return s->by != GT_NOBODY && !gt_graph_is_lock_wait(graph, s);
}

static void note(struct talker *t, const struct gt_lane_step *s)
{
    uint32_t i = 0;
    while (i < t->n && (t->ends[i].spot != s->spot || t->ends[i].by != s->by))
        i++;
    if (i == ENDS_MOST)
        return;
    t->n += i == t->n;
    t->ends[i] = (struct ends){s->spot, s->by, t->ends[i].n + 1};
}

static void scan(const struct gt_graph *graph, uint32_t thread, struct talker *t)
{
    GT_CURSOR(c, graph, thread);
    const struct gt_lane_step *s;
    for (int i = 0; i < SCANNED && (s = gt_cursor_next(&c)); i++) {
        if (is_told(graph, s))
            note(t, s);
    }
}

/* Whether the other thread ends nearly all waits of this one at some place. */
static bool waits_for(const struct talker *t, uint32_t other)
{
    for (uint32_t i = 0; i < t->n; i++) {
        uint64_t all = 0;
        for (uint32_t k = 0; k < t->n; k++)
            all += t->ends[k].spot == t->ends[i].spot ? t->ends[k].n : 0;
        if (t->ends[i].by == other && all >= LEAST_WAITS &&
            t->ends[i].n * UINT64_C(100) >= all * PARTNER_PERCENT)
            return true;
    }
    return false;
}

/* The cursor's next wait that the thread ended; NULL: there is none. */
static const struct gt_lane_step *next_by(struct gt_cursor *c, uint32_t by)
{
    const struct gt_lane_step *s = gt_cursor_next(c);
    while (s && (s->by != by || !is_told(c->graph, s)))
        s = gt_cursor_next(c);
    return s;
}

static void add(struct gt_graph *graph, struct gt_question question)
{
    *GT_ADD(graph->question, graph->questions) = question;
}

/*
 * Before each answer that `asker` waited for, `reader` got a question: it waited for it, or not. In
 * strict talk there is never more than one. Threads that are not strict pass things on in a queue.
 */
static void find_between(struct gt_graph *graph, uint32_t asker, uint32_t reader)
{
    GT_CURSOR(answers, graph, asker);
    GT_CURSOR(questions, graph, reader);
    const struct gt_lane_step *answer, *question = next_by(&questions, asker);
    size_t known = graph->questions;
    uint64_t all = 0, waited = 0, strict = 0, before = 0; /* before: end of the last answer */
    while ((answer = next_by(&answers, reader))) {
        uint64_t n = 0;
        for (; question && question->to <= answer->to; question = next_by(&questions, asker))
            n++;
        all++;
        waited += n;
        strict += n > 0;
        if (!n && before && before < answer->from)
            add(graph, (struct gt_question){answer->from, asker, reader});
        before = answer->to;
    }
    if (waited * 100 < all * WAITED_PERCENT || strict * 100 < waited * STRICT_PERCENT)
        graph->questions = known;
}

GT_ORDER(by_reader, struct gt_question, GT_UP(reader) ?: GT_UP(at))

void gt_questions_find(struct gt_graph *graph)
{
    struct talker *talker = gt_need(calloc(graph->lanes + 1, sizeof *talker));
    for (uint32_t i = 0; i < graph->lanes; i++) {
        if (graph->lane[i].woken)
            scan(graph, i, &talker[i]);
    }
    for (uint32_t i = 0; i < graph->lanes; i++) {
        for (uint32_t k = 0; k < talker[i].n; k++) {
            uint32_t other = talker[i].ends[k].by;
            bool seen = false; /* with another place */
            for (uint32_t j = 0; j < k; j++)
                seen |= talker[i].ends[j].by == other;
            if (!seen && waits_for(&talker[i], other) && waits_for(&talker[other], i))
                find_between(graph, i, other);
        }
    }
    if (graph->questions)
        qsort(graph->question, graph->questions, sizeof *graph->question, by_reader);
    free(talker);
}
