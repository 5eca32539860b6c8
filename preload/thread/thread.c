/* See thread.h. */
#include "thread.h"

#include "capture.h"

#include "encoder/base/file.h"
#include "encoder/base/sparse.h"
#include "preload/bind/real.h"

#include <stdio.h>
#include <string.h>

__thread struct gt_thread *gt_self;
struct gt_thread gt_nobody GT_SPARSE_DATA = {.inside = GT_INSIDE_FOR_GOOD,
                                             .stack_size = UINTPTR_MAX};

void gt_thread_ignore(void)
{
    gt_self = &gt_nobody;
}

bool gt_thread_on_signal_stack(void)
{
    stack_t now;
    return gt_libc.sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_ONSTACK);
}

char gt_thread_state(uint32_t tid)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/stat", tid);
    gt_file_read_text(path, text, sizeof text);
    const char *name_ends = strrchr(text, ')');
    return name_ends && name_ends[1] ? name_ends[2] : 0;
}

void gt_thread_resume(struct gt_thread *t, int64_t patience_ns)
{
    t->stuck = !gt_unpark(&t->w, &t->parking, patience_ns);
    if (!t->stuck)
        t->frame = 0;
}

struct gt_thread *gt_thread_unstick(struct gt_thread *t)
{
    t->stuck = false; /* a signal handler that comes now finds the thread inside, not stuck */
    gt_thread_resume(t, 0);
    if (t->stuck)
        gt_lost();
    return t->stuck ? NULL : t;
}

bool gt_thread_stand(void)
{
    struct gt_thread *t = gt_self;
    if (!t || t->inside != 1 || t->stuck || t->stands)
        return false;
    t->stands = true;
    atomic_fetch_add(&gt_standing, 1);
    return true;
}

void gt_thread_go_on(struct gt_thread *t)
{
    if (t->stands && atomic_load(&gt_standing)) /* in a forked child no other thread stands */
        atomic_fetch_sub(&gt_standing, 1);
    t->stands = false;
}

#ifdef GT_DEBUG
bool gt_thread_is_interrupted(struct gt_thread *t)
{
    return t->inside == GT_INSIDE_FOR_GOOD || t->stuck || t->w.jumped || gt_capture_in_handler(t);
}
#endif
