/* See shares.h. */
#include "shares.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t more(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/*
 * Divides `off`, the time in which the thread neither had a CPU nor was in a run queue, among its
 * waits. If the waits are longer than that by their events, it is not known which of them were
 * partly spent in a run queue; all are shortened in proportion.
 */
static void share_waits(struct gt_shares *s, const uint64_t told[GT_KINDS], uint64_t off)
{
    uint64_t all = 0, shared = 0;
    for (int k = GT_SYNC; k < GT_KINDS; k++)
        all += told[k];
    for (int k = GT_SYNC; k < GT_KINDS; k++) {
        double part = all > off ? (double)told[k] * ((double)off / (double)all) : (double)told[k];
        uint64_t ns = least((uint64_t)part, off - shared);
        s->wait[k] += ns;
        shared += ns;
    }
    s->unseen += off - shared;
}

/*
 * Which part of the time that no event explains was in the run queue, by how often the thread lost
 * its CPU since switches were last known. The thread gave up its CPU once for each of its sleeps.
 * More voluntary switches than that were calls, or waits without events. The run queue and those
 * waits share the time. The run queue's part is in proportion to involuntary switches, where
 * another thread took the CPU.
 */
static double queued_part(uint64_t slept, const struct gt_usage *used)
{
    double waits = (double)more(used->of[GT_USED_VOLUNTARY], slept);
    double lost = (double)used->of[GT_USED_INVOLUNTARY];
    if (!(used->known & GT_KNOWN_SWITCHES))
        return 0;
    if (waits > 0 && (used->known & GT_KNOWN_QUEUE))
        return 0; /* the kernel's number is better */
    return waits > 0 ? lost / (lost + waits) : 1;
}

/* The time in the run queue by the kernel's switches, and by events. */
static uint64_t inferred_queue(const struct gt_shares *s, const uint64_t told[GT_KINDS],
                               double part, uint64_t off, const struct gt_usage *used)
{
    uint64_t explained = 0;
    if (part == 0)
        return 0;
    if (s->runs && used->of[GT_USED_VOLUNTARY] == 0)
        return off; /* what events call waits were not */
    for (int k = GT_SYNC; k < GT_KINDS; k++)
        explained += told[k];
    uint64_t queue = least(told[GT_SCHED], off), rest = more(more(off, queue), explained);
    return queue + (uint64_t)((double)rest * part);
}

/* Moves `ns` from the time that was counted as unseen. */
static void was_queue(struct gt_shares *s, uint64_t ns)
{
    s->unseen -= ns;
    s->queue += ns;
    s->ahead += ns;
}

/*
 * Adds the time in the run queue. A thread that ends cannot read that time from the kernel, which
 * counts a stay in the queue only when it is over. `ahead` is the time added before the kernel
 * counted it.
 */
static uint64_t take_queue(struct gt_shares *s, const uint64_t told[GT_KINDS], uint64_t slept,
                           uint64_t off, const struct gt_usage *used)
{
    bool known = used->known & GT_KNOWN_QUEUE;
    double part = queued_part(slept, used);
    was_queue(s, part == 1 ? least(s->unsure, s->unseen) : 0);
    uint64_t counted = known ? more(used->of[GT_USED_QUEUE], s->ahead) : told[GT_SCHED];
    uint64_t inferred = inferred_queue(s, told, part, off, used);
    uint64_t queue = least(counted > inferred ? counted : inferred, off);
    was_queue(s, known ? least(more(counted, off), s->unseen) : 0);
    s->queue += queue;
    s->ahead = more(s->ahead + queue, known ? used->of[GT_USED_QUEUE] : 0);
    return queue;
}

void gt_shares_add(struct gt_shares *s, uint64_t at, const uint64_t ns[GT_KINDS], uint64_t slept,
                   const struct gt_usage *used)
{
    static const struct gt_usage nothing = {.known = GT_KNOWN_CPU | GT_KNOWN_QUEUE};
    uint64_t told[GT_KINDS], length = more(at, s->until);
    used = used ? used : &nothing;
    for (int k = 0; k < GT_KINDS; k++) {
        told[k] = more(ns[k], s->told[k]);
        s->told[k] = ns[k];
    }
    uint64_t cpu = least(used->of[GT_USED_CPU], length);
    uint64_t queue = take_queue(s, told, more(slept, s->slept), length - cpu, used);
    s->until += length;
    s->time += length;
    s->cpu += cpu;
    uint64_t unseen = s->unseen;
    share_waits(s, told, length - cpu - queue);
    s->unsure += s->unseen - unseen;
    if (used->known & GT_KNOWN_SWITCHES) { /* of all the time since they were last known */
        s->slept = slept;
        s->unsure = 0;
        s->runs = used->known & GT_KNOWN_RUNS;
    }
    s->used.known |= used->known;
    for (int i = 0; i < GT_USED_NUMBERS; i++)
        s->used.of[i] += used->of[i];
}

struct gt_shares gt_shares_within(const struct gt_shares *s, uint64_t lived)
{
    struct gt_shares its = *s;
    if (s->time <= lived)
        return its;
    double part = (double)lived / (double)s->time;
    its.time = lived;
    its.cpu = least((uint64_t)(part * (double)s->cpu), lived);
    its.queue = least((uint64_t)(part * (double)s->queue), lived - its.cpu);
    uint64_t rest = lived - its.cpu - its.queue;
    for (int k = 0; k < GT_KINDS; k++) {
        its.wait[k] = least((uint64_t)(part * (double)s->wait[k]), rest);
        rest -= its.wait[k];
    }
    its.unseen = rest;
    return its;
}
