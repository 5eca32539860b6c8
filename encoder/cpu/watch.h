/*
 * Threads under watch: the kernel records when each thread has a CPU, for sched.h, and what the
 * thread runs there, as CPU samples (perf.h). The drain thread looks for new threads every 20 ms,
 * and empties the rings. Drain side only, but for what says otherwise.
 *
 * Without a drain thread that has descriptors of its own no thread is watched.
 *
 * Some threads cannot be sampled like this. Signals sample them as before
 * (preload/thread/sampler.h):
 * - All threads, where the kernel does not let this user sample what is in the kernel.
 * - Threads for whose rings no memory is left.
 * - Threads whose stack is deeper than the copy.
 */
#pragma once

#include "encoder/thread/account.h"
#include "off_cpu.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"

struct gt_watch {
    struct gt_watch *next;
    struct gt_thread_view thread;
    struct gt_perf perf; /* bytes 0: no ring is open */
    uint64_t last, told; /* last switch read; last one that the previous ring told */
    bool sampled;        /* the ring has samples */
    bool owes;           /* one more sample, for the time since the last by a signal */
    bool cut;            /* its stack is deeper than the copy, or of Python */
    uint64_t end;        /* of the generation that is over, in the thread's stream */
    bool ended, gone;    /* the thread ended in that generation or the next; certainly */
    /* What sched.c knows: when the thread had no CPU. */
    struct gt_absences {
        struct gt_vector told, known; /* in the generation being written; since then */
        size_t n_told, n;
        bool away; /* the last known absence is not over */
        struct gt_off_cpu off_cpu;
        uint64_t departed; /* when it left its CPU at stack `at`, if that switch is not read yet */
        uint32_t at, departed_in; /* at: stack number; departed_in: generation of that read */
        uint32_t unseen;          /* absences that no hook saw, in the generation being written */
    } absences;
};

/* Functions that are called for switches; all may be NULL. ts: trace time. */
struct gt_watch_switches {
    void (*begin)(struct gt_watch *w); /* no record has been read yet */
    void (*end)(struct gt_watch *w);   /* no more switches, unless `begin` is called again */
    void (*note)(struct gt_watch *w, const struct gt_perf_switch *s, uint64_t ts);
    void (*noted)(struct gt_watch *w); /* all switches so far were noted */
    void (*forget)(struct gt_watch *w);
};

/*
 * Copies of its stack sample goroutine g from now on, or no longer do. The writer is g's, or was.
 * Returns whether more than half a sampling period has passed since the thread's last sample by a
 * signal.
 */
typedef bool gt_by_copy_fn(struct gt_writer *w, uint64_t g, bool on);

/*
 * Timers sample the threads that copies do not, hz times a second of CPU time from now on; 0:
 * never.
 */
typedef void gt_by_timers_fn(uint32_t hz);

struct gt_watch_config {
    struct gt_watch_switches switches;
    uint32_t hz;            /* of CPU samples, for which timers run already; 0: none */
    gt_by_copy_fn *by_copy; /* these two may be NULL where there are never samples */
    gt_by_timers_fn *by_timers;
    bool (*may_watch)(void); /* whether the caller has descriptors of its own; NULL: no */
};
void gt_watch_init(const struct gt_watch_config *config);

/* From here on no more threads are watched (seccomp.c). Any thread. */
void gt_watch_forbid(void);

/*
 * Whether the kernel may record switches: it has not refused, and gt_watch_forbid was not called.
 */
bool gt_watch_is_allowed(void);

/*
 * All threads are in generation gen, or no thread is left. Watching begins with the first
 * generation of a recording. Records from here on are of generation gen, or of the one before.
 */
void gt_watch_next(uint32_t gen);
uint32_t gt_watch_generation(void);
bool gt_watch_is_on(void);

/* The recording has ended: samples are as often as before gt_watch_sample. */
void gt_watch_end(void);

/* Takes hz CPU samples a second of CPU time from here on, during a recording. */
void gt_watch_sample(uint32_t hz);

/*
 * Finds new threads and empties the rings: every GT_WATCH_NS, and more often where rings fill up
 * sooner. gt_watch_idle_ns: how long until the next poll is due; -1: never.
 */
#define GT_WATCH_NS 20000000
void gt_watch_poll(uint64_t now);
int64_t gt_watch_idle_ns(uint64_t now);

/* Called for each event in a loop over many: rings fill up meanwhile, so it polls now and then. */
static inline void gt_watch_meanwhile(void)
{
    enum { EVENTS = 1024 }; /* so many take less than a millisecond */
    static uint32_t n;
    if (++n % EVENTS == 0 && gt_watch_is_on())
        gt_watch_poll(gt_clock_monotonic_raw());
}

/* Empties the rings. */
void gt_watch_read(void);

/* Converts a record's time to trace time. */
uint64_t gt_watch_time(uint64_t ns);

struct gt_watch *gt_watch_of(uint32_t tid);
void gt_watch_each(void (*fn)(struct gt_watch *w));

/*
 * note_ends: a generation is over for all threads; notes the threads that have ended. let_go: that
 * generation is written; forgets those threads.
 */
void gt_watch_note_ends(void);
void gt_watch_let_go(void);

/*
 * How many threads are not watched because of limits of descriptors or locked memory. Any thread.
 */
uint64_t gt_watch_unwatched(void);

/* In a forked child: rings and descriptors belong to the parent. */
void gt_watch_after_fork(void);
