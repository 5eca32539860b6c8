/*
 * A writer: what one thread needs to write events, and the goroutine and P it is in the trace.
 *
 * GENERATIONS. The trace is cut into generations, each readable by itself. The drain side announces
 * a new one by raising gt_gen.current; every writer must then hand over its buffer of the old one
 * and open the new one with status events. These rules keep a trace sound; asserts and comments
 * cite them by number.
 *
 *  1. A writer pins a generation by storing busy = 1, then loading gt_gen.current and finding it
 *     equal to its own gen. Until it stores busy = 0 it may write events, all of that generation.
 *     The store and the load must not be reordered: the drain side's membarrier(2) between raising
 *     current and reading busy stands for the fence that the writer leaves out (where membarrier
 *     does not exist, gt_gen.fence makes the writer issue it).
 *  2. Moving a writer to another generation ("switching") is done by whoever changes its gen from
 *     the old number to the number | GT_GEN_SWITCHING: the writer itself, while not busy, or the
 *     drain side, which then waits for busy == 0. The writer's own buffer belongs to the switcher
 *     until gen holds the new number; and so do the stacks and the label that its state refers to,
 *     which are renewed then (renewal.h).
 *  3. A goroutine's status in a generation is written once, by whoever mentions it there first, and
 *     equals its state at the end of the previous one. g.lock guards state, seq and status_gen
 *     against unblockers and the drain side. The owner changes them without the lock while it has
 *     pinned a generation and no registry leads others to its goroutine.
 *  4. An unblock is never in an earlier generation than the block it ends: the unblocker finds the
 *     waiter first and pins afterwards; and it does not use a generation older than the one in
 *     which the waiter's status stands already (gt_ev_go_unblock refuses).
 *  5. A call into the kernel is announced before (gt_ev_call_announce) and written afterwards, if
 *     it was long enough to be worth it. Should the generation end meanwhile, whoever switches the
 *     writer writes that it began; should its own thread write anything meanwhile (a signal
 *     handler), that does. Taking the announcement back is ordered like rule 1: a store, then the
 *     load of current. So a thread whose call somebody else writes cannot leave that call before
 *     the switch is over: until then its stack stands still and can be looked at (gt_call_stack).
 *     But when recording ends, or a switch takes too long, it goes on at once; and a jump does not
 *     ask. Then it finds its stack itself before (gt_call_keep), and whoever looks is waited for.
 *  6. Time goes from causes to effects, in the reader's eyes too. CPUs' clocks may disagree; and a
 *     reader adds up the time of an event from those before it in its batch and drops a fraction of
 *     a nanosecond each time (Go's batchCursor.nextEvent), so that it may see it early by as many
 *     nanoseconds as there are events. If that makes an effect the earlier one, a trace may be
 *     refused: after a GoStatusStack sequence numbers begin anew, and a later unblock would do in
 *     place of the one that is due; and among events of the same time a reader may miss the one
 *     that can go first (Reader.ReadEvent sorts, but never tries the first one again). So batches
 *     are short, and an effect in another thread than its cause comes later by more than that.
 *
 * A generation can be mute: while nothing is recorded, threads go on as in any other one, with
 * rules 1 to 5, but what they write is forgotten. So when recording starts everybody's state is
 * known, and starting and stopping are changes of generation like others.
 *
 * Event functions are called between gt_writer_enter and gt_writer_leave, by the owner only.
 * They take no lock and no shared atomic write except where said. Signal handlers may use them
 * when the interrupted code was not between enter and leave (gt_writer_busy tells).
 */
#ifndef GT_WRITER_H
#define GT_WRITER_H

#include "buffers.h"
#include "clock.h"
#include "format.h"
#include "futex.h"
#include "procs.h"
#include "stacks.h"
#include "strings.h"
#include "texts.h"
#include "varint.h"

#define GT_GEN_SWITCHING 0x80000000u
#define GT_GEN_WAITED 0x40000000u /* with SWITCHING: somebody sleeps until it is over */
#define GT_GEN_GONE 0x3fffffffu   /* of a writer that was given up, see gt_writer_jumped */

/* One event never needs more: a type byte and at most five full varints, twice for statuses. */
#define GT_EVENT_ROOM 256

#define GT_PIECE 2048 /* bytes of a batch, about: rule 6 */

struct gt_generation {
    _Atomic uint32_t current; /* 0: threads are not followed, before the start and after the end */
    _Atomic uint32_t fence;   /* 1: no membarrier(2), writers must fence */
    /* What follows is set before current is raised. */
    _Atomic uint32_t mute;       /* the last mute generation; 0: none yet */
    _Atomic uint32_t mute_since; /* the first of those that it ends */
    _Atomic uint32_t first; /* where a reader may begin: there he is told what he cannot know */
    _Atomic uint32_t procs; /* of that the number of CPUs; 0: told */
    _Atomic uint64_t from;  /* trace time: no event of the generation is from before that */
};
extern struct gt_generation gt_gen;

