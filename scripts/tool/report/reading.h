/*
 * Opens and reads a trace for a command. On failure each function ends the program with a message.
 */
#pragma once

#include "encoder/read/threads.h"

void gt_open_trace(struct gt_trace *trace, const char *path);

/* Reads an open trace. Prints the progress to standard error if the trace is large. */
void gt_read_threads(struct gt_threads *threads, struct gt_trace *trace);

/* Shows on a terminal what the command does with a large trace. NULL: clears the line. */
void gt_show_doing(const struct gt_trace *trace, const char *what);

/*
 * Reads an open trace, but passes on only the selected spans and samples (select.h). All other
 * events are passed on unchanged. Afterwards idle.h can tell which waits are idle.
 */
void gt_read_selected(struct gt_threads *threads, struct gt_trace *trace);

/* What a report says first if the file is cut, as lines; "": it is not. Valid for one call. */
const char *gt_cut_words(const struct gt_trace *trace);

/* Prints a thread: its number, its own name, its routine. */
void gt_print_thread(const struct gt_thread_state *t);
