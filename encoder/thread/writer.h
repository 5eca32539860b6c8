/*
 * A writer: what one thread needs to write events, and the goroutine and P it is in the trace.
 * Events are written through it by events.h, after room.h has made room.
 *
 * GENERATIONS. The trace is cut into generations, each readable alone. The drain side announces
 * a new one by raising gt_gen.current; every writer must then hand over its buffer of the old one
 * and open the new one with status events. These rules keep a trace sound; asserts and comments
 * cite them by number.
 *
 *  1. A writer pins a generation by storing busy = 1, then loading gt_gen.current and finding it
 *     equal to its own gen. Until it stores busy = 0 it may write events, all of that generation.
 *     The store and the load must not be reordered. The drain side's membarrier(2) between raising
 *     current and reading busy stands for the fence that the writer leaves out. (Where membarrier
 *     does not exist, gt_gen.fence makes the writer issue it.)
 *  2. The switcher moves a writer to another generation. It is the thread that changes the writer's
 *     gen from the old number to the number | GT_GEN_SWITCHING: the owner, while not busy, or the
 *     drain side, which then waits for busy == 0. The writer's buffer belongs to the switcher until
 *     gen holds the new number. So do the stacks and the label that its state refers to, which the
 *     switcher renews (renewal.h).
 *  3. A goroutine's status in a generation is written once, by the thread that mentions it there
 *     first, and equals its state at the end of the previous one. g.lock guards state, seq and
 *     status_gen against unblockers and the drain side. The owner changes them without the lock
 *     while it has pinned a generation and no registry leads others to its goroutine.
 *  4. An unblock is never in an earlier generation than the block it ends. The unblocker finds the
 *     waiter first and pins afterwards. It does not use a generation older than the one in which
 *     the waiter's status stands already (gt_ev_go_unblock refuses).
 *  5. A call into the kernel has a life of its own (call.h), since most are too short to be worth
 *     an event. The owner announces it before. After a short one the owner withdraws the
 *     announcement, and nothing of the call is in the trace. After a long one the owner writes its
 *     beginning and its end, both at once, with the times that they had. Where the generation ends
 *     meanwhile, the switcher shows the call: it writes that the call began. So does the owner,
 *     where a signal handler writes anything in the middle of the call. Withdrawing is ordered as
 *     rule 1 is: the owner stores, then loads current. So an owner whose call a switcher shows
 *     finds that out, and waits for the end of the switch. Its stack stands still until then, and
 *     the switcher may look at it (gt_call_stack). There are three ways out that do not wait: a
 *     jump, the end of recording, and a switch that takes too long. There the owner keeps the
 *     stack before it goes on (gt_call_keep), and waits for a switcher that looks at it.
 *  6. Readers see no effect before its cause, although the clocks of CPUs may disagree. Readers
 *     also see events early: Go's batchCursor.nextEvent adds up the times of a batch and drops a
 *     fraction of a nanosecond at each event. An effect that seems earlier than its cause can make
 *     a trace unreadable, in two ways. After a GoStatusStack sequence numbers begin anew, so that a
 *     reader takes a later unblock for the one that is due. And if two events have the same time,
 *     Reader.ReadEvent may never try the one that can go first. So batches are short (GT_PIECE),
 *     and a thread that writes an effect of another thread's event gives it a time that is later
 *     by more than readers can be early (at_after in events.c).
 *
 * A generation can be mute: while nothing is recorded, threads go on as in any other generation,
 * with rules 1 to 5, but the events that they write are forgotten. So the state of every thread is
 * known when recording starts, and starting and stopping are changes of generation like others.
 */
#pragma once

#include "buffers.h"
#include "held_key.h"
#include "procs.h"
#include "stacks.h"
#include "strings.h"
#include "texts.h"

#include "encoder/base/futex.h"
#include "encoder/format/format.h"

#define GT_GEN_SWITCHING 0x80000000u
#define GT_GEN_WAITED 0x40000000u /* with SWITCHING: a thread sleeps until the switch is over */
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
    _Atomic uint32_t mute_since; /* the first of the mute generations that end with `mute` */
    _Atomic uint32_t first;      /* where a reader may begin: threads tell again what it missed */
    _Atomic uint32_t procs;      /* the number of CPUs to tell there; 0: it has been told */
    _Atomic uint64_t from;       /* trace time: no event of the generation is earlier */
};
extern struct gt_generation gt_gen;