static inline bool gt_gen_is_mute(uint32_t gen)
{
    uint32_t since = atomic_load_explicit(&gt_gen.mute_since, memory_order_relaxed);
    return gen - since <= atomic_load_explicit(&gt_gen.mute, memory_order_relaxed) - since;
}

/*
 * A wait that went on in vain: the goroutine was unblocked just before ts, but another thread took
 * the mutex before it. Its own thread, asleep in the kernel, could not write that it started and
 * blocked again; these two events are written later into its stream with this timestamp, in
 * generation gen, GoStart with sequence number seq. (Just before, not at: rule 6.)
 */
struct gt_rewait {
    uint64_t ts;
    uint32_t gen;
    uint32_t seq;
};
#define GT_REWAITS_MAX 1000 /* pages that few threads ever touch; all fit one buffer */

/* A thread as a goroutine. */
struct gt_g {
    struct gt_lock lock;
    uint32_t status_gen; /* generation whose readers know the state */
    uint64_t id;
    uint32_t seq;  /* of the last GoStart/GoUnblock in status_gen */
    uint8_t state; /* enum gt_g_state */
    /* Rule 6, as state: when others last changed that, and when its own thread said it last. */
    uint64_t changed, stated;
    uint32_t own_gen;            /* in which its thread's stream is */
    uint32_t behind;             /* ns, at most, that readers are in its thread's stream then */
    struct gt_stack *routine;    /* where it began; NULL: not known */
    struct gt_stack *wait_stack; /* of the wait or call it is in */
    _Atomic bool unstarted;      /* created, and its thread has not begun; cleared under lock */
    _Atomic uint32_t rewaits;    /* entries in use; with the array under lock, as state */
    struct gt_rewait rewait[GT_REWAITS_MAX];
};

/* A call into the kernel that has been announced. */
struct gt_call {
    _Atomic uint64_t since; /* when it began; 0: there is none */
    enum gt_reason reason;  /* GT_REASON_NONE: a system call; else it counts as this wait */
    _Atomic(struct gt_stack *) stack; /* NULL: not looked for yet, see gt_call_stack */
};

struct gt_writer {
    _Atomic uint32_t busy;
    _Atomic uint32_t gen;
    _Atomic bool jumped; /* see gt_writer_jumped */
    _Atomic bool torn;   /* that is sure: its thread has ended */
    bool may_lose;       /* its thread neither begins nor ends: see urgent.h */
    uint32_t gave_up;    /* the switch, as gen says, that it has waited for long enough, urgent */
    uint8_t *pos, *end;
    uint64_t last; /* timestamp of the last event */
    struct gt_buf *buf;
    struct gt_texts texts;
    uint32_t m; /* kernel thread id */
    struct gt_p *p;
    struct gt_g g;
    struct gt_call call;
    struct gt_string *label;            /* the thread's name; NULL: it has given itself none */
    uint32_t told_gen;                  /* see gt_gen.first: in which it was told */
    _Atomic uint64_t events;            /* written, for the exit line */
    uint64_t events_before;             /* the mute generation it is in */
    uint64_t piece;                     /* events before this batch */
    uint8_t nowhere[2 * GT_EVENT_ROOM]; /* where events of a mute generation go */
    struct gt_writer *next;             /* all writers ever, for the drain side */
    uint32_t outside;                   /* the drain side's: see gt_switch_all_outside */
    bool jump_noted;
};

/* Makes w known to the drain side. Once per memory of a writer; it may serve many threads. */
void gt_writer_register(struct gt_writer *w);

bool gt_writer_enter_slow(struct gt_writer *w, bool at_once);

/*
 * Counts something that happened and could not be recorded. Any context. gt_lost_count: how many,
 * for the exit line.
 */
void gt_lost(void);
uint64_t gt_lost_count(void);

/* Whether w's thread has announced a call that it has not withdrawn. By that, or who switches w. */
static inline bool gt_call_is_announced(const struct gt_writer *w)
{
    return atomic_load_explicit(&w->call.since, memory_order_relaxed) != 0;
}

/* Whether w's thread, which calls, may sleep until the drain side has done something. */
bool gt_writer_waits(const struct gt_writer *w);

static inline bool gt_writer_pin(struct gt_writer *w, bool at_once)
{
    atomic_store_explicit(&w->busy, 1, memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&gt_gen.fence, memory_order_relaxed), 0))
        atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_seq_cst); /* rule 1 */
    uint32_t gen = atomic_load_explicit(&gt_gen.current, memory_order_acquire);
    if (__builtin_expect(atomic_load_explicit(&w->gen, memory_order_acquire) == gen &&
                             w->end - w->pos >= GT_EVENT_ROOM && !gt_call_is_announced(w),
                         1))
        return true;
    return gt_writer_enter_slow(w, at_once);
}

/*
 * Pins the current generation; false when nothing is being recorded, or nothing can be (which is
 * counted as lost); then do not call leave. May wait for a buffer if the disk cannot keep up.
 */
