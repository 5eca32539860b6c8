/*
 * Selection: which part of a trace a report is about, by options that commands share. It works
 * between the reader and the report. Spans and samples of other threads, stacks and times do not
 * reach the report; a span that is partly in the selected time is cut to it.
 */
#pragma once

#include "encoder/read/threads.h"

#include <getopt.h>

/* Rows for a command's table of long options, and the values that getopt_long returns for them. */
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

/* The help texts of these options, one line each. */
extern const char gt_select_help[];

/* Handles one of these options. False: it is another option. A bad value ends the program. */
bool gt_select_option(int option, const char *value);

/* The value of -n: a number of rows. A bad value ends the program. */
size_t gt_read_rows(const char *command, const char *value);

/* Whether any part of the trace is left out; and whether by more than --thread. */
bool gt_select_any(void);
bool gt_select_more_than_threads(void);

/*
 * For --thread and --task: reads the trace once before the report does, as only its end tells all.
 */
void gt_select_prepare(const char *path);

/*
 * Calls fn with the selected pieces of a span. They have the region's stack if a thread of OpenMP
 * was woken for a region, and has no CPU yet.
 */
typedef void gt_select_fn(void *arg, const struct gt_span *span);
void gt_select_span(const struct gt_span *span, gt_select_fn *fn, void *arg);

/* Ends the program with a message if the trace that was read ends before --from. */
void gt_select_check(const struct gt_trace *trace);

/* Whether --thread matches a thread that was read to its end. Without --thread all match. */
bool gt_select_named(const struct gt_thread_state *t);

/* Notes which of the threads, all read to their end, --thread matches. Says so if it matches none,
 * and returns whether that is so. */
bool gt_select_names_none(const struct gt_threads *threads);

/* Whether a sample, a thread, or a wait that the end of the trace cuts is selected. */
bool gt_select_sample(const struct gt_thread_state *t, const struct gt_callers *stack, uint64_t ns);
bool gt_select_thread(const struct gt_thread_state *t);
bool gt_select_waiting(const struct gt_thread_state *t);

/* Clips a stretch of time to --from and --to. Returns its length. */
uint64_t gt_select_clip(uint64_t *from, uint64_t to);
