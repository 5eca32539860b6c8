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
 *  2. Moving a writer to another generation ("switching") is done by the thread that changes its
 *     gen from the old number to the number | GT_GEN_SWITCHING: the writer itself, while not busy,
 *     or the drain side, which then waits for busy == 0. The writer's own buffer belongs to the
 *     switcher until gen holds the new number; and so do the stacks and the label that its state
 *     refers to, which are renewed then (renewal.h).
 *  3. A goroutine's status in a generation is written once, by the thread that mentions it there
 *     first, and equals its state at the end of the previous one. g.lock guards state, seq and
 *     status_gen against unblockers and the drain side. The owner changes them without the lock
 *     while it has pinned a generation and no registry leads others to its goroutine.
 *  4. An unblock is never in an earlier generation than the block it ends: the unblocker finds the
 *     waiter first and pins afterwards; and it does not use a generation older than the one in
 *     which the waiter's status stands already (gt_ev_go_unblock refuses).
 *  5. A call into the kernel has a life of its own (call.h), since most are too short to be worth
 *     an event. The owner announces it before. After a short one the owner withdraws the
 *     announcement, and nothing of the call is in the trace. After a long one the owner writes its
 *     beginning and its end, both at once, with the times that they had. Where the generation ends
 *     meanwhile, the switcher shows the call: it writes that the call began. So does the owner,
 *     where a signal handler writes anything in the middle of the call. Withdrawing is ordered as
 *     rule 1 is: the owner stores, then loads current. So an owner whose call a switcher shows
 *     finds that out, and waits for the end of the switch; its stack stands still until then, and
 *     the switcher may look at it (gt_call_stack). There are three ways out that do not wait: a
 *     jump, the end of recording, and a switch that takes too long. There the owner keeps the
 *     stack before it goes on (gt_call_keep), and waits for a switcher that looks at it.
 *  6. Readers see no effect before its cause, although the clocks of CPUs may disagree, and
 *     although readers see events early: Go's batchCursor.nextEvent adds up the times of a batch
 *     and drops a fraction of a nanosecond at each event. An effect that seems the earlier one can
 *     make a trace unreadable, in two ways. After a GoStatusStack sequence numbers begin anew, so
 *     that a later unblock is taken for the one that is due. And of two events of the same time
 *     Reader.ReadEvent may never try the one that can go first. So batches are short (GT_PIECE),
 *     and a thread that writes an effect of another thread's event gives it a time that is later
 *     by more than readers can be early (now_after in events.c).
 *
 * A generation can be mute: while nothing is recorded, threads go on as in any other one, with
 * rules 1 to 5, but what they write is forgotten. So when recording starts everybody's state is
 * known, and starting and stopping are changes of generation like others.
 */
#ifndef GT_WRITER_H
#define GT_WRITER_H

#include "buffers.h"
#include "format.h"
#include "held.h"
#include "procs.h"
#include "stacks.h"
#include "strings.h"
#include "texts.h"

#include "encoder/base/clock.h"
#include "encoder/base/futex.h"
#include "encoder/base/varint.h"

#define GT_GEN_SWITCHING 0x80000000u
#define GT_GEN_WAITED 0x40000000u /* with SWITCHING: a thread sleeps until it is over */
#define GT_GEN_GONE 0x3fffffffu   /* of a writer that was given up, see gt_writer_jumped */

/* One event never needs more: a type byte and at most five full varints, twice for statuses. */
#define GT_EVENT_ROOM 256

#define GT_PIECE 2048 /* bytes of a batch, about: rule 6 */

enum { GT_GEN_PAGE = 4096 };

/* Has pages of its own: see gt_gen_stays. */
struct gt_generation {
    _Alignas(GT_GEN_PAGE) _Atomic uint32_t
        current;            /* 0: threads are not followed, before the start and after the end */
    _Atomic uint32_t fence; /* 1: no membarrier(2), writers must fence */
    /* What follows is set before current is raised. */
    _Atomic uint32_t mute;       /* the last mute generation; 0: none yet */
    _Atomic uint32_t mute_since; /* the first of those that it ends */
    _Atomic uint32_t first; /* where a reader may begin: there he is told what he cannot know */
    _Atomic uint32_t procs; /* of that the number of CPUs; 0: told */
    _Atomic uint64_t from;  /* trace time: no event of the generation is from before that */
};
extern struct gt_generation gt_gen;

