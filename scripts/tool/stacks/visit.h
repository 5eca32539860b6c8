/*
 * What stop.c, visit.c and copying.c share while a running process is looked at. All of it is used
 * by one thread of ours at a time.
 */
#ifndef GT_VISIT_H
#define GT_VISIT_H

#include "still.h"

struct gt_stop {
    struct gt_still *still;
    int error;    /* of the first thread that could not be stopped */
    pid_t tracer; /* who had that one, where it is known */
    char tracer_name[17];
    bool other_machine;
    bool holds;   /* a thread that does not stop: only the end of our own thread lets go of it */
    size_t asked; /* to stop: so many */
    int round;    /* of visits to those threads that were not ready for them before */
    int ticks;    /* that the call to seize a thread lasts for */
};

/*
 * visit.c: copies a thread's registers and memory, or finds it gone, or has asked it to stop, or
 * leaves it, since it moves, for another time. `last`: does what can be done.
 */
void gt_visit(struct gt_stop *stop, struct gt_task *task, bool last);

/* The same of those that were asked: each is let go of before the next one is looked at. */
void gt_visit_asked(struct gt_stop *stop);

/* By a timer while threads are visited. */
void gt_visit_tick(int signal);

/* What the kernel says of a thread: R, S, D, T, t, Z, X; 0: it is gone. */
char gt_state_of(pid_t tid);
bool gt_is_over(pid_t tid);
unsigned gt_flags_of(pid_t tid);
void gt_read_name(pid_t tid, char name[17]);
pid_t gt_own_id(const struct gt_still *still, pid_t tid);
uint64_t gt_now(void);

/* copying.c: opens the memory of what the process executes now, and its files; 0, or an errno. */
int gt_copy_open(struct gt_still *still);
void gt_copy_close(struct gt_still *still);

/* Whether the process still executes the program that it did then. */
bool gt_copy_is_same(const struct gt_still *still);

/* The stack of a thread, and what its call points to, by its registers and its call. */
void gt_copy_task(struct gt_still *still, struct gt_task *task);

/* The same bytes as they are now; false: they are not to be had. */
bool gt_copy_again(const struct gt_still *still, const struct gt_task *task);

#endif
