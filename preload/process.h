/* The life of the process as the tracer sees it: start, second thread, fork, exec, end. */
#ifndef GT_PROCESS_H
#define GT_PROCESS_H

/*
 * The program is about to have a second thread: starts the drain thread (and in a forked child
 * the recording). A single-threaded program never gets a thread from us.
 */
void gt_process_threaded(void);

/* Finishes the trace and prints the exit line. Any number of times, from any thread. */
void gt_process_end(void);

#endif
