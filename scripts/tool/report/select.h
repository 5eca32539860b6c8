/*
 * What of a trace a report is about: options that commands share. Between the reader and the
 * report: spans and samples of other threads, stacks and times are not told to it; a span that is
 * only partly of that time is cut to it.
 */
#ifndef GT_SELECT_H
#define GT_SELECT_H

#include "encoder/read/threads.h"

#include <getopt.h>

/* Rows for a command's table of long options, and what getopt_long returns for them. */
enum {
    GT_OPTION_FRAMES = 256,
    GT_OPTION_SKIP,
    GT_OPTION_FOCUS,
    GT_OPTION_THREAD,
    GT_OPTION_FROM,
    GT_OPTION_TO,
    GT_OPTION_TASK,
    GT_OPTION_WIDE,
    GT_OPTION_IDLE,
};
#define GT_SELECT_OPTIONS                                  \
    {"focus", required_argument, NULL, GT_OPTION_FOCUS},   \
        {"from", required_argument, NULL, GT_OPTION_FROM}, \
        {"to", required_argument, NULL, GT_OPTION_TO},     \
        {"task", required_argument, NULL, GT_OPTION_TASK}, \
        {"idle", required_argument, NULL, GT_OPTION_IDLE}, GT_SELECT_PLACE_OPTIONS
#define GT_SELECT_PLACE_OPTIONS                            \
    {"frames", required_argument, NULL, GT_OPTION_FRAMES}, \
        {"skip", required_argument, NULL, GT_OPTION_SKIP}, GT_SELECT_THREAD_OPTIONS
#define GT_SELECT_THREAD_OPTIONS                           \
    {"thread", required_argument, NULL, GT_OPTION_THREAD}, \
    {                                                      \
        "wide", no_argument, NULL, GT_OPTION_WIDE          \
    }

/* Their help, a line each. */
extern const char gt_select_help[];

/* Takes one of these options; false: it is another one. A bad value ends the program. */
bool gt_select_option(int option, const char *value);

/* Whether parts of the trace are left out; whether they are by more than its threads. */
bool gt_select_any(void);
bool gt_select_more_than_threads(void);

/* Reads the trace once before, for what is known only at its end, if that is wanted. */
void gt_select_prepare(const char *path);

/* Calls fn with what of a span is selected, in pieces. */
typedef void gt_select_fn(void *arg, const struct gt_span *span);
void gt_select_span(const struct gt_span *span, gt_select_fn *fn, void *arg);

/* Ends the program with a message where a trace that was read is over before --from. */
void gt_select_check(const struct gt_trace *trace);

/* Whether --thread means a thread that was read to its end; without one, all. */
bool gt_select_named(const struct gt_thread_state *t);

/* Whether a sample is, and a thread; whether what waits when the trace ends is. */
bool gt_select_sample(const struct gt_thread_state *t, const struct gt_callers *stack, uint64_t ns);
bool gt_select_thread(const struct gt_thread_state *t);
bool gt_select_waiting(const struct gt_thread_state *t);

/* The part of a stretch of time that is between --from and --to; its length. */
uint64_t gt_select_clip(uint64_t *from, uint64_t to);

#endif
