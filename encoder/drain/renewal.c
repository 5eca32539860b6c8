/* See renewal.h. */
#include "renewal.h"

#include "encoder/thread/buffers.h"
#include "encoder/file/frames.h"
#include "encoder/cpu/samples.h"
#include "encoder/thread/switch.h"

#include "encoder/base/clock.h"
#include "encoder/base/era.h"
#include "encoder/file/v1/elf.h"

/* An era's share of config->memory.tables is 1/SHARES of it, within these limits. */
#define SHARES 16
#define SHARE_MIN ((size_t)512 << 10)
#define SHARE_MAX ((size_t)16 << 20)

/*
 * The pause between steps, because threads may have to wait for them; longer while a thread stands
 * still.
 */
#define PAUSE_NS 20000000
#define PAUSE_MAX_NS 1000000000

static struct {
    const struct gt_drain_renewal *process; /* NULL: nothing is renewed */
    void (*need)(void);
    struct gt_era *old;    /* the era to be given back; NULL: none */
    _Atomic uint32_t step; /* its step, see renewal.h; 0: none */
    uint32_t mark;         /* numbers the moments since which threads must be seen outside */
    bool over;             /* step 3 is done: only this generation refers to it */
    uint64_t at_ns;        /* of the last step */
    uint64_t pause_ns;     /* until the next */
} renewal;

static void crowded(void)
{
    gt_buffers_kick();
    renewal.need();
}

/*
 * Whether the file needs the names of all stacks to its end: in Go 1.5's format they are in a
 * second file, which is written anew with each new stack.
 */
static bool is_named_at_the_end(const struct gt_drain_config *config)
{
    return gt_v1_global_order(config->file.format) && !config->memory.ring_bytes;
}

void gt_renewal_init(const struct gt_drain_config *config, void (*need)(void))
{
    size_t share = config->memory.tables / SHARES;
    share = share < SHARE_MIN ? SHARE_MIN : share > SHARE_MAX ? SHARE_MAX : share;
    renewal.process = config->renewal.inside ? &config->renewal : NULL;
    renewal.need = need;
    renewal.pause_ns = PAUSE_NS;
    gt_era_set_share(renewal.process && !is_named_at_the_end(config) ? share : 0, crowded);
}

bool gt_renewal_is_under_way(void)
{
    return renewal.step || gt_era_is_crowded();
}

uint64_t gt_renewal_due_ns(void)
{
    return gt_era_is_crowded() ? renewal.at_ns + renewal.pause_ns : 0;
}

static void begin(void)
{
    struct gt_era *old = gt_era_now();
    if (!gt_era_begin())
        return;
    renewal.process->aged(); /* after gt_era_begin: a thread that sees the epoch sees the new era */
    gt_frames_forget();      /* their strings are of older eras */
    renewal.old = old;
    renewal.step = 1;
    renewal.mark++;
}

void gt_renewal_before_switch(void)
{
    if (!renewal.process)
        return;
    uint64_t pause = PAUSE_NS;
    renewal.at_ns = gt_clock_monotonic_raw();
    if (renewal.step == 0) {
        if (gt_era_is_crowded())
            begin();
    } else if (gt_switch_all_outside(renewal.mark, renewal.process->inside)) {
        renewal.mark++;
        renewal.over = ++renewal.step == 3;
    } else {
        pause = renewal.pause_ns < PAUSE_MAX_NS ? 2 * renewal.pause_ns : PAUSE_MAX_NS;
    }
    renewal.pause_ns = pause;
}

void gt_renewal_after_generation(uint32_t kept_from)
{
    bool over = renewal.over;
    if (over) {
        gt_samples_renew();
        renewal.old->used_up = true;
        renewal.old = NULL;
        renewal.over = false;
        renewal.step = 0;
    }
    gt_era_release(kept_from);
    if (over)
        renewal.process->forget();
}

/* The child's own thread may be in the middle of a hook, so it must be seen outside once more. */
void gt_renewal_after_fork(void)
{
    renewal.process = NULL;
    renewal.over = false;
    if (renewal.old && renewal.old->used_up)
        renewal.old = NULL;
    renewal.step = renewal.old ? 1 : 0;
    renewal.mark++;
    gt_era_set_share(0, NULL);
    gt_v1_elf_close();
}
