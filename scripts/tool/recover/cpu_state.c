/* See cpu_state.h. */
#include "cpu_state.h"

#include "encoder/base/memo.h"
#include "encoder/cpu/cpus.h"
#include "encoder/read/batches.h"
#include "encoder/read/need.h"
#include "encoder/cpu/sched.h"
#include "encoder/thread/texts.h"
#include "encoder/thread/batch.h"

static bool are_wanted;

void gt_recovered_cpus_open(bool wanted)
{
    are_wanted = wanted;
    if (wanted)
        gt_sched_resume();
}

/* v2 ----------------------------------------------------------------------------------------- */

/* Every batch that libgotrace writes fits a buffer, with its header. */
static void pack(struct gt_packed *packed, const struct gt_batch *b)
{
    enum { HEADER_MAX = 64 };
    size_t size = gt_bytes_left(&b->data);
    bool is_ours = b->kind == GT_EV_EVENT_BATCH && size <= GT_BUF_ROOM - HEADER_MAX;
    if (is_ours && !gt_batch_pack(packed, (uint32_t)b->gen, (uint32_t)b->thread, b->ts, b->data.p,
                                  (uint32_t)size))
        gt_need(NULL);
}

void gt_recovered_cpus_of(struct gt_bytes generation)
{
    struct gt_packed packed = {0};
    struct gt_batch batch = {0};
    while (are_wanted && gt_batch_next(&generation, &batch))
        pack(&packed, &batch);
    if (packed.first)
        gt_sched_follow((uint32_t)batch.gen, packed.first, NULL);
    gt_buffers_put_all(packed.first);
}

void gt_recovered_cpus_of_kept(const struct gt_kept *k)
{
    if (are_wanted)
        gt_sched_follow(k->gen, k->early, k->plain);
}

/* v1 ----------------------------------------------------------------------------------------- */

/*
 * Pages have the events of one P after another P's, so sequence numbers show which event of a
 * goroutine was last. An event has the number as an argument, or has the number after its P's last.
 */
static struct gt_memo numbers; /* by goroutine and P, plus 1 */

/* By P: the goroutine that runs there, also across a page's end, and the number of its start. */
static struct {
    uint64_t g, number;
} on_p[GT_MERGE_NO_P + 1];

static uint64_t number_of(const struct gt_v1_stands *e)
{
    uint64_t *slot = gt_need(gt_memo_at(&numbers, e->arg[0] * (GT_MERGE_NO_P + 1) + e->p));
    switch (e->type) {
    case GT_V1_GO_CREATE: *slot = 1; break;
    case GT_V1_GO_START:
    case GT_V1_GO_START_LABEL:
    case GT_V1_GO_UNBLOCK:
    case GT_V1_GO_SYS_EXIT: *slot = e->arg[1] + 1; break;
    default: ++*slot; break;
    }
    return gt_v1_global_order(gt_format) ? e->seq : *slot;
}

static void set_state(uint64_t id, enum gt_g_state state, uint64_t number)
{
    struct gt_merge_g *g = id ? gt_need(gt_merge_goroutine(&gt_merge_for_sched, id)) : NULL;
    if (!g || g->out_ts > number)
        return;
    g->state = (uint8_t)state;
    g->out_ts = number; /* earlier than any time that follows */
}

static void becomes(const struct gt_v1_stands *e, enum gt_g_state state)
{
    uint64_t number = number_of(e);
    set_state(e->arg[0], state, number);
    if (state != GT_G_RUNNING)
        return;
    on_p[e->p].g = e->arg[0];
    on_p[e->p].number = number;
}

/* The goroutine that runs on the P stops. */
static void leaves(const struct gt_v1_stands *e, enum gt_g_state state)
{
    set_state(on_p[e->p].g, state, on_p[e->p].number);
    on_p[e->p].g = 0;
}

void gt_recovered_cpus_stand(const struct gt_v1_stands *e)
{
    if (!are_wanted)
        return;
    switch (e->type) {
    case GT_V1_PROC_START: gt_cpus_held(e->p, (uint32_t)e->arg[0], false); break;
    case GT_V1_PROC_STOP:
        gt_cpus_held(e->p, 0, false);
        leaves(e, GT_G_RUNNABLE); /* a stop without a stack was taken for a page's end */
        break;
    case GT_V1_GO_START:
    case GT_V1_GO_START_LOCAL:
    case GT_V1_GO_START_LABEL: becomes(e, GT_G_RUNNING); break;
    case GT_V1_GO_PREEMPT:
        if (e->arg[0])
            leaves(e, GT_G_RUNNABLE);
        break;
    case GT_V1_GO_SCHED: leaves(e, GT_G_RUNNABLE); break;
    case GT_V1_GO_END: leaves(e, GT_G_NONE); break;
    case GT_V1_GO_SLEEP:
    case GT_V1_GO_BLOCK:
    case GT_V1_GO_BLOCK_SYNC:
    case GT_V1_GO_BLOCK_COND:
    case GT_V1_GO_BLOCK_NET: leaves(e, GT_G_WAITING); break;
    case GT_V1_GO_SYS_BLOCK: leaves(e, GT_G_SYSCALL); break;
    case GT_V1_GO_CREATE:
    case GT_V1_GO_UNBLOCK:
    case GT_V1_GO_UNBLOCK_LOCAL:
    case GT_V1_GO_SYS_EXIT: becomes(e, GT_G_RUNNABLE); break;
    case GT_V1_GO_WAITING: becomes(e, GT_G_WAITING); break;
    case GT_V1_GO_IN_SYSCALL: becomes(e, GT_G_SYSCALL); break;
    default: break;
    }
}

/* Unfinished generations ----------------------------------------------------------------------- */

static struct gt_buf *texts_of(struct gt_buf *plain)
{
    struct gt_buf *texts = NULL, **link = &texts;
    for (struct gt_buf *next; plain; plain = next) {
        next = plain->next;
        if (!gt_texts_in(plain))
            continue;
        plain->next = NULL;
        *link = plain;
        link = &plain->next;
    }
    return texts;
}

bool gt_recovered_cpus_complete(uint32_t gen, struct gt_buf **packed, struct gt_buf **plain)
{
    struct gt_packed completed = {0};
    if (!are_wanted)
        return true;
    int error = gt_sched_go_on(gen, *packed, *plain, &completed);
    *packed = completed.first;
    *plain = texts_of(*plain);
    return error == 0;
}
