/* See switch.h. */
#include "switch.h"

#include "move.h"
#include "states.h"

#include "encoder/base/clock.h"
#include "encoder/base/urgent.h"

#include <linux/membarrier.h>
#include <string.h>

void (*gt_switch_before)(void);

static long membarrier(int command)
{
    return gt_syscall(SYS_membarrier, command, 0, 0);
}

void gt_switch_init(void)
{
    bool works = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    atomic_store(&gt_gen.fence, works ? 0 : 1);
}

/* Where the drain side writes other threads' statuses. scratch NULL: none are due. */
struct emitter {
    struct gt_buf *scratch;
    uint32_t gen;
    gt_switch_emit_fn *emit;
    uint32_t looks; /* so many more threads may this switch ask the kernel about */
};

/*
 * Emits the contents of w's buffer, which is the scratch buffer, as a batch of thread m. The
 * scratch buffer itself is of no generation: the black box would have the statuses twice.
 */
static void emit_scratch(struct gt_writer *w, uint32_t m, const struct emitter *e)
{
    e->scratch->used = (uint32_t)(w->pos - e->scratch->data);
    e->scratch->m = m;
    gt_writer_release(w);
    if (e->scratch->used)
        e->emit(e->gen, e->scratch);
}

static _Atomic uint64_t deadline;

void gt_switch_set_deadline(uint64_t ns)
{
    atomic_store(&deadline, ns);
}

static bool is_late(void)
{
    uint64_t at = atomic_load(&deadline);
    return at && gt_clock_monotonic_raw() > at;
}

/*
 * Waits for the owner's unpin. It is inside only for an event or two, but it may have been
 * suspended there, for as long as a collector takes. false: the owner had time enough and has
 * jumped, it has ended, or the deadline has passed.
 */
static bool await_unpin(struct gt_writer *w)
{
    enum { YIELDS = 1000, JUMPED_MS = 100 };
    static const struct timespec ms = {0, 1000000};
    /* acquire: pairs with gt_writer_unpin */
    for (int i = 0; atomic_load_explicit(&w->busy, memory_order_acquire); i++) {
        if (atomic_load_explicit(&w->torn, memory_order_acquire)) /* pairs with is_torn */
            return false;
        if (i < YIELDS)
            gt_syscall(SYS_sched_yield);
        else if ((i > YIELDS + JUMPED_MS && atomic_load(&w->jumped)) || is_late())
            return false;
        else
            gt_syscall(SYS_nanosleep, &ms, NULL);
    }
    return true;
}

/* Waits while the lock holder is suspended. false: it may have jumped, or the deadline is over. */
static bool lock_patiently(struct gt_lock *lock)
{
    bool locked;
    do
        locked = gt_lock_within(lock, GT_RANK_G, GT_LOCK_PATIENCE_NS);
    while (!locked && !atomic_load(&gt_any_jumped) && !is_late());
    return locked;
}

static void push_copy(struct gt_buf *buf, uint32_t used, uint32_t m, uint32_t gen)
{
    struct gt_buf *copy = used ? gt_buffers_get(true) : NULL;
    if (!copy)
        return;
    copy->used = used;
    copy->cuts = buf->cuts;
    memcpy(copy->cut, buf->cut, sizeof copy->cut);
    memcpy(copy->data, buf->data, used);
    buf->gen = 0; /* the copy has its events */
    gt_buffers_claim(copy, gen, m, buf->ts);
    gt_buffers_push(copy);
}

/*
 * Saves the events of a writer that is given up, in generation old. The writer keeps its buffers:
 * should its thread come back after all, it does no harm there.
 */
static void salvage(const struct gt_writer *w, uint32_t old)
{
    struct gt_buf *buf = w->buf, *texts = w->texts.buf;
    size_t used = buf ? (uintptr_t)w->pos - (uintptr_t)buf->data : 0;
    if (buf && used <= gt_buffers_room(buf)) /* else the owner was setting buf and pos */
        push_copy(buf, (uint32_t)used, w->m, old);
    if (texts && !gt_gen_is_mute(old))
        push_copy(texts, texts->used, texts->m, old);
}

