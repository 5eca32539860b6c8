/*
 * The account: what the kernel knows of each thread's CPU time, and no event contains. At the end
 * of a generation the drain side reads the accounts of all living threads; a thread that ends
 * leaves its own. The use between two readings goes into the trace as numbers that no event refers
 * to (usage.h). A thread that has used nothing is left out.
 */
#pragma once

#include "texts.h"
#include "encoder/format/usage.h"

struct gt_writer;
struct gt_account;

/*
 * Reads the wanted numbers of thread `tid`; 0: of the caller, without opening a descriptor. Numbers
 * that are not available are left out. false: there is certainly no such thread.
 */
typedef bool gt_usage_fn(uint32_t tid, unsigned wanted, struct gt_usage *usage);

/* What the kernel counts of the process, and of the caller's time in run queues; see gt_halts. */
struct gt_halts_count {
    /* a hash of the cgroup's path. If it changes, the counts before belong to another cgroup. */
    uint64_t group;
    uint64_t throttled, throttled_ns, queue_ns;
};
typedef void gt_halts_fn(struct gt_halts_count *count); /* zeros: not known */

/*
 * read NULL: no accounts are kept. halts: or NULL. threaded: whether the drain side is a thread.
 * Called before writers are entered.
 */
void gt_account_init(gt_usage_fn *read, gt_halts_fn *halts, bool (*threaded)(void));

/* For a kernel that tells when threads have a CPU (sched.h): */
struct gt_account_cpus {
    uint32_t (*count)(void); /* how many Ps are CPUs, or 0 */
    /* The thread has ended. It was born at `birth` (trace time) and has used cpu_ns since. */
    void (*ended)(uint32_t tid, uint64_t g, uint64_t birth, uint64_t end, uint64_t cpu_ns);
};
void gt_account_set_cpus(const struct gt_account_cpus *cpus); /* valid for ever */

/* Called by the drain thread after a sleep: how late that ended. */
void gt_account_note_late(uint64_t ns);

enum gt_account_begin {
    GT_ACCOUNT_BORN,  /* the thread has used nothing */
    GT_ACCOUNT_MET,   /* it existed before, among others */
    GT_ACCOUNT_ALONE, /* it existed before, alone: opening a descriptor does no harm */
};

/* w's thread begins to be traced. By the owner, pinned; so is gt_account_end. */
void gt_account_begin(struct gt_writer *w, enum gt_account_begin how);

/* w's thread ends. */
void gt_account_end(struct gt_writer *w);

/* w's thread leaves a generation. By w's switcher. */
void gt_account_move(struct gt_writer *w);

/* A thread, as the drain side sees it. The writer may serve another thread by now. */
struct gt_thread_view {
    struct gt_account *account;
    struct gt_writer *writer;
    uint64_t g;
    uint32_t tid;
    uint32_t p;
};

/* Calls fn for each living thread, once until the next gt_account_forget_seen. */
void gt_account_each_new(void (*fn)(const struct gt_thread_view *thread));
void gt_account_forget_seen(void);

/* Whether the thread has ended: nothing follows in its stream. */
bool gt_account_is_over(const struct gt_thread_view *thread);

/*
 * When the thread was born, in this recording (trace time), and the ns of CPU time that it had used
 * by then. false: it existed before the recording, or the time is not known.
 */
bool gt_account_birth(const struct gt_thread_view *thread, uint64_t *at, uint64_t *cpu_ns);

/* When the thread left the generation before, trace time. UINT64_MAX: it has ended in that one. */
uint64_t gt_account_stream_end(const struct gt_thread_view *thread);

/* Drain side: a recording begins. Earlier readings are of no use to it. */
void gt_account_open(void);

/* Called before threads leave the recording's last generation: ends meanwhile count as in it. */
void gt_account_expect_last(void);

/*
 * Reads the accounts and queues new rows for generation gen, which all writers have left. TURNS: if
 * there are many threads, reads them in turns. ALL: reads all threads, because the file ends. LAST:
 * reads all threads, because the recording ends.
 */
enum gt_account_look { GT_ACCOUNT_TURNS, GT_ACCOUNT_ALL, GT_ACCOUNT_LAST };
void gt_account_collect(uint32_t gen, enum gt_account_look look);

/*
 * Calls fn for the accounts in a generation's buffers: texts, as they stand in the trace
 * (GT_ACCOUNT).
 */
void gt_account_each(const struct gt_buf *bufs, gt_text_fn *fn);

/* In a forked child: no thread has an account yet. */
void gt_account_after_fork(void);
