/* See shares.h. */
#include "shares.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/*
 * What it waited for, of the time in which it neither had a CPU nor stood in a queue. Where events
 * tell of more than that, nobody knows which of the waits it was that had some of both; each gives
 * its part.
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
 * The time in the run queue. A thread that ends cannot tell it, and of one that stands there now
 * the kernel counts only what was before. But one that did not sleep, and has never given up a CPU
 * by itself since, has not waited for anything.
 */
static uint64_t queue_of(const struct gt_shares *s, const uint64_t told[GT_KINDS], uint64_t off,
                         const struct gt_usage *used)
{
    if (s->runs && (used->known & GT_KNOWN_SWITCHES) && used->of[GT_USED_VOLUNTARY] == 0)
        return off;
    return least(used->known & GT_KNOWN_QUEUE ? used->of[GT_USED_QUEUE] : told[GT_SCHED], off);
}

/* The kernel counts time in a run queue when it is over: more than there was is from before. */
static void correct(struct gt_shares *s, uint64_t off, const struct gt_usage *used)
{
    uint64_t queue = used->known & GT_KNOWN_QUEUE ? used->of[GT_USED_QUEUE] : 0;
    uint64_t late = queue > off ? least(queue - off, s->unseen) : 0;
    s->unseen -= late;
    s->queue += late;
}

void gt_shares_add(struct gt_shares *s, uint64_t at, const uint64_t ns[GT_KINDS],
                   const struct gt_usage *used)
{
    static const struct gt_usage nothing = {.known = GT_KNOWN_CPU | GT_KNOWN_QUEUE};
    uint64_t told[GT_KINDS], length = at > s->until ? at - s->until : 0;
    used = used ? used : &nothing;
    for (int k = 0; k < GT_KINDS; k++) {
        told[k] = ns[k] > s->told[k] ? ns[k] - s->told[k] : 0;
        s->told[k] = ns[k];
    }
    uint64_t cpu = least(used->of[GT_USED_CPU], length);
    uint64_t queue = queue_of(s, told, length - cpu, used);
    correct(s, length - cpu, used);
    s->until += length;
    s->time += length;
    s->cpu += cpu;
    s->queue += queue;
    share_waits(s, told, length - cpu - queue);
    s->runs = used == &nothing ? s->runs : used->known & GT_KNOWN_RUNS;
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