/* The drain side's half for one writer, which it has claimed in generation old. */
static void switch_silent(struct gt_writer *w, uint32_t old, uint32_t next, struct emitter *e)
{
    if (!await_unpin(w) || !lock_patiently(&w->g.lock)) {
        if (!atomic_load(&w->jumped))
            gt_lost(); /* else gt_writer_jumped has counted it */
        salvage(w, old);
        gt_era_pin_all(); /* w's state is not renewed any more */
        gt_move_settle(w, GT_GEN_GONE);
        return;
    }
    if (e->looks && !is_late())
        e->looks -= gt_ev_look_asleep_locked(w);
    gt_move_end_locked(w, old);
    if (e->scratch && w->p && w->p->state != GT_P_IDLE) {
        gt_writer_install(w, e->scratch, 0);
        gt_ev_statuses_locked(w, e->gen);
        emit_scratch(w, w->m, e);
        if (!next || gt_gen_is_mute(next))
            w->events_before = w->events; /* the last ones of the file */
    }
    gt_unlock(&w->g.lock);
    gt_move_settle(w, next);
}

/*
 * Writes the statuses of goroutines whose threads have not begun. A reader that starts here must
 * hear of them now. No creator is in an older generation any more.
 */
static void tell_unstarted(const struct emitter *e)
{
    static struct gt_writer teller;
    for (struct gt_writer *w = gt_writer_newest(); w && e->scratch; w = w->next) {
        if (!gt_ev_is_unstarted(&w->g))
            continue;
        teller.last = 0; /* it may be the parent process's */
        gt_writer_install(&teller, e->scratch, 0);
        gt_ev_status_unstarted(&teller, &w->g, e->gen);
        emit_scratch(&teller, (uint32_t)gt_syscall(SYS_getpid), e);
    }
}

void gt_switch_all(uint32_t next, uint32_t told, gt_switch_emit_fn *emit)
{
    enum { LOOKS = 256 };
    GT_ASSERT_DRAIN_SIDE();
    if (gt_switch_before)
        gt_switch_before();
    gt_urgent_working(true);
    atomic_store(&gt_gen.current, next);
    if (atomic_load(&gt_gen.fence))
        atomic_thread_fence(memory_order_seq_cst); /* pairs with the writers' */
    else
        membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    struct emitter e = {told ? gt_buffers_get(true) : NULL, told, emit, LOOKS};
    for (struct gt_writer *w = gt_writer_newest(); w; w = w->next) {
        uint32_t gen = atomic_load(&w->gen);
        while (gen != next && gen != GT_GEN_GONE) {
            if (gen & GT_GEN_SWITCHING)
                gt_move_wait(w, gen, -1);
            else if (gt_move_claim(w, gen))
                switch_silent(w, gen, next, &e);
            gen = atomic_load(&w->gen);
        }
    }
    tell_unstarted(&e);
    if (e.scratch)
        gt_buffers_put(e.scratch);
    gt_urgent_working(false);
    gt_urgent_give_back();
}

static void note_jumped(struct gt_writer *w)
{
    bool jumped = atomic_load_explicit(&w->jumped, memory_order_relaxed);
    if (jumped && !w->jump_noted)
        gt_era_pin_all();
    w->jump_noted = jumped;
}

bool gt_switch_all_outside(uint32_t mark, bool (*inside)(const struct gt_writer *w))
{
    bool all = true;
    for (struct gt_writer *w = gt_writer_newest(); w; w = w->next) {
        if (w->outside == mark)
            continue;
        if (!inside(w))
            w->outside = mark;
        else
            note_jumped(w);
        all &= w->outside == mark || w->jump_noted;
    }
    return all;
}

void gt_switch_each(void (*fn)(void *arg, struct gt_writer *w), void *arg)
{
    for (struct gt_writer *w = gt_writer_newest(); w; w = w->next)
        fn(arg, w);
}

uint64_t gt_switch_events(void)
{
    uint64_t n = 0;
    for (struct gt_writer *w = gt_writer_newest(); w; w = w->next)
        n += gt_gen_is_mute(gt_writer_gen(w)) ? w->events_before : atomic_load(&w->events);
    return n;
}

void gt_switch_after_fork(void)
{
    gt_urgent_helper(0);
}
