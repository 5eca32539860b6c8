/* The end of the recording: with the process, or with its image before an exec. */
#pragma once

#include <stdbool.h>

/*
 * Keeps a duplicate of stderr for the exit line when the program closes stderr. Many programs do so
 * at their end: xz before it calls exit(3), programs of the GNU project in a function that exit
 * calls. If the program goes on after all, we close the duplicate at the program's next call that
 * may block, or when it forks.
 */
void gt_process_keep_stderr(void);

/*
 * Finishes the trace and prints the exit line. Any thread may call it, any number of times.
 *
 * last: for the program's last thread, or for a process that lives on unrecorded. Then it holds no
 * other thread (gt_process_hold), and also waits until the drain thread has ended. libc counts the
 * drain thread, and if it ended last, libc would make it flush stdio, which it cannot, and run the
 * atexit handlers. The kernel would take the process's exit status from it, too.
 */
void gt_process_end(bool last);

/* For exit(3) and quick_exit(3). */
void gt_process_at_exit(void);

/* gt_process_end for the handler of a deadly signal, which may have interrupted any code, malloc
 * and the loader included. */
void gt_process_crash(void);

/* Completes the file before an exec. If the exec fails, recording goes on. errno is kept. */
void gt_process_before_exec(void);

/* Called when a function that ends the process has failed, after gt_process_end: says that nothing
 * is recorded any more. */
void gt_process_stays(void);
