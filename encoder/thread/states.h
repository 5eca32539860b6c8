/*
 * The states of goroutines, and the events that a writer's switcher writes, too: the statuses with
 * which a generation begins, and what ends it. Called by the writer's owner while it has pinned the
 * generation, or by the writer's switcher (writer.h, rules 1 and 2).
 *
 * Functions named ..._locked need the lock of the goroutine (g.lock).
 */
#pragma once

#include "writer.h"

/*
 * w's own goroutine has waited since `since`. false: the goroutine is not running, and nothing was
 * written. (A signal handler came in the middle of a wait, or the thread's start was lost.)
 */
bool gt_ev_go_block(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                    struct gt_stack *stack);

/* Calls into the kernel ----------------------------------------------------------------------- */

/*
 * By the owner, pinned: writes the beginning of a call, withdrawn or never announced. Resume then.
 */
void gt_call_write(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                   struct gt_stack *stack);

/* By the owner, pinned, or by w's switcher: writes the announced call's beginning, if any. */
void gt_call_show(struct gt_writer *w);

/*
 * By the owner, which is about to leave the call that it has announced, if any, and cannot withdraw
 * it: by a jump, or because nothing can be written. Finds the call's stack, if that is not known.
 */
void gt_call_keep(struct gt_writer *w);

/*
 * Finds the stack of the call that w has announced without one. NULL: it is not known. Called by
 * w's own thread, or by another one. If w's thread leaves its call meanwhile (rule 5), the stack
 * that it has kept is right, not the result. Set before the first announcement; NULL where all
 * calls have stacks.
 */
extern struct gt_stack *(*gt_call_stack)(struct gt_writer *w);

/* Statuses ------------------------------------------------------------------------------------ */

/* The M of a status that binds no thread (trace.NoThread is -1). */
#define GT_NO_M UINT64_MAX

/* Rule 3: writes g's status in generation gen, if it does not stand yet. */
void gt_ev_status_locked(struct gt_writer *w, struct gt_g *g, uint64_t m, uint32_t gen);

/* Writes those of w's P and goroutine in gen, unless they stand there already. */
void gt_ev_statuses_locked(struct gt_writer *w, uint32_t gen);

/*
 * Writes the status in gen of a goroutine that was created in an earlier generation and does not
 * run yet, through a writer that is not its own.
 */
static inline bool gt_ev_is_unstarted(const struct gt_g *g)
{
    return atomic_load_explicit(&g->unstarted, memory_order_acquire);
}
void gt_ev_status_unstarted(struct gt_writer *w, struct gt_g *g, uint32_t gen);

/* Writes what a running goroutine says only once, for a reader that has missed it: gt_gen.first. */
void gt_ev_tell(struct gt_writer *w, uint32_t gen);

/* Rewaits ------------------------------------------------------------------------------------- */

static inline struct gt_writer *gt_ev_writer_of(struct gt_g *g)
{
    return (struct gt_writer *)((char *)g - offsetof(struct gt_writer, g));
}

/* Whether g has room for another rewait. The memory of rewaits stays with the writer. */
bool gt_ev_may_rewait_locked(struct gt_g *g);

/* g was unblocked, and waits again. After gt_ev_may_rewait_locked. */
void gt_ev_rewait_locked(struct gt_g *g, uint32_t gen, struct gt_stack *stack);

/*
 * g's thread was never woken, and goes on waiting; unless g is not runnable, or its thread's stream
 * cannot say so.
 */
void gt_ev_sleep_on_locked(struct gt_g *g);

/* Writes the rewaits of gen, at the times when they happened. */
void gt_ev_rewaits_locked(struct gt_writer *w, uint32_t gen);

/* For w's switcher ---------------------------------------------------------------------------- */

/*
 * Before the generation's last events: as gt_ev_sleep_on_locked, if gt_ev_is_asleep says that the
 * thread sleeps although it was unblocked a millisecond ago. true: gt_ev_is_asleep was asked.
 */
bool gt_ev_look_asleep_locked(struct gt_writer *w);

/*
 * Whether w's thread, which was unblocked, sleeps in its wait by the kernel's word. Drain side;
 * with the lock of w's goroutine. NULL: not known. Set before there are writers.
 */
extern bool (*gt_ev_is_asleep)(struct gt_writer *w);

/*
 * Writes w's last events of the generation: rewaits, an announced call, and the end of a wait that
 * has timed out. Renews w's stacks and label (renewal.h).
 */
void gt_ev_last_locked(struct gt_writer *w, uint32_t gen);

/*
 * Whether a thread other than `tid` holds the mutex. The mutex's memory may be gone, if a signal
 * handler has jumped out of the wait. NULL: not known. Set before there are writers.
 */
extern bool (*gt_ev_is_taken)(const void *mutex, uint32_t tid);
