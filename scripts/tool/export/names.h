/* What threads, waits and those who end them are called in other tools. */
#ifndef GT_EXPORT_NAMES_H
#define GT_EXPORT_NAMES_H

#include "encoder/read/threads.h"

/* The name it gave itself, or where it began, or "thread". */
const char *gt_export_thread(const struct gt_thread_state *t);

/* "worker 1234": one thread, and no other one. Valid until the next call. */
const char *gt_export_thread_id(const struct gt_thread_state *t);

/* The call that waits, or what the thread does instead: "pthread_mutex_lock", "running". */
const char *gt_export_state(const struct gt_span *span);

/* "pthread_mutex_unlock <- append (journal.c:61)"; valid until the next call. */
const char *gt_export_place(const struct gt_callers *stack);

/* "G7 committer": who held what is waited for when that began; NULL: nobody that is known. */
const char *gt_export_holder(const struct gt_wanted *wanted);

#endif
