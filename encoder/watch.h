/*
 * Threads under watch: the kernel records for each when it has a CPU, for sched.h, and what it runs
 * there, as CPU samples (perf.h). Our thread meets new threads every 20 ms, and empties the rings.
 * Drain side only, but for what says otherwise.
 *
 * That takes a drain thread with descriptors of its own: without one nobody is watched.
 *
 * A thread that cannot be sampled like this goes on as it was, by signals (preload/sampler.h):
 * where the kernel does not let this user sample what is in the kernel, where memory for rings
 * ends, and where a stack is deeper than what is copied of it.
 */
#ifndef GT_WATCH_H
#define GT_WATCH_H

#include "account.h"
#include "off_cpu.h"
#include "merge.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"

struct gt_watch {
    struct gt_watch *next;
    struct gt_thread_view thread;
    struct gt_perf perf; /* bytes 0: there is none */
    uint64_t last, told; /* when its last switch was; and that which a ring before this one told */
    bool sampled;        /* with samples */
    bool owes;           /* a sample, of the time since its last one by a signal */
    bool cut;            /* its stack is deeper than what is copied, or of Python */
    uint64_t end;        /* of the generation that is over, in its stream */
    bool ended, gone;    /* its thread, in that generation or the next one; certainly */
    /* What sched.c knows of it: when it had no CPU. */
    struct gt_absences {
        struct gt_vector told, known; /* in the generation that is written; since then */
        size_t n_told, n;
        bool away; /* the last one known is not over */
        struct gt_off_cpu off_cpu;
        uint64_t departed; /* when it did that at this stack, whose switch was not told yet */
        uint32_t at, departed_in; /* the generation in which that was read */
        uint32_t unseen;          /* how many no hook saw, in the generation that is written */
    } absences;
};

/* Who is told of switches; all may be NULL: nobody. ts: trace time. */
struct gt_watch_switches {
    void (*begin)(struct gt_watch *w); /* nothing is recorded yet */
    void (*end)(struct gt_watch *w);   /* nothing follows, but perhaps after another beginning */
    void (*note)(struct gt_watch *w, const struct gt_perf_switch *s, uint64_t ts);
    void (*noted)(struct gt_watch *w); /* all so far */
    void (*forget)(struct gt_watch *w);
};

/*
 * Thread g, which this writer is or was of, is sampled by us from now on, or is not. Whether more
 * than half of the time since its last sample has passed that is between two.
 */
typedef bool gt_by_copy_fn(struct gt_writer *w, uint64_t g, bool on);

/* Threads that are not sampled by us are so by timers from now on, so often; 0: not at all. */
typedef void gt_by_timers_fn(uint32_t hz);

struct gt_watch_config {
    struct gt_watch_switches switches;
    uint32_t hz; /* of CPU samples, with timers already, until gt_watch_sample; 0: none */
    gt_by_copy_fn *by_copy; /* these two may be NULL where there are never samples */
    gt_by_timers_fn *by_timers;
    bool (*may_watch)(void); /* whether the caller has descriptors of its own; NULL: no */
};
void gt_watch_init(const struct gt_watch_config *config);

/* From here on no other thread is watched (seccomp.c). Any thread. */
void gt_watch_forbid(void);

/* Whether the kernel tells switches, as far as it was asked. */
bool gt_watch_is_allowed(void);

/*
 * All threads are in generation gen, or there are none any more: if it is the first one of a
 * recording, watching begins. Records from here on are of that one, or of the one before.
 */
void gt_watch_next(uint32_t gen);
uint32_t gt_watch_generation(void);
bool gt_watch_is_on(void);

/* The recording has ended; samples are what they were before gt_watch_sample. */
void gt_watch_end(void);

/* So many CPU samples from here on, during a recording. */
void gt_watch_sample(uint32_t hz);

/*
 * Finds new threads and empties the rings, at least so often, and more often where they fill up
 * sooner; when that is due, -1: never.
 */
#define GT_WATCH_NS 20000000
void gt_watch_poll(uint64_t now);
int64_t gt_watch_idle_ns(uint64_t now);

/* For each event where many are gone through: rings are filled meanwhile. */
static inline void gt_watch_meanwhile(void)
{
    enum { EVENTS = 1024 }; /* take less than a millisecond */
    static uint32_t n;
    if (++n % EVENTS == 0 && gt_watch_is_on())
        gt_watch_poll(gt_clock_monotonic_raw());
}

/* Empties the rings. */
void gt_watch_read(void);

/* Trace time of a record's. */
uint64_t gt_watch_time(uint64_t ns);

struct gt_watch *gt_watch_of(uint32_t tid);
void gt_watch_each(void (*fn)(struct gt_watch *w));

/* A generation is over for all threads: notes who has ended. And is written: those are let go. */
void gt_watch_note_ends(void);
void gt_watch_let_go(void);

/* Threads whose switches are not told, for limits of descriptors or locked memory. Any thread. */
uint64_t gt_watch_unwatched(void);

/* In a forked child: rings and descriptors are the parent's. */
void gt_watch_after_fork(void);

#endif
