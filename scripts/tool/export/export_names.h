/* The names of threads, waits and wakers in other tools. */
#pragma once

#include "encoder/read/threads.h"

/* The thread's own name, or its start routine, or "thread". */
const char *gt_export_thread(const struct gt_thread_state *t);

/* "worker 1234": a name that no other thread has. Valid until the next call. */
const char *gt_export_thread_id(const struct gt_thread_state *t);

/* The call that the thread waits in, or its state: "pthread_mutex_lock", "running". */
const char *gt_export_state(const struct gt_span *span);

/* "pthread_mutex_unlock <- append (journal.c:61)"; valid until the next call. */
const char *gt_export_place(const struct gt_callers *stack);

/* "G7 committer": the lock's holder when the wait began; NULL: not known. */
const char *gt_export_holder(const struct gt_wanted *wanted);
