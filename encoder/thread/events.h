/*
 * The events that a thread writes, through its writer, about itself and about other threads.
 *
 * By the owner only, between gt_writer_pin and gt_writer_unpin. No lock and no shared atomic write,
 * except where a comment says so. A signal handler may write if the interrupted code was not
 * between pin and unpin (gt_writer_busy).
 */
#pragma once

#include "stacks.h"
#include "strings.h"
#include "writer.h"

#include "encoder/format/format.h"

/* The number of CPUs. w's goroutine must be running, as for gt_ev_go_label. */
void gt_ev_procs_change(struct gt_writer *w, uint64_t procs, struct gt_stack *stack);

/*
 * The new goroutine `g` (id set) is runnable; new_stack: the routine it will run. The creator is
 * the writer's own goroutine, if there is one.
 */
void gt_ev_go_create(struct gt_writer *w, struct gt_g *g, struct gt_stack *new_stack,
                     struct gt_stack *stack);

/* No thread will begin for g after all: in the trace it never runs. */
void gt_ev_go_forget(struct gt_g *g);

/*
 * w's thread begins. It gets the smallest free P, and w->g, created before, runs on that. When
 * 65,536 threads live already there is no P, and the thread stays out of the trace.
 */
void gt_ev_thread_start(struct gt_writer *w);

/* Like gt_ev_thread_start, for a thread whose creation was not seen: it creates itself. */
void gt_ev_thread_appear(struct gt_writer *w, struct gt_stack *new_stack);

/*
 * Like gt_ev_thread_start, for the thread that runs when recording starts: readers take its state
 * as given.
 */
void gt_ev_thread_running(struct gt_writer *w);

/* w's thread ends: hands over its buffer and P. Unpin afterwards as usual. */
void gt_ev_thread_end(struct gt_writer *w);

/* w's own goroutine yields since `since`. false: as for gt_ev_go_block (states.h). */
bool gt_ev_go_stop(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                   struct gt_stack *stack);

/*
 * w's own goroutine runs again after block, stop or the beginning of a system call. If it waits and
 * no thread has unblocked it, it unblocks itself first, with `stack`.
 */
void gt_ev_go_resume(struct gt_writer *w, struct gt_stack *stack);

/*
 * Like gt_ev_go_resume, for a goroutine that has gone on unnoticed at `since`, not before its last
 * event. For a thread that stands in for the owner.
 */
void gt_ev_go_resume_since(struct gt_writer *w, struct gt_stack *stack, uint64_t since);

/*
 * Ends the wait of another goroutine. The caller found it in a registry, which keeps it from going
 * on meanwhile. Takes target->lock for a moment. false: this pin is too old (rule 4): unpin, pin
 * and try again. Does nothing and returns true if the target does not wait, or if a lock is not
 * available, which is counted as lost.
 */
bool gt_ev_go_unblock(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack);

/*
 * Another goroutine was unblocked by mistake: its thread still sleeps. Its wait goes on from just
 * after that moment. The caller found it in a registry, as for gt_ev_go_unblock; no pin is needed.
 * Does nothing if the goroutine is not runnable, or if a lock is not available.
 */
void gt_ev_go_sleep_on(struct gt_g *target);

/*
 * Ends the wait of a goroutine that was unblocked before, but did not get the mutex and has been
 * waiting again since. If that is not in the trace yet, it is written with the wake-up. Writes
 * nothing while the target's thread has yet to enter the generation: the rewait in its stream would
 * come too late (rule 6).
 */
bool gt_ev_go_unblock_again(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack);

/*
 * Moves a waiting goroutine on to another wait, at `then`: its thread goes from one wait to the
 * next where no hook sees it. false also while that thread has yet to enter the generation; it
 * will.
 */
bool gt_ev_go_unblock_and_wait(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack,
                               struct gt_stack *then);

/* A garbage collection of the program's that is over. */
#define GT_PAUSES_MAX 3
struct gt_collection {
    uint64_t begin, end;
    struct gt_pause {
        uint64_t begin, end;
    } pause[GT_PAUSES_MAX]; /* while the world stood still */
    uint32_t pauses;
};

/*
 * Written on a thread that took part, one collection after the other: the caller holds the
 * collector's lock. Writes nothing if the thread's goroutine is not running.
 */
void gt_ev_gc(struct gt_writer *w, const struct gt_collection *gc);

/*
 * What w's goroutine, which is about to block at `since`, waits for: a string of gt_held_string.
 * Writes nothing if the goroutine is not running.
 */
void gt_ev_lock(struct gt_writer *w, uint64_t since, struct gt_string *what,
                struct gt_stack *stack);

void gt_ev_go_label(struct gt_writer *w, struct gt_string *label);

/*
 * An annotation: a USER event with its arguments, except the last one, the stack. false: w's
 * goroutine is not running, and nothing was written.
 */
bool gt_ev_user(struct gt_writer *w, enum gt_event_type type, const uint64_t *args,
                struct gt_stack *stack);

/*
 * Live bytes of the heap at time `at`, and the memory taken from the system. w's goroutine may be
 * in any state. false: it has no P.
 */
bool gt_ev_heap_alloc(struct gt_writer *w, uint64_t at, uint64_t bytes);
bool gt_ev_heap_goal(struct gt_writer *w, uint64_t bytes);

/* In a forked child: there has been no collection. */
void gt_events_after_fork(void);
