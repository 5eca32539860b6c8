/*
 * The events: what a thread writes, by its writer, about itself and about others.
 *
 * Between gt_writer_pin and gt_writer_unpin, by the owner only; no lock and no shared atomic
 * write but where that is said. Signal handlers may, when the interrupted code was not between the
 * two (gt_writer_busy tells).
 */
#ifndef GT_EVENTS_H
#define GT_EVENTS_H

#include "writer.h"

/* Number of CPUs; w's goroutine must be running, as for gt_ev_go_label. */
void gt_ev_procs_change(struct gt_writer *w, uint64_t procs, struct gt_stack *stack);

/*
 * The new goroutine `g` (id set) is runnable; new_stack: the routine it will run. Makes the
 * writer's own goroutine the creator, if it has one.
 */
void gt_ev_go_create(struct gt_writer *w, struct gt_g *g, struct gt_stack *new_stack,
                     struct gt_stack *stack);

/* There will be no thread for g after all: in the trace it never runs. */
void gt_ev_go_forget(struct gt_g *g);

/*
 * w's thread begins: it gets the smallest free P, and w->g, created before, runs on that. When
 * 65,536 threads live already there is none, and the thread stays out of the trace.
 */
void gt_ev_thread_start(struct gt_writer *w);

/* The same for a thread whose creation was not seen: it creates itself. */
void gt_ev_thread_appear(struct gt_writer *w, struct gt_stack *new_stack);

/* The same for the thread that runs when recording starts: readers take its state as given. */
void gt_ev_thread_running(struct gt_writer *w);

/* w's thread ends: hands over its buffer and P. Unpin afterwards as usual. */
void gt_ev_thread_end(struct gt_writer *w);

/*
 * w's own goroutine waits, since a moment ago, or yields. false, and nothing written, when it is
 * not running: a signal handler in the middle of a wait, or a thread whose start was lost.
 */
bool gt_ev_go_block(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                    struct gt_stack *stack);
bool gt_ev_go_stop(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                   struct gt_stack *stack);
void gt_ev_go_syscall(struct gt_writer *w, uint64_t since, struct gt_stack *stack); /* by call.h */

/*
 * By who switches w, with its goroutine's lock: what it waits for is over by itself by now, and its
 * thread has not had a CPU since. It has been runnable since then; the old generation says so. A
 * condition variable's waiter whose mutex another thread has waits for that instead.
 */
void gt_ev_expire_locked(struct gt_writer *w, uint32_t gen);

/*
 * Whether another thread than `tid` has the mutex. It may be no memory any more, where a signal
 * handler has jumped out of the wait. NULL: nobody knows. Set before there are writers.
 */
extern bool (*gt_ev_is_taken)(const void *mutex, uint32_t tid);

/*
 * w's own goroutine runs again after block, stop or the beginning of a system call. If it waits and
 * nobody has unblocked it, it unblocks itself first, with `stack`.
 */
void gt_ev_go_resume(struct gt_writer *w, struct gt_stack *stack);

/*
 * The same for one that has gone on `since` then, unnoticed; not before its last event. By whoever
 * stands in for the owner.
 */
void gt_ev_go_resume_since(struct gt_writer *w, struct gt_stack *stack, uint64_t since);

/*
 * Ends the wait of another goroutine. The caller found it in a registry that keeps it from going
 * on meanwhile. Takes target->lock for a moment. false: this pin is too old (rule 4): unpin, pin
 * and try again. Does nothing, returning true, when the target does not wait. Nor when
 * a lock is not to be had, which is counted as lost.
 */
bool gt_ev_go_unblock(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack);

/*
 * The same for a goroutine that was unblocked before, in vain: it has been waiting again ever
 * since, and now that ends. Not shown in the moment in which its thread has yet to enter the
 * generation: what is written into its stream there would come too late (rule 6).
 */
bool gt_ev_go_unblock_again(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack);

/*
 * The same for one that from then on waits for something else, at `then`: its thread goes from one
 * wait to the next where no hook sees it. false also in the moment in which that thread has yet to
 * enter the generation; it will.
 */
bool gt_ev_go_unblock_and_wait(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack,
                               struct gt_stack *then);

/* A garbage collection of the program's, over by now. */
#define GT_PAUSES_MAX 3
struct gt_collection {
    uint64_t begin, end;
    struct gt_pause {
        uint64_t begin, end;
    } pause[GT_PAUSES_MAX]; /* while the world stood still */
    uint32_t pauses;
};

/*
 * On a thread that took part, one collection after the other: the collector's lock is held. Nothing
 * is written when the thread is not running.
 */
void gt_ev_gc(struct gt_writer *w, const struct gt_collection *gc);

/*
 * What w's goroutine, which is about to block since then, waits for: of gt_held_string. Does
 * nothing when it is not running.
 */
void gt_ev_lock(struct gt_writer *w, uint64_t since, struct gt_string *what,
                struct gt_stack *stack);

void gt_ev_go_label(struct gt_writer *w, struct gt_string *label);

/*
 * An annotation: a USER event with its arguments, but for the stack, which is the last. false, and
 * nothing written, when w's goroutine is not running.
 */
bool gt_ev_user(struct gt_writer *w, enum gt_event_type type, const uint64_t *args,
                struct gt_stack *stack);

/*
 * Live bytes of the heap at time `at`, and the memory taken from the system. w's goroutine may be
 * in any state; false when it has no P.
 */
bool gt_ev_heap_alloc(struct gt_writer *w, uint64_t at, uint64_t bytes);
bool gt_ev_heap_goal(struct gt_writer *w, uint64_t bytes);

/* Of a switch, by whom it is made ------------------------------------------------------------ */

/*
 * With w->g.lock held and w in gen or switching. rewaits: vain wake-ups in gen, where they happened
 * in time. statuses: of w's P and goroutine in gen, where they do not stand yet.
 */
void gt_ev_rewaits_locked(struct gt_writer *w, uint32_t gen);
void gt_ev_renew_locked(struct gt_writer *w); /* what its state refers to: see renewal.h */
void gt_ev_statuses_locked(struct gt_writer *w, uint32_t gen);

/*
 * The status in gen of a goroutine that was created in an earlier generation and does not
 * run yet, through a writer that is not its own.
 */
static inline bool gt_ev_is_unstarted(const struct gt_g *g)
{
    return atomic_load_explicit(&g->unstarted, memory_order_acquire);
}
void gt_ev_status_unstarted(struct gt_writer *w, struct gt_g *g, uint32_t gen);

/* In a forked child, no collection has been. */
void gt_events_after_fork(void);

#endif
