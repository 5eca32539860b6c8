/* See rests.h. */
#include "rests.h"

#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/roles.h"

#include <string.h>

/* Whether a signal or a cancellation ended that call of sleep(), which else takes whole seconds. */
static bool is_cut_short(const char *call, const struct gt_lane_step *s)
{
    enum { SECOND_NS = 1000000000, LATE_NS = 20000000 };
    return strcmp(call, "sleep") == 0 && (s->to - s->from) % SECOND_NS > LATE_NS;
}

/*
 * Whether the step is a wait that some event outside of the thread ended, and no thread is known to
 * have ended it. A wait with a timeout may just have timed out.
 */
static bool ended_unseen(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    static const char *const inputs[] = {"read", "recv", "accept", "mq_receive", "msgrcv", NULL};
    const struct gt_spot *spot = &graph->spot[s->spot];
    const char *call = gt_leaf_of(spot->stack);
    if (s->by != GT_NOBODY || spot->runs)
        return false;
    switch (s->kind) {
    case GT_NETWORK: return true;
    case GT_SYNC: return !spot->locks && !strstr(call, "timed") && !strstr(call, "clock");
    case GT_SYSCALL:
        return gt_begins_with(call, inputs) || gt_waits_for_signal(s->kind, call) ||
               gt_graph_is_idle(graph, s);
    case GT_SLEEP: return gt_step_is_open(s) || is_cut_short(call, s);
    default: return false;
    }
}

bool gt_rest_before(const struct gt_graph *graph, uint32_t thread, uint64_t at,
                    struct gt_lane_step *rest)
{
    enum { STEPS_BACK = 64 };
    uint64_t until = graph->lane[thread].until;
    GT_CURSOR(c, graph, thread);
    const struct gt_lane_step *s = gt_cursor_seek(&c, at < until ? at : until);
    for (int i = 0; s && i < STEPS_BACK && !ended_unseen(graph, s); i++)
        s = gt_cursor_seek(&c, s->from);
    bool found = s && ended_unseen(graph, s);
    *rest = found ? *s : (struct gt_lane_step){0};
    return found;
}

/* When the thread began to send something just before `at`; 0: as far as known, it did not. */
static uint64_t sent_before(const struct gt_graph *graph, uint32_t thread, uint64_t at)
{
    enum { STEPS_BACK = 16, JUST_NS = 1000000 };
    static const char *const calls[] = {"write",    "send", "connect",      "close",
                                        "shutdown", "kill", "pthread_kill", NULL};
    GT_CURSOR(c, graph, thread);
    const struct gt_lane_step *s = gt_cursor_seek(&c, at);
    uint64_t sent = 0;
    for (int i = 0; s && i < STEPS_BACK && s->to + JUST_NS >= at; i++) {
        const char *call = gt_leaf_of(graph->spot[s->spot].stack);
        if (!graph->spot[s->spot].runs && gt_begins_with(call, calls))
            sent = s->from;
        s = gt_cursor_seek(&c, s->from);
    }
    return sent;
}

bool gt_rest_was_asked(const struct gt_graph *graph, uint32_t asker, uint64_t at,
                       const struct gt_lane_step *rest, uint64_t part)
{
    uint64_t off = rest->to > at ? rest->to - at : at - rest->to;
    if (!ended_unseen(graph, rest) || rest->from >= at || off > (rest->to - rest->from) / part)
        return false;
    uint64_t sent = sent_before(graph, asker, at);
    return sent && sent <= rest->to;
}