/*
 * In a child that was forked without our noticing threads are not followed from here on: it may
 * have memory that is the parent's. false: the kernel does not do that.
 */
bool gt_gen_stays(void);

static inline bool gt_gen_is_mute(uint32_t gen)
{
    /* acquire: before mute_since, which is set first; else what precedes them might seem mute. */
    uint32_t mute = atomic_load_explicit(&gt_gen.mute, memory_order_acquire);
    uint32_t since = atomic_load_explicit(&gt_gen.mute_since, memory_order_relaxed);
    return gen - since <= mute - since;
}

/*
 * A wait that went on in vain: the goroutine was unblocked just before ts, but another thread took
 * the mutex before it. Its own thread, asleep in the kernel, could not write that it started and
 * blocked again; these two events are written later into its stream with this timestamp, in
 * generation gen, GoStart with sequence number seq. (Just before, not at: rule 6.) Or it waits for
 * something else from then on, and its thread could not write that either.
 */
struct gt_rewait {
    uint64_t ts;
    struct gt_stack *stack; /* where it waits from then on */
    uint32_t gen;
    uint32_t seq;
};
#define GT_REWAITS_MAX 1000 /* all fit one buffer */

/* Those of a thread, for the black box: its root has a list of them. */
struct gt_rewaits {
    uint64_t next; /* address */
    uint64_t g;
    uint32_t m;
    _Atomic uint32_t n;
    struct gt_rewait at[GT_REWAITS_MAX];
};

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
    _Atomic uint32_t rewaits;    /* how many there are; with these under lock, as state */
    struct gt_rewaits *rewait;   /* NULL: there was none yet */
};

/* A call into the kernel that has been announced. */
struct gt_call {
    _Atomic uint64_t since;  /* when it began; 0: there is none */
    enum gt_reason reason;   /* GT_REASON_NONE: a system call; else it counts as this wait */
    _Atomic uint64_t due_of; /* of the call that began then it is known when it ends by itself: */
    _Atomic uint64_t due;
    _Atomic(struct gt_stack *) stack; /* NULL: not looked for yet, see gt_call_stack */
};

struct gt_account;

struct gt_writer {
    _Atomic uint32_t busy;
    _Atomic uint32_t gen;
    _Atomic bool jumped; /* see gt_writer_jumped */
    _Atomic bool torn;   /* that is sure: its thread has ended */
    bool may_lose;       /* its thread neither begins nor ends: see urgent.h */
    uint32_t gave_up;    /* the switch, as gen says, that it has waited for long enough, urgent */
    uint8_t *pos, *end;
    uint8_t **shown; /* where pos is to be seen, too: its buffer's, or nowhere_pos */
    uint64_t last;   /* timestamp of the last event */
    struct gt_buf *buf;
    struct gt_texts texts;
    uint32_t m; /* kernel thread id */
    struct gt_p *p;
    struct gt_g g;
    struct gt_call call;
    uint64_t woken; /* when the wait that its thread now ends was over; 0: nobody knows better */
    _Atomic uint64_t due; /* when the one that it begins will be, by itself; 0: not known */
    _Atomic(const void *) due_mutex; /* that its thread needs then, too; or NULL */
    struct gt_account *account;      /* NULL: none is kept */
    struct gt_held_recent held[GT_HELD_RECENT];
    struct gt_string *label; /* the thread's name; NULL: it has given itself none */
    uint32_t told_gen;       /* see gt_gen.first: in which it was told */
    _Atomic uint64_t events; /* written, for the exit line */
    uint64_t events_before;  /* the mute generation it is in */
    uint64_t piece;          /* events before this batch */
    uint8_t *nowhere_pos;
    uint8_t nowhere[2 * GT_EVENT_ROOM]; /* where events of a mute generation go */
    struct gt_writer *next;             /* all writers ever, for the drain side */
    uint32_t outside;                   /* the drain side's: see gt_switch_all_outside */
    bool jump_noted;
};

