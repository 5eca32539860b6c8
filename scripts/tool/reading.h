/* Opening and reading a trace for a command. Each ends the program with a message if it fails. */
#ifndef GT_READING_H
#define GT_READING_H

#include "encoder/read/threads.h"

void gt_open_trace(struct gt_trace *trace, const char *path);

/*
 * Reads an open trace, and says on standard error how far that is where it takes long. Spans and
 * samples that are told are those that are selected (select.h); all events are. After that, what is
 * idle is known (idle.h).
 */
void gt_read_threads(struct gt_threads *threads, struct gt_trace *trace);

/* Its number, the name it gave itself, where it began. */
void gt_print_thread(const struct gt_thread_state *t);

#endif
