/*
 * The drain side: closes generations, turns filled buffers and the tables into a file. Either a
 * thread of its own runs gt_drain_run, or, in a program that never had a second thread, whoever
 * ends the process calls gt_drain_finish alone.
 */
#ifndef GT_DRAIN_H
#define GT_DRAIN_H

#include "format.h"
#include "stacks.h"

#include <stdbool.h>
#include <stdint.h>

struct gt_frame {
    const char *func, *file; /* valid until the next call of resolve */
    uint32_t line;
    /*
     * For the outermost of several, or 0: the address to show, of which no other code has ever had
     * the like in this process.
     */
    uint64_t pc;
    /*
     * NULL, or what a reader has to know to find that code again. It stands in the table of strings
     * and no event refers to it.
     */
    const char *module;
};

struct gt_drain_config {
    const char *path;  /* valid for ever */
    uint64_t max_size; /* of the file; 0: any */
    const struct gt_format *format;
    /*
     * The frames at s->pcs[index], innermost inlined function first; fills at most max, returns
     * the number, at least 1.
     */
    int (*resolve)(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max);
    void (*sample)(void); /* see gt_drain_sample */
};

/* Starts recording: from here on writers can be entered. One trace at a time. */
void gt_drain_open(const struct gt_drain_config *config);

/* The body of the drain thread; returns after gt_drain_finish. Announced by set_threaded first. */
void gt_drain_run(void);
void gt_drain_set_threaded(void);
void gt_drain_set_unthreaded(void); /* it could not be made */

/*
 * Ends recording, writes what is left, closes the file. Any thread, once; later calls and calls of
 * other threads wait for the first. With a drain thread running waits for it. false: there never
 * was a recording.
 */
bool gt_drain_finish(void);

/*
 * Has the drain thread call config.sample soon: what needs a descriptor is looked at there, where
 * it takes no number of the program's. false: there is no such thread. Any thread.
 */
bool gt_drain_sample(void);

/* Closes the current generation and waits until it is in the file. Recording goes on. */
void gt_drain_flush(void);

struct gt_drain_summary {
    const char *path;
    uint64_t bytes, events, duration_ns, waits, wait_ns, lost;
    uint32_t generations;
    bool finished; /* false: its writing took too long to be waited for */
    bool limited;  /* recording stopped at max_size */
    int error;     /* 0 or the -errno that ended the file early */
};
struct gt_drain_summary gt_drain_summary(void);

/* In a forked child: no trace is open, nothing queued, all locks free. */
void gt_drain_after_fork(void);

#endif
