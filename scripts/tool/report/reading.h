/* Opening and reading a trace for a command. Each ends the program with a message if it fails. */
#ifndef GT_READING_H
#define GT_READING_H

#include "encoder/read/threads.h"

void gt_open_trace(struct gt_trace *trace, const char *path);

/* Reads an open trace, and says on standard error how far that is where it takes long. */
void gt_read_threads(struct gt_threads *threads, struct gt_trace *trace);

/* A terminal sees what is done now with a trace that takes long; NULL: nothing any more. */
void gt_show_doing(const struct gt_trace *trace, const char *what);

/*
 * The same of what is selected (select.h): spans and samples. All else is told as it is. After that
 * it is known what is idle (idle.h).
 */
void gt_read_selected(struct gt_threads *threads, struct gt_trace *trace);

/* Its number, the name it gave itself, where it began. */
void gt_print_thread(const struct gt_thread_state *t);

#endif
