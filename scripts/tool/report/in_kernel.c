/* See in_kernel.h. */
#include "in_kernel.h"

#include "call_places.h"
#include "roles.h"
#include "table.h"

#include "scripts/tool/json.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <stdio.h>

static bool is_call(enum gt_kind kind)
{
    return kind == GT_NETWORK || kind == GT_SYSCALL;
}

bool gt_may_compute(enum gt_kind kind, const char *call)
{
    return is_call(kind) && !gt_is_poll(call);
}

void gt_sure_waits_add(struct gt_sure_waits *sure, const struct gt_span *span)
{
    enum { SLEEP_NS = 4000 }; /* a sleep takes a few us */
    uint32_t number = span->thread->number;
    if (span->kind < GT_SYNC || gt_may_compute(span->kind, gt_leaf_of(span->stack)))
        return;
    sure->of = gt_need_zeros(sure->of, &sure->n, number, sizeof *sure->of);
    sure->of[number].count += span->ns > SLEEP_NS;
    sure->of[number].polls_ns += is_call(span->kind) ? span->ns : 0;
}

/*
 * Two counts must agree. The thread left its CPU to wait hardly more often than in its sure waits.
 * And its time on a CPU, with at most as much in run queues, explains most of its other calls.
 */
bool gt_is_in_kernel(const struct gt_sure_waits *sure, const struct gt_thread_state *t,
                     enum gt_kind kind, const char *call, uint64_t count, uint64_t ns)
{
    enum { SHORT_NS = 1000000, WAITED_PART = 10 };
    const struct gt_shares *s = &t->shares;
    unsigned known = s->used.known;
    if (!gt_may_compute(kind, call) || ns >= count * SHORT_NS || t->unknown ||
        !(known & GT_KNOWN_CPU) || (known & GT_KNOWN_SWITCHES) != GT_KNOWN_SWITCHES)
        return false;
    struct gt_sure_wait waits =
        t->number < sure->n ? sure->of[t->number] : (struct gt_sure_wait){0};
    uint64_t left = s->used.of[GT_USED_VOLUNTARY], calls = t->ns[GT_NETWORK] + t->ns[GT_SYSCALL];
    uint64_t others = left > waits.count ? left - waits.count : 0;
    calls -= calls < waits.polls_ns ? calls : waits.polls_ns;
    uint64_t queue = s->used.of[GT_USED_QUEUE] < s->cpu ? s->used.of[GT_USED_QUEUE] : s->cpu;
    return others * WAITED_PART <= count && s->cpu + queue >= t->ns[GT_RUNNING] + calls / 4 * 3;
}

void gt_in_kernel_print(const struct gt_idle_sum *sum)
{
    const struct gt_idle_place *most = sum->place;
    for (size_t i = 1; i < sum->places; i++)
        most = sum->place[i].ns > most->ns ? &sum->place[i] : most;
    if (gt_report_json) {
        gt_json_open("in_kernel", '{');
        gt_json_number("count", sum->count);
        gt_json_number("total_ns", sum->ns);
        gt_json_close('}');
    } else if (sum->count) {
        printf("running in the kernel: %s, %s, in which the kernel counted no wait: %s",
               gt_count(sum->count, "call"), gt_duration(sum->ns),
               sum->places > 1 ? "mostly " : "");
        gt_print_place(gt_leaf_of(most->stack), gt_site_of(most->stack));
        puts(" (--kind=network,syscall: as waits)");
    }
}
