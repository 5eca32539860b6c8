/*
 * Confirms deadlocks. The threads were visited one after the other, and may have gone on in
 * between. So the threads of each deadlock are looked at once more, without stopping any:
 *
 *   1. Each thread sleeps in the call that it was seen in. Its number of sleeps so far is noted.
 *   2. What each thread waits for, and the holder of that, is read again.
 *   3. Each thread sleeps in that call, and has not gone to sleep again.
 *
 * (A wait for Python's GIL is many short waits. It lasts as long as the GIL has the same owner.)
 *
 * By 1 and 3 no thread ran in between, so all that 2 finds is true at one moment.
 */
#include "elsewhere.h"
#include "holders.h"
#include "python_threads.h"
#include "visit.h"

#include "encoder/read/need.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct look {
    struct gt_still_thread *task;
    uint64_t turn;
    bool holds;
};

/*
 * Whether the thread is in the call in which it was seen. A wait for Python's GIL repeats that call
 * from the same place, with other arguments.
 */
static bool is_in_call(const struct gt_still_thread *t)
{
    struct gt_system_call now = gt_call_of(t->tid), then = t->call;
    then.sp = gt_registers_sp(&t->registers);
    then.pc = gt_registers_pc(&t->registers);
    if (t->wait.kind == GT_WAIT_GIL)
        memcpy(then.argument, now.argument, sizeof then.argument);
    return then.number >= 0 && gt_call_is_same(&now, &then);
}

/*
 * A number that changes when the thread goes on: its sleeps or, in a wait for the GIL, the switches
 * of its owner.
 */
static uint64_t turn_of(const struct gt_still *s, const struct gt_still_thread *t)
{
    return t->wait.kind == GT_WAIT_GIL ? gt_gil_turn(s, t) : (uint64_t)gt_sleeps_of(t->tid);
}

/* Waits until the thread is back in its call: it may just have been stopped. */
static bool await_call(const struct gt_still_thread *t)
{
    enum { TICK_NS = 1000000, TICKS = 500 };
    for (int i = 0; i < TICKS; i++) {
        if (is_in_call(t))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = TICK_NS}, NULL);
    }
    return false;
}

/* Whether the process has a thread with that id in its own PID namespace: a new one may have it. */
static bool has_thread(const struct gt_still *s, pid_t own)
{
    char path[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/task", s->pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && !found && (e = readdir(dir));)
        found = gt_own_id(s, atoi(e->d_name)) == own;
    if (dir)
        closedir(dir);
    return found;
}

static void look_again(const struct gt_still *s, struct look *l)
{
    struct gt_thread_wait *w = &l->task->wait;
    if (w->kind == GT_WAIT_GIL)
        return;
    l->holds = l->holds && gt_copy_again(s, l->task);
    if (!l->holds)
        return;
    gt_find_wait(s, l->task);
    gt_find_holder(s, l->task);
    if (w->owned == GT_OWNER_ENDED)
        l->holds = !has_thread(s, w->owner);
}

/* Takes the threads of all deadlocks. Returns their number. */
static size_t collect(const struct gt_still *s, struct look *looks)
{
    size_t n = 0;
    for (size_t i = 0; i < s->deadlocks; i++) {
        for (size_t k = 0; k < s->deadlock[i].tasks; k++)
            looks[n++] = (struct look){.task = &s->task[s->deadlock[i].task[k]]};
        free(s->deadlock[i].task);
    }
    return n;
}

void gt_confirm_deadlocks(struct gt_still *s)
{
    struct look *looks = gt_need(calloc(s->tasks + 1, sizeof *looks));
    size_t n = collect(s, looks);
    for (size_t i = 0; i < n; i++) {
        looks[i].holds = await_call(looks[i].task);
        looks[i].turn = turn_of(s, looks[i].task);
    }
    for (size_t i = 0; i < n; i++)
        looks[i].holds &= looks[i].task->wait.kind == GT_WAIT_GIL || is_in_call(looks[i].task);
    gt_python_find_holders();
    gt_elsewhere_forget();
    for (size_t i = 0; i < n; i++)
        look_again(s, &looks[i]);
    for (size_t i = 0; i < s->tasks; i++)
        s->task[i].stuck = false;
    for (size_t i = 0; i < n; i++) {
        struct gt_still_thread *t = looks[i].task;
        t->stuck = looks[i].holds && (t->wait.kind == GT_WAIT_GIL || is_in_call(t)) &&
                   looks[i].turn && turn_of(s, t) == looks[i].turn;
    }
    for (size_t i = 0; i < s->tasks; i++) {
        s->task[i].wait.certain &= s->task[i].stuck;
        s->task[i].wait.refused &= s->task[i].stuck;
        s->task[i].wait.within &= s->task[i].stuck;
    }
    s->deadlocks = 0;
    gt_find_deadlocks(s);
    free(looks);
}