/*
 * Makes a child that was forked without our noticing find zeros in gt_gen, so that its threads are
 * not followed: its memory may be the parent's. false: the kernel cannot do that.
 */
bool gt_gen_stays(void);

static inline bool gt_gen_is_mute(uint32_t gen)
{
    /*
     * acquire: mute_since is set before mute, and must be read after it. Otherwise earlier
     * generations might seem mute.
     */
    uint32_t mute = atomic_load_explicit(&gt_gen.mute, memory_order_acquire);
    uint32_t since = atomic_load_explicit(&gt_gen.mute_since, memory_order_relaxed);
    return gen - since <= mute - since;
}

/*
 * A wake-up that did not end a wait: the goroutine was unblocked just before ts, but another thread
 * took the mutex first. The goroutine's own thread, asleep in the kernel, could not write that it
 * started and blocked again. These two events are written later into its stream with this
 * timestamp, in generation gen, GoStart with sequence number seq. (Just before, not at: rule 6.) Or
 * the goroutine waits for something else from then on, which its thread could not write either.
 */
struct gt_rewait {
    uint64_t ts;
    struct gt_stack *stack; /* where the goroutine waits from then on */
    uint32_t gen;
    uint32_t seq;
};
#define GT_REWAITS_MAX 1000 /* all fit into one buffer */

/* The rewaits of a thread, for the black box: GT_BOX_REWAITS is a list of all. */
struct gt_rewaits {
    _Alignas(64) uint64_t next; /* address; at[0] is in the same cache line */
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
    /*
     * Rule 6; guarded as state: when another thread last changed the state, and when the own thread
     * last wrote it.
     */
    uint64_t changed, stated;
    uint32_t own_gen;            /* of its thread's stream */
    uint32_t behind;             /* ns, at most, that readers are early there at `stated` */
    struct gt_stack *routine;    /* its start routine; NULL: not known */
    struct gt_stack *wait_stack; /* of the wait or call it is in */
    _Atomic bool unstarted;      /* created, but its thread has not begun; cleared under lock */
    _Atomic uint32_t rewaits;    /* number of rewaits; guarded, with them, as state */
    struct gt_rewaits *rewait;   /* NULL: there was none yet */
};

/* A call into the kernel that has been announced. */
struct gt_call {
    _Atomic uint64_t since;  /* when it began; 0: there is none */
    enum gt_reason reason;   /* GT_REASON_NONE: a system call; else a wait for this reason */
    _Atomic uint64_t due_of; /* `since` of the call that ends, without a waker, at `due` */
    _Atomic uint64_t due;
    _Atomic(struct gt_stack *) stack; /* NULL: not looked for yet, see gt_call_stack */
};

struct gt_account;

/*
 * Members that a wait and its end touch come first, in five cache lines. When thousands of threads
 * wake at once, none of them finds its lines in a cache. After a broadcast, each of them fetches
 * its lines while it holds the mutex that all others wait for.
 */
struct gt_writer {
    _Atomic uint32_t busy;
    _Atomic uint32_t gen;
    uint8_t *pos, *end;
    uint8_t **shown; /* a copy of pos: in the buffer, or nowhere_pos */
    uint64_t last;   /* timestamp of the last event */
    struct gt_buf *buf;
    struct gt_p *p;
    struct gt_g g;
    uint32_t m;              /* kernel thread id */
    uint32_t told_gen;       /* where it was last told again, see gt_gen.first */
    uint32_t given;          /* gt_given_count when it last looked whether it was given a name */
    uint32_t given_version;  /* see gt_given_take */
    _Atomic uint64_t events; /* written, for the exit line */
    uint64_t piece;          /* events before this batch */
    uint64_t woken;          /* when the wait that its thread now ends was over; 0: not known */
    _Atomic uint64_t due;    /* when the wait that it begins ends without a waker; 0: not known */
    _Atomic(const void *) due_mutex; /* the mutex that its thread needs then, too; or NULL */
    struct gt_call call;
    struct gt_account *account; /* NULL: none is kept */
    struct gt_string *label;    /* the thread's name; NULL: it has none */
    uint64_t events_before;     /* events before the mute generation it is in */
    _Atomic bool jumped;        /* see gt_writer_jumped */
    _Atomic bool torn;          /* it certainly has: its thread has ended */
    bool may_lose;              /* its thread neither begins nor ends: see urgent.h */
    bool jump_noted;
    uint32_t gave_up; /* gen during the switch for which its urgent thread waits no more */
    struct gt_texts texts;
    struct gt_held_recent held[GT_HELD_RECENT];
    struct gt_writer *next; /* all writers ever, for the drain side */
    uint32_t outside;       /* the drain side's: see gt_switch_all_outside */
    uint8_t *nowhere_pos;
    uint8_t nowhere[2 * GT_EVENT_ROOM]; /* where events of a mute generation go */
};

