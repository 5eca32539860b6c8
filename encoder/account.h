/*
 * The account: what the kernel knows of each thread's time, which no event tells. At the end of a
 * generation the drain side reads it for the threads that there are; a thread that ends leaves its
 * own. What was used between two readings goes into the trace as numbers that no event refers to
 * (usage.h). A thread that has used nothing is not mentioned.
 */
#ifndef GT_ACCOUNT_H
#define GT_ACCOUNT_H

#include "texts.h"
#include "usage.h"

struct gt_writer;
struct gt_account;

/*
 * Reads the wanted numbers of thread `tid`; or, if that is 0, of the caller, where no descriptor is
 * opened. What cannot be had is left out. false: there is certainly no such thread.
 */
typedef bool gt_usage_fn(uint32_t tid, unsigned wanted, struct gt_usage *usage);

/* NULL: no accounts are kept. Before writers are entered. */
void gt_account_init(gt_usage_fn *read);

enum gt_account_begin {
    GT_ACCOUNT_BORN,  /* the thread has used nothing */
    GT_ACCOUNT_MET,   /* it was there before; others are, too */
    GT_ACCOUNT_ALONE, /* it was there before, and is the only one: a descriptor does no harm */
};

/* w's thread begins to be traced. By the owner, pinned, as is what follows. */
void gt_account_begin(struct gt_writer *w, enum gt_account_begin how);

/* It ends. */
void gt_account_end(struct gt_writer *w);

/* It leaves a generation. By who switches it. */
void gt_account_move(struct gt_writer *w);

/* A thread, for the drain side. The writer may have become that of another one. */
struct gt_thread_view {
    struct gt_account *account;
    struct gt_writer *writer;
    uint64_t g;
    uint32_t tid;
    uint32_t p;
};

/* Those that are there, each once, until the next gt_account_forget_seen. */
void gt_account_each_new(void (*fn)(const struct gt_thread_view *thread));
void gt_account_forget_seen(void);

/* Whether nothing follows in its stream. */
bool gt_account_is_over(const struct gt_thread_view *thread);

/* When it left the generation before, trace time; UINT64_MAX: it has ended in that. */
uint64_t gt_account_stream_end(const struct gt_thread_view *thread);

/* Drain side: a recording begins, which has no use for what was before. */
void gt_account_open(void);

/* Before threads leave its last generation: those that end meanwhile do so in that. */
void gt_account_expect_last(void);

/*
 * Reads the accounts and queues what is new for generation gen, which all writers have left: of
 * threads in turns, where they are many; of all, for the file ends; or so does the recording.
 */
enum gt_account_look { GT_ACCOUNT_TURNS, GT_ACCOUNT_ALL, GT_ACCOUNT_LAST };
void gt_account_collect(uint32_t gen, enum gt_account_look look);

/* The accounts in a generation's buffers: texts, as they stand in the trace (GT_ACCOUNT). */
void gt_account_each(const struct gt_buf *bufs, gt_text_fn *fn);

/* In a forked child no thread has one yet. */
void gt_account_after_fork(void);

#endif
