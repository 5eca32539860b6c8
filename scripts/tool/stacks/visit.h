/*
 * Shared by stop.c, visit.c and copying.c while they visit a running process. Only one thread of
 * gotrace at a time uses any of it.
 */
#pragma once

#include "still.h"

struct gt_stop {
    struct gt_still *still;
    int error;    /* of the first thread that could not be stopped */
    pid_t tracer; /* the tracer of that thread, if known */
    char tracer_name[17];
    bool other_machine;
    bool holds;   /* a seized thread does not stop: only the end of our thread frees it */
    size_t asked; /* number of threads asked to stop */
    int round;    /* of visits to the threads that were not ready before */
    int ticks;    /* of the timer, during the present call that seizes a thread */
};

/*
 * visit.c: visits a thread. It copies the thread's registers and memory, or finds that it has
 * ended, or asks it to stop. If the thread moves, it leaves it for a later round. last: there is
 * none, so do what can be done.
 */
void gt_visit(struct gt_stop *stop, struct gt_still_thread *task, bool last);

/* Visits the threads that were asked to stop. Each is released before the next one is copied. */
void gt_visit_asked(struct gt_stop *stop);

/* The handler of a timer that runs during visits. */
void gt_visit_tick(int signal);

/* The state of a thread in /proc: R, S, D, T, t, Z or X; 0: it has ended. */
char gt_state_of(pid_t tid);
bool gt_is_over(pid_t tid);
unsigned gt_flags_of(pid_t tid);
void gt_read_name(pid_t tid, char name[17]);
pid_t gt_own_id(const struct gt_still *still, pid_t tid);
uint64_t gt_now(void);

/*
 * copying.c: opens the memory and files of the program that the process executes now. Returns 0 or
 * an errno.
 */
int gt_copy_open(struct gt_still *still);
void gt_copy_close(struct gt_still *still);

/* Whether the process still executes that program. */
bool gt_copy_is_same(const struct gt_still *still);

/* Adds a piece: these bytes as they are now, as far as they can be read. */
void gt_copy(struct gt_still *still, uint64_t at, size_t size);

/* Copies a thread's stack and what its call's arguments point to. */
void gt_copy_task(struct gt_still *still, struct gt_still_thread *task);

/* Copies these bytes again, as they are now. False: they cannot be read. */
bool gt_copy_again(const struct gt_still *still, const struct gt_still_thread *task);