/*
 * Makes w known to the drain side. Once for each writer's memory, which may serve many threads.
 * gt_writer_newest: the last one that was made known; w->next is the one before w.
 */
void gt_writer_register(struct gt_writer *w);
struct gt_writer *gt_writer_newest(void);

/* Counts something that could not be recorded. Any context. gt_lost_count: for the exit line. */
void gt_lost(void);
uint64_t gt_lost_count(void);

/* Whether w's thread has announced a call that is not withdrawn. For w's owner or switcher. */
static inline bool gt_call_is_announced(const struct gt_writer *w)
{
    return atomic_load_explicit(&w->call.since, memory_order_relaxed) != 0;
}

/*
 * A signal handler that has interrupted our code in w's thread jumps, perhaps out of that code; or
 * the thread ends there, by cancellation. If that was between pin and unpin, and unpin does not
 * follow, the drain side gives the writer up. Events that the thread would write are lost (one is
 * counted for that). Events that it has written are not lost, and its goroutine stays in its state.
 * Any context.
 */
static inline void gt_writer_jumped(struct gt_writer *w)
{
    gt_debug_abandon();
    atomic_store_explicit(&gt_any_jumped, true, memory_order_relaxed);
    if (!atomic_exchange_explicit(&w->jumped, true, memory_order_relaxed))
        gt_lost();
}

/* Whether the drain side has given w up: then its memory cannot serve another thread. */
static inline bool gt_writer_gone(const struct gt_writer *w)
{
    return atomic_load_explicit(&w->gen, memory_order_relaxed) == GT_GEN_GONE;
}

/*
 * In a forked child, after all else is new: a signal handler has forked, and returns into the
 * middle of an event of the parent's. Whatever w's thread writes from there is discarded.
 */
void gt_writer_disown(struct gt_writer *w);

static inline bool gt_writer_busy(const struct gt_writer *w)
{
    return atomic_load_explicit(&w->busy, memory_order_relaxed);
}

/*
 * The generation that the owner has pinned. The drain side may already have claimed the writer, but
 * does not change the number before busy is 0.
 */
static inline uint32_t gt_writer_gen(const struct gt_writer *w)
{
    return atomic_load_explicit(&w->gen, memory_order_relaxed) &
           ~(GT_GEN_SWITCHING | GT_GEN_WAITED);
}

/* For the owner, pinned, or w's switcher ----------------------------------------------------- */

/* Hands w's buffer, or that of its texts, to the queue of `gen`; an empty one back to the pool. */
void gt_writer_retire(struct gt_writer *w, uint32_t gen);
void gt_writer_retire_texts(struct gt_writer *w, uint32_t gen);

/* Detaches w from its buffer. */
void gt_writer_release(struct gt_writer *w);

/* Makes buf w's buffer, for events of generation gen; 0: the caller hands them on elsewhere. */
void gt_writer_install(struct gt_writer *w, struct gt_buf *buf, uint32_t gen);

/* For a mute generation: forgets what was written in it so far. Returns true. */
bool gt_writer_start_over(struct gt_writer *w);

/* Makes room for `bytes` that cannot wait, in generation gen. false: no memory. */
bool gt_writer_make_room(struct gt_writer *w, uint32_t gen, ptrdiff_t bytes);

/* In a forked child: there are no writers, and nothing has been lost yet. */
void gt_writer_after_fork(void);