static inline bool gt_writer_enter(struct gt_writer *w)
{
    return gt_writer_pin(w, false);
}

/*
 * The same with a lock that others want: takes a buffer beyond the limit rather than wait. enter
 * and leave before that lock, so that this is needed for what does not fit in GT_EVENT_ROOM only.
 */
static inline bool gt_writer_enter_at_once(struct gt_writer *w)
{
    return gt_writer_pin(w, true);
}

static inline void gt_writer_leave(struct gt_writer *w)
{
    /* release: the drain side, seeing 0, sees the events. Pairs with its acquire of busy. */
    atomic_store_explicit(&w->busy, 0, memory_order_release);
}

/*
 * A signal handler, which has interrupted our code in w's thread, jumps, perhaps out of that; or
 * the thread ends there, by cancellation. If that was between enter and leave, and leave does not
 * follow, the drain side gives the writer up: what the thread would write is lost (and one event is
 * counted for that), what it has written is not, and its goroutine stays as it was. Any context.
 */
static inline void gt_writer_jumped(struct gt_writer *w)
{
    atomic_store_explicit(&gt_any_jumped, true, memory_order_relaxed);
    if (!atomic_exchange_explicit(&w->jumped, true, memory_order_relaxed))
        gt_lost();
}

/* Whether that has happened: then the memory cannot serve another thread. */
static inline bool gt_writer_gone(const struct gt_writer *w)
{
    return atomic_load_explicit(&w->gen, memory_order_relaxed) == GT_GEN_GONE;
}

/*
 * In a forked child, after all else is as new: a signal handler has forked, and goes back into the
 * middle of an event of the parent's. What w's thread writes from there comes to nothing.
 */
void gt_writer_leave_to_parent(struct gt_writer *w);

static inline bool gt_writer_busy(const struct gt_writer *w)
{
    return atomic_load_explicit(&w->busy, memory_order_relaxed);
}

/* The generation the owner has pinned: the drain side may already have claimed the writer, but
 * will not change the number before busy is 0. */
static inline uint32_t gt_writer_gen(const struct gt_writer *w)
{
    return atomic_load_explicit(&w->gen, memory_order_relaxed) &
           ~(GT_GEN_SWITCHING | GT_GEN_WAITED);
}

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

/* w's thread ends: hands over its buffer and P. Leave afterwards as usual. */
void gt_ev_thread_end(struct gt_writer *w);

/*
 * w's own goroutine waits, since a moment ago, or yields. false, and nothing written, when it is
 * not running: a signal handler in the middle of a wait, or a thread whose start could not be
 * recorded.
 */
bool gt_ev_go_block(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                    struct gt_stack *stack);
bool gt_ev_go_stop(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                   struct gt_stack *stack);

/*
 * w's own goroutine runs again after block, stop or the beginning of a system call. If it waits and
 * nobody has unblocked it, it unblocks itself first, with `stack`.
 */
void gt_ev_go_resume(struct gt_writer *w, struct gt_stack *stack);

/*
 * A call into the kernel begins: it may be short, and then leaves nothing in the trace. false: w's
 * goroutine is not running. reason, stack: see struct gt_call.
 */
bool gt_ev_call_announce(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                         struct gt_stack *stack);

/*
 * Finds the stack of the call that w has announced without one; NULL: it is not known. Called by
 * w's own thread, or by another one; should that have left its call (rule 5), what it has kept is
 * right, not the result. Set before the first announcement; NULL where all calls have their stacks.
 */
extern struct gt_stack *(*gt_call_stack)(struct gt_writer *w);

/*
 * By w's own thread, which is about to leave the call that it has announced, if it has, and cannot
 * withdraw it: by a jump, or because nothing can be written. Finds its stack, if that is not known.
 */
void gt_call_keep(struct gt_writer *w);

/*
 * The announced call is over. true: nothing of it is in the trace. false: it is, or that is not
 * sure; then enter, gt_ev_go_resume, leave. Not pinned; the only thing that a short call costs.
 */
static inline bool gt_call_withdraw(struct gt_writer *w, uint64_t since)
{
    atomic_store_explicit(&w->call.since, 0, memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&gt_gen.fence, memory_order_relaxed), 0))
        atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_seq_cst); /* rule 5 */
    uint32_t gen = atomic_load_explicit(&gt_gen.current, memory_order_acquire);
    if (__builtin_expect(atomic_load_explicit(&w->gen, memory_order_acquire) == gen, 1))
        return w->g.state == GT_G_RUNNING;
    atomic_store_explicit(&w->call.since, since, memory_order_relaxed);
    return false;
}

/* The call that was withdrawn, too long to be left out, and pinned now. Resume afterwards. */
void gt_ev_call_begin(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                      struct gt_stack *stack);

/*
 * Ends the wait of another goroutine. The caller found it in a registry that keeps it from going
 * on meanwhile. Takes target->lock for a moment. false: this pin is too old (rule 4): leave, enter
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

#endif