/* Makes w known to the drain side. Once per memory of a writer; it may serve many threads. */
void gt_writer_register(struct gt_writer *w);

bool gt_writer_pin_slow(struct gt_writer *w, bool at_once);

/* Counts something that could not be recorded. Any context. gt_lost_count: for the exit line. */
void gt_lost(void);
uint64_t gt_lost_count(void);

/* Whether w's thread has announced a call that it has not withdrawn. By that, or who switches w. */
static inline bool gt_call_is_announced(const struct gt_writer *w)
{
    return atomic_load_explicit(&w->call.since, memory_order_relaxed) != 0;
}

/* Whether w's thread, which calls, may sleep until the drain side has done something. */
bool gt_writer_waits(const struct gt_writer *w);

static inline bool gt_writer_pin_how(struct gt_writer *w, bool at_once)
{
    gt_debug_pin(w);
    atomic_store_explicit(&w->busy, 1, memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&gt_gen.fence, memory_order_relaxed), 0))
        atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_seq_cst); /* rule 1 */
    uint32_t gen = atomic_load_explicit(&gt_gen.current, memory_order_acquire);
    if (__builtin_expect(atomic_load_explicit(&w->gen, memory_order_acquire) == gen &&
                             w->end - w->pos >= GT_EVENT_ROOM && !gt_call_is_announced(w),
                         1))
        return true;
    return gt_writer_pin_slow(w, at_once);
}

/*
 * Pins the current generation; false when nothing is being recorded, or nothing can be (which is
 * counted as lost); then do not unpin. May wait for a buffer if the disk cannot keep up.
 */
static inline bool gt_writer_pin(struct gt_writer *w)
{
    return gt_writer_pin_how(w, false);
}

/*
 * The same with a lock that others want: takes a buffer beyond the limit rather than wait. Pin
 * and unpin before that lock, so that this is needed for what does not fit in GT_EVENT_ROOM only.
 */
static inline bool gt_writer_pin_at_once(struct gt_writer *w)
{
    return gt_writer_pin_how(w, true);
}

static inline void gt_writer_unpin(struct gt_writer *w)
{
    gt_debug_pin(NULL);
    /* release: the drain side, seeing 0, sees the events. Pairs with its acquire of busy. */
    atomic_store_explicit(&w->busy, 0, memory_order_release);
}

/*
 * A signal handler, which has interrupted our code in w's thread, jumps, perhaps out of that; or
 * the thread ends there, by cancellation. If that was between pin and unpin, and unpin does not
 * follow, the drain side gives the writer up: what the thread would write is lost (and one event is
 * counted for that), what it has written is not, and its goroutine stays as it was. Any context.
 */
static inline void gt_writer_jumped(struct gt_writer *w)
{
    gt_debug_abandon();
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
void gt_writer_disown(struct gt_writer *w);

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

/* The owner, pinned, or who switches w ------------------------------------------------------- */

/* Hands w's buffer to the queue of `gen`, or back to the pool when nothing is in it. */
void gt_writer_retire(struct gt_writer *w, uint32_t gen);

/* w has no buffer any more. */
void gt_writer_release(struct gt_writer *w);

/* buf becomes w's, for events of generation gen; 0: they are handed on elsewhere. */
void gt_writer_install(struct gt_writer *w, struct gt_buf *buf, uint32_t gen);

/*
 * Room for an event: as it is, by another batch in the same buffer, or by another buffer; with
 * force one beyond the limit. false: there is none to be had now.
 */
bool gt_writer_refresh(struct gt_writer *w, bool force);

/* Room for so many bytes, that cannot wait, in generation gen. false: no memory. */
bool gt_writer_make_room(struct gt_writer *w, uint32_t gen, ptrdiff_t bytes);

/*
 * A thread cannot go on without a buffer, and with none left waits for the drain side: nothing may
 * be lost silently. It is not busy meanwhile, the drain side could be waiting for that.
 * false: it has waited long enough, or recording ended.
 */
bool gt_writer_wait_for_room(struct gt_writer *w, uint64_t *since);

/* In a forked child, nothing has been lost yet. */
void gt_writer_after_fork(void);

#endif
